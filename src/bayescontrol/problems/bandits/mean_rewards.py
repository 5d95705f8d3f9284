"""A mode of a bandit: what every arm pays on average.

    P(a | m) = 1 for a = arg max_j m_j

Where doubles cannot tell the best apart, one of them by chance.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.seeding import Stream

__all__ = ["MeanRewards"]


class MeanRewards:
    """A mode m: the mean reward of every arm. Its policy pulls the best, arg max_j m_j.

    Of several that are the best to the last bit it pulls one by chance.

    >>> MeanRewards(("red", "blue"), np.array([0.2, 0.7])).act(None, Stream(0))
    'blue'
    """

    __slots__ = ("arms", "means")

    def __init__(self, arms: Sequence[Hashable], means: FloatArray) -> None:
        self.arms, self.means = tuple(arms), means

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_j m_j."""
        best = int(self.means.argmax())
        if np.count_nonzero(self.means == self.means[best]) > 1:
            several = self._best()
            best = several[rng.integers(several.size)]
        return self.arms[best]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """1 for the best arm."""
        best = self._best()
        return {self.arms[j]: 1.0 / best.size for j in best}

    def _best(self) -> IntArray:
        return np.flatnonzero(self.means == self.means.max())

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
