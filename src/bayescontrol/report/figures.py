"""A chart on paper: Matplotlib in the house style.

    colours   Okabe & Ito's eight, told apart by line style as well
    band      low(x) <= y(x) <= high(x), shaded around the line; bars at points
    files     PNG at 200 dots per inch and PDF, byte for byte the same for the same chart

Matplotlib is loaded when the first chart is drawn, never by importing this module, and only
through `Figure` objects: there is no global state, no window, nothing to close.
"""

import io
from functools import singledispatch
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.graphs import Graph
from bayescontrol.lab.maps import Heat, Strokes
from bayescontrol.lab.marks import Guide, Region, Series, Word
from bayescontrol.report import graphs, maps
from bayescontrol.report.palette import LIGHT, LIGHT_GROUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI: Final = 200
#: Width and height in inches: of a single panel, and of each of several.
_ALONE: Final = (6.8, 4.4)
_AMONG: Final = (5.3, 4.0)
#: Inches of an entry in a legend: its handle and gaps, and a letter.
_HANDLE: Final = 0.6
_LETTER: Final = 0.07
_DASHES: Final = {"solid": "-", "dash": "--", "dashdot": "-.", "dot": ":"}
_MARKERS: Final = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "star": "*",
    "square-open": "s",
}
_STYLE: Final[Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the same page everywhere
    "font.size": 10,
    "grid.alpha": 0.25,
    "pdf.fonttype": 42,  # text stays text, as journals ask
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def figure(chart: Chart) -> "Figure":
    """The chart as a Matplotlib figure, one axes for each panel.

    >>> t = np.arange(3)
    >>> panel = Panel("", "step t", "regret", [Series("control rule", t, t)])
    >>> (ax,) = figure(Chart("Regret", [panel], "Lower is better.")).axes
    >>> ax.get_title(), ax.get_ylabel(), ax.get_legend_handles_labels()[1]
    ('Regret', 'regret', ['control rule'])
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns, rows = chart.columns, -(-len(chart.panels) // chart.columns)
    alone = len(chart.panels) == 1
    width, height = _ALONE if alone else _AMONG
    if all(panel.graphs for panel in chart.panels):
        width, height = graphs.print_size(chart.panels, columns)
    elif not alone and all(panel.is_map for panel in chart.panels):
        width, height = maps.print_size(columns)
    with mpl.rc_context(_STYLE):
        fig = Figure(figsize=(columns * width, rows * height), dpi=_DPI)
        axes = list(fig.subplots(rows, columns, squeeze=False).flat)
        for ax, panel in zip(axes, chart.panels, strict=False):
            notes = (chart.note, *panel.notes) if alone else panel.notes
            _draw_panel(ax, panel, panel.title or chart.title, [note for note in notes if note])
        for ax in axes[len(chart.panels) :]:
            ax.remove()
        maps.print_scale(fig, axes, chart)
        below = [panel.legend == "below" for panel in chart.panels]
        _legend_below(fig, list(compress(axes, below)), columns * width)
        if chart.note and not alone:
            fig.suptitle(_literally(chart.note), fontsize=9)
    return fig


def png(chart: Chart) -> bytes:
    """The chart as PNG: same chart, same bytes.

    >>> panel = Panel("", "step t", "regret", [Series("control rule", np.arange(3), np.ones(3))])
    >>> png(Chart("Regret", [panel], "Lower is better."))[1:4]
    b'PNG'
    """
    return _png(figure(chart))


def save(chart: Chart, stem: Path) -> tuple[Path, Path]:
    """Write stem.png and stem.pdf; nothing in them tells the time or the machine.

    >>> import tempfile
    >>> panel = Panel("", "step t", "regret", [Series("control rule", np.arange(3), np.ones(3))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = save(Chart("Regret", [panel], "Lower is better."), Path(folder) / "regret")
    ...     [path.name for path in paths]
    ['regret.png', 'regret.pdf']
    """
    import matplotlib as mpl

    drawn = figure(chart)
    paths = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.pdf"))
    paths[0].write_bytes(_png(drawn))
    with mpl.rc_context(_STYLE):
        drawn.savefig(
            paths[1],
            format="pdf",
            metadata={"Creator": None, "Producer": None, "CreationDate": None},
        )
    return paths


def _png(fig: "Figure") -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context(_STYLE):
        fig.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def _draw_panel(ax: "Axes", panel: Panel, title: str, notes: list[str]) -> None:
    for mark in panel.marks:
        _draw(mark, ax, panel)
    ax.set(xlabel=_literally(panel.xlabel), ylabel=_literally(panel.ylabel))
    ax.set_title(_literally(title), pad=6 + 12 * len(notes))
    ax.annotate(
        _literally("\n".join(notes)), (0.5, 1), (0, 4), "axes fraction", "offset points",
        ha="center", va="bottom", fontsize=9, color=LIGHT_GROUND["axis"],
    )  # fmt: skip
    for axis, scale, limits in (("x", panel.xscale, panel.xlim), ("y", panel.yscale, panel.ylim)):
        if scale != "linear":
            getattr(ax, f"set_{axis}scale")("log", base=2 if scale == "log2" else 10)
        getattr(ax, f"set_{axis}lim")(*limits)
    if panel.xticks is not None:
        ax.set_xticks(panel.xticks)
    if panel.equal:
        ax.set_aspect("equal")
    if not panel.framed:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    if panel.is_map:
        maps.print_frame(ax, panel)
    if panel.legend != "below" and any(mark.in_legend for mark in panel.marks):
        ax.legend(
            loc=panel.legend,
            ncols=panel.legend_columns,
            fontsize=9 if panel.legend_columns == 1 else 8,
            framealpha=0.9,
            edgecolor="none",
        )


def _legend_below(fig: "Figure", axes: "list[Axes]", width: float) -> None:
    """One legend for several panels, which leave a shared series to one of them."""
    entries = [entry for ax in axes for entry in zip(*ax.get_legend_handles_labels(), strict=True)]
    if entries:
        longest = max(len(label) for _, label in entries)
        fig.legend(
            *zip(*entries, strict=True),
            loc="outside lower center",
            ncols=max(1, min(len(entries), int(width / (_HANDLE + _LETTER * longest)))),
            fontsize=9,
            edgecolor="none",
        )


@singledispatch
def _draw(mark: Any, ax: "Axes", panel: Panel) -> None:
    """A new kind of mark is one class in `lab.marks`, and one function here."""
    raise TypeError(f"no way to print a {type(mark).__name__}")


@_draw.register(Series)
def _series(mark: Series, ax: "Axes", panel: Panel) -> None:
    y, low, high = panel.visible(mark)
    colour, label = LIGHT[mark.colour], _label(mark)
    look: dict[str, Any] = {"color": colour, "label": label}
    if mark.marker is not None:
        open_ = mark.marker.endswith("-open")
        size = 9 if open_ else 7 if mark.marker == "star" else 4.5
        look |= {"marker": _MARKERS[mark.marker], "markersize": size}
        look |= {"markerfacecolor": "none"} if open_ else {}
    if mark.kind == "points":
        # Rounding may leave a proportion a hair outside its interval.
        bars = None if low is None or high is None else np.maximum([y - low, high - y], 0)
        ax.errorbar(mark.x, y, bars, linestyle="none", capsize=2, **look)
        return
    look |= {"linestyle": _DASHES[mark.dash], "linewidth": 1.6}
    step = mark.kind == "step"
    ax.plot(mark.x, y, drawstyle="steps-post" if step else "default", **look)
    if low is not None and high is not None:
        ax.fill_between(
            mark.x,
            low,
            high,
            step="post" if step else None,
            color=colour,
            alpha=0.18,
            linewidth=0,
        )


@_draw.register(Guide)
def _guide(mark: Guide, ax: "Axes", panel: Panel) -> None:
    look: dict[str, Any] = {
        "color": LIGHT[mark.colour],
        "linestyle": _DASHES[mark.dash],
        "linewidth": 1.0,
    }
    if mark.direction == "horizontal":
        ax.axhline(mark.at, label=_label(mark), **look)
    elif mark.direction == "vertical":
        ax.axvline(mark.at, label=_label(mark), **look)
    else:
        x = np.linspace(*panel.extent("x"), 101)
        ax.plot(x, x, label=_label(mark), **look)


@_draw.register(Region)
def _region(mark: Region, ax: "Axes", panel: Panel) -> None:
    from matplotlib.colors import to_rgb

    ground, colour = (np.array(to_rgb(c)) for c in (LIGHT_GROUND["ground"], LIGHT[mark.colour]))
    face = tuple((1 - mark.shade) * ground + mark.shade * colour)
    edge: dict[str, Any] = {"edgecolor": LIGHT[mark.colour], "linewidth": 0.8}
    ax.fill(mark.x, mark.y, facecolor=face, joinstyle="round", label=_label(mark), **edge)


@_draw.register(Word)
def _word(mark: Word, ax: "Axes", panel: Panel) -> None:
    colour = LIGHT[mark.colour]
    ax.text(mark.x, mark.y, _literally(mark.text), color=colour, ha="center", va="center")


_draw.register(Heat, maps.print_heat)
_draw.register(Strokes, maps.print_strokes)
_draw.register(Graph, graphs.print_graph)


def _label(mark: Series | Guide | Region) -> str:
    # Matplotlib leaves a label that begins with _ out of the legend, wanted or not.
    return _literally(mark.label.lstrip("_") if mark.in_legend else f"_{mark.label}")


def _literally(text: str) -> str:
    """Text as it stands: Matplotlib would read mathematics between dollars."""
    return text.replace("$", r"\$")
