"""The grid-world: transitions checked by hand, and every interpretation as a parameter."""

from typing import Any

import numpy as np
import pytest

from bayescontrol.errors import InvalidTable
from bayescontrol.mdp import Maze, gain_and_bias, policy_iteration
from bayescontrol.mdp.maze import LAYOUTS, MOVES

Cell = tuple[int, int]

#: Cell and move -> (reward, next cell): probability, by hand.
BY_HAND: dict[tuple[Cell, str], dict[tuple[float, Cell], float]] = {
    # A corner has two neighbours; blocked moves stay.
    ((0, 0), "up"): {(0, (0, 0)): 0.9, (0, (1, 0)): 0.05, (0, (0, 1)): 0.05},
    ((0, 0), "right"): {(0, (0, 1)): 0.95, (0, (1, 0)): 0.05},
    # Above a cup: down enters through its top.
    ((2, 1), "down"): {(1, (3, 1)): 0.925, (0, (1, 1)): 0.025, (0, (2, 0)): 0.025,
                       (0, (2, 2)): 0.025},
    # Between two cups: both sides are membranes, and slips through them pay.
    ((4, 2), "up"): {(0, (3, 2)): 0.925, (0, (5, 2)): 0.025, (1, (4, 1)): 0.025,
                     (1, (4, 3)): 0.025},
    # In a cup: only down from its top, up and down below.
    ((3, 1), "up"): {(0, (3, 1)): 0.9, (0, (4, 1)): 0.1},
    ((3, 1), "down"): {(0, (4, 1)): 1.0},
    ((4, 1), "left"): {(0, (4, 1)): 0.9, (0, (3, 1)): 0.05, (0, (5, 1)): 0.05},
    ((5, 1), "down"): {(0, (6, 1)): 0.95, (0, (4, 1)): 0.05},
    # From below: entering is free and pays nothing.
    ((6, 1), "up"): {(0, (5, 1)): 0.9 + 0.1 / 3, (0, (6, 0)): 0.1 / 3, (0, (6, 2)): 0.1 / 3},
    # Next to the goal.
    ((1, 2), "right"): {(2.5, (1, 3)): 0.925, (0, (0, 2)): 0.025, (0, (2, 2)): 0.025,
                        (0, (1, 1)): 0.025},
    ((2, 3), "down"): {(1, (3, 3)): 0.925, (2.5, (1, 3)): 0.025, (0, (2, 2)): 0.025,
                       (0, (2, 4)): 0.025},
}  # fmt: skip


@pytest.mark.parametrize(("cell", "move"), BY_HAND)
def test_transitions_agree_with_those_derived_by_hand(cell: Cell, move: str) -> None:
    found = Maze("three-cups").mdp(named=True).outcomes(cell, move)
    assert {tuple(step): pytest.approx(p, abs=1e-15) for step, p in found.items()} == BY_HAND[
        cell, move
    ]


@pytest.mark.parametrize("move", MOVES)
def test_from_the_goal_every_action_leads_anywhere_and_pays_nothing(move: str) -> None:
    found = Maze("three-cups").mdp(named=True).outcomes((1, 3), move)
    assert len(found) == 49
    assert all(step.reward == 0.0 and p == pytest.approx(1 / 49) for step, p in found.items())


def test_the_optimum_of_three_cups_has_its_known_value() -> None:
    plan = policy_iteration(Maze("three-cups").mdp())
    assert plan.gain == pytest.approx(0.36516191550, abs=1e-9)
    assert plan.lower < 0.36516191550274 < plan.upper
    assert plan.upper - plan.lower < 1e-12


def test_the_cup_cycle_earns_two_thirds_of_the_optimum() -> None:
    """The best policy without a goal reward: in at the side, out below, up next to the cup."""
    round_and_round = policy_iteration(Maze("three-cups", goal_reward=0.0).mdp()).policy
    gain = gain_and_bias(Maze("three-cups").mdp(), round_and_round).gain
    assert gain[0] == pytest.approx(0.2252, abs=1e-4)


VARIANTS: list[tuple[dict[str, Any], Cell, str, dict[tuple[float, Cell], float]]] = [
    ({"p": 1.0}, (0, 0), "right", {(0, (0, 1)): 1.0}),
    ({"slip_as_intended": False}, (0, 0), "right", {(0, (0, 1)): 0.9, (0, (1, 0)): 0.1}),
    ({"slip_as_intended": False}, (3, 1), "down", {(0, (4, 1)): 0.9, (0, (3, 1)): 0.1}),
    ({"blocked_stays": False}, (0, 0), "up", {(0, (1, 0)): 0.5, (0, (0, 1)): 0.5}),
    ({"membrane_reward": 4.0, "p": 1.0}, (2, 1), "down", {(4, (3, 1)): 1.0}),
    (
        {"slips_pay": False}, (4, 2), "left",
        {(1, (4, 1)): 0.9, (0, (4, 1)): 0.025, (0, (4, 3)): 0.025, (0, (3, 2)): 0.025,
         (0, (5, 2)): 0.025},
    ),
    ({"enter_from_below": False, "p": 1.0}, (6, 1), "up", {(0, (6, 1)): 1.0}),
    ({"below_pays": True, "p": 1.0}, (6, 1), "up", {(1, (5, 1)): 1.0}),
    ({"climb": False, "p": 1.0}, (5, 1), "up", {(0, (5, 1)): 1.0}),
    ({"goal_reward": 9.0, "p": 1.0}, (1, 2), "right", {(9, (1, 3)): 1.0}),
    ({"step_reward": -1.0, "p": 1.0}, (0, 0), "up", {(-1, (0, 0)): 1.0}),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "cell", "move", "expected"), VARIANTS)
def test_every_interpretation_is_a_parameter(
    rules: dict[str, Any], cell: Cell, move: str, expected: dict[tuple[float, Cell], float]
) -> None:
    found = Maze("three-cups", **rules).mdp(named=True).outcomes(cell, move)
    assert {tuple(step): pytest.approx(p, abs=1e-15) for step, p in found.items()} == expected


def test_the_reset_is_a_parameter() -> None:
    def goal_row(**rules: Any) -> dict[Any, float]:
        return Maze("three-cups", **rules).mdp(named=True).outcomes((1, 3), "up")

    assert len(goal_row(reset_to_goal=False)) == 48
    paid = {step: p for step, p in goal_row(reset_pays=True).items() if step.reward}
    assert list(paid) == [(2.5, (1, 3))]
    at_once = (
        Maze("three-cups", reset_at_once=True, p=1.0).mdp(named=True).outcomes((1, 2), "right")
    )
    assert len(at_once) == 49
    assert {step.reward for step in at_once} == {2.5}


@pytest.mark.parametrize(
    ("layout", "rules", "complaint"),
    [
        ("four-bowls", {}, "unknown layout 'four-bowls': .* three-cups, "),
        ("...\n..", {}, r"have \[3, 2\] cells: they must be equal"),
        (".G\n|.", {}, r"row 1, column 0: \| must have n"),
        (".G\n.x", {}, "row 1, column 1: 'x' is not one of"),
        ("..\n..", {}, "no rewards"),
        ("", {}, "unknown layout ''"),
        ("G G", {"reset_to_goal": False}, "a cell that is not a goal"),
        ("three-cups", {"p": -0.1}, "p=-0.1"),
        ("three-cups", {"p": float("nan")}, "p=nan"),
        ("three-cups", {"goal_reward": float("inf")}, "goal_reward=inf"),
    ],
)
def test_an_invalid_maze_is_refused(layout: str, rules: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        Maze(layout, **rules).mdp()


def test_walls_block_moves_and_are_not_states() -> None:
    maze = Maze(". # G\n. . .", p=1.0)
    assert maze.cells == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert maze.mdp(named=True).outcomes((0, 0), "right") == {(0.0, (0, 0)): 1.0}


def test_adjacent_cups_are_separate_and_a_lower_cup_is_entered_through_its_top() -> None:
    maze = Maze("n n .\nn . .\n. . G")
    assert maze.passage((0, 0), "right") is None
    assert maze.passage((0, 0), "down") == ((1, 0), True)
    assert maze.passage((1, 0), "up") is None


def test_membranes_are_the_tops_and_the_sides_of_the_cups() -> None:
    membranes = Maze("three-cups").membranes()
    assert len(membranes) == 3 * 7
    assert ((2, 1), (3, 1)) in membranes
    assert ((6, 1), (5, 1)) not in membranes


def test_a_maze_is_rendered_as_given() -> None:
    maze = Maze("three-cups")
    assert maze.render() == LAYOUTS["three-cups"].strip()
    plan = policy_iteration(maze.mdp())
    drawn = maze.render(plan.policy, at=0).splitlines()
    assert drawn[1] == "→ → → G ← ← ←"
    assert drawn[0].startswith("@")


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_optimum_of_every_map_is_above_random_play(name: str) -> None:
    mdp = Maze(name).mdp()
    X = len(mdp.states)
    by_chance = gain_and_bias(mdp, np.full((X, 4), 0.25)).gain[0]
    assert policy_iteration(mdp).lower > 1.2 * by_chance > 0.0
