"""Draw the numbers of a sweep against the swept setting: a panel for each claim and table column.

The horizontal axis is the swept setting with the most numbers as values. There is a line for each
combination of the values of the other settings, and in panels of a table for each of its rows.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from bayescontrol.lab.experiment import Score
from bayescontrol.plot.chart import PALETTE, Chart, Dash, Panel, Scale, Series
from bayescontrol.plot.legend import COLOUR_MARKERS
from bayescontrol.report.page import Section

#: Axes with positive values that span at least this factor are logarithmic.
_LOG_RATIO: Final = 30.0
#: Numbers with a smaller relative difference count as equal.
_ROUNDING: Final = 1e-9
#: Panels in a row.
_COLUMNS: Final = 3
#: Lines in a panel that can be told apart.
_MOST_LINES: Final = 6
#: A number in a table, perhaps with its error.
_NUMBER: Final = re.compile(r"(-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?) ?%?(?: ± (\d[\d.]*(?:e[-+]?\d+)?))?")
_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dashdot")


class _Number(NamedTuple):
    """A number of one point: its panel and line, value ± bar, and the expected number if any."""

    panel: str
    note: str
    line: str
    value: float
    bar: float = 0.0
    expected: float = math.nan


def sweep_charts(sections: Sequence[Section]) -> dict[str, Chart]:
    """Return the charts of a sweep by file name; empty if no numbers can be drawn.

    A chart needs a swept setting with two numbers or more, and at most six lines in a panel.
    """
    swept = {
        name: {section.swept.get(name) for section in sections if _is_number(section.swept[name])}
        for name in (sections[0].swept if sections else ())
    }
    axis = max(swept, key=lambda name: len(swept[name]), default="")
    if len(swept.get(axis, ())) < 2:
        return {}
    panels = _panels(sections, axis, _claim_numbers), _panels(sections, axis, _table_numbers)
    equal = "with the same numbers at all points are only in the table."
    claims = (
        f"Our numbers against {axis}",
        "Each panel shows the number of one claim; its sentence is on the page of each point. "
        "A dotted line is the value that the claim expects, where it expects a number. "
        f"Claims {equal}",
        "bands: ± 2 standard errors",
    )
    tables = (
        f"The numbers of the tables against {axis}",
        "Each panel shows a column of a table, each line one of its rows, with the errors that the "
        f"table gives. Columns {equal}",
        "",
    )
    charts = {"sweep": (claims, panels[0]), "sweep-tables": (tables, panels[1])}
    return {
        name: Chart(title, drawn, how, min(_COLUMNS, len(drawn)), note)
        for name, ((title, how, note), drawn) in charts.items()
        if drawn
    }


def _claim_numbers(score: Score) -> Iterator[_Number]:
    for claim in score.claims:
        if _is_number(claim.ours):
            bar = 0.0 if claim.exact else 2 * (claim.error or 0.0)
            expected = claim.expected if _is_number(claim.expected) else math.nan
            yield _Number(claim.name, "", "ours", claim.ours, bar, expected)


def _table_numbers(score: Score) -> Iterator[_Number]:
    for table in score.tables:
        for row in table.rows:
            texts = takewhile(lambda cell: _NUMBER.fullmatch(str(cell)) is None, row)
            line = ", ".join(map(str, texts)) or table.title
            for name, cell in zip(table.header, row, strict=True):
                if found := _NUMBER.fullmatch(str(cell)):
                    value, bar = (float(part.replace(",", "")) for part in found.groups("0"))
                    yield _Number(name, table.title, line, value, bar)


def _panels(
    sections: Sequence[Section], axis: str, read: Callable[[Score], Iterator[_Number]]
) -> list[Panel]:
    """Return the panels of the numbers that `read` finds in a score."""
    lines: dict[tuple[str, str], dict[str, dict[float, _Number]]] = {}
    for section in sections:
        at = section.swept[axis]
        if not _is_number(at):
            continue
        rest = "".join(f", {name} = {v}" for name, v in section.swept.items() if name != axis)
        for number in read(section.result.score):
            panel = lines.setdefault((number.panel, number.note), {})
            panel.setdefault(number.line + rest, {})[float(at)] = number
    drawn = (_panel(*key, axis, by_line) for key, by_line in lines.items())
    return [panel for panel in drawn if panel is not None]


def _panel(
    name: str, note: str, axis: str, lines: Mapping[str, Mapping[float, _Number]]
) -> Panel | None:
    """Return the panel of one number; None unless it differs between points, in a few lines."""
    series: list[Series] = []
    for k, (label, found) in enumerate(lines.items()):
        if len(found) > 1 and len(lines) <= _MOST_LINES:
            series += _series(sorted(found.items()), label, k)
    ours = np.array([y for one in series if one.low is not None for y in one.y])
    if not series or np.ptp(ours) <= _ROUNDING * np.abs(ours).max():
        return None
    x = np.concatenate([one.x for one in series])
    scale: Scale = "log" if x.min() > 0 and x.max() >= _LOG_RATIO * x.min() else "linear"
    notes, ylabel = ([note], name) if note else ([], "our number")
    return Panel(name, axis, ylabel, series, xscale=scale, legend="below", notes=notes)


def _series(found: Sequence[tuple[float, _Number]], label: str, k: int) -> list[Series]:
    x, ours, bar, expected = np.array(
        [(at, number.value, number.bar, number.expected) for at, number in found]
    ).T
    colour = PALETTE[k]
    style: Any = {"colour": colour, "dash": _DASHES[k % 3], "marker": COLOUR_MARKERS[colour]}
    series = [Series(label, x, ours, ours - bar, ours + bar, **style)]
    if np.isfinite(expected).all():
        name = f"expected{label.removeprefix('ours')}"
        series.append(Series(name, x, expected, colour=colour, dash="dot"))
    return series


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
