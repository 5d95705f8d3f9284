"""Links, contexts and the mode of a logistic score."""

import numpy as np
import pytest

from bayescontrol import Stream, kernels

K = kernels.regression


@pytest.mark.parametrize("s", [-600.0, -30.0, -1.0, 0.0, 2.5, 40.0, 700.0])
@pytest.mark.parametrize("q", [1e-12, 0.1, 1.0, 30.0, 1e4, 1e8])
def test_the_mode_of_a_score_solves_its_equation(s: float, q: float) -> None:
    t = K.margin(s, q)
    assert s <= t <= s + q
    g = K.sigmoid(-t)
    # The residual is due to rounding of the terms, and of t through the slope.
    assert abs(t - s - q * g) <= 1e-15 * (abs(s) + q * g + (1 + abs(t)) * (1 + q * g * (1 - g)))


@pytest.mark.parametrize("r", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.3, 5.0, 1e3])
def test_learning_a_logistic_reward_moves_to_the_mode_and_its_curvature(
    r: float, scale: float
) -> None:
    rng = np.random.default_rng(4)
    d = 3
    A = rng.normal(size=(d, d))
    Lambda, mu, x = A @ A.T + np.eye(d), rng.normal(size=d), scale * rng.normal(size=d)
    R, v, w = np.empty((d, d)), np.empty(d), np.empty(d)
    kernels.regression.cholesky(Lambda, R)
    z = R @ mu
    K.learn(K.LOGIT, np.empty(0), R, z, x, r, v)
    kernels.regression.solve_upper(R, z, w)
    p = K.sigmoid(float(x @ w))
    gradient = (r - p) * x - Lambda @ (w - mu)  # of ln P(r | w) + ln N(w; μ, Λ⁻¹)
    assert np.abs(gradient).max() <= 1e-9 * (1 + np.abs(Lambda @ mu).max() + np.abs(x).max())
    np.testing.assert_allclose(R.T @ R, Lambda + p * (1 - p) * np.outer(x, x), rtol=1e-7, atol=1e-9)


def test_an_almost_impossible_reward_leaves_finite_values() -> None:
    R, z, v = np.eye(1), np.array([-5000.0]), np.empty(1)
    K.learn(K.LOGIT, np.empty(0), R, z, np.ones(1), 1.0, v)
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
    ones = sum(K.respond(K.LOGIT, np.empty(0), w, x, rng.state) for _ in range(n))
    assert abs(ones / n - p) <= 5 * np.sqrt(p * (1 - p) / n)
    r = [K.respond(K.GAUSSIAN, np.array([2.0]), w, x, rng.state) for _ in range(n)]
    assert abs(np.mean(r) - 0.7) <= 5 * 2 / np.sqrt(n)
    assert abs(np.var(r) / 4 - 1) <= 5 * np.sqrt(2 / n)
