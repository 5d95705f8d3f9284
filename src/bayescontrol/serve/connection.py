"""The socket of a server, and one HTTP connection, with limits that are checked as bytes arrive.

The server listens on a port, also with TLS, or on a path of this machine.

    414  the request line is longer than `line` bytes
    431  the head is longer than `head` bytes, or has more than `headers` fields
    408  the head is not complete `deadline` seconds after its first byte
    503  `connections` are open, and each of them has a request in progress

A connection without a request is closed after `idle` seconds. If there are too many connections,
one that waits for its client is closed: first those that have sent no valid token, then those of
the caller with most of them, then the one that has waited longest. A client that does not read its
answer for `deadline` seconds is disconnected. When the server stops, the next answer on a
connection has `Connection: close`.
"""

import asyncio
import math
import os
import socket
import ssl
import stat
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import httptools
from uvicorn.protocols.http import httptools_impl

from bayescontrol.errors import BayesControlError
from bayescontrol.serve.access import MAX_PORT, Limits
from bayescontrol.serve.http_errors import Refused, error_response
from bayescontrol.serve.monitor import Metrics

#: Connections that wait to be accepted.
_BACKLOG: Final = 512
#: Seconds for which a server behind a Unix socket may take to accept a connection.
_PROBE_TIMEOUT: Final = 1.0
#: Bytes that are parsed at once; the limits are checked after each chunk.
_CHUNK: Final = 4_096
#: Requests that a client may send on one connection before the first is answered.
_MAX_PIPELINED: Final = 32
#: Seconds and bytes that are still read from a refused client, so that it can read the answer.
_LINGER: Final = 2.0
_LINGER_BYTES: Final = 1_048_576
#: Seconds in which an idle connection may still send a request when the server stops.
_DRAIN: Final = 0.5
#: Refused connections that may be open in addition to the limit of connections.
_MAX_ENDING: Final = 64
_Ordered: TypeAlias = dict["HttpConnection", None]


class HttpConnection(httptools_impl.HttpToolsProtocol):
    """A connection whose requests are parsed with httptools; `settings` are uvicorn's.

    The connections of a server share two ordered sets: `waiting` has those that wait for their
    client, without a request or with an incomplete one; `ending` those that have been refused or
    dropped, but are not closed yet.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, waiting: _Ordered, ending: _Ordered, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self._limits, self._metrics, self._waiting, self._ending = limits, metrics, waiting, ending
        self._unanswered: deque[httptools_impl.RequestResponseCycle] = deque()
        self._caller: object = None  # an address, or a `Caller`
        self._is_known = False  # whether a request on this connection was allowed
        self._stopping = False  # whether the next answer is the last one
        self._timer: asyncio.TimerHandle | None = None  # ends the connection at `_ends_at`
        self._ends_at = math.inf
        self._stall_timer: asyncio.TimerHandle | None = None  # runs while the client does not read
        self._in_head = False  # a head has begun and is not complete
        self._line = 0  # bytes of the path and query of that head so far
        self._since_progress = 0  # bytes since the last complete head or part of a body
        self._unread = 0  # bytes that arrived after the request was answered or refused
        self._fields = 0  # header fields of the last head that have been checked

    # -- the connection --------------------------------------------------------------------------

    # Uvicorn narrows the argument in the same way.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        self._caller = self.client and self.client[0]
        limit = self._limits.connections
        if len(self.connections) - len(self._ending) > limit:
            if self._waiting:
                counts = Counter(connection._caller for connection in self._waiting)
                # `min` returns the first of equals: the one that has waited longest.
                min(self._waiting, key=lambda c: (c._is_known, -counts[c._caller]))._drop()
            else:
                self._refuse("overloaded", f"{limit} connections have requests in progress")
        if self not in self._ending:
            self._expect(self._limits.idle)
        if len(self._ending) > _MAX_ENDING:
            next(iter(self._ending))._drop()

    def identify(self, caller: object) -> None:
        """Remember whose request was allowed on this connection: an address, or a token."""
        self._caller, self._is_known = caller, True

    def shutdown(self) -> None:
        """Close the connection after the next answer, or soon if the client sends nothing."""
        self._stopping = True
        if self._unanswered:
            self._unanswered[-1].keep_alive = False
        elif self in self._waiting and not self._in_head:
            self._set_timer(_DRAIN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and its timers."""
        self._disconnect()
        self._waiting.pop(self, None)
        self._ending.pop(self, None)
        for timer in (self._timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give the client `deadline` seconds to read."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self._limits.deadline, self._drop)

    def resume_writing(self) -> None:
        """Stop the timer of `pause_writing`."""
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    # -- bytes that arrive -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse the bytes in chunks, and check the limits after each of them."""
        if self in self._ending:
            self._unread += len(data)
            if self._unread > _LINGER_BYTES:
                self._drop()
            return
        for start in range(0, len(data), _CHUNK):
            if start and self.transport.is_closing():
                return
            chunk = data[start : start + _CHUNK]
            try:
                self._since_progress += len(chunk)
                self.parser.feed_data(chunk)
                self._require_head(self._since_progress)
                self._require_fields()
            except httptools.HttpParserUpgrade:  # answer as if no upgrade was requested
                return
            except (httptools.HttpParserError, Refused) as error:
                # The parser raises its own error if one of our methods raises `Refused`.
                cause = error if isinstance(error, Refused) else error.__context__
                if not isinstance(cause, Refused):
                    cause = Refused("bad-request", "the request is not valid HTTP/1.1")
                self._refuse(cause.kind, str(cause))
                return

    def on_message_begin(self) -> None:
        """Start the deadline of a head."""
        super().on_message_begin()
        self.scope["state"]["identify"] = self.identify  # for the middleware, which knows tokens
        self._in_head, self._line, self._fields = True, 0, 0
        if self in self._waiting:
            self._set_timer(self._limits.deadline)

    def on_url(self, url: bytes) -> None:
        """Check the length of the request line."""
        self._line += len(url)
        limit = min(self._limits.line, self._limits.head)
        if self._line > limit:
            raise Refused("uri-too-long", f"more than {limit} bytes")
        super().on_url(url)

    def _require_fields(self) -> None:
        """Check the header fields so far, including those after a chunked body."""
        fields = self.headers or ()  # None before the first request
        if len(fields) == self._fields:
            return
        self._fields = len(fields)
        if self._fields > self._limits.headers:
            raise Refused("head-too-large", f"more than {self._limits.headers} fields")
        # 4 bytes of each field are its colon, a space and the end of the line.
        self._require_head(self._line + sum([len(name) + len(value) + 4 for name, value in fields]))

    def _require_head(self, size: int) -> None:
        """Raise `Refused` if a head that has this many bytes so far is too large."""
        if size > self._limits.head:
            raise Refused("head-too-large", f"more than {self._limits.head} bytes")

    def on_headers_complete(self) -> None:
        """Start the request; from here on the middleware limits its time."""
        self._require_fields()
        self._in_head, self._since_progress, self._unread = False, 0, 0
        self._set_timer(None)
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self.scope["state"]["respond"] = partial(self._respond, self.cycle)
        if self._stopping:
            self.cycle.keep_alive = False
        if len(self.pipeline) > _MAX_PIPELINED:
            raise Refused("overloaded", f"{_MAX_PIPELINED} requests wait on this connection")

    def on_body(self, body: bytes) -> None:
        """Pass part of a body on; discard it if the request has been answered already."""
        self._since_progress = 0
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > self._limits.body:
                self._drop()
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request; if it has been answered already, wait for the next one."""
        self._since_progress = 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self._expect(self._limits.idle)
        else:
            self._waiting.pop(self, None)

    # -- answers ---------------------------------------------------------------------------------

    async def _respond(
        self, cycle: httptools_impl.RequestResponseCycle,
        status: int, headers: Mapping[str, str], body: bytes,
    ) -> None:  # fmt: skip
        """Send a whole answer in one write, as `cycle.send` does in two."""
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        cycle.response_started = cycle.response_complete = True
        if "Connection" in headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            headers = {**headers, "Connection": "close"}
        self._write(status, headers, b"" if cycle.scope["method"] == "HEAD" else body)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def _write(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Write the head and the body of an answer."""
        head = [b"%s: %s\r\n" % field for field in self.server_state.default_headers]
        fields = "".join([f"{name.lower()}: {text}\r\n" for name, text in headers.items()])
        head.append(f"{fields}\r\n".encode("latin-1"))
        self.transport.write(b"".join([httptools_impl.STATUS_LINE[status], *head, body]))

    # -- timers and refusals ---------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Start the next request, or wait for it, or for the rest of this one.

        Uvicorn's method would also start a timer, but `_expect` has one already.
        """
        self._unanswered.popleft()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._set_timer(self._limits.deadline)  # for the client to read the answer
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if self._unanswered:
            if self.cycle.more_body:
                self._waiting[self] = None
        else:
            incomplete = self._in_head or self.cycle.more_body
            self._expect(self._limits.deadline if incomplete else self._limits.idle)

    def _expect(self, seconds: float) -> None:
        """End the connection after this time, unless a request begins."""
        self._waiting[self] = None
        self._set_timer(seconds)

    def _set_timer(self, seconds: float | None) -> None:
        """Replace the timer: call `_on_deadline` after this time, or never if it is None.

        A timer that would fire later is replaced. One that fires earlier is not, because most
        requests end before it does: then `_on_timer` sets it again.
        """
        self._ends_at = math.inf if seconds is None else self.loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._ends_at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and seconds is not None:
            self._timer = self.loop.call_at(self._ends_at, self._on_timer)

    def _on_timer(self) -> None:
        """End the connection if its time is over, otherwise set the timer again."""
        self._timer, left = None, self._ends_at - self.loop.time()
        if left <= 0.0:
            self._on_deadline()
        elif self._ends_at < math.inf:
            self._set_timer(left)

    def _on_deadline(self) -> None:
        """Refuse a request whose head is incomplete; drop any other connection."""
        if self._in_head and self not in self._ending:
            self._refuse("timeout", f"more than {self._limits.deadline:g} seconds for the head")
        else:
            self._drop()

    def _drop(self) -> None:
        """Close the connection at once, without an answer."""
        self._end()
        self._disconnect()
        self.transport.abort()

    def _disconnect(self) -> None:
        """Tell all requests that their client has gone; Uvicorn tells only the last one."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unanswered.clear()

    def _end(self) -> None:
        """Mark the connection as ending: it no longer counts as waiting, nor for the limit."""
        self._waiting.pop(self, None)
        self._ending[self] = None

    def _refuse(self, kind: str, detail: str) -> None:
        """Send an error and close the connection, after reading a little more.

        Closing a connection while its client still sends would reset it and lose the answer.
        """
        if self._unanswered:
            self._drop()  # the answer to an earlier request is being written
            return
        status, headers, body = error_response(kind, detail, {"Connection": "close"})
        self._write(status, headers, body)
        self._metrics.requests.labels("other", "other", str(status)).inc()
        self._metrics.problems.labels(kind).inc()
        if self.transport.can_write_eof():  # TLS cannot
            self.transport.write_eof()
        self._unread = 0
        self._end()
        self._set_timer(_LINGER)


# -- listening ---------------------------------------------------------------------------------


class CannotListen(BayesControlError, OSError):
    """The address is in use, or it is not an address of this machine."""


class InvalidCertificate(BayesControlError, ValueError):
    """The certificate or its key cannot be read, or they do not belong together."""


class Listener:
    """A listening socket; `close` closes it and removes the path of a Unix socket.

    >>> listener = Listener.of_port("127.0.0.1", 0)
    >>> listener.url.startswith("http://127.0.0.1:")
    True
    >>> listener.close()
    """

    def __init__(self, listening: socket.socket, url: str, path: Path | None = None) -> None:
        self.socket, self.url, self._path = listening, url, path
        self._inode = None if path is None else path.stat().st_ino

    @classmethod
    def of_port(cls, host: str, port: int, scheme: str = "http") -> "Listener":
        """Listen on a port; raise `CannotListen` if the address or the port is invalid."""
        if type(port) is not int or not 0 <= port <= MAX_PORT:
            raise CannotListen(
                f"port={port!r} is invalid: give a number from 0 (any free port) to 65535"
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server(
                (host.strip("[]"), port), family=family, backlog=_BACKLOG
            )
        except OSError as error:
            # Remove the address that Python appends, which this message contains already.
            reason = str(error.strerror or error).partition(" (while attempting")[0]
            raise CannotListen(
                f"cannot listen on {host}, port {port}: {reason}; choose another "
                "with --host and --port (port 0: any free port)"
            ) from None
        return cls(listening, f"{scheme}://{in_url(host)}:{listening.getsockname()[1]}")

    @classmethod
    def of_path(cls, path: Path, mode: int) -> "Listener":
        """Listen on a Unix socket with these permissions; replace one whose server has ended."""
        path = path.absolute()
        # Renamed when it is ready, so that nobody can connect before it has its permissions.
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        listening = None
        try:
            _require_replaceable(path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(str(temporary))
            temporary.chmod(mode)
            listening.listen(_BACKLOG)
            temporary.rename(path)
            return cls(listening, f"unix://{path}", path)
        except (OSError, AttributeError) as error:  # AttributeError: a system without them
            if listening is not None:
                listening.close()
                temporary.unlink(missing_ok=True)
            if isinstance(error, CannotListen):
                raise
            raise CannotListen(
                f"cannot listen on {path}: {error}; choose another --unix-socket"
            ) from None

    def close(self) -> None:
        """Stop listening. A path that another server has replaced stays."""
        self.socket.close()
        with suppress(OSError):
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()


def _require_replaceable(path: Path) -> None:
    """Raise `CannotListen` if the path is no socket, or if a server listens there."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise CannotListen(f"{path} is not a socket: choose another --unix-socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_TIMEOUT)
        with suppress(ConnectionRefusedError):
            probe.connect(str(path))
            raise CannotListen(f"a server listens on {path}: choose another --unix-socket")


def in_url(host: str) -> str:
    """Return a host as a URL has it: with brackets if it is an IPv6 address."""
    return f"[{host}]" if ":" in host else host


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the settings of TLS with a certificate; raise `InvalidCertificate` if it is invalid.

    >>> tls_context(Path("no-such.pem"), Path("no-such.key"))
    Traceback (most recent call last):
    bayescontrol.serve.connection.InvalidCertificate: --tls-cert no-such.pem, --tls-key ...
    """

    def refuse_password() -> str:
        """Called for an encrypted key. OpenSSL would ask for its password on the terminal."""
        raise ValueError("the key has a password, which the server cannot ask for")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except (OSError, ValueError) as error:  # also `ssl.SSLError`
        raise InvalidCertificate(
            f"--tls-cert {certificate}, --tls-key {key}: {error}; give the PEM files of a "
            "certificate chain and of its key"
        ) from None
    return context
