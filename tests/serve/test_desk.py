"""The desk: requests that wait together go to the disk together, and none is answered too soon."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.serve.raw import Raw, ask

from bayescontrol import BernoulliBandit
from bayescontrol.durable import DurableAgent, open_agent
from bayescontrol.durable.committer import Request
from bayescontrol.errors import BadEvidence, DiskFull, StoreFailed
from bayescontrol.serve import Client, Limits, Server
from bayescontrol.serve.desk import Desk
from bayescontrol.serve.problems import Refused


class Watching:
    """Writes down how many went together; raises, if told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sizes: list[int] = []
        self.error = error

    def before(self, desk: Desk, requests: Sequence[Request]) -> None:
        self.sizes.append(len(requests))
        if self.error is not None:
            raise self.error

    def after(self, desk: Desk, requests: Sequence[Request]) -> None:
        if self.error is not None:
            raise self.error


def on_a_desk(visit: Any, watching: Watching | None = None) -> Any:
    async def run() -> Any:
        agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2), seed=1)
        with ThreadPoolExecutor(2) as pool:
            desk = Desk(agent, pool, pool, watching)
            try:
                return await visit(desk)
            finally:
                await desk.close()

    return asyncio.run(run())


def test_what_comes_at_once_shares_a_commit() -> None:
    watching = Watching()

    async def visit(desk: Desk) -> list[str]:
        return [d.id for d in await asyncio.gather(*(desk.act(None, None) for _ in range(64)))]

    ids = on_a_desk(visit, watching)
    assert len(set(ids)) == 64
    assert watching.sizes == [64]


def test_one_bad_observation_does_not_harm_its_neighbours() -> None:
    async def visit(desk: Desk) -> list[Any]:
        made = [await desk.act(None, None) for _ in range(3)]
        told = zip(made, (1, "red", 0), strict=True)
        answers = (desk.observe(d.id, o) for d, o in told)
        return await asyncio.gather(*answers, return_exceptions=True)

    first, second, third = on_a_desk(visit)
    assert (first, third) == (True, True)
    assert isinstance(second, BadEvidence)


def test_whoever_gave_up_waiting_is_not_served() -> None:
    async def visit(desk: Desk) -> int:
        waiting = asyncio.ensure_future(desk.act(None, None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0.05)
        return desk.agent.head

    assert on_a_desk(visit) == 1


def test_what_cannot_be_written_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit(desk: Desk) -> list[Any]:
        def full(rows: Any) -> None:
            raise DiskFull("no room")

        monkeypatch.setattr(desk.agent._log, "append", full)
        refused = await asyncio.gather(
            *(desk.act(None, None) for _ in range(3)), return_exceptions=True
        )
        monkeypatch.undo()
        return [*refused, (await desk.act(None, None)).id]

    *refused, n = on_a_desk(visit)
    assert [type(error) for error in refused] == [DiskFull] * 3
    assert n == "2"


def test_a_request_that_nobody_dealt_with_is_never_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def visit(desk: Desk) -> Any:
        made = await desk.act(None, None)
        monkeypatch.setattr(desk.agent, "handle", lambda requests: None)
        with pytest.raises(StoreFailed, match="not known"):
            await desk.observe(made.id, 1)

    on_a_desk(visit)


def test_who_only_looks_on_is_not_in_the_way() -> None:
    async def visit(desk: Desk) -> bool:
        return await desk.observe((await desk.act(None, None)).id, 1)

    assert on_a_desk(visit, Watching(RuntimeError("blind"))) is True


def test_a_desk_that_closes_takes_nothing_more() -> None:
    async def visit(desk: Desk) -> str:
        last = asyncio.ensure_future(desk.act(None, None))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(desk.close())
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="no more"):
            await desk.act(None, None)
        await closing
        return (await last).id

    assert on_a_desk(visit) == "2"


def test_more_than_can_wait_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescontrol.serve.desk._MOST_WAITING", 5)

    async def visit(desk: Desk) -> list[Any]:
        asked = (desk.act(None, None) for _ in range(8))
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = on_a_desk(visit)
    assert sum(isinstance(one, Refused) for one in answers) == 3


@pytest.mark.parametrize("question", ["explain", "act under an old key"])
def test_a_long_log_that_is_folded_again_keeps_nobody_else_waiting(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let, explain = threading.Event(), DurableAgent.explain

    def folded_slowly(agent: DurableAgent, id: Any) -> Any:
        assert let.wait(60.0)
        return explain(agent, id)

    monkeypatch.setattr(DurableAgent, "explain", folded_slowly)
    monkeypatch.setattr("bayescontrol.serve.desk._MOST_REMEMBERED", 0)  # every decision is old
    limits = Limits(deadline=60.0)
    with (
        Server("sqlite:///:memory:", port=0, limits=limits) as server,
        Client(server.url) as client,
    ):
        shop = client.create("shop", BernoulliBandit(2))
        decision = shop.act(key="visit-81")

        def asked(_: int) -> Raw:
            if question == "explain":
                return ask(server.url, "GET", f"/v1/agents/shop/decisions/{decision.id}")
            key = {"Idempotency-Key": "visit-81"}
            return ask(server.url, "POST", "/v1/agents/shop/act", {}, key)

        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(asked, range(8))
            under_way = "bayescontrol_requests_under_way 9"  # those, and the question how many
            while under_way not in ask(server.url, "GET", "/v1/metrics").body.decode():
                time.sleep(0.01)
            try:
                assert ask(server.url, "GET", "/v1/health/ready").status == 200
                assert ask(server.url, "GET", "/v1/agents/shop/posterior").status == 200
                assert ask(server.url, "POST", "/v1/agents/shop/act", {}).status == 200
            finally:
                let.set()
            probabilities = [
                one.json["decision"]["probabilities"] if question == "explain"
                else one.json["probabilities"] for one in answers
            ]  # fmt: skip
        assert (
            probabilities
            == [[{"action": 0, "probability": 0.5}, {"action": 1, "probability": 0.5}]] * 8
        )
