"""Exact screening: the largest of many Beta variables with few draws.

    arg max_j X_j,   X_j ~ Beta(α_j, β_j) independent, α_j and β_j integers

Draw the leader, the arm with the largest mean; V is the largest value drawn so far. An arm is
drawn only if V is below its ceiling h_j; else P(X_j > V) ≤ b_j, where b_j bounds P(X_j > h_j).
For the arms that were not drawn one uniform number U decides: P(some X_j > V) ≤ Σ b_j, so
U ≥ Σ b_j rules them all out. Otherwise U is compared with the bounds at V itself, and finally with
the exact tails

    P(X_j > v) = P(Bin(n, v) ≤ k),   n = α_j + β_j - 1,   k = α_j - 1

which decide whether one exceeds V, and which. The distribution of the arg max does not depend on
the ceilings; they only affect speed.

The bound: for k < n v the terms of the binomial sum decrease at least by the factor
q = k (1 - v)/((n - k + 1) v), so the sum is at most the first over 1 - q; and the first is at most
exp(-n KL(k/n ‖ v)) √(n / 2π k (n - k)), by Stirling's formula with Robbins' (1955) remainders.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.arms import BERNOULLI, respond
from bayescontrol.kernels.beta_distribution import divergence
from bayescontrol.kernels.elementary import exp, stirling_remainder
from bayescontrol.kernels.random import Streams, beta_of, gamma_constants, uniform

# Rows of `cache`, a column for each arm: constants of the two gammas, the mean, the ceiling, its
# bound, the slope of that bound, and scratch for the bound at V.
D_ALPHA, C_ALPHA, D_BETA, C_BETA, MEAN, CEILING, BOUND, SLOPE, AT_V = range(9)
ROWS = 9

#: Ceilings are about this many standard deviations above the mean; tuned for ten arms.
Z = 2.8
#: Marks a ceiling that is not computed yet; a leader needs no ceiling.
STALE = 2.0
# A margin for the rounding of the bounds.
SAFETY = 1.0 + 1e-9


@leaf
def tail_bound(alpha: float, beta: float, v: float) -> float:
    """Return an upper bound of P(X > v), X ~ Beta(α, β); at most 1.

    P(X > v) = P(Bin(n, v) ≤ k), n = α + β - 1, k = α - 1: its largest term by Stirling's formula
    without remainders, which is too large, times a geometric series. α and β are integers, v is in
    (0, 1).

    >>> from math import comb
    >>> exact = sum(comb(10, k) * 0.7**k * 0.3 ** (10 - k) for k in range(4))
    >>> bool(exact < tail_bound(4.0, 7.0, 0.7) < 1.1 * exact)
    True
    """
    n, k = alpha + beta - 1.0, alpha - 1.0
    if k >= n * v:
        return 1.0
    first = exp(-divergence(k, beta, v, 1.0 - v))
    if k == 0.0:
        return min(first * SAFETY, 1.0)
    first *= math.sqrt(n / (2.0 * math.pi * k * beta))
    ratio = k * (1.0 - v) / ((n - k + 1.0) * v)
    return min(first / (1.0 - ratio) * SAFETY, 1.0)


@leaf
def _raise_ceiling(alpha: float, beta: float, cache: FloatArray, j: int) -> None:
    """Compute the ceiling h of arm j by Wilson's score interval, its bound, and the slope there."""
    n = alpha + beta - 1.0
    p = (alpha - 0.5) / n
    half = 0.5 * Z * Z / n
    h = (p + half + math.sqrt(half * (half + 2.0 * p * (1.0 - p)))) / (1.0 + 2.0 * half)
    if 0.0 < h < 1.0:
        cache[CEILING, j], cache[BOUND, j] = h, tail_bound(alpha, beta, h)
        cache[SLOPE, j] = max(n * h - alpha + 1.0, 0.0) / (h * (1.0 - h))
    else:
        cache[CEILING, j], cache[BOUND, j], cache[SLOPE, j] = 1.0, 0.0, 0.0


@inlined
def _bound_above(cache: FloatArray, j: int, v: float) -> float:
    """Return an upper bound of P(X_j > v) for v above the ceiling h: b (1 + s (v - h)/4)^-4.

    n KL(k/n ‖ v) is convex in v, with slope s at h; so the bound falls at least by the factor
    exp(-s (v - h)) from h to v, and e^-y ≤ (1 + y/4)^-4.
    """
    y = 1.0 + 0.25 * cache[SLOPE, j] * (v - cache[CEILING, j])
    y *= y
    return float(cache[BOUND, j] / (y * y))


@leaf
def prepare(alpha: float, beta: float, cache: FloatArray, j: int) -> None:
    """Fill column j of the cache, for an arm with posterior Beta(α, β).

    >>> import numpy as np
    >>> cache = np.empty((ROWS, 1))
    >>> prepare(3.0, 1.0, cache, 0)
    >>> cache[MEAN, 0]
    np.float64(0.75)
    """
    cache[D_ALPHA, j], cache[C_ALPHA, j] = gamma_constants(alpha)
    cache[D_BETA, j], cache[C_BETA, j] = gamma_constants(beta)
    cache[MEAN, j], cache[CEILING, j] = alpha / (alpha + beta), STALE


@leaf
def prepare_all(rows: FloatArray, cache: FloatArray) -> None:
    """Fill every column of the cache.

    >>> import numpy as np
    >>> cache = np.empty((ROWS, 2))
    >>> prepare_all(np.ones((2, 2)), cache)
    >>> cache[MEAN]
    array([0.5, 0.5])
    """
    for j in range(rows.shape[0]):
        prepare(rows[j, 0], rows[j, 1], cache, j)


@inlined
def learn(rows: FloatArray, cache: FloatArray, j: int, r: float) -> float:
    """Update arm j and the cache: α_j += 1 if r is 1, β_j += 1 if r is 0; return max(α_j, β_j).

    >>> import numpy as np
    >>> rows, cache = np.ones((1, 2)), np.empty((ROWS, 1))
    >>> prepare(1.0, 1.0, cache, 0)
    >>> learn(rows, cache, 0, 1.0)
    2.0
    >>> rows, cache[MEAN, 0]
    (array([[2., 1.]]), np.float64(0.666...))
    """
    if r > 0.0:
        rows[j, 0] += 1.0
        cache[D_ALPHA, j], cache[C_ALPHA, j] = gamma_constants(rows[j, 0])
    else:
        rows[j, 1] += 1.0
        cache[D_BETA, j], cache[C_BETA, j] = gamma_constants(rows[j, 1])
    cache[MEAN, j], cache[CEILING, j] = rows[j, 0] / (rows[j, 0] + rows[j, 1]), STALE
    return float(max(rows[j, 0], rows[j, 1]))


@inlined
def _beta(rng_state: UIntArray, cache: FloatArray, j: int) -> float:
    """Draw X_j of arm j."""
    d_a, c_a, d_b, c_b = cache[D_ALPHA, j], cache[C_ALPHA, j], cache[D_BETA, j], cache[C_BETA, j]
    return beta_of(rng_state, d_a, c_a, d_b, c_b)


@leaf
def beta_tail(alpha: float, beta: float, v: float) -> float:
    """Return P(X > v), X ~ Beta(α, β), α and β integers: Σ_{k<α} C(n, k) v^k (1 - v)^(n-k).

    >>> round(beta_tail(2.0, 1.0, 0.5), 13)  # 1 - v²
    0.75
    """
    if v <= 0.0:
        return 1.0
    if v >= 1.0:
        return 0.0
    if alpha - 1.0 > (alpha + beta - 1.0) * v:
        return 1.0 - _falling_sum(beta, alpha, 1.0 - v)
    return min(_falling_sum(alpha, beta, v), 1.0)


@leaf
def _falling_sum(alpha: float, beta: float, v: float) -> float:
    """Return P(X > v) = P(Bin(n, v) ≤ k), X ~ Beta(α, β), n = α + β - 1, k = α - 1 ≤ n v.

    The terms k, k - 1, … are added in this order, the largest first. The first one is
    √(n / (2π k (n - k))) exp(Δ(n) - Δ(k) - Δ(n - k) - n KL(k/n ‖ v)), where Δ is the remainder of
    Stirling's formula: factorials of large numbers would lose precision.
    """
    n = alpha + beta - 1.0
    k = alpha - 1.0
    odds_against = (1.0 - v) / v
    log_term = -divergence(k, beta, v, 1.0 - v)
    if k > 0.0:
        log_term += stirling_remainder(n) - stirling_remainder(k) - stirling_remainder(beta)
        term = exp(log_term) * math.sqrt(n / (2.0 * math.pi * k * beta))
    else:
        term = exp(log_term)
    total = term
    # Stop when the remaining terms are below 2^-60 of the sum.
    while k > 0.0:
        ratio = k / (n - k + 1.0) * odds_against
        term *= ratio
        total += term
        k -= 1.0
        if term <= total * 2.0**-60 * (1.0 - ratio):
            break
    return total


class ScreenedArms(NamedTuple):
    """The posterior rows and the cache of all arms, and the arms in play."""

    rows: FloatArray
    cache: FloatArray
    active: IntArray
    #: The arms that were not drawn; scratch with a number for each arm.
    undrawn: IntArray


@leaf
def _largest_first(cache: FloatArray, undrawn: IntArray, k: int) -> int:
    """Swap the arm with the largest bound at V, from position k on, to position k; return it."""
    largest = k
    for i in range(k + 1, undrawn.size):
        if cache[AT_V, undrawn[i]] > cache[AT_V, undrawn[largest]]:
            largest = i
    j = undrawn[largest]
    undrawn[largest], undrawn[k] = undrawn[k], j
    return int(j)


@leaf
def _exceeding(
    rows: FloatArray,
    cache: FloatArray,
    undrawn: IntArray,
    best: int,
    v: float,
    u: float,
    rng_state: UIntArray,
) -> int:
    """Return the arm with the largest value, if u < Σ b_j does not rule out the undrawn arms.

    u is the uniform number U, and v is V, the value of the arm `best`.
    """
    bound = 0.0
    for k in range(undrawn.size):
        cache[AT_V, undrawn[k]] = _bound_above(cache, undrawn[k], v)
        bound += cache[AT_V, undrawn[k]]
    for k in range(undrawn.size):
        if u >= bound * SAFETY:
            return best
        j = _largest_first(cache, undrawn, k)
        bound -= cache[AT_V, j]
        cache[AT_V, j] = tail_bound(rows[j, 0], rows[j, 1], v) if v < 1.0 else 0.0
        bound += cache[AT_V, j]
    reached = 0.0  # P(an arm before position k exceeds V)
    for k in range(undrawn.size):
        j = _largest_first(cache, undrawn, k)
        tail = beta_tail(rows[j, 0], rows[j, 1], v)
        reached += (1.0 - reached) * tail
        bound -= cache[AT_V, j]
        if u < reached:
            return _best_after_first_exceeds(rows, cache, undrawn, k, v, tail, rng_state)
        if u >= reached + bound * SAFETY + 1e-18:  # a margin for the rounding of `reached`
            return best
    return best


@leaf
def _best_after_first_exceeds(
    rows: FloatArray,
    cache: FloatArray,
    undrawn: IntArray,
    k: int,
    v: float,
    tail: float,
    rng_state: UIntArray,
) -> int:
    """Return the best arm, given that the arm at position k is the first that exceeds V.

    Later arms may have any value and are drawn. X_j of the arm at k, with P(X_j > V) = tail, is
    needed only if a later arm exceeds V too.
    """
    j, rival, x = undrawn[k], -1, v
    for i in range(k + 1, undrawn.size):
        y = _beta(rng_state, cache, undrawn[i])
        if y > x:
            rival, x = undrawn[i], y
    # P(X_j > x | X_j > V) = P(X_j > x) / tail.
    if rival >= 0 and uniform(rng_state) * tail >= beta_tail(rows[j, 0], rows[j, 1], x):
        return int(rival)
    return int(j)


@inlined
def draw_action(
    rows: FloatArray, cache: FloatArray, active: IntArray, undrawn: IntArray, rng_state: UIntArray
) -> int:
    """Return arg max_j X_j over the active arms, with the same distribution as drawing all X_j.

    `undrawn` is scratch with a number for each arm.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, cache = np.array([[1.0, 999.0], [999.0, 1.0]]), np.empty((ROWS, 2))
    >>> for j in range(2):
    ...     prepare(*rows[j], cache, j)
    >>> draw_action(rows, cache, np.arange(2), np.empty(2, np.int64), Stream(1).state)
    1
    """
    best = active[0]
    for k in range(1, active.size):
        if cache[MEAN, active[k]] > cache[MEAN, best]:
            best = active[k]
    leader = best
    v = _beta(rng_state, cache, leader)
    count, bound = 0, 0.0
    for k in range(active.size):
        j = active[k]
        if j == leader:
            continue
        if cache[CEILING, j] == STALE:
            _raise_ceiling(rows[j, 0], rows[j, 1], cache, j)
        if v < cache[CEILING, j]:
            x = _beta(rng_state, cache, j)
            if x > v:
                v, best = x, j
        else:
            undrawn[count] = j
            count += 1
            bound += _bound_above(cache, j, v)
    if count:
        u = uniform(rng_state)
        if u < bound:
            return _exceeding(rows, cache, undrawn[:count], int(best), v, u, rng_state)
    return int(best)


@leaf
def interact(
    arms: ScreenedArms, truth: FloatArray, streams: Streams, actions: IntArray, rewards: FloatArray
) -> None:
    """Run the control rule over Bernoulli arms with screening; fill `actions` and `rewards`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> arms = ScreenedArms(np.ones((2, 2)), np.empty((ROWS, 2)), np.arange(2), np.arange(2))
    >>> prepare_all(arms.rows, arms.cache)
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> interact(arms, np.array([[0.0], [1.0]]), streams, actions, rewards)
    >>> bool((rewards == actions).all())
    True
    """
    rows, cache, active, undrawn = arms
    p, q = streams
    for t in range(actions.size):
        a = draw_action(rows, cache, active, undrawn, p)
        r = respond(BERNOULLI, cache[MEAN], truth[a], q)  # a Bernoulli arm ignores the constants
        learn(rows, cache, a, r)
        actions[t], rewards[t] = a, r
