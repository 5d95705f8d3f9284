"""The HTTP server of the agents in a store.

    Server("sqlite:///shop.db").run()               until SIGTERM or Ctrl-C
    with Server("sqlite:///shop.db", port=0) as s:  in a thread, for tests and notebooks

A request passes `connection`, `middleware`, `routes` and `agents`, then the durable agent. When the
server stops, it accepts no more requests, finishes pending ones, writes snapshots and closes the
store.
"""

import asyncio
import gc
import logging
import math
import signal
import socket
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Self

import uvicorn
from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException

from bayescontrol._support.files import close_on_error
from bayescontrol.durable.log import LogStore, open_store
from bayescontrol.durable.models import Model
from bayescontrol.errors import BayesControlError, StoreFailed
from bayescontrol.serve.access import InvalidToken, Limits, Tokens, is_loopback, require_safe
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.connection import HttpConnection
from bayescontrol.serve.http_errors import MEDIA_TYPE, error_response, http_wording, kind_of
from bayescontrol.serve.middleware import Answer, Middleware
from bayescontrol.serve.openapi import DOCS_ROUTES
from bayescontrol.serve.routes import PAGES, ROUTES, answer_directly

_logger = logging.getLogger("bayescontrol.serve")
#: Problem types of the errors that Litestar raises, by status.
_HTTP: Final = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_MAX_PORT: Final = 65_535
#: Characters of a path and of a message, and frames of a traceback, in the log of the server.
_MAX_LOGGED: Final = 400
_FRAMES: Final = 6
#: Seconds without a request before garbage is collected.
_IDLE: Final = 1.0
#: New objects from which Python collects young ones. By default it does so amid the requests of
#: one commit, whose objects are still in use, so that it finds nothing.
_YOUNG: Final = 50_000
#: Seconds for which a computing thread may keep others waiting.
_SWITCH_INTERVAL: Final = 1e-3


class CannotListen(BayesControlError, OSError):
    """The address is in use, or it is not an address of this machine."""


def application(agents: ServedAgents, tokens: Tokens, hosts: Iterable[str] | None) -> Middleware:
    """Return the ASGI application of the agents.

    `hosts` are the valid host names; None allows any.
    """
    agents.needs_token = bool(tokens)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        """Start the agents with the server, and close them when it stops."""
        await agents.start()
        # A server in a thread of another program must not change its garbage collection.
        collecting = _in_main_thread() and asyncio.create_task(_collect(agents, middleware))
        try:
            yield
        finally:
            if collecting:
                collecting.cancel()
            await agents.close()

    def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        status, headers, body = _error_answer(agents, request.method, request.url.path, error)
        return Response(body, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers))

    app: Any = Litestar(  # its types of the ASGI protocol are narrower than ours
        [*ROUTES, *PAGES, *DOCS_ROUTES],
        dependencies={"agents": Provide(lambda: agents, sync_to_thread=False)},
        exception_handlers={HTTPException: handle_error, Exception: handle_error},
        lifespan=[lifespan],
        logging_config=None,
        request_max_body_size=None,  # limited by the middleware
        openapi_config=None,
    )
    middleware = Middleware(
        app, partial(_answer, agents), tokens, agents.limits, agents.metrics, hosts
    )
    return middleware


async def _collect(agents: ServedAgents, app: Middleware) -> None:
    """Collect garbage when all agents are open, and later in seconds without a request.

    Agents and libraries are most objects, and stay. They are frozen, so that the collections during
    requests visit only new objects. A collection of all objects would delay every request.
    """
    await agents.opened
    # Numbers of requests that had arrived: a second ago, and at the last collection; -1 before.
    arrived = collected = -1
    frozen = 0  # the number of agents that were open when objects were last frozen, -1 for none
    thresholds = gc.get_threshold()
    gc.set_threshold(_YOUNG)
    try:
        while True:
            is_idle = app.started == arrived and not app.requests.used
            if collected < 0 or (is_idle and app.started > collected):
                gc.unfreeze()
                gc.collect()
                collected, frozen = app.started, -1
            if len(agents.open) > frozen:  # even if nothing was collected: it may have compiled
                gc.freeze()
                frozen = len(agents.open)
            arrived = app.started
            await asyncio.sleep(_IDLE)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _answer(
    agents: ServedAgents, scope: MutableMapping[str, Any], content: bytes
) -> Answer | None:
    """Answer a frequent request, whose body is `content`; None if Litestar must answer it."""
    try:
        body = await answer_directly(agents, scope, content)
    except Exception as error:
        return _error_answer(agents, scope["method"], scope["path"], error)
    if body is None:
        return None
    return 200, {"Content-Type": "application/json", "Content-Length": str(len(body))}, body


def _error_answer(agents: ServedAgents, method: str, path: str, error: Exception) -> Answer:
    """Return the answer that reports an error.

    Messages of unexpected errors and of stores are logged, not sent: they may contain paths,
    hosts and roles.
    """
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    if isinstance(error, HTTPException):
        default = "bad-request" if error.status_code < 500 else "internal"
        name = _HTTP.get(error.status_code, default)
        causes = [e for e in error.extra or () if isinstance(e, dict)]
        messages = [f"{cause.get('key', 'body')}: {cause.get('message')}" for cause in causes]
        detail = "; ".join([error.detail, *messages])
    else:
        name = kind_of(error)
        detail = http_wording(str(error)) or type(error).__name__
    if name == "internal" or isinstance(error, StoreFailed):
        # One line of bounded length: the path and the message may contain whatever a client sent.
        # `ascii` escapes line breaks and adds quotes, which are removed.
        detail = "the log of the server has the details"
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = "".join(f" < {f.filename}:{f.lineno}" for f in reversed(frames))
        path, text = path[:_MAX_LOGGED], str(error)[:_MAX_LOGGED]
        text = ascii(f"{type(error).__name__}: {text}")[1:-1]
        _logger.error("%s %a: %s%s", method, path, text, places)
    agents.metrics.problems.labels(name).inc()
    return error_response(name, detail, headers)


class _Uvicorn(uvicorn.Server):
    """Uvicorn, but event streams are ended before it waits for pending requests."""

    def __init__(self, config: uvicorn.Config, agents: ServedAgents) -> None:
        super().__init__(config)
        self._agents = agents

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture signals, but keep ignoring Ctrl-C if the process was started to ignore it.

        A shell script starts its background jobs in this way.
        """
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with super().capture_signals():
            if ignored and _in_main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams, then shut down."""
        self._agents.stop()
        await super().shutdown(sockets)


class Server:
    """A server of the agents in a store.

    `store` is a URL, or an open store, which the server closes when it stops. `models` are your own
    models by name. `truths` gives the true mean reward of every action, by agent, where it is
    known: then the live page shows the regret. `port` 0 selects any free port. `run` serves until
    SIGTERM or Ctrl-C; `with` runs the server in a thread.

    >>> with Server("sqlite:///:memory:", port=0) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    _thread: threading.Thread  # set by `with`

    def __init__(
        self,
        store: str | LogStore,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        models: Mapping[str, Model] | None = None,
        truths: Mapping[str, Mapping[Any, float]] | None = None,
        allow_hosts: Iterable[str] = (),
        durable: bool = True,
    ) -> None:
        tokens = Tokens() if tokens is None else tokens
        if not isinstance(tokens, Tokens):
            # The value is not shown: it may be a secret.
            raise InvalidToken(f"tokens is a {type(tokens).__name__}: give Tokens([token, …])")
        require_safe(host, tokens)
        self._socket = _listen(host, port)
        with close_on_error(self._socket):
            opened = open_store(store, durable=durable) if isinstance(store, str) else store
        #: The address of the store, without a password.
        self.store_url = opened.url
        url_host = f"[{host}]" if ":" in host else host  # brackets for IPv6
        #: The address of the server.
        self.url = f"http://{url_host}:{self._socket.getsockname()[1]}"
        agents = ServedAgents(opened, models, truths, limits)
        # Without a token, only the host name distinguishes our pages from those of other sites.
        names = {*_LOOPBACK, url_host.lower(), *map(str.lower, allow_hosts)}
        app = application(agents, tokens, names if is_loopback(host) else None)
        # Uvicorn declares that it needs a class, but a function does as well. All connections
        # share the two dictionaries.
        connection: Any = partial(HttpConnection, agents.limits, agents.metrics, {}, {})
        config = uvicorn.Config(
            app, loop="auto", http=connection, ws="none", lifespan="on",
            log_config=None, access_log=False, proxy_headers=False, server_header=False,
            timeout_keep_alive=math.ceil(agents.limits.idle),
            timeout_graceful_shutdown=math.ceil(agents.limits.grace),
        )  # fmt: skip
        self._uvicorn = _Uvicorn(config, agents)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT (Ctrl-C) or `stop`."""
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        interval = sys.getswitchinterval()
        if _in_main_thread():
            # A request passes through several threads. At each step it may wait this long for a
            # thread that computes, for example explains a decision.
            sys.setswitchinterval(_SWITCH_INTERVAL)
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            sys.setswitchinterval(interval)
            self._socket.close()

    def stop(self) -> None:
        """Tell the server to stop; does not wait until it has stopped."""
        self._uvicorn.should_exit = True

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.run, name="bayescontrol-server")
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._thread.join()

    def __repr__(self) -> str:
        return f"Server({self.url})"


def _in_main_thread() -> bool:
    """Return whether the server has the process to itself, and may change its settings."""
    return threading.current_thread() is threading.main_thread()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `CannotListen` if the address or the port is invalid."""
    if type(port) is not int or not 0 <= port <= _MAX_PORT:
        raise CannotListen(
            f"port={port!r} is invalid: give a number from 0 (any free port) to 65535"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=512)
    except OSError as error:
        # Remove the address that Python appends, which this message contains already.
        reason = str(error.strerror or error).partition(" (while attempting")[0]
        raise CannotListen(
            f"cannot listen on {host}, port {port}: {reason}; choose another "
            "with --host and --port (port 0: any free port)"
        ) from None
