"""The figures of `consistency`: two modes that disagree, their repair, and what becomes of it."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.consistency.replica import (
    AS_IT_WAS,
    LOOK,
    NAMES,
    REPAIRED,
    Settings,
    modes,
)
from bayescontrol.experiments.drawing import Places, framed_alike
from bayescontrol.experiments.mode_panel import mode_panel
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Series

_PLACES: Final[Places] = {
    "A0": (1.5, 0.0),
    "A1": (0.0, 1.2),
    "A2": (0.0, -1.2),
    "B0": (3.9, 0.0),
}
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    AS_IT_WAS: ("vermillion", "solid"),
    REPAIRED: ("green", "dash"),
    LOOK: ("blue", "dashdot"),
}
#: Bands hold nine runs of ten.
_BAND: Final = (0.05, 0.95)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Both figures.

    >>> from bayescontrol.experiments.consistency.replica import run
    >>> few = Settings(runs=1)  # enough to draw, not to judge
    >>> sorted(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['modes', 'settling']
    """
    return {"modes": _modes(settings), "settling": _settling(settings, columns)}


def _modes(settings: Settings) -> Chart:
    was = modes(AS_IT_WAS, settings.weight, settings.look)
    mended = modes(REPAIRED, settings.weight, settings.look)
    panels = [
        mode_panel(was, 0, _PLACES, title="H1 and its policy P1", policy="P1",
                   look=("blue", "solid"), note="stays in A, by A1"),
        mode_panel(was, 1, _PLACES, title="H2 and its policy P2", policy="P2",
                   look=("vermillion", "dash"), note="stays in A, by A2"),
        mode_panel(mended, 1, _PLACES, title="H2, repaired", policy="P2",
                   look=("green", "dashdot"), note="as P1 in A, where H1 and H2 agree"),
    ]  # fmt: skip
    return Chart(
        "Two modes that agree on what they see, and not on what to do",
        framed_alike(panels),
        "Circles A0 … B0 are states; mode m1 is the hypothesis H1 with the policy P1, m2 likewise. "
        "The more colour in a state, the surer a hypothesis is to see a 1 there: H1 and H2 agree "
        "in region A and differ in region B. Coloured arrows are what a policy does, the outline "
        "is where it stays; grey arrows lead elsewhere. P1 and P2 both stay in A, where nothing "
        "can tell H1 from H2, and do different things there. The repair: who agrees on A and "
        "stays in A must have one policy for it.",
        columns=3,
    )


def _settling(settings: Settings, columns: Columns) -> Chart:
    return Chart(
        "Does the agent come to act as the true mode, m1?",
        [
            _panel("(a) Distance of what it does from what m1 would do",
                   "total variation distance", columns["distance"]),
            _panel("(b) What it believes", "weight of m1, the true mode", columns["weight"]),
        ],
        "Total variation: 0 when the agent does just what the true mode m1 would do, 1 when the "
        "two never do the same. (a) As it was, it stays where it began, in every run, for ever: "
        "the two policies are mixed by the prior. Repaired, it is at zero at once, and (b) the "
        "agent never knows which mode is true, as it need not. If the policies take a look at B "
        "now and then, the modes are told apart after some time.",
        columns=2,
        note=f"{settings.runs} runs of {settings.steps} steps; means, and 90 % of the runs",
    )  # fmt: skip


def _panel(title: str, ylabel: str, values: Any) -> Panel:
    t = np.arange(values.shape[-1])
    series = []
    # In (b) the first two lie one upon the other: the dashes of the second show both.
    for k, name in enumerate(NAMES):
        colour, dash = _LOOKS[name]
        low, high = np.quantile(values[:, k], _BAND, axis=0)
        mean = values[:, k].mean(axis=0)
        low, high = np.minimum(low, mean), np.maximum(high, mean)
        series.append(Series(name, t, mean, low, high, colour=colour, dash=dash))
    return Panel(title, "step t", ylabel, series, ylim=(-0.03, 1.03), legend="upper right"
                 if "Distance" in title else "lower right")  # fmt: skip
