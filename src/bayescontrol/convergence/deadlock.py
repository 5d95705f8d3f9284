"""Deadlocks: two modes that keep their weights for ever and disagree on what to do.

In the world of m* the ratio of the weights of m and m* converges, whatever happens. If m keeps its
weight, both act again and again, so the agent ends among the *blind spots*: the situations from
which the two, taking turns, never come to an action that parts them. Hence

    settled for sure     where they might stay among blind spots, alone or with others whom they
                         do not refute there, they act alike
    a deadlock           a set C of situations, among them K closed under the policies of both, with

        J   m*, m, and every mode that they do not refute wherever they can stay within C
        C   what J can reach from K; nothing that J does in C parts m from m*

Who is outside J is refuted by what m* and m do, soon enough never to act again with positive
probability; J stays in C, and m and m* are never told apart. It matters if they act differently
wherever the two alone can stay, or, should J be all alike in C, wherever J stays.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from bayescontrol.arrays import BoolArray, IntArray
from bayescontrol.convergence.core import reaches_parting
from bayescontrol.convergence.worlds import World, can_reach, closed_within

__all__ = ["BlindSpots", "Deadlock"]

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

    >>> from bayescontrol.problems.diagrams import consistency_diagram
    >>> modes = consistency_diagram()
    >>> spots = BlindSpots.of(World(modes, 0), 1)
    >>> [modes.labels.situations[x] for x in np.flatnonzero(spots.situations)]
    ['A0', 'A1', 'A2']
    >>> spots.may_disagree(), spots.deadlock().modes
    (True, (0, 1))
    """

    world: World
    m: int
    situations: BoolArray
    #: What is reachable before m is ruled out, and along which edges.
    reachable: BoolArray
    graph: BoolArray

    @classmethod
    def of(cls, world: World, m: int) -> "BlindSpots":
        """Those of m in this world."""
        graph, reachable = world.while_possible(m)
        parting = reaches_parting(world, world.takes(world.true, m), m)
        return cls(world, m, reachable & ~parting, reachable, graph)

    @cached_property
    def _together(self) -> BoolArray:
        return self.world.takes(self.world.true, self.m)

    @cached_property
    def _stays(self) -> list[IntArray]:
        """The blind spots among which the two alone would stay for ever."""
        return closed_within(self.world.graph(self._together), self.situations)

    def _lasting(self, stays: list[IntArray]) -> BoolArray:
        """The modes that the two do not refute in some of these places."""
        refuted = self.world.parted_by(self._together)
        unharmed = np.any([~refuted[:, stay].any(1) for stay in stays], axis=0)
        return np.asarray(unharmed & (self.world.modes.prior > 0.0))

    def may_disagree(self) -> bool:
        """Whether m and m* act differently where they and others might stay for ever.

        Where they stay they do not refute each other, nor whoever stays with them; and what
        recurs there can be left for, and come back from, a place where the two alone would stay.
        """
        apart = self.situations & self.world.acts_differently(self.m)
        for stay in self._stays:
            if apart[stay].any():
                return True
            lasting = np.flatnonzero(self._lasting([stay])).tolist()
            moves = self.world.graph(self.world.takes(*lasting)) & self.graph
            moves &= self.situations[:, None] & self.situations
            here = np.zeros(len(apart), bool)
            here[stay] = True
            if (can_reach(moves, here) & can_reach(moves.T, here) & apart).any():
                return True
        return False

    def deadlock(self) -> Deadlock | None:
        """A deadlock of m and m*; None if none is found."""
        for stay in self._stays:
            found = self._around(stay)
            if found is not None and _can_come(self.world, self.m, set(stay.tolist())):
                return found
        return None

    def _around(self, place: IntArray) -> Deadlock | None:
        """J and C, from K on; None if J parts m from m* or they do alike in the end."""
        world, apart = self.world, self.world.acts_differently(self.m)
        pair = world.graph(self._together)
        C, J = np.zeros(len(pair), bool), np.zeros(len(world.modes), bool)
        C[place] = J[[world.true, self.m]] = True
        stays = [place]
        while True:
            wider = J | self._lasting(stays)
            takes = world.takes(*np.flatnonzero(wider).tolist())
            reached = can_reach(world.graph(takes).T, C)
            if (world.separates[self.m, reached] & takes[reached]).any():
                return None
            done, J = (reached == C).all(), wider
            if done:
                break
            stays, C = closed_within(pair, reached), reached
        if not all(apart[stay].any() for stay in stays):
            if (world.separates[np.ix_(J, C)] & takes[C]).any():
                return None
            stays = [stay for stay in closed_within(world.graph(takes), C) if apart[stay].any()]
        where = sorted({int(x) for stay in stays for x in stay if apart[x]})
        return Deadlock(tuple(np.flatnonzero(J).tolist()), tuple(where)) if where else None


def _can_come(world: World, m: int, place: set[int]) -> bool:
    """Whether the agent can get there while m is not ruled out on the way.

    Who is ruled out acts no more: the search goes over situations and the modes still alive. It
    gives up, and says no, after so many that only an odd class of modes can need more.
    """
    x_, a_, o_ = world.possible
    alive = world.modes.prior > 0.0
    ahead = [(world.modes.start, alive)]
    seen: set[tuple[int, bytes]] = set()
    while ahead and len(seen) < SEARCHED:
        x, alive = ahead.pop()
        if x in place:
            return True
        if (x, alive.tobytes()) in seen:
            continue
        seen.add((x, alive.tobytes()))
        takes = (world.modes.policy[alive, x] > 0.0).any(0)
        first, last = np.searchsorted(x_, (x, x + 1))
        for a, o in zip(a_[first:last].tolist(), o_[first:last].tolist(), strict=True):
            left = alive & (world.modes.by_mode[x, a, o] > 0.0)
            if takes[a] and left[m]:
                ahead.append((int(world.modes.successor[x, a, o]), left))
    return False
