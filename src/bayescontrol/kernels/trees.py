"""Context trees: the evidence of all trees at once, predictions, and exact draws of a tree.

A cycle has C symbols: an action and the fields of a percept. The symbol in slot j of a cycle has a
tree of its own. It branches on the symbols before it, the latest first, up to `depth` symbols.

    β = 1 - 2^-(m-1)                          a node with m branches is a leaf a priori
    Pe = Π_i (n_i(k_i) + 1/E) / (n_i + 1)     evidence of a leaf, E symbols, θ ~ Dirichlet(1/E, …)
    Pw = β Pe + (1-β) Π_children Pw           evidence of all trees below a node; Pw = Pe at `depth`

Each node stores ω = ln β Pe - ln (1-β) Π Pw, its posterior log-odds of being a leaf. With p for the
prediction of a node and p' for that of its child on the path of the context,

    p = σ(ω) (n(k) + 1/E) / (n + 1) + σ(-ω) p'
    ω ← ω + ln (n(k) + 1/E) / (n + 1) - ln p'            after the symbol k

so an update takes O(depth), and the logarithms of p at the root add up to the evidence.

A node that was visited once has no children: the first symbol has probability 1/E at every depth,
so Pw = Pe there. The node remembers the visit; the second one expands it. If the memory is full,
the nodes without children are leaves for good. From then on all numbers are exact for the prior
whose trees are cut at these nodes.
"""

from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import AnyArray, FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.average_reward import draw_row
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.random import uniform

#: The entries of `memory`: the number of used nodes, and whether the memory is full.
USED, FULL = 0, 1


class Layout(NamedTuple):
    """The slots of a cycle: slot 0 is the action, the others are the fields of the percept.

    `size` holds the number of symbols of each slot, `odds` the prior log-odds ln(2^(m-1) - 1) that
    a node that would branch on this slot is a leaf.
    """

    size: IntArray
    odds: FloatArray
    depth: int


class Nodes(NamedTuple):
    """The nodes of all trees; the root of the tree of slot j is node j - 1.

    `child` is the first child, 0 without children; the others follow it. `visit` is the position of
    the first symbol, `n` the number of symbols, and `odds` is ω.
    """

    child: AnyArray
    visit: IntArray
    n: AnyArray
    counts: AnyArray
    odds: FloatArray


@inlined
def _mix(odds: float, leaf_value: float, below: float) -> float:
    """σ(ω) leaf + σ(-ω) below, without cancellation."""
    if odds >= 0.0:
        e = exp(-odds)
        return (leaf_value + e * below) / (1.0 + e)
    e = exp(odds)
    return (e * leaf_value + below) / (1.0 + e)


@inlined
def branch_slot(layout: Layout, slot: int, level: int) -> int:
    """Return the slot of the symbol on which the tree of `slot` branches at this level.

    For the tree of states pass the number of slots: its contexts begin with the last slot.
    """
    slots: int = layout.size.size
    return (slot - 1 - level) % slots


@leaf
def _expand(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, node: int, level: int,
    slot: int,
) -> bool:  # fmt: skip
    """Give a node with one visit its children, and pass the visit on; False if memory is full."""
    branch = branch_slot(layout, slot, level)
    used = memory[USED]
    if memory[FULL] or used + layout.size[branch] > nodes.child.size:
        memory[FULL] = 1
        return False
    memory[USED] = used + layout.size[branch]
    nodes.child[node] = used
    nodes.odds[node] = layout.odds[branch]
    visit = nodes.visit[node]
    passed_to = used + symbols[visit - 1 - level]
    nodes.visit[passed_to], nodes.n[passed_to] = visit, 1
    nodes.counts[passed_to, symbols[visit]] = 1
    return True


@leaf
def _learn_symbol(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, at: int, slot: int,
    path: IntArray,
) -> float:  # fmt: skip
    """Learn the symbol at this position and return its probability; `path` is scratch."""
    p: float
    k, share = symbols[at], 1.0 / layout.size[slot]
    node, level = slot - 1, 0
    path[0] = node
    while level < layout.depth and nodes.n[node] > 0:
        is_open = nodes.child[node] > 0
        if not is_open and not _expand(layout, nodes, memory, symbols, node, level, slot):
            break
        node = nodes.child[node] + symbols[at - 1 - level]
        level += 1
        path[level] = node
    if nodes.n[node] == 0:
        nodes.visit[node] = at
    p = (nodes.counts[node, k] + share) / (nodes.n[node] + 1.0)
    nodes.counts[node, k] += 1
    nodes.n[node] += 1
    for i in range(level - 1, -1, -1):
        node = path[i]
        here = (nodes.counts[node, k] + share) / (nodes.n[node] + 1.0)
        mixed = _mix(nodes.odds[node], here, p)
        nodes.odds[node] += log(here / p)
        nodes.counts[node, k] += 1
        nodes.n[node] += 1
        p = mixed
    return p


@leaf
def learn(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, end: int, path: IntArray
) -> float:
    """Learn the cycle that was written at `end`; return ln P(percept | past, action).

    There must be room for all nodes that an update can add, up to the cap: see `most_new_nodes`.
    """
    total = 0.0
    for slot in range(1, layout.size.size):
        total += log(_learn_symbol(layout, nodes, memory, symbols, end + slot, slot, path))
    return total


def most_new_nodes(layout: Layout) -> int:
    """Return the largest number of nodes that `learn` can add.

    >>> most_new_nodes(Layout(np.array([2, 3]), np.zeros(2), 3))  # branches on 2, 3 and 2 symbols
    7
    """
    slots = layout.size.size
    levels = np.arange(layout.depth)
    return sum(int(layout.size[(slot - 1 - levels) % slots].sum()) for slot in range(1, slots))


@leaf
def predict(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, at: int, slot: int,
    path: IntArray, out: FloatArray,
) -> None:  # fmt: skip
    """P(symbol at this position = k | the symbols before it) for all k, into `out`.

    These are the probabilities with which `learn` computes, unless it finds the memory full.
    """
    share = 1.0 / layout.size[slot]
    node, level = slot - 1, 0
    while level < layout.depth and nodes.child[node] > 0:
        path[level] = node
        node = nodes.child[node] + symbols[at - 1 - level]
        level += 1
    # Below a single visit, its context and this one are the same down to the level `deepest`.
    n, deepest = nodes.n[node], level
    expands = n == 1 and level < layout.depth and not memory[FULL]
    if expands:
        back, visit = at - 1, nodes.visit[node] - 1
        while deepest < layout.depth and symbols[back - deepest] == symbols[visit - deepest]:
            deepest += 1
    for k in range(layout.size[slot]):
        here = (nodes.counts[node, k] + share) / (n + 1.0)
        p = here
        if expands:
            p = share if deepest < layout.depth else here
            for i in range(min(deepest, layout.depth - 1), level - 1, -1):
                p = _mix(layout.odds[branch_slot(layout, slot, i)], here, p)
        for i in range(level - 1, -1, -1):
            above = path[i]
            here = (nodes.counts[above, k] + share) / (nodes.n[above] + 1.0)
            p = _mix(nodes.odds[above], here, p)
        out[k] = p


@leaf
def is_untested(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, end: int, action: int,
    least: float, trials: float,
) -> bool:  # fmt: skip
    """Return whether another action has fewer than `trials` trials in a context before `end`.

    Only those suffixes of the context count in which `action` was taken at least `least` times. If
    the memory is full, the trials of a node without children stand for those of the longer
    contexts, which are as many or fewer.
    """
    if nodes.child[0] == 0:
        return False
    for other in range(layout.size[0]):
        node, tried, level = nodes.child[0] + action, nodes.child[0] + other, 1
        count = nodes.n[tried]
        while other != action and nodes.n[node] >= least:
            if count < trials:
                return True
            if level == layout.depth or nodes.child[node] == 0:
                break
            k = symbols[end - level]
            node = nodes.child[node] + k
            if nodes.child[tried] > 0:
                tried = nodes.child[tried] + k
                count = nodes.n[tried]
            elif count == 1 and not memory[FULL] and symbols[nodes.visit[tried] - 1 - level] != k:
                count = 0  # the only trial was in another context
            level += 1
    return False


@leaf
def count_untested(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, start: int, end: int,
    least: float, trials: float,
) -> int:  # fmt: skip
    """Return for how many cycles from `start` to `end` some action is untested."""
    count = 0
    for at in range(start, end, layout.size.size):
        action = symbols[at]
        count += is_untested(layout, nodes, memory, symbols, at, action, least, trials)
    return count


class Drawn(NamedTuple):
    """Drawn trees. The children of a node follow it; the root of slot j is node j - 1.

    `child` is the first child, 0 at a leaf. `source` is the node of `Nodes` with the same context,
    otherwise -1; then `visit` is the position of the only symbol in this context,
    otherwise -1. `p` holds the parameters of the leaves.
    """

    child: IntArray
    slot: IntArray
    level: IntArray
    source: IntArray
    visit: IntArray
    p: FloatArray


@leaf
def draw_structure(
    layout: Layout, nodes: Nodes, memory: IntArray, symbols: AnyArray, drawn: Drawn,
    rng: UIntArray,
) -> int:  # fmt: skip
    """Draw the trees, without parameters; return the number of nodes, -1 if there is no room.

    From the root on, a node is a leaf with probability σ(ω). Subtrees without data are drawn from
    the prior, and so are those with a single symbol, since it says nothing about them.
    """
    used = layout.size.size - 1
    if used > drawn.child.size:
        return -1
    for i in range(used):
        drawn.slot[i], drawn.level[i], drawn.source[i], drawn.visit[i] = i + 1, 0, i, -1
    i = 0
    while i < used:
        drawn.child[i] = 0
        level, source, visit = drawn.level[i], drawn.source[i], drawn.visit[i]
        is_open = level < layout.depth
        branch = branch_slot(layout, drawn.slot[i], level)
        odds = layout.odds[branch]
        first = 0
        if source >= 0:
            first = nodes.child[source]
            if first > 0:
                odds = nodes.odds[source]
            elif memory[FULL]:
                is_open = False
            elif nodes.n[source] == 1:
                visit = nodes.visit[source]
        if is_open and uniform(rng) >= _mix(odds, 1.0, 0.0):
            m = layout.size[branch]
            if used + m > drawn.child.size:
                return -1
            drawn.child[i] = used
            for k in range(m):
                drawn.slot[used], drawn.level[used] = drawn.slot[i], level + 1
                drawn.source[used] = first + k if first > 0 else -1
                follows = visit >= 0 and symbols[visit - 1 - level] == k
                drawn.visit[used] = visit if follows else -1
                used += 1
        i += 1
    return int(used)


@leaf
def draw_leaves(
    layout: Layout, nodes: Nodes, symbols: AnyArray, drawn: Drawn, used: int, limit: int,
    scratch: FloatArray, rng: UIntArray,
) -> None:  # fmt: skip
    """Cut the trees at contexts of `limit` symbols before the action, and draw all leaves.

    θ ~ Dirichlet(1/E + n(k)), with the counts n of the leaf's context. `scratch` has three rows.
    """
    alpha, counts, work = scratch[0], scratch[1], scratch[2]
    for i in range(used):
        slot = drawn.slot[i]
        length = drawn.level[i] - slot
        if length >= limit:
            drawn.child[i] = 0
        if drawn.child[i] > 0 or length > limit:
            continue
        E = layout.size[slot]
        source, visit = drawn.source[i], drawn.visit[i]
        for k in range(E):
            alpha[k] = 1.0 / E
            counts[k] = nodes.counts[source, k] if source >= 0 else 0.0
        if source < 0 and visit >= 0:
            counts[symbols[visit]] = 1.0
        draw_row(alpha[:E], counts[:E], drawn.p[i, :E], work[:E], rng)


@leaf
def place_nodes(layout: Layout, child: AnyArray, slot: IntArray, level: IntArray) -> bool:
    """Compute the slot and the level of all nodes from `child`; return False if it is invalid.

    There must be a root for each field. The children of a node must exist, follow it, and have a
    level of at most `depth`.
    """
    if child.size < layout.size.size - 1:
        return False
    for i in range(layout.size.size - 1):
        slot[i], level[i] = i + 1, 0
    for i in range(child.size):
        first = child[i]
        if first != 0:
            m = layout.size[branch_slot(layout, slot[i], level[i])]
            if level[i] >= layout.depth or not i < first <= child.size - m:
                return False
            for c in range(first, first + m):
                slot[c], level[c] = slot[i], level[i] + 1
    return True
