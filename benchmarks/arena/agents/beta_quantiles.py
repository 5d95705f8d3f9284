"""The Beta distribution in the coordinate u = ln x/(1-x): density, distribution and quantiles.

    d(a, b, x) = (a + b) KL(a/(a + b) ‖ x)          see `bayescontrol.kernels.beta_distribution`
    g(u) = x^a (1-x)^b / B(a, b) = √(ab / 2π(a+b)) e^(Δ(a+b) - Δ(a) - Δ(b) - d(a, b, x))
    I_x(a, b) = ∫_-∞^u g = g(u) / (β_0 + α_1/(β_1 + α_2/(β_2 + …)))     (DiDonato & Morris 1992)

Δ is the remainder of Stirling's formula. ln g is concave in u for all a and b: Newton's method on
ln I, from the mode, passes the quantile at most once.
"""

from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.beta_distribution import EPS, LAST_LOGIT, divergence
from bayescontrol.kernels.elementary import HALF_LOG_2PI, exp, log, stirling_remainder

#: The most terms of the fraction, which needs about √max(a, b).
MOST_TERMS = 100_000


@leaf
def log_peak(a: float, b: float) -> float:
    """ln g at its mode u = ln a/b, a and b > 0.

    >>> round(exp(log_peak(1.0, 1.0)), 15)  # x (1-x) at x = 1/2
    0.25
    """
    n = a + b
    middle = 0.5 * (log(a) + log(b / n)) - HALF_LOG_2PI
    return middle + stirling_remainder(n) - stirling_remainder(a) - stirling_remainder(b)


@leaf
def _fraction(a: float, b: float, x: float, y: float) -> float:
    """β_0 + α_1/(β_1 + …) = g / I_x, for x ≤ a/(a + b), by Lentz's method."""
    tilt = a * y - b * x + 1.0
    f = a * tilt / (a + 1.0)
    c, d = f, 0.0
    m = 1.0
    while m < MOST_TERMS:
        r = 1.0 / (a + 2.0 * m - 1.0)
        alpha = (a + m - 1.0) * r * (a + b + m - 1.0) * r * m * (b - m) * x * x
        beta = m + m * (b - m) * x * r
        beta += (a + m) * (tilt + m * (1.0 + y)) / (a + 2.0 * m + 1.0)
        d = 1.0 / (beta + alpha * d)
        c = beta + alpha / c
        f *= c * d
        if abs(c * d - 1.0) < EPS:
            break
        m += 1.0
    return f


@leaf
def _log_lower(a: float, b: float, peak: float, x: float, y: float) -> tuple[float, float]:
    """ln I_x(a, b) and its derivative in u."""
    log_g = peak - divergence(a, b, x, y)
    if b * x <= a * y:
        f = _fraction(a, b, x, y)
        return log_g - log(f), f
    g = exp(log_g)
    lower = 1.0 - g / _fraction(b, a, y, x)
    return log(lower), g / lower


@leaf
def beta_cdf(a: float, b: float, x: float, y: float) -> float:
    """I_x(a, b) = P(X ≤ x), X ~ Beta(a, b), y = 1 - x; to 1e-13 for a + b up to 1e7.

    >>> round(beta_cdf(2.0, 1.0, 0.5, 0.5), 14), beta_cdf(1.0, 1.0, 0.0, 1.0)
    (0.25, 0.0)
    """
    if x <= 0.0:
        return 0.0
    if y <= 0.0:
        return 1.0
    g = exp(log_peak(a, b) - divergence(a, b, x, y))
    if b * x <= a * y:
        return g / _fraction(a, b, x, y)
    return 1.0 - g / _fraction(b, a, y, x)


@leaf
def _lower_logit(a: float, b: float, tail: float) -> float:
    """ln x/(1-x) with I_x(a, b) = tail."""
    peak = log_peak(a, b)
    target = log(tail)
    u = log(a / b)
    for i in range(200):
        if not -LAST_LOGIT < u < LAST_LOGIT:
            break
        value, slope = _log_lower(a, b, peak, 1.0 / (1.0 + exp(-u)), 1.0 / (1.0 + exp(u)))
        step = (target - value) / slope
        u += step
        # After the first step u is at or below the root: a step back is due to rounding.
        if i > 0 and not step > EPS * max(1.0, abs(u)):
            break
    return u


@leaf
def beta_quantile(a: float, b: float, upper: float) -> float:
    """x with P(X > x) = upper, X ~ Beta(a, b); 0 from upper = 1 on, 1 at 0.

    >>> round(beta_quantile(1.0, 1.0, 0.25), 15), beta_quantile(3.0, 1.0, 1.0)
    (0.75, 0.0)
    """
    if not upper < 1.0:
        return 0.0
    if not upper > 0.0:
        return 1.0
    u = -_lower_logit(b, a, upper) if upper <= 0.5 else _lower_logit(a, b, 1.0 - upper)
    return 1.0 / (1.0 + exp(-u))
