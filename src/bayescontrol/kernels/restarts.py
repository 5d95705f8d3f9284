"""Sums of e-processes that started at different times, in a bounded number of places.

    R_t^s(m) = R_{t-1}^s(m) q^s(o_t) / P(o_t | m, x_t, a_t)          M_t(m) = Σ_s R_t^s(m)

`starts[i]` is the first step of the start in place i, 0 if the place is free. All R and M are
logarithms.

q^s of numbers comes from a regression on the observations since s, see `log_student`.
"""

import math

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import exp, log, log_one_plus, stirling_remainder

#: `log_student` waits if |R⁻ᵀz|² is larger; it also bounds the variance that a new z adds.
NEW_DIRECTION = 10.0
#: A number that is this small, relative to the numbers it comes from, is a rounding error.
REDUNDANT = 1e-11
#: The smallest variance that `log_student` assumes, relative to the squares of the observations.
ROUNDING = 1e-20


@leaf
def log_add(a: float, b: float) -> float:
    """Return ln(e^a + e^b).

    >>> round(log_add(0.0, 0.0), 6), log_add(-math.inf, -math.inf), log_add(math.inf, 1.0)
    (0.693147, -inf, inf)
    """
    high, low = max(a, b), min(a, b)
    if low == -math.inf or high == math.inf:
        return high
    return high + log_one_plus(exp(low - high))


@leaf
def weigh(
    starts: IntArray, log_r: FloatArray, log_q: FloatArray, log_p: FloatArray, w: FloatArray,
    log_m: FloatArray,
) -> None:  # fmt: skip
    """Update ln R with an observation and write ln M.

    log_q[i] is NaN if start i has no prediction: then its R stays. A mode with P = 0 gets R = ∞. A
    mode of weight 0 gets M = ∞: it does not count, for ∞ is never the minimum over the modes.

    >>> log_r, log_m = np.zeros((2, 2)), np.empty(2)
    >>> weigh(np.array([1, 2]), log_r, np.array([-1.0, math.nan]), np.array([-2.0, -math.inf]),
    ...       np.ones(2), log_m)
    >>> log_r.tolist(), log_m.round(4).tolist()
    ([[1.0, inf], [0.0, inf]], [1.3133, inf])
    """
    for m in range(log_p.size):
        top, total = -math.inf, 0.0
        for i in range(starts.size):
            if starts[i] == 0:
                log_r[i, m] = -math.inf
            elif log_p[m] == -math.inf or log_r[i, m] == math.inf:
                log_r[i, m] = math.inf
            elif not math.isnan(log_q[i]):
                log_r[i, m] += log_q[i] - log_p[m]
            top = max(top, log_r[i, m])
        log_m[m] = top if w[m] > 0.0 else math.inf
        if abs(log_m[m]) < math.inf:
            for i in range(starts.size):
                total += exp(log_r[i, m] - top)
            log_m[m] += log(total)


@leaf
def end_start(starts: IntArray, log_r: FloatArray, place: int) -> None:
    """Free a place and give its R to the next younger start.

    >>> starts, log_r = np.array([1, 3, 2]), np.zeros((3, 1))
    >>> end_start(starts, log_r, 0)
    >>> starts.tolist(), log_r.ravel().round(4).tolist()
    ([0, 3, 2], [-inf, 0.0, 0.6931])
    """
    next_start = -1
    for i in range(starts.size):
        if starts[i] > starts[place] and (next_start < 0 or starts[i] < starts[next_start]):
            next_start = i
    for m in range(log_r.shape[1]):
        if next_start >= 0:
            log_r[next_start, m] = log_add(log_r[next_start, m], log_r[place, m])
        log_r[place, m] = -math.inf
    starts[place] = 0


@leaf
def renew(starts: IntArray, log_r: FloatArray, t: int, lifetime: int) -> int:
    """End old starts after step t, begin one for step t + 1 and return its place.

    A start s = 2^l · odd ends when it has `lifetime` · 2^l observations. If no place is free, the
    oldest start ends.

    >>> starts, log_r = np.array([1, 2, 0]), np.zeros((3, 0))
    >>> renew(starts, log_r, 2, 2), starts.tolist()
    (0, [3, 2, 0])
    """
    oldest = 0
    for i in range(starts.size):
        s = starts[i]
        if s > 0 and t + 1 - s >= lifetime * (s & -s):  # s & -s is 2^l
            end_start(starts, log_r, i)
        if starts[i] < starts[oldest]:
            oldest = i  # a free place, or the oldest start
    if starts[oldest] > 0:
        end_start(starts, log_r, oldest)
    starts[oldest] = t + 1
    log_r[oldest] = 0.0
    return oldest


@jit
def absorb_rows(F: FloatArray, n: IntArray, row: FloatArray) -> None:
    """FᵀF ← FᵀF + row rowᵀ for each triangle F[:, :, i] of n[i] rows; n[i] ← n[i] + 1.

    These are the rotations of `regression.absorb`, of all triangles at once. The loops over them
    come last, because then they are vectorised. A number in `row` that earlier ones determine up to
    rounding, such as a second constant, is not rotated into F: its diagonal entry stays exactly 0.

    >>> F, n = np.zeros((1, 1, 2)), np.array([0, 5])
    >>> absorb_rows(F, n, np.array([3.0]))
    >>> F.ravel().tolist(), n.tolist()
    ([3.0, 3.0], [1, 6])
    """
    d, places = row.size, n.size
    v, squares = np.empty((d, places)), np.zeros((d, places))  # squares: those of a column of F
    c, s = np.empty(places), np.empty(places)
    for k in range(d):
        v[k] = row[k]
    for k in range(d):
        for i in range(places):
            n_i, r = n[i] + 1.0, F[k, k, i]
            rounding = REDUNDANT * (abs(row[k]) + math.sqrt((squares[k, i] + r * r) / n_i))
            left = v[k, i] if abs(v[k, i]) > rounding else 0.0
            length = math.sqrt(r * r + left * left)
            c[i] = r / length if length > 0.0 else 1.0
            s[i] = left / length if length > 0.0 else 0.0
            F[k, k, i] = length
        for j in range(k + 1, d):
            for i in range(places):
                old = F[k, j, i]
                F[k, j, i] = c[i] * old + s[i] * v[j, i]
                v[j, i] = c[i] * v[j, i] - s[i] * old
                squares[j, i] += F[k, j, i] * F[k, j, i]
    n += 1


@leaf
def log_gamma_step(z: float) -> float:
    """Return ln Γ(z + ½) - ln Γ(z), without the cancellation of large logarithms.

    >>> round(log_gamma_step(0.5), 12), round(log_gamma_step(1e12) - 0.5 * log(1e12), 12)
    (-0.572364942925, -0.0)
    """
    steps = stirling_remainder(z + 0.5) - stirling_remainder(z)
    return 0.5 * log(z) + (z * log_one_plus(0.5 / z) - 0.5) + steps


@jit
def log_student(F: FloatArray, n: IntArray, row: FloatArray, p: int, out: FloatArray) -> None:
    """Write ln q(y | z) for each triangle F[:, :, i] of n[i] rows (z, y); NaN if it is too early.

    F = [[R, Z], [0, S]] starts at 0, an improper prior. z has p numbers, row = (z, y). With
    v = R⁻ᵀ z, component j of y has Student's t distribution with ν = n - rank degrees of freedom
    around v·Z_j, where RSS_j = |S_j|²:

        ln q_j = ln Γ((ν+1)/2) - ln Γ(ν/2) - ½ ln πc - ½ (ν+1) ln(1 + e²/c),   c = RSS_j (1 + |v|²)

    The rank is the number of directions that z had. It is too early if n - p < 2, or if z has a
    direction that is new, |v|² > `NEW_DIRECTION`; neither depends on y.

    >>> F, n, out = np.zeros((2, 2, 1)), np.zeros(1, np.int64), np.empty(1)
    >>> for y in (1.0, -1.0, 0.0):
    ...     absorb_rows(F, n, np.array([1.0, y]))
    >>> log_student(F, n, np.array([1.0, 0.0]), 1, out)
    >>> round(float(out[0]), 6)   # t with 2 degrees of freedom and scale √(4/3)
    -1.183562
    """
    places = n.size
    v, leverage, nu, constant = np.empty((p, places)), np.zeros(places), n - 0.0, np.empty(places)
    mean, size, rss = np.empty(places), np.empty(places), np.empty(places)
    for k in range(p):
        v[k], size[:] = row[k], 0.0
        for j in range(k):
            for i in range(places):
                v[k, i] -= F[j, k, i] * v[j, i]
                size[i] += F[j, k, i] * F[j, k, i]
        for i in range(places):
            rounding = REDUNDANT * (abs(row[k]) + math.sqrt(size[i] / max(n[i], 1)))
            new = math.inf if abs(v[k, i]) > rounding else 0.0
            v[k, i] = v[k, i] / F[k, k, i] if F[k, k, i] > 0.0 else new
            leverage[i] += v[k, i] * v[k, i]
            nu[i] -= 1.0 if F[k, k, i] > 0.0 else 0.0
    for i in range(places):
        out[i] = constant[i] = math.nan  # it is too early, or the leverage is NaN
        if n[i] - p >= 2 and leverage[i] <= NEW_DIRECTION:
            out[i], constant[i] = 0.0, log_gamma_step(0.5 * nu[i])
    for j in range(p, row.size):
        mean[:], size[:], rss[:] = 0.0, 0.0, 0.0
        for k in range(p):
            for i in range(places):
                mean[i] += v[k, i] * F[k, j, i]
                size[i] += F[k, j, i] * F[k, j, i]
        for k in range(p, j + 1):
            for i in range(places):
                rss[i] += F[k, j, i] * F[k, j, i]
                size[i] += F[k, j, i] * F[k, j, i]
        for i in range(places):
            # Rounding errors are not a measure of the noise.
            c = max(rss[i], ROUNDING * size[i]) * (1.0 + leverage[i])
            if math.isnan(out[i]) or not c > 0.0:  # c = 0: all observations were 0
                out[i] = math.nan
                continue
            e = row[j] - mean[i]
            out[i] += constant[i] - 0.5 * log(math.pi * c)
            out[i] -= 0.5 * (nu[i] + 1.0) * log_one_plus(e / c * e)
