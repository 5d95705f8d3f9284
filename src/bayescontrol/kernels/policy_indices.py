"""What each index policy makes of the counts: it pulls the arm with the largest index.

    x̄ = s/n  mean of n rewards with sum s and sum of squares q, t rewards of all K arms so far
    UCB1         x̄ + √(2 ln t / n)                                   (Auer et al. 2002)
    UCB-tuned    x̄ + √(ln t / n · min(¼, q/n - x̄² + √(2 ln t / n)))  (Auer et al. 2002)
    MOSS         x̄ + √(max(0, ln T/(K n)) / n),  horizon T            (Audibert & Bubeck 2009)
    KL-UCB       max{x : n KL(x̄ ‖ x) ≤ ln t' + c ln ln t'},  t' = t + 1  (Garivier & Cappé 2011)
    Bayes-UCB    x with P(X > x) = 1/(t' (ln T)^c)                    (Kaufmann et al. 2012)
    KG           m + h (E[max_j m_j after this pull] - max_j m_j)     (Ryzhov et al. 2012)

X ~ Beta(α, β) is the posterior of the arm and m its mean. An arm without a reward has index ∞
in the first four; greedy policies take it for ½. Each kernel fills `out`.
"""

import math

from bayescontrol.arrays import FloatArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.beta_law import beta_quantile, divergence_bound
from bayescontrol.kernels.elementary import exp, log


@leaf
def estimates(n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """x̄, and ½ for an arm without a reward.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> estimates(np.array([4.0, 0.0]), np.array([3.0, 0.0]), out)
    >>> out
    array([0.75, 0.5 ])
    """
    for j in range(n.size):
        out[j] = s[j] / n[j] if n[j] > 0.0 else 0.5


@leaf
def ucb1(t: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """x̄ + √(2 ln t / n).

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> ucb1(1.0, np.array([1.0, 0.0]), np.array([1.0, 0.0]), out)
    >>> out
    array([ 1., inf])
    """
    log_t = log(t)
    for j in range(n.size):
        out[j] = s[j] / n[j] + math.sqrt(2.0 * log_t / n[j]) if n[j] > 0.0 else math.inf


@leaf
def ucb_tuned(t: float, n: FloatArray, s: FloatArray, q: FloatArray, out: FloatArray) -> None:
    """x̄ + √(ln t / n · min(¼, V)), V = q/n - x̄² + √(2 ln t / n).

    >>> import numpy as np
    >>> out = np.empty(1)
    >>> ucb_tuned(1.0, np.array([1.0]), np.array([0.5]), np.array([0.25]), out)
    >>> out
    array([0.5])
    """
    log_t = log(t)
    for j in range(n.size):
        if n[j] > 0.0:
            mean = s[j] / n[j]
            # Rounding may take the variance of equal rewards below 0.
            V = max(q[j] / n[j] - mean * mean, 0.0) + math.sqrt(2.0 * log_t / n[j])
            out[j] = mean + math.sqrt(log_t / n[j] * min(0.25, V))
        else:
            out[j] = math.inf


@leaf
def moss(horizon: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """x̄ + √(max(0, ln T/(K n)) / n).

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> moss(8.0, np.array([4.0, 0.0]), np.array([3.0, 0.0]), out)
    >>> out
    array([0.75,  inf])
    """
    for j in range(n.size):
        if n[j] > 0.0:
            level = max(log(horizon / (n.size * n[j])), 0.0)
            out[j] = s[j] / n[j] + math.sqrt(level / n[j])
        else:
            out[j] = math.inf


@leaf
def kl_ucb(t: float, c: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """max{x : n KL(x̄ ‖ x) ≤ ln t' + c max(0, ln ln t')}, t' = t + 1.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> kl_ucb(3.0, 0.0, np.array([2.0, 1.0]), np.array([0.0, 1.0]), out)
    >>> out  # 2 ln 1/(1-x) = ln 4, and nothing above 1
    array([0.5, 1. ])
    """
    level = log(t + 1.0)
    if c != 0.0 and level > 1.0:
        level += c * log(level)
    for j in range(n.size):
        misses = n[j] - s[j]
        if not n[j] > 0.0:
            out[j] = math.inf
        elif not misses > 0.0:
            out[j] = 1.0
        elif not level > 0.0:
            out[j] = s[j] / n[j]
        elif not s[j] > 0.0:
            out[j] = 1.0 - exp(-level / n[j])
        else:
            out[j] = 1.0 / (1.0 + exp(-divergence_bound(s[j], misses, level)))


@leaf
def bayes_ucb(
    t: float,
    c: float,
    horizon: float,
    alpha: float,
    beta: float,
    n: FloatArray,
    s: FloatArray,
    out: FloatArray,
) -> None:
    """x with P(X > x) = 1/(t' (ln T)^c), X ~ Beta(α + s, β + n - s), t' = t + 1.

    >>> import numpy as np
    >>> out = np.empty(1)
    >>> bayes_ucb(3.0, 0.0, 100.0, 1.0, 1.0, np.array([1.0]), np.array([0.0]), out)
    >>> out.round(12)  # (1-x)² = 1/4
    array([0.5])
    """
    tail = 1.0 / (t + 1.0)
    if c != 0.0:
        tail *= exp(-c * log(log(horizon)))
    for j in range(n.size):
        out[j] = beta_quantile(alpha + s[j], beta + (n[j] - s[j]), tail)


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

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> knowledge_gradient(0.0, 2.0, 1.0, 1.0, 1.0, np.zeros(2), np.zeros(2), out)
    >>> out  # 1/2 + 1/2 (2/3 - 1/2)
    array([0.58333333, 0.58333333])
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
