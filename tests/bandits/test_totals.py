"""Many rewards at once: the belief is the same as after the rewards one by one."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    GeometricBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
    PoissonBandit,
    Stream,
)
from bayescontrol.bandits import LogitNormalBandit, SharedLinearBandit, Totals
from bayescontrol.errors import BadEvidence, BadSituation, MissingCapability, UnknownArm

ARMS = ["red", "blue", "green"]
X = [1.0, -0.5]
BITS = [1.0, 1.0, 0.0, 1.0, 0.0]
COUNTS = [3.0, 0.0, 1.0, 7.0, 2.0]
AMOUNTS = [0.25, 3.5, 1.125, 0.75, 2.0]


def totals_of(rewards: list[float]) -> Totals:
    return Totals(len(rewards), float(sum(rewards)), float(np.square(rewards).sum()))


def phi(x: Any, a: Any) -> list[float]:
    return [x[0], x[1] * (a == "red")]


CONJUGATE: dict[str, tuple[Any, Any, list[float]]] = {
    "bernoulli": (BernoulliBandit(ARMS), None, BITS),
    "bernoulli, no screening": (BernoulliBandit(ARMS, prior=(0.5, 0.5)), None, BITS),
    "bernoulli, tiny prior": (BernoulliBandit(ARMS, prior=(0.01, 0.01)), None, BITS),
    "bernoulli, learned": (BernoulliBandit(ARMS, prior="learned"), None, BITS),
    "bernoulli, pooled": (BernoulliBandit(ARMS).pooled(), "de", BITS),
    "poisson": (PoissonBandit(ARMS), None, COUNTS),
    "poisson, learned": (PoissonBandit(ARMS, prior="learned"), None, COUNTS),
    "poisson, pooled": (PoissonBandit(ARMS).pooled(), "de", COUNTS),
    "exponential": (ExponentialBandit(ARMS), None, AMOUNTS),
    "exponential, learned": (ExponentialBandit(ARMS, prior="learned"), None, AMOUNTS),
    "geometric": (GeometricBandit(ARMS), None, COUNTS),
    "gaussian, known noise": (GaussianBandit(ARMS, sd=0.5, prior=(1, 2)), None, AMOUNTS),
    "gaussian, own noise": (GaussianBandit(ARMS, sd=None, prior=(1, 1, 2, 1)), None, AMOUNTS),
    "gaussian, learned": (GaussianBandit(ARMS), None, AMOUNTS),
    "gaussian, pooled": (GaussianBandit(ARMS).pooled(), "de", AMOUNTS),
    "linear": (LinearBandit(ARMS, features=2, sd=0.5, prior=(0, 1)), X, AMOUNTS),
    "linear, learned": (LinearBandit(ARMS, features=2), X, AMOUNTS),
    "linear, shared": (SharedLinearBandit(ARMS, phi, 2, sd=1.0, prior=(0, 1)), X, AMOUNTS),
    "linear, shared and learned": (SharedLinearBandit(ARMS, phi, 2), X, AMOUNTS),
}
#: Beliefs that learn the rewards one by one.
ONE_BY_ONE: dict[str, tuple[Any, Any, Any]] = {
    "logistic": (LogisticBandit(ARMS, features=2, prior=(0, 1)).belief, X, "red"),
    "logistic, learned": (LogisticBandit(ARMS, features=2).belief, X, "red"),
    "draws": (
        lambda: BernoulliBandit(2).agent(draws=[[0.2, 0.6], [0.8, 0.7], [0.4, 0.3]]).belief,
        None,
        0,
    ),
    "joint": (lambda: JointBandit([[0.9, 0.1], [0.1, 0.9]]).agent().belief, 0, 0),
    "logit-normal": (LogitNormalBandit([0, 0], np.eye(2), particles=50).belief, None, 0),
}
NEED_SQUARES = (
    "gaussian, own noise",
    "gaussian, learned",
    "gaussian, pooled",
    "linear, learned",
    "linear, shared and learned",
)


def state(belief: Any) -> dict[str, Any]:
    return {k: v for k, v in belief.save().items() if v.dtype.kind == "f"}


def assert_same(one: Any, two: Any, rtol: float = 1e-12) -> None:
    before, after = state(one), state(two)
    for name, v in before.items():
        np.testing.assert_allclose(after[name], v, rtol=rtol, atol=1e-13, err_msg=name)
    assert one.pulls == two.pulls


@pytest.mark.parametrize("name", CONJUGATE)
def test_totals_are_equal_to_the_rewards_one_by_one(name: str) -> None:
    """In all numbers of the state within 1e-12, also after earlier rewards of both kinds."""
    bandit, x, rewards = CONJUGATE[name]
    each, at_once = bandit.belief(), bandit.belief()
    for belief in (each, at_once):
        for arm, r in zip(("red", "blue", "blue"), rewards, strict=False):
            belief.observe(x, arm, r)
    for r in rewards * 3:
        each.observe(x, "red", r)
    at_once.observe_totals(x, "red", totals_of(rewards * 3))
    each.observe(x, "green", rewards[0])
    at_once.observe(x, "green", rewards[0])
    assert_same(each, at_once)
    if "shared" not in name:  # three arms with shared weights have no exact probabilities
        p, q = each.action_probabilities(x), at_once.action_probabilities(x)
        assert p == pytest.approx(q, abs=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "geometric", "bernoulli, learned"])
def test_sums_of_whole_numbers_are_equal_bit_for_bit(name: str) -> None:
    bandit, x, rewards = CONJUGATE[name]
    each, at_once = bandit.belief(), bandit.belief()
    for r in rewards:
        each.observe(x, "red", r)
    at_once.observe_totals(x, "red", totals_of(rewards))
    one, two = each.save(), at_once.save()
    assert all(v.tobytes() == two[k].tobytes() for k, v in one.items())
    stream = Stream(1), Stream(1)
    assert [each.draw_action(x, stream[0]) for _ in range(50)] == [
        at_once.draw_action(x, stream[1]) for _ in range(50)
    ]


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_zeros_and_ones_are_learned_one_by_one_with_the_ones_first(name: str) -> None:
    make, x, arm = ONE_BY_ONE[name]
    each, at_once = make(), make()
    for r in sorted(BITS, reverse=True):
        each.observe(x, arm, int(r))
    at_once.observe_totals(x, arm, Totals(5, 3))
    one, two = each.save(), at_once.save()
    assert all(v.tobytes() == two[k].tobytes() for k, v in one.items())


def test_a_million_rewards_are_learned_at_once() -> None:
    belief = BernoulliBandit(ARMS).belief()
    belief.observe_totals(None, "red", Totals(10**9, 4 * 10**8))
    assert belief.posterior()[0].tolist() == [4e8 + 1, 6e8 + 1]
    assert belief.pulls["red"] == 10**9
    assert belief.chooses == "by screening"


def test_rewards_far_from_zero_need_their_squares_to_be_exact() -> None:
    rewards = [1000.0, 1000.5, 999.5, 1001.0]
    each, at_once = (GaussianBandit(ARMS, sd=None, prior=(1000, 1, 2, 1)).belief() for _ in "12")
    for r in rewards:
        each.observe(None, "red", r)
    at_once.observe_totals(None, "red", totals_of(rewards))
    np.testing.assert_allclose(each.posterior(), at_once.posterior(), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "totals", "message"),
    [
        ("bernoulli", Totals(0, 0), "n=0: expected an integer of at least 1"),
        ("bernoulli", Totals(2.0, 1), "n=2.0: expected an integer"),  # type: ignore[arg-type]
        ("bernoulli", Totals(True, 1), "n=True"),
        ("bernoulli", Totals(10**9 + 1, 1), "n=1000000001"),
        ("bernoulli", Totals(3, 4), "total 4 of 3 rewards is impossible for a Bernoulli arm"),
        ("bernoulli", Totals(3, 1.5), "expected a whole number from 0 to 3"),
        ("bernoulli", Totals(3, -1), "total -1"),
        ("bernoulli", Totals(3, float("nan")), "total nan"),
        ("bernoulli", Totals(3, "2"), "total '2'"),  # type: ignore[arg-type]
        ("bernoulli", Totals(3, 2, 3.0), "have the sum of squares 2"),
        ("bernoulli", (3, 2), "expected Totals"),
        ("bernoulli, learned", Totals(3, 4), "total 4"),
        ("bernoulli, pooled", Totals(3, 4), "total 4"),
        ("poisson", Totals(3, 1.5), "a whole number"),
        ("poisson", Totals(3, -1), "total -1"),
        ("poisson", Totals(2, 4, 7.9), "at least 8"),
        ("geometric", Totals(3, 1.5), "a whole number"),
        ("exponential", Totals(3, 0.0), "total 0.0"),
        ("exponential", Totals(1, 3.0, 8.0), "have the sum of squares 9"),
        ("gaussian, known noise", Totals(3, float("inf")), "total inf"),
        ("gaussian, own noise", Totals(3, 1.0, float("inf")), "sum of squares inf"),
        ("gaussian, own noise", Totals(2, 4.0, 7.0), "at least 8"),
        ("linear", Totals(2, 1e60), "total 1e"),
        *((name, Totals(3, 1.0), "give the sum of the squared rewards") for name in NEED_SQUARES),
    ],
)
def test_impossible_totals_change_nothing(name: str, totals: Any, message: str) -> None:
    bandit, x, rewards = CONJUGATE[name]
    belief = bandit.belief()
    belief.observe(x, "red", rewards[0])
    before = belief.save()
    with pytest.raises(BadEvidence, match=message):
        belief.observe_totals(x, "red", totals)
    after = belief.save()
    assert all(v.tobytes() == after[k].tobytes() for k, v in before.items())


@pytest.mark.parametrize("name", CONJUGATE)
def test_an_unknown_arm_is_an_error(name: str) -> None:
    bandit, x, rewards = CONJUGATE[name]
    with pytest.raises(UnknownArm, match="no arm 'pink'"):
        bandit.belief().observe_totals(x, "pink", totals_of(rewards))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_rewards_that_are_learned_one_by_one_are_at_most_ten_thousand(name: str) -> None:
    make, x, arm = ONE_BY_ONE[name]
    belief = make()
    before = belief.save()
    for totals in (Totals(10_001, 1), Totals(3, 1.5)):
        with pytest.raises(BadEvidence):
            belief.observe_totals(x, arm, totals)
    after = belief.save()
    assert all(v.tobytes() == after[k].tobytes() for k, v in before.items())


def test_impossible_rewards_of_joint_hypotheses_change_nothing() -> None:
    belief = JointBandit([[1.0, 0.5], [0.0, 0.5]]).agent().belief
    with pytest.raises(BadEvidence, match="every mode"):
        belief.observe_totals(0, 0, Totals(5, 2))
    assert belief.count == 0
    assert belief.posterior().tolist() == [0.5, 0.5]


def test_a_pooled_belief_needs_a_segment() -> None:
    belief = BernoulliBandit(ARMS).pooled().belief()
    with pytest.raises(BadSituation, match="no segment"):
        belief.observe_totals(None, "red", Totals(3, 1))
    assert belief.segments == ()


@pytest.mark.parametrize("per_arm", [False, True])
@pytest.mark.parametrize(
    "bandit", [BernoulliBandit(ARMS), GaussianBandit(ARMS)], ids=["fixed", "learned"]
)
def test_a_changing_belief_has_to_know_when_rewards_came(bandit: Any, per_arm: bool) -> None:
    belief = bandit.changing(per_arm=per_arm).belief()
    with pytest.raises(MissingCapability, match="one reward of each decision"):
        belief.observe_totals(None, "red", Totals(3, 1))


def test_beliefs_whose_rewards_have_no_such_sums_say_so() -> None:
    categorical = CategoricalBandit(ARMS, values=[0, 1, 5]).belief()
    gaussian = GaussianBandit(2, sd=1, prior=(0, 1)).agent(draws=[[0.0, 1.0]]).belief
    for belief, arm in ((categorical, "red"), (gaussian, 0)):
        with pytest.raises(MissingCapability, match="one by one"):
            belief.observe_totals(None, arm, Totals(3, 1))
