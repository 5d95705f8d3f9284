"""One SQLite file, open for one writer: the single connection that reads, writes and checkpoints.

    write-ahead log, synchronous = FULL     a commit is on disk when it returns
    locking_mode = EXCLUSIVE                no second connection, not even for a checkpoint

Two connections that checkpoint at once can corrupt the write-ahead log in SQLite before 3.51.3.
Here there is never a second one: agents of one process share this connection, another process is
refused, and the SQLite is apsw's own, not the system's.

The whole file is checked when it is opened (`PRAGMA integrity_check`): every page, and every entry
of every index against its table. An index that lost an entry would answer "no such key" and "not
yet observed", and no checksum of a row can tell.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import apsw

from bayescontrol.durable.committer import Committer, Request
from bayescontrol.durable.places import reached, require_local
from bayescontrol.durable.sqlite_errors import damaged, translated
from bayescontrol.durable.store import closed
from bayescontrol.errors import DamagedLog, NewerFormat, StoreBusy, StoreFailed
from bayescontrol.files import FileLock, LockHeld, atomic_write, flush_folder

MEMORY: Final = ":memory:"
#: "BaCo", in the header of every file of ours.
APPLICATION: Final = 0x4261436F
#: The layout of the tables; that of the events within is `events.FORMAT`.
LAYOUT: Final = 1
_TABLES: Final = """
CREATE TABLE logs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE events (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER, key TEXT,
    payload BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX observations ON events (log, n) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX keys ON events (log, key) WHERE key IS NOT NULL;
CREATE TABLE snapshots (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (log, seq)
) STRICT;
"""
_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
#: Events of logs that are not in the table of logs; one index seek for each log.
_ORPHANS: Final = """
WITH RECURSIVE found (log) AS (
    SELECT min(log) FROM events
    UNION ALL
    SELECT (SELECT min(log) FROM events WHERE log > found.log) FROM found WHERE log IS NOT NULL
)
SELECT log FROM found WHERE log IS NOT NULL AND log NOT IN (SELECT id FROM logs)
"""


@cache
def _schema() -> frozenset[Any]:
    """The schema of an intact file."""
    db = apsw.Connection(MEMORY)
    db.execute(_TABLES)
    return frozenset(db.execute(_SCHEMA))


def _require_intact(db: apsw.Connection, place: str) -> None:
    """Raise `DamagedLog` unless schema, pages and indexes are what was written.

    Rows are not compared with their checksums here, but whenever one is read.
    """
    if db.pragma("user_version") != LAYOUT or not _schema() <= frozenset(db.execute(_SCHEMA)):
        raise damaged(place, "its header or its schema is not what was written")
    if db.readonly("main"):  # the permissions of the file were checked before
        raise damaged(place, "its header marks it as read-only")
    found = db.pragma("integrity_check", 1)
    if found != "ok":
        raise damaged(place, found.replace("\n", " "))
    for (log,) in db.execute(_ORPHANS):
        raise damaged(place, f"it has events of log number {log}, which does not exist")


class _Work(Request):
    """To be done in a transaction, alone or with the work of other logs."""

    __slots__ = ("do",)

    def __init__(self, do: Callable[[apsw.Connection], None]) -> None:
        super().__init__()
        self.do = do


def _locked(path: str) -> FileLock:
    """Be the only process that writes to the file. Without `flock`, SQLite's locks must do."""
    try:
        with reached(path):
            return FileLock(Path(f"{path}-lock"))
    except LockHeld as error:
        raise StoreBusy(
            f"{path} is being written by {error.holder}: wait until it ends, or use that process; "
            "one process writes to a file at a time, several can share postgresql://…"
        ) from None


class SqliteFile:
    """The connection, with a lock for the threads that share it.

    >>> file = SqliteFile(MEMORY)
    >>> with file.transaction() as db:
    ...     _ = db.execute("INSERT INTO logs (name) VALUES ('checkout')")
    >>> file.all("SELECT name FROM logs")
    [('checkout',)]
    >>> file.close()
    """

    def __init__(self, path: str, *, durable: bool = True, vfs: str | None = None) -> None:
        self.path, self.durable = path, durable
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._broken: str | None = None
        self._committer: Committer[_Work] = Committer(self._write)
        self._writer: FileLock | None = None
        if path != MEMORY:
            self._require_place(Path(path))
            self._writer = _locked(path)
        self._db: apsw.Connection | None = None
        _files.add(self)
        self._stat: os.stat_result | None = None
        self._wal: os.stat_result | None = None
        try:
            with translated(path), reached(path):
                self._db = self._connected(vfs)
                self._prepare(self._db)
                if path != MEMORY and vfs is None:
                    self._stat = Path(path).stat()
        except BaseException:
            self.close()
            raise

    def _require_place(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise StoreFailed(f"{path}: there is no folder {path.parent}: make it first")
        if path.exists() and not path.is_file():
            raise StoreFailed(f"{path} is not a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise StoreFailed(f"{path} cannot be written to: check its permissions")
        require_local(path)

    def _connected(self, vfs: str | None) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        db = apsw.Connection(self.path, flags=flags, vfs=vfs)
        # Before anything is read: then the write-ahead log needs no shared memory.
        db.pragma("locking_mode", "EXCLUSIVE")
        return db

    def _prepare(self, db: apsw.Connection) -> None:
        ours, layout = db.pragma("application_id"), db.pragma("user_version")
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        fresh = ours == 0 and layout == 0 and tables == 0
        if not fresh and ours != APPLICATION:
            raise DamagedLog(
                f"{self.path} is a database of another program, or its header is damaged: name "
                "another file, or restore a backup; nothing in it was changed"
            )
        if layout > LAYOUT:
            raise NewerFormat(
                f"{self.path} has layout {layout}, this release reads up to {LAYOUT}: install a "
                "later one"
            )
        if not fresh:
            _require_intact(db, self.path)
        if self.path != MEMORY:
            db.pragma("journal_mode", "WAL")
        db.pragma("synchronous", "FULL" if self.durable else "OFF")
        db.pragma("fullfsync", True)  # where a plain flush stops at the disk's own memory
        db.pragma("checkpoint_fullfsync", True)
        if fresh:
            with db:
                db.pragma("application_id", APPLICATION)
                db.pragma("user_version", LAYOUT)
                db.execute(_TABLES)
        self._flush_folder()

    def _flush_folder(self) -> None:
        """The name of a new file is on disk, and a journal that was removed does not come back.

        At every opening: a process may have died between making the file and coming here.
        """
        if self.path != MEMORY and self.durable:
            flush_folder(Path(self.path).parent)

    def _open(self) -> apsw.Connection:
        if self._db is None:
            raise closed(self.path)
        if self._process != os.getpid():
            raise StoreBusy(f"{self.path} is open in the process that this one was forked from")
        if self._broken:
            raise StoreFailed(f"{self.path} failed before: {self._broken}; reopen it")
        return self._db

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """All that is done inside, durably at its end, or nothing of it."""
        with self._lock, translated(self.path):
            db = self._open()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
                self._require_there()
            except BaseException as error:
                if isinstance(error, apsw.IOError):
                    # After a flush that failed nobody knows what is on disk.
                    self._broken = str(error) or "a flush"
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def write(self, work: Callable[[apsw.Connection], None]) -> None:
        """Do it in a transaction; whoever comes while the disk is busy shares the next flush.

        >>> file = SqliteFile(MEMORY)
        >>> file.write(lambda db: db.execute("INSERT INTO logs (name) VALUES ('checkout')"))
        >>> file.all("SELECT name FROM logs")
        [('checkout',)]
        """
        self._committer.submit(_Work(work))

    def _write(self, batch: list[_Work]) -> None:
        with self.transaction() as db:
            if len(batch) == 1:
                batch[0].do(db)
                return
            for work in batch:
                db.execute("SAVEPOINT work")
                try:
                    work.do(db)
                except apsw.Error:  # of the disk or the file: that of all
                    raise
                except Exception as error:  # its own: it takes no other along
                    work.error = error
                    db.execute("ROLLBACK TO work")
                db.execute("RELEASE work")

    def _require_there(self) -> None:
        """What is written to a file that has lost its name is lost with it: never acknowledge."""
        if self._stat is None:
            return
        try:
            wal = os.stat(f"{self.path}-wal")  # a commit has just been written to it
            self._wal = self._wal or wal
            there = os.path.samestat(self._stat, os.stat(self.path))
            there = there and os.path.samestat(self._wal, wal)
        except OSError:
            there = False
        if not there:
            self._broken = "the file was removed or replaced while it was open"
            raise StoreFailed(
                f"{self.path} was removed or replaced while it was open: the last event is in no "
                "file; put the file or a backup back, and reopen it"
            )

    def backup(self, path: Path) -> None:
        """A copy in a new file: beside first, flushed, then under its name."""
        if path.exists() or path.is_symlink():
            raise StoreFailed(f"{path} is there already: name a new file for the backup")
        if not path.parent.is_dir():
            raise StoreFailed(f"{path}: there is no folder {path.parent}: make it first")
        with (
            reached(str(path)),
            translated(str(path)),
            atomic_write(path, overwrite=False) as file,
        ):
            self._copy(file.name)

    def _copy(self, path: str) -> None:
        with self._lock:
            source = self._open()
            target = apsw.Connection(path)
            try:
                with target.backup("main", source, "main") as copying:
                    while not copying.done:
                        copying.step(-1)
                target.pragma("journal_mode", "DELETE")  # one file, without a journal beside it
            finally:
                target.close()

    def all(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """The rows that answer a query.

        >>> SqliteFile(MEMORY).all("SELECT count(*) FROM events")
        [(0,)]
        """
        with self._lock, translated(self.path):
            return self._open().execute(query, values).fetchall()

    def close(self) -> None:
        """Give file and lock back."""
        with self._lock:
            if self._db is not None and self._process == os.getpid():
                try:
                    self._db.close()
                except apsw.Error:  # the last checkpoint failed: the next opening does it
                    self._db.close(True)
            self._db = None  # in a forked child `_inherited` still has it
            if self._writer is not None:
                self._writer.release()
                self._writer = None


_files: Final["weakref.WeakSet[SqliteFile]"] = weakref.WeakSet()
#: In a forked child: the parent's connections. One that is let go is closed by SQLite, which
#: removes the write-ahead log that the parent writes to.
_inherited: Final[list[apsw.Connection]] = []


def _keep() -> None:
    _inherited.extend(file._db for file in _files if file._db is not None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
