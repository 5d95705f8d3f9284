"""Connections to a PostgreSQL server: its address, its settings, its errors.

    postgresql://ann@db.example/shop                the tables are in the schema `bayescontrol`
    postgresql://ann@db.example/shop?schema=tests   in another schema
    postgresql:///shop?host=/run/postgresql         through a local socket

libpq reads the rest of the address, its environment (PGPASSWORD, PGSSLMODE, …) and ~/.pgpass.

    fsync, full_page_writes = on            otherwise `NotDurable`
    synchronous_commit = on, or stronger    set on every connection, whatever the default is
    read committed                          a statement that waited for a row sees its new value

If a connection breaks, the last statement may or may not have been committed. So work is a function
that may run twice, and it is repeated until the server responds.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from bayescontrol import errors
from bayescontrol.durable.log import require_usable

try:
    import psycopg as psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise errors.MissingExtra.of("PostgreSQL", "psycopg", "postgres") from error

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

#: The maximum number of connections of a store in one process: one writes, the others read.
_MOST: Final = 8
_SHORTEST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
#: SQLSTATEs after which a connection is unusable: it broke, or the server stops or starts.
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_SETTINGS: Final = """
SELECT current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), current_setting('server_encoding'),
       pg_is_in_recovery()
"""
#: Wait for an advisory lock, with a time limit for this statement only.
_QUEUE: Final = "SELECT set_config('lock_timeout', %s, true), pg_advisory_lock(%s)"
_LEAVE: Final = "SELECT pg_advisory_unlock(%s)"
_LONGEST_WAIT: Final = "1s"
_CONFIGURE: Final = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('lock_timeout', %s, false),
       set_config('idle_in_transaction_session_timeout', %s, false),
       set_config('synchronous_commit', %s, false)
"""


_DEFAULT_SCHEMA: Final = "bayescontrol"
#: Give up a silent network after half a minute, not after a quarter of an hour.
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "bayescontrol",
}


class Address(NamedTuple):
    """The parts of the address of a store."""

    conninfo: str  #: for libpq; may contain a password
    schema: str
    display: str  #: without a password


def parse_address(url: str) -> Address:
    """Parse the address of a store; `UnknownStore` if it is invalid."""
    base, mark, query = url.partition("?")
    pairs = query.split("&") if mark else []
    schemas = [unquote(p.partition("=")[2]) for p in pairs if p.startswith("schema=")]
    schema = schemas[-1] if schemas else _DEFAULT_SCHEMA
    if not re.fullmatch(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}", schema):
        raise errors.UnknownStore(
            f"schema={schema!r}: a name has 1 to 63 letters, digits and _, and does not begin with "
            "pg_ or a digit"
        )
    rest = "&".join(p for p in pairs if not p.startswith("schema="))
    try:
        given = conninfo_to_dict(f"{base}?{rest}" if rest else base)
    except psycopg.ProgrammingError:  # the message of libpq may contain the password
        raise errors.UnknownStore(
            "the address is invalid: write postgresql://user@host:5432/database; write the "
            "characters @ : / % in a name or password as %40 %3A %2F %25"
        ) from None
    known = {name: str(v) for name, v in given.items() if v is not None}
    conninfo = make_conninfo("", **{**_DEFAULTS, **known, "client_encoding": "UTF8"})
    return Address(conninfo, schema, _without_password(known, schema))


def _without_password(known: dict[str, str], schema: str) -> str:
    host, port = known.get("host", ""), known.get("port", "")
    query = [f"host={host}"] if "/" in host else []
    at = f"{quote(known['user'])}@" if "user" in known else ""
    at += ("" if query else host) + (f":{port}" if port else "")
    query += [f"schema={schema}"] if schema != _DEFAULT_SCHEMA else []
    end = "?" + "&".join(query) if query else ""
    return f"postgresql://{at}/{quote(known.get('dbname', ''))}{end}"


def translate(error: psycopg.Error, place: str) -> errors.StoreFailed:
    """Return our own error for one of PostgreSQL.

    After `StoreFailed` itself the last event may or may not be stored; after its subclasses it is
    not.
    """
    what = str(error).strip().partition("\n")[0]
    match error:
        case psycopg.errors.DiskFull():
            return errors.DiskFull(
                f"{place}: the disk is full ({what}); nothing was written. Free disk space on the "
                "server and retry"
            )
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.InvalidPassword():
            return errors.NotPermitted(f"{place}: {what}; grant the role the missing privilege")
        case psycopg.errors.InvalidAuthorizationSpecification():
            return errors.NotPermitted(f"{place}: {what}")
        case psycopg.errors.ReadOnlySqlTransaction():
            return errors.NotPermitted(
                f"{place} is read-only ({what}); nothing was written. Use the primary server"
            )
        case (
            psycopg.errors.LockNotAvailable()
            | psycopg.errors.QueryCanceled()
            | psycopg.errors.DeadlockDetected()
            | psycopg.errors.TooManyConnections()
        ):
            return errors.StoreBusy(f"{place} is busy ({what}); nothing was written. Retry")
        case (
            psycopg.errors.UndefinedTable()
            | psycopg.errors.UndefinedColumn()
            | psycopg.errors.InvalidSchemaName()
            | psycopg.errors.DatatypeMismatch()
            | psycopg.errors.DataCorrupted()
            | psycopg.errors.IndexCorrupted()
        ):
            return errors.DamagedLog(
                f"{place}: the tables are damaged ({what}): restore a backup, or use another schema"
            )
    return errors.StoreFailed(
        f"{place}: {what}; acknowledged events are kept, the last event may or may not be stored: "
        "retry with the same key"
    )


class _Lost(Exception):
    """The connection broke; the last statement may or may not have been committed."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(error)
        self.error = error


class Server:
    """The connections of one store, for any thread."""

    def __init__(self, address: Address, *, durable: bool = True, patience: float = 30.0) -> None:
        self.place, self._conninfo = address.display, address.conninfo
        self._durable, self._patience = durable, patience
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._places = threading.BoundedSemaphore(_MOST)
        # One connection less: a thread that holds the lock of an agent must be able to read.
        self._queues = threading.BoundedSemaphore(_MOST - 1)
        self._mine = threading.local()  # the connection that `queued` reserves
        self._closed = False
        self._idle: list[Connection] = [self._first()]

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return work(connection); repeat it on a new connection if one is lost.

        It must be one statement or transaction, and detect that it was committed before.
        """
        pause, until = _SHORTEST_PAUSE, 0.0
        while True:
            try:
                with self._lend() as connection:
                    return work(connection)
            except _Lost as lost:
                now = time.monotonic()
                until = until or now + self._patience
                if now >= until:
                    raise translate(lost.error, self.place) from lost.error
            time.sleep(min(pause, until - now))
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextmanager
    def queued(self, key: int) -> Iterator[None]:
        """Let callers with the same key take turns, in the order of their arrival.

        This only avoids wasted work: a caller that waits for too long continues without its turn.
        """
        with ExitStack() as stack:
            if self._queues.acquire(blocking=False):
                stack.callback(self._queues.release)
                with suppress(_Lost):
                    stack.enter_context(self._turn(key))
            yield

    @contextmanager
    def _turn(self, key: int) -> Iterator[None]:
        """Hold an advisory lock, with one connection for all that this thread does meanwhile."""
        with self._lend() as first:
            self._mine.connection, is_locked = first, False
            try:
                with suppress(psycopg.Error):
                    first.execute(_QUEUE, (_LONGEST_WAIT, key))
                    is_locked = True
                yield
            finally:
                last, self._mine.connection = self._mine.connection, None
                if last is not first:
                    self._give_back(last)
                elif is_locked:
                    try:
                        first.execute(_LEAVE, (key,))
                    except psycopg.Error:  # closing the session releases the lock
                        first.close()

    def close(self) -> None:
        """Close the idle connections; the others are closed after their use."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()

    # -- one connection --------------------------------------------------------------------------

    @contextmanager
    def _lend(self) -> Iterator[Connection]:
        """Lend a connection to this thread; `_Lost` if it breaks, our own error otherwise."""
        mine: Connection | None = getattr(self._mine, "connection", None)
        if mine is not None:
            if mine.closed:
                mine = self._mine.connection = self._reconnect()
            with self._errors(mine):
                yield mine
            return
        with self._places:
            connection = self._take_idle() or self._reconnect()
            try:
                with self._errors(connection):
                    yield connection
            finally:
                self._give_back(connection)

    def _reconnect(self) -> Connection:
        try:
            return self._connect()
        except psycopg.Error as error:
            raise _Lost(error) from error

    @contextmanager
    def _errors(self, connection: Connection) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if not _is_lost(connection, error):
                raise translate(error, self.place) from error
            self._forget(connection)
            raise _Lost(error) from error
        except Exception:
            raise
        except BaseException:  # interrupted: the state of the connection is unknown
            self._forget(connection)
            raise

    def _take_idle(self) -> Connection | None:
        with self._guard:
            require_usable(self.place, closed=self._closed, process=self._process)
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        with self._guard:
            idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _forget(self, broken: Connection) -> None:
        """Close this connection and the idle ones, which are probably lost too."""
        with self._guard:
            lost, self._idle = self._idle, []
        for connection in (*lost, broken):
            with suppress(psycopg.Error):
                connection.close()

    def _first(self) -> Connection:
        """Connect for the first time; wait only for a server that is starting."""
        until, again = time.monotonic() + self._patience, True
        while True:
            try:
                return self._connect()
            except psycopg.Error as error:
                answer = psycopg.pq.PGconn.ping(self._conninfo.encode())
                starting = answer == psycopg.pq.Ping.REJECT and time.monotonic() < until
                ready = answer == psycopg.pq.Ping.OK and again  # it may just have started
                if not starting and not ready:
                    raise self._refused(error) from error
                again = again and not ready
            time.sleep(_SHORTEST_PAUSE)

    def _refused(self, error: psycopg.Error) -> errors.StoreFailed:
        # Before the session exists, libpq gives a message but no SQLSTATE.
        what = str(error).strip().partition("\n")[0]
        needs_password = getattr(error.pgconn, "needs_password", False)
        if needs_password or any(
            word in what for word in ("authentication", "permission", "password")
        ):
            return errors.NotPermitted(
                f"{self.place}: {what}; check the role, and its password in PGPASSWORD or ~/.pgpass"
            )
        if error.sqlstate is None:
            return errors.StoreFailed(f"{self.place}: no connection ({what}); check the address")
        return translate(error, self.place)

    def _connect(self) -> Connection:
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
            raise errors.NotPermitted(
                f"{self.place} is a read-only standby: use the primary server"
            )
        if encoding != "UTF8":
            raise errors.StoreFailed(
                f"{self.place} has the encoding {encoding}: create the database with encoding UTF8"
            )
        unsafe = [name for name, v in (("fsync", fsync), ("full_page_writes", pages)) if v == "off"]
        if self._durable and unsafe:
            raise errors.NotDurable(
                f"{self.place} runs with {' = off, '.join(unsafe)} = off, so a power cut may lose "
                "acknowledged events: switch it on in postgresql.conf, or open with durable=False"
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
