"""One writer in a folder.

    the operating system's lock on FOLDER/.lock             it dies with its process
    where there is none: FOLDER/.writer, made exclusively   taken over when its process is dead

Either file says who holds it, for the one who finds it taken.
"""

import errno
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.atomic import writing_to

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

_NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_WRITING_A_NAME: Final = 10.0  # seconds; far longer than it takes


class Busy(BayesControlError, RuntimeError):
    """Another process is writing to the folder.

    >>> issubclass(Busy, RuntimeError)
    True
    """


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only writer of `folder` inside the block.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, held(Path(place)):
    ...     with held(Path(place)):
    ...         pass
    Traceback (most recent call last):
    bayescontrol.lab.lock.Busy: ... is being written by process ... on ...: wait for it, or ...
    """
    with writing_to(folder):
        path, handle = _taken(folder)
    try:
        yield
    finally:
        # First the name, then the lock: who opened the file meanwhile finds it nameless.
        path.unlink(missing_ok=True)
        os.close(handle)


def _taken(folder: Path) -> tuple[Path, int]:
    path, take = folder / ".lock", _locked
    while True:
        try:
            handle = take(path)
        except OSError as error:
            if error.errno not in _NO_LOCKS or take is _made:
                raise
            path.unlink(missing_ok=True)
            path, take, handle = folder / ".writer", _made, None
        if handle is not None:
            os.write(handle, f"{os.getpid()} {platform.node()}".encode())
            return path, handle


def _locked(path: Path) -> int | None:
    if fcntl is None:
        raise OSError(errno.ENOSYS, "no locks")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(handle, path):
            os.ftruncate(handle, 0)
            return handle
    except BlockingIOError:
        os.close(handle)
        raise _busy(path) from None
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _is_still(handle: int, path: Path) -> bool:
    """Whether the file behind the handle has not been removed by its last holder."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _made(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        if not _is_dead(path):
            raise _busy(path) from None
        path.unlink(missing_ok=True)
        return None


def _is_dead(path: Path) -> bool:
    try:
        process, _, node = path.read_text().partition(" ")
        if not process:  # its holder died, or has not come round to writing its name
            return time.time() - path.stat().st_mtime > _WRITING_A_NAME
    except FileNotFoundError:
        return True
    if node != platform.node() or os.name == "nt":  # there, asking would end the process
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _busy(path: Path) -> Busy:
    try:
        process, _, node = path.read_text().partition(" ")
    except OSError:
        process, node = "", ""
    holder = f"process {process} on {node}" if process else "another process"
    return Busy(
        f"{path.parent} is being written by {holder}: wait for it, or name another folder; "
        f"if there is no such process, remove {path}"
    )
