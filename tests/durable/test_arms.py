"""Arms that come and go, and eligibility and prices of single decisions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square
from tests.durable.agents import MEMORY, same_state, url

import bayescontrol as bc
from bayescontrol import BernoulliBandit, errors
from bayescontrol.bandits import DrawsBandit, LinearBandit, LogitNormalBandit
from bayescontrol.durable import (
    Act,
    Configuration,
    DurableAgent,
    export_log,
    open_agent,
    read_log,
    replay,
)
from bayescontrol.finite.tabular import random_modes
from bayescontrol.schedules import Every

SHOP = BernoulliBandit(["red", "blue", "green"])
#: Models whose arms can be added, each with a situation, rewards, and a prior for a new arm.
GROWING: dict[str, tuple[Any, Any, Any]] = {
    "bernoulli": (SHOP, None, (8, 2)),
    "bernoulli, learned": (BernoulliBandit(["red", "blue", "green"], prior="learned"), None, None),
    "gaussian, learned": (bc.GaussianBandit(["red", "blue", "green"]), None, None),
    "linear": (LinearBandit(["red", "blue", "green"], features=2), [1.0, 0.5], None),
    "pooled": (SHOP.pooled(), "de", None),
    "changing": (SHOP.changing(), None, (8, 2)),
    "per arm": (SHOP.changing(per_arm=True), None, (8, 2)),
    "changing, learned": (bc.GaussianBandit(["red", "blue", "green"]).changing(), None, None),
}  # fmt: skip


def run(agent: DurableAgent, x: Any, n: int = 8) -> list[Any]:
    decisions = [agent.act(x) for _ in range(n)]
    for i, d in enumerate(decisions[::2]):
        agent.observe(d, i % 2)
    return decisions


@pytest.mark.parametrize("name", GROWING)
def test_arms_come_and_go_with_exact_probabilities_and_replay(tmp_path: Path, name: str) -> None:
    model, x, prior = GROWING[name]
    with open_agent(url(tmp_path), "shop", model, seed=5, snapshot_every=7) as agent:
        decisions = run(agent, x)
        agent.add_arm("pink", prior)
        decisions += run(agent, x)
        agent.pause_arm("red")
        paused = run(agent, x)
        assert "red" not in {d.action for d in paused}
        assert all(set(d.probabilities) == {"blue", "green", "pink"} for d in paused)
        red = next((d for d in decisions[1::2] if d.action == "red"), None)
        if red is not None:  # late feedback of a paused arm is learned
            assert agent.observe(red, 1)
        agent.resume_arm("red")
        agent.retire_arm("blue")
        decisions += paused + run(agent, x)
        assert agent.arms() == {
            "red": "active", "blue": "retired", "green": "active", "pink": "active"
        }  # fmt: skip
        for d in decisions:
            assert sum(d.probabilities.values()) == pytest.approx(1.0, abs=1e-8)
            assert d.probability == d.probabilities[d.action]
        for d in (decisions[0], decisions[9], paused[3], decisions[-1]):
            why = agent.explain(d)
            assert why.decision == d
            assert why.probabilities == pytest.approx(d.probabilities, abs=1e-9)
        export_log(agent, tmp_path / "log.jsonl")
        state = agent.state()
        again = replay(read_log(tmp_path / "log.jsonl"))
        assert same_state(agent, again.state)
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, state)
        assert agent.arms()["blue"] == "retired"
        run(agent, x)


def test_an_added_arm_starts_from_its_prior() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.add_arm("pink", prior=(8, 2))
        assert agent.posterior()["pink"]["mean"] == 0.8
        agent.add_arm("grey")
        assert agent.posterior()["grey"]["mean"] == 0.5


@pytest.mark.parametrize(
    ("change", "arm", "error", "message"),
    [
        ("add_arm", "red", errors.InvalidRequest, "exists already and is active"),
        ("pause_arm", "pink", errors.UnknownArm, "no arm 'pink'"),
        ("resume_arm", "red", errors.InvalidRequest, "is active"),
        ("pause_arm", "blue", errors.InvalidRequest, "is retired: it cannot be paused"),
        ("resume_arm", "blue", errors.InvalidRequest, "does not return"),
        ("retire_arm", "blue", errors.InvalidRequest, "is already retired"),
        ("add_arm", "blue", errors.InvalidRequest, "retired"),
    ],
)
def test_impossible_changes_are_refused_and_change_nothing(
    change: str, arm: str, error: type[Exception], message: str
) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.retire_arm("blue")
        before = agent.state(), agent.arms(), agent.head
        with pytest.raises(error, match=message):
            getattr(agent, change)(arm)
        assert (agent.arms(), agent.head) == before[1:]
        assert same_state(agent, before[0])


def test_the_last_active_arm_stays() -> None:
    with open_agent(MEMORY, "shop", BernoulliBandit(["red", "blue"])) as agent:
        agent.pause_arm("red")
        with pytest.raises(errors.InvalidRequest, match="only active arm"):
            agent.retire_arm("blue")
        assert {agent.act().action for _ in range(5)} == {"blue"}


def test_an_invalid_prior_is_refused() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        with pytest.raises(errors.InvalidPrior):
            agent.add_arm("pink", prior=(-1, 2))
        assert (agent.head, list(agent.arms())) == (1, ["red", "blue", "green"])


@pytest.mark.parametrize(
    ("model", "schedule"),
    [(random_modes(2, situations=3, seed=1), None), (bc.GibbsMDP(2, 2), None), (SHOP, Every(3))],
)
def test_agents_that_cannot_choose_among_arms_refuse(model: Any, schedule: Any) -> None:
    options = {} if schedule is None else {"schedule": schedule}
    with open_agent(MEMORY, "shop", model, **options) as agent:
        with pytest.raises(errors.MissingCapability):
            agent.act(among=["red"])
        with pytest.raises((errors.MissingCapability, errors.InvalidRequest)):
            agent.pause_arm("red")
        assert agent.head == 1
        assert agent.act().id == "2"


# -- eligibility and prices ------------------------------------------------------------------------

CHOOSING: dict[str, tuple[Any, Any, list[Any]]] = {
    "bernoulli": (SHOP, None, ["red", "blue", "green"]),
    "linear": (LinearBandit(["red", "blue", "green"], 1, sd=1, prior=(0, 1)), [1.0],
               ["red", "blue", "green"]),
    "joint": (bc.JointBandit([[0.9, 0.2, 0.5], [0.3, 0.6, 0.5], [0.1, 0.2, 0.4]]), None, [0, 1, 2]),
    "draws": (DrawsBandit(SHOP, [[0.2, 0.6, 0.5], [0.8, 0.7, 0.1], [0.5, 0.1, 0.3]]), None,
              ["red", "blue", "green"]),
    "changing": (SHOP.changing(), None, ["red", "blue", "green"]),
}  # fmt: skip


@pytest.mark.parametrize("prices", [False, True])
@pytest.mark.parametrize("name", CHOOSING)
def test_actions_have_the_logged_probabilities_among_eligible_arms(name: str, prices: bool) -> None:
    # One chi-square p-value below 1e-5 in a case is a false alarm with probability 1e-5.
    model, x, arms = CHOOSING[name]
    with open_agent(MEMORY, "shop", model, seed=8) as agent:
        for i in range(12):
            agent.observe(agent.act(x), i % 2)
        if prices:
            agent.configure(Configuration(prices={arms[0]: 0.1, arms[1]: -0.05}))
        among = [arms[0], arms[2]]
        n = 400
        decisions = [agent.act(x, among=among) for _ in range(n)]
        p = decisions[0].probabilities
        assert p is not None
        assert set(p) == set(among)
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
        counts = np.array([sum(d.action == a for d in decisions) for a in p])
        assert chi_square(counts, n * np.array(list(p.values()))) > 1e-5


def test_eligibility_restricts_each_mode_and_does_not_renormalise() -> None:
    # Modes: (.9 .1 .8) prefers 0, then 2; (.1 .9 .8) prefers 1, then 2; (.2 .3 .1) prefers 1, 0.
    model = bc.JointBandit([[0.9, 0.1, 0.8], [0.1, 0.9, 0.8], [0.2, 0.3, 0.1]])
    with open_agent(MEMORY, "shop", model) as agent:
        assert agent.probabilities() == pytest.approx({0: 1 / 3, 1: 2 / 3, 2: 0.0}, abs=1e-12)
        among = agent.probabilities(among=[0, 2])
        assert among == pytest.approx({0: 2 / 3, 2: 1 / 3}, abs=1e-12)  # renormalised: 1 and 0


def test_a_mode_maximises_mean_minus_price_and_the_belief_stays_about_rewards() -> None:
    model = bc.JointBandit([[0.9, 0.1], [0.1, 0.9]])
    with open_agent(MEMORY, "shop", model) as agent:
        agent.configure(Configuration(prices={0: 0.7}))
        assert agent.probabilities() == pytest.approx({0: 0.5, 1: 0.5}, abs=1e-12)
        agent.configure(Configuration(prices={0: 0.85}))  # .05 < .1 in the first mode
        assert agent.probabilities() == pytest.approx({0: 0.0, 1: 1.0}, abs=1e-12)
        assert [row["probability"] for row in agent.posterior().values()] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("among", "error"),
    [
        ([], errors.InvalidRequest),
        (["pink"], errors.UnknownArm),
        ("red", errors.InvalidRequest),
        (["blue"], errors.InvalidRequest),
    ],
)
def test_invalid_eligible_arms_are_refused(among: Any, error: type[Exception]) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.pause_arm("blue")
        with pytest.raises(error):
            agent.act(among=among)
        assert agent.head == 2


def test_paused_arms_are_never_eligible() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.pause_arm("blue")
        d = agent.act(among=["blue", "green"])
        assert (d.action, d.probability) == ("green", 1.0)


def test_a_session_gets_a_new_decision_when_its_arm_is_not_eligible() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        first = agent.act(session="s")
        agent.pause_arm(first.action)
        second = agent.act(session="s")
        assert second.action != first.action
        assert agent.act(session="s") == second
        agent.resume_arm(first.action)
        assert agent.act(session="s") == second  # it holds its last decision
        third = agent.act(session="s", among=[first.action])
        assert third.action == first.action


def test_a_session_that_holds_its_decision_needs_eligible_arms_that_exist() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        held, head = agent.act(session="ann"), agent.head
        batch = [Act(None, None, [held.action, "rde"], "ann"), Act(None, None, None, "ann")]
        agent.handle(batch)
        with pytest.raises(errors.UnknownArm, match="no arm 'rde'"):
            batch[0].answer()
        assert batch[1].answer() == held
        assert agent.head == head


def test_shares_apply_to_the_eligible_arms() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(shares={"red": (0.6, 1.0), "blue": (0.0, 0.1)}))
        assert agent.probabilities() == pytest.approx({"red": 0.6, "blue": 0.1, "green": 0.3})
        among = agent.probabilities(among=["blue", "green"])
        assert among == pytest.approx({"blue": 0.1, "green": 0.9})
        agent.configure(Configuration(shares={"red": (0.0, 0.3), "blue": (0.0, 0.3)}))
        with pytest.raises(errors.InvalidRequest, match=r"the maxima to 0\.6"):
            agent.act(among=["red", "blue"])


@pytest.mark.parametrize("change", ["pause_arm", "retire_arm"])
def test_a_change_after_which_no_decision_is_possible_is_refused(change: str) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(shares={"red": (0.0, 0.4), "green": (0.0, 0.4)}))
        with pytest.raises(errors.InvalidRequest, match=r"the maxima to 0\.8"):
            getattr(agent, change)("blue")
        assert agent.head == 2
        agent.pause_arm("red")
        assert agent.act().action in ("blue", "green")


@pytest.mark.parametrize("change", ["pause_arm", "retire_arm"])
def test_the_control_arm_stays_active(change: str) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(holdout=0.2, control="blue"))
        with pytest.raises(errors.InvalidRequest, match="configure another control first"):
            getattr(agent, change)("blue")
        agent.configure(Configuration(holdout=0.2, control="red"))
        getattr(agent, change)("blue")
        with pytest.raises(errors.InvalidRequest, match=r"control: arm 'blue' is (paused|retired)"):
            agent.configure(Configuration(holdout=0.2, control="blue"))
        assert agent.configuration.control == "red"


def test_without_the_control_among_the_eligible_arms_the_holdout_is_uniform() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(holdout=1.0, control="blue"))
        assert agent.probabilities(among=["red", "green"]) == {"red": 0.5, "green": 0.5}


def test_a_prior_of_a_new_arm_is_refused_without_a_number_of_the_arm() -> None:
    with (
        open_agent(MEMORY, "shop", SHOP) as agent,
        pytest.raises(errors.InvalidPrior, match="the prior: alpha = -1 must be positive"),
    ):
        agent.add_arm("pink", prior=(-1, 1))


def test_a_logit_normal_agent_chooses_among_its_arms() -> None:
    model = LogitNormalBandit([0.0, 0.0, 0.0], np.eye(3).tolist(), particles=200)
    with open_agent(MEMORY, "shop", model) as agent:
        assert {agent.act(among=[0, 2]).action for _ in range(20)} == {0, 2}
