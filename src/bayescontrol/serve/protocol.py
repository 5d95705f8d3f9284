"""One HTTP connection, with limits that act while its bytes arrive, before anything is asked.

    414  the request line is longer than `line` bytes
    431  the head is longer than `head` bytes, or has more than `headers` fields
    408  the head has begun and is not complete after `deadline` seconds
    503  `connections` are open, and a request is under way on each of them

A connection without a request is closed after `idle` seconds, or earlier if there are too many:
the one that has waited longest goes first. A client that does not read its answer for `deadline`
seconds is cut off.
"""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bayescontrol.serve.limits import Limits
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.problems import Refused, answer_of

#: Bytes that the parser is given at once: the limits are checked in between.
_PIECE: Final = 4_096
#: Requests that may follow on one connection before the first is answered.
_MOST_AHEAD: Final = 32
#: Seconds and bytes for which a refused client is still heard, so that it can read the answer.
_LINGER: Final = 2.0
_LINGER_BYTES: Final = 1_048_576
#: Seconds by which an event loop may run a timer too early.
_RESOLUTION: Final = 2e-3
#: Connections that may be in that state, beside those that the limit allows.
_MOST_ENDING: Final = 64


def protocol(limits: Limits, metrics: Metrics) -> Callable[..., "Protocol"]:
    """Return a factory of connections that share the limit of connections.

    >>> protocol(Limits(), Metrics()).func is Protocol
    True
    """
    return partial(Protocol, limits, metrics, _Shared())


class _Shared:
    """What the connections of one server know of each other; the oldest come first."""

    def __init__(self) -> None:
        #: Those on which no request is under way.
        self.waiting: dict[Protocol, None] = {}
        #: Those that have been refused or dropped, and are not closed yet.
        self.ending: dict[Protocol, None] = {}


class Protocol(HttpToolsProtocol):
    """A connection that reads requests with httptools, whatever other parsers are installed.

    `settings` are uvicorn's.

    >>> issubclass(Protocol, HttpToolsProtocol)
    True
    """

    def __init__(self, limits: Limits, metrics: Metrics, shared: _Shared, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits, self._metrics = limits, metrics
        self._waiting, self._ending = shared.waiting, shared.ending
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf  # when the timer fires
        self._due = math.inf  # when the connection ends; may be later than the timer
        self._stalled: asyncio.TimerHandle | None = None
        self._begun = False  # whether a head has begun that is not complete
        self._line = 0  # bytes of its path and query so far
        self._outside = 0  # bytes since the last complete head or piece of a body
        self._moved = False  # whether the last piece had the end of one of these
        self._unread = 0  # bytes of a body whose request has been answered already

    # -- the connection --------------------------------------------------------------------------

    # Uvicorn narrows the argument in the same way.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, if there is room for another connection."""
        super().connection_made(transport)
        self._expect(self._limits.idle)
        if len(self.connections) - len(self._ending) > self._limits.connections:
            longest = next(iter(self._waiting))
            if longest is self:
                self._refuse("overloaded", f"{self._limits.connections} connections are in use")
            else:
                longest._drop()
        if len(self._ending) > _MOST_ENDING:
            next(iter(self._ending))._drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it, and its timers."""
        self._waiting.pop(self, None)
        self._ending.pop(self, None)
        self._due = math.inf
        if self._timer is not None:
            self._timer.cancel()
        self._set_stalled(None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give the client `deadline` seconds to read."""
        super().pause_writing()
        self._set_stalled(self.loop.call_later(self._limits.deadline, self.transport.abort))

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        self._set_stalled(None)

    # -- bytes that arrive -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse the bytes piece by piece, as long as they keep to the limits."""
        self._unset_keepalive_if_required()
        if self in self._ending:
            self._unread += len(data)
            if self._unread > _LINGER_BYTES:
                self._drop()
            return
        for start in range(0, len(data), _PIECE):
            if start and self.transport.is_closing():
                return
            piece, self._moved = data[start : start + _PIECE], False
            try:
                self.parser.feed_data(piece)
                if not self._moved:
                    self._outside += len(piece)
                    self._require_head(self._outside)
                self._require_fields()
            except httptools.HttpParserUpgrade:  # it is answered as if it had not asked for that
                return
            except httptools.HttpParserError as error:
                wrong = error.__context__
                if isinstance(wrong, Refused):
                    self._refuse(wrong.kind, str(wrong))
                else:
                    self._refuse("bad-request", "this is not HTTP/1.1")
                return
            except Refused as wrong:
                self._refuse(wrong.kind, str(wrong))
                return

    def on_message_begin(self) -> None:
        """Start the clock of a head."""
        super().on_message_begin()
        self._begun, self._line = True, 0
        if self in self._waiting:
            self._set_timer(self._limits.deadline)

    def on_url(self, url: bytes) -> None:
        """Check the request line."""
        self._line += len(url)
        most = min(self._limits.line, self._limits.head)
        if self._line > most:
            raise Refused("uri-too-long", f"more than {most} bytes")
        super().on_url(url)

    def _require_fields(self) -> None:
        """Check the fields so far; those after a body in chunks count too."""
        fields = self.headers or ()  # None before the first request
        if len(fields) > self._limits.headers:
            raise Refused("head-too-large", f"more than {self._limits.headers} fields")
        self._require_head(
            self._line + sum([len(name) + len(value) for name, value in fields]) + 4 * len(fields)
        )

    def _require_head(self, size: int) -> None:
        if size > self._limits.head:
            raise Refused("head-too-large", f"more than {self._limits.head} bytes")

    def on_headers_complete(self) -> None:
        """The request is under way: its time is the application's business now."""
        self._require_fields()
        self._moved, self._outside = True, 0
        self._begun, self._unread = False, 0
        self._set_timer(None)
        self._waiting.pop(self, None)
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_AHEAD:
            raise Refused("overloaded", f"{_MOST_AHEAD} requests wait on this connection")

    def on_body(self, body: bytes) -> None:
        """Pass a piece of a body on; discard a little of one that nobody wants any more."""
        self._moved, self._outside = True, 0
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > self._limits.body:
                self._drop()
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole request is here."""
        self._moved, self._outside = True, 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self._expect(self._limits.idle)

    # -- what is not under way -------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._set_timer(self._limits.deadline)  # to read the answer in
        elif self.cycle.response_complete:
            due = self._begun or self.cycle.more_body
            self._expect(self._limits.deadline if due else self._limits.idle)

    def _expect(self, seconds: float) -> None:
        """End the connection after this time, unless a request comes."""
        self._waiting[self] = None
        self._set_timer(seconds)

    def _set_timer(self, seconds: float | None) -> None:
        """Call `_late` after this time instead of any earlier one; None: never.

        Setting a timer is slow. A timer that would fire earlier therefore stays, and is set again
        when it fires.
        """
        self._due = math.inf if seconds is None else self.loop.time() + seconds
        if self._due < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(self._due, self._timer_fired)
            self._timer_at = self._due

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, math.inf
        seconds = self._due - self.loop.time()
        if seconds < _RESOLUTION:
            self._late()
        elif seconds < math.inf:
            self._set_timer(seconds)

    def _set_stalled(self, timer: asyncio.TimerHandle | None) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        self._stalled = timer

    def _late(self) -> None:
        if self._begun and self not in self._ending:
            self._refuse("timeout", f"more than {self._limits.deadline:g} seconds for its head")
        else:
            self._drop()

    def _drop(self) -> None:
        self._end()
        self.transport.abort()

    def _end(self) -> None:
        self._waiting.pop(self, None)
        self._ending[self] = None

    def _refuse(self, kind: str, detail: str) -> None:
        """Answer without a request, then close; before that, listen a little.

        A connection that is closed while its client still sends is reset, and the answer lost.
        """
        cycle: Any = self.cycle  # None before the first request, whatever it is declared to be
        if cycle is not None and not cycle.response_complete:
            self._drop()  # another answer is being written
            return
        status, heads, body = answer_of(kind, detail, {"Connection": "close"})
        heads["Content-Length"] = str(len(body))
        lines = [(name.lower().encode(), text.encode("latin-1")) for name, text in heads.items()]
        head = [b"%s: %s\r\n" % line for line in (*self.server_state.default_headers, *lines)]
        self.transport.write(b"".join([STATUS_LINE[status], *head, b"\r\n", body]))
        self._metrics.requests.add("other", "other", str(status))
        self._metrics.problems.add(kind)
        self.transport.write_eof()
        self._unread = 0
        self._end()
        self._set_timer(_LINGER)
