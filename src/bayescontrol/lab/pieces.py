"""Some replicas in one sealed file: columns as .npy members of a zip, and a note at its end.

    columns[name][j] = run(settings, runs[j])[name],   runs an arithmetic progression
    file = zip(columns), note, sha256 of all that comes before it

The note (key, runs, with what they were made) and the seal are the zip's comment: `numpy.load`
reads the columns and nothing is pickled. Members are stored, not compressed, and carry no clock
time: the same columns are the same bytes, whatever compression library a machine has. Rows are
read in blocks, so that joining files takes no more memory than what comes out.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from bayescontrol.errors import BayesControlError
from bayescontrol.files import atomic_write, writing_to
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.provenance import Made

#: Of each column its type and the shape of one replica's.
Layout: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_SEAL: Final = 64  # hex digits of a sha256
_BLOCK: Final = 1 << 24  # bytes of rows read at a time


class Damaged(BayesControlError, ValueError):
    """A file of results is torn, was altered, or is not one of ours.

    >>> issubclass(Damaged, ValueError)
    True
    """


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file holds: the key of its settings, the run of each row, and its making.

    >>> Note("5e1f", (0, 32, 1)).format
    1
    """

    key: str
    runs: tuple[int, int, int]
    made: Made | None = None
    at: str = ""
    format: int = 1


class File:
    """A sealed file that was found whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "columns.npz"
    ...     _ = write_sealed(path, {"y": np.arange(6).reshape(3, 2)}, Note("5e1f", (0, 6, 2)))
    ...     file = open_sealed(path)
    ...     file.runs, [block.tolist() for _, block in file.blocks("y")]
    (range(0, 6, 2), [[[0, 1], [2, 3], [4, 5]]])
    """

    def __init__(self, path: Path, note: Note, sha256: str) -> None:
        self.path, self.note, self.sha256 = path, note, sha256
        self.runs = range(*note.runs)

    def layout(self) -> Layout:
        """Names, types and shapes of the columns, in their order."""
        with zipfile.ZipFile(self.path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            return {name: self._head(archive, name)[:2] for name in names}

    def blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]:
        """The rows of a column and their runs, some at a time."""
        try:
            yield from self._blocks(name)
        except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise Damaged(f"{self.path} was changed while it was in use: {error}") from error

    def _blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]:
        with zipfile.ZipFile(self.path) as archive:
            dtype, shape, start = self._head(archive, name)
            row = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            at_once = max(1, _BLOCK // max(1, row))
            with archive.open(f"{name}.npy") as member:
                member.read(start)
                for first in range(0, len(self.runs), at_once):
                    runs = self.runs[first : first + at_once]
                    data = member.read(row * len(runs))
                    yield runs, np.ndarray((len(runs), *shape), dtype, data)

    def _head(
        self, archive: zipfile.ZipFile, name: str
    ) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """Type, shape of a row, and where in the member the rows start."""
        with archive.open(f"{name}.npy") as member:
            np.lib.format.read_magic(member)
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(member)
            if dtype.hasobject or by_columns or shape[:1] != (len(self.runs),):
                raise Damaged(f"{self.path}: column {name!r} does not hold {len(self.runs)} runs")
            return dtype, shape[1:], member.tell()


def layout_of(columns: Columns) -> Layout:
    """The layout of stacked columns; the first axis is the run.

    >>> layout_of({"y": np.zeros((3, 2))})
    {'y': (dtype('float64'), (2,))}
    """
    return {name: (array.dtype, array.shape[1:]) for name, array in columns.items()}


def write_sealed(path: Path, columns: Columns, note: Note) -> str:
    """Write the columns, whole or not at all; the sha256 of the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     first = write_sealed(Path(place) / "a.npz", {"y": np.arange(3)}, Note("", (0, 3, 1)))
    ...     again = write_sealed(Path(place) / "b.npz", {"y": np.arange(3)}, Note("", (0, 3, 1)))
    >>> first == again
    True
    """
    with writing_to(path.parent), atomic_write(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in columns.items():
                entry = zipfile.ZipInfo(f"{name}.npy")
                entry.create_system = 3  # the same bytes on every system
                with archive.open(entry, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            archive.comment = msgspec.json.encode(note) + b"\n" + b"0" * _SEAL
        whole = _digest(file)
        file.seek(-_SEAL, os.SEEK_END)
        seal = whole.hexdigest().encode()
        file.write(seal)
        whole.update(seal)
    return whole.hexdigest()


def open_sealed(path: Path) -> File:
    """Check the seal and read the note.

    >>> open_sealed(Path(__file__))
    Traceback (most recent call last):
    bayescontrol.lab.pieces.Damaged: ...pieces.py is torn or was altered: its seal is broken
    """
    try:
        with path.open("rb") as file:
            whole = _digest(file)
            seal = file.read()
        if seal != whole.hexdigest().encode():
            raise Damaged(f"{path} is torn or was altered: its seal is broken")
        whole.update(seal)
        with zipfile.ZipFile(path) as archive:
            text = archive.comment[: -_SEAL - 1]
        return File(path, msgspec.json.decode(text, type=Note), whole.hexdigest())
    except (OSError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error


def _digest(file: BinaryIO) -> "hashlib._Hash":
    """sha256 of all but the seal, where the file is left."""
    left = max(0, file.seek(0, os.SEEK_END) - _SEAL)
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0 and (data := file.read(min(left, _BLOCK))):
        digest.update(data)
        left -= len(data)
    return digest
