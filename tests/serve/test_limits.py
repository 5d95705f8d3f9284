"""Too much, too fast, too slow: 413, 429, 503 or 408, with a way out, and never a 500."""

import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.serve.raw import JSON, Raw, ask

from bayescontrol import BernoulliBandit
from bayescontrol.durable import named_model
from bayescontrol.serve import Client
from bayescontrol.serve.limits import Limits
from bayescontrol.serve.server import Server
from bayescontrol.serve.tokens import Tokens


class Slow:
    """An agent whose law takes its time."""

    def __init__(self, seconds: float) -> None:
        self.rule = BernoulliBandit(2).agent()
        self.seconds = seconds

    def act(self, rng: Any) -> Any:
        time.sleep(self.seconds)
        return self.rule.act(rng)

    def observe(self, a: Any, o: Any) -> None:
        self.rule.observe(a, o)

    def copy(self) -> "Slow":
        twin = Slow(self.seconds)
        twin.rule = self.rule.copy()
        return twin

    def save(self) -> Any:
        return self.rule.save()

    def load(self, arrays: Any) -> None:
        self.rule.load(arrays)


def slow(seconds: float) -> dict[str, Any]:
    return {"slow": named_model("slow", version=1, build=lambda: Slow(seconds))}


def raw(url: str, sent: bytes, wait: float = 10.0) -> bytes:
    """What comes back on a connection until it is closed or silent."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=wait) as connection:
        connection.sendall(sent)
        got = b""
        try:
            while piece := connection.recv(65536):
                got += piece
        except TimeoutError:
            pass
        return got


def test_a_body_that_is_too_large_is_refused_by_its_head_and_by_its_bytes() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(body=1000)) as server:
        big = {"situation": "x" * 1000}
        answer = ask(server.url, "POST", "/v1/agents/shop/act", big)
        assert (answer.status, answer.kind) == (413, "too-large")
        head = b"POST /v1/agents/shop/act HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        answered = raw(server.url, head + b"400\r\n" + b" " * 1024 + b"\r\n0\r\n\r\n")
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
    limits = Limits(concurrency=4)
    with Server("sqlite:///:memory:", port=0, limits=limits, models=slow(0.05)) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "slow", "model": "slow"})

        def visit(i: int) -> Raw:
            return ask(server.url, "POST", "/v1/agents/slow/act", {}, {"Idempotency-Key": f"k{i}"})

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
        decided = ask(server.url, "GET", "/v1/agents/slow").json["decisions"]
        assert decided == 1  # all who were served shared the one that is due


def test_an_answer_that_takes_too_long_is_a_503_and_may_be_asked_for_again() -> None:
    limits = Limits(deadline=0.3)
    with Server("sqlite:///:memory:", port=0, limits=limits, models=slow(1.0)) as server:
        begun = time.monotonic()
        ask(server.url, "POST", "/v1/agents", {"name": "slow", "model": "slow"})
        key = {"Idempotency-Key": "k"}
        deadline = time.monotonic() + 10.0
        seen = set()
        while time.monotonic() < deadline:
            answer = ask(server.url, "POST", "/v1/agents/slow/act", {}, key)
            seen.add(answer.status if answer.status == 200 else answer.kind)
            if answer.status == 200:
                break
            assert answer.status == 503
            time.sleep(0.2)
        assert seen == {"deadline", 200}
        assert time.monotonic() - begun < 15.0
        assert ask(server.url, "GET", "/v1/agents/slow").json["decisions"] == 1


def test_a_request_that_trickles_in_is_given_up() -> None:
    with Server("sqlite:///:memory:", port=0, limits=Limits(deadline=0.3)) as server:
        head = b"POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answered = raw(server.url, head + b"Content-Length: 100\r\n\r\n{")
        assert answered.startswith(b"HTTP/1.1 408")
        assert b'"urn:bayescontrol:problem:timeout"' in answered


def test_a_connection_that_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescontrol.serve.server._KEEP_ALIVE", 0.3)
    with Server("sqlite:///:memory:", port=0) as server:
        for sent in (b"", b"GET /v1/agents HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            begun = time.monotonic()
            assert raw(server.url, sent, wait=8.0) == b""
            assert time.monotonic() - begun < 5.0


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
