"""Consistency: modes that cannot be told apart must act alike.

    m is consistent with m*   iff   m ∈ [m*] implies P(a | m, x) = P(a | m*, x) for all a and every
                                    x in R that can occur arbitrarily late

Our reading: the paper lets the difference vanish as t → ∞ on every history; with finitely many
situations it must be zero on each that can still occur then. What occurs early only, such as a
start that is never seen again, does not matter.
"""

import numpy as np

from bayescontrol.arrays import BoolArray
from bayescontrol.convergence.core import outside_core
from bayescontrol.convergence.worlds import World
from bayescontrol.problems.tabular import TabularModes


def consistent(
    modes: TabularModes, true: int | str, other: int | str, *, tolerance: float = 1e-12
) -> bool:
    """Whether `other` is consistent with `true`: outside its core, or acting as it does.

    >>> from bayescontrol.problems.examples import consistency_diagram, consistency_repaired
    >>> consistent(consistency_diagram(), 0, 1), consistent(consistency_repaired(), 0, 1)
    (False, True)
    """
    world = World(modes, true, tolerance=tolerance)
    m = modes.place(other)
    return bool(outside_core(world)[m] or policies_agree(world)[m])


def policies_agree(world: World) -> BoolArray:
    """Whether m acts as m* does wherever the agent can be late, for every mode m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> policies_agree(World(prize_or_frog(), true=0))
    array([ True, False])
    """
    own = world.modes.policy[world.true]
    apart = np.abs(world.modes.policy - own).max(-1) > world.tolerance
    return np.asarray(~apart[:, world.late].any(-1))
