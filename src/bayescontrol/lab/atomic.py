"""Files that are there whole, or not at all.

    write beside, flush to the disk, rename over, flush the folder

A process killed at any moment leaves the old file, the new one, or a leftover that starts with
a dot and ends in .tmp, which the next writer of the folder removes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bayescontrol.errors import BayesControlError


class Unwritable(BayesControlError, OSError):
    """The folder for results cannot be made or written to, or its disk is full.

    >>> issubclass(Unwritable, OSError)
    True
    """


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Name the folder in any error of the operating system.

    >>> with writing_to(Path("results")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    bayescontrol.lab.atomic.Unwritable: cannot write to results: No space left on device; ...
    """
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        raise Unwritable(
            f"cannot write to {folder}: {error.strerror or error}; name another folder, or make "
            "room: what was finished before is kept"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file, open for writing and reading, that takes the place of `path` when all went well.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with replacing(Path(place) / "columns.npz") as file:
    ...         _ = file.write(b"PK")
    ...     (Path(place) / "columns.npz").read_bytes()
    b'PK'
    """
    beside = path.with_name(f".{path.name}.tmp")
    with writing_to(path.parent):
        try:
            with beside.open("w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)


def leftovers(folder: Path) -> list[Path]:
    """What killed writers left in the folder.

    >>> leftovers(Path("no-such-folder"))
    []
    """
    return sorted(folder.glob(".*.tmp"))


def _flush_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # not everywhere can a folder be opened
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
