"""MDP tables: validation, sampling as an environment, and the small examples."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream
from bayescontrol.errors import InvalidTable, UnknownAction, UnknownState
from bayescontrol.mdp import MDP, Step, chain_mdp, random_mdp

P = [[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]]
R = [[0.0, 1.0], [2.0, 3.0]]
NAMED: dict[str, Any] = {"states": ["cold", "warm"], "actions": ["rest", "work"]}


def changed(table: Any, where: tuple[int, ...], value: float) -> Any:
    array = np.array(table)
    array[where] = value
    return array


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        ({"transition": changed(P, (1, 0, 1), 0.4)}, "'warm', action 'rest': .* sum to 0.9,"),
        ({"transition": changed(P, (0, 1, 0), -0.1)}, "'cold', action 'work': .*'cold' is -0.1"),
        ({"transition": changed(P, (0, 1, 1), math.nan)}, "'cold', action 'work': .* is nan"),
        ({"transition": changed(P, (1, 1, 1), math.inf)}, "'warm', action 'work': .* is inf"),
        ({"transition": changed(P, (1, 1, 1), 0.0)}, "'warm', action 'work': .* sum to 0, not"),
        ({"reward": changed(R, (1, 0), math.nan)}, "'warm', action 'rest': the reward .* is nan"),
        ({"reward": changed(R, (0, 1), -math.inf)}, "'cold', action 'work': the reward .* is -inf"),
        (
            {"reward": changed(np.zeros((2, 2, 2)), (1, 1, 0), math.nan)},
            "next state 'cold'",
        ),
        ({"reward": [0.0, 1.0]}, r"reward has shape \(2,\)"),
        ({"transition": np.ones((2, 2))}, "must have shape \\(X, A, X\\)"),
        ({"transition": "none"}, "transition: expected an array of numbers"),
        ({"allowed": [[True, True]]}, "allowed has shape"),
        ({"allowed": [[1, 1], [1, 1]]}, "Boolean"),
        ({"allowed": [[False, False], [True, True]]}, "state 'cold' has no available action"),
        ({"states": ["cold"]}, "names are given"),
        ({"states": ["cold", "cold"]}, "two states are called 'cold'"),
        ({"actions": [["rest"], ["work"]]}, "names of actions must be hashable"),
    ],
)
def test_an_invalid_mdp_is_refused_with_state_and_action(
    given_: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        MDP(**{"transition": P, "reward": R, **NAMED, **given_})


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        (([0], [0], [2], [1.0], [0.0]), "state 2 is out of range: expected 0 … 1"),
        (([0], [-1], [0], [1.0], [0.0]), "action -1"),
        (([0.0], [0], [0], [1.0], [0.0]), "column x has type float64"),
        (([0, 1], [0, 0], [0, 0], [1.0], [0.0]), "equal lengths"),
        (([0], [0], [0], [1.0], [0.0]), "state 1 has no available action"),
        (([0, 1], [0, 0], [0, 0], [1.0, 0.5], [0.0, 0.0]), "state 1, action 0: .* sum to 0.5"),
        (([0, 1], [0, 0], [0, 0], [1.0, 0.0], [0.0, 0.0]), "state 1, action 0: .* sum to 0,"),
    ],
)
def test_invalid_columns_are_refused(columns: Any, complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        MDP.from_transitions(*columns, states=2, actions=1)


def test_actions_not_available_in_a_state_are_ignored() -> None:
    mdp = MDP(
        changed(P, (0, 1, 0), math.nan), changed(R, (0, 1), math.inf),
        allowed=[[True, False], [True, True]], **NAMED,
    )  # fmt: skip
    assert mdp.actions_in("cold") == ["rest"]
    assert mdp.outcomes("cold", "work") == {}
    assert mdp.transition[0, 1].tolist() == [0.0, 0.0]
    assert mdp.backup(np.zeros(2))[0].tolist() == [0.0, -math.inf]


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_dense_and_sparse_forms_agree(seed: int, states: int, actions: int) -> None:
    mdp = random_mdp(states, actions, seed=seed)
    dense = mdp.transition
    x, a, y = np.nonzero(dense)
    again = MDP.from_transitions(
        x, a, y, dense[x, a, y], mdp.reward[x, a], states=states, actions=actions
    )
    h = np.linspace(-1.0, 2.0, states)
    assert np.allclose(again.transition, dense, rtol=1e-15, atol=0)
    assert np.allclose(again.reward, mdp.reward, rtol=1e-14)
    assert np.allclose(mdp.backup(h), mdp.reward + dense @ h, rtol=1e-13, atol=1e-13)
    assert np.allclose(mdp.expected(h), dense @ h, rtol=1e-13, atol=1e-13)


def test_each_transition_may_have_its_own_reward() -> None:
    r = np.arange(8.0).reshape(2, 2, 2)
    mdp = MDP(P, r, **NAMED)
    assert mdp.outcomes("cold", "work") == {Step(3.0, "warm"): 0.9, Step(2.0, "cold"): 0.1}
    assert mdp.reward[0, 1] == pytest.approx(2.9)


def test_one_transition_may_pay_different_rewards_and_equal_entries_add_up() -> None:
    mdp = MDP.from_transitions(
        [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [1.0, 2.0, 1.0, -0.0],
        states=1, actions=1,
    )  # fmt: skip
    assert mdp.outcomes(0, 0) == {Step(1.0, 0): 0.5, Step(0.0, 0): 0.25, Step(2.0, 0): 0.25}
    assert mdp.transition.tolist() == [[[1.0]]]
    assert mdp.reward[0, 0] == 1.0


def test_the_likeliest_transition_of_a_pair_comes_first() -> None:
    mdp = random_mdp(7, 3, seed=2)
    for i, n in zip(mdp.first, mdp.size, strict=True):
        assert (np.diff(mdp.probability[i : i + n]) <= 0.0).all()


def test_errors_name_unknown_states_and_actions() -> None:
    mdp = MDP(P, R, **NAMED)
    with pytest.raises(UnknownState, match="no state 'hot': the states are 'cold', 'warm'"):
        mdp.actions_in("hot")
    with pytest.raises(UnknownAction, match="no action 2"):
        mdp.outcomes("cold", 2)
    with pytest.raises(UnknownState, match="no state 'broken'"):
        lamp().environment("broken")
    for k, pays in ((0, 0), (3, 2)):
        with pytest.raises(InvalidTable, match=f"k={k}, pays={pays}"):
            chain_mdp(k, pays)


def test_tables_are_read_only_copies() -> None:
    p = np.array(P)
    mdp = MDP(p, R)
    p[:] = 7.0
    assert mdp.transition.tolist() == P
    with pytest.raises(ValueError, match="read-only"):
        mdp.probability[0] = 0.5


def test_small_integer_types_do_not_overflow() -> None:
    xs = [0, *range(1, 86), 85]
    actions = [2] + [0] * 84 + [0, 1]
    x, a = np.array(xs, np.uint8), np.array(actions, np.uint8)
    mdp = MDP.from_transitions(x, a, x, np.ones(87), np.zeros(87), states=86, actions=3)
    assert mdp.actions_in(0) == [2]
    assert mdp.actions_in(85) == [0, 1]


def lamp() -> MDP:
    return MDP(
        [[[1, 0], [0, 1]], [[1, 0], [0, 1]]], [[0, 1], [5, 5]],
        states=["off", "on"], actions=["press", "wait"], allowed=[[True, True], [True, False]],
    )  # fmt: skip


def test_the_environment_follows_the_table() -> None:
    world, rng = lamp().environment(), Stream(0)
    assert world.x == "off"
    assert world.respond("wait", rng) == Step(1.0, "on")
    assert (world.x, world.at) == ("on", 1)
    assert world.respond("press", rng) == Step(5.0, "off")


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        ("wait", "action 'wait' is not available in state 'on': choose from 'press'"),
        ("kick", "no action 'kick': the actions are 'press', 'wait'"),
        (["press"], "no action"),
    ],
)
def test_an_unavailable_action_is_refused_and_changes_nothing(action: str, complaint: str) -> None:
    world, rng = lamp().environment("on"), Stream(0)
    before = rng.copy()
    with pytest.raises(UnknownAction, match=complaint):
        world.respond(action, rng)
    assert world.x == "on"
    assert rng == before


def test_responses_have_the_probabilities_of_the_table() -> None:
    """Frequencies over 20,000 steps; 4.9 errors: false alarm 1e-6 a cell."""
    mdp = random_mdp(3, 2, seed=5)
    world, rng = mdp.environment(), Stream(0)
    observed = np.zeros((3, 2, 3))
    for t in range(20_000):
        x, a = world.at, t % 2
        step = world.respond(a, rng)
        assert mdp.outcomes(x, a)[step] > 0.0
        observed[x, a, step.state] += 1
    visits, p = observed.sum(-1, keepdims=True), mdp.transition
    assert (np.abs(observed - visits * p) <= 4.9 * np.sqrt(visits * p * (1 - p)) + 1e-9).all()


def test_the_chain_pays_for_k_right_actions_in_a_row() -> None:
    world, rng = chain_mdp(3).environment(), Stream(0)
    answers = [world.respond(a, rng) for a in (0, 0, 1, 0, 0, 0, 0)]
    assert [o.reward for o in answers] == [0, 0, 0, 0, 0, 1, 0]
    assert answers[2] == Step(0.0, 0)


def test_a_random_problem_is_a_function_of_its_seed() -> None:
    one, two, other = (random_mdp(3, 2, seed=s) for s in (1, 1, 2))
    assert (one.probability == two.probability).all()
    assert not (one.reward == other.reward).all()
