"""exp and log that give the same bits on every machine.

    exp(x) = 2^k e^r,  k = ⌊x / ln 2 + ½⌋,  |r| ≤ ln 2 / 2
    log(x) = k ln 2 + log(1 + f),  log(1 + f) = f - s (f - R(s²)),  s = f / (2 + f)

libm and NumPy pick an implementation by the processor they find, and these differ in the
last bit. Here there are only additions, multiplications and divisions, each rounded as
IEEE 754 says. Both are within one unit in the last place (a test against 60 digits).
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

# Taylor coefficients of e^r from r² on: with |r| ≤ .3466 the first one left out is 5e-18.
E2, E3, E4, E5, E6, E7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
E8, E9, E10, E11, E12, E13 = (1 / math.factorial(n) for n in range(8, 14))


@leaf
def exp_split(x: float) -> tuple[float, float]:
    """e^x as (p, k) with e^x = p · 2^k and p in [.707, 1.415]: it cannot under- or overflow.

    k is a whole number kept as a double, so that a loop over x becomes vector code.

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
    """e^x; 0 and ∞ where doubles end.

    >>> exp(0.0), exp(-1000.0)
    (1.0, 0.0)
    """
    if x != x:
        return x
    if x < -746.0:
        return 0.0
    if x > 710.0:
        return math.inf
    p, k = exp_split(x)
    return math.ldexp(p, int(k))


@leaf
def log(x: float) -> float:
    """The natural logarithm; -∞ at 0, NaN below.

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
    # R = 2 (z/3 + z²/5 + …); with |s| ≤ .1716 the first term left out is 5e-20.
    R = 1 / 19 + z * (1 / 21 + z * (1 / 23 + z * (1 / 25)))
    R = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * R))))
    R = 2.0 * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * R)))
    return k * LN2_HIGH + (f - (s * (f - R) - k * LN2_LOW))
