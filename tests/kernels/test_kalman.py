"""Kalman filters, compared with the joint Gaussian of all outputs, which needs no filter."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.bank import Bank, PlantMode
from bayescontrol.kernels import kalman

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


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
def test_filters_that_switch_with_a_hazard_are_mixed_as_by_the_table_of_this_hazard(
    prior: list[float],
) -> None:
    rng, n, p = np.random.default_rng(1), 2, 1
    roots = rng.normal(size=(3, n, n))
    sigma = (roots @ roots.transpose(0, 2, 1)).reshape(3, n * n)
    states = np.hstack([np.zeros((3, 1)), 10.0 * rng.normal(size=(3, 2 * p + n)), sigma])
    stays, leaves, back = np.array([0.5, 0.0, 0.1]), np.array([0.3, 0.0, 0.1]), np.array(prior)
    states[1] = np.nan  # this mode is ruled out, so it may have any state
    flow = np.diag(stays) + np.outer(leaves, back)
    mixed = kalman.mix_by_hazard(states, stays, leaves, back, 1 + 2 * p, n)
    assert np.allclose(mixed, kalman.mix(states, flow, 1 + 2 * p, n), rtol=1e-13, atol=0)
    for j in range(3):  # the mean and the covariance of the mixture, by definition
        used = np.flatnonzero(flow[:, j])
        w, x = flow[used, j] / flow[:, j].sum(), states[used, 3 : 3 + n]
        mean = w @ x
        spread = np.einsum("i,ij,ik->jk", w, x - mean, x - mean)
        assert mixed[j, 3 : 3 + n] == pytest.approx(mean, rel=1e-12)
        covariance = (w @ states[used, 3 + n :]).reshape(n, n) + spread
        assert mixed[j, 3 + n :] == pytest.approx(covariance.ravel(), rel=1e-12)


def test_a_filter_that_no_other_mode_leads_to_stays_as_it_is() -> None:
    states = np.array([[1.0, 0, 0, 0, 1], [1.0, 2, 2, 2, 1]])
    alone, none = np.array([1.0, 0.0]), np.zeros(2)
    for stays, leaves in ((np.array([0.5, 0.5]), none), (0.9 * alone, 0.1 * alone)):
        mixed = kalman.mix_by_hazard(states, stays, leaves, alone, 3, 1)
        assert mixed.tolist() == states.tolist()  # also that it is steady
