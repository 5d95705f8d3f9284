"""Four pictures of the delusion: trust, E[posterior], bits injected, Ville's bound."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.delusion.replica import AGENTS, Settings, processes
from bayescontrol.experiments.delusion.seen import Seen, all_seen
from bayescontrol.lab import Columns, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

_COLOUR: Final[Mapping[str, Colour]] = {"naive": "vermillion", "causal": "blue"}
_DASH: Final[Mapping[str, Dash]] = {"prize": "solid", "three modes": "dash"}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Means over replicas with bands of two standard errors.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> few = Settings(runs=1, steps=3)
    >>> list(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['delusion']
    """
    seen = all_seen(settings, columns)
    panels = [_trust(columns, seen), _mean(settings, seen), _bits(columns), _ville(seen)]
    return {
        "delusion": Chart(
            "What an agent comes to believe by taking its own actions for evidence",
            panels,
            "The causal agent is right as often as it believes (a), keeps the prior on average "
            "(b) and stays below the bound (d); the naive agent does none of this. (c) counts the "
            "false bits in each agent's own actions, which the naive agent alone takes in.",
            columns=2,
            note=f"means of {settings.runs} replicas, bands of two standard errors",
        )
    }


def _trust(columns: Columns, seen: Mapping[tuple[str, str], Seen]) -> Panel:
    series = []
    for agent, colour in _COLOUR.items():
        believed, matched = columns[f"prize {agent} trust"], seen["prize", agent].matched
        t = np.arange(1, believed.shape[1] + 1)
        series += [
            Series.of_runs(f"{agent}: believed", t, believed, colour=colour),
            Series.of_runs(f"{agent}: right", t, matched, colour=colour, dash="dot"),
        ]
    return Panel(
        "(a) Prize or frog: “the prize is in the box I picked”",
        "step t",
        "probability",
        series,
        ylim=(0.4, 1.03),
        legend="center right",
    )


def _mean(settings: Settings, seen: Mapping[tuple[str, str], Seen]) -> Panel:
    process = processes(settings.reliability)["three modes"]
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot")
    series = []
    for agent, colour in _COLOUR.items():
        v = seen["three modes", agent].posterior
        t = np.arange(v.shape[1])
        series += [
            Series.of_runs(f"{agent}: “{mode.name}”", t, v[:, :, m], colour=colour, dash=dashes[m])
            for m, mode in enumerate(process.modes)
        ]
    guides = [Guide("prior", float(p), dash="dashdot", in_legend=False) for p in process.prior]
    return Panel(
        "(b) Three modes: the mean posterior against the prior",
        "step t",
        "E[posterior(m)]",
        series,
        guides,
        ylim=(0.1, 0.72),
        notes=["Dash-dotted: the prior"],
        legend="upper right",
        legend_columns=2,
    )


def _bits(columns: Columns) -> Panel:
    series = []
    for process, dash in _DASH.items():
        for agent in AGENTS:
            summed = columns[f"{process} {agent} step bits"].cumsum(1)
            t = np.arange(1, summed.shape[1] + 1)
            look = {"colour": _COLOUR[agent], "dash": dash}
            series.append(Series.of_runs(f"{process}, {agent}", t, summed, **look))
    return Panel(
        "(c) What each agent's own actions would have injected",
        "step t",
        "false evidence, summed over steps [bits]",
        series,
        yscale="log",
        legend="upper left",
    )


def _ville(seen: Mapping[tuple[str, str], Seen]) -> Panel:
    delta = np.linspace(0.0, 1.0, 101)
    series = []
    for process, dash in _DASH.items():
        for agent in AGENTS:
            lowest = seen[process, agent].lowest[:, -1]
            fell = (lowest[:, None] < delta).sum(0)
            share, bounds = fell / len(lowest), wilson(fell, len(lowest), z=2.0)
            look: Any = {"colour": _COLOUR[agent], "dash": dash}
            series.append(Series(f"{process}, {agent}", delta, share, *bounds, **look))
    return Panel(
        "(d) Ville's bound: does the truth lose its weight?",
        "δ",
        "P(posterior(m*) < δ prior(m*) at some t)",
        series,
        [Guide("bound: δ", direction="diagonal")],
        ylim=(-0.02, 1.02),
        legend="upper left",
    )
