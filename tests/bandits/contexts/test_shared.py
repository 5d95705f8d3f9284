"""Linear bandits with weights shared by all arms."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import SharedLinearBandit, Stream
from bayescontrol.bandits import Logit, RewardAndContext, SharedLinearBelief
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.schedules import Every
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)


def phi(x: Any, a: int) -> list[float]:
    return [x[0] * a, x[1], float(a) ** 2]


def bandit(arms: Any = (1, 2), **rest: Any) -> SharedLinearBandit:
    if "link" not in rest:
        rest = {"sd": 1.0, "prior": (0.0, 1.0)} | rest
    return SharedLinearBandit(list(arms), phi, 3, **rest)


EVENTS = [
    (tuple(x.tolist()), int(a), float(r))
    for x, a, r in zip(
        np.random.default_rng(0).normal(size=(30, 2)),
        np.random.default_rng(1).integers(1, 3, 30),
        np.random.default_rng(2).normal(size=30),
        strict=True,
    )
]


def trained(belief: SharedLinearBelief, events: Any = EVENTS) -> SharedLinearBelief:
    for x, a, r in events:
        belief.observe(x, a, r)
    return belief


def test_the_posterior_equals_one_regression_over_all_arms() -> None:
    belief = trained(bandit(sd=0.5).belief())
    X = np.array([phi(x, a) for x, a, _ in EVENTS])
    r = np.array([r for *_, r in EVENTS])
    Lambda = np.eye(3) + X.T @ X / 0.25
    np.testing.assert_allclose(belief.precision(), Lambda, rtol=1e-11)
    np.testing.assert_allclose(belief.mean(), np.linalg.solve(Lambda, X.T @ r / 0.25), rtol=1e-9)


def test_action_probabilities_of_two_arms_are_the_frequencies_of_actions() -> None:
    """20,000 decisions, |z| ≤ 4.5: false alarms 7e-6."""
    agent, x, n, rng = bandit().agent(), (0.3, 1.0), 20_000, Stream(1)
    trained(agent.belief, EVENTS[:4])
    p = agent.belief.action_probabilities(x)
    assert sum(p.values()) == pytest.approx(1.0)
    ones = sum(agent.decide(x, rng)[1] == 1 for _ in range(n))
    assert abs(ones - n * p[1]) <= 4.5 * np.sqrt(n * p[1] * p[2])


def test_action_probabilities_of_three_arms_are_not_offered() -> None:
    belief = bandit((1, 2, 3)).belief()
    with pytest.raises(MissingCapability, match="3 arms"):
        belief.action_probabilities((1.0, 1.0))
    belief.retire(3)
    assert len(belief.action_probabilities((1.0, 1.0))) == 2
    belief.retire(2)
    assert belief.action_probabilities((1.0, 1.0)) == {1: 1.0}
    flat = SharedLinearBandit(2, lambda x, a: [1.0], 1).belief()
    assert flat.action_probabilities(0) == {0: 0.5, 1: 0.5}
    assert {flat.sample(Stream(0)).act(0, Stream(i)) for i in range(20)} == {0, 1}


def test_a_held_mode_follows_added_and_retired_arms() -> None:
    agent = bandit().agent((1.0, 0.0), schedule=Every(1000))
    held = agent.act(Stream(0))
    agent.belief.add(5)
    agent.belief.retire(held)
    assert agent.act(Stream(0)) != held
    resumed = bandit().agent((1.0, 0.0), schedule=Every(1000))
    resumed.load(agent.save())
    assert resumed.mode is not None
    assert resumed.mode.arms == agent.mode.arms == agent.belief.arms  # type: ignore[union-attr]


class World:
    def respond(self, a: int, rng: Stream) -> RewardAndContext:
        return RewardAndContext(rng.normal(a), (rng.normal(), rng.normal()))


@pytest.mark.parametrize("schedule", [Every(1), Every(3)])
def test_the_laws_hold(schedule: Any) -> None:
    def belief() -> SharedLinearBelief:
        return bandit().belief()

    def agent() -> Any:
        return bandit().agent((0.0, 1.0), schedule=schedule)

    check_deterministic(belief, EVENTS)
    check_save(belief, EVENTS)
    bad = [((1.0, np.nan), 1, 1.0), ((1.0, 1.0), 7, 1.0), ((1.0, 1.0), 1, None)]
    check_bad_evidence(belief, EVENTS, bad)
    check_acting(agent, World)
    check_same_seed(agent, World, 30)
    check_resume(agent, World, 30)


def test_merging_arms_and_copies() -> None:
    one, two = trained(bandit().belief(), EVENTS[::2]), trained(bandit().belief(), EVENTS[1::2])
    one.merge(two)
    np.testing.assert_allclose(one.posterior(), trained(bandit().belief()).posterior(), rtol=1e-9)
    assert one.count == 30
    for stranger in (bandit((1, 2, 3)).belief(), bandit(sd=2.0).belief(), None):
        with pytest.raises(IncompatibleState):
            one.merge(stranger)
    twin = one.copy()
    twin.add(3)
    assert 3 in twin.expected((1.0, 1.0))
    assert one.arms == (1, 2)
    resumed = bandit().belief()
    resumed.load(twin.save())
    assert same_bits(resumed.save(), twin.save())
    twin.retire(1)
    twin.restore(1)
    with pytest.raises(UnknownArm):
        twin.restore(1)
    for damage in (None, {}, {"drawn": np.zeros(1)}):
        with pytest.raises(IncompatibleState):
            one.load(damage)  # type: ignore[arg-type]


def test_features_that_do_not_fit_and_bad_next_contexts_are_refused() -> None:
    agent = bandit().agent((0.0, 1.0))
    before = agent.save()
    with pytest.raises(BadEvidence):
        agent.observe(1, RewardAndContext(1.0, (0.0, np.nan)))
    assert same_bits(before, agent.save())
    agent.observe(1, 1.0)
    assert agent.x == (0.0, 1.0)


def test_scaling_the_features_does_not_change_the_choice() -> None:
    belief = SharedLinearBandit([1, 2], lambda x, a: [x * a], 1).belief()
    belief.observe(1.0, 1, 0.5)
    large, small = belief.action_probabilities(1.0), belief.action_probabilities(2.0**-600)
    assert small == pytest.approx(large)


def test_features_must_be_a_function() -> None:
    with pytest.raises(InvalidTable, match="phi=3"):
        SharedLinearBandit(2, 3, features=2)  # type: ignore[arg-type]


def test_the_logit_link_is_supported() -> None:
    belief = bandit(link=Logit()).belief()
    belief.observe((1.0, 0.0), 1, 1)
    assert belief.predictive((1.0, 0.0), 2)[1] > 0.5
    assert belief.log_predictive((1.0, 0.0), 2, 1) < 0.0
