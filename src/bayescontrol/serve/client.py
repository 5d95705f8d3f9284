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
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import asdict

from bayescontrol._support.files import close_on_error
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.events import Decision, Event, from_line
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BayesControlError
from bayescontrol.protocols import Summary, Totals
from bayescontrol.serve import bodies, http_errors
from bayescontrol.serve.access import MAX_PORT, require_sendable
from bayescontrol.serve.values import JsonObject, read_situation

T = TypeVar("T")
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
#: The address of a server: a host in brackets is an IPv6 address.
_ADDRESS: Final = re.compile(
    r"https?://(?P<host>\[[0-9a-fA-F:.]+\]|[^][/?#@:\s]+)(:(?P<port>\d{1,5}))?(?P<base>/[^?#]*)?"
    r"|unix://(?P<path>/[^?#]+)"
)
_decode_problem: Final = msgspec.json.Decoder(http_errors.ProblemDetails).decode


class InvalidAddress(BayesControlError, ValueError):
    """The URL is not the address of a server, or the server there cannot prove who it is."""


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
        given: object = url
        found = _ADDRESS.fullmatch(given) if isinstance(given, str) else None
        port = None if found is None or found["port"] is None else int(found["port"])
        if found is None or (port or 0) > MAX_PORT:
            raise InvalidAddress(
                f"url={url!r} is invalid: write http://host:port, https://host or unix:///path"
            )
        host, self._base = found["host"], (found["base"] or "").rstrip("/")
        self._connect: Callable[..., http.client.HTTPConnection]
        if found["path"]:
            self._connect = partial(_UnixConnection, found["path"])
        elif url.startswith("https"):
            try:
                context = ssl.create_default_context(cafile=ca)
            except OSError as error:
                raise InvalidAddress(f"ca={str(ca)!r} cannot be read: {error}") from None
            self._connect = partial(http.client.HTTPSConnection, host, port, context=context)
        else:
            self._connect = partial(http.client.HTTPConnection, host, port)
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
        names = list[str]()
        page = bodies.AgentList([], "")
        while page.next is not None:
            page = self.request(bodies.AgentList, "GET", f"/v1/agents?after={quote(page.next)}")
            names += page.agents
        return names

    def create(
        self, name: str, model: object, settings: Mapping[str, object] | None = None, *,
        seed: int | None = None,
    ) -> "RemoteAgent":  # fmt: skip
        """Create an agent from a problem of this library, or from a model's name and settings.

        Repeating the call returns the same agent.
        """
        if not isinstance(model, str):
            described = as_model(model)
            model, settings = described.name, described.settings
        plain = {k: as_plain(v, f"setting {k}") for k, v in (settings or {}).items()}
        self.call("POST", "/v1/agents", bodies.CreateBody(name, model, plain, seed))
        return RemoteAgent(self, name)

    def ready(self) -> bool:
        """Return whether the server answers and is ready."""
        ready = _Request("GET", "/v1/health/ready", self._headers)
        try:
            return self._send(ready, self._connect_timeout).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Send a request, repeat it if that may help, and return the decoded answer."""
        return self.request(JsonObject, method, path, body, headers)

    def request(
        self, kind: type[T], method: str, path: str, body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:  # fmt: skip
        """Do the same as `call`; return the answer with the type `kind`."""
        all_headers = {**self._headers, **(headers or {})}
        raw = None if body is None else msgspec.json.encode(body)
        if raw is not None:
            all_headers["Content-Type"] = "application/json"
        reply = self._send_with_retries(_Request(method, path, all_headers, raw))
        return msgspec.json.decode(reply.body, type=kind)

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
            try:
                connection.request(request.method, path, request.body, request.headers)
            except ssl.SSLCertVerificationError as error:  # repeating the request would not help
                raise InvalidAddress(
                    f"{self.url}: the certificate of the server is invalid "
                    f"({error.verify_message}): give ca=FILE with the certificate to trust, and "
                    "the host name that it contains"
                ) from error
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

    def _get(self, kind: type[T], path: str = "") -> T:
        return self._client.request(kind, "GET", self._path + path)

    def _post(self, kind: type[T], path: str, body: object, key: str | None = None) -> T:
        headers = None if key is None else {"Idempotency-Key": key}
        return self._client.request(kind, "POST", self._path + path, body, headers)

    def act(
        self, x: object = None, *, key: str | None = None, among: Sequence[object] | None = None,
        session: str | None = None,
    ) -> Decision:  # fmt: skip
        """See `DurableAgent.act`. Without a `key`, the client generates one for its retries."""
        entry = _act_entry(x, key, among, session)
        body = bodies.ActBody(entry.situation, entry.among, entry.session)
        return _decision(self._post(bodies.DecisionInfo, "/act", body, entry.key))

    def observe(self, id: str | Decision, o: object, *, cost: float | None = None) -> bool:
        """See `DurableAgent.observe`. Returns True if the observation is new, else False."""
        return self._post(bodies.Learned, "/observe", _observe_entry(id, o, cost)).learned

    def act_batch(
        self, calls: Iterable[Mapping[str, Any]], *, probabilities: bool = False
    ) -> list[Decision | Exception]:
        """Decide up to 1,000 times in one request and one commit.

        Each of `calls` has the arguments of `act` by name: `{"x": …, "key": …}`. The result of a
        call is its decision, or the error that `act` would raise. With `probabilities`, decisions
        have the probabilities of all actions.
        """
        path = "/act/batch" + ("?probabilities=true" if probabilities else "")
        body = bodies.ActBatch([_act_entry(**call) for call in calls])
        results = self._post(bodies.ActResults, path, body).results
        return [_decision(r.decision) if r.decision else _problem_error(r.problem) for r in results]

    def observe_batch(self, calls: Iterable[Mapping[str, Any]]) -> list[bool | Exception]:
        """Learn up to 1,000 observations in one request and one commit.

        Each of `calls` has the arguments of `observe` by name: `{"id": …, "o": …}`. The result of a
        call is that of `observe`, or the error that it would raise.
        """
        body = bodies.ObserveBatch([_observe_entry(**call) for call in calls])
        results = self._post(bodies.ObserveResults, "/observe/batch", body).results
        return [_problem_error(r.problem) if r.learned is None else r.learned for r in results]

    def observe_totals(self, arm: object, totals: Totals, x: object = None, *, key: str) -> bool:
        """See `DurableAgent.observe_totals`."""
        body = bodies.TotalsBody(as_plain(arm, "the arm"), *totals, as_plain(x, "the situation"))
        return self._post(bodies.Learned, "/totals", body, _require_key(key)).learned

    def withdraw(self, id: str | Decision) -> bool:
        """See `DurableAgent.withdraw`."""
        return self._post(bodies.Withdrawal, "/withdraw", bodies.WithdrawBody(_id(id))).withdrawn

    def add_arm(self, arm: object, prior: object = None) -> int:
        """See `DurableAgent.add_arm`."""
        return self._change_arm(arm, "add", prior)

    def pause_arm(self, arm: object) -> int:
        """See `DurableAgent.pause_arm`."""
        return self._change_arm(arm, "pause")

    def resume_arm(self, arm: object) -> int:
        """See `DurableAgent.resume_arm`."""
        return self._change_arm(arm, "resume")

    def retire_arm(self, arm: object) -> int:
        """See `DurableAgent.retire_arm`."""
        return self._change_arm(arm, "retire")

    def _change_arm(self, arm: object, change: bodies.ArmChange, prior: object = None) -> int:
        """Change an arm; return the number of the event."""
        body = bodies.ArmBody(as_plain(arm, "the arm"), change, as_plain(prior, "the prior"))
        return self._post(bodies.Changed, "/arms", body).event

    def arms(self) -> dict[object, str]:
        """Return the state of every arm: "active", "paused" or "retired"."""
        return {from_plain(one.arm): one.state for one in self._get(bodies.ArmList, "/arms").arms}

    def prices(self) -> dict[object, float]:
        """Return the current price of every arm that has one."""
        found = self._get(bodies.ArmList, "/arms").arms
        return {from_plain(one.arm): one.price for one in found if one.price is not None}

    @property
    def configuration(self) -> Configuration:
        """The configuration of the next decision, which is read from the server."""
        return self._get(bodies.ConfigurationBody, "/configuration").configuration()

    def configure(self, configuration: Configuration) -> int:
        """Replace the configuration, from the next decision on; return the number of the event."""
        path, body = f"{self._path}/configuration", bodies.ConfigurationBody.of(configuration)
        return self._client.request(bodies.Changed, "PUT", path, body).event

    def info(self) -> JsonObject:
        """Return the model and settings of the agent, and the size of its log."""
        return self._get(JsonObject)

    def posterior(self) -> Summary:
        """Return the current posterior, by arm or mode."""
        return self._get(bodies.Posterior, "/posterior").posterior

    def probabilities(
        self, x: object = None, among: Sequence[object] | None = None
    ) -> dict[object, float] | None:
        """Return P(a | past, x) of every eligible action; None if it is not known exactly."""
        given = {"situation": as_plain(x, "x"), "among": _plain_arms(among)}
        query = {name: msgspec.json.encode(v) for name, v in given.items() if v is not None}
        path = f"/probabilities?{urlencode(query)}"
        return _probabilities(self._get(bodies.Probabilities, path).probabilities)

    def explain(self, id: str | Decision) -> JsonObject:
        """Return the decision, the posterior at that time, the mode drawn and the observation."""
        path = f"/decisions/{quote(_id(id), safe='')}"
        return _fields(self._get(bodies.ExplanationInfo, path))

    def decisions(self, start: int = 1) -> Iterator[JsonObject]:
        """Yield the decisions from event `start` on, oldest first, with their observations.

        Each is a dict with `decision`, `answered`, `observation`, `observed_at` and `is_default`.
        """
        following: int | None = start
        while following is not None:
            path = f"/decisions?limit=1000&start={following:d}"
            page = self._get(bodies.DecisionPage, path)
            yield from map(_fields, page.decisions)
            following = page.next

    def log(self, start: int = 1) -> Iterator[Event]:
        """Yield the events from number `start` on, after verifying their checksums."""
        for line in self._client.lines(f"{self._path}/log?start={start:d}"):
            yield from_line(line.decode())

    def __repr__(self) -> str:
        return f"RemoteAgent({self.name!r} at {self._client.url})"


# -- requests and answers --------------------------------------------------------------------------


def _id(id: str | Decision) -> str:
    """Return the id of a decision, which is given by itself or by its id."""
    return str(id.id if isinstance(id, Decision) else id)


def _require_key(key: object) -> str:
    """Return a key that a header can hold, or raise `InvalidKey`."""
    if not (isinstance(key, str) and re.fullmatch(r"[!-~]{1,200}", key)):
        # The key is not shown: a caller may have passed the token instead.
        raise http_errors.InvalidKey(
            "the key is invalid: give a string of 1 to 200 visible ASCII characters"
        )
    return key


def _act_entry(
    x: object = None, key: str | None = None, among: Sequence[object] | None = None,
    session: str | None = None,
) -> bodies.ActEntry:  # fmt: skip
    """Return the body of an act, with a key; raise `InvalidKey` if the key is invalid."""
    sent_key = uuid.uuid4().hex if key is None else _require_key(key)
    return bodies.ActEntry(as_plain(x, "the situation"), _plain_arms(among), session, sent_key)


def _plain_arms(among: Sequence[object] | None) -> list[object] | None:
    """Return the eligible arms in the notation of the server."""
    return None if among is None else [as_plain(arm, "an eligible arm") for arm in among]


def _observe_entry(id: str | Decision, o: object, cost: float | None = None) -> bodies.ObserveBody:
    """Return the body of an observe."""
    return bodies.ObserveBody(_id(id), as_plain(o, "the observation"), cost)


def _fields(found: bodies.ExplanationInfo | bodies.DecisionRecord) -> JsonObject:
    """Return the fields of an explanation or a record; decode its decision and observation."""
    o = from_plain(found.observation)
    return asdict(found) | {"decision": _decision(found.decision), "observation": o}


def _probabilities(plain: list[bodies.Probability] | None) -> dict[object, float] | None:
    """Return {action: probability}; None stays None."""
    return None if plain is None else {from_plain(one.action): one.probability for one in plain}


def _decision(info: bodies.DecisionInfo) -> Decision:
    """Decode a decision."""
    return Decision(
        id=info.id, action=from_plain(info.action), probability=info.probability,
        situation=read_situation(info.situation), basis=info.basis, time=info.time,
        probabilities=_probabilities(info.probabilities), session=info.session,
        holdout=info.holdout,
    )  # fmt: skip


def _message(error: Exception) -> str:
    """Return the message of an error, or the name of its class if it has none."""
    return str(error) or type(error).__name__


def _error(status: int, body: bytes) -> Exception:
    """Return the error of the library that an answer reports, or `Refused`."""
    try:
        return _problem_error(_decode_problem(body))
    except msgspec.DecodeError:
        return http_errors.Refused("internal", f"{status}: {body[:200].decode(errors='replace')}")


def _problem_error(problem: http_errors.ProblemDetails | None) -> Exception:
    """Return the error of the library that a problem reports, or `Refused`."""
    if problem is None:
        return http_errors.Refused("internal", "the server gave neither a result nor a problem")
    name = problem.type.rpartition(":")[2]
    kind = http_errors.ERROR_KINDS.get(name)
    if kind is None or kind.error is None or kind.error is BayesControlError:
        return http_errors.Refused(name, f"{problem.title}: {problem.detail}. {problem.next}")
    return kind.error(problem.detail)
