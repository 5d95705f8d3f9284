"""Systems and plants: exact costs compared with long simulations, and validation."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol.baselines import OptimalController
from bayescontrol.errors import InvalidSystem, NotStabilisable, UnknownAction
from bayescontrol.lqr import (
    PLANTS,
    LinearMode,
    LinearPlant,
    LinearSystem,
    aircraft,
    double_integrator,
    riccati,
)


@pytest.mark.parametrize("name", PLANTS)
def test_the_exact_cost_agrees_with_a_long_run(name: str) -> None:
    """500,000 steps in blocks; 5 standard errors of the block means: false alarm 1e-6."""
    system = PLANTS[name]()
    K = 0.9 * system.K if system.cost(0.9 * system.K) < 3 * system.best_cost else system.K
    plant, rng = LinearPlant(system), np.random.default_rng(0)
    F, noise = system.A - system.B @ K, rng.standard_normal((100, 500, system.states))
    x, total = np.zeros((100, system.states)), np.zeros(100)
    stage, V = system.Q + K.T @ system.R @ K, np.linalg.cholesky(system.W)
    for t in range(-500, 500):  # the first half is discarded
        if t >= 0:
            total += np.einsum("ri,ij,rj->r", x, stage, x)
        x = x @ F.T + noise[:, t % 500] @ V.T
    error = total.std(ddof=1) / 10
    assert abs(total.mean() - 500 * system.cost(K)) < 5 * error
    assert plant.system is system


def test_the_optimal_gain_has_the_least_cost() -> None:
    system, rng = aircraft(), np.random.default_rng(1)
    assert np.isclose(system.cost(system.K), system.best_cost, rtol=1e-12)
    for _ in range(50):
        assert system.cost(system.K + 1e-3 * rng.normal(size=(2, 4))) > system.best_cost


def test_responses_have_the_distribution_of_the_plant() -> None:
    """Mean and covariance of 20,000 responses; 5 standard errors."""
    system = LinearSystem(
        [[0.9, 0.2], [0.0, 0.5]], [[1.0], [2.0]], np.eye(2), [[1.0]], W=[[2.0, 0.5], [0.5, 1.0]]
    )
    rng, x, u = Stream(4), np.array([1.0, -2.0]), np.array([0.5])
    answers = np.array([LinearPlant(system, start=x).respond(u, rng) for _ in range(20_000)])
    assert np.abs(answers.mean(axis=0) - system.A @ x - system.B @ u).max() < 5 * np.sqrt(2 / 2e4)
    assert np.abs(np.cov(answers.T) - system.W).max() < 0.1


def test_costs_of_a_record_equal_those_of_its_steps() -> None:
    system = double_integrator()
    plant = LinearPlant(system, start=[1.0, 2.0])
    record = interact(OptimalController(system, start=[1.0, 2.0]), plant, 20, seed=0)
    states = np.vstack([[1.0, 2.0], record.observations[:-1]])
    expected = [system.costs.of(x, u) for x, u in zip(states, record.actions, strict=True)]
    assert np.allclose(plant.costs(record, start=[1.0, 2.0]), expected)
    observed = LinearPlant(system, start=[1.0, 2.0], cost_noise=0.0)
    record = interact(OptimalController(system, start=[1.0, 2.0]), observed, 20, seed=0)
    assert np.allclose(record.observations["cost"], expected)
    assert np.allclose(observed.costs(record, start=[1.0, 2.0]), expected)


def test_a_mode_predicts_the_behaviour_of_its_plant() -> None:
    system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]], W=[[4.0]])
    mode = LinearMode.of(system)
    z = (3.0 - 0.5 * 2.0 - 1.0) / 2.0
    expected = -0.5 * z**2 - np.log(2.0) - 0.5 * np.log(2 * np.pi)
    assert np.isclose(mode.log_likelihood(np.array([2.0]), np.ones(1), np.array([3.0])), expected)
    assert np.allclose(mode.W, system.W)


@pytest.mark.parametrize("u", [[np.nan], [1.0, 2.0], "push", [1e200], None])
def test_an_invalid_input_is_refused_and_changes_nothing(u: Any) -> None:
    plant, rng = LinearPlant(double_integrator()), Stream(0)
    before = plant.x, rng.copy()
    with pytest.raises(UnknownAction, match="the input"):
        plant.respond(u, rng)
    assert np.array_equal(plant.x, before[0])
    assert rng == before[1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A": [[1.0, 0.0]]}, "A has shape"),
        ({"A": [["a"]]}, "A: expected an array of numbers"),
        ({"B": [[1.0]]}, "B has shape"),
        ({"Q": [[1.0, 1.0], [0.0, 1.0]]}, "Q is not symmetric"),
        ({"Q": -np.eye(2)}, "Q has the eigenvalue -1"),
        ({"R": [[0.0]]}, "R has the eigenvalue 0"),
        ({"W": np.full((2, 2), np.nan)}, "W has an entry"),
        *(
            ({part: np.eye(2) * 1j}, f"{part}: expected an array of numbers .complex")
            for part in "ABQRW"
        ),
    ],
)
def test_invalid_matrices_are_refused(changed: Any, message: str) -> None:
    parts: Any = {"A": np.eye(2), "B": [[0.0], [1.0]], "Q": np.eye(2), "R": [[1.0]]}
    with pytest.raises(InvalidSystem, match=message):
        LinearSystem(**(parts | changed))
    for name, wrong in (("the start", {"start": [1.0]}), ("cost_noise", {"cost_noise": -1.0})):
        with pytest.raises(InvalidSystem, match=name):
            LinearPlant(double_integrator(), **wrong)


def test_a_plant_that_cannot_be_stabilised_raises_a_clear_error() -> None:
    system = LinearSystem([[2.0]], [[0.0]], [[1.0]], [[1.0]])
    with pytest.raises(NotStabilisable, match="modulus 2"):
        _ = system.K
    with pytest.raises(NotStabilisable):
        riccati([[1.0]], [[1.0]], [[0.0]], [[1.0]])
    assert system.cost([[0.0]]) == np.inf
