"""Random numbers of the kernels: xoshiro256++, ziggurat, gamma, beta, categorical.

xoshiro256++ gives 64 random bits from four words of state (Blackman & Vigna 2021):

    output   rotl(s_0 + s_3, 23) + s_0
    state    a linear map over GF(2): xors, one shift by 17, one rotation by 45

Its period is 2^256 - 1; the all-zero state, which maps to itself, is excluded. It uses only integer
operations, so the words do not depend on the machine or the version of NumPy.

`state` is uint64[4] and advances in place. Kernels do not raise errors: their docstrings say what
they return for invalid arguments; `bayescontrol.seeding.Stream` raises.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.elementary import exp, log

# Numba converts uint64 with int64 to float64, so constants in integer operations are uint64.
U11, U17, U19, U23, U32, U41, U45 = (np.uint64(n) for n in (11, 17, 19, 23, 32, 41, 45))
LOW_HALF = np.uint64(0xFFFFFFFF)


class Streams(NamedTuple):
    """The states of the two streams of a run: the agent draws from p, the environment from q."""

    p: UIntArray
    q: UIntArray


@inlined
def _next_word(s0: Any, s1: Any, s2: Any, s3: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the next 64 bits of xoshiro256++ and the new state; words are uint64."""
    sum03, xor31 = s0 + s3, s3 ^ s1
    word = ((sum03 << U23) | (sum03 >> U41)) + s0
    state2, state3 = s2 ^ s0 ^ (s1 << U17), (xor31 << U45) | (xor31 >> U19)
    return word, s0 ^ xor31, s1 ^ s2 ^ s0, state2, state3


@leaf
def next_uint64(state: UIntArray) -> int:
    """Return the next 64 bits of xoshiro256++.

    >>> state = np.array([1, 2, 3, 4], dtype=np.uint64)
    >>> next_uint64(state), next_uint64(state)
    (41943041, 58720359)
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    word: int
    word, state[0], state[1], state[2], state[3] = _next_word(s0, s1, s2, s3)
    return word


@inlined
def _fraction(word: int) -> float:
    """Return the upper 53 bits of a word as a number in [0, 1)."""
    return np.int64(word >> U11) * 2.0**-53


@leaf
def uniform(state: UIntArray) -> float:
    """U in [0, 1): k · 2^-53 with k uniform below 2^53.

    >>> uniform(np.array([1, 2, 3, 4], dtype=np.uint64)) == (41943041 >> 11) * 2.0**-53
    True
    """
    return _fraction(next_uint64(state))


@leaf
def below(state: UIntArray, n: int) -> int:
    """Draw a uniform integer from 0 … n - 1, n ≥ 1, without bias (Lemire 2019).

    The result is ⌊word · n / 2^64⌋; the 2^64 mod n words that would cause a bias are redrawn.

    >>> below(np.array([1, 2, 3, 4], dtype=np.uint64), 1)
    0
    """
    m = np.uint64(n)
    m_low, m_high = m & LOW_HALF, m >> U32
    while True:
        word = next_uint64(state)
        # The upper half of a 128-bit product, from four products of 32-bit halves.
        w_low, w_high = word & LOW_HALF, word >> U32
        middle = w_high * m_low + ((w_low * m_low) >> U32)
        upper = w_low * m_high + (middle & LOW_HALF)
        high = w_high * m_high + (middle >> U32) + (upper >> U32)
        low = word * m
        # The threshold is below m, so the division is needed only if low is.
        if low >= m or low >= (np.uint64(0) - m) % m:
            return int(np.int64(high))


# ------------------------------------------------------------------------------------------------
# Normal and exponential numbers by the ziggurat: 256 layers of equal area under the density.
#
#     x_i (f(x_{i+1}) - f(x_i)) = v,    i = 1 … 255,    x_1 = r,  x_256 = 0
#     r f(r) + ∫_r^∞ f = v              the base: a rectangle and the tail
#     x_0 = v / f(r)                    the width of a rectangle of the same area
#
# Layer i is the rectangle [0, x_i] × [f(x_i), f(x_{i+1})]. A point of it left of x_{i+1} is always
# under f, so 98.5 % of the draws need one word and one comparison (Marsaglia & Tsang 2000). Layer,
# sign and position use different bits of the word. The tables are computed with 36 decimal digits
# and rounded once, so that they have the same bits everywhere.

# The only (r, v) for which 256 layers end at f(0) = 1; `tests/kernels` checks them.
NORMAL_R = Decimal("3.65415288536100877164542972039951576")
NORMAL_V = Decimal("0.00492867323397465534736177540233602807")
EXPONENTIAL_R = Decimal("7.6971174701310497140446280480152155")
EXPONENTIAL_V = Decimal("0.00394965982258155721997757195681486109")


class Layers(NamedTuple):
    """The layers: x_i, x_{i+1}, f(x_i) and f(x_{i+1}) - f(x_i) for i = 0 … 255.

    In the base f(x_0) = 0.

    >>> NORMAL.inner[0], NORMAL.outer.shape  # r: where the tail begins
    (np.float64(3.654152885361009), (256,))
    """

    outer: FloatArray
    inner: FloatArray
    floor: FloatArray
    height: FloatArray


def _layers(
    r: Decimal, v: Decimal, f: Callable[[Decimal], Decimal], inverse: Callable[[Decimal], Decimal]
) -> Layers:
    """Compute the 256 layers of area v under f, a decreasing function with f(0) = 1.

    The tail begins at r. The base layer, with the tail, is as large as a rectangle of width v/f(r).
    """
    with localcontext() as context:
        context.prec = 36
        x, y = [v / f(r), r], [Decimal(0), f(r)]
        while len(x) < 256:
            y.append(y[-1] + v / x[-1])
            x.append(inverse(y[-1]))
        x.append(Decimal(0))
        y.append(Decimal(1))
        heights = [above - below for below, above in pairwise(y)]
    columns = (x[:-1], x[1:], y[:-1], heights)
    return Layers(*(np.array([float(value) for value in column]) for column in columns))


#: The ziggurats of f(x) = exp(-x²/2) and of f(x) = exp(-x), x ≥ 0.
NORMAL = _layers(NORMAL_R, NORMAL_V, lambda x: (-x * x / 2).exp(), lambda y: (-2 * y.ln()).sqrt())
EXPONENTIAL = _layers(EXPONENTIAL_R, EXPONENTIAL_V, lambda x: (-x).exp(), lambda y: -y.ln())

#: The bits of a word that choose the layer, and the number of the base.
LAYER, BASE = np.uint64(0xFF), np.uint64(0)

# Numba reads global arrays, but not the fields of a global tuple.
N_OUTER, N_INNER, N_FLOOR, N_HEIGHT = NORMAL
E_OUTER, E_INNER, E_FLOOR, E_HEIGHT = EXPONENTIAL
# The widths of the layers per unit of a 53-bit integer, with and without sign.
N_UNIT, E_UNIT = N_OUTER * 2.0**-52, E_OUTER * 2.0**-53
N_TAIL, E_TAIL = float(N_INNER[0]), float(E_INNER[0])


@leaf
def _exponential_point(state: UIntArray) -> tuple[np.uint64, float]:
    """Draw a layer i and a position x in it, from one word."""
    word = next_uint64(state)
    i = word & LAYER
    return i, np.int64(word >> U11) * E_UNIT[i]


# The rare case is a separate function, so that the common one is small enough to be inlined.


@leaf
def _exponential_outside(state: UIntArray, i: np.uint64, x: float) -> float:
    """Finish a draw whose first point (i, x) may be above the density, or is in the tail."""
    offset = 0.0
    while True:
        if i == BASE:
            offset += E_TAIL
        elif E_FLOOR[i] + uniform(state) * E_HEIGHT[i] < exp(-x):
            return offset + x
        i, x = _exponential_point(state)
        if x < E_INNER[i]:
            return offset + x


@leaf
def exponential(state: UIntArray) -> float:
    """Draw a number with density e^-x. The tail is memoryless: r plus another draw.

    >>> exponential(np.array([1, 2, 3, 4], dtype=np.uint64)) > 0
    True
    """
    i, x = _exponential_point(state)
    if x < E_INNER[i]:
        return x
    return _exponential_outside(state, i, x)


@inlined
def _position(word: int, i: np.uint64) -> float:
    """Return the position in layer i of the normal density, from the upper 53 bits of a word."""
    return float((np.int64(word) >> 11) * N_UNIT[i])


@leaf
def _normal_point(state: UIntArray) -> tuple[np.uint64, float]:
    """Draw a layer i and a position x in it, with a sign, from one word."""
    word = next_uint64(state)
    i = word & LAYER
    return i, _position(word, i)


@leaf
def _normal_outside(state: UIntArray, i: np.uint64, x: float) -> float:
    """Finish a draw whose first point (i, x) may be above the density, or is in the tail."""
    while True:
        if i == BASE:
            while True:
                beyond = exponential(state) / N_TAIL
                if 2.0 * exponential(state) > beyond * beyond:
                    return math.copysign(N_TAIL + beyond, x)
        if N_FLOOR[i] + uniform(state) * N_HEIGHT[i] < exp(-0.5 * x * x):
            return x
        i, x = _normal_point(state)
        if abs(x) < N_INNER[i]:
            return x


@leaf
def normal(state: UIntArray) -> float:
    """Draw a number with density e^(-x²/2) / √(2π); the tail by the method of Marsaglia (1964).

    >>> abs(normal(np.array([1, 2, 3, 4], dtype=np.uint64))) < 9
    True
    """
    i, x = _normal_point(state)
    if abs(x) < N_INNER[i]:
        return x
    return _normal_outside(state, i, x)


@inlined
def next_normal(
    state: UIntArray, s0: Any, s1: Any, s2: Any, s3: Any
) -> tuple[float, Any, Any, Any, Any]:
    """Draw as `normal` does, from the words s0 … s3; return the number and the new words.

    A loop that holds the state in these words, and not in an array, is faster. `state` is scratch.

    >>> state = np.array([1, 2, 3, 4], dtype=np.uint64)
    >>> next_normal(state.copy(), *state)[0] == normal(state)
    True
    """
    word, s0, s1, s2, s3 = _next_word(s0, s1, s2, s3)
    i = word & LAYER
    x = _position(word, i)
    if not abs(x) < N_INNER[i]:
        state[0], state[1], state[2], state[3] = s0, s1, s2, s3
        x = _normal_outside(state, i, x)
        s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    return x, s0, s1, s2, s3


# ------------------------------------------------------------------------------------------------
# Gamma, beta and categorical numbers.
#
#     gamma(α), α ≥ 1        d (1 + c x)³, x normal, d = α - 1/3, c = 1/√(9d), accepted if
#                            ln u < x²/2 + d - d v + d ln v, v = (1 + c x)³ (Marsaglia & Tsang 2000)
#     gamma(α), α < 1        gamma(α + 1) U^(1/α)
#     beta(a, b)             G_a / (G_a + G_b)
#     log_gamma, log_odds    2^-70 times the logarithm of a gamma, and of the odds m/(1 - m) of a
#                            beta m, from the same random numbers but without underflow

#: The logarithm of a gamma with shape α is about -1/α, which overflows for the smallest α; times
#: this factor it is a double for every α > 0.
LOG_UNIT = 2.0**-70


@inlined
def _squeeze(x: float, c: float) -> float:
    """Return a bound for u: a smaller u is accepted."""
    cx2 = c * x * x
    return 1.0 - 0.1986 * cx2 * cx2


@leaf
def _accepts(u: float, x: float, v: float, d: float) -> bool:
    """Return whether ln u < x²/2 + d - d v + d ln v: separate, as logarithms are rarely needed."""
    return log(u) < 0.5 * x * x + d * (1.0 - v + log(v))


@leaf
def _gamma_attempt(state: UIntArray, d: float, c: float) -> float:
    """Make one proposal and return d (1 + c x)³, or -1 if it is rejected.

    u < 1 - .1986 c² x⁴ implies acceptance. In y = c x the margin is d g(y) - ln(1 - 1.7874 d y⁴),
    convex in d and 0 at d = 0. So the margin is ≥ 0 for all d ≥ 2/3 if it is ≥ 0 at d = 2/3, where
    this is Marsaglia & Tsang's own 1 - .0331 x⁴. The logarithms are needed .066/d of the time.
    """
    x = normal(state)
    v = 1.0 + c * x
    if v > 0.0:
        v = v * v * v
        u = uniform(state)
        if u < _squeeze(x, c) or _accepts(u, x, v, d):
            return d * v
    return -1.0


@leaf
def _gamma_of(state: UIntArray, d: float, c: float) -> float:
    """Draw a gamma from its constants d and c."""
    while True:
        x = _gamma_attempt(state, d, c)
        if x > 0.0:
            return x


@leaf
def gamma_constants(shape: float) -> tuple[float, float]:
    """Return d = shape - 1/3 and c = 1/√(9d), for a shape of at least 1.

    >>> gamma_constants(4 / 3)
    (1.0, 0.333...)
    """
    d = shape - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d)


@leaf
def _gamma_from_one(state: UIntArray, shape: float) -> float:
    """Draw a gamma of a shape of at least 1."""
    d, c = gamma_constants(shape)
    return _gamma_of(state, d, c)


@leaf
def gamma(state: UIntArray, shape: float) -> float:
    """Draw a number with density x^(α-1) e^-x / Γ(α), α = shape > 0.

    Return NaN, without a draw, for any other shape.

    >>> from bayescontrol.seeding import Stream
    >>> gamma(Stream(1).state, 2.0) > 0
    True
    """
    if shape >= 1.0:
        return _gamma_from_one(state, shape)
    if not shape > 0.0:
        return math.nan
    return _gamma_from_one(state, shape + 1.0) * exp(-exponential(state) / shape)


@leaf
def log_gamma(state: UIntArray, shape: float) -> float:
    """Draw G as `gamma` does and return LOG_UNIT · ln G, which is finite where G underflows to 0.

    Return NaN, without a draw, unless shape > 0.

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
def _beta_of_gammas(state: UIntArray, d_a: float, c_a: float, d_b: float, c_b: float) -> float:
    """Draw G_a / (G_a + G_b), one gamma after the other."""
    x = _gamma_of(state, d_a, c_a)
    return x / (x + _gamma_of(state, d_b, c_b))


@inlined
def beta_of(state: UIntArray, d_a: float, c_a: float, d_b: float, c_b: float) -> float:
    """Draw a beta with parameters of at least 1, from the constants of its two gammas.

    Usually both gammas accept their first proposals, which need four words: two normals and two
    uniforms. The words are drawn together, so that the state stays in registers. Otherwise the
    gammas are drawn one after the other from the same state. Both ways give the same numbers.

    >>> from bayescontrol.seeding import Stream
    >>> beta_of(Stream(1).state, *gamma_constants(2.0), *gamma_constants(3.0)) == beta(
    ...     Stream(1).state, 2.0, 3.0)
    True
    """
    word_a, s0, s1, s2, s3 = _next_word(state[0], state[1], state[2], state[3])
    bits_a, s0, s1, s2, s3 = _next_word(s0, s1, s2, s3)
    word_b, s0, s1, s2, s3 = _next_word(s0, s1, s2, s3)
    bits_b, s0, s1, s2, s3 = _next_word(s0, s1, s2, s3)
    i, j = word_a & LAYER, word_b & LAYER
    x, y = _position(word_a, i), _position(word_b, j)
    v, w = 1.0 + c_a * x, 1.0 + c_b * y
    is_inside = (abs(x) < N_INNER[i]) & (abs(y) < N_INNER[j]) & (v > 0.0) & (w > 0.0)
    accepts = (_fraction(bits_a) < _squeeze(x, c_a)) & (_fraction(bits_b) < _squeeze(y, c_b))
    if is_inside & accepts:
        state[0], state[1], state[2], state[3] = s0, s1, s2, s3
        x, y = d_a * (v * v * v), d_b * (w * w * w)
        return x / (x + y)
    return _beta_of_gammas(state, d_a, c_a, d_b, c_b)


@leaf
def _beta_by_odds(state: UIntArray, a: float, b: float) -> float:
    """Draw 1 / (1 + G_b / G_a) for any a, b > 0: the ratio neither overflows nor becomes 0/0.

    The gamma of a parameter below 1 may underflow, so the factors U^(1/a) and V^(1/b) enter
    the ratio by their logarithms.
    """
    if not (a > 0.0 and b > 0.0):
        return math.nan
    x = _gamma_from_one(state, a if a >= 1.0 else a + 1.0)
    odds = _gamma_from_one(state, b if b >= 1.0 else b + 1.0) / x
    if a < 1.0 and b < 1.0:
        log_u, log_v = -exponential(state), -exponential(state)
        # log_v / b - log_u / a, arranged so that no term overflows unless the result does.
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
    """Draw a number with density ∝ x^(a-1) (1-x)^(b-1), a, b > 0.

    Return NaN, without a draw, for any other a or b.

    >>> from bayescontrol.seeding import Stream
    >>> 0 <= beta(Stream(1).state, 1e-9, 1e-9) <= 1
    True
    """
    if 1.0 <= a < 1e300 and 1.0 <= b < 1e300:
        return beta_of(state, *gamma_constants(a), *gamma_constants(b))
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
    """Draw an index i with probability p_i / Σ p, never one with p_i = 0, from one uniform number.

    Return -1, without a draw, unless every p_i ≥ 0 and 0 < Σ p < ∞.

    >>> from bayescontrol.seeding import Stream
    >>> categorical(Stream(1).state, np.array([0.0, 3.0, 0.0]))
    1
    """
    total = 0.0
    for i in range(p.size):
        if not p[i] >= 0.0:  # negative or NaN
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
    return last  # if no break: u can round up to Σ p when the p are subnormal


@leaf
def permutation(state: UIntArray, out: IntArray) -> None:
    """Write 0 … n - 1 in uniformly random order to `out` (Fisher & Yates).

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


# One loop per distribution, because Numba cannot cache a kernel that takes another as an argument.


@leaf
def fill_uniform(state: UIntArray, out: FloatArray) -> None:
    """Fill `out` by calls of `uniform`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_uniform(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = uniform(state)


@leaf
def fill_normal(state: UIntArray, out: FloatArray) -> None:
    """Fill `out` by calls of `normal`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_normal(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = normal(state)


@leaf
def fill_exponential(state: UIntArray, out: FloatArray) -> None:
    """Fill `out` by calls of `exponential`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_exponential(Stream(1).state, np.empty(3))
    """
    for i in range(out.size):
        out[i] = exponential(state)


@leaf
def fill_gamma(state: UIntArray, shape: float, out: FloatArray) -> None:
    """Fill `out` by calls of `gamma`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_gamma(Stream(1).state, 2.0, np.empty(3))
    """
    for i in range(out.size):
        out[i] = gamma(state, shape)


@leaf
def fill_beta(state: UIntArray, a: float, b: float, out: FloatArray) -> None:
    """Fill `out` by calls of `beta`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_beta(Stream(1).state, 2.0, 3.0, np.empty(3))
    """
    for i in range(out.size):
        out[i] = beta(state, a, b)


@leaf
def fill_below(state: UIntArray, n: int, out: IntArray) -> None:
    """Fill `out` by calls of `below`.

    >>> from bayescontrol.seeding import Stream
    >>> fill_below(Stream(1).state, 6, np.empty(3, dtype=np.int64))
    """
    for i in range(out.size):
        out[i] = below(state, n)


@leaf
def fill_categorical(state: UIntArray, p: FloatArray, out: IntArray) -> None:
    """Fill `out` by calls of `categorical`.

    >>> from bayescontrol.seeding import Stream
    >>> state, p = Stream(1).state, np.array([1.0, 2.0])
    >>> fill_categorical(state, p, np.empty(3, dtype=np.int64))
    """
    for i in range(out.size):
        out[i] = categorical(state, p)
