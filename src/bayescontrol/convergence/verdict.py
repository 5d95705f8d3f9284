"""The verdict on a finite class: does the agent settle on the true mode's policy, whichever it is?

For every ordered pair of a true mode m* and another mode m:

    theorem     m ∉ [m*], or m acts like m*: the convergence theorem covers the pair
    settles     not covered, but m is refuted by its own policy or by the two taking turns, or it
                acts like m* wherever it is not refuted: its weight vanishes or does no harm
    undecided   none of these and no deadlock found: it depends on a third mode
    never       a deadlock: neither policy separates them and they act differently for ever

The first two are proofs. `never` proves that, with positive probability, m keeps its weight and
acts differently from m*: in at least one world the class does not settle, whatever the prior. (In
a single world several wrong modes may cancel, for example if one goes left and one right where the
true mode tosses a coin.) The verdict uses only the graph of situations. It holds for any prior
with the same support and a new mode at every step. For how long it takes see `settling`.
"""

import enum
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from bayescontrol._arrays import BoolArray
from bayescontrol.convergence.core import (
    BlindSpots,
    Deadlock,
    DivergenceRate,
    World,
    can_reach,
    divergence_rates,
    outside_core,
    policies_agree,
    reaches_separation,
)
from bayescontrol.errors import UnknownMode
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.finite.tabulate import tabulate


class Outcome(enum.IntEnum):
    """The outcome for a pair of modes, from best to worst; for a class, the worst of its pairs.

    >>> max(Outcome.THEOREM, Outcome.NEVER).name
    'NEVER'
    """

    THEOREM = 0
    SETTLES = 1
    UNDECIDED = 2
    NEVER = 3


class Reason(enum.Enum):
    """The reason for the outcome of a pair: its text, and the outcome that follows from it.

    >>> Reason.OUTSIDE_CORE.outcome.name
    'THEOREM'
    """

    outcome: Outcome
    _value_: str

    def __new__(cls, text: str, outcome: Outcome) -> "Reason":
        reason = object.__new__(cls)
        reason._value_, reason.outcome = text, outcome
        return reason

    OUTSIDE_CORE = "the true mode's policy refutes it", Outcome.THEOREM
    CONSISTENT = "it cannot be distinguished, and acts the same", Outcome.THEOREM
    OWN_POLICY = "its own policy refutes it", Outcome.SETTLES
    TURNS = "the two policies, taking turns, refute it", Outcome.SETTLES
    ALIKE_WHERE_BLIND = "it acts the same wherever it cannot be distinguished", Outcome.SETTLES
    THIRD_MODE = "neither proved nor refuted: it depends on a third mode", Outcome.UNDECIDED
    DEADLOCK = "neither policy distinguishes them, and they act differently", Outcome.NEVER


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """The verdict on mode `other` when `true` is true; situations and modes are indices.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> pair = check(prize_or_frog()).pair(0, 1)
    >>> pair
    PairVerdict(true 'prize left', other 'prize right': THEOREM, the true mode's policy refutes \
it)
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
        """Return the index of m*."""
        return self.world.true

    @property
    def outcome(self) -> Outcome:
        """Return the outcome that follows from the reason."""
        return self.reason.outcome

    @cached_property
    def differ(self) -> tuple[int, ...]:
        """Return the situations in which the true mode's policy separates the two."""
        return self._where(self.world.separated_by(self.world.takes(self.true))[self.other])

    @cached_property
    def differ_for_other(self) -> tuple[int, ...]:
        """Return the situations in which the other mode's policy separates the two."""
        return self._where(self.world.separated_by(self.world.takes(self.other))[self.other])

    @cached_property
    def act_differently(self) -> tuple[int, ...]:
        """Return the situations that can occur late and in which the policies differ."""
        return self._where(self.world.acts_differently[self.other] & self.world.late)

    @cached_property
    def conflicts(self) -> tuple[int, ...]:
        """Return the blind situations that can occur for ever and in which the policies differ."""
        return self._where(BlindSpots(self.world, self.other).conflicts)

    @cached_property
    def blind(self) -> tuple[int, ...]:
        """Return the situations from which the two, even taking turns, cannot be distinguished."""
        return self._where(BlindSpots(self.world, self.other).situations)

    @cached_property
    def rates(self) -> tuple[DivergenceRate, ...]:
        """Return how fast the true mode's policy refutes the other, per recurrent class."""
        return divergence_rates(self.world, self.other, self.true)

    @cached_property
    def rates_under_other(self) -> tuple[DivergenceRate, ...]:
        """Return how fast the other mode's own policy refutes it, per recurrent class."""
        return divergence_rates(self.world, self.other, self.other)

    def _where(self, marked: BoolArray) -> tuple[int, ...]:
        """Return the marked situations that can occur, as indices."""
        return tuple(np.flatnonzero(marked & self.world.reachable).tolist())

    def __repr__(self) -> str:
        name = self.world.modes.name
        return (
            f"PairVerdict(true {name(self.true)!r}, other {name(self.other)!r}: "
            f"{self.outcome.name}, {self.reason.value})"
        )


@dataclass(frozen=True, eq=False)
class Verdict:
    """The verdict on a class: a verdict for every ordered pair of modes with positive prior.

    >>> from bayescontrol.finite.examples import consistency_diagram
    >>> verdict = check(consistency_diagram())
    >>> verdict
    Verdict(NEVER: 2 modes, 2 pairs: 2 never)
    >>> verdict.to_blame
    (PairVerdict(true 'm1', other 'm2': NEVER, neither policy distinguishes them, \
and they act differently), ...)
    """

    modes: TabularModes
    pairs: tuple[PairVerdict, ...] = field(repr=False)

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of all pairs."""
        return max((pair.outcome for pair in self.pairs), default=Outcome.THEOREM)

    @property
    def settles(self) -> bool:
        """Return whether the agent is proved to settle, whichever mode is true."""
        return self.outcome <= Outcome.SETTLES

    @property
    def to_blame(self) -> tuple[PairVerdict, ...]:
        """Return the pairs for which the agent is not proved to settle, deadlocks first."""
        bad = [pair for pair in self.pairs if pair.outcome > Outcome.SETTLES]
        return tuple(sorted(bad, key=lambda pair: -pair.outcome))

    def count(self, outcome: Outcome) -> int:
        """Return the number of pairs with this outcome."""
        return sum(pair.outcome is outcome for pair in self.pairs)

    def pair(self, true: int | str, other: int | str) -> PairVerdict:
        """Return the verdict on one pair of modes, given by index or by name."""
        wanted = self.modes.place(true), self.modes.place(other)
        for pair in self.pairs:
            if (pair.true, pair.other) == wanted:
                return pair
        raise UnknownMode(f"no pair ({true}, {other}): use two different modes with positive prior")

    def __repr__(self) -> str:
        counts = [f"{self.count(o)} {o.name.lower()}" for o in Outcome if self.count(o)]
        return (
            f"Verdict({self.outcome.name}: {len(self.modes)} modes, "
            f"{len(self.pairs)} pairs: {', '.join(counts) or 'none'})"
        )


def check(modes: object, *, tolerance: float = 1e-12) -> Verdict:
    """Check whether the Bayesian control rule over this class settles on the true mode's policy.

    `modes` is anything that `tabulate` accepts: tables, a list of modes, or an agent. Modes with
    prior zero never act and are ignored. Numbers that differ by less than `tolerance`, relative to
    their size, count as equal.

    >>> from bayescontrol.finite.chain import chain
    >>> check(chain(3))
    Verdict(THEOREM: 2 modes, 2 pairs: 2 theorem)
    """
    tables = tabulate(modes)
    possible = np.flatnonzero(tables.prior > 0.0).tolist()
    found: dict[tuple[int, int], PairVerdict] = {}
    for true in possible:
        world = World(tables, true, tolerance=tolerance)
        outside, agree = outside_core(world), policies_agree(world)
        for m in possible:
            if m == true:
                continue
            reason, deadlock = Reason.CONSISTENT, None
            if outside[m]:
                reason = Reason.OUTSIDE_CORE
            elif not agree[m]:
                reason, deadlock = _check_inconsistent(world, m, reverse=found.get((m, true)))
            in_core, consistent = not outside[m], bool(outside[m] or agree[m])
            found[true, m] = PairVerdict(world, m, reason, in_core, consistent, deadlock)
    return Verdict(tables, tuple(found.values()))


def _check_inconsistent(
    world: World, m: int, reverse: PairVerdict | None
) -> tuple[Reason, Deadlock | None]:
    """Return the reason for a mode that is in the core and acts differently, and its deadlock.

    `reverse` is the verdict on m* in the world of m, if it is known.
    """
    if reverse is not None and reverse.deadlock is not None:
        # Where nothing separates two modes their worlds agree: they share the deadlock.
        return Reason.DEADLOCK, reverse.deadlock
    blind = BlindSpots(world, m)
    if reaches_separation(world, world.takes(m), m)[blind.reachable].all():
        return Reason.OWN_POLICY, None
    if not blind.situations.any():
        return Reason.TURNS, None
    if not blind.may_conflict:
        return Reason.ALIKE_WHERE_BLIND, None
    deadlock = blind.deadlock()
    return (Reason.THIRD_MODE, None) if deadlock is None else (Reason.DEADLOCK, deadlock)


#: If m is dropped in all of these runs, it is kept in at most 1 % of runs (95 % confidence).
RUNS_TO_DECIDE: Final = 300
#: Minimum number of steps in a row for which holding a mode is recommended.
_LONG_SEQUENCE: Final = 3
#: Pairs that settle because modes take turns; they may not settle if modes are held.
BY_TURNS: Final = (Reason.TURNS, Reason.ALIKE_WHERE_BLIND)


def advise(verdict: Verdict, most: int = 5) -> tuple[str, ...]:
    """Return at most `most` recommendations for this class, for the worst pairs first.

    >>> from bayescontrol.finite.chain import chain
    >>> advise(check(chain(4)))
    ('Hold a mode for 4 steps once it is drawn (schedule=Every(4)): then A refutes B from \
wherever the agent is, without interruption by another mode.',)
    """
    advice: dict[str, None] = {}
    advised: set[frozenset[int]] = set()
    for pair in verdict.to_blame:
        if frozenset((pair.true, pair.other)) not in advised:
            advised.add(frozenset((pair.true, pair.other)))
            advice.update(dict.fromkeys(advise_pair(pair)))
        if len(advice) >= most:
            break
    good = [pair for pair in verdict.pairs if pair.outcome <= Outcome.SETTLES]
    if good and not any(pair.reason in BY_TURNS for pair in good):
        advice.update(dict.fromkeys(_advice_to_hold(max(good, key=steps_in_a_row))))
    return tuple(advice)[:most]


def advise_pair(pair: PairVerdict) -> tuple[str, ...]:
    """Return recommendations for this pair.

    >>> from bayescontrol.finite.examples import consistency_diagram
    >>> for words in advise_pair(check(consistency_diagram()).pair(0, 1)):
    ...     print(words)
    Let m1 or m2 go to B0, where no mode goes, and take out now and then: each time gives 2.5 \
bits of evidence.
    Let m1 and m2 act alike in A0, A1 and A2: where nothing distinguishes them, nothing \
is gained by acting differently.
    """
    if pair.outcome is Outcome.NEVER:
        return _advice_for_deadlock(pair)
    if pair.outcome is Outcome.UNDECIDED:
        true, other = _names(pair)
        simulate = (
            f"Simulate the class for as long as the agent will run: if {other} is dropped in all "
            f"of {RUNS_TO_DECIDE} runs in the world of {true}, it is kept in at most 1 % of runs "
            "(at 95 % confidence)."
        )
        return (simulate, *_advice_to_act(pair))
    return _advice_to_hold(pair)


def _advice_to_hold(pair: PairVerdict) -> tuple[str, ...]:
    """Recommend to hold a mode if separating the pair takes several steps in a row."""
    steps = steps_in_a_row(pair)
    if steps < _LONG_SEQUENCE:
        return ()
    true, other = _names(pair)
    by_itself = pair.reason is Reason.OWN_POLICY
    effect = f"{other} refutes itself" if by_itself else f"{true} refutes {other}"
    return (
        f"Hold a mode for {steps} steps once it is drawn (schedule=Every({steps})): then {effect} "
        "from wherever the agent is, without interruption by another mode.",
    )


def steps_in_a_row(pair: PairVerdict) -> int:
    """Return the fewest consecutive steps of one policy that separate the two, in the worst case.

    The policy is the true mode's where it separates them, else the other's; 0 if neither does.
    Only starts count that the agent can reach before the other mode is ruled out.
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


def _advice_for_deadlock(pair: PairVerdict) -> tuple[str, ...]:
    """Recommend to merge the two modes, or to act, keep out of blind spots, or act alike."""
    true, other = _names(pair)
    if not pair.world.separates[pair.other].any():
        return (
            f"Merge {true} and {other}: they predict the same for every action, so keep one "
            "hypothesis with one policy.",
        )
    where = _in_situations(pair, pair.conflicts)
    return (
        *_advice_to_act(pair),
        *_advice_to_avoid_blind_situations(pair),
        f"Let {true} and {other} act alike{where}: where nothing distinguishes them, "
        "nothing is gained by acting differently.",
    )


def _advice_to_act(pair: PairVerdict) -> tuple[str, ...]:
    """Recommend the most informative action that neither mode takes, or nothing.

    It is looked for where the agent is stuck, and then wherever it can get to from there.
    """
    world, labels = pair.world, pair.world.modes.labels
    bits = world.divergence[pair.other] / math.log(2.0)
    untried = np.where(world.takes(pair.true, pair.other), 0.0, bits)
    stuck = _marked(world, pair.deadlock.situations if pair.deadlock else pair.blind)
    for where in (stuck, _reachable_from_all(world, stuck)):
        candidates = np.where(where[:, None], untried, 0.0)
        x, a = (int(i) for i in np.unravel_index(int(candidates.argmax()), candidates.shape))
        if candidates[x, a] == 0.0:
            continue
        action = labels.actions[a]
        proposal = f"take {action}{_in_situations(pair, (x,))} now and then"
        if not stuck[x]:
            unvisited = "" if world.reachable[x] else ", where no mode goes,"
            proposal = f"go to {labels.situations[x]}{unvisited} and take {action} now and then"
        effect = f"gives {candidates[x, a]:.2g} bits of evidence"
        if math.isinf(candidates[x, a]):
            effect = "may show at once which of them is wrong"
        true, other = _names(pair)
        return (f"Let {true} or {other} {proposal}: each time {effect}.",)
    return ()


def _advice_to_avoid_blind_situations(pair: PairVerdict) -> tuple[str, ...]:
    """Advise against the blind situations, if a mode may lead the agent into them.

    In a blind situation the two modes of the pair cannot be distinguished. Return no advice if the
    agent starts there.
    """
    world, is_blind = pair.world, _marked(pair.world, pair.blind)
    outside = np.flatnonzero(world.reachable & ~is_blind)
    leading_modes = [
        world.modes.name(m)
        for m in np.flatnonzero(world.modes.prior > 0.0).tolist()
        if world.graph(world.takes(m))[np.ix_(outside, is_blind)].any()
    ]
    if is_blind[world.modes.start] or not leading_modes:
        return ()
    blind_names = _phrase([world.modes.labels.situations[x] for x in pair.blind])
    return (f"Keep the agent out of {blind_names}: {_phrase(leading_modes)} may lead it there.",)


def _marked(world: World, situations: tuple[int, ...]) -> BoolArray:
    """Return an array [x]: whether x is one of these situations."""
    return np.isin(np.arange(len(world.any_mode_graph)), situations)


def _reachable_from_all(world: World, stuck: BoolArray) -> BoolArray:
    """Return the situations that can be reached by some actions from every stuck situation."""
    all_edges = world.graph(np.ones(world.modes.policy.shape[1:], bool))
    reached = [can_reach(all_edges.T, _marked(world, (x,))) for x in np.flatnonzero(stuck).tolist()]
    return np.asarray(np.all(reached, axis=0))


def _names(pair: PairVerdict) -> tuple[str, str]:
    """Return the names of the true mode and of the other."""
    return pair.world.modes.name(pair.true), pair.world.modes.name(pair.other)


def _in_situations(pair: PairVerdict, situations: tuple[int, ...]) -> str:
    """Return " in <situations>", or nothing if the class has a single situation."""
    labels = pair.world.modes.labels.situations
    return f" in {_phrase([labels[x] for x in situations])}" if len(labels) > 1 else ""


def _phrase(names: list[str], limit: int = 6) -> str:
    """Return the names as a phrase, such as "a, b and c", with at most `limit` names."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
