"""Fixed mixtures of experts."""

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.baselines import FixedExperts, dithered_mean, mean_action, vote
from bayescontrol.errors import MissingCapability


def test_opposite_experts_average_to_zero() -> None:
    agent = FixedExperts([lambda x: x, lambda x: -x], 3.0, mean_action)
    assert agent.act(Stream(0)) == 0.0


def test_the_mean_of_arrays_is_componentwise() -> None:
    assert mean_action([np.array([1.0, 2.0]), np.array([3.0, -2.0])], Stream(0)).tolist() == [2, 0]


def test_the_dithered_mean_is_unbiased() -> None:
    rng = Stream(1)
    drawn = [dithered_mean([0, 1, 1, 1], rng) for _ in range(4000)]
    # Five standard errors: a false alarm in 1.7 million.
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)


def test_a_vote_takes_the_majority_and_the_smallest_in_a_tie() -> None:
    assert vote([2, 0, 2], Stream(0)) == 2
    assert vote([2, 0], Stream(0)) == 0


def test_the_situation_is_the_last_observation() -> None:
    agent = FixedExperts([lambda x: x + 1], 0)
    agent.observe(0, 41)
    assert agent.act(Stream(0)) == 42


@pytest.mark.parametrize("policies", [[], [3]])
def test_experts_must_be_functions_and_at_least_one(policies: list[object]) -> None:
    with pytest.raises(MissingCapability, match="policies"):
        FixedExperts(policies, 0)  # type: ignore[arg-type]
