"""Classes as graphs: a node for each situation, an arrow for each way to go on.

labels     action / observation; the action alone where any observation leads there
widths     P(s' | m, s), or P(o | m, s, a) where no policy has spoken yet
shades     a number for each situation, such as the share of the time that is spent there
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.chart import Panel
from bayescontrol.lab.graph_parts import Edge, Node
from bayescontrol.lab.marks import Colour, Dash
from bayescontrol.problems.tabular import TabularModes

#: Where each situation stands, by its label.
Places: TypeAlias = Mapping[str, tuple[float, float]]


def nodes(
    places: Places, shades: Sequence[float] | FloatArray, said: Sequence[str], colour: Colour
) -> list[Node]:
    """A node for each situation in the order of its places, shaded.

    >>> nodes({"A0": (0, 0)}, [0.5], ["half of the time"], "blue")[0].shade
    0.5
    """
    rows = zip(places.items(), shades, said, strict=True)
    return [
        Node(name, x, y, float(shade), colour, f"{name}: {words}")
        for (name, (x, y)), shade, words in rows
    ]


def transitions(modes: TabularModes, true: int, looks: Sequence[tuple[Colour, Dash]]) -> list[Edge]:
    """All transitions of a world, labelled a/o; each action has its own colour and dash.

    >>> from bayescontrol.problems.diagrams import policy_diagram
    >>> edges = transitions(policy_diagram(), 0, [("blue", "solid"), ("vermillion", "dash")])
    >>> edges[0].source, edges[0].label, edges[0].target, edges[0].probability
    ('s0', 'a/0', 's1', 0.5)
    """
    labels, law = modes.labels, modes.hypothesis[true]
    found = []
    for x, name in enumerate(labels.situations):
        for a, (colour, dash) in enumerate(looks):
            for y, p, told in _ways(modes, law, x, a):
                edge = Edge(name, labels.situations[y], p, told, colour=colour, dash=dash)
                found.append(edge)
    return found


def chain_edges(modes: TabularModes, policy: FloatArray, true: int, **look: Any) -> list[Edge]:
    """P(s' | m, s) of one policy in the world of mode `true`, labelled by what leads there.

    >>> from bayescontrol.problems.diagrams import policy_diagram
    >>> modes = policy_diagram()
    >>> edge = chain_edges(modes, modes.policy[0], 0)[0]
    >>> edge.source, edge.label, edge.target, edge.probability
    ('s0', 'a/0', 's1', 0.5)
    """
    labels, law = modes.labels, modes.hypothesis[true]
    found = []
    for x, name in enumerate(labels.situations):
        ways: dict[int, tuple[float, list[str]]] = {}
        for a in np.flatnonzero(policy[x]).tolist():
            for y, p, told in _ways(modes, law, x, a):
                so_far, words = ways.get(y, (0.0, []))
                ways[y] = so_far + float(policy[x, a]) * p, [*words, told]
        found += [
            Edge(name, labels.situations[y], min(p, 1.0), ", ".join(words), **look)
            for y, (p, words) in ways.items()
        ]
    return found


def framed_alike(panels: Sequence[Panel]) -> list[Panel]:
    """The same panels, with one frame: a state stands at the same place in all of them.

    >>> from bayescontrol.lab.graphs import Graph
    >>> graphs = [Graph("one", [Node("A", float(x), 0)], radius=0.5) for x in (0, 3)]
    >>> panels = [Panel("", "states", "transitions", [], graphs=[graph]) for graph in graphs]
    >>> [panel.xlim for panel in framed_alike(panels)]
    [(-0.5, 3.5), (-0.5, 3.5)]
    """
    ends = {
        axis: (min(p.extent(axis)[0] for p in panels), max(p.extent(axis)[1] for p in panels))
        for axis in ("x", "y")
    }
    return [replace(panel, xlim=ends["x"], ylim=ends["y"]) for panel in panels]


def _ways(modes: TabularModes, law: FloatArray, x: int, a: int) -> list[tuple[int, float, str]]:
    """Where action a leads from x, how likely, and after what observations."""
    action, names = modes.labels.actions[a], modes.labels.observations
    possible = np.flatnonzero(law[x, a]).tolist()
    ways: dict[int, list[int]] = {}
    for o in possible:
        ways.setdefault(int(modes.successor[x, a, o]), []).append(o)
    return [
        (
            y,
            min(float(law[x, a, seen].sum()), 1.0),
            action
            if len(seen) == len(possible)
            else f"{action}/{'|'.join(names[o] for o in seen)}",
        )
        for y, seen in ways.items()
    ]
