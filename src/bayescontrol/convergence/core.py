"""The core [m*]: the modes that m*'s own policy cannot tell from m*.

    m ∉ [m*]   iff   from every x in R, the policy of m* reaches, with positive probability, a
                     situation in which it may take an action that parts m from m*

A situation in which the two predict differently counts only if m* may take the action there: what
nobody does is not seen. R is what is reachable in the world of m* when any mode's policy may act,
for the others act most of the time. While m* keeps some weight it is drawn often enough in a row to
get there, again and again: the divergence d_t(m*‖m) grows without bound, the weight of m vanishes.
"""

import numpy as np

from bayescontrol.arrays import BoolArray
from bayescontrol.convergence.worlds import World, can_reach
from bayescontrol.problems.tabular import TabularModes


def core(modes: TabularModes, true: int | str, *, tolerance: float = 1e-12) -> tuple[int, ...]:
    """[m*], as numbers of modes with weight; m* itself is always in it.

    In a grid of biases the core holds who agrees on the lever that m* pulls:

    >>> from bayescontrol.bandits.joint import bias_grid
    >>> modes = bias_grid(arms=2, levels=(0.2, 0.8))
    >>> [modes.name(m) for m in core(modes, 1)]
    ['(.2, .8)', '(.8, .8)']
    """
    outside = outside_core(World(modes, true, tolerance=tolerance))
    return tuple(np.flatnonzero(~outside & (modes.prior > 0.0)).tolist())


def outside_core(world: World) -> BoolArray:
    """m ∉ [m*], for every mode m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> outside_core(World(prize_or_frog(), true=0))
    array([False,  True])
    """
    takes = world.takes(world.true)
    reached = can_reach(world.graph(takes), world.parted_by(takes).T)
    return np.asarray(reached[world.reachable].all(0))


def reaches_parting(world: World, takes: BoolArray, m: int) -> BoolArray:
    """From which x the actions in `takes` lead to where they part m from m*.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> reaches_parting(World(prize_or_frog(), true=0), np.array([[True, False]]), 1)
    array([ True])
    """
    return can_reach(world.graph(takes), (world.separates[m] & takes).any(-1))
