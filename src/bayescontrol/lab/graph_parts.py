"""What a graph is made of: nodes, edges between them, and areas around some of them.

    width of an edge    0.6 + 2.4 p points, p its probability
    room of an area     the distance of its outline from its nodes, in radii

Nodes are known by their names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from bayescontrol.lab.marks import Colour, Dash, InvalidChart, require_choice, require_text

Side: TypeAlias = Literal["above", "below"]


@dataclass(frozen=True)
class Node:
    """A state with its middle at (x, y); `said` is what the pointer reads of it.

    >>> Node("A", 0.0, 1.0).shade
    0.0
    """

    name: str
    x: float
    y: float
    shade: float = 0.0
    colour: Colour = "blue"
    said: str = ""

    def __post_init__(self) -> None:
        place = f"node {self.name!r}"
        require_text(self.name, "a node", "name")
        require_choice(self.colour, Colour, place, "colour")
        if not (np.isfinite(self.x) and np.isfinite(self.y)):
            raise InvalidChart(f"{place}: it stands at ({self.x}, {self.y})")
        if not 0 <= self.shade <= 1:
            raise InvalidChart(f"{place}: shade is {self.shade}, it must be between 0 and 1")


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes by name; its width grows with its probability.

    `bend` moves its middle to the left, in shares of its length; None keeps it apart from
    others. A loop leaves `toward` an angle in degrees, 90 is above; None finds room for it. The
    label stands beside the point `at` of its way, 0 at the source and 1 at the target. What is
    `faint` is there, and is not what the graph is about: grey, and half as wide.

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
    toward: float | None = None
    at: float = 0.5
    faint: bool = False

    def __post_init__(self) -> None:
        require_choice(self.colour, Colour, self.place, "colour")
        require_choice(self.dash, Dash, self.place, "dash")
        if not 0 < self.probability <= 1 + 1e-9:
            raise InvalidChart(
                f"{self.place}: probability is {self.probability}, it must be above 0 and at "
                "most 1; leave an impossible edge out"
            )
        if not 0 <= self.at <= 1:
            raise InvalidChart(f"{self.place}: at is {self.at}, it must be between 0 and 1")
        for name in ("bend", "toward"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value):
                raise InvalidChart(f"{self.place}: {name} is {value}, it must be finite")

    @property
    def place(self) -> str:
        """What it is called in an error."""
        return f"edge {self.source!r} → {self.target!r}"

    @property
    def width(self) -> float:
        """In points: 0.6 + 2.4 p, or half of it."""
        return round((0.3 if self.faint else 0.6) * (1 + 4 * self.probability), 6)


@dataclass(frozen=True)
class Area:
    """An outline around some of the nodes; `room` is its distance from them, in radii.

    Its label stands over or under it, unless it is not `named`: then a title must say it.

    >>> Area("region A", ("a0", "a1")).side
    'above'
    """

    label: str
    nodes: Sequence[str]
    colour: Colour = "blue"
    dash: Dash = "solid"
    room: float = 0.6
    side: Side = "above"
    named: bool = True

    def __post_init__(self) -> None:
        place = f"area {self.label!r}"
        require_text(self.label, "an area", "label")
        require_choice(self.colour, Colour, place, "colour")
        require_choice(self.dash, Dash, place, "dash")
        require_choice(self.side, Side, place, "side")
        if not self.nodes:
            raise InvalidChart(f"{place}: it has no nodes; leave it out")
        if not 0 < self.room < np.inf:
            raise InvalidChart(f"{place}: room is {self.room}, it must be positive")
