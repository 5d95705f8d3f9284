"""The square-root form of regression is correct and accurate."""

import numpy as np
import pytest

from bayescontrol import Stream, kernels
from bayescontrol._arrays import FloatArray

K = kernels.regression


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
