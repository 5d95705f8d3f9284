"""Describe a figure as data, independent of any plotting library.

    Chart     panels in a grid, a title and a sentence that explains how to read it
    Panel     two labelled axes with marks: series, guides, regions and text;
              or a map of shaded cells (`Heat`, `Strokes`); or a `Graph`

`bayescontrol.report.figures` draws a chart with Matplotlib. Values that are not finite are
skipped: a line has a gap, a marker is missing, a band or error bar is left out.
"""

from bayescontrol.lab.chart.graph import Area, Edge, Graph, Node, ring
from bayescontrol.lab.chart.marks import (
    PALETTE,
    Colour,
    Dash,
    Direction,
    Guide,
    Heat,
    InvalidChart,
    Kind,
    Marker,
    Region,
    Series,
    Strokes,
    Word,
    arrows,
)
from bayescontrol.lab.chart.panel import Chart, Limits, Panel, Place, Scale

__all__ = [
    "PALETTE",
    "Area",
    "Chart",
    "Colour",
    "Dash",
    "Direction",
    "Edge",
    "Graph",
    "Guide",
    "Heat",
    "InvalidChart",
    "Kind",
    "Limits",
    "Marker",
    "Node",
    "Panel",
    "Place",
    "Region",
    "Scale",
    "Series",
    "Strokes",
    "Word",
    "arrows",
    "ring",
]
