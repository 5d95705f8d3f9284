"""The divergence of Bernoulli distributions after a and b observations, and its inverse.

    φ(e) = e - ln(1 + e)                       d(a, b, x) = a φ((x - p)/p) + b φ((p - x)/(1-p))
    p = a/(a + b)                                         = (a + b) KL(p ‖ x)

φ is computed without cancellation: the divergence stays precise after a million pulls.
"""

import math

from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import SERIES_HIGH, SERIES_LOW, exp, log, log_excess_series

EPS = 2.0**-52
#: The limit of log odds u = ln x/(1-x): from about here on 1 - x underflows.
LAST_LOGIT = 700.0


@leaf
def excess(e: float) -> float:
    """Return φ(e) = e - ln(1 + e) ≥ 0, to full relative accuracy for small e too.

    >>> excess(0.0), excess(1e-9)
    (0.0, 4.99999999666...e-19)
    """
    return _excess(e, 1.0 + e)


@leaf
def _excess(e: float, one_plus: float) -> float:
    """Return φ(e); `one_plus` is 1 + e, with more digits than e provides near -1."""
    return log_excess_series(e) if SERIES_LOW < e < SERIES_HIGH else e - log(one_plus)


@leaf
def log1p_exp(u: float) -> float:
    """Return ln(1 + e^u).

    >>> log1p_exp(0.0), log1p_exp(-1000.0), log1p_exp(1000.0)
    (0.6931471805599453, 0.0, 1000.0)
    """
    e = exp(-abs(u))
    return (u if u > 0.0 else 0.0) + (e - excess(e))


@leaf
def divergence(a: float, b: float, x: float, y: float) -> float:
    """Return d = (a + b) KL(a/(a + b) ‖ x), where y = 1 - x and 0 < x < 1; a or b may be 0.

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


@leaf
def divergence_bound(a: float, b: float, level: float) -> float:
    """Solve (a + b) KL(a/(a + b) ‖ x) = level for x ≥ a/(a + b); return u = ln x/(1-x).

    a, b and level are positive. u is at most 700, where 1 - x is 1e-304. In u the divergence is
    convex with slope (a + b)(x - p), so Newton's method from above converges monotonically.

    >>> u = divergence_bound(2.0, 2.0, 1.0)
    >>> x = 1 / (1 + exp(-u))
    >>> round(divergence(2.0, 2.0, x, 1 - x), 14)
    1.0
    """
    n = a + b
    p = a / n
    # KL ≥ (1-p) u - H(p), and by Pinsker ≥ 2 (x - p)²: each gives an upper bound of u.
    u = (level - a * log(p) - b * log(b / n)) / b
    pinsker = math.sqrt(0.5 * level / n)
    if pinsker < b / n:
        u = min(u, log((p + pinsker) / (b / n - pinsker)))
    u = min(u, LAST_LOGIT)
    for _ in range(200):
        x, y = 1.0 / (1.0 + exp(-u)), 1.0 / (1.0 + exp(u))
        slope = b * x - a * y
        if not slope > 0.0:  # the minimum is reached, or NaN
            break
        step = (divergence(a, b, x, y) - level) / slope
        u -= step
        if not step > EPS * max(1.0, abs(u)):  # converged, or NaN
            break
    return u
