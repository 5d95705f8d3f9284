"""What would help: a better class of modes, or more patience with the one there is.

    merge        m and m* predict the same in every situation and for every action
    try a in x   neither does it, and there D(m*‖m) > 0: the most bits a try, nearest first
    keep out     some mode leads from where they can be told apart to where they cannot
    act alike    one policy for both wherever they might quarrel for ever
    hold         as many steps in a row as the policy that parts them needs from the worst x
    simulate     n runs in which m is dropped, none in which not: kept in at most 3/n, at 95 %

Drawing a new mode at every step, several steps in a row of one mode are rare where others would
leave the way. Holding has a price: what two modes do by turns they do no more.
"""

import math
from typing import Final

import numpy as np

from bayescontrol.arrays import BoolArray
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Reason, Verdict
from bayescontrol.convergence.worlds import World, can_reach

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
