"""Kalman filters as private states, compared with the joint Gaussian; finite classes."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from scipy.linalg import solve_discrete_are  # type: ignore[import-untyped]

from bayescontrol import ControlRule, FiniteBelief, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem, NotStabilisable, UnknownAction
from bayescontrol.lqr import LinearSystem, OutputMode, OutputPlant, double_integrator
from bayescontrol.testing import check_modes, check_resume, check_same_seed

C, V = np.array([[1.0, 0.0]]), np.array([[0.5]])


def cart(push: float) -> OutputMode:
    system = LinearSystem(
        [[1.0, 0.5], [0.0, 1.0]], [[0.0], [push]], np.eye(2), [[1.0]], W=0.3 * np.eye(2)
    )
    return OutputMode(system, C, V, name=f"push {push:g}")


MODES = [cart(push) for push in (-1.0, 0.5, 1.0)]


def joint(mode: OutputMode, start: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of (y_1, …, y_T) for given inputs, computed without a filter."""
    A, B, W = mode.system.A, mode.system.B, mode.system.W
    n, T = len(A), len(inputs)
    mean, m = [], np.zeros(n)
    cross = np.zeros((T, T))
    sigmas = [start]
    for t in range(T):
        m = A @ m + B @ inputs[t]
        mean.append(mode.C @ m)
        sigmas.append(A @ sigmas[-1] @ A.T + W)
    for t in range(T):
        carried = sigmas[t + 1]
        for s in range(t, T):
            cross[s, t] = cross[t, s] = (mode.C @ carried @ mode.C.T).item()
            carried = A @ carried
    return np.concatenate(mean), cross + mode.V.item() * np.eye(T)


@pytest.mark.parametrize("covariance", [None, np.zeros((2, 2)), np.diag([2.0, 1.0])])
def test_innovations_multiply_to_the_joint_density_of_all_outputs(covariance: Any) -> None:
    mode = OutputMode(MODES[1].system, C, V, covariance=covariance)
    rng = np.random.default_rng(0)
    inputs, outputs = rng.normal(size=(12, 1)), rng.normal(size=(12, 1))
    s, total = mode.start(), 0.0
    begun = s[:, 1:]
    for u, y in zip(inputs, outputs, strict=True):
        total += mode.log_likelihood(s, u, y)
        s = mode.advance(s, u, y)
    mean, cov = joint(mode, begun, inputs)
    assert np.isclose(total, stats.multivariate_normal(mean, cov).logpdf(outputs[:, 0]), rtol=1e-10)


def test_the_stationary_filter_agrees_with_scipy_and_is_a_fixed_point() -> None:
    mode = MODES[0]
    P = solve_discrete_are(mode.system.A.T, C.T, mode.system.W, V)
    L = P @ C.T / (C @ P @ C.T + V)
    assert np.allclose(mode.L, L, rtol=1e-9)
    s = mode.start()
    after = mode.advance(s, np.zeros(1), np.zeros(1))
    assert np.allclose(after[:, 1:], s[:, 1:], rtol=1e-10)


def test_every_start_converges_to_the_stationary_filter() -> None:
    mode = OutputMode(MODES[0].system, C, V, covariance=np.diag([50.0, 50.0]))
    s = mode.start()
    for _ in range(200):
        s = mode.advance(s, np.zeros(1), np.zeros(1))
    assert np.allclose(s[:, 1:], mode.covariance, rtol=1e-9)


def test_the_laws_hold_for_filters_as_private_states() -> None:
    """All modes know the start of the plant. The false-alarm rate over seeds is 1e-6."""
    modes = [
        OutputMode(mode.system, C, V, covariance=np.zeros((2, 2)), name=mode.name) for mode in MODES
    ]
    check_modes(
        modes,
        environment=lambda m: modes[m].environment(),
        bad=(np.array([np.nan]), np.zeros(2)),
        steps=25,
        runs=300,
    )


def test_the_agent_identifies_its_plant_and_reaches_the_cost_of_lqg() -> None:
    """30 runs; the mean cost is within 5 standard errors of LQG's with the same random numbers."""
    truth, gaps = MODES[2], []
    for run in range(30):
        agent: Any = ControlRule(FiniteBelief(MODES))
        record = interact(agent, truth.environment(), 200, run=run, seed=0)
        assert agent.belief.posterior()[2] > 0.9
        single = interact(
            ControlRule(FiniteBelief([truth])), truth.environment(), 200, run=run, seed=0
        )
        late = [float((r.observations[100:] ** 2).sum()) for r in (record, single)]
        gaps.append(late[0] - late[1])
    assert abs(np.mean(gaps)) <= 5 * np.std(gaps, ddof=1) / np.sqrt(30) + 1e-9


def test_runs_are_reproducible_and_can_be_resumed() -> None:
    def make() -> Any:
        return ControlRule(FiniteBelief(MODES))

    check_same_seed(make, MODES[1].environment)
    check_resume(make, MODES[1].environment, 60)


def test_invalid_arguments_are_refused() -> None:
    mode = MODES[0]
    with pytest.raises(BadEvidence, match="the output"):
        mode.log_likelihood(mode.start(), np.zeros(1), np.zeros(2))
    with pytest.raises(UnknownAction, match="the input"):
        mode.environment().respond(np.zeros(2), Stream(0))
    with pytest.raises(InvalidSystem, match="C has shape"):
        OutputMode(mode.system, [[1.0]], V)
    with pytest.raises(InvalidSystem, match="V has the eigenvalue"):
        OutputMode(mode.system, C, [[0.0]])
    with pytest.raises(InvalidSystem, match="the start"):
        OutputPlant(mode.system, C, V, start=[1.0])
    with pytest.raises(NotStabilisable, match="no stable filter"):
        OutputMode(double_integrator(), [[0.0, 1.0]], V)
