"""Limits of request heads and connections, enforced while bytes arrive and before tokens."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from tests.durable.concurrency import wait_until
from tests.limits import TIMEOUT
from tests.serve.paused import Pause
from tests.serve.raw import ask, connected, head, memory, read_until_closed, rest

from bayescontrol.serve import Limits, Tokens

TOKEN = "a-token-that-nobody-guesses"
HEAD = b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n"


def require_problem(answered: bytes, status: int, kind: str) -> None:
    head, _, body = answered.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status), answered[:200]
    assert b"connection: close" in head.lower()
    assert b"application/problem+json" in head
    assert b"urn:bayescontrol:problem:" + kind.encode() in body


def require_cut_off(connection: socket.socket, piece: bytes) -> None:
    """Assert that the server closes before it has read 100 MB, including data in buffers."""
    sent = 0
    with suppress(ConnectionError):
        while sent < 100_000_000:
            sent += connection.send(piece)
    assert sent < 30_000_000


@pytest.mark.parametrize(
    ("sent", "status", "kind"),
    [
        (b"GET /" + b"x" * 2000, 414, "uri-too-long"),
        (HEAD + b"X-Long: " + b"x" * 40_000, 431, "head-too-large"),
        (HEAD + b"X-Short: x\r\n" * 20, 431, "head-too-large"),
        (b"\r\n" * 40_000, 431, "head-too-large"),
        (b"what is this", 400, "bad-request"),
    ],
)
def test_a_head_beyond_the_limits_is_refused_before_it_is_complete(
    sent: bytes, status: int, kind: str
) -> None:
    limits = Limits(line=1000, head=4000, headers=10, idle=60.0, deadline=60.0)
    with memory(limits=limits, tokens=Tokens([TOKEN])) as server:
        require_problem(read_until_closed(server.url, sent), status, kind)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        metrics = ask(server.url, "GET", "/v1/metrics", headers=headers).body.decode()
        assert f'bayescontrol_problems_total{{problem="{kind}"}} 1.0' in metrics


def test_a_head_within_the_limits_is_answered() -> None:
    path = "/v1/health/live"
    line = path + "x" * (1000 - len(path))  # a path that does not exist
    many = {f"X-{i}": "x" for i in range(8)}  # and Host and Accept-Encoding
    with memory(limits=Limits(line=1000, head=4000, headers=10)) as server:
        assert ask(server.url, "GET", line).status == 404
        for headers in ({"X-Long": "x" * 3800}, many):
            assert ask(server.url, "GET", path, headers=headers).status == 200
        for url, headers in (
            (line + "x", {}),
            (path, {"X-Long": "x" * 4000}),
            (path, many | {"X-8": "x"}),
        ):
            kind = ask(server.url, "GET", url, headers=headers).kind
            assert kind == ("uri-too-long" if url != path else "head-too-large")


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"X-Long: ",
        head(Transfer_Encoding="chunked") + b"1\r\n{\r\n0\r\nX-Long: ",
        head(Transfer_Encoding="chunked") + b"1\r\n{\r\n1;extension=",
    ],
)
def test_a_head_or_trailer_without_an_end_is_cut_off(sent: bytes) -> None:
    with memory() as server, connected(server.url) as connection:
        connection.sendall(sent)
        require_cut_off(connection, b"x" * 65536)


def test_the_body_of_a_refused_request_is_not_read_forever() -> None:
    limits = Limits(body=100_000)
    with (
        memory(limits=limits, tokens=Tokens([TOKEN])) as server,
        connected(server.url) as connection,
    ):
        connection.sendall(head(Transfer_Encoding="chunked"))
        assert connection.recv(4096).startswith(b"HTTP/1.1 401")
        require_cut_off(connection, b"10000\r\n" + b"x" * 65536 + b"\r\n")


def test_a_connection_is_closed_when_its_time_is_up() -> None:
    limits = Limits(idle=0.2, deadline=0.4)
    with memory(limits=limits) as server:
        assert read_until_closed(server.url, b"") == b""
        require_problem(read_until_closed(server.url, b"GET /v1/agents HT"), 408, "timeout")
        require_problem(read_until_closed(server.url, HEAD + b"X-Slow: "), 408, "timeout")
        answered = read_until_closed(
            server.url, HEAD + b"\r\n" + HEAD
        )  # one request, and half of one
        assert answered.startswith(b"HTTP/1.1 200")
        require_problem(b"HTTP/1.1" + answered.rpartition(b"HTTP/1.1")[2], 408, "timeout")


def test_a_slow_head_is_cut_off_at_the_deadline() -> None:
    with memory(limits=Limits(deadline=0.5)) as server, connected(server.url) as connection:
        began = time.monotonic()
        connection.sendall(HEAD)
        connection.settimeout(0.05)
        answered = b""
        while not answered:
            connection.sendall(b"X-Slow: x\r\n")
            try:
                answered = connection.recv(4096)
            except TimeoutError:
                assert time.monotonic() < began + 20.0
        require_problem(answered, 408, "timeout")


def test_a_new_connection_replaces_the_longest_idle_one() -> None:
    with memory(limits=Limits(connections=4, idle=60.0)) as server, ExitStack() as stack:
        idle = [stack.enter_context(connected(server.url)) for _ in range(4)]
        for one in reversed(idle):  # so the last one has been idle longest
            one.sendall(HEAD + b"\r\n")
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
        assert ask(server.url, "GET", "/v1/health/live").status == 200
        assert rest(idle[3]) == b""
        for one in idle[:3]:
            one.sendall(HEAD + b"\r\n")
            assert one.recv(4096).startswith(b"HTTP/1.1 200")


def test_an_exhausted_pool_raises_a_clear_error() -> None:
    pause, limits = Pause(), Limits(connections=1, deadline=TIMEOUT)
    with memory(limits=limits, models=pause.models) as server, ThreadPoolExecutor(1) as pool:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"})
        with pause.hold():
            act = pool.submit(ask, server.url, "POST", "/v1/agents/shop/act", {})
            assert pause.entered.wait(TIMEOUT)
            for _ in range(3):
                refused = ask(server.url, "GET", "/v1/health/live")
                assert (refused.status, refused.kind) == (503, "overloaded")
                assert int(refused.headers["retry-after"]) >= 1
        assert act.result().status == 200
        assert ask(server.url, "GET", "/v1/health/live").status == 200


def test_pipelined_requests_are_answered_in_order_up_to_a_limit() -> None:
    with memory() as server:
        with connected(server.url) as connection:
            for path in (b"/v1/agents", b"/v1/health/live") * 10:
                connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
            connection.sendall(HEAD + b"Connection: close\r\n\r\n")
            bodies = [one.rpartition(b"\n")[2] for one in rest(connection).split(b"HTTP/1.1")[1:]]
        assert bodies == [b'{"agents":[],"next":null}', b'{"status":"ok"}'] * 10 + [
            b'{"status":"ok"}'
        ]
        with connected(server.url) as connection:
            require_cut_off(connection, HEAD + b"\r\n")


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescontrol.serve.connection._MAX_PIPELINED", 300)  # to fill all buffers
    with memory(limits=Limits(deadline=0.5)) as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = server.url.removeprefix("http://").partition(":")
        connection.connect((host, int(port)))
        connection.sendall(b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
        state = server._uvicorn.server_state
        wait_until(lambda: state.total_requests)
        wait_until(lambda: not state.connections)


@pytest.mark.parametrize("count", [2, 33, 300])
def test_a_client_that_pipelines_and_leaves_causes_no_error(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The health path needs no token, and its answer waits for a thread."""
    with memory(tokens=Tokens([TOKEN])) as server:
        assert ask(server.url, "GET", "/v1/health/live").status == 200
        for _ in range(5):
            with connected(server.url) as connection:
                connection.sendall((HEAD.replace(b"live", b"ready") + b"\r\n") * count)
        time.sleep(0.2)
        assert ask(server.url, "GET", "/v1/health/live").status == 200
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


@pytest.mark.parametrize("repeated", [b"Host: localhost", b"Authorization: Bearer x"])
def test_a_header_that_decides_access_may_not_occur_twice(repeated: bytes) -> None:
    with memory() as server:
        fields = b"\r\n".join([repeated, repeated, b"Connection: close", b"", b""])
        host = b"" if repeated.startswith(b"Host") else b"Host: localhost\r\n"
        sent = b"GET /v1/agents HTTP/1.1\r\n" + host + fields
        answered = read_until_closed(server.url, sent)
        assert answered.startswith(b"HTTP/1.1 400")
        assert b"occurs twice" in answered


def test_connections_without_a_token_are_closed_before_those_with_one() -> None:
    limits = Limits(connections=8, idle=60.0, deadline=60.0)
    request = head(method="GET", Authorization=f"Bearer {TOKEN}")
    with ExitStack() as stack:
        server = stack.enter_context(memory(limits=limits, tokens=Tokens([TOKEN])))
        known = stack.enter_context(connected(server.url))
        known.sendall(request)
        assert known.recv(4096).startswith(b"HTTP/1.1 200")
        flood = [stack.enter_context(connected(server.url)) for _ in range(40)]
        for one, sent in zip(flood[-6:], (b"", HEAD, HEAD + b"\r\n") * 2, strict=True):
            one.sendall(sent)
        assert ask(server.url, "GET", "/v1/health/live").status == 200
        known.sendall(request)
        assert known.recv(4096).startswith(b"HTTP/1.1 200")


def test_the_caller_with_most_connections_loses_one() -> None:
    tokens = [f"token-of-caller-number-{i}" for i in range(2)]
    limits = Limits(connections=8, idle=60.0, deadline=60.0)
    get = head(method="GET", Authorization=f"Bearer {tokens[0]}")
    slow = head(Authorization=f"Bearer {tokens[1]}", Content_Length=100) + b"{"
    with ExitStack() as stack:
        server = stack.enter_context(memory(limits=limits, tokens=Tokens(tokens)))
        mine = stack.enter_context(connected(server.url))
        mine.sendall(get)  # this connection has waited longest
        assert mine.recv(4096).startswith(b"HTTP/1.1 200")
        for _ in range(20):
            stack.enter_context(connected(server.url)).sendall(slow)
            time.sleep(0.02)  # until the token has been read
        mine.sendall(get)
        assert mine.recv(4096).startswith(b"HTTP/1.1 200")
