"""What would help: a better class of modes, or more patience with the one there is.

    merge        m and m* predict the same in every situation and for every action
    try a in x   neither does it, and there D(m*‖m) > 0: the most bits a try, nearest first
    keep out     some mode leads from where they can be told apart to where they cannot
    act alike    one policy for both wherever they cannot be told apart
    hold         as many steps in a row as the policy that parts them needs from the worst x in R
    simulate     n runs without a stuck one bound the chance of being stuck by 3/n, at 95 %

Drawing a new mode at every step, several steps in a row of one mode are rare where others would
leave the way.
"""

import math
from typing import Final

import numpy as np

from bayescontrol.arrays import BoolArray
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Reason, Verdict
from bayescontrol.convergence.worlds import World

__all__ = ["RUNS_THAT_DECIDE", "advise", "advise_pair", "steps_in_a_row"]

#: So many runs without a stuck one bound the chance of being stuck by one percent, at 95 %.
RUNS_THAT_DECIDE: Final = 300
#: From so many steps in a row on, holding a mode is worth a word.
_LONG: Final = 3


def advise(verdict: Verdict, most: int = 5) -> tuple[str, ...]:
    """What would help this class, the worst pairs first; at most so many sentences.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.chain import chain
    >>> advise(check(chain(4)))
    ('Hold a mode for 4 steps once it is drawn (schedule=Every(4)): so many in a row are needed \
until A can refute B.',)
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
    slowest = max(good, key=steps_in_a_row, default=None)
    if slowest is not None:
        said.update(dict.fromkeys(advise_pair(slowest)))
    return tuple(said)[:most]


def advise_pair(pair: PairVerdict) -> tuple[str, ...]:
    """What would help this pair.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.diagrams import consistency_diagram
    >>> for words in advise_pair(check(consistency_diagram()).pair(0, 1)):
    ...     print(words)
    Let m1 or m2 visit B0 now and then, where no mode goes, and do out: each time is worth 2.5 \
bits of evidence.
    Or let m1 and m2 act alike in A0, A1 and A2: where nothing tells them apart, nothing is \
gained by acting differently.
    """
    if pair.outcome is Outcome.NEVER:
        return _never(pair)
    name = pair.world.modes.name
    if pair.outcome is Outcome.UNDECIDED:
        return (
            f"Simulate: {RUNS_THAT_DECIDE} runs in the world of {name(pair.true)} in which "
            f"{name(pair.other)} loses its weight, and none in which it keeps it, bound the chance "
            "of never settling by 1 % (at 95 % confidence).",
            *_try_something(pair),
        )
    steps = steps_in_a_row(pair)
    acts, loses = name(pair.true), name(pair.other)
    if pair.reason is Reason.OWN_POLICY:
        acts = loses
    if steps < _LONG:
        return ()
    return (
        f"Hold a mode for {steps} steps once it is drawn (schedule=Every({steps})): so many in a "
        f"row are needed until {acts} can refute {loses if acts != loses else 'itself'}.",
    )


def steps_in_a_row(pair: PairVerdict) -> int:
    """The fewest steps in a row of one policy that part the two, from the worst situation.

    Of the true mode's policy where that parts them, else of the other's; 0 if neither does.

    >>> from bayescontrol.convergence.verdict import check
    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> steps_in_a_row(check(prize_or_frog()).pair(0, 1))
    1
    """
    world = pair.world
    acting = {Reason.OUTSIDE_CORE: pair.true, Reason.OWN_POLICY: pair.other}.get(pair.reason)
    if acting is None:
        return 0
    takes = world.takes(acting)
    edges = world.graph(takes)
    reached: BoolArray = np.asarray((world.separates[pair.other] & takes).any(-1))
    steps = 1
    while not reached[world.reachable].all():
        wider = reached | (edges & reached).any(1)
        if (wider == reached).all():  # the rest is reached only after m is ruled out
            break
        reached, steps = wider, steps + 1
    return steps


def _never(pair: PairVerdict) -> tuple[str, ...]:
    world, name = pair.world, pair.world.modes.name
    true, other = name(pair.true), name(pair.other)
    if not world.separates[pair.other].any():
        return (
            f"Merge {true} and {other}: they predict the same whatever is done. One hypothesis, "
            "one policy.",
        )
    situations = pair.deadlock.situations if pair.deadlock else ()
    places = [world.modes.labels.situations[x] for x in situations]
    return (
        *_try_something(pair),
        *_keep_out(pair),
        f"Or let {true} and {other} act alike in {_list(places)}: where nothing tells them apart, "
        "nothing is gained by acting differently.",
    )


def _try_something(pair: PairVerdict) -> tuple[str, ...]:
    """The action that would part the two best, where they are or near it."""
    world, labels = pair.world, pair.world.modes.labels
    name = world.modes.name
    bits = world.divergence[pair.other] / math.log(2.0)
    untried = np.where(world.takes(pair.true, pair.other), 0.0, bits)
    where_stuck = _stuck(pair)
    for where in (where_stuck, world.reachable, _anywhere(world)):
        best = np.where(where[:, None], untried, 0.0)
        x, a = (int(i) for i in np.unravel_index(int(best.argmax()), best.shape))
        if best[x, a] > 0.0:
            tells = (
                "shows at once which is right, if what one of them rules out is seen"
                if math.isinf(best[x, a])
                else f"is worth {best[x, a]:.2g} bits of evidence"
            )
            place, action = labels.situations[x], labels.actions[a]
            what = f"do {action} in {place} now and then"
            if not world.reachable[x]:
                what = f"visit {place} now and then, where no mode goes, and do {action}"
            elif not where_stuck[x]:
                what = f"go to {place} and do {action} now and then"
            return (f"Let {name(pair.true)} or {name(pair.other)} {what}: each time {tells}.",)
    return ()


def _keep_out(pair: PairVerdict) -> tuple[str, ...]:
    """Who leads from where the two can be told apart to where they cannot."""
    world, blind = pair.world, np.zeros(len(pair.world.anyone), bool)
    blind[list(pair.blind)] = True
    outside = np.flatnonzero(world.reachable & ~blind)
    if not outside.size:
        return ()
    leads = [
        world.modes.name(m)
        for m in np.flatnonzero(world.modes.prior > 0.0).tolist()
        if world.graph(world.takes(m))[np.ix_(outside, blind)].any()
    ]
    places = _list([world.modes.labels.situations[x] for x in pair.blind])
    return (f"Or keep the agent out of {places}: {_list(leads)} may lead it there.",)


def _stuck(pair: PairVerdict) -> BoolArray:
    marked = np.zeros(len(pair.world.anyone), bool)
    marked[list(pair.deadlock.situations if pair.deadlock else pair.blind)] = True
    return marked


def _anywhere(world: World) -> BoolArray:
    """What any sequence of actions can reach in this world."""
    everything = world.graph(np.ones(world.modes.policy.shape[1:], bool))
    return world.from_start(everything)


def _list(places: list[str], most: int = 6) -> str:
    if len(places) > most:
        return f"{', '.join(places[:most])} and {len(places) - most} more"
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
