"""A mode of a bandit: what every arm pays on average.

    P(a | m) = 1 for a = arg max_j m_j

Under tiny prior parameters several m_j may be the same double, 1.0 say. They are then compared by
their logarithms, or log-odds (see `kernels.arms`). Where nothing tells the best apart, one of them
is pulled by chance.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.seeding import Stream


class MeanRewards:
    """A mode m: the mean reward of every arm. Its policy pulls the best, arg max_j m_j.

    `logs`, if given, is compared in place of `means`: it has the order of the exact means where
    doubles have not. Of several that are the best to the last bit one is pulled by chance.

    >>> MeanRewards(("red", "blue"), np.array([0.2, 0.7])).act(None, Stream(0))
    'blue'
    >>> MeanRewards(("red", "blue"), np.ones(2), logs=np.array([3.0, 2.0])).act(None, Stream(0))
    'red'
    """

    __slots__ = ("arms", "logs", "means")

    def __init__(
        self, arms: Sequence[Hashable], means: FloatArray, logs: FloatArray | None = None
    ) -> None:
        self.arms, self.means, self.logs = tuple(arms), means, logs

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_j m_j."""
        compared = self.means if self.logs is None else self.logs
        best = int(compared.argmax())
        if np.count_nonzero(compared == compared[best]) > 1:
            several = self._best()
            best = several[rng.integers(several.size)]
        return self.arms[best]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """1 for the best arm."""
        best = self._best()
        return {self.arms[j]: 1.0 / best.size for j in best}

    def _best(self) -> IntArray:
        compared = self.means if self.logs is None else self.logs
        return np.flatnonzero(compared == compared.max())

    def copy(self) -> "MeanRewards":
        """The same mode, free to retire arms of its own.

        >>> mode = MeanRewards(("red", "blue"), np.array([0.2, 0.7]))
        >>> mode.copy().retire("blue")
        >>> mode.act(None, Stream(0))
        'blue'
        """
        logs = None if self.logs is None else self.logs.copy()
        return MeanRewards(self.arms, self.means.copy(), logs)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{a}: {m:.3g}" for a, m in zip(self.arms, self.means.tolist(), strict=True)
        )
        return f"MeanRewards({shown})"

    def retire(self, arm: Hashable) -> None:
        """m_arm ← -∞: a mode in charge does not pull it either.

        >>> mode = MeanRewards(("red", "blue"), np.array([0.2, 0.7]))
        >>> mode.retire("blue")
        >>> mode.act(None, Stream(0))
        'red'
        """
        if arm in self.arms:
            self.means[self.arms.index(arm)] = -np.inf
            if self.logs is not None:
                self.logs[self.arms.index(arm)] = -np.inf
