"""Arms, configuration, totals, withdrawals, sessions and costs, over HTTP and in the library."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serve.raw import ask, memory, number

from bayescontrol import BernoulliBandit, errors
from bayescontrol.durable import Configuration, DurableAgent, open_agent
from bayescontrol.mdp import GibbsMDP
from bayescontrol.protocols import Totals
from bayescontrol.serve import Client, RemoteAgent, Server
from bayescontrol.serve.agents import _SETTLE_PERIOD
from bayescontrol.serve.http_errors import Refused

SHOP = BernoulliBandit(["red", "blue", "green"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with memory() as server:
        yield server.url


@pytest.fixture
def shop(url: str, request: pytest.FixtureRequest) -> Iterator[RemoteAgent]:
    name = "".join(c for c in request.node.name if c.isalnum())[:150]
    with Client(url) as client:
        yield client.create(name, SHOP, seed=5)


def carry_out(agent: Any) -> list[Any]:
    """Use every method that local and remote agents share; return the results."""
    settings = Configuration(
        holdout=0.2, control="green", shares={"red": (0.1, 0.9)}, prices={"blue": "reported"},
        reward_range=(0.0, 1.0),
    )  # fmt: skip
    found: list[Any] = [agent.configuration, agent.configure(settings), agent.configuration]
    made = [agent.act(among=["red", "blue"], session=f"visitor-{i % 5}") for i in range(8)]
    found += [(d.action, d.probability, d.session, d.holdout) for d in made]
    found += [agent.observe(made[0], 1, cost=0.25), agent.observe(made[1], 0, cost=0.5)]
    found += [agent.withdraw(made[0]), agent.withdraw(made[0].id), agent.observe(made[0], 0)]
    totals = Totals(20, 8)
    found += [agent.observe_totals("red", totals, key=key) for key in ("monday", "monday", "b")]
    found += [agent.add_arm("new", prior=(8, 2)), agent.pause_arm("red"), agent.resume_arm("red")]
    found += [agent.retire_arm("blue"), agent.arms(), agent.prices(), agent.posterior()]
    found += [agent.probabilities(), agent.probabilities(among=["red", "new"]), agent.act().holdout]
    return found


def test_a_remote_agent_has_the_terms_of_a_local_one(shop: RemoteAgent) -> None:
    with open_agent("sqlite:///:memory:", "shop", SHOP, seed=5) as local:
        assert carry_out(shop) == carry_out(local)
        assert isinstance(local, DurableAgent)
        events = [type(event).__name__ for event in local.log()]
    assert [type(event).__name__ for event in shop.log()] == events
    info = shop.info()
    assert (info["decisions"], info["observations"]) == (6, 2)
    records = list(shop.decisions())
    assert [number(one["decision"].id) for one in records if one["answered"]] == [3, 4]
    assert records[0]["observation"] == 0  # the corrected one


def test_entries_of_a_batch_have_sessions_arms_and_costs(shop: RemoteAgent) -> None:
    shop.configure(Configuration(prices={"red": "reported"}))
    calls: list[dict[str, Any]] = [
        {"among": ["red"], "session": "v"},
        {"session": "v"},
        {"among": ["pink"]},
    ]
    first, again, wrong = shop.act_batch(calls)
    assert first == again
    assert isinstance(wrong, errors.UnknownArm)
    assert shop.observe_batch([{"id": first, "o": 1, "cost": 0.5}]) == [True]
    assert shop.prices() == {"red": 0.5}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "kind", "detail"),
    [
        ("POST", "act", {"among": []}, {}, "invalid-request", "no arm is eligible"),
        ("POST", "act", {"among": ["pink"]}, {}, "unknown-arm", "'pink'"),
        ("POST", "act", {"session": ""}, {}, "bad-request", "session"),
        ("POST", "act", {"session": "a\n"}, {}, "invalid-request", "printable"),
        ("POST", "observe", {"id": "ID", "observation": 1, "cost": "1"}, {},
         "bad-request", "cost"),
        ("POST", "totals", {"arm": "red", "n": 2, "total": 1}, {}, "bad-request", "Idempotency"),
        ("POST", "totals", {"arm": "red", "n": "2", "total": 1}, {"Idempotency-Key": "k"},
         "bad-request", "`$.n`"),
        ("POST", "totals", {"arm": "red", "n": 2, "total": True}, {"Idempotency-Key": "k"},
         "bad-request", "total"),
        ("POST", "totals", {"arm": "red", "n": 2, "total": 3}, {"Idempotency-Key": "k"},
         "bad-evidence", ""),
        ("POST", "totals", {"arm": "pink", "n": 2, "total": 1}, {"Idempotency-Key": "k"},
         "unknown-arm", "pink"),
        ("POST", "withdraw", {"id": "ID"}, {}, "invalid-request", "no observation to withdraw"),
        ("POST", "withdraw", {"id": "2"}, {}, "unknown-decision", "'2'"),
        ("POST", "arms", {"arm": "red", "change": "added"}, {}, "bad-request", "change"),
        ("POST", "arms", {"arm": "red", "change": "resume"}, {}, "invalid-request", "'red'"),
        ("POST", "arms", {"arm": "pink", "change": "pause"}, {}, "unknown-arm", "'pink'"),
        ("POST", "arms", {"arm": "red", "change": "pause", "prior": [1, 1]}, {},
         "invalid-request", "only an arm that is added"),
        ("POST", "arms", {"arm": {"a": 1}, "change": "pause"}, {}, "invalid-request", "the arm"),
        ("PUT", "configuration", {"holdout": "0.5"}, {}, "bad-request", "holdout"),
        ("PUT", "configuration", {"holdout": 2}, {}, "invalid-request", "from 0 to 1"),
        ("PUT", "configuration", {"window": 60}, {}, "invalid-request", "give both"),
        ("PUT", "configuration", {"control": "pink"}, {}, "invalid-request", "'pink'"),
        ("PUT", "configuration", {"shares": [{"arm": [1]}]}, {}, "invalid-request", "hash"),
        ("PUT", "configuration", {"prices": [{"arm": "red", "price": 1}] * 2}, {},
         "invalid-request", "twice"),
        ("PUT", "configuration", {"windw": 60}, {}, "bad-request", "windw"),
    ],
)  # fmt: skip
def test_bad_terms_are_refused_and_change_nothing(
    url: str, method: str, path: str, body: Any, headers: dict[str, str], kind: str, detail: str,
) -> None:  # fmt: skip
    with Client(url) as client:
        shop = client.create("refused", SHOP, seed=5)
        id = shop.act(key="first").id
        before = shop.info()
        sent = {k: id if v == "ID" else v for k, v in body.items()}
        answer = ask(url, method, f"/v1/agents/refused/{path}", sent, headers)
        assert answer.kind == kind, answer.json
        assert detail in answer.json["detail"]
        assert shop.info() == before


def test_observations_of_a_sequential_agent_cannot_be_withdrawn(url: str) -> None:
    with Client(url) as client:
        walker = client.create("walker", GibbsMDP(["left", "right"], start="home"), seed=1)
        decision = walker.act()
        walker.observe(decision, (1.0, "shop"))
        with pytest.raises(errors.InvalidRequest, match="cannot be withdrawn"):
            walker.withdraw(decision)
        with pytest.raises((errors.BayesControlError, Refused)):
            walker.observe_totals("left", Totals(2, 1), "home", key="k")


def test_a_default_is_shown_and_a_late_observation_replaces_it(shop: RemoteAgent) -> None:
    shop.configure(Configuration(window=0.0, default=0))
    first = shop.act()
    shop.act()
    (one, *_) = shop.decisions()
    assert (one["answered"], one["observation"], one["is_default"]) == (True, 0, True)
    assert shop.explain(first)["is_default"] is True
    assert shop.observe(first, 1)
    (one, *_) = shop.decisions()
    assert (one["answered"], one["observation"], one["is_default"]) == (True, 1, False)


def test_defaults_are_recorded_without_traffic(shop: RemoteAgent, url: str) -> None:
    shop.configure(Configuration(window=0.5, default=0))
    with Client(url) as client:
        plain = client.create("without-a-window", SHOP, seed=5)
        for agent in (shop, plain):
            agent.act_batch([{}, {}])
        counter = 'bayescontrol_commit_requests_count{agent="without-a-window"}'
        commits = [ask(url, "GET", "/v1/metrics").body.decode()]
        time.sleep(0.5 + 2 * _SETTLE_PERIOD)
        commits.append(ask(url, "GET", "/v1/metrics").body.decode())
        found = [[type(event).__name__ for event in agent.log()] for agent in (shop, plain)]
    assert found[0] == ["Created", "Configured", *["Decided"] * 2, *["Observed"] * 2]
    assert found[1] == ["Created", "Decided", "Decided"]
    # An agent without a window costs no commits.
    assert all(f"{counter} 1.0" in text for text in commits)


def test_a_repeated_session_does_not_replay_the_log(tmp_path: Path) -> None:
    """Replays are limited to 8 at once: 40 of them would be refused."""
    address = f"sqlite:///{tmp_path}/shop.db"
    with Server(address, port=0) as server, Client(server.url) as client:
        shop = client.create("shop", SHOP, seed=5)
        first = shop.act_batch([{"session": f"visitor-{i}"} for i in range(40)])
    bodies = [{"session": f"visitor-{i}"} for i in range(40)]
    with Server(address, port=0) as server, ThreadPoolExecutor(40) as pool:
        path = "/v1/agents/shop/act"
        again = list(pool.map(lambda body: ask(server.url, "POST", path, body), bodies))
    assert [answer.status for answer in again] == [200] * 40
    assert [answer.json["id"] for answer in again] == [getattr(one, "id", one) for one in first]
    assert {answer.json["probabilities"] for answer in again} == {None}
