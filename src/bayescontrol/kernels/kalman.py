"""Kalman filters of one or more plant models, for likelihoods of operation modes.

    x' = A x + B v + w,   y = C x' + D v + e         v: inputs and measured disturbances
    x⁻ = A x̂ + B v,   Σ⁻ = A Σ Aᵀ + W                S = C Σ⁻Cᵀ + V
    ln P(y | past, v) = ln N(y; C x⁻ + D v, S)
    x̂ ← x⁻ + L (y - ŷ),   L = Σ⁻Cᵀ S⁻¹,   Σ ← (1 - LC) Σ⁻ (1 - LC)ᵀ + L V Lᵀ

The state of a filter is one row: [is steady, ŷ, ŷ one step before, x̂, Σ]. A filter is steady while
Σ is its stationary value; then L and S are known, and Σ need not be computed. A lost sample or
another interval ends this, and it begins again when Σ has returned to its stationary value.

Student noise with ν degrees of freedom is an approximation. The likelihood is Student's t with
scale S, and V is multiplied by (ν + d²) / (ν + p), where d² = (y - ŷ)ᵀS⁻¹(y - ŷ): a bad sample
hardly moves the estimate.
"""

import math
from typing import NamedTuple

from bayescontrol.arrays import FloatArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import HALF_LOG_2PI, log, log_gamma_function, log_one_plus

#: A filter is steady if no entry of its covariance differs from the stationary one by more than
#: this, in units of the standard deviations.
STEADY = 1e-12
#: The number of scratch matrices.
LAYERS = 11


class FilterModels(NamedTuple):
    """Models of M plants with n states, q inputs and disturbances, and p outputs.

    >>> FilterModels._fields[:4]
    ('A', 'B', 'C', 'D')
    """

    A: FloatArray  #: (M, n, n)
    B: FloatArray  #: (M, n, q)
    C: FloatArray  #: (M, p, n)
    D: FloatArray  #: (M, p, q)
    W: FloatArray  #: (M, n, n), covariance of the process noise
    V: FloatArray  #: (M, p, p), covariance of the sensor noise
    nu: FloatArray  #: (M,), degrees of freedom of Student noise; ∞ for Gaussian noise
    T: FloatArray  #: (M, n + 2 p, n + q + p), the step of the stationary filter, see `steady_row`
    log_det: FloatArray  #: (M,), ln det S; NaN if there is no stationary filter
    Sigma: FloatArray  #: (M, n, n), the stationary Σ


@leaf
def limit(u: FloatArray, low: FloatArray, high: FloatArray, out: FloatArray) -> bool:
    """Write u within its limits; return False if an entry is infinite or not a number.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> limit(np.array([3.0, -0.5]), -np.ones(2), np.ones(2), out), out.tolist()
    (True, [1.0, -0.5])
    """
    valid = True
    for i in range(u.size):
        valid = valid and abs(u[i]) < math.inf
        out[i] = min(max(u[i], low[i]), high[i])
    return valid


@leaf
def next_signals(
    x: FloatArray, u: FloatArray, low: FloatArray, high: FloatArray, period: float, p: int,
    new: FloatArray,
) -> bool:  # fmt: skip
    """Write the signals of the next step: clock, period, limited input and setpoints.

    The layout is that of `experts.controllers.Signals`; p is the number of outputs. Setpoint,
    disturbance and output stay the same. Return False if u is not finite.

    >>> import numpy as np
    >>> new, one = np.empty(7), np.ones(1)
    >>> next_signals(np.array([4.0, 0.1, 0, 2, 1, 9, 3]), 5 * one, -one, one, 0.1, 1, new)
    True
    >>> new.tolist()
    [5.0, 0.1, 1.0, 2.0, 2.0, 9.0, 3.0]
    """
    for i in range(x.size):
        new[i] = x[i]
    new[0], new[1] = x[0] + 1.0, period
    for i in range(p):
        new[2 + u.size + p + i] = x[2 + u.size + i]
    return limit(u, low, high, new[2:])


@leaf
def feedback(
    S: FloatArray, K: FloatArray, c: FloatArray, r: FloatArray, x: FloatArray, u: FloatArray
) -> None:
    """Write u = S r - K x + c.

    >>> import numpy as np
    >>> u, one = np.empty(1), np.ones((1, 1))
    >>> feedback(2 * one, 3 * one, one[0], np.array([5.0]), np.array([1.0]), u)
    >>> u.tolist()
    [8.0]
    """
    for i in range(u.size):
        total = c[i]
        for j in range(r.size):
            total += S[i, j] * r[j]
        for j in range(x.size):
            total -= K[i, j] * x[j]
        u[i] = total


@leaf
def product(A: FloatArray, B: FloatArray, transpose: bool, out: FloatArray) -> None:
    """Write A B, or A Bᵀ with `transpose`.

    >>> import numpy as np
    >>> out = np.empty((1, 1))
    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), True, out)
    >>> out.item()
    11.0
    """
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * (B[j, k] if transpose else B[k, j])
            out[i, j] = total


@leaf
def lower_factor(S: FloatArray) -> bool:
    """Replace S by its lower Cholesky factor; return False if S is not positive definite.

    >>> import numpy as np
    >>> S = np.array([[4.0, 2.0], [2.0, 2.0]])
    >>> lower_factor(S), np.tril(S).tolist()
    (True, [[2.0, 0.0], [1.0, 1.0]])
    """
    for i in range(S.shape[0]):
        for j in range(i + 1):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                S[i, i] = math.sqrt(total)
            else:
                S[i, j] = total / S[j, j]
    return True


@leaf
def predict_mean(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, s: FloatArray, v: FloatArray,
    x: FloatArray, y: FloatArray,
) -> None:  # fmt: skip
    """Write x⁻ = A x̂ + B v and ŷ = C x⁻ + D v, for a filter with the state s.

    >>> import numpy as np
    >>> one, x, y = np.ones((1, 1)), np.empty(1), np.empty(1)
    >>> predict_mean(0.5 * one, one, 2 * one, 0 * one, np.array([0.0, 0, 0, 4, 1]), one[0], x, y)
    >>> x.item(), y.item()
    (3.0, 6.0)
    """
    n, p = x.size, y.size
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += A[i, j] * s[1 + 2 * p + j]
        for j in range(v.size):
            total += B[i, j] * v[j]
        x[i] = total
    for i in range(p):
        total = 0.0
        for j in range(n):
            total += C[i, j] * x[j]
        for j in range(v.size):
            total += D[i, j] * v[j]
        y[i] = total


@leaf
def _squared_distance(S: FloatArray, e: FloatArray, z: FloatArray) -> float:
    """Return eᵀS⁻¹e, where S is a lower factor; z is scratch."""
    total = 0.0
    for i in range(e.size):
        z[i] = e[i]
        for j in range(i):
            z[i] -= S[i, j] * z[j]
        z[i] /= S[i, i]
        total += z[i] * z[i]
    return total


@leaf
def _log_density(nu: float, p: int, square: float, log_det: float) -> float:
    """Return the log-density of an error of squared length `square`, Gaussian or Student's t."""
    if nu == math.inf:
        return -0.5 * (square + log_det) - p * HALF_LOG_2PI
    constant = log_gamma_function(0.5 * (nu + p)) - log_gamma_function(0.5 * nu)
    constant -= 0.5 * (p * log(nu * math.pi) + log_det)
    return constant - 0.5 * (nu + p) * log_one_plus(square / nu)


@leaf
def _innovation_factor(
    C: FloatArray, V: FloatArray, scale: float, P: FloatArray, G: FloatArray, S: FloatArray
) -> bool:
    """Write G = Σ⁻Cᵀ and the lower factor of S = C G + scale V; P is Σ⁻."""
    product(P, C, True, G)
    product(C, G, False, S)
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            S[i, j] += scale * V[i, j]
    return lower_factor(S)


@leaf
def steady_row(
    T: FloatArray, log_det: float, s: FloatArray, v: FloatArray, y: FloatArray, new: FloatArray
) -> float:
    """Write the next state of a steady filter to `new`; return ln P(y | past, v).

    (x̂', ŷ', z) = T (x̂, v, y), where z are the standardised innovations, z = U (y - C x⁻ - D v)
    with U S Uᵀ = 1.

    >>> import numpy as np
    >>> T, new = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [-0.5, -0.5, 0.5]]), np.empty(5)
    >>> log_p = steady_row(T, np.log(4), np.array([1.0, 2, 0, 2, 1]), np.ones(1), np.ones(1), new)
    >>> round(log_p, 6), new.tolist()
    (-2.112086, [1.0, 2.0, 2.0, 2.0, 1.0])
    """
    p, q = y.size, v.size
    n, at = T.shape[1] - p - q, 1 + 2 * p
    square = 0.0
    for i in range(p):
        new[1 + p + i] = s[1 + i]
    for i in range(n + 2 * p):
        total = 0.0
        for j in range(n):
            total += T[i, j] * s[at + j]
        for j in range(q):
            total += T[i, n + j] * v[j]
        for j in range(p):
            total += T[i, n + q + j] * y[j]
        if i < n:
            new[at + i] = total
        elif i < n + p:
            new[1 + i - n] = total
        else:
            square += total * total
    new[0] = 1.0
    for k in range(at + n, s.size):
        new[k] = s[k]
    return -0.5 * (square + log_det) - p * HALF_LOG_2PI


@leaf
def steady_step(
    T: FloatArray, log_det: FloatArray, states: FloatArray, v: FloatArray, y: FloatArray,
    new: FloatArray, log_p: FloatArray,
) -> bool:  # fmt: skip
    """Advance all filters if they are steady; otherwise return False. See `step`.

    >>> import numpy as np
    >>> T, states, new = np.ones((1, 3, 3)), np.zeros((1, 5)), np.empty((1, 5))
    >>> steady_step(T, np.zeros(1), states, np.ones(1), np.ones(1), new, np.empty(1))
    False
    """
    for m in range(states.shape[0]):
        if states[m, 0] != 1.0:
            return False
    for m in range(states.shape[0]):
        log_p[m] = steady_row(T[m], log_det[m], states[m], v, y, new[m])
    return True


@leaf
def update(
    models: FilterModels, m: int, s: FloatArray, x: FloatArray, y_hat: FloatArray, y: FloatArray,
    missing: bool, regular: bool, new: FloatArray, work: FloatArray,
) -> float:  # fmt: skip
    """Write the state of filter m after the output y to `new`; return ln P(y | past, v), or NaN.

    x and y_hat are x⁻ and ŷ. If the sample is `missing`, y is not used and the result is 0. The
    filter can become steady only if sampling is `regular`. `work` has the shape (LAYERS, w, w),
    where w is max(n, p). NaN means that S is not positive definite.

    >>> import numpy as np
    >>> one, flat = np.ones((1, 1, 1)), np.ones(1)
    >>> models = FilterModels(one, one, one, 0 * one, one, one, np.inf * flat, one, np.nan * flat,
    ...                       one)
    >>> new, zero = np.empty(5), np.zeros(1)
    >>> log_p = update(models, 0, np.array([0.0, 0, 0, 0, 1]), zero, zero, np.ones(1),
    ...                False, True, new, np.empty((LAYERS, 1, 1)))
    >>> round(log_p, 6), new.round(6).tolist()                # N(1; 0, 3), gain 2/3
    (-1.634911, [0.0, 0.666667, 0.0, 0.666667, 0.666667])
    """
    n, p = x.size, y_hat.size
    C, V = models.C[m], models.V[m]
    at_x, at_sigma = 1 + 2 * p, 1 + 2 * p + n
    P, G, S, K, T = work[0, :n, :n], work[1, :n, :p], work[2, :p, :p], work[3, :n, :p], work[4]
    e, z = work[7, 0, :p], work[8, 0, :p]
    new[0] = 0.0
    for i in range(p):
        e[i] = y[i] - y_hat[i]
        new[1 + p + i] = s[1 + i]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += models.A[m, i, k] * s[at_sigma + k * n + j]
            T[i, j] = total
    product(T[:n, :n], models.A[m], True, P)
    for i in range(n):
        new[at_x + i] = x[i]
        for j in range(n):
            P[i, j] += models.W[m, i, j]
            new[at_sigma + i * n + j] = P[i, j]
    if missing:
        _write_output(C, new, x, y_hat)
        return 0.0
    if not _innovation_factor(C, V, 1.0, P, G, S):
        return math.nan
    square, log_det = _squared_distance(S, e, z), 0.0
    for i in range(p):
        log_det += 2.0 * log(S[i, i])
    log_p, scale = _log_density(models.nu[m], p, square, log_det), 1.0
    if models.nu[m] < math.inf:
        scale = (models.nu[m] + square) / (models.nu[m] + p)
        if not _innovation_factor(C, V, scale, P, G, S):
            return math.nan
    for i in range(n):  # K = G S⁻¹, by two triangular systems
        for j in range(p):
            K[i, j] = G[i, j]
            for k in range(j):
                K[i, j] -= S[j, k] * K[i, k]
            K[i, j] /= S[j, j]
        for j in range(p - 1, -1, -1):
            for k in range(j + 1, p):
                K[i, j] -= S[k, j] * K[i, k]
            K[i, j] /= S[j, j]
        for j in range(p):
            new[at_x + i] += K[i, j] * e[j]
    _write_output(C, new, x, y_hat)
    _write_joseph(models, m, scale, new, work, n, p)
    if regular and models.nu[m] == math.inf and models.log_det[m] == models.log_det[m]:
        _settle(models.Sigma[m], new, at_sigma)
    return log_p


@leaf
def _write_output(C: FloatArray, new: FloatArray, x: FloatArray, y_hat: FloatArray) -> None:
    """Write ŷ of the corrected estimate: y_hat + C (x̂ - x⁻)."""
    p = y_hat.size
    for i in range(p):
        new[1 + i] = y_hat[i]
        for j in range(x.size):
            new[1 + i] += C[i, j] * (new[1 + 2 * p + j] - x[j])


@leaf
def _write_joseph(
    models: FilterModels, m: int, scale: float, new: FloatArray, work: FloatArray, n: int, p: int
) -> None:
    """Write Σ = (1 - KC) Σ⁻ (1 - KC)ᵀ + scale K V Kᵀ, which stays definite."""
    P, K, T, Z, E = work[0, :n, :n], work[3, :n, :p], work[4, :n, :n], work[5, :n, :n], work[6]
    product(K, models.C[m], False, T)
    for i in range(n):
        for j in range(n):
            T[i, j] = (1.0 if i == j else 0.0) - T[i, j]
    product(T, P, False, Z)
    product(Z, T, True, P)
    product(K, models.V[m], False, E[:n, :p])
    product(E[:n, :p], K, True, T)
    for i in range(n):
        for j in range(i + 1):
            value = 0.5 * (P[i, j] + P[j, i]) + 0.5 * scale * (T[i, j] + T[j, i])
            new[1 + 2 * p + n + i * n + j] = value
            new[1 + 2 * p + n + j * n + i] = value


@leaf
def _settle(Sigma: FloatArray, new: FloatArray, at: int) -> None:
    """Make the filter steady if its covariance has reached the stationary one."""
    n = Sigma.shape[0]
    for i in range(n):
        for j in range(n):
            scale = math.sqrt(Sigma[i, i] * Sigma[j, j])
            if not abs(new[at + i * n + j] - Sigma[i, j]) <= STEADY * scale:
                return
    new[0] = 1.0
    for i in range(n):
        for j in range(n):
            new[at + i * n + j] = Sigma[i, j]


@leaf
def step(
    models: FilterModels, states: FloatArray, v: FloatArray, y: FloatArray, missing: bool,
    regular: bool, new: FloatArray, log_p: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    """Advance the filters of all modes: `steady_row`, or `predict_mean` and `update`.

    The result is bitwise that of `steady_step` if all filters are steady.

    >>> import numpy as np
    >>> one, flat = np.ones((1, 1, 1)), np.ones(1)
    >>> models = FilterModels(one, one, one, 0 * one, one, one, np.inf * flat, one, np.nan * flat,
    ...                       one)
    >>> states, new, log_p = np.array([[0.0, 0, 0, 0, 1]]), np.empty((1, 5)), np.empty(1)
    >>> work = np.empty((LAYERS, 1, 1))
    >>> step(models, states, np.zeros(1), np.ones(1), False, True, new, log_p, work)
    >>> round(log_p.item(), 6), new.round(6).tolist()         # N(1; 0, 3), gain 2/3
    (-1.634911, [[0.0, 0.666667, 0.0, 0.666667, 0.666667]])
    """
    n, p = models.A.shape[1], models.C.shape[1]
    x, y_hat = work[9, 0], work[10, 0]
    for m in range(states.shape[0]):
        if regular and not missing and states[m, 0] == 1.0:
            log_p[m] = steady_row(models.T[m], models.log_det[m], states[m], v, y, new[m])
            continue
        predict_mean(
            models.A[m], models.B[m], models.C[m], models.D[m], states[m], v, x[:n], y_hat[:p]
        )
        log_p[m] = update(models, m, states[m], x[:n], y_hat[:p], y, missing, regular, new[m], work)


@leaf
def mix(states: FloatArray, flow: FloatArray, at_x: int, n: int, out: FloatArray) -> None:
    """Write the states that filters start from if modes may switch, see `beliefs.interacting`.

    flow[i, j] is P(m_t = i, m_{t+1} = j | âo_≤t). Row j becomes the mean and the covariance of the
    mixture Σ_i flow[i, j] N(x̂_i, Σ_i). It stays as it is if no other mode leads to j.

    >>> import numpy as np
    >>> states = np.array([[0.0, 0, 0, 0, 1], [0.0, 2, 2, 2, 1]])
    >>> out = np.empty((2, 5))
    >>> mix(states, np.array([[0.25, 0.0], [0.25, 0.5]]), 3, 1, out)
    >>> out.tolist()
    [[0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 2.0, 2.0, 2.0, 1.0]]
    """
    M, at_sigma = states.shape[0], at_x + n
    for j in range(M):
        total = 0.0
        for i in range(M):
            total += flow[i, j]
        stays = not total > 0.0 or flow[j, j] == total
        for k in range(states.shape[1]):
            out[j, k] = states[j, k] if stays else 0.0
        if stays:
            continue
        for i in range(M):
            w = flow[i, j] / total
            if w > 0.0:
                for k in range(1, states.shape[1]):
                    out[j, k] += w * states[i, k]
        for i in range(M):
            w = flow[i, j] / total
            if w > 0.0:
                for k in range(n):
                    d = w * (states[i, at_x + k] - out[j, at_x + k])
                    for c in range(n):
                        out[j, at_sigma + k * n + c] += d * (states[i, at_x + c] - out[j, at_x + c])
