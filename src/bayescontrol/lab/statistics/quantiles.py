"""Quantiles of the normal and of Student's distribution.

    normal   Φ(z_p) = p
    t        P(T_ν ≤ t_{ν,p}) = p,  T_ν = Z / √(χ²_ν / ν)

SciPy's special functions are loaded when they are needed: they take half a second.
"""

import math
from statistics import NormalDist


def normal_quantile(p: float) -> float:
    """z with Φ(z) = p.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return NormalDist().inv_cdf(p)


def t_quantile(p: float, nu: int) -> float:
    """t with P(T_ν ≤ t) = p; infinite for ν = 0, where one value bounds nothing.

    >>> round(t_quantile(0.975, 3), 6), t_quantile(0.975, 0)
    (3.182446, inf)
    """
    if nu < 1:
        return math.inf
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(nu, p))
