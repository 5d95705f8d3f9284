"""Logs in a SQLite file, the default store.

    sqlite:///shop.db       a relative path
    sqlite:////var/shop.db  an absolute path
    sqlite:///:memory:      in memory, until it is closed

One process can open a file at a time, with any number of agents and threads.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

from bayescontrol.durable.stores.log import (
    CHUNK,
    QUERIES,
    Log,
    Row,
    RowSource,
    Snapshot,
    damaged_error,
    exists_error,
    redacted,
    require_name,
    require_usable,
    snapshots_to_delete,
    unknown_error,
)
from bayescontrol.durable.stores.sqlite_file import MEMORY, SqliteFile, apsw, try_function
from bayescontrol.errors import HeadMoved, StoreBusy, StoreFailed, UnknownStore

_COLUMNS: Final = "seq, kind, n, key, session, payload, checksum"
# These statements are built from constants only.
_INSERT: Final = f"INSERT INTO events (log, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_MORE: Final = ", (?, ?, ?, ?, ?, ?, ?, ?)"
#: The maximum number of rows in one statement.
_MAX_ROWS: Final = 64
_SELECT: Final = f"SELECT {_COLUMNS} FROM events WHERE log = ?1"  # noqa: S608
# Look up seq first: otherwise SQLite would read the column from the index itself.
_FIND: Final = _SELECT + " AND seq IN (SELECT seq FROM events WHERE log = ?1 AND {} = ?2)"  # noqa: S608
_QUERIES: Final = {
    name: text.format(
        select_rows=_SELECT, events="events", snapshots="snapshots", chunk=CHUNK,
        log="?1", first="?2", second="?3",
    )
    for name, text in QUERIES.items()
} | {"n": _FIND.format("n"), "key": _FIND.format("key")}  # fmt: skip

#: Rows to append to a log.
_Append: TypeAlias = tuple["SqliteLog", Sequence[Row]]


class SqliteLog(Log):
    """One log of a file. `siblings` are the open logs of the same store, by name.

    A log is open once in a process: `file.open_logs` has the names for all stores that share the
    file, `siblings` the logs that this store closes.
    """

    def __init__(self, file: SqliteFile, name: str, siblings: dict[str, "SqliteLog"]) -> None:
        super().__init__(name)
        self._file, self._siblings = file, siblings
        self._id, self._head = self._read_head()
        sealed = self.find_sealed()
        self.sealed = sealed.seq if sealed else 0

    def _read_head(self) -> tuple[int | None, int]:
        """Return the id and the last event number of the log; None and 0 if it is empty."""
        found = self._file.all("SELECT id FROM logs WHERE name = ?", (self.name,))
        log = found[0][0] if found else None
        head = self._file.all("SELECT max(seq) FROM events WHERE log = ?", (log,))
        return log, head[0][0] or 0

    def head(self) -> int:
        """Return the seq of the last row."""
        self._require_open()
        return self._head

    def append(self, rows: Sequence[Row]) -> None:
        """Append all rows or none; the rows are on disk when the call returns."""
        self.append_together([(self, rows)])

    @staticmethod
    def append_together(appends: Sequence[_Append]) -> list[Exception | None]:
        """Append rows to several logs of one file, with one flush.

        Return the error of each append, or None if its rows are on disk. Raise an error of the
        file, after which all rows or none may be stored, and the error of a single append.
        """
        failures: list[Exception | None] = [None] * len(appends)
        for log, rows in appends:
            log._require_appendable(rows)

        def insert(db: apsw.Connection) -> None:
            if len(appends) == 1:
                _insert(appends, db)
            elif try_function(partial(_insert, appends), db) is not None:
                failures[:] = [try_function(partial(_insert, [one]), db) for one in appends]

        try:
            appends[0][0]._file.write(insert)
        except BaseException:  # perhaps an interrupt after the commit
            for log, _ in appends:
                with suppress(StoreFailed):
                    log._id, log._head = log._read_head()
            raise
        for (log, rows), failure in zip(appends, failures, strict=True):
            if failure is None:
                log._head = max(log._head, rows[-1].seq)
                if log._id is None:
                    log._id, _ = log._read_head()
        return failures

    def _new_rows(self, rows: Sequence[Row], db: apsw.Connection) -> list[tuple[Any, ...]]:
        """Return the rows to insert, with the number of the log, which is created if it is new."""
        if rows[0].seq != self._head + 1:
            raise HeadMoved(
                f"log {self.name!r} ends at event {self._head}: the next event must be "
                f"{self._head + 1}, not {rows[0].seq}; read the new events, then append again"
            )
        log = self._id
        if log is None:
            db.execute("INSERT INTO logs (name) VALUES (?)", (self.name,))
            log = db.last_insert_rowid()
        return [(log, *row) for row in rows]

    def _conflict_error(self, message: str, rows: Sequence[Row], log: int | None) -> Exception:
        """Return our error for a violated constraint, from the message of SQLite.

        The transaction is open, so the rows that were inserted before the rejected one are visible.
        """
        for column in ("key", "n"):
            if f"events.{column}" in message:
                head = self._file.all("SELECT max(seq) FROM events WHERE log = ?", (log,))[0][0]
                i = (head or 0) + 1 - rows[0].seq  # the rejected row
                if not 0 <= i < len(rows):
                    return damaged_error(self.name, "the index of its event numbers is wrong")
                value = getattr(rows[i], column)
                if self._single(column, value, self._file.all(_QUERIES[column], (log, value))):
                    return self._duplicate_error(column)
                why = f"the index of column {column} rejects event {rows[i].seq}"
                return damaged_error(self.name, f"{why}, but no other event has its value")
        if "events.seq" in message or "logs.name" in message:
            return HeadMoved(f"log {self.name!r} has grown since it was read")
        return StoreFailed(f"log {self.name!r}: {message}")

    def _select(self, query: str, *values: Any) -> list[Any]:
        self._require_open()
        return self._file.all(_QUERIES[query], (self._id, *values))

    def save_snapshot(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Store a snapshot and delete those that are no longer needed; `spacing` is in events."""
        self._require_open()
        if self._id is None:
            raise StoreFailed(f"log {self.name!r} is empty: a snapshot needs at least one event")
        with self._file.transaction() as db:
            insert = "INSERT OR REPLACE INTO snapshots (log, seq, state, checksum)"
            db.execute(f"{insert} VALUES (?, ?, ?, ?)", (self._id, *snapshot))
            found = db.execute(_QUERIES["snapshots"], (self._id,))
            seqs = [seq for (seq,) in found]
            to_delete = snapshots_to_delete(seqs, spacing, len(snapshot.state))
            delete = "DELETE FROM snapshots WHERE log = ? AND seq = ?"
            db.executemany(delete, [(self._id, seq) for seq in to_delete])

    def compact(self, row: Row, head: int) -> None:
        """Replace the rows 2 … row.seq by `row`, all or none; delete older snapshots."""
        self._require_open()
        with self._file.transaction() as db:
            if self._head != head:
                raise HeadMoved(f"log {self.name!r} ends at event {self._head}, not {head}")
            log, seq = self._id, row.seq
            db.execute("DELETE FROM events WHERE log = ? AND seq BETWEEN 2 AND ?", (log, seq))
            db.execute(_INSERT, (log, *row))
            db.execute("DELETE FROM snapshots WHERE log = ? AND seq <= ?", (log, seq))
        self.sealed = row.seq

    def vacuum(self) -> None:
        """Write the file again without what deleted rows have left in it."""
        self._require_open()
        self._file.vacuum()

    def close(self) -> None:
        """Release the log, so that it can be opened again. Idempotent."""
        if not self._closed:
            super().close()
            self._file.open_logs.discard(self.name)
            self._siblings.pop(self.name, None)


def _insert(appends: Sequence[_Append], db: apsw.Connection) -> None:
    """Insert the rows of appends into an open transaction.

    The error of a violated constraint describes the first append: it is right for a single one.
    """
    rows: list[tuple[Any, ...]] = []
    try:
        for log, new in appends:
            rows += log._new_rows(new, db)
        for start in range(0, len(rows), _MAX_ROWS):
            # Few statements, because at each of them another thread may go first.
            some = rows[start : start + _MAX_ROWS]
            try:
                db.execute(_INSERT + _MORE * (len(some) - 1), tuple(chain.from_iterable(some)))
            except apsw.ConstraintError:
                for row in some:  # insert those before the rejected row, see `_conflict_error`
                    db.execute(_INSERT, row)
    except apsw.ConstraintError as error:
        log, new = appends[0]
        raise log._conflict_error(str(error), new, rows[0][0] if rows else None) from None


class SqliteStore:
    """A file of logs. Opening it twice in one process shares the connection.

    With `create`, create the file if it does not exist; otherwise raise `UnknownStore`. Tests
    simulate a disk with `vfs`, a virtual file system of SQLite.

    >>> SqliteStore("sqlite://shop.db")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: url='sqlite://shop.db': write sqlite:///shop.db, or four ...
    """

    shared = False  # see `LogStore.shared`

    def __init__(
        self, url: str, *, durable: bool = True, create: bool = True, vfs: str | None = None
    ) -> None:
        path = url.removeprefix("sqlite:///")
        if path in (url, "") or "?" in path or "\0" in path:
            raise UnknownStore(
                f"url={redacted(url)!r}: write sqlite:///shop.db, or four slashes for an absolute "
                "path, without options ('?…')"
            )
        if not create and not (os.path.isfile(path) and os.path.getsize(path)):
            why = "is empty or not a file" if os.path.exists(path) else "does not exist"
            hint = (
                "" if os.path.isabs(path) else "; an absolute path has four slashes, sqlite:////…"
            )
            raise UnknownStore(
                f"there is no store in {os.path.abspath(path)}, which {why}: check the path{hint}"
            )
        #: The address.
        self.url, self._path = url, path
        self._logs: dict[str, SqliteLog] = {}
        self._file: SqliteFile | None = _open_file(path, durable, vfs)

    def names(self) -> list[str]:
        """Return the names of the logs with at least one row, sorted."""
        query = "SELECT name FROM logs WHERE EXISTS (SELECT 1 FROM events WHERE log = id)"
        return sorted(name for (name,) in self._require_open().all(query))

    def log(self, name: str) -> SqliteLog:
        """Open the log with this name; raise `StoreBusy` if it is open already."""
        file = self._require_open()
        with _LOCK:
            log = SqliteLog(file, name, self._logs)
            if name in file.open_logs:
                raise StoreBusy(
                    f"log {name!r} of {self._path} is already open in this process: use that "
                    "agent, from any thread"
                )
            self._logs[name] = log
            file.open_logs.add(name)
        return log

    def import_logs(self, logs: Mapping[str, RowSource]) -> None:
        """Store new logs, all or none; raise `AgentExists` if there is a log of that name."""
        with self._require_open().transaction() as db:
            for name, source in logs.items():
                try:
                    db.execute("INSERT INTO logs (name) VALUES (?)", (require_name(name),))
                except apsw.ConstraintError:
                    raise exists_error(name, self.url) from None
                if name in self._require_open().open_logs:
                    raise StoreBusy(f"log {name!r} of {self._path} is open: close its agent first")
                log = db.last_insert_rowid()
                db.executemany(_INSERT, ((log, *row) for row in source()))

    def delete(self, name: str) -> None:
        """Delete a log and its snapshots, and erase their content from the file."""
        file = self._require_open()
        with _LOCK, file.transaction() as db:
            if name in file.open_logs:
                raise StoreBusy(f"log {name!r} of {self._path} is open: close its agent first")
            log = db.execute("SELECT id FROM logs WHERE name = ?", (require_name(name),)).get
            if log is None:
                raise unknown_error(name, self.url)
            db.execute("DELETE FROM events WHERE log = ?", (log,))
            db.execute("DELETE FROM snapshots WHERE log = ?", (log,))
            db.execute("DELETE FROM logs WHERE id = ?", (log,))
        file.vacuum()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all logs to a new file, atomically, while agents keep running."""
        self._require_open().backup(Path(path))

    def close(self) -> None:
        """Close the logs of this store, and the file if no other store uses it. Idempotent."""
        file, self._file = self._file, None
        if file is not None:
            for log in list(self._logs.values()):
                log.close()
            with _LOCK:
                file.users -= 1
                if file.users == 0:
                    _OPEN.pop((file.path, file.process), None)
                    file.close()

    def _require_open(self) -> SqliteFile:
        require_usable(self._path, closed=self._file is None)
        assert self._file is not None
        return self._file


_LOCK = threading.Lock()
#: The files that are open in this process, by path and process.
_OPEN: Final[dict[tuple[str, int], SqliteFile]] = {}


def _replace_lock() -> None:
    """Replace the lock in a forked child: a thread of the parent may have held it."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_lock)


def _open_file(path: str, durable: bool, vfs: str | None) -> SqliteFile:
    """Open the file, or return it if it is open in this process; count its users."""
    if path == MEMORY:
        return SqliteFile(MEMORY, durable=durable)
    key = (str(Path(path).resolve()), os.getpid())
    with _LOCK:
        file = _OPEN.get(key)
        if file is None:
            file = _OPEN[key] = SqliteFile(key[0], durable=durable, vfs=vfs)
            return file
        if file.durable != durable:
            raise StoreBusy(
                f"{path} is open in this process with durable={file.durable}: use the same value"
            )
        file.users += 1
        return file
