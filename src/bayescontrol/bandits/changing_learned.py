"""Changing arms that learn their scale: one filter for each value h of the hyperparameters.

    P(h | âo_<t) ∝ P(rewards | h)                   h on a grid; the evidence of the filter of h
    P(a | âo_<t) = Σ_h P(h | âo_<t) P(a | âo_<t, h)

A change draws the arms anew, but h survives it. Each filter is a `ChangingArmsBelief`, or a
`PerArmBelief`, with h fixed.

Bernoulli, Poisson, exponential and logistic arms have the grid of the static bandit, or every
second strength of it. Gaussian arms have 50 values of noise, spread and location (`SCALES`),
relative to a unit and a location: the unit is the power of two next to the standard deviation of
the first eight rewards, the location their mean. Linear arms have 30 values of noise and weights;
their unit is next to the root mean square, their location 0, and their features should be of order
1: their scales are not learned. The first rewards count twice, for the unit and as evidence.
Multiplying rewards by a power of two changes no bit; other factors and shifts move the grid
relative to the rewards, which changes P(a) slightly. Until two rewards differ (linear: until one is
not 0), actions are uniform.

The first eight are counted in the order of decisions. If a late answer is one of them, the filters
are computed again, so that it has the same effect as in time. The unit is final when the window of
late answers has left its first `window` decisions. If no two of their rewards differ, the rewards
of the whole window give the unit, and what came before it is forgotten.

K filters cost K times as much as one. A filter with a probability below 1e-15 at the beginning of
the window is dropped for good: no later answer can change that probability.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice, product
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, FloatArray, IntArray
from bayescontrol._support.names import Choice
from bayescontrol._support.saved import Array, ArrayGroup, Copied, Fixed, Plain, damaged, declare
from bayescontrol._support.temperature import with_temperature
from bayescontrol.bandits.arms import MeanRewards
from bayescontrol.bandits.changing import ChangingArmsBelief, ManyFilters, PerArmBelief
from bayescontrol.bandits.contexts.belief import LinearBelief, LinearWeights
from bayescontrol.bandits.family import QUANTILE_GRID, mixed_log, mixed_quantiles
from bayescontrol.bandits.roster import Roster
from bayescontrol.beliefs.change_points import Event
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import InvalidPrior
from bayescontrol.protocols import Probabilities, Summary
from bayescontrol.seeding import StreamLike, state_of

#: Binary logarithms of the noise of rewards, in units of the first rewards: noise and spread of the
#: means together are about 1. Arms whose means differ very much have a small noise.
_NOISES: Final = (-7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.25, -0.75, -0.25, 0.25)
#: The spread of the means, and the error of the location. The spread is large if all of the first
#: rewards are of one arm.
_SPREADS: Final = ((0.5, 0.0), (2.0, 0.0), (16.0, 0.0), (0.5, -0.5), (0.5, 0.5))
#: Noise, spread and error of the location.
SCALES: Final = tuple((2.0**noise, *means) for noise, means in product(_NOISES, _SPREADS))
#: The number of rewards that give the unit. The first four give it before, to compute it rarely.
FIRST: Final = 8
#: Smaller probabilities of h at the beginning of the window: the filter is dropped.
DROPPED: Final = 1e-15
#: Smaller probabilities of h are left out of averages.
NEGLIGIBLE: Final = 1e-12


class Given(NamedTuple):
    """Hyperparameters h: the scales that they stand for, and the family or link and the prior."""

    scales: dict[str, float]
    family: Any
    prior: tuple[float, ...]


def unit_of(rewards: Sequence[float], centred: bool) -> tuple[float, float] | None:
    """Return the mean, or 0, and a power of two about the size of the rewards relative to it.

    Uses the first eight rewards, or as many as are needed until one differs from the first one, or
    from 0. None if all are the same.

    >>> unit_of([52.0, 47.0], centred=True)
    (49.5, 2.0)
    """
    constant = rewards[0] if centred and rewards else 0.0
    needed = next((n for n, r in enumerate(rewards, 1) if r != constant), None)
    if needed is None:
        return None
    first = rewards[: max(needed, FIRST if len(rewards) >= FIRST else FIRST // 2)]
    location = math.fsum(first) / len(first) if centred else 0.0
    size = math.hypot(*(r - location for r in first)) / math.sqrt(len(first))
    mantissa, exponent = math.frexp(size)
    return location, math.ldexp(1.0, exponent - (mantissa < math.sqrt(0.5)))


class LearnedChangingBelief(ManyFilters):
    """P(h, s, m | âo_<t) for changing arms with learned hyperparameters h.

    >>> from bayescontrol import GaussianBandit
    >>> belief = GaussianBandit(["red", "blue"]).changing().belief()
    >>> for t in range(60):
    ...     belief.observe(None, ["red", "blue"][t % 2], 500.0 + t % 3 + 20.0 * (t % 2))
    >>> {a: round(r) for a, r in belief.expected().items()}
    {'red': 501, 'blue': 521}
    >>> {name: round(value) for name, value in belief.scales().items()}
    {'location': 511, 'noise': 1, 'spread': 17}
    """

    saved_fields = declare(
        Fixed("temperature"),
        Array("unit", "_unit"),
        Array("used", "_used", shape=(None,)),
        ArrayGroup("filters/", lambda belief: belief._saved_filters()),
        Copied("_parts", nested=True),
        Plain("drawn", lambda belief: belief._saved_mode(), "the mode drawn last"),
    )

    format_name: ClassVar[str] = "LearnedChangingBelief"
    learns_scale: ClassVar[bool] = True

    def __init__(
        self, problem: Any, per_arm: bool, options: Mapping[str, Any], temperature: float = 1.0
    ) -> None:
        self._problem, self._roster = problem, Roster(list(problem.labels))
        #: The temperature of draws, given h and the start.
        self.temperature = temperature
        #: The location and the unit of rewards; (0, 0) until it is known.
        self._unit: FloatArray = np.zeros(2)
        self._used: IntArray = np.zeros(1, np.int64)
        self._given: list[Given] = problem.given_each(0.0)
        #: A static belief, which checks events and chooses arms while the unit is unknown.
        self.prior = self._static(0)
        #: The filters of the hyperparameters `_used`; until the unit is known only one, for time.
        self._parts: list[Any] = [_filter(self.prior, per_arm, options)]
        self._checked = -1  # the time of the window start at which filters were last dropped
        self._settle()

    def _static(self, h: int) -> Any:
        """Return the static belief of all arms with hyperparameters h."""
        static = self._problem.belief_given(self._given[h], list(self.labels))
        return with_temperature(static, self.temperature)

    # -- the unit and the filters ----------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether the unit of the rewards is known."""
        return bool(self._unit[1])

    def _settle(self) -> None:
        """Update the unit until it is final; then drop improbable filters."""
        start = self._parts[0].window_start
        if not self.is_known or start.size == 1:  # the window begins with the prior
            unit = self._find_unit()
            if unit != tuple(self._unit):
                self._filter_again(unit)
        elif start.t != self._checked:
            self._checked = start.t
            logs = np.array([f.window_evidence for f in self._parts])
            places = np.flatnonzero(logs > logs.max() + math.log(DROPPED)).tolist()
            self._parts, self._used = [self._parts[i] for i in places], self._used[places]

    def _find_unit(self) -> tuple[float, float]:
        """Return the unit by the rewards of the window; (0, 0) if it is unknown."""
        scale = float(self._unit[1] or 1.0)
        for decisions, most in ((self.window, FIRST), (self.window, None), (None, None)):
            events = filter(None, islice(self._parts[0].events, decisions))
            rewards = [event[2] * scale for event in islice(events, most)]
            unit: tuple[float, float] | None = self._problem.find_unit(rewards)
            if unit is not None:
                return unit
        return 0.0, 0.0

    def _filter_again(self, unit: tuple[float, float]) -> None:
        """Let a filter for every h learn the events of the window in another unit."""
        factor = (self._unit[1] or 1.0) / (unit[1] or 1.0)
        events = [e and (e[0], e[1], float(e[2] * factor)) for e in self._parts[0].events]
        self._unit, self._checked = np.array(unit), -1
        self._given = self._problem.given_each(unit[0] / (unit[1] or 1.0))
        self._used = np.arange(len(self._given) if unit[1] else 1)
        self._parts = self._restarted(events)

    def _restarted(self, events: Sequence[Event | None]) -> list[Any]:
        """Return filters for the hyperparameters in use, which have learned only these events."""
        any_filter = self._parts[0]  # gives the hazards and the clock, the same in all
        filters = []
        for h in self._used.tolist():  # the numbers of the hyperparameters
            restarted = any_filter.restarted(self._static(h), events)
            restarted.use_roster(self._roster.copy())
            filters.append(restarted)
        self._choose_in(filters)
        return filters

    def _choose(self, choice: Choice | None) -> None:
        super()._choose(choice)
        self._choose_in(self._parts)

    def _choose_in(self, filters: Sequence[Any]) -> None:
        """Choose among the same arms in the filters, which have prices in units."""
        prices = self._roster.prices
        if prices is not None:
            prices = prices / float(self._unit[1] or 1.0)
        for part in filters:
            part._choose(Choice(self._roster.active, prices))

    # -- time ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a decision."""
        super().begin()
        self._settle()

    def _event(self, x: Any, a: Any, o: Any) -> Any:
        """Return a valid event as (x, row of arm a, reward in units), or raise an error."""
        x, j, r = super()._event(x, a, o)
        return self.prior.row_event(x, j, r / float(self._unit[1] or 1.0))

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its reward is lost."""
        for part in self._parts:  # all have the same clock: the first one raises, or none
            part.take_event(event, decision)
        if event is not None:
            self._roster.counts[event[1]] += 1
        self._settle()

    # -- drawing ---------------------------------------------------------------------------------

    def _weights(self) -> FloatArray:
        """P(h | âo_<t) of the filters."""
        logs = np.array([part.log_evidence for part in self._parts])
        w = np.exp(logs - logs.max())
        return np.asarray(w / w.sum())

    def _draw_filter(self, rng: StreamLike) -> Any:
        """Draw h and return its filter, or a belief without evidence if the unit is unknown."""
        if self.is_known:
            w = self._weights()
            return self._parts[kernels.changes.draw_start(w, len(w), state_of(rng))]
        prior, roster = self.prior.copy(), self._roster.copy()
        roster.prices = None  # without a unit, they say nothing
        prior.use_roster(roster)
        return prior

    def sample(self, rng: StreamLike) -> Any:
        """Draw h, then a mode of its filter."""
        mode = self._draw_filter(rng).copy().sample(rng)  # the filter keeps no mode
        name = "means" if isinstance(mode, MeanRewards) else "weights"
        setattr(mode, name, getattr(mode, name) * (self._unit[1] or 1.0))
        mode.prices = self._roster.prices if self.is_known else None
        self._last = mode
        return mode

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t): draw h, then an action of its filter."""
        self._last = None
        return self._draw_filter(rng).draw_action(x, rng)

    # -- queries ---------------------------------------------------------------------------------

    def _weighted(self, query: Callable[[Any], Any]) -> list[tuple[float, Any]]:
        """Return P(h | âo_<t) and the answer of the filter, for every h that is not negligible."""
        parts = zip(self._weights().tolist(), self._parts, strict=True)
        return [(w, query(part)) for w, part in parts if w > NEGLIGIBLE]

    def _average(self, query: Callable[[Any], dict[Any, Any]], unit: float = 1.0) -> dict[Any, Any]:
        """Return Σ_h P(h | âo_<t) query(filter), key by key; equal answers are not rounded."""
        given = self._weighted(query)
        first = given[0][1]
        return {k: unit * (v + sum(w * (q[k] - v) for w, q in given)) for k, v in first.items()}

    @property
    def _shown_unit(self) -> float:
        """The unit of rewards; NaN if it is unknown."""
        return float(self._unit[1]) or math.nan

    def posterior(self) -> FloatArray:
        """P(h | âo_<t) of the whole grid; uniform until the unit is known, 0 where dropped."""
        p = np.zeros(len(self._given))
        p[self._used if self.is_known else ...] = self._weights() if self.is_known else 1 / p.size
        return p

    def hyperparameters(self) -> dict[tuple[float, ...], float]:
        """P(h | âo_<t) of the filters in use; h is a tuple of the values that `scales` averages."""
        given = [self._given[h].scales.values() for h in self._used.tolist()]
        shown = [tuple(v * self._shown_unit for v in values) for values in given]
        return dict(zip(shown, self._weights().tolist(), strict=True))

    def scales(self) -> dict[str, float]:
        """Return the posterior means of the scales; empty until the unit is known."""
        if not self.is_known:
            return {}
        means = np.array([*self.hyperparameters().values()]) @ [*self.hyperparameters()]
        return dict(zip(self._given[0].scales, means.tolist(), strict=True))

    def hazards(self) -> dict[Any, Any]:
        """P(hazard | âo_<t) for each hazard rate of the grid; for each arm if they are separate."""
        if not isinstance(self._parts[0], PerArmBelief):
            return self._average(lambda part: part.hazards())
        return {a: self._average(lambda f: f.hazards()[a]) for a in self.labels}  # noqa: B023

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t) = Σ_h P(h | âo_<t) P(a | âo_<t, h); uniform until the unit is known."""
        if not self.is_known:
            return dict.fromkeys(self.arms, 1.0 / len(self))
        return self._average(lambda part: part.action_probabilities(x))

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        return self._average(lambda part: part.predictive(x, a))

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if rewards are continuous; 0 until the unit is known."""
        _, j, r = self._event(x, a, o)
        if not self.is_known:
            return 0.0
        logs = [part.log_predictive(x, self.labels[j], r) for part in self._parts]
        return mixed_log(self._weights(), logs) - math.log(self._shown_unit)

    def expected(self, *x: Any) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm, in context x if the arms have contexts."""
        return self._average(lambda part: part.expected(*x), self._shown_unit)

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm: F = Σ_h P(h | âo_<t) F_h."""
        given = self._weighted(lambda part: part.mean_quantiles(QUANTILE_GRID, x))
        mixed = {a: mixed_quantiles([(w, q[a]) for w, q in given], tails) for a in self.arms}
        return {a: self._shown_unit * quantiles for a, quantiles in mixed.items()}

    def posterior_summary(self) -> Summary:
        """Return the mean and the number of rewards of every arm."""

        def means(part: Any) -> dict[str, FloatArray]:
            return {k: np.array(v["mean"]) for k, v in part.posterior_summary().items()}

        averages = self._average(means, self._shown_unit).values()
        return self._summary(mean.tolist() for mean in averages)

    # -- arms, merging and saving ------------------------------------------------------------------

    def add(self, arm: Hashable, prior: object = None) -> None:
        """Add an arm: it has the learned prior in every segment."""
        if prior is not None:
            raise InvalidPrior(f"prior={prior!r}: these arms share a learned prior: give none")
        roster = self._roster.copy()
        roster.add(arm)  # raises an error if there is such an arm
        for h, part in zip(self._used.tolist(), self._parts, strict=True):
            part.add(arm, self._given[h].prior)
        self._roster = roster
        self.prior = self._static(0)

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late answers for it are still learned."""
        super().retire(arm)
        for part in self._parts:
            part.retire(arm)

    def restore(self, arm: Hashable) -> None:
        """Activate a retired arm again, with its posterior."""
        super().restore(arm)
        for part in self._parts:
            part.restore(arm)

    def _saved_mode(self) -> Any:
        """Return the arms and the means or weights of the mode drawn last; None without a mode."""
        mode: Any = self._last
        if mode is None:
            return None
        values = mode.means if isinstance(mode, MeanRewards) else mode.weights
        return [list(mode.arms), values.tolist()]

    def _saved_filters(self) -> Arrays:
        """Return the arrays of all filters, which have the same names and shapes, as one array."""
        saved = [part.save() for part in self._parts]
        return {name: np.stack([arrays[name] for arrays in saved]) for name in saved[0]}

    def _check_state(self, new: SimpleNamespace) -> None:
        self.require_same_arms(new._roster)
        trial, (location, unit) = self.copy(), new._unit.tolist()
        trial._unit, trial._used = new._unit, new._used
        trial._given = self._problem.given_each(location / (unit or 1.0))
        if unit < 0.0 or not set(new._used.tolist()) <= set(range(len(trial._given))):
            raise damaged(f"the unit is {unit}, the hyperparameters in use are {new._used}")
        trial._parts = trial._restarted(())
        for name, array in new.filters.items():
            if np.ndim(array) == 0 or len(array) != len(new._used):
                raise damaged(f"'filters/{name}' does not have {len(new._used)} filters")
        for i, part in enumerate(trial._parts):
            part.load({name: array[i] for name, array in new.filters.items()})
        new._parts, new._given, new._last, new._checked = trial._parts, trial._given, None, -1
        if new.drawn is not None:
            names, values = new.drawn[0], np.array(new.drawn[1])
            new._last = MeanRewards(names, values)
            if isinstance(self.prior, LinearBelief):
                new._last = LinearWeights(names, values, self.prior.schema)

    def __repr__(self) -> str:
        shown = "".join(f", {name} {value:.4g}" for name, value in self.scales().items())
        return f"LearnedChangingBelief({len(self)} arms, decision {self.decision}{shown})"


def changing_problem(problem: Any, per_arm: bool, options: Mapping[str, Any]) -> Changing:
    """Return the changing version of a bandit."""

    def belief(temperature: float = 1.0, **options: Any) -> Any:
        if problem.learns_scale:
            return LearnedChangingBelief(problem, per_arm, options, temperature)
        return _filter(with_temperature(problem.belief(), temperature), per_arm, options)

    return Changing(problem, belief, options, per_arm=per_arm)


def _filter(static: Any, per_arm: bool, options: Mapping[str, Any]) -> Any:
    """Return a belief about arms that change together, or each at its own times."""
    if not per_arm:
        return ChangingArmsBelief(static, **options)
    return PerArmBelief([ChangingArmsBelief(static.only(a), **options) for a in static.labels])
