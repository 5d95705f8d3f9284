"""Beliefs over arms whose scores are linear in the context.

    weights per arm    x·w_a | past ~ N(x·μ_a, xᵀ Λ_a⁻¹ x)
    shared weights     φ(x, a)·w,  w ~ N(μ₀, Λ₀⁻¹): a reward of one arm informs about all
    policy             P(a | w, x) = 1 for the arm with the largest score

If noise and prior are learned, this holds given their scales; `weights` has both cases.

Drawing a mode draws the weights. `LinearBelief.draw_action` only draws the scores in the given
context, which gives actions the same distribution.

The feature map φ is the user's: for instance the features of a customer and an offer together. x
may be anything that φ accepts, except None, which means "no context". If φ does not use x, any
other value will do, as in `agent(start=0)`.
"""

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import has
from bayescontrol._support.display import summary_html
from bayescontrol._support.saved import Array, Fixed, Part, damaged, declare
from bayescontrol._support.temperature import Tempered
from bayescontrol._support.values import format_text
from bayescontrol.bandits.best_arm import Mixture
from bayescontrol.bandits.contexts.regression import (
    LARGEST,
    LEARNED,
    FiniteLink,
    LinearEnvironment,
    Link,
    Prior,
    RewardAndContext,
    as_context,
    can_learn,
    next_context,
    reward_of,
    scale_for_comparison,
)
from bayescontrol.bandits.contexts.schema import Schema
from bayescontrol.bandits.contexts.weights import (
    FixedScales,
    LearnedScales,
    WeightPosteriors,
    best_score,
    make_posteriors,
)
from bayescontrol.bandits.roster import Arms, BestArmMode, HasArms, M, Roster
from bayescontrol.beliefs.totals import checked_totals, ones_and_zeros
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Totals
from bayescontrol.record import Record
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream, StreamLike, state_of


class LinearWeights(BestArmMode):
    """A mode: the weights of every arm. Its policy pulls arg max_a x·w_a, ties at random.

    >>> from bayescontrol import Stream
    >>> LinearWeights(("red", "blue"), np.eye(2)).act([0.2, 0.7], Stream(0))
    'blue'
    """

    __slots__ = ("link", "schema", "weights")
    by_arm = (("weights", 0),)

    def __init__(
        self,
        arms: Sequence[Hashable],
        weights: FloatArray,
        schema: Schema | None = None,
        link: Link | None = None,
    ) -> None:
        self.arms, self.weights, self.schema, self.link = tuple(arms), weights, schema, link
        self.prices = None

    def act(self, x: ArrayLike, rng: StreamLike) -> Any:
        """Return arg max_a x·w_a; ties are broken at random."""
        if self.prices is not None:
            return super().act(x, rng)
        v = scale_for_comparison(as_context(x, self.weights.shape[1], self.schema))
        return self.arms[kernels.regression.best(self.weights, v, state_of(rng))]

    def _scores(self, x: ArrayLike) -> FloatArray:
        v = scale_for_comparison(as_context(x, self.weights.shape[1], self.schema))
        return np.array([kernels.regression.dot(v, w) for w in self.weights])

    def _mean_rewards(self, x: ArrayLike) -> FloatArray:
        v = as_context(x, self.weights.shape[1], self.schema)
        scores = np.array([kernels.regression.dot(v, w) for w in self.weights])
        return scores if self.link is None else self.link.mean(scores)

    def __repr__(self) -> str:
        arms, features = self.weights.shape
        return f"LinearWeights({arms} arms, {features} features)"


class ScoresBelief(Tempered, HasArms[M]):
    """Base of beliefs over arms whose score is v·w, for features v and unknown weights w.

    Subclasses define which weights and which features an arm has.
    """

    saved_fields = declare(
        Fixed("link", lambda belief: format_text(belief.link)),
        Part("", "_posteriors"),
        Array("drawn", lambda belief: belief._saved_draw(), shape=(None, "features"), finite=False),
    )

    link: Link
    #: The posteriors of the weights.
    _posteriors: WeightPosteriors

    def _apply_temperature(self) -> None:
        self._posteriors.spread = math.sqrt(self._temperature)

    @property
    def _prices(self) -> FloatArray | None:
        """The prices of the active arms; None also while the scale of the rewards is unknown."""
        return self._roster.prices if self._posteriors.is_known else None

    @abstractmethod
    def _row(self, j: int) -> int:
        """Return the number of the posterior of arm j's weights."""

    @abstractmethod
    def _vector(self, x: Any, a: Any) -> FloatArray:
        """Return the features of arm a in context x, or raise BadEvidence."""

    @property
    def features(self) -> int:
        """d, the number of features and weights."""
        return self._posteriors.features

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn the reward of arm a in context x; o is a `RewardAndContext` or a reward.

        An error leaves the belief unchanged.
        """
        j, v, r = self._event(x, a, o)
        self._posteriors.learn(self._row(j), v, r)
        self._roster.counts[j] += 1

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Learn many rewards of arm a in the same context x. An error leaves the belief unchanged.

        With learned noise they need the sum of the squared rewards. Rewards of 0 and 1, at most
        10,000, are learned one by one, all ones first: with `Logit` the order has an effect.
        """
        j, v, link = self._roster.labels.place(a), self._vector(x, a), self.link
        if link.sd is None:
            for r in ones_and_zeros(totals, "logistic"):
                self._posteriors.learn(self._row(j), v, float(r))
        else:
            learned = link.sd == LEARNED
            checked = checked_totals(totals, "linear", -LARGEST, LARGEST, needs_squares=learned)
            self._posteriors.learn_totals(self._row(j), v, checked)
        self._roster.counts[j] += int(totals.n)

    def _event(self, x: Any, a: Any, o: Any) -> tuple[int, FloatArray, float]:
        """Check an event; return the number of arm a, its features in x, and the reward."""
        j, r = self._roster.labels.place(a), self.link.reward(reward_of(o))
        return j, self._vector(x, a), r

    def scores(self, x: Any) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations of the scores of all active arms."""
        mean, variance = np.array([self._posteriors.score(j, v) for j, v in self._rows(x)]).T
        return mean, np.sqrt(variance)

    def _rows(self, x: Any) -> list[tuple[int, FloatArray]]:
        """Return the number of the posterior and the features in x of every active arm."""
        arms = zip(self._roster.active.tolist(), self.arms, strict=True)
        return [(self._row(j), self._vector(x, a)) for j, a in arms]

    def mean_quantiles(self, tails: FloatArray, x: Any) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm in context x."""
        scores = (self._posteriors.score_quantiles(j, v, tails) for j, v in self._rows(x))
        means = (np.array([self.link.expected(s, 0.0) for s in row.tolist()]) for row in scores)
        return dict(zip(self.arms, means, strict=True))

    def expected(self, x: Any) -> dict[Any, float]:
        """E[r | âo_<t, x] of every active arm."""
        means = (self._posteriors.expected(j, v) for j, v in self._rows(x))
        return dict(zip(self.arms, means, strict=True))

    @property
    def learns_scale(self) -> bool:
        """Whether the prior scale, and the noise if there is one, are learned."""
        return not isinstance(self._posteriors, FixedScales)

    def scales(self) -> dict[str, float]:
        """Return the learned noise, if there is one, and the learned size of the weights.

        The result is empty until a reward other than 0 was learned.
        """
        return self._learned_posteriors().scales()

    def ratios(self) -> dict[float, float]:
        """P(ρ | âo_<t) of the ratios of prior and noise in use; for `Logit`, of the prior scales.

        >>> from bayescontrol import LogisticBandit
        >>> LogisticBandit(2, features=1).belief().ratios()[4.0]  # one of seven, equally likely
        0.142857142857142...
        """
        return self._learned_posteriors().ratios()

    def _learned_posteriors(self) -> LearnedScales:
        if isinstance(self._posteriors, FixedScales):
            raise MissingCapability(f"{self!r} has given noise and prior: create it without them")
        return self._posteriors

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        if not has(self.link, FiniteLink):
            raise MissingCapability(
                f"{self.link!r} pays infinitely many rewards: use `log_predictive(x, a, o)`"
            )
        return self._posteriors.predictive(self._row(self.place(a)), self._vector(x, a))

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(r | âo_<t â_t); a density if rewards are continuous."""
        j, v, r = self._event(x, a, o)
        return self._posteriors.log_predictive(self._row(j), v, r)

    def observed_part(self, o: Any) -> Any:
        """Return the reward in o, without the next context: the part that is predicted."""
        return reward_of(o)

    @abstractmethod
    def _saved_draw(self) -> FloatArray:
        """Return the weights drawn last; no rows if nothing was drawn."""

    def merge(self, other: object) -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, ScoresBelief) or self._row(1) != other._row(1):
            raise IncompatibleState(f"{other!r} has weights of another kind and cannot be merged")
        if repr(other.link) != repr(self.link):
            raise IncompatibleState(f"cannot merge link {other.link!r} into link {self.link!r}")
        if not self.link.additive:
            raise IncompatibleState(
                f"with {self.link!r} the evidence of a reward depends on earlier rewards: beliefs "
                "cannot be merged"
            )
        mine, theirs = self._posteriors, cast("Any", other._posteriors)
        if self.labels != other.labels or not mine.same_prior(theirs):
            raise IncompatibleState(f"cannot merge {other!r}: its arms or its prior differ")
        mine.merge(theirs)
        self._roster.add_pulls(other._roster.counts)

    def __repr__(self) -> str:
        scales = self.scales() if self.learns_scale and self.count else {}
        shown = "".join(f", {name} {value:.3g}" for name, value in scales.items())
        return (
            f"{type(self).__name__}({self.link!r}, {len(self)} arms of {self.features} features "
            f"after {self.count} observations{shown})"
        )


class LinearBelief(ScoresBelief[LinearWeights]):
    """P(w | âo_<t) for arms with independent weights under one link.

    Feedback may come late, in any order, or never. With `Logit` the order has an effect.

    >>> from bayescontrol import LinearBandit
    >>> belief = LinearBandit(["red", "blue"], features=2, sd=1, prior=(0, 1)).belief()
    >>> belief.observe([1.0, 0.0], "red", 2.0)
    >>> belief
    LinearBelief(GaussianNoise(sd=1), 2 arms of 2 features after 1 observations)
    >>> belief.mean("red").round(12)
    array([1., 0.])
    >>> {a: round(r, 12) for a, r in belief.expected([1.0, 1.0]).items()}
    {'red': 1.0, 'blue': 0.0}
    """

    saved_fields = declare(Fixed("fields", lambda belief: belief._fields, "features"))

    format_name: ClassVar[str] = "LinearBelief"
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True
    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure(
        "mean weight of a feature",
        "score by feature",
        "Rewards depend on the situation: the weights are shown instead.",
    )

    def __init__(
        self, link: Link, arms: Arms, features: int | Schema, prior: Prior = "learned"
    ) -> None:
        self.link = link
        self.schema = features if isinstance(features, Schema) else None
        d = len(features) if isinstance(features, Schema) else features
        scaled = None if self.schema is None else self.schema.is_scaled
        self._roster = Roster(arms)
        self._posteriors = make_posteriors(link, prior, len(self), d, scaled)

    @property
    def _fields(self) -> dict[str, Any]:
        """The fields of contexts with names; none without a schema."""
        return {} if self.schema is None else self.schema.settings()

    def merge(self, other: object) -> None:
        """Add the evidence of `other`; the prior counts once."""
        if isinstance(other, LinearBelief) and other._fields != self._fields:
            raise IncompatibleState(
                f"cannot merge contexts with the fields {other._fields} into those with "
                f"{self._fields}: create both with the same `features`"
            )
        super().merge(other)

    def _row(self, j: int) -> int:
        return j

    def _vector(self, x: ArrayLike, a: Any) -> FloatArray:
        return as_context(x, self.features, self.schema)

    # -- events and draws ---------------------------------------------------------------------

    def plain_event(self, x: ArrayLike, a: Any, o: Any) -> tuple[list[float], Any, float]:
        """Return a valid event in plain values, or raise an error."""
        context, j, r = self.row_event(x, self.place(a), o)
        return context, self._roster.labels[j], r

    def row_event(self, x: ArrayLike, j: int, o: Any) -> tuple[list[float], int, float]:
        """Return a valid event as (context, row j of the arm, reward), or raise an error."""
        return self._vector(x, None).tolist(), j, self.link.reward(reward_of(o))

    def only(self, arm: Hashable) -> "LinearBelief":
        """Return a belief about this arm alone, with its posterior as the prior.

        Only for a belief whose noise and prior are fixed, not learned.
        """
        j, posteriors = self.place(arm), self._posteriors
        single = self.copy()
        single._roster = Roster([arm])
        single._posteriors = FixedScales(self.link, posteriors.R[[j]], posteriors.z[[j]])
        single._apply_temperature()  # the new posteriors have temperature 1
        return single

    def use_arrays(self, R: FloatArray, z: FloatArray) -> None:
        """Use this factor and target, arrays that others may change."""
        self._posteriors.R, self._posteriors.z = R, z

    def sample(self, rng: StreamLike) -> LinearWeights:
        """Draw w_a ~ N(μ_a, Λ_a⁻¹) for every active arm."""
        weights = self._posteriors.draw_rows(self._roster.active, state_of(rng))
        self._last = LinearWeights(self.arms, weights, self.schema, self.link)
        self._last.prices = self._prices
        return self._last

    def draw_action(self, x: ArrayLike, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t, x) by drawing only the scores x·w_a, not the weights."""
        v = scale_for_comparison(self._vector(x, None))
        if self._roster.prices is not None:
            return self._draw_priced(x, rng)
        self._last = None
        return self._roster.labels[self._posteriors.draw_arm(self._roster.active, v, state_of(rng))]

    # -- queries -----------------------------------------------------------------------------

    def action_probabilities(self, x: ArrayLike) -> Probabilities:
        """P(a | âo_<t, x) = P(x·w_a is the largest), by quadrature."""
        v, prices = self._vector(x, None), self._prices
        v = scale_for_comparison(v) if prices is None else v
        best = self._posteriors.best(self._roster.active, v, prices)
        return dict(zip(self.arms, best.tolist(), strict=True))

    def marginals(self, x: ArrayLike, *, scaled: bool = True) -> FloatArray:
        """Return mean and standard deviation of the drawn score of every active arm.

        With `scaled`, that of the context which is scaled for comparison.
        """
        v = self._vector(x, None)
        mean, sd = self.scores(scale_for_comparison(v) if scaled else v)
        return np.column_stack([mean, self._posteriors.spread * sd])

    def best(
        self, scores: FloatArray, mixture: Mixture | None = None, prices: FloatArray | None = None
    ) -> FloatArray:
        """P(arm j is the best) for (mean, standard deviation) of scores; see `marginals`."""
        return best_score(scores, self.link, mixture, prices)

    def mean(self, arm: Hashable) -> FloatArray:
        """Return μ_a, the posterior mean of the weights of an arm."""
        return self._posteriors.mean(self._roster.labels.place(arm))

    def precision(self, arm: Hashable) -> FloatArray:
        """Return Λ_a, the posterior precision of the weights of an arm."""
        return self._posteriors.precision(self._roster.labels.place(arm))

    def posterior_summary(self) -> Summary:
        """Return μ_a and the pulls of every arm."""
        return self._summary(self.mean(a).tolist() for a in self.labels)

    def posterior(self) -> FloatArray:
        """Return μ_a and, below it, Λ_a of all arms, also retired ones: shape (arms, 1 + d, d)."""
        mean, precision = self._posteriors.mean, self._posteriors.precision
        return np.array([[mean(j), *precision(j)] for j in range(len(self._posteriors))])

    @property
    def drawn(self) -> FloatArray:
        """The weights drawn last, one row per arm; NaN for arms without a draw."""
        rows = np.full((len(self._posteriors), self.features), np.nan)
        if self._last is not None:
            rows[[self._roster.labels.place(a) for a in self._last.arms]] = self._last.weights
        return rows

    # -- adding and retiring arms --------------------------------------------------------------

    def add(self, arm: Hashable, prior: Prior | None = None) -> None:
        """Add an arm with its prior, by default that of the first, or the learned one.

        >>> from bayescontrol import LinearBandit
        >>> belief = LinearBandit(["red"], features=2, sd=1, prior=(0, 1)).belief()
        >>> belief.add("blue", prior=(3.0, 10.0))
        >>> belief.arms, belief.mean("blue").tolist()
        (('red', 'blue'), [3.0, 3.0])
        """
        roster, posteriors = self._roster.copy(), self._posteriors.copy()
        roster.add(arm)
        posteriors.append_prior(prior)
        self._roster, self._posteriors = roster, posteriors

    # -- for compiled loops --------------------------------------------------------------------

    def loop_arrays(self) -> "kernels.regression.ArmWeights":
        """Return the arrays that kernels update in place, for a given noise and prior."""
        fit = cast("FixedScales", self._posteriors)
        return kernels.regression.ArmWeights(fit.R, fit.z, self._roster.active, fit.v)

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the rule draws at every step and contexts have a kernel."""
        belief, x = agent.belief, agent.x
        fits = (
            type(environment) is LinearEnvironment
            and agent.schedule is every_step
            and agent.advance is next_context
            and isinstance(environment.contexts, str)
            and can_learn(belief.link, environment.link)
            and belief.labels == environment.labels
            and belief._roster.prices is None
            and isinstance(x, np.ndarray)
            and x.dtype == np.float64
            and x.shape == environment.start.shape == (belief.features,)
            and bool((np.abs(x) < LARGEST**0.5).all())
            and (scale_for_comparison(x) is x or not x.any())  # the loop does not scale contexts
        )
        return _run if fits else None

    # -- saving, merging, copying ----------------------------------------------------------------

    def _saved_draw(self) -> FloatArray:
        return np.empty((0, self.features)) if self._last is None else self.drawn

    def _check_state(self, new: SimpleNamespace) -> None:
        labels, drawn = new._roster.labels, new.drawn
        if len(new._posteriors) != len(labels):
            raise damaged(f"{len(new._posteriors)} posteriors for {len(labels)} arms")
        # NaN marks an arm without drawn weights.
        drawn_arms = np.flatnonzero(~np.isnan(drawn).any(-1))
        if len(drawn) not in (0, len(labels)):
            raise damaged(f"it has drawn weights of {len(drawn)} arms, expected {len(labels)}")
        if len(drawn) and not drawn_arms.size:
            raise damaged("the drawn weights of every arm contain NaN")
        names = [labels[j] for j in drawn_arms.tolist()]
        weights = drawn[drawn_arms]
        new._last = LinearWeights(names, weights, self.schema, self.link) if names else None

    _repr_html_ = summary_html


def _run(agent: Any, environment: LinearEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    belief = agent.belief
    x, y = np.array(agent.x, np.float64), environment.start  # contexts of agent and environment
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    contexts = np.empty((steps, y.size))
    world = kernels.regression.ContextWorld(environment.truth, environment.source, y)
    belief._posteriors.interact(
        environment.link, belief._roster.active, x, world,
        kernels.random.Streams(p.state, q.state), actions, rewards, contexts,
    )  # fmt: skip
    environment.fast_forward(y, steps)
    belief.fast_forward(actions)
    agent.fast_forward(steps, contexts[-2].copy() if steps > 1 else agent.x, x)
    rows = map(tuple, contexts.tolist())
    observations = list(map(RewardAndContext, rewards.tolist(), rows))
    return Record(environment.labels.column(actions), observations)
