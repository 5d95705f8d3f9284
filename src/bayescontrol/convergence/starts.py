"""What a sample of starts shows of two modes, with some modes acting from there.

start     what any modes' policies, taking turns, come to in the world of m*
blind     a start from which n steps of the policies show no difference in prediction
silent    a blind start where the two act differently and ln(n/.05)/s steps show none
stuck     a silent one where none shows whoever acts
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bayescontrol.convergence.estimates import Rate, mean_rate
from bayescontrol.convergence.walks import Walk

#: So many blind starts are followed for long, to find one that stays silent whoever acts.
FOLLOWED = 5


class Plan(NamedTuple):
    """How many starts, how far from them, and what counts as rare and as slow.

    >>> Plan(60, 200, 50, rare=0.05, slow=0.001).patience
    7091
    """

    starts: int
    steps: int
    wander_steps: int
    rare: float
    slow: float

    @property
    def patience(self) -> int:
        """ln(n/.05)/s: a silence that evidence with a chance of s a step keeps nowhere in n."""
        return max(self.steps, math.ceil(math.log(self.starts / 0.05) / self.slow))


class Seen(NamedTuple):
    """What was seen from all starts, with some modes acting.

    >>> Seen(Rate(0.1, 0.01, 60, 200), blind=0, differ=True, silent=0, stuck=0).blind
    0
    """

    rate: Rate
    blind: int
    differ: bool
    #: Blind starts where the two disagree and stayed silent for long, if only they act.
    silent: int
    #: And of these, those where it stayed silent whoever acted.
    stuck: int


def look(walk: Callable[[int], Walk], who: Sequence[int], plan: Plan, base: int = 0) -> Seen:
    """Come to every start, let `who` act from there, and see what it tells.

    `walk(run)` gives a stream of its own for every run; runs are counted from `base`.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> def walk(run):
    ...     return Walk(list(modes), lambda m: modes.environment(m.m), 0, modes.advance, run=run)
    >>> look(walk, [0], Plan(20, 10, 5, rare=0.05, slow=0.001))
    Seen(rate=0.549 ± 0 nats a step (20 runs of 10 steps), blind=0, differ=True, silent=0, stuck=0)
    """
    nats: list[float] = []
    blind = silent = stuck = 0
    differ = False
    for run in range(plan.starts):
        here = walk(base + run)
        everyone = range(len(here.modes))
        t, late = 0, plan.wander_steps // 2
        for _ in here.turns(everyone, here.chance.integers(plan.wander_steps + 1)):
            t += 1
            differ = differ or (t > late and here.disagree())
        if here.ruled_out:
            continue
        total, parted, apart = 0.0, False, False
        for told in here.turns(who, plan.steps):
            t += 1
            total += told.nats
            parted |= told.parted
            apart = apart or (t > late and here.disagree())
        nats.append(total)
        differ |= apart
        if not parted and apart and len(who) > 1 and not stuck and silent < FOLLOWED:
            parted = any(told.parted for told in here.turns(who, plan.patience))
            silent += not parted
            # Only from where the pair is helpless does it matter what others do.
            stuck += not parted and not any(t.parted for t in here.turns(everyone, plan.patience))
        blind += not parted
    # If the other was ruled out on the way to nearly every start, nothing is faster.
    rate = mean_rate(np.array(nats if len(nats) > 1 else [math.inf]), plan.steps)
    return Seen(rate, blind, differ, silent, stuck)
