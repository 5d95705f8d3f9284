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
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final

from bayescontrol.errors import Busy, Unwritable

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

#: Error numbers which mean that the system or the file system has no locks.
_NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
#: Seconds after which a lock file without a process id is stale.
_STALE: Final = 10.0


class LockHeld(Exception):
    """Another process holds the lock file `path`; `holder` describes that process."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by {holder}")
        self.path, self.holder = path, holder


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def os_errors_as(error_type: type[OSError], problem: str, advice: str) -> Iterator[None]:
    """Raise errors of the operating system as `error_type`, with the problem and what to do."""
    try:
        yield
    except error_type:
        raise
    except OSError as error:
        raise error_type(f"{problem}: {error.strerror or error}; {advice}") from error


def writing_to(folder: Path) -> AbstractContextManager[None]:
    """Turn errors of the operating system into `Unwritable`, which names the folder."""
    advice = "use another folder, or free disk space. Results that were finished before are kept"
    return os_errors_as(Unwritable, f"cannot write to {folder}", advice)


@contextmanager
def close_on_error(resource: Any) -> Iterator[None]:
    """Close the resource if the block raises an error or is interrupted."""
    try:
        yield
    except BaseException:
        resource.close()
        raise


@contextmanager
def atomic_write(path: Path, *, overwrite: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends without an error.

    The new file has the permissions `mode`, less those that the umask of the process removes.

    With `overwrite=False`, raise FileExistsError if `path` already exists.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "columns.npz") as file:
    ...         _ = file.write(b"PK")
    ...     (Path(folder) / "columns.npz").read_bytes()
    b'PK'
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with open(temporary, "w+b", opener=partial(os.open, mode=mode)) as file:
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
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def leftovers(folder: Path) -> list[Path]:
    """List the temporary files that killed writers left in the folder."""
    return sorted(folder.glob(".*.tmp"))


# -- locks ---------------------------------------------------------------------------------------


class FileLock:
    """An exclusive lock between processes; the lock file names the process that holds it.

    Raises `LockHeld` if another process holds the lock. If the system or the file system has no
    locks, the file `fallback` is created instead, and its existence is the lock. Without
    `fallback`, nothing is locked on a system without `fcntl`, and a file system without locks
    raises OSError. A forked child does not inherit the lock.
    """

    def __init__(self, path: Path, fallback: Path | None = None) -> None:
        self._descriptor: int | None = None
        if fcntl is not None or fallback is not None:
            self._acquire(path, fallback)
        _locks.add(self)

    def _acquire(self, path: Path, fallback: Path | None) -> None:
        """Lock `path`, or `fallback` if there are no locks, and write our process id into it."""
        descriptor: int | None = None
        acquire = _flock
        while descriptor is None:  # None: a lock file was removed meanwhile; try again
            try:
                descriptor = acquire(path)
            except OSError as error:
                if error.errno not in _NO_LOCKS or fallback is None or acquire is _create_lock_file:
                    raise
                path.unlink(missing_ok=True)
                path, acquire = fallback, _create_lock_file
        os.write(descriptor, f"{os.getpid()} {platform.node()}".encode())
        self._path, self._descriptor = path, descriptor

    def release(self) -> None:
        """Release the lock, even if its file cannot be removed. Idempotent."""
        if self._descriptor is not None:
            try:
                # Unlink first: a process that waits for the lock then finds that its file is gone.
                self._path.unlink(missing_ok=True)
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Close the lock file but do not remove it: in a forked child it belongs to the parent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_locks: Final["weakref.WeakSet[FileLock]"] = weakref.WeakSet()


def _abandon_all() -> None:
    """Abandon all locks in a forked child."""
    for lock in _locks:
        lock.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` inside the block; raise `Busy` if another process holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(Path(folder)):
    ...     with lock_folder(Path(folder)):
    ...         pass
    Traceback (most recent call last):
    bayescontrol.errors.Busy: ... is being written by process ... on ...: wait for it, or ...
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
        with writing_to(folder):
            lock.release()


def _flock(path: Path) -> int | None:
    """Lock the file and return its descriptor, or None if the file was removed meanwhile.

    Raise `LockHeld` if another process holds the lock.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, "this system has no file locks")
    with ExitStack() as unlocked:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        unlocked.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeld(path, _describe_holder(path)) from None
        if not _is_same_file(descriptor, path):
            return None
        os.ftruncate(descriptor, 0)
        unlocked.pop_all()
        return descriptor


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether the open file is still the file at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _create_lock_file(path: Path) -> int | None:
    """Create the lock file and return its descriptor.

    If a dead process left the file behind, delete it and return None (try again). Raise `LockHeld`
    if the process is alive.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        if not _holder_is_dead(path):
            raise LockHeld(path, _describe_holder(path)) from None
        path.unlink(missing_ok=True)
        return None


def _holder_is_dead(path: Path) -> bool:
    """Return whether the process that created the lock file has ended.

    A process on another machine counts as alive.
    """
    try:
        process, _, node = path.read_text().partition(" ")
        if not process:  # it was killed before it wrote its id, or is about to write it
            return time.time() - path.stat().st_mtime > _STALE
    except FileNotFoundError:  # it has just released the lock
        return True
    if node != platform.node() or os.name == "nt":  # on Windows os.kill(…, 0) ends the process
        return False
    try:
        os.kill(int(process), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _describe_holder(path: Path) -> str:
    """Describe the process that holds the lock file, for messages."""
    try:
        process, _, node = path.read_text().partition(" ")
    except OSError:
        process, node = "", ""
    return f"process {process} on {node}" if process else "another process"
