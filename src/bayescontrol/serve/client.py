"""A small client: the same two verbs, over HTTP.

    shop = Client("http://127.0.0.1:8000", token).agent("checkout")
    d = shop.act();  shop.observe(d.id, 1)

Every `act` carries a key, and `observe` says the same twice as well as once: so whatever goes
wrong on the way, asking again is safe, and the client does, for as long as its `timeout` lasts.
Errors are the library's own, as if the agent were here; `Unavailable` if no answer came.
"""

import http.client
import math
import random
import re
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from bayescontrol.durable.events import Decision, Event, from_line
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.problems import PROBLEMS, InvalidKey, Problem, Refused, Unavailable
from bayescontrol.serve.tokens import require_sendable
from bayescontrol.serve.wire import Connections, Reply

#: Answers after which to ask again: too many requests, too slow, overloaded.
_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
_LONGEST_WAIT: Final = 2.0
#: Seconds for a call, and for a server that nobody has reached, where no timeout is given.
_WHOLE: Final = 30.0
_REACH: Final = 5.0
#: Nobody listens there, or there is no such place.
_NOBODY: Final = (ConnectionRefusedError, socket.gaierror)
_problem: Final = msgspec.json.Decoder(Problem).decode


class Client:
    """A server, by its address; `timeout` is how many seconds one call may take in all.

    Without a `timeout` it is 30 seconds, but 5 if no connection is made: then `Unavailable` says
    so. To outlast a server that is started again, give one. Any number of threads may use it.

    >>> client = Client("http://127.0.0.1:8000")
    >>> client.agent("checkout")
    RemoteAgent('checkout' at http://127.0.0.1:8000)
    >>> Client("shop.example")
    Traceback (most recent call last):
    bayescontrol.serve.wire.InvalidAddress: url='shop.example': write http://host:port or https://host
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float | None = None) -> None:
        self._connections = Connections(url)
        if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
            raise ValueError(f"timeout={timeout!r}: it must be a positive number of seconds")
        self.url = url.rstrip("/")
        self.timeout = _WHOLE if timeout is None else timeout
        self._reach = _REACH if timeout is None else timeout
        self._headers = {"Accept": "application/json", "User-Agent": "bayescontrol"}
        if token is not None:
            require_sendable(token)
            self._headers["Authorization"] = f"Bearer {token}"

    def agent(self, name: str) -> "RemoteAgent":
        """The agent of that name; nothing is asked yet."""
        return RemoteAgent(self, name)

    def agents(self) -> list[str]:
        """The names of all agents."""
        names: list[str] = self.call("GET", "/v1/agents")["agents"]
        return names

    def create(
        self,
        name: str,
        model: Any,
        settings: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
    ) -> "RemoteAgent":
        """Make an agent: of a problem of this library, or of a model by name and settings.

        The same again is the same agent.
        """
        if not isinstance(model, str):
            known = as_model(model)
            model, settings = known.name, known.settings
        plain = {k: as_plain(v, f"setting {k}") for k, v in (settings or {}).items()}
        body = {"name": name, "model": model, "settings": plain, "seed": seed}
        self.call("POST", "/v1/agents", body)
        return RemoteAgent(self, name)

    def ready(self) -> bool:
        """Whether the server answers, and has opened its agents."""
        try:
            return self._send("GET", "/v1/health/ready", None, {}, self._reach).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """What the server answers, as plain values; asked again while that may help."""
        reply = self._insist(method, path, body, headers or {})
        return msgspec.json.decode(reply.body) if reply.body else None

    def _insist(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Reply:
        begun, pause = time.monotonic(), 0.05
        end = begun + self.timeout
        while True:
            left = end - time.monotonic()
            wait = pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come at once
            try:
                reply = self._send(method, path, body, headers, max(left, 0.001))
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, _NOBODY):
                    left = min(left, begun + self._reach - time.monotonic())
                if wait > left:
                    raise self._unavailable(error, time.monotonic() - begun) from error
            else:
                if reply.status < 400:
                    return reply
                wait = max(wait, min(reply.retry_after, _LONGEST_WAIT))
                if reply.status not in _AGAIN or wait > left:
                    raise _error(reply)
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_WAIT)

    def _unavailable(self, error: Exception, seconds: float) -> Unavailable:
        return Unavailable(
            f"{self.url} gave no answer in {seconds:.1f} s ({_told(error)}): is the "
            "server running? Ask again with the same key: what was done is not done twice"
        )

    def _send(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], timeout: float
    ) -> Reply:
        sent = {**self._headers, **headers}
        raw = None if body is None else msgspec.json.encode(body)
        if raw is not None:
            sent["Content-Type"] = "application/json"
        return self._connections.send(method, path, raw, sent, timeout)

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of a long answer, as they come."""
        try:
            yield from self._connections.lines(path, self._headers, self.timeout, _error)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{self.url} broke off: {_told(error)}") from error

    def close(self) -> None:
        """Close the connections. Used again, it makes new ones."""
        self._connections.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        """What to do in situation x. `key` is a name for the question; without one it gets one."""
        _require_key(key)
        headers = {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
        body = {"situation": as_plain(x, "the situation")}
        return _decision(self._client.call("POST", f"{self._path}/act", body, headers))

    def observe(self, id: str | Decision, o: Any) -> bool:
        """The answer to a decision: True if it was learnt, False if it was known."""
        body = {"id": _id(id), "observation": as_plain(o, "the observation")}
        learnt: bool = self._client.call("POST", f"{self._path}/observe", body)["learnt"]
        return learnt

    def info(self) -> dict[str, Any]:
        """Its model and settings, and how much has happened."""
        told: dict[str, Any] = self._client.call("GET", self._path)
        return told

    def posterior(self) -> dict[str, dict[str, Any]]:
        """What is believed now, by arm or mode."""
        told: dict[str, dict[str, Any]] = self._client.call("GET", f"{self._path}/posterior")[
            "posterior"
        ]
        return told

    def probabilities(self, x: Any = None) -> dict[Any, float] | None:
        """P(a | âo, x) for every action, if it were to act now; None where it is not exact."""
        path = f"{self._path}/probabilities"
        if x is not None:
            plain = msgspec.json.encode(as_plain(x, "the situation")).decode()
            path = f"{path}?{urlencode({'situation': plain})}"
        return _law(self._client.call("GET", path)["probabilities"])

    def explain(self, id: str | Decision) -> dict[str, Any]:
        """Why it was done: the decision, the posterior then, the mode drawn, the answer."""
        n = quote(_id(id), safe="")
        told: dict[str, Any] = self._client.call("GET", f"{self._path}/decisions/{n}")
        told["decision"] = _decision(told["decision"])
        told["observation"] = from_plain(told["observation"])
        return told

    def log(self, start: int = 1) -> Iterator[Event]:
        """The events from `start` to the head of now, each checked."""
        for line in self._client.lines(f"{self._path}/log?start={start:d}"):
            yield from_line(line.decode())

    def __repr__(self) -> str:
        return f"RemoteAgent({self.name!r} at {self._client.url})"


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__


def _id(id: str | Decision) -> str:
    return str(id.id if isinstance(id, Decision) else id)


def _require_key(key: Any) -> None:
    if key is None or (isinstance(key, str) and re.fullmatch(r"[!-~]{1,200}", key)):
        return
    # Not shown: it goes where the token goes, and may have been mistaken for it.
    raise InvalidKey("a key is a text of 1 to 200 visible ASCII characters")


def _law(plain: Any) -> dict[Any, float] | None:
    return plain and {from_plain(one["action"]): one["probability"] for one in plain}


def _decision(told: Mapping[str, Any]) -> Decision:
    action, x = from_plain(told["action"]), from_plain(told["situation"])
    law, p = _law(told["probabilities"]), told["probability"]
    return Decision(told["id"], action, p, x, told["basis"], told["time"], law)


def _error(reply: Reply) -> Exception:
    """The library's own error for a problem, if it has one."""
    try:
        problem = _problem(reply.body)
    except msgspec.DecodeError:
        return Refused("internal", f"{reply.status}: {reply.body[:200].decode(errors='replace')}")
    name = problem.type.rpartition(":")[2]
    kind = PROBLEMS.get(name)
    if kind is None or kind.error is None or kind.error is BayesControlError:
        return Refused(name, f"{problem.title}: {problem.detail}. {problem.next}")
    return kind.error(problem.detail)
