"""Arms that come later, rest and come back, for every kind of belief that can change its arms."""

from typing import Any

import pytest
from tests.bandits.arm_beliefs import ARMS, CASES, X, make
from tests.durable.problems import PROBLEMS

from bayescontrol import BernoulliBandit, GaussianBandit, LinearBandit, Stream
from bayescontrol.bandits.roster import HasArms
from bayescontrol.errors import UnknownArm

CAN_CHANGE_ARMS = [name for name in CASES if isinstance(make(name)[0], HasArms)]


def assert_same_bits(one: Any, two: Any) -> None:
    before, after = one.save(), two.save()
    assert before.keys() == after.keys()
    assert all(v.tobytes() == after[k].tobytes() for k, v in before.items())


def draws(belief: Any, x: Any, seed: int) -> list[Any]:
    stream = Stream(seed)
    if not hasattr(belief, "draw_action"):
        return [belief.sample(stream).act(x, stream) for _ in range(30)]
    return [belief.draw_action(x, stream) for _ in range(30)]


def test_the_cases_cover_all_stored_beliefs_over_arms() -> None:
    stored = {type(problem.agent().belief) for problem in PROBLEMS.values()}
    tested = {type(make(name)[0]) for name in CAN_CHANGE_ARMS}
    assert {kind for kind in stored if issubclass(kind, HasArms)} <= tested


@pytest.mark.parametrize("name", CAN_CHANGE_ARMS)
def test_a_belief_with_later_arms_is_saved_and_loaded_bit_for_bit(name: str) -> None:
    belief, x, _ = make(name)
    belief.add("black")
    for arm in ("black", "red", "black"):
        belief.observe(x, arm, 1)
    belief.retire("blue")
    fresh = CASES[name][0]()
    fresh.add("black")
    fresh.load(belief.save())
    assert_same_bits(belief, fresh)
    assert fresh.arms == ("red", "green", "black")
    assert draws(belief, x, 1) == draws(fresh, x, 1)
    for each in (belief, fresh):
        each.restore("blue")
        each.observe(x, "blue", 1)
    assert_same_bits(belief, fresh)
    assert fresh.arms == (*ARMS, "black")
    assert draws(belief, x, 2) == draws(fresh, x, 2)


@pytest.mark.parametrize("name", CAN_CHANGE_ARMS)
def test_a_paused_arm_learns_and_comes_back_with_its_posterior(name: str) -> None:
    paused, x, _ = make(name)
    active = paused.copy()
    paused.retire("blue")
    assert "blue" not in draws(paused, x, 1)
    with pytest.raises(UnknownArm, match="already retired"):
        paused.retire("blue")
    for belief in (paused, active):
        belief.observe(x, "blue", 1)  # late feedback
    paused.restore("blue")
    with pytest.raises(UnknownArm, match="is active"):
        paused.restore("blue")
    assert draws(paused, x, 2) == draws(active, x, 2)


@pytest.mark.parametrize("per_arm", [False, True])
def test_an_arm_added_to_a_changing_belief_starts_from_its_prior(per_arm: bool) -> None:
    belief = BernoulliBandit(ARMS).changing(per_arm=per_arm).belief()
    for t in range(40):
        belief.observe(None, ARMS[t % 3], 1)
    belief.add("black", prior=(1, 3))
    assert belief.expected()["black"] == pytest.approx(0.25, abs=1e-12)
    assert belief.expected()["red"] > 0.9
    assert belief.pulls["black"] == 0
    for _ in range(30):
        belief.observe(None, "black", 0)
    assert belief.expected()["black"] < 0.1
    assert belief.expected()["red"] > 0.6  # not forgotten
    learned = GaussianBandit(ARMS).changing(per_arm=per_arm).belief()
    for t in range(40):
        learned.observe(None, ARMS[t % 3], 50.0 + t % 5)
    learned.add("black")
    assert learned.expected()["black"] == pytest.approx(learned.scales()["location"], rel=1e-9)


@pytest.mark.parametrize("kind", ["static", "changing", "per arm"])
@pytest.mark.parametrize(
    ("bandit", "situation"),
    [
        (BernoulliBandit(["red", "blue"], prior=(2, 38)), []),
        (LinearBandit(["red", "blue"], 2, sd=1.0, prior=((0.05, 0.0), 24)), [[1.0, 0.0]]),
    ],
)
def test_without_a_prior_an_added_arm_has_that_of_the_bandit(
    kind: str, bandit: Any, situation: Any
) -> None:
    problem = bandit if kind == "static" else bandit.changing(per_arm=kind == "per arm")
    belief = problem.belief()
    belief.observe(*(situation or [None]), "red", 1)
    belief.add("pink", prior=(8, 2))
    belief.add("grey")
    assert belief.expected(*situation)["grey"] == pytest.approx(0.05, abs=1e-12)


def test_the_context_of_an_arm_added_later_is_that_of_the_others() -> None:
    belief, x, _ = make("changing per arm, contexts")
    assert x is X
    belief.add("black")
    assert belief.expected(X)["black"] == pytest.approx(0.5, abs=1e-12)
