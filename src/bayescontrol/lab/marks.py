"""What is drawn in a panel, and how it looks: names of colours, dashes and markers.

    series    y(x), and low(x) <= y(x) <= high(x): a band around a line, bars at points
    guide     y = c, x = c or y = x, a thin line to compare with
    region    the polygon with corners (x_i, y_i), filled
    word      a text that stands at (x, y)

A new kind of mark is one class here, and one function in each renderer.
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
#: An open marker is larger, so that another may lie in it.
Marker: TypeAlias = Literal[
    "circle", "square", "diamond", "triangle-up", "triangle-down", "star", "square-open"
]
Kind: TypeAlias = Literal["line", "step", "points"]
Direction: TypeAlias = Literal["horizontal", "vertical", "diagonal"]

#: Okabe & Ito's colours, told apart by every eye; ink is black on paper, white in the dark.
PALETTE: Final[tuple[Colour, ...]] = get_args(Colour)


class InvalidChart(BayesControlError, ValueError):
    """A chart that cannot be drawn or cannot be read: shapes that differ, a missing label.

    >>> issubclass(InvalidChart, ValueError)
    True
    """


@dataclass(frozen=True, eq=False)
class Series:
    """y(x), as a line, a right-continuous step or points; [low, high] as a band or as bars.

    Series of one `group`, the label unless said otherwise, are shown and hidden together, in
    all panels. A marker on a line marks its points.

    >>> x = np.arange(3)
    >>> Series("oracle", x, x**2, colour="green").group
    'oracle'
    >>> Series("oracle", x, x[:2])
    Traceback (most recent call last):
    bayescontrol.lab.marks.InvalidChart: series 'oracle': x has shape (3,), y (2,)...
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
        place = f"series {self.label!r}"
        require_text(self.label, "a series", "label")
        require_choice(self.kind, Kind, place, "kind")
        require_choice(self.colour, Colour, place, "colour")
        require_choice(self.dash, Dash, place, "dash")
        if self.marker is not None:
            require_choice(self.marker, Marker, place, "marker")
        if (self.low is None) != (self.high is None):
            raise InvalidChart(f"{place}: give both low and high, or neither")
        names = ("x", "y") if self.low is None else ("x", "y", "low", "high")
        for name in names:
            object.__setattr__(self, name, _numbers(getattr(self, name), place, name))
        shapes = [getattr(self, name).shape for name in names]
        if len(set(shapes)) > 1 or self.x.ndim != 1 or not self.x.size:
            told = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
            raise InvalidChart(
                f"{place}: {told.replace('x ', 'x has shape ', 1)}; "
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
        object.__setattr__(self, "group", self.group or self.label)

    @classmethod
    def of_runs(
        cls, label: str, x: npt.NDArray[Any], runs: npt.NDArray[Any], **look: Any
    ) -> "Series":
        """The mean over the first axis, the runs, with two standard errors on either side.

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
    """A thin line to compare with: y = at, x = at, or the diagonal y = x.

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
        place = f"guide {self.label!r}"
        require_text(self.label, "a guide", "label")
        require_choice(self.direction, Direction, place, "direction")
        require_choice(self.colour, Colour, place, "colour")
        require_choice(self.dash, Dash, place, "dash")
        if not np.isfinite(self.at) or (self.direction == "diagonal" and self.at):
            raise InvalidChart(f"{place}: at is {self.at}; it must be finite, 0 for a diagonal")
        object.__setattr__(self, "group", self.group or self.label)


@dataclass(frozen=True, eq=False)
class Region:
    """The polygon with corners (x_i, y_i), filled: `shade` is the share of its colour.

    It hides what was drawn before it, as a solid would: regions are drawn in their order, and
    under everything else. Its last corner is joined to the first.

    >>> Region("m₁ ≥ m₂", np.array([0, 1, 1]), np.array([0, 0, 1])).group
    'm₁ ≥ m₂'
    >>> Region("a line", np.arange(2), np.arange(2))
    Traceback (most recent call last):
    bayescontrol.lab.marks.InvalidChart: region 'a line': x has shape (2,), y (2,); ...
    """

    label: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    colour: Colour = "blue"
    shade: float = 0.4
    in_legend: bool = True
    group: str = ""

    def __post_init__(self) -> None:
        place = f"region {self.label!r}"
        require_text(self.label, "a region", "label")
        require_choice(self.colour, Colour, place, "colour")
        for name in ("x", "y"):
            object.__setattr__(self, name, _numbers(getattr(self, name), place, name))
        if self.x.shape != self.y.shape or self.x.ndim != 1 or self.x.size < 3:
            raise InvalidChart(
                f"{place}: x has shape {self.x.shape}, y {self.y.shape}; they must be equal, with "
                "one axis and at least three corners"
            )
        if not (np.isfinite(self.x).all() and np.isfinite(self.y).all()):
            raise InvalidChart(f"{place}: its corners must be finite")
        if not 0 <= self.shade <= 1:
            raise InvalidChart(f"{place}: shade is {self.shade}, it must be between 0 and 1")
        object.__setattr__(self, "group", self.group or self.label)


@dataclass(frozen=True)
class Word:
    """A text with its middle at (x, y). No legend names it.

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
            raise InvalidChart(f"word {self.text!r}: it stands at ({self.x}, {self.y})")


def require_text(text: str, place: str, name: str) -> None:
    """Refuse an empty label.

    >>> require_text(" ", "panel 'Regret'", "ylabel")
    Traceback (most recent call last):
    bayescontrol.lab.marks.InvalidChart: panel 'Regret': the ylabel is empty; a reader needs it
    """
    if not text.strip():
        raise InvalidChart(f"{place}: the {name} is empty; a reader needs it")


def require_choice(value: Any, kind: Any, place: str, name: str) -> None:
    """Refuse a value that is none of a `Literal`'s.

    >>> require_choice("dots", Dash, "series 'rule'", "dash")
    Traceback (most recent call last):
    bayescontrol.lab.marks.InvalidChart: series 'rule': dash is 'dots', it must be solid, dash, ...
    """
    if value not in get_args(kind):
        raise InvalidChart(f"{place}: {name} is {value!r}, it must be {_or(get_args(kind))}")


def _or(values: Iterable[str]) -> str:
    *most, last = values
    return f"{', '.join(most)} or {last}"


def _numbers(values: Any, place: str, name: str) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidChart(f"{place}: {name} does not hold plain numbers: {error}") from error
    array.flags.writeable = False
    return array
