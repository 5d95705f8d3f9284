"""What is drawn on a map: cells shaded by a value, and strokes over them.

    cell (i, j)    the square j ≤ x ≤ j + 1, -i - 1 ≤ y ≤ -i: row i from above, column j from left
    its shade      (v / high)^power of the colour; 0 is the ground, high and more is all colour
    arrow          from (x, y) - d/2 to (x, y) + d/2, with two barbs at its tip

A power below 1 shows small values: with 1/2 a hundredth of `high` has a tenth of the colour.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.marks import Colour, Dash, InvalidChart, require_choice, require_text

#: Barbs are this share of an arrow's length, and lean this far to either side.
_BARB = 0.38
_LEAN = 0.32


@dataclass(frozen=True, eq=False)
class Heat:
    """values[i, j] ≥ 0 as shades of a colour; where NaN stands there is no cell.

    `label` says what the values are; they stand beside a scale of shades, never in a legend.

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
        values = np.array(self.values, np.float64)
        if values.ndim != 2 or not values.size:
            raise InvalidChart(f"{place}: values have shape {values.shape}; rows and columns")
        if not (np.isnan(values) | (np.isfinite(values) & (values >= 0))).all():
            raise InvalidChart(f"{place}: values are at least 0 and finite, or NaN for no cell")
        for name in ("high", "power"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidChart(f"{place}: {name} is {getattr(self, name)}, it must be positive")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def shades(self) -> FloatArray:
        """The share of the colour in every cell; NaN where there is none."""
        return self.shade(self.values)

    def shade(self, value: npt.ArrayLike) -> FloatArray:
        """(v / high)^power, at most 1."""
        shares = np.asarray(value, np.float64) / self.high
        return np.asarray(np.minimum(shares, 1.0) ** self.power)

    @property
    def x(self) -> FloatArray:
        """Where the columns begin and end."""
        return np.array([0.0, self.values.shape[1]])

    @property
    def y(self) -> FloatArray:
        """Where the rows end and begin."""
        return np.array([-float(self.values.shape[0]), 0.0])

    @property
    def scale(self) -> tuple[Any, ...]:
        """What two heats share that can be read off one scale of shades."""
        return self.label, self.high, self.colour, self.power

    def ticks(self) -> FloatArray:
        """Values to be marked on the scale: 0, high, and round ones between.

        >>> Heat("share", np.zeros((1, 1)), high=0.2, power=0.5).ticks()
        array([0.  , 0.02, 0.05, 0.1 , 0.2 ])
        """
        decade = 10.0 ** np.floor(np.log10(self.high))
        steps = np.array([0.1, 0.2, 0.5, 1, 2, 5]) if self.power < 1 else np.array([1, 2, 5])
        between = steps * decade
        seen = [v for v in between if 0.05 * self.high < v < 0.95 * self.high]
        return np.round([0.0, *seen, self.high], 12)

    def outline(self) -> tuple[FloatArray, FloatArray]:
        """The borders of all cells, one after the other, with NaN between two cells.

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
    """Lines through the points (x_i, y_i) in their order; NaN lifts the pen.

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
        place = f"strokes {self.label!r}"
        require_text(self.label, "strokes", "label")
        require_choice(self.colour, Colour, place, "colour")
        require_choice(self.dash, Dash, place, "dash")
        for name in ("x", "y"):
            points = np.array(getattr(self, name), np.float64)
            points.flags.writeable = False
            object.__setattr__(self, name, points)
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise InvalidChart(
                f"{place}: x has shape {self.x.shape}, y {self.y.shape}; "
                "they must be equal, with one axis"
            )
        object.__setattr__(self, "group", self.group or self.label)


def arrows(
    label: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    dx: npt.ArrayLike,
    dy: npt.ArrayLike,
    **look: Any,
) -> Strokes:
    """Arrows with their middles at (x_i, y_i) and the lengths and directions of (dx_i, dy_i).

    >>> one = arrows("up", [0.5], [-0.5], [0.0], [1.0])
    >>> one.x.size, float(one.y[1])
    (6, 0.0)
    """
    middle = np.stack([np.ravel(x), np.ravel(y)]).astype(np.float64)
    d = np.stack([np.ravel(dx), np.ravel(dy)]).astype(np.float64)
    tail, tip, aside = middle - d / 2, middle + d / 2, _LEAN * np.stack([-d[1], d[0]])
    left, right = tip - _BARB * d + aside, tip - _BARB * d - aside
    path = np.stack([tail, tip, left, tip, right, np.full_like(tip, np.nan)], axis=2)
    return Strokes(label, path[0].ravel(), path[1].ravel(), **look)
