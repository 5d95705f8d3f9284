"""The finite MDP of drawn context trees.

    I ∋ v         if some tree has an internal node (fields of the same percept, a_t) v
    I ∋ w         if I ∋ (percept, action) w: the context without its latest cycle
    state         a leaf of the tree with the internal nodes I, reached by the symbols before a_t

I is the smallest such set. The leaf v of the current context determines the leaf of every field for
every action, by the first line. It determines the next state too: the walk from the root reads the
new cycle and then a context w of I, by the second line, so that v is longer than w.

    P(s' | s,a) = Σ Π_f θ_f(k_f)        over the percepts k that lead to s'
    r(s,a) = Σ Π_f θ_f(k_f) r(k)        over all percepts

Contexts, and the trees of states, have the latest symbol first; see `kernels.trees` for slots.
"""

from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import AnyArray, FloatArray, IntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.trees import Drawn, Layout, branch_slot


class States(NamedTuple):
    """The tree of states; its root is node 0, and children follow each other.

    `child` is the first child, 0 at a leaf; `number` is the state of a leaf. `parent` is -1 at the
    root. `drop` is the node of the context without its latest cycle, where it is that long.
    """

    child: IntArray
    parent: IntArray
    level: IntArray
    drop: IntArray
    number: IntArray


@leaf
def _open(layout: Layout, states: States, s: int, used: int) -> int:
    """Put the context s into I, and all that follows; return the new number of nodes, -1 if full.

    The contexts without the latest cycles come first, so that every `drop` of a child is known.
    """
    cycle = layout.size.size
    while states.child[s] == 0:
        x = s
        while states.level[x] >= cycle and states.child[states.drop[x]] == 0:
            x = states.drop[x]
        m = layout.size[branch_slot(layout, cycle, states.level[x])]
        level = states.level[x] + 1
        if used + m > states.child.size:
            return -1
        states.child[x] = used
        for k in range(m):
            states.child[used], states.parent[used], states.level[used] = 0, x, level
            if level <= cycle:
                states.drop[used] = 0
            else:
                states.drop[used] = states.child[states.drop[x]] + k
            used += 1
    return used


@leaf
def close(
    layout: Layout, drawn: Drawn, used_by_trees: int, limit: int, states: States, at: IntArray,
    most_states: int,
) -> tuple[int, int]:  # fmt: skip
    """Build the states of trees that are cut at contexts of `limit` symbols before the action.

    Return the number of nodes and of states, or (-1, -1) if there are more than `most_states`
    states or no room. `at` is scratch: the node of the context of each drawn node.
    """
    states.child[0], states.parent[0], states.level[0], states.drop[0] = 0, -1, 0, 0
    used = 1
    for i in range(used_by_trees):
        slot, level, first = drawn.slot[i], drawn.level[i], drawn.child[i]
        if level == 0:
            at[i] = 0
        if first == 0 or level - slot >= limit:
            continue
        s, is_context = at[i], level >= slot
        if is_context:
            used = _open(layout, states, s, used)
            if used < 0:
                return -1, -1
        for k in range(layout.size[branch_slot(layout, slot, level)]):
            at[first + k] = states.child[s] + k if is_context else s
    count = 0
    for s in range(used):
        if states.child[s] == 0:
            states.number[s] = count
            count += 1
            if count > most_states:
                return -1, -1
    return used, count


@leaf
def _read_leaf(layout: Layout, drawn: Drawn, slot: int, recent: AnyArray) -> int:
    """Return the leaf of the tree of a slot; `recent` begins with slot C - 1 of the new cycle."""
    node, i = slot - 1, layout.size.size - slot
    while drawn.child[node] > 0:
        node = drawn.child[node] + recent[i]
        i += 1
    return int(node)


@leaf
def _read_state(states: States, recent: AnyArray) -> int:
    """Return the state of a context, the latest symbol first."""
    s, i = 0, 0
    while states.child[s] > 0:
        s = states.child[s] + recent[i]
        i += 1
    return int(states.number[s])


@leaf
def find_state(states: States, symbols: AnyArray, end: int) -> int:
    """Return the state of the history that ends before `end`."""
    return _read_state(states, symbols[:end][::-1])


@leaf
def percept_probabilities(
    layout: Layout, drawn: Drawn, symbols: AnyArray, end: int, out: FloatArray
) -> None:
    """Write the probability of each field of the cycle at `end` into `out`."""
    cycle = layout.size.size
    recent = symbols[: end + cycle][::-1]
    for slot in range(1, cycle):
        out[slot - 1] = drawn.p[_read_leaf(layout, drawn, slot, recent), symbols[end + slot]]


@jit
def build_mdp(
    layout: Layout, drawn: Drawn, states: States, used: int, rewards: FloatArray, P: FloatArray,
    r: FloatArray,
) -> None:  # fmt: skip
    """Write P(s' | s,a) and r(s,a) into P and r; `rewards` are the values of the last field."""
    cycle = layout.size.size
    last = cycle - 1
    recent = np.zeros(cycle + layout.depth, np.int64)
    weight, node = np.ones(cycle), np.zeros(cycle, np.int64)
    P[:], r[:] = 0.0, 0.0
    for leaf_node in range(used):
        if states.child[leaf_node] > 0:
            continue
        s = leaf_node
        while states.parent[s] >= 0:
            above = states.parent[s]
            recent[cycle + states.level[above]] = s - states.child[above]
            s = above
        x = states.number[leaf_node]
        for a in range(layout.size[0]):
            recent[last] = a
            # All percepts: k of field `slot` is recent[last - slot], and `slot` walks up and down.
            slot = 1
            node[slot], recent[last - slot] = _read_leaf(layout, drawn, slot, recent), -1
            while slot > 0:
                recent[last - slot] += 1
                k = recent[last - slot]
                if k == layout.size[slot]:
                    slot -= 1
                    continue
                weight[slot] = weight[slot - 1] * drawn.p[node[slot], k]
                if weight[slot] == 0.0:
                    continue
                if slot < last:
                    slot += 1
                    node[slot] = _read_leaf(layout, drawn, slot, recent)
                    recent[last - slot] = -1
                else:
                    P[x, a, _read_state(states, recent)] += weight[slot]
                    r[x, a] += weight[slot] * rewards[k]
