"""The agent pulls the arm with the highest index, and validates its input."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol._compiled import find_loop
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines import GittinsAgent, GittinsTable, gittins_index
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownArm
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, check_resume, check_same_seed, same_bits


@pytest.fixture(scope="module")
def table() -> GittinsTable:
    return GittinsTable(0.9, 30, cache=False)


def test_it_pulls_the_arm_with_the_highest_index(table: GittinsTable) -> None:
    agent, rng = GittinsAgent(3, table), np.random.default_rng(2)
    for _ in range(60):
        a, o = int(rng.integers(3)), int(rng.random() < 0.4)
        agent.observe(a, o)
        nu = agent.indices()
        best = max(nu.values())
        assert nu[agent.act(Stream(0))] == best
    assert agent.count == 60


def test_the_first_pull_is_random(table: GittinsTable) -> None:
    """90 first pulls miss one of three arms with probability 3 (2/3)^90 = 4e-16."""
    rng = Stream(3)
    assert {GittinsAgent(3, table).act(rng) for _ in range(90)} == {0, 1, 2}


def test_a_run_that_outgrows_the_table_goes_on() -> None:
    table = GittinsTable(0.9, 3, cache=False)
    agent, rng = GittinsAgent(2, table), Stream(4)
    for t in range(12):
        agent.observe(agent.act(rng), t % 3 == 0)
    assert max(agent.pulls.values()) > 3
    counts = agent.save()
    for j in range(2):
        r, f = int(counts["successes"][j]), int(counts["failures"][j])
        assert abs(agent.indices()[j] - gittins_index(1 + r, 1 + f, 0.9)) <= table.error


def test_runs_are_functions_of_their_seed_and_can_be_resumed(table: GittinsTable) -> None:
    bandit = BernoulliBandit(3)
    check_same_seed(lambda: GittinsAgent(3, table), lambda: bandit.draw(1))
    check_resume(lambda: GittinsAgent(3, table), lambda: bandit.draw(1))


def test_it_earns_as_much_as_optimal_play() -> None:
    """Two arms, γ = .5: by enumeration, following the indices earns the optimal discounted reward.

    The optimum is V(state) = max over arms, ten pulls deep.
    """
    table, depth, gamma = GittinsTable(0.5, 12, tolerance=1e-7, cache=False), 10, 0.5
    memo: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}

    def values(state: tuple[int, ...], left: int) -> tuple[float, float]:
        if left == 0:
            return 0.0, 0.0
        if (state, left) not in memo:
            q = []
            for j in (0, 2):
                mu = (state[j] + 1) / (state[j] + state[j + 1] + 2)
                win = tuple(x + (i == j) for i, x in enumerate(state))
                lose = tuple(x + (i == j + 1) for i, x in enumerate(state))
                w, x = values(win, left - 1), values(lose, left - 1)
                q.append([mu + gamma * (mu * w[k] + (1 - mu) * x[k]) for k in (0, 1)])
            index = 0 if table.index(*state[:2]) >= table.index(*state[2:]) else 1
            memo[state, left] = max(q[0][0], q[1][0]), q[index][1]
        return memo[state, left]

    best, ours = values((0, 0, 0, 0), depth)
    assert abs(best - ours) < 2.0 * gamma**depth


@pytest.mark.parametrize("pulls", [5, 400])
@pytest.mark.parametrize("arms", [3, ["red", "green", "blue"]])
def test_the_compiled_loop_equals_the_readable_one(arms: Any, pulls: int) -> None:
    """With five pulls the run outgrows the table, and the readable agent continues."""
    table = GittinsTable(0.9, pulls, cache=False)
    bandit = BernoulliBandit(arms)

    def make() -> GittinsAgent:
        return GittinsAgent(arms, table)

    def world() -> Any:
        return bandit.environment([0.2, 0.5, 0.45])

    assert find_loop(make(), world()) is not None
    check_fused(make, world, 60, seed=1)
    check_same_seed(make, world, 60, seed=1)


def test_bad_input_is_refused_and_changes_nothing(table: GittinsTable) -> None:
    agent = GittinsAgent(["red", "blue"], table)
    for o in (True, np.int64(1), 1.0, np.float64(1.0)):
        agent.observe("red", o)
    agent.act(Stream(1))
    saved = agent.save()
    assert saved["successes"].tolist() == [4.0, 0.0]
    for o in (2, -1, 0.5, math.nan, math.inf, "1", None, [1], np.array([1, 0])):
        with pytest.raises(BadEvidence, match="0 or 1"):
            agent.observe("red", o)
    with pytest.raises(UnknownArm, match="green"):
        agent.observe("green", 1)
    changes: list[dict[str, Any]] = [
        {"arms": np.array("['x', 'y']")},
        {"table": np.array("another")},
        {"successes": np.array([1.0])},
        {"failures": np.array([0.0, -1.0])},
        {"failures": np.array([0.0, 0.5])},
        {"failures": np.array([0.0, np.nan])},
        {"failures": np.array(["a", "b"])},
    ]
    for change in changes:
        with pytest.raises(IncompatibleState):
            agent.load(saved | change)
    with pytest.raises(IncompatibleState, match="lacks"):
        agent.load({"arms": np.array("[0, 1]")})
    assert same_bits(saved, agent.save())
    with pytest.raises(UnknownArm):
        GittinsAgent(0, table)
    with pytest.raises(ValueError, match="not a GittinsTable"):
        GittinsAgent(2, "table")  # type: ignore[arg-type]
