"""The oracle earns the optimal average reward."""

import math

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol.baselines import OptimalPolicy
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp import Maze, chain_mdp, policy_iteration, random_mdp
from bayescontrol.testing import check_resume, check_same_seed, same_bits


def test_it_earns_the_optimum_on_the_grid_world() -> None:
    """400,000 steps in 100 batches; 5 standard errors of their mean: false alarm below 1e-5."""
    mdp = Maze("three-cups").mdp()
    oracle = OptimalPolicy(mdp)
    rewards = interact(oracle, mdp.environment(), 400_000, seed=0).observations["reward"]
    batches = rewards.reshape(100, -1).mean(1)
    error = batches.std(ddof=1) / math.sqrt(100)
    assert abs(rewards.mean() - 0.3651619155) < 5.0 * error
    assert error < 0.002


def test_it_follows_its_policy_in_every_state() -> None:
    mdp = Maze("three-cups").mdp(named=True)
    oracle, world, (p, q) = OptimalPolicy(mdp), mdp.environment(), (Stream(1), Stream(2))
    for _ in range(200):
        a = oracle.act(p)
        assert a == mdp.actions[int(oracle.policy[mdp.states.place(world.x)])]
        oracle.observe(a, world.respond(a, q))
        assert oracle.x == world.x
    assert p == Stream(1)


def test_a_run_is_a_function_of_its_seed_and_can_be_resumed() -> None:
    mdp = random_mdp(5, 3, seed=1)
    check_same_seed(lambda: OptimalPolicy(mdp), mdp.environment, 100)
    check_resume(lambda: OptimalPolicy(mdp), mdp.environment, 100)


def test_bad_input_raises_and_changes_nothing() -> None:
    mdp = chain_mdp(3)
    oracle = OptimalPolicy(mdp, start=1)
    before = oracle.save()
    for a, o, error, words in [
        (0, (math.nan, 0), BadEvidence, "reward nan after action 0 in state 1"),
        (0, 1.0, BadEvidence, "expected \\(reward, state\\)"),
        (7, (0.0, 0), UnknownAction, "no action 7"),
        (0, (0.0, 9), UnknownState, "no state 9"),
    ]:
        with pytest.raises(error, match=words):
            oracle.observe(a, o)
        assert same_bits(before, oracle.save())
    for arrays in ({}, {**before, "x": np.array(9)}, {**before, "policy": 1 - before["policy"]}):
        with pytest.raises(IncompatibleState):
            oracle.load(arrays)
    with pytest.raises(ValueError, match="another MDP"):
        OptimalPolicy(mdp, plan=policy_iteration(chain_mdp(4)))
    assert (
        repr(oracle)
        == "OptimalPolicy(MDP(3 states, 2 actions, 6 transitions): gain 0.333333, in state 1)"
    )
