"""The client: act and observe over HTTP, errors, and retries."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.serve.raw import memory, number

from bayescontrol import BernoulliBandit, LinearBandit, errors
from bayescontrol.durable import open_agent
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client
from bayescontrol.serve.http_errors import Refused, Unavailable, UnknownAgent
from bayescontrol.serve.server import Server


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with memory() as server, Client(server.url) as client:
        yield client


def test_a_remote_agent_behaves_like_a_local_one(client: Client) -> None:
    bandit = BernoulliBandit(["red", "blue"])
    remote = client.create("same", bandit, seed=5)
    with open_agent("sqlite:///:memory:", "same", bandit, seed=5) as local:
        for i in range(20):
            one, two = remote.act(), local.act()
            assert number(one.id) == int(two.id)
            assert (one.action, one.probability) == (two.action, two.probability)
            assert one.probabilities == two.probabilities
            assert remote.observe(one, i % 2) is local.observe(two, i % 2) is True
            assert remote.observe(one.id, i % 2) is False
        assert remote.posterior() == local.posterior()
        assert remote.probabilities() == local.probabilities()
        result, known = remote.explain(one), local.explain(two)
        assert result["posterior"] == known.posterior
        assert result["mode"] == repr(known.mode)
        kinds = [type(event).__name__ for event in remote.log()]
        assert kinds == [type(event).__name__ for event in local.log()]


def test_situations_and_arms_of_any_type_round_trip(client: Client) -> None:
    arms = [("left", 1), 2, "three"]
    remote = client.create("kinds", LinearBandit(arms, features=2), seed=1)
    decision = remote.act((1.0, 0.5))
    assert decision.action in arms
    assert decision.situation == (1.0, 0.5)
    remote.observe(decision, 0.5)
    probabilities = remote.probabilities((1.0, 0.5))
    assert probabilities is None or set(probabilities) == set(arms)


def test_errors_are_errors_of_the_library(client: Client) -> None:
    shop = client.create("errors", BernoulliBandit(2), seed=1)
    remote = client.create("keyed", LinearBandit(2, features=1), seed=1)
    remote.act([1.0], key="k")
    decision, other = shop.act(), shop.act()
    shop.observe(decision, 1)
    for error, call in (
        (errors.ConflictingFeedback, lambda: shop.observe(decision, 0)),
        (errors.UnknownDecision, lambda: shop.observe("999", 1)),
        (errors.BadEvidence, lambda: shop.observe(other, "red")),
        (errors.ModelMismatch, lambda: client.create("errors", BernoulliBandit(3))),
        (UnknownAgent, lambda: client.agent("nobody").act()),
        (UnknownAgent, lambda: list(client.agent("nobody").log())),
        (errors.ConflictingKey, lambda: remote.act([2.0], key="k")),
    ):
        with pytest.raises(error):
            call()


def test_threads_share_a_client(client: Client) -> None:
    shop = client.create("threads", BernoulliBandit(2), seed=1)

    def visit(_: int) -> str:
        decision = shop.act()
        shop.observe(decision, 1)
        return decision.id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(visit, range(150)))) == 150
    assert shop.info()["observations"] == 150


def test_a_pooled_connection_that_was_closed_is_replaced(tmp_path: Path) -> None:
    store, port = f"sqlite:///{tmp_path}/shop.db", 0
    client: Client | None = None
    for _ in range(3):
        with Server(store, port=port) as server:
            port = int(server.url.rpartition(":")[2])
            client = client or Client(server.url)
            shop = client.create("shop", BernoulliBandit(2), seed=1)
            shop.observe(shop.act(), 1)
    assert client is not None
    client.close()
    with open_agent(store, "shop") as agent:
        assert agent.head == 7


class Scripted(BaseHTTPRequestHandler):
    """A server that gives scripted answers and records the keys of the requests."""

    answers: list[Callable[["Scripted"], None]]
    keys: list[str | None]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.keys.append(self.headers["Idempotency-Key"])
        self.answers.pop(0)(self)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def respond(status: int, body: bytes, **headers: str) -> Callable[[Scripted], None]:
    def answer(handler: Scripted) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def hang_up(handler: Scripted) -> None:
    handler.close_connection = True
    handler.connection.close()


DECISION = (
    b'{"id":"2","action":"red","probability":0.5,"probabilities":null,"situation":null,'
    b'"basis":1,"time":0.5,"session":null,"holdout":false}'
)


@pytest.fixture
def scripted() -> Iterator[tuple[Client, type[Scripted]]]:
    handler = type("Now", (Scripted,), {"answers": [], "keys": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with Client(f"http://127.0.0.1:{server.server_port}", timeout=5.0) as client:
                yield client, handler
        finally:
            server.shutdown()
            thread.join()


def test_the_client_retries_transient_failures_with_the_same_key(
    scripted: tuple[Client, type[Scripted]],
) -> None:
    client, handler = scripted
    handler.answers += [
        hang_up,
        respond(503, b"{}", Retry_After="0"),
        respond(429, b"not even JSON"),
        respond(502, b"<html>a proxy</html>"),
        hang_up,
        respond(200, DECISION),
    ]
    assert client.agent("shop").act().action == "red"
    assert len(handler.keys) == 6
    assert len(set(handler.keys)) == 1


def test_a_permanent_error_is_not_retried(scripted: tuple[Client, type[Scripted]]) -> None:
    client, handler = scripted
    handler.answers += [respond(500, b"oh no"), respond(200, DECISION)]
    with pytest.raises(Refused, match="500: oh no"):
        client.agent("shop").act()
    assert len(handler.keys) == 1


class Clock:
    """A clock that advances only in `sleep`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_server_that_is_down_is_unavailable_after_five_seconds_and_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, clock = Client("http://127.0.0.1:9"), Clock()  # nobody listens there
    monkeypatch.setattr("bayescontrol.serve.client.time", clock)
    assert not client.ready()
    with pytest.raises(Unavailable, match="is the server running") as caught:
        client.agent("shop").act()
    assert isinstance(caught.value, errors.BayesControlError)
    assert isinstance(caught.value, ConnectionError)
    assert 3.0 < clock.now <= 5.0  # the last pause, of up to two seconds, is not started
    with pytest.raises(Unavailable):
        next(client.agent("shop").log())


def test_the_client_raises_errors_of_compacted_decisions_and_of_missing_capabilities(
    tmp_path: Path,
) -> None:
    store, bandit = f"sqlite:///{tmp_path}/shop.db", BernoulliBandit(["red", "blue"])
    with open_agent(store, "shop", bandit, seed=1) as agent:
        agent.observe(agent.act(), 1)
        agent.compact(3)
    with Server(store, port=0) as server, Client(server.url) as client:
        shop = client.agent("shop")
        id = shop.act().id.replace("-4", "-2")
        for call in (lambda: shop.explain(id), lambda: shop.observe(id, 0)):
            with pytest.raises(errors.CompactedDecision, match=r"\d{4}-\d\d-\d\d"):
                call()
        walker = client.create("walker", GibbsMDP(["left", "right"], start="home"), seed=1)
        with pytest.raises(errors.MissingCapability):
            walker.arms()
