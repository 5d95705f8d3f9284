"""R-learning on the grid-world earns its known average reward."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol._arrays import FloatArray
from bayescontrol.baselines import RLearning
from bayescontrol.mdp import MDP, Maze

OPTIMUM = 0.36516191550


@pytest.fixture(scope="module")
def three_cups() -> MDP:
    return Maze("three-cups").mdp()


def last_rewards(mdp: MDP, C: float, steps: int, runs: int, **settings: Any) -> FloatArray:
    """Return the mean reward of the last 10,000 steps of each run."""
    means = []
    for run in range(runs):
        agent = RLearning.on(mdp, C=C, **settings)
        record = interact(agent, mdp.environment(), steps, run=run, seed=0)
        means.append(record.observations["reward"][-10_000:].mean())
    return np.array(means)


def test_little_exploration_ends_in_the_cup_cycle_and_more_often_leaves_it(
    three_cups: MDP,
) -> None:
    """150,000 steps, 10 runs. Of 100 other runs with C = 5, five were not in the cycle at the end.
    With C = 30 the mean was .286 ± .046. False-alarm rates are about 1e-3 each.
    """
    few, some = (last_rewards(three_cups, C, 150_000, 10) for C in (5.0, 30.0))
    assert (np.abs(few - 0.2225) < 0.008).sum() >= 7
    assert some.mean() > few.mean() + 0.01
    assert some.mean() < 0.97 * OPTIMUM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("C", "mean", "deviation"), [(5.0, 0.227, 0.021), (30.0, 0.308, 0.038), (200.0, 0.224, 0.021)]
)
def test_at_full_size_the_reward_agrees_with_reference_runs(
    three_cups: MDP, C: float, mean: float, deviation: float
) -> None:
    """500,000 steps, 100 runs, compared with 20 reference runs, within 4 standard errors.

    The false-alarm rate would be about 1e-4 each if the deviations were known. Few runs leave
    the cup cycle, so the deviation of 20 runs is unreliable; the larger of both is used.
    """
    ours = last_rewards(three_cups, C, 500_000, 100)
    spread = max(deviation, float(ours.std(ddof=1)))
    assert abs(ours.mean() - mean) < 4.0 * spread * math.sqrt(1 / 20 + 1 / 100)
    if C == 5.0:
        assert (np.abs(ours - 0.2225) < 0.008).mean() > 0.8


def test_rho_comes_near_the_average_reward(three_cups: MDP) -> None:
    """In 30 other runs the difference was .0006 ± .0030: the bound is 6 deviations away."""
    agent = RLearning.on(three_cups, C=5.0)
    record = interact(agent, three_cups.environment(), 100_000, seed=0)
    assert abs(agent.rho - record.observations["reward"][-10_000:].mean()) < 0.02


def test_the_learned_values_can_be_read() -> None:
    agent = RLearning(
        ["home", "away"], ["go", "stay"], allowed=lambda x: ["go", "stay"][: 1 + (x == "home")]
    )
    agent.observe("stay", (2.0, "home"))
    agent.observe("go", (0.0, "away"))
    assert agent.q_values("home") == {"go": 0.5 * (0.0 - 0.002), "stay": 1.0}
    assert agent.tried("home") == {"go": 1, "stay": 1}
    assert agent.tried("away") == {"go": 0}
    assert agent.q_values("away") == {"go": 0.0}
