"""Contextual bandits: the problem classes.

    agent          P(a_t | âo_<t) = P(x_t·w_a is the largest score | âo_<t)
    environment    r_t ~ P(r | x_t·w_a),  then x_{t+1} from the source of contexts

Contexts are N(0, I), uniform on the unit sphere, or drawn by a function. A world starts in the
context 0, in which nothing can be learned, unless another start is given. Give the agent the same
start: `agent(start=world.start)`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike
from bayescontrol._support.description import ModelKind
from bayescontrol._support.names import Names
from bayescontrol._support.temperature import with_temperature
from bayescontrol.bandits.changing_learned import SCALES, Given, changing_problem, unit_of
from bayescontrol.bandits.contexts.belief import (
    LinearBelief,
    LinearWeights,
)
from bayescontrol.bandits.contexts.regression import (
    Contexts,
    GaussianNoise,
    Learnable,
    LinearEnvironment,
    Link,
    Logit,
    Prior,
    RewardAndContext,
    as_context,
    next_context,
)
from bayescontrol.bandits.contexts.schema import Schema
from bayescontrol.bandits.contexts.shared import FeatureMap, SharedLinearBelief, SharedWeights
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import InvalidTable
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import SeedLike, as_stream
from bayescontrol.situations import accept_late_feedback

#: The length of a context, or the fields of contexts with names; see `Schema`.
Features: TypeAlias = int | Mapping[str, Any]


class ContextualBandit:
    """Arms with independent weights; the base of `LinearBandit` and `LogisticBandit`.

    >>> from bayescontrol.bandits.contexts.regression import GaussianNoise
    >>> ContextualBandit(GaussianNoise(), ["red", "blue"], 3)
    ContextualBandit(GaussianNoise(sd=learned), 2 arms of 3 features)
    """

    model_part: ClassVar[str] = "link"
    not_stored_because: ClassVar[str] = "its link has no stored name"

    def __init__(
        self, link: Link, arms: Arms, features: Features, prior: Prior = "learned"
    ) -> None:
        self.link, self.labels, self.prior = link, Names("arm", arms), prior
        size = Schema(features) if isinstance(features, Mapping) else features
        self._belief = LinearBelief(link, list(self.labels), size, prior)
        self.schema = self._belief.schema
        self.features = self._belief.features

    def belief(self) -> LinearBelief:
        """Return the prior belief."""
        return self._belief.copy()

    def agent(
        self, start: Any = None, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[LinearWeights, Any, Any, Any]:
        """Return an agent that acts by Thompson sampling, in the context `start`.

        Without `start` use `decide(x, rng)` and `learn(x, a, o)`; `act` and `observe` raise
        `NoContext`. For a simulated world use `start=world.start`. A `temperature` T multiplies the
        variance of drawn scores by T: below 1 the agent explores less, above 1 more.

        >>> from bayescontrol import LinearBandit
        >>> LinearBandit(["short", "long"], features=2).agent().observe("short", 5.0)
        Traceback (most recent call last):
        bayescontrol.bandits.contexts.regression.NoContext: no context yet: use decide(x, rng) ...
        """
        x = None if start is None else as_context(start, self.features, self.schema).copy()
        advance = next_context if self.schema is None else self.advance
        return ControlRule(with_temperature(self.belief(), temperature), x, advance, schedule)

    @accept_late_feedback
    def advance(self, x: Any, a: Any, o: Any) -> Any:
        """T(x, a, o) of contexts with a schema: the context in o, or x if o has none."""
        if isinstance(o, RewardAndContext):
            context = as_context(o.context, self.features, self.schema)
            o = RewardAndContext(o.reward, tuple(context.tolist()))
        return next_context(None if x is None else as_context(x, self.features, self.schema), a, o)

    def changing(self, *, per_arm: bool = False, **options: Any) -> Changing:
        """Return the same problem for a world that changes; see `ChangePointBelief` for options.

        All arms change together, or each arm at its own times with `per_arm`. Learned scales
        survive the changes, see `LearnedChangingBelief`.
        """
        return changing_problem(self, per_arm, options)

    # -- for `LearnedChangingBelief` -------------------------------------------------------------

    @property
    def learns_scale(self) -> bool:
        """Whether the noise, if there is one, and the prior are learned."""
        return isinstance(self.prior, str)

    def given_each(self, location: float) -> list[Given]:
        """Return the scales of changing arms, in units: those of the weights if rewards are 0, 1.

        The size of a score is about √d times that of the weights.
        """
        if self.link.sd is None:
            sizes = self._belief.ratios()
            return [Given({"weights": v}, self.link, (0.0, 1.0 / v**2)) for v in sizes]
        d = self.features
        return [
            Given({"noise": sd, "weights": v / d**0.5}, GaussianNoise(sd), (0.0, d / v**2))
            for sd, v, error in SCALES
            if not error
        ]

    def find_unit(self, rewards: Sequence[float]) -> tuple[float, float] | None:
        """Return the location 0 and a unit about the size of the rewards; None if all are 0."""
        return (0.0, 1.0) if self.link.sd is None else unit_of(rewards, centred=False)

    def belief_given(self, given: Given, arms: Arms) -> LinearBelief:
        """Return a static belief about these arms with fixed scales."""
        size = self.features if self.schema is None else self.schema
        return LinearBelief(given.family, arms, size, given.prior)

    def environment(
        self,
        weights: ArrayLike,
        contexts: Contexts = "normal",
        start: ArrayLike | None = None,
        *,
        sd: float | None = None,
    ) -> LinearEnvironment:
        """A world with these true weights, one row per arm.

        `sd` is its noise: by default that of the bandit, or 1 if the bandit learns it.
        """
        world = LinearEnvironment(self.link.in_world(sd), self.labels, weights, contexts, start)
        if (given := world.truth.shape[1]) != self.features:
            raise InvalidTable(f"weights of {given} features: expected {self.features} per arm")
        return world

    def draw(
        self,
        seed: SeedLike,
        contexts: Contexts = "normal",
        start: ArrayLike | None = None,
        *,
        sd: float | None = None,
    ) -> LinearEnvironment:
        """A world drawn from the prior; `sd` is its noise, as for `environment`."""
        noise = float(self.link.in_world(sd).sd or 1.0)
        weights = self._belief._posteriors.draw_prior(as_stream(seed).state, noise)
        return self.environment(weights, contexts, start, sd=sd)

    def settings(self) -> dict[str, Any]:
        """Return the arms, the length of a context, the prior and the link's settings.

        >>> from bayescontrol import LogisticBandit
        >>> LogisticBandit(["red"], features=3).settings()
        {'arms': ['red'], 'features': 3, 'prior': 'learned'}
        """
        prior: Any = self.prior
        if not isinstance(prior, str):
            prior = [np.asarray(part, np.float64).tolist() for part in prior]
        return {
            "arms": list(self.labels),
            "features": self.schema.settings() if self.schema else self.features, "prior": prior,
            **self.link.settings(),
        }  # fmt: skip

    def __repr__(self) -> str:
        shown = f"{len(self.labels)} arms of {self.features} features"
        return f"{type(self).__name__}({self.link!r}, {shown})"


class LinearBandit(ContextualBandit):
    """N arms that pay x·w_a and Gaussian noise; `features` is the length d of a context x.

    `arms` is the number of arms or their names. By default the noise, and the size of the weights
    relative to it, are learned: rewards and features may have any unit.

    If they are known, give both: `sd` is the standard deviation of the noise, `prior` is (mean,
    precision) of the weights: numbers, or a vector and a matrix, for all arms or per arm.

    `features` may also be a mapping that describes the fields of a context, see `Schema`. Then x is
    a mapping or a row of a data frame: `LinearBandit(2, {"age": "number", "new": "boolean"})`.

    >>> bandit = LinearBandit(["red", "blue"], features=2)
    >>> agent = bandit.agent()
    >>> from bayescontrol import Stream, interact, metrics
    >>> _, a = agent.decide([1.0, 0.3], Stream(0))      # now
    >>> agent.learn([1.0, 0.3], a, 0.7)                 # when the reward is known
    >>> world = bandit.environment([[1, 0], [0, 1]], sd=0.5)
    >>> record = interact(bandit.agent(start=world.start), world, 500, seed=0)
    >>> regret = metrics.regret(record, world)          # cumulative
    >>> bool((regret[499] - regret[249]) / 250 < 0.1)
    True
    """

    model_kind: ClassVar[ModelKind] = GaussianNoise.model_kind

    def __init__(
        self, arms: Arms, features: Features, sd: Learnable = "learned", prior: Prior = "learned"
    ) -> None:
        super().__init__(GaussianNoise(sd), arms, features, prior)


class LogisticBandit(ContextualBandit):
    """N arms that pay 1 with probability σ(x·w_a); see `Logit` for the approximation.

    `arms` is the number of arms or their names. `features` is the length of a context x. `prior` is
    (mean, precision) of the weights, as for `LinearBandit`. By default the mean is 0 and the
    precision is learned; its probabilities are approximate, like the posterior. Features may have
    any unit: their scales are learned from the first 50 contexts.

    >>> bandit = LogisticBandit(["red", "blue"], features=2, prior=(0, 1))
    >>> agent = bandit.agent()
    >>> agent.learn([1.0, 0.0], "red", 1)
    >>> {a: round(p, 3) for a, p in agent.belief.expected([1.0, 0.0]).items()}
    {'red': 0.587, 'blue': 0.5}
    """

    model_kind: ClassVar[ModelKind] = Logit.model_kind

    def __init__(self, arms: Arms, features: Features, prior: Prior = "learned") -> None:
        super().__init__(Logit(), arms, features, prior)


class SharedLinearBandit:
    """Arms with shared weights: r = φ(x, a)·w plus noise, or `link=Logit()` for 0 and 1.

    `arms` is the number of arms or their names. `phi(x, a)` returns the features of arm a in
    context x, a vector of length `features`. `sd` is the standard deviation of the noise, `prior`
    is (mean, precision) of the weights: give both, or neither to learn them, as for `LinearBandit`.

    >>> phi = lambda x, a: [x, a == "day"]
    >>> bandit = SharedLinearBandit(["day", "night"], phi, features=2, sd=1, prior=(0, 1))
    >>> agent = bandit.agent(start=0.5)
    >>> agent.learn(0.5, "day", 1.0)
    >>> agent.belief.mean().round(3)
    array([0.222, 0.444])
    """

    not_stored_because: ClassVar[str] = "its phi is code"

    def __init__(
        self,
        arms: Arms,
        phi: FeatureMap,
        features: int,
        sd: Learnable = "learned",
        prior: Prior = "learned",
        *,
        link: Link | None = None,
    ) -> None:
        self.link = GaussianNoise(sd) if link is None else link
        self._belief = SharedLinearBelief(self.link, arms, phi, features, prior)

    def belief(self) -> SharedLinearBelief:
        """The prior belief."""
        return self._belief.copy()

    def agent(
        self, start: Any = None, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[SharedWeights, Any, Any, Any]:
        """The control rule for this bandit, in the context `start`.

        Without `start` use `decide(x, rng)` and `learn(x, a, o)`; `act` and `observe` raise
        `NoContext`. `temperature` is that of `LinearBandit.agent`.
        """
        belief = with_temperature(self.belief(), temperature)
        return ControlRule(belief, start, self.advance, schedule)

    @accept_late_feedback
    def advance(self, x: Any, a: Any, o: Any) -> Any:
        """T(x, a, o): the context in o; x if o is a reward without context."""
        if not isinstance(o, RewardAndContext):
            return x
        self._belief._vector(o.context, self._belief.arms[0])  # raises if φ rejects the context
        return o.context

    def __repr__(self) -> str:
        return f"SharedLinearBandit({self.link!r}, {len(self._belief.arms)} arms)"
