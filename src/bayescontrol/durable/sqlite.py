"""Logs in a SQLite file, the embedded default.

    sqlite:///shop.db       relative to the working directory
    sqlite:////var/shop.db  absolute
    sqlite:///:memory:      gone when it is closed

One process writes to a file at a time; within it, any number of agents and threads.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final, Literal

import apsw

from bayescontrol.durable.faults import reach
from bayescontrol.durable.sqlite_file import MEMORY, SqliteFile
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
from bayescontrol.errors import DamagedLog, HeadMoved, StoreBusy, StoreFailed, UnknownStore

#: No event has a greater number.
_LAST: Final = 2**63 - 1
_COLUMNS: Final = "seq, kind, n, key, payload, checksum"
# Of constants of this file: no value that anyone gives comes into the text.
_INSERT: Final = f"INSERT INTO events (log, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_SELECT: Final = f"SELECT {_COLUMNS} FROM events WHERE log = ?1 AND "  # noqa: S608


class SqliteLog:
    """One log of a file.

    >>> store = open_store("sqlite:///:memory:")
    >>> log = store.log("checkout")
    >>> log.append([Row(1, "created", None, None, b"{}", 0)])
    >>> log.head(), store.names()
    (1, ['checkout'])
    """

    def __init__(
        self, file: SqliteFile, name: str, names: set[str], siblings: dict[str, "SqliteLog"]
    ) -> None:
        self._file, self._name, self._names, self._siblings = file, name, names, siblings
        self._closed = False
        self._id: int | None = None
        self._head = 0
        self._look()

    def _look(self) -> None:
        """Where the log ends in the file."""
        found = self._file.all("SELECT id FROM logs WHERE name = ?", (self._name,))
        log = found[0][0] if found else None
        head = self._file.all("SELECT max(seq) FROM events WHERE log = ?", (log,))
        self._id, self._head = log, head[0][0] or 0

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._name

    def head(self) -> int:
        """The seq of the last row."""
        self._require_open()
        return self._head

    def append(self, rows: Sequence[Row]) -> None:
        """All rows or none, on disk when it returns."""
        self._require_open()
        require_dense(rows)
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
        except BaseException:  # it may have been interrupted after its commit
            with suppress(StoreFailed):
                self._look()
            raise
        self._id, self._head = log, max(self._head, rows[-1].seq)

    def _conflict(self, what: str, rows: Sequence[Row], log: int | None) -> Exception:
        """The error for a violated constraint; the rows inserted before it are still visible."""
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
                if self._one(column, getattr(refused, column), log) is not None:
                    return doubled(self._name, column)
                return DamagedLog(
                    f"log {self._name!r}: the index of column {column} refuses event "
                    f"{refused.seq}, but no other event has its value: the file is damaged; "
                    "restore a backup"
                )
        if "events.seq" in what or "logs.name" in what:
            return HeadMoved(f"log {self._name!r} has grown meanwhile")
        return StoreFailed(f"log {self._name!r}: {what}")

    def turn(self) -> AbstractContextManager[None]:
        """Nothing to wait for: there is one writer."""
        return nullcontext()

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """The rows start … stop, in portions, so that a writer need not wait for long."""
        self._require_open()
        last = self._head if stop is None else min(stop, self._head)
        while start <= last:
            self._require_open()
            end = min(start + CHUNK - 1, last)
            query = _SELECT + "seq BETWEEN ?2 AND ?3 ORDER BY seq"
            yield from map(Row._make, self._file.all(query, (self._id, start, end)))
            start = end + 1

    def observation(self, n: int) -> Row | None:
        """The row that observes decision n."""
        return self._one("n", n, self._id)

    def keyed(self, key: str) -> Row | None:
        """The decision under this key."""
        return self._one("key", key, self._id)

    def _one(self, column: Literal["key", "n"], value: int | str, log: int | None) -> Row | None:
        self._require_open()
        # Look up seq first: otherwise SQLite would read the column from the index in doubt.
        place = f"(SELECT seq FROM events WHERE log = ?1 AND {column} = ?2)"  # noqa: S608
        found = self._file.all(f"{_SELECT}seq IN {place}", (log, value))
        return looked_up(self._name, column, value, found)

    def keep(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Put a snapshot beside the log."""
        self._require_open()
        if self._id is None:
            raise StoreFailed(f"log {self._name!r} is empty: there is nothing to keep")
        with self._file.transaction() as db:
            place = "INSERT OR REPLACE INTO snapshots (log, seq, state, checksum)"
            db.execute(f"{place} VALUES (?, ?, ?, ?)", (self._id, *snapshot))
            reach("in-snapshot")
            found = db.execute("SELECT seq FROM snapshots WHERE log = ?", (self._id,))
            drop = superfluous([seq for (seq,) in found], spacing, len(snapshot.state))
            delete = "DELETE FROM snapshots WHERE log = ? AND seq = ?"
            db.executemany(delete, [(self._id, seq) for seq in drop])

    def snapshots(self, until: int | None = None) -> Iterator[Snapshot]:
        """Newest first, up to event `until`; each is read when it is asked for."""
        self._require_open()
        which = "SELECT seq FROM snapshots WHERE log = ? AND seq <= ? ORDER BY seq DESC"
        found = self._file.all(which, (self._id, _LAST if until is None else until))
        query = "SELECT seq, state, checksum FROM snapshots WHERE log = ? AND seq = ?"
        rows = (self._file.all(query, (self._id, seq)) for (seq,) in found)
        return (Snapshot._make(row[0]) for row in rows if row)  # else it was dropped meanwhile

    def close(self) -> None:
        """Give the log back."""
        if not self._closed:
            self._closed = True
            self._names.discard(self._name)
            self._siblings.pop(self._name, None)

    def _require_open(self) -> None:
        if self._closed:
            raise closed(f"log {self._name!r}")


class SqliteStore:
    """A file of logs. Whoever opens it twice in one process shares it.

    >>> with_two = open_store("sqlite:///:memory:")
    >>> _ = with_two.log("checkout"), with_two.log("search")
    >>> with_two.log("search")
    Traceback (most recent call last):
    bayescontrol.errors.StoreBusy: log 'search' of :memory: is open in this process already: ...
    """

    shared = False

    def __init__(self, path: str, *, durable: bool = True, vfs: str | None = None) -> None:
        self._path = path
        self._logs: dict[str, SqliteLog] = {}
        self._open: _Open | None = _opened(path, durable, vfs)

    @property
    def url(self) -> str:
        """Its address."""
        return f"sqlite:///{self._path}"

    def names(self) -> list[str]:
        """The logs with at least one row."""
        query = "SELECT name FROM logs WHERE EXISTS (SELECT 1 FROM events WHERE log = id)"
        return sorted(name for (name,) in self._require_open().file.all(query))

    def log(self, name: str) -> SqliteLog:
        """The log of this name, for one user at a time."""
        at = self._require_open()
        require_name(name)
        with _LOCK:
            if name in at.names:
                raise StoreBusy(
                    f"log {name!r} of {self._path} is open in this process already: use that "
                    "agent, from any thread"
                )
            log = SqliteLog(at.file, name, at.names, self._logs)
            at.names.add(name)
            self._logs[name] = log
        return log

    def backup(self, path: str | os.PathLike[str]) -> None:
        """A copy of all logs in a new file, whole or not at all, while agents go on."""
        self._require_open().file.backup(Path(path))

    def close(self) -> None:
        """Close the logs that were opened here, and the file with its last user."""
        if self._open is not None:
            for log in list(self._logs.values()):
                log.close()
            _release(self._open)
            self._open = None

    def _require_open(self) -> "_Open":
        if self._open is None:
            raise closed(self._path)
        return self._open


class _Open:
    """A file that is open in this process, its users, and the names of the logs in use."""

    def __init__(self, key: tuple[str, int], file: SqliteFile) -> None:
        self.key, self.file, self.users = key, file, 1
        self.names: set[str] = set()


_LOCK = threading.Lock()
_OPEN: Final[dict[tuple[str, int], _Open]] = {}


def _anew() -> None:
    """In a forked child: a thread of the parent's may have held it."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)


def _opened(path: str, durable: bool, vfs: str | None) -> _Open:
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
                f"{path} is open in this process with durable={at.file.durable}: a file has one way"
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
    """The file at this address.

    >>> open_store("sqlite://shop.db")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: url='sqlite://shop.db': write sqlite:///shop.db, or four ...
    """
    path = url.removeprefix("sqlite:///")
    if "?" in path or "\0" in path:
        raise UnknownStore(f"url={url!r}: the address of a file has no options: leave out '?…'")
    if path == url or not path:
        raise UnknownStore(
            f"url={url!r}: write sqlite:///shop.db, or four slashes for an absolute path"
        )
    return SqliteStore(path, durable=durable)
