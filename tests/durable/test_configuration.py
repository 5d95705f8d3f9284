"""The configuration of durable agents: holdout, shares and sessions, with exact probabilities."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.agents import same_state

from bayescontrol import BernoulliBandit, errors
from bayescontrol.bandits import CategoricalBandit, LinearBandit
from bayescontrol.durable import Act, Configuration, Decided, open_agent, replay
from bayescontrol.durable.configuration import draw_from, limited, redrawn
from bayescontrol.finite.tabular import random_modes
from bayescontrol.lqr import LinearQuadratic, SystemPrior
from bayescontrol.seeding import Stream

SHOP = BernoulliBandit(["red", "blue", "green"])
MEMORY = "sqlite:///:memory:"


@st.composite
def bounded_probabilities(draw: st.DrawFn) -> tuple[dict[int, float], dict[int, Any]]:
    weights = draw(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
    P = {i: w / (sum(weights) or 1.0) for i, w in enumerate(weights)}
    shares = {}
    for i in P:
        low, high = sorted(draw(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))))
        shares[i] = (low / len(P), max(high, 1.0 / len(P)))
    return P, shares


@given(bounded_probabilities())
def test_limited_probabilities_are_clipped_multiples_with_sum_one(given: Any) -> None:
    P, shares = given
    p = limited(P, shares)
    assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
    for i, value in p.items():
        assert shares[i][0] - 1e-12 <= value <= shares[i][1] + 1e-12
    # Those strictly within their bounds have the same ratio c to P.
    inner = [i for i in P if shares[i][0] + 1e-9 < p[i] < shares[i][1] - 1e-9 and P[i] > 1e-6]
    ratios = [p[i] / P[i] for i in inner]
    assert all(ratio == pytest.approx(ratios[0], rel=1e-6) for ratio in ratios)
    if ratios:  # the others are at the bound to which c leads
        c = ratios[0]
        for i in P:
            assert p[i] == pytest.approx(min(max(c * P[i], shares[i][0]), shares[i][1]), abs=1e-6)


def test_wide_shares_change_nothing_and_equal_shares_decide() -> None:
    P = {"red": 0.7, "blue": 0.2, "green": 0.1}
    assert limited(P, {}) == pytest.approx(P, abs=1e-15)
    third = dict.fromkeys(P, (1 / 3, 1 / 3))
    assert limited(P, third) == pytest.approx(dict.fromkeys(P, 1 / 3))


def test_an_arm_whose_probability_underflows_gets_what_the_others_cannot_take() -> None:
    p = limited({"red": 1.0, "blue": 0.0, "green": 0.0}, {"red": (0.0, 0.5)})
    assert p == pytest.approx({"red": 0.5, "blue": 0.25, "green": 0.25})


def test_shares_that_no_distribution_has_are_refused() -> None:
    with pytest.raises(errors.InvalidRequest, match=r"sum to 1\.2"):
        limited({"red": 0.5, "blue": 0.5}, {"red": (0.6, 1.0), "blue": (0.6, 1.0)})
    with pytest.raises(errors.InvalidRequest, match=r"the maxima to 0\.8"):
        limited({"red": 0.5, "blue": 0.5}, {"red": (0.0, 0.4), "blue": (0.0, 0.4)})


def test_redrawing_has_the_limited_distribution() -> None:
    # Pearson's chi-square with 2 degrees of freedom: above 18.4 with probability 1e-4.
    P, p = {0: 0.7, 1: 0.2, 2: 0.1}, {0: 0.4, 1: 0.25, 2: 0.35}
    rng, counts, n = Stream(5), np.zeros(3), 20_000
    for _ in range(n):
        counts[redrawn(draw_from(P, rng.random()), P, p, rng)] += 1
    expected = n * np.array(list(p.values()))
    assert ((counts - expected) ** 2 / expected).sum() < 18.4
    unlimited = n * np.array(list(P.values()))
    assert ((counts - unlimited) ** 2 / unlimited).sum() > 18.4  # the test can fail


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"holdout": 1.5}, "holdout=1.5"),
        ({"holdout": True}, "holdout=True"),
        ({"shares": {"red": (0.5, 0.2)}}, "maximum"),
        ({"shares": {"red": 0.5}}, "give .minimum, maximum."),
        ({"shares": {"red": (0.7, 1), "blue": (0.7, 1)}}, "sum to 1.4"),
        ({"prices": {"red": "dear"}}, "dear"),
        ({"prices": {"red": float("nan")}}, "nan"),
        ({"window": 60}, "give both"),
        ({"default": 0}, "give both"),
        ({"window": -1, "default": 0}, "window=-1"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"sahres": {}}, "sahres"),
    ],
)
def test_an_invalid_configuration_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=message):
        Configuration.from_settings(settings)


def test_a_default_outside_the_range_is_refused() -> None:
    with pytest.raises(errors.BadEvidence, match="from 0 to 1"):
        Configuration(window=1, default=2, reward_range=(0, 1))


@pytest.mark.parametrize(
    ("model", "configuration", "error"),
    [
        (SHOP, Configuration(shares={"pink": (0, 1)}), errors.InvalidRequest),
        (SHOP, Configuration(holdout=0.1, control="pink"), errors.InvalidRequest),
        (SHOP, Configuration(shares=dict.fromkeys(["red", "blue", "green"], (0, 0.2))),
         errors.InvalidRequest),
        (SHOP, Configuration(window=1, default=7), errors.BadEvidence),
        (random_modes(2, situations=3, seed=1), Configuration(window=1, default=0),
         errors.MissingCapability),
    ],
)  # fmt: skip
def test_a_configuration_that_the_agent_cannot_follow_changes_nothing(
    model: Any, configuration: Configuration, error: type[Exception]
) -> None:
    with open_agent(MEMORY, "shop", model) as agent:
        with pytest.raises(error):
            agent.configure(configuration)
        assert (agent.head, agent.configuration) == (1, Configuration())


def test_shares_need_exact_probabilities() -> None:
    bandit = CategoricalBandit(2, values=[0, 1, 5])
    with open_agent(MEMORY, "shop", bandit) as agent:
        agent.configure(Configuration(shares={0: (0.2, 1.0)}))
        with pytest.raises(errors.MissingCapability, match="exact action probabilities"):
            agent.act()


def test_a_new_agent_is_not_created_with_an_invalid_configuration() -> None:
    with pytest.raises(errors.InvalidRequest):
        open_agent(MEMORY, "shop", SHOP, configuration=Configuration(shares={"pink": (0, 1)}))


def test_the_configuration_is_part_of_the_log(tmp_path: Path) -> None:
    url, first = f"sqlite:///{tmp_path}/a.db", Configuration(holdout=0.25, control="blue")
    with open_agent(url, "shop", SHOP, configuration=first) as agent:
        assert agent.head == 2
        second = Configuration(shares={"red": (0.5, 1.0)}, prices={})
        agent.configure(second)
        agent.snapshot()
    with open_agent(url, "shop", configuration=second) as agent:
        assert agent.configuration == second
    with pytest.raises(errors.ModelMismatch, match="configure"):
        open_agent(url, "shop", configuration=first)
    open_agent(url, "shop").close()


# -- exact probabilities ---------------------------------------------------------------------------


def frequencies(configuration: Configuration, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return counts of actions and of the holdout in fresh sessions, and the probabilities."""
    with open_agent(MEMORY, "shop", SHOP, seed=seed) as agent:
        for arm, rewards in {"red": (1, 1, 0), "blue": (0, 0, 1)}.items():
            for o in rewards:  # whatever the agent would choose
                d = next(d for d in iter(agent.act, None) if d.action == arm)
                agent.observe(d, o)
        agent.configure(configuration)
        p = agent.probabilities()
        assert p is not None
        decisions = [agent.act() for _ in range(n)]
    counts = np.array([sum(d.action == a for d in decisions) for a in p])
    assert all(d.probability == p[d.action] for d in decisions)
    return counts, sum(d.holdout for d in decisions), np.array(list(p.values()))


@pytest.mark.parametrize(
    "configuration",
    [
        Configuration(holdout=0.3),
        Configuration(holdout=0.3, control="green"),
        Configuration(shares={"red": (0.1, 0.4), "green": (0.3, 1.0)}),
        Configuration(holdout=0.5, control="blue", shares={"red": (0.2, 1.0), "blue": (0.0, 0.5)}),
    ],
)
def test_the_probability_of_every_action_is_exact(configuration: Configuration) -> None:
    # Chi-square with 2 degrees of freedom: above 18.4 with probability 1e-4; and |z| < 4.
    n = 3_000
    counts, held, p = frequencies(configuration, n, seed=11)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((counts - n * p) ** 2 / (n * p)).sum() < 18.4
    h = configuration.holdout
    assert abs(held - n * h) <= 4 * np.sqrt(n * h * (1 - h))


def test_the_holdout_is_a_mixture_within_the_shares() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(holdout=0.2, control="red", shares={"blue": (0.1, 1.0)}))
        # The agent: 1/3 each. The holdout: red .9, blue .1.
        assert agent.probabilities() == pytest.approx(
            {"red": 0.8 / 3 + 0.2 * 0.9, "blue": 0.8 / 3 + 0.2 * 0.1, "green": 0.8 / 3}
        )


def test_the_belief_learns_from_the_holdout_too() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.configure(Configuration(holdout=1.0, control="blue"))
        d = agent.act()
        assert (d.action, d.holdout, d.probability) == ("blue", True, 1.0)
        assert agent.explain(d).mode is None
        agent.observe(d, 1)
        assert agent.posterior()["blue"]["count"] == 1


def test_decisions_with_a_configuration_are_replayed_and_explained(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_agent(url, "shop", SHOP, seed=4) as agent:
        for i, h in itertools.product(range(3), (0.0, 0.5)):
            agent.configure(Configuration(holdout=h, shares={"red": (0.1 * i, 0.9)}))
            decisions = [agent.act(key=f"{i} {h} {k}") for k in range(6)]
            for d in decisions[::2]:
                agent.observe(d, i % 2)
        for d in decisions:
            assert agent.explain(d).decision == d
        events = list(agent.log())
        assert same_state(agent, replay(iter(events)).state)
        state = agent.state()
    with open_agent(url, "shop") as agent:
        assert same_state(agent, state)
        assert agent.act(key="0 0.5 3").id == str(
            next(e.seq for e in events if isinstance(e, Decided) and e.key == "0 0.5 3")
        )


def test_without_a_configuration_the_draws_are_those_of_the_agent_alone() -> None:
    with (
        open_agent(MEMORY, "shop", SHOP, seed=3) as plain,
        open_agent(MEMORY, "shop", SHOP, seed=3) as configured,
    ):
        plain_actions = [plain.act().action for _ in range(31)][1:]
        configured.configure(Configuration(shares={"red": (0.0, 1.0)}, holdout=0.0))
        assert [configured.act().action for _ in range(30)] == plain_actions


def test_contextual_agents_follow_the_shares_in_every_situation() -> None:
    bandit = LinearBandit(["red", "blue"], features=2, sd=1, prior=(0, 1))
    with open_agent(MEMORY, "shop", bandit, seed=2) as agent:
        agent.configure(Configuration(shares={"blue": (0.25, 0.5)}))
        for x in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
            p = agent.probabilities(x)
            assert p is not None
            assert 0.25 <= p["blue"] <= 0.5
            assert agent.act(x).probability in p.values()


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_holds_its_decision_also_after_reopening(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_agent(url, "shop", SHOP, seed=1) as agent:
        first = {f"s{i}": agent.act(session=f"s{i}") for i in range(5)}
        assert {d.session for d in first.values()} == set(first)
        assert all(agent.act(session=s) == d for s, d in first.items())
        assert agent.head == 6
    with open_agent(url, "shop") as agent:
        assert agent.act(session="s3") == first["s3"]


def test_the_next_call_of_a_session_does_not_fold_the_log() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        first = agent.act(session="s", key="k")
        again, with_a_key = agent.act(session="s"), agent.act(session="s", key="other")
        assert agent.act(session="s", key="k") == first
        assert first == again == with_a_key
        assert first.probabilities is not None
        assert again.probabilities is with_a_key.probabilities is None  # only a fold has them
        assert agent.explain(again).probabilities == pytest.approx(first.probabilities)


def test_requests_of_one_session_in_one_batch_share_a_decision() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        batch = [Act(None, session="s"), Act(None, session="t"), Act(None, session="s")]
        agent.handle(batch)
        results = [request.answer() for request in batch]
        assert results[0] == results[2] != results[1]
        assert agent.head == 3


@pytest.mark.parametrize("session", ["", "a\nb", 7, "x" * 201])
def test_invalid_sessions_are_refused(session: Any) -> None:
    with (
        open_agent(MEMORY, "shop", SHOP) as agent,
        pytest.raises(errors.InvalidRequest, match="session"),
    ):
        agent.act(session=session)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {"among": ["blue"]},
            {"among": ["green"]},
            r"decision 2 among \['blue'\], not \['green'\]",
        ),
        ({"among": ["blue"]}, {}, "not None"),
        ({"session": "s"}, {"session": "t"}, "decision 2 of session 's', not 't'"),
        ({"session": "s"}, {}, "of session 's', not None"),
        ({}, {"session": "s"}, "of session None, not 's'"),
    ],
)
def test_a_key_of_another_call_is_refused(first: Any, second: Any, message: str) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        d = agent.act(key="k", **first)
        with pytest.raises(errors.ConflictingKey, match=message):
            agent.act(key="k", **second)
        assert agent.act(key="k", **first) == d
    with open_agent(MEMORY, "shop", SHOP) as agent:  # the same in one batch
        batch = [Act(None, "j", **first), Act(None, "j", **second), Act(None, "j", **first)]
        agent.handle(batch)
        assert isinstance(batch[1].error, errors.ConflictingKey)
        assert batch[0].result == batch[2].result
        assert agent.head == 2


def test_a_call_with_the_key_of_a_decision_returns_it_after_its_arm_was_paused() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        first = agent.act(session="s", key="k")
        agent.pause_arm(first.action)
        assert agent.act(session="s", key="k") == first
        assert agent.act(session="s").action != first.action


def test_agents_that_need_feedback_in_turn_have_no_sessions() -> None:
    with open_agent(MEMORY, "stream", random_modes(2, situations=3, seed=1)) as agent:
        batch = [Act(None, session="s"), Act(None)]
        agent.handle(batch)
        assert isinstance(batch[0].error, errors.MissingCapability)
        assert batch[1].result.id == "2"


def test_a_repeated_session_needs_a_valid_situation() -> None:
    bandit = LinearBandit(["red", "blue"], features=2, sd=1, prior=(0, 1))
    with open_agent(MEMORY, "shop", bandit) as agent:
        first = agent.act([1.0, 0.0], session="s")
        assert agent.act([0.5, 0.5], session="s") == first
        for x in ([1.0], None):
            with pytest.raises(errors.BadSituation):
                agent.act(x, session="s")


def test_states_of_a_plant_have_no_range_of_rewards() -> None:
    plant = LinearQuadratic([[1.0]], [[1.0]], prior=SystemPrior())
    with (
        open_agent(MEMORY, "plant", plant) as agent,
        pytest.raises(errors.MissingCapability, match="states, not rewards"),
    ):
        agent.configure(Configuration(reward_range=(0, 1)))
