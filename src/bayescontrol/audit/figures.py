"""Pictures of an audit: one chart for each world."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from bayescontrol.audit.measure import Audit, Histories, WorldAudit, bootstrap, identifies
from bayescontrol.plot.chart import Chart, Colour, Guide, Marker, Panel, Series
from bayescontrol.seeding import Stream

#: The most points of a regression that are drawn.
_POINTS: Final = 600
#: The colour and the marker of each kind of histories.
_COLOURS: Final[dict[Histories, Colour]] = {"written": "vermillion", "forced": "blue"}
_MARKERS: Final[dict[Histories, Marker]] = {"written": "circle", "forced": "square-open"}


def charts(result: Audit) -> dict[str, Chart]:
    """Return a picture of each world, by its name.

    >>> from bayescontrol.audit import audit
    >>> result = audit(lambda _: {"A": 0.5, "B": 0.5}, ["two-hypotheses"], runs=10)
    >>> [panel.title for panel in charts(result)["two-hypotheses"].panels][1]
    '(b) Index along the history'
    """
    names = dict.fromkeys(row.world for row in result.rows)
    return {name: _chart([r for r in result.rows if r.world == name]) for name in names}


def _chart(rows: Sequence[WorldAudit]) -> Chart:
    """Draw the audits of one world: the regression, λ along the history, and the calibration."""
    regression, positions, calibration = [], [], []
    for row in rows:
        label = f"{row.histories}: λ = {row.index:z.2f}" if row.identified else row.histories
        colour, marker = _COLOURS[row.histories], _MARKERS[row.histories]
        d, e = np.unique(row.pairs.round(3), axis=1)
        every = 1 + d.size // _POINTS
        regression.append(
            Series(label, d[::every], e[::every], kind="points", colour=colour, marker=marker)
        )
        if found := list(_index_by_position(row)):
            t, index, low, high = np.array(found).T
            positions.append(
                Series(label, t, index, low, high, "points", colour, marker=marker, in_legend=False)
            )
        q, frequency, _ = row.curve
        calibration.append(
            Series(label, q, frequency, colour=colour, marker=marker, in_legend=False)
        )
    panels = [
        Panel(
            "(a) Distance from the control rule", "naive mixture - control rule [probability]",
            "predictor - control rule [probability]", regression,
            [Guide("control rule", 0.0, dash="dash"),
             Guide("naive mixture", direction="diagonal")],
        ),
        Panel(
            "(c) Calibration of predicted observations", "predicted probability", "frequency",
            calibration, [Guide("calibrated", direction="diagonal", dash="dashdot")],
            xlim=(0, 1), ylim=(0, 1),
        ),
    ]  # fmt: skip
    if positions:
        guides = [Guide("control rule", 0.0, dash="dash"), Guide("naive mixture", 1.0)]
        panels.insert(1, Panel(
            "(b) Index along the history", "number of the symbol in the history",
            "delusion index λ", positions, guides,
        ))  # fmt: skip
    return Chart(
        rows[0].world, panels,
        "A predictor that treats its actions as interventions lies on the line of the control rule "
        "(a, b); one that takes them for evidence lies on the line of the naive mixture. Points "
        "off both lines are errors of another kind. In (c) the predictor overestimates what lies "
        "below the diagonal.",
        columns=len(panels), note=f"{rows[0].runs} runs; bars are 95 % bootstrap intervals",
    )  # fmt: skip


def _index_by_position(row: WorldAudit) -> Iterator[tuple[int, float, float, float]]:
    """Yield the position, λ and its interval of each symbol of the history that identifies it."""
    rng = Stream(0)
    for t, (ed, dd) in enumerate(zip(row.sums.ed.T, row.sums.dd.T, strict=True), 1):
        if identifies(dd, 1):
            yield t, float(ed.sum() / dd.sum()), *bootstrap(ed, dd, rng)
