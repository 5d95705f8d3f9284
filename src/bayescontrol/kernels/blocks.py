"""Weights in blocks: the sum of each is known, and most exponents need not be looked at.

    blocks[b] = (sum, top, flat)        sum = Σ w_m 2^(e_m - top) over block b

In a flat block all exponents equal `top` and e is not looked at: most updates are one
multiplication per mode. A block whose weights spread too far keeps an exponent for each mode.
"""

import math
from typing import TypeVar

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import jit

Array = TypeVar("Array", FloatArray, IntArray)

BLOCK = 512
SUM, TOP, FLAT = 0, 1, 2

LOW = 2.0**-400
#: 2^-n for n < 1024, then 0: what is 1024 binary orders down is 2^-224 of the block at most.
POWER = np.array([2.0**-n for n in range(1024)] + [0.0])
LEAST_EXPONENT = np.int64(-(1 << 62))


@jit
def part(array: Array, b: int) -> Array:
    """Block b of an array. Loops over a slice from 0 are vector code; from `start` they are not."""
    return array[b * BLOCK : (b + 1) * BLOCK]


@jit
def shrink(w: float, below: int) -> float:
    """w · 2^-below; nothing is left after 1024 binary orders."""
    return w * float(POWER[max(0, min(below, 1024))])


@jit
def shift(b: int, blocks: FloatArray, k: float) -> int:
    """The exponent of block b's sum on a scale where 2^k is one, kept from underflowing."""
    return int(max(blocks[b, TOP] - k, -2000.0))


@jit
def summarise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int, scratch: FloatArray) -> None:
    """The sum of block b, by halves: accurate, and vector code with the same bits everywhere."""
    v, k = part(w, b), part(e, b)
    n = v.shape[0]
    if blocks[b, FLAT] == 1.0:
        for i in range(n):
            scratch[i] = v[i]
    else:
        top = LEAST_EXPONENT
        for i in range(n):
            top = max(top, k[i] if v[i] > 0.0 else LEAST_EXPONENT)
        for i in range(n):
            scratch[i] = shrink(v[i], top - k[i])
        blocks[b, TOP] = top
    while n > 1:
        half = (n + 1) // 2
        upper = scratch[half:n]
        for i in range(upper.shape[0]):
            scratch[i] += upper[i]
        n = half
    blocks[b, SUM] = scratch[0]


@jit
def spread(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Give each mode of block b its own exponent."""
    if blocks[b, FLAT] == 1.0:
        part(e, b)[:] = np.int64(blocks[b, TOP])
        blocks[b, FLAT] = 0.0


@jit
def normalise(w: FloatArray, e: IntArray, blocks: FloatArray, b: int) -> None:
    """Bring block b back into range: one common shift if that is enough, else each its own."""
    v, exponent = part(w, b), part(e, b)
    low, high = math.inf, 0.0
    for i in range(v.shape[0]):
        if v[i] > 0.0:
            low, high = min(low, v[i]), max(high, v[i])
    if high == 0.0:
        return
    _, k = math.frexp(high)
    if blocks[b, FLAT] == 1.0 and math.ldexp(low, -k) >= LOW:
        for i in range(v.shape[0]):
            v[i] = math.ldexp(v[i], -k)
        blocks[b, TOP] += k
    else:
        spread(w, e, blocks, b)
        for i in range(v.shape[0]):
            v[i], k = math.frexp(v[i])
            exponent[i] += k


@jit
def build(w: FloatArray, e: IntArray) -> FloatArray:
    """Blocks for fresh weights, flat wherever they can be.

    >>> build(np.array([0.25, 0.75]), np.zeros(2, np.int64))  # one block: sum, top, flat
    array([[1., 0., 1.]])
    """
    blocks = np.empty((-(-w.shape[0] // BLOCK), 3))
    scratch = np.empty(BLOCK)
    for b in range(blocks.shape[0]):
        k = part(e, b)
        blocks[b, FLAT] = 1.0 if np.all(k == k[0]) else 0.0
        blocks[b, TOP] = k[0]
        normalise(w, e, blocks, b)
        summarise(w, e, blocks, b, scratch)
    return blocks


@jit
def rebuild(w: FloatArray, e: IntArray, flat: FloatArray) -> FloatArray:
    """The very blocks that weights in this state had, whichever of them were flat.

    >>> rebuild(np.array([0.5, 0.75]), np.array([-1, 0]), flat=np.array([0.0]))
    array([[1., 0., 0.]])
    """
    blocks = np.empty((flat.shape[0], 3))
    scratch = np.empty(BLOCK)
    for b in range(blocks.shape[0]):
        blocks[b, FLAT] = flat[b]
        blocks[b, TOP] = e[b * BLOCK]
        summarise(w, e, blocks, b, scratch)
    return blocks


@jit
def exponents(w: FloatArray, e: IntArray, blocks: FloatArray) -> IntArray:
    """e_m of every mode, those of flat blocks included.

    >>> w, e = np.array([0.25, 0.75]), np.zeros(2, np.int64)
    >>> blocks = build(w, e)
    >>> exponents(w, e, blocks)
    array([0, 0])
    """
    out = e.copy()
    for b in range(blocks.shape[0]):
        if blocks[b, FLAT] == 1.0:
            part(out, b)[:] = np.int64(blocks[b, TOP])
    return out
