"""Modes from a set of MDPs, and grid-worlds that differ in their goal."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol._compiled import find_loop
from bayescontrol.convergence import Outcome, check
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable, NotCommunicating
from bayescontrol.mdp import (
    MDP,
    Maze,
    Step,
    chain_mdp,
    random_mdp,
    stationary_distribution,
)
from bayescontrol.mdp.modes import MDPModes, goal_cells, goal_worlds
from bayescontrol.record import Probe


def goals(side: int) -> list[MDP]:
    """Open squares, each with the goal in a different cell."""
    floor = "." * (side * side)
    maps = (floor[:g] + "G" + floor[g + 1 :] for g in range(side * side))
    return [
        Maze("\n".join(text[i : i + side] for i in range(0, len(text), side))).mdp()
        for text in maps
    ]


def standard_deviation(modes: MDPModes, m: int) -> float:
    """√t times the standard deviation of the optimal policy's average reward.

    It is that of the martingale r + h(y) - ρ - h(x) under d(x) π(a | x) P(r, y | x, a).
    """
    plan = modes.plans[m]
    x_a = np.repeat(np.arange(plan.mdp.size.size), plan.mdp.size)
    x = x_a // len(plan.mdp.actions)
    [only] = stationary_distribution(plan.mdp, modes.policy[m])
    weight = only.probability[x] * modes.policy[m].ravel()[x_a] * plan.mdp.probability
    jump = plan.mdp.rewards + plan.bias[plan.mdp.successor] - plan.gain - plan.bias[x]
    return float(np.sqrt((weight * jump**2).sum()))


def last_rewards(modes: MDPModes, m: int, steps: int, last: int) -> tuple[Any, float]:
    agent = modes.agent()
    record = interact(agent, modes.environment(m), steps, seed=1)
    return agent, float(modes.rewards[record.observations[-last:]].mean())


def earns_the_optimum(modes: MDPModes, m: int) -> bool:
    """The average of 10,000 steps after 3,000 is within 4.9 errors plus the martingale's ends."""
    last = 10_000
    _, mean = last_rewards(modes, m, 3_000 + last, last)
    plan = modes.plans[m]
    error = 4.9 * standard_deviation(modes, m) / last**0.5 + 2 * np.ptp(plan.bias) / last
    return bool(abs(mean - plan.gain) <= error)


@pytest.mark.parametrize("m", [0, 6, 15])
def test_the_rule_finds_the_goal_and_earns_the_optimum(m: int) -> None:
    """False alarm about 1e-6."""
    modes = MDPModes(goals(4))
    agent, _ = last_rewards(modes, m, 3_000, 1)
    assert agent.belief.posterior()[m] > 0.999
    assert earns_the_optimum(modes, m)


def test_modes_with_the_wrong_policies_are_detected() -> None:
    modes = MDPModes(goals(4))
    modes.policy[:] = modes.policy[::-1].copy()
    assert not earns_the_optimum(modes, 0)


def test_the_compiled_loop_equals_the_readable_one() -> None:
    modes = MDPModes(goals(3))
    assert find_loop(modes.agent(), modes.environment(0)) is not None
    one = interact(modes.agent(), modes.environment(4), 300, seed=2)
    two = interact(
        modes.agent(), modes.environment(4), 300, seed=2,
        probes={"nothing": Probe(lambda agent, a, o: 0)},
    )  # fmt: skip
    assert (one.actions == two.actions).all()
    assert (one.observations == two.observations).all()


def test_a_hypothesis_has_the_probabilities_of_its_mdp() -> None:
    mdps = [random_mdp(4, 2, seed=s) for s in range(3)]
    modes = MDPModes(mdps)
    for m, mdp in enumerate(mdps):
        for x in range(4):
            for a in range(2):
                probabilities = modes[m].observation_probabilities(x, a)
                assert {modes.steps[o]: p for o, p in probabilities.items()} == mdp.outcomes(x, a)
                assert all(modes.advance(x, a, o) == modes.steps[o].state for o in probabilities)


def test_equally_good_actions_share_the_probability() -> None:
    """At the goal all four actions have the same effect."""
    maze = Maze("no-cups")
    assert MDPModes([maze.mdp()]).policy[0, maze.goals[0]].tolist() == [0.25, 0.25, 0.25, 0.25]


def test_names_prior_and_start_are_preserved() -> None:
    modes = MDPModes(
        [chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.75, 0.25], start=2, names=["A", "B"]
    )
    agent = modes.agent()
    assert agent.x == 2
    assert agent.belief.posterior().tolist() == [0.75, 0.25]
    assert modes.agent([0.5, 0.5]).belief.posterior().tolist() == [0.5, 0.5]
    assert modes[1].name == "B"
    agent.observe(1, modes.number(Step(1.0, 0)))
    assert agent.belief.posterior().tolist() == [0.0, 1.0]


def test_actions_that_no_state_offers_are_never_taken() -> None:
    mdp = MDP(np.full((2, 2, 2), 0.5), [[0, 1], [0, 1]], allowed=[[True, False], [True, True]])
    modes = MDPModes([mdp, mdp])
    assert modes.policy[:, 0, 1].tolist() == [0.0, 0.0]
    interact(modes.agent(), modes.environment(0), 50, seed=0)


def test_an_invalid_class_is_refused() -> None:
    one = chain_mdp(3)
    with pytest.raises(InvalidTable, match="at least one"):
        MDPModes([])
    with pytest.raises(InvalidTable, match="MDP 1 and MDP 0 differ in their states"):
        MDPModes([one, chain_mdp(4)])
    with pytest.raises(InvalidPrior, match="sums to"):
        MDPModes([one, one], prior=[0.5, 0.6])
    with pytest.raises(NotCommunicating):
        MDPModes([MDP([[[1, 0]], [[0, 1]]], [[0], [0]])])
    with pytest.raises(BadEvidence, match="is impossible in all 1 MDPs"):
        MDPModes([one]).number(Step(1.0, 2))


def test_by_default_every_cell_is_a_goal() -> None:
    modes = goal_worlds(3, 4)
    assert len(modes) == 12
    assert modes.policy.shape == (12, 12, 4)
    assert modes.names is not None
    assert modes.names[5] == "goal (1, 1)"
    assert modes.labels.situations[modes.start] == "(1, 2)"


def test_a_few_goals_are_spread_out_from_the_corners() -> None:
    assert goal_cells(5, 5, 1) == [(0, 0)]
    assert goal_cells(5, 5, 4) == [(0, 0), (0, 4), (4, 0), (4, 4)]
    assert goal_cells(5, 5, 5)[2] == (2, 2)
    assert goal_cells(1, 4, 2) == [(0, 0), (0, 3)]
    for n in range(1, 21):
        assert len(set(goal_cells(4, 5, n))) == n


def test_two_hypotheses_differ_only_at_and_next_to_their_goals() -> None:
    """They differ in the goals and in the cells next to them, for moves and slips."""
    modes = goal_worlds(5, 5, goals=4)
    differ = (modes.hypothesis[0] != modes.hypothesis[3]).any((-1, -2))
    where = {modes.labels.situations[x] for x in np.flatnonzero(differ)}
    assert where == {"(0, 0)", "(0, 1)", "(1, 0)", "(4, 4)", "(4, 3)", "(3, 4)"}


def test_each_mode_heads_for_its_own_goal() -> None:
    modes = goal_worlds(5, 5, goals=4)
    right, down = modes.labels.actions.index("right"), modes.labels.actions.index("down")
    assert modes.policy[3, modes.start] == pytest.approx(np.eye(4)[[right, down]].mean(0))


def test_the_agent_identifies_the_goal() -> None:
    """Once reached, the goal is known with certainty; 2,000 steps are plenty. Seed 0."""
    modes = goal_worlds(4, 4)
    for m in (0, 6, 15):
        agent = modes.agent()
        interact(agent, modes.environment(m), 2_000, seed=0)
        assert agent.belief.posterior()[m] == 1.0


def test_the_theorem_covers_every_pair_of_goals() -> None:
    verdict = check(goal_worlds(4, 4))
    assert verdict.outcome is Outcome.THEOREM
    assert all(not pair.in_core for pair in verdict.pairs)


@pytest.mark.parametrize(
    ("rows", "columns", "goals", "p", "message"),
    [
        (0, 5, None, 0.9, "rows=0"),
        (1, 1, None, 0.9, "at least two cells"),
        (3, 3, 0, 0.9, "goals=0: .* from 1 to 9"),
        (3, 3, 10, 0.9, "goals=10: .* from 1 to 9"),
        (3, 3, 2, 1.2, "p=1.2"),
    ],
)
def test_an_invalid_grid_is_refused_by_name(
    rows: int, columns: int, goals: int | None, p: float, message: str
) -> None:
    with pytest.raises(InvalidTable, match=message):
        goal_worlds(rows, columns, goals, p)
