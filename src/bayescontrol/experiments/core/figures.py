"""The figures of `core`: three hypotheses with their policies, and the evidence."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.core.exact import expected_divergences, rate
from bayescontrol.experiments.core.replica import (
    HELD,
    OTHERS,
    SPELLS,
    TRUE,
    WHO,
    Settings,
    acts,
    modes,
    spell,
    times,
)
from bayescontrol.experiments.drawing import Places, framed_alike
from bayescontrol.experiments.mode_panel import mode_panel
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

_COLOURS: Final[tuple[Colour, ...]] = ("blue", "vermillion", "green")
_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dashdot")
_PLACES: Final[Places] = {
    "A0": (0.2, 0.0),
    "A1": (0.5, 1.5),
    "A2": (2.0, 1.6),
    "A3": (0.2, -1.5),
    "B0": (4.3, 1.4),
    "B1": (4.3, -0.4),
}
#: Bands hold nine runs of ten.
_BAND: Final = (0.05, 0.95)
_DOES: Final = (
    "climbs always, and so comes to B",
    "goes round always, and stays in A",
    "climbs a step and goes back: stays in A",
)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Both figures.

    >>> from bayescontrol.experiments.core.replica import run
    >>> few = Settings(runs=1, steps=300)  # enough to draw, not to judge
    >>> sorted(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['evidence', 'hypotheses']
    """
    return {"hypotheses": _hypotheses(), "evidence": _evidence(settings, columns)}


def _hypotheses() -> Chart:
    panels = [
        mode_panel(
            modes(),
            m,
            _PLACES,
            title=f"H{m + 1} and its policy P{m + 1}",
            policy=f"P{m + 1}",
            look=(_COLOURS[m], _DASHES[m]),
            note=_DOES[m],
        )
        for m in range(len(modes()))
    ]
    return Chart(
        "Three hypotheses, and where their policies go",
        framed_alike(panels),
        "Circles A0 … B1 are states. The more colour in one, the surer a hypothesis is to see a 1 "
        "there: H1 and H2 look "
        "the same in region A and differ in region B, H3 differs everywhere. Coloured arrows are "
        "what the policy does, the outline is where it stays; grey arrows lead elsewhere. If H1 "
        "is true, P2 can refute H3 but never H2: only P1 comes to B.",
        columns=3,
    )


def _evidence(settings: Settings, columns: Columns) -> Chart:
    return Chart(
        "Evidence when H1 is true",
        [_only(1, columns), _only(0, columns), _spells(columns), _rule(settings, columns)],
        "Evidence for H1 against another hypothesis H is the sum of ln P(o|H1)/P(o|H) over what "
        "was observed. (a) While P2 acts, evidence against H3 grows and there is none against H2, "
        "ever. (b) P1 comes to region B and refutes both. (c) P1 must act for at least three steps "
        "at a time: less is in vain, however often. (d) The control rule draws a hypothesis from "
        "its posterior at every step and acts by its policy: first H3 goes, then H2, slowly, since "
        f"P1 must be drawn three times in a row; holding what was drawn for {HELD} steps makes it "
        "quicker.",
        columns=2,
        note=f"{settings.runs} runs",
    )


def _only(who: int, columns: Columns) -> Panel:
    d = columns["divergence"][:, who]
    t = np.arange(d.shape[1])
    exact = expected_divergences(acts(WHO[who]), TRUE, t[-1])
    series = []
    for j, m in enumerate(OTHERS):
        look: Any = {"colour": _COLOURS[m], "dash": _DASHES[m]}
        low, high = np.quantile(d[:, :, j], _BAND, axis=0)
        against = f"against H{m + 1}"
        series.append(Series(against, t, d[:, :, j].mean(axis=0), low, high, **look))
        series.append(
            Series(f"{against}: exact mean", t, exact[:, m], colour="ink", dash="dot",
                   in_legend=False, group=against)
        )  # fmt: skip
    return Panel(
        f"({'ba'[who]}) Only P{who + 1} acts",
        "step t", "evidence for H1 [nats]", series,
        notes=["Means, and 90 % of the runs; dotted: exact means"],
        legend="upper left",
    )  # fmt: skip


def _spells(columns: Columns) -> Panel:
    k, T = np.array(SPELLS), columns["divergence"].shape[2] - 1
    # At the same step, so that spells that T cuts short count as they did in the runs.
    exact = [expected_divergences(spell(n), TRUE, T)[-1, OTHERS[0]] / T for n in SPELLS]
    always = rate(acts(WHO[0]), TRUE, OTHERS[0])
    return Panel(
        "(c) P1 for k steps, then P2 for one, and again",
        "k, steps of P1 at a time", "evidence against H2 [nats a step]",
        [
            Series("exact", k, np.array(exact), colour="ink", dash="dot", marker="square-open"),
            Series.of_runs("simulated", k, columns["spells"] / T, kind="points",
                           colour=_COLOURS[1]),
        ],
        [Guide("P1 for ever", always, colour=_COLOURS[0], dash="dash")],
        xticks=k.tolist(), ylim=(-0.005, None),
        notes=["Bars: ± 2 standard errors"],
        legend="lower right",
    )  # fmt: skip


def _rule(settings: Settings, columns: Columns) -> Panel:
    t = times(settings.steps)
    series = [
        Series.of_runs(
            f"H{m + 1}", t, columns["weights"][:, :, m], colour=_COLOURS[m], dash=_DASHES[m]
        )
        for m in range(len(modes()))
    ]
    held = columns["held"][:, :, 1]
    late = Series.of_runs(f"H2, modes held for {HELD} steps", times(settings.held_steps), held,
                          colour="purple", dash="dot")  # fmt: skip
    return Panel(
        "(d) The control rule",
        "step t", "mean weight of each hypothesis", [*series, late],
        xscale="log", ylim=(-0.02, 1.02),
        notes=["Bands: ± 2 standard errors"],
        legend="center right",
    )  # fmt: skip
