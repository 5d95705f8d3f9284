"""Core, consistency and deadlocks: which pairs of modes the agent can distinguish.

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
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from bayescontrol._arrays import BoolArray, IntArray
from bayescontrol.convergence.worlds import World, can_reach, closed_within, end_components
from bayescontrol.finite.tabular import TabularModes


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
    """Return the x from which the actions in `takes` can lead to one that separates m from m*."""
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
        # lasting[k, x]: whether mode k may act in x for ever. acts[x, a]: whether such a mode takes
        # a in x, without separating m from m*.
        lasting = np.repeat((self.world.modes.prior > 0.0)[:, None], len(differ), axis=1)
        for closed in self._closed_sets:
            in_closed = np.isin(np.arange(len(differ)), closed)
            lasting[self._refuted[:, closed].any(1)] &= ~can_reach(self._pair_graph, in_closed)
        acts = ((self.world.modes.policy > 0.0) & lasting[..., None]).any(0)
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
        """Return the smallest J and C around the closed set K, or None if it is no deadlock."""
        world, differ = self.world, self.world.acts_differently[self.m]
        C, J = np.zeros(len(self._pair_graph), bool), np.zeros(len(world.modes), bool)
        C[K] = J[[world.true, self.m]] = True
        closed_sets = [K]
        while True:
            J |= alive & np.any([~self._refuted[:, K].any(1) for K in closed_sets], axis=0)
            takes = world.takes(*np.flatnonzero(J).tolist())
            reached = can_reach(world.graph(takes).T, C)
            if (world.separates[self.m, reached] & takes[reached]).any():
                return None
            if (reached == C).all():
                break
            closed_sets, C = closed_within(self._pair_graph, reached), reached
        if not all(differ[K].any() for K in closed_sets):
            if (world.separates[np.ix_(J, C)] & takes[C]).any():
                return None
            closed_sets = [K for K in closed_within(world.graph(takes), C) if differ[K].any()]
        conflicts = sorted({int(x) for K in closed_sets for x in K if differ[x]})
        return Deadlock(tuple(np.flatnonzero(J).tolist()), tuple(conflicts)) if conflicts else None

    def _modes_on_arrival(self, situations: set[int]) -> Iterator[BoolArray]:
        """Yield each set of modes not ruled out, m among them, on arrival in these situations.

        The search runs over pairs (situation, modes not ruled out), because modes that are ruled
        out no longer act. It stops after `MAX_SEARCHED` pairs, more than any usual class needs.
        """
        modes, (x_, a_, o_) = self.world.modes, self.world.possible
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
            first, last = np.searchsorted(x_, (x, x + 1))
            for a, o in zip(a_[first:last].tolist(), o_[first:last].tolist(), strict=True):
                remaining = alive & (modes.by_mode[x, a, o] > 0.0)
                if takes[a] and remaining[self.m]:
                    pending.append((int(modes.successor[x, a, o]), remaining))
