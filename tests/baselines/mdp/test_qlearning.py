"""Q-learning finds the optimal policy of small problems, and optimism explores for it."""

import numpy as np
import pytest
from benchmarks.arena import BayesianQ

from bayescontrol import interact
from bayescontrol.baselines import QLearning
from bayescontrol.mdp import MDP, Maze, chain_mdp, policy_iteration, random_mdp


def discounted(mdp: MDP, gamma: float) -> np.ndarray:
    """Q* of the discounted problem, by value iteration."""
    Q = np.zeros(mdp.allowed.shape)
    for _ in range(2_000):
        Q = mdp.reward + gamma * mdp.transition @ Q.max(1)
    return Q


def test_values_converge_to_those_of_the_discounted_problem() -> None:
    """In 30 other runs the largest difference was .0058 ± .0020: the bound is 7 deviations away."""
    mdp = random_mdp(4, 2, seed=4)
    agent = QLearning.on(mdp, gamma=0.8, alpha=0.01, epsilon=1.0)
    interact(agent, mdp.environment(), 100_000, seed=0)
    ours = [[agent.q_values(x)[a] for a in mdp.actions] for x in mdp.states]
    np.testing.assert_allclose(ours, discounted(mdp, 0.8), rtol=0.0, atol=0.02)


def test_epsilon_decays_by_its_factor_at_every_step() -> None:
    mdp = chain_mdp(3)
    agent = QLearning.on(mdp, epsilon=0.5, decay=0.99)
    interact(agent, mdp.environment(), 100, seed=0)
    assert agent.epsilon == pytest.approx(0.5 * 0.99**100)


def test_optimistic_values_find_a_reward_that_random_play_rarely_finds() -> None:
    """Eight right actions in a row pay. With values of 0 play is random; optimism tries all."""
    mdp = chain_mdp(8, pays=1)
    pessimistic = QLearning.on(mdp, epsilon=0.1)
    optimistic = QLearning.on(mdp, gamma=0.9, epsilon=0.0, initial=1.0)
    earned = [
        interact(agent, mdp.environment(), 5_000, seed=0).observations["reward"][-800:].mean()
        for agent in (pessimistic, optimistic)
    ]
    assert earned[0] < 0.1 * policy_iteration(mdp).gain
    assert earned[1] == pytest.approx(policy_iteration(mdp).gain, rel=0.02)


def test_optimism_comes_near_the_optimum_on_the_grid_world() -> None:
    """30 other runs earned .3630 ± .0039, none less than .354: the bound is 6 deviations away."""
    mdp = Maze("three-cups").mdp()
    means = [
        interact(
            QLearning.on(mdp, gamma=0.95, epsilon=0.0, initial=30.0),
            mdp.environment(), 200_000, run=run, seed=0,
        ).observations["reward"][-20_000:].mean()
        for run in range(3)
    ]  # fmt: skip
    assert np.mean(means) > 0.93 * 0.3651619155


@pytest.mark.parametrize("selection", ["sampling", "vpi"])
def test_bayesian_q_learning_solves_two_states(selection: str) -> None:
    """Two states and two actions: working in the warm state pays 1.

    None of 200 other runs, with either selection rule, ended with less than .98.
    """
    mdp = MDP([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [0.0, 1.0]])
    for run in range(5):
        agent = BayesianQ.on(mdp, gamma=0.9, selection=selection)
        record = interact(agent, mdp.environment(), 3_000, run=run, seed=0)
        assert record.observations["reward"][-500:].mean() > 0.95
        assert agent.q_values(1)[1] > agent.q_values(1)[0]
        mu, kappa, alpha, _ = agent.belief(1, 1)
        assert 1.0 < mu < 10.0  # the mean of all past targets is still far from 1/(1-γ)
        assert alpha == 1.5 + 0.5 * (kappa - 1.0)
