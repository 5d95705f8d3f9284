"""The core [m*]: the modes that m*'s own policy cannot tell from m*.

    m ∉ [m*]   iff   from every x in R, the policy of m* reaches, with positive probability, a
                     situation in which it may take an action that parts m from m*

A situation in which the two predict differently counts only if m* may take the action there: what
nobody does is not seen. R is what is reachable in the world of m* when any mode's policy may act,
for the others act most of the time. While m* keeps some weight it is drawn often enough in a row to
get there, again and again: the divergence d_t(m*‖m) grows without bound, the weight of m vanishes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from bayescontrol.arrays import BoolArray, IntArray
from bayescontrol.convergence.worlds import World, can_reach, closed_within, end_components
from bayescontrol.problems.tabular import TabularModes


def core(modes: TabularModes, true: int | str, *, tolerance: float = 1e-12) -> tuple[int, ...]:
    """[m*], as numbers of modes with weight; m* itself is always in it.

    In a grid of biases the core holds who agrees on the lever that m* pulls:

    >>> from bayescontrol.bandits.joint import bias_grid
    >>> modes = bias_grid(arms=2, levels=(0.2, 0.8))
    >>> [modes.name(m) for m in core(modes, 1)]
    ['(.2, .8)', '(.8, .8)']
    """
    outside = outside_core(World(modes, true, tolerance=tolerance))
    return tuple(np.flatnonzero(~outside & (modes.prior > 0.0)).tolist())


def outside_core(world: World) -> BoolArray:
    """m ∉ [m*], for every mode m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> outside_core(World(prize_or_frog(), true=0))
    array([False,  True])
    """
    takes = world.takes(world.true)
    reached = can_reach(world.graph(takes), world.parted_by(takes).T)
    return np.asarray(reached[world.reachable].all(0))


def reaches_parting(world: World, takes: BoolArray, m: int) -> BoolArray:
    """From which x the actions in `takes` lead to where they part m from m*.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> reaches_parting(World(prize_or_frog(), true=0), np.array([[True, False]]), 1)
    array([ True])
    """
    return can_reach(world.graph(takes), (world.separates[m] & takes).any(-1))


def consistent(
    modes: TabularModes, true: int | str, other: int | str, *, tolerance: float = 1e-12
) -> bool:
    """Whether `other` is consistent with `true`: outside its core, or acting as it does.

    >>> from bayescontrol.problems.examples import consistency_diagram, consistency_repaired
    >>> consistent(consistency_diagram(), 0, 1), consistent(consistency_repaired(), 0, 1)
    (False, True)
    """
    world = World(modes, true, tolerance=tolerance)
    m = modes.place(other)
    return bool(outside_core(world)[m] or policies_agree(world)[m])


def policies_agree(world: World) -> BoolArray:
    """Whether m acts as m* does wherever the agent can be late, for every mode m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> policies_agree(World(prize_or_frog(), true=0))
    array([ True, False])
    """
    own = world.modes.policy[world.true]
    apart = np.abs(world.modes.policy - own).max(-1) > world.tolerance
    return np.asarray(~apart[:, world.late].any(-1))


#: So many pairs (situation, modes alive) are searched for a way into a deadlock.
SEARCHED: Final = 20_000


@dataclass(frozen=True)
class Deadlock:
    """The modes that may stay, and the situations in which two of them act differently for ever.

    >>> Deadlock((0, 1), (2, 3)).modes
    (0, 1)
    """

    modes: tuple[int, ...]
    situations: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlindSpots:
    """The situations from which m and m*, taking turns, can never be told apart.

    Only those count to which the agent can come before m is ruled out.

    >>> from bayescontrol.problems.examples import consistency_diagram
    >>> modes = consistency_diagram()
    >>> spots = BlindSpots.of(World(modes, 0), 1)
    >>> [modes.labels.situations[x] for x in np.flatnonzero(spots.situations)]
    ['A0', 'A1', 'A2']
    >>> spots.may_quarrel, spots.deadlock().modes
    (True, (0, 1))
    """

    world: World
    m: int
    situations: BoolArray
    #: What is reachable before m is ruled out.
    reachable: BoolArray

    @classmethod
    def of(cls, world: World, m: int) -> "BlindSpots":
        """Those of m in this world."""
        reachable = world.reachable_while_possible(m)
        parting = reaches_parting(world, world.takes(world.true, m), m)
        return cls(world, m, reachable & ~parting, reachable)

    @cached_property
    def _together(self) -> BoolArray:
        return self.world.takes(self.world.true, self.m)

    @cached_property
    def _pair(self) -> BoolArray:
        return self.world.graph(self._together)

    @cached_property
    def _stays(self) -> list[IntArray]:
        return closed_within(self._pair, self.situations)

    @cached_property
    def _refuted(self) -> BoolArray:
        """What the two do in x is evidence against mode k, as an array [k, x]."""
        return self.world.parted_by(self._together)

    @cached_property
    def may_quarrel(self) -> bool:
        """Whether there is a situation that might occur for ever and in which they differ."""
        apart = self.world.acts_differently(self.m)
        # Where the two alone would stay they might for ever: no need to look at the others.
        return any(apart[stay].any() for stay in self._stays) or bool(self.quarrels.any())

    @cached_property
    def quarrels(self) -> BoolArray:
        """The situations that might occur for ever and in which m and m* act differently."""
        apart = self.situations & self.world.acts_differently(self.m)
        if not apart.any():
            return apart
        lasts = np.repeat((self.world.modes.prior > 0.0)[:, None], len(apart), axis=1)
        for stay in self._stays:
            here = np.zeros(len(apart), bool)
            here[stay] = True
            lasts[self._refuted[:, stay].any(1)] &= ~can_reach(self._pair, here)
        may = ((self.world.modes.policy > 0.0) & lasts[..., None]).any(0)
        may &= ~self.world.separates[self.m]
        return apart & end_components(self.world.edges, may, self._together, self.situations)

    def deadlock(self) -> Deadlock | None:
        """A deadlock of m and m*; None if none is found."""
        for stay in self._stays:
            for alive in self._arrivals(set(stay.tolist())):
                found = self._around(stay, alive)
                if found is not None:
                    return found
        return None

    def _around(self, stay: IntArray, alive: BoolArray) -> Deadlock | None:
        """J and C, from K on; None if J parts m from m* or they do alike in the end."""
        world, apart = self.world, self.world.acts_differently(self.m)
        C, J = np.zeros(len(self._pair), bool), np.zeros(len(world.modes), bool)
        C[stay] = J[[world.true, self.m]] = True
        stays = [stay]
        while True:
            J |= alive & np.any([~self._refuted[:, one].any(1) for one in stays], axis=0)
            takes = world.takes(*np.flatnonzero(J).tolist())
            reached = can_reach(world.graph(takes).T, C)
            if (world.separates[self.m, reached] & takes[reached]).any():
                return None
            if (reached == C).all():
                break
            stays, C = closed_within(self._pair, reached), reached
        if not all(apart[one].any() for one in stays):
            if (world.separates[np.ix_(J, C)] & takes[C]).any():
                return None
            stays = [one for one in closed_within(world.graph(takes), C) if apart[one].any()]
        where = sorted({int(x) for one in stays for x in one if apart[x]})
        return Deadlock(tuple(np.flatnonzero(J).tolist()), tuple(where)) if where else None

    def _arrivals(self, place: set[int]) -> Iterator[BoolArray]:
        """The modes still alive when the agent comes there, m among them, in every way it can.

        Who is ruled out acts no more: the search goes over situations and the modes alive. It
        gives up after so many that only an odd class of modes can need more.
        """
        modes, (x_, a_, o_) = self.world.modes, self.world.possible
        ahead = [(modes.start, modes.prior > 0.0)]
        seen: set[tuple[int, bytes]] = set()
        told: set[bytes] = set()
        while ahead and len(seen) < SEARCHED:
            x, alive = ahead.pop()
            if (x, alive.tobytes()) in seen:
                continue
            seen.add((x, alive.tobytes()))
            if x in place and alive.tobytes() not in told:
                told.add(alive.tobytes())
                yield alive
            takes = (modes.policy[alive, x] > 0.0).any(0)
            first, last = np.searchsorted(x_, (x, x + 1))
            for a, o in zip(a_[first:last].tolist(), o_[first:last].tolist(), strict=True):
                left = alive & (modes.by_mode[x, a, o] > 0.0)
                if takes[a] and left[self.m]:
                    ahead.append((int(modes.successor[x, a, o]), left))
