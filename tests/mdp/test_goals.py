"""Grid-worlds with different goals: where they differ, and that each mode heads for its own."""

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.convergence import Outcome, check
from bayescontrol.errors import InvalidTable
from bayescontrol.mdp.modes import goal_cells, goal_worlds


def test_by_default_every_cell_is_a_goal() -> None:
    modes = goal_worlds(3, 4)
    assert len(modes) == 12
    assert modes.policy.shape == (12, 12, 4)
    assert modes.names is not None
    assert modes.names[5] == "goal (1, 1)"
    assert modes.labels.situations[modes.start] == "(1, 2)"


def test_a_few_goals_are_spread_from_the_corners_inwards() -> None:
    assert goal_cells(5, 5, 1) == [(0, 0)]
    assert goal_cells(5, 5, 4) == [(0, 0), (0, 4), (4, 0), (4, 4)]
    assert goal_cells(5, 5, 5)[2] == (2, 2)
    assert goal_cells(1, 4, 2) == [(0, 0), (0, 3)]
    for n in range(1, 21):
        assert len(set(goal_cells(4, 5, n))) == n


def test_two_hypotheses_differ_only_on_the_way_to_a_goal_or_from_it() -> None:
    """From the goals, and from the cells beside them, by a move or by a slip."""
    modes = goal_worlds(5, 5, goals=4)
    differ = (modes.hypothesis[0] != modes.hypothesis[3]).any((-1, -2))
    where = {modes.labels.situations[x] for x in np.flatnonzero(differ)}
    assert where == {"(0, 0)", "(0, 1)", "(1, 0)", "(4, 4)", "(4, 3)", "(3, 4)"}


def test_each_mode_heads_for_its_own_goal() -> None:
    modes = goal_worlds(5, 5, goals=4)
    right, down = modes.labels.actions.index("right"), modes.labels.actions.index("down")
    assert modes.policy[3, modes.start] == pytest.approx(np.eye(4)[[right, down]].mean(0))


def test_the_agent_finds_out_where_the_goal_is() -> None:
    """Once the goal is reached it is known for certain; 2,000 steps are plenty. Seed 0."""
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
    ("rows", "columns", "goals", "p", "said"),
    [
        (0, 5, None, 0.9, "rows=0"),
        (1, 1, None, 0.9, "at least two cells"),
        (3, 3, 0, 0.9, "goals=0: from 1 to 9"),
        (3, 3, 10, 0.9, "goals=10: from 1 to 9"),
        (3, 3, 2, 1.2, "p=1.2"),
    ],
)
def test_what_is_no_grid_is_refused_by_name(
    rows: int, columns: int, goals: int | None, p: float, said: str
) -> None:
    with pytest.raises(InvalidTable, match=said):
        goal_worlds(rows, columns, goals, p)
