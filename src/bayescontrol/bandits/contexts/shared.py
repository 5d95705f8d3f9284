"""One weight vector for all arms: the score of an arm is φ(x, a)·w.

P(w | âo_<t) is that of a regression on the features φ(x, a), see `contexts.belief`.
"""

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support.names import Choice
from bayescontrol._support.saved import damaged
from bayescontrol.bandits.contexts.belief import ScoresBelief
from bayescontrol.bandits.contexts.regression import (
    Link,
    NoContext,
    Prior,
    as_context,
    scale_for_comparison,
)
from bayescontrol.bandits.contexts.weights import make_posteriors
from bayescontrol.bandits.roster import Arms, BestArmMode, Roster
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.protocols import Probabilities
from bayescontrol.seeding import StreamLike, state_of

#: φ(x, a): the features of an arm in a context.
FeatureMap: TypeAlias = Callable[[Any, Any], ArrayLike]


def _features(phi: FeatureMap, x: Any, a: Any, d: int) -> FloatArray:
    """Return φ(x, a) as a vector of d finite numbers, or raise BadEvidence."""
    if x is None:
        raise NoContext
    return as_context(phi(x, a), d)


class SharedWeights(BestArmMode):
    """A mode: the weights w. Its policy pulls arg max_a φ(x, a)·w, ties at random.

    >>> from bayescontrol import Stream
    >>> SharedWeights((0, 1), lambda x, a: [x * a], np.array([2.0])).act(1.0, Stream(0))
    1
    """

    __slots__ = ("link", "phi", "weights")

    def __init__(
        self,
        arms: Sequence[Hashable],
        phi: FeatureMap,
        weights: FloatArray,
        link: Link | None = None,
    ) -> None:
        self.arms, self.phi, self.weights, self.link = tuple(arms), phi, weights, link
        self.prices = None

    def _scores(self, x: Any) -> FloatArray:
        w = self.weights
        features = (_features(self.phi, x, a, len(w)) for a in self.arms)
        return np.array([kernels.regression.dot(v, w) for v in features])

    def _mean_rewards(self, x: Any) -> FloatArray:
        scores = self._scores(x)
        return scores if self.link is None else self.link.mean(scores)


class SharedLinearBelief(ScoresBelief[SharedWeights]):
    """P(w | âo_<t) for one weight vector under a link.

    >>> from bayescontrol.bandits import SharedLinearBandit
    >>> phi = lambda x, a: [x * a]
    >>> belief = SharedLinearBandit([1, 2], phi, features=1, sd=1, prior=(0, 1)).belief()
    >>> belief.observe(1.0, 1, 4.0)
    >>> {a: round(r, 12) for a, r in belief.expected(1.0).items()}  # arm 2 was never pulled
    {1: 2.0, 2: 4.0}
    >>> {a: round(p, 4) for a, p in belief.action_probabilities(1.0).items()}
    {1: 0.0023, 2: 0.9977}
    """

    format_name: ClassVar[str] = "SharedLinearBelief"
    stateless_draws: ClassVar[bool] = True

    def __init__(
        self, link: Link, arms: Arms, phi: FeatureMap, features: int, prior: Prior = "learned"
    ) -> None:
        if not callable(phi):
            raise InvalidTable(f"phi={phi!r}: give a function (x, a) -> {features} numbers")
        self.link, self.phi = link, phi
        self._roster = Roster(arms)
        self._posteriors = make_posteriors(link, prior, 1, features)

    def _row(self, j: int) -> int:
        return 0

    def _vector(self, x: Any, a: Any) -> FloatArray:
        return _features(self.phi, x, a, self.features)

    def sample(self, rng: StreamLike) -> SharedWeights:
        """Draw w ~ N(μ, Λ⁻¹)."""
        (w,) = self._posteriors.draw_rows(np.zeros(1, np.int64), state_of(rng))
        self._last = SharedWeights(self.arms, self.phi, w, self.link)
        self._last.prices = self._prices
        return self._last

    # -- queries -----------------------------------------------------------------------------

    def action_probabilities(self, x: Any) -> Probabilities:
        """P(φ(x, a)·w is the largest), exactly, for at most two arms.

        The difference of two scores has a known distribution. More arms raise MissingCapability,
        and so do prices of arms that pay 0 or 1.
        """
        arms, prices = self.arms, self._prices
        if x is None:
            raise NoContext
        if len(arms) > 2:
            raise MissingCapability(
                f"{len(arms)} arms with shared weights have no exact action probabilities: "
                "estimate them by counting the arms that `agent.decide(x, rng)` chooses"
            )
        if len(arms) == 1:
            return {arms[0]: 1.0}
        first, second = (self._vector(x, a) for a in arms)
        if prices is None:
            p = self._posteriors.p_above(0, scale_for_comparison(first - second))
        elif self.link.sd is None:
            raise MissingCapability(f"{self.link!r} with shared weights and prices has no exact P")
        else:
            p = self._posteriors.p_above(0, first - second, float(prices[0] - prices[1]))
        return {arms[0]: p, arms[1]: 1.0 - p}

    def mean(self) -> FloatArray:
        """Return μ, the posterior mean of w."""
        return self._posteriors.mean(0)

    def precision(self) -> FloatArray:
        """Return Λ, the posterior precision of w."""
        return self._posteriors.precision(0)

    def posterior(self) -> FloatArray:
        """Return μ and, below it, Λ: shape (1 + d, d)."""
        return np.vstack([self.mean(), self.precision()])

    def _saved_draw(self) -> FloatArray:
        return np.empty((0, self.features)) if self._last is None else self._last.weights[None]

    def _check_state(self, new: SimpleNamespace) -> None:
        if len(new._posteriors) != 1 or len(new.drawn) > 1:
            raise damaged(f"{len(new._posteriors)} posteriors and {len(new.drawn)} drawn weights")
        new._last = None
        if len(new.drawn):
            new._last = SharedWeights(new._roster.arms, self.phi, new.drawn[0], self.link)

    def add(self, arm: Hashable) -> None:
        """Add an arm; the posterior of w applies to it."""
        self._roster.add(arm)
        self._roster_changed()

    def _roster_changed(self) -> None:
        """Let the mode drawn last choose from the active arms."""
        if self._last is not None:
            self._last.arms, self._last.prices = self.arms, None

    def _choose(self, choice: Choice | None) -> None:
        self._choice = choice
        self._roster.choose(choice)  # the mode drawn last does not change
