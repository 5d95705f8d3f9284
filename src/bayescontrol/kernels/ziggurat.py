"""Tables of the ziggurat: a falling density cut into 256 layers of equal area.

    x_i (f(x_{i+1}) - f(x_i)) = v,    i = 1 … 255,    x_1 = r,  x_256 = 0
    r f(r) + ∫_r^∞ f = v              the base: a rectangle and the tail
    x_0 = v / f(r)                    the base's width, were it a rectangle

Layer i is the rectangle [0, x_i] × [f(x_i), f(x_{i+1})]. A point of it left of x_{i+1}
lies under f for certain: 99 draws of 100 end with that one comparison (Marsaglia & Tsang,
2000). The tables are computed in 36 decimal digits and rounded once, so that they are the
same bits wherever they are computed.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayescontrol.protocols import FloatArray

__all__ = [
    "EXPONENTIAL_R",
    "EXPONENTIAL_V",
    "NORMAL_R",
    "NORMAL_V",
    "Layers",
    "exponential_layers",
    "normal_layers",
]

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
