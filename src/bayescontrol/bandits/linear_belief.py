"""Beliefs over arms whose scores are linear in the context.

    weights per arm    x·w_a | past ~ N(x·μ_a, xᵀ Λ_a⁻¹ x)
    shared weights     φ(x, a)·w,  w ~ N(μ₀, Λ₀⁻¹): a reward of one arm informs about all
    policy             P(a | w, x) = 1 for the arm with the largest score

Drawing a mode draws the weights. `LinearBelief.draw_action` only draws the scores in the given
context, which gives actions the same distribution.

The feature map φ is the user's: for instance the features of a customer and an offer together. x
may be anything that φ accepts, except None, which means "no context". If φ does not use x, any
other value will do, as in `agent(start=0)`.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, Arrays, FloatArray, IntArray
from bayescontrol._mode_queries import has
from bayescontrol._support.display import summary_html
from bayescontrol._support.regressions import Regressions
from bayescontrol._support.saved import Array, Fixed, Part, damaged, declare
from bayescontrol._support.values import distinct_texts, format_text
from bayescontrol.bandits.best_arm import Mixture, normal_best
from bayescontrol.bandits.regression import (
    LARGEST,
    FiniteLink,
    LinearEnvironment,
    Link,
    NoContext,
    Prior,
    RewardAndContext,
    as_context,
    make_regressions,
    next_context,
    pays_alike,
    reward_of,
    scale_for_comparison,
)
from bayescontrol.bandits.roster import HasArms, Roster
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.protocols import PosteriorMeasure
from bayescontrol.record import Record
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream, StreamLike, state_of


class LinearWeights:
    """A mode: the weights of every arm. Its policy pulls arg max_a x·w_a, ties at random.

    >>> from bayescontrol import Stream
    >>> LinearWeights(("red", "blue"), np.eye(2)).act([0.2, 0.7], Stream(0))
    'blue'
    """

    __slots__ = ("arms", "weights")

    def __init__(self, arms: Sequence[Hashable], weights: FloatArray) -> None:
        self.arms, self.weights = tuple(arms), weights

    def act(self, x: ArrayLike, rng: StreamLike) -> Any:
        """Return arg max_a x·w_a; ties are broken at random."""
        v = scale_for_comparison(as_context(x, self.weights.shape[1]))
        return self.arms[kernels.regression.best(self.weights, v, state_of(rng))]

    def action_probabilities(self, x: ArrayLike) -> dict[Any, float]:
        """1 for the best arm in this context, split evenly between ties."""
        v = scale_for_comparison(as_context(x, self.weights.shape[1]))
        scores = np.array([kernels.regression.dot(v, w) for w in self.weights])
        best = np.flatnonzero(scores == scores.max())
        return {self.arms[j]: 1.0 / best.size for j in best}

    def retire(self, arm: Hashable) -> None:
        """Remove the arm, so that this mode no longer pulls it."""
        others = [k for k, a in enumerate(self.arms) if a != arm]
        self.arms, self.weights = tuple(self.arms[k] for k in others), self.weights[others]

    def __repr__(self) -> str:
        arms, features = self.weights.shape
        return f"LinearWeights({arms} arms, {features} features)"


class LinearBelief(HasArms[LinearWeights]):
    """P(w | âo_<t) for arms with independent weights under one link.

    Feedback may come late, in any order, or never. With `Logit` the order has an effect.

    >>> from bayescontrol import LinearBandit
    >>> belief = LinearBandit(["red", "blue"], features=2).belief()
    >>> belief.observe([1.0, 0.0], "red", 2.0)
    >>> belief
    LinearBelief(GaussianNoise(sd=1), 2 arms of 2 features after 1 observations)
    >>> belief.mean("red").round(12)
    array([1., 0.])
    >>> {a: round(r, 12) for a, r in belief.expected([1.0, 1.0]).items()}
    {'red': 1.0, 'blue': 0.0}
    """

    format_name: ClassVar[str] = "LinearBelief"
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True
    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure(
        "mean weight of a feature",
        "score by feature",
        "Rewards depend on the situation: the weights are shown instead.",
    )
    saved_fields = declare(
        Fixed("link", lambda belief: format_text(belief.link)),
        Part("", "_posteriors"),
        Array("drawn", lambda belief: belief._saved_draw(), shape=(None, "features"), finite=False),
    )

    def __init__(
        self, link: Link, arms: int | Sequence[Hashable], features: int, prior: Prior = None
    ) -> None:
        self.link = link
        self._roster = Roster(arms)
        # The Gaussian posterior of each arm's weights.
        self._posteriors = make_regressions(prior, len(self), features)
        self._last = None

    # -- the Belief protocol ----------------------------------------------------------------

    def observe(self, x: ArrayLike, a: Any, o: Any) -> None:
        """Learn the reward of arm a in context x; o is a `RewardAndContext` or a reward.

        An error leaves the belief unchanged.
        """
        j, v, r = self._event(x, a, o)
        link, R, z = self.link, self._posteriors.R[j], self._posteriors.z[j]
        kernels.regression.learn(link.kind, link.constants, R, z, v, r, self._posteriors.v)
        self._roster.counts[j] += 1

    def _event(self, x: ArrayLike, a: Any, o: Any) -> tuple[int, FloatArray, float]:
        """Check an event; return the row of arm a, the context x as a vector, and the reward."""
        j, r = self._roster.labels.place(a), self.link.reward(reward_of(o))
        if abs(r) > LARGEST:
            raise BadEvidence(f"reward {r!r} of arm {a!r} is above {LARGEST:g}: rescale it")
        return j, as_context(x, self.features), r

    def plain_event(self, x: ArrayLike, a: Any, o: Any) -> tuple[list[float], Any, float]:
        """Return a valid event in plain values, or raise an error."""
        context, j, r = self.row_event(x, a, o)
        return context, self._roster.labels[j], r

    def row_event(self, x: ArrayLike, a: Any, o: Any) -> tuple[list[float], int, float]:
        """Return a valid event as (context, row of arm a, reward), or raise an error."""
        j, v, r = self._event(x, a, o)
        return v.tolist(), j, r

    def only(self, arm: Hashable) -> "LinearBelief":
        """Return the belief about a single arm."""
        j, single = self.place(arm), self.copy()
        single._roster = Roster([arm])
        single._posteriors = Regressions(self._posteriors.R[[j]], self._posteriors.z[[j]])
        return single

    def use_arrays(self, R: FloatArray, z: FloatArray) -> None:
        """Use this factor and target, arrays that others may change."""
        self._posteriors.R, self._posteriors.z = R, z

    def sample(self, rng: StreamLike) -> LinearWeights:
        """Draw w_a ~ N(μ_a, Λ_a⁻¹) for every active arm."""
        weights = np.empty((len(self), self.features))
        for k, j in enumerate(self._roster.active):
            self._posteriors.draw(int(j), state_of(rng), weights[k])
        self._last = LinearWeights(self.arms, weights)
        return self._last

    def draw_action(self, x: ArrayLike, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t, x) by drawing only the scores x·w_a, not the weights."""
        v = scale_for_comparison(as_context(x, self.features))
        self._last = None
        R, z, active, buffer = self.loop_arrays()
        j = kernels.regression.draw_action(R, z, active, v, buffer, state_of(rng))
        return self._roster.labels[j]

    # -- queries -----------------------------------------------------------------------------

    def scores(self, x: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations of x·w_a for every active arm."""
        v = as_context(x, self.features)
        moments = np.array([self._posteriors.score(int(j), v) for j in self._roster.active])
        return moments[:, 0], np.sqrt(moments[:, 1])

    def action_probabilities(self, x: ArrayLike) -> dict[Any, float]:
        """P(a | âo_<t, x) = P(x·w_a is the largest), by quadrature."""
        return dict(zip(self.arms, self.best(self.marginals(x)).tolist(), strict=True))

    def marginals(self, x: ArrayLike) -> FloatArray:
        """Return the mean and the standard deviation of the scaled score of every active arm."""
        scaled = scale_for_comparison(as_context(x, self.features))
        return np.column_stack(self.scores(scaled))

    def best(self, scores: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(score j is the largest) for arms with these scores, or for a mixture for each arm."""
        s, sd = scores.T
        if sd.all():
            return normal_best(s, sd, mixture)
        # Scores without uncertainty, as in the context 0, have no density to integrate.
        if mixture is not None:
            s = np.add.reduceat(mixture.p * s, mixture.first[:-1])
        is_best = s == s.max()
        return np.asarray(is_best / is_best.sum())

    def mean_quantiles(self, tails: FloatArray, x: ArrayLike) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm in context x."""
        from scipy import special  # type: ignore[import-untyped]

        s, sd = self.scores(x)
        scores = s[:, None] + sd[:, None] * special.ndtri(tails)
        means = (np.array([self.link.expected(v, 0.0) for v in row]) for row in scores.tolist())
        return dict(zip(self.arms, means, strict=True))

    def expected(self, x: ArrayLike) -> dict[Any, float]:
        """E[r | âo_<t, x] of every active arm."""
        s, sd = self.scores(x)
        pairs = zip(s.tolist(), (sd * sd).tolist(), strict=True)
        return dict(zip(self.arms, (self.link.expected(m, q) for m, q in pairs), strict=True))

    def predictive(self, x: ArrayLike, a: Any) -> dict[Any, float]:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        if not has(self.link, FiniteLink):
            raise MissingCapability(
                f"{self.link!r} pays infinitely many rewards: use `log_predictive(x, a, o)`"
            )
        j = self._roster.labels.place(a)
        return self.link.predictive(*self._posteriors.score(j, as_context(x, self.features)))

    def log_predictive(self, x: ArrayLike, a: Any, o: Any) -> float:
        """ln P(r | âo_<t â_t); a density if rewards are continuous."""
        j, v, r = self._event(x, a, o)
        return self.link.log_predictive(*self._posteriors.score(j, v), r)

    def observed_part(self, o: Any) -> Any:
        """Return the reward in o, without the next context: the part that is predicted."""
        return reward_of(o)

    def mean(self, arm: Hashable) -> FloatArray:
        """Return μ_a, the posterior mean of the weights of an arm."""
        return self._posteriors.mean(self._roster.labels.place(arm))

    def precision(self, arm: Hashable) -> FloatArray:
        """Return Λ_a, the posterior precision of the weights of an arm."""
        return self._posteriors.precision(self._roster.labels.place(arm))

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return μ_a and the pulls of every arm."""
        pulls, names = self.pulls, distinct_texts(self.labels).items()
        return {s: {"mean": self.mean(a).tolist(), "count": pulls[a]} for a, s in names}

    def posterior(self) -> FloatArray:
        """Return μ_a and, below it, Λ_a of all arms, also retired ones: shape (arms, 1 + d, d)."""
        mean, precision = self._posteriors.mean, self._posteriors.precision
        return np.array([[mean(j), *precision(j)] for j in range(len(self._posteriors))])

    @property
    def features(self) -> int:
        """d, the length of a context."""
        return self._posteriors.features

    @property
    def drawn(self) -> FloatArray:
        """The weights drawn last, one row per arm; NaN for arms without a draw."""
        rows = np.full((len(self._posteriors), self.features), np.nan)
        if self._last is not None:
            rows[[self._roster.labels.place(a) for a in self._last.arms]] = self._last.weights
        return rows

    # -- adding and retiring arms --------------------------------------------------------------

    def add(self, arm: Hashable, prior: Prior = None) -> None:
        """Add an arm with its prior, by default (0, 1); the other arms do not change.

        >>> from bayescontrol import LinearBandit
        >>> belief = LinearBandit(["red"], features=2).belief()
        >>> belief.add("blue", prior=(3.0, 10.0))
        >>> belief.arms, belief.mean("blue").tolist()
        (('red', 'blue'), [3.0, 3.0])
        """
        roster, posteriors = self._roster.copy(), self._posteriors.copy()
        roster.add(arm)
        posteriors.append(make_regressions(prior, 1, self.features))
        self._roster, self._posteriors = roster, posteriors

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late feedback for it is still learned.

        If the mode drawn last has no other arm, it is dropped: the next action draws a new mode.
        """
        self._roster.retire(arm)
        if self._last is not None:
            self._last.retire(arm)
            if not self._last.arms:
                self._last = None

    def is_retired(self, mode: LinearWeights) -> bool:
        """Whether the mode has no active arm left."""
        return not mode.arms

    # -- for compiled loops --------------------------------------------------------------------

    def loop_arrays(self) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        """Return (R, z, active, v), the arrays that kernels update in place; v is a buffer."""
        return self._posteriors.R, self._posteriors.z, self._roster.active, self._posteriors.v

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the rule draws at every step and contexts have a kernel."""
        belief, x = agent.belief, agent.x
        fits = (
            type(environment) is LinearEnvironment
            and agent.schedule is every_step
            and agent.advance is next_context
            and isinstance(environment.contexts, str)
            and pays_alike(belief.link, environment.link)
            and belief.labels == tuple(environment.labels)
            and isinstance(x, np.ndarray)
            and x.dtype == np.float64
            and x.shape == environment.start.shape == (belief.features,)
            and bool((np.abs(x) < LARGEST**0.5).all())
            and (scale_for_comparison(x) is x or not x.any())  # the loop does not scale contexts
        )
        return _run if fits else None

    # -- saving, merging, copying ----------------------------------------------------------------

    def _saved_draw(self) -> FloatArray:
        """Return the weights drawn last, one row per arm; no rows if nothing was drawn."""
        return np.empty((0, self.features)) if self._last is None else self.drawn

    def _check_state(self, new: SimpleNamespace) -> None:
        labels, drawn = new._roster.labels, new.drawn
        if len(new._posteriors) != len(labels):
            raise damaged(f"{len(new._posteriors)} posteriors for {len(labels)} arms")
        # NaN marks an arm without drawn weights.
        drawn_arms = np.flatnonzero(~np.isnan(drawn).any(-1))
        if len(drawn) and (len(drawn) != len(labels) or not drawn_arms.size):
            raise damaged(f"the drawn weights are {drawn}")
        names = [labels[j] for j in drawn_arms.tolist()]
        new._last = LinearWeights(names, drawn[drawn_arms]) if names else None

    def _after_copy(self) -> None:
        self._last = copy(self._last)

    def merge(self, other: "LinearBelief") -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, LinearBelief):
            raise IncompatibleState(f"{other!r} is not a LinearBelief and cannot be merged")
        if repr(other.link) != repr(self.link):
            raise IncompatibleState(f"cannot merge {other.link!r} into {self.link!r}")
        if not self.link.additive:
            raise IncompatibleState(
                f"with {self.link!r} the evidence of a reward depends on earlier rewards: beliefs "
                "cannot be merged"
            )
        if self.labels != other.labels or not self._posteriors.same_prior(other._posteriors):
            raise IncompatibleState(f"cannot merge {other!r}: its arms or its prior differ")
        self._posteriors.merge(other._posteriors)
        self._roster.add_pulls(other._roster.counts)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def __repr__(self) -> str:
        return (
            f"LinearBelief({self.link!r}, {len(self)} arms of {self.features} features after "
            f"{self.count} observations)"
        )


#: φ(x, a): the features of an arm in a context.
FeatureMap: TypeAlias = Callable[[Any, Any], ArrayLike]


def _features(phi: FeatureMap, x: Any, a: Any, d: int) -> FloatArray:
    """Return φ(x, a) as a vector of d finite numbers, or raise BadEvidence."""
    if x is None:
        raise NoContext
    return as_context(phi(x, a), d)


def _run(agent: Any, environment: LinearEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    belief = agent.belief
    link = belief.link
    R, z, active, v = belief.loop_arrays()
    x, y = np.array(agent.x, np.float64), environment.start  # contexts of agent and environment
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    contexts = np.empty((steps, y.size))
    world = kernels.regression.ContextWorld(environment.truth, environment.source, y)
    kernels.regression.interact(
        link.kind, link.constants, kernels.regression.ArmWeights(R, z, active, v), x, world,
        kernels.random.Streams(p.state, q.state), actions, rewards, contexts,
    )  # fmt: skip
    environment.fast_forward(y, steps)
    belief.fast_forward(actions)
    agent.fast_forward(steps, contexts[-2].copy() if steps > 1 else agent.x, x)
    rows = map(tuple, contexts.tolist())
    return Record(
        environment.labels.column(actions), list(map(RewardAndContext, rewards.tolist(), rows))
    )


class SharedWeights:
    """A mode: the weights w. Its policy pulls arg max_a φ(x, a)·w, ties at random.

    >>> from bayescontrol import Stream
    >>> SharedWeights((0, 1), lambda x, a: [x * a], np.array([2.0])).act(1.0, Stream(0))
    1
    """

    __slots__ = ("arms", "phi", "weights")

    def __init__(self, arms: Sequence[Hashable], phi: FeatureMap, weights: FloatArray) -> None:
        self.arms, self.phi, self.weights = tuple(arms), phi, weights

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return arg max_a φ(x, a)·w; ties are broken at random."""
        best = self._best_arms(x)
        return best[rng.integers(len(best)) if len(best) > 1 else 0]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """1 for the best arm in this context, split evenly between ties."""
        best = self._best_arms(x)
        return dict.fromkeys(best, 1.0 / len(best))

    def _best_arms(self, x: Any) -> list[Any]:
        """Return all arms with the highest score in context x."""
        w = self.weights
        scores = {
            a: kernels.regression.dot(_features(self.phi, x, a, len(w)), w) for a in self.arms
        }
        highest = max(scores.values())
        return [a for a, s in scores.items() if s == highest]


class _SingleArm(Part):
    """The belief about the shared weights; its array `drawn` has no prefix."""

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the arrays of the belief."""
        super().save(owner, arrays)
        arrays["drawn"] = arrays.pop(f"{self.name}drawn")

    def read(self, owner: Any, arrays: Arrays) -> Any:
        """Return a belief with the saved state."""
        return super().read(owner, {**arrays, f"{self.name}drawn": arrays["drawn"]})


class SharedLinearBelief(HasArms[SharedWeights]):
    """P(w | âo_<t) for one weight vector under a link.

    >>> from bayescontrol.bandits import SharedLinearBandit
    >>> bandit = SharedLinearBandit([1, 2], lambda x, a: [x * a], features=1)
    >>> belief = bandit.belief()
    >>> belief.observe(1.0, 1, 4.0)
    >>> {a: round(r, 12) for a, r in belief.expected(1.0).items()}  # arm 2 was never pulled
    {1: 2.0, 2: 4.0}
    >>> {a: round(p, 4) for a, p in belief.action_probabilities(1.0).items()}
    {1: 0.0023, 2: 0.9977}
    """

    format_name: ClassVar[str] = "SharedLinearBelief"
    saved_fields = declare(
        _SingleArm("shared/", "_single_arm"),
    )
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True

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
                f"phi={phi!r}: expected a function phi(x, a) that returns {features} numbers"
            )
        self.phi = phi
        self._roster = Roster(arms)
        # The belief about w: its only arm, 0, has the weights that all arms share.
        self._single_arm = LinearBelief(link, 1, features, prior)
        self._last = None

    def _features(self, x: Any, a: Any) -> FloatArray:
        """Return φ(x, a); raise BadEvidence if it is invalid."""
        self._roster.labels.place(a)  # raises UnknownArm
        return _features(self.phi, x, a, self._single_arm.features)

    # -- the Belief protocol ----------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn the reward of arm a in context x. An error leaves the belief unchanged."""
        self._single_arm.observe(self._features(x, a), 0, o)
        self._roster.counts[self._roster.labels.place(a)] += 1

    def sample(self, rng: StreamLike) -> SharedWeights:
        """Draw w ~ N(μ, Λ⁻¹)."""
        self._last = SharedWeights(
            self.arms, self.phi, self._single_arm.sample(rng).weights[0].copy()
        )
        return self._last

    # -- queries -----------------------------------------------------------------------------

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """P(φ(x, a)·w is the largest), exactly, for at most two arms.

        The difference of two scores is Gaussian. More arms raise MissingCapability.
        """
        arms = self.arms
        if x is None:
            raise NoContext
        if len(arms) > 2:
            raise MissingCapability(
                f"{len(arms)} arms with shared weights have no exact action probabilities: "
                "estimate them by counting the arms that `agent.decide(x, rng)` chooses"
            )
        if len(arms) == 1:
            return {arms[0]: 1.0}
        difference = self._features(x, arms[0]) - self._features(x, arms[1])
        s, sd = self._single_arm.scores(scale_for_comparison(difference))
        if not sd[0]:  # the difference is certain: its sign decides, and 0 is a tie
            p = 0.5 * (1.0 + float(np.sign(s[0])))
            return {arms[0]: p, arms[1]: 1.0 - p}
        t = float(s[0] / sd[0]) / math.sqrt(2.0)
        return {arms[0]: 0.5 * math.erfc(-t), arms[1]: 0.5 * math.erfc(t)}

    def mean_quantiles(self, tails: FloatArray, x: object) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm in context x."""
        one = self._single_arm
        return {a: one.mean_quantiles(tails, self._features(x, a))[0] for a in self.arms}

    def expected(self, x: Any) -> dict[Any, float]:
        """E[r | âo_<t, x] of every active arm."""
        return {a: self._single_arm.expected(self._features(x, a))[0] for a in self.arms}

    def predictive(self, x: Any, a: Any) -> dict[Any, float]:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        return self._single_arm.predictive(self._features(x, a), 0)

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(r | âo_<t â_t); a density if rewards are continuous."""
        return self._single_arm.log_predictive(self._features(x, a), 0, o)

    def observed_part(self, o: Any) -> Any:
        """Return the reward in o, without the next context: the part that is predicted."""
        return reward_of(o)

    def mean(self) -> FloatArray:
        """Return μ, the posterior mean of w."""
        return self._single_arm.mean(0)

    def precision(self) -> FloatArray:
        """Return Λ, the posterior precision of w."""
        return self._single_arm.precision(0)

    def posterior(self) -> FloatArray:
        """Return μ and, below it, Λ: shape (1 + d, d)."""
        return np.asarray(self._single_arm.posterior()[0])

    @property
    def count(self) -> int:
        """The number of rewards observed."""
        return self._single_arm.count

    def _after_load(self) -> None:
        """Rebuild the mode drawn last from the weights drawn last."""
        drawn = self._single_arm.last()
        self._last = None
        if drawn is not None:
            self._last = SharedWeights(self.arms, self.phi, drawn.weights[0].copy())

    _after_copy = _after_load

    def add(self, arm: Hashable) -> None:
        """Add an arm; the posterior of w applies to it."""
        self._roster.add(arm)
        self._update_last()

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late feedback for it is still learned."""
        self._roster.retire(arm)
        self._update_last()

    def restore(self, arm: Hashable) -> None:
        """Activate a retired arm again."""
        self._roster.restore(arm)
        self._update_last()

    def _update_last(self) -> None:
        """Let the mode drawn last choose from the current arms."""
        if self._last is not None:
            self._last.arms = self.arms

    # -- saving, merging, copying ----------------------------------------------------------------

    def merge(self, other: "SharedLinearBelief") -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, SharedLinearBelief):
            raise IncompatibleState(f"{other!r} is not a SharedLinearBelief and cannot be merged")
        if tuple(self._roster.labels) != tuple(other._roster.labels):
            raise IncompatibleState(f"cannot merge {other!r}: its arms differ")
        self._single_arm.merge(other._single_arm)
        self._roster.add_pulls(other._roster.counts)

    def __repr__(self) -> str:
        return (
            f"SharedLinearBelief({self._single_arm.link!r}, {len(self.arms)} arms, "
            f"{self._single_arm.features} features after {self.count} observations)"
        )
