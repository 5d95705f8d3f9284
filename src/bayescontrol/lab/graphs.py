"""A directed graph: states, what leads from one to another, and enclosed sets of states.

    node     a disc with its name; `shade` is the share of its colour
    edge     an arrow, the wider the more probable; a loop where it leads back
    area     an outline around some of the nodes, with a name: a subset of the state space

A unit is about a centimetre and a half in print and 60 pixels on a phone: nodes stand one to
two units apart. The shapes are in `graph_shapes`; renderers draw them as they are.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.graph_parts import Area, Edge, Node
from bayescontrol.lab.graph_shapes import Arrow, arrow, contains, disc, loop, outline
from bayescontrol.lab.marks import Colour, InvalidChart, require_text

#: How far two arrows between the same nodes bend away from each other, and one around a node.
_APART: Final = 0.17
_AROUND: Final = 0.3
#: The length of an arrow's head; its width for an edge of probability 0, and what 1 adds.
_HEAD: Final = 0.17
_WIDTH: Final = (0.11, 0.07)
#: The size of a faint arrow's head.
_FAINT: Final = 0.75
#: Half the height of a line of text and half the width of a letter.
_LINE: Final = 0.13
_LETTER: Final = 0.052


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, edges between them, and areas around them; `label` says what is to be seen.

    An area may not enclose a node that is not in it: a reader would believe the outline.

    >>> nodes = [Node("A", 0, 0), Node("B", 2, 0)]
    >>> graph = Graph("a coin", nodes, [Edge("A", "B"), Edge("B", "A"), Edge("B", "B")])
    >>> there, back, stays = graph.arrows
    >>> bool(there.point(0.5)[1] > 0 > back.point(0.5)[1])
    True
    >>> Graph("a coin", nodes, [Edge("A", "C")])
    Traceback (most recent call last):
    bayescontrol.lab.marks.InvalidChart: graph 'a coin': edge 'A' → 'C': no node is called 'C'
    """

    in_legend: ClassVar = False

    label: str
    nodes: Sequence[Node]
    edges: Sequence[Edge] = ()
    areas: Sequence[Area] = ()
    radius: float = 0.27

    def __post_init__(self) -> None:
        require_text(self.label, "a graph", "label")
        place = f"graph {self.label!r}"
        if not self.nodes or not 0 < self.radius < np.inf:
            raise InvalidChart(f"{place}: {len(self.nodes)} nodes of radius {self.radius}")
        names = [node.name for node in self.nodes]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InvalidChart(f"{place}: two nodes are called {min(twice)!r}")
        named = [(edge.place, name) for edge in self.edges for name in (edge.source, edge.target)]
        named += [(f"area {area.label!r}", name) for area in self.areas for name in area.nodes]
        for which, name in named:
            if name not in names:
                raise InvalidChart(f"{place}: {which}: no node is called {name!r}")
        for i, node in enumerate(self.nodes):
            for other in self.nodes[:i]:
                if np.hypot(node.x - other.x, node.y - other.y) < 2 * self.radius:
                    raise InvalidChart(f"{place}: {other.name!r} and {node.name!r} overlap")
        for area, hull in zip(self.areas, self.outlines, strict=True):
            for node in self.nodes:
                if node.name not in area.nodes and contains(hull, (node.x, node.y)):
                    raise InvalidChart(
                        f"{place}: the outline of area {area.label!r} encloses {node.name!r}, "
                        "which is not in it; move the node, or make two areas"
                    )

    @cached_property
    def _at(self) -> dict[str, FloatArray]:
        return {node.name: np.array([node.x, node.y], np.float64) for node in self.nodes}

    @cached_property
    def discs(self) -> list[FloatArray]:
        """The circles of the nodes, as corners (x_i, y_i)."""
        return [disc(self._at[node.name], self.radius) for node in self.nodes]

    @cached_property
    def outlines(self) -> list[FloatArray]:
        """The corners of the areas."""
        return [
            outline([self._at[name] for name in area.nodes], self.radius * (1 + area.room))
            for area in self.areas
        ]

    @cached_property
    def arrows(self) -> list[Arrow]:
        """The shapes of the edges."""
        drawn = []
        for edge, bend in zip(self.edges, self._bends, strict=True):
            size = _FAINT if edge.faint else 1.0
            head = size * _HEAD, size * (_WIDTH[0] + _WIDTH[1] * edge.probability)
            p, q = self._at[edge.source], self._at[edge.target]
            if edge.source == edge.target:
                toward = self._free(edge.source) if edge.toward is None else edge.toward
                drawn.append(loop(p, toward, self.radius, *head))
            else:
                drawn.append(arrow(p, q, bend, self.radius, *head))
        return drawn

    @cached_property
    def _bends(self) -> list[float]:
        same: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, edge in enumerate(self.edges):
            same[edge.source, edge.target].append(i)
        bends = [0.0] * len(self.edges)
        for (source, target), group in same.items():
            back = (target, source) in same
            for k, i in enumerate(group):
                if back:
                    bends[i] = _APART * (1 + 2 * k)
                else:
                    bends[i] = 2 * _APART * (k - (len(group) - 1) / 2)
                if not bends[i] and self._in_the_way(source, target):
                    bends[i] = _AROUND
        given = (edge.bend for edge in self.edges)
        return [found if bend is None else bend for found, bend in zip(bends, given, strict=True)]

    def _in_the_way(self, source: str, target: str) -> bool:
        p, q = self._at[source], self._at[target]
        d = q - p
        for name, at in self._at.items():
            share = float((at - p) @ d / (d @ d)) if source != target else 0.0
            near = np.hypot(*(p + share * d - at)) < 1.2 * self.radius
            if name not in (source, target) and 0 < share < 1 and near:
                return True
        return False

    def _free(self, name: str) -> float:
        """The middle of the widest gap between the lines at a node, in degrees."""
        angles = sorted(
            float(np.degrees(np.arctan2(*(self._at[other] - self._at[name])[::-1])) % 360)
            for other in {n for e in self.edges for n in (e.source, e.target)
                          if name in (e.source, e.target) and n != name}
        )  # fmt: skip
        if not angles:
            return 90.0
        gaps = np.diff([*angles, angles[0] + 360])
        widest = int(np.argmax(np.round(gaps, 6)))
        return float(angles[widest] + gaps[widest] / 2)

    @cached_property
    def edge_words(self) -> list[tuple[str, float, float]]:
        """The labels of the edges, and where they stand: beside the arrow, on its outer side."""
        words = []
        middle = np.mean([*self._at.values()], axis=0)
        for edge, bend, shape in zip(self.edges, self._bends, self.arrows, strict=True):
            if edge.label:
                room = np.array([_LETTER * _longest(edge.label) + 0.05, _lines(edge.label) + 0.03])
                at, aside = shape.point(edge.at), shape.aside
                if not bend and edge.source != edge.target and aside @ (at - middle) < 0:
                    aside = -aside  # away from the middle of the graph there is more room
                at = at + aside * (np.abs(aside) @ room)
                words.append((edge.label, float(at[0]), float(at[1])))
        return words

    @cached_property
    def area_words(self) -> list[tuple[str, float, float, Colour]]:
        """The labels of the areas, where they stand, over or under the outline, and colours."""
        words = []
        for area, hull in zip(self.areas, self.outlines, strict=True):
            if not area.named:
                continue
            above = area.side == "above"
            edge = hull[:, 1].max() if above else hull[:, 1].min()
            top = hull[np.abs(hull[:, 1] - edge) < 1e-6, 0]
            y = edge + (1 if above else -1) * (_lines(area.label) + 0.06)
            words.append((area.label, float((top.min() + top.max()) / 2), float(y), area.colour))
        return words

    @property
    def x(self) -> FloatArray:
        """Where it ends on the left and on the right, its words included."""
        return self._span(0)

    @property
    def y(self) -> FloatArray:
        """Where it ends below and above, its words included."""
        return self._span(1)

    def _span(self, axis: int) -> FloatArray:
        shapes = [*self.discs, *self.outlines, *(shape.line for shape in self.arrows)]
        ends = [shape[:, axis] for shape in shapes]
        for text, *at in (*self.edge_words, *(word[:3] for word in self.area_words)):
            room = _LETTER * _longest(text) if axis == 0 else _lines(text)
            ends.append(np.array([at[axis] - room, at[axis] + room]))
        values = np.concatenate(ends)
        return np.array([values.min(), values.max()])


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")))


def _lines(text: str) -> float:
    return _LINE * (1 + text.count("\n"))


def ring(names: Iterable[str], radius: float = 1.6) -> dict[str, tuple[float, float]]:
    """Names to positions on a circle, clockwise from the top: a layout when there is no better.

    >>> ring("ABCD")["A"]
    (0.0, 1.6)
    """
    known = list(names)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(known)) / max(len(known), 1)
    places = zip(np.cos(angles), np.sin(angles), strict=True)
    at = [(round(radius * float(x), 9), round(radius * float(y), 9)) for x, y in places]
    return dict(zip(known, at, strict=True))
