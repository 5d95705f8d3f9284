"""The figures of `divergence`: processes, policies and parts, bands."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.divergence.controller import MODES, TRUE, alone, controller
from bayescontrol.experiments.divergence.exact import DELTA, band, rate
from bayescontrol.experiments.divergence.replica import (
    PAIR,
    POLICIES,
    SHOWN,
    Settings,
    far_times,
    times,
    whole,
)
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

_COLOURS: Final[tuple[Colour, ...]] = ("ink", "vermillion", "orange", "blue", "green")
_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dot")
#: The runs that are drawn one by one.
_EXAMPLES: Final = (0, 1, 2)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Three figures.

    >>> from bayescontrol.experiments.divergence.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> sorted(draw(Settings(runs=1), one))  # enough to draw, not to judge
    ['bands', 'policies', 'processes']
    """
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
            [_around_mean(settings, columns), _widths(settings, columns)],
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


def _widths(settings: Settings, columns: Columns) -> Panel:
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
