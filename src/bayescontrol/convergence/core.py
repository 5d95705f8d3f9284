"""The world of one mode, core, consistency and deadlocks: which modes the agent can distinguish.

    core          m ∉ [m*]  iff  from every x in R, the policy of m* reaches with positive
                  probability a situation in which it may take an action that separates m from m*
    consistency   m is consistent with m*  iff  m ∈ [m*] implies P(a | m, x) = P(a | m*, x) for
                  all a and every x in R that can occur arbitrarily late

A different prediction counts only where m* may take the action, because otherwise it is never
observed. R includes the situations that other modes lead to, because they act most of the time.
While m* keeps some weight, it is drawn often enough in a row to reach a separating action again
and again: d_t(m*‖m) grows without bound and the weight of m vanishes.

Consistency is our reading of the paper, which lets the difference of the policies vanish as
t → ∞ on every history. With finitely many situations it must be zero in each that can still occur.

**Deadlocks.** In the world of m* the ratio of the weights of m and m* converges. If m keeps its
weight, both modes act again and again, so the agent ends among the *blind spots*: the situations
from which the two, taking turns, never reach an action that separates them. Let I be the
situations that then occur for ever. A *closed set* is one that the pair alone does not leave.

    both act in I for ever        so I is closed under their policies and contains closed sets
    k acts in x ∈ I for ever      only if no closed set that the pair reaches from x refutes k.
                                  Otherwise each visit to x may lead to evidence against k,
                                  E √(w_k / w_m*) falls geometrically in the number of visits,
                                  and k acts there only finitely often
    so I is an end component      of the actions that may occur for ever, the pair's included

Hence the agent settles if m and m* act alike in every such component. Conversely, a *deadlock* is
a closed set K that the agent can reach while the modes `alive` are not ruled out, with

    J   m*, m and every mode alive that the pair does not refute in some closed set within C
    C   the situations that J can reach from K; no action of J in C separates m from m*

Modes outside J are refuted in every closed set: with positive probability they soon stop acting
for ever. Then J stays within C, and m and m* are never distinguished. It is a deadlock if they act
differently in every closed set of C or, if nothing in C separates any two modes of J, in a set
that J as a whole does not leave.

**Worlds.** The world of one mode is a graph of situations:

    world of m*     x --a--> y    iff  P(o | m*, x, a) > 0 for some o with T(x, a, o) = y
    R               the situations reachable from the start if *any* mode's policy may act
    divergence      D[m, x, a] = KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), in nats
    separation      (x, a) separates m from m* iff their predictions differ there: D > 0

Long-run behaviour depends only on which probabilities are positive and which predictions differ.
Rates say how fast evidence arrives while a fixed policy π acts:

    G(x) = Σ_a π(a | x) D[m, x, a]                  in nats, in situation x
    rate = Σ_x μ(x) G(x),    μ P_π = μ              in nats per step

There is one rate for each recurrent class of the chain that π induces in the world of m*.
Periodic chains have one too, as an average over time. A rate is zero where nothing separates the
modes, and infinite where an observation recurs that m rules out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import BoolArray, FloatArray, IntArray, require_between
from bayescontrol.errors import InvalidPrior
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.mdp import planning
from bayescontrol.mdp.table import MDP


class World:
    """The world of mode `true` of a finite class.

    Two predictions differ where a probability of the true mode is off by more than `tolerance`,
    relative to the larger of the two. Modes with prior zero never act.

    >>> from bayescontrol.finite.examples import prize_or_frog
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
                f"mode {modes.name(self.true)} has prior 0 and can never be drawn: "
                "give it a positive prior, or pass another mode as `true`"
            )
        require_between("tolerance", tolerance, 0.0, np.inf)
        self._hypothesis = modes.hypothesis[self.true]

    @cached_property
    def possible(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the triples (x, a, o) with positive probability, in order."""
        x, a, o = np.nonzero(self._hypothesis)
        return x, a, o

    @cached_property
    def transitions(self) -> FloatArray:
        """Return P(y | m*, x, a) as an array [x, a, y]."""
        X, A, _ = self._hypothesis.shape
        moves = np.zeros((X, A, X))
        x, a, o = self.possible
        np.add.at(moves, (x, a, self.modes.successor[x, a, o]), self._hypothesis[x, a, o])
        return moves

    @cached_property
    def edges(self) -> BoolArray:
        """Return whether a may lead from x to y, as an array [x, a, y]."""
        return self.transitions > 0.0

    def takes(self, *modes: int) -> BoolArray:
        """Return whether one of these modes may take a in x, as an array [x, a]."""
        return np.asarray((self.modes.policy[list(modes)] > 0.0).any(0))

    def graph(self, takes: BoolArray) -> BoolArray:
        """Return the edges x → y if only the actions marked in `takes` are taken."""
        return np.asarray((self.edges & takes[..., None]).any(1))

    def reachable_while_possible(self, m: int) -> BoolArray:
        """Return the situations reachable before an observation rules m out, whoever acts."""
        x, a, o = self.possible
        keeps_m = self.modes.hypothesis[m, x, a, o] > 0.0
        if keeps_m.all():
            return self.reachable
        occurs = keeps_m & self.any_mode_takes[x, a]
        x, a, o = x[occurs], a[occurs], o[occurs]
        edges = np.zeros_like(self.any_mode_graph)
        edges[x, self.modes.successor[x, a, o]] = True
        return self.from_start(edges)

    @cached_property
    def any_mode_takes(self) -> BoolArray:
        """Return whether a mode with positive prior may take a in x, as an array [x, a]."""
        return self.takes(*np.flatnonzero(self.modes.prior).tolist())

    @cached_property
    def any_mode_graph(self) -> BoolArray:
        """Return the edges x → y if any mode with positive prior may act."""
        return self.graph(self.any_mode_takes)

    @cached_property
    def reachable(self) -> BoolArray:
        """Return R, the situations that can occur at all."""
        return self.from_start(self.any_mode_graph)

    def from_start(self, graph: BoolArray) -> BoolArray:
        """Return the situations reachable from the start along these edges."""
        return can_reach(graph.T, np.arange(len(graph)) == self.modes.start)

    @cached_property
    def late(self) -> BoolArray:
        """Return the situations of R that can occur arbitrarily late."""
        return can_reach(self.any_mode_graph.T, on_a_cycle(self.any_mode_graph, self.reachable))

    @cached_property
    def divergence(self) -> FloatArray:
        """Return D[m, x, a] = KL( P(· | m*, x, a) ‖ P(· | m, x, a) ), which may be infinite."""
        return self._compare[0]

    @cached_property
    def separates(self) -> BoolArray:
        """Return whether the predictions of m and m* differ at (x, a), as an array [m, x, a]."""
        return self._compare[1]

    @cached_property
    def _compare(self) -> tuple[FloatArray, BoolArray]:
        """Return `divergence` and `separates`, which one pass of the kernel computes."""
        shape = self.modes.policy.shape
        nats, differs = np.empty(shape), np.empty(shape, bool)
        kernels.divergence.compare(
            self._hypothesis, self.modes.hypothesis, self.tolerance, nats, differs
        )
        return nats, differs

    def separated_by(self, takes: BoolArray) -> BoolArray:
        """Return whether an action in `takes` separates m from m* in x, as an array [m, x]."""
        return np.asarray((self.separates & takes).any(-1))

    @cached_property
    def acts_differently(self) -> BoolArray:
        """Return whether the policies of m and m* differ in x, as an array [m, x]."""
        gaps = np.abs(self.modes.policy - self.modes.policy[self.true])
        return np.asarray((gaps > self.tolerance).any(-1))


def can_reach(graph: BoolArray, targets: BoolArray) -> BoolArray:
    """Return the situations from which `targets` can be reached, including the targets.

    The columns of a matrix of targets are treated separately.

    >>> can_reach(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], bool), np.array([0, 1, 0], bool))
    array([ True,  True, False])
    """
    edges, reached = graph.astype(np.float32), targets
    while True:
        extended = reached | (edges @ reached.astype(np.float32) > 0.0)
        if (extended == reached).all():
            return reached
        reached = extended


def closed_within(graph: BoolArray, within: BoolArray) -> list[IntArray]:
    """Return the communicating sets of situations that no edge leaves, inside the closed `within`.

    >>> closed_within(np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1]], bool), np.ones(3, bool))
    [array([1]), array([2])]
    """
    where = np.flatnonzero(within)
    return [where[inner] for inner in planning.closed_sets(graph[np.ix_(where, where)])]


def on_a_cycle(graph: BoolArray, within: BoolArray) -> BoolArray:
    """Return the situations to which one can return without leaving `within`.

    >>> on_a_cycle(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], bool), np.ones(3, bool))
    array([False,  True,  True])
    """
    x, y, component = planning.strong_components(graph & within[:, None] & within)
    # An edge that stays in its component is part of a cycle.
    return np.isin(np.arange(len(graph)), x[component[x] == component[y]])


def end_components(
    edges: BoolArray, optional: BoolArray, forced: BoolArray, within: BoolArray
) -> BoolArray:
    """Return the situations that can occur for ever with optional and forced actions.

    An end component is a set of situations, with actions in each, that communicate and that no
    action leaves. The actions marked in `optional` may be taken; those in `forced` must be, so none
    of them may leave the set either. `edges` is an array [x, a, y].

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
        moves = (edges & optional[..., None]).any(1) & within[:, None] & within
        _, _, component = planning.strong_components(moves)
        # together[x, y]: x and y are in one component. leaves[x, a]: a may lead out of it.
        together = (component[:, None] == component) & within[:, None] & within
        leaves = (edges & ~together[:, None]).any(-1)
        still_optional, remaining = optional & ~leaves, within & ~(forced & leaves).any(-1)
        if (still_optional == optional).all() and (remaining == within).all():
            return np.asarray(remaining & optional.any(-1))
        optional, within = still_optional, remaining


class DivergenceRate(NamedTuple):
    """A recurrent class, the probability of ending in it, and its rate in nats per step."""

    situations: tuple[int, ...]
    probability: float
    rate: float


def divergence_rates(world: World, other: int, policy: int) -> tuple[DivergenceRate, ...]:
    """Return the rates of d_t(m*‖m) for m = `other` while mode `policy` acts, by recurrent class.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> [only] = divergence_rates(World(prize_or_frog(0.75), true=0), other=1, policy=0)
    >>> only.situations, only.probability, round(only.rate, 4)
    ((0,), 1.0, 0.5493)
    """
    return tuple(
        DivergenceRate(
            tuple(np.flatnonzero(mu).tolist()), p, float(_average(mu, world, policy)[other])
        )
        for mu, p in _recurrent_classes(world, policy)
    )


def mean_rates(world: World, policy: int) -> FloatArray:
    """Return the rate of d_t(m*‖m) for every m while mode `policy` acts, averaged from the start.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> mean_rates(World(prize_or_frog(0.75), true=0), policy=0).round(4)
    array([0.    , 0.5493])
    """
    classes = _recurrent_classes(world, policy)
    return np.asarray(sum(p * _average(mu, world, policy) for mu, p in classes))


def _average(mu: FloatArray, world: World, policy: int) -> FloatArray:
    """Return Σ_x μ(x) G(x) for every mode, over the (x, a) with positive weight."""
    weight = mu[:, None] * world.modes.policy[policy]
    x, a = np.nonzero(weight)
    return np.asarray(world.divergence[:, x, a] @ weight[x, a])


def _recurrent_classes(world: World, policy: int) -> list[tuple[FloatArray, float]]:
    """Return μ of each recurrent class, and the probability of ending there from the start."""
    chain = np.einsum("xa,xay->xy", world.modes.policy[policy], world.transitions)
    chain /= chain.sum(-1, keepdims=True)  # rows of tables may be off by 1e-9
    no_reward = np.zeros((len(chain), 1))
    only_action = np.zeros(len(chain), np.int64)
    classes = planning.stationary_distribution(MDP(chain[:, None], no_reward), only_action)
    if len(classes) == 1:
        return [(classes[0].probability, 1.0)]
    reached = []
    for mu in (recurrent.probability for recurrent in classes):
        # With reward 1 inside the class, the gain is the probability of ending there.
        inside = (mu > 0.0).astype(np.float64)[:, None]
        gain = planning.gain_and_bias(MDP(chain[:, None], inside), only_action).gain
        chance = float(gain[world.modes.start])
        if chance > 0.0:
            reached.append((mu, min(chance, 1.0)))
    return reached


def core(modes: TabularModes, true: int | str, *, tolerance: float = 1e-12) -> tuple[int, ...]:
    """Return [m*] as indices of modes with positive prior; m* itself is always in it.

    In a grid of biases the core holds the modes that agree on the arm that m* pulls:

    >>> from bayescontrol.bandits.joint import bias_grid
    >>> modes = bias_grid(arms=2, levels=(0.2, 0.8))
    >>> [modes.name(m) for m in core(modes, 1)]
    ['(.2, .8)', '(.8, .8)']
    """
    outside = outside_core(World(modes, true, tolerance=tolerance))
    return tuple(np.flatnonzero(~outside & (modes.prior > 0.0)).tolist())


def outside_core(world: World) -> BoolArray:
    """Return whether m ∉ [m*], for every mode m.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> outside_core(World(prize_or_frog(), true=0))
    array([False,  True])
    """
    takes = world.takes(world.true)
    reached = can_reach(world.graph(takes), world.separated_by(takes).T)
    return np.asarray(reached[world.reachable].all(0))


def reaches_separation(world: World, takes: BoolArray, m: int) -> BoolArray:
    """Return the x from which the actions in `takes` can lead to one that separates m from m*.

    The result is an array [x].
    """
    return can_reach(world.graph(takes), (world.separates[m] & takes).any(-1))


def consistent(
    modes: TabularModes, true: int | str, other: int | str, *, tolerance: float = 1e-12
) -> bool:
    """Return whether `other` is consistent with `true`: outside its core, or with the same policy.

    >>> from bayescontrol.finite.examples import consistency_diagram, consistency_repaired
    >>> consistent(consistency_diagram(), 0, 1), consistent(consistency_repaired(), 0, 1)
    (False, True)
    """
    world = World(modes, true, tolerance=tolerance)
    m = modes.place(other)
    return bool(outside_core(world)[m] or policies_agree(world)[m])


def policies_agree(world: World) -> BoolArray:
    """Return whether m acts like m* in every situation that can occur late, for every mode m.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> policies_agree(World(prize_or_frog(), true=0))
    array([ True, False])
    """
    return np.asarray(~world.acts_differently[:, world.late].any(-1))


#: Maximum number of (situation, modes not ruled out) searched for a way into a deadlock.
MAX_SEARCHED: Final = 20_000


@dataclass(frozen=True)
class Deadlock:
    """The modes that keep their weight, and the situations in which two of them differ for ever."""

    modes: tuple[int, ...]
    situations: tuple[int, ...]


class BlindSpots:
    """The situations from which m and m*, taking turns, can never be distinguished.

    Only situations count that the agent can reach before m is ruled out (`reachable`).

    >>> from bayescontrol.finite.examples import consistency_diagram
    >>> modes = consistency_diagram()
    >>> spots = BlindSpots(World(modes, 0), 1)
    >>> [modes.labels.situations[x] for x in np.flatnonzero(spots.situations)]
    ['A0', 'A1', 'A2']
    >>> spots.may_conflict, spots.deadlock().modes
    (True, (0, 1))
    """

    def __init__(self, world: World, m: int) -> None:
        self.world, self.m = world, m
        self.reachable = world.reachable_while_possible(m)
        self._pair_takes = world.takes(world.true, m)
        self._pair_graph = world.graph(self._pair_takes)
        separable = reaches_separation(world, self._pair_takes, m)
        self.situations = self.reachable & ~separable

    @cached_property
    def _closed_sets(self) -> list[IntArray]:
        """Return the closed sets of the pair among the blind spots."""
        return closed_within(self._pair_graph, self.situations)

    @cached_property
    def _refuted(self) -> BoolArray:
        """Return whether the pair's actions in x are evidence against k, as an array [k, x]."""
        return self.world.separated_by(self._pair_takes)

    @cached_property
    def may_conflict(self) -> bool:
        """Return whether the policies differ in a situation that might occur for ever."""
        differ = self.world.acts_differently[self.m]
        # The closed sets of the pair can last for ever, whatever other modes do.
        in_closed = any(differ[closed].any() for closed in self._closed_sets)
        return in_closed or bool(self.conflicts.any())

    @cached_property
    def conflicts(self) -> BoolArray:
        """Return the situations that might occur for ever and in which m and m* act differently."""
        differ: BoolArray = self.situations & self.world.acts_differently[self.m]
        if not differ.any():
            return differ
        # may_last[k, x]: whether mode k may act in x for ever. acts[x, a]: whether such a mode
        # takes a in x, without separating m from m*.
        may_last = np.repeat((self.world.modes.prior > 0.0)[:, None], len(differ), axis=1)
        for closed in self._closed_sets:
            in_closed = np.isin(np.arange(len(differ)), closed)
            # A mode that the closed set refutes stops acting where the pair can reach the set.
            may_last[self._refuted[:, closed].any(1)] &= ~can_reach(self._pair_graph, in_closed)
        acts = ((self.world.modes.policy > 0.0) & may_last[..., None]).any(0)
        acts &= ~self.world.separates[self.m]
        return differ & end_components(self.world.edges, acts, self._pair_takes, self.situations)

    def deadlock(self) -> Deadlock | None:
        """Return a deadlock of m and m*, or None if none is found."""
        for closed in self._closed_sets:
            for alive in self._modes_on_arrival(set(closed.tolist())):
                if (found := self._extend(closed, alive)) is not None:
                    return found
        return None

    def _extend(self, K: IntArray, alive: BoolArray) -> Deadlock | None:
        """Grow the smallest J and C around the closed set K; return None if it is not a deadlock.

        K, J and C are those of the module docstring; `alive` marks the modes not ruled out.
        """
        world, differ = self.world, self.world.acts_differently[self.m]
        C, J = np.zeros(len(self._pair_graph), bool), np.zeros(len(world.modes), bool)
        C[K] = J[[world.true, self.m]] = True
        pair_closed = [K]  # the closed sets of the pair within C
        while True:
            not_refuted = [~self._refuted[:, closed].any(1) for closed in pair_closed]
            J |= alive & np.any(not_refuted, axis=0)
            takes = world.takes(*np.flatnonzero(J).tolist())
            reached = can_reach(world.graph(takes).T, C)  # where the modes of J get to from C
            if (world.separates[self.m, reached] & takes[reached]).any():
                return None
            if (reached == C).all():
                break
            pair_closed, C = closed_within(self._pair_graph, reached), reached
        lasting = pair_closed  # the sets in which the agent may stay for ever
        if not all(differ[closed].any() for closed in pair_closed):
            # m* and m act alike in a closed set of the pair. It is still a deadlock if nothing in C
            # separates a mode of J from m*, so that all of J keep acting, and if m* and m act
            # differently in a set that J as a whole does not leave.
            if (world.separates[np.ix_(J, C)] & takes[C]).any():
                return None
            lasting = closed_within(world.graph(takes), C)
        conflicts = sorted({int(x) for closed in lasting for x in closed if differ[x]})
        return Deadlock(tuple(np.flatnonzero(J).tolist()), tuple(conflicts)) if conflicts else None

    def _modes_on_arrival(self, situations: set[int]) -> Iterator[BoolArray]:
        """Yield each set of modes not ruled out, m among them, on arrival in these situations.

        The search runs over pairs (situation, modes not ruled out), because modes that are ruled
        out no longer act. It stops after `MAX_SEARCHED` pairs, more than any usual class needs.
        """
        modes, (x_column, a_column, o_column) = self.world.modes, self.world.possible
        pending = [(modes.start, modes.prior > 0.0)]
        visited: set[tuple[int, bytes]] = set()
        yielded: set[bytes] = set()
        while pending and len(visited) < MAX_SEARCHED:
            x, alive = pending.pop()
            if (x, alive.tobytes()) in visited:
                continue
            visited.add((x, alive.tobytes()))
            if x in situations and alive.tobytes() not in yielded:
                yielded.add(alive.tobytes())
                yield alive
            takes = (modes.policy[alive, x] > 0.0).any(0)
            rows = slice(*np.searchsorted(x_column, (x, x + 1)))  # those of x: they are sorted
            for a, o in zip(a_column[rows].tolist(), o_column[rows].tolist(), strict=True):
                remaining = alive & (modes.by_mode[x, a, o] > 0.0)
                if takes[a] and remaining[self.m]:
                    pending.append((int(modes.successor[x, a, o]), remaining))
