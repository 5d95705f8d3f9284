"""The world of one mode as a graph of situations, and where other modes part from it.

    world of m*     x --a--> y    iff  P(o | m*, x, a) > 0 for some o with T(x, a, o) = y
    R               what is reachable from the start when *any* mode's policy may act
    divergence      D[m, x, a] = KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), in nats
    separation      (x, a) parts m from m* iff the two predictions differ there: D > 0

Only which probabilities are positive, and which predictions differ, matters for what can happen
in the long run; how fast is a question for `rates`.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import BoolArray, FloatArray, IntArray
from bayescontrol.errors import InvalidPrior
from bayescontrol.mdp.planning import gain_and_bias, stationary_distribution
from bayescontrol.mdp.structure import closed_sets
from bayescontrol.mdp.table import MDP
from bayescontrol.problems.tabular import TabularModes


class World:
    """The world of mode `true` of a finite class.

    Two predictions differ where a probability of the true mode is off by more than `tolerance`,
    relative to the larger of the two. Modes whose prior is zero never act.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> world = World(prize_or_frog(0.75), true=0)
    >>> world.reachable, world.separates[1]
    (array([ True]), array([[ True,  True]]))
    >>> world.divergence[1].round(4)        # KL of (1/4, 3/4) from (3/4, 1/4), in nats
    array([[0.5493, 0.5493]])
    """

    def __init__(self, modes: TabularModes, true: int | str, *, tolerance: float = 1e-12) -> None:
        self.modes, self.true, self.tolerance = modes, modes.place(true), tolerance
        if not modes.prior[self.true] > 0.0:
            raise InvalidPrior(
                f"mode {modes.name(self.true)} has prior 0: no evidence can favour it, and an "
                "agent never acts as it does; give it some"
            )
        if not tolerance >= 0.0:
            raise ValueError(f"tolerance={tolerance}: it is a number from 0 up")
        self._law = modes.hypothesis[self.true]

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
    def edges(self) -> BoolArray:
        """Whether a may lead from x to y, as an array [x, a, y]."""
        return self.transitions > 0.0

    def takes(self, *modes: int) -> BoolArray:
        """Whether one of these modes may take a in x, as an array [x, a]."""
        return np.asarray((self.modes.policy[list(modes)] > 0.0).any(0))

    def graph(self, takes: BoolArray) -> BoolArray:
        """The edges x → y when the actions marked in `takes` may be taken."""
        return np.asarray((self.edges & takes[..., None]).any(1))

    def reachable_while_possible(self, m: int) -> BoolArray:
        """What can be reached, whoever acts, before what is seen rules m out."""
        x, a, o = self.possible
        allowed = self.modes.hypothesis[m, x, a, o] > 0.0
        if allowed.all():
            return self.reachable
        allowed &= self._anyone_takes[x, a]
        x, a, o = x[allowed], a[allowed], o[allowed]
        edges = np.zeros_like(self.anyone)
        edges[x, self.modes.successor[x, a, o]] = True
        return self.from_start(edges)

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
        return can_reach(self.anyone.T, on_a_cycle(self.anyone, self.reachable))

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
        kernels.divergence.compare(self._law, self.modes.hypothesis, self.tolerance, nats, differs)
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
    inner = graph & within[:, None] & within
    component = _components(inner)
    x, y = np.nonzero(inner)
    answer = np.zeros(len(graph), bool)
    answer[x[component[x] == component[y]]] = True  # an edge that stays in its component
    return answer


def end_components(
    edges: BoolArray, may: BoolArray, must: BoolArray, within: BoolArray
) -> BoolArray:
    """Which situations can occur for ever if actions in `may` are free and those in `must` are not.

    An end component is a set of situations, and of actions in each, that communicate and from
    which no action leads out. What must be done must not lead out either. `edges` is [x, a, y].

    >>> line = np.zeros((3, 2, 3), bool)              # 0 ⇄ 1 → 2, by action 0; action 1 stays
    >>> line[0, 0, 1] = line[1, 0, 0] = line[1, 0, 2] = line[2, 0, 2] = True
    >>> line[[0, 1, 2], 1, [0, 1, 2]] = True
    >>> everything, nothing = np.ones((3, 2), bool), np.zeros((3, 2), bool)
    >>> end_components(line, everything, nothing, np.ones(3, bool))
    array([ True,  True,  True])
    >>> end_components(line, everything, everything, np.ones(3, bool))
    array([False, False,  True])
    """
    while True:
        moves = (edges & may[..., None]).any(1) & within[:, None] & within
        component = _components(moves)
        together = (component[:, None] == component) & within[:, None] & within
        leaves = (edges & ~together[:, None]).any(-1)
        free, kept = may & ~leaves, within & ~(must & leaves).any(-1)
        if (free == may).all() and (kept == within).all():
            return np.asarray(kept & may.any(-1))
        may, within = free, kept


def _components(graph: BoolArray) -> IntArray:
    """The strongly connected component of every situation."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    component: IntArray = connected_components(
        coo_array(graph).tocsr(), directed=True, connection="strong"
    )[1]
    return component


class DivergenceRate(NamedTuple):
    """Where a policy may end up, how likely, and what each step there tells, in nats.

    >>> DivergenceRate((0, 1), 1.0, 0.25).rate
    0.25
    """

    situations: tuple[int, ...]
    probability: float
    rate: float


def divergence_rates(world: World, other: int, policy: int) -> tuple[DivergenceRate, ...]:
    """The rates of d_t(m*‖m) for m = `other`, while mode `policy` acts; one per recurrent class.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> [only] = divergence_rates(World(prize_or_frog(0.75), true=0), other=1, policy=0)
    >>> only.situations, only.probability, round(only.rate, 4)
    ((0,), 1.0, 0.5493)
    """
    return tuple(
        DivergenceRate(
            tuple(np.flatnonzero(mu).tolist()), p, float(_average(mu, world, policy)[other])
        )
        for mu, p in _where_it_ends(world, policy)
    )


def mean_rates(world: World, policy: int) -> FloatArray:
    """The rate of d_t(m*‖m) while mode `policy` acts, from the start on average, for every m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> mean_rates(World(prize_or_frog(0.75), true=0), policy=0).round(4)
    array([0.    , 0.5493])
    """
    ends = _where_it_ends(world, policy)
    return np.asarray(sum(p * _average(mu, world, policy) for mu, p in ends))


def _average(mu: FloatArray, world: World, policy: int) -> FloatArray:
    """Σ_x μ(x) G(x) for every mode; what never happens counts nothing, were it infinite."""
    weight = mu[:, None] * world.modes.policy[policy]
    x, a = np.nonzero(weight)
    return np.asarray(world.divergence[:, x, a] @ weight[x, a])


def _where_it_ends(world: World, policy: int) -> list[tuple[FloatArray, float]]:
    """μ of each recurrent class that can be entered from the start, and the chance to."""
    chain = np.einsum("xa,xay->xy", world.modes.policy[policy], world.transitions)
    chain /= chain.sum(-1, keepdims=True)  # the tables may be off by 1e-9, a chain may not
    still = np.zeros((len(chain), 1))
    here = np.zeros(len(chain), np.int64)
    classes = stationary_distribution(MDP(chain[:, None], still), here)
    if len(classes) == 1:
        return [(classes[0].probability, 1.0)]
    ends = []
    for one in classes:
        inside = (one.probability > 0.0).astype(np.float64)[:, None]
        chance = float(gain_and_bias(MDP(chain[:, None], inside), here).gain[world.modes.start])
        if chance > 0.0:
            ends.append((one.probability, min(chance, 1.0)))
    return ends
