"""Where a file lies, and who writes to it.

    the mount point with the longest path above the file says of what kind its file system is
    the operating system's lock on FILE-lock says who writes; it dies with its process

Locks and flushes of network file systems are promises that are not always kept, and a log rests
on both.
"""

import os
import platform
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from bayescontrol.errors import NetworkFileSystem, StoreBusy, StoreFailed

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a POSIX system: there SQLite's own locks bind everyone
    fcntl = None

_NETWORK: Final = frozenset(
    {
        *("afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "smb2", "smb3", "smbfs", "webdav"),
        *("fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs"),
        *("fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs"),
    }
)
_MOUNTS: Final = Path("/proc/self/mounts")


def file_system(path: Path, mounts: str) -> str | None:
    r"""The kind of file system that `path` lies on, by a table of mounts.

    >>> file_system(Path("/home/ann/shop.db"), "/dev/sda / ext4 rw 0 0\nbox:/h /home nfs4 rw 0 0")
    'nfs4'
    """
    best, kind = -1, None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # Spaces and the like stand as octal numbers there.
        point = Path(fields[1].encode("latin-1", "replace").decode("unicode_escape"))
        depth = len(point.parts)
        if depth >= best and (path == point or point in path.parents):  # the later one covers
            best, kind = depth, fields[2]
    return kind


def require_local(path: Path, table: Path = _MOUNTS) -> None:
    """`NetworkFileSystem` if the file lies, or would lie, on one.

    >>> require_local(Path("shop.db"))
    """
    try:
        mounts = table.read_text(errors="replace")
    except OSError:  # no such table on this system
        return
    kind = file_system(path.resolve(), mounts)
    if kind in _NETWORK:
        raise NetworkFileSystem(
            f"{path} lies on a network file system ({kind}), where a log can be lost or written "
            "by two: put it on a local disk, or use postgresql://…"
        )


@contextmanager
def reached(place: str) -> Iterator[None]:
    """Errors of the operating system as ours.

    >>> with reached("/proc/shop.db"):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    bayescontrol.errors.StoreFailed: /proc/shop.db: Permission denied; name a file in a folder ...
    """
    try:
        yield
    except StoreFailed:
        raise
    except OSError as error:
        raise StoreFailed(
            f"{place}: {error.strerror or error}; name a file in a folder that can be written to"
        ) from error


def flush_folder(folder: Path) -> None:
    """The names in it are on disk.

    >>> flush_folder(Path("."))
    """
    if hasattr(os, "O_DIRECTORY"):  # not everywhere can a folder be opened
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class WriterLock:
    """One writer of a file at a time, whatever else opens and closes the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     lock = WriterLock(Path(place) / "shop.db")
    ...     WriterLock(Path(place) / "shop.db")
    Traceback (most recent call last):
    bayescontrol.errors.StoreBusy: .../shop.db is being written by process ... on ...: ...
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + "-lock")
        self._handle: int | None = None
        while fcntl is not None and self._handle is None:
            self._handle = self._taken(path, fcntl)
        _held.add(self)

    def _taken(self, path: Path, fcntl: ModuleType) -> int | None:
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_still(handle):
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
                return handle
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace") or "another process"
            os.close(handle)
            raise StoreBusy(
                f"{path} is being written by {holder}: wait for it, or let it do the work; one "
                "process writes to a file at a time, several can share postgresql://…"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return None

    def _is_still(self, handle: int) -> bool:
        """Whether the file behind the handle has not been removed by its last holder."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False

    def forget(self) -> None:
        """In a forked child: the lock is the parent's, and must not outlive it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def release(self) -> None:
        """Give it back: first the name, then the lock, so that who waits finds it nameless."""
        if self._handle is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None


_held: Final["weakref.WeakSet[WriterLock]"] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in _held:
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
