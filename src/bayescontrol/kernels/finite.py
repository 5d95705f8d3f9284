"""Weights of finitely many modes, with the range of logarithms and linear arithmetic.

    v_m ∝ w_m · 2^e_m        w_m a double, e_m an integer

    condition   w_m ← w_m P(o | m, x, a)          a product, rounded once
    draw        m with probability v_m / Σ v

A sum of logarithms loses precision as it grows, and a plain product underflows and loses a mode for
ever. Here a mode can fall to 10^-2000 and recover. Weights are stored in blocks, so that a draw
reads one block instead of all modes:

    blocks[b] = (sum, top, flat)        sum = Σ w_m 2^(e_m - top) over block b

In a flat block all exponents equal `top` and e is unused: most updates are one multiplication per
mode. A block whose weights differ too much has an exponent for each mode.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import direct, jit, leaf
from bayescontrol.kernels.elementary import exp, exp_split, log
from bayescontrol.kernels.random import uniform

#: The number of modes in a block.
BLOCK = 512
#: The columns of `blocks`; FLAT is 1 for a flat block, otherwise 0.
SUM, TOP, FLAT = 0, 1, 2

#: A block stays flat while its smallest positive weight is at least about this part of the largest.
LOW = 2.0**-400
#: 2^-n for n < 1024, then 0: a weight 1024 binary orders down is at most 2^-224 of the block.
POWER = np.array([2.0**-n for n in range(1024)] + [0.0])
#: Stands for the exponent of a weight 0.
MIN_EXPONENT = np.int64(-(1 << 62))


class Weights(NamedTuple):
    """The weights v_m ∝ w_m · 2^e_m of all modes; loops update the arrays in place."""

    w: FloatArray
    e: IntArray
    #: Sum, largest exponent and flatness of each block.
    blocks: FloatArray


@leaf
def block(b: int) -> slice:
    """Return the modes of block b. Numba vectorises loops over a slice, but not with an offset."""
    return slice(b * BLOCK, (b + 1) * BLOCK)


@leaf
def shrink(w: float, orders: int) -> float:
    """Return w · 2^-orders; 0 from 1024 binary orders on."""
    return w * float(POWER[max(0, min(orders, 1024))])


@leaf
def relative_exponent(b: int, blocks: FloatArray, k: float) -> int:
    """Return the exponent of block b's sum relative to 2^k; at -2000 and below the sum is 0."""
    return int(max(blocks[b, TOP] - k, -2000.0))


@leaf
def summarise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Compute the sum of block b."""
    w_block, e_block = w[block(b)], e[block(b)]
    flat, top = blocks[b, FLAT] == 1.0, MIN_EXPONENT
    if not flat:
        for i in range(w_block.shape[0]):
            top = max(top, e_block[i] if w_block[i] > 0.0 else MIN_EXPONENT)
        blocks[b, TOP] = top
    # Eight sums in turn: faster and more accurate than one, and the same bits on every machine.
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(w_block.shape[0]):
        mass = w_block[i] if flat else shrink(w_block[i], top - e_block[i])
        s0, s1, s2, s3, s4, s5, s6, s7 = s1, s2, s3, s4, s5, s6, s7, s0 + mass
    blocks[b, SUM] = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@leaf
def spread(e: IntArray, blocks: FloatArray, b: int) -> None:
    """Give each mode of block b its own exponent."""
    if blocks[b, FLAT] == 1.0:
        e[block(b)][:] = np.int64(blocks[b, TOP])
        blocks[b, FLAT] = 0.0


@leaf
def normalise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Rescale block b: by one power of 2 if that suffices, otherwise each mode by its own."""
    w_block, e_block = w[block(b)], e[block(b)]
    low, high = math.inf, 0.0
    for i in range(w_block.shape[0]):
        if w_block[i] > 0.0:
            low, high = min(low, w_block[i]), max(high, w_block[i])
    if high == 0.0:
        return
    _, k = math.frexp(high)
    if blocks[b, FLAT] == 1.0 and math.ldexp(low, -k) >= LOW:
        for i in range(w_block.shape[0]):
            w_block[i] = math.ldexp(w_block[i], -k)
        blocks[b, TOP] += k
    else:
        spread(e, blocks, b)
        for i in range(w_block.shape[0]):
            w_block[i], k = math.frexp(w_block[i])
            e_block[i] += k


@jit
def build(w: FloatArray, e: IntArray) -> FloatArray:
    """Normalise new weights and return their blocks, flat where possible.

    >>> build(np.array([0.25, 0.75]), np.zeros(2, np.int64))  # one block: sum, top, flat
    array([[1., 0., 1.]])
    """
    blocks = np.empty((-(-w.shape[0] // BLOCK), 3))
    for b in range(blocks.shape[0]):
        k = e[block(b)]
        blocks[b, FLAT] = 1.0 if np.all(k == k[0]) else 0.0
        blocks[b, TOP] = k[0]
        normalise(w, e, blocks, b)
        summarise(w, e, blocks, b)
    return blocks


@jit
def rebuild(w: FloatArray, e: IntArray, flat: FloatArray) -> FloatArray:
    """Return the blocks of saved weights; flat[b] is 1 if block b was flat, 0 if not.

    >>> rebuild(np.array([0.5, 0.75]), np.array([-1, 0]), flat=np.array([0.0]))
    array([[1., 0., 0.]])
    """
    blocks = np.empty((flat.shape[0], 3))
    for b in range(blocks.shape[0]):
        blocks[b, FLAT] = flat[b]
        blocks[b, TOP] = e[b * BLOCK]
        summarise(w, e, blocks, b)
    return blocks


@jit
def exponents(e: IntArray, blocks: FloatArray) -> IntArray:
    """Return e_m of every mode, also of those in flat blocks.

    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> exponents(e, blocks)
    array([0, 0])
    """
    out = e.copy()
    for b in range(blocks.shape[0]):
        if blocks[b, FLAT] == 1.0:
            out[block(b)][:] = np.int64(blocks[b, TOP])
    return out


# ------------------------------------------------------------------------------------------------
# Operations on the weights.

#: Results of `condition`: success, and an observation that every mode rules out. A result of 0 or
#: more is the index of an invalid likelihood.
OK, IMPOSSIBLE = -1, -2

# Nonnegative doubles have the order of their bits, and minima of integers are vectorised.
INFINITY_BITS = np.int64(0x7FF << 52)
# Factors in [2^-256, 2^256] cannot push a w from [2^-400, 2^400] out of double range.
LOW_BITS, HIGH_BITS = np.int64((1023 - 400) << 52), np.int64((1023 + 400) << 52)
FACTOR_LOW_BITS, FACTOR_HIGH_BITS = np.int64((1023 - 256) << 52), np.int64((1023 + 256) << 52)
#: In a flat block the exponents of the factors differ by less than this.
FACTOR_SPREAD = 250
#: A log-likelihood above MAX_LOG is invalid. One below MIN_LOG, relative to the best mode, is
#: raised to MIN_LOG. So exponents fit into 32 bits, and their sums into a double for millions of
#: steps.
MIN_LOG, MAX_LOG = -1e9, 1e9
#: The largest double: an infinite likelihood is invalid.
LARGEST = np.finfo(np.float64).max


@leaf
def _bit_range(values: FloatArray) -> tuple[np.int64, np.int64]:
    """Return the bits of the smallest and of the largest value."""
    bits = values.view(np.int64)
    smallest, largest = bits[0], bits[0]
    for i in range(bits.shape[0]):
        smallest, largest = min(smallest, bits[i]), max(largest, bits[i])
    return smallest, largest


@leaf
def _first_outside(values: FloatArray, low: float, high: float) -> int:
    """Return the index of the first value that is not in [low, high], or NaN; OK if all are."""
    n = values.shape[0]
    valid_count = 0
    for i in range(n):  # Numba vectorises counting, but no loop with an early exit
        valid_count += (low <= values[i]) & (values[i] <= high)
    if valid_count < n:
        for i in range(n):
            if not low <= values[i] <= high:
                return i
    return OK


@leaf
def _is_possible(w: FloatArray, evidence: FloatArray, threshold: float) -> bool:
    """Return whether a mode with positive weight has evidence above `threshold`."""
    for i in range(w.shape[0]):
        if w[i] > 0.0 and evidence[i] > threshold:
            return True
    return False


@leaf
def _has_value_outside(values: FloatArray, low: np.int64, high: np.int64) -> bool:
    """Return whether a positive value is below `low` or a value above `high` (given as bits)."""
    smallest, largest = _bit_range(values)
    if smallest >= low or largest > high:
        return bool(largest > high)
    bits = values.view(np.int64)
    for i in range(bits.shape[0]):
        if 0 < bits[i] < low:  # zeros are not too small
            return True
    return False


@leaf
def condition(w: FloatArray, e: IntArray, blocks: FloatArray, likelihood: FloatArray) -> int:
    """Multiply the weights by the likelihoods: v_m ← v_m P(o | m, x, a). Return OK.

    Leave the weights unchanged and return IMPOSSIBLE if every mode rules the observation out, or
    the index of the first invalid likelihood if there is one.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> condition(w, e, blocks, np.array([0.5, np.nan]))
    1
    >>> condition(w, e, blocks, np.array([1.0, 0.0])) == OK, w
    (True, array([0.25, 0.  ]))
    """
    smallest, largest = _bit_range(likelihood)
    if smallest < 0 or largest >= INFINITY_BITS:  # negative, infinite or NaN; or -0., a zero
        invalid = _first_outside(likelihood, 0.0, LARGEST)
        if invalid != OK:
            return invalid
    if not _is_possible(w, likelihood, 0.0):
        return IMPOSSIBLE
    in_range = smallest >= FACTOR_LOW_BITS and largest <= FACTOR_HIGH_BITS
    for b in range(blocks.shape[0]):
        w_block, factor = w[block(b)], likelihood[block(b)]
        if not in_range and _has_value_outside(factor, FACTOR_LOW_BITS, FACTOR_HIGH_BITS):
            spread(e, blocks, b)
            e_block = e[block(b)]
            for i in range(w_block.shape[0]):
                p, k = math.frexp(abs(factor[i]))
                w_block[i] *= p
                e_block[i] += k
        else:
            for i in range(w_block.shape[0]):
                w_block[i] *= abs(factor[i])  # -0. is a zero
        if _has_value_outside(w_block, LOW_BITS, HIGH_BITS):
            normalise(w, e, blocks, b)
        summarise(w, e, blocks, b)
    return OK


@leaf
def log_likelihoods(likelihood: FloatArray, out: FloatArray) -> None:
    """Write ln P(o | m, x, a) of every mode to `out`.

    >>> out = np.empty(2)
    >>> log_likelihoods(np.array([1.0, 0.0]), out)
    >>> out
    array([  0., -inf])
    """
    for m in range(likelihood.shape[0]):
        out[m] = log(likelihood[m])


@jit
def condition_log(
    w: FloatArray, e: IntArray, blocks: FloatArray, log_likelihood: FloatArray
) -> int:
    """Multiply the weights by exp(ln P(o | m, x, a)); -∞ gives weight 0. Return as `condition`.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> condition_log(w, e, blocks, np.array([0.0, -math.inf])) == OK, w
    (True, array([0.25, 0.  ]))
    """
    invalid = _first_outside(log_likelihood, -math.inf, MAX_LOG)
    if invalid != OK:
        return invalid
    best = 0.0
    if not _is_possible(w, log_likelihood, 0.5 * MIN_LOG):  # all are small: divide by the best
        best = -math.inf
        for i in range(w.shape[0]):
            best = max(best, log_likelihood[i] if w[i] > 0.0 else -math.inf)
        if best == -math.inf:
            return IMPOSSIBLE
    # The factor of a mode is e^x = e^(x - best) · common · 2^common_exponent.
    common, common_exponent = exp_split(max(best, MIN_LOG))
    size = min(BLOCK, w.shape[0])
    p = np.empty(size)
    k = np.empty(size, np.int32)
    power = np.empty(size)
    power_bits = power.view(np.int64)
    for b in range(blocks.shape[0]):
        w_block, x = w[block(b)], log_likelihood[block(b)]
        n = w_block.shape[0]
        for i in range(n):
            factor, factor_exponent = exp_split(max(x[i] - best, MIN_LOG))
            p[i] = factor * common if x[i] > -math.inf else 0.0
            k[i] = np.int32(factor_exponent)
        lowest, highest = k[0], k[0]
        for i in range(n):
            lowest, highest = min(lowest, k[i]), max(highest, k[i])
        if blocks[b, FLAT] == 1.0 and highest - lowest < FACTOR_SPREAD:
            for i in range(n):
                power_bits[i] = np.int64(1023 + k[i] - highest) << 52  # the double 2^(k - highest)
            for i in range(n):
                w_block[i] *= p[i] * power[i]
            blocks[b, TOP] += highest + common_exponent
        else:
            spread(e, blocks, b)
            e_block = e[block(b)]
            for i in range(n):
                w_block[i] *= p[i]
                e_block[i] += k[i] + common_exponent
        if _has_value_outside(w_block, LOW_BITS, HIGH_BITS):
            normalise(w, e, blocks, b)
        summarise(w, e, blocks, b)
    return OK


@leaf
def merge(w: FloatArray, e: IntArray, w2: FloatArray, e2: IntArray, prior: FloatArray) -> None:
    """Combine two posteriors of the same prior: v_m ← v_m v'_m / P(m).

    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> merge(w, e, w.copy(), e.copy(), prior=np.array([0.5, 0.5]))
    >>> w * 2.0**e
    array([0.125, 1.125])
    """
    for i in range(w.shape[0]):
        if prior[i] > 0.0:
            # Fractions and exponents are combined separately, so that nothing under- or overflows.
            fraction, k = math.frexp(w[i])
            fraction2, k2 = math.frexp(w2[i])
            prior_fraction, prior_k = math.frexp(prior[i])
            w[i] = fraction * fraction2 / prior_fraction
            e[i] += e2[i] + k + k2 - prior_k


@leaf
def total(blocks: FloatArray) -> tuple[float, int]:
    """Return Σ_m v_m as (s, k): the sum is s · 2^k.

    >>> from bayescontrol.kernels.finite import build
    >>> total(build(np.array([0.25, 0.75]), np.zeros(2, np.int64)))
    (0.5, 1)
    """
    reference = 0.0  # k, the exponent of the largest sum of a block; 0 if all are 0
    found = False
    for b in range(blocks.shape[0]):
        if blocks[b, SUM] > 0.0:
            _, k = math.frexp(blocks[b, SUM])
            if not found or blocks[b, TOP] + k > reference:
                reference, found = blocks[b, TOP] + k, True
    s = 0.0
    for b in range(blocks.shape[0]):
        s += math.ldexp(blocks[b, SUM], relative_exponent(b, blocks, reference))
    return s, int(reference)


@leaf
def log_ratio(after: FloatArray, before: FloatArray) -> float:
    """Return ln (Σ v after / Σ v before), without cancellation between large logarithms.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> log_ratio(blocks, blocks)
    0.0
    """
    s1, k1 = total(after)
    s0, k0 = total(before)
    return log(s1 / s0) + (k1 - k0) * 0.6931471805599453  # ln 2


@leaf
def _share(w: float, power: Any, s: float, k: int) -> float:
    """Return w 2^power / (s 2^k); 0 if that is below the range of doubles."""
    return math.ldexp(w / s, int(max(power - k, -4000)))


@leaf
def share(w: FloatArray, e: IntArray, blocks: FloatArray, m: int, s: float, k: int) -> float:
    """Return v_m / Σ v of one mode, where Σ v = s · 2^k: the same bits as `posterior`.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([1.0, 3.0]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> share(w, e, blocks, 1, *total(blocks))
    0.75
    """
    b = m // BLOCK
    power = np.int64(blocks[b, TOP]) if blocks[b, FLAT] == 1.0 else e[m]
    return _share(w[m], power, s, k)


@leaf
def posterior(w: FloatArray, e: IntArray, blocks: FloatArray, out: FloatArray) -> None:
    """Write v_m / Σ v to `out`.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([1.0, 3.0]), np.zeros(2, np.int64)
    >>> posterior(w, e, build(w, e), out := np.empty(2))
    >>> out
    array([0.25, 0.75])
    """
    s, k = total(blocks)  # Σ v = s · 2^k
    for b in range(blocks.shape[0]):
        w_block, e_block, out_block = w[block(b)], e[block(b)], out[block(b)]
        flat, top = blocks[b, FLAT] == 1.0, np.int64(blocks[b, TOP])
        for i in range(w_block.shape[0]):
            power = top if flat else e_block[i]
            out_block[i] = _share(w_block[i], power, s, k)


@jit
def temper(w: FloatArray, e: IntArray, blocks: FloatArray, temperature: float) -> FloatArray:
    """Return v_m^(1/T) / Σ v^(1/T).

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([1.0, 3.0]), np.zeros(2, np.int64)
    >>> temper(w, e, build(w, e), 0.5)
    array([0.1, 0.9])
    """
    powers, p = exponents(e, blocks), np.empty(w.size)
    largest = -math.inf
    for m in range(w.size):
        p[m] = (log(w[m]) + powers[m] * 0.6931471805599453) / temperature  # ln 2
        largest = max(largest, p[m])
    for m in range(w.size):
        p[m] = exp(p[m] - largest) if w[m] > 0.0 else 0.0
    p /= p.sum()
    return p


@leaf
def draw(w: FloatArray, e: IntArray, blocks: FloatArray, u: float) -> int:
    """Return m with probability v_m / Σ v for u uniform on [0, 1): the block first, then the mode.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> draw(w, e, blocks, 0.2), draw(w, e, blocks, 0.3)
    (0, 1)
    """
    s, k = total(blocks)  # Σ v = s · 2^k
    remaining = u * s
    chosen = 0
    for b in range(blocks.shape[0]):
        mass = math.ldexp(blocks[b, SUM], relative_exponent(b, blocks, k))
        if mass > 0.0:
            chosen = b
            if remaining < mass:
                break
            remaining -= mass
    top = np.int64(blocks[chosen, TOP])
    remaining = math.ldexp(remaining, int(k - top))  # now in units of 2^top, as the block's weights
    flat, w_block, e_block = blocks[chosen, FLAT] == 1.0, w[block(chosen)], e[block(chosen)]
    m = 0
    for i in range(w_block.shape[0]):
        mass = shrink(w_block[i], 0 if flat else top - e_block[i])
        if mass > 0.0:
            m = i
            if remaining < mass:
                break
            remaining -= mass  # a remainder from rounding goes to the last mode with weight
    return chosen * BLOCK + m


@leaf
def sample(w: FloatArray, e: IntArray, blocks: FloatArray, state: UIntArray) -> int:
    """Draw m with probability v_m / Σ v, by one uniform number.

    >>> from bayescontrol.seeding import Stream
    >>> w, e = np.array([0.0, 1.0]), np.zeros(2, np.int64)
    >>> sample(w, e, build(w, e), Stream(0).state)
    1
    """
    return draw(w, e, blocks, uniform(state))


@leaf
def switch(
    v: FloatArray, hazards: FloatArray, given: FloatArray, prior: FloatArray, flow: FloatArray,
    new: FloatArray,
) -> None:  # fmt: skip
    """Write P(m_{t+1}), P(m_t = m, no change) and P(m_t = m, change) to the rows of `flow`.

    v is P(m_t), and given[i, m] is P(h_i | m_t = m); P(h_i | m_{t+1} = m) is written to `new`. A
    change draws m_{t+1} from the prior.

    >>> flow, new = np.empty((3, 2)), np.empty((1, 2))
    >>> v, h, prior = np.array([0.8, 0.2]), np.array([0.25]), np.array([0.5, 0.5])
    >>> switch(v, h, np.ones((1, 2)), prior, flow, new)
    >>> flow.round(6).tolist()
    [[0.725, 0.275], [0.6, 0.15], [0.2, 0.05]]
    """
    for m in range(v.size):
        flow[0, m] = flow[1, m] = flow[2, m] = 0.0
    for i in range(hazards.size):
        h, left = hazards[i], 0.0
        for m in range(v.size):
            w = given[i, m] * v[m]
            flow[1, m] += (1.0 - h) * w
            flow[2, m] += h * w
            left += h * w
        for m in range(v.size):
            new[i, m] = (1.0 - h) * (given[i, m] * v[m]) + left * prior[m]
            flow[0, m] += new[i, m]
    for i in range(hazards.size):
        for m in range(v.size):
            new[i, m] = new[i, m] / flow[0, m] if flow[0, m] > 0.0 else given[i, m]


# For calls from Python.
sample_direct = direct(sample, "sample_direct")
