"""Connections to one PostgreSQL server: lost ones are replaced, and settings are not trusted.

    fsync, full_page_writes = on            else `NotDurable`: the server would acknowledge too soon
    synchronous_commit = on, or stronger    asked for by every connection, whatever the default is
    read committed                          a statement that waited for a row sees what it is now

Where a connection breaks, nobody knows whether the last statement was committed. So work is given
as a function that may be done twice, and it is done again until the server answers.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

from bayescontrol.durable.postgres_address import Address, psycopg
from bayescontrol.durable.postgres_errors import translation
from bayescontrol.durable.store import closed
from bayescontrol.errors import NotDurable, NotPermitted, StoreBusy, StoreFailed

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

#: Connections at once, of one store in one process: one writes, the others read meanwhile.
_MOST: Final = 8
_SHORTEST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
#: SQLSTATEs after which the connection is of no use: it broke, or the server stops or starts.
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_SETTINGS: Final = """
SELECT current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), current_setting('server_encoding'),
       pg_is_in_recovery()
"""
#: A lock of the session, and how long it is waited for in this statement only.
_QUEUE: Final = "SELECT set_config('lock_timeout', %s, true), pg_advisory_lock(%s)"
_LEAVE: Final = "SELECT pg_advisory_unlock(%s)"
_LONGEST_WAIT: Final = "1s"
_CONFIGURE: Final = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('lock_timeout', %s, false),
       set_config('idle_in_transaction_session_timeout', %s, false),
       set_config('synchronous_commit', %s, false)
"""


class _Lost(Exception):
    """The connection broke: what the last statement did is unknown."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(error)
        self.error = error


class Server:
    """The connections of one store; any thread may ask for work to be done.

    >>> from bayescontrol.durable.postgres_address import address_of
    >>> Server(address_of("postgresql:///shop?host=/nowhere"))
    Traceback (most recent call last):
    bayescontrol.errors.StoreFailed: postgresql:///shop?host=/nowhere: no connection (connection ...
    """

    def __init__(self, address: Address, *, durable: bool = True, patience: float = 30.0) -> None:
        self.place, self._conninfo = address.shown, address.conninfo
        self._durable, self._patience = durable, patience
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._places = threading.BoundedSemaphore(_MOST)
        # One place is always left for those who hold an agent's guard while they read.
        self._queues = threading.BoundedSemaphore(_MOST - 1)
        self._own = threading.local()
        self._closed = False
        self._idle: list[Connection] = [self._first()]

    def run(self, work: Callable[[Connection], T]) -> T:
        """work(connection), and again on a new one where a connection is lost on the way.

        Whatever it does must be done in one statement or transaction, and the second time find
        that it is done already.
        """
        pause, until = _SHORTEST_PAUSE, 0.0
        while True:
            try:
                with self._lent() as connection:
                    return work(connection)
            except _Lost as lost:
                now = time.monotonic()
                until = until or now + self._patience
                if now >= until:
                    raise translation(lost.error, self.place) from lost.error
            time.sleep(min(pause, until - now))
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextmanager
    def queued(self, key: int) -> Iterator[None]:
        """Those who want the same key come one after the other, in the order in which they came.

        A courtesy that saves work, never a condition: whoever waits for too long goes on.
        """
        with ExitStack() as stack:
            if self._queues.acquire(blocking=False):
                stack.callback(self._queues.release)
                with suppress(_Lost):
                    stack.enter_context(self._held(key))
            yield

    @contextmanager
    def _held(self, key: int) -> Iterator[None]:
        """One connection for all that this thread does meanwhile: it never waits for a second."""
        with self._lent() as first:
            self._own.connection, is_locked = first, False
            try:
                with suppress(psycopg.Error):
                    first.execute(_QUEUE, (_LONGEST_WAIT, key))
                    is_locked = True
                yield
            finally:
                last, self._own.connection = self._own.connection, None
                if last is not first:
                    self._give_back(last)
                elif is_locked:
                    try:
                        first.execute(_LEAVE, (key,))
                    except psycopg.Error:  # the lock ends with its session
                        first.close()

    def close(self) -> None:
        """Give the connections back; those in use are closed by their users."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()

    # -- one connection --------------------------------------------------------------------------

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        """A connection for this thread; `_Lost` if it breaks, our own error for any other."""
        own: Connection | None = getattr(self._own, "connection", None)
        if own is not None:
            if own.closed:
                own = self._own.connection = self._reconnected()
            with self._judged(own):
                yield own
            return
        with self._places:
            connection = self._taken() or self._reconnected()
            try:
                with self._judged(connection):
                    yield connection
            finally:
                self._give_back(connection)

    def _reconnected(self) -> Connection:
        try:
            return self._connected()
        except psycopg.Error as error:
            raise _Lost(error) from error

    @contextmanager
    def _judged(self, connection: Connection) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if not _is_lost(connection, error):
                raise translation(error, self.place) from error
            self._forget(connection)
            raise _Lost(error) from error
        except Exception:
            raise
        except BaseException:  # interrupted: who knows in what state
            self._forget(connection)
            raise

    def _taken(self) -> Connection | None:
        with self._guard:
            if self._closed:
                raise closed(self.place)
            if self._process != os.getpid():
                raise StoreBusy(
                    f"{self.place} was opened by the process that this one was forked from: open "
                    "it again here"
                )
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        with self._guard:
            idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _forget(self, broken: Connection) -> None:
        """Where one connection is lost, the idle ones are likely to be."""
        with self._guard:
            lost, self._idle = self._idle, []
        for connection in (*lost, broken):
            with suppress(psycopg.Error):
                connection.close()

    def _first(self) -> Connection:
        """Patient only with a server that is starting: one that is not there will not come."""
        until, again = time.monotonic() + self._patience, True
        while True:
            try:
                return self._connected()
            except psycopg.Error as error:
                answer = psycopg.pq.PGconn.ping(self._conninfo.encode())
                starting = answer == psycopg.pq.Ping.REJECT and time.monotonic() < until
                ready = answer == psycopg.pq.Ping.OK and again  # it may have been starting
                if not starting and not ready:
                    raise self._refused(error) from error
                again = again and not ready
            time.sleep(_SHORTEST_PAUSE)

    def _refused(self, error: psycopg.Error) -> StoreFailed:
        # Before a session exists libpq gives a text and no SQLSTATE.
        what = str(error).strip().partition("\n")[0]
        asked = getattr(error.pgconn, "needs_password", False)
        if asked or any(word in what for word in ("authentication", "permission", "password")):
            return NotPermitted(
                f"{self.place}: {what}; check the role, and its password in PGPASSWORD or ~/.pgpass"
            )
        if error.sqlstate is None:
            return StoreFailed(f"{self.place}: no connection ({what}); is this its address?")
        return translation(error, self.place)

    def _connected(self) -> Connection:
        connection: Connection = psycopg.connect(self._conninfo, autocommit=True)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: Connection) -> None:
        row = connection.execute(_SETTINGS).fetchone()
        assert row is not None
        fsync, pages, synchronous, encoding, standby = row
        if standby:
            raise NotPermitted(f"{self.place} is a standby, which only reads: name the primary")
        if encoding != "UTF8":
            raise StoreFailed(
                f"{self.place} keeps text as {encoding}, which lacks letters: make the database "
                "with encoding UTF8"
            )
        unsafe = [name for name, v in (("fsync", fsync), ("full_page_writes", pages)) if v == "off"]
        if self._durable and unsafe:
            raise NotDurable(
                f"{self.place} runs with {' = off, '.join(unsafe)} = off and acknowledges what a "
                "power cut may take: switch it on in postgresql.conf, or open with durable=False"
            )
        if not self._durable:
            synchronous = "off"
        elif synchronous == "off":
            synchronous = "on"
        wait = f"{max(1, round(self._patience * 1000))}ms"
        connection.execute(_CONFIGURE, (wait, wait, synchronous))


def _is_lost(connection: Connection, error: psycopg.Error) -> bool:
    state = error.sqlstate
    if isinstance(error, psycopg.OperationalError) and state is None:
        return True
    return connection.closed or (state is not None and state.startswith(_LOST))
