"""Gaussian regression in square-root form: one triangle and one vector hold the posterior.

    w ~ N(μ, Λ⁻¹)          Λ = RᵀR,  R upper triangular,      z = R μ
    r = x·w + noise        (R, z) ← rotations of (R, z) with the row (s x, s r),  s = 1/σ
    x·w ~ N(v·z, |v|²)     v = R⁻ᵀ x: one substitution gives mean and variance
    w   = R⁻¹ (z + n)      n standard normal

Rotations (Golub & Van Loan, Matrix Computations, on updating a factorization) never subtract
what they added, so the factor keeps its digits where an updated covariance loses them. `v` is
room for d numbers.
"""

import math

from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.xoshiro import uniform
from bayescontrol.kernels.ziggurat import normal


@leaf
def cholesky(Lambda: FloatArray, R: FloatArray) -> bool:
    """R upper triangular with RᵀR = Λ; False where Λ is not positive definite.

    >>> import numpy as np
    >>> R = np.empty((2, 2))
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]), R), R.tolist()
    (True, [[2.0, 1.0], [0.0, 1.0]])
    """
    d = Lambda.shape[0]
    for k in range(d):
        for i in range(d):
            R[k, i] = Lambda[k, i] if i >= k else 0.0
    for k in range(d):
        if not R[k, k] > 0.0:
            return False
        R[k, k] = math.sqrt(R[k, k])
        for i in range(k + 1, d):
            R[k, i] /= R[k, k]
        for m in range(k + 1, d):
            for i in range(m, d):
                R[m, i] -= R[k, m] * R[k, i]
    return True


@leaf
def absorb(
    R: FloatArray, z: FloatArray, x: FloatArray, scale: float, rho: float, v: FloatArray
) -> None:
    """RᵀR ← RᵀR + s² x xᵀ and Rᵀz ← Rᵀz + s ρ x, in place, by d rotations; s is `scale`.

    >>> import numpy as np
    >>> R, z = np.eye(1), np.zeros(1)
    >>> absorb(R, z, np.array([2.0]), 1.0, 3.0, np.empty(1))
    >>> float((R[0, 0] ** 2).round(12)), float((R[0, 0] * z[0]).round(12))
    (5.0, 6.0)
    """
    d = x.size
    for i in range(d):
        v[i] = scale * x[i]
    for k in range(d):
        if v[k] != 0.0:
            length = math.sqrt(R[k, k] * R[k, k] + v[k] * v[k])
            c, s = R[k, k] / length, v[k] / length
            R[k, k] = length
            for i in range(k + 1, d):
                old = R[k, i]
                R[k, i] = c * old + s * v[i]
                v[i] = c * v[i] - s * old
            old = z[k]
            z[k] = c * old + s * rho
            rho = c * rho - s * old


@leaf
def score(R: FloatArray, z: FloatArray, x: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Mean and variance of x·w: v·z and |v|², where v = R⁻ᵀ x is left behind.

    >>> import numpy as np
    >>> score(2.0 * np.eye(2), np.array([2.0, 0.0]), np.array([1.0, 1.0]), np.empty(2))
    (1.0, 0.5)
    """
    d = x.size
    for i in range(d):
        v[i] = x[i]
    mean, variance = 0.0, 0.0
    for k in range(d):
        t = v[k] / R[k, k]
        v[k] = t
        mean += t * z[k]
        variance += t * t
        for i in range(k + 1, d):
            v[i] -= R[k, i] * t
    return mean, variance


@leaf
def solve(R: FloatArray, y: FloatArray, w: FloatArray) -> None:
    """w = R⁻¹ y; with y = z it is the posterior mean μ.

    >>> import numpy as np
    >>> w = np.empty(2)
    >>> solve(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([3.0, 4.0]), w)
    >>> w.tolist()
    [1.0, 2.0]
    """
    for k in range(y.size - 1, -1, -1):
        rest = y[k]
        for i in range(k + 1, y.size):
            rest -= R[k, i] * w[i]
        w[k] = rest / R[k, k]


@leaf
def draw_weights(
    R: FloatArray, z: FloatArray, v: FloatArray, w: FloatArray, state: UIntArray
) -> None:
    """w = R⁻¹ (z + n) ~ N(μ, Λ⁻¹).

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> w = np.empty(1)
    >>> draw_weights(1e9 * np.eye(1), 1e9 * np.ones(1), np.empty(1), w, Stream(1).state)
    >>> round(float(w[0]), 6)
    1.0
    """
    for i in range(z.size):
        v[i] = z[i] + normal(state)
    solve(R, v, w)


@leaf
def dot(x: FloatArray, w: FloatArray) -> float:
    """x·w, summed from the left.

    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * w[i]
    return total


@leaf
def best(weights: FloatArray, x: FloatArray, state: UIntArray) -> int:
    """arg max_j x·w_j over the rows of `weights`; of equal ones one by chance.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> best(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.2, 0.7]), Stream(1).state)
    1
    """
    winner, most, ties = 0, dot(x, weights[0]), 1
    for j in range(1, weights.shape[0]):
        s = dot(x, weights[j])
        if s > most:
            winner, most, ties = j, s, 1
        elif s == most:
            ties += 1
            if uniform(state) * ties < 1.0:
                winner = j
    return winner
