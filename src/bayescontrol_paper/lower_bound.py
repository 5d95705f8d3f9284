"""Lower bound on the posterior of the true mode: it may fall, but not far and not often.

    theorem   for any δ there is a λ > 0: P(m* | âo_≤t) ≥ λ/|M| for all t, with probability 1 - δ
    Ville     P( P(m* | âo_≤t) < δ P(m*) at some t ) ≤ δ,   hence λ = δ |M| P(m*) suffices

P(m*)/P(m* | ·) = Σ_m P(m) e^(-d_t(m*‖m)) is a non-negative supermartingale that starts at one: the
bound holds without bounded divergences, and for any number of modes. An agent that takes its own
actions for evidence has no such bound. Three worlds, for the control rule and the naive mixture:

    three levers     each mode pulls its lever nine times in ten; it pays a little more there
    prize or frog    two boxes; what they show is right three times in four
    bias grid        two arms, biases .2, .5 or .8 each: nine modes

Sharp policies and weak evidence mislead an agent that learns from its own actions. In prize or
frog the posterior follows a gambler's walk, which is computed exactly: each observation is a step
up with probability r and down with 1 - r, whichever box is opened.

    P(m* | ·) / P(m*) = 2 / (1 + (r/(1-r))^k)           k steps behind
    P(ever k behind)  = ((1-r)/r)^k                     gambler's ruin; a little less by time t

A replica records low_t = min_{τ≤t} P(m* | ·) / P(m*). Shares are compared at Bernstein's margins,
which are valid for any number of runs: the false-alarm rate of all claims together is below 1e-3.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Meta

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.convergence.boundedness import simulate_divergences, ville
from bayescontrol.finite.examples import prize_or_frog
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Colour, Dash, Guide, Panel, Series
from bayescontrol.statistics import bernstein
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._diagrams import with_policy
from bayescontrol_paper._figures import Figure, Figures, share_of_runs

#: Probability that a box shows what it contains.
RELIABILITY: Final = 0.75
AGENTS: Final = ("rule", "naive")
#: The lowest P(m* | ·) / P(m*) of each run, by world and agent.
Lowest: TypeAlias = Mapping[tuple[str, str], FloatArray]


class World(NamedTuple):
    """A class with a uniform prior, its true mode, what a mode does, and a dash for figures."""

    modes: TabularModes
    true: int
    about: str
    dash: Dash


@cache
def worlds() -> dict[str, World]:
    """Return the three worlds by name.

    >>> {name: world.modes.name(world.true) for name, world in worlds().items()}
    {'three levers': 'm0', 'prize or frog': 'prize left', 'bias grid': '(.8, .5)'}
    """
    of_levers = "its lever wins with .6, the others with .4; pulls it 9 times in 10"
    of_boxes = "the prize is in its box, shown 3 times in 4; opens it"
    of_arms = "two arms win with .2, .5 or .8 each; pulls the better one"
    return {
        "three levers": World(levers(), true=0, about=of_levers, dash="solid"),
        "prize or frog": World(prize_or_frog(RELIABILITY), true=0, about=of_boxes, dash="dash"),
        "bias grid": World(bias_grid(), true=7, about=of_arms, dash="dashdot"),
    }


def levers() -> TabularModes:
    """Return three modes: mode m pulls lever m with .9, and expects to win with .6, else .4.

    >>> levers().likelihoods(0, a=1, o=1)
    array([0.4, 0.6, 0.4])
    """
    good = np.eye(3, dtype=bool)
    wins = np.where(good, 0.6, 0.4)[:, None]
    return TabularModes(np.where(good, 0.9, 0.05)[:, None], np.stack([1.0 - wins, wins], axis=-1))


@cache
def naive(modes: TabularModes) -> TabularModes:
    """Multiply the likelihoods by P(a | m, x), for an agent that learns from its own actions.

    The control rule over this class is the naive mixture, in the compiled loop. Predictions and
    policies are those of `modes`.

    >>> naive(levers()).likelihoods(0, a=1, o=1).round(3)
    array([0.02, 0.54, 0.02])
    """
    copy = with_policy(modes, modes.policy)
    copy.by_mode = np.ascontiguousarray(np.moveaxis(modes.policy, 0, -1)[:, :, None] * copy.by_mode)
    return copy


def ruin_probability(k: int, steps: int) -> float:
    """Return the probability that the walk is k steps behind at some time up to `steps`.

    >>> ruin_probability(2, steps=2), round(9 * ruin_probability(2, steps=500), 9)
    (0.0625, 1.0)
    """
    # p[j]: probability of being j + 1 steps above the level, without having reached it before.
    p = np.zeros(steps + k + 1)
    p[k - 1], reached = 1.0, 0.0
    for _ in range(steps):
        reached += float(p[0]) * (1.0 - RELIABILITY)
        up, down = np.append(0.0, p[:-1]), np.append(p[1:], 0.0)
        p = RELIABILITY * up + (1.0 - RELIABILITY) * down
    return reached


def behind_by(delta: float) -> int:
    """Return the least k such that m* has less than δ of its prior weight when k steps behind.

    It is at least 1: before the first step m* has all of its prior weight, and δ < 1.

    >>> [behind_by(delta) for delta in (0.6, 0.3, 0.1)]
    [1, 2, 3]
    """
    odds = RELIABILITY / (1.0 - RELIABILITY)
    return max(1, math.floor(math.log(2.0 / delta - 1.0, odds)) + 1)


#: With fewer runs no claims are made.
FEWEST: Final = 200


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 4000
    steps: Annotated[int, Meta(ge=10, description="steps in a replica")] = 200


def times(settings: Settings) -> IntArray:
    """Return the stored steps: at most 51, evenly spaced from 0 to the last."""
    return np.unique(np.linspace(0, settings.steps, 51).round().astype(np.int64))


def run(settings: Settings, i: int) -> Columns:
    """Record the posterior of m* and its lowest value so far, divided by P(m*), at `times`."""
    columns = {}
    at, seed, steps = times(settings), settings.seed, settings.steps
    for (name, (modes, true, *_)), agent in product(worlds().items(), AGENTS):
        learned = naive(modes) if agent == "naive" else modes
        # One run, number i; only posteriors are needed, no divergences.
        found = simulate_divergences(learned, true, steps, 1, seed, at=at, against=[], first=i)
        columns[f"{name} {agent} low"] = found.low[0]
        columns[f"{name} {agent} posterior"] = found.posterior[0, :, true] / modes.prior[true]
    return columns


#: The values of δ in Ville's bound.
DELTAS: Final = (0.5, 0.2, 0.1, 0.05, 0.01)
#: δ of the shares shown in claims.
_SHARE_DELTA: Final = 0.1
#: δ of the λ shown in claims.
_LAMBDA_DELTA: Final = 0.05
#: λ above this counts as positive; Ville's inequality gives λ = δ, which is five times as much.
_MIN_LAMBDA: Final = _LAMBDA_DELTA / 5
#: Values of δ between the levels of prize or frog, 1, 2, 3 and 4 steps behind.
_RUIN_DELTAS: Final = (0.6, 0.3, 0.1, 0.05)
#: False-alarm rate of one share: three claims, each about at most three worlds, at several δ.
_FALSE_ALARM_RATE: Final = 1e-3 / (3 * 3 * len(DELTAS))


def lowest(columns: Columns) -> Lowest:
    """Return min_t P(m* | ·) / P(m*) of each run, by world and agent."""
    pairs = product(worlds(), AGENTS)
    return {(world, agent): columns[f"{world} {agent} low"][:, -1] for world, agent in pairs}


def floor(low: FloatArray, delta: float) -> float:
    """Return λ: in all but a share δ of runs, m* always keeps at least λ of its prior weight.

    With a uniform prior this is λ of the theorem: P(m* | ·) ≥ λ/|M|.

    >>> floor(np.arange(100) / 100, 0.05)
    0.05
    """
    # The summand 1e-9 makes up for rounding where δ n is a whole number.
    return float(np.sort(low)[int(np.floor(delta * len(low) + 1e-9))])


def _world_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Three worlds

    A mode is a hypothesis with its policy; all have the same prior. The rule learns from its
    observations, the naive agent also from its own actions.
    """
    about = {name: world[:3] for name, world in worlds().items()}
    return claims.class_rows("world | modes | true mode m* | what a mode predicts and does", about)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims: a λ > 0 exists, Ville's bound holds for the rule and fails if naive.

    In prize or frog the shares are also compared with the exact ones.
    """
    low = lowest(columns)
    floors = {world: floor(low[world, "rule"], _LAMBDA_DELTA) for world in worlds()}
    worst = min(floors, key=floors.__getitem__)
    yield Claim(
        "lower-bound",
        "the posterior of the true mode m*, one of |M|, stays above λ/|M| at all times in "
        f"{100 * (1 - _LAMBDA_DELTA):g} % of runs, for some λ > 0; λ in the worst world, {worst}",
        source="paper", expected="above 0", ours=floors[worst], holds=floors[worst] > _MIN_LAMBDA,
        reason=f"λ is the share of its prior 1/|M| that m* retains up to step {settings.steps}; "
        f"Ville's inequality gives λ ≥ {_LAMBDA_DELTA:g} for all times, whether divergences are "
        f"bounded or not; below {_MIN_LAMBDA:g} the claim would be refuted",
        place="section 4.3, theorem 2", threshold_origin="theory: by Ville's inequality at most "
        f"{_MIN_LAMBDA:g} of runs fall so low",
    )  # fmt: skip
    for world in worlds():
        yield _ville_claim(settings, world, low[world, "rule"])
    yield _ruin_claim(settings, low["prize or frog", "rule"])
    delta = _SHARE_DELTA
    for world in worlds():
        result = ville(low[world, "naive"], [delta])
        share, error = float(result.share[0]), float(result.error[0])
        limit = delta + float(bernstein(delta * (1.0 - delta), result.runs, _FALSE_ALARM_RATE))
        yield Claim(
            f"naive-{world.replace(' ', '-')}",
            f"{world}: for an agent that takes its own actions for evidence the true mode falls "
            f"below δ times its prior more often than the bound allows; δ = {_SHARE_DELTA:g}",
            source="ours", expected=f"above {_SHARE_DELTA:g}", ours=share, error=error,
            holds=share > limit, reason=f"chance alone would not go beyond {limit:.2g} (false "
            "alarms: 1 in 1000)", threshold_origin="theory: above Ville's bound by more than "
            "Bernstein's margin",
        )  # fmt: skip


def _ville_claim(settings: Settings, world: str, low: FloatArray) -> Claim:
    """Claim that P(m* | ·) ever falls below δ P(m*) in at most a share δ of runs, for every δ.

    `low` is the lowest P(m* | ·) / P(m*) of each run of the rule in this world.
    """
    result = ville(low, DELTAS)
    margin = bernstein(result.deltas * (1.0 - result.deltas), result.runs, _FALSE_ALARM_RATE)
    k = DELTAS.index(_SHARE_DELTA)
    ratio = float((result.share / result.deltas).max())
    return Claim(
        f"ville-{world.replace(' ', '-')}", f"{world}, control rule: the true mode ever falls "
        f"below δ times its prior in at most a share δ of the runs; here δ = {_SHARE_DELTA:g}",
        source="ours", expected=f"at most {_SHARE_DELTA:g}", ours=float(result.share[k]),
        error=float(result.error[k]), holds=bool((result.share <= result.deltas + margin).all()),
        reason=f"for δ = {', '.join(f'{d:g}' for d in DELTAS)} the share is at most {ratio:.2f} "
        f"times δ, in {result.runs} runs of {settings.steps} steps",
        threshold_origin="theory: Ville's inequality, Bernstein's margin",
    )  # fmt: skip


def _ruin_claim(settings: Settings, low: FloatArray) -> Claim:
    """Claim that in prize or frog the shares are those of a gambler's ruin, for several δ."""
    result = ville(low, _RUIN_DELTAS)
    exact = np.array([ruin_probability(behind_by(d), settings.steps) for d in _RUIN_DELTAS])
    margin = bernstein(exact * (1.0 - exact), result.runs, _FALSE_ALARM_RATE)
    k, gap = _RUIN_DELTAS.index(_SHARE_DELTA), np.abs(result.share - exact)
    z, is_within = (gap / np.sqrt(exact * (1.0 - exact) / result.runs)).max(), (gap <= margin).all()
    return Claim(
        "gamblers-ruin",
        "prize or frog: each box that is opened is a step for the true mode or against it, odds 3 "
        f"to 1, so its fall is a gambler's ruin; here δ = {_SHARE_DELTA:g}, three steps behind",
        source="ours", expected=float(exact[k]), ours=float(result.share[k]),
        error=float(result.error[k]), holds=bool(is_within), reason="1, 2, 3 and 4 steps behind: "
        f"at most z = {z:.1f} standard errors off, {'within' if is_within else 'not within'} what "
        "chance allows (false alarms: 1 in 1000)", threshold_origin="theory: exact shares, "
        "Bernstein's margin",
    )  # fmt: skip


def _share_table(settings: Settings, columns: Columns) -> claims.Rows:
    """How often the posterior of m* ever falls below δ times its prior

    Shares of {settings.runs} runs of {settings.steps} steps; at most δ for the rule, by Ville's
    inequality. λ: the share of its prior that m* retains at all times, in {retained:g} % of the
    runs.
    """
    rows = (
        (*pair, *ville(low, DELTAS).share.tolist(), claims.format_weight(floor(low, _LAMBDA_DELTA)))
        for pair, low in lowest(columns).items()
    )
    deltas = " | ".join(f"δ = {delta:g}" for delta in DELTAS)
    header = f"world | agent | {deltas} | λ at δ = {_LAMBDA_DELTA:g}"
    return claims.Rows(header, rows, {"retained": 100 * (1 - _LAMBDA_DELTA)})


_COLOURS: Final[Mapping[str, Colour]] = {"rule": "blue", "naive": "vermillion"}
#: The world of the last two panels.
_DRAWN_WORLD: Final = "three levers"


def _lower_bound_figure(settings: Settings, columns: Columns) -> Figure:
    """How rarely the true mode loses its weight

    m* is the true mode of a world, P(m*) its prior, P(m*|·) its posterior; three levers, prize
    or frog and bias grid are three worlds. (a) counts the runs in which P(m*|·) ever fell below δ
    P(m*). For the control rule that is at most a share δ of them, in every world: its lines stay
    below the dotted one. (b) shows the inverse: λ, the share of its prior that m* retained in all
    but a share δ of runs. (c) and (d) follow one world in time: the rule stays below the line for
    ever and identifies m*; for the naive agent, which takes its own actions for evidence, m* loses
    its weight for good in most runs.

    {settings.runs} runs of {settings.steps} steps; bands: two standard errors
    """
    low = lowest(columns)
    panels = [
        _share_panel(settings, low), _floor_panel(low), _time_panel(settings, columns),
        _posterior_panel(settings, columns),
    ]  # fmt: skip
    return Figure(panels)


def _style(world: str, agent: str) -> dict[str, Any]:
    """Return the style of a line: the colour shows the agent, the dash the world."""
    return {"colour": _COLOURS[agent], "dash": worlds()[world].dash, "group": world}


def _share_panel(settings: Settings, low: Lowest) -> Panel:
    """Draw the share of runs that ever fell below δ, against δ; exact for prize or frog."""
    # These δ avoid the levels that the walk of prize or frog can reach.
    delta = np.geomspace(0.0051, 0.99, 200)
    series = [
        share_of_runs(", ".join(pair), delta, runs[:, None] < delta, kind="step", **_style(*pair))
        for pair, runs in low.items()
    ]
    exact = np.array([ruin_probability(behind_by(float(d)), settings.steps) for d in delta])
    series.append(Series("prize or frog, exact", delta, exact, colour="ink", kind="step"))
    return Panel(
        "(a) How often does m* ever fall below δ of its prior?", "δ", "share of runs", series,
        [Guide("Ville's bound: δ", direction="diagonal", in_legend=False)], xscale="log",
        yscale="log", ylim=(0.001, 1.3), notes=["Dotted: Ville's bound, δ"],
    )  # fmt: skip


def _floor_panel(low: Lowest) -> Panel:
    """Draw λ against δ."""
    delta = np.linspace(0.01, 0.99, 99)
    floors = {pair: np.quantile(runs, delta, method="inverted_cdf") for pair, runs in low.items()}
    series = [Series(", ".join(pair), delta, y, **_style(*pair)) for pair, y in floors.items()]
    return Panel(
        "(b) What does m* retain, in all but a share δ of runs?", "δ", "λ, lowest P(m*|·) / P(m*) "
        "over time", series, [Guide("Ville's bound: λ = δ", direction="diagonal", in_legend=False)],
        xlim=(0.0, 1.0), ylim=(-0.02, 1.02), notes=["Dotted: Ville's bound, λ = δ"],
    )  # fmt: skip


def _time_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the share of runs that fell below one δ up to step t, in one world."""
    t = times(settings)
    fell = {agent: columns[f"{_DRAWN_WORLD} {agent} low"] < _SHARE_DELTA for agent in AGENTS}
    return Panel(
        f"(c) {_DRAWN_WORLD.capitalize()}: runs that ever fell below δ = {_SHARE_DELTA:g}",
        "step t", "share of runs, by step t",
        [share_of_runs(agent, t, fell[agent], colour=_COLOURS[agent]) for agent in AGENTS],
        [Guide(f"Ville's bound: δ = {_SHARE_DELTA:g}", _SHARE_DELTA)], ylim=(-0.02, 1.02),
        legend="upper left",
    )  # fmt: skip


def _posterior_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the mean posterior of m* in one world; the columns are relative to its prior."""
    world, t = worlds()[_DRAWN_WORLD], times(settings)
    prior = float(world.modes.prior[world.true])
    runs = {agent: columns[f"{_DRAWN_WORLD} {agent} posterior"] * prior for agent in AGENTS}
    return Panel(
        f"(d) {_DRAWN_WORLD.capitalize()}: belief in the true mode, on average", "step t",
        "mean of P(m*|·)",
        [Series.of_runs(agent, t, runs[agent], colour=_COLOURS[agent]) for agent in AGENTS],
        [Guide("prior", prior, dash="dash")], ylim=(-0.02, 1.02), legend="center right",
    )  # fmt: skip


experiment: Final = Experiment(
    "lower-bound",
    "how rarely the true mode ever loses its weight, and a deluded agent for comparison", Settings,
    quick=Settings(runs=1000, steps=100), full=Settings(runs=20_000), run=run,
    score=claims.Scored(_claims, _world_table, _share_table, fewest=FEWEST),
    figures=Figures(_lower_bound_figure),
)  # fmt: skip
