"""Atomic writes and locks of files.

    atomic_write(path)    write a temporary file, flush it, rename it to `path`
    FileLock(path)        a lock of the operating system (`flock`), released when its process dies
    lock_folder(folder)   the same for a folder of results, also where the system has no locks

A process that is killed leaves the old file, the new file, or a temporary file whose name begins
with a dot and ends in .tmp.
"""

import errno
import os
import platform
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final

from bayescontrol.errors import BayesControlError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

_NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
#: Seconds after which a lock file without a process id is stale.
_STALE: Final = 10.0


class Unwritable(BayesControlError, OSError):
    """The folder for results cannot be created or written to, or its disk is full."""


class Busy(BayesControlError, RuntimeError):
    """Another process is writing to the folder."""


class LockHeld(Exception):
    """Another process holds the lock file `path`; `holder` describes that process."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by {holder}")
        self.path, self.holder = path, holder


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system into `Unwritable`, which names the folder."""
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        raise Unwritable(
            f"cannot write to {folder}: {error.strerror or error}; use another folder, or free "
            "disk space. Results that were finished before are kept"
        ) from error


@contextmanager
def atomic_write(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends without an error.

    With `overwrite=False` an existing file is a FileExistsError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "columns.npz") as file:
    ...         _ = file.write(b"PK")
    ...     (Path(folder) / "columns.npz").read_bytes()
    b'PK'
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with temporary.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            temporary.replace(path)
        else:
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    flush_folder(path.parent)


def create_folder(folder: Path) -> None:
    """Create a folder and its parents; raise `Unwritable` if that is impossible."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file atomically; raise `Unwritable` if that is impossible."""
    with writing_to(path.parent), atomic_write(path) as file:
        file.write(content)
    return path


def flush_folder(folder: Path) -> None:
    """Flush the names of the files in the folder to disk."""
    if not hasattr(os, "O_DIRECTORY"):  # some systems cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def leftovers(folder: Path) -> list[Path]:
    """List the temporary files that killed writers left in the folder."""
    return sorted(folder.glob(".*.tmp"))


# -- locks ---------------------------------------------------------------------------------------


class FileLock:
    """An exclusive lock between processes; the lock file names the process that holds it.

    Raises `LockHeld` if another process has it. Where the system or the file system has no locks,
    the file `fallback` is created exclusively instead; without `fallback`, a system without locks
    is not locked at all. A forked child does not inherit the lock.
    """

    def __init__(self, path: Path, fallback: Path | None = None) -> None:
        self._handle: int | None = None
        if fcntl is not None or fallback is not None:
            self._acquire(path, fallback)
        _locks.add(self)

    def _acquire(self, path: Path, fallback: Path | None) -> None:
        handle: int | None = None
        take = _flock
        while handle is None:
            try:
                handle = take(path)
            except OSError as error:
                if error.errno not in _NO_LOCKS or fallback is None or take is _create:
                    raise
                path.unlink(missing_ok=True)
                path, take = fallback, _create
        os.write(handle, f"{os.getpid()} {platform.node()}".encode())
        self._path, self._handle = path, handle

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._handle is not None:
            # Unlink first: a process that waits for the lock then finds that its file is gone.
            self._path.unlink(missing_ok=True)
            self.abandon()

    def abandon(self) -> None:
        """Close the lock file in a forked child, where the lock belongs to the parent."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


_locks: Final["weakref.WeakSet[FileLock]"] = weakref.WeakSet()


def _abandon_all() -> None:
    for lock in _locks:
        lock.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Be the only writer of `folder` inside the block.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(Path(folder)):
    ...     with lock_folder(Path(folder)):
    ...         pass
    Traceback (most recent call last):
    bayescontrol.files.Busy: ... is being written by process ... on ...: wait for it, or ...
    """
    with writing_to(folder):
        try:
            lock = FileLock(folder / ".lock", fallback=folder / ".writer")
        except LockHeld as error:
            raise Busy(
                f"{folder} is being written by {error.holder}: wait for it, or name another "
                f"folder; if there is no such process, remove {error.path}"
            ) from None
    try:
        yield
    finally:
        lock.release()


def _flock(path: Path) -> int | None:
    """Lock the file and return its handle; None if the file was removed meanwhile."""
    if fcntl is None:
        raise OSError(errno.ENOSYS, "no locks")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same_file(handle, path):
            os.ftruncate(handle, 0)
            return handle
    except BlockingIOError:
        os.close(handle)
        raise LockHeld(path, _holder(path)) from None
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _create(path: Path) -> int | None:
    """Create the file and return its handle; None if a dead process had it."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        if not _is_dead(path):
            raise LockHeld(path, _holder(path)) from None
        path.unlink(missing_ok=True)
        return None


def _is_dead(path: Path) -> bool:
    """Return whether the process that created the lock file has ended."""
    try:
        process, _, node = path.read_text().partition(" ")
        if not process:  # killed, or interrupted, before it wrote its id
            return time.time() - path.stat().st_mtime > _STALE
    except FileNotFoundError:
        return True
    if node != platform.node() or os.name == "nt":  # on Windows os.kill(…, 0) ends the process
        return False
    try:
        os.kill(int(process), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _holder(path: Path) -> str:
    try:
        process, _, node = path.read_text().partition(" ")
    except OSError:
        process, node = "", ""
    return f"process {process} on {node}" if process else "another process"
