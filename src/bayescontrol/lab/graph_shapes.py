"""The shapes of a drawn graph, as lines through points: discs, curved arrows and outlines.

    arrow      c(s) = (1-s)² p + 2 s (1-s) k + s² q,    k = (p + q)/2 + bend · |q - p| · n
               n is q - p, turned to the left: two arrows that run both ways lie apart
    loop       leaves a disc on one side of a direction and comes back on the other
    outline    the convex hull of discs around some nodes: straight, with round corners

An arrow starts and ends on the borders of its discs; its head is cut from its end.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray

_CIRCLE: Final = 48
_SAMPLES: Final = 129
#: A loop leaves its disc this far from its direction, in radians, and is this wide and long.
_SIDES: Final = 0.42
_OPENING: Final = 0.66
_REACH: Final = 4.6


class Arrow(NamedTuple):
    """A line, the three corners of its head, and where a label may go.

    >>> straight = arrow(np.zeros(2), np.array([2.0, 0.0]), 0.0, 0.25, 0.2, 0.1)
    >>> straight.aside, straight.point(0.5).round(6)
    (array([0., 1.]), array([1., 0.]))
    """

    line: FloatArray  #: shape (points, 2)
    head: FloatArray  #: shape (3, 2): tip, left and right
    aside: FloatArray  #: a unit vector, away from the line on its outer side

    def point(self, share: float) -> FloatArray:
        """The point at a share of its way, 0 where it starts and 1 at its tip."""
        way = np.concatenate([self.line, self.head[:1]])
        along = _along(way)
        return np.array([np.interp(share * along[-1], along, way[:, axis]) for axis in (0, 1)])


def disc(centre: npt.ArrayLike, radius: float) -> FloatArray:
    """The circle around a point, from the right to the left about: shape (points, 2).

    >>> disc([1.0, 0.0], 0.5)[0]
    array([1.5, 0. ])
    """
    angle = np.linspace(0.0, 2 * np.pi, _CIRCLE, endpoint=False)
    return np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def outline(centres: npt.ArrayLike, radius: float) -> FloatArray:
    """The convex hull of the discs around all centres, counter-clockwise.

    >>> outline([[0, 0], [2, 0]], 0.5).max(axis=0)
    array([2.5, 0.5])
    """
    around = np.concatenate([disc(centre, radius) for centre in np.asarray(centres, np.float64)])
    points = np.unique(around, axis=0)
    return np.concatenate([_half(points), _half(points[::-1])])


def _half(points: FloatArray) -> FloatArray:
    """One side of the hull of points in order, without its last corner."""
    kept: list[FloatArray] = []
    for point in points:
        while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return np.stack(kept[:-1])


def _turn(p: FloatArray, q: FloatArray, r: FloatArray) -> float:
    (a, b), (c, d) = q - p, r - p
    return float(a * d - b * c)


def contains(hull: FloatArray, point: npt.ArrayLike) -> bool:
    """Whether a point lies in a hull, whose corners go counter-clockwise.

    >>> contains(disc([0, 0], 1.0), [0.5, 0.5]), contains(disc([0, 0], 1.0), [1.0, 1.0])
    (True, False)
    """
    at, along = np.asarray(point) - hull, np.roll(hull, -1, axis=0) - hull
    return bool((along[:, 0] * at[:, 1] - along[:, 1] * at[:, 0] > 0).all())


def arrow(
    p: FloatArray, q: FloatArray, bend: float, radius: float, length: float, width: float
) -> Arrow:
    """From the disc around p to that around q; `length` and `width` are those of its head.

    >>> straight = arrow(np.zeros(2), np.array([2.0, 0.0]), 0.0, 0.25, 0.2, 0.1)
    >>> straight.head[0].round(3), straight.line[0].round(3)
    (array([1.75, 0.  ]), array([0.25, 0.  ]))
    """
    s = np.linspace(0.0, 1.0, _SAMPLES)[:, None]
    normal = np.array([p[1] - q[1], q[0] - p[0]])
    k = (p + q) / 2 + bend * normal
    curve = (1 - s) ** 2 * p + 2 * s * (1 - s) * k + s**2 * q
    curve = _from_border(curve, p, radius)
    curve = _from_border(curve[::-1], q, radius)[::-1]
    side = -1.0 if bend < 0 else 1.0
    return _headed(curve, length, width, side * normal / np.hypot(*normal))


def loop(p: FloatArray, toward: float, radius: float, length: float, width: float) -> Arrow:
    """From the disc around p back to it, `toward` an angle in degrees: 90 is above.

    >>> above = loop(np.zeros(2), 90.0, 0.25, 0.2, 0.1)
    >>> above.aside.round(12), bool(above.point(0.5)[1] > 0.5)
    (array([0., 1.]), True)
    """
    angle, s = np.radians(toward), np.linspace(0.0, 1.0, _SAMPLES)[:, None]
    a, d = (p + radius * _unit(angle + side) for side in (_SIDES, -_SIDES))
    b, c = (p + _REACH * radius * _unit(angle + side) for side in (_OPENING, -_OPENING))
    curve = (1 - s) ** 3 * a + 3 * s * (1 - s) ** 2 * b + 3 * s**2 * (1 - s) * c + s**3 * d
    return _headed(curve, length, width, _unit(angle))


def _unit(angle: float) -> FloatArray:
    return np.array([np.cos(angle), np.sin(angle)])


def _from_border(curve: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    """The part of a curve outside a disc in which it starts."""
    away = np.hypot(*(curve - centre).T)
    first = int(np.argmax(away > radius))
    share = (radius - away[first - 1]) / (away[first] - away[first - 1])
    border = curve[first - 1] + share * (curve[first] - curve[first - 1])
    return np.concatenate([border[None], curve[first:]])


def _along(curve: FloatArray) -> FloatArray:
    """The way to each point of a curve, along it."""
    return np.asarray(np.r_[0.0, np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])


def _headed(curve: FloatArray, length: float, width: float, aside: FloatArray) -> Arrow:
    along = _along(curve)
    # A head is never longer than half of its line.
    cut = along[-1] - min(length, along[-1] / 2)
    base = np.array([np.interp(cut, along, curve[:, axis]) for axis in (0, 1)])
    tip = curve[-1]
    d = (tip - base) / np.hypot(*(tip - base))
    left = np.array([-d[1], d[0]]) * width / 2
    line = np.concatenate([curve[along < cut], base[None]])
    return Arrow(line, np.stack([tip, base + left, base - left]), aside)
