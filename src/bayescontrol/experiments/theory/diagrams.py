"""A policy makes a Markov chain of a world, and the chain selects a subset of the states.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m*, s, a)
    μ P = μ                     the share of the time that is spent in each state, in the long run
    subset = {s: μ(s) > 0}      where the policy stays for ever

The situations of a class are the states of the diagram.

Classes as graphs: a node for each situation, an arrow for each way to go on.

labels     action / observation; the action alone where any observation leads there
widths     P(s' | m, s), or P(o | m, s, a) where no policy has spoken yet
shades     a number for each situation, such as the share of the time that is spent there

A mode as a graph: what its hypothesis expects, and where its policy goes and stays.

    shade of a state    P(1 | m, x)
    arrows              P(s' | m, s) of its policy; grey, what the policy leaves alone
    outlines            the regions of the state space, and the subset that the policy selects

For classes of `problems.diagrams`, where the label of a situation begins with its region.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.worlds import World
from bayescontrol.lab.chart import Area, Colour, Dash, Edge, Graph, Node, Panel
from bayescontrol.mdp import MDP, stationary_distribution
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.record import Record


def acting(modes: TabularModes, policy: FloatArray, start: int | None = None) -> TabularModes:
    """The same hypotheses, all with one policy[x, a]: an agent that acts by it and learns.

    A policy[m, x, a] is one for each mode.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> modes = core_diagram()
    >>> acting(modes, modes.policy[1]).agent().action_probabilities()
    {0: 0.0, 1: 1.0}
    """
    return TabularModes(
        np.broadcast_to(policy, modes.policy.shape),
        modes.hypothesis,
        modes.successor,
        start=modes.start if start is None else start,
        names=modes.names,
        prior=modes.prior,
        labels=modes.labels,
    )


def chain(modes: TabularModes, policy: FloatArray, true: int) -> FloatArray:
    """P(s' | s) when policy[x, a] acts in the world of mode `true`, as an array [s, s'].

    >>> from bayescontrol.problems.diagrams import policy_diagram
    >>> modes = policy_diagram()
    >>> chain(modes, modes.policy[0], 0)[0].tolist()
    [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return np.asarray(np.einsum("xa,xay->xy", policy, World(modes, true).transitions))


def shares(P: FloatArray) -> FloatArray:
    """μ with μ P = μ, for a chain that ends up in one class of states.

    >>> shares(np.array([[0.0, 1.0], [0.5, 0.5]])).round(6)
    array([0.333333, 0.666667])
    """
    still = np.zeros((len(P), 1))
    (only,) = stationary_distribution(MDP(P[:, None], still), np.zeros(len(P), np.int64))
    return only.probability


def path(modes: TabularModes, record: Record, start: int | None = None) -> IntArray:
    """The situations of a record: before the first step, and after each.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> path(core_diagram(), Record([0, 0, 0], [1, 1, 0]))
    array([0, 1, 2, 4])
    """
    successor, x = modes.successor.tolist(), modes.start if start is None else start
    seen = [x]
    for a, o in zip(record.actions.tolist(), record.observations.tolist(), strict=True):
        x = successor[x][a][o]
        seen.append(x)
    return np.array(seen, np.int64)


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

    >>> from bayescontrol.lab.chart import Graph
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


#: Outlines of regions lie outside those of policies.
_REGION: Final = 1.0
_SUBSET: Final = 0.45


def mode_panel(
    modes: TabularModes,
    m: int,
    places: Places,
    *,
    title: str,
    policy: str,
    look: tuple[Colour, Dash],
    note: str,
    bends: Mapping[tuple[str, str], float] | None = None,
) -> Panel:
    """The panel of mode m; `policy` is what its policy is called, `bends` are ways around.

    >>> from bayescontrol.problems.diagrams import consistency_diagram
    >>> places = {"A0": (0, 0), "A1": (-1, 1), "A2": (1, 1), "B0": (3, 0)}
    >>> panel = mode_panel(consistency_diagram(), 0, places, title="H1", policy="P1",
    ...                    look=("blue", "solid"), note="")
    >>> [area.label for area in panel.graphs[0].areas], panel.graphs[0].areas[2].nodes
    (['region A', 'region B', 'where P1 stays'], ('A0', 'A1'))
    """
    colour, dash = look
    names, own = modes.labels.situations, modes.policy[m]
    expects = modes.hypothesis[m, :, 0, 1]
    mu = shares(chain(modes, own, m))
    inside = tuple(name for name, share in zip(names, mu, strict=True) if share > 0)
    taken = [
        _bent(edge, bends, faint=edge.source not in inside)
        for edge in chain_edges(modes, own, m, colour=colour)
    ]
    ways = {(edge.source, edge.target) for edge in taken}
    left: dict[tuple[str, str], Edge] = {}
    for edge in transitions(modes, m, [("ink", "dot")] * len(modes.actions)):
        way = edge.source, edge.target
        if way not in ways:
            left.setdefault(way, _bent(edge, bends, faint=True))
    regions = sorted({name[0] for name in names})
    graph = Graph(
        f"what {modes.name(m)} expects in each state, and where {policy} goes",
        nodes(places, 0.85 * expects, [f"expects 1 with P = {p:.2g}" for p in expects], "purple"),
        [*left.values(), *taken],
        [
            *(
                Area(
                    f"region {region}",
                    tuple(name for name in names if name[0] == region),
                    "ink",
                    "dot",
                    _REGION,
                )
                for region in regions
            ),
            Area(f"where {policy} stays", inside, colour, dash, _SUBSET, named=False),
        ],
    )
    return Panel(title, "states", "transitions", [], graphs=[graph], notes=[note] if note else [])


def _bent(edge: Edge, bends: Mapping[tuple[str, str], float] | None, *, faint: bool) -> Edge:
    bend = (bends or {}).get((edge.source, edge.target))
    dash: Dash = "dot" if faint else "solid"
    return Edge(edge.source, edge.target, edge.probability, "", edge.colour, dash, bend,
                faint=faint)  # fmt: skip
