"""Links, contexts, the mode of a logistic score, and its moments."""

import math

import numpy as np
import pytest

from bayescontrol import Stream, kernels
from bayescontrol._arrays import FloatArray

K = kernels.regression


def moments(s: float, q: float) -> tuple[float, float]:
    """Mean and variance of t ∝ σ(t) N(t; s, q) by brute force: 40,001 nodes of t = sinh u."""
    mode, sd = K.margin(s, q), math.sqrt(q)
    u = np.linspace(math.asinh(mode - 12 * sd), math.asinh(mode + 12 * sd), 40_001)
    t = np.sinh(u)
    d = t - mode
    log_p = -np.logaddexp(0.0, -t) - d * (d + 2 * (mode - s)) / (2 * q)
    p = np.exp(log_p - log_p.max()) * np.cosh(u)
    p /= p.sum()
    mean = float(p @ t)
    return mean, float(p @ (t - mean) ** 2)


@pytest.mark.parametrize("q", [1e-4, 0.3, 0.99, 1.01, 5.0, 100.0, 1e4, 1e12])
@pytest.mark.parametrize("at", [-5.0, -3.0, -1.0, -0.2, 0.0, 0.5, 1.0, 3.0, 5.0])
def test_the_moments_of_a_score_equal_those_of_brute_force(q: float, at: float) -> None:
    for s in (at, at * math.sqrt(q), (at - 5.0) * q / 10):
        mean, _, precision = K.match_moments(s, q)
        right_mean, variance = moments(s, q)
        accuracy = 1e-10 if q <= 1e4 else 1e-9  # of brute force, which sums doubles
        assert abs(mean - right_mean) <= accuracy * math.sqrt(variance)
        assert 1.0 / (1.0 / q + precision) == pytest.approx(variance, rel=accuracy)


@pytest.mark.parametrize("q", [1e-6, 0.1, 1.0, 1.5, 30.0, 1e4])
@pytest.mark.parametrize("s", [-20.0, -2.0, 0.0, 0.7, 6.0])
def test_the_moments_after_a_reward_average_to_those_before(s: float, q: float) -> None:
    p = [K.mean_sigmoid(sign * s, q) for sign in (1.0, -1.0)]
    after = [K.match_moments(sign * s, q) for sign in (1.0, -1.0)]
    means = np.array([after[0][0], -after[1][0]])
    variances = np.array([1.0 / (1.0 / q + precision) for _, _, precision in after])
    assert np.dot(p, means) == pytest.approx(s, abs=1e-9 * (1.0 + math.sqrt(q)))
    assert np.dot(p, variances + (means - s) ** 2) == pytest.approx(q, rel=1e-9)


def test_the_moments_are_finite_and_the_precision_never_falls() -> None:
    for q in (0.0, 1e-300, 1e-11, 1e-9, 0.5, 1.0, 2.0, 1e3, 1e6, 1e12, 1e100):
        sd = math.sqrt(q)
        for size in (0.0, 1e-9, 1.0, 38.0, 45.0, 300.0, 1e6, 1e50, 8.9 * sd + 40, 9.1 * sd + 40, q):
            for s in (size, -size, -q - size):
                mean, slope, precision = K.match_moments(s, q)
                assert s - 1e-9 * abs(s) <= mean <= (s + q) + 1e-9 * (abs(s) + q)
                assert 0.0 <= slope <= 1.0 + 1e-12
                assert 0.0 <= precision < math.inf


@pytest.mark.parametrize("r", [0.0, 1.0])
def test_learning_by_moments_gives_the_score_its_exact_mean_and_variance(r: float) -> None:
    rng, d = np.random.default_rng(4), 3
    A, x, R, v = rng.normal(size=(d, d)), rng.normal(size=d), np.empty((d, d)), np.empty(d)
    K.cholesky(A @ A.T + np.eye(d), R)
    z = rng.normal(size=d)
    s, q = K.score(R, z, x, v)
    K.learn(K.LOGISTIC, np.empty(0), R, z, x, r, v)
    sign = 1.0 if r else -1.0
    mean, variance = moments(sign * s, q)
    np.testing.assert_allclose(K.score(R, z, x, v), (sign * mean, variance), rtol=1e-11)


@pytest.mark.parametrize("s", [-600.0, -30.0, -1.0, 0.0, 2.5, 40.0, 700.0])
@pytest.mark.parametrize("q", [1e-12, 0.1, 1.0, 30.0, 1e4, 1e8])
def test_the_mode_of_a_score_solves_its_equation(s: float, q: float) -> None:
    t = K.margin(s, q)
    assert s <= t <= s + q
    g = K.sigmoid(-t)
    # The residual is due to rounding of the terms, and of t through the slope.
    assert abs(t - s - q * g) <= 1e-15 * (abs(s) + q * g + (1 + abs(t)) * (1 + q * g * (1 - g)))


def test_an_almost_impossible_reward_leaves_finite_values() -> None:
    R, z, v = np.eye(1), np.array([-5000.0]), np.empty(1)
    K.learn(K.LOGISTIC, np.empty(0), R, z, np.ones(1), 1.0, v)
    assert np.isfinite(R).all()
    assert z[0] / R[0, 0] == pytest.approx(-4999.0)


def test_contexts_follow_their_distribution() -> None:
    """Means and variances of 20,000 contexts, |z| ≤ 5: false alarms below 1e-5."""
    n, d, rng = 20_000, 4, Stream(7)
    for kind, variance in ((K.NORMAL, 1.0), (K.SPHERE, 1 / d)):
        X = np.empty((n, d))
        for row in X:
            K.draw_context(kind, row, rng.state)
        assert np.abs(X.mean(0)).max() <= 5 * np.sqrt(variance / n)
        assert np.abs((X * X).mean(0) - variance).max() <= 5 * variance * np.sqrt(2 / n)
        if kind == K.SPHERE:
            np.testing.assert_allclose((X * X).sum(1), 1.0, rtol=1e-12)


def test_rewards_follow_their_distribution() -> None:
    """Share of ones among 20,000, |z| ≤ 5: a false alarm in 6e-7 of seeds."""
    rng, w, x = Stream(8), np.array([1.0, -1.0]), np.array([0.5, -0.2])
    n, p = 20_000, K.sigmoid(0.7)
    ones = sum(K.respond(K.LOGISTIC, np.empty(0), w, x, rng.state) for _ in range(n))
    assert abs(ones / n - p) <= 5 * np.sqrt(p * (1 - p) / n)
    r = [K.respond(K.GAUSSIAN, np.array([2.0]), w, x, rng.state) for _ in range(n)]
    assert abs(np.mean(r) - 0.7) <= 5 * 2 / np.sqrt(n)
    assert abs(np.var(r) / 4 - 1) <= 5 * np.sqrt(2 / n)


# -- the square-root form -------------------------------------------------------------------------


def random_precision(d: int, seed: int) -> FloatArray:
    A = np.random.default_rng(seed).normal(size=(d + 2, d))
    return np.asarray(A.T @ A + 0.1 * np.eye(d))


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_the_factor_equals_numpys_cholesky_factor(d: int) -> None:
    Lambda, R = random_precision(d, d), np.empty((d, d))
    assert K.cholesky(Lambda, R)
    np.testing.assert_allclose(R, np.linalg.cholesky(Lambda).T, rtol=1e-9, atol=1e-9)
    assert not np.tril(R, -1).any()


def test_a_matrix_that_is_not_positive_definite_is_reported() -> None:
    R = np.empty((2, 2))
    for bad in ([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [[np.nan, 0], [0, 1]]):
        assert not K.cholesky(np.array(bad), R)


@pytest.mark.parametrize("d", [1, 3, 20])
def test_rotations_add_the_evidence_of_a_row(d: int) -> None:
    rng = np.random.default_rng(d)
    Lambda, mu = random_precision(d, d), rng.normal(size=d)
    R, v = np.empty((d, d)), np.empty(d)
    K.cholesky(Lambda, R)
    z, shift = R @ mu, Lambda @ mu
    s = 0.7
    for x, r in zip(rng.normal(size=(50, d)), rng.normal(size=50), strict=True):
        K.absorb(R, z, x, s, s * r, v)
        Lambda, shift = Lambda + s * s * np.outer(x, x), shift + s * s * r * x
    np.testing.assert_allclose(R.T @ R, Lambda, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(R.T @ z, shift, rtol=1e-11, atol=1e-11)
    w = np.empty(d)
    K.solve_upper(R, z, w)
    np.testing.assert_allclose(w, np.linalg.solve(Lambda, shift), rtol=1e-10, atol=1e-10)
    x = rng.normal(size=d)
    mean, variance = K.score(R, z, x, v)
    assert mean == pytest.approx(x @ w, rel=1e-9, abs=1e-9)
    assert variance == pytest.approx(x @ np.linalg.solve(Lambda, x), rel=1e-10)


def test_nearly_equal_rows_do_not_lose_precision_in_other_directions() -> None:
    """Nothing is learned along (1, -1); an updated covariance would lose the precision of 1e-6."""
    R, z, v = 1e-3 * np.eye(2), np.zeros(2), np.empty(2)
    x = np.array([1.0, 1.0])
    for _ in range(100_000):
        K.absorb(R, z, x, 1e3, 1e3, v)
    _, variance = K.score(R, z, np.array([1.0, -1.0]), v)
    assert variance == pytest.approx(2e6, rel=1e-3)


def test_weights_are_drawn_from_the_posterior() -> None:
    """Means and covariances of 40,000 draws: |z| ≤ 5 each, false alarms 3e-6."""
    d, n = 3, 40_000
    Lambda, mu, rng = random_precision(d, 5), np.array([1.0, -2.0, 0.5]), Stream(3)
    R, w = np.empty((d, d)), np.empty((n, d))
    K.cholesky(Lambda, R)
    for row in w:
        K.draw_weights(R, R @ mu, np.empty(d), row, rng.state)
    white = (w - mu) @ R.T
    assert np.abs(white.mean(0)).max() * np.sqrt(n) <= 5
    second = white.T @ white / n - np.eye(d)
    assert np.abs(second).max() * np.sqrt(n / 2) <= 5
    # Planted bug: solving with the wrong triangle gives the wrong covariance.
    wrong = (w - mu) @ R
    assert np.abs(wrong.T @ wrong / n - np.eye(d)).max() * np.sqrt(n / 2) > 5
