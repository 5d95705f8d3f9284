"""The figure of `convergence`: a panel for each class, with the verdict in words."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.convergence.verdict import Outcome
from bayescontrol.experiments.convergence.cases import CASES, LENGTH, WORDS, outcome
from bayescontrol.experiments.convergence.replica import Settings, times
from bayescontrol.experiments.convergence.score import NEAR, chain_distance
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Series

_COLOURS: Final[Mapping[Outcome, Colour]] = {
    Outcome.THEOREM: "blue",
    Outcome.SETTLES: "green",
    Outcome.UNDECIDED: "orange",
    Outcome.NEVER: "vermillion",
}
_TITLES: Final = {
    "five modes": "Five modes, three levers",
    "goal worlds": "Grid-worlds, four goals",
    "chain": f"Chain of {LENGTH}",
    "bias grid": "Bias grid",
    "two policies": "Two policies for one region",
    "trap": "A trap",
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Six panels.

    >>> from bayescontrol.experiments.convergence.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> len(draw(Settings(runs=1), one)["convergence"].panels)  # enough to draw
    6
    """
    return {
        "convergence": Chart(
            "Does the agent come to act as the true mode does?",
            [_panel(settings, columns, k, name) for k, name in enumerate(CASES)],
            "The distance (total variation) is 0 when the agent acts exactly as the true mode "
            "would, 1 when the two never do the same. Under each title stands what the exact check "
            "says of the class. Blue: the convergence theorem covers it. Green: it does not, and "
            "yet the agent settles. Orange: two modes that act differently cannot be told apart, "
            "always or once the agent is in a trap.",
            columns=3,
            note=f"{settings.runs} runs; lines are means, bands hold nine runs in ten, dotted: the "
            f"share of runs farther than {NEAR:g}",
        )
    }


def _panel(settings: Settings, columns: Columns, k: int, name: str) -> Panel:
    t, runs, fate = times(settings), columns[name], outcome(name)
    low, high = np.quantile(runs, (0.05, 0.95), axis=0, method="inverted_cdf")
    look: Any = {"colour": _COLOURS[fate]}
    series = [
        Series("distance", t, runs.mean(0), low, high, group=name, **look),
        Series(f"runs above {NEAR:g}", t, (runs > NEAR).mean(0), colour="ink", dash="dot"),
    ]
    if name == "chain":
        series.append(Series("exact mean", t, chain_distance(t), colour="orange", dash="dash"))
    return Panel(
        f"({'abcdef'[k]}) {_TITLES[name]}",
        "step t",
        "distance",
        series,
        xscale="log",
        ylim=(-0.02, 1.02),
        notes=[WORDS[fate]],
        legend="lower right" if name == "two policies" else "upper right",
    )
