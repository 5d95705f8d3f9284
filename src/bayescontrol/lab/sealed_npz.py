"""Replicas in one sealed .npz file: columns as .npy members of a zip, and a header at its end.

    columns[name][j] = run(settings, runs[j])[name],   runs an arithmetic progression
    file = zip(columns), header, sha256 of everything before it

The header (key, runs, provenance) and the seal are the comment of the zip file, so `numpy.load` can
read the columns; nothing is pickled. Members are not compressed and have no time stamps: the same
columns are the same bytes on every machine. Rows are read in blocks, so that joining files needs
no more memory than the result.
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

from bayescontrol._support.files import atomic_write, writing_to
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.provenance import Provenance

#: For each column its type and the shape of one replica's value.
Layout: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_SEAL_LENGTH: Final = 64  # hex digits of a sha256
_BLOCK: Final = 1 << 24  # bytes of rows read at a time


class Damaged(BayesControlError, ValueError):
    """A file of results is truncated, was altered, or was not written by this library."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The key of the settings, the run of each row, and the provenance of the rows."""

    key: str
    runs: tuple[int, int, int]
    provenance: Provenance | None = msgspec.field(default=None, name="made")
    written_at: str = msgspec.field(default="", name="at")
    format: int = 1


class SealedFile:
    """A file whose seal was verified."""

    def __init__(self, path: Path, header: Header, sha256: str) -> None:
        self.path, self.header, self.sha256 = path, header, sha256
        self.runs = range(*header.runs)

    def layout(self) -> Layout:
        """Return names, types and shapes of the columns, in order."""
        with zipfile.ZipFile(self.path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            return {name: self._read_npy_header(archive, name)[:2] for name in names}

    def blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]:
        """Yield the rows of a column with their runs, one block at a time."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as member:
                dtype, shape, offset = self._read_npy_header(archive, name)
                member.read(offset)  # skip the header
                row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
                block_rows = max(1, _BLOCK // max(1, row_bytes))
                for first in range(0, len(self.runs), block_rows):
                    runs = self.runs[first : first + block_rows]
                    data = member.read(row_bytes * len(runs))
                    yield runs, np.ndarray((len(runs), *shape), dtype, data)
        except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise Damaged(f"{self.path} was changed while it was in use: {error}") from error

    def _read_npy_header(
        self, archive: zipfile.ZipFile, name: str
    ) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """Return type and shape of a row, and the offset of the first row in the member."""
        with archive.open(f"{name}.npy") as member:
            np.lib.format.read_magic(member)  # skip the magic number; the version is always 1.0
            shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(member)
            if dtype.hasobject or is_fortran or shape[:1] != (len(self.runs),):
                raise Damaged(f"{self.path}: column {name!r} does not hold {len(self.runs)} runs")
            return dtype, shape[1:], member.tell()


def layout_of(columns: Columns) -> Layout:
    """Return the layout of stacked columns; the first axis is the run."""
    return {name: (array.dtype, array.shape[1:]) for name, array in columns.items()}


def write_sealed(path: Path, columns: Columns, header: Header) -> SealedFile:
    """Write the columns, the header and the seal atomically."""
    with writing_to(path.parent), atomic_write(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in columns.items():
                entry = zipfile.ZipInfo(f"{name}.npy")
                entry.create_system = 3  # the same bytes on every system
                with archive.open(entry, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            archive.comment = msgspec.json.encode(header) + b"\n" + b"0" * _SEAL_LENGTH
        digest = _digest(file)
        file.seek(-_SEAL_LENGTH, os.SEEK_END)
        seal = digest.hexdigest().encode()
        file.write(seal)
        digest.update(seal)
    return SealedFile(path, header, digest.hexdigest())


def open_sealed(path: Path) -> SealedFile:
    """Verify the seal and read the header.

    >>> open_sealed(Path(__file__))
    Traceback (most recent call last):
    bayescontrol.lab.sealed_npz.Damaged: ...py is truncated or was altered: its seal is broken
    """
    try:
        with path.open("rb") as file:
            digest = _digest(file)
            seal = file.read()
        if seal != digest.hexdigest().encode():
            raise Damaged(f"{path} is truncated or was altered: its seal is broken")
        digest.update(seal)
        with zipfile.ZipFile(path) as archive:
            text = archive.comment[: -_SEAL_LENGTH - 1]
        return SealedFile(path, msgspec.json.decode(text, type=Header), digest.hexdigest())
    except (OSError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error


def _digest(file: BinaryIO) -> "hashlib._Hash":
    """Return the sha256 of the file without its seal, and leave the file position at the seal."""
    remaining = max(0, file.seek(0, os.SEEK_END) - _SEAL_LENGTH)
    file.seek(0)
    digest = hashlib.sha256()
    while remaining > 0 and (data := file.read(min(remaining, _BLOCK))):
        digest.update(data)
        remaining -= len(data)
    return digest
