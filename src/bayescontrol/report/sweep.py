"""Draw our numbers in a sweep against the swept setting, one panel for each claim.

The horizontal axis is the swept setting with the most numbers as values. There is a line for each
combination of the values of the other settings.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, get_args

import numpy as np

from bayescontrol.lab.experiment import Claim
from bayescontrol.plot.chart import Chart, Marker, Panel, Scale, Series
from bayescontrol.report.page import Section

#: Axes with positive values that span at least this factor are logarithmic.
_LOG_RATIO: Final = 30.0
#: Numbers with a smaller relative difference count as equal.
_ROUNDING: Final = 1e-9
#: Panels in a row.
_COLUMNS: Final = 3
#: Lines in a panel that can be told apart.
_MOST_LINES: Final = 6


def sweep_charts(sections: Sequence[Section]) -> dict[str, Chart]:
    """Return the chart of a sweep by file name; empty if no numbers can be drawn.

    A chart needs a swept setting with two numbers or more, and at most six lines in a panel.
    """
    swept = {
        name: {section.swept.get(name) for section in sections if _is_number(section.swept[name])}
        for name in (sections[0].swept if sections else ())
    }
    axis = max(swept, key=lambda name: len(swept[name]), default="")
    lines: dict[str, list[Section]] = {}
    for section in sections:
        if axis and _is_number(section.swept[axis]):
            rest = (f", {name} = {value}" for name, value in section.swept.items() if name != axis)
            lines.setdefault("".join(rest), []).append(section)
    if len(swept.get(axis, ())) < 2 or len(lines) > _MOST_LINES:
        return {}
    names = dict.fromkeys(c.name for section in sections for c in section.result.score.claims)
    panels = [panel for name in names if (panel := _panel(name, axis, lines)) is not None]
    if not panels:
        return {}
    chart = Chart(
        f"Our numbers against {axis}",
        panels,
        "Each panel shows the number of one claim; its sentence is on the page of each point. "
        "A dotted line is the value that the claim expects, where it expects a number. Claims "
        "with the same number at all points are only in the table.",
        columns=min(_COLUMNS, len(panels)),
        note="bands: ± 2 standard errors",
    )
    return {"sweep": chart}


def _panel(name: str, axis: str, lines: Mapping[str, Sequence[Section]]) -> Panel | None:
    """Return the panel of one claim; None unless it has different numbers at two points."""
    series: list[Series] = []
    for k, (label, sections) in enumerate(lines.items()):
        found = {
            float(str(section.swept[axis])): claim
            for section in sections
            for claim in section.result.score.claims
            if claim.name == name and _is_number(claim.ours)
        }
        if len(found) > 1:
            series += _series(sorted(found.items()), label, k)
    ours = np.array([y for one in series if one.low is not None for y in one.y])
    if not series or np.ptp(ours) <= _ROUNDING * np.abs(ours).max():
        return None
    x = np.concatenate([one.x for one in series])
    scale: Scale = "log" if x.min() > 0 and x.max() >= _LOG_RATIO * x.min() else "linear"
    return Panel(name, axis, "our number", series, xscale=scale, legend="below")


def _series(found: Sequence[tuple[float, Claim]], label: str, k: int) -> list[Series]:
    x = np.array([value for value, _ in found])
    ours = np.array([float(claim.ours) for _, claim in found])
    bar = 2 * np.array([0.0 if claim.exact else claim.error or 0.0 for _, claim in found])
    group = f"ours{label}"  # a common group has a common colour
    series = [Series(group, x, ours, ours - bar, ours + bar, marker=get_args(Marker)[k])]
    if all(_is_number(claim.expected) for _, claim in found):
        expected = np.array([float(claim.expected) for _, claim in found])
        series.append(Series(f"expected{label}", x, expected, dash="dot", group=group))
    return series


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
