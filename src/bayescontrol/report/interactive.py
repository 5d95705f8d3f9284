"""A chart on a page: Plotly, with values under the pointer and series to show and hide.

Each panel is a figure of its own: panels stand side by side on a wide screen and one below
the other on a phone, which no single figure can do. Series of one group carry its name as
their `legendgroup`: a click on the legend takes a line and its band together, and the page
carries it to the other panels of the chart.

Colours are those of a light page; `palette.in_the_dark` says what becomes of each in the dark.
"""

import textwrap
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.chart import Chart, Limits, Panel, Scale
from bayescontrol.lab.graphs import Graph
from bayescontrol.lab.maps import Heat, Strokes
from bayescontrol.lab.marks import Guide, Region, Series, Word
from bayescontrol.report import graphs, maps
from bayescontrol.report.palette import LIGHT, LIGHT_GROUND

if TYPE_CHECKING:
    import plotly.graph_objects as go  # type: ignore[import-untyped]

#: The share of a band's colour that is seen.
_BAND: Final = 0.18
#: Axes of a drawing that has its own: they are named, and nothing else is seen of them.
_UNFRAMED: Final = {"showline": False, "showgrid": False, "showticklabels": False, "ticks": ""}


def figures(chart: Chart) -> "tuple[go.Figure, ...]":
    """One Plotly figure for each panel.

    >>> t = np.arange(3)
    >>> panel = Panel("", "step t", "regret", [Series("control rule", t, t, t - 1, t + 1)])
    >>> (fig,) = figures(Chart("Regret", [panel], "Lower is better."))
    >>> [trace.name for trace in fig.data], fig.layout.xaxis.title.text
    (['control rule', 'control rule'], 'step t')
    """
    return tuple(_figure(panel) for panel in chart.panels)


def as_json(fig: "go.Figure") -> str:
    """A figure as JSON that may stand inside a page's script element.

    >>> t = np.arange(3)
    >>> panel = Panel("", "t", "y", [Series("</script>", t, t)])
    >>> "<" in as_json(figures(Chart("A", [panel], "Up is more."))[0])
    False
    """
    text = str(fig.to_json())
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def library() -> str:
    """Plotly's JavaScript, to be put into a page once.

    >>> "plotly.js" in library()[:200]
    True
    """
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs())


def _figure(panel: Panel) -> "go.Figure":
    import plotly.graph_objects as go

    traces = [trace for mark in panel.marks for trace in _draw(mark, panel)]
    return go.Figure(
        traces,
        {
            "template": None,
            "autosize": True,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
            "font": {"color": LIGHT_GROUND["text"], "size": 13, "family": "system-ui, sans-serif"},
            "paper_bgcolor": LIGHT_GROUND["ground"],
            "plot_bgcolor": LIGHT_GROUND["ground"],
            "hovermode": "closest",
            "hoverlabel": {"bgcolor": LIGHT_GROUND["ground"], "align": "left"},
            "showlegend": any(trace.showlegend for trace in traces),
            "legend": {
                "orientation": "h",
                "xref": "container",
                "yref": "container",
                "xanchor": "left",
                "yanchor": "bottom",
                "x": 0,
                "y": 0,
                "itemdoubleclick": False,
                "bgcolor": LIGHT_GROUND["ground"],
            },
            "xaxis": _axis(_wrapped(panel.xlabel, 44), panel.xscale, _padded(panel))
            | ({} if panel.xticks is None else {"tickvals": list(panel.xticks)})
            | ({"constrain": "domain"} if panel.equal else {})
            | ({} if panel.framed else _UNFRAMED)
            | (maps.page_axis(panel, "x") if panel.is_map else {}),
            "yaxis": _axis(_wrapped(panel.ylabel, 30), panel.yscale, panel.ylim)
            | ({"scaleanchor": "x", "constrain": "domain"} if panel.equal else {})
            | ({} if panel.framed else _UNFRAMED)
            | (maps.page_axis(panel, "y") if panel.is_map else {}),
            "uirevision": "kept",  # a part that the reader has enlarged stays so in the dark
        }
        | (maps.page_layout() if panel.is_map else {}),
    )


def _axis(label: str, scale: Scale, limits: Limits) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": {"text": label, "standoff": 8},
        "automargin": True,
        "gridcolor": LIGHT_GROUND["grid"],
        "linecolor": LIGHT_GROUND["axis"],
        "tickcolor": LIGHT_GROUND["axis"],
        "showline": True,
        "ticks": "outside",
        "zeroline": False,
    }
    if scale != "linear":
        # 10⁻⁴, not 100µ: a probability has no unit to put a prefix to.
        axis |= {
            "type": "log",
            "exponentformat": "power",
            "dtick": float(np.log10(4)) if scale == "log2" else 1,
        }
    if limits != (None, None):
        axis |= {"range": [None if limit is None else _on(scale, limit) for limit in limits]}
    return axis


def _on(scale: Scale, value: float) -> float:
    """Plotly counts a logarithmic axis in decades."""
    return value if scale == "linear" else float(np.log10(value))


def _padded(panel: Panel) -> tuple[float, float]:
    """A little room beside the data, as in print; limits that were given stand."""
    ends = [_on(panel.xscale, end) for end in panel.extent("x")]
    room = 0.03 * (ends[1] - ends[0]) or 0.5
    low, high = (
        end if panel.xscale == "linear" else 10**end for end in (ends[0] - room, ends[1] + room)
    )
    given = panel.xlim
    return low if given[0] is None else given[0], high if given[1] is None else given[1]


def _wrapped(label: str, width: int) -> str:
    """Lines short enough for a phone."""
    return "<br>".join(map(_literally, textwrap.wrap(label, width)))


def _literally(text: str) -> str:
    """Text as it stands: Plotly would read tags, mathematics between dollars, and %{x}."""
    return escape(text, quote=False).replace("$", "&#36;").replace("{", "&#123;")


@singledispatch
def _draw(mark: Any, panel: Panel) -> list[Any]:
    """A new kind of mark is one class in `lab.marks`, and one function here."""
    raise TypeError(f"no way to put a {type(mark).__name__} on a page")


@_draw.register(Series)
def _series(mark: Series, panel: Panel) -> list[Any]:
    import plotly.graph_objects as go

    y, low, high = panel.visible(mark)
    if low is None or high is None or not np.isfinite(low).any():
        low = high = None
    colour = LIGHT[mark.colour]
    shape = "hv" if mark.kind == "step" else "linear"
    look: dict[str, Any] = {"mode": "lines"}
    if mark.marker is not None:
        size = 11 if mark.marker.endswith("-open") else 8
        look = {
            "mode": "markers" if mark.kind == "points" else "lines+markers",
            "marker": {"symbol": mark.marker, "color": colour, "size": size},
        }
    if mark.kind != "points":
        look["line"] = {"color": colour, "dash": mark.dash, "width": 2, "shape": shape}
    between = "" if low is None else "<br>%{customdata[0]:.4~g} to %{customdata[1]:.4~g}"
    if low is not None and high is not None:
        look["customdata"] = np.stack([low, high], axis=1)
        if mark.kind == "points":
            up, down = high - y, y - low
            look["error_y"] = {"array": up, "arrayminus": down, "color": colour, "width": 3}
    line = go.Scatter(
        x=mark.x,
        y=y,
        hovertemplate=f"{_literally(panel.xlabel)}: %{{x:.6~g}}<br>%{{y:.4~g}}{between}"
        f"<extra>{_literally(mark.label)}</extra>",
        **look,
        **_in_legend(mark),
    )
    if low is None or high is None or mark.kind == "points":
        return [line]
    x, edge = _outline(mark.x, low, high, mark.kind == "step")
    band = go.Scatter(
        x=x,
        y=edge,
        mode="lines",
        line={"width": 0, "color": colour},
        fill="toself",
        fillcolor=colour,
        opacity=_BAND,
        hoverinfo="skip",
        **(_in_legend(mark) | {"showlegend": False}),
    )
    return [band, line]


@_draw.register(Guide)
def _guide(mark: Guide, panel: Panel) -> list[Any]:
    import plotly.graph_objects as go

    span = {
        "horizontal": _padded(panel),
        "vertical": panel.extent("y"),
        "diagonal": panel.extent("x"),
    }[mark.direction]
    along = np.linspace(*span, 101)  # points to hover over
    fixed = np.full_like(along, mark.at)
    x = fixed if mark.direction == "vertical" else along
    y = fixed if mark.direction == "horizontal" else along
    line = {"color": LIGHT[mark.colour], "dash": mark.dash, "width": 1.2}
    said = f"{_literally(mark.label)}<extra></extra>"
    return [go.Scatter(x=x, y=y, mode="lines", line=line, hovertemplate=said, **_in_legend(mark))]


@_draw.register(Region)
def _region(mark: Region, panel: Panel) -> list[Any]:
    """The polygon in the colour of the ground, and in its own colour over it."""
    import plotly.graph_objects as go

    x, y = (np.append(corners, corners[0]) for corners in (mark.x, mark.y))
    colour = LIGHT[mark.colour]
    outline: dict[str, Any] = {"x": x, "y": y, "mode": "lines", "fill": "toself"}
    under = go.Scatter(
        fillcolor=LIGHT_GROUND["ground"],
        line={"color": colour, "width": 1},
        hoverinfo="skip",
        **outline,
        **(_in_legend(mark) | {"showlegend": False}),
    )
    over = go.Scatter(
        fillcolor=colour,
        line={"color": colour, "width": 0},
        opacity=mark.shade,
        hoveron="fills",
        hoverinfo="text",
        text=_literally(mark.label),
        **outline,
        **_in_legend(mark),
    )
    return [under, over]


@_draw.register(Word)
def _word(mark: Word, panel: Panel) -> list[Any]:
    import plotly.graph_objects as go

    return [
        go.Scatter(
            x=[mark.x],
            y=[mark.y],
            mode="text",
            text=[_literally(mark.text)],
            textfont={"color": LIGHT[mark.colour]},
            hoverinfo="skip",
            showlegend=False,
        )
    ]


_draw.register(Heat, maps.page_heat)
_draw.register(Strokes, maps.page_strokes)
_draw.register(Graph, graphs.page_graph)


def _in_legend(mark: Series | Guide | Region) -> dict[str, Any]:
    return {
        "name": _literally(mark.label),
        "legendgroup": mark.group,
        "showlegend": mark.in_legend,
    }


def _outline(
    x: FloatArray, low: FloatArray, high: FloatArray, step: bool
) -> tuple[FloatArray, FloatArray]:
    """The outline of a band, there above and back below; NaN parts pieces from each other."""
    there = np.isfinite(low)
    edges = np.flatnonzero(np.diff(np.r_[0, there.astype(int), 0]))
    gap = np.array([np.nan])
    pieces_x: list[FloatArray] = []
    pieces_y: list[FloatArray] = []
    for start, end in edges.reshape(-1, 2):
        at, below, above = x[start:end], low[start:end], high[start:end]
        if step:
            at = np.repeat(at, 2)[1:]
            below, above = np.repeat(below, 2)[:-1], np.repeat(above, 2)[:-1]
        pieces_x += [at, at[::-1], gap]
        pieces_y += [above, below[::-1], gap]
    return np.concatenate(pieces_x[:-1]), np.concatenate(pieces_y[:-1])
