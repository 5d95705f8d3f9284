"""Weights of finitely many modes, with the range of logarithms and linear arithmetic.

    v_m ∝ w_m · 2^e_m        w_m a double, e_m an integer

    condition   w_m ← w_m P(o | m, x, a)          a product, rounded once
    draw        m with probability v_m / Σ v

A sum of logarithms loses its last digits as it grows, and a plain product underflows and
forgets a mode for good. Here a mode may fall 10^-2000 behind and come back.

Modes stand in blocks, and `blocks[b] = (sum, top, flat)`. In a flat block all exponents
equal `top` and e is not looked at: most updates are one multiplication per mode. A block
whose weights spread too far keeps an exponent for each mode. `sum` is Σ w_m 2^(e_m - top)
over the block, so a draw reads one block and not all modes.
"""

import math

import numpy as np

from bayescontrol.kernels._jit import jit
from bayescontrol.kernels.elementary import exp_split, log
from bayescontrol.protocols import FloatArray, IntArray

__all__ = [
    "BLOCK",
    "FLAT",
    "IMPOSSIBLE",
    "OK",
    "build",
    "condition",
    "condition_log",
    "draw",
    "exponents",
    "log_ratio",
    "merge",
    "posterior",
    "rebuild",
    "total",
]

BLOCK = 512
SUM, TOP, FLAT = 0, 1, 2
OK, IMPOSSIBLE = -1, -2

LOW = 2.0**-400
# Non-negative doubles are ordered as their bits are, and minima of integers are vector code.
ONE = np.uint64(1)
INFINITY_BITS = np.uint64(0x7FF << 52)
# Factors in [2^-256, 2^256] cannot push a w from [2^-400, 2^400] out of double range.
LOW_BITS, HIGH_BITS = np.uint64((1023 - 400) << 52), np.uint64((1023 + 400) << 52)
FACTOR_LOW_BITS, FACTOR_HIGH_BITS = np.uint64((1023 - 256) << 52), np.uint64((1023 + 256) << 52)
FACTOR_SPREAD = 250
#: 2^-n for n < 1024, then 0: what is 1024 binary orders down is 2^-224 of the block at most.
POWER = np.array([2.0**-n for n in range(1024)] + [0.0])
#: A logarithm below this counts as this: its exponent still fits into 32 bits.
LEAST_LOG = -1e9


@jit
def _bounds(w: FloatArray, b: int) -> tuple[int, int]:
    return b * BLOCK, min((b + 1) * BLOCK, w.shape[0])


@jit
def _shrink(w: float, below: int) -> float:
    """w · 2^-below; nothing is left after 1024 binary orders."""
    return w * float(POWER[max(0, min(below, 1024))])


@jit
def _shift(b: int, blocks: FloatArray, k: float) -> int:
    """The exponent of block b's sum on a scale where 2^k is one, kept from underflowing."""
    return int(max(blocks[b, TOP] - k, -2000.0))


@jit
def _summarise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """The sum of block b, in four lanes of fixed order."""
    start, stop = _bounds(w, b)
    s0 = s1 = s2 = s3 = 0.0
    if blocks[b, FLAT] == 1.0:
        i = start
        while i + 4 <= stop:
            s0 += w[i]
            s1 += w[i + 1]
            s2 += w[i + 2]
            s3 += w[i + 3]
            i += 4
        while i < stop:
            s0 += w[i]
            i += 1
    else:
        least = np.int64(-(1 << 62))
        top = least
        for i in range(start, stop):
            top = max(top, e[i] if w[i] > 0.0 else least)
        for i in range(start, stop):
            s0 += _shrink(w[i], top - e[i])
        blocks[b, TOP] = top
    blocks[b, SUM] = (s0 + s1) + (s2 + s3)


@jit
def _spread(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Give each mode of block b its own exponent."""
    if blocks[b, FLAT] == 1.0:
        start, stop = _bounds(w, b)
        e[start:stop] = np.int64(blocks[b, TOP])
        blocks[b, FLAT] = 0.0


@jit
def _normalise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Bring block b back into range: one common shift if that is enough, else each its own."""
    start, stop = _bounds(w, b)
    low, high = math.inf, 0.0
    for i in range(start, stop):
        if w[i] > 0.0:
            low, high = min(low, w[i]), max(high, w[i])
    if high == 0.0:
        return
    _, k = math.frexp(high)
    if blocks[b, FLAT] == 1.0 and math.ldexp(low, -k) >= LOW:
        for i in range(start, stop):
            w[i] = math.ldexp(w[i], -k)
        blocks[b, TOP] += k
    else:
        _spread(w, e, blocks, b)
        for i in range(start, stop):
            w[i], k = math.frexp(w[i])
            e[i] += k


@jit
def build(w: FloatArray, e: IntArray) -> FloatArray:
    """Blocks for fresh weights, flat wherever they can be."""
    blocks = np.empty((-(-w.shape[0] // BLOCK), 3))
    for b in range(blocks.shape[0]):
        start, stop = _bounds(w, b)
        blocks[b, FLAT] = 1.0 if np.all(e[start:stop] == e[start]) else 0.0
        blocks[b, TOP] = e[start]
        _normalise(w, e, blocks, b)
        _summarise(w, e, blocks, b)
    return blocks


@jit
def rebuild(w: FloatArray, e: IntArray, flat: FloatArray) -> FloatArray:
    """The very blocks that weights in this state had, whichever of them were flat."""
    blocks = np.empty((flat.shape[0], 3))
    for b in range(blocks.shape[0]):
        start, _ = _bounds(w, b)
        blocks[b, FLAT] = flat[b]
        blocks[b, TOP] = e[start]
        _summarise(w, e, blocks, b)
    return blocks


@jit
def exponents(w: FloatArray, e: IntArray, blocks: FloatArray) -> IntArray:
    """e_m of every mode, those of flat blocks included."""
    out = e.copy()
    for b in range(blocks.shape[0]):
        if blocks[b, FLAT] == 1.0:
            start, stop = _bounds(w, b)
            out[start:stop] = np.int64(blocks[b, TOP])
    return out


@jit
def _first_bad(likelihood: FloatArray) -> int:
    """The first entry that is NaN, negative or infinite; OK if there is none."""
    bits = likelihood.view(np.uint64)
    largest = bits[0]
    for i in range(bits.shape[0]):
        largest = max(largest, bits[i])
    if largest >= INFINITY_BITS:
        for i in range(bits.shape[0]):
            if bits[i] >= INFINITY_BITS and likelihood[i] != 0.0:  # -0. is a zero
                return i
    return OK


@jit
def _first_bad_log(log_likelihood: FloatArray) -> int:
    """The first entry that is NaN or +∞; OK if there is none."""
    n = log_likelihood.shape[0]
    good = 0
    for i in range(n):  # counting is vector code, an early exit is not
        good += log_likelihood[i] < math.inf
    if good < n:
        for i in range(n):
            if not log_likelihood[i] < math.inf:
                return i
    return OK


@jit
def _possible(w: FloatArray, evidence: FloatArray, nothing: float) -> bool:
    """Is there a mode with weight that gives the observation more than `nothing`?"""
    for i in range(w.shape[0]):
        if w[i] > 0.0 and evidence[i] > nothing:
            return True
    return False


@jit
def _outside(values: FloatArray, start: int, stop: int, low: np.uint64, high: np.uint64) -> bool:
    """Is there a positive value below `low` or one above `high` (both given as bits)?"""
    bits = values.view(np.uint64)
    # Subtracting one turns 0 into the largest integer: a zero is never too small.
    least, most = bits[start] - ONE, bits[start]
    for i in range(start, stop):
        least = min(least, bits[i] - ONE)
        most = max(most, bits[i])
    return bool(least < low - ONE or most > high)


@jit
def condition(w: FloatArray, e: IntArray, blocks: FloatArray, likelihood: FloatArray) -> int:
    """v_m ← v_m P(o | m, x, a). OK; or, with nothing changed, IMPOSSIBLE or the index of
    the first likelihood that is not one.
    """
    bad = _first_bad(likelihood)
    if bad != OK:
        return bad
    if not _possible(w, likelihood, 0.0):
        return IMPOSSIBLE
    for b in range(blocks.shape[0]):
        start, stop = _bounds(w, b)
        if _outside(likelihood, start, stop, FACTOR_LOW_BITS, FACTOR_HIGH_BITS):
            _spread(w, e, blocks, b)
            for i in range(start, stop):
                p, k = math.frexp(likelihood[i])
                w[i] *= p
                e[i] += k
        else:
            for i in range(start, stop):
                w[i] *= likelihood[i]
        if _outside(w, start, stop, LOW_BITS, HIGH_BITS):
            _normalise(w, e, blocks, b)
        _summarise(w, e, blocks, b)
    return OK


@jit
def condition_log(
    w: FloatArray, e: IntArray, blocks: FloatArray, log_likelihood: FloatArray
) -> int:
    """v_m ← v_m exp(ln P(o | m, x, a)), -∞ included. Returns as `condition` does."""
    bad = _first_bad_log(log_likelihood)
    if bad != OK:
        return bad
    if not _possible(w, log_likelihood, -math.inf):
        return IMPOSSIBLE
    p = np.empty(BLOCK)
    k = np.empty(BLOCK, np.int32)
    power = np.empty(BLOCK)
    power_bits = power.view(np.int64)
    for b in range(blocks.shape[0]):
        start, stop = _bounds(w, b)
        for i in range(start, stop):
            x = log_likelihood[i]
            factor, exponent = exp_split(max(x, LEAST_LOG))
            p[i - start] = factor if x > -math.inf else 0.0
            k[i - start] = np.int32(exponent)
        least, most = k[0], k[0]
        for j in range(stop - start):
            least, most = min(least, k[j]), max(most, k[j])
        if blocks[b, FLAT] == 1.0 and most - least < FACTOR_SPREAD:
            for j in range(stop - start):
                power_bits[j] = np.int64(1023 + k[j] - most) << 52  # the double 2^(k - most)
            for i in range(start, stop):
                w[i] *= p[i - start] * power[i - start]
            blocks[b, TOP] += most
        else:
            _spread(w, e, blocks, b)
            for i in range(start, stop):
                w[i] *= p[i - start]
                e[i] += k[i - start]
        if _outside(w, start, stop, LOW_BITS, HIGH_BITS):
            _normalise(w, e, blocks, b)
        _summarise(w, e, blocks, b)
    return OK


@jit
def merge(w: FloatArray, e: IntArray, w2: FloatArray, e2: IntArray, prior: FloatArray) -> None:
    """v_m ← v_m v'_m / P(m): the evidence of both, the prior counted once."""
    for i in range(w.shape[0]):
        if prior[i] > 0.0:
            p, j = math.frexp(w[i])
            q, k = math.frexp(w2[i])
            r, n = math.frexp(prior[i])
            w[i] = p * q / r
            e[i] += e2[i] + j + k - n


@jit
def total(blocks: FloatArray) -> tuple[float, int]:
    """Σ_m v_m as (s, k): the sum is s · 2^k."""
    reference = 0.0
    seen = False
    for b in range(blocks.shape[0]):
        if blocks[b, SUM] > 0.0:
            _, k = math.frexp(blocks[b, SUM])
            if not seen or blocks[b, TOP] + k > reference:
                reference, seen = blocks[b, TOP] + k, True
    s = 0.0
    for b in range(blocks.shape[0]):
        s += math.ldexp(blocks[b, SUM], _shift(b, blocks, reference))
    return s, int(reference)


@jit
def log_ratio(after: FloatArray, before: FloatArray) -> float:
    """ln (Σ v after / Σ v before), without cancellation between large logarithms."""
    s1, k1 = total(after)
    s0, k0 = total(before)
    return log(s1 / s0) + (k1 - k0) * 0.6931471805599453


@jit
def posterior(w: FloatArray, e: IntArray, blocks: FloatArray, out: FloatArray) -> None:
    """v_m / Σ v into `out`."""
    s, k = total(blocks)
    for b in range(blocks.shape[0]):
        start, stop = _bounds(w, b)
        top = np.int64(blocks[b, TOP])
        for i in range(start, stop):
            own = top if blocks[b, FLAT] == 1.0 else e[i]
            out[i] = math.ldexp(w[i] / s, int(max(own - k, -4000)))


@jit
def draw(w: FloatArray, e: IntArray, blocks: FloatArray, u: float) -> int:
    """m with probability v_m / Σ v for u uniform on [0, 1): the block first, then the mode."""
    s, k = total(blocks)
    left = u * s
    chosen = 0
    for b in range(blocks.shape[0]):
        share = math.ldexp(blocks[b, SUM], _shift(b, blocks, k))
        if share > 0.0:
            chosen = b
            if left < share:
                break
            left -= share
    top = np.int64(blocks[chosen, TOP])
    left = math.ldexp(left, int(k - top))
    start, stop = _bounds(w, chosen)
    m = start
    for i in range(start, stop):
        share = _shrink(w[i], 0 if blocks[chosen, FLAT] == 1.0 else top - e[i])
        if share > 0.0:
            m = i
            if left < share:
                return m
            left -= share
    return m  # rounding left a sliver: the last mode with weight takes it
