"""The world of one mode as a graph of situations.

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

from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import BoolArray, FloatArray, IntArray, require_between
from bayescontrol.errors import InvalidPrior
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.mdp.planning import gain_and_bias, stationary_distribution
from bayescontrol.mdp.structure import closed_sets, strong_components
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
        allowed = self.modes.hypothesis[m, x, a, o] > 0.0
        if allowed.all():
            return self.reachable
        allowed &= self._any_mode_takes[x, a]
        x, a, o = x[allowed], a[allowed], o[allowed]
        edges = np.zeros_like(self.any_mode_graph)
        edges[x, self.modes.successor[x, a, o]] = True
        return self.from_start(edges)

    @cached_property
    def _any_mode_takes(self) -> BoolArray:
        return self.takes(*np.flatnonzero(self.modes.prior).tolist())

    @cached_property
    def any_mode_graph(self) -> BoolArray:
        """Return the edges x → y if any mode with positive prior may act."""
        return self.graph(self._any_mode_takes)

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
    return [where[inner] for inner in closed_sets(graph[np.ix_(where, where)])]


def on_a_cycle(graph: BoolArray, within: BoolArray) -> BoolArray:
    """Return the situations to which one can return without leaving `within`.

    >>> on_a_cycle(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], bool), np.ones(3, bool))
    array([False,  True,  True])
    """
    x, y, component = strong_components(graph & within[:, None] & within)
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
        _, _, component = strong_components(moves)
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
    """Return μ of each recurrent class, with the probability to end there from the start."""
    chain = np.einsum("xa,xay->xy", world.modes.policy[policy], world.transitions)
    chain /= chain.sum(-1, keepdims=True)  # rows of tables may be off by 1e-9
    no_reward = np.zeros((len(chain), 1))
    only_action = np.zeros(len(chain), np.int64)
    classes = stationary_distribution(MDP(chain[:, None], no_reward), only_action)
    if len(classes) == 1:
        return [(classes[0].probability, 1.0)]
    reached = []
    for recurrent in classes:
        inside = (recurrent.probability > 0.0).astype(np.float64)[:, None]
        gain = gain_and_bias(MDP(chain[:, None], inside), only_action).gain
        chance = float(gain[world.modes.start])
        if chance > 0.0:
            reached.append((recurrent.probability, min(chance, 1.0)))
    return reached
