"""Adaptive linear-quadratic control: the rule and certainty equivalence at five unknown plants.

    y = A x + B u + w,   A, B and W unknown         c = xᵀQx + uᵀRu
    J(K_t) = tr(P_K W)                      exact cost of the gain in use after t steps
    R_t = Σ_{s ≤ t} c(x_s, u_s) - c(x*_s, u*_s)     x*, u*: the best controller, with the same noise

A replica runs every controller on every plant with the same noise. No learner knows the plant or
its noise. All have a prior whose deviation is the largest coefficient of [A B]: the order of
magnitude is known. Certainty equivalence begins with some steps of noise, and so does the rule
where the two are compared. Quantities of the claims:

    near-optimal   J(K_T)/J* - 1 of a run, at most 1 % at T = 10,000 and in proportion to 1/√T
                   elsewhere, as √T regret implies; the median over runs is shown
    exponent       p in R_t ∝ tᵖ: the slope of log₂ of the median over the last three octaves, with
                   a bootstrap error; at most 1/2
    late           p in R_2t - R_t ∝ tᵖ, of the mean over the last five octaves; it does not depend
                   on the first steps

Medians are used because a few runs begin with a divergence that outweighs all others. The share of
runs with less regret than certainty equivalence is a table, not a claim: the paper makes none.

The number of runs that may miss the bound comes from a pilot on another seed, at the worst plant,
aircraft:

    bayescontrol run lqr --seed 1000 --runs 40 --steps 2500

There 30 of 40 runs of the rule are within the bound, and 27 of 40 of the lazy one; at 250, 500 and
1,100 steps, with the bound for that time, 26 to 29. The largest exponent of regret is 0.34 ± 0.07.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta

from bayescontrol import Record, Stream, interact, lqr
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.baselines import CertaintyEquivalence, OptimalController
from bayescontrol.errors import BadEvidence, counted
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, wilson
from bayescontrol.plot.chart import Panel, Region, Series
from bayescontrol.report.tables import with_error
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._figures import Figure, Figures

RULE: Final = "control rule"
#: LQR Thompson sampling as in the literature.
LAZY: Final = "control rule, lazy"
#: Starts after the same steps of noise as certainty equivalence.
WARM: Final = "control rule, warm start"
CERTAIN: Final = "certainty equivalence"
EXPLORING: Final = "certainty equivalence, exploring"


@dataclass(frozen=True)
class Settings(claims.Size):
    """Settings of `lqr`."""

    runs: claims.Runs = 10
    steps: Annotated[int, Meta(ge=64, description="steps of a run")] = 10_000
    warm_up: Annotated[int, Meta(ge=0, description="initial steps of noise")] = 20
    exploration: Annotated[float, Meta(ge=0, description="first deviation of the input")] = 1.0


@cache
def system(name: str) -> lqr.LinearSystem:
    """Return the plant of that name."""
    return lqr.PLANTS[name]()


def prior(plant: lqr.LinearSystem) -> lqr.SystemPrior:
    """Return the prior with mean zero and deviation max |[A B]_ij|, in units of the noise."""
    return lqr.SystemPrior(precision=1.0 / float(np.abs(np.hstack([plant.A, plant.B])).max()) ** 2)


def _rule(plant: lqr.LinearSystem, **options: Any) -> Any:
    """Return the control rule for an unknown plant like this one, with its costs and prior."""
    return lqr.LinearQuadratic.on(plant, prior=prior(plant)).agent(**options)


def _certainty(plant: lqr.LinearSystem, **options: Any) -> Any:
    """Return certainty equivalence with the same costs and prior."""
    return CertaintyEquivalence.on(plant, prior=prior(plant), **options)


#: The constructor of each learner, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, lqr.LinearSystem], Any]]] = {
    RULE: lambda _, plant: _rule(plant),
    LAZY: lambda _, plant: _rule(plant, schedule=lqr.DeterminantDoubling()),
    # `_play` replaces it by the rule after the steps of noise.
    WARM: lambda s, plant: _certainty(plant, warm_up=s.warm_up),
    CERTAIN: lambda s, plant: _certainty(plant, warm_up=s.warm_up),
    EXPLORING: lambda s, plant: _certainty(plant, exploration=s.exploration),
}

#: Two coefficients of [A B] whose posterior is drawn: the row, both columns, and their names.
PAIRS: Final[Mapping[str, tuple[int, int, int, str, str]]] = {
    "double-integrator": (1, 1, 2, "A₂₂: speed on speed", "B₂₁: push on speed"),
    "aircraft": (1, 1, 4, "A₂₂: vertical speed on itself", "B₂₁: elevator on vertical speed"),
}


def checkpoints(settings: Settings) -> IntArray:
    """Return the steps at which gains and regret are stored, evenly spaced in log t."""
    even = np.geomspace(1, settings.steps, 40).round()
    # The step after which the rule takes over, if it is within the run.
    handover = [settings.warm_up] * (0 < settings.warm_up < settings.steps)
    return np.unique(np.concatenate([even, _octave_steps(settings), handover]).astype(np.int64))


def _octave_steps(settings: Settings) -> IntArray:
    """Return T/32, T/16, … T, rounded down."""
    return np.asarray(settings.steps >> np.arange(5, -1, -1), np.int64)


def octaves(settings: Settings) -> IntArray:
    """Return the indices of T/32, T/16, … T among the checkpoints."""
    return np.asarray(np.searchsorted(checkpoints(settings), _octave_steps(settings)), np.int64)


def run(settings: Settings, run: int) -> Columns:
    """Record exact costs and regret at the checkpoints, by plant and learner.

    `gap` compares the posterior of the rule with a regression. `posterior` has the coefficients of
    the plants in PAIRS, learned by the rule with a warm start.
    """
    steps = checkpoints(settings)
    shape = len(lqr.PLANTS), len(AGENTS), steps.size
    cost, regret = np.empty(shape), np.empty(shape)
    redrawn, gap = np.zeros(shape[:2], np.int64), np.zeros(len(lqr.PLANTS))
    shown = np.zeros((len(PAIRS), steps.size, 5))
    for k, name in enumerate(lqr.PLANTS):
        best_total = _best_total_cost(settings, run, name)[steps - 1]
        for i, agent_name in enumerate(AGENTS):
            played = _play(settings, run, name, agent_name)
            cost[k, i], regret[k, i] = played.gain_costs, played.total_costs - best_total
            redrawn[k, i] = played.belief.redrawn
            if agent_name == RULE:
                gap[k] = _regression_gap(played.belief, played.records, prior(system(name)))
            if agent_name == WARM and name in PAIRS:
                shown[list(PAIRS).index(name)] = played.coefficients
    return {"cost": cost, "regret": regret, "redrawn": redrawn, "gap": gap, "posterior": shown}


class Played(NamedTuple):
    """A run: the belief after it, its records, and what was measured at the checkpoints.

    Two coefficients of PAIRS have five numbers: two means, and the upper triangle of their
    covariance.
    """

    belief: Any
    records: list[Record]  #: between the checkpoints
    gain_costs: FloatArray  #: J(K); ∞ after a divergence
    total_costs: FloatArray  #: of all steps so far; ∞ after a divergence
    coefficients: FloatArray  #: shape (checkpoints, 5); 0 for other plants


def _play(settings: Settings, run: int, name: str, agent_name: str) -> Played:
    """Let an agent control the plant of that name from one checkpoint to the next."""
    at, plant = checkpoints(settings), system(name)
    agent, world = AGENTS[agent_name](settings, plant), lqr.LinearPlant(plant)
    names = f"{name}: {agent_name}", f"{name}: environment"
    streams = claims.named_streams(settings.seed, run, *names)
    costs, coefficients = np.full((2, at.size), np.inf), np.zeros((at.size, 5))
    records, spent, done = [], 0.0, 0
    for c, t in enumerate(at):
        if agent_name == WARM and done == settings.warm_up:
            agent = lqr.LinearAgent(agent.belief, world.x)
        start = world.x
        try:
            record = interact(agent, world, int(t) - done, streams=streams)
        except BadEvidence:  # a divergence: costs are ∞ from here on
            break
        spent, done = spent + float(world.costs(record, start).sum()), int(t)
        costs[:, c] = plant.cost(agent.gain), spent
        records.append(record)
        if name in PAIRS:
            row, *pair = PAIRS[name][:3]
            covariance = agent.belief.covariance(row)[np.ix_(pair, pair)]
            upper = covariance[np.triu_indices(2)]
            coefficients[c] = np.concatenate([agent.belief.mean()[row, pair], upper])
    return Played(agent.belief, records, costs[0], costs[1], coefficients)


def _best_total_cost(settings: Settings, run: int, name: str) -> FloatArray:
    """Return the total cost of the best controller up to each step, with the same noise."""
    plant, world = system(name), lqr.LinearPlant(system(name))
    streams = claims.named_streams(settings.seed, run, name, f"{name}: environment")
    record = interact(OptimalController(plant), world, settings.steps, streams=streams)
    return np.asarray(world.costs(record).cumsum())


def _regression_gap(belief: Any, records: list[Record], prior: lqr.SystemPrior) -> float:
    """Return the relative difference of the posterior mean from a regression on the whole run.

    The regression y ≈ M (x, u) has a row for each step, and rows that stand for the prior.
    """
    Y = np.vstack([record.observations for record in records])
    X = np.vstack([np.zeros_like(Y[:1]), Y[:-1]])
    Z = np.hstack([X, np.vstack([record.actions for record in records])])
    n, d = Y.shape[1], Z.shape[1]
    prior_rows = prior.factor(n, d - n)[:d]
    inputs, outputs = np.vstack([prior_rows[:, :d], Z]), np.vstack([prior_rows[:, d:], Y])
    M = np.linalg.lstsq(inputs, outputs, rcond=None)[0].T
    return float(np.abs(belief.mean() - M).max() / np.abs(M).max())


#: Octaves over which the exponent of regret is estimated: about a decade.
OCTAVES: Final = 3
#: Bootstrap samples for the error of an exponent.
_BOOTSTRAP_SAMPLES: Final = 400


class Results:
    """The columns by plant and agent, in units of J*."""

    def __init__(self, settings: Settings, columns: Columns) -> None:
        self.settings, self.columns, self.runs = settings, columns, len(columns["cost"])

    def excess(self, plant: str, agent: str) -> FloatArray:
        """Return J(K_t)/J* - 1 at the checkpoints, by run."""
        return self.column("cost", plant, agent) / system(plant).best_cost - 1.0

    def regret(self, plant: str, agent: str) -> FloatArray:
        """Return R_t/J* at the checkpoints, by run."""
        return self.column("regret", plant, agent) / system(plant).best_cost

    def octaves(self, plant: str, agent: str) -> FloatArray:
        """Return R_t/J* at T/32, T/16, … T, by run."""
        return self.regret(plant, agent)[:, octaves(self.settings)]

    def median_excess(self, plant: str, agent: str) -> float:
        """Return the median of J(K_T)/J* - 1."""
        return float(np.median(self.excess(plant, agent)[:, -1]))

    def excess_interval(self, plant: str, agent: str) -> tuple[float, float]:
        """Return a 95 % interval of the median of J(K_T)/J* - 1, by order statistics."""
        ordered, n = np.sort(self.excess(plant, agent)[:, -1]), self.runs
        binomial = np.cumsum([math.comb(n, k) * 0.5**n for k in range(n + 1)])
        # The k-th lowest and the k-th highest run; with few runs the lowest and the highest.
        k = max(1, int(np.searchsorted(binomial, 0.025, side="right")))
        return float(ordered[k - 1]), float(ordered[n - k])

    def median_regret(self, plant: str, agent: str) -> float:
        """Return the median of R_T/J*."""
        return float(np.median(self.regret(plant, agent)[:, -1]))

    def column(self, name: str, plant: str, agent: str) -> FloatArray:
        """Return a column, by run."""
        return claims.by_name(AGENTS, claims.by_name(lqr.PLANTS, self.columns[name])[plant])[agent]


def exponent(regret: FloatArray) -> tuple[float, float]:
    """Return p in R_t ∝ tᵖ, fitted to the median over the last octaves, and its standard error.

    >>> t = 2.0 ** np.arange(6)
    >>> p, error = exponent(np.outer([1.0, 2.0, 3.0], np.sqrt(t)))
    >>> round(p, 9), round(error, 9)
    (0.5, 0.0)
    """
    last, n = regret[:, -OCTAVES - 1 :], len(regret)
    drawn = Stream(0).integers(n, size=(_BOOTSTRAP_SAMPLES, n))
    slopes = _slopes(np.median(last[drawn], axis=1))
    error = float(slopes.std()) if np.isfinite(slopes).all() else math.inf
    return float(_slopes(np.median(last, axis=0))), error


def late_exponent(regret: FloatArray) -> float:
    """Return p in R_2t - R_t ∝ tᵖ, fitted to the mean over these octaves; NaN if regret falls.

    >>> t = 2.0 ** np.arange(6)
    >>> round(late_exponent(100.0 + np.outer([1.0, 2.0], np.sqrt(t))), 9)
    0.5
    """
    if not np.isfinite(regret).all():
        return math.nan
    added = np.diff(regret, axis=1).mean(axis=0)
    return float(_slopes(added)) if (added > 0).all() else math.nan


def _slopes(curves: FloatArray) -> FloatArray:
    """Fit the slope of log₂ regret per octave along the last axis.

    The slope is 0 if some regret is not positive, and ∞ if some regret is infinite.
    """
    # The octaves 0, 1, …, centred; a slope of regret ∝ tᵖ per octave is p.
    x = np.arange(curves.shape[-1]) - (curves.shape[-1] - 1) / 2
    positive = (np.isfinite(curves) & (curves > 0)).all(axis=-1, keepdims=True)
    logs = np.log2(np.where(positive, curves, 1.0))
    slopes = (logs @ x) / (x @ x)
    return np.asarray(np.where(np.isinf(curves).any(axis=-1), math.inf, slopes))


#: Plants that are stable without control.
STABLE: Final = tuple(name for name in lqr.PLANTS if system(name).radius < 1.0 - 1e-9)

#: For each agent: runs of the pilot within the bound, and all its runs.
_WITHIN_PILOT: Final = {RULE: (30, 40), LAZY: (27, 40)}
#: False-alarm rate of each claim about near-optimal gains.
_FALSE_ALARM_RATE: Final = 0.01


def score(settings: Settings, columns: Columns) -> Score:
    """Make all claims, and a table for each plant."""
    results = Results(settings, columns)
    tables = (*(_table(results, plant) for plant in lqr.PLANTS), _comparison_table(results))
    return Score(tuple(_claims(results)), tables)


def _claims(results: Results) -> Iterator[Claim]:
    """Make the claims about the posterior, near-optimal gains and the growth of regret."""
    gap = float(results.columns["gap"].max())
    yield Claim(
        "posterior-is-regression",
        "after a run the posterior mean of [A B] equals the regression estimate from the whole "
        "run; measured: the largest relative difference over all plants and runs",
        source="ours", expected="<= 1e-9", ours=gap, holds=gap <= 1e-9,
        threshold_origin="theory, 1e-9 allowed for rounding",
    )  # fmt: skip
    yield _near_optimal_claim(results, RULE, "near-optimal-gain")
    yield _near_optimal_claim(results, LAZY, "near-optimal-gain-lazy")
    pairs = product(lqr.PLANTS, (RULE, LAZY, WARM))
    found = {(plant, agent): exponent(results.octaves(plant, agent)) for plant, agent in pairs}
    worst = max(found, key=lambda pair: found[pair][0])
    power, error = found[worst]
    yield Claim(
        "sqrt-regret",
        "the regret of the rule grows like √T or slower, at every plant and under every schedule: "
        f"its exponent over the last {OCTAVES} octaves; here the worst, {worst[0]}: {worst[1]}",
        source="ours", expected="<= 0.5", ours=power, error=error,
        holds=all(p <= 0.5 + 2 * p_error for p, p_error in found.values()),
        threshold_origin="theory: 1/2, and two standard errors; pilot on seed 1000, 40 runs: 0.34 "
        "± 0.07 at worst",
    )  # fmt: skip


def _near_optimal_claim(results: Results, agent: str, name: str) -> Claim:
    """Claim that enough runs of an agent end with a gain within the bound, at each stable plant.

    The worst plant is that with the fewest runs within the bound, then the largest median. The
    claim is undecided if enough runs are within the bound but the interval of the median is not.
    """
    steps = results.settings.steps
    allowed = 0.01 * math.sqrt(10_000 / steps)
    within = {p: int((results.excess(p, agent)[:, -1] <= allowed).sum()) for p in STABLE}
    worst = max(STABLE, key=lambda plant: (-within[plant], results.median_excess(plant, agent)))
    excess = results.median_excess(worst, agent)
    low, high = results.excess_interval(worst, agent)
    within_pilot, of_pilot = _WITHIN_PILOT[agent]
    by_chance = claims.least_successes(results.runs, _WITHIN_PILOT[agent], _FALSE_ALARM_RATE)
    least, rate = max(1, by_chance), "1 in 100" if by_chance else "more than 1 in 100"
    return Claim(
        name, f"after {steps:,} steps the gain in use costs at most {100 * allowed:.3g} % more "
        f"than the best one, median of {results.runs} runs, at each stable plant; here the worst, "
        f"{worst}: {agent}",
        source="ours", expected=f"<= {allowed:.3g}", ours=excess, holds=within[worst] >= least,
        reason=f"{within[worst]} of {results.runs} runs are within it; 95 % interval of the "
        f"median: {100 * low:.2g} … {100 * high:.2g} %", threshold_origin="pilot on seed 1000: "
        f"{within_pilot} of {of_pilot} runs within the bound, so at least {least} of "
        f"{results.runs} (false alarms: {rate})",
        undecided=within[worst] >= least and high > allowed,
    )  # fmt: skip


def _comparison_table(results: Results) -> Table:
    """Compare the rule with certainty equivalence, both after the same steps of noise."""
    rows: list[tuple[str | float | int, ...]] = []
    for baseline, plant in product((CERTAIN, EXPLORING), lqr.PLANTS):
        ours, theirs = (results.regret(plant, agent)[:, -1] for agent in (WARM, baseline))
        low, high = wilson((ours < theirs).sum(), results.runs)
        verdict = "less" if low > 0.5 else "more" if high < 0.5 else "not significant"
        cells = (_format_cells(results, plant, agent) for agent in (WARM, baseline))
        share = with_error(*claims.share_and_error(ours < theirs))
        rows.append((baseline, plant, share, verdict, *map(" / ".join, zip(*cells, strict=True))))
    return claims.table(
        f"After {results.settings.warm_up} steps of noise: the regret of the rule and of certainty "
        "equivalence", "compared with | plant | runs with less regret | regret | regret / J* | "
        "late exponent | J(K) above J*", rows, f"share of {results.runs} runs of "
        f"{results.settings.steps:,} steps, with the same noise; the last three columns: the rule "
        "/ the other; regret and J(K) are medians. The paper makes no claim about this",
    )  # fmt: skip


def _format_cells(results: Results, plant: str, agent: str) -> tuple[str, str, str]:
    """Format regret, late exponent and the excess cost of the gain."""
    regret, excess = results.median_regret(plant, agent), results.median_excess(plant, agent)
    slope = late_exponent(results.octaves(plant, agent))
    return f"{regret:.3g}", f"{slope:.2f}", f"{100 * excess:.2g} %"


def _table(results: Results, plant: str) -> Table:
    """Tabulate excess cost, regret, exponents and redrawn modes of all agents at one plant."""

    def row(agent: str) -> tuple[str | float | int, ...]:
        """Return the cells of one agent, in the order of the header."""
        excess, regret = results.excess(plant, agent)[:, -1], results.octaves(plant, agent)
        low, high = np.quantile(excess, [0.25, 0.75], method="nearest")
        p, error = exponent(regret)
        excesses = f"{100 * np.median(excess):.3g} %", f"{100 * low:.3g} … {100 * high:.3g} %"
        high_regret = float(np.quantile(regret[:, -1], 0.9, method="nearest"))
        slopes = f"{p:.2f} ± {error:.2f}", f"{late_exponent(regret):.2f}"
        regrets = results.median_regret(plant, agent), high_regret
        redrawn = int(results.column("redrawn", plant, agent).sum())
        return agent, *excesses, *regrets, *slopes, redrawn

    s = system(plant)
    return claims.table(
        f"{plant}: {s.states} states, {s.inputs} inputs, |λ(A)| up to {s.radius:.3f}, J* = "
        f"{s.best_cost:.4g}", "controller | J(K) above J* | quartiles | regret / J* | its 90 % "
        "quantile | exponent | late exponent | redrawn", map(row, AGENTS),
        f"after {results.settings.steps:,} steps, medians of {results.runs} runs; redrawn: sum",
    )  # fmt: skip


#: The run whose posterior is drawn, and the radius that contains 95 % of a 2-D Gaussian.
_EXAMPLE: Final = 0
_ELLIPSE_RADIUS: Final = 2.4477468306808166
#: Shades of the ellipses, the later the stronger.
_SHADES: Final = (0.12, 0.3, 0.55, 0.9)


def _note(results: Results) -> str:
    """Return the note of both figures with quartiles."""
    return f"{counted(results.runs, 'run')}: medians, and the middle half of them"


def _gains_figure(settings: Settings, columns: Columns) -> Figure:
    """Cost of the gain in use

    Lower is better: the extra cost per step of the gain in use, compared with the best gain,
    computed from the true plant. A line begins where half of the runs have a gain that stabilises
    the plant. The agent that explores most has the best gain in the end, and has paid for it: see
    the regret.
    """
    results = Results(settings, columns)
    panels = [_gain_panel(results, name) for name in lqr.PLANTS]
    return Figure(panels, _note(results))


def _regret_figure(settings: Settings, columns: Columns) -> Figure:
    """Regret

    Lower is better: total cost minus that of the best controller with the same noise. A line no
    steeper than the dotted one grows like √t or slower. The rule without a warm start pays for its
    first draws, before it has learned anything, and little later.
    """
    results = Results(settings, columns)
    panels = [_regret_panel(results, name) for name in lqr.PLANTS]
    return Figure(panels, f"{_note(results)}; negative regret is not shown")


def _posterior_figure(settings: Settings, columns: Columns) -> Figure:
    """The posterior shrinks to the true coefficients

    Each ellipse contains 95 % of the posterior of two coefficients of the plant; the stronger
    its colour, the later it is. The star is the truth, which 95 % of all ellipses should contain.
    """
    panels = [_posterior_panel(Results(settings, columns), name) for name in PAIRS]
    return Figure(panels, f"run {_EXAMPLE} of the {WARM}")


#: Both axes are logarithmic.
_LOG_AXES: Final[Any] = {
    "xscale": "log", "yscale": "log", "xlim": (1.0, None), "legend": "below", "legend_columns": 3,
}  # fmt: skip


def _quartiles(plant: str, t: IntArray, runs: Callable[[str, str], FloatArray]) -> list[Series]:
    """Make series of medians and quartiles; each is the value of one run, so that ∞ stays ∞."""
    levels: Any = {"q": [0.5, 0.25, 0.75], "axis": 0, "method": "nearest"}
    return [Series(agent, t, *np.quantile(runs(plant, agent), **levels)) for agent in AGENTS]


def _gain_panel(results: Results, plant: str) -> Panel:
    """Draw the excess cost of the gain in use, for all agents at one plant."""
    series = _quartiles(plant, checkpoints(results.settings), results.excess)
    return Panel(plant, "step t", "J(K) / J* − 1", series, ylim=(None, 30.0), **_LOG_AXES)


def _regret_panel(results: Results, plant: str) -> Panel:
    """Draw the regret of all agents at one plant, and a line ∝ √t below the lowest at the end."""
    t = checkpoints(results.settings)
    series = _quartiles(plant, t, results.regret)
    final_medians = [float(s.y[-1]) for s in series if 0 < s.y[-1] < np.inf]
    guide = 0.5 * min(final_medians, default=1.0) * np.sqrt(t / t[-1])
    series.append(Series("∝ √t", t, guide, colour="ink", dash="dot"))
    return Panel(plant, "step t", "regret / J*", series, **_LOG_AXES)


def _posterior_panel(results: Results, plant: str) -> Panel:
    """Draw 95 % ellipses of the posterior of two coefficients at four times, and the truth."""
    settings, (row, j, k, x_name, y_name) = results.settings, PAIRS[plant]
    t = checkpoints(settings)
    coefficients = claims.by_name(PAIRS, results.columns["posterior"])[plant]
    first = min(max(4, settings.warm_up), settings.steps)
    wanted_times = np.geomspace(first, settings.steps, len(_SHADES))
    angle = np.linspace(0.0, 2 * np.pi, 120, endpoint=False)
    circle = _ELLIPSE_RADIUS * np.stack([np.cos(angle), np.sin(angle)])
    regions = []
    for time, shade in zip(wanted_times, _SHADES, strict=True):
        i = int(np.argmin(np.abs(np.log(t / time))))  # the nearest checkpoint
        x_mean, y_mean, xx, xy, yy = coefficients[_EXAMPLE, i]
        x, y = np.linalg.cholesky([[xx, xy], [xy, yy]]) @ circle
        regions.append(Region(f"t = {t[i]:,}", x_mean + x, y_mean + y, shade=shade))
    truth = np.hstack([system(plant).A, system(plant).B])[row]
    return Panel(
        plant, x_name, y_name,
        [Series("truth", truth[[j]], truth[[k]], kind="points", colour="orange", marker="star")],
        regions=regions, legend="best",
    )  # fmt: skip


experiment: Final = Experiment(
    "lqr", "unknown linear plants, quadratic costs: the control rule and certainty equivalence",
    Settings, quick=Settings(runs=8, steps=2500), full=Settings(runs=50), run=run, score=score,
    figures=Figures(_gains_figure, _regret_figure, _posterior_figure),
    full_only=("near-optimal-gain", "near-optimal-gain-lazy"),
)  # fmt: skip
