"""How fast evidence comes: divergence rates of a mode under a fixed policy.

    G(x) = Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )        in nats, in situation x
    rate = Σ_x μ(x) G(x),    μ P_π = μ                                in nats a step

One rate for each recurrent class of the chain that π makes of the world of m*, with the chance
to end up there; periodic chains have one all the same, as an average over time. A rate is zero
where nothing can be told apart, and infinite where an observation that m rules out recurs.
"""

from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.worlds import World
from bayescontrol.mdp.planning import gain_and_bias, stationary_distribution
from bayescontrol.mdp.table import MDP


class DivergenceRate(NamedTuple):
    """Where a policy may end up, how likely, and what each step there tells, in nats.

    >>> DivergenceRate((0, 1), 1.0, 0.25).rate
    0.25
    """

    situations: tuple[int, ...]
    probability: float
    rate: float


def divergence_rates(world: World, other: int, policy: int) -> tuple[DivergenceRate, ...]:
    """The rates of d_t(m*‖m) for m = `other`, while mode `policy` acts; one per recurrent class.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> [only] = divergence_rates(World(prize_or_frog(0.75), true=0), other=1, policy=0)
    >>> only.situations, only.probability, round(only.rate, 4)
    ((0,), 1.0, 0.5493)
    """
    return tuple(
        DivergenceRate(
            tuple(np.flatnonzero(mu).tolist()), p, float(_average(mu, world, policy)[other])
        )
        for mu, p in _where_it_ends(world, policy)
    )


def mean_rates(world: World, policy: int) -> FloatArray:
    """The rate of d_t(m*‖m) while mode `policy` acts, from the start on average, for every m.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> mean_rates(World(prize_or_frog(0.75), true=0), policy=0).round(4)
    array([0.    , 0.5493])
    """
    ends = _where_it_ends(world, policy)
    return np.asarray(sum(p * _average(mu, world, policy) for mu, p in ends))


def _average(mu: FloatArray, world: World, policy: int) -> FloatArray:
    """Σ_x μ(x) G(x) for every mode; what never happens counts nothing, were it infinite."""
    weight = mu[:, None] * world.modes.policy[policy]
    x, a = np.nonzero(weight)
    return np.asarray(world.divergence[:, x, a] @ weight[x, a])


def _where_it_ends(world: World, policy: int) -> list[tuple[FloatArray, float]]:
    """μ of each recurrent class that can be entered from the start, and the chance to."""
    chain = np.einsum("xa,xay->xy", world.modes.policy[policy], world.transitions)
    chain /= chain.sum(-1, keepdims=True)  # the tables may be off by 1e-9, a chain may not
    still = np.zeros((len(chain), 1))
    here = np.zeros(len(chain), np.int64)
    classes = stationary_distribution(MDP(chain[:, None], still), here)
    if len(classes) == 1:
        return [(classes[0].probability, 1.0)]
    ends = []
    for one in classes:
        inside = (one.probability > 0.0).astype(np.float64)[:, None]
        chance = float(gain_and_bias(MDP(chain[:, None], inside), here).gain[world.modes.start])
        if chance > 0.0:
            ends.append((one.probability, min(chance, 1.0)))
    return ends
