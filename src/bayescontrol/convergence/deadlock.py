"""Deadlocks: two modes that keep their weights for ever and disagree on what to do.

In the world of m* the ratio of the weights of m and m* converges, whatever happens. If m keeps its
weight, both act again and again, so the agent ends among the *blind spots*: the situations from
which the two, taking turns, never come to an action that parts them. Let I be the situations that
then occur for ever, and call *stay* a set of them that the two alone would not leave.

    both act in I for ever            so I is closed under their policies, and holds stays
    k acts in x ∈ I for ever          only if no stay that the two reach from x refutes k: else
                                      every visit to x may be followed by evidence against k,
                                      E √(w_k / w_m*) falls geometrically in the number of visits,
                                      and k acts there finitely often
    so I is an end component          of what may be done for ever, the pair's actions compulsory

Hence the agent settles for sure if m and m* act alike in every such component. Conversely a
*deadlock* is a stay K, to which the agent can come while the modes `alive` are, with

    J   m*, m and every mode alive that they do not refute in some stay within C
    C   what J can reach from K; nothing that J does in C parts m from m*

Who is outside J is refuted by what m* and m do wherever they stay: with positive probability soon
enough never to act again. Then J moves within C and m and m* are never told apart. They are in each
other's way if they act differently in every stay of C, or, should nothing in C part any of J, in a
place that J as a whole does not leave.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from bayescontrol.arrays import BoolArray, IntArray
from bayescontrol.convergence.core import reaches_parting
from bayescontrol.convergence.worlds import World, can_reach, closed_within, end_components

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
