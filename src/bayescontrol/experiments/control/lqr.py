"""Adaptive linear-quadratic control: draws against certainty equivalence, at five plants.

    y = A x + B u + w,   A, B and W unknown         c = xᵀQx + uᵀRu

The gain in use is judged by its exact cost J(K) = tr(P_K W), the run by its regret.

One replica: every controller at every plant, with the same noise.

    J(K_t) = tr(P_K W)                      exact, of the gain in use after t steps
    R_t = Σ_{s ≤ t} c(x_s, u_s) - c(x*_s, u*_s)     x*, u*: the best controller, with the same noise

No learner knows the plant or its noise. All have the prior of which the deviation is the largest
coefficient of [A B], as one who knows the order of magnitude would say. Certainty equivalence
begins with some steps of noise, and so does the rule where it is to be compared with it.

What the columns of `lqr` say of one controller at one plant, and how fast regret grows.

    exponent   p in R_t ∝ tᵖ: the slope of log₂ of the median over the last three octaves, with an
               error by drawing runs with replacement
    late       p in R_2t - R_t ∝ tᵖ, of the mean over the last five octaves: free of how runs began

Medians, because a few runs begin with a plunge that outweighs all the others.

Claims and tables of `lqr`.

near-optimal   J(K_T)/J* - 1 of a run, at most 1 % at T = 10,000 and in proportion to 1/√T
               elsewhere, as √T regret has it; the median over runs is shown
sqrt-regret    the exponent of regret over the last octaves is at most 1/2
against        the share of runs with less regret, in which both meet the same noise: a table, and
               no claim, for the paper makes none about certainty equivalence

How many runs may miss the bound comes from a pilot on another seed, at the worst plant, aircraft:

    bayescontrol run lqr --seed 1000 --runs 40 --steps 2500

There 30 of 40 runs of the rule are within the bound, and 27 of 40 of the lazy one; at 250, 500 and
1,100 steps, with the bound for that time, 26 to 29. The largest exponent of regret is 0.34 ± 0.07.

The figures of `lqr`: what the gain in use costs, regret, and the posterior on its way.

gains       J(K_t)/J* - 1, exact: medians of the runs, and the middle half of them
regret      in units of J*, with √t to compare with
posterior   where 95 % of two coefficients are, after so many steps of one run
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.linear import (
    CertaintyEquivalence,
    OptimalController,
    lazy_thompson_sampling,
)
from bayescontrol.errors import BadEvidence
from bayescontrol.experiments.chance import least_successes
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, wilson
from bayescontrol.lab.chart import Chart, Colour, Dash, Panel, Region, Series
from bayescontrol.linear import PLANTS, LinearAgent, LinearPlant, LinearSystem, SystemPrior
from bayescontrol.record import Record
from bayescontrol.report.tables import with_error
from bayescontrol.seeding import Stream

RULE: Final = "control rule"
#: LQR Thompson sampling as the literature has it.
LAZY: Final = "control rule, lazy"
#: After the same steps of noise as certainty equivalence.
WARM: Final = "control rule, warm start"
CERTAIN: Final = "certainty equivalence"
EXPLORING: Final = "certainty equivalence, exploring"


@dataclass(frozen=True)
class Settings:
    """Settings of `lqr`."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 10
    steps: Annotated[int, msgspec.Meta(ge=64, description="steps of a run")] = 10_000
    warm_up: Annotated[
        int,
        msgspec.Meta(ge=0, description="steps of noise before certainty equivalence begins"),
    ] = 20
    exploration: Annotated[
        float, msgspec.Meta(ge=0, description="deviation of the exploring input at the first step")
    ] = 1.0


@lru_cache(maxsize=8)
def system(name: str) -> LinearSystem:
    """The plant of that name.

    >>> system("aircraft")
    LinearSystem(aircraft: 4 states, 2 inputs, J* = 160)
    """
    return PLANTS[name]()


def prior(plant: LinearSystem) -> SystemPrior:
    """Zero on average, with the deviation max |[A B]_ij|, in units of the noise.

    >>> prior(system("double-integrator")).precision
    1.0
    """
    return SystemPrior(precision=1.0 / float(np.abs(np.hstack([plant.A, plant.B])).max()) ** 2)


def _certain(settings: Settings, plant: LinearSystem) -> Any:
    return CertaintyEquivalence.on(plant, prior=prior(plant), warm_up=settings.warm_up)


#: How each learner is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, LinearSystem], Any]]] = {
    RULE: lambda _, plant: LinearAgent.on(plant, prior=prior(plant)),
    LAZY: lambda _, plant: lazy_thompson_sampling(plant, prior=prior(plant)),
    WARM: lambda s, plant: _certain(s, plant),  # the rule takes over when its noise has ended
    CERTAIN: lambda s, plant: _certain(s, plant),
    EXPLORING: lambda s, plant: CertaintyEquivalence.on(
        plant, prior=prior(plant), exploration=s.exploration
    ),
}

#: Two coefficients of one row of [A B] whose posterior is shown: the row and both columns.
PAIRS: Final[Mapping[str, tuple[int, int, int]]] = {
    "double-integrator": (1, 1, 2),
    "aircraft": (1, 1, 4),
}


def checkpoints(settings: Settings) -> IntArray:
    """The steps at which gains and regret are noted, at even distances of their logarithms."""
    even = np.geomspace(1, settings.steps, 40).round()
    handover = [settings.warm_up] * (0 < settings.warm_up < settings.steps)
    return np.unique(np.concatenate([even, _octaves(settings), handover]).astype(np.int64))


def _octaves(settings: Settings) -> IntArray:
    return np.asarray(settings.steps >> np.arange(5, -1, -1), np.int64)


def octaves(settings: Settings) -> IntArray:
    """The places of T/32, T/16, … T among the checkpoints."""
    return np.asarray(np.searchsorted(checkpoints(settings), _octaves(settings)), np.int64)


def run(settings: Settings, run: int) -> Columns:
    """Exact costs and regret at the checkpoints, by plant and learner, and what else is claimed."""
    at = checkpoints(settings)
    shape = len(PLANTS), len(AGENTS), at.size
    cost, regret = np.empty(shape), np.empty(shape)
    redrawn, gap = np.zeros(shape[:2], np.int64), np.zeros(len(PLANTS))
    shown = np.zeros((len(PAIRS), at.size, 5))
    for k, name in enumerate(PLANTS):
        best = _best(settings, run, name)[at - 1]
        for i, agent_name in enumerate(AGENTS):
            played = _play(settings, run, name, agent_name)
            cost[k, i], regret[k, i] = played.cost, played.spent - best
            redrawn[k, i] = played.belief.redrawn
            if agent_name == RULE:
                gap[k] = _gap(played, prior(system(name)))
            if agent_name == WARM and name in PAIRS:
                shown[list(PAIRS).index(name)] = played.seen
    return {"cost": cost, "regret": regret, "redrawn": redrawn, "gap": gap, "posterior": shown}


class _Played(NamedTuple):
    """One run: J(K) and the costs so far at the checkpoints, and the steps themselves."""

    cost: FloatArray
    spent: FloatArray
    seen: FloatArray
    belief: Any
    steps: list[tuple[FloatArray, Record]]


def _play(settings: Settings, run: int, name: str, agent_name: str) -> _Played:
    at, plant = checkpoints(settings), system(name)
    agent, world = AGENTS[agent_name](settings, plant), LinearPlant(plant)
    streams = (
        Stream.named(settings.seed, run, f"{name}: {agent_name}"),
        Stream.named(settings.seed, run, f"{name}: environment"),
    )
    # What diverges costs ∞ from there on.
    played = _Played(np.full(at.size, np.inf), np.full(at.size, np.inf), np.zeros((at.size, 5)),
                     agent.belief, [])  # fmt: skip
    spent, done = 0.0, 0
    for c, t in enumerate(at):
        if agent_name == WARM and done == settings.warm_up:
            agent = LinearAgent(agent.belief, world.x)
        start = world.x
        try:
            record = interact(agent, world, int(t) - done, streams=streams)
        except BadEvidence:
            break
        spent, done = spent + float(world.costs(record, start).sum()), int(t)
        played.cost[c], played.spent[c] = plant.cost(agent.gain), spent
        played.steps.append((start, record))
        if name in PAIRS:
            played.seen[c] = _seen(agent.belief, PAIRS[name])
    return played


def _best(settings: Settings, run: int, name: str) -> FloatArray:
    """Σ_{s ≤ t} of what the best controller pays, with the noise that the learners meet."""
    plant = system(name)
    streams = (
        Stream.named(settings.seed, run, name),
        Stream.named(settings.seed, run, f"{name}: environment"),
    )
    world = LinearPlant(plant)
    record = interact(OptimalController(plant), world, settings.steps, streams=streams)
    return np.asarray(world.costs(record).cumsum())


def _seen(belief: Any, pair: tuple[int, int, int]) -> FloatArray:
    """Mean and covariance of two coefficients of one row: 2 + 3 numbers."""
    row, j, k = pair
    mean, covariance = belief.mean()[row], belief.covariance(row)
    return np.array([mean[j], mean[k], covariance[j, j], covariance[j, k], covariance[k, k]])


def _gap(played: _Played, prior: SystemPrior) -> float:
    """How far the posterior mean is from a regression on all of the run at once, relatively."""
    Y = np.vstack([record.observations for _, record in played.steps])
    X = np.vstack([played.steps[0][0], Y[:-1]])
    Z = np.hstack([X, np.vstack([record.actions for _, record in played.steps])])
    n, d = Y.shape[1], Z.shape[1]
    prior_rows = prior.factor(n, d - n)[:d]
    M = np.linalg.lstsq(
        np.vstack([prior_rows[:, :d], Z]), np.vstack([prior_rows[:, d:], Y]), rcond=None
    )[0].T
    return float(np.abs(played.belief.mean() - M).max() / np.abs(M).max())


#: Over so many octaves the exponent of regret is taken: about a decade.
OCTAVES: Final = 3
_RESAMPLES: Final = 400
_PLACE: Final = {name: i for i, name in enumerate(AGENTS)}


class Seen:
    """The columns by name, in units of J*."""

    def __init__(self, settings: Settings, columns: Columns) -> None:
        self.settings, self.columns = settings, columns
        self.runs = len(columns["cost"])

    def excess(self, plant: str, agent: str) -> FloatArray:
        """J(K_t)/J* - 1 at the checkpoints, by run."""
        return self._column("cost", plant, agent) - 1.0

    def regret(self, plant: str, agent: str) -> FloatArray:
        """R_t/J* at the checkpoints, by run."""
        return self._column("regret", plant, agent)

    def octaves(self, plant: str, agent: str) -> FloatArray:
        """R_t/J* at T/32, T/16, … T, by run."""
        return self.regret(plant, agent)[:, octaves(self.settings)]

    def gain(self, plant: str, agent: str) -> float:
        """The median of J(K_T)/J* - 1."""
        return float(np.median(self.excess(plant, agent)[:, -1]))

    def gain_interval(self, plant: str, agent: str) -> tuple[float, float]:
        """95 % for the median of J(K_T)/J* - 1, by order statistics: it needs no law of them."""
        ordered = np.sort(self.excess(plant, agent)[:, -1])
        n = len(ordered)
        tail, k = 0.5**n, 0  # P(Binomial(n, 1/2) <= k)
        while tail <= 0.025 and k < n // 2:
            k += 1
            tail += math.comb(n, k) * 0.5**n
        return float(ordered[max(k - 1, 0)]), float(ordered[min(n - k, n - 1)])

    def total(self, plant: str, agent: str) -> float:
        """The median of R_T/J*."""
        return float(np.median(self.regret(plant, agent)[:, -1]))

    def redrawn(self, plant: str, agent: str) -> int:
        """How many systems had no stabilising gain, in all runs."""
        return int(self.columns["redrawn"][:, list(PLANTS).index(plant), _PLACE[agent]].sum())

    def _column(self, name: str, plant: str, agent: str) -> FloatArray:
        column = self.columns[name][:, list(PLANTS).index(plant), _PLACE[agent]]
        return np.asarray(column / system(plant).best_cost)


def exponent(regret: FloatArray) -> tuple[float, float]:
    """p in R_t ∝ tᵖ over the last of these octaves, of the median of runs, and its standard error.

    >>> t = 2.0 ** np.arange(6)
    >>> p, error = exponent(np.outer([1.0, 2.0, 3.0], np.sqrt(t)))
    >>> round(p, 9), round(error, 9)
    (0.5, 0.0)
    """
    last, n = regret[:, -OCTAVES - 1 :], len(regret)
    drawn = Stream(0).integers(n, size=(_RESAMPLES, n))
    slopes = _slopes(np.median(last[drawn], axis=1))
    error = float(slopes.std()) if np.isfinite(slopes).all() else math.inf
    return float(_slopes(np.median(last, axis=0))), error


def late(regret: FloatArray) -> float:
    """p in R_2t - R_t ∝ tᵖ over these octaves, of the mean of the runs; NaN if it falls.

    >>> t = 2.0 ** np.arange(6)
    >>> round(late(100.0 + np.outer([1.0, 2.0], np.sqrt(t))), 9)
    0.5
    """
    if not np.isfinite(regret).all():
        return math.nan
    added = np.diff(regret, axis=1).mean(axis=0)
    return float(_slopes(added)) if (added > 0).all() else math.nan


def _slopes(curves: FloatArray) -> FloatArray:
    """Of log₂ from octave to octave, by least squares along the last axis.

    0 where there is no regret, ∞ where it is infinite.
    """
    x = np.arange(curves.shape[-1]) - (curves.shape[-1] - 1) / 2
    seen = (np.isfinite(curves) & (curves > 0)).all(axis=-1, keepdims=True)
    logs = np.log2(np.where(seen, curves, 1.0))
    slopes = (logs @ x) / (x @ x)
    return np.asarray(np.where(np.isinf(curves).any(axis=-1), math.inf, slopes))


#: Plants that are stable by themselves.
STABLE: Final = tuple(name for name in PLANTS if system(name).radius < 1.0 - 1e-9)

#: Runs within the bound in the pilot, runs of the pilot, and the rate of false alarms.
_PILOT: Final = {RULE: (30, 40), LAZY: (27, 40)}
_ALARMS: Final = 0.01


def score(settings: Settings, columns: Columns) -> Score:
    """All claims of `lqr`, and a table for each plant."""
    seen = Seen(settings, columns)
    claims = (
        _posterior(seen),
        _near_optimal(seen, RULE, "near-optimal-gain"),
        _near_optimal(seen, LAZY, "near-optimal-gain-lazy"),
        _sqrt_regret(seen),
    )
    return Score(claims, (*(_table(seen, plant) for plant in PLANTS), _against(seen)))


def _posterior(seen: Seen) -> Claim:
    gap = float(seen.columns["gap"].max())
    return Claim(
        "posterior-is-regression",
        "after a run the posterior mean of [A B] is that of a regression on all of it at once: "
        "the largest relative difference, of all plants and runs",
        "ours", "<= 1e-9", gap, None, gap <= 1e-9,
        threshold_origin="theory, 1e-9 allowed for rounding",
    )  # fmt: skip


def _near_optimal(seen: Seen, agent: str, name: str) -> Claim:
    steps = seen.settings.steps
    allowed = 0.01 * math.sqrt(10_000 / steps)
    within = {p: int((seen.excess(p, agent)[:, -1] <= allowed).sum()) for p in STABLE}
    worst = max(STABLE, key=lambda plant: (-within[plant], seen.gain(plant, agent)))
    gain, (low, high) = seen.gain(worst, agent), seen.gain_interval(worst, agent)
    good, of = _PILOT[agent]
    by_chance = least_successes(seen.runs, (good, of), _ALARMS)
    least, rate = max(1, by_chance), "1 in 100" if by_chance else "more than 1 in 100"
    return Claim(
        name,
        f"after {steps:,} steps the gain in use costs at most {100 * allowed:.3g} % more than the "
        f"best one, median of {seen.runs} runs, at each stable plant; here the worst, {worst}: "
        f"{agent}",
        "ours", f"<= {allowed:.3g}", gain, None,
        within[worst] >= least,
        f"{within[worst]} of {seen.runs} runs are within it; 95 % interval of the median: "
        f"{100 * low:.2g} … {100 * high:.2g} %",
        threshold_origin=f"pilot on seed 1000: {good} of {of} runs within the bound, so at least "
        f"{least} of {seen.runs} (false alarms: {rate})",
    )  # fmt: skip


def _sqrt_regret(seen: Seen) -> Claim:
    found = {
        (plant, agent): exponent(seen.octaves(plant, agent))
        for plant in PLANTS
        for agent in (RULE, LAZY, WARM)
    }
    worst = max(found, key=lambda pair: found[pair][0])
    return Claim(
        "sqrt-regret",
        "the regret of the rule grows like the root of T or slower, at every plant and under every "
        f"schedule: its exponent over the last {OCTAVES} octaves; here the worst, "
        f"{worst[0]}: {worst[1]}",
        "ours", "<= 0.5", *found[worst],
        all(p <= 0.5 + 2 * error for p, error in found.values()),
        threshold_origin="theory: 1/2, and two standard errors; pilot on seed 1000, 40 runs: "
        "0.34 ± 0.07 at worst",
    )  # fmt: skip


def _share(seen: Seen, plant: str, other: str) -> tuple[float, float, float]:
    """The share of runs in which the rule has less regret, with Wilson's interval."""
    better = int((seen.regret(plant, WARM)[:, -1] < seen.regret(plant, other)[:, -1]).sum())
    low, high = wilson(better, seen.runs)
    return better / seen.runs, float(low), float(high)


def _against(seen: Seen) -> Table:
    rows: list[tuple[str | float | int, ...]] = []
    for other in (CERTAIN, EXPLORING):
        for plant in PLANTS:
            share, low, high = _share(seen, plant, other)
            agents = (WARM, other)
            verdict = "less" if low > 0.5 else "more" if high < 0.5 else "no more than luck"
            rows.append(
                (
                    other,
                    plant,
                    with_error(share, (high - low) / 4),
                    verdict,
                    " / ".join(f"{seen.total(plant, agent):.3g}" for agent in agents),
                    " / ".join(f"{late(seen.octaves(plant, agent)):.2f}" for agent in agents),
                    " / ".join(f"{100 * seen.gain(plant, agent):.2g} %" for agent in agents),
                )
            )
    return Table(
        f"After {seen.settings.warm_up} steps of noise: the regret of the rule against that of "
        "certainty equivalence",
        ("against", "plant", "runs with less regret", "regret", "regret / J*", "late exponent",
         "J(K) above J*"),
        tuple(rows),
        f"share of {seen.runs} runs of {seen.settings.steps:,} steps, with the same noise; the "
        "last three columns: the rule / the other, regret and J(K) as medians. The paper makes no "
        "claim about this",
    )  # fmt: skip


def _table(seen: Seen, plant: str) -> Table:
    def row(agent: str) -> tuple[str | float | int, ...]:
        gain, regret = seen.excess(plant, agent)[:, -1], seen.octaves(plant, agent)
        low, high = np.quantile(gain, [0.25, 0.75], method="nearest")
        p, error = exponent(regret)
        return (
            agent,
            f"{100 * seen.gain(plant, agent):.3g} %",
            f"{100 * low:.3g} … {100 * high:.3g} %",
            seen.total(plant, agent),
            float(np.quantile(regret[:, -1], 0.9, method="nearest")),
            f"{p:.2f} ± {error:.2f}",
            f"{late(regret):.2f}",
            seen.redrawn(plant, agent),
        )

    s = system(plant)
    head = "controller", "J(K) above J*", "quartiles", "regret / J*", "nine in ten below"
    return Table(
        f"{plant}: {s.states} states, {s.inputs} inputs, |λ(A)| up to {s.radius:.3f}, "
        f"J* = {s.best_cost:.4g}",
        (*head, "exponent", "late", "redrawn"),
        tuple(row(agent) for agent in AGENTS),
        f"after {seen.settings.steps:,} steps, medians of {seen.runs} runs",
    )


#: Low, middle and high.
_Band: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    LAZY: ("sky", "dash"),
    WARM: ("green", "solid"),
    CERTAIN: ("vermillion", "dashdot"),
    EXPLORING: ("orange", "dot"),
}
#: The run whose posterior is drawn, and the radius of 95 % of a Gaussian in the plane.
_EXAMPLE: Final = 0
_RADIUS: Final = 2.4477468306808166
_SHADES: Final = (0.12, 0.3, 0.55, 0.9)
_COEFFICIENTS: Final = {
    "double-integrator": ("A₂₂: speed on speed", "B₂₁: push on speed"),
    "aircraft": ("A₂₂: vertical speed on itself", "B₂₁: elevator on vertical speed"),
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """All figures."""
    seen = Seen(settings, columns)
    runs = seen.runs
    note = f"{runs} run{'s' * (runs > 1)}: medians, and the middle half of them"
    return {
        "gains": Chart(
            "What the gain in use costs",
            [_gains(seen, name) for name in PLANTS],
            "The lower the better: how much more than the best gain the one in use would cost for "
            "ever, computed from the true plant. A line begins where half of the runs have a gain "
            "that stabilises. Whoever explores most has the best gain in the end, and has paid for "
            "it: see the regret.",
            columns=3,
            note=note,
        ),
        "regret": Chart(
            "Regret",
            [_regrets(seen, name) for name in PLANTS],
            "The lower the better: costs so far beyond those of the best controller with the same "
            "noise. A line no steeper than the dotted one grows like the root of time or slower. "
            "The rule without a warm start pays for its first draws, before it knows anything, and "
            "little after that.",
            columns=3,
            note=f"{note}; where regret is negative there is no line",
        ),
        "posterior": Chart(
            "The posterior shrinks onto the truth",
            [_posterior_panel(seen, name) for name in PAIRS],
            "Each ellipse holds 95 % of the posterior of two coefficients of the plant; the darker "
            "the later. The star is the truth: nineteen of twenty ellipses should hold it.",
            columns=2,
            note=f"run {_EXAMPLE} of the {WARM}",
        ),
    }


def _middle(runs: FloatArray) -> _Band:
    """Median and quartiles; of few runs those that are there, so that ∞ stays ∞."""
    low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=0, method="nearest")
    return low, middle, high


def _gains(seen: Seen, plant: str) -> Panel:
    t, series = checkpoints(seen.settings), []
    for agent, (colour, dash) in _LOOKS.items():
        band = _middle(seen.excess(plant, agent))
        series.append(_band(plant, agent, t, band, colour, dash))
    return Panel(
        plant, "step t", "J(K) / J* − 1", series,
        xscale="log", yscale="log", xlim=(1.0, None), ylim=(None, 30.0),
        legend="below", legend_columns=3,
    )  # fmt: skip


def _band(plant: str, agent: str, t: IntArray, band: _Band, colour: Colour, dash: Dash) -> Series:
    low, middle, high = band
    first = plant == next(iter(PLANTS))  # one legend for all panels
    return Series(agent, t, middle, low, high, colour=colour, dash=dash, in_legend=first)


def _regrets(seen: Seen, plant: str) -> Panel:
    t, series = checkpoints(seen.settings), []
    for agent, (colour, dash) in _LOOKS.items():
        band = _middle(seen.regret(plant, agent))
        series.append(_band(plant, agent, t, band, colour, dash))
    ends = [float(s.y[-1]) for s in series if 0 < s.y[-1] < np.inf]
    guide = 0.5 * min(ends, default=1.0) * np.sqrt(t / t[-1])
    first = plant == next(iter(PLANTS))
    series.append(Series("∝ √t", t, guide, colour="ink", dash="dot", in_legend=first))
    return Panel(
        plant, "step t", "regret / J*", series,
        xscale="log", yscale="log", xlim=(1.0, None), legend="below", legend_columns=3,
    )  # fmt: skip


def _posterior_panel(seen: Seen, plant: str) -> Panel:
    settings, (row, j, k) = seen.settings, PAIRS[plant]
    t, posterior = checkpoints(settings), seen.columns["posterior"]
    shown = posterior[_EXAMPLE, list(PAIRS).index(plant)]
    begun = min(max(4, settings.warm_up), settings.steps)
    wanted = np.geomspace(begun, settings.steps, len(_SHADES))
    places = [int(np.argmin(np.abs(np.log(t / w)))) for w in wanted]
    angle = np.linspace(0.0, 2 * np.pi, 120, endpoint=False)
    circle = _RADIUS * np.stack([np.cos(angle), np.sin(angle)])
    regions = []
    for place, shade in zip(places, _SHADES, strict=True):
        a, b, aa, ab, bb = shown[place]
        x, y = np.linalg.cholesky([[aa, ab], [ab, bb]]) @ circle
        regions.append(Region(f"t = {t[place]:,}", a + x, b + y, shade=shade))
    truth = np.hstack([system(plant).A, system(plant).B])[row]
    x_name, y_name = _COEFFICIENTS[plant]
    return Panel(
        plant, x_name, y_name,
        [Series("truth", truth[[j]], truth[[k]], kind="points", colour="orange", marker="star")],
        regions=regions, legend="best",
    )  # fmt: skip


#: The experiment `lqr`.
experiment = Experiment(
    name="lqr",
    summary="unknown linear plants, quadratic costs: the control rule and certainty equivalence",
    settings=Settings,
    quick=Settings(runs=8, steps=2500),
    full=Settings(runs=50),
    run=run,
    score=score,
    figures=draw,
)
