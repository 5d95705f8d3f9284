"""Elementary and special functions that give the same bits on every machine.

    exp(x) = 2^k e^r,  k = ⌊x / ln 2 + ½⌋,  |r| ≤ ln 2 / 2
    log(x) = k ln 2 + log(1 + f),  log(1 + f) = f - s (f - R(s²)),  s = f / (2 + f)

libm and NumPy choose an implementation by the processor, and these differ in the last bit. Here
only additions, multiplications and divisions are used, rounded by IEEE 754. exp and log are within
one unit in the last place (tested against 60 digits).

    ln Γ(x) = (x - ½) ln x - x + ½ ln 2π + 1/12x - 1/360x³ + …           for large x (Stirling)
    ln Γ(x) = ln Γ(x + n) - ln x (x + 1) … (x + n - 1)                   else
    Δ(x) = ln Γ(x) - (x - ½) ln x + x - ½ ln 2π                          the remainder
"""

import math

import numpy as np

from bayescontrol.kernels._jit import leaf

LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has so few digits that k · LN2_HIGH is exact for |k| < 2^20.
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
# ln 2 in three parts: k times the first two is exact for |k| < 2^31, so that r keeps all its
# digits for |x| up to 1e9, the log-likelihood of a whole data set.
LN2_A, LN2_B, LN2_C = 0.6931469440460205, 2.3651386982237455e-07, 5.497923018708371e-14
SQRT_HALF = 0.7071067811865476

# Taylor coefficients of e^r from r² on: with |r| ≤ .3466 the first omitted one is 5e-18.
E2, E3, E4, E5, E6, E7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
E8, E9, E10, E11, E12, E13 = (1 / math.factorial(n) for n in range(8, 14))


@leaf
def exp_split(x: float) -> tuple[float, float]:
    """Return (p, k) with e^x = p · 2^k and p in [.707, 1.415], without under- or overflow.

    k is an integer stored as a double, so that loops over x are vectorised.

    >>> exp_split(0.0), exp_split(-1e6)[1]
    ((1.0, 0.0), -1442695.0)
    """
    k = np.floor(x * LOG2_E + 0.5)
    r = ((x - k * LN2_A) - k * LN2_B) - k * LN2_C
    tail = E8 + r * (E9 + r * (E10 + r * (E11 + r * (E12 + r * E13))))
    tail = E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * (E7 + r * tail)))))
    return 1.0 + (r + r * r * tail), k


@leaf
def exp(x: float) -> float:
    """Return e^x; 0 or ∞ outside the range of doubles.

    >>> exp(0.0), exp(-1000.0)
    (1.0, 0.0)
    """
    if x != x:  # NaN
        return x
    if x < -746.0:
        return 0.0
    if x > 710.0:
        return math.inf
    p, k = exp_split(x)
    if abs(x) < 700.0:  # 2^k from its bits is the same as by ldexp, and faster
        return p * float(np.int64((np.int64(k) + 1023) << 52).view(np.float64))
    return math.ldexp(p, int(k))


@leaf
def log(x: float) -> float:
    """Return the natural logarithm of x; -∞ at 0, NaN below.

    >>> log(2.0), log(0.0)
    (0.6931471805599453, -inf)
    """
    if not x > 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == math.inf:
        return x
    f, k = math.frexp(x)
    if f < SQRT_HALF:
        f, k = 2.0 * f, k - 1
    f -= 1.0
    s = f / (2.0 + f)
    z = s * s
    # ln(1 + f) = f - s (f - R),  R = 2 (z/3 + z²/5 + …). With |s| ≤ .1716 the first omitted term
    # is below 5e-20 of R.
    R = 1 / 19 + z * (1 / 21 + z * (1 / 23 + z * (1 / 25)))
    R = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * R))))
    R = 2.0 * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * R)))
    return k * LN2_HIGH + (f - (s * (f - R) - k * LN2_LOW))


# ------------------------------------------------------------------------------------------------
# Special functions, from exp, log and the four operations.

HALF_LOG_2PI = 0.9189385332046727
# B_2k / 2k (2k - 1): with x ≥ 10 the first omitted one is below 3e-17.
S1, S2, S3, S4 = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680
S5, S6, S7 = 1 / 1188, -691 / 360360, 1 / 156
# 2 / n!: with |x| < 1/2 the first omitted one is below 4e-19.
X3, X4, X5, X6, X7, X8, X9 = (2 / math.factorial(n) for n in range(3, 10))
X10, X11, X12, X13, X14, X15, X16 = (2 / math.factorial(n) for n in range(10, 17))
#: The range of `log_excess_series`.
SERIES_LOW, SERIES_HIGH = -0.29, 0.41


@leaf
def log_gamma_function(x: float) -> float:
    """Return ln Γ(x) for x > 0, to 1e-14 of max(1, |ln Γ(x)|); NaN elsewhere.

    >>> log_gamma_function(1.0), round(log_gamma_function(5.0), 13)  # 0 and ln 24
    (0.0, 3.1780538303479)
    """
    if not x > 0.0:
        return math.nan
    if x == 1.0 or x == 2.0:
        return 0.0
    shift = 1.0
    while x < 10.0:
        shift *= x
        x += 1.0
    z = 1.0 / (x * x)
    series = S1 + z * (S2 + z * (S3 + z * (S4 + z * (S5 + z * (S6 + z * S7)))))
    result = (x - 0.5) * log(x) - x + HALF_LOG_2PI + series / x
    return result if shift == 1.0 else result - log(shift)


@leaf
def stirling_remainder(x: float) -> float:
    """Return Δ(x) for x > 0, to 1e-14: the remainder of Stirling's formula for ln Γ(x).

    >>> round(stirling_remainder(1.0), 13), stirling_remainder(1e6)  # 1 - ½ ln 2π, and about 1/12x
    (0.0810614667953, 8.33333333333...e-08)
    """
    if x < 10.0:
        return log_gamma_function(x) - (x - 0.5) * log(x) + x - HALF_LOG_2PI
    z = 1.0 / (x * x)
    return (S1 + z * (S2 + z * (S3 + z * (S4 + z * (S5 + z * (S6 + z * S7)))))) / x


@leaf
def exp_excess_series(x: float) -> float:
    """Return e^x - 1 - x for |x| ≤ ½, without a branch, so that loops are vectorised.

    >>> exp_excess_series(0.25) == exp_excess(0.25)
    True
    """
    t = X10 + x * (X11 + x * (X12 + x * (X13 + x * (X14 + x * (X15 + x * X16)))))
    t = X3 + x * (X4 + x * (X5 + x * (X6 + x * (X7 + x * (X8 + x * (X9 + x * t))))))
    return 0.5 * x * x * (1.0 + x * t)


@leaf
def exp_excess(x: float) -> float:
    """Return e^x - 1 - x ≥ 0, to full relative accuracy for small x too.

    >>> exp_excess(0.0), exp_excess(-1e-9)
    (0.0, 4.99999999833...e-19)
    """
    if -0.5 < x < 0.5:
        return exp_excess_series(x)
    return (exp(x) - 1.0) - x


@leaf
def log_excess_series(u: float) -> float:
    """Return u - ln(1 + u) for SERIES_LOW < u < SERIES_HIGH, by the series of `log`.

    There is no branch, so that loops are vectorised.

    >>> log_excess_series(0.0), log_excess_series(1e-9)
    (0.0, 4.99999999666...e-19)
    """
    s = u / (2.0 + u)
    z = s * s
    R = 1 / 19 + z * (1 / 21 + z * (1 / 23 + z * (1 / 25)))
    R = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * R))))
    R = 2.0 * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * R)))
    return s * (u - R)


@leaf
def log_one_plus(u: float) -> float:
    """Return ln(1 + u) for u > -1, to full relative accuracy for small u too.

    >>> log_one_plus(1e-20), log_one_plus(1.0)
    (1e-20, 0.6931471805599453)
    """
    if SERIES_LOW < u < SERIES_HIGH:
        return u - log_excess_series(u)
    return log(1.0 + u)
