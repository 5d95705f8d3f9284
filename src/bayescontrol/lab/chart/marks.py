"""The marks of a panel and their look: colours, dashes and markers by name.

    Series     y(x) with bounds low(x) <= y(x) <= high(x): a band around a line, bars at points
    Guide      the line y = c, x = c or y = x, for comparison
    Region     the filled polygon with corners (x_i, y_i)
    Word       a text centred at (x, y)
    Heat       cells of a map; cell (i, j) is the square j ≤ x ≤ j + 1, -i - 1 ≤ y ≤ -i, shaded
               with (v / high)^power of the colour. A power below 1 makes small values visible:
               with power 1/2, one hundredth of `high` gets a tenth of the colour.
    Strokes    lines drawn over a map; `arrows` builds arrows from (x, y) - d/2 to (x, y) + d/2

To add a kind of mark, add a class here and a drawing function in `bayescontrol.report.figures`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.statistics import mean_and_error

Colour: TypeAlias = Literal[
    "blue", "vermillion", "green", "orange", "sky", "purple", "ink", "yellow"
]
Dash: TypeAlias = Literal["solid", "dash", "dashdot", "dot"]
#: An open marker is larger than a filled one, so that both can be drawn at the same point.
Marker: TypeAlias = Literal[
    "circle", "square", "diamond", "triangle-up", "triangle-down", "star", "square-open"
]
Kind: TypeAlias = Literal["line", "step", "points"]
Direction: TypeAlias = Literal["horizontal", "vertical", "diagonal"]

#: Okabe and Ito's colour-blind safe palette; ink is black on a light ground, white on a dark one.
PALETTE: Final[tuple[Colour, ...]] = get_args(Colour)

#: Length of an arrow's barbs and their sideways offset, as shares of the arrow's length.
_BARB_LENGTH: Final = 0.38
_BARB_OFFSET: Final = 0.32


class InvalidChart(BayesControlError, ValueError):
    """A chart cannot be drawn or read: shapes differ, a label is missing, a value is invalid.

    >>> Guide(" ")
    Traceback (most recent call last):
    bayescontrol.lab.chart.marks.InvalidChart: a guide: the label is empty; a reader needs it
    """


@dataclass(frozen=True, eq=False)
class Series:
    """y(x) as a line, a right-continuous step or points, with bounds as a band or error bars.

    Series of one `group` (by default the label) are shown and hidden together in all panels. A
    marker on a line marks its data points.

    >>> x = np.arange(3)
    >>> Series("oracle", x, x**2, colour="green").group
    'oracle'
    >>> Series("oracle", x, x[:2])
    Traceback (most recent call last):
    bayescontrol.lab.chart.marks.InvalidChart: series 'oracle': x has shape (3,), y (2,)...
    """

    label: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    low: npt.NDArray[Any] | None = None
    high: npt.NDArray[Any] | None = None
    kind: Kind = "line"
    colour: Colour = "blue"
    dash: Dash = "solid"
    marker: Marker | None = None
    in_legend: bool = True
    group: str = ""

    def __post_init__(self) -> None:
        place = _check_look(self, "series")
        require_choice(self.kind, Kind, place, "kind")
        if self.marker is not None:
            require_choice(self.marker, Marker, place, "marker")
        if (self.low is None) != (self.high is None):
            raise InvalidChart(f"{place}: give both low and high, or neither")
        names = ("x", "y") if self.low is None else ("x", "y", "low", "high")
        _store_numbers(self, names, place)
        shapes = [getattr(self, name).shape for name in names]
        if len(set(shapes)) > 1 or self.x.ndim != 1 or not self.x.size:
            listed = ", ".join(f"{n} {shape}" for n, shape in zip(names, shapes, strict=True))
            raise InvalidChart(
                f"{place}: {listed.replace('x ', 'x has shape ', 1)}; "
                "they must be equal, with one axis and at least one point"
            )
        if not np.isfinite(self.x).all():
            raise InvalidChart(f"{place}: x holds NaN or infinities; only y, low and high may")
        if self.low is not None and self.high is not None and np.any(self.low > self.high):
            i = int(np.argmax(self.low > self.high))
            raise InvalidChart(
                f"{place}: at x = {self.x[i]:g} low is {self.low[i]:g}, above high, "
                f"{self.high[i]:g}"
            )
        if self.kind == "points" and self.marker is None:
            object.__setattr__(self, "marker", "circle")

    @classmethod
    def of_runs(
        cls, label: str, x: npt.NDArray[Any], runs: npt.NDArray[Any], **look: Any
    ) -> "Series":
        """Return the mean over the first axis, the runs, with bounds of ± 2 standard errors.

        >>> series = Series.of_runs("share", np.arange(2), np.array([[0, 1], [0, 3]]))
        >>> series.y.tolist(), series.high.tolist()
        ([0.0, 2.0], [0.0, 4.0])
        """
        mean, error = mean_and_error(runs)
        with np.errstate(invalid="ignore"):  # an infinite mean has no band
            low, high = mean - 2 * error, mean + 2 * error
        return cls(label, x, mean, low, high, **look)


@dataclass(frozen=True)
class Guide:
    """A thin line for comparison: y = at, x = at, or the diagonal y = x.

    >>> Guide("prior", 0.5).direction
    'horizontal'
    """

    label: str
    at: float = 0.0
    direction: Direction = "horizontal"
    colour: Colour = "ink"
    dash: Dash = "dot"
    in_legend: bool = True
    group: str = ""

    def __post_init__(self) -> None:
        place = _check_look(self, "guide")
        require_choice(self.direction, Direction, place, "direction")
        if not np.isfinite(self.at) or (self.direction == "diagonal" and self.at):
            raise InvalidChart(f"{place}: at is {self.at}; it must be finite, 0 for a diagonal")


@dataclass(frozen=True, eq=False)
class Region:
    """The polygon with corners (x_i, y_i), filled with a share `shade` of its colour.

    A region hides what was drawn before it.

    >>> Region("best", np.array([0, 1, 1]), np.array([0, 0, 1]), "sky").group
    'best'
    """

    label: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    colour: Colour = "blue"
    shade: float = 0.4
    in_legend: bool = True
    group: str = ""

    def __post_init__(self) -> None:
        place = _check_look(self, "region")
        _store_numbers(self, ("x", "y"), place)
        if self.x.shape != self.y.shape or self.x.ndim != 1 or self.x.size < 3:
            raise InvalidChart(
                f"{place}: x has shape {self.x.shape}, y {self.y.shape}; they must be equal, with "
                "one axis and at least three corners"
            )
        if not (np.isfinite(self.x).all() and np.isfinite(self.y).all()):
            raise InvalidChart(f"{place}: its corners must be finite")
        require_share(self.shade, place, "shade")


@dataclass(frozen=True)
class Word:
    """A text centred at (x, y). It does not appear in the legend.

    >>> Word("m₁", 1.0, 0.0).in_legend
    False
    """

    in_legend: ClassVar = False

    text: str
    x: float
    y: float
    colour: Colour = "ink"

    def __post_init__(self) -> None:
        require_text(self.text, "a word", "text")
        require_choice(self.colour, Colour, f"word {self.text!r}", "colour")
        if not (np.isfinite(self.x) and np.isfinite(self.y)):
            raise InvalidChart(
                f"word {self.text!r}: the position ({self.x}, {self.y}) is not finite"
            )


@dataclass(frozen=True, eq=False)
class Heat:
    """Cells shaded by values[i, j] ≥ 0; NaN means that there is no cell.

    `label` names the values on the colour scale; a heat does not appear in the legend.

    >>> heat = Heat("share of the steps", np.array([[0.0, 0.1], [np.nan, 0.4]]), high=0.4)
    >>> heat.shades
    array([[0.  , 0.25],
           [ nan, 1.  ]])
    >>> heat.x, heat.y
    (array([0., 2.]), array([-2.,  0.]))
    """

    in_legend: ClassVar = False

    label: str
    values: npt.NDArray[Any]
    high: float
    colour: Colour = "blue"
    power: float = 1.0

    def __post_init__(self) -> None:
        place = f"heat {self.label!r}"
        require_text(self.label, "a heat", "label")
        require_choice(self.colour, Colour, place, "colour")
        _store_numbers(self, ("values",), place)
        values = self.values
        if values.ndim != 2 or not values.size:
            raise InvalidChart(f"{place}: values have shape {values.shape}; rows and columns")
        if not (np.isnan(values) | (np.isfinite(values) & (values >= 0))).all():
            raise InvalidChart(f"{place}: values are at least 0 and finite, or NaN for no cell")
        for name in ("high", "power"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidChart(f"{place}: {name} is {getattr(self, name)}, it must be positive")

    @property
    def shades(self) -> FloatArray:
        """The share of the colour in every cell; NaN where there is no cell."""
        return self.shade(self.values)

    def shade(self, value: npt.ArrayLike) -> FloatArray:
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

    @property
    def scale(self) -> tuple[Any, ...]:
        """The properties that two heats must share to be read off one colour scale."""
        return self.label, self.high, self.colour, self.power

    def ticks(self) -> FloatArray:
        """Return the values to mark on the colour scale: 0, high and round values between.

        >>> Heat("share", np.zeros((1, 1)), high=0.2, power=0.5).ticks()
        array([0.  , 0.02, 0.05, 0.1 , 0.2 ])
        """
        decade = 10.0 ** np.floor(np.log10(self.high))
        steps = np.array([0.1, 0.2, 0.5, 1, 2, 5]) if self.power < 1 else np.array([1, 2, 5])
        between = [v for v in steps * decade if 0.05 * self.high < v < 0.95 * self.high]
        return np.round([0.0, *between, self.high], 12)

    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Return the borders of all cells as one line, with NaN between two cells.

        >>> Heat("share", np.zeros((1, 1)), high=1.0).outline()[0]
        array([ 0.,  1.,  1.,  0.,  0., nan])
        """
        i, j = np.nonzero(~np.isnan(self.values))
        gap = np.full(i.size, np.nan)
        x = np.stack([j, j + 1, j + 1, j, j, gap], axis=1)
        y = -np.stack([i, i, i + 1, i + 1, i, gap], axis=1)
        return np.ravel(x), np.ravel(y)


@dataclass(frozen=True, eq=False)
class Strokes:
    """Lines through the points (x_i, y_i) in order; a NaN starts a new line.

    >>> Strokes("membrane", np.array([0.0, 1.0]), np.array([-1.0, -1.0])).group
    'membrane'
    """

    label: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    colour: Colour = "ink"
    dash: Dash = "solid"
    width: float = 1.2
    in_legend: bool = False
    group: str = ""

    def __post_init__(self) -> None:
        place = _check_look(self, "strokes", article="")
        _store_numbers(self, ("x", "y"), place)
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise InvalidChart(
                f"{place}: x has shape {self.x.shape}, y {self.y.shape}; "
                "they must be equal, with one axis"
            )


def arrows(
    label: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    dx: npt.ArrayLike,
    dy: npt.ArrayLike,
    **look: Any,
) -> Strokes:
    """Build arrows centred at (x_i, y_i) with the lengths and directions of (dx_i, dy_i).

    >>> one = arrows("up", [0.5], [-0.5], [0.0], [1.0])
    >>> one.x.size, float(one.y[1])
    (6, 0.0)
    """
    middle = np.stack([np.ravel(x), np.ravel(y)]).astype(np.float64)
    d = np.stack([np.ravel(dx), np.ravel(dy)]).astype(np.float64)
    tail, tip, aside = middle - d / 2, middle + d / 2, _BARB_OFFSET * np.stack([-d[1], d[0]])
    left, right = tip - _BARB_LENGTH * d + aside, tip - _BARB_LENGTH * d - aside
    path = np.stack([tail, tip, left, tip, right, np.full_like(tip, np.nan)], axis=2)
    return Strokes(label, path[0].ravel(), path[1].ravel(), **look)


def require_text(text: str, place: str, name: str) -> None:
    """Raise `InvalidChart` if a label is empty."""
    if not text.strip():
        raise InvalidChart(f"{place}: the {name} is empty; a reader needs it")


def require_choice(value: Any, kind: Any, place: str, name: str) -> None:
    """Raise `InvalidChart` unless the value is one of a `Literal`'s."""
    if value not in get_args(kind):
        *most, last = get_args(kind)
        raise InvalidChart(f"{place}: {name} is {value!r}, it must be {', '.join(most)} or {last}")


def require_share(value: float, place: str, name: str) -> None:
    """Raise `InvalidChart` unless 0 ≤ value ≤ 1."""
    if not 0 <= value <= 1:
        raise InvalidChart(f"{place}: {name} is {value}, it must be between 0 and 1")


def _check_look(mark: Series | Guide | Region | Strokes, noun: str, article: str = "a ") -> str:
    """Check label, colour and dash, set the default group, and return the mark's name in errors."""
    place = f"{noun} {mark.label!r}"
    require_text(mark.label, f"{article}{noun}", "label")
    require_choice(mark.colour, Colour, place, "colour")
    if not isinstance(mark, Region):
        require_choice(mark.dash, Dash, place, "dash")
    object.__setattr__(mark, "group", mark.group or mark.label)
    return place


def _store_numbers(mark: Any, names: Iterable[str], place: str) -> None:
    """Replace the named fields by read-only float arrays."""
    for name in names:
        try:
            array = np.array(getattr(mark, name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidChart(f"{place}: {name} does not hold plain numbers: {error}") from error
        array.flags.writeable = False
        object.__setattr__(mark, name, array)
