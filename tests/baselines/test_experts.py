"""Fixed mixtures of experts."""

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.baselines import FixedExperts, dithered_mean, mean_action, vote
from bayescontrol.errors import MissingCapability


def test_opposite_experts_average_to_none() -> None:
    agent = FixedExperts([lambda x: x, lambda x: -x], 3.0, mean_action)
    assert agent.act(Stream(0)) == 0.0


def test_a_mean_of_arrays_is_taken_by_component() -> None:
    assert mean_action([np.array([1.0, 2.0]), np.array([3.0, -2.0])], Stream(0)).tolist() == [2, 0]


def test_the_dithered_mean_has_the_mean_for_its_expectation() -> None:
    rng = Stream(1)
    drawn = [dithered_mean([0, 1, 1, 1], rng) for _ in range(4000)]
    # Five standard errors: a false alarm in 1.7 million.
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)


def test_a_vote_is_the_majoritys_and_a_tie_the_smallests() -> None:
    assert vote([2, 0, 2], Stream(0)) == 2
    assert vote([2, 0], Stream(0)) == 0


def test_the_situation_is_the_last_observation() -> None:
    agent = FixedExperts([lambda x: x + 1], 0)
    agent.observe(0, 41)
    assert agent.act(Stream(0)) == 42


@pytest.mark.parametrize("policies", [[], [3]])
def test_experts_are_functions_and_at_least_one(policies: list[object]) -> None:
    with pytest.raises(MissingCapability, match="policies"):
        FixedExperts(policies, 0)  # type: ignore[arg-type]
