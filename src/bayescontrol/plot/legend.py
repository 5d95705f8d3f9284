"""Legends of a chart, colours of series without one, and markers on lines of different colours.

A panel has its own legend, unless one of its entries is also in another panel: such panels share
one legend below the chart. Marks with the same label, group, colour, dash and marker are one entry.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, Final, get_args

import numpy as np

from bayescontrol.plot.chart import PALETTE, Chart, Colour, LabelledMark, Marker, Panel, Series
from bayescontrol.plot.palette import LIGHT

#: The marker of a line that another line resembles in all but colour.
COLOUR_MARKERS: Final[Mapping[Colour, Marker]] = dict(zip(PALETTE, get_args(Marker), strict=False))


def shared_legend(chart: Chart) -> dict[tuple[Any, ...], LabelledMark]:
    """Return the entries of the legend below the chart, by their `look`.

    These are all entries of panels that share one with another panel or have `legend="below"`.
    """
    by_panel = [{look(mark): mark for mark in panel.legend_marks} for panel in chart.panels]
    panels_with = Counter(entry for entries in by_panel for entry in entries)
    shared: dict[tuple[Any, ...], LabelledMark] = {}
    for panel, entries in zip(chart.panels, by_panel, strict=True):
        if panel.legend == "below" or any(panels_with[entry] > 1 for entry in entries):
            shared |= entries
    return shared


def look(mark: LabelledMark) -> tuple[Any, ...]:
    """Return what a legend shows of a mark, and its group."""
    style = (getattr(mark, name, None) for name in ("colour", "dash", "marker", "shade"))
    return (mark.label, mark.group, getattr(mark, "kind", "") == "points", *style)


def with_colours(panels: Sequence[Panel]) -> list[Panel]:
    """Return the panels with a colour for each series that has none, the same for all of a group.

    A label that names a colour gets the colour of the palette that is most like it, so that an arm
    called "red" is not drawn in green. The others get the colours that are left, in their order.
    """
    from matplotlib.colors import CSS4_COLORS, to_rgb

    series = [one for panel in panels for one in panel.series]
    chosen: dict[str, Colour] = {one.group: one.colour for one in series if one.colour}
    missing = {one.group: one.label for one in series if one.group not in chosen}
    named = {}  # the first colour of CSS in the label of each such group; "" otherwise
    for group, label in missing.items():
        words = re.findall("[a-z]+", label.lower())
        named[group] = next((CSS4_COLORS[word] for word in words if word in CSS4_COLORS), "")
    # Groups whose label names a colour choose first. If no colour is left, colours are used again.
    for k, group in enumerate(sorted(missing, key=lambda group: not named[group])):
        free = [c for c in PALETTE if c not in chosen.values()] or [PALETTE[k % len(PALETTE)]]
        rgb = np.array(to_rgb(named[group] or LIGHT[free[0]]))
        chosen[group] = min(free, key=lambda c: float(np.sum((rgb - to_rgb(LIGHT[c])) ** 2)))
    return [
        replace(p, series=[s if s.colour else replace(s, colour=chosen[s.group]) for s in p.series])
        for p in panels
    ]


def with_distinct_lines(chart: Chart) -> Chart:
    """Return the chart with all colours, and markers on lines that only a colour tells apart.

    Lines of one colour get the same marker in all panels. Points, lines that have a marker, and
    lines in a group with several points in the panel remain as they are.
    """
    chart = replace(chart, panels=with_colours(chart.panels))
    ambiguous = {
        a.colour
        for panel in chart.panels
        for a, b in permutations(_plain_lines(panel), 2)
        if a.dash == b.dash and a.colour != b.colour
    }
    panels = []
    for panel in chart.panels:
        marked = {
            line: replace(line, marker=COLOUR_MARKERS[line.colour or PALETTE[0]], sparse=True)
            for line in _plain_lines(panel)
            if line.colour in ambiguous
        }
        panels.append(replace(panel, series=[marked.get(line, line) for line in panel.series]))
    return replace(chart, panels=panels)


def _plain_lines(panel: Panel) -> list[Series]:
    """Return the lines without a marker, except those of a group that also has points."""
    points = {s.group for s in panel.series if s.kind == "points" and s.x.size > 1}
    lines = (s for s in panel.series if s.kind != "points" and s.marker is None)
    return [line for line in lines if line.group not in points]
