"""The figures of `maze-sensitivity`: shares of the optimum against each parameter, and in time.

solid     the last fifth of the steps: where the agent has got to
dashed    all steps: what it cost to get there
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.experiments.maze_sensitivity.replica import (
    ALL,
    PRECISIONS,
    PRIORS,
    SWEPT,
    TOYS,
    Settings,
    edges,
    maze_plan,
    toy_plan,
)
from bayescontrol.experiments.maze_sensitivity.score import named
from bayescontrol.experiments.maze_sensitivity.seen import Seen
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel, Scale
from bayescontrol.lab.marks import Colour, Dash, Guide, Marker, Series

_COLOURS: Final[Mapping[str, Colour]] = {"prior A": "blue", "prior B": "vermillion"}
_MARKERS: Final[Mapping[str, Marker]] = {"prior A": "circle", "prior B": "square"}
#: What each panel is called, the axis, and its scale.
_PANELS: Final[Mapping[str, tuple[str, str, Scale]]] = {
    "mu0": ("Prior mean", "μ0", "linear"),
    "lambda0": ("Prior precision", "λ0", "log"),
    "precision": ("Precision of the rewards", "p", "log"),
    "sweeps": ("Gibbs sweeps", "sweeps a step", "linear"),
    "partial": ("Partial sweeps", "states swept a step, besides the state of now", "linear"),
}
_PRECISION_LOOKS: Final[Mapping[float | None, tuple[Colour, Dash]]] = {
    1.0: ("vermillion", "dot"),
    10.0: ("orange", "dashdot"),
    100.0: ("green", "dash"),
    None: ("blue", "solid"),
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Both figures.

    >>> from bayescontrol.experiments.maze_sensitivity.replica import run
    >>> small = Settings(runs=1, steps=100, toy_steps=1000)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['parameters', 'precision']
    """
    seen = Seen(settings, columns)
    runs = f"{settings.runs} run{'s' * (settings.runs > 1)}, ± 2 standard errors"
    return {
        "parameters": Chart(
            "three-cups with one setting changed at a time",
            [_panel(seen, parameter) for parameter in SWEPT],
            "The higher the better; 1 is the best policy. Solid lines tell where the agent has "
            "got to in the last fifth of the steps, dashed ones what all steps earned, "
            "exploration included. Prior B forgives any prior; prior A waits until what was seen "
            "outweighs λ0 on all 49 successors, and without optimism stays with the cups. How "
            "many states are swept, and how often, does not matter.",
            columns=2,
            note=f"{settings.steps:,} steps; {runs}; others as in the paper: μ0 = λ0 = p = 1, one "
            "sweep",
        ),
        "precision": Chart(
            "The precision sets the scale of exploration",
            [_toy(seen, name) for name in TOYS],
            "The higher the better. What is drawn is as wide as 1/√p: where rewards are rare and "
            "differences small, p = 1 explores for very long. With p unknown the agent finds the "
            "scale by itself: soon on the lake, later along the cliff, where costs of 100 look "
            "like noise at first.",
            columns=2,
            note=f"Gymnasium's maps, made continuing; prior B; {runs}",
        ),
    }


def _panel(seen: Seen, parameter: str) -> Panel:
    title, label, scale = _PANELS[parameter]
    values = [value for value in SWEPT[parameter] if value is not None]
    everything = len(maze_plan().mdp.states)
    x = np.array([everything if (parameter, v) == ("partial", ALL) else v for v in values])
    first = parameter == next(iter(SWEPT))
    series, guides = [], []
    for prior in PRIORS:
        for what, dash, told in (("late", "solid", "last fifth"), ("total", "dash", "all steps")):
            runs = np.stack([seen.maze(what, prior, parameter, v) for v in values], axis=1)
            series.append(
                Series.of_runs(
                    f"{prior}, {told}", x, runs, colour=_COLOURS[prior], dash=dash,
                    marker=_MARKERS[prior], in_legend=first,
                )
            )  # fmt: skip
        if parameter == "precision":
            level = float(seen.maze("late", prior, parameter, None).mean())
            guides.append(Guide(f"{prior}, p unknown, last fifth", level, colour=_COLOURS[prior]))
    return Panel(
        title, label, "share of ρ*", series, guides,
        xscale=scale, ylim=(0.0, 1.1), xticks=None if scale == "log" else x.tolist(),
        legend="below",
    )  # fmt: skip


def _toy(seen: Seen, name: str) -> Panel:
    ends = edges(seen.settings.toy_steps)
    series = []  # without the first window, in which the cliff costs more than can be shown
    for p in PRECISIONS:
        colour, dash = _PRECISION_LOOKS[p]
        label = "p unknown" if p is None else f"p = {named('precision', p)}"
        series.append(
            Series.of_runs(
                label, ends[1:], seen.toy_curve(name, p)[:, 1:], colour=colour, dash=dash,
                in_legend=name == TOYS[0],
            )
        )  # fmt: skip
    gain = toy_plan(name).gain
    best = Guide("the best policy", 1.0, in_legend=name == TOYS[0])
    return Panel(
        f"{name[0].upper()}{name[1:]}, ρ* = {gain:.5f}",
        "step t", "share of the optimum, in windows", series, [best],
        xscale="log", ylim=(0.0, 1.15), legend="below",
    )  # fmt: skip
