"""Arms in segments, such as countries or stores: a new segment starts from what all have taught.

    m_{a,s} | h_a ~ P(m | h_a)          the mean reward of arm a in segment s
    P(h_a | âo_<t) ∝ Π_s P(rewards of arm a in segment s | h_a)         h_a on a grid

The situation x is the segment. Segments of one arm share its hyperparameters h_a, as the arms of a
`LearnedArmsBelief` do; arms are independent. In a segment the posterior of an arm is a mixture over
h_a, so that P(a | âo_<t) is one quadrature. The evidence of a segment is a function of its sums:
feedback may come late and in any order, and beliefs merge.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support.description import ARMS, ModelKind, SettingDoc, stored_name
from bayescontrol._support.saved import Array, Copied, Fixed, Plain, damaged, declare
from bayescontrol._support.temperature import Tempered, with_temperature
from bayescontrol._support.values import format_text
from bayescontrol.bandits.arms import ArmsEnvironment
from bayescontrol.bandits.best_arm import Mixture
from bayescontrol.bandits.family import best_at_prices, same_family, with_totals
from bayescontrol.bandits.learned import NEGLIGIBLE, Learned, with_statistics
from bayescontrol.bandits.roster import Arms, BestArmMode, HasArms, Roster
from bayescontrol.errors import BadEvidence, BadSituation, IncompatibleState, MissingCapability
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Totals
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import StreamLike, state_of
from bayescontrol.situations import stay


class SegmentMeans(BestArmMode):
    """A mode: the mean reward of every arm in every segment. It pulls the best arm of segment x.

    `means` has a row for each of `segments`, and before them a row for segments without rewards.
    Above temperature 1 they are on a logarithmic scale, which keeps their order.

    >>> from bayescontrol import Stream
    >>> mode = SegmentMeans(["red", "blue"], {"de": 1}, np.array([[0.1, 0.2], [0.9, 0.3]]))
    >>> mode.act("de", Stream(0)), mode.act("fr", Stream(0))
    ('red', 'blue')
    """

    __slots__ = ("means", "segments")
    by_arm = (("means", 1),)

    def __init__(
        self, arms: Sequence[Hashable], segments: Mapping[Hashable, int], means: FloatArray
    ) -> None:
        self.arms, self.segments, self.means = tuple(arms), segments, means
        self.prices = None

    def _scores(self, x: Any) -> FloatArray:
        return np.asarray(self.means[self.segments.get(x, 0)])

    _mean_rewards = _scores

    def __repr__(self) -> str:
        return f"SegmentMeans({len(self.arms)} arms, {len(self.segments)} segments)"


class PooledBelief(Tempered, HasArms[SegmentMeans]):
    """P(h_a, m_{a,s} | âo_<t) for every arm a and segment s; the situation is the segment.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).pooled().belief()
    >>> for country in ("de", "fr", "it"):
    ...     for t in range(20):
    ...         belief.observe(country, "red", int(t % 10 < 8))
    >>> {a: round(r, 2) for a, r in belief.expected("es").items()}       # a new country
    {'red': 0.79, 'blue': 0.5}
    """

    format_name: ClassVar[str] = "PooledBelief"
    stateless_draws: ClassVar[bool] = True
    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure("mean reward", "reward")
    saved_fields = declare(
        Fixed("family", lambda belief: format_text(belief.family)),
        Plain("segments", lambda belief: list(belief._segments), "the list of segments"),
        Array("statistics", "_statistics", shape=(None, None, None)),
        Array("drawn", lambda belief: belief._saved_mode(), shape=(None, None), finite=False),
        Copied("_segments"),
    )

    def __init__(self, family: Learned, arms: Arms) -> None:
        self.family = family
        self._roster = Roster(arms)
        #: The place of each segment in `_statistics`; place 0 stays without rewards.
        self._segments: dict[Hashable, int] = {}
        self._statistics = np.zeros((len(self.labels), 1, len(family.columns)))
        self._refresh()

    def _refresh(self) -> None:
        """Compute everything from the statistics; called when their shape changes."""
        family, (arms, segments, _) = self.family, self._statistics.shape
        grid, values = family.group_grid(), len(family.grid)
        is_grid_of_rows = family.kind == family.kind_of_rows
        evidence = np.zeros((arms, segments, values if is_grid_of_rows else 0))
        self._pools = kernels.learned.Pools(
            family.kind, family.constants, self._statistics, grid, evidence,
            np.empty((arms, values)), np.empty((arms, values, 3)), np.empty((arms, 2)),
            np.empty(arms),
        )  # fmt: skip
        for a in range(arms):
            for s in range(1, segments) if is_grid_of_rows else ():
                kernels.learned.weigh_arm(family.kind, self._statistics[a, s], grid, evidence[a, s])
            kernels.learned.weigh_pool(self._pools, a)
        self._drawn = np.empty(arms)

    def _after_copy(self) -> None:
        super()._after_copy()
        self._pools = with_statistics(self._pools, self._statistics)
        self._drawn = self._drawn.copy()

    @property
    def segments(self) -> tuple[Any, ...]:
        """The segments with rewards, in the order of their first rewards."""
        return tuple(self._segments)

    def _place_of(self, x: Any) -> int:
        """Return the place of segment x; 0 if it has no rewards."""
        if x is None:
            raise BadSituation(
                "no segment: use agent(start=segment), decide(segment, rng) or act(x=segment)"
            )
        try:
            if x == x:  # not NaN, which would be a new segment each time
                return self._segments.get(x, 0)
        except (TypeError, ValueError):  # not hashable, or an array
            pass
        raise BadSituation(f"segment {x!r} cannot be looked up: use a number, a text or a tuple")

    def _add_segment(self, x: Hashable) -> int:
        """Add a segment without rewards; return its place."""
        place, pools = len(self._segments) + 1, self._pools
        if place == self._statistics.shape[1]:  # double the number of places
            self._statistics = np.concatenate([self._statistics, 0.0 * self._statistics], 1)
            evidence = np.concatenate([pools.evidence, 0.0 * pools.evidence], 1)
            self._pools = pools._replace(statistics=self._statistics, evidence=evidence)
        self._segments[x] = place
        return place

    # -- the Belief protocol ----------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Update arm a in segment x with its reward o. An error leaves the belief unchanged."""
        j, r, s = self.place(a), self.family.reward(o), self._place_of(x)
        row = self._statistics[j, s].copy()
        kernels.arms.learn(self.family.kind, self.family.constants, row, r)
        if not np.isfinite(row).all():
            raise BadEvidence(f"reward {o!r} of arm {a!r} is too large for the posterior")
        s = s or self._add_segment(x)
        kernels.learned.learn_in_segment(self._pools, j, s, r)
        self._roster.counts[j] += 1

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Update arm a in segment x with many rewards. An error leaves the belief unchanged."""
        j, s = self.place(a), self._place_of(x)
        row = with_totals(self.family, self._statistics[j, s], totals, a)
        s = s or self._add_segment(x)
        self._statistics[j, s], pools = row, self._pools
        if self.family.kind == self.family.kind_of_rows:
            kernels.learned.weigh_arm(pools.kind, row, pools.grid, pools.evidence[j, s])
        kernels.learned.weigh_pool(pools, j)
        self._roster.counts[j] += int(totals.n)

    def sample(self, rng: StreamLike) -> SegmentMeans:
        """Draw a mode: the mean reward of every active arm in every segment."""
        active, T = self._roster.active, self._temperature
        drawn = np.empty((len(self._segments) + 1, len(self.labels)))
        kernels.learned.draw_all_segments(self._pools, active, drawn, state_of(rng), T)
        family, prices = self.family, self._roster.prices
        if prices is not None and T > 1.0 and family.kind == family.kind_of_rows:
            with np.errstate(over="ignore"):  # prices need the means, not their logarithms
                drawn = np.exp(drawn / kernels.random.LOG_UNIT)
                if family.kind == kernels.arms.BERNOULLI:
                    drawn = 1.0 - 1.0 / (1.0 + drawn)
        self._last = SegmentMeans(self.arms, dict(self._segments), drawn[:, active])
        self._last.prices = prices
        return self._last

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t) in segment x, with draws for this segment only."""
        if self._roster.prices is not None:
            self._place_of(x)
            return self._draw_priced(x, rng)
        self._last = None
        j = kernels.learned.draw_in_segment(
            self._pools, self._place_of(x), self._roster.active, self._drawn, state_of(rng),
            self._temperature,
        )  # fmt: skip
        return self._roster.labels[j]

    # -- queries -------------------------------------------------------------------------------

    def _components(
        self, x: Any, j: int, negligible: float = 0.0, temperature: float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return P(h_j | past) above `negligible`, and the rows of arm j in segment x given h_j."""
        p = self._pools
        group = kernels.learned.Group(
            p.kind, p.constants, p.statistics[j], p.grid, p.evidence[j], p.w[j], p.shared[j], p.rows
        )
        T = group.statistics[[self._place_of(x)]]
        probable = np.flatnonzero(group.w > negligible)
        rows = np.empty((len(probable), *T.shape))
        for k, h in enumerate(probable.tolist()):
            kernels.learned.marginal_rows(group, h, T, rows[k], temperature)
        w = group.w[probable]
        return w / w.sum(), rows[:, 0]

    def _is_proper(self, j: int) -> bool:
        return bool(self._pools.proper[j])

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t) in segment x, by one quadrature over mixtures.

        Arms without a proper posterior share the probability 1.
        """
        active = self._roster.active.tolist()
        flat = [j for j in active if not self._is_proper(j)]
        if flat:
            self._place_of(x)
            return {a: (j in flat) / len(flat) for a, j in zip(self.arms, active, strict=True)}
        parts = [self._components(x, j, NEGLIGIBLE, self._temperature) for j in active]
        first = np.cumsum([0, *(len(w) for w, _ in parts)])
        mixture = Mixture(first, np.concatenate([w for w, _ in parts]))
        rows = np.concatenate([rows for _, rows in parts])
        best = best_at_prices(self.family.fixed, rows, self._roster.prices, mixture)
        return dict(zip(self.arms, best.tolist(), strict=True))

    def expected(self, x: Any) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm in segment x; NaN where it is unknown."""
        return {a: self._mean(x, self.place(a)) for a in self.arms}

    def _mean(self, x: Any, j: int) -> float:
        if not self._is_proper(j):
            return math.nan
        w, rows = self._components(x, j)
        return float(w @ self.family.fixed.expected(rows))

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """Return P(o | âo_<t â_t) for every reward o; needs a family with finitely many rewards."""
        return self.family.mixed_predictive(*self._components(x, self.place(a)))

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t) in segment x; 0 until the posterior of the arm is proper."""
        j, r = self.place(a), self.family.reward(o)
        self._place_of(x)
        if not self._is_proper(j):
            return 0.0
        return self.family.mixed_log_predictive(*self._components(x, j), r)

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm in segment x."""
        return {a: self._quantiles(x, self.place(a), tails) for a in self.arms}

    def _quantiles(self, x: Any, j: int, tails: FloatArray) -> FloatArray:
        components = self._components(x, j)  # raises an error if x is no segment
        if not self._is_proper(j):
            return np.full(len(tails), np.nan)
        return self.family.mixed_quantiles(*components, tails)

    def posterior(self) -> FloatArray:
        """The statistics of every arm in every segment; segments are in the order of their texts.

        The shape is (arms, segments, columns); `family.columns` names the columns.
        """
        places = [self._segments[x] for x in sorted(self._segments, key=repr)]
        return self._statistics[:, places]

    def posterior_summary(self) -> Summary:
        """Return the pulls of every arm, and its mean reward in a new segment."""
        new_segment = object()
        return self._summary(self._mean(new_segment, j) for j in range(len(self.labels)))

    def _saved_mode(self) -> FloatArray:
        """Return the means of the mode drawn last by row; empty if no mode was drawn."""
        last = self._last
        if last is None:
            return np.empty((0, 0))
        by_row = np.full((len(last.means), len(self.labels)), np.nan)
        by_row[:, [self.place(a) for a in last.arms]] = last.means
        return by_row

    # -- arms, saving, merging -------------------------------------------------------------------

    def add(self, arm: Hashable, prior: ArrayLike | None = None) -> None:
        """Add an arm; it starts without rewards in every segment."""
        row = self.family.prior(prior, 1)
        self._roster.add(arm)
        new = np.broadcast_to(row, (1, *self._statistics.shape[1:]))
        self._statistics = np.concatenate([self._statistics, new])
        self._refresh()

    def _check_state(self, new: SimpleNamespace) -> None:
        self.require_same_arms(new._roster)
        segments, (arms, places, columns) = new.segments, new._statistics.shape
        is_list = isinstance(segments, list) and len(set(segments)) == len(segments)
        if not is_list or (arms, columns) != (len(self.labels), len(self.family.columns)):
            raise damaged(f"its statistics have shape {new._statistics.shape}")
        if places <= len(segments) or new._statistics[:, 0].any():
            raise damaged(f"it has {places} places for {len(segments)} segments")
        self.family.rows(new._statistics.reshape(-1, columns), arms * places)
        new._segments, means = {x: s for s, x in enumerate(segments, 1)}, new.drawn
        new._last = None
        if means.size:
            if means.shape[1] != arms or len(means) > len(segments) + 1:
                raise damaged(f"'drawn' has shape {means.shape}")
            drawn = np.flatnonzero(~np.isnan(means[0]))
            known = dict(list(new._segments.items())[: len(means) - 1])
            arms_drawn = [self._roster.labels[j] for j in drawn.tolist()]
            new._last = SegmentMeans(arms_drawn, known, means[:, drawn])

    def _after_load(self) -> None:
        self._refresh()

    def merge(self, other: object) -> None:
        """Add the evidence of `other`, segment by segment."""
        if not isinstance(other, PooledBelief) or not same_family(other.family, self.family):
            raise IncompatibleState(f"cannot merge {other!r} into {self!r}: use the same bandit")
        if self.labels != other.labels:
            raise IncompatibleState(f"cannot merge {other!r}: its arms differ")
        for x, s in other._segments.items():
            mine = self._segments.get(x) or self._add_segment(x)
            zeros = self.family.prior(None, len(self.labels))
            self._statistics[:, mine] = self.family.merged(
                zeros, self._statistics[:, mine], other._statistics[:, s]
            )
        self._roster.add_pulls(other._roster.counts)
        self._refresh()

    def __repr__(self) -> str:
        return (
            f"PooledBelief({self.family!r}, {len(self)} arms in {len(self._segments)} segments "
            f"after {self.count} observations)"
        )


class Pooled:
    """A bandit in segments; the result of `BernoulliBandit(arms).pooled()`.

    >>> from bayescontrol import BernoulliBandit, Stream
    >>> agent = BernoulliBandit(["red", "blue"]).pooled().agent()
    >>> _, arm = agent.decide("de", Stream(0))          # now, for a customer in Germany
    >>> agent.learn("de", arm, 1)                       # when the reward is known
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "pooled-bandit",
        "A bandit in segments, such as countries, which learn from each other.",
        {
            "problem": SettingDoc(
                "name of a model", "bernoulli-bandit, gaussian-bandit or poisson-bandit."
            ),
            "arms": ARMS,
        },
        example={"problem": "bernoulli-bandit", "arms": ["red", "blue"]},
        observation=1,
        feedback="as for the bandit",
        situation="de",
    )

    def __init__(self, problem: Any, family: Learned) -> None:
        self.problem, self.family = problem, family

    def belief(self) -> PooledBelief:
        """Return the prior belief."""
        return PooledBelief(self.family, list(self.problem.labels))

    def agent(
        self, start: Any = None, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[SegmentMeans, Any, Any, float]:
        """Return an agent that acts by Thompson sampling, in the segment `start`.

        To act in many segments use `decide(segment, rng)` and `learn(segment, a, o)`, or set
        `agent.x` before `act`. `temperature` is that of `Bandit.agent`.
        """
        return ControlRule(with_temperature(self.belief(), temperature), start, stay, schedule)

    def environment(self, truth: ArrayLike | Mapping[Any, Any]) -> ArmsEnvironment:
        """Return a world with these true parameters: that of one segment."""
        return cast("ArmsEnvironment", self.problem.environment(truth))

    def settings(self) -> dict[str, Any]:
        """Return the kind of the bandit and its arms; it has no prior."""
        return {"problem": stored_name(self.problem), "arms": list(self.problem.labels)}

    def changing(self, **options: Any) -> Any:
        """Raise MissingCapability: segments that change are not supported."""
        raise MissingCapability(
            "a pooled bandit cannot be changing: use changing() without pooled(), with a bandit "
            "for each segment"
        )

    def __repr__(self) -> str:
        return f"{self.problem!r}.pooled()"
