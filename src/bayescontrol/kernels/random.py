"""Random numbers with a law, from the words of `bayescontrol.kernels.xoshiro`.

    normal, exponential    ziggurat: see `bayescontrol.kernels.ziggurat`
    gamma(α), α ≥ 1        d (1 + c x)³, x normal, d = α - 1/3, c = 1/√(9d), accepted if
                           ln u < x²/2 + d - d v + d ln v, v = (1 + c x)³ (Marsaglia & Tsang 2000)
    gamma(α), α < 1        gamma(α + 1) U^(1/α)
    beta(a, b)             G_a / (G_a + G_b)
    log_gamma, log_odds    2^-70 times the logarithm of such a gamma, and of the odds m/(1 - m) of
                           such a beta m: from the same random numbers, but nothing underflows

`state` is uint64[4] and advances in place. Kernels do not complain: what they return for
arguments outside their domain is stated; `bayescontrol.seeding.Stream` raises instead.
"""

import math

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.xoshiro import below as below
from bayescontrol.kernels.xoshiro import next_uint64 as next_uint64
from bayescontrol.kernels.xoshiro import uniform as uniform
from bayescontrol.kernels.ziggurat import exponential as exponential
from bayescontrol.kernels.ziggurat import normal as normal

#: The logarithm of a gamma with shape α is about -1/α, beyond all doubles for the least α: times
#: this it is a double for every α > 0.
LOG_UNIT = 2.0**-70


@leaf
def _accepts(u: float, x: float, v: float, d: float) -> bool:
    """Whether ln u < x²/2 + d - d v + d ln v: apart, to keep logarithms off the common path."""
    return log(u) < 0.5 * x * x + d * (1.0 - v + log(v))


@leaf
def gamma_attempt(state: UIntArray, d: float, c: float) -> float:
    """One proposal d (1 + c x)³, or -1 if it is rejected.

    u < 1 - .1986 c² x⁴ implies acceptance. In y = c x the margin is d g(y) - ln(1 - 1.7874 d y⁴),
    convex in d and 0 at d = 0; so it is ≥ 0 for all d ≥ 2/3 if it is at d = 2/3, where this
    is Marsaglia & Tsang's own 1 - .0331 x⁴. The logarithms are needed .066/d of the time.
    """
    x = normal(state)
    v = 1.0 + c * x
    if v > 0.0:
        v = v * v * v
        u = uniform(state)
        cx2 = c * x * x
        if u < 1.0 - 0.1986 * cx2 * cx2 or _accepts(u, x, v, d):
            return d * v
    return -1.0


@leaf
def _gamma_from_one(state: UIntArray, shape: float) -> float:
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = gamma_attempt(state, d, c)
        if x > 0.0:
            return x


@leaf
def _gamma_below_one(state: UIntArray, shape: float) -> float:
    if not shape > 0.0:
        return math.nan
    return _gamma_from_one(state, shape + 1.0) * exp(-exponential(state) / shape)


@leaf
def gamma(state: UIntArray, shape: float) -> float:
    """A number with density x^(α-1) e^-x / Γ(α), α = shape > 0; for any other shape NaN, no draw.

    >>> from bayescontrol.seeding import Stream
    >>> gamma(Stream(1).state, 2.0) > 0
    True
    """
    if shape >= 1.0:
        return _gamma_from_one(state, shape)
    return _gamma_below_one(state, shape)


@leaf
def log_gamma(state: UIntArray, shape: float) -> float:
    """LOG_UNIT · ln G of the G that `gamma` would draw from this state; NaN where that is NaN.

    >>> from bayescontrol.seeding import Stream
    >>> gamma(Stream(1).state, 1e-5), log_gamma(Stream(1).state, 1e-5) / LOG_UNIT
    (0.0, -40407.252...)
    """
    if shape >= 1.0:
        return LOG_UNIT * log(_gamma_from_one(state, shape))
    if not shape > 0.0:
        return math.nan
    x = _gamma_from_one(state, shape + 1.0)
    return LOG_UNIT * log(x) - LOG_UNIT * exponential(state) / shape


@leaf
def _beta_by_odds(state: UIntArray, a: float, b: float) -> float:
    """1 / (1 + G_b / G_a) for any a, b > 0: the ratio neither overflows nor becomes 0/0.

    The gamma of a parameter below 1 may underflow, so the factors U^(1/a) and V^(1/b) enter
    the ratio by their logarithms.
    """
    if not (a > 0.0 and b > 0.0):
        return math.nan
    x = _gamma_from_one(state, a if a >= 1.0 else a + 1.0)
    odds = _gamma_from_one(state, b if b >= 1.0 else b + 1.0) / x
    if a < 1.0 and b < 1.0:
        log_u, log_v = -exponential(state), -exponential(state)
        # log_v / b - log_u / a, arranged so that no term is ∞ unless the whole is.
        if a < b:
            odds *= exp((log_v * (a / b) - log_u) / a)
        else:
            odds *= exp((log_v - log_u * (b / a)) / b)
    elif a < 1.0:
        odds *= exp(exponential(state) / a)
    elif b < 1.0:
        odds *= exp(-exponential(state) / b)
    return 1.0 / (1.0 + odds)


@leaf
def beta(state: UIntArray, a: float, b: float) -> float:
    """A number with density ∝ x^(a-1) (1-x)^(b-1), a, b > 0; for any others NaN, no draw.

    >>> from bayescontrol.seeding import Stream
    >>> 0 <= beta(Stream(1).state, 1e-9, 1e-9) <= 1
    True
    """
    if 1.0 <= a < 1e300 and 1.0 <= b < 1e300:
        x = _gamma_from_one(state, a)
        return x / (x + _gamma_from_one(state, b))
    return _beta_by_odds(state, a, b)


@leaf
def log_odds(state: UIntArray, a: float, b: float) -> float:
    """LOG_UNIT · ln m/(1 - m) of the m that `beta` would draw from this state; NaN where m is NaN.

    >>> from bayescontrol.seeding import Stream
    >>> beta(Stream(1).state, 2.0, 1e-3), log_odds(Stream(1).state, 2.0, 1e-3) / LOG_UNIT
    (1.0, 437.308...)
    """
    if not (a > 0.0 and b > 0.0):
        return math.nan
    x = LOG_UNIT * log(_gamma_from_one(state, a if a >= 1.0 else a + 1.0))
    y = LOG_UNIT * log(_gamma_from_one(state, b if b >= 1.0 else b + 1.0))
    if a < 1.0:
        x -= LOG_UNIT * exponential(state) / a
    if b < 1.0:
        y -= LOG_UNIT * exponential(state) / b
    return x - y


@leaf
def categorical(state: UIntArray, p: FloatArray) -> int:
    """An index i with probability p_i / Σ p, never one with p_i = 0; one uniform number.

    -1, and no draw, unless every p_i ≥ 0 and 0 < Σ p < ∞.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> categorical(Stream(1).state, np.array([0.0, 3.0, 0.0]))
    1
    """
    total = 0.0
    for i in range(p.size):
        if not p[i] >= 0.0:
            return -1
        total += p[i]
    if not 0.0 < total < math.inf:
        return -1
    u = uniform(state) * total
    cumulative = 0.0
    last = -1
    for i in range(p.size):
        if p[i] > 0.0:
            cumulative += p[i]
            last = i
            if u < cumulative:
                break
    return last  # u may round up to Σ p where doubles are subnormal


@leaf
def permutation(state: UIntArray, out: IntArray) -> None:
    """0 … n - 1 in uniformly random order into `out` (Fisher & Yates).

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> out = np.empty(4, dtype=np.int64)
    >>> permutation(Stream(1).state, out)
    >>> sorted(out.tolist())
    [0, 1, 2, 3]
    """
    for i in range(out.size):
        j = below(state, i + 1)
        out[i] = out[j]
        out[j] = i


# One loop per law: Numba caches no kernel that takes another as an argument.


@leaf
def fill_uniform(state: UIntArray, out: FloatArray) -> None:
    """So many calls of `uniform`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_uniform(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = uniform(state)


@leaf
def fill_normal(state: UIntArray, out: FloatArray) -> None:
    """So many calls of `normal`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_normal(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = normal(state)


@leaf
def fill_exponential(state: UIntArray, out: FloatArray) -> None:
    """So many calls of `exponential`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_exponential(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = exponential(state)


@leaf
def fill_gamma(state: UIntArray, shape: float, out: FloatArray) -> None:
    """So many calls of `gamma`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_gamma(Stream(1).state, 2.0, np.empty(3))
    """
    for i in range(out.size):
        out[i] = gamma(state, shape)


@leaf
def fill_beta(state: UIntArray, a: float, b: float, out: FloatArray) -> None:
    """So many calls of `beta`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_beta(Stream(1).state, 2.0, 3.0, np.empty(3))
    """
    for i in range(out.size):
        out[i] = beta(state, a, b)


@leaf
def fill_below(state: UIntArray, n: int, out: IntArray) -> None:
    """So many calls of `below`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> fill_below(Stream(1).state, 6, np.empty(3, dtype=np.int64))
    """
    for i in range(out.size):
        out[i] = below(state, n)


@leaf
def fill_categorical(state: UIntArray, p: FloatArray, out: IntArray) -> None:
    """So many calls of `categorical`, into `out`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> state, p = Stream(1).state, np.array([1.0, 2.0])
    >>> fill_categorical(state, p, np.empty(3, dtype=np.int64))
    """
    for i in range(out.size):
        out[i] = categorical(state, p)
