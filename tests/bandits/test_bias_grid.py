"""A grid of biases: who is in it, and what each does."""

import math
from itertools import product

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.errors import InvalidTable


def test_every_combination_of_levels_is_a_mode() -> None:
    levels = (0.2, 0.5, 0.8)
    modes = bias_grid(3, levels)
    assert len(modes) == 27
    for m, biases in enumerate(product(levels, repeat=3)):
        assert [modes[m].likelihood(0, a, 1) for a in range(3)] == list(biases)


def test_each_mode_pulls_its_best_arm_and_shares_ties() -> None:
    modes = bias_grid(2, (0.2, 0.5, 0.8))
    law = {modes.name(m): modes[m].action_probabilities(0) for m in range(len(modes))}
    assert law["(.2, .8)"] == {1: 1.0}
    assert law["(.8, .5)"] == {0: 1.0}
    assert law["(.5, .5)"] == {0: 0.5, 1: 0.5}


def test_names_are_short_also_at_the_ends() -> None:
    assert bias_grid(1, (0, 0.25, 1)).names == ("(0)", "(.25)", "(1)")


def test_the_agent_finds_the_best_arm() -> None:
    """The weight of the modes that pull the worse arm is below 1e-3 after 2,000 pulls; seed 0."""
    modes = bias_grid()
    agent = modes.agent()
    interact(agent, modes.environment(2), 2_000, seed=0)
    assert agent.action_probabilities()[1] > 0.999


@pytest.mark.parametrize(
    ("arms", "levels", "said"),
    [
        (0, (0.5,), "arms=0"),
        (2, (), "at least one level"),
        (2, (0.5, 0.5), "each once"),
        (2, (0.5, 1.5), "1.5 is not a probability"),
        (2, (math.nan,), "nan is not a probability"),
        (40, (0.2, 0.8), r"2\^40 modes, the limit is 10000"),
    ],
)
def test_what_is_no_grid_is_refused_by_name(
    arms: int, levels: tuple[float, ...], said: str
) -> None:
    with pytest.raises(InvalidTable, match=said):
        bias_grid(arms, levels)


def test_the_tables_are_probabilities() -> None:
    modes = bias_grid(4, (0.1, 0.9))
    assert np.allclose(modes.hypothesis.sum(-1), 1.0)
    assert np.allclose(modes.policy.sum(-1), 1.0)
