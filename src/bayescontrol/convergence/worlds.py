"""The world of one mode as a graph of situations, and where other modes part from it.

    world of m*     x --a--> y    iff  P(o | m*, x, a) > 0 for some o with T(x, a, o) = y
    R               what is reachable from the start when *any* mode's policy may act
    divergence      D[m, x, a] = KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), in nats
    separation      (x, a) parts m from m* iff the two predictions differ there: D > 0

Only which probabilities are positive, and which predictions differ, matters for what can happen
in the long run; how fast is a question for `rates`.
"""

from functools import cached_property

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import BoolArray, FloatArray, IntArray
from bayescontrol.problems.mdp.structure import closed_sets
from bayescontrol.problems.tabular import TabularModes

__all__ = ["World", "can_reach", "closed_within", "on_a_cycle"]


class World:
    """The world of mode `true` of a finite class.

    Two predictions differ where a probability of the true mode is off by more than `tolerance`,
    relative to the larger of the two. Modes whose prior is zero never act.

    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> world = World(prize_or_frog(0.75), true=0)
    >>> world.reachable, world.separates[1]
    (array([ True]), array([[ True,  True]]))
    >>> world.divergence[1].round(4)        # KL of (1/4, 3/4) from (3/4, 1/4), in nats
    array([[0.5493, 0.5493]])
    """

    def __init__(self, modes: TabularModes, true: int, *, tolerance: float = 1e-12) -> None:
        self.modes, self.true, self.tolerance = modes, modes[true].m, tolerance
        self._law = modes.hypothesis[true]

    @cached_property
    def possible(self) -> tuple[IntArray, IntArray, IntArray]:
        """The (x, a, o) that can happen here, in order."""
        x, a, o = np.nonzero(self._law)
        return x, a, o

    @cached_property
    def transitions(self) -> FloatArray:
        """P(y | m*, x, a), as an array [x, a, y]."""
        X, A, _ = self._law.shape
        moves = np.zeros((X, A, X))
        x, a, o = self.possible
        np.add.at(moves, (x, a, self.modes.successor[x, a, o]), self._law[x, a, o])
        return moves

    @cached_property
    def _edges(self) -> BoolArray:
        return self.transitions > 0.0

    def takes(self, *modes: int) -> BoolArray:
        """Whether one of these modes may take a in x, as an array [x, a]."""
        return np.asarray((self.modes.policy[list(modes)] > 0.0).any(0))

    def graph(self, takes: BoolArray) -> BoolArray:
        """The edges x → y when the actions marked in `takes` may be taken."""
        return np.asarray((self._edges & takes[..., None]).any(1))

    def while_possible(self, m: int) -> tuple[BoolArray, BoolArray]:
        """The edges x → y when any mode may act and what is seen does not rule m out.

        And what can be reached along them.
        """
        x, a, o = self.possible
        allowed = self.modes.hypothesis[m, x, a, o] > 0.0
        if allowed.all():
            return self.anyone, self.reachable
        allowed &= self._anyone_takes[x, a]
        x, a, o = x[allowed], a[allowed], o[allowed]
        edges = np.zeros_like(self.anyone)
        edges[x, self.modes.successor[x, a, o]] = True
        return edges, self.from_start(edges)

    @cached_property
    def _anyone_takes(self) -> BoolArray:
        return self.takes(*np.flatnonzero(self.modes.prior).tolist())

    @cached_property
    def anyone(self) -> BoolArray:
        """The edges x → y when any mode with weight may act."""
        return self.graph(self._anyone_takes)

    @cached_property
    def reachable(self) -> BoolArray:
        """R: the situations that can occur at all."""
        return self.from_start(self.anyone)

    def from_start(self, graph: BoolArray) -> BoolArray:
        """What can be reached from the start, along these edges."""
        start = np.zeros(len(graph), bool)
        start[self.modes.start] = True
        return can_reach(graph.T, start)

    @cached_property
    def late(self) -> BoolArray:
        """The situations of R that can occur arbitrarily late."""
        return can_reach(self.anyone.T, self.recurring)

    @cached_property
    def recurring(self) -> BoolArray:
        """The situations of R to which the agent can come back."""
        return on_a_cycle(self.anyone, self.reachable)

    @cached_property
    def divergence(self) -> FloatArray:
        """D[m, x, a] = KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), infinite where m rules out an o."""
        return self._compare[0]

    @cached_property
    def separates(self) -> BoolArray:
        """Whether the predictions of m and m* differ at (x, a), as an array [m, x, a]."""
        return self._compare[1]

    @cached_property
    def _compare(self) -> tuple[FloatArray, BoolArray]:
        shape = self.modes.policy.shape
        nats, differs = np.empty(shape), np.empty(shape, bool)
        kernels.separation.compare(self._law, self.modes.hypothesis, self.tolerance, nats, differs)
        return nats, differs

    def parted_by(self, takes: BoolArray) -> BoolArray:
        """Whether an action marked in `takes` parts m from m* in x, as an array [m, x]."""
        return np.asarray((self.separates & takes).any(-1))

    def acts_differently(self, m: int) -> BoolArray:
        """Whether the policies of m and m* differ in x."""
        mine, true = self.modes.policy[m], self.modes.policy[self.true]
        return np.asarray((np.abs(mine - true) > self.tolerance).any(-1))


def can_reach(graph: BoolArray, targets: BoolArray) -> BoolArray:
    """From where `targets` can be reached, themselves included; each column is a set of its own.

    >>> can_reach(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], bool), np.array([0, 1, 0], bool))
    array([ True,  True, False])
    """
    edges, reached = graph.astype(np.float32), targets
    while True:
        wider = reached | (edges @ reached.astype(np.float32) > 0.0)
        if (wider == reached).all():
            return reached
        reached = wider


def closed_within(graph: BoolArray, within: BoolArray) -> list[IntArray]:
    """The sets of situations that communicate and that no edge leaves; `within` is closed.

    >>> closed_within(np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1]], bool), np.ones(3, bool))
    [array([1]), array([2])]
    """
    where = np.flatnonzero(within)
    return [where[inner] for inner in closed_sets(graph[np.ix_(where, where)])]


def on_a_cycle(graph: BoolArray, within: BoolArray) -> BoolArray:
    """Which situations can be come back to without leaving `within`.

    >>> on_a_cycle(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], bool), np.ones(3, bool))
    array([False,  True,  True])
    """
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    where = np.flatnonzero(within)
    inner = coo_array(graph[np.ix_(where, where)])
    count, component = connected_components(inner.tocsr(), directed=True, connection="strong")
    x, y = inner.row, inner.col
    cyclic = np.zeros(count, bool)
    cyclic[component[x[component[x] == component[y]]]] = True  # an edge that stays inside
    answer = np.zeros(len(graph), bool)
    answer[where[cyclic[component]]] = True
    return answer
