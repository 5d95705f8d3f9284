"""Gittins indices: what the passes of `kernels.gittins_band` say of them, and the policy.

    ν(s, f) = the λ with D(s, f; λ) = 0;   D is convex and falls as λ grows

A chord of D from λ₁, where it is positive, to λ₂, where it is not, meets zero above ν. A chord on
one side of ν, drawn on to the other, lies below D there, and meets zero below ν. Indices stand by
levels: the state (s, f) has place n (n+1) / 2 + s, n = s + f.
"""

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.gittins_band import rate
from bayescontrol.kernels.xoshiro import below as draw_below


@leaf
def place(s: int, f: int) -> int:
    """n (n+1) / 2 + s, where n = s + f.

    >>> place(0, 0), place(0, 1), place(1, 0), place(0, 2)
    (0, 1, 2, 3)
    """
    return (s + f) * (s + f + 1) // 2 + s


@leaf
def lift(
    lower: FloatArray,
    lam0: float,
    lam1: float,
    b0: IntArray,
    near0: FloatArray,
    b1: IntArray,
    near1: FloatArray,
    ref: IntArray,
    e: FloatArray,
    depth: int,
) -> None:
    """lower(s, f) ← λ₁ + (λ₁ - λ₀) D₁ / (D₀ - D₁) where that is more, D₀ from above, D₁ from below.

    For the `depth` states of each level next to the boundary of λ₁; `e` stands from `ref` on.

    >>> import numpy as np
    >>> lower, zero, e = np.zeros(1), np.zeros(1, int), np.zeros((1, 1))
    >>> lift(lower, 0.1, 0.2, zero, np.full((1, 1), 0.3), zero, np.full((1, 1), 0.2), zero, e, 1)
    >>> lower.round(12)
    array([0.4])
    """
    for n in range(near1.shape[0]):
        for j in range(depth):
            s = b1[n] + j
            if s > n or near1[n, j] < 0.0 or s - ref[n] >= e.shape[1]:
                break
            D1 = near1[n, j] - e[n, s - ref[n]]
            if D1 > 0.0:
                nu = lam1
                j0 = s - b0[n]
                if 0 <= j0 < near0.shape[1] and near0[n, j0] > D1:
                    nu += (lam1 - lam0) * D1 / (near0[n, j0] - D1)
                k = place(s, n - s)
                lower[k] = max(lower[k], nu)


@leaf
def settle(
    lower: FloatArray,
    upper: FloatArray,
    alpha: float,
    m0: float,
    gamma: float,
    lam: FloatArray,
    b1: IntArray,
    near1: FloatArray,
    b2: IntArray,
    below2: FloatArray,
    ref: IntArray,
    e: FloatArray,
    b3: IntArray,
    below3: FloatArray,
) -> float:
    """Where D₁ > 0 ≥ D₂ for λ₁ < λ₂ < λ₃ = `lam`; gives half the widest bracket.

        upper ← λ₁ + (λ₂ - λ₁) D₁ / (D₁ - D₂)        lower ← λ₂ + (λ₃ - λ₂) D₂ / (D₂ - D₃)

    each if it is an improvement, D₁ and D₃ from above, D₂ from above, then from below.

    >>> import numpy as np
    >>> lower, upper, zero, one = np.full(1, 0.5), np.ones(1), np.zeros(1, int), np.ones(1, int)
    >>> D1, e = np.full((1, 1), 0.01), np.zeros((1, 1))
    >>> D2, D3 = np.full((2, 1), [[-0.03], [-0.05]])
    >>> lam = np.array([0.6, 0.7, 0.8])
    >>> settle(lower, upper, 1.0, 2.0, 0.9, lam, zero, D1, one, D2, zero, e, one, D3)
    0.03...
    >>> lower.round(12), upper.round(12)
    (array([0.55]), array([0.625]))
    """
    eta, widest = rate(gamma), 0.0
    lam1, lam2, lam3 = lam[0], lam[1], lam[2]
    for n in range(near1.shape[0]):
        m = m0 + n
        for s in range(b1[n], min(b2[n], n + 1)):
            k, mu, j, nu = place(s, n - s), (alpha + s) / m, s - b1[n], lam2
            lower[k] = max(lower[k], mu)
            D2 = below2[n] if s == b2[n] - 1 else (1.0 - gamma) * (mu - lam2)
            if j < near1.shape[1] and near1[n, j] >= 0.0 and near1[n, j] > D2:
                nu = lam1 + (lam2 - lam1) * near1[n, j] / (near1[n, j] - D2)
            upper[k] = min(upper[k], nu, mu + 1.0 / (eta * (m + 1.0)))
            j = s - ref[n]
            if s == b2[n] - 1 and 0 <= j < e.shape[1]:
                D2 -= e[n, j]
                D3 = below3[n] if s == b3[n] - 1 else (1.0 - gamma) * (mu - lam3)
                if D2 > D3:
                    lower[k] = max(lower[k], lam2 + (lam3 - lam2) * D2 / (D2 - D3))
            widest = max(widest, upper[k] - lower[k])
    return 0.5 * widest


@leaf
def split(
    lower: FloatArray,
    upper: FloatArray,
    levels: IntArray,
    successes: IntArray,
    lam: float,
    b: IntArray,
    near: FloatArray,
    e: FloatArray,
) -> int:
    """lower ← λ where D - e > 0, upper ← λ where D ≤ 0, for the given states around λ.

    Gives the number of those of which neither can be said.

    >>> import numpy as np
    >>> lower, upper, zero = np.full(1, 0.5), np.ones(1), np.zeros(1, int)
    >>> split(lower, upper, zero, zero, 0.7, zero, np.full((1, 1), 0.01), np.zeros((1, 1)))
    0
    >>> lower, upper
    (array([0.7]), array([1.]))
    """
    open_still = 0
    for i in range(levels.size):
        n, s = levels[i], successes[i]
        k = place(s, n - s)
        if lower[k] < lam < upper[k]:
            j = s - b[n]
            if j < 0:
                upper[k] = lam
            elif j < near.shape[1] and near[n, j] > e[n, j]:
                lower[k] = lam
            else:
                open_still += 1
    return open_still


@leaf
def slack(
    lam0: float,
    lam1: float,
    b0: IntArray,
    near0: FloatArray,
    b1: IntArray,
    near1: FloatArray,
    e: FloatArray,
) -> float:
    """max_n e (λ₁ - λ₀) / (D₀ - D₁) at b₁: what the gap `e` of the passes costs an index, about.

    >>> import numpy as np
    >>> zero, one = np.zeros(1, int), np.ones((1, 1))
    >>> slack(0.1, 0.2, zero, 0.3 * one, zero, 0.2 * one, 0.001 * one)
    0.001...
    """
    most = 0.0
    for n in range(near1.shape[0]):
        j0 = b1[n] - b0[n]
        if b1[n] <= n and 0 <= j0 < near0.shape[1] and near0[n, j0] > near1[n, 0] >= 0.0:
            most = max(most, e[n, 0] * (lam1 - lam0) / (near0[n, j0] - near1[n, 0]))
    return most


@leaf
def choose(nu: FloatArray, pulls: int, r: FloatArray, f: FloatArray, state: UIntArray) -> int:
    """arg max_j ν(r_j, f_j), one of equals by chance; -1, and no draw, if r_j + f_j > pulls.

    `nu` holds the levels up to `pulls`; r and f are counts, whole numbers as doubles.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> nu = np.array([0.7, 0.5, 0.8])
    >>> choose(nu, 1, np.array([0.0, 1.0]), np.zeros(2), Stream(0).state)
    1
    >>> choose(nu, 1, np.array([0.0, 2.0]), np.zeros(2), Stream(0).state)
    -1
    """
    best, ties, arm = -1.0, 0, -1
    for j in range(r.size):
        if r[j] + f[j] > pulls:
            return -1
        v = nu[place(int(r[j]), int(f[j]))]
        if v > best:
            best, ties, arm = v, 1, j
        elif v == best:
            ties += 1
    if ties > 1:
        skip = draw_below(state, ties)
        for j in range(arm, r.size):
            if nu[place(int(r[j]), int(f[j]))] == best:
                if skip == 0:
                    return j
                skip -= 1
    return arm
