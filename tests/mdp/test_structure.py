"""Errors name the states that cannot be reached."""

import numpy as np
import pytest

from bayescontrol.errors import NotCommunicating
from bayescontrol.mdp import (
    MDP,
    Maze,
    random_mdp,
    require_communicating,
)
from bayescontrol.mdp.maze import LAYOUTS
from bayescontrol.mdp.planning import require_weakly_communicating


def one_way_mdp() -> MDP:
    """Action 1 leads from A to B, which is never left: ρ* is 1 from A and 0 from B."""
    return MDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [0, 0]], states=["A", "B"])


def test_errors_name_a_state_that_cannot_be_reached_again() -> None:
    with pytest.raises(NotCommunicating, match="no policy leads from state 'B' to state 'A'"):
        require_communicating(one_way_mdp())


def test_a_recurrent_state_without_a_way_back_is_refused() -> None:
    with pytest.raises(NotCommunicating, match="for ever in state 'A', but no policy leads back"):
        require_weakly_communicating(one_way_mdp())


def test_errors_name_disconnected_sets_of_states() -> None:
    p = np.zeros((8, 1, 8))
    p[:5, 0, :5], p[5:, 0, 5:] = 1 / 5, 1 / 3
    with pytest.raises(NotCommunicating, match="states 0, 1, 2 and 2 more to states 5, 6, 7, nor"):
        require_weakly_communicating(MDP(p, np.zeros((8, 1))))


def test_a_transient_state_is_allowed() -> None:
    entry = MDP([[[0, 1]], [[0, 1]]], [[0], [0]])
    with pytest.raises(NotCommunicating):
        require_communicating(entry)
    require_weakly_communicating(entry)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_shipped_map_is_communicating(name: str) -> None:
    require_communicating(Maze(name).mdp())


def test_a_cup_without_an_exit_is_found() -> None:
    with pytest.raises(NotCommunicating, match=r"no policy leads from state \(0, 1\) to"):
        require_communicating(Maze(". n . G").mdp(named=True))


def test_a_random_problem_is_communicating() -> None:
    require_communicating(random_mdp(20, 2, concentration=0.01, seed=1))
