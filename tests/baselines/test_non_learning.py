"""Fixed mixtures of experts."""

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.baselines import FixedExperts, dithered_mean, mean_action, vote
from bayescontrol.errors import MissingCapability


def test_experts_act_in_the_last_observation_and_their_actions_are_combined() -> None:
    agent = FixedExperts([lambda x: x, lambda x: -x], 3.0, mean_action)
    assert agent.act(Stream(0)) == 0.0
    single = FixedExperts([lambda x: x + 1], 0)
    single.observe(0, 41)
    assert single.act(Stream(0)) == 42
    assert mean_action([np.array([1.0, 2.0]), np.array([3.0, -2.0])], Stream(0)).tolist() == [2, 0]
    assert [vote(actions, Stream(0)) for actions in ([2, 0, 2], [2, 0])] == [2, 0]


def test_the_dithered_mean_is_unbiased() -> None:
    rng = Stream(1)
    drawn = [dithered_mean([0, 1, 1, 1], rng) for _ in range(4000)]
    # Five standard errors: a false alarm in 1.7 million.
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)


@pytest.mark.parametrize("policies", [[], [3]])
def test_experts_must_be_functions_and_at_least_one(policies: list[object]) -> None:
    with pytest.raises(MissingCapability, match="policies"):
        FixedExperts(policies, 0)  # type: ignore[arg-type]
