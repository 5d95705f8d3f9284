"""Regret and the share of the best arm."""

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, Record, interact
from bayescontrol.errors import UnknownArm
from bayescontrol.metrics import best_share, regret


def test_regret_counts_the_means_that_were_passed_over() -> None:
    world = BernoulliBandit(3).environment([0.1, 0.9, 0.4])
    record = Record([1, 0, 2], [0, 0, 1])
    assert regret(record, world) == pytest.approx([0.0, 0.8, 1.3], abs=1e-15)
    assert best_share(record, world).tolist() == [1.0, 0.0, 0.0]


def test_regret_does_not_depend_on_luck() -> None:
    world = BernoulliBandit(2).environment([0.5, 0.5])
    record = interact(BernoulliBandit(2).agent(), world, 50)
    assert not regret(record, world).any()
    assert best_share(record, world).all()


def test_regret_is_the_same_under_names() -> None:
    numbered, named = BernoulliBandit(3), BernoulliBandit(["a", "b", "c"])
    biases = [0.2, 0.7, 0.5]
    one = interact(numbered.agent(), numbered.environment(biases), 200, seed=3)
    two = interact(named.agent(), named.environment(biases), 200, seed=3)
    assert np.array_equal(
        regret(one, numbered.environment(biases)), regret(two, named.environment(biases))
    )


def test_an_arm_of_another_world_is_refused() -> None:
    world = BernoulliBandit(2).environment([0.1, 0.9])
    with pytest.raises(UnknownArm, match="pulls arm 2"):
        regret(Record([0, 2], [0, 0]), world)
