"""Particles: unbiased resampling, and a move that preserves mean and covariance.

    systematic     particle i is drawn ⌊n W_i + u⌋ - ⌊n W_{i-1} + u⌋ times, W the summed weights
    shrink         θ' = a θ + (1 - a) m + √(1 - a²) C ε,   C Cᵀ = V, ε standard normal

m and V are the weighted mean and covariance of the particles. The move spreads particles that
resampling made equal and shrinks them towards m, so that mean and covariance are preserved
(Liu & West 2001).
"""

import math

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.random import normal

# A pivot this small relative to the diagonal is rounding: that direction has no spread.
NO_SPREAD = 1e-14


@leaf
def effective_size(p: FloatArray) -> float:
    """Return (Σ p)² / Σ p²: the equivalent number of equally weighted particles.

    >>> import numpy as np
    >>> effective_size(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    total, squares = 0.0, 0.0
    for i in range(p.size):
        total += p[i]
        squares += p[i] * p[i]
    return total * total / squares


@leaf
def systematic(p: FloatArray, u: float, chosen: IntArray) -> None:
    """Write the indices of the resampled particles to `chosen`, from one uniform number u.

    >>> import numpy as np
    >>> chosen = np.empty(4, np.int64)
    >>> systematic(np.array([0.25, 0.75]), 0.5, chosen)
    >>> chosen.tolist()
    [0, 1, 1, 1]
    """
    last, total = 0, 0.0
    for i in range(p.size):
        total += p[i]
        if p[i] > 0.0:
            last = i  # rounding must not lead beyond the last particle with weight
    i, summed = 0, p[0]
    for k in range(chosen.size):
        mark = (k + u) / chosen.size * total
        while summed <= mark and i < last:
            i += 1
            summed += p[i]
        chosen[k] = i


@leaf
def moments(theta: FloatArray, p: FloatArray, m: FloatArray, V: FloatArray) -> None:
    """Write the weighted mean to m and the weighted covariance to V.

    >>> import numpy as np
    >>> m, V = np.empty(1), np.empty((1, 1))
    >>> moments(np.array([[0.0], [2.0]]), np.array([0.5, 0.5]), m, V)
    >>> m.tolist(), V.tolist()
    ([1.0], [[1.0]])
    """
    n, d = theta.shape
    total = 0.0
    m[:] = 0.0
    V[:] = 0.0
    for i in range(n):
        total += p[i]
        for k in range(d):
            m[k] += p[i] * theta[i, k]
    for k in range(d):
        m[k] /= total
    for i in range(n):
        if p[i] > 0.0:
            for k in range(d):
                weighted = p[i] * (theta[i, k] - m[k]) / total
                for j in range(k + 1):
                    V[k, j] += weighted * (theta[i, j] - m[j])
    for k in range(d):
        for j in range(k):
            V[j, k] = V[k, j]


@leaf
def spread(V: FloatArray, C: FloatArray) -> None:
    """Write the lower triangular C with C Cᵀ = V; its columns without spread are 0.

    >>> import numpy as np
    >>> C = np.empty((2, 2))
    >>> spread(np.array([[4.0, 2.0], [2.0, 1.0]]), C)
    >>> C.tolist()
    [[2.0, 0.0], [1.0, 0.0]]
    """
    d = V.shape[0]
    C[:] = 0.0
    for k in range(d):
        pivot = V[k, k]
        for j in range(k):
            pivot -= C[k, j] * C[k, j]
        if pivot > NO_SPREAD * V[k, k]:
            C[k, k] = math.sqrt(pivot)
            for i in range(k + 1, d):
                value = V[i, k]
                for j in range(k):
                    value -= C[i, j] * C[k, j]
                C[i, k] = value / C[k, k]


@leaf
def shrink(
    theta: FloatArray, chosen: IntArray, m: FloatArray, C: FloatArray, a: float,
    epsilon: FloatArray, out: FloatArray, rng_state: UIntArray,
) -> None:  # fmt: skip
    """Write θ' = a θ + (1 - a) m + √(1 - a²) C ε of each chosen particle; `epsilon` is scratch.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> theta, out = np.array([[1.0], [2.0]]), np.empty((2, 1))
    >>> shrink(theta, np.array([1, 1]), np.zeros(1), np.eye(1), 1.0, np.empty(1), out,
    ...        Stream(1).state)
    >>> out.tolist()
    [[2.0], [2.0]]
    """
    n, d = out.shape
    h = math.sqrt(1.0 - a * a)
    for i in range(n):
        for k in range(d):
            epsilon[k] = normal(rng_state)
        for k in range(d):
            step = 0.0
            for j in range(k + 1):
                step += C[k, j] * epsilon[j]
            out[i, k] = a * theta[chosen[i], k] + (1.0 - a) * m[k] + h * step
