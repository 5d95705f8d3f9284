"""The figure of `maze-zoo`: regret against steps, one panel for each map.

lines    R_t / (t ρ*), means of the runs with two standard errors
guide    1: the regret of earning nothing
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.experiments.maze_zoo.replica import (
    AGENTS,
    COSTLY,
    MAPS,
    R_LEARNING,
    RULE,
    UNKNOWN,
    Settings,
    checkpoints,
    plan,
)
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

#: Colour tells the family, dash the agent.
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    UNKNOWN: ("blue", "dash"),
    "control rule, prior A": ("blue", "dot"),
    R_LEARNING: ("green", "solid"),
    "Q-learning, ε = 0.1": ("vermillion", "solid"),
    "Q-learning, optimistic": ("vermillion", "dash"),
    "Bayesian Q, sampling": ("purple", "solid"),
    "Bayesian Q, VPI": ("purple", "dash"),
    COSTLY[0]: ("orange", "solid"),
    COSTLY[1]: ("orange", "dash"),
}
#: Before this step there is more luck than learning.
_FROM: Final = 100


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """The figure.

    >>> from bayescontrol.experiments.maze_zoo.replica import run
    >>> small = Settings(runs=1, steps=40, costly_states=1)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> len(draw(small, columns)["regret"].panels)
    8
    """
    panels = [_panel(settings, columns, k, name) for k, name in enumerate(MAPS)]
    return {
        "regret": Chart(
            "What learning has cost, on every map",
            panels,
            "The lower the better. Regret is shown as a share of what the best policy would have "
            "earned by then: who earns nothing stays at 1, who plays the best policy goes to 0, "
            "and who has settled for less levels off. Time is logarithmic. Planners are left out "
            "of the large maps.",
            columns=2,
            note=f"{settings.runs} run{'s' * (settings.runs > 1)}, bands: ± 2 standard errors; "
            f"posterior sampling and UCRL2: {settings.costly_runs}",
        )
    }


def _panel(settings: Settings, columns: Columns, k: int, name: str) -> Panel:
    t, gain = checkpoints(settings), plan(name).gain
    late = t >= min(_FROM, t[-1] // 2)
    series = []
    for label, (colour, dash) in _LOOKS.items():
        curves = columns["regret"][:, k, list(AGENTS).index(label)]
        played = curves[~np.isnan(curves[:, 0])]
        if not played.size:
            continue
        there = late & ~np.isnan(played).any(axis=0)
        series.append(
            Series.of_runs(
                label,
                t[there],
                played[:, there] / (t[there] * gain),
                colour=colour,
                dash=dash,
                in_legend=k == 0,
            )
        )
    states = len(plan(name).mdp.states)
    return Panel(
        f"{name}: {states} states, ρ* = {gain:.4f}",
        "step t", "regret Rₜ / (t ρ*)", series, [Guide("earning nothing", 1.0, in_legend=k == 0)],
        xscale="log", ylim=(-0.02, 1.1), legend="below",
    )  # fmt: skip
