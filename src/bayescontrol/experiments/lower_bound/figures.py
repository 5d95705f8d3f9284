"""The figure of `lower-bound`: how far the true mode falls, how often, and when."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.lower_bound.replica import Settings, times
from bayescontrol.experiments.lower_bound.ruin import behind_by, fallen
from bayescontrol.experiments.lower_bound.score import lowest
from bayescontrol.experiments.lower_bound.worlds import AGENTS, worlds
from bayescontrol.lab import Columns, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

_COLOURS: Final[Mapping[str, Colour]] = {"rule": "blue", "naive": "vermillion"}
_DASHES: Final[Mapping[str, Dash]] = {
    "three levers": "solid",
    "prize or frog": "dash",
    "bias grid": "dashdot",
}
#: The world of the last two panels, and their δ.
_SHOWN: Final = "three levers"
_DELTA: Final = 0.1


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Four panels.

    >>> from bayescontrol.experiments.lower_bound.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> list(draw(Settings(runs=1), one))  # enough to draw, not to judge
    ['lower-bound']
    """
    low = lowest(columns)
    return {
        "lower-bound": Chart(
            "How rarely the true mode loses its weight",
            [
                _shares(settings, low),
                _floors(low),
                _by_time(settings, columns),
                _posterior(settings, columns),
            ],
            "m* is the true mode of a world, P(m*) its prior, P(m*|·) its posterior; three levers, "
            "prize or frog and bias grid are three worlds. (a) counts the runs in which P(m*|·) "
            "ever fell below δ P(m*). For the control rule that is at most a share δ of them, in "
            "every world: the blue lines stay below the dotted one. (b) is the same from the other "
            "side: λ, what share of its prior the truth kept in all but a share δ of runs. (c) and "
            "(d) follow one world in time: the rule stays below the line for ever and finds the "
            "truth; the naive agent, which takes its own actions for evidence, loses it for good "
            "in most runs.",
            columns=2,
            note=f"{settings.runs} runs of {settings.steps} steps; bands: two standard errors",
        )
    }


def _looks(world: str, agent: str) -> dict[str, Any]:
    return {"colour": _COLOURS[agent], "dash": _DASHES[world], "group": world}


def _shares(settings: Settings, low: Mapping[tuple[str, str], FloatArray]) -> Panel:
    # Off the levels that the walk of prize or frog can reach.
    delta = np.geomspace(0.0051, 0.99, 200)
    series = []
    for world in worlds():
        for agent in AGENTS:
            fell = (low[world, agent][:, None] < delta).sum(0)
            bounds = wilson(fell, len(low[world, agent]), z=2.0)
            share = fell / len(low[world, agent])
            series.append(
                Series(f"{world}, {agent}", delta, share, *bounds, "step",
                       in_legend=agent == "rule", **_looks(world, agent))
            )  # fmt: skip
    exact = np.array([fallen(behind_by(float(d)), settings.steps) for d in delta])
    series.append(Series("prize or frog, exact", delta, exact, colour="ink", kind="step"))
    return Panel(
        "(a) How often does the truth ever fall below δ of its prior?",
        "δ",
        "share of runs",
        series,
        [Guide("Ville's bound: δ", direction="diagonal", in_legend=False)],
        xscale="log",
        yscale="log",
        ylim=(0.001, 1.3),
        notes=["Blue: rule. Orange: naive. Dotted: Ville's bound, δ"],
        legend="below",
        legend_columns=4,
    )


def _floors(low: Mapping[tuple[str, str], FloatArray]) -> Panel:
    delta = np.linspace(0.01, 0.99, 99)
    series = [
        Series(
            f"{world}, {agent}",
            delta,
            np.quantile(low[world, agent], delta, method="inverted_cdf"),
            in_legend=False,
            **_looks(world, agent),
        )
        for world in worlds()
        for agent in AGENTS
    ]
    return Panel(
        "(b) What does the truth keep, in all but a share δ of runs?",
        "δ",
        "λ, lowest P(m*|·) / P(m*) over time",
        series,
        [Guide("Ville's bound: λ = δ", direction="diagonal", in_legend=False)],
        xlim=(0.0, 1.0),
        ylim=(-0.02, 1.02),
        notes=["Dotted: Ville's bound, λ = δ"],
    )


def _by_time(settings: Settings, columns: Columns) -> Panel:
    series = []
    for agent in AGENTS:
        fell = (columns[f"{_SHOWN} {agent} low"] < _DELTA).sum(0)
        runs = len(columns[f"{_SHOWN} {agent} low"])
        bounds = wilson(fell, runs, z=2.0)
        look: Any = {"colour": _COLOURS[agent]}
        series.append(Series(agent, times(settings), fell / runs, *bounds, **look))
    return Panel(
        f"(c) {_SHOWN.capitalize()}: runs that ever fell below δ = {_DELTA:g}",
        "step t",
        "share of runs, by step t",
        series,
        [Guide(f"Ville's bound: δ = {_DELTA:g}", _DELTA)],
        ylim=(-0.02, 1.02),
        legend="upper left",
    )


def _posterior(settings: Settings, columns: Columns) -> Panel:
    prior = float(worlds()[_SHOWN].modes.prior[worlds()[_SHOWN].true])
    series = [
        Series.of_runs(
            agent,
            times(settings),
            columns[f"{_SHOWN} {agent} posterior"] * prior,
            colour=_COLOURS[agent],
        )
        for agent in AGENTS
    ]
    return Panel(
        f"(d) {_SHOWN.capitalize()}: belief in the true mode, on average",
        "step t",
        "mean of P(m*|·)",
        series,
        [Guide("prior", prior)],
        ylim=(-0.02, 1.02),
        legend="center right",
    )
