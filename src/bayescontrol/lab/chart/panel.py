"""Panels and charts: axes, limits, and the visible part of each series."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.chart.graph import Graph
from bayescontrol.lab.chart.marks import (
    Guide,
    Heat,
    InvalidChart,
    Region,
    Series,
    Strokes,
    Word,
    require_choice,
    require_text,
)

#: A logarithmic axis has its ticks at powers of ten or of two.
Scale: TypeAlias = Literal["linear", "log", "log2"]
#: Position of a printed legend: inside its panel, or below all panels. A page has one below.
Place: TypeAlias = Literal[
    "best", "upper left", "upper right", "lower left", "lower right", "center right", "below"
]
#: The ends of an axis; None means that the data decide.
Limits: TypeAlias = tuple[float | None, float | None]


class Visible(NamedTuple):
    """The drawable values of a series; NaN where nothing is drawn."""

    y: FloatArray
    low: FloatArray | None
    high: FloatArray | None


@dataclass(frozen=True, eq=False)
class Panel:
    """Two labelled axes and the marks between them.

    A limit of None follows the data. `notes` explain lines, bands and markers. `legend` and
    `legend_columns` place the printed legend. `equal` gives both axes the same unit length;
    `framed=False` keeps the axis labels but draws no axes. A panel with heats or graphs is a map
    without axes.

    >>> x = np.arange(1, 5)
    >>> Panel("Regret", "step t", "regret", [Series("rule", x, 1 / x)], yscale="log").ylabel
    'regret'
    >>> Panel("Regret", "step t", "", [Series("rule", x, 1 / x)])
    Traceback (most recent call last):
    bayescontrol.lab.chart.marks.InvalidChart: panel 'Regret': the ylabel is empty...
    """

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    guides: Sequence[Guide] = ()
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xlim: Limits = (None, None)
    ylim: Limits = (None, None)
    xticks: Sequence[float] | None = None
    notes: Sequence[str] = ()
    legend: Place = "best"
    legend_columns: int = 1
    regions: Sequence[Region] = ()
    words: Sequence[Word] = ()
    equal: bool = False
    framed: bool = True
    heats: Sequence[Heat] = ()
    strokes: Sequence[Strokes] = ()
    graphs: Sequence[Graph] = ()

    def __post_init__(self) -> None:
        place = f"panel {self.title!r}"
        require_text(self.xlabel, place, "xlabel")
        require_text(self.ylabel, place, "ylabel")
        require_choice(self.legend, Place, place, "legend")
        if not (self.series or self.regions or self.heats or self.graphs):
            raise InvalidChart(f"{place}: it has no series and no region; leave the panel out")
        for axis in "xy":
            self._check_axis(axis, place)

    def _check_axis(self, axis: str, place: str) -> None:
        scale, (low, high) = getattr(self, f"{axis}scale"), getattr(self, f"{axis}lim")
        require_choice(scale, Scale, place, f"{axis}scale")
        if low is not None and high is not None and low >= high:
            raise InvalidChart(f"{place}: {axis}lim is ({low}, {high}), it must increase")
        if scale == "linear":
            return
        if min(bound for bound in (low, high, 1.0) if bound is not None) <= 0:
            raise InvalidChart(f"{place}: {axis}lim is ({low}, {high}) on a logarithmic axis")
        flat = (*self.regions, *self.heats, *self.graphs)
        marks = (*self.series, *flat) if axis == "x" else flat
        if min((getattr(mark, axis).min() for mark in marks), default=1.0) <= 0:
            raise InvalidChart(f"{place}: {axis} = 0 or less cannot be drawn on a logarithmic axis")

    @property
    def marks(self) -> tuple[Series | Guide | Region | Word | Heat | Strokes | Graph, ...]:
        """All marks in drawing order."""
        return (
            *self.heats, *self.regions, *self.series, *self.guides, *self.graphs, *self.strokes,
            *self.words,
        )  # fmt: skip

    @property
    def labelled(self) -> tuple[Series | Guide | Region | Strokes, ...]:
        """The marks that have a label and belong to a group, in drawing order."""
        return (*self.regions, *self.series, *self.guides, *self.strokes)

    @property
    def is_map(self) -> bool:
        """Whether the panel shows cells or nodes and has no axes."""
        return bool(self.heats or self.graphs)

    def visible(self, series: Series) -> Visible:
        """Return the drawable part of a series: finite, and positive on a logarithmic axis.

        On a logarithmic axis a band that reaches zero ends at the lowest visible value.

        >>> y, bound = np.array([1.0, np.nan, 4.0]), np.array([np.inf] * 3)
        >>> series = Series("one run", np.arange(3), y, -bound, bound)
        >>> Panel("", "t", "y", [series]).visible(series)
        Visible(y=array([ 1., nan,  4.]), low=array([nan, nan, nan]), high=array([nan, nan, nan]))
        """
        logarithmic = self.yscale != "linear"
        y = np.where(_shown(series.y, logarithmic), series.y, np.nan)
        if series.low is None or series.high is None:
            return Visible(y, None, None)
        bounded = np.isfinite(series.low) & _shown(series.high, logarithmic) & np.isfinite(y)
        low = np.where(bounded, series.low, np.nan)
        if logarithmic:
            low = np.where(low <= 0, self._lowest(), low)
        return Visible(y, low, np.where(bounded, series.high, np.nan))

    def extent(self, axis: Literal["x", "y"]) -> tuple[float, float]:
        """Return the ends of an axis: its limits, or the range of the data.

        >>> panel = Panel("", "t", "y", [Series("y", np.arange(1, 9), np.ones(8))], xlim=(0, None))
        >>> panel.extent("x"), panel.extent("y")
        ((0.0, 8.0), (1.0, 1.0))
        """
        drawn = [getattr(flat, axis) for flat in (*self.regions, *self.heats, *self.graphs)]
        if axis == "x":
            drawn += [series.x for series in self.series]
        else:
            drawn += [y for s in self.series for y in self.visible(s) if y is not None]
        low, high = self.xlim if axis == "x" else self.ylim
        values = np.concatenate(drawn)
        finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.ones(1)
        return (
            float(finite.min() if low is None else low),
            float(finite.max() if high is None else high),
        )

    def _lowest(self) -> float:
        if self.ylim[0] is not None:
            return self.ylim[0]
        shown = (y for series in self.series for y in (series.y, series.low) if y is not None)
        values = np.concatenate([y[_shown(y, logarithmic=True)] for y in shown])
        return float(values.min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure: panels in a grid, filled row by row, and a sentence on how to read it.

    `note` is a short remark on all panels, such as the number of runs and the kind of bands.

    >>> x = np.arange(3)
    >>> panel = Panel("", "step t", "reward", [Series("rule", x, x)])
    >>> Chart("Reward", [panel], "Higher is better.").columns
    1
    """

    title: str
    panels: Sequence[Panel]
    how_to_read: str
    columns: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        place = f"chart {self.title!r}"
        require_text(self.title, "a chart", "title")
        require_text(self.how_to_read, place, "how_to_read")
        if not self.panels or not 1 <= self.columns <= len(self.panels):
            raise InvalidChart(
                f"{place}: {len(self.panels)} panels in {self.columns} columns; "
                "there must be a panel for each column"
            )
        if len(self.panels) > 1:
            for panel in self.panels:
                require_text(panel.title, f"a panel of {place}", "title")


def _shown(values: FloatArray, logarithmic: bool) -> npt.NDArray[np.bool_]:
    return np.isfinite(values) & (values > 0) if logarithmic else np.isfinite(values)
