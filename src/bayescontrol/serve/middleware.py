"""Access checks and limits that every request passes before a route handles it.

    403, 421  a page of another site, a token that may only read, or another host name
    401       no valid token, where one is needed
    413       the body is larger than `body` bytes, or has more than `values` JSON values
    429       a caller's token bucket is empty: it refills at `rate` tokens a second, up to one
              second's worth; without a valid token at the smaller of `rate` and `failures`
    503       `concurrency` requests are in progress, or the bodies of unanswered requests have
              64 times `body` bytes, or three quarters of either limit are this caller's; or the
              answer took longer than `deadline`
    408       the client took longer than `deadline` seconds to send its request

A request is in progress from the end of its body to its answer, so that slow clients do not use up
the concurrency. `serve.connection` enforces the limits of a connection and of a request's head.

Every request has an id: its header X-Request-Id, or a new one. The answer and the logs have it too.
"""

import asyncio
import itertools
import json
import logging
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.serve.access import AccessLog, Caller, Limits, Quota, RateLimiter, Tokens
from bayescontrol.serve.http_errors import Refused, error_response
from bayescontrol.serve.monitor import Metrics

_Scope: TypeAlias = MutableMapping[str, Any]
_Message: TypeAlias = _Scope
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_Task: TypeAlias = asyncio.Task[Any]
_App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
#: The status, the headers and the body of an answer.
Answer: TypeAlias = tuple[int, dict[str, str], bytes]
#: Answers a request with its whole body, or returns None if it cannot.
_Direct: TypeAlias = Callable[[_Scope, bytes], Awaitable[Answer | None]]

#: Paths that need no token: they reveal nothing about the agents.
PUBLIC: Final = frozenset({"/", "/docs", "/openapi.json", "/v1/health/live", "/v1/health/ready"})
_DOCS: Final = "/docs/"
#: The event stream, which has its own limit.
STREAM: Final = "/events"
#: A public path whose answer describes the agents to callers with a token, which is then checked.
_DOCUMENT: Final = "/openapi.json"
_HEALTH: Final = "/v1/health/"
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CLOSE: Final = {"Connection": "close"}
_logger = logging.getLogger("bayescontrol.serve")
#: Log lines about callers without a valid token: maximum per second, and maximum at once.
_LOG_RATE, _LOG_BURST = 1.0, 10.0
#: The total size of the bodies of unanswered requests, as a multiple of the largest body.
_MAX_BODIES: Final = 64
#: Bytes from which JSON is checked and decoded in a thread.
LARGE: Final = 16_384
#: Maximum depth of nested JSON values.
_MAX_DEPTH: Final = 100
#: The header fields that are checked here. None of them may occur twice.
_HEADERS: Final = frozenset(
    {b"host", b"origin", b"authorization", b"content-type", b"content-length", b"transfer-encoding"}
)
#: The header field with the id of a request, and the ids that are accepted from clients.
_ID_HEADER: Final = b"x-request-id"
_is_request_id: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch


class Middleware:
    """An ASGI application, for `HttpConnection`, that checks requests before it passes them on.

    `direct` answers the frequent requests, the application `app` those for which it returns None.
    `hosts` are the host names that requests may use; None allows any. Without an `access_log`,
    answered requests are only counted.

    >>> async def app(scope, receive, send): ...
    >>> async def direct(scope, body): ...
    >>> Middleware(app, direct, Tokens(), Limits(), Metrics(), None).requests.used
    0
    """

    def __init__(
        self, app: _App, direct: _Direct, tokens: Tokens, limits: Limits, metrics: Metrics,
        hosts: Iterable[str] | None, access_log: AccessLog | None = None,
    ) -> None:  # fmt: skip
        self._app, self._direct, self._tokens = app, direct, tokens
        self._access_log = access_log
        # New ids: random digits of this server, and a number.
        self._id_prefix, self._numbers = f"{secrets.token_hex(6)}-", itertools.count(1)
        self._limits, self._metrics = limits, metrics
        self._hosts = None if hosts is None else frozenset(hosts)
        self._rate_limiter = None if limits.rate is None else RateLimiter(limits.rate)
        self._failure_limiter = RateLimiter(min(limits.failures, limits.rate or math.inf))
        self._log_limiter, self._unlogged = RateLimiter(_LOG_RATE, burst=_LOG_BURST), 0
        #: Requests that have arrived completely and have not been answered.
        self.requests = Quota(limits.concurrency, "requests in progress")
        #: Requests that have arrived so far.
        self.started = 0
        self._bodies = Quota(_MAX_BODIES * limits.body, "bytes of bodies")
        self._deadlines = _Deadlines(limits.deadline)
        metrics.gauge(
            "requests_under_way", "Requests not yet answered.", lambda: self.requests.used
        )

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        try:
            caller = self._require_allowed(scope, scope["path"])
            await self._answer(scope, receive, send, caller)
        except Refused as refused:
            await self._refuse(scope, refused)
        finally:
            if self._access_log is not None:
                self._access_log.add(scope, time.perf_counter() - began)

    # -- access ----------------------------------------------------------------------------------

    def _require_allowed(self, scope: _Scope, path: str) -> object:
        """Return the caller; raise `Refused` for an invalid host, origin, token, rate or body."""
        headers: dict[bytes, bytes] = {}
        scope["request_id"] = f"{self._id_prefix}{next(self._numbers)}"
        for name, value in scope["headers"]:
            if name == _ID_HEADER and _is_request_id(value):
                scope["request_id"] = value.decode("ascii")
            elif name in _HEADERS:
                if name in headers:
                    raise Refused("bad-request", f"the header {name.decode()} occurs twice")
                headers[name] = value
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise Refused("wrong-host", f"Host: {host[:80]}")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refused("forbidden-origin", f"Origin: {origin[:80].decode('latin-1')}")
        caller: Caller | None = None
        address = (scope.get("client") or ("",))[0]
        is_public = path in PUBLIC or path.startswith(_DOCS)
        if path == _DOCUMENT and b"authorization" in headers:
            is_public = False
        if self._tokens and not is_public:
            caller = self._tokens.caller(headers.get(b"authorization"))
            if caller is None:
                has_token = b"authorization" in headers
                reason = "the token is not valid" if has_token else "the request has no token"
                self._log_failure(scope, path, address, reason)
                self._failure_limiter.take(address)
                raise Refused("unauthorized", reason, {"WWW-Authenticate": "Bearer"})
            scope["token"] = caller.name
        if self._rate_limiter is not None and not path.startswith(_HEALTH):
            self._rate_limiter.take(caller or address)
        if scope["method"] not in _READING:
            if caller is not None and caller.role == "read":
                why = f"the token {caller.name!r} has the role read: it allows GET only"
                raise Refused("forbidden-role", why)
            self._require_valid_body(headers)
        if caller or not self._tokens:
            scope["state"]["identify"](caller or address)
        return caller or address

    def _log_failure(self, scope: _Scope, path: str, address: str, reason: str) -> None:
        """Log a request without a valid token. The token is not logged; lines are limited."""
        try:
            self._log_limiter.take("log")
        except Refused:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last line)" if self._unlogged else ""
        _logger.warning(
            "%s %a from %s refused: %s%s [%s]",
            scope["method"], path[:200], address, reason, more, scope["request_id"],
        )  # fmt: skip
        self._unlogged = 0

    def _require_valid_body(self, headers: dict[bytes, bytes]) -> None:
        """Raise `Refused` if the headers announce a body that is too large or not JSON."""
        length = headers.get(b"content-length", b"0")
        # An invalid length, or one of 19 digits and more, counts as too large.
        size = int(length) if length.isdigit() and len(length) < 19 else self._limits.body + 1
        self._require_size(size)
        if size or b"transfer-encoding" in headers:
            media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if media != b"application/json":
                shown = media[:80].decode("latin-1") or "none"
                raise Refused("unsupported-media-type", f"Content-Type: {shown}")

    def _require_size(self, size: int) -> None:
        """Raise `Refused` if a body of this many bytes is too large."""
        if size > self._limits.body:
            raise Refused("too-large", f"more than {self._limits.body} bytes")

    # -- time and size ---------------------------------------------------------------------------

    async def _answer(self, scope: _Scope, receive: _Receive, send: _Send, caller: object) -> None:
        """Read the body and let the application answer, within the limits of time and size."""
        began, task = time.perf_counter(), self._deadlines.start()
        body, is_complete, in_progress = bytearray(), False, 0
        statuses: list[int] = []  # empty until the answer begins

        def count(status: int) -> None:
            """Count the start of the answer."""
            statuses.append(status)
            self._count(scope, status, time.perf_counter() - began)

        try:
            await self._read_body(receive, caller, body)
            is_complete, content = True, bytes(body)
            if not scope["path"].startswith(_HEALTH) and scope["path"] != STREAM:
                self.started += 1
                self.requests.add(caller, 1)
                in_progress = 1
            require_few_values(content, self._limits.values)
            answer = await self._direct(scope, content)
            if answer is not None:
                count(answer[0])
                answer[1]["X-Request-Id"] = scope["request_id"]
                scope["sent"] = len(answer[2])
                await scope["state"]["respond"](*answer)
            else:
                await self._pass_on(scope, receive, send, content, count, task)
        except asyncio.CancelledError:
            if not self._deadlines.has_cancelled(task):
                raise
            if not statuses:
                kind, headers = ("deadline", {}) if is_complete else ("timeout", _CLOSE)
                why = f"more than {self._limits.deadline:g} seconds"
                raise Refused(kind, why, headers) from None
        finally:
            self._deadlines.stop(task)
            self._bodies.add(caller, -len(body))
            self.requests.add(caller, -in_progress)

    async def _pass_on(
        self, scope: _Scope, receive: _Receive, send: _Send, body: bytes,
        count: Callable[[int], None], task: _Task,
    ) -> None:  # fmt: skip
        """Let the application answer a request; `count` is called when the answer begins.

        HEAD is answered as GET, and Uvicorn sends no body; but the event stream would have no end.
        """
        passed = scope
        if scope["method"] == "HEAD" and scope["path"] != STREAM:
            passed = {**scope, "method": "GET"}
        unread: list[_Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> _Message:
            """Return the body, which was read already, and then what arrives after it."""
            return unread.pop() if unread else await receive()

        async def counted_send(message: _Message) -> None:
            """Count the start of the answer; let each part but the last extend the deadline."""
            if message["type"] == "http.response.start":
                scope["path_template"] = passed.get("path_template")
                count(message["status"])
                id_field = (_ID_HEADER, scope["request_id"].encode())
                message = {**message, "headers": [*message["headers"], id_field]}
            else:
                scope["sent"] = scope.get("sent", 0) + len(message.get("body", b""))
            if message.get("more_body", True):  # a stream may last long while it makes progress
                self._deadlines.extend(task)
            await send(message)

        if len(body) > LARGE:
            await asyncio.to_thread(require_valid_json, body)
        elif body:
            require_valid_json(body)
        await self._app(passed, receive_again, counted_send)

    async def _read_body(self, receive: _Receive, caller: object, body: bytearray) -> None:
        """Append the whole body to `body`; the caller's quota has the bytes that it contains."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused("bad-request", "the connection was closed before the body ended")
            part, more = message.get("body", b""), message.get("more_body", False)
            self._bodies.add(caller, len(part))
            body += part
            self._require_size(len(body))

    def _count(self, scope: _Scope, status: int, seconds: float) -> None:
        """Count an answer, which began after this many seconds, by method, route and status."""
        route = str(scope.get("path_template") or "other")
        metrics, token = self._metrics, scope.get("token")
        scope["status"] = status
        if token is not None:
            metrics.child(metrics.token_requests, token, str(status)).inc()
        metrics.child(metrics.requests, scope["method"], route, str(status)).inc()
        metrics.child(metrics.seconds, route).observe(seconds)

    async def _refuse(self, scope: _Scope, refused: Refused) -> None:
        """Send the problem of a refused request, and count it."""
        request_id = scope["request_id"]
        answer = error_response(refused.kind, str(refused), refused.headers, request_id)
        answer[1]["X-Request-Id"] = request_id
        scope["sent"] = len(answer[2])
        self._count(scope, answer[0], 0.0)
        self._metrics.problems.labels(refused.kind).inc()
        await scope["state"]["respond"](*answer)


class _Deadlines:
    """Cancels tasks that take longer than a number of seconds.

    As all have the same time, the order of their deadlines is that in which they started, and one
    timer is enough. It rarely fires, because most requests end long before.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[_Task, float] = {}  # in order
        self._cancelled = set[_Task]()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> _Task:
        """Start the time of the current task; return the task."""
        task = asyncio.current_task()
        assert task is not None
        self.extend(task)
        return task

    def extend(self, task: _Task) -> None:
        """Start the time of a task again."""
        loop = asyncio.get_running_loop()
        self._ends.pop(task, None)
        self._ends[task] = end = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(end, self._cancel_late)

    def stop(self, task: _Task) -> None:
        """End the time of a task."""
        self._ends.pop(task, None)
        self._cancelled.discard(task)

    def has_cancelled(self, task: _Task) -> bool:
        """Return whether a task was cancelled here, and by nobody else; then it may go on."""
        return task in self._cancelled and task.uncancel() == 0

    def _cancel_late(self) -> None:
        """Cancel the tasks whose time is over, and wait for the next one."""
        loop = asyncio.get_running_loop()
        self._timer, now = None, loop.time()
        while self._ends and self._timer is None:
            task, end = next(iter(self._ends.items()))
            if end > now:
                self._timer = loop.call_at(end, self._cancel_late)
            else:
                del self._ends[task]
                self._cancelled.add(task)
                task.cancel()


def _without_port(host: str) -> str:
    """Return the host name in lower case, without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


# -- JSON bodies ---------------------------------------------------------------------------------


def require_valid_json(body: bytes) -> None:
    """Raise `Refused` if a JSON body is not UTF-8, or has equal keys in one object.

    msgspec silently uses the last value of a duplicate key. Other errors are left to the decoder.

    >>> require_valid_json(b'{"a": 1, "b": {"a": 2}}')
    >>> require_valid_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.Refused: the key 'a' occurs twice in one object
    """
    try:
        _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Refused("bad-request", f"the body is not UTF-8 at byte {error.start}") from None
    except ValueError:  # invalid JSON
        pass


def require_few_values(body: bytes, most: int) -> None:
    r"""Raise `Refused` if a JSON body has too many values or is nested too deeply to be decoded.

    In JSON with c commas and b opening brackets, both outside strings, there are at most 1 + c + b
    values. Other bytes are never counted: the decoder rejects invalid JSON.

    >>> require_few_values(b'{"a": [1, 2]}', 4)
    >>> require_few_values(b'["[,[,[,[,", "\\"[["]', 3)
    >>> require_few_values(b"[1, 2, 3, 4]", 4)
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.Refused: more than 4 JSON values
    """
    brackets = body.count(b"[") + body.count(b"{")
    if 1 + brackets + body.count(b",") <= most and brackets <= _MAX_DEPTH:
        return  # also if all of them are outside strings
    # Without escaped quotes, a byte is inside a string iff an odd number of quotes precede it.
    text = np.frombuffer(body.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    text = text[np.cumsum(text == ord('"')) % 2 == 0]
    opening = (text == ord("[")) | (text == ord("{"))
    if 1 + np.count_nonzero(opening) + np.count_nonzero(text == ord(",")) > most:
        raise Refused("too-large", f"more than {most} JSON values")
    closing = (text == ord("]")) | (text == ord("}"))
    if np.max(np.cumsum(opening.astype(int) - closing), initial=0) > _MAX_DEPTH:
        raise Refused("bad-request", f"JSON nested deeper than {_MAX_DEPTH} levels")


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> None:
    """Raise `Refused` if a key occurs twice; the JSON decoder calls it for every object."""
    if len(dict(pairs)) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise Refused("bad-request", f"the key {key[:80]!r} occurs twice in one object")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_reject_duplicate_keys)
