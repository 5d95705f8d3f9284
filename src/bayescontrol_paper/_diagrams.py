"""Policy diagrams: the Markov chain that a policy makes of a world, and how it is drawn.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m*, s, a)
    μ P = μ                     share of the time spent in each state in the long run
    subset = {s: μ(s) > 0}      the states that the policy visits for ever

The states are the situations of a class of modes. In a graph every state is a node and every
transition an arrow. Arrows are labelled action/observation, or with the action only if every
observation leads to the same state. The width of an arrow is its probability.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol import Record, TabularModes, kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.convergence.core import World
from bayescontrol.lab import Columns
from bayescontrol.mdp import MDP, stationary_distribution
from bayescontrol.plot.chart import Colour, Dash, Panel
from bayescontrol.plot.graph import Area, Edge, Graph, Node
from bayescontrol_paper._figures import Figure

#: The position of each state, by its label.
Places: TypeAlias = Mapping[str, tuple[float, float]]

#: Distance of an outline from its nodes; regions lie outside the subsets of policies.
_REGION_DISTANCE: Final = 1.0
_SUBSET_DISTANCE: Final = 0.45
#: The shade of a state where a 1 is certain; the label must stay readable.
_DARKEST: Final = 0.85


def with_policy(
    modes: TabularModes, policy: FloatArray, start: int | None = None, prior: Any = None
) -> TabularModes:
    """Replace the policies of all modes by policy[x, a], or by policy[m, x, a].

    An agent over the result acts by this policy and learns by all hypotheses. The start and the
    prior are those of `modes` unless given.
    """
    return TabularModes(
        np.broadcast_to(policy, modes.policy.shape), modes.hypothesis, modes.successor,
        start=modes.start if start is None else start, names=modes.names, labels=modes.labels,
        prior=modes.prior if prior is None else prior,
    )  # fmt: skip


def markov_chain(modes: TabularModes, policy: FloatArray, true: int) -> FloatArray:
    """Return P(s' | s) as an array [s, s'] when policy[x, a] acts in the world of mode `true`."""
    return np.asarray(np.einsum("xa,xay->xy", policy, World(modes, true).transitions))


def stationary_shares(P: FloatArray) -> FloatArray:
    """Solve μ P = μ for a chain with one recurrent class.

    >>> stationary_shares(np.array([[0.0, 1.0], [0.5, 0.5]])).round(6)
    array([0.333333, 0.666667])
    """
    chain, policy = MDP(P[:, None], np.zeros((len(P), 1))), np.zeros(len(P), np.int64)
    (only,) = stationary_distribution(chain, policy)
    return only.probability


def state_path(modes: TabularModes, record: Record) -> IntArray:
    """Return the states of a record: the first one, and the one after each step."""
    a, o = (np.asarray(column, np.int64) for column in (record.actions, record.observations))
    x = np.empty(a.size, np.int64)  # the states before each step, which the kernel fills in
    kernels.divergence.follow(modes.successor, modes.start, a, o, x)
    return np.append(x, modes.successor[x[-1], a[-1], o[-1]])


def interaction(settings: object, columns: Columns) -> Figure:
    """The interaction system

    The agent P chooses an action aₜ, the environment Q answers with an observation oₜ, and so on
    without end. Each may depend on all that came before it in the stream, and on nothing else of
    the other system. Together P and Q are a probability distribution over streams.
    """
    # The stream a₁ o₁ a₂ o₂ …, in a row between both systems.
    row = [Node("ao"[i % 2] + "₁₂₃₄"[i // 2], 1.3 * (i - 3.5), 0.0) for i in range(8)]
    agent = Node("P", 0.0, 1.7, 0.35, "blue", "the agent, which chooses the actions")
    world = Node("Q", 0.0, -1.7, 0.35, "orange", "the environment, which answers")
    edges = [Edge(node.name, after.name, faint=True, bend=0.0) for node, after in pairwise(row)]
    edges += [Edge("P", node.name, colour="blue", bend=0.0) for node in row[::2]]
    edges += [Edge("Q", node.name, colour="orange", bend=0.0) for node in row[1::2]]
    areas = [Area("agent", ["P"], "blue"), Area("environment", ["Q"], "orange", side="below")]
    graph = Graph("an agent and an environment make a stream", [agent, *row, world], edges, areas)
    panel = Panel("", "time", "systems", [], graphs=[graph])
    return Figure([panel], paper={1: ""})


def nodes(
    places: Places, shades: Sequence[float] | FloatArray, notes: Sequence[str], colour: Colour
) -> list[Node]:
    """Make a shaded node for each state; a page shows its note as a tooltip.

    `shades`, from 0 to 1, and `notes` are in the order of `places`.
    """
    return [
        Node(name, *place, float(shade), colour, f"{name}: {note}")
        for (name, place), shade, note in zip(places.items(), shades, notes, strict=True)
    ]


def transitions(modes: TabularModes, true: int, looks: Sequence[tuple[Colour, Dash]]) -> list[Edge]:
    """Make an edge for every transition in the world of mode `true`.

    looks[a] are the colour and the dash of action a. Two actions that lead to the same state have
    two edges.
    """
    names, probabilities = modes.labels.situations, modes.hypothesis[true]
    return [
        Edge(name, names[y], p, label, colour=colour, dash=dash)
        for x, name in enumerate(names)
        for a, (colour, dash) in enumerate(looks)
        for y, p, label in _successors(modes, probabilities, x, a)
    ]


def chain_edges(modes: TabularModes, policy: FloatArray, true: int, **style: Any) -> list[Edge]:
    """Make the edges P(s' | m, s) of one policy in the world of mode `true`.

    All actions that lead from one state to another share an edge; its label lists them.
    """
    names, probabilities = modes.labels.situations, modes.hypothesis[true]
    edges = []
    for x, name in enumerate(names):
        by_state: dict[int, tuple[float, list[str]]] = {}
        for a in np.flatnonzero(policy[x]).tolist():
            for y, p, label in _successors(modes, probabilities, x, a):
                total, labels = by_state.get(y, (0.0, []))
                by_state[y] = total + float(policy[x, a]) * p, [*labels, label]
        for y, (total, labels) in by_state.items():
            # Rounding may make a sum of probabilities slightly larger than 1.
            edges.append(Edge(name, names[y], min(total, 1.0), ", ".join(labels), **style))
    return edges


def same_frame(panels: Sequence[Panel]) -> list[Panel]:
    """Give all panels the same limits, so that a state is at the same place in each."""
    limits = {
        axis: (min(p.extent(axis)[0] for p in panels), max(p.extent(axis)[1] for p in panels))
        for axis in ("x", "y")
    }
    return [replace(panel, xlim=limits["x"], ylim=limits["y"]) for panel in panels]


def _successors(
    modes: TabularModes, probabilities: FloatArray, x: int, a: int
) -> list[tuple[int, float, str]]:
    """List (state, probability, label) of the states that action a leads to from x.

    `probabilities` is P(o | x, a) as an array [x, a, o]. The label is action/observation, with all
    observations that lead to the state, or the action if every possible observation does.
    """
    action, names = modes.labels.actions[a], modes.labels.observations
    possible = np.flatnonzero(probabilities[x, a]).tolist()
    by_state: dict[int, list[int]] = {}
    for o in possible:
        by_state.setdefault(int(modes.successor[x, a, o]), []).append(o)
    successors = []
    for y, observed in by_state.items():
        is_certain = len(observed) == len(possible)
        label = action if is_certain else f"{action}/{'|'.join(names[o] for o in observed)}"
        successors.append((y, min(float(probabilities[x, a, observed].sum()), 1.0), label))
    return successors


def mode_panel(
    modes: TabularModes, m: int, places: Places, colour: Colour, dash: Dash, note: str
) -> Panel:
    """Draw mode m of a class whose state labels begin with the name of their region.

    The shade of a state is P(1 | m, x), which must not depend on the action. Outlines are the
    regions, and the subset of states in which the policy stays. There are three kinds of arrows:

        coloured, solid    transitions of the policy within its subset
        coloured, dotted   transitions of the policy on its way to the subset; faint
        ink, dotted        transitions that the policy never takes; faint
    """
    policy, names = f"P{m + 1}", modes.labels.situations
    p_one = modes.hypothesis[m, :, 0, 1]  # of action 0, since it is the same for all actions
    mu = stationary_shares(markov_chain(modes, modes.policy[m], m))
    subset = tuple(name for name, share in zip(names, mu, strict=True) if share > 0)
    regions: dict[str, list[str]] = {}
    for name in sorted(names):
        regions.setdefault(name[0], []).append(name)
    outlines = [
        Area(f"region {region}", tuple(inside), "ink", "dot", _REGION_DISTANCE)
        for region, inside in regions.items()
    ]
    outlines.append(
        Area(f"where {policy} stays", subset, colour, dash, _SUBSET_DISTANCE, named=False)
    )
    graph = Graph(
        f"what {modes.name(m)} expects in each state, and where {policy} goes",
        nodes(places, _DARKEST * p_one, [f"expects 1 with P = {p:.2g}" for p in p_one], "purple"),
        _mode_edges(modes, m, subset, colour),
        outlines,
    )
    title = f"H{m + 1} and its policy {policy}"
    return Panel(title, "states", "transitions", [], graphs=[graph], notes=[note])


def _mode_edges(modes: TabularModes, m: int, subset: Collection[str], colour: Colour) -> list[Edge]:
    """Make the three kinds of arrows of `mode_panel`, one for each pair of states.

    The arrows of the policy come last, so that they are drawn above the others.
    """
    taken = {
        (edge.source, edge.target): _unlabelled(edge, faint=edge.source not in subset)
        for edge in chain_edges(modes, modes.policy[m], m, colour=colour)
    }
    never_taken: dict[tuple[str, str], Edge] = {}
    for edge in transitions(modes, m, [("ink", "dot")] * len(modes.actions)):
        if (edge.source, edge.target) not in taken:
            never_taken.setdefault((edge.source, edge.target), _unlabelled(edge, faint=True))
    return [*never_taken.values(), *taken.values()]


def _unlabelled(edge: Edge, *, faint: bool) -> Edge:
    """Drop the label of an edge; a faint edge is dotted."""
    return replace(edge, label="", dash="dot" if faint else "solid", faint=faint)
