"""Requests that wait together are committed together; none is acknowledged before its commit."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.limits import TIMEOUT
from tests.serve.raw import Raw, ask, memory

from bayescontrol import BernoulliBandit
from bayescontrol.durable import DurableAgent, open_agent, open_store
from bayescontrol.durable.stores.committer import Request
from bayescontrol.errors import DiskFull, StoreFailed
from bayescontrol.serve import Client
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.http_errors import Refused
from bayescontrol.serve.monitor import Metrics, Monitor
from bayescontrol.serve.request_queue import Commits, Pools, ServedAgent
from bayescontrol.serve.values import encode_id


class RecordingMonitor(Monitor):
    """Records the sizes of commits; raises `error`, if given."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(Metrics())
        self.sizes: list[int] = []
        self.error = error

    def before_commit(self, agent: DurableAgent, requests: Sequence[Request]) -> None:
        self.sizes.append(len(requests))
        if self.error is not None:
            raise self.error

    def after_commit(self, agent: DurableAgent, requests: Sequence[Request]) -> None:
        if self.error is not None:
            raise self.error


def with_agent(visit: Any, monitor: Any = None) -> Any:
    monitor = RecordingMonitor() if monitor is None else monitor

    async def run() -> Any:
        agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2), seed=1)
        with ThreadPoolExecutor(2) as pool:
            served = ServedAgent(agent, Pools(pool, pool, pool), Commits(pool, monitor))
            try:
                return await visit(served)
            finally:
                await served.close()

    return asyncio.run(run())


def test_concurrent_requests_share_a_commit() -> None:
    monitor = RecordingMonitor()

    async def visit(served: ServedAgent) -> list[str]:
        return [d.id for d in await asyncio.gather(*(served.act(None, None) for _ in range(64)))]

    ids = with_agent(visit, monitor)
    assert len(set(ids)) == 64
    assert monitor.sizes == [64]


def test_a_cancelled_request_is_not_carried_out() -> None:
    async def visit(served: ServedAgent) -> int:
        waiting = asyncio.ensure_future(served.act(None, None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0.05)
        return served.agent.head

    assert with_agent(visit) == 1


def test_a_failed_write_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(rows: Any) -> None:
        raise DiskFull("no room")

    async def visit(served: ServedAgent) -> Any:
        acts = [served.act(None, None) for _ in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(served.agent._log, "append", full)
            refused = await asyncio.gather(*acts, return_exceptions=True)
        assert [type(error) for error in refused] == [DiskFull] * 3
        created = await served.act(None, None)
        assert created.id == "2"
        monkeypatch.setattr(served.agent, "handle", lambda requests: None)  # without a result
        with pytest.raises(StoreFailed, match="may or may not be stored"):
            await served.observe(encode_id(served.tag, created.id), 1)

    with_agent(visit)


def test_an_error_of_the_monitor_does_not_fail_requests() -> None:
    async def visit(served: ServedAgent) -> bool:
        decision = await served.act(None, None)
        return await served.observe(encode_id(served.tag, decision.id), 1)

    assert with_agent(visit, RecordingMonitor(RuntimeError("blind"))) is True


def test_a_closing_agent_accepts_no_more_requests() -> None:
    async def visit(served: ServedAgent) -> str:
        last = asyncio.ensure_future(served.act(None, None))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(served.close())
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="no more requests"):
            await served.act(None, None)
        await closing
        return (await last).id

    assert with_agent(visit) == "2"


def test_requests_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescontrol.serve.request_queue._MAX_WAITING", 5)

    async def visit(served: ServedAgent) -> list[Any]:
        requests = (served.act(None, None) for _ in range(8))
        return await asyncio.gather(*requests, return_exceptions=True)

    answers = with_agent(visit)
    assert sum(isinstance(one, Refused) for one in answers) == 3


def test_agents_of_one_store_share_commits_unless_they_compute_for_long() -> None:
    async def visit() -> list[list[str]]:
        agents = ServedAgents(open_store("sqlite:///:memory:"))
        await agents.start()
        for name in ("fast", "other", "slow"):
            await agents.create(name, "bernoulli-bandit", {"arms": 2}, None)
        agents.open["slow"].agent.compute_seconds = 1.0
        commits: list[list[str]] = []
        commit = Commits._commit

        def recorded(self: Commits, batches: Any, loop: asyncio.AbstractEventLoop) -> None:
            commits.append(sorted(served.agent.name for served in batches))
            commit(self, batches, loop)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Commits, "_commit", recorded)
            for _ in range(2):  # the second time, the slow agent is known to be fast again
                await asyncio.gather(*(one.act(None, None) for one in agents.open.values()))
        await agents.close()
        return sorted(commits)

    assert asyncio.run(visit()) == [["fast", "other"], ["fast", "other", "slow"], ["slow"]]


@pytest.mark.parametrize("question", ["explain", "act under an old key"])
def test_replaying_a_long_log_does_not_delay_other_requests(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, explain = threading.Event(), DurableAgent.explain

    def slow_explain(agent: DurableAgent, id: Any) -> Any:
        assert release.wait(TIMEOUT)
        return explain(agent, id)

    monkeypatch.setattr(DurableAgent, "explain", slow_explain)
    monkeypatch.setattr("bayescontrol.serve.request_queue._MAX_CACHED", 0)
    with memory() as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(2))
        decision = shop.act(key="visit-81")

        def send(_: int) -> Raw:
            if question == "explain":
                return ask(server.url, "GET", f"/v1/agents/shop/decisions/{decision.id}")
            key = {"Idempotency-Key": "visit-81"}
            return ask(server.url, "POST", "/v1/agents/shop/act", {}, key)

        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(send, range(8))
            under_way = "bayescontrol_requests_under_way 9.0"  # including this request
            while under_way not in ask(server.url, "GET", "/v1/metrics").body.decode():
                time.sleep(0.01)
            try:
                assert ask(server.url, "GET", "/v1/health/ready").status == 200
                assert ask(server.url, "GET", "/v1/agents/shop/posterior").status == 200
                assert ask(server.url, "POST", "/v1/agents/shop/act", {}).status == 200
            finally:
                release.set()
            probabilities = [
                one.json["decision"]["probabilities"] if question == "explain"
                else one.json["probabilities"] for one in answers
            ]  # fmt: skip
        assert (
            probabilities
            == [[{"action": 0, "probability": 0.5}, {"action": 1, "probability": 0.5}]] * 8
        )
