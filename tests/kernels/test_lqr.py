"""Matrix normal and inverse Wishart draws, compared with their moments and SciPy."""

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol.kernels.lqr import draw_noise, draw_system, growth, mean_noise
from bayescontrol.lqr import SystemPrior
from bayescontrol.seeding import Stream

N, M = 3, 2
PSI = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])
LAMBDA = np.array(
    [
        [3.0, 1.0, 0.0, 0.2, 0.0],
        [1.0, 2.0, 0.0, 0.0, 0.3],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.2, 0.0, 0.0, 4.0, 1.0],
        [0.0, 0.3, 0.0, 1.0, 2.0],
    ]
)
MEAN = np.arange(15.0).reshape(3, 5) / 10
F = SystemPrior(mean=MEAN, precision=LAMBDA, scatter=PSI, dof=8.0).factor(N, M)


def test_drawn_noise_is_inverse_wishart() -> None:
    """Each diagonal entry of the whitened W⁻¹ is χ²: Kolmogorov-Smirnov, false alarm 1e-6 each."""
    rng, V = Stream(1), np.empty((N, N))
    draws = []
    for _ in range(4000):
        draw_noise(F, 8.0, V, rng.state)
        draws.append(V.T @ V)
    W = np.array(draws)
    assert np.allclose(W.mean(axis=0), PSI / (8.0 - N - 1), atol=0.12)
    for i, e in enumerate(np.eye(N)):  # Ψ_ii / W_ii ~ χ²(ν - n + 1)
        scaled = e @ PSI @ e / W[:, i, i]
        assert stats.kstest(scaled, stats.chi2(8.0 - N + 1).cdf).pvalue > 1e-6
    inverse = np.linalg.inv(W)
    corner = inverse[:, 0, 0] / np.linalg.inv(PSI)[0, 0]  # W⁻¹ is Wishart(Ψ⁻¹, ν)
    assert stats.kstest(corner, stats.chi2(8.0).cdf).pvalue > 1e-6


def test_drawn_systems_are_matrix_normal() -> None:
    """z-scores of random projections are standard normal; false alarm 1e-6 each."""
    rng, V = Stream(2), np.linalg.cholesky(PSI).T.copy()
    A, B = np.empty((N, N)), np.empty((N, M))
    draws = []
    for _ in range(4000):
        draw_system(F, V, A, B, rng.state)
        draws.append(np.hstack([A, B]))
    Theta, numbers = np.array(draws), np.random.default_rng(0)
    for _ in range(8):
        left, right = numbers.normal(size=N), numbers.normal(size=N + M)
        variance = (left @ PSI @ left) * (right @ np.linalg.solve(LAMBDA, right))
        z = ((Theta - MEAN) @ right @ left) / np.sqrt(variance)
        assert stats.kstest(z, "norm").pvalue > 1e-6


def test_the_mean_noise_and_the_growth_are_correct() -> None:
    V = np.empty((N, N))
    mean_noise(F, 8.0, V)
    assert np.allclose(V.T @ V, PSI / 4.0)
    R = np.asarray(np.linalg.cholesky(LAMBDA + np.eye(5)).T, np.float64)
    expected = np.linalg.det(LAMBDA + np.eye(5)) / np.linalg.det(LAMBDA)
    assert np.isclose(growth(R, F.diagonal()[:5].copy()), expected)
