"""xoshiro256++: 64 random bits from four words of state (Blackman & Vigna 2021).

    output   rotl(s_0 + s_3, 23) + s_0
    state    a linear map over GF(2): xors, one shift by 17, one rotation by 45

Its period is 2^256 - 1; the all-zero state, which maps to itself, is excluded. Only integer
operations: the same words on every machine, whatever NumPy's version.
"""

import numpy as np

from bayescontrol.arrays import UIntArray
from bayescontrol.kernels._jit import leaf

# Numba turns uint64 with int64 into float64, so every constant beside a word is a word.
U11, U17, U19, U23, U32, U41, U45 = (np.uint64(n) for n in (11, 17, 19, 23, 32, 41, 45))
LOW_HALF = np.uint64(0xFFFFFFFF)


@leaf
def next_uint64(state: UIntArray) -> int:
    """The next 64 bits of xoshiro256++.

    >>> state = np.array([1, 2, 3, 4], dtype=np.uint64)
    >>> next_uint64(state), next_uint64(state)
    (41943041, 58720359)
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    sum03 = s0 + s3
    state[0] = s0 ^ s3 ^ s1
    state[1] = s1 ^ s2 ^ s0
    state[2] = s2 ^ s0 ^ (s1 << U17)
    s3 ^= s1
    state[3] = (s3 << U45) | (s3 >> U19)
    word: int = ((sum03 << U23) | (sum03 >> U41)) + s0
    return word


@leaf
def uniform(state: UIntArray) -> float:
    """U in [0, 1): k · 2^-53 with k uniform below 2^53.

    >>> uniform(np.array([1, 2, 3, 4], dtype=np.uint64)) == (41943041 >> 11) * 2.0**-53
    True
    """
    return np.int64(next_uint64(state) >> U11) * 2.0**-53


@leaf
def below(state: UIntArray, n: int) -> int:
    """A uniform integer from 0 … n - 1, n ≥ 1, without bias (Lemire 2019).

    ⌊word · n / 2^64⌋, where the 2^64 mod n words that would favour some results are redrawn.

    >>> below(np.array([1, 2, 3, 4], dtype=np.uint64), 1)
    0
    """
    m = np.uint64(n)
    m_low, m_high = m & LOW_HALF, m >> U32
    while True:
        word = next_uint64(state)
        # The upper word of a 128-bit product, from four products of halves.
        w_low, w_high = word & LOW_HALF, word >> U32
        middle = w_high * m_low + ((w_low * m_low) >> U32)
        upper = w_low * m_high + (middle & LOW_HALF)
        high = w_high * m_high + (middle >> U32) + (upper >> U32)
        low = word * m
        # The threshold is below m, so the division is needed only if low is.
        if low >= m or low >= (np.uint64(0) - m) % m:
            return int(np.int64(high))
