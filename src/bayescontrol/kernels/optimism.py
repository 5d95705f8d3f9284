"""Extended value iteration: the best of all MDPs that the data leave plausible.

    u'(x) = max_a r(x,a) + max { Σ_y p(y) u(y) :  ‖p - P(· | x,a)‖₁ ≤ d(x,a),  p a distribution }
    until  max_x (u' - u)(x) - min_x (u' - u)(x) < tolerance

The inner maximum takes d/2 of probability from where u is least and gives it to where u is most
(Jaksch, Ortner & Auer 2010, figures 1 and 2). r(x,a) = -∞ marks an action that x does not offer.
"""

import math

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import jit, leaf


@leaf
def optimistic(p: FloatArray, d: float, u: FloatArray, order: IntArray) -> float:
    """max Σ_y q(y) u(y) over distributions q with ‖q - p‖₁ ≤ d; `order` sorts u, least first.

    >>> p, u = np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 2.0])
    >>> optimistic(p, 0.5, u, np.array([0, 1, 2]))  # .25 goes from the first to the last
    1.0
    >>> optimistic(p, 9.0, u, np.array([0, 1, 2]))
    2.0
    """
    best = order[order.size - 1]
    excess = min(d / 2.0, 1.0 - p[best])
    value = excess * u[best]
    for y in range(p.size):
        value += p[y] * u[y]
    for i in range(order.size - 1):
        if not excess > 0.0:
            break
        y = order[i]
        taken = min(excess, p[y])
        value -= taken * u[y]
        excess -= taken
    return float(value)


@jit
def extended_value_iteration(
    P: FloatArray,
    r: FloatArray,
    d: FloatArray,
    tolerance: float,
    limit: int,
    policy: IntArray,
    u: FloatArray,
) -> int:
    """The sweeps made; the optimistic policy is left in `policy`, u, least 0, in `u`.

    u is begun from as it is given. After `limit` sweeps the policy is the one of then.

    >>> P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]])
    >>> policy, u = np.empty(2, np.int64), np.zeros(2)
    >>> sweeps = extended_value_iteration(P, np.array([[0.0, 0.0], [0.0, 1.0]]), np.zeros((2, 2)),
    ...                                   1e-6, 1000, policy, u)
    >>> policy, sweeps < 1000
    (array([1, 1]), True)
    """
    X, A = r.shape
    new = np.empty(X)
    for sweep in range(1, limit + 1):
        order = np.argsort(u)
        low, high, least = math.inf, -math.inf, math.inf
        for x in range(X):
            top = -math.inf
            for a in range(A):
                if r[x, a] > -math.inf:
                    q = r[x, a] + optimistic(P[x, a], d[x, a], u, order)
                    if q > top:
                        policy[x], top = a, q
            new[x] = top
            low, high, least = min(low, top - u[x]), max(high, top - u[x]), min(least, top)
        for x in range(X):
            u[x] = new[x] - least
        if high - low < tolerance:
            return sweep
    return limit
