"""Where a file of logs may be: on a local file system, in a folder that can be written to.

Network file systems do not always honour locks and flushes, and a log needs both.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bayescontrol.errors import NetworkFileSystem, StoreFailed

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
