"""One SQLite file with one connection, which reads, writes and checkpoints.

    write-ahead log, synchronous = FULL     a commit is on disk when it returns
    locking_mode = EXCLUSIVE                no second connection, not even for a checkpoint

Two connections that checkpoint at the same time can corrupt the write-ahead log in SQLite before
3.51.3. Here there is only one connection: the agents of a process share it, other processes get
`StoreBusy`, and apsw brings its own SQLite.

Opening checks the whole file (`PRAGMA integrity_check`): every page, and every index against its
table. An index that lost an entry would report "no such key" or "not yet observed", which no
checksum of a row can detect. Before SQLite reads the write-ahead log, `require_intact_wal` looks
for damage that SQLite would take for the end of that log.

The file must be on a local file system: network file systems do not always honour locks and
flushes.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescontrol import errors
from bayescontrol._support import files
from bayescontrol.durable.stores.committer import Committer, Request
from bayescontrol.durable.stores.log import (
    PRIVATE,
    os_errors,
    require_new_file,
    require_readable,
    require_usable,
)

with errors.needs_extra("SQLite", "apsw", "durable"):
    import apsw as apsw

MEMORY: Final = ":memory:"
#: "BaCo", the application id in the header of the file.
APPLICATION: Final = 0x4261436F
#: The version of the tables; the format of the events is `events.FORMAT`.
LAYOUT: Final = 1
#: Pages that a backup copies at once, and the seconds that it pauses after them.
_BACKUP_PAGES: Final = 256
_BACKUP_PAUSE: Final = 0.001
_TABLES: Final = """
CREATE TABLE logs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE events (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER, key TEXT,
    session TEXT, payload BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX answers ON events (log, n) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX keys ON events (log, key) WHERE key IS NOT NULL;
CREATE INDEX sessions ON events (log, session, seq) WHERE session IS NOT NULL;
CREATE INDEX amendments ON events (log, seq) WHERE kind IN ('corrected', 'withdrawn');
CREATE TABLE snapshots (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (log, seq)
) STRICT;
"""
#: The schema without the tables that ANALYZE adds.
_SCHEMA: Final = """
SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'
"""
#: Find events of logs that are not in the table of logs, with one index seek per log.
_ORPHANS: Final = """
WITH RECURSIVE found (log) AS (
    SELECT min(log) FROM events
    UNION ALL
    SELECT (SELECT min(log) FROM events WHERE log > found.log) FROM found WHERE log IS NOT NULL
)
SELECT log FROM found WHERE log IS NOT NULL AND log NOT IN (SELECT id FROM logs)
"""


#: The types of network file systems, as Linux names them, without the prefix "fuse.".
_NETWORK: Final = (
    *("afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gcsfuse", "glusterfs", "gpfs", "juicefs"),
    *("lustre", "ncpfs", "nfs", "nfs4", "rclone", "s3fs", "smb2", "smb3", "smbfs", "smbnetfs"),
    *("sshfs", "webdav"),
)
_MOUNTS: Final = Path("/proc/self/mounts")


def _file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system of `path`, from a table of mounts."""
    types = {}  # by mount point; of two mounts at one point, the later one covers the earlier one
    for fields in (line.split(" ") for line in mounts.splitlines()):
        if len(fields) > 2:
            # Spaces are written as octal numbers.
            mount = Path(fields[1].encode("latin-1", "replace").decode("unicode_escape"))
            types[mount] = fields[2]
    return next((types[mount] for mount in (path, *path.parents) if mount in types), None)


def require_local(path: Path, table: Path = _MOUNTS) -> None:
    """Raise `NetworkFileSystem` if the file is, or would be, on a network file system."""
    try:
        mounts = table.read_text(errors="replace")
    except OSError:  # this system has no such table
        return
    file_system = _file_system(path.resolve(), mounts)
    if file_system is not None and file_system.removeprefix("fuse.") in _NETWORK:
        raise errors.NetworkFileSystem(
            f"{path} is on a network file system ({file_system}), where events can be lost and two "
            "processes can write at once: use a local disk, or use postgresql://…"
        )


def _damaged_error(path: str, why: object) -> errors.DamagedLog:
    """Return the error for a damaged file."""
    return errors.DamagedLog(
        f"{path} is not a store, or is damaged ({why}): restore a backup, or use another file; "
        "nothing was changed"
    )


#: Parts of the messages of SQLite about an unexpected schema.
_OTHER_SCHEMA: Final = ("no such table", "no such column", "has no column", "malformed")


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Raise our own errors in place of those of SQLite.

    After `StoreFailed` itself the last event may or may not be stored; after `DiskFull`,
    `StoreBusy` and `DamagedLog` it is not.
    """
    try:
        yield
    except apsw.FullError:
        raise errors.DiskFull(
            f"{path}: the disk is full; nothing was written. Free disk space and retry"
        ) from None
    except (apsw.BusyError, apsw.LockedError):
        raise errors.StoreBusy(
            f"{path} is open in another program: close it there; one process writes at a time"
        ) from None
    except (apsw.NotADBError, apsw.CorruptError, apsw.FormatError) as error:
        raise _damaged_error(path, error) from None
    except UnicodeDecodeError as error:
        raise _damaged_error(path, f"it contains text that is not UTF-8: {error}") from None
    except apsw.Error as error:
        if any(words in str(error) for words in _OTHER_SCHEMA):  # our statements are valid
            raise _damaged_error(path, error) from None
        raise errors.StoreFailed(
            f"{path}: {error}; acknowledged events are kept, the last event may or may not be "
            "stored: reopen the store"
        ) from error


@cache
def _schema() -> frozenset[Any]:
    """Return the schema of an intact file."""
    db = apsw.Connection(MEMORY)
    db.execute(_TABLES)
    return frozenset(db.execute(_SCHEMA))


def _require_intact(db: apsw.Connection, path: str) -> None:
    """Raise `DamagedLog` unless schema, pages and indexes are intact.

    The checksums of rows are verified when they are read.
    """
    schema = frozenset(db.execute(_SCHEMA))
    if db.pragma("user_version") != LAYOUT or not _schema() <= schema:
        raise _damaged_error(path, "its header or its schema has changed")
    added = ", ".join(f"{kind} {name!r}" for kind, name, *_ in sorted(schema - _schema()))
    if added:
        raise _damaged_error(path, f"it contains {added}, which may change or hide events: DROP it")
    if db.readonly("main"):  # the file itself is writable
        raise _damaged_error(path, "its header marks it as read-only")
    found = db.pragma("integrity_check", 1)
    if found != "ok":
        raise _damaged_error(path, found.replace("\n", " "))
    for (log,) in db.execute(_ORPHANS):
        raise _damaged_error(path, f"it has events of log number {log}, which does not exist")


# -- damage in the write-ahead log, which SQLite takes for the end of the log --------------------

#     header   magic, version, page size, checkpoint, 2 salts, 2 checksums          (32-bit words)
#     frame    page number, pages after a commit (otherwise 0), 2 salts, 2 checksums, a page
#
#     s₁ ← s₁ + s₂ + x₀,   s₂ ← s₂ + s₁ + x₁   (mod 2³²)     for each pair of words of a frame
#
# The checksum of a frame starts from the checksum of the frame before. It is linear, so one product
# of matrices shows for every frame whether it continues the frame before it.
#
# SQLite stops at the first frame that does not continue the log, and drops the rest. After a crash
# this is the end of the log: then come frames of an earlier generation, which have other salts, or
# the last transaction, of which a power cut may leave any part. But a commit is flushed before the
# next transaction begins (`synchronous = FULL`). A commit frame that the next frame continues was
# therefore on disk, with everything before it: if SQLite drops it, the log is damaged. The header
# is flushed before the first frame, so a broken header with a commit after it is damage too. Damage
# to the last transaction looks like a power cut and is not detected, nor is damage to the commit
# frame before it if it hits the checksum, clears the commit mark, or the header is in two sectors.
# A log that was cut off or removed, or that has the other byte order, is not checked.

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
#: The page size of SQLite, for a log whose header is damaged.
_PAGE: Final = 4096
#: A power cut leaves each sector either old or new.
_SECTOR: Final = 512


def require_intact_wal(database: Path) -> None:
    """Raise `DamagedLog` if SQLite would drop commits that were on disk. Changes nothing."""
    wal = Path(f"{database}-wal")
    if not wal.exists() or wal.stat().st_size <= _HEADER:
        return
    content = np.fromfile(wal, np.uint8)
    header = content[:_HEADER].view(">u4").astype(np.uint32)  # 8 words, see above
    weights, _ = _checksum_weights(3)  # 24 bytes; the sum of the header starts from 0
    checksum_fits = (content[:24].view(np.uint32) @ weights == header[6:]).all()
    header_is_valid = bool(checksum_fits and header.any())  # the checksum of zeros is 0
    frame_size = _FRAME_HEADER + (int(header[2]) if header_is_valid else _PAGE)
    count = (len(content) - _HEADER) // frame_size
    frames = content[_HEADER : _HEADER + count * frame_size].reshape(count, frame_size)
    fields = frames[:, :_FRAME_HEADER].copy().view(">u4").astype(np.uint32)  # 6 words of each frame
    weights, start_weights = _checksum_weights(frame_size // 8 - 2)
    weights = np.insert(weights, [2] * 4, 0, axis=0)  # the salts and the checksum do not count
    starts = np.vstack([header[6:], fields[:-1, 4:]])[:count]  # the checksums before each frame
    sums = starts @ start_weights + frames.view(np.uint32) @ weights
    # For each frame: whether it continues the frame before it, and whether it ends a commit.
    continues = (sums == fields[:, 4:]).all(axis=1) & (fields[:, 0] != 0)
    commits = fields[:, 1] != 0
    if header_is_valid:
        continues &= (fields[:, 2:4] == header[4:6]).all(axis=1)
        broken = int(np.argmin(np.append(continues, False)))  # the first frame that SQLite drops
        # The header of a frame in one sector is from one write, even if its page is broken.
        offsets = _HEADER + frame_size * np.arange(count)
        is_known = continues | (offsets % _SECTOR <= _SECTOR - _FRAME_HEADER)
        dropped = commits & is_known & np.append(continues[1:], False)
        lost = int(dropped[broken:].sum())
        commits_lost = errors.counted(lost, "acknowledged commit")
        damage = f"at frame {broken + 1}: at least {commits_lost} cannot be read"
    else:
        lost = int((commits & continues).sum())  # some may be of an earlier generation
        damage = "at its header: none of its commits can be read"
    if lost:
        raise errors.DamagedLog(
            f"{wal} is damaged {damage}. Restore a backup and delete {wal}; or "
            f"copy both files, then run sqlite3 {database} 'PRAGMA wal_checkpoint(TRUNCATE)' to "
            "continue without these events; nothing was changed"
        )


def _checksum_weights(pairs: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return two matrices, for a sum over this number of pairs of words.

    (s₁, s₂) = words @ first + (s₁, s₂ at the start) @ second
    """
    power, weights = np.eye(2, dtype=np.uint32), []
    for _ in range(pairs):  # from the last pair to the first
        weights.append(np.array([[1, 1], [0, 1]], np.uint32) @ power)  # of x₀ and x₁
        power = np.array([[1, 1], [1, 2]], np.uint32) @ power  # of s₁ and s₂ before the pair
    return np.vstack(weights[::-1]), power


# -- the file -----------------------------------------------------------------------------------


_Function: TypeAlias = Callable[[apsw.Connection], None]


class _Work(Request):
    """A function to be called in a transaction, alone or with those of other threads."""

    def __init__(self, function: _Function) -> None:
        super().__init__()
        self.function = function


def try_function(function: _Function, db: apsw.Connection) -> Exception | None:
    """Call a function in a transaction; if it fails, undo its changes only and return its error."""
    db.execute("SAVEPOINT work")
    failure: Exception | None = None
    try:
        function(db)
    except apsw.Error:  # an error of the disk or the file affects the whole transaction
        raise
    except Exception as error:
        failure = error
        db.execute("ROLLBACK TO work")
    db.execute("RELEASE work")
    return failure


def _lock_file(path: str) -> files.FileLock:
    """Lock the file for this process; raise `StoreBusy` if another process has locked it.

    On a system without `flock` the locks of SQLite must suffice.
    """
    try:
        with os_errors(path):
            return files.FileLock(Path(f"{path}-lock"))
    except files.LockHeld as error:
        raise errors.StoreBusy(
            f"{path} is being written by {error.holder}: wait until it ends, or use that process; "
            "one process writes to a file at a time, several can share postgresql://…"
        ) from None


class SqliteFile:
    """The connection to a file, with a lock for the threads that share it."""

    def __init__(self, path: str, *, durable: bool = True, vfs: str | None = None) -> None:
        self.path, self.durable, self.process = path, durable, os.getpid()
        #: The stores that use this file, and the names of the logs that are open.
        self.users, self.open_logs = 1, set[str]()
        self._lock = threading.RLock()
        # Why the file cannot be used any more, if so.
        self._broken: str | None = None
        self._committer: Committer[_Work] = Committer(self._write)
        self._file_lock: files.FileLock | None = None
        if path != MEMORY:
            self._require_place(Path(path))
            self._file_lock = _lock_file(path)
        self._db: apsw.Connection | None = None
        # The identity of the file and of its write-ahead log, to detect that they were replaced.
        self._stat: os.stat_result | None = None
        self._wal: os.stat_result | None = None
        with files.close_on_error(self), sqlite_errors(path), os_errors(path):
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            if path != MEMORY:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE))  # the -wal inherits it
                require_intact_wal(Path(path))
            self._db = apsw.Connection(path, flags=flags, vfs=vfs)
            self._prepare(self._db)
            if path != MEMORY and vfs is None:
                self._stat = Path(path).stat()

    def _require_place(self, path: Path) -> None:
        """Raise `StoreFailed` unless the path is a writable local file, or can become one."""
        if not path.parent.is_dir():
            raise errors.StoreFailed(f"{path}: there is no folder {path.parent}: create it first")
        if path.exists() and not path.is_file():
            raise errors.StoreFailed(f"{path} is not a file: use another path")
        place = path if path.exists() else path.parent
        if not os.access(place, os.W_OK):
            raise errors.StoreFailed(f"{place} is not writable: check its permissions")
        require_local(path)

    def _prepare(self, db: apsw.Connection) -> None:
        """Create the tables or check the existing ones, and configure the connection."""
        # A forked child believes that it holds the parent's locks. If its copy of the connection is
        # released, SQLite must not remove the write-ahead log that the parent uses; see `close`.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Set before the first read, so that the write-ahead log needs no shared memory.
        db.pragma("locking_mode", "EXCLUSIVE")
        application, layout = db.pragma("application_id"), db.pragma("user_version")
        object_count = db.execute("SELECT count(*) FROM sqlite_schema").get
        is_new = application == 0 and layout == 0 and object_count == 0
        if not is_new and application != APPLICATION:
            raise errors.DamagedLog(
                f"{self.path} is a database of another program, or its header is damaged: use "
                "another file, or restore a backup; nothing was changed"
            )
        require_readable(self.path, "layout", layout, LAYOUT)
        if not is_new:
            _require_intact(db, self.path)
        if self.path != MEMORY:
            db.pragma("journal_mode", "WAL")
        db.pragma("secure_delete", True)  # overwrite deleted content; `vacuum` erases the rest
        db.pragma("synchronous", "FULL" if self.durable else "OFF")
        db.pragma("fullfsync", True)  # on macOS a plain fsync may stop in the cache of the disk
        db.pragma("checkpoint_fullfsync", True)
        if is_new:
            with db:
                db.pragma("application_id", APPLICATION)
                db.pragma("user_version", LAYOUT)
                db.execute(_TABLES)
        if self.path != MEMORY and self.durable:
            # At every opening: a process may have died after it created the file or its journal.
            files.flush_folder(Path(self.path).parent)

    def _open(self) -> apsw.Connection:
        """Return the connection; raise `StoreFailed` or `StoreBusy` if it cannot be used."""
        require_usable(self.path, closed=self._db is None, process=self.process)
        if self._broken:
            raise errors.StoreFailed(f"{self.path} failed before: {self._broken}; reopen it")
        assert self._db is not None
        return self._db

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Commit the block as a whole, durably, or roll it back."""
        with self._lock, sqlite_errors(self.path):
            db = self._open()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
                self._require_file()
            except BaseException as error:
                if isinstance(error, apsw.IOError):
                    # After a failed flush the content of the disk is unknown.
                    self._broken = str(error) or "a flush"
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def write(self, function: _Function) -> None:
        """Call the function in a transaction; threads that write meanwhile share the next one."""
        self._committer.submit(_Work(function))

    def _write(self, batch: list[_Work]) -> None:
        """Call the functions of the batch in one transaction; roll back those that fail."""
        with self.transaction() as db:
            if len(batch) == 1:  # an error rolls back the transaction
                batch[0].function(db)
                return
            for work in batch:
                work.error = try_function(work.function, db)

    def _require_file(self) -> None:
        """Raise `StoreFailed` if the file was removed or replaced: then the last commit is lost."""
        if self._stat is None:
            return
        why = "was removed or replaced"
        try:
            wal = os.stat(f"{self.path}-wal")  # the last commit is in it
            self._wal = self._wal or wal
            is_same = os.path.samestat(self._stat, os.stat(self.path))
            if is_same and os.path.samestat(self._wal, wal):
                return
        except FileNotFoundError:
            pass
        except OSError as error:
            why = f"became inaccessible ({error.strerror})"
        self._broken = f"the file {why} while it was open"
        raise errors.StoreFailed(
            f"{self.path} {why} while it was open: the last event may not be stored; restore the "
            "file, its permissions or a backup, and reopen it"
        )

    def backup(self, path: Path) -> None:
        """Copy the file to a new one, atomically, while other threads write.

        SQLite copies pages to the new file again if this connection changes them meanwhile.
        """
        require_new_file(path)
        with (
            os_errors(str(path)),
            sqlite_errors(str(path)),
            files.atomic_write(path, overwrite=False, mode=PRIVATE) as file,
            closing(apsw.Connection(file.name)) as target,
        ):
            with self._lock:
                copying = target.backup("main", self._open(), "main")
            try:
                while not copying.done:
                    with self._lock:
                        self._open()  # it may have been closed
                        copying.step(_BACKUP_PAGES)
                    time.sleep(_BACKUP_PAUSE)  # a thread that waits for the lock goes first
            finally:
                with self._lock:
                    copying.close(True)
            target.pragma("journal_mode", "DELETE")  # one file, without a write-ahead log

    def vacuum(self) -> None:
        """Write the file again, without what deleted rows have left, and empty its journal.

        That may need free disk space of twice the size of the file.
        """
        if self.path == MEMORY:
            return
        try:
            with self._lock, sqlite_errors(self.path):
                db = self._open()
                db.execute("VACUUM")
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._require_file()
        except errors.DiskFull:
            raise errors.DiskFull(
                f"{self.path}: the rows are deleted, but the disk has no space to erase their "
                "content from the file: free twice the size of the file and repeat"
            ) from None

    def all(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._lock, sqlite_errors(self.path):
            return self._open().execute(query, values).fetchall()

    def close(self) -> None:
        """Close the file and release its lock."""
        with self._lock:
            # After a fork the child must not close the connection of its parent.
            if self._db is not None and self.process == os.getpid():
                try:
                    # Write the -wal file back to the database on closing.
                    self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                    self._db.close()
                except apsw.Error:  # the last checkpoint failed; the next opening repeats it
                    self._db.close(force=True)
            self._db = None
            lock, self._file_lock = self._file_lock, None
            if lock is not None:
                advice = "the file is closed; delete its -lock file if no process uses it"
                with os_errors(self.path, advice):
                    lock.release()
