"""Backward passes of the Gittins stopping problem, on the band where they have to be made.

    D(s, f; λ) = (1-γ)(μ - λ) + γ [μ d(s+1, f) + (1-μ) d(s, f+1)]      d = max(D, 0)

μ = (α+s)/m, m = α+β+s+f. D > 0, to go on, iff the index of (s, f) exceeds λ. As μ is a martingale,
d + λ - μ = g = sup_τ E γ^τ (λ - μ_τ), an option to stop, and with κ = (m+1) √(8 ln 1/γ)

    g = λ - μ              where λ - μ ≥ 1/κ: stop
    g ≤ e^(-κ(μ-λ)-1) / κ   everywhere: d = μ - λ but for a little, well above λ

(docs/adr/0010-gittins.md has the proofs). So a level n = s + f needs only the s between the first
one that goes on, b[n], and `cut[n]`, above which g ≤ `ghost`. `sweep` bounds d from above, rounding
included; `gap` bounds how far above the truth it is, for all λ of a short interval at once.
"""

import math

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, log

#: A step of `sweep` makes nine roundings of half a unit in the last place to any of its terms.
ROUNDING = 10.0 * 2.0**-53


@leaf
def rate(gamma: float) -> float:
    """√(8 ln 1/γ) = κ / (m+1): how fast g falls off, for each pull's worth of success.

    >>> round(rate(0.999), 5)
    0.08947
    """
    return math.sqrt(-8.0 * log(gamma))


@leaf
def reach(m0: float, gamma: float, pulls: int, finest: float, x: FloatArray, g: FloatArray) -> None:
    """x[n] = how far above λ the mean has to be at level n for g ≤ g[n].

    κ x = ln(1 / (κ e g)), at least 1. g is `finest` up to level `pulls`, and grows beyond it as
    discounting lets it.

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
        x[n] = (folds + 1e-6) / kappa  # room for the rounding of the cut


@leaf
def limits(
    alpha: float, m0: float, lam: float, beyond: FloatArray, inverse: FloatArray, cut: IntArray
) -> None:
    """1/m and the cut of every level, for no λ above `lam`.

    The cut is the last s with μ < λ + beyond[n], as `reach` has it.

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


@leaf
def _step(d: FloatArray, x: FloatArray, c0: float, c1: float, c2: float, gamma: float) -> None:
    """One level, in place: alone and on views, so that it becomes vector code."""
    for i in range(x.size):
        v = x[i] * (c1 + c2 * (d[i + 1] - d[i])) + (gamma * d[i] - c0)
        d[i] = v if v > 0.0 else 0.0


@leaf
def sweep(
    d: FloatArray,
    x: FloatArray,
    inverse: FloatArray,
    ghost: FloatArray,
    cut: IntArray,
    lam: float,
    gamma: float,
    kappa: float,
    b: IntArray,
    below: FloatArray,
    near: FloatArray,
) -> None:
    """An upper bound of D at every state of the band, level T = cut.size - 1 down to 0.

    Rounding is paid for by a discount that is larger by `ROUNDING`, as d ≥ 0 grows with s.

    x[s] = α + s; κ = `kappa` bounds what follows level T, ∞ if nothing is learnt after it. Gives
    b[n], the first s that goes on; below[n] = D at b[n] - 1; near[n, j] = d at b[n] + j, or -1
    above the cut. D of an s < b[n] - 1 is (1-γ)(μ - λ): both its successors stop.

    >>> import numpy as np
    >>> x, d, below, near = np.arange(1.0, 44.0), np.empty(43), np.empty(1), np.empty((1, 1))
    >>> beyond, ghost, inverse, cut, b = *np.empty((3, 41)), *np.empty((2, 41), int)
    >>> reach(2.0, 0.5, 0, 1e-6, beyond, ghost)
    >>> limits(1.0, 2.0, 0.6, beyond, inverse, cut)
    >>> for lam in (0.559, 0.5591):  # the index of (1, 1) is .55902
    ...     sweep(d, x, inverse, ghost, cut, lam, 0.5, np.inf, b, below, near)
    ...     print(b[0])
    0
    1
    """
    T = cut.size - 1
    more = gamma * (1.0 + ROUNDING)
    first = cut[T] + 1
    for s in range(cut[T], -1, -1):
        y = x[s] * inverse[T] - lam
        if y <= -1.0 / kappa:
            break
        d[s] = y + ROUNDING
        if kappa < math.inf:
            d[s] += exp(-kappa * y - 1.0) / kappa
        first = s
    b[T] = first
    for n in range(T - 1, -1, -1):
        if cut[n + 1] <= n:
            d[cut[n + 1] + 1] = x[cut[n + 1] + 1] * inverse[n + 1] - lam + (ghost[n + 1] + ROUNDING)
        high = cut[n]
        c1, c2 = (1.0 - gamma) * inverse[n], more * inverse[n]
        c0 = (1.0 - gamma) * (lam - ROUNDING)
        low = max(first - 1, 0)
        if first > 0:
            d[low] = 0.0
        under = x[high] * c1 - c0
        if low <= high:
            v = x[low] * (c1 + c2 * (d[low + 1] - d[low])) + (more * d[low] - c0)
            _step(d[low : high + 2], x[low : high + 1], c0, c1, c2, more)
            first = low if v > 0.0 else low + 1
            under = v if v <= 0.0 else x[max(low - 1, 0)] * c1 - c0
        else:
            first = high + 1
        b[n] = first
        if n < near.shape[0]:
            below[n] = min(under, 0.0)
            for j in range(near.shape[1]):
                near[n, j] = d[first + j] if first + j <= high else -1.0


@leaf
def _spread(e: FloatArray, x: FloatArray, r0: float, r1: float, c2: float, gamma: float) -> None:
    """One level of the gap, in place."""
    for i in range(x.size):
        e[i] = x[i] * (r1 + c2 * (e[i + 1] - e[i])) + (gamma * e[i] + r0)


@leaf
def gap(
    e: FloatArray,
    x: FloatArray,
    inverse: FloatArray,
    ghost: FloatArray,
    cut: IntArray,
    lam0: float,
    lam1: float,
    gamma: float,
    kappa: float,
    b: IntArray,
    near: FloatArray,
) -> None:
    """near[n, j] ≥ D as `sweep` has it - D, at s = b[n] + j, for every λ in [lam0, lam1].

    It holds where `sweep` finds no s < b[n] that goes on. Where the sweep goes on,
    e(s, f) ≤ γ [μ e(s+1, f) + (1-μ) e(s, f+1)]; where it stops, so does the truth. To this comes
    the rounding of a step, in proportion to d ≤ μ - λ + 1/κ.

    >>> import numpy as np
    >>> x, d, below, near = np.arange(1.0, 44.0), np.empty(43), np.empty(1), np.empty((1, 1))
    >>> beyond, ghost, inverse, cut, b = *np.empty((3, 41)), *np.empty((2, 41), int)
    >>> reach(2.0, 0.5, 0, 1e-6, beyond, ghost)
    >>> limits(1.0, 2.0, 0.6, beyond, inverse, cut)
    >>> sweep(d, x, inverse, ghost, cut, 0.55, 0.5, 100.0, b, below, near)
    >>> gap(d, x, inverse, ghost, cut, 0.55, 0.6, 0.5, 100.0, b, near)
    >>> near[0, 0] < 1e-6
    np.True_
    """
    T = cut.size - 1
    eta, r = rate(gamma), 2.0 * ROUNDING  # what was added, and what may have been lost
    for s in range(b[T], cut[T] + 1):
        e[s] = r
        if kappa < math.inf:
            y0, y1 = x[s] * inverse[T] - lam1, x[s] * inverse[T] - lam0
            y = y0 if y0 > 0.0 else min(y1, 0.0)  # the nearest to 0, where the bound is loosest
            e[s] += max(exp(-kappa * y - 1.0) / kappa + min(y, 0.0), 0.0)
    for n in range(T - 1, -1, -1):
        e[cut[n + 1] + 1] = ghost[n + 1] + r
        if b[n + 1] > 0:
            e[b[n + 1] - 1] = 0.0
        low, high = b[n], cut[n]
        if low <= high:
            r0 = r * (2.0 * inverse[n] / eta + (1.0 - gamma) - lam0)
            r1, c2 = r * inverse[n], gamma * inverse[n]
            _spread(e[low : high + 2], x[low : high + 1], r0, r1, c2, gamma)
        if n < near.shape[0]:
            for j in range(near.shape[1]):
                near[n, j] = e[low + j] if low + j <= high else -1.0
