"""NumPy's SeedSequence, from words of entropy to a state of four words (O'Neill 2015).

    hash(v)     v ← (v ^ c) c',  c' = c · A mod 2³²,  v ^ v ≫ 16
    mix(x, y)   L x - R y,  then itself ^ itself ≫ 16
    pool        four words: hash the entropy in, mix every word into every other, mix in the rest

The same words as `SeedSequence(entropy, spawn_key=key).generate_state(4, uint64)`, for one who
needs a stream for each of many decisions: NumPy takes twenty times as long.
"""

import numpy as np

from bayescontrol.arrays import UIntArray
from bayescontrol.kernels._jit import leaf

MASK = np.uint64(0xFFFFFFFF)
U16, U32 = np.uint64(16), np.uint64(32)
INIT_A, MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
INIT_B, MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
MIX_L, MIX_R = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)


@leaf
def _mixed(x: np.uint64, y: np.uint64) -> np.uint64:
    z = (MIX_L * x - MIX_R * y) & MASK
    return z ^ (z >> U16)


@leaf
def seed_state(entropy: UIntArray, pool: UIntArray, state: UIntArray) -> None:
    """The state for so many words of 32 bits, at least four; `pool` is room for four.

    >>> entropy = np.array([7, 0, 0, 0, 3, 9], np.uint64)  # the seed in four words, a spawn key
    >>> state = np.empty(4, np.uint64)
    >>> seed_state(entropy, np.empty(4, np.uint64), state)
    >>> from numpy.random import SeedSequence
    >>> bool((SeedSequence(7, spawn_key=(3, 9)).generate_state(4, np.uint64) == state).all())
    True
    """
    c = INIT_A
    for i in range(4):
        v = entropy[i] ^ c
        c = (c * MULT_A) & MASK
        v = (v * c) & MASK
        pool[i] = v ^ (v >> U16)
    for source in range(entropy.size):
        for i in range(4):
            if source != i:
                word = pool[source] if source < 4 else entropy[source]
                v = word ^ c
                c = (c * MULT_A) & MASK
                v = (v * c) & MASK
                pool[i] = _mixed(pool[i], v ^ (v >> U16))
    c = INIT_B
    for i in range(8):
        v = pool[i & 3] ^ c
        c = (c * MULT_B) & MASK
        v = (v * c) & MASK
        v ^= v >> U16
        if i & 1:
            state[i >> 1] |= v << U32
        else:
            state[i >> 1] = v


@leaf
def seed_states(entropy: UIntArray, k: int, pool: UIntArray, states: UIntArray) -> None:
    """The states for so many streams in a row: from each to the next, word k grows by one.

    >>> entropy, states = np.array([7, 0, 0, 0, 3, 9], np.uint64), np.empty((2, 4), np.uint64)
    >>> seed_states(entropy, 4, np.empty(4, np.uint64), states)
    >>> from numpy.random import SeedSequence
    >>> bool((SeedSequence(7, spawn_key=(4, 9)).generate_state(4, np.uint64) == states[1]).all())
    True
    """
    for i in range(states.shape[0]):
        seed_state(entropy, pool, states[i])
        entropy[k] += np.uint64(1)
