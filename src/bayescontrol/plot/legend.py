"""Legends of a chart, and markers for lines that differ only in their colour.

    panel    the legend of one panel
    row      one legend below a row of panels that share an entry
    chart    one legend below all panels, if all rows share an entry

Marks with the same label, group, colour, dash and marker are one entry.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeAlias

from bayescontrol.plot.chart import Chart, Colour, LabelledMark, Marker, Panel, Series

#: Legend entries by label and look.
Entries: TypeAlias = Mapping[tuple[Any, ...], LabelledMark]

#: The marker of a line that another line resembles in all but colour.
COLOUR_MARKERS: Final[Mapping[Colour, Marker]] = {
    "blue": "circle",
    "vermillion": "square",
    "green": "diamond",
    "orange": "triangle-up",
    "sky": "triangle-down",
    "purple": "star",
    "ink": "cross",
    "yellow": "plus",
}


class Legends(NamedTuple):
    """The entries of the legend of each panel, of each row of panels, and of the whole chart."""

    panels: Sequence[Entries]
    rows: Sequence[Entries]
    chart: Entries


def legends(chart: Chart) -> Legends:
    """Arrange the legends of a chart: panels that share an entry share a legend.

    A panel with `legend="below"` shares its legend with its row in any case.
    """
    by_panel = [
        {look(mark): mark for mark in panel.labelled if mark.in_legend} for panel in chart.panels
    ]
    starts = range(0, len(by_panel), chart.columns)
    rows = []
    for start in starts:
        part = by_panel[start : start + chart.columns]
        panels = chart.panels[start : start + chart.columns]
        is_shared = any(panel.legend == "below" for panel in panels) or any(
            a.keys() & b.keys() for a, b in combinations(part, 2)
        )
        rows.append(_merged(part) if is_shared else {})
    separate = [{} if rows[i // chart.columns] else by_panel[i] for i in range(len(by_panel))]
    with_entries = [set(rows[i // chart.columns]) for i, entries in enumerate(by_panel) if entries]
    if with_entries and set.intersection(*with_entries):
        return Legends(separate, [{} for _ in rows], _merged(rows))
    return Legends(separate, rows, {})


def look(mark: LabelledMark) -> tuple[Any, ...]:
    """Return what a legend shows of a mark, and its group."""
    style = (getattr(mark, name, None) for name in ("colour", "dash", "marker", "shade"))
    return (mark.label, mark.group, getattr(mark, "kind", "") == "points", *style)


def _merged(parts: Iterable[Entries]) -> Entries:
    merged: dict[tuple[Any, ...], LabelledMark] = {}
    for part in parts:
        merged |= {key: mark for key, mark in part.items() if key not in merged}
    return merged


def with_distinct_lines(chart: Chart) -> Chart:
    """Return the chart with a few markers on each line that only its colour tells from another.

    Lines of one colour get the same marker in all panels. Points, lines that have a marker, and
    lines in a group with several points in the panel remain as they are.
    """
    ambiguous: set[Colour] = set()
    for panel in chart.panels:
        by_dash: dict[str, set[Colour]] = {}
        for line in _plain_lines(panel):
            by_dash.setdefault(line.dash, set()).add(line.colour)
        ambiguous.update(*(colours for colours in by_dash.values() if len(colours) > 1))

    def marked(panel: Panel) -> Panel:
        plain = _plain_lines(panel)
        series = [
            dataclasses.replace(line, marker=COLOUR_MARKERS[line.colour], sparse=True)
            if line in plain and line.colour in ambiguous
            else line
            for line in panel.series
        ]
        return dataclasses.replace(panel, series=series)

    if not ambiguous:
        return chart
    return dataclasses.replace(chart, panels=[marked(panel) for panel in chart.panels])


def _plain_lines(panel: Panel) -> list[Series]:
    points = {s.group for s in panel.series if s.kind == "points" and s.x.size > 1}
    return [
        s for s in panel.series if s.kind != "points" and s.marker is None and s.group not in points
    ]
