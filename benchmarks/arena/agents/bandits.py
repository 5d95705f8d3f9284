"""Knowledge gradient and information-directed sampling for Beta-Bernoulli arms.

    KG     arg max_j m_j + h (E[max_i m_i after this pull] - max_i m_i)     Ryzhov et al. (2012)
    IDS    π with the smallest (π·Δ)² / (π·g)                               Russo & Van Roy (2014)

m_j is the posterior mean of arm j, whose θ_j ~ Beta(a_j, b_j), n_j = a_j + b_j, m_j = a_j/n_j.
Rewards are 0 or 1, and all arms have the same prior, by default uniform. For IDS

    Δ_i = E[θ_A* - θ_i]          g_i = Σ_a p_a KL(E[θ_i | A* = a] ‖ m_i) = I(A*; reward of i)
    p_a = P(A* = a),  A* = arg max_j θ_j

A distribution on at most two arms attains the minimum. All follows from p and one symmetric matrix
(by parts), with g_j the density of ln θ_j/(1-θ_j):

    p_i = ∫ g_i Π_{k≠i} F_k du                     S_ij = ∫ g_i g_j Π_{k≠i,j} F_k du
    E[θ_j | A* = i] = m_j - S_ij/(n_j p_i)         E[θ_j | A* = j] = m_j + Σ_{i≠j} S_ij/(n_j p_j)

The integrals run over panels of 16 Gauss-Legendre nodes, each twice as wide as the scale of the
narrowest density there; one matrix turns the values at the nodes into F_j. Where some g_j has
fallen by e^-40 to the left of its mode the integrand is negligible; to the right of it F_j = 1.
Δ and g are accurate to 1e-10 for up to 1e5 pulls.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from benchmarks.arena.agents.beta_quantiles import beta_cdf, log_peak
from benchmarks.arena.agents.optimism import beta_prior, horizon_of

from bayescontrol._arrays import FloatArray, IntArray, UIntArray, require_between
from bayescontrol.baselines import CountingAgent
from bayescontrol.baselines.bandits import counting_loop
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import respond
from bayescontrol.kernels.beta_distribution import divergence_bound, excess, log1p_exp
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.policies import BINARY, accepts, arg_max, learn
from bayescontrol.kernels.posteriors import NODE, TO_RIGHT, WEIGHT, K
from bayescontrol.kernels.random import below, uniform
from bayescontrol.seeding import Stream

#: ∫_-1^{x_k} f = Σ_l TO_LEFT[k, l] f(x_l).
TO_LEFT = np.ascontiguousarray(WEIGHT[None, :] - TO_RIGHT.T)
#: g_j is negligible below e^-FALL of its maximum.
FALL = 40.0
WIDTH = 2.0
#: Ratios that agree to the accuracy of the integrals count as tied; ties are broken at random.
TIE = 1e-9

# Rows of the scratch array, with one column per arm; then g_j and F_j at the nodes, and S.
REGRET, GAIN, P, A, B, LOG_M, LOG_F, PEAK, RIGHT, SCALE, CDF = range(11)
DENSITY = 11
LOWER = DENSITY + K
OVERLAP = LOWER + K
#: The scratch array has this many rows, plus one for each arm.
ROWS = OVERLAP


@leaf
def _prepare(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> float:
    """Precompute what `_densities` needs; return the left end of the integrals."""
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
    """Write g_j and F_j at the nodes of one panel; advance CDF to the panel's right end."""
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
            # Rounding can make a very small F negative.
            lower[j] = max(work[CDF, j] + half * lower[j], 1e-300)
    for k in range(K):
        for j in range(work.shape[1]):
            work[CDF, j] += half * WEIGHT[k] * work[DENSITY + k, j]


@leaf
def overlaps(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> None:
    """Write p to row P of the scratch array, and S to its last rows."""
    arms = n.size
    u = _prepare(alpha, beta, n, s, work)
    end = -math.inf
    for j in range(arms):
        end = max(end, work[RIGHT, j])
    while u < end:
        # ln(1 + e^u) has poles at ±iπ: panels near them must be narrow.
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
    """KL(m + shift ‖ m), accurate even if the shift is much smaller than m."""
    M = m + shift
    # For an arm that is almost never the best, integration errors can push M out of (0, 1).
    if M <= 0.0:
        return -log(1.0 - m)
    if M >= 1.0:
        return -log(m)
    return M * excess(-shift / M) + (1.0 - M) * excess(shift / (1.0 - M))


@leaf
def information(alpha: float, beta: float, n: FloatArray, s: FloatArray, work: FloatArray) -> None:
    """Write Δ to row REGRET of the scratch array, and g, in nats, to row GAIN."""
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
    """(w Δ_i + (1-w) Δ_j)² / (w g_i + (1-w) g_j); 0 without regret, ∞ if nothing is learned."""
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
    """The ratio of arm i if j = i; else of a proper mixture of both, ∞ if no mixture is better.

    Each arm is one candidate, not one per pair that contains it, so equal arms are equally likely.
    """
    pure = ratio(work[REGRET, i], work[GAIN, i], work[REGRET, i], work[GAIN, i], 1.0)
    if i == j:
        return pure, 1.0
    value, w = best_ratio(work[REGRET, i], work[GAIN, i], work[REGRET, j], work[GAIN, j])
    other = ratio(work[REGRET, j], work[GAIN, j], work[REGRET, j], work[GAIN, j], 1.0)
    return (value, w) if value < min(pure, other) * (1.0 - TIE) else (math.inf, w)


@leaf
def draw_pair(work: FloatArray, state: UIntArray) -> int:
    """Draw an arm from the pair with the smallest ratio; rows REGRET and GAIN must be filled."""
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


@leaf
def knowledge_gradient(
    t: float,
    horizon: float,
    discount: float,
    alpha: float,
    beta: float,
    n: FloatArray,
    s: FloatArray,
    out: FloatArray,
) -> None:
    """m_j + h ν_j with ν_j = E[max_i m_i after pulling j] - max_i m_i.

    h = γ + … + γ^L for the L = max(0, T - t - 1) pulls that remain after this one. With
    C = max_{i≠j} m_i one reward matters only if it changes which arm leads, so that
    ν_j = m_j max(0, m_j⁺ - C) if m_j ≤ C, else (1 - m_j) max(0, C - m_j⁻).
    """
    left = max(horizon - t - 1.0, 0.0)
    if discount < 1.0:
        fading = exp(left * log(discount)) if left < math.inf else 0.0
        left = discount * (1.0 - fading) / (1.0 - discount)
    first, second, leader = -math.inf, -math.inf, 0
    for j in range(n.size):
        m = (alpha + s[j]) / (alpha + beta + n[j])
        if m > first:
            first, second, leader = m, first, j
        elif m > second:
            second = m
    for j in range(n.size):
        a, count = alpha + s[j], alpha + beta + n[j]
        m = a / count
        C = second if j == leader else first
        if m <= C:
            gain = m * max(0.0, (a + 1.0) / (count + 1.0) - C)
        else:
            gain = (1.0 - m) * max(0.0, C - a / (count + 1.0))
        out[j] = m + left * gain


#: The policies of this module, numbered after those of `bayescontrol.kernels.policies`.
KNOWLEDGE_GRADIENT, INFORMATION = 9, 10


@leaf
def choose(
    kind: int, parameters: FloatArray, counts: FloatArray, scratch: FloatArray, state: UIntArray
) -> int:
    """The arm that the policy pulls next."""
    n, s = counts[0], counts[1]
    if kind == INFORMATION:
        information(parameters[0], parameters[1], n, s, scratch)
        return draw_pair(scratch, state)
    t = 0.0
    for j in range(n.size):
        t += n[j]
    values = scratch[0]
    knowledge_gradient(t, parameters[0], parameters[1], parameters[2], parameters[3], n, s, values)
    return arg_max(values, state)


@leaf
def interact(
    kind: int,
    parameters: FloatArray,
    counts: FloatArray,
    scratch: FloatArray,
    family: int,
    constants: FloatArray,
    truth: FloatArray,
    agent: UIntArray,
    world: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
) -> int:
    """Choose, pull, learn; return the steps done, fewer than requested at an invalid reward."""
    for t in range(actions.size):
        a = choose(kind, parameters, counts, scratch, agent)
        r = respond(family, constants, truth[a], world)
        actions[t], rewards[t] = a, r
        if not accepts(BINARY, r):
            return t
        learn(a, r, counts)
    return int(actions.size)


class _ArenaAgent(CountingAgent):
    """A `CountingAgent` with the kernels of this module; rewards are 0 or 1."""

    support: ClassVar[int] = BINARY

    def _choose(self, rng: Stream) -> int:
        return choose(self.kind, self._parameters, self._counts, self._scratch, rng.state)

    def interact(
        self, environment: Any, p: Stream, q: Stream, actions: IntArray, rewards: FloatArray
    ) -> int:
        """Run the compiled loop with an `ArmsEnvironment`; return the number of steps done."""
        return interact(
            self.kind, self._parameters, self._counts, self._scratch,
            environment.family.kind, environment.family.constants, environment.truth,
            p.state, q.state, actions, rewards,
        )  # fmt: skip


class KnowledgeGradient(_ArenaAgent):
    """arg max_j m_j + h ν_j: the expected reward plus the value of information for later pulls.

    ν_j is the expected increase of max_i m_i from one reward of arm j. h = γ + … + γ^L for the L
    pulls that remain after this one. Give the `horizon` T, a `discount` γ, or both. After the
    horizon h = 0, and the agent is greedy.

    >>> agent = KnowledgeGradient(2, horizon=11)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}  # one reward of arm 1: no better
    {0: 0.6667, 1: 0.5}
    """

    format_name: ClassVar[str] = "KnowledgeGradient"

    kind: ClassVar[int] = KNOWLEDGE_GRADIENT
    fused_loop = staticmethod(counting_loop)

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        *,
        horizon: int | None = None,
        discount: float | None = None,
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if horizon is None and discount is None:
            raise ValueError("KnowledgeGradient needs horizon=, a discount= below 1, or both")
        alpha, beta = beta_prior(prior)
        T = math.inf if horizon is None else horizon_of(horizon)
        highest = 1.0 if horizon is not None else math.nextafter(1.0, 0.0)
        gamma = (
            1.0
            if discount is None
            else require_between("discount", discount, 0.0, highest, ends="(]")
        )
        super().__init__(
            arms,
            [T, gamma, alpha, beta],
            horizon=horizon,
            discount=discount,
            prior=(alpha, beta),
        )

    def indices(self) -> dict[Any, float]:
        """m_j + h ν_j of every arm."""
        out = np.empty(len(self.arms))
        n, s, _ = self._counts
        T, gamma, alpha, beta = self._parameters
        knowledge_gradient(float(self.count), T, gamma, alpha, beta, n, s, out)
        return dict(zip(self.arms, out.tolist(), strict=True))


class InformationDirected(_ArenaAgent):
    """Draws from the distribution on two arms with the smallest Δ(π)² / g(π).

    Δ is the expected loss of a pull, g its information about which arm is best, in nats; both by
    quadrature to 1e-10. Ratios within 1e-9 of each other count as equal.

    >>> agent = InformationDirected(2)
    >>> agent.observe(0, 1)
    >>> {a: round(d, 10) for a, d in agent.expected_gap().items()}  # 3/4 - 2/3 and 3/4 - 1/2
    {0: 0.0833333333, 1: 0.25}
    """

    format_name: ClassVar[str] = "InformationDirected"

    kind: ClassVar[int] = INFORMATION
    fused_loop = staticmethod(counting_loop)

    def __init__(
        self, arms: int | Sequence[Hashable], *, prior: tuple[float, float] = (1.0, 1.0)
    ) -> None:
        # Smaller parameters put mass where 1 - θ underflows.
        alpha, beta = beta_prior(prior, least=0.1)
        super().__init__(arms, [alpha, beta], prior=(alpha, beta))

    def _new_scratch(self) -> FloatArray:
        return np.empty((ROWS + len(self.arms), len(self.arms)))

    def _row(self, row: int) -> dict[Any, float]:
        n, s, _ = self._counts
        alpha, beta = self._parameters
        work = self._new_scratch()
        information(alpha, beta, n, s, work)
        return dict(zip(self.arms, work[row].tolist(), strict=True))

    def expected_gap(self) -> dict[Any, float]:
        """Δ_i = E[θ_best - θ_i], the expected loss of one pull of arm i."""
        return self._row(REGRET)

    def gain(self) -> dict[Any, float]:
        """g_i = I(best arm; next reward of arm i), in nats."""
        return self._row(GAIN)

    def indices(self) -> dict[Any, float]:
        """-Δ_i²/g_i, the ratio of each arm on its own; the agent mixes two arms."""
        gap, gain = self.expected_gap(), self.gain()
        return {a: -ratio(gap[a], gain[a], gap[a], gain[a], 1.0) for a in self.arms}
