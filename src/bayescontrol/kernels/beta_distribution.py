"""The divergence in the Beta distribution, without cancellation.

    φ(e) = e - ln(1 + e)                       d(a, b, x) = a φ((x - p)/p) + b φ((p - x)/(1-p))
    p = a/(a + b)                                         = (a + b) KL(p ‖ x)

With φ precision does not decrease, even after a million pulls.
"""

from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, log, log_excess_series


@leaf
def excess(e: float) -> float:
    """φ(e) = e - ln(1 + e) ≥ 0, to full relative accuracy for small e too.

    >>> excess(0.0), excess(1e-9)
    (0.0, 4.99999999666...e-19)
    """
    if not -0.29 < e < 0.41:
        return e - log(1.0 + e)
    return log_excess_series(e)


@leaf
def _excess(e: float, one_plus: float) -> float:
    """φ(e), given 1 + e to more digits than e provides near -1."""
    return excess(e) if -0.29 < e < 0.41 else e - log(one_plus)


@leaf
def log1p_exp(u: float) -> float:
    """ln(1 + e^u).

    >>> log1p_exp(0.0), log1p_exp(-1000.0), log1p_exp(1000.0)
    (0.6931471805599453, 0.0, 1000.0)
    """
    e = exp(-abs(u))
    return (u if u > 0.0 else 0.0) + (e - excess(e))


@leaf
def divergence(a: float, b: float, x: float, y: float) -> float:
    """d = (a + b) KL(a/(a + b) ‖ x), y = 1 - x; a or b may be 0, with 0 < x < 1.

    >>> divergence(1.0, 3.0, 0.25, 0.75), divergence(0.0, 2.0, 0.5, 0.5)
    (0.0, 1.3862943611198906)
    """
    n = a + b
    if a == 0.0:
        return b * (x + excess(-x)) if x < 0.25 else -b * log(y)
    if b == 0.0:
        return a * (y + excess(-y)) if y < 0.25 else -a * log(x)
    gap = (b * x - a * y) / n
    return a * _excess(gap / (a / n), x / (a / n)) + b * _excess(-gap / (b / n), y / (b / n))
