"""The events that the monitor sends to the live page, and the metrics."""

import time
from typing import Any

import numpy as np
import pytest
from tests.durable.problems import PROBLEMS, live
from tests.serve.listening import events
from tests.serve.raw import ask, memory

import bayescontrol as bc
from bayescontrol.durable import named_model, open_agent
from bayescontrol.serve import Client
from bayescontrol.serve.demo import dispenser
from bayescontrol.serve.monitor import belief_state, posterior_rows


def test_agents_are_sent_at_once_and_then_every_second_with_their_decisions() -> None:
    truth = {"red": 0.2, "blue": 0.7}
    model = dispenser()
    with (
        memory(truths={"shop": truth}, models={model.name: model}) as server,
        Client(server.url) as client,
    ):
        shop = client.create("shop", bc.BernoulliBandit(["red", "blue"]), seed=1)
        lever = client.create("lever", model.name)
        stream = events(client)
        kind, first = next(stream)
        assert kind == "agents"
        assert {one["name"]: one["decisions"] for one in first} == {"shop": 0, "lever": 0}
        actions = []
        for i in range(30):
            decision = shop.act()
            actions.append(decision.action)
            if i < 20:
                shop.observe(decision, i % 2)
            lever.observe(lever.act(), 0)
        shop.act(key="again")
        again = shop.act(key="again")
        actions.append(again.action)
        recorded: dict[str, list[Any]] = {"agents": [], "decision": []}
        for kind, value in stream:
            recorded[kind].append(value)
            if kind == "agents":
                result = {one["name"]: one for one in value}
                if result["shop"]["decisions"] == 31 and result["lever"]["observations"] == 30:
                    break
        stream.close()
    shop_now, lever_now = result["shop"], result["lever"]
    assert (shop_now["observations"], shop_now["pending"]) == (20, 11)
    assert shop_now["regret"] == pytest.approx(0.5 * actions.count("red"))
    assert shop_now["model"] == "bernoulli-bandit 1"
    assert [mode["name"] for mode in shop_now["modes"]] == ["red", "blue"]
    for mode in shop_now["modes"]:
        assert mode["low"] < mode["mean"] < mode["high"]
    assert sum(shop_now["probabilities"].values()) == pytest.approx(1.0)
    assert shop_now["surprise_bits"] > 0.0
    assert shop_now["rate_per_s"] > 0.0
    assert shop_now["alarm"] is None
    assert shop_now["measure"] == {"name": "mean reward", "unit": "reward"}
    assert shop_now["remarks"] == []
    assert lever_now["alarm"]["raised"] is True  # it never paid: no expert fits
    assert lever_now["alarm"]["evidence_bits"] > lever_now["alarm"]["threshold_bits"]
    assert lever_now["regret"] is None
    assert sum(mode["weight"] for mode in lever_now["modes"]) == pytest.approx(1.0)
    assert recorded["decision"]
    assert {"agent", "id", "action", "probability", "time"} == set(recorded["decision"][0])


@pytest.mark.parametrize(
    ("problem", "observed"),
    [
        (bc.BernoulliBandit(2), [1, 0, 1]),
        (bc.GaussianBandit(2), [0.5, 1.5, -1.0]),
        (bc.GaussianBandit(2, sd=1.0, prior=(0, 1)), [0.5, 1.5, -1.0]),
        (bc.GaussianBandit(2, sd=None, prior=(0, 1, 1, 1)), [0.5, 1.5, -1.0]),
        (bc.PoissonBandit(2), [3, 0, 1]),
        (bc.ExponentialBandit(2), [0.3, 2.0, 1.0]),
    ],
)
def test_the_interval_of_an_arm_holds_95_percent_of_its_draws(
    problem: Any, observed: list[float]
) -> None:
    """20,000 draws: a share is off by four standard errors with probability 6e-5; fixed seed."""
    agent = problem.agent()
    for o in observed:
        agent.observe(0, o)
    arm, rng = posterior_rows(agent)[0], bc.Stream(3)
    draws = [agent.belief.sample(rng).means[0] for _ in range(20_000)]
    inside = sum(arm["low"] <= m <= arm["high"] for m in draws) / len(draws)
    below = sum(m < arm["low"] for m in draws) / len(draws)
    assert abs(inside - 0.95) < 0.0062
    assert abs(below - 0.025) < 0.0045


def test_metrics_count_requests_decisions_and_observations() -> None:
    with memory() as server, Client(server.url) as client:
        shop = client.create("shop", bc.BernoulliBandit(2), seed=1)
        for _ in range(3):
            shop.act(key="k")
        shop.observe(shop.act(), 1)
        assert ask(server.url, "GET", "/v1/agents/nobody").status == 404
        answer = ask(server.url, "GET", "/v1/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = dict(
        line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if line[0] != "#"
    )
    of = "bayescontrol_"
    assert lines[f'{of}decisions_total{{agent="shop"}}'] == "2.0"  # one key is one decision
    assert lines[f'{of}observations_total{{agent="shop"}}'] == "1.0"
    act = '{method="POST",route="/v1/agents/{name}/act",status="200"}'
    assert lines[f"{of}requests_total{act}"] == "4.0"
    assert lines[f'{of}problems_total{{problem="unknown-agent"}}'] == "1.0"
    assert lines[f"{of}agents"] == "1.0"
    assert lines[f"{of}ready"] == "1.0"
    le = '{le="+Inf",route="/v1/agents/{name}/act"}'
    assert lines[f"{of}request_seconds_bucket{le}"] == "4.0"
    assert not [line for line in lines if "_created" in line]


# -- frames: every kind of agent has a plot or a reason why not ------------------------------------


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
    bandit = bc.LogitNormalBandit([0.0, 0.5], [[1.0, 0.5], [0.5, 2.0]], particles=4000)
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
            self._agent = bc.BernoulliBandit(["a", "b"]).agent()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._agent, name)

    model = named_model("silent", version=1, build=Silent)
    with open_agent("sqlite:///:memory:", "here", model, seed=1) as agent:
        state = agent.ask(lambda rule: belief_state(agent, rule))
        assert state["modes"] == []
        assert state["measure"] is None
        assert "no posterior" in state["remarks"][0]


def test_at_most_200_modes_are_sent() -> None:
    bandit = bc.LinearBandit(30, features=20)
    with open_agent("sqlite:///:memory:", "here", bandit) as agent:
        state = agent.ask(lambda rule: belief_state(agent, rule))
        assert len(state["modes"]) == 200
        assert "at most 200" in " ".join(state["remarks"])
    with open_agent("sqlite:///:memory:", "here", bc.BernoulliBandit(200)) as agent:
        assert agent.ask(lambda rule: belief_state(agent, rule))["remarks"] == []


def test_an_agent_that_always_acts_second_is_in_the_sample_too() -> None:
    with memory() as server, Client(server.url) as client:
        first, second = (client.create(name, bc.BernoulliBandit(2)) for name in ("first", "second"))
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
