"""The figure of `vanishing`: weights outside the core and inside, on scales that show how fast."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.divergence.figures import spread_of_runs
from bayescontrol.experiments.vanishing.replica import (
    BIASES,
    CORE,
    FIVE,
    Settings,
    class_of,
    times,
)
from bayescontrol.experiments.vanishing.score import GONE, RIVAL, TWIN, others, pair
from bayescontrol.lab import Columns, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Series

_COLOURS: Final[tuple[Colour, ...]] = ("ink", "vermillion", "orange", "blue", "green")
#: (.5, .5), outside the core.
_STRANGER: Final = 4


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Four panels.

    >>> from bayescontrol.experiments.vanishing.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> list(draw(Settings(runs=1), one))  # enough to draw, not to judge
    ['vanishing']
    """
    return {
        "vanishing": Chart(
            "Whose weight vanishes, and how fast",
            [
                _falls(settings, columns, FIVE, "(a) Five modes: two outside the core of m*", 1e-8),
                _falls(settings, columns, CORE, "(b) Core diagram: all others are outside", 1e-12),
                _slowly(settings, columns),
                _left(settings, columns),
            ],
            "m* is the true mode. Its core holds the modes that its policy cannot tell from it; "
            "d is the evidence for m* against a mode; (.8, .5) is a bandit whose two arms win with "
            "probability .8 and .5. Whoever is outside the core loses weight exponentially, a "
            "straight line in (a) and (b), and never exceeds the dashed bound. Inside, m3 and m4 "
            "act as m* does and keep their weight. In (c) one inside the core acts differently "
            "and refutes itself, but the less it weighs the less it acts: it falls like 1/t, a "
            "straight line on these axes. (d) To vanish almost surely may take long: in the core "
            "diagram m2 is refuted only where m* leads with three steps in a row, and while m2 has "
            "most of the weight, m* rarely gets so many.",
            columns=2,
            note=f"{settings.runs} runs; lines are medians, bands hold nine runs in ten",
        )
    }


def _falls(settings: Settings, columns: Columns, name: str, title: str, lowest: float) -> Panel:
    modes, when = class_of(name), times(settings, name)
    shown = when <= settings.steps
    t = when[shown]
    posteriors, bounds = [], []
    for m in range(1, len(modes)):
        found = pair(name, m)
        look: Any = {"colour": _COLOURS[m]}
        label = f"{modes.name(m)}, {'inside' if found.in_core else 'outside'}"
        posteriors.append(
            spread_of_runs(label, t, columns[f"{name} posterior"][:, shown, m], **look)
        )
        if not found.in_core:
            middle = np.median(columns[f"{name} bound"][:, shown, m], axis=0)
            bounds.append(Series(f"bound on {modes.name(m)}", t, middle, dash="dash", **look))
    return Panel(
        title,
        "step t",
        "posterior probability of the mode",
        [*posteriors, *bounds],
        yscale="log",
        ylim=(lowest, 3.0),
        notes=["Dashed: P(m)/P(m*) exp(−d), the median"],
        legend="lower left" if name == FIVE else "upper right",
    )


def _slowly(settings: Settings, columns: Columns) -> Panel:
    modes, t = class_of(BIASES), times(settings, BIASES)
    v = columns[f"{BIASES} posterior"]
    shown: tuple[tuple[int, str, Colour], ...] = (
        (RIVAL, "inside, differs", "vermillion"),
        (TWIN, "inside, alike", "blue"),
        (_STRANGER, "outside", "orange"),
    )
    series = [
        spread_of_runs(f"{modes.name(m)}, {words}", t, v[:, :, m], colour=colour)
        for m, words, colour in shown
    ]
    middle = float(np.median(v[:, -1, RIVAL]))
    late = t[t >= max(10, t[-1] // 100)]
    series.append(Series("∝ 1/t", late, middle * t[-1] / late, colour="ink", dash="dot"))
    return Panel(
        "(c) Bias grid: (.8, .5) is true",
        "step t",
        "posterior probability of the mode",
        series,
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1.5),
        legend="lower right",
    )


def _left(settings: Settings, columns: Columns) -> Panel:
    looks: tuple[tuple[str, Colour, Dash], ...] = (
        (FIVE, "blue", "solid"), (CORE, "green", "dash"), (BIASES, "vermillion", "dashdot"),
    )  # fmt: skip
    series = []
    for name, colour, dash in looks:
        t = times(settings, name)
        v = columns[f"{name} posterior"][:, t >= 1][:, :, others(name, inside=False)].sum(-1)
        left = (v > GONE).sum(0)
        bounds = wilson(left, len(v), z=2.0)
        series.append(Series(name, t[t >= 1], left / len(v), *bounds, colour=colour, dash=dash))
    return Panel(
        "(d) How many runs still have modes outside the core?",
        "step t",
        f"share of runs with more than {GONE:g} outside",
        series,
        xscale="log",
        ylim=(-0.02, 1.02),
        notes=["Bands: two standard errors"],
        legend="lower left",
    )
