"""What the divergence processes of the controller do in the long run, without chance.

    rate       Σ_x μ(x) Σ_a π(a | x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) )      nats a step
    spread     σ² = Σ_x μ(x) Var( ln P(o | m*, x, a) / P(o | m, x, a) )          a ~ π, o ~ m*
    C_t        σ (z √t - 0.583),   z = Φ⁻¹(1 - δ/4)          sup_{τ≤t} |g - G| ≤ C_t in 1 - δ

g - G is a random walk with steps of variance σ². Where |W| of Brownian motion first passes c the
reflection principle gives P(sup_{τ≤t} |W_τ| > c) = 4 (1 - Φ(c/√t)), up to 1e-10 at δ = 5 %; a walk
overshoots its boundary by 0.583 σ on average.
"""

import math
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.rates import mean_rates
from bayescontrol.convergence.worlds import World
from bayescontrol.experiments.chains import chain, shares
from bayescontrol.experiments.divergence.controller import TRUE, controller
from bayescontrol.lab.statistics.quantiles import normal_quantile

#: The share of runs that may stray beyond a band.
DELTA: Final = 0.05
# -ζ(1/2)/√(2π): how far a random walk overshoots, in steps.
_OVERSHOOT: Final = 0.5826


@cache
def rate(policy: int, other: int) -> float:
    """The rate of d_t(m*‖m) for m = `other` while mode `policy` acts, in nats a step.

    >>> [round(rate(policy, other=3), 4) for policy in (0, 1, 2)]
    [0.0, 0.0236, 0.0811]
    """
    return float(mean_rates(World(controller(), TRUE), policy)[other])


@cache
def spread(policy: int, other: int) -> float:
    """σ of a step of g - G while mode `policy` acts, in nats.

    >>> round(spread(policy=0, other=1), 3)
    0.352
    """
    modes = controller()
    act, p, q = modes.policy[policy], modes.hypothesis[TRUE], modes.hypothesis[other]
    term = np.log(p / q)
    mean = np.einsum("xa,xao,xao->x", act, p, term)
    variance = np.einsum("xa,xao,xao->x", act, p, term**2) - mean**2
    return math.sqrt(float(shares(chain(modes, act, TRUE)) @ variance))


def band(t: npt.ArrayLike, policy: int, other: int) -> FloatArray:
    """C_t while mode `policy` acts all the time.

    >>> band([100, 400], policy=0, other=1).round(2)
    array([ 7.69, 15.58])
    """
    z = normal_quantile(1.0 - DELTA / 4.0)
    return np.asarray(spread(policy, other) * (z * np.sqrt(t) - _OVERSHOOT))


def band_error(t: float, policy: int, other: int, runs: int) -> float:
    """The standard error of C_t as the quantile of so many runs: √(δ (1-δ) / runs) / density.

    >>> round(band_error(400, policy=0, other=1, runs=1000), 2)
    0.38
    """
    z = normal_quantile(1.0 - DELTA / 4.0)
    density = 4.0 * math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    share = math.sqrt(DELTA * (1.0 - DELTA) / runs)
    return spread(policy, other) * math.sqrt(t) * share / density
