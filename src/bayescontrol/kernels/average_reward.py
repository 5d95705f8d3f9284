"""Draw models of an MDP, and solve them for the average reward.

    draw       P(· | x,a) = γ_y / Σ γ,   γ_y ~ Gamma(α(x,a,y) + n(x,a,y))              (Dirichlet)
               μ(x,a) ~ N((m/S² + Σ_y w r̄)/λ, 1/λ),   w = 1/(T² + σ²/n),   λ = 1/S² + Σ_y w
               R(x,a,y) ~ N((μ/T² + n r̄/σ²)/λ, 1/λ),   λ = 1/T² + n/σ²
    evaluate   h(x) + ρ = r(x,π(x)) + (1-ε) Σ_y P(y | x,π(x)) h(y),   h(0) = 0
    improve    π(x) ← arg max_a r(x,a) + (1-ε) Σ_y P(y | x,a) h(y), until nothing improves
    bounds     min_x (T h - h)(x) ≤ ρ_π ≤ ρ* ≤ max_x (T h - h)(x),   T without ε

With probability ε the process restarts in state 0. So every policy has one recurrent class for
every model, and the loss is at most ε times the span of h. The result is the optimal policy of
the problem discounted by 1-ε. r(x,a) = -∞ marks an action that x does not offer.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import exp
from bayescontrol.kernels.random import exponential, gamma, normal
from bayescontrol.kernels.regression import dot


@leaf
def draw_row(
    alpha: FloatArray, n: FloatArray, p: FloatArray, e: FloatArray, rng: UIntArray
) -> None:
    """p ~ Dirichlet(α + n); 0, without a draw, where α + n = 0. `e` is scratch.

    A gamma of shape α < 1 is G U^(1/α) with G of shape α + 1. The powers are relative to the
    largest one, so that the row never underflows for small α.

    >>> from bayescontrol.seeding import Stream
    >>> p, e = np.empty(3), np.empty(3)
    >>> draw_row(np.array([1e-9, 0.0, 1e-9]), np.zeros(3), p, e, Stream(0).state)
    >>> float(p.sum()), float(p[1])
    (1.0, 0.0)
    """
    least = math.inf
    for y in range(p.size):
        shape = alpha[y] + n[y]
        if shape >= 1.0:
            p[y], e[y] = gamma(rng, shape), 0.0
        elif shape > 0.0:
            p[y] = gamma(rng, shape + 1.0)
            e[y] = exponential(rng) / shape
        else:
            p[y], e[y] = 0.0, math.inf
        least = min(least, e[y])
    total = 0.0
    for y in range(p.size):
        if e[y] > least:
            p[y] *= exp(least - e[y])
        total += p[y]
    if total > 0.0:
        p /= total


@jit
def draw_transitions(alpha: FloatArray, n: FloatArray, P: FloatArray, rng: UIntArray) -> None:
    """P(· | x,a) ~ Dirichlet(α(x,a,·) + n(x,a,·)) for every pair, into P; all are [x, a, y].

    >>> from bayescontrol.seeding import Stream
    >>> P = np.empty((2, 1, 2))
    >>> draw_transitions(np.ones((2, 1, 2)), np.array([[[1e12, 0.0]], [[0.0, 0.0]]]), P,
    ...                  Stream(0).state)
    >>> P[0].round(6), float(P[1].sum())
    (array([[1., 0.]]), 1.0)
    """
    scratch = np.empty(P.shape[2])
    for x in range(P.shape[0]):
        for a in range(P.shape[1]):
            draw_row(alpha[x, a], n[x, a], P[x, a], scratch, rng)


class RewardLevels(NamedTuple):
    """m, S², T² and σ²: the prior of the mean reward of a pair, and the two variances below it."""

    m: float
    pairs: float
    successors: float
    noise: float


@leaf
def draw_rewards(
    n: FloatArray, mean: FloatArray, level: RewardLevels, R: FloatArray, rng: UIntArray,
    spread: float = 1.0,
) -> None:  # fmt: skip
    """Draw μ(x,a), then R(x,a,y), for every pair, given n(x,a,y) and r̄(x,a,y), into R.

    All standard deviations are multiplied by `spread`.

    >>> from bayescontrol.seeding import Stream
    >>> n, mean, R = np.array([[[1e12, 0.0]]]), np.array([[[2.0, 0.0]]]), np.empty((1, 1, 2))
    >>> draw_rewards(n, mean, RewardLevels(7.0, 1.0, 1e-6, 1.0), R, Stream(0).state)
    >>> R.round(1)  # an unseen successor pays about as much as those that were seen
    array([[[2., 2.]]])
    """
    for x in range(R.shape[0]):
        for a in range(R.shape[1]):
            lam, total = 1.0 / level.pairs, level.m / level.pairs
            for y in range(R.shape[2]):
                if n[x, a, y] > 0.0:
                    w = 1.0 / (level.successors + level.noise / n[x, a, y])
                    lam += w
                    total += w * mean[x, a, y]
            mu = total / lam + spread * normal(rng) / math.sqrt(lam)
            for y in range(R.shape[2]):
                lam = 1.0 / level.successors + n[x, a, y] / level.noise
                total = mu / level.successors + n[x, a, y] * mean[x, a, y] / level.noise
                R[x, a, y] = total / lam + spread * normal(rng) / math.sqrt(lam)


@leaf
def expected_rewards(P: FloatArray, R: FloatArray, r: FloatArray) -> None:
    """r(x,a) = Σ_y P(y | x,a) R(x,a,y), into r.

    >>> r = np.empty((1, 1))
    >>> expected_rewards(np.array([[[0.5, 0.5]]]), np.array([[[1.0, 3.0]]]), r)
    >>> r
    array([[2.]])
    """
    for x in range(r.shape[0]):
        for a in range(r.shape[1]):
            r[x, a] = dot(P[x, a], R[x, a])


@leaf
def _eliminate(W: FloatArray) -> None:
    """Solve the square system in W, whose last column is the right-hand side, into that column."""
    size = W.shape[0]
    for i in range(size):
        pivot = i
        for k in range(i + 1, size):
            if abs(W[k, i]) > abs(W[pivot, i]):
                pivot = k
        if pivot != i:
            for j in range(i, size + 1):
                W[i, j], W[pivot, j] = W[pivot, j], W[i, j]
        inverse = 1.0 / W[i, i]
        for k in range(i + 1, size):
            f = W[k, i] * inverse
            if f != 0.0:
                for j in range(i + 1, size + 1):
                    W[k, j] -= f * W[i, j]
    for i in range(size - 1, -1, -1):
        value = W[i, size]
        for j in range(i + 1, size):
            value -= W[i, j] * W[j, size]
        W[i, size] = value / W[i, i]


@leaf
def _evaluate(
    P: FloatArray, r: FloatArray, keep: float, policy: IntArray, W: FloatArray, h: FloatArray
) -> float:
    """Return ρ of a policy and write its h; `keep` is 1 - ε, W is scratch.

    The column of state 0 is free for ρ, because h(0) = 0.
    """
    X = r.shape[0]
    for x in range(X):
        a = policy[x]
        for y in range(X):
            W[x, y] = -keep * P[x, a, y]
        W[x, x] += 1.0
        W[x, 0] = 1.0
        W[x, X] = r[x, a]
    _eliminate(W)
    for x in range(1, X):
        h[x] = W[x, X]
    h[0] = 0.0
    return float(W[0, X])


@leaf
def _improve(
    P: FloatArray, r: FloatArray, keep: float, slack: float, policy: IntArray, h: FloatArray
) -> bool:
    """Switch to actions that are better by more than the slack; return whether there were any.

    `keep` is 1 - ε.
    """
    changed = False
    for x in range(r.shape[0]):
        held = policy[x]
        best, top = held, r[x, held] + keep * dot(P[x, held], h) + slack
        for a in range(r.shape[1]):
            if a != held and r[x, a] > -math.inf:
                q = r[x, a] + keep * dot(P[x, a], h)
                if q > top:
                    best, top = a, q
        if best != held:
            policy[x] = best
            changed = True
    return changed


@jit
def solve_average_reward(
    P: FloatArray, r: FloatArray, epsilon: float, limit: int, policy: IntArray, h: FloatArray
) -> tuple[float, float, float]:
    """ρ and its bounds; the best policy and its h are written to `policy` and `h`.

    Tries at most `limit` policies; if these do not suffice, the bounds are wide.

    >>> P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]])
    >>> policy, h = np.empty(2, np.int64), np.empty(2)
    >>> r = np.array([[0.0, 0.0], [0.0, 1.0]])
    >>> rho, lower, upper = solve_average_reward(P, r, 1e-9, 100, policy, h)
    >>> policy, round(rho, 6), upper - lower < 1e-6
    (array([1, 1]), 1.0, True)
    """
    X, A = r.shape
    W = np.empty((X, X + 1))
    keep = 1.0 - epsilon
    for x in range(X):
        policy[x] = r[x].argmax()
    rho = 0.0
    for _ in range(limit):
        rho = _evaluate(P, r, keep, policy, W, h)
        low, high, largest = 0.0, 0.0, abs(rho)
        for x in range(X):
            low, high = min(low, h[x]), max(high, h[x])
            largest = max(largest, abs(r[x, policy[x]]))
        # A bound of the rounding error of h, which prevents cycling between policies.
        if not _improve(P, r, keep, 1e-11 * (largest + high - low), policy, h):
            break
    lower, upper = math.inf, -math.inf
    for x in range(X):
        top = -math.inf
        for a in range(A):
            if r[x, a] > -math.inf:
                top = max(top, r[x, a] + dot(P[x, a], h))
        lower, upper = min(lower, top - h[x]), max(upper, top - h[x])
    return rho, lower, upper
