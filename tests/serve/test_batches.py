"""Batches over HTTP: each entry succeeds or fails by itself, in one commit."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve.raw import ask, memory, number

from bayescontrol import BernoulliBandit, LinearBandit, errors
from bayescontrol.durable import Decision, DurableAgent, open_agent
from bayescontrol.errors import DiskFull
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client, InvalidKey, RemoteAgent
from bayescontrol.serve.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with memory() as server:
        yield server


@pytest.fixture
def shop(server: Server, request: pytest.FixtureRequest) -> Iterator[RemoteAgent]:
    name = "".join(c for c in request.node.name if c.isalnum())[:150]
    with Client(server.url) as client:
        yield client.create(name, BernoulliBandit(["red", "blue"]), seed=3)


def decided(result: Decision | Exception) -> Decision:
    assert isinstance(result, Decision), result
    return result


def test_a_batch_decides_as_single_requests_do(shop: RemoteAgent) -> None:
    batch = [decided(one) for one in shop.act_batch([{}] * 20, probabilities=True)]
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=3) as own:
        alone = [own.act() for _ in range(20)]
    assert [number(one.id) for one in batch] == [int(one.id) for one in alone]
    assert [one.action for one in batch] == [one.action for one in alone]
    assert [one.probabilities for one in batch] == [one.probabilities for one in alone]
    assert all(decided(one).probabilities is None for one in shop.act_batch([{}, {}]))
    calls = [{"id": one, "o": i % 2} for i, one in enumerate(batch)]
    assert shop.observe_batch(calls) == [True] * 20
    assert shop.observe_batch(calls[:3]) == [False] * 3
    assert shop.info()["observations"] == 20


def test_every_entry_succeeds_or_fails_by_itself(server: Server) -> None:
    with Client(server.url) as client:
        news = client.create("news", LinearBandit(["sport", "arts"], features=2), seed=1)
        shop = client.create("other", BernoulliBandit(2), seed=1)
        first, wrong, again, conflict, last = news.act_batch(
            [{"x": [1.0, 0.5], "key": "k"}, {"x": "here"}, {"x": [1.0, 0.5], "key": "k"},
             {"x": [0.0, 0.5], "key": "k"}, {"x": [0.0, 2.0]}]
        )  # fmt: skip
        assert decided(first) == decided(again)
        assert isinstance(wrong, errors.BadSituation)
        assert isinstance(conflict, errors.ConflictingKey)
        foreign = shop.act()
        results = news.observe_batch(
            [{"id": first, "o": 0.5}, {"id": foreign, "o": 1.0}, {"id": decided(last), "o": "x"},
             {"id": first, "o": 0.25}, {"id": decided(last), "o": 1.5}]
        )  # fmt: skip
        assert [results[0], results[4]] == [True, True]
        assert isinstance(results[1], errors.UnknownDecision)
        assert "another agent than 'news'" in str(results[1])
        assert isinstance(results[2], errors.BadEvidence)
        assert isinstance(results[3], errors.ConflictingFeedback)
        assert f"decision {decided(first).id} already" in str(results[3])
        assert (news.info()["decisions"], news.info()["observations"]) == (2, 2)
    counts = ask(server.url, "GET", "/v1/metrics").body.decode()
    assert 'problems_total{problem="conflicting-feedback"} 1.0' in counts


def test_a_batch_is_one_commit_and_empty_batches_are_none(
    server: Server, shop: RemoteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    handle = DurableAgent.handle

    def record(agent: DurableAgent, requests: Any) -> None:
        sizes.append(len(requests))
        handle(agent, requests)

    monkeypatch.setattr(DurableAgent, "handle", record)
    assert len(shop.act_batch([{}] * 1000)) == 1000
    assert shop.act_batch([]) == shop.observe_batch([]) == []
    assert sizes == [1000]
    path = f"/v1/agents/{shop.name}/act/batch"
    for body, text in (
        ({"decisions": [{}] * 1001}, "length <= 1000"),
        ({"decisions": [{"key": "a b"}]}, "key"),
        ({"decisions": [{"keys": "a"}]}, "keys"),
        (b'{"decisions": [{"key": "a", "key": "b"}]}', "twice"),
    ):
        answer = ask(server.url, "POST", path, body)
        assert (answer.status, answer.kind) == (400, "bad-request")
        assert text in answer.json["detail"]
    assert shop.info()["decisions"] == 1000


def test_a_large_batch_leaves_room_for_the_requests_of_others(shop: RemoteAgent) -> None:
    wide = [{"x": None, "key": f"{'k' * 150}-{i}"} for i in range(1000)]  # more than 16 kB
    assert len({decided(one).id for one in shop.act_batch(wide)}) == 1000
    assert [decided(one).id for one in shop.act_batch(wide)] == [
        decided(one).id for one in shop.act_batch(wide)
    ]


def test_a_batch_of_a_sequential_agent_names_the_decision_that_is_due(server: Server) -> None:
    with Client(server.url) as client:
        walker = client.create("walker", GibbsMDP(["left", "right"], start="home"), seed=1)
        one, due = walker.act_batch([{}, {}])
        assert isinstance(due, errors.FeedbackDue)
        assert f"observe('{decided(one).id}', o)" in str(due)
        assert walker.observe_batch([{"id": one, "o": (1.0, "shop")}]) == [True]


def test_a_failed_write_fails_the_whole_batch(
    server: Server, shop: RemoteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr("bayescontrol.durable.stores.sqlite.SqliteLog.append", fail)
        answer = ask(
            server.url, "POST", f"/v1/agents/{shop.name}/act/batch", {"decisions": [{}, {}]}
        )
        assert (answer.status, answer.kind) == (507, "disk-full")
    assert shop.info()["decisions"] == 0


def test_an_invalid_key_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidKey, match="visible"):
        Client("http://127.0.0.1:9").agent("shop").act_batch([{}, {"key": "a b"}])
