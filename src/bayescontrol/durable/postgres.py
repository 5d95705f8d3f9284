"""Logs in a PostgreSQL database, for several processes and machines.

    append(rows)    UPDATE logs SET head = last WHERE name = … AND head = first - 1
                    INSERT rows, if that found a row; both in one statement, one transaction

The row of the log is locked by the UPDATE: who comes second waits, finds the head moved, reads
what came and appends again. Where the connection breaks, whether the statement was committed is
found out before it is sent again: the rows carry the append's own name (`batch`).
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, LiteralString, NoReturn
from uuid import UUID, uuid4

from bayescontrol.durable.faults import reach
from bayescontrol.durable.postgres_address import address_of, psycopg
from bayescontrol.durable.postgres_schema import phrase, prepare
from bayescontrol.durable.postgres_server import Connection, Server
from bayescontrol.durable.store import (
    CHUNK,
    Row,
    Snapshot,
    closed,
    doubled,
    looked_up,
    require_dense,
    require_name,
    superfluous,
)
from bayescontrol.errors import HeadMoved, StoreFailed

#: Appends that are queued for, after one that came too late.
_CONTENDED: Final = 32
_HEAD: Final = "SELECT head FROM {s}.logs WHERE name = %s"
_ROWS: Final = "{row} AND seq BETWEEN %s AND %s ORDER BY seq"
_ANSWER: Final = "{row} AND n = %s"
_KEYED: Final = "{row} AND key = %s"
_BATCH: Final = "SELECT batch FROM {s}.events WHERE log = {log} AND seq = %s"
_FIRST: Final = (
    "WITH log AS (INSERT INTO {s}.logs (name, head) VALUES (%s, %s) "
    "ON CONFLICT DO NOTHING RETURNING id)"
)
_NEXT: Final = (
    "WITH log AS (UPDATE {s}.logs SET head = %s WHERE name = %s AND head = %s RETURNING id)"
)
_INSERT: Final = (
    " INSERT INTO {s}.events (log, seq, kind, n, key, payload, checksum, batch)"
    " SELECT log.id, row.*, %b FROM log, unnest(%b::bigint[], %b::text[], %b::bigint[],"
    " %b::text[], %b::bytea[], %b::bigint[]) AS row"
)
_KEEP: Final = (
    "INSERT INTO {s}.snapshots (log, seq, state, checksum) "
    "SELECT id, %s, %b, %b FROM {s}.logs WHERE name = %s ON CONFLICT (log, seq) "
    "DO UPDATE SET state = excluded.state, checksum = excluded.checksum"
)
_DROP: Final = "DELETE FROM {s}.snapshots WHERE log = {log} AND seq = ANY(%s)"
_PLACES: Final = "SELECT seq FROM {s}.snapshots WHERE log = {log} ORDER BY seq DESC"
_SNAPSHOT: Final = "SELECT seq, state, checksum FROM {s}.snapshots WHERE log = {log} AND seq = %s"


class PostgresLog:
    """One log of a database. Other processes may append to it too: its head moves.

    >>> store = open_store("postgresql://ann@db.example/shop")  # doctest: +SKIP
    >>> log, twin = store.log("checkout"), store.log("checkout")  # doctest: +SKIP
    >>> log.append([Row(1, "created", None, None, b"{}", 0)])  # doctest: +SKIP
    >>> twin.head()  # doctest: +SKIP
    1
    """

    def __init__(self, server: Server, schema: str, name: str) -> None:
        self._server, self._schema, self._name = server, schema, name
        self._closed = False
        self._contended = 0
        self._queue = int.from_bytes(
            blake2b(f"{schema} {name}".encode(), digest_size=8).digest(), signed=True
        )

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._name

    def head(self) -> int:
        """The seq of the last row, right now."""
        found = self._all(_HEAD, self._name)
        return int(found[0][0]) if found else 0

    def append(self, rows: Sequence[Row]) -> None:
        """All rows or none, on the server's disk when it returns."""
        self._require_open()
        require_dense(rows)
        first, last, batch = rows[0].seq, rows[-1].seq, uuid4()
        values: tuple[Any, ...] = (batch, *map(list, zip(*rows, strict=True)))
        if first == 1:
            query, values = self._phrase(_FIRST + _INSERT), (self._name, last, *values)
        else:
            query, values = self._phrase(_NEXT + _INSERT), (last, self._name, first - 1, *values)

        def appended(connection: Connection) -> None:
            try:
                done = connection.execute(query, values).rowcount
            except psycopg.errors.UniqueViolation as error:
                self._conflict(error)
            if done == 0 and not self._is_mine(connection, first, batch):
                self._contended = _CONTENDED
                raise HeadMoved(f"log {self._name!r} has grown: the next row is not {first}")

        reach("in-transaction")
        self._server.run(appended)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Come after those who came before, if others have lately been in the way."""
        if self._contended == 0:
            yield
            return
        self._contended -= 1
        with self._server.queued(self._queue):
            yield

    def _is_mine(self, connection: Connection, first: int, batch: UUID) -> bool:
        """Whether this very append was committed before, by a connection that then was lost."""
        found = connection.execute(self._phrase(_BATCH), (self._name, first)).fetchone()
        return found is not None and found[0] == batch

    def _conflict(self, error: psycopg.errors.UniqueViolation) -> NoReturn:
        match error.diag.constraint_name:
            case "keys":
                raise doubled(self._name, "key") from None
            case "observations":
                raise doubled(self._name, "n") from None
        raise error

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """The rows start … stop, in portions."""
        last = self.head() if stop is None else stop
        start = max(start, 1)
        while start <= last:
            end = min(start + CHUNK - 1, last)
            rows = self._all(_ROWS, self._name, start, end)
            yield from map(Row._make, rows)
            if len(rows) <= end - start:
                return
            start = end + 1

    def observation(self, n: int) -> Row | None:
        """The row that observes decision n."""
        return looked_up(self._name, "n", n, self._all(_ANSWER, self._name, n))

    def keyed(self, key: str) -> Row | None:
        """The decision under this key."""
        return looked_up(self._name, "key", key, self._all(_KEYED, self._name, key))

    def keep(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Put a snapshot beside the log."""
        self._require_open()
        seq, state, checksum = snapshot

        def kept(connection: Connection) -> None:
            with connection.transaction():
                place = connection.execute(
                    self._phrase(_KEEP), (seq, state, checksum, self._name)
                ).rowcount
                if place == 0:
                    raise StoreFailed(f"log {self._name!r} is empty: there is nothing to keep")
                reach("in-snapshot")
                found = connection.execute(self._phrase(_PLACES), (self._name,)).fetchall()
                drop = superfluous([int(place) for (place,) in found], spacing, len(state))
                connection.execute(self._phrase(_DROP), (self._name, drop))

        self._server.run(kept)

    def snapshots(self, until: int | None = None) -> Iterator[Snapshot]:
        """Newest first, up to event `until`; each is read when it is asked for."""
        found = [seq for (seq,) in self._all(_PLACES, self._name)]
        wanted = [seq for seq in found if until is None or seq <= until]
        rows = (self._all(_SNAPSHOT, self._name, seq) for seq in wanted)
        return (Snapshot._make(row[0]) for row in rows if row)  # else it was dropped meanwhile

    def close(self) -> None:
        """Give the log back."""
        self._closed = True

    def _all(self, query: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        self._require_open()
        text = self._phrase(query)
        return self._server.run(lambda c: c.execute(text, values, binary=True).fetchall())

    def _phrase(self, query: LiteralString) -> bytes:
        return phrase(query, self._schema)

    def _require_open(self) -> None:
        if self._closed:
            raise closed(f"log {self._name!r}")


class PostgresStore:
    """A schema of logs. `patience` is how long, in seconds, a lost server is waited for.

    >>> PostgresStore("postgresql:///shop?host=/nowhere")
    Traceback (most recent call last):
    bayescontrol.errors.StoreFailed: postgresql:///shop?host=/nowhere: no connection (connection ...
    """

    shared = True

    def __init__(self, url: str, *, durable: bool = True, patience: float = 30.0) -> None:
        address = address_of(url)
        self._url, self._schema = address.shown, address.schema
        self._logs: weakref.WeakSet[PostgresLog] = weakref.WeakSet()
        self._server = Server(address, durable=durable, patience=patience)
        try:
            self._server.run(lambda c: prepare(c, self._schema, self._url))
        except BaseException:
            self._server.close()
            raise

    @property
    def url(self) -> str:
        """Its address, without a password."""
        return self._url

    def names(self) -> list[str]:
        """The logs with at least one row."""
        query = phrase("SELECT name FROM {s}.logs", self._schema)
        return sorted(name for (name,) in self._server.run(lambda c: c.execute(query).fetchall()))

    def log(self, name: str) -> PostgresLog:
        """The log of this name; as many users as there are."""
        require_name(name)
        log = PostgresLog(self._server, self._schema, name)
        log.head()
        self._logs.add(log)
        return log

    def close(self) -> None:
        """Close the logs that were opened here, and the connections."""
        for log in list(self._logs):
            log.close()
        self._server.close()


def open_store(url: str, *, durable: bool = True) -> PostgresStore:
    """The database at this address; its tables are made if there are none.

    >>> open_store("postgresql://ann:100%@db.example/shop")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: the address cannot be read: write postgresql://user@host:...
    """
    return PostgresStore(url, durable=durable)
