"""The verdict on a finite class: does the agent settle on the right mode, whichever it is?

For every ordered pair, m* true and m another mode:

    theorem     m ∉ [m*], or m acts as m* does: the convergence theorem covers the pair
    settles     it does not, but m is refuted by its own policy, or by the two taking turns, or
                acts as m* does wherever it is not: the weight of m vanishes or does no harm
    undecided   none of these and no deadlock found: it hangs on a third mode
    never       a deadlock: neither policy parts them and they act differently, for ever

The first two are proofs. `never` is a proof that, with positive probability, m keeps its weight and
goes on acting unlike m*: in one world at least the class does not settle, whatever the prior. (In
one world alone several wrong modes may cancel: half of them left, half of them right, where the
true mode tosses a coin.) All from the graph of situations, for any prior with the same support and
a new mode at every step. How long it takes is another question: see `settling`.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayescontrol.arrays import BoolArray, FloatArray
from bayescontrol.convergence.consistency import policies_agree
from bayescontrol.convergence.core import outside_core, reaches_parting
from bayescontrol.convergence.deadlock import BlindSpots, Deadlock
from bayescontrol.convergence.rates import DivergenceRate, divergence_rates, mean_rates
from bayescontrol.convergence.worlds import World
from bayescontrol.errors import UnknownMode
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.problems.tabulate import tabulate


class Outcome(enum.IntEnum):
    """What becomes of a pair, from good to bad; of a class, the worst of its pairs.

    >>> max(Outcome.THEOREM, Outcome.NEVER).name
    'NEVER'
    """

    THEOREM = 0
    SETTLES = 1
    UNDECIDED = 2
    NEVER = 3


class Reason(enum.Enum):
    """Why.

    >>> Reason.OUTSIDE_CORE.outcome.name
    'THEOREM'
    """

    OUTSIDE_CORE = "the true mode's own policy refutes it"
    CONSISTENT = "it cannot be told apart, and acts the same"
    OWN_POLICY = "its own policy refutes it"
    TURNS = "the two policies, taking turns, refute it"
    ALIKE_WHERE_BLIND = "it acts the same wherever it cannot be told apart"
    THIRD_MODE = "neither proved nor refuted: it hangs on a third mode"
    DEADLOCK = "neither policy tells them apart, and they differ"

    @property
    def outcome(self) -> Outcome:
        """The outcome that follows."""
        return _OUTCOMES[self]


_OUTCOMES = {
    Reason.OUTSIDE_CORE: Outcome.THEOREM,
    Reason.CONSISTENT: Outcome.THEOREM,
    Reason.OWN_POLICY: Outcome.SETTLES,
    Reason.TURNS: Outcome.SETTLES,
    Reason.ALIKE_WHERE_BLIND: Outcome.SETTLES,
    Reason.THIRD_MODE: Outcome.UNDECIDED,
    Reason.DEADLOCK: Outcome.NEVER,
}


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """What becomes of mode `other` when `true` is true; situations and modes are numbers.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> pair = check(prize_or_frog()).pair(0, 1)
    >>> pair
    PairVerdict(true 'prize left', other 'prize right': THEOREM, the true mode's own policy \
refutes it)
    >>> pair.rates[0].situations, round(pair.rates[0].rate, 3)
    ((0,), 1.758)
    """

    world: World = field(repr=False)
    other: int
    reason: Reason
    in_core: bool
    consistent: bool
    deadlock: Deadlock | None = None

    @property
    def true(self) -> int:
        """m*."""
        return self.world.true

    @property
    def outcome(self) -> Outcome:
        """What the reason comes to."""
        return self.reason.outcome

    @cached_property
    def differ(self) -> tuple[int, ...]:
        """The situations in which the true mode's policy parts the two."""
        return self._where(self.world.parted_by(self.world.takes(self.true))[self.other])

    @cached_property
    def differ_for_other(self) -> tuple[int, ...]:
        """The situations in which the other mode's policy parts the two."""
        return self._where(self.world.parted_by(self.world.takes(self.other))[self.other])

    @cached_property
    def act_differently(self) -> tuple[int, ...]:
        """The situations that can occur late and in which the policies differ."""
        apart = self.world.acts_differently(self.other) & self.world.late
        return self._where(apart)

    @cached_property
    def quarrels(self) -> tuple[int, ...]:
        """The blind situations that might occur for ever and in which the policies differ."""
        return self._where(BlindSpots.of(self.world, self.other).quarrels)

    @cached_property
    def blind(self) -> tuple[int, ...]:
        """The situations from which neither, nor both taking turns, can part the two."""
        return self._where(BlindSpots.of(self.world, self.other).situations)

    @cached_property
    def rates(self) -> tuple[DivergenceRate, ...]:
        """How fast the true mode's own policy refutes the other, per recurrent class."""
        return divergence_rates(self.world, self.other, self.true)

    @cached_property
    def rates_under_other(self) -> tuple[DivergenceRate, ...]:
        """How fast the other mode's own policy refutes it, per recurrent class."""
        return divergence_rates(self.world, self.other, self.other)

    def _where(self, marked: BoolArray) -> tuple[int, ...]:
        return tuple(np.flatnonzero(marked & self.world.reachable).tolist())

    def __repr__(self) -> str:
        name = self.world.modes.name
        return (
            f"PairVerdict(true {name(self.true)!r}, other {name(self.other)!r}: "
            f"{self.outcome.name}, {self.reason.value})"
        )


@dataclass(frozen=True, eq=False)
class Verdict:
    """The verdict on a class: one for every ordered pair of modes with weight.

    >>> from bayescontrol.problems.examples import consistency_diagram
    >>> verdict = check(consistency_diagram())
    >>> verdict
    Verdict(NEVER: 2 modes, 2 pairs: 2 never)
    >>> verdict.to_blame
    (PairVerdict(true 'm1', other 'm2': NEVER, neither policy tells them apart, and they \
differ), ...)
    """

    modes: TabularModes
    pairs: tuple[PairVerdict, ...] = field(repr=False)

    @property
    def outcome(self) -> Outcome:
        """The worst over all pairs."""
        return max((pair.outcome for pair in self.pairs), default=Outcome.THEOREM)

    @property
    def settles(self) -> bool:
        """Whether the agent comes to act as the true mode does, for sure, whichever is true."""
        return self.outcome <= Outcome.SETTLES

    @property
    def to_blame(self) -> tuple[PairVerdict, ...]:
        """The pairs that keep it from settling, those in a deadlock first."""
        bad = [pair for pair in self.pairs if pair.outcome > Outcome.SETTLES]
        return tuple(sorted(bad, key=lambda pair: -pair.outcome))

    def count(self, outcome: Outcome) -> int:
        """The number of pairs with this outcome."""
        return sum(pair.outcome is outcome for pair in self.pairs)

    def pair(self, true: int | str, other: int | str) -> PairVerdict:
        """The verdict on one pair of modes, given by number or by name."""
        wanted = self.modes.place(true), self.modes.place(other)
        for pair in self.pairs:
            if (pair.true, pair.other) == wanted:
                return pair
        raise UnknownMode(
            f"no pair ({true}, {other}): give two different modes, each with a positive prior"
        )

    def core(self, true: int | str) -> tuple[int, ...]:
        """[m*], as numbers of modes with weight."""
        m = self.modes.place(true)
        inside = [pair.other for pair in self.pairs if pair.true == m and pair.in_core]
        return tuple(sorted([m, *inside]))

    def rates(self) -> FloatArray:
        """The rate of d_t(m*‖m) under the policy of m*, in nats a step, as an array [m*, m]."""
        worlds = {pair.true: pair.world for pair in self.pairs}
        table = np.zeros((len(self.modes), len(self.modes)))
        for true, world in worlds.items():
            table[true] = mean_rates(world, true)
        return table

    def __repr__(self) -> str:
        counts = [f"{self.count(o)} {o.name.lower()}" for o in Outcome if self.count(o)]
        return (
            f"Verdict({self.outcome.name}: {len(self.modes)} modes, "
            f"{len(self.pairs)} pairs: {', '.join(counts) or 'none'})"
        )


def check(modes: Any, *, tolerance: float = 1e-12) -> Verdict:
    """Will the Bayesian control rule over this class settle on the true mode's policy?

    `modes` are tables, or whatever `tabulate` makes tables of: a list of modes, an agent. Modes
    with prior zero never act and never matter. Numbers that differ by less than `tolerance`,
    relative to their size, count as equal.

    >>> from bayescontrol.problems.chain import chain
    >>> check(chain(3))
    Verdict(THEOREM: 2 modes, 2 pairs: 2 theorem)
    """
    tables = tabulate(modes)
    live = np.flatnonzero(tables.prior > 0.0).tolist()
    found: dict[tuple[int, int], PairVerdict] = {}
    for true in live:
        world = World(tables, true, tolerance=tolerance)
        found |= {(true, pair.other): pair for pair in _pairs(world, live, found)}
    return Verdict(tables, tuple(found.values()))


def _pairs(
    world: World, live: list[int], found: Mapping[tuple[int, int], PairVerdict]
) -> Iterator[PairVerdict]:
    outside, alike = outside_core(world), policies_agree(world)
    for m in live:
        if m == world.true:
            continue
        consistent = bool(outside[m] or alike[m])
        deadlock = None
        if outside[m]:
            reason = Reason.OUTSIDE_CORE
        elif alike[m]:
            reason = Reason.CONSISTENT
        else:
            # Where nothing parts two modes their worlds are one: a deadlock is one in both.
            twin = found.get((m, world.true))
            deadlock = twin.deadlock if twin is not None else None
            reason = Reason.DEADLOCK
            if deadlock is None:
                reason, deadlock = _inconsistent(world, m)
        yield PairVerdict(world, m, reason, not outside[m], consistent, deadlock)


def _inconsistent(world: World, m: int) -> tuple[Reason, Deadlock | None]:
    """m is in the core and acts differently: what then?"""
    blind = BlindSpots.of(world, m)
    if reaches_parting(world, world.takes(m), m)[blind.reachable].all():
        return Reason.OWN_POLICY, None
    if not blind.situations.any():
        return Reason.TURNS, None
    if not blind.may_quarrel:
        return Reason.ALIKE_WHERE_BLIND, None
    deadlock = blind.deadlock()
    return (Reason.THIRD_MODE, None) if deadlock is None else (Reason.DEADLOCK, deadlock)
