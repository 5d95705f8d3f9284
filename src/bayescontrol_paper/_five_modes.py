"""Five modes, one of them true: two are refuted, two never are.

    three levers in two rooms     a win leads to room 1, a loss to room 0
    P(win | m, room, lever)       a hypothesis: six numbers
    policy                        always the same lever: m*, m3, m4 the first, m1 the second,
                                  m2 the third

m1 and m2 are wrong about the lever that m* pulls. m3 and m4 are right about it; they are wrong
about the levers of m1 and m2, which nobody pulls once those two are refuted.
"""

from typing import Final

import numpy as np

from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.plot.chart import Colour
from bayescontrol_paper._claims import Pilot
from bayescontrol_paper._diagrams import with_policy

MODES: Final = ("m*", "m1", "m2", "m3", "m4")
TRUE: Final = 0
#: The colours of the modes in figures.
COLOURS: Final[tuple[Colour, ...]] = ("ink", "vermillion", "orange", "blue", "green")

#: The joint weight of m1 and m2 in a pilot, by its number of steps:
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
#: The lever that each mode always pulls.
_LEVERS: Final = (0, 1, 2, 0, 0)


def five_modes(*numbers: int) -> TabularModes:
    """Return the five modes, or those with the given numbers, with a uniform prior.

    >>> from bayescontrol.convergence import check, core
    >>> modes = five_modes()
    >>> [modes.name(m) for m in core(modes, TRUE)], check(modes).outcome.name
    (['m*', 'm3', 'm4'], 'THEOREM')
    """
    chosen = list(numbers or range(len(MODES)))
    wins = np.array(_WINS)[chosen]  # [m, room, lever]
    rooms, levers = wins.shape[1:]
    policy = np.broadcast_to(np.eye(levers)[np.array(_LEVERS)[chosen], None], wins.shape)
    return TabularModes(
        policy, np.stack([1.0 - wins, wins], -1), np.broadcast_to(np.arange(2), (rooms, levers, 2)),
        names=[MODES[m] for m in chosen],
        labels=Labels(("room 0", "room 1"), ("first", "second", "third"), ("loss", "win")),
    )  # fmt: skip


def under_policy(policy: int) -> TabularModes:
    """Return the class in which m* is always in charge, with the policy of mode `policy`.

    m* has prior 1, so it is always drawn; the others only serve to compute evidence against them.
    """
    modes = five_modes()
    prior = np.arange(len(modes)) == TRUE
    return with_policy(modes, modes.policy[policy], prior=prior)
