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
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import BoolArray, FloatArray
from bayescontrol.convergence.core import (
    BlindSpots,
    Deadlock,
    outside_core,
    policies_agree,
    reaches_parting,
)
from bayescontrol.convergence.worlds import (
    DivergenceRate,
    World,
    can_reach,
    divergence_rates,
    mean_rates,
)
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


#: So many runs without a stuck one bound the chance of being stuck by one percent, at 95 %.
RUNS_THAT_DECIDE: Final = 300
#: From so many steps in a row on, holding a mode is worth a word.
_LONG: Final = 3
#: Pairs that settle because modes take turns: holding a mode may keep them from it.
BY_TURNS: Final = (Reason.TURNS, Reason.ALIKE_WHERE_BLIND)


def advise(verdict: Verdict, most: int = 5) -> tuple[str, ...]:
    """What would help this class, the worst pairs first; at most so many sentences.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.chain import chain
    >>> advise(check(chain(4)))
    ('Hold a mode for 4 steps once it is drawn (schedule=Every(4)): then A refutes B from \
wherever the agent is, without another mode to break in.',)
    """
    said: dict[str, None] = {}
    both: set[frozenset[int]] = set()
    for pair in verdict.to_blame:
        if frozenset((pair.true, pair.other)) not in both:
            both.add(frozenset((pair.true, pair.other)))
            said.update(dict.fromkeys(advise_pair(pair)))
        if len(said) >= most:
            break
    good = [pair for pair in verdict.pairs if pair.outcome <= Outcome.SETTLES]
    if not any(pair.reason in BY_TURNS for pair in good):
        slowest = max(good, key=steps_in_a_row, default=None)
        said.update(dict.fromkeys(_hold(slowest) if slowest is not None else ()))
    return tuple(said)[:most]


def advise_pair(pair: PairVerdict) -> tuple[str, ...]:
    """What would help this pair.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.examples import consistency_diagram
    >>> for words in advise_pair(check(consistency_diagram()).pair(0, 1)):
    ...     print(words)
    Let m1 or m2 go to B0, where no mode goes, and do out now and then: each time is worth 2.5 \
bits of evidence.
    Let m1 and m2 act alike in A0, A1 and A2: where nothing tells them apart, nothing is \
gained by acting differently.
    """
    if pair.outcome is Outcome.NEVER:
        return _never(pair)
    if pair.outcome is Outcome.UNDECIDED:
        return (_simulate(pair), *_try_something(pair))
    return _hold(pair)


def _simulate(pair: PairVerdict) -> str:
    true, other = _names(pair)
    return (
        f"Simulate, for as long as the agent will run: {RUNS_THAT_DECIDE} runs in the world of "
        f"{true} in which {other} is dropped, and none in which it is not, say that it is kept in "
        "at most 1 % (at 95 % confidence)."
    )


def _hold(pair: PairVerdict) -> tuple[str, ...]:
    steps = steps_in_a_row(pair)
    if steps < _LONG:
        return ()
    true, other = _names(pair)
    who = (
        f"{other} refutes itself" if pair.reason is Reason.OWN_POLICY else f"{true} refutes {other}"
    )
    return (
        f"Hold a mode for {steps} steps once it is drawn (schedule=Every({steps})): then {who} "
        "from wherever the agent is, without another mode to break in.",
    )


def steps_in_a_row(pair: PairVerdict) -> int:
    """The fewest steps in a row of one policy that part the two, from the worst situation.

    Of the true mode's policy where that parts them, else of the other's; 0 if neither does.
    Situations count in which the agent can be before the other mode is ruled out.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> steps_in_a_row(check(prize_or_frog()).pair(0, 1))
    1
    """
    world = pair.world
    acting = {Reason.OUTSIDE_CORE: pair.true, Reason.OWN_POLICY: pair.other}.get(pair.reason)
    if acting is None:
        return 0
    takes = world.takes(acting)
    edges, where = world.graph(takes), world.reachable_while_possible(pair.other)
    reached: BoolArray = np.asarray((world.separates[pair.other] & takes).any(-1))
    steps = 1
    while not reached[where].all():
        reached, steps = reached | (edges & reached).any(1), steps + 1
    return steps


def _never(pair: PairVerdict) -> tuple[str, ...]:
    true, other = _names(pair)
    if not pair.world.separates[pair.other].any():
        return (
            f"Merge {true} and {other}: they predict the same whatever is done. One hypothesis, "
            "one policy.",
        )
    where = _in(pair, pair.quarrels)
    return (
        *_try_something(pair),
        *_keep_out(pair),
        f"Let {true} and {other} act alike{where}: where nothing tells them apart, nothing is "
        "gained by acting differently.",
    )


def _try_something(pair: PairVerdict) -> tuple[str, ...]:
    """The action that would part the two best, where they are or where they can get from there."""
    world, labels = pair.world, pair.world.modes.labels
    bits = world.divergence[pair.other] / math.log(2.0)
    untried = np.where(world.takes(pair.true, pair.other), 0.0, bits)
    stuck = _marked(world, pair.deadlock.situations if pair.deadlock else pair.blind)
    for where in (stuck, _from_all(world, stuck)):
        best = np.where(where[:, None], untried, 0.0)
        x, a = (int(i) for i in np.unravel_index(int(best.argmax()), best.shape))
        if best[x, a] == 0.0:
            continue
        what = f"do {labels.actions[a]}{_in(pair, (x,))} now and then"
        if not stuck[x]:
            nobody = "" if world.reachable[x] else ", where no mode goes,"
            what = f"go to {labels.situations[x]}{nobody} and do {labels.actions[a]} now and then"
        tells = f"is worth {best[x, a]:.2g} bits of evidence"
        if math.isinf(best[x, a]):
            tells = "may show at once which of them is wrong"
        true, other = _names(pair)
        return (f"Let {true} or {other} {what}: each time {tells}.",)
    return ()


def _keep_out(pair: PairVerdict) -> tuple[str, ...]:
    """Who leads from where the two can be told apart to where they cannot."""
    world, blind = pair.world, _marked(pair.world, pair.blind)
    outside = np.flatnonzero(world.reachable & ~blind)
    leads = [
        world.modes.name(m)
        for m in np.flatnonzero(world.modes.prior > 0.0).tolist()
        if world.graph(world.takes(m))[np.ix_(outside, blind)].any()
    ]
    if blind[world.modes.start] or not leads:
        return ()
    places = _list([world.modes.labels.situations[x] for x in pair.blind])
    return (f"Keep the agent out of {places}: {_list(leads)} may lead it there.",)


def _marked(world: World, situations: tuple[int, ...]) -> BoolArray:
    marked = np.zeros(len(world.anyone), bool)
    marked[list(situations)] = True
    return marked


def _from_all(world: World, stuck: BoolArray) -> BoolArray:
    """What some sequence of actions can reach in this world from each of these situations."""
    everything = world.graph(np.ones(world.modes.policy.shape[1:], bool))
    ways = [can_reach(everything.T, _marked(world, (x,))) for x in np.flatnonzero(stuck).tolist()]
    return np.asarray(np.all(ways, axis=0))


def _names(pair: PairVerdict) -> tuple[str, str]:
    return pair.world.modes.name(pair.true), pair.world.modes.name(pair.other)


def _in(pair: PairVerdict, situations: tuple[int, ...]) -> str:
    """Where, unless there is but one place to be."""
    labels = pair.world.modes.labels.situations
    return f" in {_list([labels[x] for x in situations])}" if len(labels) > 1 else ""


def _list(places: list[str], most: int = 6) -> str:
    if len(places) > most:
        return f"{', '.join(places[:most])} and {len(places) - most} more"
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
