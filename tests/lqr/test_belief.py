"""The belief over systems: batch regression, laws of conditioning, rejected draws."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol import Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    InvalidSystem,
    NotStabilisable,
)
from bayescontrol.lqr import (
    PLANTS,
    CostBelief,
    Costs,
    LinearPlant,
    LinearQuadratic,
    Measured,
    SystemBelief,
    SystemPrior,
    aircraft,
    double_integrator,
)
from bayescontrol.testing import check_bad_evidence, check_deterministic, check_save

MEAN = np.array([[0.3, -0.2, 0.1], [0.0, 0.5, 1.0]])
LAMBDA = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.7]])
PSI = np.array([[1.5, 0.2], [0.2, 0.8]])
PRIOR = SystemPrior(mean=MEAN, precision=LAMBDA, scatter=PSI, dof=5.0)
COSTS = Costs(np.eye(2), np.eye(1))


def history(steps: int, seed: int = 0) -> list[tuple[Any, Any, Any]]:
    system, rng = double_integrator(), Stream(seed)
    plant, events = LinearPlant(system), []
    for _ in range(steps):
        x, u = plant.x, -system.K @ plant.x + np.array([rng.normal()])
        events.append((x, u, plant.respond(u, rng)))
    return events


def make(**options: Any) -> SystemBelief:
    return SystemBelief(COSTS, prior=PRIOR, **options)


def learned(events: Any, **options: Any) -> SystemBelief:
    belief = make(**options)
    for x, u, y in events:
        belief.observe(x, u, y)
    return belief


def scatter(belief: Any) -> FloatArray:
    """Ψ = SᵀS of the inverse Wishart distribution."""
    S = belief.F[-belief.states :, -belief.states :]
    return np.asarray(S.T @ S)


def batch(Z: FloatArray, Y: FloatArray, prior: SystemPrior) -> Any:
    """Bayesian batch regression of Y on Z by lstsq: mean, precision and scatter."""
    n, d = Y.shape[1], Z.shape[1]
    M0, L0, P0 = (
        np.asarray(value) * (unit if np.ndim(value) == 0 else 1.0)
        for value, unit in (
            (prior.mean, np.ones((n, d))), (prior.precision, np.eye(d)), (prior.scatter, np.eye(n))
        )
    )  # fmt: skip
    root = np.linalg.cholesky(L0).T
    M = np.linalg.lstsq(np.vstack([root, Z]), np.vstack([root @ M0.T, Y]), rcond=None)[0].T
    E = Y - Z @ M.T
    return M, L0 + Z.T @ Z, P0 + E.T @ E + (M - M0) @ L0 @ (M - M0).T


def test_the_posterior_equals_batch_regression_to_1e_9() -> None:
    events = history(5000)
    belief = learned(events)
    Z = np.array([np.concatenate([x, u]) for x, u, _ in events])
    M, Lambda, Psi = batch(Z, np.array([y for *_, y in events]), PRIOR)
    assert np.abs(belief.mean() - M).max() <= 1e-9
    assert np.abs(belief.precision() / Lambda - 1.0).max() <= 1e-9
    assert np.abs(scatter(belief) - Psi).max() <= 1e-9 * np.abs(Psi).max()
    assert belief.nu == 5005.0


@pytest.mark.parametrize("name", PLANTS)
def test_the_posterior_of_a_run_equals_batch_regression_to_1e_9(name: str) -> None:
    """Includes transients: the first states may be a thousand times larger than later ones."""
    system = PLANTS[name]()
    agent, plant = LinearQuadratic.on(system, prior=SystemPrior()).agent(), LinearPlant(system)
    record = interact(agent, plant, 3000, seed=1)
    X = np.vstack([np.zeros(system.states), record.observations])
    Z = np.hstack([X[:-1], record.actions])
    M, Lambda, Psi = batch(Z, record.observations, SystemPrior())
    assert np.abs(agent.belief.mean() - M).max() <= 1e-9 * np.abs(M).max()
    scale = np.sqrt(np.outer(Lambda.diagonal(), Lambda.diagonal()))
    assert (np.abs(agent.belief.precision() - Lambda) / scale).max() <= 1e-9
    assert np.abs(scatter(agent.belief) - Psi).max() <= 1e-9 * np.abs(Psi).max()


def test_a_forgotten_update_is_detected() -> None:
    events = history(50)
    assert np.abs(learned(events).mean() - learned(events[1:]).mean()).max() > 1e-6


@pytest.mark.parametrize("noise", [None, np.array([[1.0, 0.3], [0.3, 2.0]])])
def test_the_product_of_predictions_does_not_depend_on_the_order(noise: Any) -> None:
    """The chain rule: Σ ln P(o_t | past) is the same for any order of the events."""
    events = history(30)
    totals = []
    for order in (events, events[::-1]):
        belief, total = make(noise=noise), 0.0
        for x, u, y in order:
            total += belief.log_predictive(x, u, y)
            belief.observe(x, u, y)
        totals.append(total)
    assert np.isclose(totals[0], totals[1], rtol=1e-9)


def test_predictions_agree_with_scipys_student_and_normal_distributions() -> None:
    events = history(20)
    unknown, known = learned(events), learned(events, noise=np.diag([1.0, 2.0]))
    x, u, y = np.array([1.0, -1.0]), np.array([0.5]), np.array([0.2, 0.1])
    z = np.concatenate([x, u])
    spread = 1.0 + z @ np.linalg.solve(unknown.precision(), z)
    mean, freedom = unknown.mean() @ z, unknown.nu - 1.0
    t = stats.multivariate_t(mean, scatter(unknown) * spread / freedom, df=freedom)
    assert np.isclose(unknown.log_predictive(x, u, y), t.logpdf(y))
    gaussian = stats.multivariate_normal(mean, np.diag([1.0, 2.0]) * spread)
    assert np.isclose(known.log_predictive(x, u, y), gaussian.logpdf(y))


def test_the_laws_of_conditioning_hold() -> None:
    events = history(20)
    check_deterministic(make, events)
    check_save(make, events)
    bad = [
        (np.array([np.nan, 0.0]), np.zeros(1), np.zeros(2)),
        (np.zeros(2), np.array([np.inf]), np.zeros(2)),
        (np.zeros(2), np.zeros(1), np.array([0.0, 1e200])),
        (np.zeros(3), np.zeros(1), np.zeros(2)),
        (np.zeros(2), np.zeros(2), np.zeros(2)),
        (np.zeros(2), np.zeros(1), "state"),
        (np.zeros(2), np.zeros(1), None),
    ]
    check_bad_evidence(make, events, bad)


def test_order_and_merging_do_not_change_the_posterior() -> None:
    events = history(200)
    order = Stream(3).permutation(len(events))
    whole, shuffled = learned(events), learned([events[i] for i in order])
    one, two = learned(events[::2]), learned(events[1::2])
    saved = two.posterior()
    one.merge(two)
    assert np.array_equal(saved, two.posterior())
    for other in (shuffled, one):
        assert np.allclose(other.posterior(), whole.posterior(), rtol=1e-10, atol=1e-12)
        assert np.allclose(scatter(other), scatter(whole), rtol=1e-10)
        assert other.nu == whole.nu


def test_beliefs_with_different_settings_do_not_merge() -> None:
    other_prior = SystemBelief(COSTS)
    other_costs = SystemBelief(Costs(2 * np.eye(2), np.eye(1)), prior=PRIOR)
    learning = SystemBelief(CostBelief(2, 1), prior=PRIOR)
    for other in (other_prior, other_costs, learning, make(noise=np.eye(2)), "no belief"):
        belief = make()
        before = belief.save()
        with pytest.raises(IncompatibleState):
            belief.merge(other)  # type: ignore[arg-type]
        assert all(np.array_equal(before[name], belief.save()[name]) for name in before)
    with pytest.raises(IncompatibleState, match="itself"):
        belief.merge(belief)


def test_a_copy_is_independent_and_keeps_the_drawn_mode() -> None:
    belief = make()
    mode = belief.sample(Stream(0))
    twin = belief.copy()
    twin.observe(*history(1)[0])
    assert belief.count == 0
    assert np.array_equal(belief.drawn, mode.K)
    assert np.array_equal(twin.drawn, mode.K)


def stable_only_belief(mean: float, tries: int = 100) -> SystemBelief:
    """States cost nothing, so that only stable systems have a stabilising gain."""
    prior = SystemPrior(mean=[[mean, 1.0]], precision=100.0)
    return SystemBelief(Costs(np.zeros((1, 1)), np.eye(1)), noise=[[1.0]], prior=prior, tries=tries)


def test_a_draw_without_a_stabilising_gain_is_redrawn_and_counted() -> None:
    """A ~ N(1, 0.1²): half of the draws fail; 5 deviations: false alarm 5e-7."""
    belief, rng = stable_only_belief(1.0), Stream(0)
    for _ in range(1000):
        mode = belief.sample(rng)
        assert abs(mode.A.item()) < 1.0
    assert abs(belief.redrawn - 1000) < 5 * np.sqrt(2 * 1000)


def test_too_many_failed_draws_raise_an_error() -> None:
    belief = stable_only_belief(3.0, tries=5)
    with pytest.raises(NotStabilisable, match="none of 5 systems"):
        belief.sample(Stream(0))
    assert belief.redrawn == 0
    assert belief.last() is None
    assert belief.certain() is None


def test_costs_that_are_not_definite_are_redrawn_and_counted() -> None:
    costs = CostBelief(2, 1, mean=0.5, deviation=1.0)
    belief = SystemBelief(costs, prior=PRIOR, tries=1000)
    rng, redrawn = Stream(0), 0
    for _ in range(200):
        mode = belief.sample(rng)
        assert np.linalg.eigvalsh(mode.Q)[0] > 0.0
        assert mode.R.item() > 0.0
        assert np.abs(np.linalg.eigvals(mode.A - mode.B @ mode.K)).max() < 1.0
        assert belief.redrawn >= redrawn
        redrawn = belief.redrawn
    assert redrawn > 100


def test_every_mode_stabilises_its_own_system() -> None:
    belief, rng = SystemBelief(aircraft().costs), Stream(0)
    for _ in range(300):
        mode = belief.sample(rng)
        assert np.abs(np.linalg.eigvals(mode.A - mode.B @ mode.K)).max() < 1.0


def test_unknown_costs_need_observations_with_a_cost() -> None:
    belief = SystemBelief(CostBelief(2, 1))
    with pytest.raises(BadEvidence, match="Measured"):
        belief.observe(np.zeros(2), np.zeros(1), np.zeros(2))
    assert belief.count == 0
    belief.observe(np.zeros(2), np.zeros(1), Measured((0.0, 0.0), 1.0))
    assert belief.count == 1


def test_the_error_for_a_nan_state_does_not_mention_divergence() -> None:
    belief = SystemBelief(COSTS)
    with pytest.raises(BadEvidence, match=r"the next state is .*with NaN at \[1\]") as raised:
        belief.observe(np.ones(2), np.ones(1), [0.0, np.nan])
    assert "diverged" not in str(raised.value)
    assert belief.count == 0


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        *(
            (lambda p=p: SystemBelief(COSTS, prior=SystemPrior(**p)), InvalidPrior, None)
            for p in (
                {"dof": 1.0}, {"precision": 0.0}, {"precision": [[1.0, 2.0], [2.0, 1.0]]},
                {"scatter": -1.0}, {"mean": [1.0, 2.0]},
            )
        ),
        *(
            (lambda n=n, v=v: SystemPrior(**{n: v}), InvalidPrior, n)
            for n in ("mean", "precision", "scatter", "dof") for v in (np.nan, np.inf)
        ),
        *(
            (lambda v=v: SystemPrior(precision=v), InvalidPrior, "precision")
            for v in ("much", None, [[np.nan]])
        ),
        (lambda: make(noise=np.diag([1.0, -1.0])), InvalidSystem, "the noise has the eigenvalue"),
        (lambda: SystemBelief(Costs(np.eye(2), -np.eye(1))), InvalidSystem, "R has the eigenvalue"),
        (lambda: make(tries=0), InvalidPrior, "tries"),
    ],
)  # fmt: skip
def test_an_invalid_prior_is_refused(wrong: Any, error: Any, words: str | None) -> None:
    with pytest.raises(error, match=words):
        wrong()
