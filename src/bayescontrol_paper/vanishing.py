"""Vanishing posteriors: modes outside the core lose all weight; inside, it depends.

    m ∉ [m*]   ⇒   P(m | âo_≤t) → 0 almost surely,   and never above P(m)/P(m*) e^(-d_t(m*‖m))

Outside the core weights fall exponentially. Inside, a mode that acts as m* does may keep its
weight for ever. A mode that acts differently may be refuted by its own policy, but slowly: the
smaller its weight, the less often it acts, and the less is learned about it. Its weight falls like
1/t. A replica is one run of the rule in each of three classes:

    five modes       two outside the core of m*, two inside that act as it does
    core diagram     m2 differs from m1 only in region B, m3 everywhere; m1 is true
    bias grid        two arms; (.8, .5) is true, (.8, .8) is in its core and acts differently

Finite runs cannot refute an almost sure limit, and theory gives no mean for a finite time.
Thresholds therefore come from pilots on another seed, at two sizes:

    bayescontrol run vanishing --seed 1000 --runs 1000
    bayescontrol run vanishing --seed 1000 --runs 1000 --set steps=200 --set long_steps=500

                                                      default    smallest
    five modes, weight outside the core: mean         0.0035     0.036      400 and 200 steps
    core diagram, weight outside the core: mean       0.055      0.118      4,000 and 500 steps
    bias grid, weight outside the core: largest       1e-279     2e-21
    five modes, inside: runs above half of the prior  916        909        of 1,000
    bias grid, (.8, .8): runs below a fifth           991        813
    power of t of (.8, .8): mean, standard deviation  -0.91, 0.96   -0.87, 1.00

The weight of the true mode grows on average, so a threshold is also valid for longer runs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.convergence import Outcome, PairVerdict, check, simulate_divergences
from bayescontrol.finite.examples import core_diagram
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Colour, Panel, Series
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._figures import Figure, Figures, look, share_of_runs, spread_of_runs
from bayescontrol_paper._five_modes import COLOURS, OUTSIDE, TRUE, five_modes
from bayescontrol_paper.divergence import bound

#: With fewer runs no claims are made.
FEWEST: Final = 100

FIVE: Final = "five modes"
CORE: Final = "core diagram"
BIASES: Final = "bias grid"
#: The true mode of each class.
CLASSES: Final = {FIVE: TRUE, CORE: 0, BIASES: 7}


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=200, description="steps among five modes")] = 400
    long_steps: Annotated[int, Meta(ge=500, description="steps in the other classes")] = 4000


@cache
def class_of(name: str) -> TabularModes:
    """Return the modes of the class of that name."""
    if name == FIVE:
        return five_modes()
    return core_diagram() if name == CORE else bias_grid()


def times(settings: Settings, name: str) -> IntArray:
    """Return the stored steps: evenly spaced over `steps`, and in log t over `long_steps`.

    Five modes have the first kind of steps, the bias grid the second, and the core diagram both.
    """
    even = np.linspace(0, settings.steps, 81).round().astype(np.int64)
    late = claims.log_spaced(settings.long_steps, per_decade=12)
    return np.unique({FIVE: even, CORE: np.concatenate([even, late]), BIASES: late}[name])


def run(settings: Settings, i: int) -> Columns:
    """Record posteriors and their bounds at `times`, and count violations of the bounds."""
    columns = {}
    for name, true in CLASSES.items():
        modes, t = class_of(name), times(settings, name)
        found = simulate_divergences(modes, true, int(t[-1]), 1, settings.seed, at=t, first=i)
        bounds = bound(modes, found.d[0], true)
        columns[f"{name} posterior"] = found.posterior[0]
        columns[f"{name} bound"] = bounds
        violated = found.posterior[0] > bounds * (1.0 + claims.ROUNDING)
        columns[f"{name} violations"] = np.array(int(violated.sum()))
    return columns


#: The numbers of (.8, .8) and (.8, .2), in the core of (.8, .5); the first acts differently.
RIVAL: Final = 8
TWIN: Final = 6
#: A weight below this counts as vanished.
GONE: Final = 0.01
#: The weights outside the core in the pilots, by class and their number of steps.
_PILOTS: Final[Mapping[str, Mapping[int, claims.Pilot]]] = {
    FIVE: OUTSIDE,
    CORE: {500: claims.Pilot(0.118, 0.295, 1000), 4000: claims.Pilot(0.0554, 0.222, 1000)},
    BIASES: {500: claims.Pilot(0.0, 0.0, 1000)},
}
#: The power of t of (.8, .8) in the pilots, by their number of steps.
_POWERS: Final = {500: claims.Pilot(-0.870, 0.996, 1000), 4000: claims.Pilot(-0.905, 0.965, 1000)}
#: False-alarm rate of the claim about the power of t.
_FALSE_ALARM_RATE: Final = 1e-3


def verdict_on(name: str, m: int) -> PairVerdict:
    """Return the exact verdict on mode m in the world of the true mode of the class.

    >>> verdict_on("bias grid", RIVAL).in_core, verdict_on("bias grid", RIVAL).outcome.name
    (True, 'SETTLES')
    """
    return _verdict(class_of(name)).pair(CLASSES[name], m)


#: Checks a class, once.
_verdict: Final = cache(check)


def exponents(settings: Settings, columns: Columns) -> FloatArray:
    """Return d ln P(m | ·) / d ln t of (.8, .8) between a quarter of the steps and the end."""
    t, v = times(settings, BIASES), columns[f"{BIASES} posterior"][:, :, RIVAL]
    early = int(np.argmin(np.abs(t - t[-1] / 4)))
    return np.asarray(np.log(v[:, -1] / v[:, early]) / math.log(t[-1] / t[early]))


def _class_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Three classes of modes

    The core of m*: the modes that its policy cannot tell from it.
    """
    about = {
        FIVE: "three levers in two rooms (experiment divergence)",
        CORE: "only P1 enters region B, where H1 and H2 differ (experiment core)",
        BIASES: "two arms win with .2, .5 or .8 each; a mode pulls its better arm",
    }
    classes = {name: (class_of(name), CLASSES[name], text) for name, text in about.items()}
    return claims.class_rows("class | modes | true mode m* | what it is", classes)


def others(name: str, inside: bool) -> list[int]:
    """Return the modes inside or outside the core of the true mode, without the true mode.

    >>> others("five modes", inside=True)
    [3, 4]
    """
    wrong = (m for m in range(len(class_of(name))) if m != CLASSES[name])
    return [m for m in wrong if verdict_on(name, m).in_core is inside]


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about modes outside the core, then about modes inside it."""
    for name in CLASSES:
        pilot, pilot_text = claims.longest_pilot(_PILOTS[name], int(times(settings, name)[-1]))
        outside = others(name, inside=False)
        weights = columns[f"{name} posterior"][:, -1, outside].sum(-1)
        left = float((weights > GONE).mean())  # the share of runs with some weight left
        yield claims.vanishes(
            f"outside-the-core-{name.replace(' ', '-')}",
            f"{name}: the weight of all {len(outside)} modes outside the core of the true one "
            "vanishes almost surely; its mean at the end",
            start=class_of(name).prior[outside].sum(), values=weights, pilot=pilot,
            pilot_text=f"{pilot_text}: {claims.format_weight(pilot.mean)}",
            reason=f"in {100 * left:.3g} % of the runs more than {GONE:g} is left"
            + ": m* is rarely in charge for long while its weight is small" * (left > 0.02),
            place="section 4.4, theorem 3", small_as_text=True,
        )  # fmt: skip
    yield claims.equality(
        "never-above-the-bound", "no posterior of a mode m is ever above P(m)/P(m*) e^(-d), where "
        "d is the evidence for the true mode m* against m; violations",
        expected=0, ours=sum(int(columns[f"{name} violations"].sum()) for name in CLASSES),
        reason=f"{sum(columns[f'{name} bound'].size for name in CLASSES)} comparisons",
        origin="theory: no violation, up to rounding",
    )  # fmt: skip
    modes, inside = class_of(FIVE), others(FIVE, inside=True)
    alike = all(verdict_on(FIVE, m).consistent for m in inside)
    median = float(np.median(columns[f"{FIVE} posterior"][:, -1, inside].sum(-1)))
    prior = float(modes.prior[inside].sum())
    yield Claim(
        "inside-the-core-stays", f"{FIVE}: modes inside the core that act as m* does need not "
        f"vanish ({', '.join(modes.name(m) for m in inside)}); median of their weight at the end",
        source="ours", expected=f"about {prior:g}", ours=median, holds=alike and median > prior / 2,
        reason="no remaining mode takes the actions that would refute them; they do no harm",
        threshold_origin="pilot on seed 1000, 1,000 runs: nine in ten are above half of the prior "
        "(false alarms: below 1e-9)",
    )  # fmt: skip
    yield from _rival_claims(settings, columns)


def _rival_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Claim that (.8, .8) vanishes although it is in the core, and that its weight falls like 1/t.

    The pilot's power of t is not -1 yet: the slack is its distance from -1 and the margin.
    """
    found, powers = verdict_on(BIASES, RIVAL), exponents(settings, columns)
    in_theory = found.in_core and bool(found.act_differently) and found.outcome is Outcome.SETTLES
    median = float(np.median(columns[f"{BIASES} posterior"][:, -1, RIVAL]))
    prior = float(class_of(BIASES).prior[RIVAL])
    yield Claim(
        "refuted-by-its-own-policy", "bias grid: the mode (.8, .8) is in the core of the true one, "
        "(.8, .5), acts differently, and vanishes nevertheless; median of its weight at the end",
        source="ours", expected=f"→ 0, from {prior:.3g}", ours=median,
        holds=in_theory and median < prior / 5, reason="it predicts that the second arm wins with "
        ".8, pulls it half of the time, and is refuted by the observations",
        threshold_origin="pilot on seed 1000, 1,000 runs of 500 steps: eight in ten are below a "
        "fifth of the prior (false alarms: below 1e-9)",
    )  # fmt: skip
    mean, error = claims.measured(powers)
    pilot, pilot_text = claims.longest_pilot(_POWERS, settings.long_steps)
    slack = abs(pilot.mean + 1.0) + pilot.margin(len(powers), _FALSE_ALARM_RATE)
    yield Claim(
        "slower-like-one-over-t", "the weight w of (.8, .8) falls like 1/t, not exponentially: the "
        "power of t, over the last three quarters of the steps",
        source="ours", expected=-1.0, ours=mean, error=error, holds=abs(mean + 1.0) <= slack,
        reason="its arm is pulled in proportion to its weight, so dw/dt ∝ -w²",
        threshold_origin=f"{pilot_text}: {pilot.mean:.2g} at a finite time; within {slack:.2g} of "
        "-1 (false alarms: 1 in 1000)",
    )  # fmt: skip


def _weight_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Posterior weights at the end, inside and outside the core

    Core: a mode is inside the core of the true mode m* if the policy of m* never produces
    observations that distinguish the two, and outside otherwise. Acts: whether the mode's policy
    equals that of m* wherever the agent can be late (alike) or not (differently). Both columns are
    exact. Weights are quantiles over {runs} runs. (.8, .5) is a bandit whose arms win with
    probability .8 and .5.
    """
    yield "class | mode | core of m* | acts | median weight | 5 % to 95 % quantile"
    for name, true_mode in CLASSES.items():
        v = columns[f"{name} posterior"][:, -1]
        for m in np.delete(np.arange(len(class_of(name))), true_mode).tolist():
            found = verdict_on(name, m)
            quantiles = np.quantile(v[:, m], (0.05, 0.5, 0.95), method="inverted_cdf")
            low, middle, high = (claims.format_weight(float(q)) for q in quantiles)
            core_text = "inside" if found.in_core else "outside"
            acts_text = "differently" if found.act_differently else "alike"
            interval = low if low == high else f"{low} … {high}"
            yield name, class_of(name).name(m), core_text, acts_text, middle, interval


#: The number of (.5, .5), which is outside the core.
_OUTSIDER: Final = 4


def _vanishing_figure(settings: Settings, columns: Columns) -> Figure:
    """Whose weight vanishes, and how fast

    m* is the true mode. Its core contains the modes that its policy cannot tell from it; d is
    the evidence for m* against a mode; (.8, .5) is a bandit whose two arms win with probability .8
    and .5. Modes outside the core lose weight exponentially, a straight line in (a) and (b), and
    never exceed the dashed bound. Inside, m3 and m4 act as m* does and keep their weight. In (c) a
    mode inside the core acts differently and refutes itself, but the smaller its weight, the less
    often it acts: it falls like 1/t, a straight line on these axes. (d) Vanishing almost surely may
    take long: in the core diagram m2 is refuted only in states that m* reaches with three steps in
    a row, and while m2 has most of the weight, m* is rarely drawn three times in a row.

    {settings.runs} runs; lines are medians, bands contain 90 % of the runs
    """
    panels = [
        _weights_panel(settings, columns, FIVE, "(a) Five modes: two outside the core of m*", 1e-8),
        _weights_panel(settings, columns, CORE, "(b) Core diagram: all others are outside", 1e-12),
        _bias_grid_panel(settings, columns),
        _remaining_panel(settings, columns),
    ]
    return Figure(panels)


def _weights_panel(
    settings: Settings, columns: Columns, name: str, title: str, lowest: float
) -> Panel:
    """Draw the weights of all wrong modes, and the bounds on those outside the core."""
    modes, stored = class_of(name), times(settings, name)
    is_shown = stored <= settings.steps
    t = stored[is_shown]
    posteriors, bounds = [], []
    for m in range(1, len(modes)):
        in_core, runs = verdict_on(name, m).in_core, columns[f"{name} posterior"][:, is_shown, m]
        style: Any = {"colour": COLOURS[m]}
        label = f"{modes.name(m)}, {'inside' if in_core else 'outside'}"
        posteriors.append(spread_of_runs(label, t, runs, **style))
        if not in_core:
            middle = np.median(columns[f"{name} bound"][:, is_shown, m], axis=0)
            bounds.append(Series(f"bound on {modes.name(m)}", t, middle, dash="dash", **style))
    return Panel(
        title, "step t", "posterior probability of the mode", [*posteriors, *bounds], yscale="log",
        ylim=(lowest, 3.0), notes=["Dashed: P(m)/P(m*) exp(−d), the median"],
        legend="lower left" if name == FIVE else "upper right",
    )  # fmt: skip


def _bias_grid_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the weights of three modes of the bias grid, and a line ∝ 1/t for comparison."""
    modes, t = class_of(BIASES), times(settings, BIASES)
    v = columns[f"{BIASES} posterior"]
    shown: tuple[tuple[int, str, Colour], ...] = (
        (RIVAL, "in core, acts differently", "vermillion"),
        (TWIN, "in core, acts alike", "blue"),
        (_OUTSIDER, "outside", "orange"),
    )
    series = [
        spread_of_runs(f"{modes.name(m)}, {words}", t, v[:, :, m], colour=colour)
        for m, words, colour in shown
    ]
    middle = float(np.median(v[:, -1, RIVAL]))
    late = t[t >= max(10, t[-1] // 100)]
    series.append(Series("∝ 1/t", late, middle * t[-1] / late, colour="ink", dash="dot"))
    return Panel(
        "(c) Bias grid: (.8, .5) is true", "step t", "posterior probability of the mode", series,
        xscale="log", yscale="log", ylim=(1e-6, 1.5), legend="lower right",
    )  # fmt: skip


def _remaining_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the share of runs with weight left outside the core; step 0 is not on a log axis."""
    looks = {FIVE: look("blue"), CORE: look("green", "dash"), BIASES: look("vermillion", "dashdot")}
    series = []
    for name, style in looks.items():
        t = times(settings, name)
        v = columns[f"{name} posterior"][:, t >= 1][:, :, others(name, inside=False)].sum(-1)
        series.append(share_of_runs(name, t[t >= 1], v > GONE, **style))
    return Panel(
        "(d) How many runs still have modes outside the core?", "step t",
        f"share of runs with more than {GONE:g} outside", series, xscale="log", ylim=(-0.02, 1.02),
        notes=["Bands: two standard errors"], legend="lower left",
    )  # fmt: skip


experiment: Final = Experiment(
    "vanishing", "whose weight vanishes, how fast, and who keeps it: outside the core and inside",
    Settings, quick=Settings(runs=250), full=Settings(runs=2000, long_steps=10_000), run=run,
    score=claims.Scored(_claims, _class_table, _weight_table, fewest=FEWEST),
    figures=Figures(_vanishing_figure),
)  # fmt: skip
