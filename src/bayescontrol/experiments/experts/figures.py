"""The figures of `experts`: who falls when, how beliefs find the plant and lose it again.

survival curve    share of the episodes that last longer than t
beliefs           quartiles over the episodes that still run
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.experts.hills import HILL_AGENTS, HILL_STEPS
from bayescontrol.experiments.experts.poles import AGENTS, CHANGES
from bayescontrol.experiments.experts.rods import BUMPLESS, ROD_AGENTS
from bayescontrol.experiments.experts.settings import MEAN, NAIVE, RIGHT, RULE, VOTE, Settings
from bayescontrol.lab import Columns, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Marker, Series

_MARKERS: Final[tuple[Marker, ...]] = (
    "circle", "square-open", "diamond", "triangle-up", "triangle-down",
)  # fmt: skip
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    RIGHT: ("green", "dash"),
    NAIVE: ("vermillion", "solid"),
    MEAN: ("orange", "dashdot"),
    VOTE: ("purple", "dot"),
    BUMPLESS: ("sky", "dash"),
    "static": ("vermillion", "solid"),
    "switching": ("blue", "solid"),
    "fading": ("sky", "dash"),
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Four figures.

    >>> from bayescontrol.experiments.experts.replica import run
    >>> small = Settings(runs=1, steps=20, change=10, rod_steps=8)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['balance', 'change', 'identify', 'rods-and-hills']
    """
    note = f"{settings.runs} episode{'s' * (settings.runs > 1)}, bars: 95 % intervals"
    return {
        "balance": Chart(
            "CartPole, one of twenty: who is still up",
            [_survival(settings, columns["survived"], AGENTS, "")],
            "The higher the better. The control rule, which does not know the pole nor which way "
            "the motor turns, stands as long as the expert who does. The mean of the experts and "
            "their vote fall at once: half of them push the wrong way. The naive mixture takes "
            "its first push for evidence, and falls when that was the wrong one.",
            note=note,
        ),
        "identify": Chart(
            "What the control rule knows",
            [_known(settings, columns), _times(settings, columns)],
            "Left: the probability of the true hypothesis, of twenty; it starts at 1/20. Right: "
            "the share of the episodes in which it is above .99 for good. One push tells the sign "
            "of the force; length and mass take longer, the more so the larger the disturbance.",
            columns=2,
            note=f"{settings.runs} episodes",
        ),
        "change": Chart(
            "The motor is rewired while the pole stands",
            [
                _survival(settings, columns["changed"], CHANGES, "Still up"),
                _after(settings, columns),
            ],
            "At the dotted line the force changes its sign. A static posterior is so sure by then "
            "that it would need as many steps again to change its mind, and falls. Switching modes "
            "and fading evidence follow within a few steps. Right: the probability of the new sign "
            "of the force, its median and quartiles.",
            columns=2,
            note=note,
        ),
        "rods-and-hills": Chart(
            "Unknown rods and hills",
            [_rods(settings, columns), _hills(settings, columns)],
            "Left: cos φ, 1 for a rod that stands upright, as a mean over the episodes. Right: the "
            "share of the episodes in which the car has reached the goal. The rule is as good as "
            "the right expert; on some hills a first push the wrong way even helps, for the "
            "experts are good and not optimal.",
            columns=2,
            note=f"{settings.runs} episodes",
        ),
    }


def _survival(settings: Settings, steps: FloatArray, names: tuple[str, ...], title: str) -> Panel:
    t = np.arange(1, settings.steps + 1)
    n = len(steps)
    series, ends = [], []
    for i, name in enumerate(names):
        # Whoever fell at step t is not up at t; whoever lasted all steps is up at the end.
        up = (steps[:, i, None] > t).sum(axis=0)
        up[-1] = (steps[:, i] == settings.steps).sum()
        colour, dash = _LOOKS[name]
        low, high = wilson(up[-1:], n)
        series.append(Series(name, t, up / n, kind="step", colour=colour, dash=dash))
        ends.append(
            Series(
                name,
                t[-1:],
                up[-1:] / n,
                low,
                high,
                "points",
                colour,
                marker=_MARKERS[i],
                in_legend=False,
            )
        )
    changes = names is CHANGES
    return Panel(
        title, "step t", "share of the episodes", [*series, *ends],
        [_rewired(settings)] if changes else [],
        xscale="linear" if changes else "log", ylim=(-0.03, 1.05), legend="below",
    )  # fmt: skip


def _rewired(settings: Settings) -> Guide:
    return Guide("rewired", settings.change, "vertical")


def _quartiles(label: str, t: Any, values: FloatArray, **look: Any) -> Series:
    """Median and quartiles over the episodes, as far as any of them runs."""
    runs = np.flatnonzero(np.isfinite(values).any(axis=0))
    low, middle, high = np.nanquantile(values[:, runs], (0.25, 0.5, 0.75), axis=0)
    return Series(label, t[runs], middle, low, high, **look)


def _known(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.steps + 1)
    known = _quartiles("median, quartiles", t, columns["posterior"])
    return Panel(
        "Probability of the true pole",
        "step t", "P(m* | past)", [known],
        [Guide("prior", 0.05)], xscale="log", ylim=(0.0, 1.05), legend="lower right",
    )  # fmt: skip


def _times(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.steps + 1)
    series = []
    looks: tuple[tuple[str, str, Colour], ...] = (
        ("the sign of the force", "wired", "green"), ("the pole", "identified", "blue"),
    )  # fmt: skip
    for label, name, colour in looks:
        share = (columns[name][:, None] <= t).mean(axis=0)
        series.append(Series(label, t, share, kind="step", colour=colour))
    return Panel(
        "Identified, above .99 for good",
        "step t", "share of the episodes", series,
        xscale="log", ylim=(0.0, 1.05), legend="lower right",
    )  # fmt: skip


def _after(settings: Settings, columns: Columns) -> Panel:
    around = slice(max(0, settings.change - 10), min(settings.steps, settings.change + 40))
    t = np.arange(1, settings.steps + 1)[around]
    series = []
    for i, name in enumerate(CHANGES):
        values = columns["after"][:, i, 0, around]
        colour, dash = _LOOKS[name]
        if np.isfinite(values).any():
            series.append(_quartiles(name, t, values, colour=colour, dash=dash, in_legend=False))
    return Panel(
        "Belief in the new force", "step t", "probability", series,
        [Guide("rewired", settings.change, "vertical", in_legend=False)],
        ylim=(-0.03, 1.05),
    )  # fmt: skip


def _rods(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.rod_steps + 1)
    series = []
    for i, name in enumerate(ROD_AGENTS):
        colour, dash = _LOOKS[name]
        mean = columns["height"][:, i].mean(axis=0)
        series.append(Series(name, t, mean, colour=colour, dash=dash))
    return Panel(
        "Pendulum: nine rods", "step t", "cos φ, mean", series,
        ylim=(-1.05, 1.05), legend="below",
    )  # fmt: skip


def _hills(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, HILL_STEPS + 1)
    series = []
    for i, name in enumerate(HILL_AGENTS):
        colour, dash = _LOOKS[name]
        share = (columns["goal"][:, i, None] <= t).mean(axis=0)
        in_legend = name not in ROD_AGENTS
        series.append(
            Series(name, t, share, kind="step", colour=colour, dash=dash, in_legend=in_legend)
        )
    return Panel(
        "MountainCar: ten hills", "step t", "share at the goal", series,
        ylim=(-0.03, 1.05), legend="below",
    )  # fmt: skip
