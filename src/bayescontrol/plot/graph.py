"""A directed graph: states, transitions between them, and outlines around sets of states.

    node       a disc with its name; `shade` is the share of its colour
    edge       an arrow of width 0.6 + 2.4 p points for probability p; a loop if both ends are one
               node. From node p to node q it follows the curve
               c(s) = (1-s)² p + 2 s (1-s) k + s² q,    k = (p + q)/2 + bend · |q - p| · n,
               where n is the unit vector to the left of q - p: arrows p → q and q → p lie apart
    area       the convex hull of discs around some nodes, with a name

One unit is about 1.5 cm in print: place nodes one to two units apart. Shapes are lines through
points, which a renderer can draw directly. An arrow starts and ends on the borders of
its discs.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, Literal, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.plot import chart
from bayescontrol.plot.chart import Colour, Dash

#: Number of corners of a disc and number of points on a curve.
_DISC_CORNERS: Final = 48
_CURVE_POINTS: Final = 129
#: Shape of a loop: the angle between its direction and the points where it leaves and enters the
#: disc; the angle and the distance (in radii) of its control points.
_LOOP_START: Final = 0.42
_LOOP_OPENING: Final = 0.66
_LOOP_REACH: Final = 4.6
#: Bend of arrows that share two nodes, and of an arrow that avoids a third node.
_BEND_APART: Final = 0.17
_BEND_AROUND: Final = 0.3
#: Length of an arrow head; its width at probability 0, and the width added at probability 1.
_HEAD_LENGTH: Final = 0.17
_HEAD_WIDTH: Final = (0.11, 0.07)
#: Relative size of the head of a faint arrow.
_FAINT_HEAD: Final = 0.75
#: Half the height of a line of text and half the width of a letter.
_HALF_LINE: Final = 0.13
_HALF_LETTER: Final = 0.052


@dataclass(frozen=True)
class Node:
    """A state, drawn as a disc centred at (x, y); a page shows `description` as a tooltip.

    >>> Node("A", 0.0, 1.0).shade
    0.0
    """

    name: str
    x: float
    y: float
    shade: float = 0.0
    colour: Colour = "blue"
    description: str = ""

    def __post_init__(self) -> None:
        place = chart.require_named(self, "name")
        chart.require_position(self.x, self.y, place)
        chart.require_share(self.shade, place, "shade")


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes by name; its width grows with its probability.

    `bend` moves the middle of the arrow to the left, as a share of its length. If `bend` is None,
    it is chosen so that arrows do not cover each other. A loop is drawn on the side with most
    space. The label is placed beside the point `at` of the arrow, 0 at the source and 1 at the
    target. A `faint` edge is grey and half as wide.

    >>> Edge("A", "B", 0.25, "go/quiet").width, Edge("A", "B", 0.25, faint=True).width
    (1.2, 0.6)
    """

    source: str
    target: str
    probability: float = 1.0
    label: str = ""
    colour: Colour = "ink"
    dash: Dash = "solid"
    bend: float | None = None
    at: float = 0.5
    faint: bool = False

    def __post_init__(self) -> None:
        chart.require_choices(self, self.place)
        is_valid = 0 < self.probability <= 1 + 1e-9
        expected = "it must be above 0 and at most 1; leave an impossible edge out"
        chart.require(is_valid, self.place, f"probability is {self.probability}; {expected}")
        chart.require_share(self.at, self.place, "at")
        is_finite = self.bend is None or np.isfinite(self.bend)
        chart.require(is_finite, self.place, f"bend is {self.bend}; it must be finite")

    @property
    def place(self) -> str:
        """The name of the edge in error messages."""
        return f"edge {self.source!r} → {self.target!r}"

    @property
    def width(self) -> float:
        """The line width in points: 0.6 + 2.4 p, or half of this width if the edge is faint."""
        return round((0.3 if self.faint else 0.6) * (1 + 4 * self.probability), 6)


@dataclass(frozen=True)
class Area:
    """An outline around some nodes; `room` is its distance from the nodes, in radii.

    The label is placed above or below the outline, unless `named` is False.

    >>> Area("region A", ("a0", "a1")).side
    'above'
    """

    label: str
    nodes: Sequence[str]
    colour: Colour = "blue"
    dash: Dash = "solid"
    room: float = 0.6
    side: Literal["above", "below"] = "above"
    named: bool = True

    def __post_init__(self) -> None:
        place = chart.require_named(self, "label")
        chart.require(self.nodes, place, "it has no nodes; leave it out")
        chart.require(0 < self.room < np.inf, place, f"room is {self.room}; it must be positive")


class Arrow(NamedTuple):
    """The shape of an edge."""

    line: FloatArray  #: shape (points, 2)
    head: FloatArray  #: shape (3, 2): tip, left and right corner
    aside: FloatArray  #: the unit vector away from the line on its outer side

    def point(self, share: float) -> FloatArray:
        """Return the point at a share of the arrow's length, 0 at the start and 1 at the tip."""
        path = np.concatenate([self.line, self.head[:1]])
        return _point_at(path, share * _arc_length(path)[-1])


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, edges between them and areas around them; `label` describes the graph.

    An area must not enclose a node that does not belong to it.

    >>> nodes = [Node("A", 0, 0), Node("B", 2, 0)]
    >>> graph = Graph("a coin", nodes, [Edge("A", "B"), Edge("B", "A"), Edge("B", "B")])
    >>> there, back, stays = graph.arrows
    >>> bool(there.point(0.5)[1] > 0 > back.point(0.5)[1])
    True
    >>> Graph("a coin", nodes, [Edge("A", "C")])
    Traceback (most recent call last):
    bayescontrol.plot.chart.InvalidChart: graph 'a coin': edge 'A' → 'C': no node is called 'C'
    """

    label: str
    nodes: Sequence[Node]
    edges: Sequence[Edge] = ()
    areas: Sequence[Area] = ()
    radius: float = 0.27

    def __post_init__(self) -> None:
        place = chart.require_named(self, "label")
        is_drawable = self.nodes and 0 < self.radius < np.inf
        sizes = f"{len(self.nodes)} nodes of radius {self.radius}"
        chart.require(is_drawable, place, f"{sizes}; expected a node and a finite, positive radius")
        names = [node.name for node in self.nodes]
        repeated = {name for name in names if names.count(name) > 1}
        chart.require(not repeated, place, f"two nodes are called {min(repeated, default='')!r}")
        uses = [(edge.place, name) for edge in self.edges for name in (edge.source, edge.target)]
        uses += [(f"area {area.label!r}", name) for area in self.areas for name in area.nodes]
        for owner, name in uses:
            chart.require(name in names, place, f"{owner}: no node is called {name!r}")
        for a, b in combinations(self.nodes, 2):
            is_apart = np.hypot(a.x - b.x, a.y - b.y) >= 2 * self.radius
            chart.require(is_apart, place, f"{a.name!r} and {b.name!r} overlap; move them apart")
        for area, hull in zip(self.areas, self.outlines, strict=True):
            for node in self.nodes:
                chart.require(
                    node.name in area.nodes or not contains(hull, (node.x, node.y)),
                    place,
                    f"the outline of area {area.label!r} encloses {node.name!r}, which is not in "
                    "it; move the node, or make two areas",
                )

    @cached_property
    def _centres(self) -> dict[str, FloatArray]:
        """The position of each node by name."""
        return {node.name: np.array([node.x, node.y], np.float64) for node in self.nodes}

    @cached_property
    def discs(self) -> list[FloatArray]:
        """The circles of the nodes, as corners (x_i, y_i)."""
        return [disc(self._centres[node.name], self.radius) for node in self.nodes]

    @cached_property
    def outlines(self) -> list[FloatArray]:
        """The corners of the areas."""
        return [
            outline([self._centres[name] for name in area.nodes], self.radius * (1 + area.room))
            for area in self.areas
        ]

    @cached_property
    def arrows(self) -> list[Arrow]:
        """The shapes of the edges."""
        shapes = []
        for edge, bend in zip(self.edges, self._bends, strict=True):
            size = _FAINT_HEAD if edge.faint else 1.0
            head = size * _HEAD_LENGTH, size * (_HEAD_WIDTH[0] + _HEAD_WIDTH[1] * edge.probability)
            p, q = self._centres[edge.source], self._centres[edge.target]
            if edge.source == edge.target:
                shapes.append(loop(p, self._free_angle(edge.source), self.radius, *head))
            else:
                shapes.append(arrow(p, q, bend, self.radius, *head))
        return shapes

    @cached_property
    def _bends(self) -> list[float]:
        """The bend of each edge; chosen so that arrows do not cover each other or a node."""
        parallel: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, edge in enumerate(self.edges):
            parallel[edge.source, edge.target].append(i)
        bends = [0.0] * len(self.edges)
        for (source, target), group in parallel.items():
            first = 1 if (target, source) in parallel else 1 - len(group)
            for k, i in enumerate(group):
                bend = self.edges[i].bend
                if bend is None:
                    bend = _BEND_APART * (first + 2 * k)
                    if not bend and self._is_blocked(source, target):
                        bend = _BEND_AROUND
                bends[i] = bend
        return bends

    def _is_blocked(self, source: str, target: str) -> bool:
        """Return whether a third node lies on the straight line between two nodes."""
        p, q = self._centres[source], self._centres[target]
        others = [c for name, c in self._centres.items() if name not in (source, target)]
        offsets, d = np.reshape(others, (-1, 2)) - p, q - p
        shares = offsets @ d / (d @ d)
        distances = np.hypot(*(np.outer(shares, d) - offsets).T)
        return bool(((shares > 0) & (shares < 1) & (distances < 1.2 * self.radius)).any())

    def _free_angle(self, name: str) -> float:
        """Return the middle of the widest gap between a node's edges, an angle in degrees."""
        pairs = [{edge.source, edge.target} for edge in self.edges]
        neighbours = set[str]().union(*(pair for pair in pairs if name in pair)) - {name}
        angles = sorted(
            float(np.degrees(np.arctan2(*(self._centres[n] - self._centres[name])[::-1])) % 360)
            for n in neighbours
        )
        if not angles:
            return 90.0
        gaps = np.diff([*angles, angles[0] + 360])
        widest = int(np.argmax(np.round(gaps, 6)))
        return float(angles[widest] + gaps[widest] / 2)

    @cached_property
    def edge_words(self) -> list[tuple[str, float, float]]:
        """The labels of the edges and their positions: beside the arrow, on its outer side."""
        words = []
        middle = np.mean([*self._centres.values()], axis=0)
        for edge, bend, shape in zip(self.edges, self._bends, self.arrows, strict=True):
            if edge.label:
                half = np.add(_half_size(edge.label), (0.05, 0.03))
                at, aside = shape.point(edge.at), shape.aside
                if not bend and edge.source != edge.target and aside @ (at - middle) < 0:
                    aside = -aside  # away from the middle of the graph there is more room
                at = at + aside * (np.abs(aside) @ half)
                words.append((edge.label, float(at[0]), float(at[1])))
        return words

    @cached_property
    def area_words(self) -> list[tuple[str, float, float, Colour]]:
        """The labels of the areas, their positions above or below the outline, and colours."""
        words = []
        for area, hull in zip(self.areas, self.outlines, strict=True):
            if area.named:
                sign = 1 if area.side == "above" else -1
                border_y = sign * (sign * hull[:, 1]).max()
                xs = hull[np.abs(hull[:, 1] - border_y) < 1e-6, 0]
                y = border_y + sign * (_half_size(area.label)[1] + 0.06)
                words.append((area.label, float((xs.min() + xs.max()) / 2), float(y), area.colour))
        return words

    @property
    def x(self) -> FloatArray:
        """The left and right end of the graph, including its labels."""
        return self._extent(0)

    @property
    def y(self) -> FloatArray:
        """The lower and upper end of the graph, including its labels."""
        return self._extent(1)

    def _extent(self, axis: int) -> FloatArray:
        shapes = [*self.discs, *self.outlines, *(shape.line for shape in self.arrows)]
        coordinates = [shape[:, axis] for shape in shapes]
        for text, *at in (*self.edge_words, *(word[:3] for word in self.area_words)):
            half = _half_size(text)[axis]
            coordinates.append(np.array([at[axis] - half, at[axis] + half]))
        values = np.concatenate(coordinates)
        return np.array([values.min(), values.max()])


def disc(centre: ArrayLike, radius: float) -> FloatArray:
    """Return points on the circle around a centre, counter-clockwise: shape (points, 2)."""
    angle = np.linspace(0.0, 2 * np.pi, _DISC_CORNERS, endpoint=False)
    return np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def outline(centres: ArrayLike, radius: float) -> FloatArray:
    """Return the convex hull of the discs around all centres, counter-clockwise."""
    from scipy.spatial import ConvexHull  # type: ignore[import-untyped] # takes long to load

    around = np.concatenate([disc(centre, radius) for centre in np.asarray(centres, np.float64)])
    return np.asarray(around[ConvexHull(around).vertices])


def contains(hull: FloatArray, point: ArrayLike) -> bool:
    """Return whether a point lies in a hull whose corners are counter-clockwise."""
    offsets, edges = np.asarray(point) - hull, np.roll(hull, -1, axis=0) - hull
    return bool((edges[:, 0] * offsets[:, 1] - edges[:, 1] * offsets[:, 0] > 0).all())


def arrow(
    p: FloatArray, q: FloatArray, bend: float, radius: float, length: float, width: float
) -> Arrow:
    """Return the arrow from the disc around p to the disc around q.

    `length` and `width` are the size of its head.
    """
    s = np.linspace(0.0, 1.0, _CURVE_POINTS)[:, None]
    normal = np.array([p[1] - q[1], q[0] - p[0]])
    k = (p + q) / 2 + bend * normal
    curve = (1 - s) ** 2 * p + 2 * s * (1 - s) * k + s**2 * q
    curve = _outside_disc(curve, p, radius)
    curve = _outside_disc(curve[::-1], q, radius)[::-1]
    side = -1.0 if bend < 0 else 1.0
    return _with_head(curve, length, width, side * normal / np.hypot(*normal))


def loop(p: FloatArray, toward: float, radius: float, length: float, width: float) -> Arrow:
    """Return an arrow that leaves the disc around p and returns to it.

    `toward` is its direction, an angle in degrees; `length` and `width` are the size of its head.
    """
    angle, s = np.radians(toward), np.linspace(0.0, 1.0, _CURVE_POINTS)[:, None]
    reach = _LOOP_REACH * radius
    a, d = (p + radius * _vector(angle + side) for side in (_LOOP_START, -_LOOP_START))
    b, c = (p + reach * _vector(angle + side) for side in (_LOOP_OPENING, -_LOOP_OPENING))
    curve = (1 - s) ** 3 * a + 3 * s * (1 - s) ** 2 * b + 3 * s**2 * (1 - s) * c + s**3 * d
    return _with_head(curve, length, width, _vector(angle))


def _vector(angle: float) -> FloatArray:
    """Return the unit vector at an angle in radians."""
    return np.array([np.cos(angle), np.sin(angle)])


def _outside_disc(curve: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    """Cut off the start of a curve that lies inside a disc."""
    distance = np.hypot(*(curve - centre).T)
    first = int(np.argmax(distance > radius))
    share = (radius - distance[first - 1]) / (distance[first] - distance[first - 1])
    border = curve[first - 1] + share * (curve[first] - curve[first - 1])
    return np.concatenate([border[None], curve[first:]])


def _arc_length(curve: FloatArray) -> FloatArray:
    """Return the distance along a curve from its start to each point."""
    return np.asarray(np.r_[0.0, np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])


def _point_at(curve: FloatArray, distance: float) -> FloatArray:
    """Return the point of a curve at a distance from its start, measured along the curve."""
    return np.array([np.interp(distance, _arc_length(curve), axis) for axis in curve.T])


def _with_head(curve: FloatArray, length: float, width: float, aside: FloatArray) -> Arrow:
    """Replace the end of a curve by an arrow head."""
    distance = _arc_length(curve)
    # A head is never longer than half of its line.
    cut = distance[-1] - min(length, distance[-1] / 2)
    base, tip = _point_at(curve, cut), curve[-1]
    d = (tip - base) / np.hypot(*(tip - base))
    left = np.array([-d[1], d[0]]) * width / 2
    line = np.concatenate([curve[distance < cut], base[None]])
    return Arrow(line, np.stack([tip, base + left, base - left]), aside)


def _half_size(text: str) -> tuple[float, float]:
    """Return half the width and half the height of a text."""
    lines = text.split("\n")
    return _HALF_LETTER * max(map(len, lines)), _HALF_LINE * len(lines)
