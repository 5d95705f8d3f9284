"""Information-directed sampling for Beta-Bernoulli arms (Russo & Van Roy 2014).

    minimise (π·Δ)² / (π·g) over distributions π on arms; one on at most two arms attains it
    Δ_i = E[θ_A* - θ_i]          g_i = Σ_a p_a KL(E[θ_i | A* = a] ‖ m_i) = I(A*; reward of i)
    p_a = P(A* = a),  A* = arg max_j θ_j,  θ_j ~ Beta(a_j, b_j),  n_j = a_j + b_j,  m_j = a_j/n_j

All follow from p and one symmetric matrix (by parts), with g_j the density of ln θ_j/(1-θ_j):

    p_i = ∫ g_i Π_{k≠i} F_k du                     S_ij = ∫ g_i g_j Π_{k≠i,j} F_k du
    E[θ_j | A* = i] = m_j - S_ij/(n_j p_i)         E[θ_j | A* = j] = m_j + Σ_{i≠j} S_ij/(n_j p_j)

The integrals run over panels of 16 Gauss-Legendre nodes, each twice as wide as the scale of the
narrowest density that lives there; one matrix turns its values at the nodes into F_j. Where some
g_j has fallen by e^-40 to the left of its mode F_j is nothing, and so is the integrand; where
it has to the right of it, F_j = 1. Δ and g are right to 1e-10 for up to 1e5 pulls.
"""

import math

import numpy as np

from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.beta_distribution import (
    beta_cdf,
    divergence_bound,
    excess,
    log1p_exp,
    log_peak,
)
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.posteriors import NODE, TO_RIGHT, WEIGHT, K
from bayescontrol.kernels.random import below, uniform

#: ∫_-1^{x_k} f = Σ_l TO_LEFT[k, l] f(x_l).
TO_LEFT = np.ascontiguousarray(WEIGHT[None, :] - TO_RIGHT.T)
#: g_j below e^-FALL of its maximum is nothing.
FALL = 40.0
WIDTH = 2.0
#: Ratios that agree to the accuracy of the integrals are equal, and one is chosen by chance.
TIE = 1e-9

# Rows of the scratch, one column an arm; then g_j and F_j at the nodes, and S.
REGRET, GAIN, P, A, B, LOG_M, LOG_F, PEAK, RIGHT, SCALE, CDF = range(11)
DENSITY = 11
LOWER = DENSITY + K
OVERLAP = LOWER + K
#: So many rows, and one more for each arm.
ROWS = OVERLAP


@leaf
def _prepare(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> float:
    """What the densities need; gives the left end of the integrals."""
    left = -math.inf
    for j in range(n.size):
        a, b = alpha + s[j], beta + (n[j] - s[j])
        work[A, j], work[B, j] = a, b
        work[LOG_M, j], work[LOG_F, j] = log(a / (a + b)), log(b / (a + b))
        work[PEAK, j] = log_peak(a, b)
        work[RIGHT, j] = divergence_bound(a, b, FALL)
        work[SCALE, j] = math.sqrt(1.0 / a + 1.0 / b)
        left = max(left, -divergence_bound(b, a, FALL))
    x, y = 1.0 / (1.0 + exp(-left)), 1.0 / (1.0 + exp(left))
    for j in range(n.size):
        work[CDF, j] = beta_cdf(work[A, j], work[B, j], x, y)
        work[P, j] = 0.0
        for i in range(n.size):
            work[OVERLAP + i, j] = 0.0
    return left


@leaf
def _densities(left: float, half: float, work: FloatArray) -> None:
    """g_j and F_j at the nodes of one panel; CDF moves on to its right end."""
    for k in range(K):
        u = left + half * (1.0 + NODE[k])
        log_x, log_y = -log1p_exp(-u), -log1p_exp(u)
        for j in range(work.shape[1]):
            if work[RIGHT, j] > left:
                fall = work[A, j] * (log_x - work[LOG_M, j]) + work[B, j] * (log_y - work[LOG_F, j])
                work[DENSITY + k, j] = exp(work[PEAK, j] + fall)
            else:
                work[DENSITY + k, j] = 0.0
    for k in range(K):
        lower = work[LOWER + k]
        lower[:] = 0.0
        for i in range(K):
            for j in range(work.shape[1]):
                lower[j] += TO_LEFT[k, i] * work[DENSITY + i, j]
        for j in range(work.shape[1]):
            # Where F is all but nothing, rounding may take it below.
            lower[j] = max(work[CDF, j] + half * lower[j], 1e-300)
    for k in range(K):
        for j in range(work.shape[1]):
            work[CDF, j] += half * WEIGHT[k] * work[DENSITY + k, j]


@leaf
def overlaps(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> None:
    """p into row P of the scratch, S into its last rows.

    >>> work = np.empty((ROWS + 2, 2))
    >>> overlaps(1.0, 1.0, np.array([1.0, 0.0]), np.array([1.0, 0.0]), work)
    >>> work[P].round(12)  # P(Beta(2, 1) > Beta(1, 1)) = 2/3
    array([0.66666667, 0.33333333])
    """
    arms = n.size
    u = _prepare(alpha, beta, n, s, work)
    end = -math.inf
    for j in range(arms):
        end = max(end, work[RIGHT, j])
    while u < end:
        # ln(1 + e^u) has poles at ±iπ: near them no panel may be wide.
        width = max(3.0, 0.5 * abs(u))
        for j in range(arms):
            if work[RIGHT, j] > u:
                width = min(width, WIDTH * work[SCALE, j])
        half = 0.5 * width
        _densities(u, half, work)
        for k in range(K):
            weight = half * WEIGHT[k]
            for j in range(arms):
                weight *= work[LOWER + k, j]
                work[DENSITY + k, j] /= work[LOWER + k, j]
            for j in range(arms):
                at_j = weight * work[DENSITY + k, j]
                if at_j > 0.0:
                    work[P, j] += at_j
                    for i in range(j):
                        work[OVERLAP + j, i] += at_j * work[DENSITY + k, i]
        u += width
    for j in range(arms):
        for i in range(j):
            work[OVERLAP + i, j] = work[OVERLAP + j, i]


@leaf
def _shifted(m: float, shift: float) -> float:
    """KL(m + shift ‖ m), also where the shift is far below m."""
    M = m + shift
    # Of an arm that is all but never the best, the integrals keep too little to stay inside.
    if M <= 0.0:
        return -log(1.0 - m)
    if M >= 1.0:
        return -log(m)
    return M * excess(-shift / M) + (1.0 - M) * excess(shift / (1.0 - M))


@leaf
def information(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> None:
    """Δ into row REGRET of the scratch, g into row GAIN, in nats.

    >>> work = np.empty((ROWS + 2, 2))
    >>> information(1.0, 1.0, np.zeros(2), np.zeros(2), work)
    >>> work[REGRET].round(12)  # 2/3 - 1/2
    array([0.16666667, 0.16666667])
    """
    arms = n.size
    overlaps(alpha, beta, n, s, work)
    for i in range(arms):
        count_i = work[A, i] + work[B, i]
        m_i = work[A, i] / count_i
        regret, gain, beside = 0.0, 0.0, 0.0
        for j in range(arms):
            if j == i:
                continue
            p, S = work[P, j], work[OVERLAP + i, j]
            beside += S
            if p > 1e-250:
                gain += p * _shifted(m_i, -S / (count_i * p))
            count_j = work[A, j] + work[B, j]
            others = 0.0
            for k in range(arms):
                others += work[OVERLAP + j, k]
            regret += p * (work[A, j] / count_j - m_i) + others / count_j + S / count_i
        if work[P, i] > 1e-250:
            gain += work[P, i] * _shifted(m_i, beside / (count_i * work[P, i]))
        work[REGRET, i], work[GAIN, i] = max(regret, 0.0), gain


@leaf
def ratio(regret_i: float, gain_i: float, regret_j: float, gain_j: float, w: float) -> float:
    """(w Δ_i + (1-w) Δ_j)² / (w g_i + (1-w) g_j); 0 without regret, ∞ if nothing is learnt.

    >>> ratio(0.5, 0.25, 0.1, 0.1, 1.0)
    1.0
    """
    regret = w * regret_i + (1.0 - w) * regret_j
    gain = w * gain_i + (1.0 - w) * gain_j
    if regret == 0.0:
        return 0.0
    return regret * regret / gain if gain > 0.0 else math.inf


@leaf
def best_ratio(
    regret_i: float, gain_i: float, regret_j: float, gain_j: float
) -> tuple[float, float]:
    """The smallest ratio of two arms, and the probability w of the first that attains it.

    The ratio is convex in w, with its slope zero at w = Δ_j/(Δ_i - Δ_j) - 2 g_j/(g_i - g_j).

    >>> best_ratio(1.0, 1.0, 0.5, 0.1)  # 80/81 at w = 7/9
    (0.98765..., 0.77777...)
    """
    value, w = ratio(regret_i, gain_i, regret_j, gain_j, 1.0), 1.0
    other = ratio(regret_i, gain_i, regret_j, gain_j, 0.0)
    if other < value:
        value, w = other, 0.0
    if regret_i != regret_j and gain_i != gain_j:
        inside = regret_j / (regret_i - regret_j) - 2.0 * gain_j / (gain_i - gain_j)
        if 0.0 < inside < 1.0:
            mixed = ratio(regret_i, gain_i, regret_j, gain_j, inside)
            if mixed < value:
                value, w = mixed, inside
    return value, w


@leaf
def _candidate(work: FloatArray, i: int, j: int) -> tuple[float, float]:
    """The ratio of arm i alone if j = i; else of a true mixture of both, ∞ if there is none.

    One candidate for each arm and not one for each pair it is in: equal arms are equally likely.
    """
    alone = ratio(work[REGRET, i], work[GAIN, i], work[REGRET, i], work[GAIN, i], 1.0)
    if i == j:
        return alone, 1.0
    value, w = best_ratio(work[REGRET, i], work[GAIN, i], work[REGRET, j], work[GAIN, j])
    other = ratio(work[REGRET, j], work[GAIN, j], work[REGRET, j], work[GAIN, j], 1.0)
    return (value, w) if value < min(alone, other) * (1.0 - TIE) else (math.inf, w)


@leaf
def draw_pair(work: FloatArray, state: UIntArray) -> int:
    """An arm drawn from the pair with the smallest ratio, rows REGRET and GAIN given.

    >>> from bayescontrol.seeding import Stream
    >>> work = np.array([[0.0, 0.5], [0.1, 0.1]])
    >>> draw_pair(work, Stream(1).state)
    0
    """
    arms = work.shape[1]
    least = math.inf
    for i in range(arms):
        for j in range(i + 1):
            least = min(least, _candidate(work, i, j)[0])
    first, second, chance, equal = 0, 0, 1.0, 0
    for i in range(arms):
        for j in range(i + 1):
            value, w = _candidate(work, i, j)
            if value <= least * (1.0 + TIE):
                equal += 1
                if equal == 1 or below(state, equal) == 0:
                    first, second, chance = i, j, w
    return first if chance == 1.0 or uniform(state) < chance else second
