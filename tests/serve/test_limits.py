"""Too much, too fast, too slow: 413, 429, 503 or 408, with a way out, and never a 500."""

import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.serve.paused import paused
from tests.serve.raw import JSON, Raw, ask, until_closed

from bayescontrol.serve import Client
from bayescontrol.serve.limits import Limits
from bayescontrol.serve.server import Server
from bayescontrol.serve.tokens import Tokens


def test_a_body_that_is_too_large_is_refused_by_its_head_and_by_its_bytes() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(body=1000)) as server:
        big = {"situation": "x" * 1000}
        answer = ask(server.url, "POST", "/v1/agents/shop/act", big)
        assert (answer.status, answer.kind) == (413, "too-large")
        head = b"POST /v1/agents/shop/act HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        answered = until_closed(server.url, head + b"400\r\n" + b" " * 1024 + b"\r\n0\r\n\r\n")
        assert answered.startswith(b"HTTP/1.1 413")
        assert ask(server.url, "POST", "/v1/agents/shop/act", {}).kind == "unknown-agent"


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_is_not_json_is_refused(media: str) -> None:
    with Server("sqlite:///:memory:", port=0) as server:
        answer = ask(server.url, "POST", "/v1/agents", b"{}", {"Content-Type": media})
        assert (answer.status, answer.kind) == (415, "unsupported-media-type")
        told = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert ask(server.url, "POST", "/v1/agents", b"{}", told).kind == "bad-request"


def test_a_caller_who_asks_too_fast_is_told_when_to_come_back() -> None:
    tokens = [f"token-of-caller-number-{i}" for i in range(2)]
    limits = Limits(rate=5.0)
    with Server("sqlite:///:memory:", port=0, limits=limits, tokens=Tokens(tokens)) as server:
        headers = [{"Authorization": f"Bearer {token}"} for token in tokens]
        answers = [ask(server.url, "GET", "/v1/agents", headers=headers[0]) for _ in range(12)]
        refused = [one for one in answers if one.status == 429]
        assert len(refused) >= 4
        assert {one.kind for one in refused} == {"too-many-requests"}
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
        assert ask(server.url, "GET", "/v1/agents", headers=headers[1]).status == 200
        assert ask(server.url, "GET", "/v1/health/live", headers=headers[0]).status == 200
        with Client(server.url, tokens[0]) as client:
            assert client.agents() == []  # it waits, and asks again


def test_more_requests_than_may_be_under_way_are_turned_away_and_none_fails() -> None:
    let = threading.Event()
    let.set()  # while it is made
    limits, models = Limits(concurrency=4, deadline=60.0), paused(lambda: let.wait(60.0))
    with Server("sqlite:///:memory:", port=0, limits=limits, models=models) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"})
        let.clear()

        def visit(i: int) -> Raw:
            answer = ask(
                server.url, "POST", "/v1/agents/shop/act", {}, {"Idempotency-Key": f"k{i}"}
            )
            if answer.status == 503:
                let.set()  # one was turned away: the others may go on
            return answer

        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(visit, range(72)))
        statuses = Counter(one.status for one in answers)
        assert statuses[503] > 0
        assert set(statuses) <= {200, 409, 503}  # 409: an answer is due before the next act
        for one in answers:
            if one.status == 503:
                assert one.kind == "overloaded"
                assert int(one.headers["retry-after"]) >= 1
        assert ask(server.url, "GET", "/v1/health/live").status == 200
        decided = ask(server.url, "GET", "/v1/agents/shop").json["decisions"]
        assert decided == 1  # all who were served shared the one that is due


def test_an_answer_that_takes_too_long_is_a_503_and_may_be_asked_for_again() -> None:
    let = threading.Event()
    let.set()  # while it is made
    models = paused(lambda: let.wait(60.0))
    with Server("sqlite:///:memory:", port=0, limits=Limits(deadline=0.3), models=models) as server:

        def insisted(path: str, body: Any) -> Raw:
            """Asked again until it is done: on a slow machine more than once."""
            for _ in range(100):
                answer = ask(server.url, "POST", path, body, {"Idempotency-Key": "k"})
                if answer.status < 300:
                    return answer
                assert (answer.status, answer.kind) == (503, "deadline")
            raise AssertionError("it never came in time")

        insisted("/v1/agents", {"name": "shop", "model": "paused"})
        let.clear()
        answer = ask(server.url, "POST", "/v1/agents/shop/act", {}, {"Idempotency-Key": "k"})
        assert (answer.status, answer.kind) == (503, "deadline")
        let.set()
        assert insisted("/v1/agents/shop/act", {}).json["id"] == "2"  # the same one, now done
        with Client(server.url) as client:
            assert client.agent("shop").info()["decisions"] == 1


def test_a_request_that_trickles_in_is_given_up() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(deadline=0.3)) as server:
        head = b"POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answered = until_closed(server.url, head + b"Content-Length: 100\r\n\r\n{")
        assert answered.startswith(b"HTTP/1.1 408")
        assert b'"urn:bayescontrol:problem:timeout"' in answered


def test_as_many_agents_as_allowed_can_be_made() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(agents=2)) as server:
        made = {"model": "bernoulli-bandit", "settings": {"arms": 2}, "seed": 1}
        statuses = [
            ask(server.url, "POST", "/v1/agents", made | {"name": name}).status
            for name in ("a", "b", "a", "c")
        ]
        assert statuses == [201, 201, 200, 409]


def test_pages_that_listen_have_a_limit_of_their_own() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(streams=1, concurrency=1)) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as listener:
            listener.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert listener.recv(4096).startswith(b"HTTP/1.1 200")
            answer = ask(server.url, "GET", "/events")
            assert (answer.status, answer.kind) == (503, "overloaded")
            assert ask(server.url, "GET", "/v1/agents").status == 200


def test_overload_from_many_threads_never_gives_a_500() -> None:
    limits = Limits(concurrency=8, rate=400.0)
    with Server("sqlite:///:memory:", port=0, limits=limits) as server:
        made = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": 2}}
        ask(server.url, "POST", "/v1/agents", made)
        statuses: Counter[int] = Counter()
        guard = threading.Lock()

        def visits() -> None:
            for _ in range(20):
                status = ask(server.url, "POST", "/v1/agents/shop/act", b"{}", JSON).status
                with guard:
                    statuses[status] += 1

        threads = [threading.Thread(target=visits) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) <= {200, 429, 503}
        assert statuses[200] > 0
        assert sum(statuses.values()) == 480


@pytest.mark.parametrize(
    "wrong", [{"body": 0}, {"rate": -1.0}, {"deadline": float("inf")}, {"streams": 0}]
)
def test_limits_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Limits(**wrong)
