"""Divergence processes: how evidence piles up against a wrong mode, and under which policy.

    d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)        in nats
    P(m | âo_≤t) ≤ P(m)/P(m*) e^(-d_t(m*‖m))
    d_t = Σ_m' g_t(m'),  by the mode m' in charge;   g - G is a martingale in the world of m*

Some processes diverge and some stay; how fast they grow hangs on who acts; and g strays from
its mean G like √t, so no single band holds it for all times.

One replica: the rule among all modes and among two, and each policy applied alone.

    d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)

Everything is checked at every step and kept at a few times.

What the divergence processes of the controller do in the long run, without chance.

    rate       Σ_x μ(x) Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )      nats a step
    spread     σ² = Σ_x μ(x) Var( ln P(o | m*, x, a) / P(o | m, x, a) )          a ~ π, o ~ m*
    C_t        σ (z √t - 0.583),   z = Φ⁻¹(1 - δ/4)          sup_{τ≤t} |g - G| ≤ C_t in 1 - δ

g - G is a random walk with steps of variance σ². Where |W| of Brownian motion first passes c the
reflection principle gives P(sup_{τ≤t} |W_τ| > c) = 4 (1 - Φ(c/√t)), up to 1e-10 at δ = 5 %; a walk
overshoots its boundary by 0.583 σ on average.

The claims of `divergence`: what is exact has no tolerance, the rest what chance may do.

Means are compared at margins of Student's law, and the band at four standard errors: together
they raise a false alarm once in a thousand seeds. With fewer than FEWEST runs nothing is judged.

The figures of `divergence`: processes, policies and parts, bands.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.boundedness import Ensemble, simulate_divergences
from bayescontrol.convergence.core import core
from bayescontrol.convergence.rates import mean_rates
from bayescontrol.convergence.worlds import World
from bayescontrol.experiments.chance import FEW, compare, measured, told
from bayescontrol.experiments.theory.diagrams import chain, shares
from bayescontrol.experiments.theory.divergence_controller import (
    MODES,
    OUTSIDE,
    TRUE,
    alone,
    controller,
)
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.lab.chart import Chart, Colour, Dash, Guide, Panel, Series
from bayescontrol.lab.statistics.intervals import normal_quantile
from bayescontrol.problems.tabular import TabularModes

#: With fewer runs nothing is judged.
FEWEST: Final = 50
#: Whose policies are applied alone.
POLICIES: Final = (0, 1, 2)
#: They are compared on d_t(m*‖m3).
SHOWN: Final = 3
#: The class of two in which one process is taken apart.
PAIR: Final = (0, 2)
#: What rounding may do to a posterior or a sum, relative to its size.
ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Settings:
    """Size of the experiment."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[int, msgspec.Meta(ge=200, description="steps in a replica")] = 400


def times(settings: Settings) -> IntArray:
    """When the processes are looked at: at most 81 times, from 0 to the last step."""
    return np.unique(np.linspace(0, settings.steps, 81).round().astype(np.int64))


def far_times(settings: Settings) -> IntArray:
    """When the widest excursion so far is looked at: twice as late every four times."""
    back = np.arange(0, np.log2(settings.steps / 8), 0.25)
    return np.unique((settings.steps * 2.0**-back).round().astype(np.int64))


def whole(settings: Settings, modes: TabularModes, i: int) -> Ensemble:
    """Run i of the rule over these modes in the world of m*, at every step."""
    steps = settings.steps
    return simulate_divergences(modes, TRUE, steps, 1, settings.seed, at=range(steps), first=i)


def bound(modes: TabularModes, d: FloatArray, true: int = TRUE) -> FloatArray:
    """P(m)/P(m*) e^(-d_t(m*‖m)), as an array of the shape of d, modes last.

    >>> bound(controller(), np.zeros((1, 5)))
    array([[1., 1., 1., 1., 1.]])
    """
    out = np.empty(d.shape)
    for m, odds in enumerate((modes.prior / modes.prior[true]).tolist()):
        column = np.empty(d[..., m].size)
        kernels.divergence.bound(d[..., m].ravel(), odds, column)
        out[..., m] = column.reshape(d.shape[:-1])
    return out


def run(settings: Settings, i: int) -> Columns:
    """d_t, the posterior, what of them is checked, and how far g - G strayed."""
    when, far = times(settings), far_times(settings)
    modes = controller()
    rule, two = whole(settings, modes, i), whole(settings, controller(*PAIR), i)
    under = [whole(settings, alone(policy), i) for policy in POLICIES]
    own = under[TRUE]
    above = rule.posterior > bound(modes, rule.d) * (1.0 + ROUNDING)
    size = np.maximum(np.abs(rule.g).sum(2), 1.0)
    return {
        "d": rule.d[0, when],
        "posterior": rule.posterior[0, when],
        "violations": np.array(int(above.sum())),
        "unsplit": np.array(float((np.abs(rule.g.sum(2) - rule.d) / size).max())),
        "excess": (rule.g - rule.G)[0, -1],
        "under": np.stack([one.d[0, when, SHOWN] for one in under]),
        "g": own.g[0, when, TRUE, 1],
        "G": own.G[0, when, TRUE, 1],
        "far": own.sup[0, far, TRUE, 1],
        "far of two": two.sup[0, far, :, 1],
    }


#: The share of runs that may stray beyond a band.
DELTA: Final = 0.05
# -ζ(1/2)/√(2π): how far a random walk overshoots, in steps.
_OVERSHOOT: Final = 0.5826


@cache
def rate(policy: int, other: int) -> float:
    """The rate of d_t(m*‖m) for m = `other` while mode `policy` acts, in nats a step.

    >>> [round(rate(policy, other=3), 4) for policy in (0, 1, 2)]
    [0.0, 0.0236, 0.0811]
    """
    return float(mean_rates(World(controller(), TRUE), policy)[other])


@cache
def spread(policy: int, other: int) -> float:
    """σ of a step of g - G while mode `policy` acts, in nats.

    >>> round(spread(policy=0, other=1), 3)
    0.352
    """
    modes = controller()
    act, p, q = modes.policy[policy], modes.hypothesis[TRUE], modes.hypothesis[other]
    term = np.log(p / q)
    mean = np.einsum("xa,xao,xao->x", act, p, term)
    variance = np.einsum("xa,xao,xao->x", act, p, term**2) - mean**2
    return math.sqrt(float(shares(chain(modes, act, TRUE)) @ variance))


def band(t: npt.ArrayLike, policy: int, other: int) -> FloatArray:
    """C_t while mode `policy` acts all the time.

    >>> band([100, 400], policy=0, other=1).round(2)
    array([ 7.69, 15.58])
    """
    z = normal_quantile(1.0 - DELTA / 4.0)
    return np.asarray(spread(policy, other) * (z * np.sqrt(t) - _OVERSHOOT))


def band_error(t: float, policy: int, other: int, runs: int) -> float:
    """The standard error of C_t as the quantile of so many runs: √(δ (1-δ) / runs) / density.

    >>> round(band_error(400, policy=0, other=1, runs=1000), 2)
    0.38
    """
    z = normal_quantile(1.0 - DELTA / 4.0)
    density = 4.0 * math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    share = math.sqrt(DELTA * (1.0 - DELTA) / runs)
    return spread(policy, other) * math.sqrt(t) * share / density


#: Of one in a thousand, the share of each of two claims; what is left is the band's.
_ALARMS: Final = 1e-3 / 2.2
_VANISH: Final = 1e-3
_OTHERS: Final = range(1, len(MODES))
#: C up to t divided by C up to t/4 is above this unless one C holds for all times.
_BOUNDED: Final = 1.2
#: How far the band may be off: standard errors, and a share for steps that are few and not normal.
_BAND: Final = (4.0, 0.02)


def score(settings: Settings, columns: Columns) -> Score:
    """All claims, and the rates as a table."""
    growth = _growth(settings, columns)
    tables = _modes(), _table(growth)
    if len(growth) < FEWEST:
        return Score((), tables)
    claims = (
        _bound(settings, columns),
        _vanish(settings, columns),
        _stay(columns),
        _rates(growth),
        _adds_up(columns),
        _centred(columns),
        _root(settings, columns),
        _no_band(settings, columns),
    )
    return Score(claims, tables)


def _bound(settings: Settings, columns: Columns) -> Claim:
    number = int(columns["violations"].sum())
    cases = len(columns["violations"]) * (settings.steps + 1) * len(MODES)
    return Claim(
        "posterior-bound",
        "no posterior of a mode m is ever above P(m)/P(m*) e^(-d), d = d(m*‖m) the evidence for m* "
        "against m; violations in all runs, steps and modes",
        "paper", 0, number, None, number == 0,
        reason=f"{cases} comparisons, {ROUNDING:g} allowed for rounding; the ln that the paper "
        "prints before the bound is a slip",
        place="section 4.2", threshold_origin="paper: no violation, in any run",
    )  # fmt: skip


def _names(inside: bool) -> list[str]:
    kept = core(controller(), TRUE)
    return [MODES[m] for m in _OTHERS if (m in kept) is inside]


def _vanish(settings: Settings, columns: Columns) -> Claim:
    out = [MODES.index(name) for name in _names(inside=False)]
    weight, error = measured(columns["posterior"][:, -1, out].sum(-1))
    steps = max(n for n in OUTSIDE if n <= settings.steps)
    most = OUTSIDE[steps].mean + OUTSIDE[steps].bounded_margin(len(columns["posterior"]), _VANISH)
    return Claim(
        "two-diverge",
        f"the evidence against {' and '.join(_names(inside=False))} grows without end, so their "
        "posteriors vanish; mean of their weight at the end",
        "paper", "→ 0, from 0.4", weight, error, weight <= most,
        reason="" if weight <= most else f"more than {most:.2g} of it is left",
        place="section 4.2, figure 3",
        threshold_origin=f"pilot on seed 1000, {OUTSIDE[steps].runs:,} runs of {steps} steps: "
        f"{OUTSIDE[steps].mean:.2g}; at most {most:.2g} (false alarms: 1 in 1000)",
    )  # fmt: skip


def _stay(columns: Columns) -> Claim:
    kept = [MODES.index(name) for name in _names(inside=True)]
    rates = [rate(TRUE, m) for m in kept]
    weight = float(np.median(columns["posterior"][:, -1, kept].sum(-1)))
    return Claim(
        "two-stay",
        f"the evidence against {' and '.join(_names(inside=True))} stays bounded: once the others "
        "are out, nothing tells them from m*; its rate under the policy of m*, nats a step",
        "paper", 0.0, max(rates), None, max(rates) == 0.0,
        reason=f"in half of the runs they end with a weight of {weight:.2f} or more",
        place="section 4.2, figure 3", exact=True,
    )  # fmt: skip


def _growth(settings: Settings, columns: Columns) -> FloatArray:
    """d_t(m*‖m3) a step over the second half, when the start is forgotten; [run, policy]."""
    t = times(settings)
    half = t.size // 2
    d = columns["under"]
    return np.asarray((d[:, :, -1] - d[:, :, half]) / (t[-1] - t[half]))


def _rates(growth: FloatArray) -> Claim:
    exact = np.array([rate(policy, SHOWN) for policy in POLICIES])
    found = compare(growth, exact, _ALARMS)
    fastest = int(np.argmax(exact))
    return Claim(
        "rates-by-policy",
        f"how fast evidence against {MODES[SHOWN]} grows hangs on who acts: three policies, each "
        f"alone, three rates; shown: that of {MODES[POLICIES[fastest]]}, nats a step",
        "ours", float(exact[fastest]), *measured(growth[:, fastest]),
        found.holds and len(set(exact.round(6))) == len(exact),
        reason=found.words, threshold_origin="theory: exact rates, Student's margin",
    )  # fmt: skip


def _adds_up(columns: Columns) -> Claim:
    worst = float(columns["unsplit"].max())
    return Claim(
        "parts-add-up",
        "the evidence d is the sum of its parts g, each gathered while one mode was in charge (its "
        "policy acted); largest gap, relative",
        "paper", 0.0, float(f"{worst:.1g}"), None, worst <= ROUNDING,
        reason=f"{ROUNDING:g} allowed for rounding" if worst <= ROUNDING
        else "an identity: the program is wrong",
        place="section 4.2, figure 5", threshold_origin="paper: an identity, but for rounding",
    )  # fmt: skip


def _centred(columns: Columns) -> Claim:
    excess = columns["excess"][:, :, 1:]
    flat = excess.reshape(len(excess), -1)
    found = compare(flat, np.zeros(flat.shape[1]), _ALARMS)
    return Claim(
        "centred-on-its-mean",
        "G is g with every term replaced by its mean: g - G has mean zero, for every mode in "
        "charge and every other mode; shown: m* in charge, evidence against m1, at the end, nats",
        "ours", 0.0, *measured(excess[:, TRUE, 0]), found.holds, reason=found.words,
        threshold_origin="theory: mean zero, Student's margin",
    )  # fmt: skip


def _widths(settings: Settings, columns: Columns) -> tuple[FloatArray, int]:
    """C_t over the runs, and where t is a quarter of the steps."""
    C = np.quantile(columns["far"], 1.0 - DELTA, axis=0, method="inverted_cdf")
    return C, int(np.argmin(np.abs(far_times(settings) - settings.steps / 4)))


def _root(settings: Settings, columns: Columns) -> Claim:
    C, _ = _widths(settings, columns)
    expected = float(band(settings.steps, TRUE, 1))
    error = band_error(settings.steps, TRUE, 1, len(columns["far"]))
    off, (errors, share) = abs(float(C[-1]) - expected), _BAND
    return Claim(
        "band-grows-like-root-t",
        "C, the half-width of the band that holds |g - G| up to step t in 95 % of runs, is "
        f"σ (2.24 √t - 0.58), σ the spread of a term; here t = {settings.steps}, in nats",
        "ours", expected, float(C[-1]), error, off <= errors * error + share * expected,
        reason=f"m* in charge all the time; z = {off / error:.1f} standard errors off, up to "
        f"{errors:g} is chance, and {share:.0%} of C are for steps that are few",
        threshold_origin="theory: the quantile of a random walk, and its standard error",
    )  # fmt: skip


def _no_band(settings: Settings, columns: Columns) -> Claim:
    C, quarter = _widths(settings, columns)
    ratio, t = float(C[-1] / C[quarter]), (settings.steps, settings.steps / 4)
    expected = float(np.divide(*band(t, TRUE, 1)))
    error = expected * math.hypot(
        *(band_error(s, TRUE, 1, len(columns["far"])) / float(band(s, TRUE, 1)) for s in t)
    )
    return Claim(
        "no-band-for-all-times",
        "boundedness, which the theorems of the paper assume, would need one C that holds |g - G| "
        "at all times; here C grows: that up to step t, divided by that up to t/4",
        "ours", expected, ratio, error, ratio > _BOUNDED,
        reason="while m* acts, the terms of g - G are independent but for the room in which the "
        "agent stands, so g - G is a random walk: C doubles whenever t is four times as long. "
        "Nothing is lost: the posterior of m* is bounded from below without it (experiment "
        "lower-bound)",
        threshold_origin=f"theory: a bounded process has 1; {_BOUNDED} is "
        f"{(expected - _BOUNDED) / error:.1f} standard errors below a random walk",
    )  # fmt: skip


def _modes() -> Table:
    modes, kept = controller(), core(controller(), TRUE)
    levers = modes.labels.actions
    rows = []
    for m, name in enumerate(MODES):
        wins = [", ".join(f"{p:g}" for p in room) for room in modes.hypothesis[m, :, :, 1]]
        pulls = levers[int(np.argmax(modes.policy[m, 0]))]
        where = "inside" if m in kept else "outside"
        rows.append((name, f"the {pulls}", *wins, "the true mode" if m == TRUE else where))
    return Table(
        "The five modes",
        ("mode", "pulls", "P(win) in room 0", "P(win) in room 1", "core of m*"),
        tuple(rows),
        f"P(win) of the {', '.join(levers)} lever. A win leads to room 1, a loss to room 0: the "
        "room is where the agent stands. m* is true. The core of m* holds the modes that its own "
        "policy cannot tell from it.",
    )


def _table(growth: FloatArray) -> Table:
    rows = tuple(
        (MODES[policy], *(rate(policy, m) for m in _OTHERS), told(growth[:, k]))
        for k, policy in enumerate(POLICIES)
    )
    return Table(
        "How fast evidence d(m*‖m) grows against each mode, in nats a step, by who acts",
        ("who acts", *(f"{MODES[m]}, exact" for m in _OTHERS), f"{MODES[SHOWN]}, simulated"),
        rows,
        "d(m*‖m) is the sum of ln P(o|m*)/P(o|m) over what was observed. Simulated: second halves "
        f"of {len(growth)} runs, mean ± standard error; one number where all runs agree.",
    )


_COLOURS: Final[tuple[Colour, ...]] = ("ink", "vermillion", "orange", "blue", "green")
_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dot")
#: The runs that are drawn one by one.
_EXAMPLES: Final = (0, 1, 2)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Three figures."""
    note = f"{settings.runs} runs of {settings.steps} steps"
    return {
        "processes": Chart(
            "Evidence against four other modes",
            [_realisations(settings, columns), _posteriors(settings, columns)],
            "Five modes: m* is true; m1 and m2 are wrong about the lever that m* pulls, m3 and m4 "
            "only about the levers of m1 and m2. d(m*‖m) is the evidence for m* against m, the sum "
            "of ln P(o|m*)/P(o|m) over what was observed: a line on the left is one run of it. "
            "Against m1 and m2 it grows without end, so their posteriors (right) vanish. Against "
            "m3 and m4 it stays where it is, once nobody pulls the levers that would tell, and so "
            "do they.",
            columns=2,
            note=note,
        ),
        "policies": Chart(
            "One process, several policies",
            [_policies(settings, columns), _parts(settings)],
            "d(m*‖m) is the evidence for the true mode m* against m. Left: against m3 it grows "
            "fast, slowly or not at all, depending on which mode acts. Right: the rule lets modes "
            "take turns. Each step of d counts for the mode in charge, whose policy acts; the "
            "parts g add up to d, and each wanders about its mean G. In this run luck spoke for "
            "m2 at first, and so it stayed in charge for long.",
            columns=2,
            note=note,
        ),
        "bands": Chart(
            "How far evidence strays from its mean",
            [_around_mean(settings, columns), _widths_panel(settings, columns)],
            "g is the evidence that is gathered while a mode is in charge, G its mean. Left: runs "
            "of g against m1 while m* acts, around G. Right: C, how far from G a band must reach "
            "to hold 95 % of the runs up to step t; σ is the spread of a single step of g. While "
            "m* acts C grows like √t, so no band holds for ever; for m2, which the rule soon draws "
            "no more, it levels off.",
            columns=2,
            note=note,
        ),
    }


def spread_of_runs(label: str, x: Any, runs: FloatArray, share: float = 0.9, **look: Any) -> Series:
    """The median over the first axis, the runs, with a band that holds a share of them.

    >>> spread_of_runs("d", np.arange(1), np.arange(21.0)[:, None]).high
    array([19.])
    """
    levels = ((1.0 - share) / 2.0, 0.5, (1.0 + share) / 2.0)
    low, middle, high = np.quantile(runs, levels, axis=0, method="inverted_cdf")
    return Series(label, x, middle, low, high, **look)


def _realisations(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(settings.steps + 1)
    series = []
    for i, dash in zip(_EXAMPLES, _DASHES, strict=True):
        d = whole(settings, controller(), i).d[0]
        series += [
            Series(f"{MODES[m]}", t, d[:, m], colour=_COLOURS[m], dash=dash, in_legend=i == 0,
                   group=MODES[m])
            for m in range(1, len(MODES))
        ]  # fmt: skip
    level = float(np.quantile(columns["d"][:, :, 3:].max((1, 2)), 0.95))
    return Panel(
        "(a) Two diverge, two stay",
        "step t",
        "evidence against the mode, d(m*‖m) [nats]",
        series,
        [Guide("m3, m4 stay below, in 95 % of runs", level, colour="ink", dash="dot")],
        notes=["Solid, dashed, dotted: three runs of the rule"],
        legend="upper left",
    )


def _posteriors(settings: Settings, columns: Columns) -> Panel:
    v = columns["posterior"]
    return Panel(
        "(b) So two posteriors vanish",
        "step t",
        "posterior probability of the mode",
        [
            spread_of_runs(MODES[m], times(settings), v[:, :, m], share=0.5, colour=_COLOURS[m])
            for m in range(1, len(MODES))
        ],
        ylim=(0.0, 0.65),
        notes=["Lines: medians. Bands: half of the runs"],
        legend="upper right",
        legend_columns=2,
    )


def _policies(settings: Settings, columns: Columns) -> Panel:
    t = times(settings)
    medians, lines = [], []
    for k, policy in enumerate(POLICIES):
        label = f"{MODES[policy]} acts: {rate(policy, SHOWN):.3f} nats a step"
        colour = ("blue", "vermillion", "orange")[k]
        medians.append(spread_of_runs(label, t, columns["under"][:, k], colour=colour))
        lines.append(Series("exact rates", t, rate(policy, SHOWN) * t, colour="ink", dash="dot",
                            in_legend=k == 0))  # fmt: skip
    return Panel(
        f"(a) Evidence against {MODES[SHOWN]}, by who acts",
        "step t",
        f"d(m*‖{MODES[SHOWN]}) [nats]",
        [*medians, *lines],
        notes=["Lines: medians. Bands: nine runs in ten"],
        legend="upper left",
    )


def _parts(settings: Settings) -> Panel:
    """Of a few runs, the one in which the other mode was in charge for the longest time."""
    seen = [whole(settings, controller(*PAIR), i) for i in range(8)]
    run = max(seen, key=lambda one: float(one.G[0, -1, 1, 1]))
    # Later on, m* alone is in charge and the parts lie far apart.
    other, t = MODES[PAIR[1]], np.arange(min(settings.steps, 400) + 1)
    series = [Series("d, the whole", t, run.d[0, t, 1], colour="ink")]
    for m, name, colour in ((0, MODES[TRUE], "blue"), (1, other, "vermillion")):
        look: Any = {"colour": colour}
        series += [
            Series(f"g, {name} in charge", t, run.g[0, t, m, 1], **look),
            Series("G, its mean", t, run.G[0, t, m, 1], dash="dash", group=f"G, {name}", **look),
        ]
    return Panel(
        "(b) The parts of one process",
        "step t",
        f"d(m*‖{other}) and its parts [nats]",
        series,
        notes=[f"Of eight runs over m* and {other}, that with {other} in charge for longest"],
        legend="upper left",
    )


def _around_mean(settings: Settings, columns: Columns) -> Panel:
    t, every = times(settings), np.arange(settings.steps + 1)
    mean = rate(TRUE, 1) * t
    off = columns["g"] - columns["G"]
    low, high = mean + np.quantile(off, (0.05, 0.95), axis=0)
    lower, upper = mean + np.quantile(off, (0.25, 0.75), axis=0)
    series = [
        Series("G, the mean", t, mean, low, high, colour="blue"),
        Series("half of the runs", t, mean, lower, upper, colour="blue", in_legend=False),
    ]
    for i, dash in zip(_EXAMPLES, _DASHES, strict=True):
        g = whole(settings, alone(TRUE), i).g[0, :, TRUE, 1]
        series.append(Series("g, three runs", every, g, colour="vermillion", dash=dash,
                             in_legend=i == 0))  # fmt: skip
    return Panel(
        "(a) Runs within bands around the mean",
        "step t",
        "g(m*) of d(m*‖m1), m* acts alone [nats]",
        series,
        notes=["Bands hold half of the runs and nine in ten"],
        legend="upper left",
    )


def _widths_panel(settings: Settings, columns: Columns) -> Panel:
    t = far_times(settings)
    wide = [columns["far"], columns["far of two"][:, :, 1]]
    always, drawn = (np.quantile(far, 1 - DELTA, axis=0, method="inverted_cdf") for far in wide)
    return Panel(
        "(b) The band that holds 95 % of runs up to step t",
        "step t",
        "C: sup |g − G| up to t [nats]",
        [
            Series("m* in charge, always", t, always, colour="blue", marker="circle"),
            Series(
                f"{MODES[PAIR[1]]} in charge, when drawn",
                t,
                drawn,
                colour="vermillion",
                marker="square",
            ),
            Series("σ (2.24 √t − 0.58)", t, band(t, TRUE, 1), colour="ink", dash="dot"),
        ],
        xscale="log",
        yscale="log",
        legend="upper left",
    )


experiment: Final = Experiment(
    name="divergence",
    summary="evidence against wrong modes: what diverges, what stays, under which policy, "
    "and how far it strays from its mean",
    settings=Settings,
    quick=Settings(runs=300),
    full=Settings(runs=2000, steps=1600),
    run=run,
    score=score,
    figures=draw,
)
