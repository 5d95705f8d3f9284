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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from bayescontrol._support.files import close_on_error
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.events import Decision, Event, from_line
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BayesControlError
from bayescontrol.protocols import Totals
from bayescontrol.serve import http_errors
from bayescontrol.serve.access import require_sendable
from bayescontrol.serve.bodies import ConfigurationBody
from bayescontrol.serve.values import read_situation

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
        names: list[str] = []
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            page = self.call("GET", f"/v1/agents?{urlencode({'after': page['next']})}")
            names += page["agents"]
        return names

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

    def act(
        self, x: Any = None, *, key: str | None = None, among: Sequence[Any] | None = None,
        session: str | None = None,
    ) -> Decision:  # fmt: skip
        """See `DurableAgent.act`. Without a `key`, the client generates one for its retries."""
        body = _act_entry(x, key, among, session)
        headers = {"Idempotency-Key": body.pop("key")}
        return _decision(self._client.call("POST", f"{self._path}/act", body, headers))

    def observe(self, id: str | Decision, o: Any, *, cost: float | None = None) -> bool:
        """See `DurableAgent.observe`. Returns True if the observation is new, else False."""
        body = _observe_entry(id, o, cost)
        return bool(self._client.call("POST", f"{self._path}/observe", body)["learned"])

    def act_batch(
        self, calls: Iterable[Mapping[str, Any]], *, probabilities: bool = False
    ) -> list[Decision | Exception]:
        """Decide up to 1,000 times in one request and one commit.

        Each of `calls` has the arguments of `act` by name: `{"x": …, "key": …}`. The result of a
        call is its decision, or the error that `act` would raise. With `probabilities`, decisions
        have the probabilities of all actions.
        """
        path = f"{self._path}/act/batch" + ("?probabilities=true" if probabilities else "")
        body = {"decisions": [_act_entry(**call) for call in calls]}
        results = self._client.call("POST", path, body)["results"]
        return [_decision(r["decision"]) if "decision" in r else _batch_error(r) for r in results]

    def observe_batch(self, calls: Iterable[Mapping[str, Any]]) -> list[bool | Exception]:
        """Learn up to 1,000 observations in one request and one commit.

        Each of `calls` has the arguments of `observe` by name: `{"id": …, "o": …}`. The result of a
        call is that of `observe`, or the error that it would raise.
        """
        body = {"observations": [_observe_entry(**call) for call in calls]}
        results = self._client.call("POST", f"{self._path}/observe/batch", body)["results"]
        return [r["learned"] if "learned" in r else _batch_error(r) for r in results]

    def observe_totals(self, arm: Any, totals: Totals, x: Any = None, *, key: str) -> bool:
        """See `DurableAgent.observe_totals`."""
        names = ("n", "total", "squares")
        body = {"arm": as_plain(arm, "the arm"), "situation": as_plain(x, "the situation")}
        body |= dict(zip(names, totals, strict=True))
        headers = {"Idempotency-Key": _require_key(key)}
        return bool(self._client.call("POST", f"{self._path}/totals", body, headers)["learned"])

    def withdraw(self, id: str | Decision) -> bool:
        """See `DurableAgent.withdraw`."""
        body = {"id": _id(id)}
        return bool(self._client.call("POST", f"{self._path}/withdraw", body)["withdrawn"])

    def add_arm(self, arm: Any, prior: Any = None) -> int:
        """See `DurableAgent.add_arm`."""
        return self._change_arm(arm, "add", prior)

    def pause_arm(self, arm: Any) -> int:
        """See `DurableAgent.pause_arm`."""
        return self._change_arm(arm, "pause")

    def resume_arm(self, arm: Any) -> int:
        """See `DurableAgent.resume_arm`."""
        return self._change_arm(arm, "resume")

    def retire_arm(self, arm: Any) -> int:
        """See `DurableAgent.retire_arm`."""
        return self._change_arm(arm, "retire")

    def _change_arm(self, arm: Any, change: str, prior: Any = None) -> int:
        """Change an arm; return the number of the event."""
        body = {"arm": as_plain(arm, "the arm"), "change": change}
        body |= {"prior": as_plain(prior, "the prior")}
        return int(self._client.call("POST", f"{self._path}/arms", body)["event"])

    def arms(self) -> dict[Any, str]:
        """Return the state of every arm: "active", "paused" or "retired"."""
        found = self._client.call("GET", f"{self._path}/arms")["arms"]
        return {from_plain(one["arm"]): one["state"] for one in found}

    def prices(self) -> dict[Any, float]:
        """Return the current price of every arm that has one."""
        found = self._client.call("GET", f"{self._path}/arms")["arms"]
        return {from_plain(one["arm"]): one["price"] for one in found if one["price"] is not None}

    @property
    def configuration(self) -> Configuration:
        """The configuration of the next decision, which is read from the server."""
        plain = self._client.call("GET", f"{self._path}/configuration")
        return msgspec.convert(plain, ConfigurationBody).configuration()

    def configure(self, configuration: Configuration) -> int:
        """Replace the configuration, from the next decision on; return the number of the event."""
        body = ConfigurationBody.of(configuration)
        return int(self._client.call("PUT", f"{self._path}/configuration", body)["event"])

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
        return found | _decoded(found)

    def decisions(self, start: int = 1) -> Iterator[dict[str, Any]]:
        """Yield the decisions from event `start` on, oldest first, with their observations.

        Each is a dict with `decision`, `answered`, `observation`, `observed_at` and `is_default`.
        """
        following: int | None = start
        while following is not None:
            path = f"{self._path}/decisions?limit=1000&start={following:d}"
            page = self._client.call("GET", path)
            for found in page["decisions"]:
                yield found | _decoded(found)
            following = page["next"]

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


def _require_key(key: Any) -> str:
    """Return a key that a header can hold, or raise `InvalidKey`."""
    if not (isinstance(key, str) and re.fullmatch(r"[!-~]{1,200}", key)):
        # The key is not shown: a caller may have passed the token instead.
        raise http_errors.InvalidKey(
            "the key is invalid: give a string of 1 to 200 visible ASCII characters"
        )
    return key


def _act_entry(
    x: Any = None, key: str | None = None, among: Sequence[Any] | None = None,
    session: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the body of an act, with a key; raise `InvalidKey` if the key is invalid."""
    sent_key = uuid.uuid4().hex if key is None else _require_key(key)
    body: dict[str, Any] = {"situation": as_plain(x, "the situation"), "key": sent_key}
    if among is not None:
        body["among"] = [as_plain(arm, "an eligible arm") for arm in among]
    return body if session is None else body | {"session": session}


def _observe_entry(id: str | Decision, o: Any, cost: float | None = None) -> dict[str, Any]:
    """Return the body of an observe."""
    body = {"id": _id(id), "observation": as_plain(o, "the observation")}
    return body if cost is None else body | {"cost": cost}


def _decoded(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Decode the decision and the observation of an explanation or a record."""
    o = from_plain(plain["observation"])
    return {"decision": _decision(plain["decision"]), "observation": o}


def _probabilities(plain: Any) -> dict[Any, float] | None:
    """Decode a list of `bodies.Probability` to {action: probability}; None stays None."""
    return plain and {from_plain(item["action"]): item["probability"] for item in plain}


def _decision(plain: Mapping[str, Any]) -> Decision:
    """Decode the fields of a `bodies.DecisionInfo`."""
    return Decision(
        id=plain["id"], action=from_plain(plain["action"]), probability=plain["probability"],
        situation=read_situation(plain["situation"]), basis=plain["basis"], time=plain["time"],
        probabilities=_probabilities(plain["probabilities"]), session=plain["session"],
        holdout=plain["holdout"],
    )  # fmt: skip


def _error(status: int, body: bytes) -> Exception:
    """Return the error of the library that an answer reports, or `Refused`."""
    try:
        return _problem_error(_decode_problem(body))
    except msgspec.DecodeError:
        return http_errors.Refused("internal", f"{status}: {body[:200].decode(errors='replace')}")


def _batch_error(result: Mapping[str, Any]) -> Exception:
    """Return the error of an entry of a batch."""
    return _problem_error(msgspec.convert(result["problem"], http_errors.ProblemDetails))


def _problem_error(problem: http_errors.ProblemDetails) -> Exception:
    """Return the error of the library that a problem reports, or `Refused`."""
    name = problem.type.rpartition(":")[2]
    kind = http_errors.ERROR_KINDS.get(name)
    if kind is None or kind.error is None or kind.error is BayesControlError:
        return http_errors.Refused(name, f"{problem.title}: {problem.detail}. {problem.next}")
    return kind.error(problem.detail)
