"""Baseline controllers for a linear plant."""

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol.baselines import CertaintyEquivalence, OptimalController
from bayescontrol.errors import IncompatibleState, InvalidSystem, NotStabilisable
from bayescontrol.lqr import (
    Costs,
    LinearPlant,
    SystemBelief,
    SystemPrior,
    double_integrator,
    random_stable,
)
from bayescontrol.testing import check_resume, check_same_seed

SYSTEM = double_integrator()


def test_the_optimal_controller_has_the_optimal_cost() -> None:
    """20,000 steps; 5 standard errors of means over blocks of 200 steps."""
    plant = LinearPlant(SYSTEM)
    costs = plant.costs(interact(OptimalController(SYSTEM), plant, 20_000, seed=0)).reshape(
        100, 200
    )
    error = costs.mean(axis=1).std(ddof=1) / 10
    assert abs(costs.mean() - SYSTEM.best_cost) < 5 * error


def test_certainty_equivalence_uses_the_gain_of_the_mean() -> None:
    agent, plant = CertaintyEquivalence.on(SYSTEM, warm_up=20), LinearPlant(SYSTEM)
    interact(agent, plant, 50, seed=0)
    A, B = np.hsplit(agent.belief.mean(), [2])
    agent.act(Stream(0))
    assert agent.mode is not None
    assert np.allclose(agent.mode.A, A)
    assert np.allclose(agent.mode.B, B)


def test_a_mean_of_zero_never_excites_the_plant_and_learns_nothing() -> None:
    agent = CertaintyEquivalence.on(random_stable())
    record = interact(agent, LinearPlant(random_stable()), 200, seed=0)
    assert not record.actions.any()
    assert not agent.belief.mean()[:, 4:].any()


def test_exploration_decays_like_the_fourth_root() -> None:
    """With a fixed gain of 0 the inputs are pure exploration; 5 standard errors."""
    belief = SystemBelief(SYSTEM.costs, prior=SystemPrior(precision=1e12))
    agent = CertaintyEquivalence(belief, exploration=2.0)
    u = interact(agent, LinearPlant(SYSTEM), 20_000, seed=0).actions[:, 0]
    t = np.arange(1, 20_001)
    scaled = u / (2.0 * t**-0.25)
    assert abs(scaled.std() - 1.0) < 5 / np.sqrt(2 * 20_000)


def test_a_mean_without_a_gain_keeps_the_last_gain_and_is_counted() -> None:
    """States cost nothing, so a mean with |A| > 1 has no stabilising gain."""
    prior = SystemPrior(mean=[[0.5, 1.0]], precision=0.1)
    agent = CertaintyEquivalence(
        SystemBelief(Costs(np.zeros((1, 1)), np.eye(1)), prior=prior), exploration=1.0
    )
    p = Stream(0)
    agent.act(p)
    before = agent.mode
    for _ in range(30):
        agent.observe(np.zeros(1), 3.0 * agent.x + 1.0)
        agent.act(p)
    assert agent.failed > 0
    assert before is not None
    assert agent.mode is not None
    assert abs(agent.mode.A.item()) < 1.0


def test_without_any_gain_an_error_is_raised() -> None:
    prior = SystemPrior(mean=[[2.0, 0.0]], precision=1e6)
    agent = CertaintyEquivalence(SystemBelief(Costs(np.zeros((1, 1)), np.eye(1)), prior=prior))
    with pytest.raises(NotStabilisable, match="no gain is in use"):
        agent.act(Stream(0))


def test_runs_are_reproducible_and_can_be_resumed() -> None:
    def explorer() -> CertaintyEquivalence:
        agent: CertaintyEquivalence = CertaintyEquivalence.on(SYSTEM, exploration=1.0, warm_up=5)
        return agent

    check_same_seed(explorer, lambda: LinearPlant(SYSTEM))
    check_resume(explorer, lambda: LinearPlant(SYSTEM))
    check_resume(lambda: OptimalController(SYSTEM), lambda: LinearPlant(SYSTEM))


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InvalidSystem, match="exploration"):
        CertaintyEquivalence.on(SYSTEM, exploration=-1.0)
    with pytest.raises(InvalidSystem, match="warm_up"):
        CertaintyEquivalence.on(SYSTEM, warm_up=-1)
    with pytest.raises(InvalidSystem, match=r"gain has shape .* it must be a matrix 1 × 2"):
        OptimalController(SYSTEM, gain=[[1.0]])
    with pytest.raises(IncompatibleState, match="gain"):
        OptimalController(SYSTEM).load({"situation": np.zeros(2)})
