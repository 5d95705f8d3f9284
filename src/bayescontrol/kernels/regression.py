"""Gaussian regression in square-root form: a triangular factor and a vector.

    w ~ N(μ, Λ⁻¹)          Λ = RᵀR,  R upper triangular,      z = R μ
    r = x·w + noise        (R, z) ← rotations of (R, z) with the row (s x, s r),  s = 1/σ
    x·w ~ N(v·z, |v|²)     v = R⁻ᵀ x: one substitution gives mean and variance
    w   = R⁻¹ (z + n)      n standard normal

Rotations (Golub & Van Loan, Matrix Computations, on updating a factorization) never subtract,
so the factor keeps its precision where an updated covariance loses it. `v` is scratch for d
numbers.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import HALF_LOG_2PI, exp, log
from bayescontrol.kernels.random import Streams, normal, uniform


@leaf
def cholesky(Lambda: FloatArray, R: FloatArray) -> bool:
    """Write the upper triangular R with RᵀR = Λ; return False if Λ is not positive definite.

    >>> R = np.empty((2, 2))
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]), R), R.tolist()
    (True, [[2.0, 1.0], [0.0, 1.0]])
    """
    d = Lambda.shape[0]
    for k in range(d):
        for i in range(d):
            R[k, i] = Lambda[k, i] if i >= k else 0.0
    for k in range(d):
        if not R[k, k] > 0.0:  # also if it is NaN
            return False
        R[k, k] = math.sqrt(R[k, k])
        for i in range(k + 1, d):
            R[k, i] /= R[k, k]
        for m in range(k + 1, d):
            for i in range(m, d):
                R[m, i] -= R[k, m] * R[k, i]
    return True


def factor(W: FloatArray) -> FloatArray:
    """Return V with VᵀV = W: the Cholesky factor, or from eigenvalues if W is singular."""
    V = np.empty_like(W)
    if cholesky(W, V):
        return V
    values, vectors = np.linalg.eigh(W)
    return np.ascontiguousarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


@leaf
def absorb(
    R: FloatArray, z: FloatArray, x: FloatArray, scale: float, rho: float, v: FloatArray
) -> tuple[float, float]:
    """RᵀR ← RᵀR + s² x xᵀ and Rᵀz ← Rᵀz + s ρ x, in place, by d rotations; s is `scale`.

    Return what the rotations leave of ρ, and the product of their cosines: the standardised error
    (ρ - s x·μ) / √(1 + q) of the prediction, and 1/√(1 + q), where q = s² xᵀ Λ⁻¹ x before.

    >>> R, z = np.eye(1), np.zeros(1)
    >>> error, shrinkage = absorb(R, z, np.array([2.0]), 1.0, 3.0, np.empty(1))
    >>> float((R[0, 0] ** 2).round(12)), float((R[0, 0] * z[0]).round(12))
    (5.0, 6.0)
    >>> round(error**2, 12), round(shrinkage**2, 12)
    (1.8, 0.2)
    """
    d, shrinkage = x.size, 1.0
    for i in range(d):
        v[i] = scale * x[i]
    for k in range(d):
        if v[k] != 0.0:
            length = math.sqrt(R[k, k] * R[k, k] + v[k] * v[k])
            c, s = R[k, k] / length, v[k] / length
            R[k, k] = length
            shrinkage *= c
            for i in range(k + 1, d):
                old = R[k, i]
                R[k, i] = c * old + s * v[i]
                v[i] = c * v[i] - s * old
            old = z[k]
            z[k] = c * old + s * rho
            rho = c * rho - s * old
    return rho, shrinkage


@leaf
def score(R: FloatArray, z: FloatArray, x: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Return mean and variance of x·w: v·z and |v|², where v = R⁻ᵀ x is written to `v`.

    >>> score(2.0 * np.eye(2), np.array([2.0, 0.0]), np.array([1.0, 1.0]), np.empty(2))
    (1.0, 0.5)
    """
    d = x.size
    for i in range(d):
        v[i] = x[i]
    mean, variance = 0.0, 0.0
    for k in range(d):
        t = v[k] / R[k, k]
        v[k] = t
        mean += t * z[k]
        variance += t * t
        for i in range(k + 1, d):
            v[i] -= R[k, i] * t
    return mean, variance


@leaf
def solve_upper(R: FloatArray, y: FloatArray, w: FloatArray) -> None:
    """Write w = R⁻¹ y; with y = z this is the posterior mean μ.

    >>> w = np.empty(2)
    >>> solve_upper(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([3.0, 4.0]), w)
    >>> w.tolist()
    [1.0, 2.0]
    """
    for k in range(y.size - 1, -1, -1):
        value = y[k]
        for i in range(k + 1, y.size):
            value -= R[k, i] * w[i]
        w[k] = value / R[k, k]


@leaf
def draw_weights(
    R: FloatArray, z: FloatArray, v: FloatArray, w: FloatArray, rng_state: UIntArray,
    scale: float = 1.0,
) -> None:  # fmt: skip
    """Draw w = R⁻¹ (z + s n) ~ N(μ, s² Λ⁻¹); v is scratch, s is `scale`.

    >>> from bayescontrol.seeding import Stream
    >>> w = np.empty(1)
    >>> draw_weights(1e9 * np.eye(1), 1e9 * np.ones(1), np.empty(1), w, Stream(1).state)
    >>> round(float(w[0]), 6)
    1.0
    """
    for i in range(z.size):
        v[i] = z[i] + scale * normal(rng_state)
    solve_upper(R, v, w)


@leaf
def dot(x: FloatArray, w: FloatArray) -> float:
    """Return x·w, summed from the left.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * w[i]
    return total


@leaf
def best(weights: FloatArray, x: FloatArray, rng_state: UIntArray) -> int:
    """Return arg max_j x·w_j over the rows of `weights`; ties are broken uniformly.

    >>> from bayescontrol.seeding import Stream
    >>> best(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.2, 0.7]), Stream(1).state)
    1
    """
    winner, best_score, ties = 0, dot(x, weights[0]), 1
    for j in range(1, weights.shape[0]):
        s = dot(x, weights[j])
        if s > best_score:
            winner, best_score, ties = j, s, 1
        elif s == best_score:
            ties += 1
            if uniform(rng_state) * ties < 1.0:
                winner = j
    return winner


# ------------------------------------------------------------------------------------------------
# The contextual bandit: draw scores, pull the best arm, learn from its reward.
#
#     GAUSSIAN    r = x·w_a + σ z                      exact posterior
#     LOGISTIC    r = 1 with probability σ(x·w_a)      moment matching at each reward
#
# R is (N, d, d) and z is (N, d) for N arms. The link is a number, because Numba cannot cache a
# kernel that takes another as an argument; `constants` holds the standard deviation σ.

#: How a reward depends on the score x·w, and how it is learned.
GAUSSIAN, LOGISTIC = range(2)
#: How contexts are drawn: each feature N(0, 1), or uniformly from the unit sphere.
NORMAL, SPHERE = range(2)

# Any curvature above zero gives the same mode; this one keeps 1/√h finite.
MIN_CURVATURE = 1e-200
# `match_moments`: below this variance the mode and its curvature are exact to 1e-10; densities
# below this one, relative to the mode, are omitted.
NARROW, NEGLIGIBLE = 1e-10, 1e-18


@leaf
def draw_action(
    R: FloatArray, z: FloatArray, active: IntArray, x: FloatArray, v: FloatArray,
    rng_state: UIntArray, scale: float = 1.0,
) -> int:  # fmt: skip
    """Draw the scores x·w_j of the active arms; return the arm with the largest score.

    The variances are in units of `scale`².

    Drawing only the scores is d times cheaper than drawing w. In the context 0 all scores are 0,
    and the tie is broken uniformly.

    >>> from bayescontrol.seeding import Stream
    >>> R, z = 100.0 * np.ones((2, 1, 1)), np.array([[0.0], [100.0]])
    >>> draw_action(R, z, np.arange(2), np.ones(1), np.empty(1), Stream(1).state)
    1
    """
    winner, best_score, ties = active[0], -math.inf, 1
    for k in range(active.size):
        j = active[k]
        mean, variance = score(R[j], z[j], x, v)
        s = mean + scale * math.sqrt(variance) * normal(rng_state)
        if s > best_score:
            winner, best_score, ties = j, s, 1
        elif s == best_score:
            ties += 1
            if uniform(rng_state) * ties < 1.0:
                winner = j
    return int(winner)


@leaf
def sigmoid(t: float) -> float:
    """Return σ(t) = 1 / (1 + e^-t).

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    return 1.0 / (1.0 + exp(-t))


@leaf
def margin(s: float, q: float) -> float:
    """Solve t = s + q σ(-t) for t, by Newton's method from 0.

    t is the mode of ln σ(t) - (t - s)² / 2q: a score N(s, q) after a success. The excess
    t - s - q σ(-t) increases in t, concave above 0 and convex below. So all steps have the same
    direction and none passes the root; a step back is due to rounding and ends the loop.

    >>> t = margin(0.5, 2.0)
    >>> abs(t - 0.5 - 2.0 * sigmoid(-t)) < 1e-14
    True
    """
    t = 0.0
    upward = s + 0.5 * q > 0.0
    while True:
        g = sigmoid(-t)
        new = t + (s + q * g - t) / (1.0 + q * g * (1.0 - g))
        if not (new > t if upward else new < t):
            return t
        t = new


@leaf
def match_moments(s: float, q: float) -> tuple[float, float, float]:
    """A score t ~ N(s, q) after a success: return E t, E σ(-t) and the precision it gained.

    The density is p(t) ∝ σ(t) exp(-(t - s)²/2q), with mode μ. By integration by parts

        E t = s + q E σ(-t)        1/Var t - 1/q = -Cov(t, σ(-t)) / Var t

    where all terms of -E[(t - μ)(σ(-t) - σ(-μ))] are positive. The integrals are sums at equal
    steps from μ (trapezoidal rule): of t if q ≤ 1, otherwise of u, t = sinh u, because σ changes
    within a few units around 0 and the Gaussian within √q. For q up to 1e12 the mean is within
    1e-10 standard deviations, the precision within 1e-10 of its value or within 1e-17/q. If q is
    tiny, or if σ is 1 or e^t everywhere that p is not negligible, the result is that of Laplace's
    approximation: the mode, its σ(-t) and its curvature. No function of libm is called but the
    square root, so that the bits are the same on every machine.

    >>> mean, slope, precision = match_moments(0.0, 1.0)
    >>> round(mean, 12) == round(slope, 12), round(1.0 / (1.0 + precision) + mean * mean, 12)
    (True, 1.0)
    """
    mode, sd = margin(s, q), math.sqrt(q)
    slope = sigmoid(-mode)
    curvature = slope * sigmoid(mode)
    if q <= NARROW or abs(mode) > 9.0 * sd + 40.0:
        return mode, slope, curvature
    # σ(t) / σ(μ) underflows if μ < 0: use σ(-t) / σ(-μ), and a factor e^(t-μ).
    sign = 1.0 if mode >= 0.0 else -1.0
    high, low = sigmoid(sign * mode), sigmoid(-sign * mode)
    root = math.sqrt(1.0 + mode * mode)
    first = root + mode if mode >= 0.0 else 1.0 / (root - mode)  # e^u at the mode
    step = 0.5 * sd
    if q > 1.0:
        step = min(0.12, 0.4 / (root * math.sqrt(1.0 / q + curvature)))
    total, d1, d2, g1, covariance = root if q > 1.0 else 1.0, 0.0, 0.0, 0.0, 0.0
    for direction in (-1.0, 1.0):
        ratio, w, d = exp(direction * step), first, 0.0
        while True:
            if q > 1.0:
                w *= ratio
                d, jacobian = 0.5 * (w - 1.0 / w) - mode, 0.5 * (w + 1.0 / w)
            else:
                d, jacobian = d + direction * step, 1.0
            t = sign * (mode + d)
            e = exp(-abs(t))
            above, below = 1.0 / (1.0 + e), e / (1.0 + e)  # σ(t), σ(-t)
            if t < 0.0:
                above, below = below, above
            p = exp(-0.5 * d * d / q - sign * low * d) * above / high
            if not p > NEGLIGIBLE:
                break
            p *= jacobian
            change = sign * (below - low)  # of σ(-t)
            total += p
            d1 += p * d
            d2 += p * d * d
            g1 += p * change
            covariance -= p * d * change
    d1, g1 = d1 / total, g1 / total
    gain = (covariance / total + d1 * g1) / (d2 / total - d1 * d1)
    return mode + d1, slope + g1, gain


@leaf
def mean_sigmoid(s: float, q: float) -> float:
    """E σ(t), t ~ N(s, q), to 14 digits, by the trapezoidal rule.

    σ is the distribution function of logistic noise u, so E σ(t) = E Φ((s - u) / √q). The integral
    is over u if t has the wider distribution, otherwise over t.

    >>> mean_sigmoid(0.0, 1.0), round(mean_sigmoid(1.0, 0.0), 12) == round(sigmoid(1.0), 12)
    (0.5, True)
    """
    sd, total, weights = math.sqrt(q), 0.0, 0.0
    # Nodes are ¼ apart: up to 9 standard deviations of t, or up to |u| = 40.
    if sd <= 1.0:
        for k in range(-36, 37):
            weight = exp(-k * k / 32.0)
            total += weight * sigmoid(s + sd * k / 4.0)
            weights += weight
    else:
        for k in range(-160, 161):
            weight = sigmoid(k / 4.0) * sigmoid(-k / 4.0)
            total += weight * 0.5 * math.erfc((k / 4.0 - s) / (sd * math.sqrt(2.0)))
            weights += weight
    return total / weights


@leaf
def log_predictive(kind: int, constants: FloatArray, s: float, q: float, r: float) -> float:
    """Return ln P(r) for a score N(s, q); a density if rewards are continuous.

    >>> round(exp(log_predictive(LOGISTIC, np.empty(0), 0.0, 1.0, 1.0)), 12)
    0.5
    """
    if kind == GAUSSIAN:
        variance = q + constants[0] * constants[0]
        return float(-0.5 * ((r - s) * (r - s) / variance + log(variance)) - HALF_LOG_2PI)
    return log(mean_sigmoid(s if r > 0.5 else -s, q))


@leaf
def learn(
    kind: int, constants: FloatArray, R: FloatArray, z: FloatArray, x: FloatArray, r: float,
    v: FloatArray,
) -> None:  # fmt: skip
    """Update the posterior after reward r in context x.

    LOGISTIC: the reward counts as a Gaussian one of η + (r - σ(η)) / h with variance 1/h; η and h
    are such that the score has the mean and the variance of `match_moments`.

    >>> R, z = np.eye(1), np.zeros(1)
    >>> learn(GAUSSIAN, np.array([0.5]), R, z, np.ones(1), 1.0, np.empty(1))
    >>> mean, variance = score(R, z, np.ones(1), np.empty(1))
    >>> round(mean, 12), round(variance, 12)
    (0.8, 0.2)
    """
    if kind == GAUSSIAN:
        absorb(R, z, x, 1.0 / constants[0], r / constants[0], v)
    else:
        s, q = score(R, z, x, v)
        sign = 1.0 if r > 0.5 else -1.0
        t, g, h = match_moments(sign * s, q)
        root = math.sqrt(max(h, MIN_CURVATURE))
        absorb(R, z, x, root, sign * (root * t + g / root), v)


@leaf
def respond(
    kind: int, constants: FloatArray, w: FloatArray, x: FloatArray, rng_state: UIntArray
) -> float:
    """Draw a reward in context x of the arm with weights w.

    >>> from bayescontrol.seeding import Stream
    >>> respond(LOGISTIC, np.empty(0), np.array([1000.0]), np.ones(1), Stream(1).state)
    1.0
    """
    if kind == GAUSSIAN:
        sd: float = constants[0]
        return dot(x, w) + sd * normal(rng_state)
    return 1.0 if uniform(rng_state) < sigmoid(dot(x, w)) else 0.0


@leaf
def draw_context(kind: int, x: FloatArray, rng_state: UIntArray) -> None:
    """Write a context to x: N(0, I), or uniform on the unit sphere.

    >>> from bayescontrol.seeding import Stream
    >>> x = np.empty(3)
    >>> draw_context(SPHERE, x, Stream(1).state)
    >>> round(float(x @ x), 12)
    1.0
    """
    for i in range(x.size):
        x[i] = normal(rng_state)
    if kind == SPHERE:
        x /= math.sqrt(dot(x, x))


class ArmWeights(NamedTuple):
    """The posterior of the weights of every arm: factors R and z, and the arms in play."""

    R: FloatArray
    z: FloatArray
    active: IntArray
    #: Scratch.
    v: FloatArray


class ContextWorld(NamedTuple):
    """The true weights, the source of contexts, NORMAL or SPHERE, and the current context y."""

    truth: FloatArray
    source: int
    y: FloatArray


@leaf
def interact(
    kind: int, constants: FloatArray, arms: ArmWeights, x: FloatArray, world: ContextWorld,
    streams: Streams, actions: IntArray, rewards: FloatArray, contexts: FloatArray,
    scale: float = 1.0,
) -> None:  # fmt: skip
    """Run the control rule with contexts; fill the columns.

    x is the context of the agent; it equals that of the world after a step. `scale` is that of
    `draw_action`.

    >>> from bayescontrol.seeding import Stream
    >>> R, z, truth = np.ones((2, 1, 1)), np.zeros((2, 1)), np.array([[1.0], [-1.0]])
    >>> actions, rewards, contexts = np.empty(99, np.int64), np.empty(99), np.empty((99, 1))
    >>> arms = ArmWeights(R, z, np.arange(2), np.empty(1))
    >>> world = ContextWorld(truth, NORMAL, np.zeros(1))
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> interact(GAUSSIAN, np.array([0.1]), arms, np.zeros(1), world, streams, actions, rewards,
    ...          contexts)
    >>> bool(rewards.mean() > 0.5)
    True
    """
    R, z, active, v = arms
    truth, source, y = world
    p, q = streams
    for t in range(actions.size):
        a = draw_action(R, z, active, x, v, p, scale)
        r = respond(kind, constants, truth[a], y, q)
        draw_context(source, y, q)
        learn(kind, constants, R[a], z[a], x, r, v)
        actions[t], rewards[t] = a, r
        for i in range(y.size):
            x[i] = y[i]
            contexts[t, i] = y[i]
