"""Normal and exponential numbers by the ziggurat: 256 layers of equal area under the density.

    x_i (f(x_{i+1}) - f(x_i)) = v,    i = 1 … 255,    x_1 = r,  x_256 = 0
    r f(r) + ∫_r^∞ f = v              the base: a rectangle and the tail
    x_0 = v / f(r)                    the base's width, were it a rectangle

Layer i is the rectangle [0, x_i] × [f(x_i), f(x_{i+1})]. A point of it left of x_{i+1}
lies under f for certain, so 985 draws of 1000 end with one word and one comparison
(Marsaglia & Tsang 2000). The layer, the sign and the place use different bits of the word.
The tables are computed in 36 decimal digits and rounded once: the same bits everywhere.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp
from bayescontrol.kernels.xoshiro import U11, next_uint64, uniform

# The only (r, v) for which 256 layers end at f(0) = 1; `tests/kernels` checks them.
NORMAL_R = Decimal("3.65415288536100877164542972039951576")
NORMAL_V = Decimal("0.00492867323397465534736177540233602807")
EXPONENTIAL_R = Decimal("7.6971174701310497140446280480152155")
EXPONENTIAL_V = Decimal("0.00394965982258155721997757195681486109")


class Layers(NamedTuple):
    """x_i, x_{i+1}, f(x_i) and f(x_{i+1}) - f(x_i) for i = 0 … 255. In the base f(x_0) reads 0.

    >>> normal_layers().inner[0]  # r: where the tail begins
    np.float64(3.654152885361009)
    """

    outer: FloatArray
    inner: FloatArray
    floor: FloatArray
    height: FloatArray


def _layers(
    r: Decimal, v: Decimal, f: Callable[[Decimal], Decimal], inverse: Callable[[Decimal], Decimal]
) -> Layers:
    with localcontext() as context:
        context.prec = 36
        x, y = [v / f(r), r], [Decimal(0), f(r)]
        while len(x) < 256:
            y.append(y[-1] + v / x[-1])
            x.append(inverse(y[-1]))
        x.append(Decimal(0))
        y.append(Decimal(1))
        step = [above - below for below, above in pairwise(y)]
    columns = (x[:-1], x[1:], y[:-1], step)
    return Layers(*(np.array([float(value) for value in column]) for column in columns))


def normal_layers() -> Layers:
    """The ziggurat of f(x) = exp(-x²/2), x ≥ 0.

    >>> layers = normal_layers()
    >>> bool(np.all(layers.outer > layers.inner)), float(layers.inner[-1])
    (True, 0.0)
    """
    return _layers(NORMAL_R, NORMAL_V, lambda x: (-x * x / 2).exp(), lambda y: (-2 * y.ln()).sqrt())


def exponential_layers() -> Layers:
    """The ziggurat of f(x) = exp(-x), x ≥ 0.

    >>> exponential_layers().outer.shape
    (256,)
    """
    return _layers(EXPONENTIAL_R, EXPONENTIAL_V, lambda x: (-x).exp(), lambda y: -y.ln())


LAYER, BASE = np.uint64(0xFF), np.uint64(0)

N_OUTER, N_INNER, N_FLOOR, N_HEIGHT = normal_layers()
E_OUTER, E_INNER, E_FLOOR, E_HEIGHT = exponential_layers()
# The widths of the layers per unit of a 53-bit integer: with sign, without.
N_UNIT, E_UNIT = N_OUTER * 2.0**-52, E_OUTER * 2.0**-53
N_TAIL, E_TAIL = float(N_INNER[0]), float(E_INNER[0])


@leaf
def _exponential_point(state: UIntArray) -> tuple[np.uint64, float]:
    word = next_uint64(state)
    i = word & LAYER
    return i, np.int64(word >> U11) * E_UNIT[i]


# The common case stands alone, small enough to be inlined into the loops that draw.


@leaf
def _exponential_outside(state: UIntArray, i: np.uint64, x: float) -> float:
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
    """A number with density e^-x. The tail beyond r has no memory: it is r plus another one.

    >>> exponential(np.array([1, 2, 3, 4], dtype=np.uint64)) > 0
    True
    """
    i, x = _exponential_point(state)
    if x < E_INNER[i]:
        return x
    return _exponential_outside(state, i, x)


@leaf
def _normal_point(state: UIntArray) -> tuple[np.uint64, float]:
    word = next_uint64(state)
    i = word & LAYER
    return i, (np.int64(word) >> 11) * N_UNIT[i]


@leaf
def _normal_outside(state: UIntArray, i: np.uint64, x: float) -> float:
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
    """A number with density e^(-x²/2) / √(2π); the tail beyond r as Marsaglia (1964) draws it.

    >>> abs(normal(np.array([1, 2, 3, 4], dtype=np.uint64))) < 9
    True
    """
    i, x = _normal_point(state)
    if abs(x) < N_INNER[i]:
        return x
    return _normal_outside(state, i, x)
