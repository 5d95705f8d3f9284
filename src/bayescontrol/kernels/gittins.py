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
#: `sweep` computes values in groups of this size.
VECTOR = 32


class Band(NamedTuple):
    """Constants of all passes over the levels 0 … T of one arm."""

    x: FloatArray  #: α + s
    tiled: FloatArray  #: α + s, once for each λ of `Passes`
    #: Per level: 1/m, the bound of g above the cut, and the cut.
    inverse: FloatArray
    ghost: FloatArray
    cut: IntArray
    m0: float  #: α + β
    gamma: float
    kappa: float  #: bounds the values after level T; ∞ if learning ends there
    pulls: int  #: the last level of the table


class Passes(NamedTuple):
    """The results of simultaneous passes at several λ in increasing order, and their gaps."""

    lam: FloatArray
    #: For each level the first s that continues at some λ, and for the first levels, at each λ.
    ref: IntArray
    b: IntArray
    #: d from ref on, for each level, s and λ, and the gaps from there on; -1 above the cut.
    near: FloatArray
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
    out[known:] = -1.0


@inlined
def _step(
    out: FloatArray, d: FloatArray, after: FloatArray, x: FloatArray, c0: FloatArray,
    c1: float, c2: float, gamma: float,
) -> None:  # fmt: skip
    """Compute one level of `sweep`, in a separate function on views: it is vectorised."""
    for i in range(x.size):
        v = x[i] * (c1 + c2 * (after[i] - d[i])) + (gamma * d[i] - c0[i])
        out[i] = v if v > 0.0 else 0.0


@leaf
def sweep(scratch: FloatArray, band: Band, passes: Passes) -> None:
    """Compute an upper bound of D at every state of the band, from level T = cut.size - 1 to 0.

    Rounding is covered by a discount that is larger by `ROUNDING`, as d ≥ 0 increases with s.

    Writes `ref`, `b` and `near`. A level needs the one before it, so that a single pass would
    wait for each; passes at K values of λ do not wait for each other. In `scratch`, of three rows,
    the values of a state for all λ are adjacent, at K s + k.
    """
    x, inverse, cut, lam, near = band.x, band.inverse, band.cut, passes.lam, passes.near
    gamma, kappa, K = band.gamma, band.kappa, passes.lam.size
    T, rows = cut.size - 1, near.shape[0]
    d, out, c0, tiled = scratch[0], scratch[1], scratch[2], 0
    gamma_up = gamma * (1.0 + ROUNDING)
    first = cut[T] + 1  # the first s that continues
    while first > 0 and x[first - 1] * inverse[T] - lam[0] > -1.0 / kappa:
        first -= 1
        for k in range(K):
            y = x[first] * inverse[T] - lam[k]
            d[K * first + k] = 0.0
            if y > -1.0 / kappa:
                tail = exp(-kappa * y - 1.0) / kappa if kappa < math.inf else 0.0
                d[K * first + k] = y + ROUNDING + tail
    for n in range(T, -1, -1):
        high = cut[n]
        if n < T:
            above, low = cut[n + 1] + 1, max(first - 1, 0)
            if above <= n + 1:  # the first value above the cut, by its bound
                margin = band.ghost[n + 1] + ROUNDING
                edge = d[K * above : K * (above + 1)]
                for k in range(K):
                    edge[k] = (x[above] * inverse[n + 1] - lam[k]) + margin
            if first > 0:
                d[K * low : K * first] = 0.0
            first = high + 1
            if low <= high:
                c1, c2 = (1.0 - gamma) * inverse[n], gamma_up * inverse[n]
                # Full vectors: the values above the cut are not used.
                start, stop = K * low, K * (high + 1)
                stop += (start - stop) % VECTOR
                for i in range(tiled, stop - start):
                    c0[i] = (1.0 - gamma) * (lam[i % K] - ROUNDING)
                tiled = max(tiled, stop - start)
                _step(
                    out[start:stop], d[start:stop], d[start + K : stop + K],
                    band.tiled[start:stop], c0[: stop - start], c1, c2, gamma_up,
                )  # fmt: skip
                d, out = out, d
                edge, first = d[start : start + K], low + 1
                for k in range(K):
                    if edge[k] > 0.0:
                        first = low
        passes.ref[n] = first
        if n < rows:
            _copy_padded(d[K * first : K * (high + 1)], near[n].reshape(near[n].size))
            for k in range(K):
                b = first if n == rows - 1 else max(first, passes.b[k, n + 1] - 1)
                while b <= high and d[K * b + k] == 0.0:
                    b += 1
                passes.b[k, n] = b


@inlined
def _gap_level(e: FloatArray, x: FloatArray, r0: float, r1: float, c2: float, gamma: float) -> None:
    """Compute one level of `gap` in place."""
    for i in range(x.size):
        e[i] = x[i] * (r1 + c2 * (e[i + 1] - e[i])) + (gamma * e[i] + r0)


@leaf
def gap(e: FloatArray, band: Band, passes: Passes) -> None:
    """Bound the error of `sweep`, for all λ of the passes at once.

    Writes passes.e[n, j], an upper bound of (D of the sweep) - (true D) at s = ref[n] + j. The
    bound holds as no s < ref[n] continues in the sweep. Where the sweep continues,
    e(s, f) ≤ γ [μ e(s+1, f) + (1-μ) e(s, f+1)]; where it stops, stopping is optimal.
    The rounding of a step is added, in proportion to d ≤ μ - λ + 1/κ. `e` is scratch.
    """
    x, inverse, cut, b = band.x, band.inverse, band.cut, passes.ref
    gamma, kappa, lam0, lam1 = band.gamma, band.kappa, passes.lam[0], passes.lam[-1]
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
        if n < passes.e.shape[0]:
            _copy_padded(e[low : high + 1], passes.e[n])


# ------------------------------------------------------------------------------------------------
# Bounds of the indices from the passes.
#
#     ν(s, f) = the λ with F(λ) = (1-γ)(μ - λ) + γ μ D(s+1, f; λ) = 0
#
# because ν(s, f+1) ≤ ν(s, f): at λ = ν the arm stops after a failure, and D(s+1, f) > 0 as ν ≥ μ. F
# is convex and decreasing. A chord of F around ν meets zero above ν. A chord on one side of ν,
# extended to the other, is below F there, and meets zero below ν. Indices are ordered by levels:
# the state (s, f) is at n (n+1) / 2 + s, n = s + f.


@leaf
def state_index(s: int, f: int) -> int:
    """Return n (n+1) / 2 + s, the index of the state (s, f), where n = s + f.

    >>> state_index(0, 0), state_index(0, 1), state_index(1, 0), state_index(0, 2)
    (0, 1, 2, 3)
    """
    return (s + f) * (s + f + 1) // 2 + s


@leaf
def _continued(passes: Passes, k: int, n: int, s: int) -> tuple[float, float]:
    """Return the upper bound of d(s, n - s) at λ_k, and its error; ∞ if they are not stored."""
    if s < passes.b[k, n]:  # the state stops
        return 0.0, 0.0
    j = s - passes.ref[n]
    if j < passes.near.shape[1] and passes.near[n, j, k] >= 0.0:
        return passes.near[n, j, k], passes.e[n, j]
    return math.inf, math.inf


@leaf
def _advantage(passes: Passes, k: int, band: Band, n: int, s: int) -> tuple[float, float]:
    """Return an upper bound of D(s, n - s) at λ_k, and its error; ∞ if they are not stored.

    Where the pass stops, it stops after a failure too: D = (1-γ)(μ - λ) + γ μ d(s+1, f).
    """
    if s >= passes.b[k, n]:
        return _continued(passes, k, n, s)
    mu = band.x[s] * band.inverse[n]
    d, e = _continued(passes, k, n + 1, s + 1) if n + 1 < band.cut.size else (0.0, 0.0)
    return (1.0 - band.gamma) * (mu - passes.lam[k]) + band.gamma * mu * d, band.gamma * mu * e


@leaf
def settle(
    lower: FloatArray, upper: FloatArray, band: Band, before: Passes, passes: Passes
) -> float:
    """Tighten the bounds of the states with D₁ > 0 ≥ D₂; return half the widest bracket.

        upper ← λ₁ + (λ₂ - λ₁) F₁ / (F₁ - F₂)
        lower ← λ₁ + (λ₁ - λ₀) F₁ / (F₀ - F₁)  or  λ₂ + (λ₃ - λ₂) F₂ / (F₂ - F₃)

    each if it improves the bound, for any four neighbours λ₀ < λ₁ < λ₂ < λ₃ of the last three λ
    before and those of the passes. The values of F are upper bounds, except F₁ and F₂ in the
    numerators of the second line, lower bounds.
    """
    widest, K = 0.0, passes.lam.size
    for k in range(K):
        four = (k - 3) % K, (k - 2) % K, (k - 1) % K, k
        pass0, pass1 = before if k < 3 else passes, before if k < 2 else passes
        pass2 = before if k < 1 else passes
        widest = max(widest, _settle(lower, upper, band, pass0, pass1, pass2, passes, four))
    return 0.5 * widest


@leaf
def _settle(
    lower: FloatArray, upper: FloatArray, band: Band,
    pass0: Passes, pass1: Passes, pass2: Passes, pass3: Passes, k: tuple[int, int, int, int],
) -> float:  # fmt: skip
    """Tighten the bounds by four neighbours λ_k, each of one of the passes; return the widest."""
    k0, k1, k2, k3 = k
    gamma, eta, widest = band.gamma, rate(band.gamma), 0.0
    lam0, lam1, lam2, lam3 = pass0.lam[k0], pass1.lam[k1], pass2.lam[k2], pass3.lam[k3]
    for n in range(min(band.pulls, band.cut.size - 2), -1, -1):
        farthest = 1.0 / (eta * (band.m0 + n + 1.0))  # ν ≤ μ + 1/κ
        for s in range(pass1.b[k1, n], min(pass2.b[k2, n], n + 1)):
            i, mu = state_index(s, n - s), band.x[s] * band.inverse[n]
            D0, _ = _advantage(pass0, k0, band, n + 1, s + 1)
            D1, e1 = _advantage(pass1, k1, band, n + 1, s + 1)
            D2, e2 = _advantage(pass2, k2, band, n + 1, s + 1)
            D3, _ = _advantage(pass3, k3, band, n + 1, s + 1)
            low, high = max(lower[i], mu), min(upper[i], lam2, mu + farthest)
            if max(D1, D2) < math.inf:
                F1, scale = (1.0 - gamma) * (mu - lam1), gamma * mu
                fall = max(D1 - D2, 0.0) / (lam2 - lam1)
                high = min(high, lam1 + max(F1 + scale * D1, 0.0) / (1.0 - gamma + scale * fall))
                D1 -= e1
                F1 += scale * D1
                fall = max(D1 - D2, 0.0) / (lam2 - lam1)
                if F1 > 0.0:
                    fall = (D0 - D1) / (lam1 - lam0)
                low = max(low, lam1 + F1 / (1.0 - gamma + scale * fall))
                D2 -= e2
                F2 = (1.0 - gamma) * (mu - lam2) + scale * D2
                fall = max(D2 - D3, 0.0) / (lam3 - lam2)
                low = max(low, lam2 + F2 / (1.0 - gamma + scale * fall))
            lower[i], upper[i] = low, high
            widest = max(widest, high - low)
    return widest


@leaf
def split(
    lower: FloatArray, upper: FloatArray, levels: IntArray, successes: IntArray, passes: Passes
) -> int:
    """Move one bound of each given state to λ₀: lower if D - e > 0, upper if D ≤ 0.

    The states are (successes, levels - successes); those with λ₀ outside (lower, upper) are
    skipped. Returns the number of undecided states.
    """
    undecided, lam = 0, passes.lam[0]
    for i in range(levels.size):
        n, s = levels[i], successes[i]
        k = state_index(s, n - s)
        if lower[k] < lam < upper[k]:
            d, e = _continued(passes, 0, n, s)
            if d == 0.0:  # the state stops: D ≤ 0
                upper[k] = lam
            elif e < d:
                lower[k] = lam
            else:
                undecided += 1
    return undecided


@leaf
def slack(passes: Passes) -> float:
    """Return by how much the gaps e may shift an index: about max_n e / |dD/dλ|.

    The slope is (D₁ - D₂) / (λ₂ - λ₁) in the state b₂(n) of the last pass, whose gaps are the
    largest; λ₁ is the λ before the last one.
    """
    largest, last = 0.0, passes.lam.size - 1
    step = passes.lam[last] - passes.lam[last - 1]
    for n in range(passes.near.shape[0]):
        b = passes.b[last, n]
        D1, _ = _continued(passes, last - 1, n, b)
        D2, e = _continued(passes, last, n, b)
        if D2 < D1 < math.inf:
            largest = max(largest, e * step / (D1 - D2))
    return largest
