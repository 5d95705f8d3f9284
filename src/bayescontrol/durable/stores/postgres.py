"""Logs in a PostgreSQL database, for many processes and machines.

    append(rows)    UPDATE logs SET head = last WHERE name = … AND head = first - 1
                    INSERT rows, if the UPDATE found the log; both in one statement

The UPDATE locks the row of the log: a second writer waits, finds that the head has moved, reads
the new rows and tries again. The column `batch` identifies an append: after a lost connection it
shows whether the append was committed. The content of the rows cannot show this, because two
processes at the same head draw the same action. After such a conflict, the log queues its next
turns with the other processes (`PostgresLog.turn`), so that fewer decisions are computed in vain.
A compaction locks the row of the log too, and sets `sealed`: an append that observes a compacted
decision then fails, as if the head had moved.

    about       the program and the layout of the tables
    logs        each log by name, its head, and the last event that was compacted
    events      the rows of all logs; (log, seq), (log, n) and (log, key) are unique
    snapshots   states by log and seq
"""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache, partial
from hashlib import blake2b
from itertools import islice
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID, uuid4
from zlib import crc32

from bayescontrol._support.files import close_on_error
from bayescontrol.durable.stores.log import (
    CHUNK,
    QUERIES,
    Log,
    Row,
    RowSource,
    Snapshot,
    exists_error,
    os_errors,
    require_name,
    require_new_file,
    require_readable,
    snapshots_to_delete,
    unknown_error,
)
from bayescontrol.durable.stores.postgres_server import (
    Connection,
    PostgresServer,
    parse_address,
    psycopg,
)
from bayescontrol.errors import DamagedLog, HeadMoved, StoreFailed, UnknownStore

if TYPE_CHECKING:
    from bayescontrol.durable.stores.sqlite import SqliteStore

#: The largest number of an event.
_MAX_SEQ: Final = 2**63 - 1
#: After an append that came too late, take turns with other processes for this many appends.
_QUEUED_TURNS: Final = 32
_SELECT_HEAD: Final = "SELECT head, sealed, id FROM {s}.logs WHERE name = %s"
_SELECT_NAMES: Final = "SELECT name FROM {s}.logs"
_SELECT_BATCH: Final = "SELECT batch FROM {s}.events WHERE log = {log} AND seq = %s"
#: An append begins with one of these: create the log at its first rows, or move its head.
_CREATE_LOG: Final = (
    "WITH log AS (INSERT INTO {s}.logs (name, head) VALUES (%s, %s) "
    "ON CONFLICT DO NOTHING RETURNING id)"
)
_MOVE_HEAD: Final = (
    "WITH log AS (UPDATE {s}.logs SET head = %s WHERE name = %s AND head = %s AND sealed < %s "
    "RETURNING id)"
)
_INSERT: Final = (
    " INSERT INTO {s}.events (log, seq, kind, n, key, session, payload, checksum, batch)"
    " SELECT log.id, row.*, %b FROM log, unnest(%b::bigint[], %b::text[], %b::bigint[],"
    " %b::text[], %b::text[], %b::bytea[], %b::bigint[]) AS row"
)
#: Save a snapshot, unless a compaction or a deletion comes first; delete snapshots.
_SAVE: Final = (
    "INSERT INTO {s}.snapshots (log, seq, state, checksum) "
    "SELECT id, %s, %b, %b FROM {s}.logs WHERE name = %s AND sealed < %s FOR KEY SHARE "
    "ON CONFLICT (log, seq) DO UPDATE SET state = excluded.state, checksum = excluded.checksum"
)
_DELETE: Final = "DELETE FROM {s}.snapshots WHERE log = {log} AND seq = ANY(%s)"
#: A statement that locks the row of a log comes first, so that the next ones find all its events.
_LOCK_LOG: Final = (
    "SELECT id FROM {s}.logs WHERE name = %s AND head = %s AND sealed < %s FOR UPDATE"
)
_COMPACT: Final[tuple[LiteralString, ...]] = (
    "UPDATE {s}.logs SET sealed = %(seq)s WHERE id = %(log)s",
    "DELETE FROM {s}.events WHERE log = %(log)s AND seq BETWEEN 2 AND %(seq)s",
    "DELETE FROM {s}.snapshots WHERE log = %(log)s AND seq <= %(seq)s",
)
_NEW_LOG: Final = (
    "INSERT INTO {s}.logs (name, head) VALUES (%s, 1) ON CONFLICT DO NOTHING RETURNING id"
)
_SET_HEAD: Final = (
    "UPDATE {s}.logs SET head = (SELECT max(seq) FROM {s}.events WHERE log = %s), sealed = "
    "(SELECT coalesce(max(seq), 0) FROM {s}.events WHERE log = %s AND kind = 'compacted') "
    "WHERE id = %s"
)
_INSERT_IN: Final = "WITH log AS (SELECT %s::bigint AS id)" + _INSERT
_DELETE_LOG: Final = "DELETE FROM {s}.logs WHERE name = %s RETURNING id"
_DELETE_ROWS: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM {s}.events WHERE log = %s",
    "DELETE FROM {s}.snapshots WHERE log = %s",
)
#: The version of the tables; the format of the events is `events.FORMAT`.
LAYOUT: Final = 1
_PROGRAM: Final = "bayescontrol"
#: The unique indexes by name, and the column of each that a duplicate violates.
_COLUMN_OF_INDEX: Final[Mapping[str | None, str]] = {"keys": "key", "answers": "n"}
_TABLE_NAMES: Final = frozenset({"about", "logs", "events", "snapshots"})
#: "BaCo", the advisory lock for creating the tables.
_CREATING_LOCK: Final = 0x4261436F
_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS {s};
CREATE TABLE {s}.about (program text NOT NULL, layout integer NOT NULL);
CREATE TABLE {s}.logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
    head bigint NOT NULL CHECK (head > 0), sealed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE {s}.events (
    log bigint NOT NULL, seq bigint NOT NULL CHECK (seq > 0), kind text NOT NULL, n bigint,
    key text COLLATE "C", session text COLLATE "C", payload bytea NOT NULL,
    checksum bigint NOT NULL, batch uuid NOT NULL,
    PRIMARY KEY (log, seq)
);
CREATE UNIQUE INDEX answers ON {s}.events (log, n) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX keys ON {s}.events (log, key) WHERE key IS NOT NULL;
CREATE INDEX sessions ON {s}.events (log, session, seq) WHERE session IS NOT NULL;
CREATE INDEX amendments ON {s}.events (log, seq) WHERE kind IN ('corrected', 'withdrawn');
CREATE TABLE {s}.snapshots (
    log bigint NOT NULL, seq bigint NOT NULL, state bytea NOT NULL, checksum bytea NOT NULL,
    PRIMARY KEY (log, seq)
);
"""
_SELECT_ABOUT: Final = "SELECT program, layout FROM {s}.about"
_SELECT_COLUMNS: Final = """
SELECT attname FROM pg_catalog.pg_attribute
WHERE attnum > 0 AND NOT attisdropped AND attrelid = %s::regclass ORDER BY attnum
"""
_SELECT_RELATIONS: Final = """
SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
WHERE nspname = %s AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""
#: Triggers and rules on our tables, which could change or drop events.
_ADDED: Final = """
SELECT 'trigger ' || tgname FROM pg_catalog.pg_trigger JOIN pg_catalog.pg_class c ON c.oid = tgrelid
JOIN pg_catalog.pg_namespace s ON s.oid = relnamespace WHERE nspname = %s AND NOT tgisinternal
UNION ALL SELECT 'rule ' || rulename FROM pg_catalog.pg_rules WHERE schemaname = %s
"""


#: Parts of statements, in an order in which each may contain those before it. {log} is a number.
_PARTS: Final[Mapping[str, LiteralString]] = {
    "events": "{s}.events", "snapshots": "{s}.snapshots", "first": "%s", "second": "%s",
    "log": "(SELECT id FROM {s}.logs WHERE name = %s)",
    "select_rows": (
        "SELECT seq, kind, n, key, session, payload, checksum FROM {events} WHERE log = {log}"
    ),
}  # fmt: skip


@cache
def _statement(text: LiteralString, schema: str) -> bytes:
    """Fill in the schema {s} and the other parts of statements."""
    sql, s, chunk = psycopg.sql.SQL, psycopg.sql.Identifier(schema), psycopg.sql.Literal(CHUNK)
    names: dict[str, psycopg.sql.Composable] = {"s": s, "chunk": chunk}
    for name, part in _PARTS.items():
        names[name] = sql(part).format(**names)
    return sql(text).format(**names).as_bytes(None)


def _prepare(connection: Connection, schema: str, url: str, create: bool) -> None:
    """Create the tables if the schema is new or empty; otherwise check that they are ours."""
    if not _relations(connection, schema):
        if not create:
            raise UnknownStore(f"{url}: schema {schema!r} contains no store: check the address")
        with connection.transaction():
            schema_key = crc32(schema.encode()) - 2**31  # a signed 32-bit number
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_CREATING_LOCK, schema_key))
            if not _relations(connection, schema):  # no other process created them
                connection.execute(_statement(_TABLES, schema))
                about = _statement("INSERT INTO {s}.about VALUES (%s, %s)", schema)
                connection.execute(about, (_PROGRAM, LAYOUT))
    _require_tables(connection, schema, url)


def _relations(connection: Connection, schema: str) -> set[str]:
    """Return the names of the tables and views in the schema."""
    return {name for (name,) in connection.execute(_SELECT_RELATIONS, (schema,))}


def _require_tables(connection: Connection, schema: str, url: str) -> None:
    """Raise `NewerFormat` or `DamagedLog` unless the schema has our tables in a known layout."""
    found, rows = _relations(connection, schema), []
    if "about" in found:  # of another program, if its columns differ
        columns = connection.execute(_SELECT_COLUMNS, (f'"{schema}".about',)).fetchall()
        if columns == [("program",), ("layout",)]:
            rows = connection.execute(_statement(_SELECT_ABOUT, schema)).fetchall()
    layouts = [layout for program, layout in rows if program == _PROGRAM]
    if not layouts:
        raise DamagedLog(
            f"{url}: the schema {schema!r} contains tables of another program: use another "
            "schema, …?schema=mine; nothing was changed"
        )
    require_readable(url, "layout", layouts[0], LAYOUT)
    if not found >= _TABLE_NAMES:
        raise DamagedLog(
            f"{url}: the schema {schema!r} lacks {sorted(_TABLE_NAMES - found)}: restore a "
            "backup, or use another schema"
        )
    added = ", ".join(sorted(name for (name,) in connection.execute(_ADDED, (schema, schema))))
    if added:
        raise DamagedLog(
            f"{url}: the schema {schema!r} contains {added}, which may change or hide events: "
            "DROP it; nothing was changed"
        )


class PostgresLog(Log):
    """One log of a database. Other processes may append to it."""

    def __init__(self, server: PostgresServer, schema: str, name: str) -> None:
        super().__init__(name)
        self._server, self._schema = server, schema
        # The number of the log, if it was found.
        self._id: int | None = None
        # The number of next turns that wait in the queue; 0 while appends do not conflict.
        self._queued_turns = 0
        # The advisory lock that is the queue of this log: a signed 64-bit digest of its name.
        self._queue_key = int.from_bytes(
            blake2b(f"{schema} {name}".encode(), digest_size=8).digest(), signed=True
        )

    def head(self) -> int:
        """Return the current seq of the last row; raise `UnknownStore` if the log was deleted."""
        known = self._id  # before the query: another thread may create the log meanwhile
        found = self._run(_SELECT_HEAD)
        head, self.sealed, log = found[0] if found else (0, 0, None)
        if log != (known or log):
            raise UnknownStore(
                f"agent {self.name!r} was deleted from {self._server.url} while it was open"
            )
        self._id = log or self._id
        return int(head)

    def append(self, rows: Sequence[Row]) -> None:
        """Append all rows or none; the rows are on the disk of the server when the call returns."""
        self._require_appendable(rows)
        first, last, batch = rows[0].seq, rows[-1].seq, uuid4()
        values: tuple[Any, ...] = (batch, *map(list, zip(*rows, strict=True)))
        if first == 1:
            query, values = self._sql(_CREATE_LOG + _INSERT), (self.name, last, *values)
        else:
            query = self._sql(_MOVE_HEAD + _INSERT)
            lowest = min((row.n for row in rows if row.n is not None), default=first)
            values = (last, self.name, first - 1, lowest, *values)

        def insert(connection: Connection) -> None:
            try:
                inserted = connection.execute(query, values).rowcount
            except psycopg.errors.UniqueViolation as error:
                column = _COLUMN_OF_INDEX.get(error.diag.constraint_name)
                if column is None:
                    raise
                raise self._duplicate_error(column) from None
            if inserted == 0 and not self._is_committed(connection, first, batch):
                self._queued_turns = _QUEUED_TURNS
                raise HeadMoved(f"log {self.name!r} has grown: cannot append event {first}")

        self._server.run(insert)

    def turn(self) -> AbstractContextManager[None]:
        """Take turns with other processes, if an append of this log has lately come too late."""
        if self._queued_turns == 0:
            return nullcontext()
        self._queued_turns -= 1
        return self._server.queued(self._queue_key)

    def _is_committed(self, connection: Connection, first: int, batch: UUID) -> bool:
        """Return whether this append was committed on a connection that was then lost."""
        found = connection.execute(self._sql(_SELECT_BATCH), (self.name, first)).fetchone()
        return found is not None and found[0] == batch

    def save_snapshot(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Store a snapshot and delete those that are no longer needed; `spacing` is in events."""
        self._require_open()
        seq, state, checksum = snapshot
        values = (seq, state, checksum, self.name, seq)

        def save(connection: Connection) -> None:
            with connection.transaction():
                saved = connection.execute(self._sql(_SAVE), values)
                head = connection.execute(self._sql(_SELECT_HEAD), (self.name,)).fetchone()
                if saved.rowcount == 0 and head is None:
                    raise StoreFailed(
                        f"log {self.name!r} is empty: a snapshot needs at least one event"
                    )
                query = self._sql(QUERIES["snapshots"])
                found = connection.execute(query, (self.name,)).fetchall()
                to_delete = snapshots_to_delete([int(old) for (old,) in found], spacing, len(state))
                connection.execute(self._sql(_DELETE), (self.name, to_delete))

        self._server.run(save)

    def compact(self, row: Row, head: int) -> None:
        """Replace the rows 2 … row.seq by `row`, all or none; delete older snapshots."""
        self._require_open()
        batch = uuid4()

        def replace(connection: Connection) -> None:
            with connection.transaction():
                known = self.name, head, row.seq
                found = connection.execute(self._sql(_LOCK_LOG), known).fetchone()
                if self._is_committed(connection, row.seq, batch):
                    return
                if found is None:
                    raise HeadMoved(f"log {self.name!r} has changed: cannot compact it")
                for statement in _COMPACT:
                    connection.execute(self._sql(statement), {"log": found[0], "seq": row.seq})
                values = (found[0], batch, *([value] for value in row))
                connection.execute(self._sql(_INSERT_IN), values)

        self._server.run(replace)
        self.sealed = row.seq

    def vacuum(self) -> None:
        """Do nothing: the server vacuums its tables itself."""

    def _select(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._run(QUERIES[query], *values)

    def _run(self, query: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        self._require_open()
        statement, values = self._sql(query), (self.name, *values)
        return self._server.run(lambda c: c.execute(statement, values, binary=True).fetchall())

    def _sql(self, query: LiteralString) -> bytes:
        """Return a statement for the schema of this log."""
        return _statement(query, self._schema)


class PostgresStore:
    """The logs in one schema. If a connection is lost, wait `patience` seconds for the server.

    With `create`, create the tables if they are missing; otherwise raise `UnknownStore`.
    """

    shared = True

    def __init__(
        self, url: str, *, durable: bool = True, patience: float = 30.0, create: bool = True
    ) -> None:
        address = parse_address(url)
        #: The address, without a password.
        self.url, self._schema = address.display, address.schema
        self._logs: weakref.WeakSet[PostgresLog] = weakref.WeakSet()
        self._server = PostgresServer(address, durable=durable, patience=patience)
        with close_on_error(self._server):
            self._server.run(lambda c: _prepare(c, self._schema, self.url, create))

    def names(self) -> list[str]:
        """Return the names of the logs with at least one row, sorted."""
        found = self._server.run(lambda c: self._run(c, _SELECT_NAMES))
        return sorted(name for (name,) in found)

    def log(self, name: str) -> PostgresLog:
        """Open the log with this name. Other processes, and this one, may open it too."""
        log = PostgresLog(self._server, self._schema, name)
        log.head()  # raises an error if the store is closed or the server does not respond
        self._logs.add(log)
        return log

    def import_logs(self, logs: Mapping[str, RowSource]) -> None:
        """Store new logs, all or none; raise `AgentExists` if there is a log of that name."""
        batch = uuid4()

        def insert(connection: Connection) -> None:
            with connection.transaction():
                for name, source in logs.items():
                    found = self._run(connection, _NEW_LOG, require_name(name))
                    if not found:
                        if self._run(connection, _SELECT_BATCH, name, 1) == [(batch,)]:
                            return  # this transaction was committed before the connection broke
                        raise exists_error(name, self.url)
                    log, rows = found[0][0], iter(source())
                    while some := list(islice(rows, CHUNK)):
                        columns = map(list, zip(*some, strict=True))
                        self._run(connection, _INSERT_IN, log, batch, *columns)
                    self._run(connection, _SET_HEAD, log, log, log)

        self._server.run(insert)

    def delete(self, name: str) -> None:
        """Delete a log and its snapshots; PostgreSQL erases their content by VACUUM."""

        def delete(connection: Connection) -> None:
            with connection.transaction():
                found = self._run(connection, _DELETE_LOG, require_name(name))
                if not found:
                    raise unknown_error(name, self.url)
                for statement in _DELETE_ROWS:
                    self._run(connection, statement, found[0][0])

        self._server.run(delete)

    def backup(self, path: str | PathLike[str]) -> None:
        """Copy all logs to a new SQLite file, in one transaction, while agents keep running."""
        from bayescontrol.durable.stores.sqlite import SqliteStore  # another extra

        target = Path(path).resolve()
        require_new_file(target)
        with (
            os_errors(str(path)),
            TemporaryDirectory(prefix=".backup-", suffix=".tmp", dir=target.parent) as folder,
            closing(SqliteStore(f"sqlite:///{folder}/copy.db", durable=False)) as copy,
        ):
            self._server.run(lambda c: self._copy_to(copy, c))
            copy.backup(target)

    def _copy_to(self, copy: "SqliteStore", connection: Connection) -> None:
        """Copy all logs, as they are at one moment, to an empty store."""

        def rows(name: str) -> Iterator[Row]:
            last = 0
            while found := self._run(connection, QUERIES["rows"], name, last + 1, _MAX_SEQ):
                yield from map(Row._make, found)
                last = found[-1][0]

        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            names = self._run(connection, _SELECT_NAMES)
            copy.import_logs({name: partial(rows, name) for (name,) in names})

    def _run(self, connection: Connection, query: LiteralString, *values: Any) -> list[Any]:
        """Execute a statement for this schema; return its rows, if it has any."""
        done = connection.execute(_statement(query, self._schema), values, binary=True)
        return done.fetchall() if done.description else []

    def close(self) -> None:
        """Close the logs of this store and the connections. Idempotent."""
        for log in list(self._logs):
            log.close()
        self._server.close()
