"""Arms that share hyperparameters h, which are learned from the rewards of all arms.

    T_j                 the rewards of arm j: the row of its family that learned them from zeros
    P(h | past)         ∝ Π_j P(rewards of arm j | h), with a uniform prior on a grid of h
    rows given h        the posterior rows of the arms, as in a bandit with fixed hyperparameters

If h is a prior row, as for Bernoulli, Poisson and exponential arms, row_j = h + T_j, and

    ln P(rewards of arm j | h) = ln Z(h + T_j) - ln Z(h)       Z the normaliser of the prior

Gaussian arms have T_j = (mean_j, n_j, n_j/2, M_j/2), with M_j = Σ (r - mean_j)², and share h = ρ:

    r ~ N(m_j, σ²)      m_j ~ N(μ₀, ρ²σ²)      p(μ₀, σ) ∝ 1/σ

With λ = 1/ρ², v_j = n_j λ/(n_j + λ), V = Σ v_j and n = Σ n_j, all but ρ is integrated exactly:

    μ̂ = Σ v_j mean_j / V                          S = Σ M_j + Σ v_j (mean_j - μ̂)²
    P(ρ | past) ∝ Π_j (1 + n_j/λ)^-½ · V^-½ · S^(-(n-1)/2)
    σ² | ρ ~ S / χ²_(n-1)                          μ₀ | σ, ρ ~ N(μ̂, σ²/V)
    m_j | μ₀, σ, ρ ~ N(μ₀ + n_j (mean_j - μ₀)/(n_j + λ), σ²/(n_j + λ))

The posterior is proper once two rewards differ. Before that all arms are equally good. Every step
is exact if all rewards are multiplied by a power of two.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import BERNOULLI, respond
from bayescontrol.kernels.arms import draw_action as draw_from_rows
from bayescontrol.kernels.arms import learn as learn_row
from bayescontrol.kernels.elementary import exp, log, log_gamma_function
from bayescontrol.kernels.families import number
from bayescontrol.kernels.random import Streams, categorical, gamma, normal

#: The family of the statistics of Gaussian arms, and that of their rows given h.
NORMAL_GAMMA, GAUSSIAN = number("normal_gamma"), number("gaussian")
#: The columns of `Group.shared`: μ̂, V and S of Gaussian arms.
LOCATION, PRECISION, SQUARES = range(3)
#: A product above this is replaced by its logarithm before it overflows.
LARGE = 1e200


class Group(NamedTuple):
    """Arms that share hyperparameters."""

    #: The family of the statistics.
    kind: int
    constants: FloatArray
    #: T_j, shape (arms, columns).
    statistics: FloatArray
    #: The values of h, a row each: a prior row and its ln Z, or λ = 1/ρ².
    grid: FloatArray
    #: ln P(rewards of arm j | h), shape (arms, values of h); not used for Gaussian arms.
    evidence: FloatArray
    #: P(h | past), and μ̂, V and S for each h.
    w: FloatArray
    shared: FloatArray
    #: The posterior rows of the arms given the h drawn last.
    rows: FloatArray


@leaf
def log_normaliser(kind: int, a: float, b: float) -> float:
    """Return ln B(a, b) for Bernoulli arms, else ln Γ(a) - a ln b.

    >>> round(math.exp(log_normaliser(BERNOULLI, 2.0, 3.0)) * 12, 12)
    1.0
    """
    if kind == BERNOULLI:
        return log_gamma_function(a) + log_gamma_function(b) - log_gamma_function(a + b)
    return log_gamma_function(a) - a * log(b)


@leaf
def weigh_arm(kind: int, T: FloatArray, grid: FloatArray, evidence: FloatArray) -> None:
    """Write ln P(rewards | h) of an arm with the statistics T to `evidence`, for every h.

    >>> import numpy as np
    >>> evidence = np.empty(1)
    >>> weigh_arm(BERNOULLI, np.array([1.0, 0.0]), np.array([[1.0, 1.0, 0.0]]), evidence)
    >>> evidence.round(6), round(math.log(0.5), 6)
    (array([-0.693147]), -0.693147)
    """
    for h in range(grid.shape[0]):
        evidence[h] = log_normaliser(kind, grid[h, 0] + T[0], grid[h, 1] + T[1]) - grid[h, 2]


@leaf
def _weigh_ratios(T: FloatArray, grid: FloatArray, w: FloatArray, shared: FloatArray) -> bool:
    """Write ln P(ρ | past) up to a constant to w; return whether the posterior is proper."""
    n, within, reference = 0.0, 0.0, 0.0
    for j in range(T.shape[0]):
        if n == 0.0:
            reference = T[j, 0]  # differences from it are 0 if all rewards are equal
        n += T[j, 1]
        within += 2.0 * T[j, 3]
    if n < 2.0:
        return False
    for h in range(grid.shape[0]):
        lam, V, shift, determinant, log_determinant = grid[h, 0], 0.0, 0.0, 1.0, 0.0
        for j in range(T.shape[0]):
            if T[j, 1] > 0.0:
                v = T[j, 1] * lam / (T[j, 1] + lam)
                V += v
                shift += v * (T[j, 0] - reference)
                determinant *= 1.0 + T[j, 1] / lam
                if determinant > LARGE:
                    log_determinant += log(determinant)
                    determinant = 1.0
        shift /= V
        log_determinant += log(determinant * V)
        S = within
        for j in range(T.shape[0]):
            if T[j, 1] > 0.0:
                d = T[j, 0] - reference - shift
                S += T[j, 1] * lam / (T[j, 1] + lam) * d * d
        if not 0.0 < S < math.inf:
            return False
        shared[h, LOCATION], shared[h, PRECISION], shared[h, SQUARES] = reference + shift, V, S
        ratio = S / shared[0, SQUARES]
        w[h] = -0.5 * (log_determinant + (n - 1.0) * log(ratio))
    return True


@leaf
def weigh(group: Group) -> bool:
    """Write P(h | past) to `group.w`; return whether the posterior is proper.

    >>> import numpy as np
    >>> T, grid = np.array([[3.0, 1.0, 0.5, 0.0], [1.0, 1.0, 0.5, 0.0]]), np.array([[1.0], [4.0]])
    >>> w, shared = np.empty(2), np.empty((2, 3))
    >>> weigh(Group(NORMAL_GAMMA, T[0, :0], T, grid, T[:, :0], w, shared, np.empty((2, 2))))
    True
    >>> w.round(12), shared.tolist()  # λ cancels if n = 2
    (array([0.5, 0.5]), [[2.0, 1.0, 1.0], [2.0, 1.6, 1.6]])
    """
    kind, _, T, grid, evidence, w, shared, _ = group
    if kind == NORMAL_GAMMA:
        if not _weigh_ratios(T, grid, w, shared):
            w[:] = 1.0 / w.size
            return False
    else:
        w[:] = 0.0
        for j in range(evidence.shape[0]):
            for h in range(w.size):
                w[h] += evidence[j, h]
    largest, total = w[0], 0.0
    for h in range(w.size):
        largest = max(largest, w[h])
    for h in range(w.size):
        w[h] = exp(w[h] - largest)
        total += w[h]
    for h in range(w.size):
        w[h] /= total
    return True


@leaf
def marginal_rows(group: Group, h: int, rows: FloatArray) -> None:
    """Write the posterior rows of the arms given h, in the family of the statistics.

    For Gaussian arms (μ, κ, α, β): Student's t distribution of m_j, with μ₀ and σ integrated out.

        1/κ_j = 1/(n_j + λ) + (λ/(n_j + λ))² / V      α = (n - 1)/2      β = S/2

    >>> import numpy as np
    >>> T, rows, w = np.array([[2.0, 0.0], [0.0, 0.0]]), np.empty((2, 2)), np.ones(1)
    >>> group = Group(BERNOULLI, w, T, np.array([[3.0, 4.0]]), T[:, :1], w, T, rows)
    >>> marginal_rows(group, 0, rows)
    >>> rows.tolist()
    [[5.0, 4.0], [3.0, 4.0]]
    """
    T, grid, shared = group.statistics, group.grid, group.shared
    if group.kind == NORMAL_GAMMA:
        lam, n, mu0 = grid[h, 0], 0.0, shared[h, LOCATION]
        for j in range(T.shape[0]):
            n += T[j, 1]
        for j in range(T.shape[0]):
            to_location = lam / (T[j, 1] + lam)
            rows[j, 0] = mu0 + (T[j, 0] - mu0) * T[j, 1] / (T[j, 1] + lam)
            variance = 1.0 / (T[j, 1] + lam) + to_location * to_location / shared[h, PRECISION]
            rows[j, 1], rows[j, 2] = 1.0 / variance, 0.5 * (n - 1.0)
            rows[j, 3] = 0.5 * shared[h, SQUARES]
    else:
        for j in range(T.shape[0]):
            rows[j, 0], rows[j, 1] = grid[h, 0] + T[j, 0], grid[h, 1] + T[j, 1]


@leaf
def draw_rows(group: Group, rng_state: UIntArray) -> None:
    """Draw h, and for Gaussian arms σ and μ₀; write the rows of the arms given them.

    While the posterior is not proper, the rows of all arms are equal.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, rows = np.zeros((2, 4)), np.empty((2, 2))
    >>> w, shared = np.empty(1), np.empty((1, 3))
    >>> group = Group(NORMAL_GAMMA, w, T, np.ones((1, 1)), T[:, :0], w, shared, rows)
    >>> draw_rows(group, Stream(1).state)
    >>> rows.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    T, shared, rows = group.statistics, group.shared, group.rows
    proper = weigh(group)
    if not proper:
        rows[:, 0], rows[:, 1] = 0.0, 1.0
        return
    h = categorical(rng_state, group.w)
    if group.kind != NORMAL_GAMMA:
        marginal_rows(group, h, rows)
        return
    n, lam = 0.0, group.grid[h, 0]
    for j in range(T.shape[0]):
        n += T[j, 1]
    variance = 0.5 * shared[h, SQUARES] / gamma(rng_state, 0.5 * (n - 1.0))
    sd = math.sqrt(variance / shared[h, PRECISION])
    mu0 = shared[h, LOCATION] + sd * normal(rng_state)
    for j in range(T.shape[0]):
        rows[j, 0] = mu0 + (T[j, 0] - mu0) * T[j, 1] / (T[j, 1] + lam)
        rows[j, 1] = (T[j, 1] + lam) / variance


@leaf
def draw_action(group: Group, active: IntArray, drawn: FloatArray, rng_state: UIntArray) -> int:
    """Draw h and m_j of each active arm; return arg max_j m_j. `drawn` is scratch for the m_j.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, rows, w = np.array([[1.0, 99.0], [99.0, 1.0]]), np.empty((2, 2)), np.ones(1)
    >>> group = Group(BERNOULLI, w, T, np.ones((1, 2)), np.zeros((2, 1)), w, T, rows)
    >>> draw_action(group, np.arange(2), np.empty(2), Stream(1).state)
    1
    """
    draw_rows(group, rng_state)
    kind = GAUSSIAN if group.kind == NORMAL_GAMMA else group.kind
    return draw_from_rows(kind, group.constants, group.rows, active, drawn, rng_state)


@leaf
def learn(group: Group, j: int, r: float) -> None:
    """Update arm j with the reward r.

    >>> import numpy as np
    >>> T, rows, w = np.zeros((2, 2)), np.empty((2, 2)), np.empty(1)
    >>> evidence = np.zeros((2, 1))
    >>> group = Group(BERNOULLI, w, T, np.array([[1.0, 1.0, 0.0]]), evidence, w, T, rows)
    >>> learn(group, 1, 1.0)
    >>> T.tolist(), evidence.round(6).tolist()
    ([[0.0, 0.0], [1.0, 0.0]], [[0.0], [-0.693147]])
    """
    learn_row(group.kind, group.constants, group.statistics[j], r)
    if group.kind != NORMAL_GAMMA:
        weigh_arm(group.kind, group.statistics[j], group.grid, group.evidence[j])


@leaf
def interact(
    group: Group,
    active: IntArray,
    drawn: FloatArray,
    truth: FloatArray,
    streams: Streams,
    actions: IntArray,
    rewards: FloatArray,
) -> None:
    """Run the control rule over arms that share hyperparameters; fill `actions` and `rewards`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, rows = np.zeros((2, 4)), np.empty((2, 2))
    >>> w, shared = np.empty(1), np.empty((1, 3))
    >>> group = Group(NORMAL_GAMMA, w, T, np.ones((1, 1)), T[:, :0], w, shared, rows)
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> streams, truth = Streams(Stream(1).state, Stream(2).state), np.array([[0.0, 1], [9, 1]])
    >>> interact(group, np.arange(2), np.empty(2), truth, streams, actions, rewards)
    >>> bool(actions.sum() > 40)
    True
    """
    p, q = streams
    for t in range(actions.size):
        a = draw_action(group, active, drawn, p)
        r = respond(group.kind, group.constants, truth[a], q)
        learn(group, a, r)
        actions[t], rewards[t] = a, r
