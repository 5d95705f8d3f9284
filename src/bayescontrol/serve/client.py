"""A client of the server, with the methods of a durable agent.

    shop = Client("http://127.0.0.1:8000", token).agent("checkout")
    d = shop.act();  shop.observe(d.id, 1)

Every `act` has a key, and `observe` is idempotent. The client can therefore safely repeat a failed
request, and does so until its `timeout`. It raises the same errors as a local agent, and
`Unavailable` if the server does not answer.
"""

import http.client
import math
import random
import re
import socket
import ssl
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from bayescontrol._support.files import close_on_error
from bayescontrol.durable.events import Decision, Event, from_line
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BayesControlError
from bayescontrol.serve import http_errors
from bayescontrol.serve.access import require_sendable

#: Statuses after which a request is repeated: too slow, too many requests, overloaded.
_RETRIED: Final = frozenset({408, 429, 502, 503, 504})
#: Seconds before the first retry; they double up to the most.
_FIRST_WAIT, _MAX_WAIT = 0.05, 2.0
#: An attempt after the end of the call has this timeout, because 0 would mean no waiting at all.
_LEAST_TIMEOUT: Final = 0.001
#: Default seconds for a call, and for attempts to reach a server that accepts no connection.
_TIMEOUT: Final = 30.0
_CONNECT_TIMEOUT: Final = 5.0
#: No server listens at the address, or the host does not exist.
_UNREACHABLE: Final = (ConnectionRefusedError, FileNotFoundError, socket.gaierror)
_decode_problem: Final = msgspec.json.Decoder(http_errors.ProblemDetails).decode


class InvalidAddress(BayesControlError, ValueError):
    """The URL is not the address of a server."""


class _Reply(NamedTuple):
    """A complete answer; `retry_after` is the header Retry-After in seconds, 0 without it."""

    status: int
    body: bytes
    retry_after: float


class _Request(NamedTuple):
    """A request to send; the path is relative to the address of the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket of this machine."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the path instead of a port."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with close_on_error(self.sock):
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)


class Client(AbstractContextManager["Client"]):
    """A connection to a server; `timeout` limits one call in seconds, including its retries.

    The default is 30 seconds, but 5 if no connection can be made. Give a `timeout` to wait for a
    server that restarts. Any number of threads may use one client. `ca` is a file with the
    certificates to trust for https, by default those of the system; `unix:///run/bc.sock` is a
    server that listens on a path.

    >>> client = Client("http://127.0.0.1:8000")
    >>> client.agent("checkout")
    RemoteAgent('checkout' at http://127.0.0.1:8000)
    >>> Client("shop.example")
    Traceback (most recent call last):
    bayescontrol.serve.client.InvalidAddress: url='shop.example' is invalid: write ...
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float | None = None,
        ca: str | Path | None = None,
    ) -> None:  # fmt: skip
        invalid = InvalidAddress(
            f"url={url!r} is invalid: write http://host:port, https://host or unix:///path"
        )
        try:
            parts = urlsplit(url)
            port = parts.port
        except (AttributeError, TypeError, ValueError):
            raise invalid from None
        self._base = str(parts.path).rstrip("/")  # of bytes, the scheme is invalid below
        self._connect: Callable[..., http.client.HTTPConnection]
        if parts.scheme == "unix" and self._base and not parts.netloc and not parts.query:
            self._connect, self._base = partial(_UnixConnection, self._base), ""
        elif parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise invalid
        elif parts.scheme == "https":
            try:
                context = ssl.create_default_context(cafile=ca)
            except OSError as error:
                raise InvalidAddress(f"ca={str(ca)!r} cannot be read: {error}") from None
            https = http.client.HTTPSConnection
            self._connect = partial(https, parts.hostname, port, context=context)
        else:
            self._connect = partial(http.client.HTTPConnection, parts.hostname, port)
        self._free: deque[http.client.HTTPConnection] = deque()  # threads may share a deque
        if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
            raise ValueError(
                f"timeout={timeout!r} is invalid: give a positive, finite number of seconds"
            )
        self.url = url.rstrip("/")
        self.timeout = _TIMEOUT if timeout is None else timeout
        self._connect_timeout = _CONNECT_TIMEOUT if timeout is None else timeout
        self._headers = {"Accept": "application/json", "User-Agent": "bayescontrol"}
        if token is not None:
            require_sendable(token)
            self._headers["Authorization"] = f"Bearer {token}"

    def agent(self, name: str) -> "RemoteAgent":
        """Return the agent of that name; sends no request yet."""
        return RemoteAgent(self, name)

    def agents(self) -> list[str]:
        """Return the names of all agents."""
        return list(self.call("GET", "/v1/agents")["agents"])

    def create(
        self, name: str, model: Any, settings: Mapping[str, Any] | None = None, *,
        seed: int | None = None,
    ) -> "RemoteAgent":  # fmt: skip
        """Create an agent from a problem of this library, or from a model's name and settings.

        Repeating the call returns the same agent.
        """
        if not isinstance(model, str):
            described = as_model(model)
            model, settings = described.name, described.settings
        plain = {k: as_plain(v, f"setting {k}") for k, v in (settings or {}).items()}
        body = {"name": name, "model": model, "settings": plain, "seed": seed}
        self.call("POST", "/v1/agents", body)
        return RemoteAgent(self, name)

    def ready(self) -> bool:
        """Return whether the server answers and is ready."""
        ready = _Request("GET", "/v1/health/ready", self._headers)
        try:
            return self._send(ready, self._connect_timeout).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request, repeat it if that may help, and return the decoded answer."""
        all_headers = {**self._headers, **(headers or {})}
        raw = None if body is None else msgspec.json.encode(body)
        if raw is not None:
            all_headers["Content-Type"] = "application/json"
        reply = self._send_with_retries(_Request(method, path, all_headers, raw))
        return msgspec.json.decode(reply.body) if reply.body else None

    def _send_with_retries(self, request: _Request) -> _Reply:
        """Return an answer with a status below 400; raise the error of the last attempt.

        There is no further attempt if the pause before it would end after the `timeout`.
        """
        began, pause = time.monotonic(), _FIRST_WAIT
        while True:
            left = began + self.timeout - time.monotonic()
            wait = pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that clients do not retry at the same time
            try:
                reply = self._send(request, max(left, _LEAST_TIMEOUT))
            except (OSError, http.client.HTTPException) as error:
                now = time.monotonic()
                if isinstance(error, _UNREACHABLE):
                    left = min(left, began + self._connect_timeout - now)
                if wait > left:
                    raise http_errors.Unavailable(
                        f"{self.url} did not answer within {now - began:.1f} s "
                        f"({_message(error)}): is the server running? Repeat the call with the "
                        "same key; it is carried out only once"
                    ) from error
            else:
                if reply.status < 400:
                    return reply
                wait = max(wait, min(reply.retry_after, _MAX_WAIT))
                if reply.status not in _RETRIED or wait > left:
                    raise _error(reply.status, reply.body)
            time.sleep(wait)
            pause = min(2 * pause, _MAX_WAIT)

    def lines(self, path: str) -> Iterator[bytes]:
        """Yield the lines of a long answer as they arrive."""
        try:
            connection, response = self._respond(_Request("GET", path, self._headers), self.timeout)
            with closing(connection):
                if response.status != 200:
                    raise _error(response.status, response.read())
                for line in response:
                    yield line.rstrip(b"\n")
        except (OSError, http.client.HTTPException) as error:
            raise http_errors.Unavailable(
                f"{self.url} stopped in the middle of an answer ({_message(error)}): try again"
            ) from error

    def _send(self, request: _Request, timeout: float) -> _Reply:
        """Send one request and return the answer; keep the connection for the next one."""
        connection, response = self._respond(request, timeout)
        with close_on_error(connection):
            body = response.read()
        if response.will_close:
            connection.close()
        else:
            self._free.append(connection)
        seconds = response.headers.get("Retry-After", "")
        return _Reply(response.status, body, float(seconds) if seconds.isdigit() else 0.0)

    def _respond(
        self, request: _Request, timeout: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request on a free or a new connection; return the connection and the response."""
        # If there is no free connection, or the server has closed an idle one, use a new one.
        with suppress(IndexError, ConnectionError, http.client.HTTPException):
            connection = self._free.pop()
            return connection, self._exchange(connection, request, timeout)
        connection = self._connect(timeout=timeout)
        return connection, self._exchange(connection, request, timeout)

    def _exchange(
        self, connection: http.client.HTTPConnection, request: _Request, timeout: float
    ) -> http.client.HTTPResponse:
        """Send a request on this connection; close the connection if that fails."""
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        path = self._base + request.path
        with close_on_error(connection):
            connection.request(request.method, path, request.body, request.headers)
            return connection.getresponse()

    def close(self) -> None:
        """Close the idle connections. The client opens new ones if it is used again."""
        with suppress(IndexError):
            while True:
                self._free.pop().close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


class RemoteAgent:
    """An agent on a server.

    >>> RemoteAgent(Client("http://127.0.0.1:8000"), "shop").name
    'shop'
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/v1/agents/{quote(name, safe='')}"

    def act(self, x: Any = None, *, key: str | None = None) -> Decision:
        """See `DurableAgent.act`. Without a `key`, the client generates one for its retries."""
        sent_key: Any = uuid.uuid4().hex if key is None else key
        if not (isinstance(sent_key, str) and re.fullmatch(r"[!-~]{1,200}", sent_key)):
            # The key is not shown: a caller may have passed the token instead.
            raise http_errors.InvalidKey(
                "the key is invalid: give a string of 1 to 200 visible ASCII characters"
            )
        headers = {"Idempotency-Key": sent_key}
        body = {"situation": as_plain(x, "the situation")}
        return _decision(self._client.call("POST", f"{self._path}/act", body, headers))

    def observe(self, id: str | Decision, o: Any) -> bool:
        """See `DurableAgent.observe`. Returns True if the observation is new, else False."""
        body = {"id": _id(id), "observation": as_plain(o, "the observation")}
        return bool(self._client.call("POST", f"{self._path}/observe", body)["learned"])

    def info(self) -> dict[str, Any]:
        """Return the model and settings of the agent, and the size of its log."""
        return dict(self._client.call("GET", self._path))

    def posterior(self) -> dict[str, dict[str, Any]]:
        """Return the current posterior, by arm or mode."""
        return dict(self._client.call("GET", f"{self._path}/posterior")["posterior"])

    def probabilities(self, x: Any = None) -> dict[Any, float] | None:
        """Return P(a | past, x) of every action; None if it cannot be computed exactly."""
        path = f"{self._path}/probabilities"
        if x is not None:
            plain = msgspec.json.encode(as_plain(x, "the situation")).decode()
            path = f"{path}?{urlencode({'situation': plain})}"
        return _probabilities(self._client.call("GET", path)["probabilities"])

    def explain(self, id: str | Decision) -> dict[str, Any]:
        """Return the decision, the posterior at that time, the mode drawn and the observation."""
        n = quote(_id(id), safe="")
        found: dict[str, Any] = self._client.call("GET", f"{self._path}/decisions/{n}")
        found["decision"] = _decision(found["decision"])
        found["observation"] = from_plain(found["observation"])
        return found

    def log(self, start: int = 1) -> Iterator[Event]:
        """Yield the events from number `start` on, after verifying their checksums."""
        for line in self._client.lines(f"{self._path}/log?start={start:d}"):
            yield from_line(line.decode())

    def __repr__(self) -> str:
        return f"RemoteAgent({self.name!r} at {self._client.url})"


def _message(error: Exception) -> str:
    """Return the message of an error, or the name of its class if it has none."""
    return str(error) or type(error).__name__


def _id(id: str | Decision) -> str:
    """Return the id of a decision, which is given by itself or by its id."""
    return str(id.id if isinstance(id, Decision) else id)


def _probabilities(plain: Any) -> dict[Any, float] | None:
    """Decode a list of `bodies.Probability` to {action: probability}; None stays None."""
    return plain and {from_plain(item["action"]): item["probability"] for item in plain}


def _decision(plain: Mapping[str, Any]) -> Decision:
    """Decode the fields of a `bodies.DecisionInfo`."""
    return Decision(
        id=plain["id"], action=from_plain(plain["action"]), probability=plain["probability"],
        situation=from_plain(plain["situation"]), basis=plain["basis"], time=plain["time"],
        probabilities=_probabilities(plain["probabilities"]),
    )  # fmt: skip


def _error(status: int, body: bytes) -> Exception:
    """Return the error of the library that an answer reports, or `Refused`."""
    try:
        problem = _decode_problem(body)
    except msgspec.DecodeError:
        return http_errors.Refused("internal", f"{status}: {body[:200].decode(errors='replace')}")
    name = problem.type.rpartition(":")[2]
    kind = http_errors.ERROR_KINDS.get(name)
    if kind is None or kind.error is None or kind.error is BayesControlError:
        return http_errors.Refused(name, f"{problem.title}: {problem.detail}. {problem.next}")
    return kind.error(problem.detail)
