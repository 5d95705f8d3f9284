"""Condition a distribution of hidden states on a signal.

    b'(y) = Σ_x b(x) M(x, y) / p,        p = Σ_x Σ_y b(x) M(x, y)

M(x, y) = P(y, s | x, a) for the action a and the signal s that were observed, and P(y | x, a) if
the observation was lost; then p = 1. The sums are in a fixed order, so the same history gives the
same bits.
"""

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels._jit import leaf

#: Allowed deviation of Σ b from 1.
TOLERANCE = 1e-6


@leaf
def condition(b: FloatArray, M: FloatArray, out: FloatArray) -> float:
    """b'(y) into `out`; return p. If p is 0, `out` is 0 too. If b is no distribution, p is NaN.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> p = condition(np.array([0.5, 0.5]), np.array([[0.75, 0.0], [0.0, 0.25]]), out)
    >>> p, out
    (0.5, array([0.75, 0.25]))
    """
    for y in range(out.size):
        out[y] = 0.0
    total = 0.0
    for x in range(b.size):
        total += b[x] if b[x] >= 0.0 else np.nan
        if b[x] > 0.0:
            for y in range(out.size):
                out[y] += b[x] * M[x, y]
    if not abs(total - 1.0) <= TOLERANCE:
        return np.nan
    p = 0.0
    for y in range(out.size):
        p += out[y]
    if p > 0.0:
        for y in range(out.size):
            out[y] /= p
    return p
