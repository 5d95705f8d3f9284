"""Describe a figure as data, independent of any plotting library.

    Chart      panels in a grid, a title and a sentence that explains how to read it
    Panel      two labelled axes with marks; or a map of shaded cells; or a `Graph`

    Series     y(x) with bounds low(x) <= y(x) <= high(x): a band around a line, bars at points
    Guide      the line y = c, x = c or y = x, for comparison
    Region     the filled polygon with corners (x_i, y_i)
    Word       a text centred at (x, y)
    Heat       cells of a map; cell (i, j) is the square j ≤ x ≤ j + 1, -i - 1 ≤ y ≤ -i, shaded
               with (v / high)^power of the colour. A power below 1 makes small values visible:
               with power 1/2, one hundredth of `high` gets a tenth of the colour.
    Strokes    lines drawn over a map; `arrows` builds arrows from (x, y) - d/2 to (x, y) + d/2
    Graph      nodes and arrows, in `bayescontrol.plot.graph`

`bayescontrol.plot.figures` draws a chart with Matplotlib. Values that are not finite are
skipped: a line has a gap, a marker is missing, a band or error bar is left out. To add a kind of
mark, add a class here and a drawing function there.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import AnyArray, ArrayLike, FloatArray
from bayescontrol.errors import BayesControlError
from bayescontrol.statistics import mean_and_error

if typing.TYPE_CHECKING:
    from bayescontrol.plot.graph import Graph

Colour: TypeAlias = Literal[
    "blue", "vermillion", "green", "orange", "sky", "purple", "ink", "yellow"
]
Dash: TypeAlias = Literal["solid", "dash", "dashdot", "dot"]
#: An open marker is larger than a filled one, so that both can be drawn at the same point.
Marker: TypeAlias = Literal[
    "circle", "square", "diamond", "triangle-up", "triangle-down", "star", "cross", "plus",
    "square-open",
]  # fmt: skip
#: A logarithmic axis has its ticks at powers of ten or of two.
Scale: TypeAlias = Literal["linear", "log", "log2"]
#: Position of a legend: inside its panel, or below the chart. Panels that share an entry share the
#: legend below the chart.
Place: TypeAlias = Literal[
    "best", "upper left", "upper right", "lower left", "lower right", "center right", "below"
]
#: The ends of an axis; None means that the axis ends where the data end.
Limits: TypeAlias = tuple[float | None, float | None]

#: Okabe and Ito's colour-blind safe palette; ink is black on a light ground, white on a dark one.
PALETTE: Final[tuple[Colour, ...]] = typing.get_args(Colour)

#: Length of an arrow's barbs and their sideways offset, as shares of the arrow's length.
_BARB_LENGTH: Final = 0.38
_BARB_OFFSET: Final = 0.32


class InvalidChart(BayesControlError, ValueError):
    """A chart cannot be drawn or read: shapes differ, a label is missing, a value is invalid.

    >>> Guide(" ")
    Traceback (most recent call last):
    bayescontrol.plot.chart.InvalidChart: guide ' ': the label is empty; a reader needs it
    """


@dataclass(frozen=True, eq=False)
class LabelledMark:
    """A mark with a label; marks of one `group` are shown and hidden together in all panels.

    `group` defaults to the label.

    >>> Guide("prior", 0.5).group
    'prior'
    """

    label: str
    in_legend: bool = field(default=True, kw_only=True)
    group: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        require_named(self, "label")
        object.__setattr__(self, "group", self.group or self.label)

    @property
    def place(self) -> str:
        """The name of the mark in error messages."""
        return f"{type(self).__name__.lower()} {self.label!r}"


@dataclass(frozen=True, eq=False)
class Series(LabelledMark):
    """y(x) as a line, a right-continuous step or points, with bounds as a band or error bars.

    A marker on a line marks its data points; if it is `sparse`, only a few of them. Series without
    a colour get different ones when they are drawn; one whose label names a colour, such as "red",
    gets the colour of the palette that is most like it.

    >>> x = np.arange(3)
    >>> Series("oracle", x, x**2, colour="green").group
    'oracle'
    >>> Series("oracle", x, x[:2])
    Traceback (most recent call last):
    bayescontrol.plot.chart.InvalidChart: series 'oracle': x has shape (3,), y (2,)...
    """

    x: AnyArray
    y: AnyArray
    low: AnyArray | None = None
    high: AnyArray | None = None
    kind: Literal["line", "step", "points"] = "line"
    colour: Colour | None = None
    dash: Dash = "solid"
    marker: Marker | None = None
    sparse: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "points" and self.marker is None:
            object.__setattr__(self, "marker", "circle")
        both_or_neither = (self.low is None) == (self.high is None)
        require(both_or_neither, self.place, "give both low and high, or neither")
        _store_points(self, ("x", "y") if self.low is None else ("x", "y", "low", "high"), least=1)
        is_finite = np.isfinite(self.x).all()
        require(is_finite, self.place, "x holds NaN or infinities; only y, low and high may")
        if self.low is not None and self.high is not None:
            i = int(np.argmax(self.low > self.high))
            x, low, high = self.x[i], self.low[i], self.high[i]
            problem = f"at x = {x:g}, low = {low:g} is above high = {high:g}"
            require(not low > high, self.place, problem)

    @classmethod
    def of_runs(cls, label: str, x: AnyArray, runs: AnyArray, **style: Any) -> "Series":
        """Return the mean over the first axis, the runs, with bounds of ± 2 standard errors.

        >>> series = Series.of_runs("share", np.arange(2), np.array([[0, 1], [0, 3]]))
        >>> series.y.tolist(), series.high.tolist()
        ([0.0, 2.0], [0.0, 4.0])
        """
        mean, error = mean_and_error(runs)
        with np.errstate(invalid="ignore"):  # an infinite mean has no band
            low, high = mean - 2 * error, mean + 2 * error
        return cls(label, x, mean, low, high, **style)


@dataclass(frozen=True)
class Guide(LabelledMark):
    """A thin line for comparison: y = at, x = at, or the diagonal y = x.

    >>> Guide("prior", 0.5).direction
    'horizontal'
    """

    at: float = 0.0
    direction: Literal["horizontal", "vertical", "diagonal"] = "horizontal"
    colour: Colour = "ink"
    dash: Dash = "dot"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = np.isfinite(self.at) and (self.direction != "diagonal" or not self.at)
        require(is_valid, self.place, f"at is {self.at}; it must be finite, 0 for a diagonal")


@dataclass(frozen=True, eq=False)
class Region(LabelledMark):
    """The polygon with corners (x_i, y_i), filled with a share `shade` of its colour.

    A region hides what was drawn before it.

    >>> Region("best", np.array([0, 1, 1]), np.array([0, 0, 1]), "sky").group
    'best'
    """

    x: AnyArray
    y: AnyArray
    colour: Colour = "blue"
    shade: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        _store_points(self, ("x", "y"), least=3)
        require(np.isfinite([self.x, self.y]).all(), self.place, "all corners must be finite")
        require_share(self.shade, self.place, "shade")


@dataclass(frozen=True)
class Word:
    """A text centred at (x, y). It does not appear in the legend.

    >>> Word("m₁", 1.0, 0.0).colour
    'ink'
    """

    text: str
    x: float
    y: float
    colour: Colour = "ink"

    def __post_init__(self) -> None:
        require_position(self.x, self.y, require_named(self, "text"))


@dataclass(frozen=True, eq=False)
class Heat:
    """Cells shaded by values[i, j] ≥ 0; NaN means that there is no cell.

    `label` names the values on the colour scale; a heat does not appear in the legend.

    >>> heat = Heat("share of the steps", np.array([[0.0, 0.1], [np.nan, 0.4]]), high=0.4)
    >>> heat.shade(heat.values)
    array([[0.  , 0.25],
           [ nan, 1.  ]])
    >>> heat.x, heat.y
    (array([0., 2.]), array([-2.,  0.]))
    """

    label: str
    values: AnyArray
    high: float
    colour: Colour = "blue"
    power: float = 1.0

    def __post_init__(self) -> None:
        place = require_named(self, "label")
        _store_numbers(self, ("values",), place)
        values = self.values
        is_table = values.ndim == 2 and values.size > 0
        require(is_table, place, f"values have shape {values.shape}; expected rows and columns")
        is_valid = np.isnan(values) | (np.isfinite(values) & (values >= 0))
        require(is_valid.all(), place, "values must be finite and at least 0, or NaN for no cell")
        for name in ("high", "power"):
            value = getattr(self, name)
            require(0 < value < np.inf, place, f"{name} is {value}; it must be positive")

    def shade(self, value: ArrayLike) -> FloatArray:
        """Return (v / high)^power, at most 1."""
        shares = np.asarray(value, np.float64) / self.high
        return np.asarray(np.minimum(shares, 1.0) ** self.power)

    @property
    def x(self) -> FloatArray:
        """The left and right end of the map."""
        return np.array([0.0, self.values.shape[1]])

    @property
    def y(self) -> FloatArray:
        """The lower and upper end of the map."""
        return np.array([-float(self.values.shape[0]), 0.0])

    def ticks(self) -> FloatArray:
        """Return the values to mark on the colour scale: 0, high and round values between.

        With a power below 1 small values are visible, so that ticks are marked there, too.

        >>> Heat("share", np.zeros((1, 1)), high=0.2, power=0.5).ticks()
        array([0.  , 0.02, 0.05, 0.1 , 0.2 ])
        """
        decade = 10.0 ** np.floor(np.log10(self.high))
        steps = np.array([0.1, 0.2, 0.5, 1, 2, 5]) if self.power < 1 else np.array([1, 2, 5])
        # Ticks within a twentieth of an end would run into its label.
        inner_ticks = [v for v in steps * decade if 0.05 * self.high < v < 0.95 * self.high]
        return np.round([0.0, *inner_ticks, self.high], 12)  # 0.30000000000000004 becomes 0.3


@dataclass(frozen=True, eq=False)
class Strokes(LabelledMark):
    """Lines through the points (x_i, y_i) in order; a NaN starts a new line.

    >>> Strokes("membrane", np.array([0.0, 1.0]), np.array([-1.0, -1.0])).group
    'membrane'
    """

    x: AnyArray
    y: AnyArray
    colour: Colour = "ink"
    dash: Dash = "solid"
    width: float = 1.2
    in_legend: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _store_points(self, ("x", "y"), least=0)


def arrows(
    label: str, x: ArrayLike, y: ArrayLike, dx: ArrayLike, dy: ArrayLike, **style: Any
) -> Strokes:
    """Build arrows centred at (x_i, y_i) with the lengths and directions of (dx_i, dy_i).

    >>> one = arrows("up", [0.5], [-0.5], [0.0], [1.0])
    >>> one.x.size, float(one.y[1])
    (6, 0.0)
    """
    middle = np.stack([np.ravel(x), np.ravel(y)]).astype(np.float64)
    d = np.stack([np.ravel(dx), np.ravel(dy)]).astype(np.float64)
    tail, tip, sideways = middle - d / 2, middle + d / 2, _BARB_OFFSET * np.stack([-d[1], d[0]])
    left, right = tip - _BARB_LENGTH * d + sideways, tip - _BARB_LENGTH * d - sideways
    path = np.stack([tail, tip, left, tip, right, np.full_like(tip, np.nan)], axis=2)
    return Strokes(label, path[0].ravel(), path[1].ravel(), **style)


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
    bayescontrol.plot.chart.InvalidChart: panel 'Regret': the ylabel is empty...
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
    graphs: Sequence["Graph"] = ()

    def __post_init__(self) -> None:
        place = f"panel {self.title!r}"
        require_text(self.xlabel, place, "xlabel")
        require_text(self.ylabel, place, "ylabel")
        require_choices(self, place)
        has_marks = self.series or self.regions or self.heats or self.graphs
        require(has_marks, place, "it has nothing to draw; leave the panel out")
        for axis in "xy":
            self._check_axis(axis, place)

    def _check_axis(self, axis: str, place: str) -> None:
        """Raise unless limits and data fit the scale of the axis "x" or "y"."""
        scale, (low, high) = getattr(self, f"{axis}scale"), getattr(self, f"{axis}lim")
        increases = low is None or high is None or low < high
        require(increases, place, f"{axis}lim is ({low}, {high}); it must increase")
        if scale == "linear":
            return
        lowest = min(bound for bound in (low, high, 1.0) if bound is not None)  # 1.0: any valid one
        require(lowest > 0, place, f"{axis}lim is ({low}, {high}), not positive on a log axis")
        filled = (*self.regions, *self.heats, *self.graphs)
        marks = (*self.series, *filled) if axis == "x" else filled
        lowest = min((getattr(mark, axis).min() for mark in marks), default=1.0)
        require(lowest > 0, place, f"{axis} = 0 or less cannot be drawn on a logarithmic axis")

    @property
    def marks(self) -> "tuple[LabelledMark | Word | Heat | Graph, ...]":
        """All marks in drawing order."""
        return (
            *self.heats, *self.regions, *self.series, *self.guides, *self.graphs, *self.strokes,
            *self.words,
        )  # fmt: skip

    @property
    def labelled(self) -> tuple[LabelledMark, ...]:
        """The marks that have a label and belong to a group, in drawing order."""
        return (*self.regions, *self.series, *self.guides, *self.strokes)

    @property
    def legend_marks(self) -> list[LabelledMark]:
        """The marks that have an entry in a legend, in drawing order."""
        return [mark for mark in self.labelled if mark.in_legend]

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
        is_log = self.yscale != "linear"
        y = np.where(_is_drawable(series.y, is_log), series.y, np.nan)
        if series.low is None or series.high is None:
            return Visible(y, None, None)
        has_bounds = np.isfinite(series.low) & _is_drawable(series.high, is_log) & np.isfinite(y)
        low = np.where(has_bounds, series.low, np.nan)
        if is_log:
            low = np.where(low <= 0, self._lowest(), low)
        return Visible(y, low, np.where(has_bounds, series.high, np.nan))

    def extent(self, axis: Literal["x", "y"]) -> tuple[float, float]:
        """Return the ends of an axis: its limits, or the range of the data.

        >>> panel = Panel("", "t", "y", [Series("y", np.arange(1, 9), np.ones(8))], xlim=(0, None))
        >>> panel.extent("x"), panel.extent("y")
        ((0.0, 8.0), (1.0, 1.0))
        """
        coordinates = [getattr(mark, axis) for mark in (*self.regions, *self.heats, *self.graphs)]
        if axis == "x":
            coordinates += [series.x for series in self.series]
        else:
            coordinates += [y for s in self.series for y in self.visible(s) if y is not None]
        low, high = self.xlim if axis == "x" else self.ylim
        values = np.concatenate(coordinates)
        # If there is nothing to draw, the axis is at 1, which is valid on every scale.
        finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.ones(1)
        ends = finite.min() if low is None else low, finite.max() if high is None else high
        return float(ends[0]), float(ends[1])

    def _lowest(self) -> float:
        """Return the lower end of a logarithmic y axis: its limit, or the least positive value."""
        if self.ylim[0] is not None:
            return self.ylim[0]
        all_y = (y for series in self.series for y in (series.y, series.low) if y is not None)
        values = np.concatenate([y[_is_drawable(y, logarithmic=True)] for y in all_y])
        return float(values.min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure: panels in a grid, filled row by row, and a sentence on how to read it.

    `note` is a short remark on all panels, such as the number of runs and the kind of bands.
    `paper` maps the number of each figure of the paper that this one shows to its panels, or to "".

    >>> x = np.arange(3)
    >>> panel = Panel("", "step t", "reward", [Series("rule", x, x)])
    >>> Chart("Reward", [panel], "Higher is better.").columns
    1
    >>> Chart("Reward", [panel], "Higher is better.", note="8 runs", paper={10: "top"}).remark
    'Figure 10 of the paper, top. 8 runs'
    """

    title: str
    panels: Sequence[Panel]
    how_to_read: str
    columns: int = 1
    note: str = ""
    paper: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = require_named(self, "title")
        require_text(self.how_to_read, place, "how_to_read")
        sizes = f"{len(self.panels)} panels in {self.columns} columns"
        fits = 1 <= self.columns <= len(self.panels)
        require(fits, place, f"{sizes}; there must be a panel for each column")
        for panel in self.panels if len(self.panels) > 1 else ():
            require_text(panel.title, f"a panel of {place}", "title")

    @property
    def places(self) -> dict[int, str]:
        """Where the paper has this figure, in words, by the number of its figure."""
        return {n: f"Figure {n} of the paper, {p}".rstrip(", ") for n, p in self.paper.items()}

    @property
    def remark(self) -> str:
        """The figures of the paper that the chart shows, and its note."""
        return ". ".join(filter(None, (*self.places.values(), self.note)))

    def _repr_png_(self) -> bytes:
        """Show the chart in a notebook."""
        from bayescontrol.plot import figures

        return figures.png(self)


def _is_drawable(values: FloatArray, logarithmic: bool) -> npt.NDArray[np.bool_]:
    """Return which values can be drawn: finite ones, and only positive ones on a log axis."""
    return np.isfinite(values) & (values > 0) if logarithmic else np.isfinite(values)


def require(holds: object, place: str, problem: str) -> None:
    """Raise `InvalidChart` with the place and the problem unless a condition holds."""
    if not holds:
        raise InvalidChart(f"{place}: {problem}")


def require_text(text: str, place: str, name: str) -> None:
    """Raise `InvalidChart` if a label is empty."""
    require(text.strip(), place, f"the {name} is empty; a reader needs it")


def require_named(part: Any, name: str) -> str:
    """Check the name and the choices of a part of a chart; return its place in error messages."""
    text = getattr(part, name)
    place = f"{type(part).__name__.lower()} {text!r}"
    require_text(text, place, name)
    require_choices(part, place)
    return place


def require_choices(mark: Any, place: str) -> None:
    """Raise `InvalidChart` unless every field with a `Literal` type has one of its values.

    The type may be optional: `Literal[...] | None`.
    """
    for attribute in dataclasses.fields(mark):
        kinds = (attribute.type, *typing.get_args(attribute.type))
        choices = [k for kind in kinds if typing.get_origin(kind) is Literal for k in kind.__args__]
        value = getattr(mark, attribute.name)
        if choices and not (value is None and types.NoneType in kinds):
            expected = f"{', '.join(choices[:-1])} or {choices[-1]}"
            problem = f"{attribute.name} is {value!r}; it must be {expected}"
            require(value in choices, place, problem)


def require_share(value: float, place: str, name: str) -> None:
    """Raise `InvalidChart` unless 0 ≤ value ≤ 1."""
    require(0 <= value <= 1, place, f"{name} is {value}; it must be between 0 and 1")


def require_position(x: float, y: float, place: str) -> None:
    """Raise `InvalidChart` unless x and y are finite."""
    require(np.isfinite([x, y]).all(), place, f"the position ({x}, {y}) is not finite")


def _store_points(mark: Any, names: Sequence[str], least: int) -> None:
    """Replace the named fields by read-only arrays of points, at least `least` of them."""
    _store_numbers(mark, names, mark.place)
    shapes = [getattr(mark, name).shape for name in names]
    listed = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
    listed = listed.replace("x ", "x has shape ", 1)
    fits = len(set(shapes)) == 1 and mark.x.ndim == 1 and mark.x.size >= least
    expected = f"they must be equal, with one axis and a length of at least {least}"
    require(fits, mark.place, f"{listed}; {expected}")


def _store_numbers(mark: Any, names: Iterable[str], place: str) -> None:
    """Replace the named fields by read-only float arrays."""
    for name in names:
        try:
            array = np.array(getattr(mark, name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidChart(f"{place}: {name} does not hold plain numbers: {error}") from error
        array.flags.writeable = False
        object.__setattr__(mark, name, array)
