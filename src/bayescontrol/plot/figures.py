"""Draw charts with Matplotlib: PNG and PDF files for print, an SVG element for a page.

    band      low(x) <= y(x) <= high(x), shaded around the line; error bars at points
    shade s   the colour with opacity s over the background
    files     PNG at 200 dots per inch and PDF; the same chart gives the same bytes

Every colour is one of the palette, so that a page can replace it by a CSS variable. Matplotlib is
imported when the first chart is drawn. Charts use `Figure` objects, without global state; plots of
a run without axes use a new pyplot figure, which notebooks show.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.errors import needs_extra
from bayescontrol.plot import chart as marks
from bayescontrol.plot.chart import PALETTE, Chart, LabelledMark, Marker, Panel, Series
from bayescontrol.plot.graph import Edge, Graph
from bayescontrol.plot.legend import look, shared_legend, with_colours, with_distinct_lines
from bayescontrol.plot.palette import LIGHT, LIGHT_GROUND, VARIABLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI: Final = 200
#: Width and height of a panel in inches: single, and one of several.
_SINGLE: Final = (6.8, 4.4)
_ONE_OF_SEVERAL: Final = (5.3, 4.0)
#: Height in inches of one of several plots of a run.
_ROW_HEIGHT: Final = 2.4
#: Width in inches of a row of maps or graphs, and least and greatest width of one map or graph.
_ROW: Final = 12.5
_MAP_WIDTHS: Final = (2.5, 4.0)
_GRAPH_WIDTHS: Final = (3.0, 6.5)
#: Inches per unit of a graph, and inches for a title above a map or a graph.
_GRAPH_UNIT: Final = 0.85
_MAP_TITLE: Final = 0.45
_GRAPH_TITLE: Final = 0.75
#: Inches for a remark above all maps or graphs, whose layout leaves no room for it.
_MAP_REMARK: Final = 0.6
#: Margin around a map, as a share of its size.
_MAP_MARGIN: Final = 0.012
#: Inches of a legend entry: its handle with gaps, and one letter.
_HANDLE: Final = 0.6
_LETTER: Final = 0.07
#: Numbers on the x axis from this size on are long.
_LARGE: Final = 1e5
#: Opacity of a band and of the inside of an area.
_BAND: Final = 0.18
#: Distance of sparse markers on a line, as a share of the diagonal of the axes.
_MARKER_DISTANCE: Final = 0.17
_AREA: Final = 0.1
#: Font sizes of a graph in points: nodes, edges and areas.
_NODE_TEXT, _EDGE_TEXT, _AREA_TEXT = 8.5, 7.5, 9.5
#: Length of an arrow head in points: a constant, and growth with the width of the line.
_HEAD: Final = 5.5
_HEAD_GROWTH: Final = 1.7
#: Half the width of a head, and the part of it in front of the end of the line, as shares of its
#: length.
_HEAD_WIDTH: Final = 0.4
_HEAD_OVERLAP: Final = 0.7
_CENTRED: Final[Any] = {"ha": "center", "va": "center"}
_DASHES: Final = {"solid": "-", "dash": "--", "dashdot": "-.", "dot": ":"}
#: The Matplotlib marker of each marker, in their order.
_MARKERS: Final = dict(zip(get_args(Marker), "osD^v*x+s", strict=True))
_STYLE: Final[Any] = {
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the same figure on every machine
    "font.size": 10,
    "grid.alpha": 0.25,
    "pdf.fonttype": 42,  # text stays text, as journals ask
    "svg.fonttype": "none",
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def figure(chart: Chart, *, in_pyplot: bool = False, for_page: bool = False) -> "Figure":
    """Draw the chart as a Matplotlib figure, with one axes for each panel.

    With `in_pyplot` it belongs to pyplot, so that notebooks show it. With `for_page` it leaves out
    the title and the remark of the chart, which a page shows as text, and marks its groups.

    >>> t = np.arange(3)
    >>> panel = Panel("", "step t", "regret", [Series("control rule", t, t)])
    >>> (ax,) = figure(Chart("Regret", [panel], "Lower is better.")).axes
    >>> ax.get_title(), ax.get_ylabel(), ax.get_legend_handles_labels()[1]
    ('Regret', 'regret', ['control rule'])
    """
    mpl = _matplotlib()
    chart = with_distinct_lines(chart)
    groups = dict.fromkeys(mark.group for panel in chart.panels for mark in panel.labelled)
    # The number of each group, for ids; empty if the figure needs none.
    numbers = {group: k for k, group in enumerate(groups)} if for_page else {}
    title, remark = ("", "") if for_page else (chart.title, chart.remark)
    columns, rows = chart.columns, -(-len(chart.panels) // chart.columns)  # rounded up
    is_single = len(chart.panels) == 1
    width, height = _panel_size(chart)
    has_remark_above = bool(remark) and not is_single
    extra = _MAP_REMARK if has_remark_above and all(p.is_map for p in chart.panels) else 0.0
    size = columns * width, rows * height + extra
    fig = _pyplot_figure(size) if in_pyplot else None
    with mpl.rc_context(_STYLE):
        fig = fig or mpl.figure.Figure(figsize=size, dpi=_DPI)
        shared_entries = shared_legend(chart)
        axes = list(fig.subplots(rows, columns, squeeze=False).flat)
        for ax, panel in zip(axes, chart.panels, strict=False):
            notes = (remark, *panel.notes) if is_single else panel.notes
            _draw_panel(ax, panel, numbers)
            _add_title(ax, panel.title or title, [note for note in notes if note])
            if not any(look(mark) in shared_entries for mark in panel.legend_marks):
                _add_legend(ax, panel, numbers)
        for ax in axes[len(chart.panels) :]:
            ax.remove()
        for heat, shown in _scales(chart):
            on = [axes[i] for i in shown]
            _add_scale(fig, heat, ax=on, shrink=0.6, aspect=28, pad=0.012)
        if shared_entries:
            legend = _add_legend_below(fig, chart.panels, shared_entries)
            _mark_names(legend, shared_entries.values(), numbers)
        if has_remark_above:
            fig.suptitle(_literal(remark), fontsize=9)
    return fig


def _panel_size(chart: Chart) -> tuple[float, float]:
    """Return width and height of each panel of a chart, in inches."""
    is_single = len(chart.panels) == 1
    if all(panel.graphs for panel in chart.panels):
        return graph_size(chart.panels, chart.columns)
    if not is_single and all(panel.is_map for panel in chart.panels):
        side = min(max(_ROW / chart.columns, _MAP_WIDTHS[0]), _MAP_WIDTHS[1])
        return side, side + _MAP_TITLE
    return _SINGLE if is_single else _ONE_OF_SEVERAL


def graph_size(panels: Sequence[Panel], columns: int) -> tuple[float, float]:
    """Return width and height in inches of each of several graphs."""
    spans = [[high - low for low, high in map(panel.extent, "xy")] for panel in panels]  # type: ignore[arg-type]
    max_x, max_y = (float(span) for span in np.max(spans, axis=0))
    least, greatest = _GRAPH_WIDTHS
    width = min(max(_ROW / columns, least), greatest, max(_GRAPH_UNIT * max_x, least))
    return round(width, 3), round(width * max_y / max_x + _GRAPH_TITLE, 3)


class Plot:
    """What a plot function returns: the Matplotlib `axes` it has drawn, in a tuple, and `save`.

    >>> panel = Panel("Regret", "step t", "regret", [Series("rule", np.arange(3), np.ones(3))])
    >>> drawn = draw(panel)
    >>> drawn
    Plot('Regret')
    >>> drawn.axes[0].set_ylim(0, 2)
    (0.0, 2.0)
    """

    def __init__(self, axes: "Sequence[Axes]") -> None:
        self.axes = tuple(axes)

    @property
    def figure(self) -> "Figure":
        """The Matplotlib figure of the axes."""
        return self.axes[0].figure.figure  # also if the axes belong to a part of a figure

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, whose ending selects the format: .png, .pdf, .svg; return it.

        >>> import tempfile
        >>> panel = Panel("Regret", "step t", "regret", [Series("rule", np.arange(3), np.ones(3))])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw(panel).save(Path(folder) / "regret.png").name
        'regret.png'
        """
        self.figure.savefig(path, dpi=_DPI)
        return Path(path)

    def __repr__(self) -> str:
        return f"Plot({', '.join(repr(ax.get_title()) for ax in self.axes)})"


def draw(panel: Panel, ax: "Axes | None" = None) -> Plot:
    """Draw a panel on Matplotlib axes, by default on those of a new figure."""
    if ax is None:
        ax = new_axes()[0]
    panel = with_colours([panel])[0]
    _draw_panel(ax, panel, {})
    _add_title(ax, panel.title, list(panel.notes))
    _add_legend(ax, panel, {})
    if panel.heats:
        _add_scale(ax.figure, panel.heats[0], ax=ax, shrink=0.8)
    return Plot([ax])


def new_axes(rows: int = 1) -> "list[Axes]":
    """Return the axes of a new pyplot figure, one below the other, with a common x axis."""
    mpl = _matplotlib()
    fig = _pyplot_figure(_SINGLE if rows == 1 else (_SINGLE[0], _ROW_HEIGHT * rows))
    with mpl.rc_context(_STYLE):
        return list(fig.subplots(rows, squeeze=False, sharex=True)[:, 0])


def _pyplot_figure(size: tuple[float, float]) -> "Figure":
    """Return a new figure of pyplot; `size` is its width and height in inches."""
    # Not in `rc_context`: the first pyplot figure of a notebook turns interactive mode on, and the
    # end of a context would turn it off, so that no later cell would show a figure.
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, facecolor=_STYLE["figure.facecolor"], layout="constrained")


def png(chart: Chart, width: int | None = None) -> bytes:
    """Return the chart as a PNG file, `width` pixels wide; the same chart gives the same bytes.

    >>> panel = Panel("", "step t", "regret", [Series("control rule", np.arange(3), np.ones(3))])
    >>> png(Chart("Regret", [panel], "Lower is better."))[1:4]
    b'PNG'
    """
    fig = figure(chart)
    return _png(fig, _DPI if width is None else width / fig.get_figwidth())


def save(chart: Chart, stem: Path) -> tuple[Path, Path]:
    """Write stem.png and stem.pdf, without time stamps or machine names.

    >>> import tempfile
    >>> panel = Panel("", "step t", "regret", [Series("control rule", np.arange(3), np.ones(3))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = save(Chart("Regret", [panel], "Lower is better."), Path(folder) / "regret")
    ...     [path.name for path in paths]
    ['regret.png', 'regret.pdf']
    """
    fig = figure(chart)
    paths = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.pdf"))
    paths[0].write_bytes(_png(fig))
    no_metadata = dict.fromkeys(("Creator", "Producer", "CreationDate"))
    paths[1].write_bytes(_render(fig, "pdf", metadata=no_metadata))
    return paths


def _png(fig: "Figure", dpi: float = _DPI) -> bytes:
    """Return the figure as a PNG file, without the version of Matplotlib."""
    return _render(fig, "png", dpi=dpi, metadata={"Software": None})


def _render(fig: "Figure", file_format: str, salt: str | None = None, **options: Any) -> bytes:
    """Return the bytes of the figure's file; `salt` makes SVG ids reproducible."""
    out = io.BytesIO()
    with _matplotlib().rc_context({**_STYLE, "svg.hashsalt": salt}):
        fig.savefig(out, format=file_format, **options)
    return out.getvalue()


def svg(chart: Chart, prefix: str) -> str:
    """Return the chart as an SVG element for a page, without its title and remark.

    Marks of the k-th group carry data-group="k"; so do the names in legends, which are buttons.
    Colours are CSS variables. `prefix` must be unique on the page: it keeps the ids of different
    charts apart.

    >>> panel = Panel("", "step t", "regret", [Series("control rule", np.arange(3), np.ones(3))])
    >>> element = svg(Chart("Regret", [panel], "Lower is better."), "regret")
    >>> element[:4], 'data-group="0"' in element, "var(--blue)" in element
    ('<svg', True, True)
    """
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    fig = figure(chart, for_page=True)
    content = _render(fig, "svg", prefix, transparent=True, metadata=no_metadata)
    text = content[content.index(b"<svg") :].decode()
    # `figure` marks elements by their ids; Matplotlib's own ids are dropped.
    button = r'<g role="button" tabindex="0" aria-pressed="true" data-group="\1">'
    text = re.sub(r'<g id="legend-(\d+)">', button, text)
    text = re.sub(r'(<\w+) id="group-(\d+)"', r'\1 data-group="\2"', text)
    text = re.sub(r'<g id="title ([^"]*)">', r"<g><title>\1</title>", text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    # The page scales the chart: its width becomes a CSS variable, its height follows.
    size = r' width="([\d.]+pt)" height="[\d.]+pt"'
    text = re.sub(size, r' style="--width: \1"', text, count=1)
    # Only inside tags, before ">": a label may hold the text "0.3425" or "#0072b2".
    text = re.sub(r"(?<=\d\.\d\d)\d+(?=[^<>]*>)", "", text)  # a hundredth of a point is enough
    colours = r"#[0-9a-f]{6}\b(?=[^<>]*>)"
    return re.sub(colours, lambda found: VARIABLES.get(found[0], found[0]), text).strip()


def _matplotlib() -> Any:
    """Import Matplotlib; raise an error that names the extra if it is missing."""
    with needs_extra("drawing figures", "matplotlib", "plot"):
        import matplotlib as mpl
        import matplotlib.figure
    return mpl


def _draw_panel(ax: "Axes", panel: Panel, numbers: Mapping[str, int]) -> None:
    """Draw marks and axes; the artists of a group get an id if `numbers` has its number."""
    for mark in panel.marks:
        artists = _draw(mark, ax, panel)
        number = numbers.get(getattr(mark, "group", ""))
        for artist in artists if number is not None else ():
            artist.set_gid(f"group-{number}")
    ax.set(xlabel=_literal(panel.xlabel), ylabel=_literal(panel.ylabel))
    for axis, scale, limits in (("x", panel.xscale, panel.xlim), ("y", panel.yscale, panel.ylim)):
        if scale != "linear":
            getattr(ax, f"set_{axis}scale")("log", base=2 if scale == "log2" else 10)
        getattr(ax, f"set_{axis}lim")(*limits)
    if panel.xticks is not None:
        ax.set_xticks(panel.xticks)
    elif panel.xscale == "linear" and panel.extent("x")[1] >= _LARGE:
        ax.locator_params(axis="x", nbins=5)  # more numbers would run together
    if panel.equal:
        ax.set_aspect("equal")
    if panel.is_map or not panel.framed:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    if panel.is_map:
        ax.set(xlabel="", ylabel="", aspect="equal")
        ax.grid(visible=False)
        for name in ("x", "y"):
            low, high = panel.extent(name)
            margin = _MAP_MARGIN * (high - low)
            getattr(ax, f"set_{name}lim")(low - margin, high + margin)


def _add_title(ax: "Axes", title: str, notes: list[str]) -> None:
    """Write the title above the axes, and the notes in small letters between the two."""
    ax.set_title(_literal(title), pad=6 + 12 * len(notes))  # a line of notes has 12 points
    ax.annotate(
        _literal("\n".join(notes)), (0.5, 1), (0, 4), "axes fraction", "offset points",
        ha="center", va="bottom", fontsize=9, color=LIGHT_GROUND["axis"],
    )  # fmt: skip


def _add_legend(ax: "Axes", panel: Panel, numbers: Mapping[str, int]) -> None:
    """Add the legend of a panel, unless it is below the chart or has no entries."""
    if panel.legend != "below" and panel.legend_marks:
        columns = panel.legend_columns
        style: Any = {"fontsize": 9 if columns == 1 else 8, "framealpha": 0.9, "edgecolor": "none"}
        legend = ax.legend(loc=panel.legend, ncols=columns, **style)
        _mark_names(legend, panel.legend_marks, numbers)


def _add_legend_below(
    fig: "Figure", panels: Sequence[Panel], entries: Mapping[tuple[Any, ...], LabelledMark]
) -> Any:
    """Add one legend with these entries, from `shared_legend`, below the panels of a figure."""
    handles: dict[tuple[Any, ...], Any] = {}
    for ax, panel in zip(fig.axes, panels, strict=False):
        by_label = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        handles = {look(mark): by_label[_label(mark)] for mark in panel.legend_marks} | handles
    labels = [_label(mark) for mark in entries.values()]
    entry_width = _HANDLE + _LETTER * max(map(len, labels))
    columns = max(1, int(fig.get_figwidth() / entry_width))
    style: Any = {"ncols": min(len(labels), columns), "fontsize": 9, "edgecolor": "none"}
    shown = [handles[key] for key in entries]
    return fig.legend(shown, labels, loc="outside lower center", **style)


def _mark_names(legend: Any, marks: Iterable[LabelledMark], numbers: Mapping[str, int]) -> None:
    """Give the names in a legend the ids of their groups; do nothing without `numbers`."""
    by_label = {_label(mark): numbers[mark.group] for mark in marks if numbers}
    for text in legend.get_texts() if numbers else ():
        text.set_gid(f"legend-{by_label[text.get_text()]}")


def _scales(chart: Chart) -> list[tuple[marks.Heat, list[int]]]:
    """Return a heat for each colour scale, with the numbers of the panels that use the scale.

    A panel that shows only zeros needs no scale, but belongs to a scale that others have.
    """
    found: dict[tuple[Any, ...], tuple[marks.Heat, set[int]]] = {}
    for i, panel in enumerate(chart.panels):
        for heat in panel.heats:
            scale = (heat.label, heat.high, heat.colour, heat.power)
            highest, shown = found.get(scale, (heat, set()))
            # The scale says "≥" if one of its heats is above the highest value.
            found[scale] = max(highest, heat, key=_greatest), shown | {i}
    return [(heat, sorted(shown)) for heat, shown in found.values() if _greatest(heat) > 0]


def _greatest(heat: marks.Heat) -> float:
    """Return the greatest value of a map, whose missing cells are NaN."""
    return float(np.nanmax(heat.values))


def _add_scale(fig: Any, heat: marks.Heat, **layout: Any) -> None:
    """Add the colour scale of a map; `layout` holds arguments of Matplotlib's `colorbar`."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    # With 50 levels or more Matplotlib would draw a bitmap.
    bar = fig.colorbar(ScalarMappable(Normalize(0, 1), _colour_map(heat, 48)), **layout)
    ticks = heat.ticks()
    labels = [f"{tick:g}" for tick in ticks]
    if _greatest(heat) > heat.high:
        labels[-1] = f"≥ {labels[-1]}"
    bar.set_ticks(heat.shade(ticks).tolist(), labels=labels)
    bar.set_label(_literal(heat.label))
    bar.outline.set_visible(False)


def _colour_map(heat: marks.Heat, levels: int = 256) -> Any:
    """Return the colour of a map in `levels` steps, from transparent to opaque."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    ends = [to_rgba(LIGHT[heat.colour], opacity) for opacity in (0.0, 1.0)]
    return LinearSegmentedColormap.from_list("shades", ends, levels)


@singledispatch
def _draw(mark: Any, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw a mark and return its artists."""
    raise TypeError(f"a {type(mark).__name__} cannot be drawn: register a drawing function for it")


@_draw.register(Series)
def _draw_series(mark: Series, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw a line or steps with a band, or points with error bars."""
    y, low, high = panel.visible(mark)
    style: dict[str, Any] = {}
    if mark.marker is not None:
        is_open = mark.marker.endswith("-open")
        size = 9 if is_open else 7 if mark.marker == "star" else 4.5  # in points
        style |= {"marker": _MARKERS[mark.marker], "markersize": size}
        style |= {"markerfacecolor": "none"} if is_open else {}
    if mark.sparse and np.isfinite(y).any():
        # Lines of different colours begin with different offsets: markers rarely coincide.
        offset = _MARKER_DISTANCE * PALETTE.index(mark.colour or PALETTE[0]) / len(PALETTE)
        style["markevery"] = (offset, _MARKER_DISTANCE)
    if mark.kind == "points":
        # Rounding may leave a proportion slightly outside its interval.
        bars = None if low is None or high is None else np.maximum([y - low, high - y], 0)
        style |= {"color": _colour(mark), "label": _label(mark), "linestyle": "none"}
        return ax.errorbar(mark.x, y, bars, capsize=2, **style).get_children()
    step: Any = "post" if mark.kind == "step" else None
    style["drawstyle"] = "steps-post" if step else "default"
    artists: list[Any] = ax.plot(mark.x, y, **_line_style(mark, 1.6), **style)
    if low is not None and high is not None:
        band: Any = {"color": _colour(mark), "alpha": _BAND, "linewidth": 0, "step": step}
        artists.append(ax.fill_between(mark.x, low, high, **band))
    return artists


def _line_style(mark: Series | marks.Guide | marks.Strokes, width: float) -> dict[str, Any]:
    """Return Matplotlib's arguments for the line of a mark."""
    line = {"color": _colour(mark), "linestyle": _DASHES[mark.dash], "linewidth": width}
    return line | {"label": _label(mark)}


def _colour(mark: Series | marks.Guide | marks.Strokes) -> str:
    """Return the colour of a mark, by default the first of the palette."""
    return LIGHT[mark.colour or PALETTE[0]]


@_draw.register(marks.Guide)
def _draw_guide(mark: marks.Guide, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw a line across the axes, or the diagonal over the extent of the x axis."""
    style = _line_style(mark, 1.0)
    if mark.direction != "diagonal":
        draw_line = ax.axhline if mark.direction == "horizontal" else ax.axvline
        return [draw_line(mark.at, **style)]
    x = np.linspace(*panel.extent("x"), 101)
    return list(ax.plot(x, x, **style))


@_draw.register(marks.Region)
def _draw_region(mark: marks.Region, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw a polygon that hides what is behind it."""
    style = {"edgecolor": LIGHT[mark.colour], "linewidth": 0.8, "label": _label(mark)}
    corners = np.stack([mark.x, mark.y], axis=1)
    return _cover(ax, corners, LIGHT[mark.colour], mark.shade, joinstyle="round", **style)


@_draw.register(marks.Word)
def _draw_word(mark: marks.Word, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw a text, centred at its position."""
    return [ax.text(mark.x, mark.y, _literal(mark.text), color=LIGHT[mark.colour], **_CENTRED)]


@_draw.register(marks.Heat)
def _draw_heat(mark: marks.Heat, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw the cells of a map, row 0 at the top; there is no cell where a value is NaN."""
    rows, columns = mark.values.shape
    x, y, colours = np.arange(columns + 1), -np.arange(rows + 1), _colour_map(mark)
    shades = np.ma.masked_invalid(mark.shade(mark.values))
    borders: Any = {"edgecolors": LIGHT_GROUND["grid"], "linewidth": 0.7}
    return [ax.pcolor(x, y, shades, cmap=colours, vmin=0, vmax=1, **borders)]


@_draw.register(marks.Strokes)
def _draw_strokes(mark: marks.Strokes, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw lines with round corners and ends; they break at NaN."""
    style = _line_style(mark, mark.width)
    style |= {"solid_joinstyle": "round", "solid_capstyle": "round"}
    return list(ax.plot(mark.x, mark.y, **style))


@_draw.register(Graph)
def _draw_graph(mark: Graph, ax: "Axes", panel: Panel) -> list[Any]:
    """Draw outlines, then nodes, then the arrows between them, then text."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    for area, hull in zip(mark.areas, mark.outlines, strict=True):
        colour = LIGHT[area.colour]
        style: dict[str, Any] = {"edgecolor": colour, "linestyle": _DASHES[area.dash]}
        ax.fill(*hull.T, facecolor=(colour, _AREA), linewidth=1.4, **style)
    discs = {}
    for node, corners in zip(mark.nodes, mark.discs, strict=True):
        style = {"edgecolor": LIGHT_GROUND["axis"], "linewidth": 1.0}
        style["gid"] = f"title {node.description or node.name}"
        *_, discs[node.name] = _cover(ax, corners, LIGHT[node.colour], node.shade, **style)
    for edge, bend, curve in zip(mark.edges, mark.bends, mark.curves, strict=True):
        if edge.source == edge.target:
            shape: Any = {"path": Curve(curve, [Curve.MOVETO, *[Curve.CURVE4] * 3])}
        else:
            shape = {
                "posA": curve[0], "posB": curve[-1], "connectionstyle": f"arc3,rad={-bend}",
                "patchA": discs[edge.source], "patchB": discs[edge.target], "shrinkA": 0,
            }  # fmt: skip
        shape |= {"color": LIGHT_GROUND["axis"] if edge.faint else LIGHT[edge.colour]}
        shape |= {"gid": f"title {_edge_title(edge)}", "capstyle": "butt"}
        head = _HEAD + _HEAD_GROWTH * edge.width
        # The line ends inside the head, which is drawn separately: it has no dashes.
        line: Any = {"arrowstyle": "-", "linestyle": _DASHES[edge.dash], "linewidth": edge.width}
        ax.add_patch(FancyArrowPatch(**shape, **line, shrinkB=_HEAD_OVERLAP * head))
        tip: Any = {"arrowstyle": f"-|>,head_length={head},head_width={_HEAD_WIDTH * head}"}
        ax.add_patch(FancyArrowPatch(**shape, **tip, linewidth=0, shrinkB=0, mutation_scale=1))
    for node in mark.nodes:
        ax.text(node.x, node.y, _literal(node.name), fontsize=_NODE_TEXT, **_CENTRED)
    # A background keeps crossing lines away from the text.
    behind = {"facecolor": LIGHT_GROUND["ground"], "edgecolor": "none", "pad": 0.3}
    for text, x, y in mark.edge_words:
        ax.text(x, y, _literal(text), fontsize=_EDGE_TEXT, bbox=behind, **_CENTRED)
    for text, x, y, name in mark.area_words:
        style = {"fontsize": _AREA_TEXT, "fontweight": "bold", "color": LIGHT[name], **_CENTRED}
        ax.text(x, y, _literal(text), **style)
    return []


def _edge_title(edge: Edge) -> str:
    """Return the tooltip of an arrow: its nodes, its label, and a probability below 1."""
    label = f", {edge.label}" if edge.label else ""
    chance = f": probability {edge.probability:.3g}" if edge.probability < 1 else ""
    return f"{edge.source} → {edge.target}{label}{chance}"


def _cover(ax: "Axes", corners: FloatArray, colour: str, shade: float, **style: Any) -> list[Any]:
    """Fill a polygon that hides what is behind it: the background, then a shade of a colour."""
    background = ax.fill(*corners.T, facecolor=LIGHT_GROUND["ground"], linewidth=0)
    return [*background, *ax.fill(*corners.T, facecolor=(colour, shade), **style)]


def _label(mark: LabelledMark) -> str:
    """Return the label of a mark; Matplotlib leaves those that begin with _ out of the legend."""
    return _literal(mark.label.lstrip("_") if mark.in_legend else f"_{mark.label}")


def _literal(text: str) -> str:
    """Escape dollar signs: Matplotlib reads text between two of them as mathematics."""
    return text.replace("$", r"\$")
