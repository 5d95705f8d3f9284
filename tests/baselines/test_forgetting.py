"""Beliefs that forget, compared with the equations in dense matrices."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, LinearBandit, interact
from bayescontrol.baselines import ForgettingLinearBelief, ForgettingSystemBelief
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator

GAMMA = 0.9
PRIOR = (np.array([0.5, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))


def bandit() -> LinearBandit:
    return LinearBandit(["red", "blue"], features=2, sd=0.5, prior=PRIOR)


def test_contextual_arms_fade_as_in_the_equations() -> None:
    """Λ ← γ Λ + (1 - γ) Λ₀ for both arms, then + x xᵀ / σ² for the arm that was pulled."""
    belief, rng = ForgettingLinearBelief(bandit(), forgetting=GAMMA), np.random.default_rng(0)
    mu0, lam0 = PRIOR
    lam, eta = dict.fromkeys(belief.labels, lam0), dict.fromkeys(belief.labels, lam0 @ mu0)
    for _ in range(60):
        x, arm, r = rng.normal(size=2), str(rng.choice(["red", "blue"])), float(rng.normal())
        belief.observe(x, arm, r)
        for a in lam:
            lam[a] = GAMMA * lam[a] + (1 - GAMMA) * lam0
            eta[a] = GAMMA * eta[a] + (1 - GAMMA) * (lam0 @ mu0)
        lam[arm] = lam[arm] + np.outer(x, x) / 0.25
        eta[arm] = eta[arm] + r * x / 0.25
    for a in lam:
        np.testing.assert_allclose(belief.precision(a), lam[a], rtol=1e-11)
        np.testing.assert_allclose(belief.mean(a), np.linalg.solve(lam[a], eta[a]), rtol=1e-10)


def test_a_plant_fades_as_in_the_equations() -> None:
    problem = LinearQuadratic(np.eye(2), [[1.0]], prior=SystemPrior(mean=0.3, precision=2.0))
    belief, rng = ForgettingSystemBelief(problem, forgetting=GAMMA), np.random.default_rng(1)
    F0 = problem.prior.factor(2, 1)
    gram, nu = F0.T @ F0, 4.0
    for _ in range(60):
        x, u, y = rng.normal(size=2), rng.normal(size=1), rng.normal(size=2)
        belief.observe(x, u, y)
        row = np.concatenate([x, u, y])
        gram = GAMMA * gram + (1 - GAMMA) * (F0.T @ F0) + np.outer(row, row)
        nu = GAMMA * nu + (1 - GAMMA) * 4.0 + 1.0
    np.testing.assert_allclose(belief.F.T @ belief.F, gram, rtol=1e-10, atol=1e-11)
    assert belief.nu == pytest.approx(nu, rel=1e-12)
    assert belief.count == 60


def test_with_the_factor_one_nothing_is_forgotten() -> None:
    """Same actions and rewards as the static rule, bit for bit, in both kinds of worlds."""
    problem = bandit()
    world = problem.environment([[1.0, 0.0], [0.0, 1.0]])
    static = problem.agent(start=world.start)
    forgetting = ControlRule(
        ForgettingLinearBelief(problem, forgetting=1.0), static.x, static.advance
    )
    records = [
        interact(
            agent, problem.environment([[1.0, 0.0], [0.0, 1.0]], start=world.start), 50, seed=2
        )
        for agent in (static, forgetting)
    ]
    assert list(records[0]) == list(records[1])
    system = double_integrator()
    plant = LinearQuadratic.on(system, prior=SystemPrior())
    agent = plant.agent()
    belief: Any = ForgettingSystemBelief(plant, forgetting=1.0)
    same = ControlRule(belief, agent.x, agent.advance)
    runs = [interact(one, LinearPlant(system), 50, seed=2) for one in (agent, same)]
    np.testing.assert_array_equal(runs[0].observations, runs[1].observations)


def test_bad_input_raises_and_changes_nothing() -> None:
    arms = ForgettingLinearBelief(bandit(), forgetting=GAMMA)
    arms.observe([1.0, 2.0], "red", 1.0)
    before = arms.posterior()
    with pytest.raises(BadEvidence):
        arms.observe([1.0, np.nan], "red", 1.0)
    with pytest.raises(BadEvidence):
        arms.observe([1.0, 2.0], "red", np.inf)
    np.testing.assert_array_equal(arms.posterior(), before)
    plant = ForgettingSystemBelief(LinearQuadratic([[1.0]], [[1.0]]), forgetting=GAMMA)
    with pytest.raises(BadEvidence):
        plant.observe([1.0], [0.0], [np.nan])
    assert plant.nu == 3.0
    for factor in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="forgetting"):
            ForgettingLinearBelief(bandit(), forgetting=factor)
    with pytest.raises(MissingCapability, match="known costs"):
        ForgettingSystemBelief(LinearQuadratic(costs={"states": 1, "inputs": 1}), forgetting=0.9)
    for belief in (arms, plant):
        with pytest.raises(IncompatibleState, match="fades"):
            belief.merge(belief.copy())
