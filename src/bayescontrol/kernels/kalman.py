"""Kalman filters of one or more plant models, for likelihoods of operation modes.

    x' = A x + B v + w,   y = C x' + D v + e         v: inputs and measured disturbances
    x⁻ = A x̂ + B v,   Σ⁻ = A Σ Aᵀ + W                S = C Σ⁻Cᵀ + V
    y⁻ = C x⁻ + D v,   ln P(y | past, v) = ln N(y; y⁻, S)
    x̂ ← x⁻ + L (y - y⁻),   L = Σ⁻Cᵀ S⁻¹,   Σ ← (1 - LC) Σ⁻ (1 - LC)ᵀ + L V Lᵀ

The state of a filter is one row: [is steady, ŷ, ŷ one step before, x̂, Σ]. A filter is steady while
Σ is its stationary value; then L and S are known, and Σ need not be computed. A lost sample or
another interval ends this, and it begins again when Σ has returned to its stationary value.

Student noise with ν degrees of freedom is an approximation. The likelihood is Student's t with
scale S, and V is multiplied by (ν + d²) / (ν + p), where d² = (y - y⁻)ᵀS⁻¹(y - y⁻): a bad sample
hardly moves the estimate.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import HALF_LOG_2PI, log, log_gamma_function, log_one_plus
from bayescontrol.kernels.regression import cholesky, solve_upper

#: A filter is steady if no entry of its covariance differs from the stationary one by more than
#: this, in units of the standard deviations.
STEADY = 1e-12


class FilterModels(NamedTuple):
    """Models of M plants with n states, q inputs and disturbances, and p outputs.

    >>> FilterModels._fields[:4]
    ('F', 'H', 'W', 'V')
    """

    F: FloatArray  #: (M, n, n + q), the matrices [A B]
    H: FloatArray  #: (M, p, n + q), the matrices [C D]
    W: FloatArray  #: (M, n, n), covariance of the process noise
    V: FloatArray  #: (M, p, p), covariance of the sensor noise
    nu: FloatArray  #: (M,), degrees of freedom of Student noise; ∞ for Gaussian noise
    T: FloatArray  #: (M, n + q + p, 2 p + n), the step of the stationary filter, see `steady_step`
    log_det: FloatArray  #: (M,), ln det S of the stationary filter; NaN if it is never steady
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
    x: FloatArray, u: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray, period: float,
    new: FloatArray,
) -> bool:  # fmt: skip
    """Write the signals after input u and output y; return False if u is not finite.

    The signals are [k, interval, u, setpoint, setpoint before, disturbances, y].

    >>> import numpy as np
    >>> x, one, new = np.array([0.0, 0.5, 0, 3, 2, 0]), np.ones(1), np.empty(6)
    >>> next_signals(x, 7 * one, -one, one, 4 * one, 0.1, new), new.tolist()
    (True, [1.0, 0.1, 1.0, 3.0, 3.0, 4.0])
    """
    q, p = u.size, y.size
    for i in range(x.size):
        new[i] = x[i]
    new[0], new[1] = x[0] + 1.0, period
    for i in range(p):
        new[2 + q + p + i] = x[2 + q + i]
        new[x.size - p + i] = y[i]
    return limit(u, low, high, new[2:])


@leaf
def inputs(x: FloatArray, u: FloatArray, low: FloatArray, high: FloatArray, v: FloatArray) -> bool:
    """Write v = (u, d, 1) with the limited u; return False if u is not finite. x are the signals.

    >>> import numpy as np
    >>> x, one, v = np.array([0.0, 0.5, 0, 3, 2, 8, 0]), np.ones(1), np.empty(3)
    >>> inputs(x, 7 * one, -one, one, v), v.tolist()
    (True, [1.0, 8.0, 1.0])
    """
    q, d = u.size, v.size - 1 - u.size
    at_d = 2 + q + 2 * (x.size - 2 - q - d) // 3  # x has 2 + q + 3 p + d entries
    for i in range(d):
        v[q + i] = x[at_d + i]
    v[q + d] = 1.0
    return limit(u, low, high, v)


@leaf
def feedback(
    G: FloatArray, K: FloatArray, r: FloatArray, d: FloatArray, x: FloatArray, u: FloatArray
) -> None:
    """Write u = G (r, d, 1) - K x.

    >>> import numpy as np
    >>> one, u = np.ones((1, 1)), np.empty(1)
    >>> feedback(np.array([[2.0, 4.0, 1.0]]), 3 * one, 5 * one[0], 0 * one[0], one[0], u)
    >>> u.tolist()
    [8.0]
    """
    for i in range(u.size):
        total = G[i, r.size + d.size]
        for j in range(r.size):
            total += G[i, j] * r[j]
        for j in range(x.size):
            total -= K[i, j] * x[j]
        for j in range(d.size):
            total += G[i, r.size + j] * d[j]
        u[i] = total


@leaf
def act(
    G: FloatArray, K: FloatArray, low: FloatArray, high: FloatArray, x: FloatArray, s: FloatArray,
    u: FloatArray,
) -> bool:  # fmt: skip
    """Write the limited input u of `feedback`; return False if it is not finite.

    x are the signals, s is the state of the filter.

    >>> import numpy as np
    >>> one, x, s, u = np.ones((1, 1)), np.zeros(6), np.array([0.0, 0, 0, -2, 1]), np.empty(1)
    >>> act(np.zeros((1, 2)), one, -one[0], one[0], x, s, u), u.tolist()
    (True, [1.0])
    """
    q, n = K.shape
    p = (x.size - 1 - q - G.shape[1]) // 2  # x has 2 + q + 3 p + d entries, a row of G p + d + 1
    r, d, x_hat = x[2 + q : 2 + q + p], x[2 + q + 2 * p : x.size - p], s[1 + 2 * p :][:n]
    feedback(G, K, r, d, x_hat, u)
    return limit(u, low, high, u)


@leaf
def product(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Write A B, the same bits on every machine.

    >>> import numpy as np
    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), out := np.empty((1, 1)))
    >>> out.tolist()
    [[11.0]]
    """
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@leaf
def congruence(
    A: FloatArray, S: FloatArray, scale: float, out: FloatArray, work: FloatArray
) -> None:
    """Add scale · A S Aᵀ to `out`, for a symmetric S; the result is exactly symmetric.

    `work` has the shape of A.

    >>> import numpy as np
    >>> out = np.ones((1, 1))
    >>> congruence(np.array([[1.0, 2.0]]), np.eye(2), 3.0, out, np.empty((1, 2)))
    >>> out.tolist()
    [[16.0]]
    """
    product(A, S, work)
    for i in range(A.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(A.shape[1]):
                total += work[i, k] * A[j, k]
            out[i, j] += scale * total
            out[j, i] = out[i, j]


@leaf
def _standardise(R: FloatArray, row: FloatArray) -> None:
    """row ← row R⁻¹ for an upper triangular R."""
    for j in range(row.size):
        for k in range(j):
            row[j] -= R[k, j] * row[k]
        row[j] /= R[j, j]


@leaf
def _noisy_factor(S: FloatArray, V: FloatArray, scale: float, R: FloatArray) -> bool:
    """Write the factor RᵀR = S + scale · V; return False if there is none."""
    for i in range(len(S)):
        for j in range(len(S)):
            R[i, j] = S[i, j] + scale * V[i, j]
    return cholesky(R, R)


@leaf
def _is_stationary(P: FloatArray, Sigma: FloatArray) -> bool:
    """Return whether P equals the stationary Σ up to rounding."""
    for i in range(len(P)):
        for j in range(len(P)):
            if not abs(P[i, j] - Sigma[i, j]) <= STEADY * math.sqrt(Sigma[i, i] * Sigma[j, j]):
                return False
    return True


@leaf
def _log_density(nu: float, p: int, square: float, log_det: float) -> float:
    """Return the log-density of an error of squared length `square`, Gaussian or Student's t."""
    if nu == math.inf:
        return -0.5 * (square + log_det) - p * HALF_LOG_2PI
    constant = log_gamma_function(0.5 * (nu + p)) - log_gamma_function(0.5 * nu)
    constant -= 0.5 * (p * log(nu * math.pi) + log_det)
    return constant - 0.5 * (nu + p) * log_one_plus(square / nu)


@leaf
def steady_step(
    T: FloatArray, log_det: FloatArray, states: FloatArray, v: FloatArray, y: FloatArray,
    new: FloatArray, log_p: FloatArray,
) -> bool:  # fmt: skip
    """Advance the filters that are steady, and write ln P(y | past, v). Return whether all are.

    (ŷ', z, x̂') = (x̂, v, y) T, where z are the standardised innovations, z = U (y - C x⁻ - D v)
    with U S Uᵀ = 1.

    >>> import numpy as np
    >>> T, new = np.array([[[0.5, -0.5, 0.5]] * 2 + [[0.5] * 3]]), np.empty((1, 5))
    >>> states, log_p, one = np.array([[1.0, 2, 0, 2, 1]]), np.empty(1), np.ones(1)
    >>> steady_step(T, np.log(4 * one), states, one, one, new, log_p)
    True
    >>> round(log_p.item(), 6), new.tolist()
    (-2.112086, [[1.0, 2.0, 2.0, 2.0, 1.0]])
    """
    p, q, all_steady = y.size, v.size, True
    n, at = T.shape[1] - p - q, 1 + 2 * p  # x̂ begins at `at` in the row of a filter
    for m in range(states.shape[0]):
        s, row, square = states[m], new[m], 0.0
        if s[0] != 1.0:
            all_steady = False
            continue
        row[0] = 1.0
        for k in range(at + n, s.size):
            row[k] = s[k]
        out = row[1 : at + n]  # (ŷ', z, x̂')
        for i in range(out.size):
            out[i] = 0.0
        for j in range(n + q + p):
            factor = s[at + j] if j < n else v[j - n] if j < n + q else y[j - n - q]
            for i in range(out.size):
                out[i] += factor * T[m, j, i]
        for i in range(p):
            square += out[p + i] * out[p + i]
            row[1 + p + i] = s[1 + i]
        log_p[m] = -0.5 * (square + log_det[m]) - p * HALF_LOG_2PI
    return all_steady


@jit
def observe(
    T: FloatArray, log_det: FloatArray, states: FloatArray, x: FloatArray, u: FloatArray,
    low: FloatArray, high: FloatArray, y: FloatArray, new: FloatArray, log_p: FloatArray,
) -> bool:  # fmt: skip
    """Run `steady_step` after input u, with the signals x; return False also if u is not finite.

    >>> import numpy as np
    >>> T, new = np.array([[[0.5, -0.5, 0.5]] * 2 + [[0.5] * 3]]), np.empty((1, 5))
    >>> states, log_p, one = np.array([[1.0, 2, 0, 2, 1]]), np.empty(1), np.ones(1)
    >>> x, T = np.zeros(6), np.insert(T, 1, 0.0, axis=1)        # an input that has no effect
    >>> observe(T, np.log(4 * one), states, x, np.nan * one, -one, one, one, new, log_p)
    False
    >>> observe(T, np.log(4 * one), states, x, one, -one, one, one, new, log_p), new[0, 1]
    (True, 2.0)
    """
    v = np.empty(x.size - 1 - 3 * y.size)
    return inputs(x, u, low, high, v) and steady_step(T, log_det, states, v, y, new, log_p)


@jit
def step(
    models: FilterModels, states: FloatArray, v: FloatArray, y: FloatArray, missing: bool,
    regular: bool, new: FloatArray, log_p: FloatArray,
) -> None:  # fmt: skip
    """Advance the filters that `steady_step` does not advance, and write ln P(y | past, v).

    If the sample is `missing`, y is not used and ln P is 0. A filter can become steady only if
    sampling is `regular`. ln P is NaN if S is not positive definite; then `new` is not valid.

    >>> import numpy as np
    >>> one, flat = np.ones((1, 1, 1)), np.ones(1)
    >>> models = FilterModels(np.ones((1, 1, 2)), np.array([[[1.0, 0.0]]]), one, one, np.inf * flat,
    ...                       one, np.nan * flat, one)
    >>> states, new, log_p = np.array([[0.0, 0, 0, 0, 1]]), np.empty((1, 5)), np.empty(1)
    >>> step(models, states, np.zeros(1), np.ones(1), False, True, new, log_p)
    >>> round(log_p.item(), 6), new.round(6).tolist()         # N(1; 0, 3), gain 2/3
    (-1.634911, [[0.0, 0.666667, 0.0, 0.666667, 0.666667]])
    """
    n, p = models.W.shape[1], models.V.shape[1]
    at = 1 + 2 * p  # where x̂ begins in the row of a filter
    z, x, y_hat, error = np.empty((n + v.size, 1)), np.empty((n, 1)), np.empty((p, 1)), np.empty(p)
    P, reduced, work = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    G, L, S, R = np.empty((n, p)), np.empty((n, p)), np.empty((p, p)), np.empty((p, p))
    z[n:, 0] = v
    for m in range(len(states)):
        s, row, H, V, nu = states[m], new[m], models.H[m], models.V[m], models.nu[m]
        if s[0] == 1.0 and regular and not missing:  # `steady_step` has advanced it
            continue
        C, Sigma = H[:, :n], row[at + n :].reshape(n, n)
        log_p[m], row[0] = 0.0, 0.0
        z[:n, 0] = s[at : at + n]
        product(models.F[m], z, x)
        z[:n] = x
        product(H, z, y_hat)
        P[:] = models.W[m]
        congruence(models.F[m, :, :n], s[at + n :].reshape(n, n), 1.0, P, work)
        Sigma[:] = P
        if not missing:
            scale, square, log_det = 1.0, 0.0, 0.0
            log_p[m] = math.nan  # it stays NaN if there is no factor R
            product(P, C.T, G)
            product(C, G, S)
            if not _noisy_factor(S, V, 1.0, R):
                continue
            for i in range(p):
                error[i] = y[i] - y_hat[i, 0]
            _standardise(R, error)
            for i in range(p):
                square += error[i] * error[i]
                log_det += 2.0 * log(R[i, i])
            if nu < math.inf:
                scale = (nu + square) / (nu + p)
                if not _noisy_factor(S, V, scale, R):
                    continue
            log_p[m] = _log_density(nu, p, square, log_det)
            for i in range(n):
                for j in range(p):
                    L[i, j] = G[i, j]
                _standardise(R, L[i])
                solve_upper(R, L[i], L[i])
            product(L, C, reduced)
            for i in range(n):
                for j in range(n):
                    reduced[i, j] = (1.0 if i == j else 0.0) - reduced[i, j]
                for j in range(p):
                    x[i, 0] += L[i, j] * (y[j] - y_hat[j, 0])
            z[:n] = x
            product(H, z, y_hat)
            Sigma[:] = 0.0
            congruence(reduced, P, 1.0, Sigma, work)  # this form stays definite
            congruence(L, V, scale, Sigma, G)
            can_be_steady = regular and not math.isnan(models.log_det[m])
            if can_be_steady and _is_stationary(Sigma, models.Sigma[m]):
                row[0] = 1.0
                Sigma[:] = models.Sigma[m]
        row[1 : 1 + p], row[1 + p : at], row[at : at + n] = y_hat[:, 0], s[1 : 1 + p], x[:, 0]


@leaf
def pool(states: FloatArray, w: FloatArray, at_x: int, n: int, row: FloatArray) -> None:
    """Write the state with the mean and the covariance of the mixture Σ_i w_i N(x̂_i, Σ_i) / Σ w.

    x̂ has n numbers and begins at `at_x` in a row. A mode of weight 0 may have any state.

    >>> import numpy as np
    >>> states, row = np.array([[0.0, 0, 0, 0, 1], [0.0, 2, 2, 2, 1]]), np.empty(5)
    >>> pool(states, np.ones(2), 3, 1, row)
    >>> row.tolist()
    [0.0, 1.0, 1.0, 1.0, 2.0]
    """
    total, at_sigma = 0.0, at_x + n
    for i in range(w.size):
        total += w[i]
    for k in range(row.size):
        row[k] = 0.0
    for i in range(w.size):
        if w[i] > 0.0:
            for k in range(1, row.size):
                row[k] += w[i] / total * states[i, k]
    for i in range(w.size):
        if w[i] > 0.0:
            for k in range(n):
                d = w[i] / total * (states[i, at_x + k] - row[at_x + k])
                for c in range(n):
                    row[at_sigma + k * n + c] += d * (states[i, at_x + c] - row[at_x + c])


@jit
def mix(states: FloatArray, flow: FloatArray, at_x: int, n: int) -> FloatArray:
    """Return the states that filters start from if modes may switch, see `beliefs.interacting`.

    flow[i, j] is P(m_t = i, m_{t+1} = j | âo_≤t). Row j becomes the `pool` of all i. It stays as it
    is if no other mode leads to j.

    >>> import numpy as np
    >>> states = np.array([[0.0, 0, 0, 0, 1], [0.0, 2, 2, 2, 1]])
    >>> mix(states, np.array([[0.25, 0.0], [0.25, 0.5]]), 3, 1).tolist()
    [[0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 2.0, 2.0, 2.0, 1.0]]
    """
    out = states.copy()
    for j in range(len(states)):
        if flow[:, j].sum() != flow[j, j]:
            pool(states, flow[:, j], at_x, n, out[j])
    return out


@jit
def mix_by_hazard(
    states: FloatArray, stays: FloatArray, leaves: FloatArray, prior: FloatArray, at_x: int, n: int
) -> FloatArray:
    """Return `mix` with flow[i, j] = stays[i] δ(i, j) + leaves[i] prior[j], in linear time.

    All modes that leave are pooled once. Row j becomes the pool of two: this one, and row j itself.

    >>> import numpy as np
    >>> states = np.array([[0.0, 0, 0, 0, 1], [0.0, 2, 2, 2, 1]])
    >>> stays, leaves, prior = np.array([0.0, 0.5]), np.array([0.25, 0.25]), np.array([1.0, 0.0])
    >>> mix_by_hazard(states, stays, leaves, prior, 3, 1).tolist()
    [[0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 2.0, 2.0, 2.0, 1.0]]
    """
    out, two, w, leaving = states.copy(), np.empty((2, states.shape[1])), np.empty(2), leaves.sum()
    if leaving > 0.0:
        pool(states, leaves, at_x, n, two[1])
    for j in range(len(states)):
        w[0], w[1] = stays[j], leaving * prior[j]
        if w[1] > 0.0 and leaving != leaves[j]:  # another mode leads to j
            two[0] = states[j]
            pool(two, w, at_x, n, out[j])
    return out
