"""One weight vector for all arms: what is learnt from one arm tells about the others.

    score of arm a in context x:  φ(x, a)·w        w ~ N(μ₀, Λ₀⁻¹)

φ is yours: the features of a customer and an offer together, say. x may be anything φ can read,
save None: that is no context. A φ that reads no x may be given any, `agent(start=0)`.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.bandits.contexts import (
    NoContext,
    Outcome,
    accept_late_feedback,
    as_context,
    comparable,
)
from bayescontrol.bandits.linear import GaussianNoise
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.bandits.link import Link
from bayescontrol.bandits.regression import Prior
from bayescontrol.bandits.roster import InPlay, Roster
from bayescontrol.errors import IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream

#: φ(x, a): the features of an arm in a context.
FeatureMap: TypeAlias = Callable[[Any, Any], npt.ArrayLike]

_SHARED = "shared/"


def _features(phi: FeatureMap, x: Any, a: Any, d: int) -> FloatArray:
    if x is None:
        raise NoContext
    return as_context(phi(x, a), d)


class SharedWeights:
    """A mode: the weights w. Its policy pulls arg max_a φ(x, a)·w.

    >>> SharedWeights((0, 1), lambda x, a: [x * a], np.array([2.0])).act(1.0, Stream(0))
    1
    """

    __slots__ = ("arms", "phi", "weights")

    def __init__(self, arms: Sequence[Hashable], phi: FeatureMap, weights: FloatArray) -> None:
        self.arms, self.phi, self.weights = tuple(arms), phi, weights

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_a φ(x, a)·w, of equal ones one by chance."""
        best = self._best(x)
        return best[rng.integers(len(best)) if len(best) > 1 else 0]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """1 for the best arm in this context."""
        best = self._best(x)
        return dict.fromkeys(best, 1.0 / len(best))

    def _best(self, x: Any) -> list[Any]:
        w = self.weights
        scores = {
            a: kernels.regression.dot(_features(self.phi, x, a, len(w)), w) for a in self.arms
        }
        most = max(scores.values())
        return [a for a, s in scores.items() if s == most]


class SharedLinearBelief(InPlay):
    """P(w | âo_<t) for one weight vector under a link; arms come and go at no cost.

    >>> bandit = SharedLinearBandit([1, 2], lambda x, a: [x * a], features=1)
    >>> belief = bandit.belief()
    >>> belief.observe(1.0, 1, 4.0)
    >>> {a: round(r, 12) for a, r in belief.expected(1.0).items()}  # arm 2 was never pulled
    {1: 2.0, 2: 4.0}
    >>> {a: round(p, 4) for a, p in belief.action_probabilities(1.0).items()}
    {1: 0.0023, 2: 0.9977}
    """

    format_name: ClassVar[str] = "SharedLinearBelief"

    def __init__(
        self,
        link: Link,
        arms: int | Sequence[Hashable],
        phi: FeatureMap,
        features: int,
        prior: Prior = None,
    ) -> None:
        if not callable(phi):
            raise InvalidTable(
                f"phi={phi!r}: it must be a function phi(x, a) of {features} numbers"
            )
        self.phi = phi
        self._roster = Roster(arms)
        self._one = LinearBelief(link, 1, features, prior)
        self._last: SharedWeights | None = None

    def _features(self, x: Any, a: Any) -> FloatArray:
        self._roster.labels.place(a)
        return _features(self.phi, x, a, self._one.features)

    # -- the verbs of a belief --------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn the reward of arm a in context x. On an error nothing has changed."""
        self._one.observe(self._features(x, a), 0, o)
        self._roster.counts[self._roster.labels.place(a)] += 1

    def sample(self, rng: Stream) -> SharedWeights:
        """w ~ N(μ, Λ⁻¹)."""
        self._last = SharedWeights(self.arms, self.phi, self._one.sample(rng).weights[0])
        return self._last

    # -- what a reader or the rule may ask ---------------------------------------------------

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """P(φ(x, a)·w is the largest): exact for two arms, by the law of one difference."""
        arms = self.arms
        if x is None:
            raise NoContext
        if len(arms) > 2:
            raise MissingCapability(
                f"{len(arms)} arms with common weights have no exact action probabilities: count "
                "how often `agent.decide(x, rng)` chooses each arm"
            )
        if len(arms) == 1:
            return {arms[0]: 1.0}
        apart = self._features(x, arms[0]) - self._features(x, arms[1])
        s, sd = self._one.scores(comparable(apart))
        if not sd[0]:
            first = 0.5 * (1.0 + float(np.sign(s[0])))
            return {arms[0]: first, arms[1]: 1.0 - first}
        t = float(s[0] / sd[0]) / math.sqrt(2.0)
        return {arms[0]: 0.5 * math.erfc(-t), arms[1]: 0.5 * math.erfc(t)}

    def expected(self, x: Any) -> dict[Any, float]:
        """E[r | âo_<t, x] of every arm in play."""
        return {a: self._one.expected(self._features(x, a))[0] for a in self.arms}

    def predictive(self, x: Any, a: Any) -> dict[Any, float]:
        """P(o | âo_<t â_t) for every reward o, where they are finitely many."""
        return self._one.predictive(self._features(x, a), 0)

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(r | âo_<t â_t), a density where rewards are continuous."""
        return self._one.log_predictive(self._features(x, a), 0, o)

    def surprise(self, x: Any, a: Any, o: Any) -> float:
        """-log2 P(r | âo_<t â_t), in bits. Changes nothing."""
        return self._one.surprise(self._features(x, a), 0, o)

    def mean(self) -> FloatArray:
        """μ."""
        return self._one.mean(0)

    def precision(self) -> FloatArray:
        """Λ."""
        return self._one.precision(0)

    def posterior(self) -> FloatArray:
        """μ and, below it, Λ: shape (1 + d, d)."""
        return np.asarray(self._one.posterior()[0])

    @property
    def count(self) -> int:
        """Rewards seen."""
        return self._one.count

    def last(self) -> SharedWeights | None:
        """The mode drawn last. Arms that come or go do so for it too."""
        return self._last

    def _remember(self) -> None:
        """The mode drawn last, made anew."""
        drawn = self._one.last()
        w = None if drawn is None else drawn.weights[0]
        self._last = None if w is None else SharedWeights(self.arms, self.phi, w)

    def add(self, arm: Hashable) -> None:
        """A new arm enters: what is known of w is known of it too."""
        self._roster.add(arm)
        self._tell()

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Feedback that is still on its way is learnt."""
        self._roster.retire(arm)
        self._tell()

    def restore(self, arm: Hashable) -> None:
        """A retired arm is back."""
        self._roster.restore(arm)
        self._tell()

    def _tell(self) -> None:
        if self._last is not None:
            self._last.arms = self.arms

    # -- named arrays ----------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        inner = self._one.save()
        drawn = inner.pop("drawn")
        return {
            **self._roster.save(),
            **{_SHARED + name: array for name, array in inner.items()},
            "drawn": drawn,
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, arms that came and went included."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        if "drawn" not in arrays:
            raise IncompatibleState("the saved state lacks the array 'drawn'")
        roster, one = Roster.loaded(arrays), self._one.copy()
        inner = {n.removeprefix(_SHARED): v for n, v in arrays.items() if n.startswith(_SHARED)}
        one.load({**inner, "drawn": arrays["drawn"]})
        self._roster, self._one = roster, one
        self._remember()

    def merge(self, other: "SharedLinearBelief") -> None:
        """The evidence of both, the prior counted once."""
        if not isinstance(other, SharedLinearBelief):
            raise IncompatibleState(f"{other!r} is not a belief over common weights")
        if tuple(self._roster.labels) != tuple(other._roster.labels):
            raise IncompatibleState("beliefs can be merged only if they share their arms")
        self._one.merge(other._one)
        self._roster.counts = self._roster.counts + other._roster.counts

    def copy(self) -> "SharedLinearBelief":
        """The same belief, free to go its own way."""
        twin = SharedLinearBelief.__new__(type(self))
        twin.phi, twin._roster, twin._one = self.phi, self._roster.copy(), self._one.copy()
        twin._remember()
        return twin

    def __repr__(self) -> str:
        return (
            f"SharedLinearBelief({self._one.link!r}, {len(self.arms)} arms, {self._one.features} "
            f"features after {self.count} observations)"
        )


class SharedLinearBandit:
    """Arms with common weights: r = φ(x, a)·w and noise. `link` may be `Logit()` instead.

    >>> bandit = SharedLinearBandit(["day", "night"], lambda x, a: [x, a == "day"], features=2)
    >>> agent = bandit.agent(start=0.5)
    >>> agent.learn(0.5, "day", 1.0)
    >>> agent.belief.mean().round(3)
    array([0.222, 0.444])
    """

    not_stored_because: ClassVar[str] = "its phi is code"

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        phi: FeatureMap,
        features: int,
        sd: float = 1.0,
        prior: Prior = None,
        *,
        link: Link | None = None,
    ) -> None:
        self.link = GaussianNoise(sd) if link is None else link
        self._belief = SharedLinearBelief(self.link, arms, phi, features, prior)

    def belief(self) -> SharedLinearBelief:
        """The prior belief."""
        return self._belief.copy()

    def agent(
        self, start: Any = None, *, schedule: Schedule = every_step
    ) -> ControlRule[SharedWeights, Any, Any, Any]:
        """The control rule over this bandit, in the context `start`.

        Without one use `decide(x, rng)` and `learn(x, a, o)`; `act` and `observe` raise.
        """
        return ControlRule(self.belief(), start, self.advance, schedule)

    @accept_late_feedback
    def advance(self, x: Any, a: Any, o: Any) -> Any:
        """T(x, a, o): the context in o; a reward that came alone leaves x."""
        if not isinstance(o, Outcome):
            return x
        self._belief._features(o.context, self._belief.arms[0])
        return o.context

    def __repr__(self) -> str:
        return f"SharedLinearBandit({self.link!r}, {len(self._belief.arms)} arms)"
