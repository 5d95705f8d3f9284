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
from bayescontrol.kernels.arms import BERNOULLI, draw, log_mean, respond, temper
from bayescontrol.kernels.arms import draw_action as draw_from_rows
from bayescontrol.kernels.arms import learn as learn_row
from bayescontrol.kernels.elementary import exp, log, log_gamma_function
from bayescontrol.kernels.families import number
from bayescontrol.kernels.random import Streams, categorical, gamma, normal, uniform

#: The family of the statistics of Gaussian arms, and that of their rows given h.
NORMAL_GAMMA, GAUSSIAN = number("normal_gamma"), number("gaussian")
#: The columns of `Group.shared`: μ̂, V and S of Gaussian arms.
LOCATION, PRECISION, SQUARES = range(3)
#: A product above this is replaced by its logarithm before it overflows. Means are below it.
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
    last, log_gamma_last = 0.0, 0.0
    for h in range(grid.shape[0]):
        a, b = grid[h, 0] + T[0], grid[h, 1] + T[1]
        # Neighbours in the grid share α + β, or the shape of gamma distributions.
        common = (grid[h, 0] + grid[h, 1]) + (T[0] + T[1]) if kind == BERNOULLI else a
        if common != last:
            last, log_gamma_last = common, log_gamma_function(common)
        if kind == BERNOULLI:
            log_z = log_gamma_function(a) + log_gamma_function(b) - log_gamma_last
        else:
            log_z = log_gamma_last - a * log(b)
        evidence[h] = log_z - grid[h, 2]


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
    evidence, w = group.evidence, group.w
    if group.kind == NORMAL_GAMMA:
        if not _weigh_ratios(group.statistics, group.grid, w, group.shared):
            w[:] = 1.0 / w.size
            return False
    else:
        w[:] = 0.0
        for j in range(evidence.shape[0]):
            w += evidence[j]
    largest, total = w[0], 0.0
    for h in range(w.size):
        largest = max(largest, w[h])
    for h in range(w.size):
        w[h] = exp(w[h] - largest)
        total += w[h]
    w /= total
    return True


@leaf
def marginal_rows(
    group: Group, h: int, T: FloatArray, rows: FloatArray, temperature: float = 1.0
) -> None:
    """Write the posterior rows given h of arms with the statistics T, in the family of T.

    For Gaussian arms (μ, κ, α, β): Student's t distribution of m_j, with μ₀ and σ integrated out.

        1/κ_j = 1/(n_j + λ) + (λ/(n_j + λ))² / V      α = (n - 1)/2      β = S/2

    A temperature multiplies 1/(n_j + λ), the variance given μ₀ and σ.

    >>> import numpy as np
    >>> T, rows, w = np.array([[2.0, 0.0], [0.0, 0.0]]), np.empty((2, 2)), np.ones(1)
    >>> group = Group(BERNOULLI, w, T, np.array([[3.0, 4.0]]), T[:, :1], w, T, rows)
    >>> marginal_rows(group, 0, T, rows)
    >>> rows.tolist()
    [[5.0, 4.0], [3.0, 4.0]]
    """
    grid, shared = group.grid, group.shared
    if group.kind != NORMAL_GAMMA:
        for j in range(T.shape[0]):
            rows[j, 0], rows[j, 1] = grid[h, 0] + T[j, 0], grid[h, 1] + T[j, 1]
            temper(group.kind, rows[j], temperature, rows[j])
        return
    n, lam, mu0 = group.statistics[:, 1].sum(), grid[h, 0], shared[h, LOCATION]
    for j in range(T.shape[0]):
        precision = T[j, 1] + lam
        to_location = lam / precision
        rows[j, 0] = mu0 + (T[j, 0] - mu0) * T[j, 1] / precision
        by_location = to_location * to_location / shared[h, PRECISION]
        rows[j, 1] = 1.0 / (temperature / precision + by_location)
        rows[j, 2], rows[j, 3] = 0.5 * (n - 1.0), 0.5 * shared[h, SQUARES]


@leaf
def draw_shared(group: Group, rng_state: UIntArray) -> tuple[int, float, float]:
    """Draw h from `group.w`; return h, and for Gaussian arms also drawn σ² and μ₀.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, w = np.zeros((1, 2)), np.array([0.0, 1.0])
    >>> group = Group(BERNOULLI, w, T, np.ones((2, 3)), np.zeros((1, 2)), w, T, T)
    >>> draw_shared(group, Stream(1).state)
    (1, 0.0, 0.0)
    """
    h = categorical(rng_state, group.w)
    if group.kind != NORMAL_GAMMA:
        return h, 0.0, 0.0
    shared, n = group.shared, group.statistics[:, 1].sum()
    variance = 0.5 * shared[h, SQUARES] / gamma(rng_state, 0.5 * (n - 1.0))
    sd = math.sqrt(variance / shared[h, PRECISION])
    mu0 = shared[h, LOCATION] + sd * normal(rng_state)
    return h, variance, mu0


@leaf
def fill_row(
    group: Group, drawn: tuple[int, float, float], T: FloatArray, row: FloatArray,
    temperature: float = 1.0,
) -> None:  # fmt: skip
    """Write the row of an arm with the statistics T, given what `draw_shared` drew.

    >>> import numpy as np
    >>> T, w = np.array([4.0, 2.0, 1.0, 0.0]), np.ones(1)
    >>> rows, grid = np.empty((1, 2)), np.array([[2.0]])
    >>> group = Group(NORMAL_GAMMA, w, T[None], grid, rows[:, :0], w, rows, rows)
    >>> fill_row(group, (0, 0.5, 2.0), T, rows[0])  # half way from μ₀ to the mean
    >>> rows.tolist()
    [[3.0, 8.0]]
    """
    h, variance, mu0 = drawn
    if group.kind == NORMAL_GAMMA:
        precision = T[1] + group.grid[h, 0]
        row[0] = mu0 + (T[0] - mu0) * T[1] / precision
        row[1] = precision / variance
    else:
        row[0], row[1] = group.grid[h, 0] + T[0], group.grid[h, 1] + T[1]
    if temperature != 1.0:
        temper(GAUSSIAN if group.kind == NORMAL_GAMMA else group.kind, row, temperature, row)


@leaf
def draw_rows(group: Group, rng_state: UIntArray, temperature: float = 1.0) -> None:
    """Draw what the arms share, and write their rows given it to `group.rows`.

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
    rows = group.rows
    if not weigh(group):
        rows[:, 0], rows[:, 1] = 0.0, 1.0
        return
    drawn = draw_shared(group, rng_state)
    for j in range(rows.shape[0]):
        fill_row(group, drawn, group.statistics[j], rows[j], temperature)


@leaf
def draw_action(
    group: Group, active: IntArray, drawn: FloatArray, rng_state: UIntArray,
    temperature: float = 1.0,
) -> int:  # fmt: skip
    """Draw h and m_j of each active arm; return arg max_j m_j. `drawn` is scratch for the m_j.

    Python code passes `tuple(group)`: a plain tuple is recognised 1 us faster than a named one.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, rows, w = np.array([[1.0, 99.0], [99.0, 1.0]]), np.empty((2, 2)), np.ones(1)
    >>> group = Group(BERNOULLI, w, T, np.ones((1, 2)), np.zeros((2, 1)), w, T, rows)
    >>> draw_action(group, np.arange(2), np.empty(2), Stream(1).state)
    1
    """
    g = Group(*group)
    draw_rows(g, rng_state, temperature)
    kind = GAUSSIAN if g.kind == NORMAL_GAMMA else g.kind
    return draw_from_rows(kind, g.constants, g.rows, active, drawn, rng_state)


@leaf
def learn(
    kind: int, constants: FloatArray, statistics: FloatArray, grid: FloatArray,
    evidence: FloatArray, j: int, r: float,
) -> bool:  # fmt: skip
    """Update arm j with the reward r; return False, with nothing changed, if a sum overflows.

    The first arguments are the fields of `Group` that change, and those that this needs.

    >>> import numpy as np
    >>> T, evidence = np.zeros((2, 2)), np.zeros((2, 1))
    >>> learn(BERNOULLI, np.empty(0), T, np.array([[1.0, 1.0, 0.0]]), evidence, 1, 1.0)
    True
    >>> T.tolist(), evidence.round(6).tolist()
    ([[0.0, 0.0], [1.0, 0.0]], [[0.0], [-0.693147]])
    """
    T = statistics[j]
    a, b, c = T[0], T[1], T[T.size - 1]
    learn_row(kind, constants, T, r)
    if not abs(T[0]) + abs(T[1]) + abs(T[T.size - 1]) < math.inf:  # also if one is NaN
        T[0], T[1], T[T.size - 1] = a, b, c
        if T.size == 4:
            T[2] = 0.5 * b
        return False
    if kind != NORMAL_GAMMA:
        weigh_arm(kind, T, grid, evidence[j])
    return True


@leaf
def interact(
    group: Group, active: IntArray, drawn: FloatArray, truth: FloatArray, streams: Streams,
    actions: IntArray, rewards: FloatArray, temperature: float = 1.0,
) -> None:  # fmt: skip
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
        a = draw_action(group, active, drawn, p, temperature)
        r = respond(group.kind, group.constants, truth[a], q)
        learn(*group[:5], a, r)
        actions[t], rewards[t] = a, r


# ------------------------------------------------------------------------------------------------
# Pooling: the segments of each arm share hyperparameters, as the arms of a bandit do above.


class Pools(NamedTuple):
    """A `Group` for each arm, whose units are segments; segment 0 has no rewards.

    The arrays are those of `Group` with an axis for the arms before the others.
    """

    kind: int
    constants: FloatArray
    statistics: FloatArray
    grid: FloatArray
    evidence: FloatArray
    w: FloatArray
    shared: FloatArray
    #: The posterior row of each arm, in one segment.
    rows: FloatArray
    #: Whether the posterior of each arm is proper: 1.0 or 0.0.
    proper: FloatArray


@leaf
def _group_of(pools: Pools, a: int) -> Group:
    """Return the group of arm a, as views."""
    return Group(
        pools.kind, pools.constants, pools.statistics[a], pools.grid, pools.evidence[a],
        pools.w[a], pools.shared[a], pools.rows,
    )  # fmt: skip


@leaf
def weigh_pool(pools: Pools, a: int) -> None:
    """Compute P(h | past) of arm a.

    >>> import numpy as np
    >>> T, grid, w = np.zeros((1, 3, 4)), np.ones((1, 1)), np.ones((1, 1))
    >>> proper, rows, shared = np.ones(1), np.zeros((1, 2)), np.zeros((1, 1, 3))
    >>> pools = Pools(NORMAL_GAMMA, rows[0], T, grid, T[:, :, :0], w, shared, rows, proper)
    >>> weigh_pool(pools, 0)
    >>> proper.tolist()  # no two rewards differ
    [0.0]
    """
    pools.proper[a] = 1.0 if weigh(_group_of(pools, a)) else 0.0


@leaf
def learn_in_segment(pools: Pools, a: int, s: int, r: float) -> None:
    """Update arm a in segment s with the reward r.

    >>> import numpy as np
    >>> T, grid, w = np.zeros((2, 3, 2)), np.array([[1.0, 1.0, 0.0]]), np.ones((2, 1))
    >>> evidence, shared, rows, proper = np.zeros((2, 3, 1)), T[:, :1], T[:, 0].copy(), np.ones(2)
    >>> pools = Pools(BERNOULLI, rows[0], T, grid, evidence, w, shared, rows, proper)
    >>> learn_in_segment(pools, 1, 2, 1.0)
    >>> T[1].tolist(), evidence[1].round(6).ravel().tolist()
    ([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0.0, 0.0, -0.693147])
    """
    learn(pools.kind, pools.constants, pools.statistics[a], pools.grid, pools.evidence[a], s, r)
    weigh_pool(pools, a)


@leaf
def draw_in_segment(
    pools: Pools, s: int, active: IntArray, drawn: FloatArray, rng_state: UIntArray,
    temperature: float = 1.0,
) -> int:  # fmt: skip
    """Draw m_a of each active arm in segment s into `drawn`; return arg max_a m_a.

    Arms without a proper posterior come first, in random order.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, grid, w = np.zeros((2, 3, 2)), np.array([[1.0, 1.0, 0.0]]), np.ones((2, 1))
    >>> evidence, shared, rows, proper = np.zeros((2, 3, 1)), T[:, :1], T[:, 0].copy(), np.ones(2)
    >>> pools = Pools(BERNOULLI, rows[0], T, grid, evidence, w, shared, rows, proper)
    >>> T[1, 2, 0] = 99.0
    >>> draw_in_segment(pools, 2, np.arange(2), np.empty(2), Stream(1).state)
    1
    """
    kind = GAUSSIAN if pools.kind == NORMAL_GAMMA else pools.kind
    unknown, best = 0, -1
    for k in range(active.size):
        a = active[k]
        if pools.proper[a] == 0.0:
            unknown += 1
            if uniform(rng_state) * unknown < 1.0:
                best = int(a)
    if unknown > 0:
        return best
    for k in range(active.size):
        a = active[k]
        group, T = _group_of(pools, a), pools.statistics[a, s]
        fill_row(group, draw_shared(group, rng_state), T, pools.rows[a], temperature)
    return draw_from_rows(kind, pools.constants, pools.rows, active, drawn, rng_state)


@leaf
def draw_all_segments(
    pools: Pools, active: IntArray, drawn: FloatArray, rng_state: UIntArray,
    temperature: float = 1.0,
) -> None:  # fmt: skip
    """Draw m_a of each active arm in every segment into `drawn`, shape (segments, arms).

    Arms without a proper posterior get means above all others, in random order. Above temperature
    1, shapes may be so small that means are equal as doubles: then `log_mean` replaces them.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> T, grid, w = np.zeros((2, 3, 2)), np.array([[1.0, 1.0, 0.0]]), np.ones((2, 1))
    >>> evidence, shared, rows, proper = np.zeros((2, 3, 1)), T[:, :1], T[:, 0].copy(), np.ones(2)
    >>> pools = Pools(BERNOULLI, rows[0], T, grid, evidence, w, shared, rows, proper)
    >>> T[1, 2, 0], drawn = 99.0, np.empty((3, 2))
    >>> draw_all_segments(pools, np.arange(2), drawn, Stream(1).state)
    >>> bool(drawn[2, 1] > 0.9), bool(((drawn > 0) & (drawn < 1)).all())
    (True, True)
    """
    kind = GAUSSIAN if pools.kind == NORMAL_GAMMA else pools.kind
    for k in range(active.size):
        a = active[k]
        group = _group_of(pools, a)
        if pools.proper[a] == 0.0:
            drawn[:, a] = LARGE * (1.0 + uniform(rng_state))
        else:
            shared = draw_shared(group, rng_state)
            for s in range(drawn.shape[0]):
                fill_row(group, shared, pools.statistics[a, s], pools.rows[a], temperature)
                if temperature > 1.0 and kind != GAUSSIAN:
                    drawn[s, a] = log_mean(kind, pools.rows[a], rng_state)
                else:
                    drawn[s, a] = draw(kind, pools.constants, pools.rows[a], rng_state)
