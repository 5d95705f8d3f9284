"""P(arm i is best) for independent arms, by adaptive quadrature with its own check.

    P_i = ∫ f_i(y) Π_{j≠i} F_j(y) dy,      F_j(y) = 1 - ∫_y^∞ f_j

Panels are laid from the right, where every F_j is 1, to the left, until some F_j is 0. In a
panel of half-width h, K Gauss nodes give both f and, through the matrix of `legendre`, F: no
distribution function is ever called. A panel stands if

    h c_K (c_K / c_{K/2})² ≤ ε      for each f_j and for their sum S = Σ_i f_i Π_{j≠i} F_j
    |∫ S - [Π_j F_j]| ≤ ε           both sides are the same integral, in two ways

where c_n are Legendre coefficients: they fall at least geometrically, so that the left side is
about c_{2K}, the first that Gauss's rule misses. Otherwise it is made narrower.
"""

import math

from bayescontrol.arrays import FloatArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.legendre import WEIGHT, K
from bayescontrol.kernels.panels import (
    EPSILON,
    HIGH,
    MASS,
    TAIL,
    densities,
    enter,
    larger,
    lay,
    miss,
    products,
    rounded_up,
)
from bayescontrol.kernels.posteriors import NORMAL, STUDENT

#: What `best` says: the probabilities are there, did not converge, or were asked of no law.
DONE, FAILED, INVALID = 0, 1, 2

#: `best` needs scratch of shape (ROWS · arms + MORE_ROWS, NODES).
ROWS, MORE_ROWS, NODES = 5, 3, K

#: How far from 1 the sum of all probabilities may be.
TOTAL = 1e-12
#: Some tens are needed; hundreds where scales differ by many orders.
MOST_PANELS = 10_000
#: Below, quantiles of Student's law leave the range of doubles.
LEAST_NU = 0.25


@leaf
def _valid(kind: int, a: float, b: float, nu: float) -> bool:
    located = -math.inf < a < math.inf if kind >= NORMAL else 0.0 < a < math.inf
    return located and 0.0 < b < math.inf and (kind != STUDENT or LEAST_NU <= nu < math.inf)


@leaf
def _root(x: float) -> float:
    """x^(1/2K): a panel wider by this has a c_2K that is x times as large."""
    for _ in range(5):
        x = math.sqrt(x)
    return x


@leaf
def best(
    kind: int,
    a: FloatArray,
    b: FloatArray,
    nu: FloatArray,
    P: FloatArray,
    scratch: FloatArray,
) -> int:
    """P_i ← P(arm i is best); DONE, or why not, with P as it was.

    The parameters of `posteriors`, one of each for each arm; `nu` only counts for Student's law.

    >>> import numpy as np
    >>> from bayescontrol.kernels.posteriors import BETA
    >>> a, b, P = np.array([2.0, 1.0]), np.array([1.0, 1.0]), np.empty(2)
    >>> best(BETA, a, b, b, P, np.empty((ROWS * 2 + MORE_ROWS, K))) == DONE, P.round(14)
    (True, array([0.66666667, 0.33333333]))
    """
    N = a.shape[0]
    for j in range(N):
        if not _valid(kind, a[j], b[j], nu[j]):
            return INVALID
    f, F, part = scratch[:N], scratch[N : 2 * N], scratch[2 * N : 3 * N]
    total, own = scratch[3 * N : 4 * N], scratch[4 * N : 5 * N]
    D, S, after = scratch[5 * N], scratch[5 * N + 1], scratch[5 * N + 2]
    low = rounded_up(enter(kind, a, b, nu, own))
    y = low
    for j in range(N):
        y = max(y, own[j, HIGH])
        for k in range(K):
            total[j, k] = 0.0
    epsilon = EPSILON + 4e-16 * N
    w, tried, rest = y - low, 0, 1.0
    while y > low and rest > EPSILON:
        tried += 1
        start = y
        left = lay(kind, a, b, nu, own, max(y - w, low), y)
        if not left < y or tried > MOST_PANELS:
            return FAILED
        error = densities(kind, a, b, nu, own, left, y, rest, f, D, after)
        if error <= epsilon:
            at_right, at_left = products(own, left, f, F, part, S, after)
            mass = 0.0
            for k in range(K):
                mass += WEIGHT[k] * S[k]
            error = larger(error, larger(abs(mass - (at_right - at_left)), miss(S)))
            if error <= epsilon:
                for j in range(N):
                    if own[j, HIGH] > left:
                        own[j, TAIL] += own[j, MASS]
                        for k in range(K):
                            total[j, k] += part[j, k]
                y, rest = left, at_left
        if not error < math.inf:
            return FAILED
        w = (start - left) * min(max(0.9 * _root(epsilon / max(error, 1e-300)), 0.3), 3.0)
    whole = 0.0
    for j in range(N):
        p = 0.0
        for k in range(K):
            p += WEIGHT[k] * total[j, k]
        own[j, MASS] = max(p, 0.0)
        whole += own[j, MASS]
    if not abs(whole - 1.0) <= TOTAL:
        return FAILED
    for j in range(N):
        P[j] = own[j, MASS] / whole
    return DONE


@leaf
def best_of_each(
    kind: int, a: FloatArray, b: FloatArray, nu: FloatArray, P: FloatArray, scratch: FloatArray
) -> tuple[int, int]:
    """`best` for each row of a batch; what it said last, and of which row.

    >>> import numpy as np
    >>> from bayescontrol.kernels.posteriors import NORMAL
    >>> mu, sd, P = np.array([[0.0, 0.0], [0.0, 9.0]]), np.ones((2, 2)), np.empty((2, 2))
    >>> best_of_each(NORMAL, mu, sd, sd, P, np.empty((ROWS * 2 + MORE_ROWS, K))), P.round(9)
    ((0, 1), array([[0.5, 0.5], [0. , 1. ]]))
    """
    for i in range(a.shape[0]):
        status = best(kind, a[i], b[i], nu[i], P[i], scratch)
        if status != DONE:
            return status, i
    return DONE, a.shape[0] - 1
