"""Maps on paper and on a page: cells shaded from the ground to a colour, and strokes.

    shade s of a cell     (1 - s) · ground + s · colour
    scale of shades       printed once beside all maps that share it; on a page it is under the
                          pointer, which reads the value of a cell

Matplotlib and Plotly are loaded when the first map is drawn.
"""

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.maps import Heat, Strokes
from bayescontrol.report.palette import LIGHT, LIGHT_GROUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches for a row of maps, what each of them has at least and at most, and for its title.
_ROW: Final = 12.5
_SIDES: Final = (2.5, 4.0)
_TITLE: Final = 0.45
#: The height of a map on a page, in pixels, at most.
_PAGE_HEIGHT: Final = 420

#: Room around a map for lines that lie on its edge, as a share of it.
_ROOM: Final = 0.012

_DASHES: Final = {"solid": "-", "dash": "--", "dashdot": "-.", "dot": ":"}
_UNSEEN: Final[dict[str, Any]] = {
    "title": {"text": ""},
    "automargin": False,
    "showline": False,
    "showgrid": False,
    "showticklabels": False,
    "ticks": "",
    "constrain": "domain",
}


def print_size(columns: int) -> tuple[float, float]:
    """Width and height of each of several maps, in inches.

    >>> print_size(5), print_size(2)
    ((2.5, 2.95), (4.0, 4.45))
    """
    side = min(max(_ROW / columns, _SIDES[0]), _SIDES[1])
    return side, side + _TITLE


def print_heat(mark: Heat, ax: "Axes", panel: Panel) -> None:
    """Cells as an image, each with a faint border.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> print_heat(heat, ax, panel)
    >>> len(ax.images), len(ax.lines)
    (1, 1)
    """
    from matplotlib.colors import LinearSegmentedColormap

    colours = (LIGHT_GROUND["ground"], LIGHT[mark.colour])
    ramp = LinearSegmentedColormap.from_list("shades", colours)
    ax.imshow(mark.shades, ramp, vmin=0, vmax=1, extent=(*mark.x, *mark.y), origin="upper")
    ax.plot(*mark.outline(), color=LIGHT_GROUND["grid"], linewidth=0.7)


def print_strokes(mark: Strokes, ax: "Axes", panel: Panel) -> None:
    """Lines with round ends, named in the legend if they wish.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> print_strokes(Strokes("edge", np.zeros(2), np.zeros(2), in_legend=True), ax, panel)
    >>> ax.get_legend_handles_labels()[1]
    ['edge']
    """
    (line,) = ax.plot(
        mark.x,
        mark.y,
        color=LIGHT[mark.colour],
        linestyle=_DASHES[mark.dash],
        linewidth=mark.width,
        label=mark.label if mark.in_legend else f"_{mark.label}",
    )
    line.set_solid_joinstyle("round")
    line.set_solid_capstyle("round")


def print_frame(ax: "Axes", panel: Panel) -> None:
    """No axes: square cells, and room for lines that lie on the edge.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> print_frame(ax, panel)
    >>> ax.get_aspect(), len(ax.get_xticks())
    (1.0, 0)
    """
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    for axis in ("x", "y"):
        low, high = panel.extent(axis)
        room = _ROOM * (high - low)
        getattr(ax, f"set_{axis}lim")(low - room, high + room)


def print_scale(fig: "Figure", axes: "Sequence[Axes]", chart: Chart) -> None:
    """One scale of shades for the maps of a chart, if all of them can be read off it.

    >>> from matplotlib.figure import Figure
    >>> fig = Figure()
    >>> ax = fig.subplots()
    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> print_heat(heat, ax, panel)
    >>> print_scale(fig, [ax], Chart("A map", [panel], "Look."))
    >>> fig.axes[1].get_ylabel()
    'share'
    """
    shown = [
        (ax, panel.heats[0])
        for ax, panel in zip(axes, chart.panels, strict=False)
        if panel.heats and np.nanmax(panel.heats[0].values) > 0
    ]
    if not shown or len({heat.scale for _, heat in shown}) > 1:
        return
    heat = shown[0][1]
    among = [ax for ax, _ in shown]
    bar = fig.colorbar(among[0].images[0], ax=among, shrink=0.6, aspect=28, pad=0.012)
    ticks = heat.ticks()
    bar.set_ticks(heat.shade(ticks).tolist(), labels=_told(heat, ticks))
    bar.set_label(heat.label)
    bar.outline.set_visible(False)


def page_heat(mark: Heat, panel: Panel) -> list[Any]:
    """Cells with their values under the pointer, and faint borders.

    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> [trace.type for trace in page_heat(heat, panel)]
    ['heatmap', 'scatter']
    """
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    rows, columns = mark.values.shape
    cells = go.Heatmap(
        x=np.arange(columns) + 0.5,
        y=-np.arange(rows) - 0.5,
        z=mark.shades,
        zmin=0,
        zmax=1,
        colorscale=[[0, LIGHT_GROUND["ground"]], [1, LIGHT[mark.colour]]],
        showscale=False,
        customdata=mark.values,
        hoverongaps=False,
        hovertemplate="%{customdata:.3~g}<extra></extra>",
        name=mark.label,
        showlegend=False,
    )
    x, y = mark.outline()
    line = {"color": LIGHT_GROUND["grid"], "width": 1}
    borders = go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    return [cells, borders]


def page_strokes(mark: Strokes, panel: Panel) -> list[Any]:
    """Lines that leave the pointer to the cells under them.

    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> page_strokes(Strokes("edge", np.zeros(2), np.zeros(2)), panel)[0].hoverinfo
    'skip'
    """
    import plotly.graph_objects as go

    return [
        go.Scatter(
            x=mark.x,
            y=mark.y,
            mode="lines",
            line={"color": LIGHT[mark.colour], "dash": mark.dash, "width": 1.2 * mark.width},
            hoverinfo="skip",
            name=mark.label,
            legendgroup=mark.group,
            showlegend=mark.in_legend,
        )
    ]


def page_axis(panel: Panel, axis: Literal["x", "y"]) -> dict[str, Any]:
    """An axis of Plotly's of which nothing is seen; a unit is as long on either.

    >>> heat = Heat("share", np.array([[0.0, 0.1]]), 0.1)
    >>> panel = Panel("", "column", "row", [], heats=[heat])
    >>> page_axis(panel, "y")["scaleanchor"]
    'x'
    """
    low, high = panel.extent(axis)
    room = _ROOM * (high - low)
    equal = {"scaleanchor": "x"} if axis == "y" else {}
    return {**_UNSEEN, "range": [low - room, high + room], **equal}


def page_layout() -> dict[str, Any]:
    """A map stays as it is: nothing to zoom, no buttons over its cells.

    >>> page_layout()["dragmode"]
    False
    """
    buttons = ["toimage", "zoom2d", "pan2d", "zoomin2d", "zoomout2d", "resetscale2d"]
    return {"dragmode": False, "modebar": {"remove": buttons}}


def page_style(entries: int) -> str:
    """Square cells need a square place, with room below for so many entries of a legend.

    >>> page_style(4)
    'aspect-ratio: 1 / 1.12; max-height: 420px'
    """
    return f"aspect-ratio: 1 / {1 + 0.06 * -(-entries // 2):g}; max-height: {_PAGE_HEIGHT}px"


def _told(heat: Heat, ticks: Any) -> list[str]:
    most = float(np.nanmax(heat.values))
    told = [f"{tick:g}" for tick in ticks]
    return [*told[:-1], f"≥ {told[-1]}"] if most > heat.high else told
