"""The world of an MDP: rewards and states, one after another."""

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.errors import UnknownAction, UnknownState
from bayescontrol.mdp import MDP, Step, random_mdp
from bayescontrol.mdp.table import advance


def lamp() -> MDP:
    return MDP(
        [[[1, 0], [0, 1]], [[1, 0], [0, 1]]], [[0, 1], [5, 5]],
        states=["off", "on"], actions=["press", "wait"], allowed=[[True, True], [True, False]],
    )  # fmt: skip


def test_it_goes_where_the_table_says_and_pays_what_it_says() -> None:
    world, rng = lamp().environment(), Stream(0)
    assert world.x == "off"
    assert world.respond("wait", rng) == Step(1.0, "on")
    assert (world.x, world.at) == ("on", 1)
    assert world.respond("press", rng) == Step(5.0, "off")


def test_it_starts_where_one_wants() -> None:
    assert lamp().environment("on").x == "on"
    with pytest.raises(UnknownState, match="no state 'broken'"):
        lamp().environment("broken")


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        ("wait", "state 'on' does not offer action 'wait': it has 'press'"),
        ("kick", "no action 'kick': the actions are 'press', 'wait'"),
        (["press"], "no action"),
    ],
)
def test_an_action_it_does_not_offer_changes_nothing(action: str, complaint: str) -> None:
    world, rng = lamp().environment("on"), Stream(0)
    before = rng.copy()
    with pytest.raises(UnknownAction, match=complaint):
        world.respond(action, rng)
    assert world.x == "on"
    assert rng == before


def test_the_situation_is_the_state_seen_last() -> None:
    assert advance("off", "press", Step(0.0, "on")) == "on"


def test_it_answers_with_the_probabilities_of_its_table() -> None:
    """Frequencies over 20,000 steps; 4.9 errors: false alarm 1e-6 a cell."""
    mdp = random_mdp(3, 2, seed=5)
    world, rng = mdp.environment(), Stream(0)
    seen = np.zeros((3, 2, 3))
    for t in range(20_000):
        x, a = world.at, t % 2
        step = world.respond(a, rng)
        assert mdp.outcomes(x, a)[step] > 0.0
        seen[x, a, step.state] += 1
    visits, p = seen.sum(-1, keepdims=True), mdp.transition
    assert (np.abs(seen - visits * p) <= 4.9 * np.sqrt(visits * p * (1 - p)) + 1e-9).all()
