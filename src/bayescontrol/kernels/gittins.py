"""Gittins indices: backward passes of the stopping problem, and bounds.

    D(s, f; λ) = (1-γ)(μ - λ) + γ [μ d(s+1, f) + (1-μ) d(s, f+1)]      d = max(D, 0)

μ = (α+s)/m, m = α+β+s+f. D > 0, continue, iff the index of (s, f) exceeds λ. As μ is a martingale,
d + λ - μ = g = sup_τ E γ^τ (λ - μ_τ), an option to stop, and with κ = (m+1) √(8 ln 1/γ)

    g = λ - μ              where λ - μ ≥ 1/κ: stop
    g ≤ e^(-κ(μ-λ)-1) / κ   everywhere: d ≈ μ - λ well above λ

(docs/adr/0007-gittins.md has the proofs). So a level n = s + f needs only the s from the first
that continues, b[n], to `cut[n]`, above which g ≤ `ghost`. `sweep` computes an upper bound of d,
rounding included; `gap` bounds its error for all λ of a short interval at once.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.elementary import exp, log

#: A step of `sweep` rounds each of its terms at most nine times, by half a unit in the last place.
ROUNDING = 10.0 * 2.0**-53


class Band(NamedTuple):
    """Constants of all passes over the levels 0 … T of one arm."""

    x: FloatArray  #: α + s
    #: Per level: 1/m, the bound of g above the cut, and the cut.
    inverse: FloatArray
    ghost: FloatArray
    cut: IntArray
    m0: float  #: α + β
    gamma: float
    kappa: float  #: bounds the values after level T; ∞ if learning ends there


class Sweep(NamedTuple):
    """The result of a pass at λ, for each level, and the gaps of the interval that begins at λ."""

    lam: float
    #: The first s that continues, and d from b on; -1 above the cut.
    b: IntArray
    near: FloatArray
    #: b at the lower end of the interval, and the gaps from there on.
    ref: IntArray
    e: FloatArray


@leaf
def rate(gamma: float) -> float:
    """Return √(8 ln 1/γ) = κ / (m+1): the rate at which g decreases, per success.

    >>> round(rate(0.999), 5)
    0.08947
    """
    return math.sqrt(-8.0 * log(gamma))


@leaf
def reach(m0: float, gamma: float, pulls: int, finest: float, x: FloatArray, g: FloatArray) -> None:
    """Write g[n], and x[n], the distance of the mean above λ from which on g ≤ g[n] at level n.

    κ x = ln(1 / (κ e g)), at least 1. g is `finest` up to level `pulls`; beyond it g increases
    by the discount.

    >>> import numpy as np
    >>> x, g = np.empty((2, 101))
    >>> reach(2.0, 0.9, 0, 1e-6, x, g)
    >>> bool(x[100] < x[0]), bool(g[0] < 1.01e-6)
    (True, True)
    """
    eta, delta = rate(gamma), -log(gamma)
    for n in range(x.size):
        kappa = eta * (m0 + n + 1.0)
        folds = max(1.0, -log(kappa * finest) - 1.0 - delta * max(n - pulls, 0))
        g[n] = exp(-folds - 1.0) / kappa
        x[n] = (folds + 1e-6) / kappa  # margin for the rounding of the cut


@leaf
def limits(
    alpha: float, m0: float, lam: float, beyond: FloatArray, inverse: FloatArray, cut: IntArray
) -> None:
    """Write 1/m and the cut of every level, valid for all λ up to `lam`.

    The cut is the last s with μ < λ + beyond[n], see `reach`.

    >>> import numpy as np
    >>> beyond, inverse, cut = *np.full((2, 101), 0.1), np.empty(101, np.int64)
    >>> limits(1.0, 2.0, 0.5, beyond, inverse, cut)
    >>> cut[[0, 10, 100]]
    array([ 0,  6, 60])
    """
    highest = 0
    for n in range(cut.size):
        m = m0 + n
        inverse[n] = 1.0 / m
        highest = max(highest, math.ceil(m * min(lam + beyond[n], 2.0) - alpha) - 1)
        cut[n] = min(n, highest)


@inlined
def _copy_padded(values: FloatArray, out: FloatArray) -> None:
    """Copy as many values as fit; the rest of `out` is -1."""
    known = min(values.size, out.size)
    for j in range(known):
        out[j] = values[j]
    for j in range(known, out.size):
        out[j] = -1.0


@inlined
def _step(d: FloatArray, x: FloatArray, c0: float, c1: float, c2: float, gamma: float) -> None:
    """Compute one level of `sweep` in place, in a separate function on views: it is vectorised."""
    for i in range(x.size):
        v = x[i] * (c1 + c2 * (d[i + 1] - d[i])) + (gamma * d[i] - c0)
        d[i] = v if v > 0.0 else 0.0


@leaf
def sweep(d: FloatArray, band: Band, out: Sweep) -> None:
    """Compute an upper bound of D at every state of the band, from level T = cut.size - 1 to 0.

    Rounding is covered by a discount that is larger by `ROUNDING`, as d ≥ 0 increases with s.

    Writes `b` and `near` of the pass at λ = out.lam; d is scratch.
    """
    x, inverse, cut, lam = band.x, band.inverse, band.cut, out.lam
    gamma, kappa = band.gamma, band.kappa
    T = cut.size - 1
    gamma_up = gamma * (1.0 + ROUNDING)
    first = cut[T] + 1  # the first s that continues
    for s in range(cut[T], -1, -1):
        y = x[s] * inverse[T] - lam
        if y <= -1.0 / kappa:
            break
        d[s] = y + ROUNDING
        if kappa < math.inf:
            d[s] += exp(-kappa * y - 1.0) / kappa
        first = s
    for n in range(T, -1, -1):
        high = cut[n]
        if n < T:
            if cut[n + 1] <= n:  # the first value above the cut, by its bound
                beyond = x[cut[n + 1] + 1] * inverse[n + 1] - lam
                d[cut[n + 1] + 1] = beyond + (band.ghost[n + 1] + ROUNDING)
            low = max(first - 1, 0)
            if first > 0:
                d[low] = 0.0
            first = high + 1
            if low <= high:
                c1, c2 = (1.0 - gamma) * inverse[n], gamma_up * inverse[n]
                c0 = (1.0 - gamma) * (lam - ROUNDING)
                _step(d[low : high + 2], x[low : high + 1], c0, c1, c2, gamma_up)
                first = low if d[low] > 0.0 else low + 1
        out.b[n] = first
        if n < out.near.shape[0]:
            _copy_padded(d[first : high + 1], out.near[n])


@inlined
def _gap_level(e: FloatArray, x: FloatArray, r0: float, r1: float, c2: float, gamma: float) -> None:
    """Compute one level of `gap` in place."""
    for i in range(x.size):
        e[i] = x[i] * (r1 + c2 * (e[i + 1] - e[i])) + (gamma * e[i] + r0)


@leaf
def gap(e: FloatArray, band: Band, lam1: float, result: Sweep) -> None:
    """Bound the error of `sweep`, for every λ from result.lam to lam1.

    Writes result.e[n, j], an upper bound of (D of the sweep) - (true D) at s = ref[n] + j. The
    bound holds if no s < ref[n] continues in the sweep. Where the sweep continues,
    e(s, f) ≤ γ [μ e(s+1, f) + (1-μ) e(s, f+1)]; where it stops, stopping is optimal.
    The rounding of a step is added, in proportion to d ≤ μ - λ + 1/κ. `e` is scratch.
    """
    x, inverse, cut, b, lam0 = band.x, band.inverse, band.cut, result.ref, result.lam
    gamma, kappa = band.gamma, band.kappa
    T = cut.size - 1
    eta, r = rate(gamma), 2.0 * ROUNDING  # the rounding margin, and the rounding error
    for s in range(b[T], cut[T] + 1):
        e[s] = r
        if kappa < math.inf:
            y0, y1 = x[s] * inverse[T] - lam1, x[s] * inverse[T] - lam0
            y = y0 if y0 > 0.0 else min(y1, 0.0)  # nearest to 0: the weakest bound
            e[s] += max(exp(-kappa * y - 1.0) / kappa + min(y, 0.0), 0.0)
    for n in range(T, -1, -1):
        low, high = b[n], cut[n]
        if n < T:
            e[cut[n + 1] + 1] = band.ghost[n + 1] + r
            if b[n + 1] > 0:
                e[b[n + 1] - 1] = 0.0
        if n < T and low <= high:
            r0 = r * (2.0 * inverse[n] / eta + (1.0 - gamma) - lam0)
            r1, c2 = r * inverse[n], gamma * inverse[n]
            _gap_level(e[low : high + 2], x[low : high + 1], r0, r1, c2, gamma)
        if n < result.e.shape[0]:
            _copy_padded(e[low : high + 1], result.e[n])


# ------------------------------------------------------------------------------------------------
# Bounds of the indices from the passes.
#
#     ν(s, f) = the λ with F(λ) = (1-γ)(μ - λ) + γ μ d(s+1, f; λ) = 0
#
# because ν(s, f+1) ≤ ν(s, f): at λ = ν the arm stops after a failure. F is convex and decreasing. A
# chord of F around ν meets zero above ν. A chord on one side of ν, extended to the other, is below
# F there, and meets zero below ν. Indices are ordered by levels: the state (s, f) is at
# n (n+1) / 2 + s, n = s + f.


@leaf
def state_index(s: int, f: int) -> int:
    """Return n (n+1) / 2 + s, the index of the state (s, f), where n = s + f.

    >>> state_index(0, 0), state_index(0, 1), state_index(1, 0), state_index(0, 2)
    (0, 1, 2, 3)
    """
    return (s + f) * (s + f + 1) // 2 + s


@leaf
def _after_success(result: Sweep, n: int, s: int) -> float:
    """Return the upper bound of d(s+1, f), n = s + f, of a pass; -1 if it is not stored."""
    j = s + 1 - result.b[n + 1]
    if j < 0:  # this state stops
        return 0.0
    return result.near[n + 1, j] if j < result.near.shape[1] else -1.0


@leaf
def settle(
    lower: FloatArray, upper: FloatArray, band: Band, sweep0: Sweep, sweep1: Sweep, sweep2: Sweep
) -> float:
    """Tighten the bounds of the states with D₁ > 0 ≥ D₂; return half the widest bracket.

        upper ← λ₁ + (λ₂ - λ₁) F₁ / (F₁ - F₂)        lower ← λ₁ + (λ₁ - λ₀) F₁ / (F₀ - F₁)

    each if it improves the bound. λ₀ < λ₁ < λ₂ are those of the three passes. The values of F are
    upper bounds, except F₁ in the second formula, a lower bound; if it is negative, the chord
    from λ₁ to λ₂ replaces that from λ₀ to λ₁. If the state after a success stops before λ₂,
    its index replaces λ₂.
    """
    gamma, eta, rows, widest = band.gamma, rate(band.gamma), sweep1.near.shape[0], 0.0
    lam0, lam1, lam2 = sweep0.lam, sweep1.lam, sweep2.lam
    for n in range(rows - 2, -1, -1):
        m = band.m0 + n
        for s in range(sweep1.b[n], min(sweep2.b[n], n + 1)):
            k, mu, right = state_index(s, n - s), band.x[s] / m, lam2
            d0, d1 = _after_success(sweep0, n, s), _after_success(sweep1, n, s)
            d2 = _after_success(sweep2, n, s)
            if n + 2 < rows and upper[state_index(s + 1, n - s)] < lam2:
                right, d2 = upper[state_index(s + 1, n - s)], 0.0
            lower[k] = max(lower[k], mu)
            upper[k] = min(upper[k], right, mu + 1.0 / (eta * (m + 1.0)))
            if right > lam1 and min(d0, d1, d2) >= 0.0:
                F1 = (1.0 - gamma) * (mu - lam1) + gamma * mu * d1
                fall = max(d1 - d2, 0.0) / (right - lam1)
                upper[k] = min(upper[k], lam1 + max(F1, 0.0) / (1.0 - gamma + gamma * mu * fall))
                j = s + 1 - sweep1.ref[n + 1]
                if 0 <= j < sweep1.e.shape[1]:
                    d1 -= sweep1.e[n + 1, j]
                    F1 = (1.0 - gamma) * (mu - lam1) + gamma * mu * d1
                    fall = max(d1 - d2, 0.0) / (right - lam1)
                    if F1 > 0.0:
                        fall = (d0 - d1) / (lam1 - lam0)
                    lower[k] = max(lower[k], lam1 + F1 / (1.0 - gamma + gamma * mu * fall))
            widest = max(widest, upper[k] - lower[k])
    return 0.5 * widest


@leaf
def split(
    lower: FloatArray, upper: FloatArray, levels: IntArray, successes: IntArray, result: Sweep
) -> int:
    """Move one bound of each given state to λ: lower if D - e > 0, upper if D ≤ 0.

    The states are (successes, levels - successes); those with λ outside (lower, upper) are skipped.
    Returns the number of undecided states.
    """
    undecided = 0
    for i in range(levels.size):
        n, s = levels[i], successes[i]
        k = state_index(s, n - s)
        if lower[k] < result.lam < upper[k]:
            j = s - result.b[n]
            if j < 0:  # the state stops: D ≤ 0
                upper[k] = result.lam
            elif j < result.near.shape[1] and result.near[n, j] > result.e[n, j]:
                lower[k] = result.lam
            else:
                undecided += 1
    return undecided


@leaf
def slack(sweep0: Sweep, sweep1: Sweep) -> float:
    """Return by how much the gaps e may shift an index: about max_n e / |dD/dλ|.

    The slope is (D₀ - D₁) / (λ₁ - λ₀) in the state b₁(n), where both sweeps know D.
    """
    largest, step = 0.0, sweep1.lam - sweep0.lam
    for n in range(sweep1.near.shape[0]):
        b, D1 = sweep1.b[n], sweep1.near[n, 0]
        in_near0 = b - sweep0.b[n]
        in_gaps = min(b - sweep1.ref[n], sweep1.e.shape[1] - 1)
        if b <= n and 0 <= in_near0 < sweep0.near.shape[1]:
            fall = sweep0.near[n, in_near0] - D1
            if D1 >= 0.0 and fall > 0.0:
                largest = max(largest, sweep1.e[n, in_gaps] * step / fall)
    return largest
