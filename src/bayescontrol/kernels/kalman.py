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

#: A filter is steady if no entry of its covariance differs from the stationary one by more than
#: this, in units of the standard deviations.
STEADY = 1e-12


class FilterModels(NamedTuple):
    """Models of M plants with n states, q inputs and disturbances, and p outputs.

    The modes come last where the loops over them are vectorised.

    >>> FilterModels._fields[:4]
    ('F', 'H', 'W', 'V')
    """

    F: FloatArray  #: (n, n + q, M), the matrices [A B]
    H: FloatArray  #: (p, n + q, M), the matrices [C D]
    W: FloatArray  #: (n, n, M), covariance of the process noise
    V: FloatArray  #: (p, p, M), covariance of the sensor noise
    nu: FloatArray  #: (M,), degrees of freedom of Student noise; ∞ for Gaussian noise
    T: FloatArray  #: (M, n + q + p, 2 p + n), the step of the stationary filter, see `steady_step`
    log_det: FloatArray  #: (M,), ln det S of the stationary filter; NaN if it is never steady
    Sigma: FloatArray  #: (n, n, M), the stationary Σ


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
    """Write A B for each of the matrices A[:, :, m] and B[:, :, m], the same bits on every machine.

    Columns of A beyond the rows of B, and columns of B beyond those of `out`, are not used.

    >>> import numpy as np
    >>> A, B, out = np.array([[[1.0], [2.0]]]), np.array([[[3.0]], [[4.0]]]), np.empty((1, 1, 1))
    >>> product(A, B, out)
    >>> out.ravel().tolist()
    [11.0]
    """
    out[:] = 0.0
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(B.shape[0]):
                for m in range(out.shape[2]):
                    out[i, j, m] += A[i, k, m] * B[k, j, m]


@leaf
def add_product_transposed(
    base: FloatArray, scale: FloatArray, A: FloatArray, B: FloatArray, out: FloatArray,
    is_symmetric: bool,
) -> None:  # fmt: skip
    """Write base + scale[m] · A Bᵀ for each m; columns of B beyond those of A are not used.

    If the result `is_symmetric`, the upper triangle is that of the lower one, to the last bit.

    >>> import numpy as np
    >>> A, out = np.array([[[1.0], [2.0]]]), np.empty((1, 1, 1))
    >>> add_product_transposed(np.ones((1, 1, 1)), 3 * np.ones(1), A, A, out, True)
    >>> out.ravel().tolist()
    [16.0]
    """
    for i in range(out.shape[0]):
        for j in range(i + 1 if is_symmetric else out.shape[1]):
            for m in range(out.shape[2]):
                out[i, j, m] = base[i, j, m]
            for k in range(A.shape[1]):
                for m in range(out.shape[2]):
                    out[i, j, m] += scale[m] * (A[i, k, m] * B[j, k, m])
            if is_symmetric:
                for m in range(out.shape[2]):
                    out[j, i, m] = out[i, j, m]


@leaf
def _predict(H: FloatArray, x: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Write H (x, v) for each of the matrices H[:, :, m] and states x[:, m]."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(H.shape[1]):
            for m in range(out.shape[1]):
                out[i, m] += H[i, k, m] * (x[k, m] if k < len(x) else v[k - len(x)])


@leaf
def _noisy_factor(S: FloatArray, V: FloatArray, scale: FloatArray, R: FloatArray) -> None:
    """Write the upper triangular R with RᵀR = S + scale V for each m; NaN if there is none."""
    p, modes = len(S), scale.size
    for i in range(p):
        for j in range(p):
            for m in range(modes):
                R[i, j, m] = S[i, j, m] + scale[m] * V[i, j, m]
    for k in range(p):
        for m in range(modes):
            R[k, k, m] = math.sqrt(R[k, k, m]) if R[k, k, m] > 0.0 else math.nan
        for j in range(k + 1, p):
            for m in range(modes):
                R[k, j, m] /= R[k, k, m]
            for i in range(k + 1, j + 1):
                for m in range(modes):
                    R[i, j, m] -= R[k, i, m] * R[k, j, m]


@leaf
def _standardise(R: FloatArray, rows: FloatArray) -> None:
    """rows ← rows R⁻¹ for upper triangular R."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            for k in range(j):
                for m in range(rows.shape[2]):
                    rows[i, j, m] -= R[k, j, m] * rows[i, k, m]
            for m in range(rows.shape[2]):
                rows[i, j, m] /= R[j, j, m]


@leaf
def _solve(R: FloatArray, rows: FloatArray) -> None:
    """rows ← rows (RᵀR)⁻¹ for upper triangular R."""
    _standardise(R, rows)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1] - 1, -1, -1):
            for k in range(j + 1, rows.shape[1]):
                for m in range(rows.shape[2]):
                    rows[i, j, m] -= R[j, k, m] * rows[i, k, m]
            for m in range(rows.shape[2]):
                rows[i, j, m] /= R[j, j, m]


@leaf
def _becomes_steady(P: FloatArray, Sigma: FloatArray, m: int) -> bool:
    """Return whether P of mode m is the stationary Σ up to rounding; if so, set P to Σ."""
    for i in range(len(P)):
        for j in range(len(P)):
            unit = math.sqrt(Sigma[i, i, m] * Sigma[j, j, m])
            if not abs(P[i, j, m] - Sigma[i, j, m]) <= STEADY * unit:
                return False
    for i in range(len(P)):
        for j in range(len(P)):
            P[i, j, m] = Sigma[i, j, m]
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
    """Advance the filters and write ln P(y | past, v), if all are steady; otherwise return False.

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
    p, q = y.size, v.size
    n, at = T.shape[1] - p - q, 1 + 2 * p  # x̂ begins at `at` in the row of a filter
    for m in range(states.shape[0]):
        s, row, square = states[m], new[m], 0.0
        if s[0] != 1.0:
            return False
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
    return True


@jit
def observe(
    T: FloatArray, log_det: FloatArray, states: FloatArray, x: FloatArray, u: FloatArray,
    low: FloatArray, high: FloatArray, y: FloatArray, new: FloatArray, log_p: FloatArray,
) -> bool:  # fmt: skip
    """Run `steady_step` after input u, with the signals x. Return False also if u is not finite.

    >>> import numpy as np
    >>> T, new = np.array([[[0.5, -0.5, 0.5]] * 2 + [[0.5] * 3]]), np.empty((1, 5))
    >>> states, log_p, one = np.array([[1.0, 2, 0, 2, 1]]), np.empty(1), np.ones(1)
    >>> x, T = np.zeros(6), np.insert(T, 1, 0.0, axis=1)        # an input that has no effect
    >>> observe(T, np.log(4 * one), states, x, np.nan * one, -one, one, one, new, log_p)
    False
    >>> observe(T, np.log(4 * one), states, x, one, -one, one, one, new, log_p), new.item(1)
    (True, 2.0)
    """
    v = np.empty(x.size - 1 - 3 * y.size)
    return inputs(x, u, low, high, v) and steady_step(T, log_det, states, v, y, new, log_p)


@jit
def step(
    models: FilterModels, states: FloatArray, v: FloatArray, y: FloatArray, missing: bool,
    regular: bool, new: FloatArray, log_p: FloatArray,
) -> None:  # fmt: skip
    """Advance all filters and write ln P(y | past, v).

    If the sample is `missing`, y is not used and ln P is 0. A filter can become steady only if
    sampling is `regular`. ln P is NaN if S is not positive definite; then `new` is not valid.

    >>> import numpy as np
    >>> one, flat = np.ones((1, 1, 1)), np.ones(1)
    >>> models = FilterModels(np.ones((1, 2, 1)), np.array([[[1.0], [0.0]]]), one, one,
    ...                       np.inf * flat, one, np.nan * flat, one)
    >>> states, new, log_p = np.array([[0.0, 0, 0, 0, 1]]), np.empty((1, 5)), np.empty(1)
    >>> step(models, states, np.zeros(1), np.ones(1), False, True, new, log_p)
    >>> round(log_p.item(), 6), new.round(6).tolist()         # N(1; 0, 3), gain 2/3
    (-1.634911, [[0.0, 0.666667, 0.0, 0.666667, 0.666667]])
    """
    (n, p), (modes, size), at = (len(models.W), len(models.V)), states.shape, 1 + 2 * len(models.V)
    s, row = np.ascontiguousarray(states.T), np.zeros((size, modes))  # a column for each filter
    one, scale, work = np.ones(modes), np.empty(modes), np.empty((n, n, modes))
    x, y_hat, Sigma = row[at : at + n], row[1 : 1 + p], row[at + n :].reshape(n, n, modes)
    log_p[:], row[1 + p : at] = 0.0, s[1 : 1 + p]
    _predict(models.F, s[at : at + n], v, x)
    _predict(models.H, x, v, y_hat)
    product(models.F, s[at + n :].reshape(n, n, modes), work)
    add_product_transposed(models.W, one, work, models.F, Sigma, True)
    if not missing:
        G, S, R = np.zeros((n, p, modes)), np.empty((p, p, modes)), np.empty((p, p, modes))
        error, noise = np.empty((1, p, modes)), np.empty((n, p, modes))
        zero, reduced = np.zeros((n, n, modes)), np.empty((n, n, modes))
        add_product_transposed(G, one, Sigma, models.H, G, False)
        product(models.H, G, S)
        _noisy_factor(S, models.V, one, R)
        for i in range(p):
            for m in range(modes):
                error[0, i, m] = y[i] - y_hat[i, m]
        _standardise(R, error)
        for m in range(modes):
            square, log_det, nu = 0.0, 0.0, models.nu[m]
            for i in range(p):
                square += error[0, i, m] * error[0, i, m]
                log_det += 2.0 * log(R[i, i, m])
            log_p[m] = _log_density(nu, p, square, log_det)
            scale[m] = 1.0 if nu == math.inf else (nu + square) / (nu + p)
        _noisy_factor(S, models.V, scale, R)
        _solve(R, G)
        L = G
        product(L, models.H, reduced)  # L C
        for i in range(n):
            for j in range(n):
                for m in range(modes):
                    reduced[i, j, m] = (1.0 if i == j else 0.0) - reduced[i, j, m]
            for j in range(p):
                for m in range(modes):
                    x[i, m] += L[i, j, m] * (y[j] - y_hat[j, m])
        _predict(models.H, x, v, y_hat)
        product(reduced, Sigma, work)
        add_product_transposed(zero, one, work, reduced, Sigma, True)  # this form stays definite
        product(L, models.V, noise)
        add_product_transposed(Sigma, scale, noise, L, Sigma, True)
        for m in range(modes):
            if regular and not math.isnan(models.log_det[m]):
                row[0, m] = 1.0 if _becomes_steady(Sigma, models.Sigma, m) else 0.0
    new[:] = row.T


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
    total, at_sigma = w.sum(), at_x + n
    row[:] = 0.0
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
