"""Divergence processes: how evidence accumulates against a wrong mode, and under which policy.

    d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)        in nats
    P(m | âo_≤t) ≤ P(m)/P(m*) e^(-d_t(m*‖m))
    d_t = Σ_m' g_t(m'),  by the mode m' in charge;   g - G is a martingale in the world of m*

Some processes diverge and some stay bounded. Their growth rate depends on who acts. g deviates
from its mean G like √t, so no single band contains it for all times. Without simulation:

    rate       Σ_x μ(x) Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )      nats per step
    variance   σ² = Σ_x μ(x) Var( ln P(o | m*, x, a) / P(o | m, x, a) )          a ~ π, o ~ m*
    C_t        σ (z √t - 0.583),   z = Φ⁻¹(1 - δ/4)          sup_{τ≤t} |g - G| ≤ C_t in 1 - δ

g - G is a random walk with steps of variance σ². The reflection principle for Brownian motion gives
P(sup_{τ≤t} |W_τ| > c) = 4 (1 - Φ(c/√t)), up to 1e-10 at δ = 5 %; a random walk overshoots the
boundary by 0.583 σ on average.

A replica runs the rule over all modes and over two, and each policy by itself. Everything is
checked at every step and stored at a few. Means are tested at Student's margins and the band at
four standard errors: the false-alarm rate of all claims together is 1e-3.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import TabularModes, kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray
from bayescontrol.convergence import core, simulate_divergences
from bayescontrol.convergence.boundedness import Ensemble
from bayescontrol.convergence.core import World, mean_rates
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Dash, Guide, Panel, Series
from bayescontrol.statistics.intervals import normal_quantile
from bayescontrol_paper import _claims as claims
from bayescontrol_paper import _five_modes as five
from bayescontrol_paper._diagrams import markov_chain, stationary_shares
from bayescontrol_paper._figures import Figure, Figures, spread_of_runs
from bayescontrol_paper._five_modes import COLOURS, MODES, TRUE, five_modes

#: With fewer runs no claims are made.
FEWEST: Final = 50
#: The modes whose policies are also applied by themselves.
POLICIES: Final = (0, 1, 2)
#: The policies are compared on d_t(m*‖m3).
SHOWN: Final = 3
#: The class of two modes in which one process is split into its parts.
PAIR: Final = (0, 2)


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=200, description="steps in a replica")] = 400


def times(settings: Settings) -> IntArray:
    """Return the stored steps: at most 81, evenly spaced from 0 to the last."""
    return np.unique(np.linspace(0, settings.steps, 81).round().astype(np.int64))


def excursion_times(settings: Settings) -> IntArray:
    """Return the steps at which the largest excursion so far is stored.

    There are four per octave, from the last step back to about step 8.
    """
    octaves_back = np.arange(0, np.log2(settings.steps / 8), 0.25)
    return np.unique((settings.steps * 2.0**-octaves_back).round().astype(np.int64))


def simulate_run(settings: Settings, modes: TabularModes, i: int) -> Ensemble:
    """Simulate run i of the rule over these modes in the world of m*, and record every step."""
    steps = settings.steps
    return simulate_divergences(modes, TRUE, steps, 1, settings.seed, at=range(steps), first=i)


def bound(modes: TabularModes, d: FloatArray, true: int = TRUE) -> FloatArray:
    """Return P(m)/P(m*) e^(-d_t(m*‖m)); the modes are the last axis of d."""
    out = np.empty(d.shape)
    for m, odds in enumerate((modes.prior / modes.prior[true]).tolist()):
        column = np.empty(d[..., m].size)
        kernels.divergence.bound(d[..., m].ravel(), odds, column)
        out[..., m] = column.reshape(d.shape[:-1])
    return out


def run(settings: Settings, i: int) -> Columns:
    """Record d_t, the posterior, violations of the bound, and the excursions of g - G.

    An ensemble of one run has `d` as [0, t, m], and `g`, `G` and `sup` |g - G| as [0, t, m', m] by
    the mode m' in charge. The columns of the rule: `d`, `posterior`, `violations`, `unsplit` (the
    largest relative difference of d and Σ g) and `excess` (g - G at the end). `under` is d(m*‖m3)
    under each policy. `g`, `G` and `far` (sup) are of d(m*‖m1) while m* acts; `far of two` is that
    of the rule over two modes.
    """
    stored, excursions_at = times(settings), excursion_times(settings)
    modes = five_modes()
    rule, two = simulate_run(settings, modes, i), simulate_run(settings, five_modes(*PAIR), i)
    by_policy = [simulate_run(settings, five.under_policy(policy), i) for policy in POLICIES]
    true = by_policy[TRUE]
    is_above = rule.posterior > bound(modes, rule.d) * (1.0 + claims.ROUNDING)
    size = np.maximum(np.abs(rule.g).sum(2), 1.0)  # rounding is relative to it
    return {
        "d": rule.d[0, stored],
        "posterior": rule.posterior[0, stored],
        "violations": np.array(int(is_above.sum())),
        "unsplit": np.array(float((np.abs(rule.g.sum(2) - rule.d) / size).max())),
        "excess": (rule.g - rule.G)[0, -1],
        "under": np.stack([ensemble.d[0, stored, SHOWN] for ensemble in by_policy]),
        "g": true.g[0, stored, TRUE, 1],
        "G": true.G[0, stored, TRUE, 1],
        "far": true.sup[0, excursions_at, TRUE, 1],
        "far of two": two.sup[0, excursions_at, :, 1],
    }


#: The share of runs that may leave a band.
DELTA: Final = 0.05
#: -ζ(1/2)/√(2π): mean overshoot of a random walk over a boundary, in units of σ.
_OVERSHOOT: Final = 0.5826


@cache
def rate(policy: int, other: int) -> float:
    """Return the rate of d_t(m*‖m) for m = `other` while mode `policy` acts, in nats per step.

    >>> [round(rate(policy, other=3), 4) for policy in (0, 1, 2)]
    [0.0, 0.0236, 0.0811]
    """
    return float(mean_rates(World(five_modes(), TRUE), policy)[other])


@cache
def step_std(policy: int, other: int) -> float:
    """Return σ, the standard deviation of one step of g - G while mode `policy` acts, in nats."""
    modes = five_modes()
    policy_table, p, q = modes.policy[policy], modes.hypothesis[TRUE], modes.hypothesis[other]
    log_ratio = np.log(p / q)  # [x, a, o]
    mean = np.einsum("xa,xao,xao->x", policy_table, p, log_ratio)
    variance = np.einsum("xa,xao,xao->x", policy_table, p, log_ratio**2) - mean**2
    return math.sqrt(float(stationary_shares(markov_chain(modes, policy_table, TRUE)) @ variance))


def band(t: ArrayLike, policy: int, other: int) -> FloatArray:
    """Return C_t of d_t(m*‖m), m = `other`, while mode `policy` acts at every step.

    >>> band([100, 400], policy=0, other=1).round(2)
    array([ 7.69, 15.58])
    """
    z = normal_quantile(1.0 - DELTA / 4.0)
    return np.asarray(step_std(policy, other) * (z * np.sqrt(t) - _OVERSHOOT))


def band_error(t: float, policy: int, other: int, runs: int) -> float:
    """Return the standard error of C_t, a sample quantile: √(δ (1-δ) / runs) / density."""
    z = normal_quantile(1.0 - DELTA / 4.0)
    # The density of sup |W_τ| / √t at z, by the reflection principle.
    density = 4.0 * math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    share_error = math.sqrt(DELTA * (1.0 - DELTA) / runs)
    return step_std(policy, other) * math.sqrt(t) * share_error / density


#: False-alarm rate of each of two claims. The rest of 1e-3 is for the band: four standard errors
#: are exceeded with probability 6e-5.
_FALSE_ALARM_RATE: Final = 1e-3 / 2.2
#: All modes except m*.
_OTHERS: Final = range(1, len(MODES))
#: A ratio of C up to t to C up to t/4 above this shows that no C holds for all times.
_BOUNDED_RATIO: Final = 1.2
#: Allowed error of the band: in standard errors, and as a share of C because the steps are few.
_BAND_ERRORS: Final = 4.0
_BAND_SHARE: Final = 0.02


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about the bound, the modes inside and outside the core, parts and bands."""
    n = len(columns["violations"])
    members = core(five_modes(), TRUE)
    inside = [m for m in _OTHERS if m in members]
    outside = [m for m in _OTHERS if m not in members]
    stay, vanish = (" and ".join(MODES[m] for m in group) for group in (inside, outside))
    yield claims.equality(
        "posterior-bound", "no posterior of a mode m is ever above P(m)/P(m*) e^(-d), where d = "
        "d(m*‖m) is the evidence for m* against m; violations in all runs, steps and modes",
        expected=0, ours=int(columns["violations"].sum()),
        reason=f"{n * (settings.steps + 1) * len(MODES)} comparisons, {claims.ROUNDING:g} allowed "
        "for rounding; the ln that the paper prints before the bound is a misprint",
        place="section 4.2", origin="paper: no violation, in any run",
    )  # fmt: skip
    pilot, pilot_text = claims.longest_pilot(five.OUTSIDE, settings.steps)
    yield claims.vanishes(
        "two-diverge", f"the evidence against {vanish} grows without end, so their posteriors "
        "vanish; mean of their weight at the end",
        start=0.4, values=columns["posterior"][:, -1, outside].sum(-1), pilot=pilot,
        pilot_text=f"{pilot_text}: {pilot.mean:.2g}", place="section 4.2, figure 3",
    )  # fmt: skip
    weight_inside = float(np.median(columns["posterior"][:, -1, inside].sum(-1)))
    yield claims.equality(
        "two-stay", f"the evidence against {stay} stays bounded: once the others are refuted, "
        "nothing tells them from m*; its rate under the policy of m*, nats per step",
        expected=0.0, ours=max(rate(TRUE, m) for m in inside), reason="in half of the runs they "
        f"end with a weight of {weight_inside:.2f} or more", place="section 4.2, figure 3",
        exact=True,
    )  # fmt: skip
    yield from _part_claims(settings, columns)
    yield from _band_claims(settings, columns)


def _growth(settings: Settings, columns: Columns) -> FloatArray:
    """Return the growth of d_t(m*‖m3) per step over the second half, as [run, policy]."""
    t, d = times(settings), columns["under"]
    half = t.size // 2
    return np.asarray((d[:, :, -1] - d[:, :, half]) / (t[-1] - t[half]))


def _part_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about growth rates, and about the parts g and their means G."""
    growth, exact = _growth(settings, columns), np.array([rate(p, SHOWN) for p in POLICIES])
    fastest = int(np.argmax(exact))
    yield claims.means_claim(
        "rates-by-policy",
        f"the growth rate of evidence against {MODES[SHOWN]} depends on who acts: three policies, "
        f"three rates; shown: that of {MODES[POLICIES[fastest]]}, nats per step",
        runs=growth, expected=exact, false_alarm_rate=_FALSE_ALARM_RATE, shown=fastest,
        also=len(set(exact.round(6))) == len(exact),
    )  # fmt: skip
    worst = float(columns["unsplit"].max())
    yield Claim(
        "parts-add-up", "the evidence d is the sum of its parts g, each collected while one mode "
        "was in charge (its policy acted); largest relative gap",
        source="paper", expected=0.0, ours=float(f"{worst:.1g}"), holds=worst <= claims.ROUNDING,
        reason=f"{claims.ROUNDING:g} allowed for rounding" if worst <= claims.ROUNDING
        else "this is an identity: the program has a defect", place="section 4.2, figure 5",
        threshold_origin="paper: an identity, up to rounding",
    )  # fmt: skip
    # [run, mode in charge, other mode], without m* as the other mode: there g = G = 0.
    excess = columns["excess"][:, :, 1:].reshape(len(growth), -1)
    yield claims.means_claim(
        "centred-on-its-mean",
        "G is g with every term replaced by its mean: g - G has mean zero, for every mode in "
        "charge and every other mode; shown: m* in charge, evidence against m1, at the end, nats",
        runs=excess, expected=np.zeros(excess.shape[1]), false_alarm_rate=_FALSE_ALARM_RATE,
    )  # fmt: skip


def _widths(far: FloatArray) -> FloatArray:
    """Return C_t: the 1 - δ quantile over the runs of the largest excursion far[run, t]."""
    return np.asarray(np.quantile(far, 1.0 - DELTA, axis=0, method="inverted_cdf"))


def _band_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about C while m* acts: its value after all steps, and its growth."""
    C, runs = _widths(columns["far"]), len(columns["far"])
    steps, quarter_steps = settings.steps, settings.steps / 4
    quarter = int(np.argmin(np.abs(excursion_times(settings) - quarter_steps)))  # its index in C
    width, quarter_width = (float(band(t, TRUE, 1)) for t in (steps, quarter_steps))
    width_error, quarter_error = (band_error(t, TRUE, 1, runs) for t in (steps, quarter_steps))
    gap = abs(float(C[-1]) - width)
    allowed = _BAND_ERRORS * width_error + _BAND_SHARE * width
    yield Claim(
        "band-grows-like-root-t",
        "C, the half-width of the band that contains |g - G| up to step t in 95 % of runs, is σ "
        f"(2.24 √t - 0.58), where σ is the spread of a term; here t = {settings.steps}, in nats",
        source="ours", expected=width, ours=float(C[-1]), error=width_error, holds=gap <= allowed,
        reason=f"m* is always in charge; z = {gap / width_error:.1f} standard errors off; allowed "
        f"are {_BAND_ERRORS:g}, and {_BAND_SHARE:.0%} of C because the steps are few",
        threshold_origin="theory: the quantile of a random walk, and its standard error",
    )  # fmt: skip
    ratio, growth = float(C[-1] / C[quarter]), width / quarter_width
    growth_error = growth * math.hypot(width_error / width, quarter_error / quarter_width)
    yield Claim(
        "no-band-for-all-times", "boundedness, which the theorems of the paper assume, would need "
        "one C for all times; here C grows: C up to step t, divided by C up to t/4",
        source="ours", expected=growth, ours=ratio, error=growth_error,
        holds=ratio > _BOUNDED_RATIO, reason="while m* acts, the terms of g - G are independent "
        "given the room, so g - G is a random walk: C doubles when t is multiplied by four. The "
        "posterior of m* is bounded from below without boundedness (experiment lower-bound)",
        threshold_origin=f"theory: a bounded process has 1; {_BOUNDED_RATIO} is "
        f"{(growth - _BOUNDED_RATIO) / growth_error:.1f} standard errors below a random walk",
    )  # fmt: skip


def _mode_table(settings: Settings, columns: Columns) -> claims.Rows:
    """The five modes

    P(win) of the {levers} lever. A win leads to room 1, a loss to room 0. m* is true. The core of
    m*: the modes that the policy of m* cannot tell from it.
    """
    modes, members = five_modes(), core(five_modes(), TRUE)
    levers = modes.labels.actions
    rows = []
    for m, name in enumerate(MODES):
        wins = [", ".join(f"{p:g}" for p in room) for room in modes.hypothesis[m, :, :, 1]]
        pulls = levers[int(np.argmax(modes.policy[m, 0]))]  # the same lever in both rooms
        where = "inside" if m in members else "outside"
        rows.append((name, f"the {pulls}", *wins, "the true mode" if m == TRUE else where))
    header = "mode | pulls | P(win) in room 0 | P(win) in room 1 | core of m*"
    return claims.Rows(header, rows, {"levers": ", ".join(levers)})


def _rate_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Growth rate of the evidence d(m*‖m) against each mode, in nats per step, by who acts

    d(m*‖m) is the sum of ln P(o|m*)/P(o|m) over the observations. Simulated: second halves of
    {runs} runs, mean ± standard error; one number if all runs agree.
    """
    growth = _growth(settings, columns)
    exact = " | ".join(f"{MODES[m]}, exact" for m in _OTHERS)
    yield f"who acts | {exact} | {MODES[SHOWN]}, simulated"
    for k, policy in enumerate(POLICIES):
        yield MODES[policy], *(rate(policy, m) for m in _OTHERS), claims.format_mean(growth[:, k])


_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dot")
#: The runs that are drawn individually.
_EXAMPLE_RUNS: Final = (0, 1, 2)


def _processes_figure(settings: Settings, columns: Columns) -> Figure:
    """Evidence against four other modes

    Five modes: m* is true; m1 and m2 are wrong about the lever that m* pulls, m3 and m4 only
    about the levers of m1 and m2. d(m*‖m) is the evidence for m* against m, the sum of ln
    P(o|m*)/P(o|m) over the observations; a line in (a) is one run. Against m1 and m2 it grows
    without end, so their posteriors vanish, see (b). Against m3 and m4 it stops growing once nobody
    pulls the levers that would refute them, and their posteriors stay.

    {settings.runs} runs of {settings.steps} steps
    """
    panels = [_evidence_panel(settings, columns), _posterior_panel(settings, columns)]
    return Figure(panels, paper={3: "here (a)"})


def _policies_figure(settings: Settings, columns: Columns) -> Figure:
    """One process, several policies

    d(m*‖m) is the evidence for the true mode m* against m. (a) Against m3 it grows fast, slowly
    or not at all, depending on which mode acts. (b) Under the rule the modes take turns. Each step
    of d counts for the mode in charge, whose policy acts; the parts g add up to d, and each
    fluctuates about its mean G. In this run the first observations favoured m2, so it stayed in
    charge for long.

    {settings.runs} runs of {settings.steps} steps
    """
    panels = [_policy_panel(settings, columns), _parts_panel(settings)]
    return Figure(panels, paper={4: "here (a)", 5: "here (b)"})


def _bands_figure(settings: Settings, columns: Columns) -> Figure:
    """How far evidence deviates from its mean

    g is the evidence collected while a mode is in charge, G its mean. (a) Runs of g against m1
    while m* acts, around G. (b) C, the half-width of a band around G that contains 95 % of the runs
    up to step t; σ is the spread of a single step of g. While m* acts, C grows like √t, so no band
    is wide enough for all times; for m2, which the rule soon stops drawing, it levels off.

    {settings.runs} runs of {settings.steps} steps
    """
    panels = [_mean_panel(settings, columns), _widths_panel(settings, columns)]
    return Figure(panels, paper={6: "here (a)"})


def _evidence_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw d of three runs of the rule, and a level below which m3 and m4 stay."""
    t = np.arange(settings.steps + 1)
    series = []
    for i, dash in zip(_EXAMPLE_RUNS, _DASHES, strict=True):
        d = simulate_run(settings, five_modes(), i).d[0]
        style: Any = {"dash": dash, "in_legend": i == 0}
        series += [Series(MODES[m], t, d[:, m], colour=COLOURS[m], **style) for m in _OTHERS]
    level = float(np.quantile(columns["d"][:, :, 3:].max((1, 2)), 0.95))
    return Panel(
        "(a) Two diverge, two stay", "step t", "evidence d(m*‖m) [nats]", series,
        [Guide("m3, m4 stay below, in 95 % of runs", level, colour="ink", dash="dot")],
        notes=["Solid, dashed, dotted: three runs of the rule"], legend="upper left",
    )  # fmt: skip


def _posterior_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the posteriors of the wrong modes: medians, and half of the runs."""
    v = columns["posterior"]
    return Panel(
        "(b) Two posteriors vanish", "step t", "posterior probability of the mode",
        [
            spread_of_runs(MODES[m], times(settings), v[:, :, m], share=0.5, colour=COLOURS[m])
            for m in _OTHERS
        ],
        ylim=(0.0, 0.65), notes=["Lines: medians. Bands: half of the runs"], legend="upper right",
        legend_columns=2,
    )  # fmt: skip


def _policy_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw d(m*‖m3) while each of three policies acts, with the exact rates."""
    t = times(settings)
    medians, lines = [], []
    for k, policy in enumerate(POLICIES):
        label = f"{MODES[policy]} acts: {rate(policy, SHOWN):.3f} nats per step"
        colour = ("blue", "vermillion", "orange")[k]
        medians.append(spread_of_runs(label, t, columns["under"][:, k], colour=colour))
        style: Any = {"colour": "ink", "dash": "dot", "in_legend": k == 0}
        lines.append(Series("exact rates", t, rate(policy, SHOWN) * t, **style))
    return Panel(
        f"(a) Evidence against {MODES[SHOWN]}, by who acts", "step t",
        f"d(m*‖{MODES[SHOWN]}) [nats]", [*medians, *lines],
        notes=["Lines: medians. Bands: 90 % of the runs"], legend="upper left",
    )  # fmt: skip


def _parts_panel(settings: Settings) -> Panel:
    """Draw the run, of eight, in which the other mode was in charge for the longest time."""
    runs = [simulate_run(settings, five_modes(*PAIR), i) for i in range(8)]
    # G of m2 in charge grows with every step in which m2 acts.
    run = max(runs, key=lambda ensemble: float(ensemble.G[0, -1, 1, 1]))
    # Later only m* is in charge, and the parts lie far apart.
    other, t = MODES[PAIR[1]], np.arange(min(settings.steps, 400) + 1)
    series = [Series("d, the whole", t, run.d[0, t, 1], colour="ink")]
    for m, name, colour in ((0, MODES[TRUE], "blue"), (1, other, "vermillion")):
        style: Any = {"colour": colour}
        series += [
            Series(f"g, {name} in charge", t, run.g[0, t, m, 1], **style),
            Series(f"G, {name} in charge", t, run.G[0, t, m, 1], dash="dash", **style),
        ]
    return Panel(
        "(b) The parts of one process", "step t", f"d(m*‖{other}) and its parts [nats]", series,
        notes=[f"The run, of eight over m* and {other}, with {other} in charge for longest"],
        legend="upper left",
    )  # fmt: skip


def _mean_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw g of three runs while m* acts, and bands around its mean G."""
    t, all_steps = times(settings), np.arange(settings.steps + 1)
    mean, deviation = rate(TRUE, 1) * t, columns["g"] - columns["G"]
    low, lower, upper, high = mean + np.quantile(deviation, (0.05, 0.25, 0.75, 0.95), axis=0)
    series = [
        Series("G, the mean", t, mean, low, high, colour="blue"),
        Series("half of the runs", t, mean, lower, upper, colour="blue", in_legend=False),
    ]
    for i, dash in zip(_EXAMPLE_RUNS, _DASHES, strict=True):
        g = simulate_run(settings, five.under_policy(TRUE), i).g[0, :, TRUE, 1]
        style: Any = {"colour": "vermillion", "dash": dash, "in_legend": i == 0}
        series.append(Series("g, three runs", all_steps, g, **style))
    return Panel(
        "(a) Runs within bands around the mean", "step t", "g(m*) of d(m*‖m1), only m* acts [nats]",
        series, notes=["Bands contain 50 % and 90 % of the runs"], legend="upper left",
    )  # fmt: skip


def _widths_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw C against t: m* always in charge, m2 in charge when drawn, and the theory."""
    t = excursion_times(settings)
    always, drawn = _widths(columns["far"]), _widths(columns["far of two"][:, :, 1])
    other = f"{MODES[PAIR[1]]} in charge, when drawn"
    return Panel(
        "(b) The band that contains 95 % of runs up to step t", "step t",
        "C: sup |g − G| up to t [nats]",
        [
            Series("m* in charge, always", t, always, colour="blue", marker="circle"),
            Series(other, t, drawn, colour="vermillion", marker="square"),
            Series("σ (2.24 √t − 0.58)", t, band(t, TRUE, 1), colour="ink", dash="dot"),
        ],
        xscale="log", yscale="log", legend="upper left",
    )  # fmt: skip


experiment: Final = Experiment(
    "divergence",
    "evidence against wrong modes: which processes diverge, under which policy, "
    "and how far they deviate from their mean",
    Settings, quick=Settings(runs=240), full=Settings(runs=2000, steps=1600), run=run,
    score=claims.Scored(_claims, _mode_table, _rate_table, fewest=FEWEST),
    figures=Figures(_processes_figure, _policies_figure, _bands_figure),
)  # fmt: skip
