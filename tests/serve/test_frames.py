"""The frames of the live page: every kind of agent has a plot or a reason why not."""

import time
from typing import Any

import numpy as np
import pytest
from tests.durable.problems import PROBLEMS, live
from tests.serve.listening import events
from tests.serve.listening import frames as listened

from bayescontrol import BernoulliBandit, LogitNormalBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.serve import Client, Server
from bayescontrol.serve.monitor import belief_state, posterior_rows


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_kind_has_a_posterior_to_plot_or_a_reason_why_not(name: str) -> None:
    problem = PROBLEMS[name]
    with open_agent("sqlite:///:memory:", "here", problem, seed=1) as agent:
        live(problem, agent, 1)
        state = agent.ask(lambda rule: belief_state(agent, rule))
    modes, measure, remarks = state["modes"], state["measure"], state["remarks"]
    assert modes
    assert all((one["mean"] is None) != (one["weight"] is None) for one in modes)
    assert (measure is None) == (modes[0]["mean"] is None)
    assert len({one["name"] for one in modes}) == len(modes)
    unknown = state["probabilities"] is None
    assert any("action probabilities" in text for text in remarks) == unknown
    assert not any("no posterior" in text for text in remarks)


def test_the_bias_of_a_correlated_arm_is_that_of_the_particles() -> None:
    bandit = LogitNormalBandit([0.0, 0.5], [[1.0, 0.5], [0.5, 2.0]], particles=4000)
    agent = bandit.agent()
    for o in (1, 1, 0):
        agent.observe(0, o)
    result = posterior_rows(agent, "logit-normal-bandit")
    assert [one["name"] for one in result] == ["0", "1"]
    w, bias = agent.belief.posterior(), 1.0 / (1.0 + np.exp(-agent.belief.theta))
    for a, one in enumerate(result):
        assert one["mean"] == pytest.approx(np.exp(agent.belief.log_predictive(None, a, 1)))
        inside = w[(bias[:, a] >= one["low"]) & (bias[:, a] <= one["high"])].sum()
        assert inside == pytest.approx(0.95, abs=0.002)  # the interval ends at particles


def test_a_user_model_without_a_posterior_has_a_remark() -> None:
    class Silent:
        """A rule that acts, but whose belief has no posterior to show."""

        belief = None

        def __init__(self) -> None:
            self._agent = BernoulliBandit(["a", "b"]).agent()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._agent, name)

    model = named_model("silent", version=1, build=Silent)
    with open_agent("sqlite:///:memory:", "here", model, seed=1) as agent:
        state = agent.ask(lambda rule: belief_state(agent, rule))
        assert state["modes"] == []
        assert state["measure"] is None
        assert "no posterior" in state["remarks"][0]


def test_at_most_200_modes_are_sent() -> None:
    from bayescontrol import LinearBandit

    bandit = LinearBandit(30, features=20)
    with open_agent("sqlite:///:memory:", "here", bandit) as agent:
        state = agent.ask(lambda rule: belief_state(agent, rule))
        assert len(state["modes"]) == 200
        assert "at most 200" in " ".join(state["remarks"])
    with open_agent("sqlite:///:memory:", "here", BernoulliBandit(200)) as agent:
        assert agent.ask(lambda rule: belief_state(agent, rule))["remarks"] == []


def test_an_agent_that_always_acts_second_is_in_the_sample_too() -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        first, second = (client.create(name, BernoulliBandit(2)) for name in ("first", "second"))
        stream = events(client)
        next(stream)
        for _ in range(20):
            time.sleep(0.06)  # long enough that the first is always due, and the second just after
            first.act()
            second.act()
        result = []
        for kind, value in stream:
            if kind == "decision":
                result.append(value["agent"])
            elif {one["name"]: one["decisions"] for one in value} == {"first": 20, "second": 20}:
                break
        stream.close()
    assert result.count("first") >= 5
    assert result.count("second") >= 1


def test_the_event_stream_sends_means_and_reasons_for_missing_values() -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        client.create("plain", BernoulliBandit(2))
        client.create("walker", PROBLEMS["MDP"])
        stream = listened(client)
        result = next(stream)
        stream.close()
    assert result["plain"]["measure"] == {"name": "mean reward", "unit": "reward"}
    assert result["plain"]["remarks"] == []
    assert result["walker"]["measure"]["unit"] == "reward a step"
    assert len(result["walker"]["remarks"]) == 1
