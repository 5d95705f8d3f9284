"""Kernels that draw and solve models, compared with certified planners and closed forms."""

import numpy as np
import pytest

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels.average_reward import (
    RewardLevels,
    draw_rewards,
    draw_transitions,
    solve_average_reward,
)
from bayescontrol.mdp import (
    MDP,
    Maze,
    chain_mdp,
    gain_and_bias,
    policy_iteration,
    random_mdp,
)
from bayescontrol.seeding import Stream


def solved(mdp: MDP, epsilon: float = 1e-6) -> tuple[float, float, float, IntArray]:
    policy, h = np.empty(len(mdp.states), np.int64), np.empty(len(mdp.states))
    r = np.where(mdp.allowed, mdp.reward, -np.inf)
    bounds = solve_average_reward(mdp.transition, r, epsilon, 200, policy, h)
    return *bounds, policy


def masked() -> MDP:
    """An MDP in which state 0 does not offer action 1, which would pay most."""
    may = np.array([[True, False], [True, True]])
    return MDP(np.full((2, 2, 2), 0.5), [[0.0, 9.0], [0.0, 1.0]], allowed=may)


PROBLEMS: dict[str, MDP] = {
    "three cups": Maze().mdp(),
    "periodic": chain_mdp(6),
    "one state": chain_mdp(1),
    "masked": masked(),
    **{f"random {i}": random_mdp(7, 3, concentration=0.1, seed=i) for i in range(5)},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_policy_is_optimal_and_the_bounds_hold(name: str) -> None:
    mdp = PROBLEMS[name]
    best = policy_iteration(mdp)
    rho, lower, upper, policy = solved(mdp)
    assert lower <= best.upper
    assert best.lower <= upper
    assert upper - lower < 1e-4
    assert rho == pytest.approx(best.gain, abs=1e-5)
    assert gain_and_bias(mdp, policy).gain == pytest.approx(best.gain, abs=1e-5)


def test_an_action_that_is_not_offered_is_never_taken() -> None:
    assert solved(masked())[3].tolist() == [0, 1]


def test_a_model_with_disconnected_parts_is_solved() -> None:
    # Two states without a path between them have different optima; the bounds contain both.
    apart = MDP(np.eye(2)[:, None, :].repeat(2, 1), [[0.0, 0.5], [1.0, 0.0]])
    rho, lower, upper, policy = solved(apart)
    assert np.isfinite(rho)
    assert policy.tolist() == [1, 0]
    assert lower <= 0.5
    assert upper >= 1.0


@pytest.mark.parametrize(
    "alpha", [[1.0, 1.0, 1.0], [0.02, 0.3, 5.0], [0.5, 0.0, 0.5], [1e-3, 2e-3, 1e-3]]
)
def test_rows_have_the_first_two_moments_of_a_dirichlet(alpha: list[float]) -> None:
    """20,000 draws; every mean within 5 standard errors: false alarm below 1e-5 for each α."""
    a = np.array(alpha)
    p = rows(a, 20_000)
    s = a.sum()
    for power, exact in ((1, a / s), (2, a * (a + 1) / (s * (s + 1)))):
        error = np.std(p**power, axis=0) / np.sqrt(len(p))
        assert (np.abs((p**power).mean(0) - exact) <= 5 * error + 1e-12).all()
    assert p.sum(1) == pytest.approx(1.0)
    assert (p[:, a == 0.0] == 0.0).all()


def test_rows_with_wrong_dirichlet_parameters_are_detected() -> None:
    """The test above with a planted bug: counts enter twice."""
    a = np.array([0.5, 0.5])
    p = rows(2 * a, 20_000)
    exact = a * (a + 1) / 2.0
    assert (np.abs((p**2).mean(0) - exact) > 5 * np.std(p**2, 0) / np.sqrt(len(p))).all()


def test_rows_sum_to_one_even_for_tiny_alpha() -> None:
    p = rows(np.full(4, 1e-12), 1_000)
    assert p.sum(1) == pytest.approx(1.0)
    assert (p.max(1) > 0.999).all()
    assert (np.bincount(p.argmax(1), minlength=4) > 180).all()  # 250 each; 5σ = 68


def rows(alpha: FloatArray, draws: int) -> FloatArray:
    P = np.empty((draws, 1, alpha.size))
    weights = np.broadcast_to(alpha, P.shape).copy()
    draw_transitions(weights, np.zeros(P.shape), P, Stream(3).state)
    return P[:, 0]


def test_drawn_rewards_have_the_posterior_mean_and_covariance() -> None:
    """The joint posterior of R(x,a,·) by linear algebra, for a prior covariance of S² + T² I.

    20,000 draws; within 5 standard errors, for 3 means and 6 covariances: false alarm below 1e-5.
    """
    n, mean = np.array([3.0, 1.0, 0.0]), np.array([2.0, -1.0, 0.0])
    level = RewardLevels(m=1.0, pairs=4.0, successors=0.5, noise=2.0)
    R = np.empty((20_000, 1, 3))
    counts, means = (np.tile(v, (20_000, 1, 1)) for v in (n, mean))
    draw_rewards(counts, means, level, R, Stream(1).state)
    prior = np.linalg.inv(level.pairs + level.successors * np.eye(3))
    cov = np.linalg.inv(prior + np.diag(n / level.noise))
    exact = cov @ (prior @ np.full(3, level.m) + n * mean / level.noise)
    drawn = R[:, 0]
    assert (np.abs(drawn.mean(0) - exact) < 5 * np.sqrt(np.diag(cov) / len(drawn))).all()
    error = np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / len(drawn))
    assert (np.abs(np.cov(drawn.T) - cov) < 5 * error).all()
