"""Bernoulli arms: the posterior of the paper, against counting, a grid and exact fractions."""

import math

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, interact
from bayescontrol.bandits import Bernoulli
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, check_resume


def test_the_posterior_counts_pulls_with_and_without_reward() -> None:
    bandit = BernoulliBandit(4)
    agent = bandit.agent()
    record = interact(agent, bandit.environment([0.1, 0.5, 0.7, 0.8]), 500)
    for j, (alpha, beta) in enumerate(agent.belief.posterior()):
        rewards = record.observations[record.actions == j]
        assert alpha == 1 + rewards.sum()
        assert beta == 1 + (1 - rewards).sum()
    assert agent.belief.count == 500


def test_conjugate_and_grid_agree() -> None:
    """P(m | past) ∝ Π m^r (1-m)^(1-r) on 20,001 points, for a prior that is not whole."""
    rewards = [1, 0, 0, 1, 1, 1, 0, 1]
    belief = BernoulliBandit(1, prior=(2.5, 1.5)).belief()
    m = np.linspace(0.0, 1.0, 20_001)[1:-1]
    log_v = 1.5 * np.log(m) + 0.5 * np.log1p(-m)
    for t, o in enumerate(rewards):
        v = np.exp(log_v - log_v.max())
        v /= v.sum()
        assert belief.predictive(None, 0)[1] == pytest.approx(v @ m, abs=1e-6), t
        log_v += np.log(m if o else 1.0 - m)
        belief.observe(None, 0, o)
    v = np.exp(log_v - log_v.max())
    v /= v.sum()
    alpha, beta = belief.posterior()[0]
    n = alpha + beta
    assert v @ m == pytest.approx(alpha / n, abs=1e-6)
    assert v @ m**2 == pytest.approx(alpha * (alpha + 1) / (n * (n + 1)), abs=1e-6)


def test_exact_action_probabilities_are_the_known_fractions() -> None:
    agent = BernoulliBandit(["red", "blue"]).agent()
    assert agent.action_probabilities() == pytest.approx({"red": 0.5, "blue": 0.5}, abs=1e-12)
    agent.observe("red", 1)
    assert agent.action_probabilities()["red"] == pytest.approx(2 / 3, abs=1e-12)
    known = BernoulliBandit(2, prior=[(3, 2), (2, 3)]).agent()
    assert known.action_probabilities()[0] == pytest.approx(53 / 70, abs=1e-12)


def test_true_and_false_are_rewards_and_numpy_numbers_too() -> None:
    belief = BernoulliBandit(1).belief()
    for o in (True, np.int64(1), np.float32(1.0), np.bool_(True), 1.0):
        belief.observe(None, 0, o)
    assert belief.posterior().tolist() == [[6.0, 1.0]]


def test_an_informative_prior_for_each_arm() -> None:
    bandit = BernoulliBandit(["a", "b"], prior=[(1, 9), (30, 10)])
    assert bandit.belief().expected() == {"a": 0.1, "b": 0.75}
    assert bandit.prior.tolist() == [[1.0, 9.0], [30.0, 10.0]]


def test_predictions_of_extreme_posteriors_are_still_probabilities() -> None:
    family = Bernoulli()
    for row in ([1e-300, 1.0], [1e15, 1.0], [1e-5, 1e-5], [1e300, 1e-300]):
        p = family.predictive(np.array(row))
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-15)
        assert all(0.0 <= q <= 1.0 for q in p.values())
        assert math.isfinite(family.log_predictive(np.array(row), 0.0))


@pytest.mark.parametrize("screening", [True, False])
@pytest.mark.parametrize("arms", [1, 2, 10, 70])
def test_the_compiled_loop_is_the_readable_one_at_every_size(arms: int, screening: bool) -> None:
    bandit = BernoulliBandit(arms)
    world = bandit.draw(1)
    check_fused(lambda: bandit.agent(screening=screening), lambda: world, 300)
    check_resume(lambda: bandit.agent(screening=screening), lambda: world, 60)


def test_a_world_has_a_best_arm_and_pays_by_its_biases() -> None:
    world = BernoulliBandit(["red", "blue"]).environment([0.25, 1.0])
    rng = Stream(1)
    assert world.best == "blue"
    assert {world.respond("blue", rng) for _ in range(20)} == {1.0}
    assert repr(world) == "ArmsEnvironment(Bernoulli(), means red: 0.25, blue: 1)"
