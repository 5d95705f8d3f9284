"""Logs in a SQLite file, the default store.

    sqlite:///shop.db       a relative path
    sqlite:////var/shop.db  an absolute path
    sqlite:///:memory:      in memory, until it is closed

One process can open a file at a time, with any number of agents and threads.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final, Literal

from bayescontrol.durable.faults import reach
from bayescontrol.durable.log import (
    CHUNK,
    Row,
    Snapshot,
    closed_error,
    duplicate_error,
    require_consecutive,
    require_name,
    single_row,
    superfluous,
)
from bayescontrol.durable.sqlite_file import MEMORY, SqliteFile, apsw
from bayescontrol.errors import DamagedLog, HeadMoved, StoreBusy, StoreFailed, UnknownStore

#: The greatest possible event number.
_LAST: Final = 2**63 - 1
_COLUMNS: Final = "seq, kind, n, key, payload, checksum"
# These statements are built from constants only.
_INSERT: Final = f"INSERT INTO events (log, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_SELECT: Final = f"SELECT {_COLUMNS} FROM events WHERE log = ?1 AND "  # noqa: S608


class SqliteLog:
    """One log of a file."""

    def __init__(
        self, file: SqliteFile, name: str, names: set[str], siblings: dict[str, "SqliteLog"]
    ) -> None:
        self._file, self._name, self._names, self._siblings = file, name, names, siblings
        self._closed = False
        self._id: int | None = None
        self._head = 0
        self._read_head()

    def _read_head(self) -> None:
        """Read the id and the last event number of the log from the file."""
        found = self._file.all("SELECT id FROM logs WHERE name = ?", (self._name,))
        log = found[0][0] if found else None
        head = self._file.all("SELECT max(seq) FROM events WHERE log = ?", (log,))
        self._id, self._head = log, head[0][0] or 0

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self._name

    def head(self) -> int:
        """Return the seq of the last row."""
        self._require_open()
        return self._head

    def append(self, rows: Sequence[Row]) -> None:
        """Append all rows or none; they are on disk when it returns."""
        self._require_open()
        require_consecutive(rows)
        log = self._id

        def insert(db: apsw.Connection) -> None:
            nonlocal log
            if rows[0].seq != self._head + 1:
                raise HeadMoved(
                    f"log {self._name!r} ends at {self._head}: the next row is not {rows[0].seq}"
                )
            reach("in-transaction")
            try:
                if log is None:
                    db.execute("INSERT INTO logs (name) VALUES (?)", (self._name,))
                    log = db.last_insert_rowid()
                db.executemany(_INSERT, [(log, *row) for row in rows])
            except apsw.ConstraintError as error:
                raise self._conflict(str(error), rows, log) from None
            reach("before-commit")

        try:
            self._file.write(insert)
        except BaseException:  # perhaps an interrupt after the commit
            with suppress(StoreFailed):
                self._read_head()
            raise
        self._id, self._head = log, max(self._head, rows[-1].seq)

    def _conflict(self, what: str, rows: Sequence[Row], log: int | None) -> Exception:
        """Return the error for a violated constraint; the rows inserted before it are visible."""
        columns: tuple[Literal["key", "n"], ...] = ("key", "n")
        for column in columns:
            if f"events.{column}" in what:
                head = self._file.all("SELECT max(seq) FROM events WHERE log = ?", (log,))[0][0]
                i = (head or 0) + 1 - rows[0].seq
                if not 0 <= i < len(rows):
                    return DamagedLog(
                        f"log {self._name!r}: its index of event numbers is damaged; restore a "
                        "backup"
                    )
                refused = rows[i]
                if self._find(column, getattr(refused, column), log) is not None:
                    return duplicate_error(self._name, column)
                return DamagedLog(
                    f"log {self._name!r}: the index of column {column} rejects event "
                    f"{refused.seq}, but no other event has its value: the file is damaged; "
                    "restore a backup"
                )
        if "events.seq" in what or "logs.name" in what:
            return HeadMoved(f"log {self._name!r} has grown since it was read")
        return StoreFailed(f"log {self._name!r}: {what}")

    def turn(self) -> AbstractContextManager[None]:
        """Do nothing: there is one writer."""
        return nullcontext()

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows start … stop, in chunks, so that writers wait only briefly."""
        self._require_open()
        last = self._head if stop is None else min(stop, self._head)
        while start <= last:
            self._require_open()
            end = min(start + CHUNK - 1, last)
            query = _SELECT + "seq BETWEEN ?2 AND ?3 ORDER BY seq"
            yield from map(Row._make, self._file.all(query, (self._id, start, end)))
            start = end + 1

    def find_observation(self, n: int) -> Row | None:
        """Return the observation of decision n, if there is one."""
        return self._find("n", n, self._id)

    def find_key(self, key: str) -> Row | None:
        """Return the decision with this key, if there is one."""
        return self._find("key", key, self._id)

    def _find(self, column: Literal["key", "n"], value: int | str, log: int | None) -> Row | None:
        self._require_open()
        # Look up seq first: otherwise SQLite would read the column from the index itself.
        place = f"(SELECT seq FROM events WHERE log = ?1 AND {column} = ?2)"  # noqa: S608
        found = self._file.all(f"{_SELECT}seq IN {place}", (log, value))
        return single_row(self._name, column, value, found)

    def save_snapshot(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Store a snapshot and delete those that are superfluous."""
        self._require_open()
        if self._id is None:
            raise StoreFailed(f"log {self._name!r} is empty: a snapshot needs at least one event")
        with self._file.transaction() as db:
            place = "INSERT OR REPLACE INTO snapshots (log, seq, state, checksum)"
            db.execute(f"{place} VALUES (?, ?, ?, ?)", (self._id, *snapshot))
            reach("in-snapshot")
            found = db.execute("SELECT seq FROM snapshots WHERE log = ?", (self._id,))
            drop = superfluous([seq for (seq,) in found], spacing, len(snapshot.state))
            delete = "DELETE FROM snapshots WHERE log = ? AND seq = ?"
            db.executemany(delete, [(self._id, seq) for seq in drop])

    def snapshots(self, until: int | None = None) -> Iterator[Snapshot]:
        """Iterate over the snapshots at or before `until`, newest first."""
        self._require_open()
        which = "SELECT seq FROM snapshots WHERE log = ? AND seq <= ? ORDER BY seq DESC"
        found = self._file.all(which, (self._id, _LAST if until is None else until))
        query = "SELECT seq, state, checksum FROM snapshots WHERE log = ? AND seq = ?"
        rows = (self._file.all(query, (self._id, seq)) for (seq,) in found)
        return (Snapshot._make(row[0]) for row in rows if row)  # otherwise it was deleted meanwhile

    def close(self) -> None:
        """Release the log. Idempotent."""
        if not self._closed:
            self._closed = True
            self._names.discard(self._name)
            self._siblings.pop(self._name, None)

    def _require_open(self) -> None:
        if self._closed:
            raise closed_error(f"log {self._name!r}")


class SqliteStore:
    """A file of logs. Opening it twice in one process shares the connection."""

    shared = False

    def __init__(self, path: str, *, durable: bool = True, vfs: str | None = None) -> None:
        self._path = path
        self._logs: dict[str, SqliteLog] = {}
        self._open: _Open | None = _open_file(path, durable, vfs)

    @property
    def url(self) -> str:
        """The address."""
        return f"sqlite:///{self._path}"

    def names(self) -> list[str]:
        """Return the names of the logs with at least one row, sorted."""
        query = "SELECT name FROM logs WHERE EXISTS (SELECT 1 FROM events WHERE log = id)"
        return sorted(name for (name,) in self._require_open().file.all(query))

    def log(self, name: str) -> SqliteLog:
        """Open the log with this name; `StoreBusy` if it is open already."""
        at = self._require_open()
        require_name(name)
        with _LOCK:
            if name in at.names:
                raise StoreBusy(
                    f"log {name!r} of {self._path} is already open in this process: use that "
                    "agent, from any thread"
                )
            log = SqliteLog(at.file, name, at.names, self._logs)
            at.names.add(name)
            self._logs[name] = log
        return log

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all logs to a new file, atomically, while agents keep running."""
        self._require_open().file.backup(Path(path))

    def close(self) -> None:
        """Close the logs of this store, and the file if no other store uses it. Idempotent."""
        if self._open is not None:
            for log in list(self._logs.values()):
                log.close()
            _release(self._open)
            self._open = None

    def _require_open(self) -> "_Open":
        if self._open is None:
            raise closed_error(self._path)
        return self._open


class _Open:
    """A file that is open in this process, the number of its users, and its open logs."""

    def __init__(self, key: tuple[str, int], file: SqliteFile) -> None:
        self.key, self.file, self.users = key, file, 1
        self.names: set[str] = set()


_LOCK = threading.Lock()
_OPEN: Final[dict[tuple[str, int], _Open]] = {}


def _replace_lock() -> None:
    """Replace the lock in a forked child: a thread of the parent may have held it."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_lock)


def _open_file(path: str, durable: bool, vfs: str | None) -> _Open:
    if path == MEMORY:
        return _Open((MEMORY, 0), SqliteFile(MEMORY, durable=durable))
    key = (str(Path(path).resolve()), os.getpid())
    with _LOCK:
        at = _OPEN.get(key)
        if at is None:
            at = _OPEN[key] = _Open(key, SqliteFile(key[0], durable=durable, vfs=vfs))
            return at
        if at.file.durable != durable:
            raise StoreBusy(
                f"{path} is open in this process with durable={at.file.durable}: use the same value"
            )
        at.users += 1
        return at


def _release(at: _Open) -> None:
    with _LOCK:
        at.users -= 1
        if at.users == 0:
            _OPEN.pop(at.key, None)
            at.file.close()


def open_store(url: str, *, durable: bool = True) -> SqliteStore:
    """Open the file at this address.

    >>> open_store("sqlite://shop.db")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: url='sqlite://shop.db': write sqlite:///shop.db, or four ...
    """
    path = url.removeprefix("sqlite:///")
    if "?" in path or "\0" in path:
        raise UnknownStore(f"url={url!r}: the address of a file has no options: remove '?…'")
    if path == url or not path:
        raise UnknownStore(
            f"url={url!r}: write sqlite:///shop.db, or four slashes for an absolute path"
        )
    return SqliteStore(path, durable=durable)
