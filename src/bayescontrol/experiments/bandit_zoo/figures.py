"""The figure of `bandit-zoo`: regret against time, one panel for each kind of bandit.

lines    E R_t over the runs, both axes logarithmic, with two standard errors
ink      c ln t, c = Σ_j Δ_j / KL(m_j ‖ m*), where all bandits of a kind are the same one
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.bandits.bounds import lai_robbins
from bayescontrol.experiments.bandit_zoo.replica import (
    AGENTS,
    CLOSE_RACE,
    COSTLY,
    KINDS,
    ORACLE,
    RULE,
    UNIFORM,
    Settings,
    checkpoints,
)
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Series

#: Colour tells the family, dash the agent.
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    "Gittins": ("green", "solid"),
    COSTLY: ("purple", "solid"),
    "knowledge gradient": ("purple", "dash"),
    "Bayes-UCB": ("sky", "solid"),
    "KL-UCB": ("sky", "dash"),
    "MOSS": ("orange", "solid"),
    "UCB-tuned": ("orange", "dash"),
    "UCB1": ("orange", "dot"),
    "ε-greedy, 0.1": ("vermillion", "solid"),
    "ε-greedy, 0.1·0.99ᵗ": ("vermillion", "dash"),
    "softmax": ("vermillion", "dot"),
    UNIFORM: ("ink", "dash"),
}
_TITLES: Final[Mapping[str, str]] = {
    "uniform": "Uniform biases, U(0, 1)",
    "low rates": "Low rates, Beta(1, 9)",
    "high rates": "High rates, Beta(9, 1)",
    CLOSE_RACE: "Close race, 0.5 among levers of 0.4",
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """The figure.

    >>> from bayescontrol.experiments.bandit_zoo.replica import run
    >>> small = Settings(runs=1, steps=10, levers=3)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> len(draw(small, columns)["regret"].panels)
    4
    """
    few = settings.costly_runs
    panels = [_panel(settings, columns, k, kind) for k, kind in enumerate(KINDS)]
    return {
        "regret": Chart(
            f"Regret of all agents at {settings.levers} levers",
            panels,
            "The lower the better. Time is logarithmic. Uniform play never learns, and leaves the "
            "figure; who learns bends away from it. Who leads depends on the kind of bandit. In "
            "the close race the black line has the slope that Lai and Robbins prove: in the end no "
            "agent that learns in every world rises less steeply.",
            columns=2,
            note=f"{settings.runs:,} runs, the same for all agents"
            + (f", {few:,} of them for the {COSTLY} agent" if few < settings.runs else "")
            + "; bands: ± 2 standard errors",
        )
    }


def _panel(settings: Settings, columns: Columns, k: int, kind: str) -> Panel:
    t = checkpoints(settings)
    series = []
    for i, name in enumerate(AGENTS):
        if name == ORACLE:
            continue
        colour, dash = _LOOKS[name]
        runs = columns["regret"][:, k, i]
        runs = runs[~np.isnan(runs[:, 0])]
        if not len(runs):
            continue
        series.append(
            Series.of_runs(name, t, runs, colour=colour, dash=dash, in_legend=kind == CLOSE_RACE)
        )
    if kind == CLOSE_RACE:
        series.append(_slope(t, columns["bias"][0, k], series[0].y[-1]))
    regrets = [one.y for one in series if one.label != UNIFORM]
    return Panel(
        _TITLES[kind],
        "step t",
        "regret Rₜ",
        series,
        xscale="log",
        xlim=(max(1, settings.steps // 100), None),
        ylim=(0, 1.08 * float(np.max(np.concatenate(regrets)))),
        legend="below",
    )


def _slope(t: IntArray, bias: FloatArray, end: float) -> Series:
    c = lai_robbins(bias)
    line = end + c * np.log(t / t[-1])
    return Series("Lai and Robbins's slope", t, line, colour="ink")
