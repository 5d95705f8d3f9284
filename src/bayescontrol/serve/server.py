"""The server: a store, an address, and what is allowed.

    serve("sqlite:///shop.db")                      until SIGTERM or Ctrl-C
    with Server("sqlite:///shop.db", port=0) as s:  in a thread, for tests and notebooks

Stopped, it accepts nothing more, finishes what is under way, takes snapshots and closes the store.
"""

import logging
import math
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

import uvicorn

from bayescontrol.durable.log import LogStore, open_store
from bayescontrol.durable.models import Model
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.app import application
from bayescontrol.serve.limits import Limits
from bayescontrol.serve.protocol import protocol
from bayescontrol.serve.service import Service
from bayescontrol.serve.tokens import InvalidToken, Tokens, is_loopback, require_safe

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_LAST_PORT: Final = 65_535


class CannotListen(BayesControlError, OSError):
    """The address cannot be had: another program has it, or it is not this machine's.

    >>> issubclass(CannotListen, OSError)
    True
    """


class _Uvicorn(uvicorn.Server):
    """Uvicorn, which lets streams go before it waits for what is under way."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keep ignoring Ctrl-C where the process was started to, as a script's background jobs."""
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with super().capture_signals():
            if ignored and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.close()
        await super().shutdown(sockets)


class Server:
    """A server of the agents in a store.

    `store` is an address or an open store, which the server then closes. `models` are models of
    your own, by name. `truths` gives the true mean reward of every action, by agent, where it is
    known: then the live page shows the regret. `port` 0 is any free one.

    >>> with Server("sqlite:///:memory:", port=0) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

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
        tokens = _checked(tokens)
        require_safe(host, tokens)
        self._socket = _bound(host, port)
        try:
            opened = open_store(store, durable=durable) if isinstance(store, str) else store
        except BaseException:
            self._socket.close()
            raise
        shown = f"[{host}]" if ":" in host else host
        #: Where it listens.
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}"
        service = Service(opened, models, truths, limits)
        # On loopback without a token the name is what tells our own pages from others'.
        names = {*_LOOPBACK, shown.lower(), *map(str.lower, allow_hosts)}
        app = application(service, tokens, names if is_loopback(host) else None)
        connection: Any = protocol(service.limits, service.metrics)  # uvicorn wants a class
        config = uvicorn.Config(
            app,
            loop="auto",
            http=connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=math.ceil(service.limits.idle),
            timeout_graceful_shutdown=math.ceil(service.limits.grace),
        )
        self._uvicorn = _Uvicorn(config, service)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `stop`."""
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Accept nothing more, and finish; does not wait."""
        self._uvicorn.should_exit = True

    def __enter__(self) -> "Server":
        self._thread = threading.Thread(target=self.run, name="bayescontrol-server")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def __repr__(self) -> str:
        return f"Server({self.url})"


def _checked(tokens: Any) -> Tokens:
    if tokens is None:
        return Tokens()
    if not isinstance(tokens, Tokens):
        # Not shown: it may be a secret.
        raise InvalidToken(f"tokens is a {type(tokens).__name__}: give Tokens([token, …])")
    return tokens


def _bound(host: str, port: int) -> socket.socket:
    if type(port) is not int or not 0 <= port <= _LAST_PORT:
        raise CannotListen(f"port={port!r}: a port is a number from 0 (any free one) to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=512)
    except OSError as error:
        # Python adds to what the system says the address, which stands here already.
        why = str(error.strerror or error).partition(" (while attempting")[0]
        raise CannotListen(
            f"cannot listen on {host}, port {port}: {why}; choose another "
            "with --host and --port (port 0: any free one)"
        ) from None


def serve(store: str | LogStore, **settings: Any) -> None:
    """Serve the agents of a store until SIGTERM or Ctrl-C; the settings are those of `Server`.

    >>> serve("sqlite:///shop.db", host="0.0.0.0")
    Traceback (most recent call last):
    bayescontrol.serve.tokens.PublicBind: --host 0.0.0.0 can be reached by others: ...
    """
    Server(store, **settings).run()
