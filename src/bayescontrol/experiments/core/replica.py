"""One replica: evidence for H1, which is true, under fixed policies, in spells, and by the rule.

    d_t(H1‖H2), d_t(H1‖H3)     while only P1 or only P2 acts, and while the control rule does
    spells of P1               d_t(H1‖H2) at the end, P1 for k steps and P2 for one, by turns
    P(m | âo_≤t)               of the rule, and of the rule that holds each mode for a while

The hypotheses are those of `problems.diagrams.core_diagram`.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.arrays import IntArray
from bayescontrol.convergence.divergence import divergences
from bayescontrol.experiments.chains import acting
from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.core.exact import spells
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.problems.diagrams import core_diagram
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.schedules import Every

#: With fewer runs nothing is judged: what holding a mode gains is small beside its spread.
FEWEST: Final = 300
TRUE: Final = 0
#: H2 and H3, held against H1.
OTHERS: Final = (1, 2)
RULE: Final = "the rule"
#: Who acts while the divergences are recorded step by step.
WHO: Final = ("only P1", "only P2", RULE)
#: Lengths of the spells of P1.
SPELLS: Final = (1, 2, 3, 4, 5, 6)
#: How long a mode is held: long enough for P1 to enter B and to look around.
HELD: Final = 4


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().watched
    60
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[
        int, msgspec.Meta(ge=300, description="steps of the control rule, for its weights")
    ] = 3000
    watched: Annotated[
        int, msgspec.Meta(ge=12, description="steps of which every divergence is kept")
    ] = 60
    held_steps: Annotated[
        int, msgspec.Meta(ge=150, le=300, description="steps of the rule that holds its modes")
    ] = 200


@cache
def modes() -> TabularModes:
    """Three hypotheses with their policies, m1, m2 and m3.

    >>> [modes().name(m) for m in range(3)]
    ['m1', 'm2', 'm3']
    """
    return core_diagram()


@cache
def acts(who: str) -> TabularModes:
    """The class in which so-and-so acts, whatever is believed.

    >>> acts("only P2").agent().action_probabilities()
    {0: 0.0, 1: 1.0}
    """
    return modes() if who == RULE else acting(modes(), modes().policy[WHO.index(who)])


@cache
def spell(k: int) -> TabularModes:
    """The class in which P1 acts for k steps and P2 for one, by turns.

    >>> len(spell(2).labels.situations)
    18
    """
    return spells(modes(), k)


def times(last: int) -> IntArray:
    """Steps at which weights are kept: about forty up to the last, ever further apart.

    >>> times(300)[[0, 1, 2, -1]].tolist()
    [1, 2, 3, 300]
    """
    return np.unique(np.geomspace(1, last, 48).round().astype(np.int64))


def run(settings: Settings, i: int) -> Columns:
    """Everything that chance decides.

    >>> columns = run(Settings(steps=300), 0)
    >>> columns["divergence"].shape, columns["spells"].shape
    ((3, 61, 2), (6,))
    """
    seed, watched = settings.seed, settings.watched
    divergence = []
    for who in WHO:
        same = acts(who)
        steps = settings.steps if who == RULE else watched
        record = interact(same.agent(), same.environment(TRUE), steps, seed=seed, run=i)
        read = divergences(record, same.agent())
        divergence.append(np.stack([read.of(TRUE, m)[: watched + 1] for m in OTHERS], axis=1))
    last = []
    for k in SPELLS:
        same = spell(k)
        record = interact(same.agent(), same.environment(TRUE), watched, seed=seed, run=i)
        last.append(divergences(record, same.agent()).of(TRUE, OTHERS[0])[-1])
    agent = modes().agent(schedule=Every(HELD))
    held = interact(agent, modes().environment(TRUE), settings.held_steps, seed=seed, run=i)
    return {
        "divergence": np.stack(divergence),
        "spells": np.array(last),
        "weights": read.posterior[times(settings.steps)],
        "held": divergences(held, modes().agent()).posterior[times(settings.held_steps)],
    }
