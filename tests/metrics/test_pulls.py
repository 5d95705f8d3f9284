"""Regret and the share of the best arm."""

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, LinearBandit, LogisticBandit, Record, Stream, interact
from bayescontrol.bandits import Outcome
from bayescontrol.errors import BadEvidence, UnknownArm
from bayescontrol.metrics import best_share, regret
from bayescontrol.record import situation


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


# -- worlds with contexts --------------------------------------------------------------------


def test_regret_with_contexts_is_cumulative_too() -> None:
    """Arm "up" pays x, arm "down" pays -x; the contexts are 1, 2, -3, and then 5."""
    world = LinearBandit(["up", "down"], features=1).environment([[1.0], [-1.0]], start=[1.0])
    contexts = [Outcome(0.0, (x,)) for x in (2.0, -3.0, 5.0)]
    record = Record(["up", "down", "up"], contexts)
    expected = [0.0, 4.0, 10.0]
    assert regret(record, world).tolist() == expected
    assert world.regret(record).tolist() == expected
    assert best_share(record, world).tolist() == [1.0, 0.0, 0.0]
    assert regret(Record([], []), world).tolist() == []


@pytest.mark.parametrize("kind", [LinearBandit, LogisticBandit])
@pytest.mark.parametrize("probed", [False, True], ids=["compiled", "readable"])
def test_regret_uses_the_context_in_which_each_arm_was_pulled(kind: type, probed: bool) -> None:
    bandit = kind(["a", "b", "c"], features=2)
    world = bandit.draw(3, start=[4.0, -1.0])
    start, probes = world.start, {"x": situation}
    twin = bandit.draw(3, start=start)
    record = interact(bandit.agent(start), world, 50, probes=probes if probed else None)
    contexts = interact(bandit.agent(start), twin, 50, probes=probes)["x"]
    means = np.array([world.means(x) for x in contexts])
    pulled = [list(world.labels).index(a) for a in record.actions]
    expected = np.cumsum(means.max(1) - means[np.arange(50), pulled])
    assert expected[-1] > 0.0
    np.testing.assert_allclose(regret(record, world), expected, rtol=1e-12)
    np.testing.assert_array_equal(world.regret(record), regret(record, world))
    np.testing.assert_array_equal(regret(record, bandit.draw(3, start=start)), world.regret(record))


def test_a_world_that_is_used_twice_needs_the_start_of_the_run() -> None:
    bandit = LinearBandit(2, features=1)
    world = bandit.environment([[1.0], [-1.0]])
    first = interact(bandit.agent(world.start), world, 10, seed=1)
    total = world.regret(first)
    start = world.start
    second = interact(bandit.agent(start), world, 10, seed=2)
    for record in (first, second):
        for measure in (regret, best_share):
            with pytest.raises(BadEvidence, match=r"the world has made 20 steps.*start="):
                measure(record, world)
    np.testing.assert_array_equal(regret(first, world, start=[0.0]), total)
    x = np.array([start[0], *(o.context[0] for _, o in second)])[:-1]
    expected = np.cumsum(np.where((x > 0.0) == (second.actions == 0), 0.0, 2.0 * np.abs(x)))
    np.testing.assert_allclose(regret(second, world, start=start), expected, rtol=1e-12)


def test_setting_the_context_begins_a_new_run() -> None:
    bandit = LinearBandit(2, features=1)
    world = bandit.environment([[1.0], [-1.0]])
    interact(bandit.agent(world.start), world, 10)
    world.context = [3.0]
    world.respond(1, Stream(0))
    record = Record([1], [Outcome(0.0, tuple(world.start.tolist()))])
    assert regret(record, world).tolist() == [6.0]


def test_a_record_without_contexts_is_refused() -> None:
    world = LinearBandit(2, features=2).draw(0)
    with pytest.raises(BadEvidence, match="have no context"):
        regret(Record([0, 1], [0.5, 1.5]), world)
    with pytest.raises(BadEvidence, match="a vector of 2 numbers"):
        regret(Record([0, 1], [Outcome(0.5, (1.0,)), Outcome(0.5, (1.0,))]), world)
    with pytest.raises(UnknownArm, match="pulls arm 2"):
        regret(Record([2], [Outcome(0.5, (1.0, 1.0))]), world)
