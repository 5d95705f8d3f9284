"""A controller with one true mode and four others: two are refuted, two never are.

    three levers in two rooms     a win leads to room 1, a loss to room 0
    P(win | m, room, lever)       a hypothesis: six numbers
    policy                        always the same lever: m*, m3, m4 the first, m1 the second,
                                  m2 the third

m1 and m2 are wrong about the lever that m* pulls. m3 and m4 are right about it; they are wrong
about the levers of m1 and m2, which nobody pulls once those two are out.
"""

from typing import Final

import numpy as np

from bayescontrol.experiments.chance import Pilot
from bayescontrol.problems.tabular import Labels, TabularModes

MODES: Final = ("m*", "m1", "m2", "m3", "m4")
TRUE: Final = 0

#: The weight of m1 and m2 together, by the number of steps after which it was measured, in a pilot:
#: bayescontrol run vanishing --seed 1000 --runs 1000, and the same with
#: --set steps=200 --set long_steps=500.
OUTSIDE: Final = {200: Pilot(0.0355, 0.140, 1000), 400: Pilot(0.0035, 0.0434, 1000)}

#: P(win | m, room, lever).
_WINS: Final = (
    ((0.60, 0.50, 0.40), (0.50, 0.50, 0.60)),
    ((0.40, 0.65, 0.40), (0.35, 0.60, 0.60)),
    ((0.60, 0.50, 0.65), (0.30, 0.50, 0.75)),
    ((0.60, 0.35, 0.60), (0.50, 0.50, 0.40)),
    ((0.60, 0.60, 0.40), (0.50, 0.35, 0.60)),
)
_LEVERS: Final = (0, 1, 2, 0, 0)


def controller(*kept: int) -> TabularModes:
    """The five modes, or those whose numbers are given; each as likely as the others.

    >>> from bayescontrol.convergence import check, core
    >>> modes = controller()
    >>> [modes.name(m) for m in core(modes, TRUE)], check(modes).outcome.name
    (['m*', 'm3', 'm4'], 'THEOREM')
    """
    chosen = list(kept or range(len(MODES)))
    wins = np.array(_WINS)[chosen]
    rooms, levers = wins.shape[1:]
    policy = np.broadcast_to(np.eye(levers)[np.array(_LEVERS)[chosen], None], wins.shape)
    return TabularModes(
        policy,
        np.stack([1.0 - wins, wins], -1),
        np.broadcast_to(np.arange(2), (rooms, levers, 2)),
        names=[MODES[m] for m in chosen],
        labels=Labels(("room 0", "room 1"), ("first", "second", "third"), ("loss", "win")),
    )


def alone(policy: int) -> TabularModes:
    """The same world with m* always in charge, acting as mode `policy` would.

    >>> modes = alone(policy=2)
    >>> modes.agent().action_probabilities(), modes.prior.tolist()
    ({0: 0.0, 1: 0.0, 2: 1.0}, [1.0, 0.0, 0.0, 0.0, 0.0])
    """
    all_modes = controller()
    return TabularModes(
        np.broadcast_to(all_modes.policy[policy], all_modes.policy.shape),
        all_modes.hypothesis,
        all_modes.successor,
        names=all_modes.names,
        prior=np.arange(len(all_modes)) == TRUE,
        labels=all_modes.labels,
    )
