"""The lake and the cliff of the arena are those of Gymnasium."""

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.arena.maze_sensitivity import cliff_walk, frozen_lake

from bayescontrol.mdp import MDP, policy_iteration

pytest.importorskip("gymnasium")

from tests.gym.test_running import CLIFF, LAKE, make, table
from tests.mdp.test_gymnasium import START


@pytest.mark.parametrize(
    ("name", "ours"), [(LAKE, frozen_lake), (CLIFF, cliff_walk)], ids=[LAKE, CLIFF]
)
def test_the_tables_of_gymnasium_equal_ours(name: str, ours: Callable[[], MDP]) -> None:
    """They are equal except for the last bit of the lake's thirds: Gymnasium uses (1 - 1/3)/2."""
    real, mine = table(name, pause=True), ours()
    np.testing.assert_allclose(real.transition, mine.transition, rtol=3e-16, atol=0.0)
    np.testing.assert_allclose(real.reward, mine.reward, rtol=3e-16, atol=0.0)
    for x, place in zip(real.states, mine.states, strict=True):
        for a in range(4):
            observed = {(r, real.states.place(y)) for r, y in real.outcomes(x, a)}
            assert observed == set(mine.outcomes(place, a))
    assert policy_iteration(mine).gain == pytest.approx(policy_iteration(real).gain, rel=1e-12)
    assert {make(name).reset(seed=seed)[0] for seed in range(5)} == {START[name]}
