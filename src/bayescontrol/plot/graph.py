"""A directed graph: states, transitions between them, and outlines around sets of states.

    node       a disc with its name; `shade` is the share of its colour
    edge       an arrow of width 0.6 + 2.4 p points for probability p; a loop if both ends are one
               node. From node p to node q it follows the curve
               c(s) = (1-s)² p + 2 s (1-s) k + s² q,    k = (p + q)/2 + bend · |q - p| · n,
               where n is the unit vector to the left of q - p: arrows p → q and q → p lie apart
    area       the convex hull of discs around some nodes, with a name

One unit is about 1.5 cm in print: place nodes one to two units apart. A curve is given by its
control points; the renderer cuts it off at the borders of the discs and adds the arrow head.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, Literal

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.plot import chart
from bayescontrol.plot.chart import Colour, Dash

#: Rounding error of a probability, and of a coordinate.
_ROUNDING, _COORDINATE_ROUNDING = 1e-9, 1e-6
#: Number of corners of a disc, and number of points of a curve that determine its extent.
_DISC_CORNERS: Final = 48
_CURVE_POINTS: Final = 33
#: Shape of a loop: the angle between its direction and the points where it leaves and enters the
#: disc; the angle and the distance (in radii) of its control points.
_LOOP_START: Final = 0.42
_LOOP_OPENING: Final = 0.66
_LOOP_REACH: Final = 4.6
#: Bend of arrows that share two nodes, and of an arrow that avoids a third node.
_BEND_APART: Final = 0.17
_BEND_AROUND: Final = 0.3
#: A node blocks the straight line between two others if its centre is nearer than this many radii.
_BLOCKING_DISTANCE: Final = 1.2
#: Half the height of a line of text and half the width of a letter.
_HALF_LINE: Final = 0.13
_HALF_LETTER: Final = 0.052
#: Horizontal and vertical gap between an arrow and its label, and between an outline and its label.
_LABEL_GAP: Final = (0.05, 0.03)
_AREA_LABEL_GAP: Final = 0.06


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
        is_valid = 0 < self.probability <= 1 + _ROUNDING
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


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, edges between them and areas around them; `label` describes the graph.

    An area must not enclose a node that does not belong to it.

    >>> nodes = [Node("A", 0, 0), Node("B", 2, 0)]
    >>> graph = Graph("a coin", nodes, [Edge("A", "B"), Edge("B", "A"), Edge("B", "B")])
    >>> there, back, stays = graph.curves
    >>> there.tolist(), back.tolist(), stays.shape
    ([[0.0, 0.0], [1.0, 0.34], [2.0, 0.0]], [[2.0, 0.0], [1.0, -0.34], [0.0, 0.0]], (4, 2))
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
    def curves(self) -> list[FloatArray]:
        """The control points of the edges: three between the centres of two nodes, four of a loop.

        A loop begins and ends on the border of its disc.
        """
        curves = []
        for edge, bend in zip(self.edges, self.bends, strict=True):
            p, q = self._centres[edge.source], self._centres[edge.target]
            if edge.source == edge.target:
                shape = (
                    (_LOOP_START, 1.0), (_LOOP_OPENING, _LOOP_REACH),
                    (-_LOOP_OPENING, _LOOP_REACH), (-_LOOP_START, 1.0),
                )  # fmt: skip
                direction = self._free_angle(edge.source)
                points = [p + self.radius * r * _vector(direction + angle) for angle, r in shape]
            else:
                points = [p, (p + q) / 2 + bend * _left_of(q - p), q]
            curves.append(np.array(points))
        return curves

    @cached_property
    def bends(self) -> list[float]:
        """The bend of each edge; chosen so that arrows do not cover each other or a node."""
        parallel: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, edge in enumerate(self.edges):
            parallel[edge.source, edge.target].append(i)
        bends = [0.0] * len(self.edges)
        for (source, target), group in parallel.items():
            # Arrows k = 0, 1, … bend by 1, 3, 5, … units to the left if others lead back; otherwise
            # they lie on both sides of the straight line: 0 for one, -1 and 1 for two, -2, 0, 2 …
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
        is_near = distances < _BLOCKING_DISTANCE * self.radius
        return bool((is_near & (shares > 0) & (shares < 1)).any())

    def _free_angle(self, name: str) -> float:
        """Return the middle of the widest gap between a node's edges, an angle in radians.

        It is the direction of a loop: upwards if the node has no other edges.
        """
        pairs = [{edge.source, edge.target} for edge in self.edges]
        neighbours = set[str]().union(*(pair for pair in pairs if name in pair)) - {name}
        if not neighbours:
            return np.pi / 2
        dx, dy = np.transpose([self._centres[n] - self._centres[name] for n in neighbours])
        angles = np.sort(np.arctan2(dy, dx) % (2 * np.pi))
        gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
        widest = int(np.argmax(np.round(gaps, 6)))  # the first of equal gaps
        return float(angles[widest] + gaps[widest] / 2)

    @cached_property
    def edge_words(self) -> list[tuple[str, float, float]]:
        """The labels of the edges and their positions: beside the arrow, on its outer side."""
        words = []
        middle = np.mean([*self._centres.values()], axis=0)
        for edge, bend, curve in zip(self.edges, self.bends, self.curves, strict=True):
            if edge.label:
                at = _point_on(curve, edge.at)
                if edge.source == edge.target:
                    outwards = curve.mean(axis=0) - self._centres[edge.source]
                else:
                    outwards = _left_of(curve[-1] - curve[0])
                    # A straight arrow has more room away from the middle of the graph.
                    if bend < 0 or (bend == 0 and outwards @ (at - middle) < 0):
                        outwards = -outwards
                outwards = outwards / np.hypot(*outwards)
                distance = np.abs(outwards) @ np.add(_half_size(edge.label), _LABEL_GAP)
                words.append((edge.label, *(at + distance * outwards).tolist()))
        return words

    @cached_property
    def area_words(self) -> list[tuple[str, float, float, Colour]]:
        """The labels of the areas, their positions above or below the outline, and colours."""
        words = []
        for area, hull in zip(self.areas, self.outlines, strict=True):
            if area.named:
                sign = 1 if area.side == "above" else -1
                border_y = sign * (sign * hull[:, 1]).max()
                # The outermost corners; the label is centred between the first and the last.
                xs = hull[np.abs(hull[:, 1] - border_y) < _COORDINATE_ROUNDING, 0]
                y = border_y + sign * (_half_size(area.label)[1] + _AREA_LABEL_GAP)
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
        """Return the ends of everything that is drawn, along axis 0 (x) or 1 (y)."""
        shares = np.linspace(0.0, 1.0, _CURVE_POINTS)
        lines = [np.array([_point_on(curve, s) for s in shares]) for curve in self.curves]
        coordinates = [shape[:, axis] for shape in (*self.discs, *self.outlines, *lines)]
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


def _left_of(d: FloatArray) -> FloatArray:
    """Return the vector d, turned by 90 degrees to the left."""
    return np.array([-d[1], d[0]])


def _vector(angle: float) -> FloatArray:
    """Return the unit vector at an angle in radians."""
    return np.array([np.cos(angle), np.sin(angle)])


def _point_on(curve: FloatArray, share: float) -> FloatArray:
    """Return the point of a Bézier curve at 0 <= share <= 1, by de Casteljau's algorithm."""
    points = curve
    while len(points) > 1:
        points = (1 - share) * points[:-1] + share * points[1:]
    return np.asarray(points[0])


def _half_size(text: str) -> tuple[float, float]:
    """Return half the width and half the height of a text."""
    lines = text.split("\n")
    return _HALF_LETTER * max(map(len, lines)), _HALF_LINE * len(lines)
