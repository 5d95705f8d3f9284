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
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, cast

import uvicorn
from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException

from bayescontrol.durable.models import Model
from bayescontrol.durable.stores.log import PRIVATE, LogStore, open_store
from bayescontrol.errors import StoreFailed
from bayescontrol.serve.access import (
    AccessLog,
    InvalidToken,
    Limits,
    Tokens,
    is_loopback,
    require_safe,
)
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.backups import BackupPlan, Backups
from bayescontrol.serve.connection import CannotListen as CannotListen
from bayescontrol.serve.connection import HttpConnection, Listener, in_url, tls_context
from bayescontrol.serve.http_errors import MEDIA_TYPE, error_response, http_wording, kind_of
from bayescontrol.serve.middleware import Answer, Middleware
from bayescontrol.serve.monitor import add_file_gauges
from bayescontrol.serve.routes import PAGES, ROUTES, answer_directly
from bayescontrol.serve.routes.openapi import DOCS_ROUTES
from bayescontrol.serve.routes.parameters import StrictRequest, dependencies, require_known_query

_Scope: TypeAlias = MutableMapping[str, Any]
_logger = logging.getLogger("bayescontrol.serve")
#: Problem types of the errors that Litestar raises, by status.
_HTTP: Final = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
#: Characters of a path and of a message, and frames of a traceback, in the log of the server.
_MAX_LOGGED: Final = 400
_FRAMES: Final = 6
#: Seconds without a request before garbage is collected.
_IDLE: Final = 1.0
#: Seconds between two looks at the file of tokens.
_REFRESH: Final = 1.0
#: New objects from which Python collects young ones. By default it does so amid the requests of
#: one commit, whose objects are still in use, so that it finds nothing.
_YOUNG: Final = 50_000
#: Seconds for which a computing thread may keep others waiting.
_SWITCH_INTERVAL: Final = 1e-3


def application(
    agents: ServedAgents, tokens: Tokens, hosts: Iterable[str] | None,
    access_log: AccessLog | None = None,
) -> Middleware:  # fmt: skip
    """Return the ASGI application of the agents.

    `hosts` are the valid host names; None allows any.
    """
    agents.needs_token = bool(tokens)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        """Start the agents with the server, and close them when it stops."""
        work = []
        # A server in a thread of another program must not change its garbage collection.
        if _in_main_thread():
            work.append(_collect(agents, middleware))
        if tokens.file is not None:
            work.append(_every(_REFRESH, tokens.refresh))
        if access_log is not None:
            work.append(_every(access_log.PERIOD, access_log.write))
        if agents.backups is not None:
            work.append(agents.backups.run())
        await agents.start(*work)
        try:
            yield
        finally:
            await agents.close()
            if agents.backups is not None:
                await asyncio.to_thread(agents.backups.close)
            if access_log is not None:
                access_log.write()

    def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        status, headers, body = _error_answer(agents, cast("_Scope", request.scope), error)
        return Response(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)

    app: Any = Litestar(  # its types of the ASGI protocol are narrower than ours
        [*ROUTES, *PAGES, *DOCS_ROUTES],
        dependencies=dependencies(agents),
        request_class=StrictRequest,
        before_request=require_known_query,
        exception_handlers={HTTPException: handle_error, Exception: handle_error},
        lifespan=[lifespan],
        logging_config=None,
        request_max_body_size=None,  # limited by the middleware
        openapi_config=None,
    )
    middleware = Middleware(
        app, partial(_answer, agents), tokens, agents.limits, agents.metrics, hosts, access_log
    )
    return middleware


async def _every(seconds: float, work: Callable[[], None]) -> None:
    """Call a function in a thread regularly, until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(work)


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


async def _answer(agents: ServedAgents, scope: _Scope, content: bytes) -> Answer | None:
    """Answer a frequent request, whose body is `content`; None if Litestar must answer it."""
    try:
        body = await answer_directly(agents, scope, content)
    except Exception as error:
        return _error_answer(agents, scope, error)
    if body is None:
        return None
    return 200, {"Content-Type": "application/json", "Content-Length": str(len(body))}, body


def _error_answer(agents: ServedAgents, scope: _Scope, error: Exception) -> Answer:
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
        path, text = scope["path"][:_MAX_LOGGED], str(error)[:_MAX_LOGGED]
        text = ascii(f"{type(error).__name__}: {text}")[1:-1]
        request_id = scope["request_id"]
        _logger.error("%s %a: %s%s [%s]", scope["method"], path, text, places, request_id)
    agents.metrics.problems.labels(name).inc()
    return error_response(name, detail, headers, scope["request_id"])


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

    With `tls`, the files of a certificate and its key, the address is https. With `unix_socket`,
    the server listens on that path instead of a port; `socket_mode` are its permissions.
    `access_log` is a file for a line for each request; "-" is standard output. `backups` says where
    and how often to copy the store. With `warm_up`, the server is ready when the code that its
    agents need is compiled.

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
        tls: tuple[Path, Path] | None = None,
        unix_socket: Path | None = None,
        socket_mode: int = PRIVATE,
        access_log: Path | None = None,
        backups: BackupPlan | None = None,
        warm_up: bool = False,
    ) -> None:
        tokens = Tokens() if tokens is None else tokens
        if not isinstance(tokens, Tokens):
            # The value is not shown: it may be a secret.
            raise InvalidToken(f"tokens is a {type(tokens).__name__}: give Tokens([token, …])")
        if unix_socket is not None and tls is not None:
            raise CannotListen("a Unix socket has no TLS: give --unix-socket or --tls-cert")
        context = None if tls is None else tls_context(*tls)
        if unix_socket is None:
            require_safe(host, tokens)
            self._listener = Listener.of_port(host, port, "http" if tls is None else "https")
        else:
            self._listener = Listener.of_path(unix_socket, socket_mode)
        #: The address of the server.
        self.url = self._listener.url
        with ExitStack() as opening:
            opening.callback(self._listener.close)
            opened = open_store(store, durable=durable) if isinstance(store, str) else store
            if isinstance(store, str):
                opening.callback(opened.close)
            agents = ServedAgents(opened, models, truths, limits)
            agents.warm_up = warm_up
            if backups is not None:
                source: Any = opened
                agents.backups = Backups(backups, source.backup, opened.url, agents.metrics)
            log = None if access_log is None else AccessLog(access_log)
            opening.pop_all()  # `run` closes them
        #: The address of the store, without a password.
        self.store_url = opened.url
        add_file_gauges(agents.metrics, opened.url)
        if log is not None:
            lost = "Lines of the access log that could not be written."
            agents.metrics.gauge("access_log_lost", lost, lambda: log.lost)
        # Without a token, only the host name distinguishes our pages from those of other sites.
        names = {*_LOOPBACK, in_url(host).lower(), *map(str.lower, allow_hosts)}
        is_local = unix_socket is not None or is_loopback(host)
        app = application(agents, tokens, names if is_local else None, log)
        # Uvicorn declares that it needs a class, but a function does as well. All connections
        # share the two dictionaries.
        connection: Any = partial(HttpConnection, agents.limits, agents.metrics, {}, {})
        config = uvicorn.Config(
            app, loop="auto", http=connection, ws="none", lifespan="on",
            log_config=None, access_log=False, proxy_headers=False, server_header=False,
            timeout_graceful_shutdown=math.ceil(agents.limits.grace),
            ssl_context_factory=None if context is None else lambda *_: context,
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
            self._uvicorn.run(sockets=[self._listener.socket])
        finally:
            sys.setswitchinterval(interval)
            self._listener.close()

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
