"""Late, unordered and missing feedback; batches; adding and retiring arms during a run."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, LinearBandit, interact
from bayescontrol.bandits import ArmsBelief, Bandit
from bayescontrol.errors import InvalidPrior, UnknownArm
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, same_bits
from bayescontrol.testing.laws import evidence

Case = Any  # the class `Case` in `conftest`


# -- late, unordered or missing feedback; batches ------------------------------------------------


def test_a_batch_equals_repeated_acting_without_learning(case: Case) -> None:
    agent, twin = case.bandit.agent(), case.bandit.agent()
    before = evidence(agent.belief)
    rng, other = Stream(3), Stream(3)
    assert agent.batch(50, rng) == [twin.act(other) for _ in range(50)]
    assert rng == other
    assert same_bits(before, evidence(agent.belief))
    assert agent.batch(0, rng) == []


def test_feedback_may_be_late_unordered_or_missing(case: Case) -> None:
    agent, world, rng = case.bandit.agent(), case.world(), Stream(4)
    waiting = [(a, world.respond(a, rng)) for a in agent.batch(40, rng)]
    lost, observed = waiting[::4], [event for k, event in enumerate(waiting) if k % 4]
    for a, o in reversed(observed):
        agent.observe(a, o)
    in_order = case.bandit.belief()
    for a, o in observed:
        in_order.observe(None, a, o)
    np.testing.assert_allclose(agent.belief.posterior(), in_order.posterior(), rtol=1e-12)
    assert agent.belief.count == len(observed) == 40 - len(lost)


# -- adding and retiring arms ---------------------------------------------------------------------


def test_arms_can_be_added_and_retired_during_a_run(case: Case) -> None:
    agent, world, rng = case.bandit.agent(), case.world(), Stream(6)
    first, second, third = case.bandit.labels
    for _, a, o in case.history(20):
        agent.observe(a, o)
    belief: ArmsBelief = agent.belief
    rows = belief.posterior()
    belief.retire(second)
    assert list(belief.arms) == [first, third]
    assert len(belief) == 2
    assert set(agent.batch(200, rng)) <= {first, third}
    belief.observe(None, second, world.respond(second, rng))  # late feedback for a retired arm
    assert belief.posterior()[1].tobytes() != rows[1].tobytes()
    belief.add("new")
    everyone: list[Any] = [first, third, "new"]
    assert list(belief.arms) == everyone
    assert "new" in agent.batch(500, rng)
    belief.restore(second)
    assert list(belief.arms) == [first, second, third, "new"]
    saved = belief.posterior()
    assert saved[[0, 2]].tobytes() == rows[[0, 2]].tobytes()
    assert belief.pulls["new"] == 0


def test_action_probabilities_cover_only_the_active_arms(exact: Case) -> None:
    agent = exact.bandit.agent()
    first, second, third = exact.bandit.labels
    whole = agent.action_probabilities()
    agent.belief.retire(first)
    assert set(agent.action_probabilities()) == {second, third}
    assert sum(agent.action_probabilities().values()) == pytest.approx(1.0, abs=1e-10)
    agent.belief.restore(first)
    assert agent.action_probabilities() == whole


def test_a_run_with_added_and_retired_arms_can_be_resumed(case: Case) -> None:
    for schedule in (None, Every(3)):
        agent = case.bandit.agent() if schedule is None else case.bandit.agent(schedule=schedule)
        rng = Stream(7)
        agent.act(rng)
        agent.belief.retire(case.bandit.labels[0])
        agent.belief.add("new")
        other = case.bandit.agent() if schedule is None else case.bandit.agent(schedule=schedule)
        other.load(agent.save())
        twin = rng.copy()
        assert agent.batch(20, rng) == other.batch(20, twin)
        assert same_bits(agent.save(), other.save())
        assert other.belief.arms == agent.belief.arms


def test_a_retired_arm_is_not_pulled_by_a_held_mode_either() -> None:
    for seed in range(10):
        agent, rng = BernoulliBandit(3).agent(schedule=Every(50)), Stream(seed)
        held = agent.act(rng)
        mode, twin = agent.mode, agent.copy()
        agent.belief.retire(held)
        assert held not in agent.batch(49, rng)
        assert agent.mode is mode, (
            "the held mode should pull its best remaining arm, without a new draw"
        )
        assert twin.act(rng) == held, "retiring an arm should not change a copy"


def test_the_compiled_loop_supports_retired_arms(case: Case) -> None:
    def make() -> Any:
        agent = case.bandit.agent()
        agent.belief.retire(case.bandit.labels[0])
        return agent

    check_fused(make, case.world, 100)
    record = interact(make(), case.world(), 100, seed=0)
    assert case.bandit.labels[0] not in list(record.actions)


def test_an_arm_that_the_environment_lacks_raises_an_error() -> None:
    bandit = BernoulliBandit(2)
    agent = bandit.agent()
    agent.belief.add("new", prior=(1000, 1))
    with pytest.raises(UnknownArm, match="new"):
        interact(agent, bandit.environment([0.1, 0.2]), 100, seed=0)


@pytest.mark.parametrize(
    "bandit",
    [BernoulliBandit(["red", "blue"]), LinearBandit(["red", "blue"], 2, sd=1, prior=(0, 1))],
)
def test_invalid_changes_of_the_arms_change_nothing(bandit: Any) -> None:
    belief = bandit.belief()
    belief.retire("red")
    before = belief.save()
    changes: list[tuple[Any, type[Exception], str]] = [
        (lambda: belief.retire("blue"), UnknownArm, "last active arm"),
        (lambda: belief.retire("red"), UnknownArm, "already"),
        (lambda: belief.restore("blue"), UnknownArm, "is active"),
        (lambda: belief.retire("pink"), UnknownArm, "no arm 'pink'"),
        (lambda: belief.restore("pink"), UnknownArm, "no arm 'pink'"),
        (lambda: belief.add("blue"), UnknownArm, "two arms"),
        (lambda: belief.add(["list"]), UnknownArm, "hashable"),
        (lambda: belief.add("green", prior=(0, -1)), InvalidPrior, "the prior"),
    ]
    for change, error, message in changes:
        with pytest.raises(error, match=message):
            change()
        assert same_bits(before, belief.save())


def test_a_new_arm_accepts_a_prior_like_the_bandit_does(case: Case) -> None:
    stated = {"GaussianRewards(sd=0.5)": (2, 4), "Categorical([0.0, 1.0, 5.0])": (1, 2, 3)}
    prior = stated.get(repr(case.bandit.family))
    belief = case.bandit.belief()
    belief.add("new", prior)
    fresh = Bandit(case.bandit.family, ["new"], prior).belief()
    row = belief.prior[0] if prior is None else fresh.prior[0]  # by default that of the first arm
    assert belief.posterior()[3].tobytes() == row.tobytes()
