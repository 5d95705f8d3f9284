"""Riccati and Lyapunov by doubling, compared with SciPy and, if installed, python-control."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels.riccati import lyapunov, riccati, room
from bayescontrol.lqr import PLANTS

Solver = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


def scipy_gain(A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray) -> FloatArray:
    P = solve_discrete_are(A, B, Q, R)
    return np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A))


def control_gain(A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray) -> FloatArray:
    control: Any = import_module("control")

    return np.asarray(control.dlqr(A, B, Q, R)[0])


SOLVERS: dict[str, Solver] = {"SciPy": scipy_gain}
if find_spec("control"):
    SOLVERS["python-control"] = control_gain


def ours(A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray) -> Any:
    n, m = B.shape
    P, K = np.empty((n, n)), np.empty((m, n))
    found = riccati(A, B, Q, R, P, K, room(n, m))
    return (P, K) if found else None


def plants(count: int) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Random plants, stable and unstable, whose solutions have moderate size; the seed is fixed."""
    rng = np.random.default_rng(3)
    found: list[Any] = []
    while len(found) < count:
        n, m = (int(k) for k in rng.integers(1, (6, 4)))
        A = rng.normal(size=(n, n)) * rng.choice([0.3, 1.0])
        B = rng.normal(size=(n, m))
        half, low = rng.normal(size=(n, n)), rng.normal(size=(m, m))
        Q, R = half @ half.T, low @ low.T + 0.1 * np.eye(m)
        if np.abs(solve_discrete_are(A, B, Q, R)).max() < 1e4:
            found.append((A, B, Q, R))
    return found


@pytest.mark.parametrize("solver", SOLVERS)
def test_gains_agree_with_the_reference_to_1e_9_on_random_plants(solver: str) -> None:
    for A, B, Q, R in plants(200):
        K, expected = ours(A, B, Q, R)[1], SOLVERS[solver](A, B, Q, R)
        assert np.abs(K - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PLANTS)
def test_gains_of_the_named_plants_agree_with_the_reference_to_1e_9(name: str, solver: str) -> None:
    s = PLANTS[name]()
    expected = SOLVERS[solver](s.A, s.B, s.Q, s.R)
    assert np.abs(s.K - expected).max() <= 1e-9 * np.abs(expected).max()


def test_the_solution_satisfies_its_equation_and_stabilises() -> None:
    for A, B, Q, R in plants(50):
        P, K = ours(A, B, Q, R)
        assert np.allclose(P, Q + A.T @ P @ (A - B @ K), rtol=1e-9, atol=1e-9)
        assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1.0
        assert np.linalg.eigvalsh(P)[0] >= -1e-9


@pytest.mark.parametrize(
    ("A", "B", "Q"),
    [
        (
            [[2.0, 0.0], [0.0, 0.5]],
            [[0.0], [1.0]],
            np.eye(2),
        ),  # the unstable mode is not controllable
        ([[1.0]], [[0.0]], [[1.0]]),  # marginally stable and not controllable
        ([[1.0]], [[1.0]], [[0.0]]),  # states cost nothing, so the best gain lets the state drift
        ([[2.0]], [[1.0]], [[0.0]]),  # the cheapest solution does not stabilise
    ],
)
def test_without_a_stabilising_solution_failure_is_reported(A: Any, B: Any, Q: Any) -> None:
    A, B, Q = (np.array(part, float) for part in (A, B, Q))
    assert ours(A, B, Q, np.eye(1)) is None


def test_a_plant_that_is_hard_to_control_is_solved() -> None:
    """|λ| = 1.001 behind an input of 1e-4: the gain is near 20, P near 2e5."""
    A, B, one = np.array([[1.001]]), np.array([[1e-4]]), np.eye(1)
    P, K = ours(A, B, one, one)
    assert abs(A - B @ K).item() < 1.0
    assert np.isclose(P.item(), solve_discrete_are(A, B, one, one).item(), rtol=1e-9)


def test_lyapunov_agrees_with_scipy_to_1e_9() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = int(rng.integers(1, 7))
        F = rng.normal(size=(n, n))
        F *= rng.uniform(0.1, 0.99) / np.abs(np.linalg.eigvals(F)).max()
        half = rng.normal(size=(n, n))
        P = np.empty((n, n))
        assert lyapunov(F, half @ half.T, P, room(n, 1))
        expected = solve_discrete_lyapunov(F.T, half @ half.T)
        assert np.abs(P - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("radius", [1.0, 1.0 + 1e-6, 3.0])
def test_lyapunov_has_no_solution_for_an_unstable_loop(radius: float) -> None:
    assert not lyapunov(radius * np.eye(2), np.eye(2), np.empty((2, 2)), room(2, 1))
