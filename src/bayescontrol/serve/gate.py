"""The gate: every request goes through it before anything else is done.

    host, origin     a page of another site, or a name that points here, cannot ask on one's behalf
    token            one of those allowed, where one is needed
    limits           of rate, concurrency, body and time

What is refused costs no more than reading its head.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from bayescontrol.serve.limits import Buckets, Limits
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.problems import Refused, answer_of
from bayescontrol.serve.tokens import Tokens

_Message: TypeAlias = MutableMapping[str, Any]
_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

#: What needs no token: it tells nothing of the agents.
PUBLIC: Final = frozenset({"/", "/docs", "/openapi.json", "/v1/health/live", "/v1/health/ready"})
#: The stream of events, which has a limit of its own.
STREAM: Final = "/events"
_HEALTH: Final = "/v1/health/"
_logger = logging.getLogger("bayescontrol.serve")
#: Lines of the log about callers without a valid token: a second, and at once.
_LINES, _LINES_AT_ONCE = 1.0, 10.0
_WANTED: Final = frozenset(
    {b"host", b"origin", b"authorization", b"content-type", b"content-length", b"transfer-encoding"}
)


class Gate:
    """An ASGI application in front of another.

    `hosts` are the names that the server may be called by; None: any.

    >>> async def app(scope, receive, send): ...
    >>> Gate(app, Tokens(), Limits(), Metrics(), None).under_way
    0
    """

    def __init__(
        self,
        app: _App,
        tokens: Tokens,
        limits: Limits,
        metrics: Metrics,
        hosts: Iterable[str] | None,
    ) -> None:
        self._app, self._tokens, self._limits, self._metrics = app, tokens, limits, metrics
        self._hosts = None if hosts is None else frozenset(hosts)
        self._buckets = None if limits.rate is None else Buckets(limits.rate)
        self._failures = Buckets(min(limits.failures, limits.rate or math.inf))
        self._lines, self._unlogged = Buckets(_LINES, burst=_LINES_AT_ONCE), 0
        #: Requests that have not been answered.
        self.under_way = 0
        metrics.gauge("requests_under_way", "Requests not yet answered.", lambda: self.under_way)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """One connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        counted = not path.startswith(_HEALTH) and path != STREAM
        try:
            self._admit(scope, path)
            if counted:
                self._require_room()
        except Refused as refused:
            await self._refuse(scope, send, refused)
            return
        self.under_way += counted
        try:
            await self._pass(scope, receive, send)
        finally:
            self.under_way -= counted

    # -- who and what ----------------------------------------------------------------------------

    def _admit(self, scope: _Scope, path: str) -> None:
        heads = {name: value for name, value in scope["headers"] if name in _WANTED}
        host = heads.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and _bare(host) not in self._hosts:
            raise Refused("wrong-host", f"Host: {host[:80]}")
        origin = heads.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refused("forbidden-origin", f"Origin: {origin[:80].decode('latin-1')}")
        caller: object = None
        address = (scope.get("client") or ("",))[0]
        if self._tokens and path not in PUBLIC:
            caller = self._tokens.caller(heads.get(b"authorization"))
            if caller is None:
                given = b"authorization" in heads
                why = "the token is not known here" if given else "no token came with the request"
                self._log_failure(scope, path, address, why)
                self._failures.take(address)
                raise Refused("unauthorized", why, {"WWW-Authenticate": "Bearer"})
        if self._buckets is not None and not path.startswith(_HEALTH):
            self._buckets.take(caller or address)
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            self._admit_body(heads)

    def _log_failure(self, scope: _Scope, path: str, address: str, why: str) -> None:
        """Log a request without a valid token: not too many lines, and never the token."""
        try:
            self._lines.take("log")
        except Refused:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last line)" if self._unlogged else ""
        _logger.warning(
            "%s %a from %s refused: %s%s", scope["method"], path[:200], address, why, more
        )
        self._unlogged = 0

    def _require_room(self) -> None:
        if self.under_way >= self._limits.concurrency:
            raise Refused(
                "overloaded", f"{self.under_way} requests are under way", {"Retry-After": "1"}
            )

    def _admit_body(self, heads: dict[bytes, bytes]) -> None:
        length = heads.get(b"content-length", b"0")
        size = int(length) if length.isdigit() and len(length) < 19 else self._limits.body + 1
        if size > self._limits.body:
            raise self._too_large()
        if size or b"transfer-encoding" in heads:
            media = heads.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if media != b"application/json":
                shown = media[:80].decode("latin-1") or "none"
                raise Refused("unsupported-media-type", f"Content-Type: {shown}")

    def _too_large(self) -> Refused:
        return Refused("too-large", f"more than {self._limits.body} bytes")

    # -- how long --------------------------------------------------------------------------------

    async def _pass(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        begun, size, status = time.perf_counter(), 0, 0
        whole = expecting = False  # the body has come; the client must send the rest of it
        loop, patience = asyncio.get_running_loop(), self._limits.deadline

        async def receiving() -> _Message:
            nonlocal size, whole, expecting
            expecting = not whole
            message = await receive()
            expecting = False
            if message["type"] == "http.disconnect" and not (whole or status):
                raise Refused("bad-request", "the connection was closed before its body was sent")
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if size > self._limits.body:
                    raise self._too_large()
            return message

        async def sending(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._count(scope, status, time.perf_counter() - begun)
            if message.get("more_body", True):  # a long answer may take long, if it goes on
                clock.reschedule(loop.time() + patience)
            await send(message)

        clock = asyncio.timeout(patience)
        try:
            async with clock:
                await self._app(scope, receiving, sending)
        except TimeoutError:
            if not clock.expired():
                raise
            if not status:
                late = Refused(
                    "timeout" if expecting else "deadline",
                    f"more than {patience:g} seconds",
                    {"Connection": "close"} if expecting else {"Retry-After": "1"},
                )
                await self._refuse(scope, send, late)

    def _count(self, scope: _Scope, status: int, seconds: float) -> None:
        route = str(scope.get("path_template") or "other")
        self._metrics.requests.add(scope["method"], route, str(status))
        self._metrics.seconds.add(route, value=seconds)

    async def _refuse(self, scope: _Scope, send: _Send, refused: Refused) -> None:
        status, heads, body = answer_of(refused.kind, str(refused), refused.headers)
        self._count(scope, status, 0.0)
        self._metrics.problems.add(refused.kind)
        heads["Content-Length"] = str(len(body))
        raw = [(name.lower().encode(), text.encode("latin-1")) for name, text in heads.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})


def _bare(host: str) -> str:
    """The name without the port, in small letters."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()
