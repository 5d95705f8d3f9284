"""The modes of a linear bandit: weights for every arm, and the policy tailored to them.

P(a | w, x) = 1  for  a = arg max_a x·w_a
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.contexts import as_context, comparable
from bayescontrol.seeding import Stream


class LinearWeights:
    """A mode: the weights of every arm. Its policy pulls arg max_a x·w_a.

    Of several that are the best to the last bit it pulls one by chance.

    >>> LinearWeights(("red", "blue"), np.eye(2)).act([0.2, 0.7], Stream(0))
    'blue'
    """

    __slots__ = ("arms", "weights")

    def __init__(self, arms: Sequence[Hashable], weights: FloatArray) -> None:
        self.arms, self.weights = tuple(arms), weights

    def act(self, x: npt.ArrayLike, rng: Stream) -> Any:
        """arg max_a x·w_a."""
        v = comparable(as_context(x, self.weights.shape[1]))
        return self.arms[kernels.regression.best(self.weights, v, rng.state)]

    def action_probabilities(self, x: npt.ArrayLike) -> dict[Any, float]:
        """1 for the best arm in this context."""
        v = comparable(as_context(x, self.weights.shape[1]))
        scores = np.array([kernels.regression.dot(v, w) for w in self.weights])
        best = np.flatnonzero(scores == scores.max())
        return {self.arms[j]: 1.0 / best.size for j in best}

    def become(self, arms: Sequence[Hashable], weights: FloatArray) -> None:
        """Other arms than before: a mode in charge pulls none that was retired.

        >>> mode = LinearWeights(("red", "blue"), np.eye(2))
        >>> mode.become(("red",), np.eye(2)[:1])
        >>> mode.act([0.2, 0.7], Stream(0))
        'red'
        """
        self.arms, self.weights = tuple(arms), weights

    def __repr__(self) -> str:
        arms, features = self.weights.shape
        return f"LinearWeights({arms} arms, {features} features)"
