"""Kalman filters, compared with the joint Gaussian of all outputs, which needs no filter."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.bank import Bank, PlantMode

A, B, C = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[0.0], [0.5]]), np.array([[1.0, 0.0]])
W, V = 0.3 * np.eye(2), np.array([[0.5]])


def joint(start: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of (y_1, …, y_T) for given inputs, from x_0 ~ N(0, start)."""
    T = len(inputs)
    means, sigma, x, cross = [], start, np.zeros(2), V.item() * np.eye(T)
    for t in range(T):
        x, sigma = A @ x + B @ inputs[t], A @ sigma @ A.T + W
        means.append((C @ x).item())
        carried = sigma  # the covariance of x_s and x_t
        for s in range(t, T):
            cross[s, t] += (C @ carried @ C.T).item()
            cross[t, s] = cross[s, t]
            carried = A @ carried
    return np.array(means), cross


@pytest.mark.parametrize("start_noise", [None, np.zeros((2, 2)), np.diag([2.0, 1.0])])
def test_innovations_multiply_to_the_joint_density_of_all_outputs(start_noise: Any) -> None:
    mode: Any = PlantMode(
        (A, B, C), [[0.8, 1.4]], process_noise=W, sensor_noise=V, start_noise=start_noise
    )
    bank, rng = Bank([mode]), np.random.default_rng(0)
    belief, x = bank.belief(), bank.first_signals()
    inputs, outputs = rng.normal(size=(12, 1)), rng.normal(size=12)
    total = 0.0
    for u, y in zip(inputs, outputs, strict=True):
        total += belief.log_predictive(x, u, y)
        belief.observe(x, u, y)
    mean, cov = joint(mode.stationary[2] if start_noise is None else start_noise, inputs)
    assert total == pytest.approx(stats.multivariate_normal(mean, cov).logpdf(outputs), rel=1e-10)
