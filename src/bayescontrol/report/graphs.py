"""Graphs on paper and on a page: outlines, then arrows, then nodes, then words.

    outline    a faint tint of its colour, that lets other outlines shine through
    arrow      as wide as its edge is probable
    node       opaque in the colour of the ground, then shaded

The shapes come from `lab.graphs`; on a page the pointer reads nodes and arrows. Matplotlib and
Plotly are loaded when the first graph is drawn.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.chart import Panel
from bayescontrol.lab.graph_parts import Edge
from bayescontrol.lab.graphs import Graph
from bayescontrol.report.palette import LIGHT, LIGHT_GROUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The share of an outline's colour that is seen inside it.
_TINT: Final = 0.1
_DASHES: Final = {"solid": "-", "dash": "--", "dashdot": "-.", "dot": ":"}
#: Points of letters in print: in nodes, beside arrows, and over outlines.
_POINTS: Final = (8.5, 7.5, 9.5)
#: Pixels of letters on a page.
_PIXELS: Final = (12, 11, 13)
#: Inches for a row of graphs, what each has at least and at most, and what a unit has at most.
_ROW: Final = 12.5
_SIDES: Final = (3.0, 6.5)
_UNIT: Final = 0.85
_TITLE: Final = 0.75


def print_graph(mark: Graph, ax: "Axes", panel: Panel) -> None:
    """A graph on Matplotlib's axes.

    >>> from matplotlib.figure import Figure
    >>> from bayescontrol.lab.graphs import Edge, Node
    >>> ax = Figure().subplots()
    >>> graph = Graph("a coin", [Node("A", 0, 0), Node("B", 2, 0)], [Edge("A", "B")])
    >>> print_graph(graph, ax, Panel("", "states", "transitions", [], graphs=[graph]))
    >>> len(ax.lines), len(ax.patches), [text.get_text() for text in ax.texts]
    (1, 3, ['A', 'B'])
    """
    from matplotlib.patheffects import withStroke

    ground, ink = LIGHT_GROUND["ground"], LIGHT_GROUND["axis"]
    for area, hull in zip(mark.areas, mark.outlines, strict=True):
        colour = LIGHT[area.colour]
        ax.fill(*hull.T, facecolor=_seen(colour, _TINT), edgecolor=colour, linewidth=1.4,
                linestyle=_DASHES[area.dash])  # fmt: skip
    for edge, arrow in zip(mark.edges, mark.arrows, strict=True):
        colour = _colour(edge)
        (line,) = ax.plot(*arrow.line.T, color=colour, linewidth=edge.width,
                          linestyle=_DASHES[edge.dash])  # fmt: skip
        line.set_solid_capstyle("butt")
        ax.fill(*arrow.head.T, facecolor=colour, linewidth=0)
    for node, disc in zip(mark.nodes, mark.discs, strict=True):
        shaded = _mixed(ground, LIGHT[node.colour], node.shade)
        ax.fill(*disc.T, facecolor=shaded, edgecolor=ink, linewidth=1.0)
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for node in mark.nodes:
        ax.text(node.x, node.y, _plain(node.name), fontsize=_POINTS[0], **middle)
    clear = [withStroke(linewidth=1.8, foreground=ground)]  # lines that cross leave words alone
    for text, x, y in mark.edge_words:
        ax.text(x, y, _plain(text), fontsize=_POINTS[1], path_effects=clear, **middle)
    for text, x, y, name in mark.area_words:
        look: dict[str, Any] = {"fontsize": _POINTS[2], "color": LIGHT[name], **middle}
        ax.text(x, y, _plain(text), fontweight="bold", **look)


def print_size(panels: Sequence[Panel], columns: int) -> tuple[float, float]:
    """Width and height of each of several graphs in print, in inches.

    >>> from bayescontrol.lab.graphs import Node
    >>> graph = Graph("two", [Node("A", 0, 0), Node("B", 4, 0)])
    >>> print_size([Panel("", "states", "transitions", [], graphs=[graph])], 2)
    (3.859, 1.209)
    """
    wide, high = _extent(panels)
    width = min(max(_ROW / columns, _SIDES[0]), _SIDES[1], max(_UNIT * wide, _SIDES[0]))
    return round(width, 3), round(width * high / wide + _TITLE, 3)


def page_graph(mark: Graph, panel: Panel) -> list[Any]:
    """A graph as Plotly's traces: one for each outline, arrow and node, and three of words.

    >>> from bayescontrol.lab.graphs import Edge, Node
    >>> graph = Graph("a coin", [Node("A", 0, 0), Node("B", 2, 0)], [Edge("A", "B", 0.5)])
    >>> traces = page_graph(graph, Panel("", "states", "transitions", [], graphs=[graph]))
    >>> [trace.hovertext for trace in traces if trace.mode == "lines" and not trace.fill]
    ['A → B<br>probability 0.5']
    """
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    traces = []
    for area, hull in zip(mark.areas, mark.outlines, strict=True):
        colour = LIGHT[area.colour]
        traces += [
            _filled(hull, colour, 0, opacity=_TINT),
            _filled(hull, colour, 1.8, fill="none", dash=area.dash),
        ]
    for edge, arrow in zip(mark.edges, mark.arrows, strict=True):
        line = {"color": _colour(edge), "width": 1.3 * edge.width, "dash": edge.dash}
        shaft = go.Scatter(
            x=arrow.line[:, 0], y=arrow.line[:, 1], mode="lines", line=line,
            hoverinfo="text", hovertext=_said(edge), name="", showlegend=False,
        )  # fmt: skip
        traces += [shaft, _filled(arrow.head, _colour(edge), 0)]
    for node, disc in zip(mark.nodes, mark.discs, strict=True):
        traces.append(_filled(disc, LIGHT_GROUND["ground"], 0))
        traces.append(_filled(disc, LIGHT[node.colour], 0, opacity=node.shade))
        traces.append(_filled(disc, LIGHT_GROUND["axis"], 1.2, fill="none"))
    named = [(node.name, node.x, node.y) for node in mark.nodes]
    said = [_literally(node.said or node.name) for node in mark.nodes]
    traces.append(_words(named, LIGHT_GROUND["text"], _PIXELS[0], said))
    traces.append(_words(mark.edge_words, LIGHT_GROUND["text"], _PIXELS[1]))
    traces += [
        _words([(text, x, y)], LIGHT[name], _PIXELS[2], bold=True)
        for text, x, y, name in mark.area_words
    ]
    return traces


def page_style(panels: Sequence[Panel]) -> str:
    """The place that graphs need on a page, as wide to high as the widest and highest are.

    >>> from bayescontrol.lab.graphs import Node
    >>> graph = Graph("two", [Node("A", 0, 0), Node("B", 2, 0)])
    >>> page_style([Panel("", "states", "transitions", [], graphs=[graph])])
    'aspect-ratio: 2.54 / 0.54; max-height: 520px'
    """
    wide, high = _extent(panels)
    return f"aspect-ratio: {wide:.4g} / {high:.4g}; max-height: 520px"


def _extent(panels: Sequence[Panel]) -> tuple[float, float]:
    spans = [[high - low for low, high in map(panel.extent, "xy")] for panel in panels]  # type: ignore[arg-type]
    wide, high = np.max(spans, axis=0)
    return float(wide), float(high)


def _filled(
    shape: FloatArray, colour: str, width: float, *, opacity: float = 1.0, fill: str = "toself",
    dash: str = "solid",
) -> Any:  # fmt: skip
    import plotly.graph_objects as go

    x, y = np.append(shape, shape[:1], axis=0).T
    return go.Scatter(
        x=x, y=y, mode="lines", fill=fill, fillcolor=colour, opacity=opacity,
        line={"color": colour, "width": width, "dash": dash},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip


def _words(
    words: Sequence[tuple[str, float, float]],
    colour: str,
    size: int,
    said: Sequence[str] | None = None,
    *,
    bold: bool = False,
) -> Any:
    import plotly.graph_objects as go

    texts = [_literally(text) for text, _, _ in words]
    return go.Scatter(
        x=[x for _, x, _ in words],
        y=[y for _, _, y in words],
        mode="text",
        text=[f"<b>{text}</b>" if bold else text for text in texts],
        textfont={"color": colour, "size": size},
        hoverinfo="skip" if said is None else "text",
        hovertext=said,
        name="",
        showlegend=False,
        cliponaxis=False,
    )


def _colour(edge: Edge) -> str:
    return LIGHT_GROUND["axis"] if edge.faint else LIGHT[edge.colour]


def _said(edge: Edge) -> str:
    label = f"<br>{_literally(edge.label)}" if edge.label else ""
    way = f"{edge.source} → {edge.target}"
    return f"{_literally(way)}{label}<br>probability {edge.probability:.3g}"


def _seen(colour: str, share: float) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue, share


def _mixed(ground: str, colour: str, share: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple((1 - share) * np.array(to_rgb(ground)) + share * np.array(to_rgb(colour)))


def _plain(text: str) -> str:
    """Text as it stands: Matplotlib would read mathematics between dollars."""
    return text.replace("$", r"\$")


def _literally(text: str) -> str:
    """Text as it stands, line by line: Plotly would read tags and mathematics."""
    safe = escape(text, quote=False).replace("$", "&#36;").replace("{", "&#123;")
    return safe.replace("\n", "<br>")
