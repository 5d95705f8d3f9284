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
    T: FloatArray  #: (M, n + 2 p, n + q + p), the step of the stationary filter, see `steady_step`
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


@jit
def feedback(
    G: FloatArray, K: FloatArray, r: FloatArray, d: FloatArray, x: FloatArray
) -> FloatArray:
    """Return u = G (r, d, 1) - K x.

    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> feedback(np.array([[2.0, 4.0, 1.0]]), 3 * one, 5 * one[0], 0 * one[0], one[0]).tolist()
    [8.0]
    """
    u = np.empty(len(K))
    for i in range(u.size):
        total = G[i, r.size + d.size]
        for j in range(r.size):
            total += G[i, j] * r[j]
        for j in range(x.size):
            total -= K[i, j] * x[j]
        for j in range(d.size):
            total += G[i, r.size + j] * d[j]
        u[i] = total
    return u


@jit
def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return A B, the same bits on every machine.

    >>> import numpy as np
    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    out = np.empty((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            out[i, j] = total
    return out


@jit
def _standardised(R: FloatArray, rows: FloatArray) -> FloatArray:
    """Return rows R⁻¹ for an upper triangular R."""
    out = rows.copy()
    for row in out:
        for j in range(R.shape[0]):
            for k in range(j):
                row[j] -= R[k, j] * row[k]
            row[j] /= R[j, j]
    return out


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

    (x̂', ŷ', z) = T (x̂, v, y), where z are the standardised innovations, z = U (y - C x⁻ - D v)
    with U S Uᵀ = 1.

    >>> import numpy as np
    >>> T, new = np.array([[[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [-0.5, -0.5, 0.5]]]), np.empty((1, 5))
    >>> states, log_p, one = np.array([[1.0, 2, 0, 2, 1]]), np.empty(1), np.ones(1)
    >>> steady_step(T, np.log(4 * one), states, one, one, new, log_p)
    True
    >>> round(log_p.item(), 6), new.tolist()
    (-2.112086, [[1.0, 2.0, 2.0, 2.0, 1.0]])
    """
    p, q, all_steady = y.size, v.size, True
    n, at = T.shape[2] - p - q, 1 + 2 * p  # x̂ begins at `at` in the row of a filter
    for m in range(states.shape[0]):
        s, square = states[m], 0.0
        if s[0] != 1.0:
            all_steady = False
            continue
        for k in range(s.size):
            new[m, k] = s[k]
        for i in range(n + 2 * p):
            total = 0.0
            for j in range(n):
                total += T[m, i, j] * s[at + j]
            for j in range(q):
                total += T[m, i, n + j] * v[j]
            for j in range(p):
                total += T[m, i, n + q + j] * y[j]
            if i < n:
                new[m, at + i] = total
            elif i < n + p:
                new[m, 1 + i - n], new[m, 1 + i - n + p] = total, s[1 + i - n]
            else:
                square += total * total
        log_p[m] = -0.5 * (square + log_det[m]) - p * HALF_LOG_2PI
    return all_steady


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
    R, z = np.empty((p, p)), np.empty((n + v.size, 1))
    z[n:, 0] = v
    for m in range(len(states)):
        s, row, H, V, nu = states[m], new[m], models.H[m], models.V[m], models.nu[m]
        if s[0] == 1.0 and regular and not missing:  # `steady_step` has advanced it
            continue
        A, C = models.F[m, :, :n], H[:, :n]
        log_p[m], row[0] = 0.0, 0.0
        z[:n, 0] = s[at : at + n]
        x = product(models.F[m], z)
        z[:n] = x
        y_hat = product(H, z)
        P = product(product(A, s[at + n :].reshape(n, n)), A.T) + models.W[m]
        if not missing:
            G, e = product(P, C.T), -y_hat
            e[:, 0] += y
            scale, square, log_det = 1.0, 0.0, 0.0
            S, log_p[m] = product(C, G), math.nan  # it stays NaN if there is no factor R
            if not cholesky(S + V, R):
                continue
            for i, error in enumerate(_standardised(R, e.T)[0]):
                square += error * error
                log_det += 2.0 * log(R[i, i])
            if nu < math.inf:
                scale = (nu + square) / (nu + p)
                if not cholesky(S + scale * V, R):
                    continue
            log_p[m] = _log_density(nu, p, square, log_det)
            L = _standardised(R, G)
            for i in range(n):
                solve_upper(R, L[i], L[i])
            x_new, reduced = x + product(L, e), np.eye(n) - product(L, C)
            x, y_hat = x_new, y_hat + product(C, x_new - x)
            P = product(product(reduced, P), reduced.T)  # this form stays definite
            noise = product(product(L, V), L.T)
            P = 0.5 * (P + P.T) + 0.5 * scale * (noise + noise.T)
            can_be_steady = regular and not math.isnan(models.log_det[m])
            if can_be_steady and _is_stationary(P, models.Sigma[m]):
                row[0], P = 1.0, models.Sigma[m]
        row[1 : 1 + p], row[1 + p : at], row[at : at + n] = y_hat[:, 0], s[1 : 1 + p], x[:, 0]
        row[at + n :] = P.ravel()


@jit
def mix(states: FloatArray, flow: FloatArray, at_x: int, n: int) -> FloatArray:
    """Return the states that filters start from if modes may switch, see `beliefs.interacting`.

    flow[i, j] is P(m_t = i, m_{t+1} = j | âo_≤t). Row j becomes the mean and the covariance of the
    mixture Σ_i flow[i, j] N(x̂_i, Σ_i). It stays as it is if no other mode leads to j. x̂ has n
    numbers and begins at `at_x` in a row.

    >>> import numpy as np
    >>> states = np.array([[0.0, 0, 0, 0, 1], [0.0, 2, 2, 2, 1]])
    >>> mix(states, np.array([[0.25, 0.0], [0.25, 0.5]]), 3, 1).tolist()
    [[0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 2.0, 2.0, 2.0, 1.0]]
    """
    out, at_sigma = states.copy(), at_x + n
    for j in range(len(states)):
        row, total = out[j], flow[:, j].sum()
        if not total > 0.0 or flow[j, j] == total:
            continue
        row[:] = 0.0
        w = flow[:, j] / total
        used = np.flatnonzero(w)  # a mode that is ruled out may have any state
        for i in used:
            for k in range(1, row.size):
                row[k] += w[i] * states[i, k]
        for i in used:
            for k in range(n):
                d = w[i] * (states[i, at_x + k] - row[at_x + k])
                for c in range(n):
                    row[at_sigma + k * n + c] += d * (states[i, at_x + c] - row[at_x + c])
    return out
