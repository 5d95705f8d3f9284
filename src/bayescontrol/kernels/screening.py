"""Exact screening: the largest of many Beta variables with few draws.

    arg max_j X_j,   X_j ~ Beta(α_j, β_j) independent, α_j and β_j integers

Draw the leader, the arm with the largest mean; V is the largest value found so far. Most other arms
are not drawn. Let n = α + β - 1, k = α - 1, v > k/n and 1 - X = (1 - v) e^-t. Then t > 0 has the
density P(Bin(n, v) = k) β (x/v)^k e^-βt, x = 1 - (1 - v) e^-t, and ln(x/v) ≤ t (1 - v)/v. Hence

    P(X > v) ≤ m(v) = P(Bin(n, v) = k) β/κ,   κ = (n v - k)/v = β - k (1 - v)/v

and X is drawn exactly, as far as it is above v, by a proposal: with probability m(v) draw t with
density κ e^-κt, and accept it with probability exp(k (ln(x/v) - t (1 - v)/v)). If there is no
proposal, or it is rejected, then X ≤ v.

One exponential number E decides which arms get a proposal at v = V. Each arm in turn takes ν_j(V)
from it, an upper bound of -ln(1 - m_j(V)). If E lasts for all arms, none gets one. If only e < ν_j
is left for arm j, it gets a proposal if e < -ln(1 - m_j(V)), and the arms after j a new E. An arm
with ν_j(V) > LEVEL is drawn instead. The distribution of the arg max does not depend on the bounds;
they only affect speed.

The bound: ln P(Bin(n, v) = k) is concave in v and thus below its tangent at any point h, which has
the slope -S = -κ(h)/(1 - h); and β/κ decreases. So for v ≥ low

    m(v) ≤ c exp(-S (v - low)),   c = P(Bin(n, h) = k) exp(S (h - low)) β/κ(low)

If c ≤ 1 - exp(-LEVEL), then ν(v) = LEVEL exp(-S (v - low)) is a bound, because -ln(1 - m) is convex
in m. The points low and h of `_fit_line` are such that this holds for all whole numbers, as the
tests check: c has limits for large α and β, and is everywhere at least 5 % smaller.
"""

import math
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import direct, inlined, leaf
from bayescontrol.kernels.beta_distribution import divergence
from bayescontrol.kernels.elementary import (
    LOG2_E,
    exp,
    exp_excess,
    log_one_plus,
    stirling_remainder,
)
from bayescontrol.kernels.families import bernoulli
from bayescontrol.kernels.random import Streams, beta_of, exponential, gamma_constants

# Rows of `cache`, a column for each arm: constants of the two gammas, the mean, the line of log2 ν,
# and scratch for ν. A retired arm has the mean -1. It and the leader have the line 0, where ν is 0.
D_ALPHA, C_ALPHA, D_BETA, C_BETA, MEAN, INTERCEPT, SLOPE, NU = range(8)
ROWS = 8
#: E is compared with the sum of ν of this number of arms.
BLOCK = 16
#: The value of `leader` while it is not known.
UNKNOWN = -1

# Tuned for ten arms. An arm with a larger ν than LEVEL is drawn. The line passes through LEVEL at
# about Z standard deviations above the mean, and is parallel to the tangent at about STEP more.
LEVEL, Z, STEP = 0.085, 1.85, 1.0
# A double with the bits (y + 1023) 2^52 is 2^y, interpolated linearly and so from above.
UNIT, BIAS = 2.0**52, 1023.0
#: The exponent of LEVEL, with a margin for the rounding of the line.
LEVEL_BITS = (BIAS + math.log2(LEVEL) + 1e-4) * UNIT
#: The largest ν is 2^10.
TOP = (BIAS + 10.0) * UNIT
#: Marks a line that is not computed yet; its ν is the largest.
STALE = 2.0 * TOP


@inlined
def _nu(cache: FloatArray, j: int, v: float) -> float:
    """Return ν_j(v), from the line of log2 ν_j."""
    y = cache[INTERCEPT, j] - cache[SLOPE, j] * v
    return float(np.int64(min(max(y, 0.0), TOP)).view(np.float64))


@inlined
def _rate(k: float, beta: float, v: float) -> float:
    """Return κ = (n v - k)/v, without cancellation near v = 1."""
    return (beta * v - k * (1.0 - v)) / v


@leaf
def _fit_line(alpha: float, beta: float, cache: FloatArray, j: int) -> None:
    """Compute the line of arm j; `low` is the end of Wilson's score interval, and 1 - y is h."""
    n, k = alpha + beta - 1.0, alpha - 1.0
    p, half = (alpha - 0.5) / n, 0.5 * Z * Z / n
    low = (p + half + math.sqrt(half * (half + 2.0 * p * (1.0 - p)))) / (1.0 + 2.0 * half)
    step = STEP * math.sqrt(low / (n * (1.0 - low)))
    y = (1.0 - low) * (1.0 + step) / (1.0 + 2.0 * step)
    cache[SLOPE, j] = _rate(k, beta, 1.0 - y) / y * (LOG2_E * UNIT)
    cache[INTERCEPT, j] = LEVEL_BITS + cache[SLOPE, j] * low


@leaf
def prepare(rows: FloatArray, active: IntArray, cache: FloatArray, leader: IntArray) -> None:
    """Fill the cache for arms with posteriors Beta(α, β), the rows; only active arms are chosen.

    >>> import numpy as np
    >>> cache, leader = np.empty((ROWS, 3)), np.empty(1, np.int64)
    >>> prepare(np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), np.arange(2), cache, leader)
    >>> cache[MEAN]
    array([ 0.75,  0.5 , -1.  ])
    """
    leader[0], cache[MEAN:], cache[MEAN] = UNKNOWN, 0.0, -1.0
    for j in range(rows.shape[0]):
        cache[D_ALPHA, j], cache[C_ALPHA, j] = gamma_constants(rows[j, 0])
        cache[D_BETA, j], cache[C_BETA, j] = gamma_constants(rows[j, 1])
    for j in active:
        cache[MEAN, j] = rows[j, 0] / (rows[j, 0] + rows[j, 1])
        _fit_line(rows[j, 0], rows[j, 1], cache, j)


@inlined
def learn(rows: FloatArray, cache: FloatArray, leader: IntArray, j: int, r: float) -> float:
    """Update arm j and the cache: α_j += 1 if r is 1, β_j += 1 if r is 0; return max(α_j, β_j).

    >>> import numpy as np
    >>> rows, cache, leader = np.ones((1, 2)), np.empty((ROWS, 1)), np.empty(1, np.int64)
    >>> prepare(rows, np.arange(1), cache, leader)
    >>> learn(rows, cache, leader, 0, 1.0)
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
    if cache[MEAN, j] >= 0.0:  # the arm is active
        cache[MEAN, j] = rows[j, 0] / (rows[j, 0] + rows[j, 1])
        first = leader[0]
        if j != first:
            cache[INTERCEPT, j], cache[SLOPE, j] = STALE, 0.0
        if first >= 0 and (r <= 0.0 if j == first else cache[MEAN, j] >= cache[MEAN, first]):
            cache[INTERCEPT, first], leader[0] = STALE, UNKNOWN
    return float(max(rows[j, 0], rows[j, 1]))


@leaf
def _find_leader(cache: FloatArray, leader: IntArray) -> None:
    """Find the arm with the largest mean, the first of equal ones."""
    best = 0
    for j in range(1, cache.shape[1]):
        if cache[MEAN, j] > cache[MEAN, best]:
            best = j
    leader[0], cache[INTERCEPT, best], cache[SLOPE, best] = best, 0.0, 0.0


@inlined
def _beta(rng_state: UIntArray, cache: FloatArray, j: int) -> float:
    """Draw X_j of arm j."""
    d_a, c_a, d_b, c_b = cache[D_ALPHA, j], cache[C_ALPHA, j], cache[D_BETA, j], cache[C_BETA, j]
    return beta_of(rng_state, d_a, c_a, d_b, c_b)


def _small_remainders() -> FloatArray:
    """Return Δ(x) for whole numbers 1 ≤ x < 100; Δ(0) is not used."""
    with localcontext() as context:
        context.prec = 36
        half, half_log_2pi = Decimal("0.5"), Decimal("0.918938533204672741780329736405617640")
        log_factorial, remainders = Decimal(0), [0.0]
        for x in map(Decimal, range(1, 100)):
            remainders.append(float(log_factorial - (x - half) * x.ln() + x - half_log_2pi))
            log_factorial += x.ln()
    return np.array(remainders)


REMAINDERS = _small_remainders()


@inlined
def _remainder(x: float) -> float:
    """Return Δ(x), the remainder of Stirling's formula for ln Γ(x), for a whole number x ≥ 1."""
    return float(REMAINDERS[int(x)]) if x < REMAINDERS.size else stirling_remainder(x)


@leaf
def proposal_probability(alpha: float, beta: float, v: float) -> float:
    """Return m(v) ≥ P(X > v), X ~ Beta(α, β), for k/n < v < 1.

    P(Bin(n, v) = k) = √(n / 2π k (n - k)) exp(Δ(n) - Δ(k) - Δ(n - k) - n KL(k/n ‖ v)), where Δ is
    `_remainder`: factorials of large numbers would lose precision.

    >>> proposal_probability(1.0, 2.0, 0.75)  # (1 - v)²
    0.0625
    """
    n, k = alpha + beta - 1.0, alpha - 1.0
    log_term = -divergence(k, beta, v, 1.0 - v)
    if k == 0.0:
        return exp(log_term)
    log_term += _remainder(n) - _remainder(k) - _remainder(beta)
    return exp(log_term) * math.sqrt(n / (2.0 * math.pi * k * beta)) * beta / _rate(k, beta, v)


@leaf
def _propose(alpha: float, beta: float, v: float, rng_state: UIntArray) -> float:
    """Draw a proposal x > v and return it; return v if it is rejected."""
    k, odds_against = alpha - 1.0, (1.0 - v) / v
    t = exponential(rng_state) / _rate(k, beta, v)
    step = odds_against * (t - exp_excess(-t))  # x/v - 1
    if k > 0.0 and exponential(rng_state) < k * (odds_against * t - log_one_plus(step)):
        return v
    return v + v * step


@leaf
def _propose_in_block(
    rows: FloatArray,
    cache: FloatArray,
    arms: tuple[int, int],
    best: int,
    v: float,
    e: float,
    rng_state: UIntArray,
) -> tuple[int, float, float]:
    """Make the proposals of the arms from the first to before the second of `arms`.

    `v` is V, the value of the arm `best`, and `e` is what is left of E. Return all three.
    """
    for j in range(arms[0], arms[1]):
        if cache[NU, j] <= e:
            e -= cache[NU, j]
        else:
            if v < 1.0 and e < -log_one_plus(-proposal_probability(rows[j, 0], rows[j, 1], v)):
                x = _propose(rows[j, 0], rows[j, 1], v, rng_state)
                if x > v:
                    best, v = j, x
            e = exponential(rng_state)
    return best, v, e


@inlined
def draw_action(rows: FloatArray, cache: FloatArray, leader: IntArray, rng_state: UIntArray) -> int:
    """Return arg max_j X_j over the active arms, with the same distribution as drawing all X_j.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows = np.array([[1.0, 999.0], [999.0, 1.0]])
    >>> cache, leader = np.empty((ROWS, 2)), np.empty(1, np.int64)
    >>> prepare(rows, np.arange(2), cache, leader)
    >>> draw_action(rows, cache, leader, Stream(1).state)
    1
    """
    if leader[0] < 0:
        _find_leader(cache, leader)
    best = leader[0]
    v, e = _beta(rng_state, cache, best), exponential(rng_state)
    for start in range(0, cache.shape[1], BLOCK):
        end, total = min(start + BLOCK, cache.shape[1]), 0.0
        for j in range(start, end):
            nu = _nu(cache, j, v)
            if nu > LEVEL and cache[INTERCEPT, j] == STALE:
                _fit_line(rows[j, 0], rows[j, 1], cache, j)
                nu = _nu(cache, j, v)
            if nu > LEVEL:
                x, nu = _beta(rng_state, cache, j), 0.0
                if x > v:
                    best, v = j, x
            cache[NU, j] = nu
            total += nu
        if total < e:
            e -= total
        else:
            best, v, e = _propose_in_block(rows, cache, (start, end), best, v, e, rng_state)
    return int(best)


class ScreenedArms(NamedTuple):
    """The posterior rows of all arms, their cache, and the leader."""

    rows: FloatArray
    cache: FloatArray
    leader: IntArray


@leaf
def interact(
    arms: ScreenedArms, truth: FloatArray, streams: Streams, actions: IntArray, rewards: FloatArray
) -> None:
    """Run the control rule over Bernoulli arms with screening; fill `actions` and `rewards`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> arms = ScreenedArms(np.ones((2, 2)), np.empty((ROWS, 2)), np.empty(1, np.int64))
    >>> prepare(arms.rows, np.arange(2), arms.cache, arms.leader)
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> interact(arms, np.array([[0.0], [1.0]]), streams, actions, rewards)
    >>> bool((rewards == actions).all())
    True
    """
    rows, cache, leader = arms
    p, q = streams
    for t in range(actions.size):
        a = draw_action(rows, cache, leader, p)
        r = bernoulli.respond(cache[MEAN], truth[a], q)  # which ignores its first argument
        learn(rows, cache, leader, a, r)
        actions[t], rewards[t] = a, r


# For calls from Python.
draw_direct = direct(draw_action, "draw_direct")
learn_direct = direct(learn, "learn_direct")
