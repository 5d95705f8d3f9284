"""Connections to a PostgreSQL server: its address, its settings, its errors.

    postgresql://ann@db.example/shop                the tables are in the schema `bayescontrol`
    postgresql://ann@db.example/shop?schema=tests   in another schema
    postgresql:///shop?host=/run/postgresql         through a local socket

libpq reads the rest of the address, its environment (PGPASSWORD, PGSSLMODE, …) and ~/.pgpass.

    fsync, full_page_writes = on            otherwise `NotDurable`
    synchronous_commit = on, or stronger    set on every connection, whatever the default is
    read committed                          a statement that waited for a row sees its new value

If a connection breaks, the last statement may or may not have been committed. So the work of a
caller is a function that may run twice, and it is repeated until the server responds.
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
from bayescontrol._support.files import close_on_error
from bayescontrol.durable.stores.log import require_usable

with errors.needs_extra("PostgreSQL", "psycopg", "postgres"):
    import psycopg as psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

#: The maximum number of connections of a store in one process: one writes, the others read.
_MAX_CONNECTIONS: Final = 8
#: Seconds between two attempts to connect; the pause doubles from the first to the second value.
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
_WAIT_FOR_LOCK: Final = "SELECT set_config('lock_timeout', %s, true), pg_advisory_lock(%s)"
_UNLOCK: Final = "SELECT pg_advisory_unlock(%s)"
#: The longest wait for a turn, see `PostgresServer.queued`.
_LONGEST_WAIT: Final = "1s"
_CONFIGURE: Final = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('lock_timeout', %(patience)s, false),
       set_config('idle_in_transaction_session_timeout', %(patience)s, false),
       set_config('synchronous_commit', %(synchronous_commit)s, false)
"""
#: Values of synchronous_commit that wait for the disks of the server and of its synchronous
#: standbys. The weaker values are off, local and remote_write.
_DURABLE_COMMITS: Final = ("on", "remote_apply")


_DEFAULT_SCHEMA: Final = "bayescontrol"
_INVALID: Final = (
    "the address is invalid: write postgresql://user@host:5432/database; write the characters "
    "@ : / % in a name or password as %40 %3A %2F %25"
)
#: Give up a silent network after half a minute, not after a quarter of an hour.
_DEFAULTS: Final = {
    "connect_timeout": "10", "keepalives_idle": "15", "keepalives_interval": "5",
    "keepalives_count": "3", "tcp_user_timeout": "30000", "application_name": "bayescontrol",
}  # fmt: skip


class Address(NamedTuple):
    """The parts of the address of a store."""

    conninfo: str  #: for libpq; may contain a password
    schema: str
    display: str  #: without a password


def parse_address(url: str) -> Address:
    """Parse the address of a store; raise `UnknownStore` if it is invalid."""
    base, mark, query = url.partition("?")
    pairs = query.split("&") if mark else []
    schemas = [unquote(p.partition("=")[2]) for p in pairs if p.startswith("schema=")]
    schema = schemas[-1] if schemas else _DEFAULT_SCHEMA
    if not re.fullmatch(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}", schema):
        raise errors.UnknownStore(
            f"schema={schema!r}: a name has 1 to 63 letters, digits and _, and does not begin with "
            "pg_ or a digit"
        )
    others = "&".join(p for p in pairs if not p.startswith("schema="))
    try:
        parsed = conninfo_to_dict(f"{base}?{others}" if others else base)
    except psycopg.ProgrammingError:  # the message of libpq may contain the password
        raise errors.UnknownStore(_INVALID) from None
    parameters = {name: str(v) for name, v in parsed.items() if v is not None}
    ports = parameters.get("port", "0").split(",")
    if "@" in parameters.get("host", "") + parameters.get("dbname", "") or not all(
        port.isdigit() or not port for port in ports
    ):  # a character of the password was taken for the end of the password
        raise errors.UnknownStore(_INVALID)
    conninfo = make_conninfo("", **{**_DEFAULTS, **parameters, "client_encoding": "UTF8"})
    return Address(conninfo, schema, _without_password(parameters, schema))


def _without_password(parameters: dict[str, str], schema: str) -> str:
    """Return the address of a store without its password, for messages."""
    host, port = parameters.get("host", ""), parameters.get("port", "")
    query = [f"host={host}"] if "/" in host else []
    authority = f"{quote(parameters['user'])}@" if "user" in parameters else ""
    authority += ("" if query else host) + (f":{port}" if port else "")
    query += [f"schema={schema}"] if schema != _DEFAULT_SCHEMA else []
    end = "?" + "&".join(query) if query else ""
    return f"postgresql://{authority}/{quote(parameters.get('dbname', ''))}{end}"


def translate(error: psycopg.Error, url: str) -> errors.StoreFailed:
    """Return our error in place of an error of PostgreSQL.

    After `StoreFailed` itself the last event may or may not be stored; after its subclasses it is
    not.
    """
    text = str(error).strip().partition("\n")[0]
    match error.sqlstate:
        case "53100":  # disk_full
            return errors.DiskFull(
                f"{url}: the disk is full ({text}); nothing was written. Free disk space on the "
                "server and retry"
            )
        case "42501":  # insufficient_privilege
            return errors.NotPermitted(f"{url}: {text}; grant the role the missing privilege")
        case "28000" | "28P01":  # invalid_authorization_specification, invalid_password
            return errors.NotPermitted(f"{url}: {text}; check the role and its password")
        case "25006":  # read_only_sql_transaction
            return errors.NotPermitted(
                f"{url} is read-only ({text}); nothing was written. Use the primary server"
            )
        # lock_not_available, query_canceled, deadlock_detected, too_many_connections
        case "55P03" | "57014" | "40P01" | "53300":
            return errors.StoreBusy(f"{url} is busy ({text}); nothing was written. Retry")
        # undefined_table, undefined_column, invalid_schema_name, datatype_mismatch,
        # data_corrupted, index_corrupted
        case "42P01" | "42703" | "3F000" | "42804" | "XX001" | "XX002":
            return errors.DamagedLog(
                f"{url}: the tables are damaged ({text}): restore a backup, or use another schema"
            )
    return errors.StoreFailed(
        f"{url}: {text}; acknowledged events are kept, the last event may or may not be stored: "
        "retry with the same key"
    )


class _Lost(Exception):
    """The connection broke with the error in `args`.

    The last statement may or may not have been committed.
    """


class PostgresServer:
    """The connections of one store; any thread may use them."""

    def __init__(self, address: Address, *, durable: bool = True, patience: float = 30.0) -> None:
        self.url, self._conninfo = address.display, address.conninfo
        self._durable, self._patience = durable, patience
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._connection_slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        # Threads inside `queued`, each with a connection of its own. One less than connections: a
        # thread outside that holds the lock of an agent must be able to read.
        self._queue_slots = threading.BoundedSemaphore(_MAX_CONNECTIONS - 1)
        self._reserved = threading.local()  # .connection: what `queued` reserves for this thread
        self._closed = False
        self._idle: list[Connection] = [self._connect_first()]

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return work(connection); repeat the work on a new connection if the connection is lost.

        `work` must be one statement or transaction, and detect that it was committed before.
        """
        pause, deadline = _SHORTEST_PAUSE, 0.0  # 0 means that no connection was lost yet
        while True:
            try:
                with self._lend() as connection:
                    return work(connection)
            except _Lost as lost:
                now = time.monotonic()
                deadline = deadline or now + self._patience
                if now >= deadline:
                    raise translate(lost.args[0], self.url) from lost.args[0]
            time.sleep(min(pause, deadline - now))
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextmanager
    def queued(self, key: int) -> Iterator[None]:
        """Let callers with the same key take turns, in the order of their arrival.

        The block inside is a turn; callers may be in other processes. This only avoids wasted work:
        the block runs without a turn if the wait is too long, if all slots are taken, or if the
        connection is lost.
        """
        with ExitStack() as stack:
            if self._queue_slots.acquire(blocking=False):
                stack.callback(self._queue_slots.release)
                with suppress(_Lost):
                    stack.enter_context(self._turn(key))
            yield

    @contextmanager
    def _turn(self, key: int) -> Iterator[None]:
        """Hold the advisory lock `key`. Meanwhile this thread does all its work on one connection.

        If the lock does not come within `_LONGEST_WAIT`, continue without it.
        """
        with self._lend() as first:
            self._reserved.connection, is_locked = first, False
            try:
                with suppress(psycopg.Error):
                    first.execute(_WAIT_FOR_LOCK, (_LONGEST_WAIT, key))
                    is_locked = True
                yield
            finally:
                last, self._reserved.connection = self._reserved.connection, None
                if last is not first:  # the first was lost, and with it the lock
                    self._give_back(last)
                elif is_locked:
                    try:
                        first.execute(_UNLOCK, (key,))
                    except psycopg.Error:  # closing the session releases the lock
                        first.close()

    def close(self) -> None:
        """Close the idle connections; the others are closed after their use."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._process == os.getpid():  # a forked child must not end its parent's sessions
            for connection in idle:
                connection.close()

    # -- one connection --------------------------------------------------------------------------

    @contextmanager
    def _lend(self) -> Iterator[Connection]:
        """Lend a connection to this thread; raise `_Lost` if it breaks, our own error otherwise."""
        reserved: Connection | None = getattr(self._reserved, "connection", None)
        if reserved is not None:
            if reserved.closed:
                reserved = self._reserved.connection = self._reconnect()
            with self._errors(reserved):
                yield reserved
            return
        with self._connection_slots:
            with self._guard:
                require_usable(self.url, closed=self._closed, process=self._process)
                idle = self._idle.pop() if self._idle else None
            connection = idle or self._reconnect()
            try:
                with self._errors(connection):
                    yield connection
            finally:
                self._give_back(connection)

    def _reconnect(self) -> Connection:
        """Connect; raise `_Lost` if that fails."""
        try:
            return self._connect()
        except psycopg.Error as error:
            raise _Lost(error) from error

    @contextmanager
    def _errors(self, connection: Connection) -> Iterator[None]:
        """Raise `_Lost` or our own error in place of an error of PostgreSQL."""
        try:
            yield
        except psycopg.Error as error:
            # libpq gives no SQLSTATE if it has no connection.
            has_no_session = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
            is_lost = has_no_session or (error.sqlstate or "").startswith(_LOST)
            if not (is_lost or connection.closed):
                raise translate(error, self.url) from error
            self._forget(connection)
            raise _Lost(error) from error
        except Exception:
            raise
        except BaseException:  # interrupted: the state of the connection is unknown
            self._forget(connection)
            raise

    def _give_back(self, connection: Connection) -> None:
        """Keep the connection for the next use, or close it if it is not usable."""
        with self._guard:
            is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if is_idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _forget(self, broken: Connection) -> None:
        """Close this connection and the idle ones, which are probably lost too."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in (*idle, broken):
            with suppress(psycopg.Error):
                connection.close()

    def _connect_first(self) -> Connection:
        """Connect for the first time; wait only for a server that is starting."""
        deadline, may_retry = time.monotonic() + self._patience, True
        while True:
            try:
                return self._connect()
            except psycopg.Error as error:
                status = psycopg.pq.PGconn.ping(self._conninfo.encode())
                is_starting = status == psycopg.pq.Ping.REJECT and time.monotonic() < deadline
                is_ready = status == psycopg.pq.Ping.OK and may_retry  # it may just have started
                if not is_starting and not is_ready:
                    raise self._connection_error(error) from error
                may_retry = may_retry and not is_ready
            time.sleep(_SHORTEST_PAUSE)

    def _connection_error(self, error: psycopg.Error) -> errors.StoreFailed:
        """Return our error for a failed attempt to connect."""
        # Before the session exists, libpq gives a message but no SQLSTATE.
        text = str(error).strip().partition("\n")[0]
        needs_password = getattr(error.pgconn, "needs_password", False)
        if needs_password or re.search("authentication|permission|password", text):
            return errors.NotPermitted(
                f"{self.url}: {text}; check the role, and its password in PGPASSWORD or ~/.pgpass"
            )
        if error.sqlstate is None:
            return errors.StoreFailed(f"{self.url}: no connection ({text}); check the address")
        return translate(error, self.url)

    def _connect(self) -> Connection:
        """Open a connection, check the server and configure the connection."""
        connection: Connection = psycopg.connect(self._conninfo, autocommit=True)
        with close_on_error(connection):
            self._configure(connection)
        return connection

    def _configure(self, connection: Connection) -> None:
        """Check the settings of the server, and set those of the connection.

        `patience` limits the wait for a lock, and the time that the server keeps a transaction of
        a client that has died. A durable connection gets `synchronous_commit` on, or keeps a
        stronger value.
        """
        row = connection.execute(_SETTINGS).fetchone()
        assert row is not None
        fsync, full_page_writes, synchronous_commit, encoding, is_standby = row
        if is_standby:
            raise errors.NotPermitted(f"{self.url} is a read-only standby: use the primary server")
        if encoding != "UTF8":
            raise errors.StoreFailed(
                f"{self.url} has the encoding {encoding}: create the database with encoding UTF8"
            )
        needed = {"fsync": fsync, "full_page_writes": full_page_writes}
        unsafe = [name for name, value in needed.items() if value == "off"]
        if self._durable and unsafe:
            raise errors.NotDurable(
                f"{self.url} runs with {' = off, '.join(unsafe)} = off, so a power cut may lose "
                "acknowledged events: switch it on in postgresql.conf, or open with durable=False"
            )
        if not self._durable:
            synchronous_commit = "off"
        elif synchronous_commit not in _DURABLE_COMMITS:
            synchronous_commit = "on"
        patience = f"{max(1, round(self._patience * 1000))}ms"  # 0 would mean no limit
        settings = {"patience": patience, "synchronous_commit": synchronous_commit}
        connection.execute(_CONFIGURE, settings)
