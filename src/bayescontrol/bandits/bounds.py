"""What no consistent agent can beat (Lai & Robbins 1985).

    lim inf_t  regret_t / ln t  ≥  Σ_{j: μ_j < μ*}  (μ* - μ_j) / KL(j ‖ *)

KL(j ‖ *) is the divergence of the rewards of the best arm from those of arm j: what one pull of
arm j tells against its being as good as the best.
"""

from collections.abc import Callable
from math import inf, log

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import InvalidTable


def bernoulli_divergence(p: float, q: float) -> float:
    """KL(p ‖ q) = p ln p/q + (1-p) ln (1-p)/(1-q); ∞ where q rules out what p does not.

    >>> round(bernoulli_divergence(0.4, 0.5), 12), bernoulli_divergence(0.5, 1.0)
    (0.020135513551, inf)
    """
    if not (0.0 <= p <= 1.0 and 0.0 <= q <= 1.0):
        raise InvalidTable(f"biases {p} and {q}: they must be in [0, 1]")
    return _term(p, q) + _term(1.0 - p, 1.0 - q)


def normal_divergence(sd: float) -> Callable[[float, float], float]:
    """KL(μ ‖ ν) = (μ - ν)² / 2σ², for Gaussian rewards of known standard deviation.

    >>> normal_divergence(2.0)(0.0, 4.0)
    2.0
    """
    if not 0.0 < sd < inf:
        raise InvalidTable(f"sd={sd}: the standard deviation must be positive and finite")
    return lambda mu, nu: 0.5 * ((mu - nu) / sd) ** 2


def lai_robbins(
    means: npt.ArrayLike, divergence: Callable[[float, float], float] = bernoulli_divergence
) -> float:
    """Σ_j Δ_j / KL(j ‖ *), with Δ_j = μ* - μ_j; Bernoulli arms by default.

    An arm that cannot be mistaken for the best, KL = ∞, adds nothing.

    >>> round(lai_robbins([0.5] + 9 * [0.4]), 3)
    44.697
    >>> lai_robbins([1.0, 0.0], normal_divergence(1.0))  # 2σ²/Δ
    2.0
    """
    mu = np.asarray(means, np.float64)
    if mu.ndim != 1 or mu.size == 0 or not np.isfinite(mu).all():
        raise InvalidTable(f"means {means!r}: give one finite number for each arm")
    best = float(mu.max())
    below = [float(m) for m in mu if m < best]
    return sum(((best - m) / divergence(m, best) for m in below), 0.0)


def _term(p: float, q: float) -> float:
    if p == 0.0:
        return 0.0
    return p * log(p / q) if q > 0.0 else inf
