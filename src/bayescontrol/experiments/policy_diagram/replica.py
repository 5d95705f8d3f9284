"""One replica: P1, P2 and both by turns, each from a state at random.

    P1, P2     one policy acts for ever
    by turns   the control rule: the two modes have one hypothesis, so nothing is ever learnt, and
               at every step either policy acts with probability 1/2

What is kept: how often each state was visited in the second half, how often each transition was
taken, and when the subset that the policy selects was entered.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chains import acting, chain, path, shares
from bayescontrol.experiments.chance import FEW
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.problems.diagrams import policy_diagram
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.seeding import stream

BY_TURNS: Final = "by turns"
#: Who acts.
POLICIES: Final = ("P1", "P2", BY_TURNS)
#: Both modes have the same hypothesis: it does not matter whose world it is.
TRUE: Final = 0
#: Of so many steps it is kept whether they were inside the subset.
SHOWN: Final = 8
#: With fewer runs nothing is judged.
FEWEST: Final = 20


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().steps
    2000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[
        int, msgspec.Meta(ge=200, description="steps in a replica; the second half is counted")
    ] = 2000


@cache
def modes() -> TabularModes:
    """The class whose diagram is drawn.

    >>> len(modes().labels.situations)
    8
    """
    return policy_diagram()


@cache
def law(who: str) -> FloatArray:
    """P(a | x) of one of POLICIES.

    >>> law("by turns")[0]
    array([0.5, 0.5])
    """
    if who == BY_TURNS:
        return np.asarray(np.einsum("m,mxa->xa", modes().prior, modes().policy))
    return np.asarray(modes().policy[POLICIES.index(who)])


@cache
def spent(who: str) -> FloatArray:
    """μ: the exact share of the time that is spent in each state.

    >>> spent("P2").round(4).tolist()
    [0.0, 0.0, 0.0, 0.3478, 0.1739, 0.2609, 0.2174, 0.0]
    """
    return shares(chain(modes(), law(who), TRUE))


def selected(who: str) -> tuple[int, ...]:
    """The subset of the states that a policy selects: the support of μ.

    >>> selected("P1"), selected("P2"), len(selected("by turns"))
    ((0, 1, 2, 3), (3, 4, 5, 6), 8)
    """
    return tuple(np.flatnonzero(spent(who)).tolist())


@cache
def _class(who: str, start: int) -> TabularModes:
    own = modes().policy if who == BY_TURNS else law(who)
    return acting(modes(), own, start)


def run(settings: Settings, i: int) -> Columns:
    """Each of POLICIES for so many steps.

    >>> columns = run(Settings(steps=200), 0)
    >>> columns["visits"].sum(axis=1)
    array([100, 100, 100])
    """
    states = len(modes().labels.situations)
    start = stream(settings.seed, i, "start").integers(states)
    visits, moves, inside = [], [], []
    for k, who in enumerate(POLICIES):
        same = _class(who, int(start))
        agent, world = same.agent(), same.environment(TRUE)
        # P1 and P2 mirror each other: with the same luck they would be one run.
        own = len(POLICIES) * i + k
        record = interact(agent, world, settings.steps, seed=settings.seed, run=own)
        seen = path(same, record)
        late = seen[-(settings.steps // 2) :]
        visits.append(np.bincount(late, minlength=states))
        pairs = np.bincount(states * seen[:-1] + seen[1:], minlength=states**2)
        moves.append(pairs.reshape(states, states))
        inside.append(np.isin(seen[: SHOWN + 1], selected(who)))
    return {
        "start": np.array(int(start)),
        "visits": np.stack(visits),
        "moves": np.stack(moves),
        "inside": np.stack(inside),
    }
