"""Gauss-Legendre rules on [-1, 1], and posterior densities at their nodes.

    ∫_-1^1 f        = Σ_l WEIGHT[l] f(x_l)                  exact for polynomials up to 2K - 1
    ∫_{x_k}^1 f     = Σ_l TO_RIGHT[l, k] f(x_l)             exact up to K - 1
    c_n             = Σ_l COEFFICIENT[i, l] f(x_l)          f = Σ_n c_n P_n,  n = DEGREE[i]

Computed from (n + 1) P_{n+1} = (2n + 1) x P_n - n P_{n-1} with forty digits and rounded once, so
that they have the same bits everywhere, unlike the eigenvalues of a library.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.beta_distribution import excess, log1p_exp
from bayescontrol.kernels.elementary import (
    SERIES_HIGH,
    exp,
    exp_excess,
    exp_excess_series,
    log,
    log_excess_series,
    log_one_plus,
    stirling_remainder,
)
from bayescontrol.kernels.families import BETA as BETA
from bayescontrol.kernels.families import GAMMA as GAMMA
from bayescontrol.kernels.families import INVERSE_GAMMA as INVERSE_GAMMA
from bayescontrol.kernels.families import NORMAL as NORMAL
from bayescontrol.kernels.families import STUDENT as STUDENT

#: The number of nodes of a panel.
K = 16
#: Two coefficients in the middle, two at the end: an odd or even function has one of each.
DEGREE = (K // 2 - 1, K // 2, K - 2, K - 1)

_DIGITS = 40
#: Newton's method from within 1e-2: six steps suffice for forty digits; two are a margin.
_STEPS = 8


def _legendre(x: Decimal) -> list[Decimal]:
    """P_0(x) … P_{K+1}(x)."""
    P = [Decimal(1), x]
    for n in range(1, K + 1):
        P.append(((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1))
    return P


def _tables() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return NODE, WEIGHT, TO_RIGHT and COEFFICIENT."""
    with localcontext() as context:
        context.prec = _DIGITS
        nodes, weights = [], []
        for k in range(K):
            x = Decimal(-float(np.cos(np.pi * (k + 0.75) / (K + 0.5))))
            for _ in range(_STEPS):
                P = _legendre(x)
                slope = K * (P[K - 1] - x * P[K]) / (1 - x * x)
                x -= P[K] / slope
            nodes.append(x)
            weights.append(2 / ((1 - x * x) * slope * slope))
        P_at = [_legendre(x) for x in nodes]
        half = Decimal(1) / 2
        to_right = [
            [
                w * half * (1 - nodes[k] + sum(
                    P_l[n] * (P_at[k][n - 1] - P_at[k][n + 1]) for n in range(1, K)
                ))
                for k in range(K)
            ]
            for w, P_l in zip(weights, P_at, strict=True)
        ]  # fmt: skip
        coefficient = [
            [(n + half) * w * P_l[n] for w, P_l in zip(weights, P_at, strict=True)] for n in DEGREE
        ]
    return (
        np.array(nodes, np.float64),
        np.array(weights, np.float64),
        np.array(to_right, np.float64),
        np.array(coefficient, np.float64),
    )


NODE, WEIGHT, TO_RIGHT, COEFFICIENT = _tables()


# ------------------------------------------------------------------------------------------------
# Posterior densities of an arm's mean, in coordinates in which they are smooth and unimodal.
#
#     ln f(y) = ln f(μ) - n D(y ‖ μ)      D(y ‖ c) = Λ(y) - Λ(c) - Λ'(c) (y - c),   μ the mode
#
#     Beta(α, β)       y = ln x/(1-x)   Λ = ln(1 + e^y)   n = α + β    μ = ln α/β
#     Gamma(a, b)      y = ln x         Λ = e^y           n = b        μ = ln a/b
#     its inverse      y = -ln x        Λ = e^-y          n = b        μ = -ln a/b
#     Normal(μ, σ)     y = x            Λ = y²/2          n = 1/σ²
#     Student(μ, σ, ν) y = x            n D = (ν + 1)/2 ln(1 + z²/ν),  z = (y - μ)/σ
#
#     D(y ‖ μ) = D(c ‖ μ) + (Λ'(c) - Λ'(μ)) (y - c) + D(y ‖ c)
#
# By the last line all arms share D(y ‖ c) at the nodes y of a panel around c: a density takes one
# exponential, without cancellation for any n. All but Student's are log-concave, so that at most
# e^-T is beyond the point where n D = T; Student's is log-concave in asinh(z/√ν).

SQRT_2PI = 2.5066282746310002
#: The half-width of a panel in which e^d is at most 55, so that D is accurate.
WIDE = 4.0
#: For a smaller α + β, `small_fall` is as accurate as `fall`, and faster.
SMALL = 64.0
#: D is accurate, and the nodes resolve it, in this many times wider panels on one side of logit 0.
WIDER = 2.25


@leaf
def bernoulli(c: float, p: float, q: float, d: float) -> tuple[float, float]:
    """Return D(c + d ‖ c) = ln(q + p e^d) - p d and its slope in d, for Λ = ln(1 + e^y).

    p = Λ'(c) = 1 - q.

    >>> bernoulli(0.0, 0.5, 0.5, 0.0), bernoulli(0.0, 0.5, 0.5, 1e-8)[0]
    ((0.0, 0.0), 1.25000000000000...e-17)
    """
    if p > q:  # mirrored, so that the smaller probability is not computed as a difference
        D, slope = _bernoulli(-c, q, p, -d)
        return D, -slope
    return _bernoulli(c, p, q, d)


@leaf
def _bernoulli(c: float, p: float, q: float, d: float) -> tuple[float, float]:
    """Return what `bernoulli` returns, for p ≤ q; if e^d is large, by the definition of Λ."""
    if d < 700.0:
        x = exp_excess(d)
        u = p * (x + d)  # p (e^d - 1)
        if u <= 1.0:
            return p * x - excess(u), q * u / (1.0 + u)
    return log1p_exp(c + d) + log(q) - p * d, 1.0 / (1.0 + exp(-c - d)) - p


@leaf
def peak(kind: int, a: float, b: float, nu: float) -> tuple[float, float, float]:
    """Return (μ, f(μ), scale): the mode, the density there, and (-(ln f)''(μ))^-½, the width.

    The variable is logit m for BETA, ln m for GAMMA, -ln m for INVERSE_GAMMA, and m otherwise.

    >>> peak(NORMAL, 3.0, 2.0, 0.0)[::2]
    (3.0, 2.0)
    >>> [round(v, 14) for v in peak(BETA, 1.0, 1.0, 0.0)]  # m (1 - m) at m = 1/2
    [0.0, 0.25, 1.4142135623731]
    """
    if kind == BETA:
        n = a + b
        scale = math.sqrt(1.0 / a + 1.0 / b)
        correction = stirling_remainder(n) - stirling_remainder(a) - stirling_remainder(b)
        return log(a / b), exp(correction) / (SQRT_2PI * scale), scale
    if kind in (GAMMA, INVERSE_GAMMA):
        scale = 1.0 / math.sqrt(a)
        mode = log(a / b)
        density = exp(-stirling_remainder(a)) / (SQRT_2PI * scale)
        return mode if kind == GAMMA else -mode, density, scale
    if kind == NORMAL:
        return a, 1.0 / (SQRT_2PI * b), b
    # Student: in Γ((ν+1)/2) / (Γ(ν/2) √(ν/2)) the main terms of two Stirling formulas cancel.
    correction = stirling_remainder(0.5 * (nu + 1.0)) - stirling_remainder(0.5 * nu)
    correction -= 0.5 * nu * excess(1.0 / nu)
    return a, exp(correction) / (SQRT_2PI * b), b * math.sqrt(nu / (nu + 1.0))


@leaf
def fall(kind: int, a: float, b: float, nu: float, mode: float, d: float) -> tuple[float, float]:
    """Return n D(μ + d ‖ μ) = ln f(μ) - ln f(μ + d), and its slope in d.

    >>> fall(NORMAL, 3.0, 2.0, 0.0, 3.0, 4.0)
    (2.0, 1.0)
    """
    if kind == BETA:
        n = a + b
        D, slope = bernoulli(mode, a / n, b / n, d)
        return n * D, n * slope
    if kind in (GAMMA, INVERSE_GAMMA):
        sign = 1.0 if kind == GAMMA else -1.0
        x = exp_excess(sign * d)
        return a * x, sign * a * (x + sign * d)
    z = d / b
    if kind == NORMAL:
        return 0.5 * z * z, z / b
    u = z * z / nu
    log_1p = u - excess(u) if u < 0.4 else log(1.0 + u)
    return 0.5 * (nu + 1.0) * log_1p, (nu + 1.0) * (z / (nu + z * z)) / b


@leaf
def logit_tail(c: float) -> tuple[float, float]:
    """Return 1/(1 + e^|c|) and ln(1 + e^-|c|).

    >>> logit_tail(0.0)
    (0.5, 0.693147180559945...)
    """
    e = exp(-abs(c))
    return e / (1.0 + e), log_one_plus(e)


@leaf
def small_fall(a: float, b: float, c: float, q: float, log_1p: float) -> tuple[float, float]:
    """Return -ln x^a (1 - x)^b at the logit c, and its slope: `fall` plus a number, for BETA.

    q = 1/(1 + e^|c|) and ln(1 + e^-|c|) are the same for all arms. The error is some 1e-16 (a + b).

    >>> small_fall(1.0, 1.0, 0.0, 0.5, math.log(2.0))  # -2 ln ½
    (1.386294361119..., 0.0)
    """
    n = a + b
    if c > 0.0:
        return b * c + n * log_1p, b - n * q
    return n * log_1p - a * c, n * q - a


@leaf
def weight(kind: int, a: float, b: float, slope: float) -> float:
    """Return n at the point c where `fall` has this slope.

    For the Gammas n is multiplied by Λ''(c), because `shape` divides D by it.

    >>> weight(BETA, 2.0, 3.0, 0.5), weight(GAMMA, 2.0, 3.0, 0.5)
    (5.0, 2.5)
    """
    if kind == BETA:
        return a + b
    if kind in (GAMMA, INVERSE_GAMMA):
        return a + slope if kind == GAMMA else a - slope
    return 1.0 / (b * b)


@leaf
def _narrow_bernoulli(p: float, h: float, D: FloatArray, u: FloatArray) -> None:
    """Write `bernoulli` at the nodes to D, for p ≤ ½ and h ≤ WIDE; u is scratch.

    There is no branch, so that loops are vectorised. Halves the arguments until a series converges,
    and doubles the results, without cancellation:

        e^2d - 1 - 2d = 2 (e^d - 1 - d) + (e^d - 1)²        φ(2v + v²) = v² + 2 φ(v)

    with φ(u) = u - ln(1 + u), and D = p (e^d - 1 - d) - φ(p (e^d - 1)).
    """
    doublings, step = 0, h
    while abs(step) > 0.5:
        doublings, step = doublings + 1, 0.5 * step
    for k in range(K):
        D[k] = exp_excess_series(step * NODE[k])
        u[k] = D[k] + step * NODE[k]
    for _ in range(doublings):
        for k in range(K):
            D[k] = 2.0 * D[k] + u[k] * u[k]
            u[k] = u[k] * (2.0 + u[k])
    for k in range(K):
        D[k], u[k] = p * D[k], p * u[k]
    largest, factor = max(u[0], u[K - 1]), 1.0
    while largest > SERIES_HIGH:
        largest = largest / (1.0 + math.sqrt(1.0 + largest))
        for k in range(K):
            u[k] = u[k] / (1.0 + math.sqrt(1.0 + u[k]))
            D[k] -= factor * u[k] * u[k]
        factor *= 2.0
    for k in range(K):
        D[k] -= factor * log_excess_series(u[k])


@leaf
def widest(kind: int, y: float) -> float:
    """Return the width of the widest panel up to y in which the arms share D of `shape`.

    >>> widest(BETA, 1.0), widest(BETA, 20.0), widest(BETA, -1.0), widest(GAMMA, 20.0)
    (8.0, 18.0, 18.0, 8.0)
    """
    one_sided = 0.0 if kind != BETA else y if y > 0.0 else math.inf
    return 2.0 * WIDE * min(max(1.0, one_sided / (2.0 * WIDE)), WIDER)


@leaf
def shape(kind: int, c: float, h: float, D: FloatArray, u: FloatArray) -> bool:
    """Write D(y_k ‖ c) at the nodes of [c - h, c + h] to D, divided by Λ''(c) for the Gammas.

    Return False, with D unchanged, for Student's distribution, which has no such D, and for panels
    above the `widest`: then call `fall` at every node. u is scratch.

    >>> import numpy as np
    >>> D = np.empty(K)
    >>> shape(NORMAL, 1.0, 2.0, D, np.empty(K)), np.array_equal(D, 2.0 * NODE**2)
    (True, True)
    """
    if kind == NORMAL:
        for k in range(K):
            D[k] = 0.5 * (h * NODE[k]) * (h * NODE[k])
        return True
    if kind == STUDENT or 1.999 * h > widest(kind, c + h):
        return False
    if kind == BETA:
        small = 1.0 / (1.0 + exp(abs(c)))
        _narrow_bernoulli(small, h if c < 0.0 else -h, D, u)
    else:
        sign = h if kind == GAMMA else -h
        for k in range(K):
            D[k] = exp_excess(sign * NODE[k])
    return True


@leaf
def reach(
    kind: int, a: float, b: float, nu: float, mode: float, scale: float, side: float, T: float
) -> float:
    """Return d ≥ 0 such that at most e^-T of the mass is beyond μ + side · d; side is 1 or -1.

    n D is convex in d: Newton's first step ends beyond the root of n D = T, by at most 30 %.

    >>> reach(NORMAL, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 8.0)
    4.0
    """
    if kind == NORMAL:
        return b * math.sqrt(2.0 * T)
    if kind == STUDENT:
        return b * math.sqrt(nu * (exp(2.0 * T / nu) - 1.0))
    d = scale * math.sqrt(2.0 * T)
    # Where the density falls doubly exponentially, this start is closer than `scale`.
    if kind == BETA or (kind == GAMMA) == (side > 0.0):
        steep = b if kind == BETA and side < 0.0 else a
        d = min(d, log(2.0 + 2.0 * T / steep) + 1.0)
    value, slope = fall(kind, a, b, nu, mode, side * d)
    return d - (value - T) / (side * slope)
