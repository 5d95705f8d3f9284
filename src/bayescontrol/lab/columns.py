"""The columns of replicas: in memory, in sealed files, and assembled in the order of the runs.

    columns[name][j] = run(settings, runs[j])[name],   runs = first .. last
    file             = zip(columns), header, sha256 of everything before it

A sealed file is an .npz file whose zip comment holds the header (key, runs, provenance) and the
seal, so `numpy.load` can read the columns; nothing is pickled. Members are not compressed and have
no time stamps: the same columns are the same bytes on every machine.

Columns are assembled one block of rows at a time in arrays that are allocated once: the peak of
memory is the result and one block. A column of strings is as wide as its longest string.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TypeAlias

import msgspec
import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol._support.files import atomic_write, writing_to
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns, ExperimentFailed
from bayescontrol.lab.provenance import Provenance

#: For each column its type and the shape of one replica's value.
Layout: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
#: Runs: the first, and the last + 1.
Span: TypeAlias = tuple[int, int]

_SEAL_LENGTH: Final = 64  # hex digits of a sha256
_BLOCK: Final = 1 << 24  # bytes of rows read at a time


class Damaged(BayesControlError, ValueError):
    """A file of results is truncated, was altered, or was not written by this library."""


class Incomplete(BayesControlError, LookupError):
    """No source has some of the requested runs."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The key of the settings, the run of each row, and the provenance of the rows."""

    key: str
    runs: Span
    provenance: Provenance | None = None
    written_at: str = ""
    format: int = 1


class SealedFile:
    """A file whose seal was verified."""

    def __init__(self, path: Path, header: Header, sha256: str) -> None:
        self.path, self.header, self.sha256 = path, header, sha256
        self.runs = range(*header.runs)

    def layout(self) -> Layout:
        """Return names, types and shapes of the columns, in order."""
        layout = {}
        with zipfile.ZipFile(self.path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    layout[name.removesuffix(".npy")] = self._read_npy_header(member)
        return layout

    def blocks(self, name: str) -> Iterator[tuple[range, AnyArray]]:
        """Yield the rows of a column with their runs, one block at a time."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as member:
                dtype, shape = self._read_npy_header(member)
                row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
                block_rows = max(1, _BLOCK // max(1, row_bytes))
                for first in range(0, len(self.runs), block_rows):
                    runs = self.runs[first : first + block_rows]
                    data = member.read(row_bytes * len(runs))
                    yield runs, np.ndarray((len(runs), *shape), dtype, data)
        except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise Damaged(f"{self.path} was changed while it was in use: {error}") from error

    def _read_npy_header(self, member: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of a row; the file position is then at the first row."""
        np.lib.format.read_magic(member)  # skip the magic number; the version is always 1.0
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(member)
        if dtype.hasobject or is_fortran or shape[:1] != (len(self.runs),):
            name, runs = str(member.name).removesuffix(".npy"), len(self.runs)
            raise Damaged(
                f"{self.path}: column {name!r} does not hold {runs} runs of plain values: its "
                f"shape is {shape}, its type {dtype}; repeat the command that wrote the file"
            )
        return dtype, shape[1:]


def write_sealed(path: Path, columns: Columns, header: Header) -> SealedFile:
    """Write the columns, the header and the seal atomically."""
    with writing_to(path.parent), atomic_write(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in columns.items():
                entry = zipfile.ZipInfo(f"{name}.npy")
                entry.create_system = 3  # Unix: the same bytes on every system
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
    bayescontrol.lab.columns.Damaged: ...py is truncated or was altered: its seal is broken
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


class RowsInMemory:
    """Rows in memory. `blocks` drops the column that it yields, to save memory.

    >>> rows = RowsInMemory(range(2), {"y": np.arange(2)})
    >>> [block.tolist() for _, block in rows.blocks("y")], list(rows.layout())
    ([[0, 1]], [])
    """

    def __init__(self, runs: range, columns: Columns) -> None:
        self.runs, self._columns = runs, dict(columns)

    def layout(self) -> Layout:
        """Return names, types and shapes of the columns that `blocks` has not dropped."""
        return layout_of(self._columns)

    def blocks(self, name: str) -> Iterator[tuple[range, AnyArray]]:
        """Yield all rows of a column and drop them."""
        yield self.runs, self._columns.pop(name)


def layout_of(columns: Columns) -> Layout:
    """Return the layout of stacked columns; the first axis is the run."""
    return {name: (array.dtype, array.shape[1:]) for name, array in columns.items()}


def assemble(
    experiment: str, wanted: range, sources: Sequence[RowsInMemory | SealedFile]
) -> Columns:
    """Return the columns of the wanted runs; where sources overlap, the last one is used.

    >>> late = RowsInMemory(range(2, 4), {"y": np.array([4, 9])})
    >>> early = RowsInMemory(range(3), {"y": np.array([0, 1, 4])})
    >>> assemble("squares", range(4), [late, early])["y"].tolist()
    [0, 1, 4, 9]
    """
    if gaps := set(wanted).difference(*(source.runs for source in sources)):
        raise Incomplete(f"{experiment}: {len(gaps)} runs are missing, first run {min(gaps)}")
    ordered = sorted(sources, key=lambda source: source.runs.start)
    layouts = [(source.runs.start, source.layout()) for source in ordered]
    for other in layouts[1:]:
        require_same(experiment, layouts[0], other)
    columns: dict[str, AnyArray] = {}
    for name, (_, shape) in layouts[0][1].items():
        widest = max((layout[name][0] for _, layout in layouts), key=lambda dtype: dtype.itemsize)
        column = np.empty((len(wanted), *shape), widest)
        for source in sources:
            for runs, block in source.blocks(name):
                first, end = max(runs.start, wanted.start), min(runs.stop, wanted.stop)
                if first < end:
                    rows = slice(first - wanted.start, end - wanted.start)
                    column[rows] = block[first - runs.start : end - runs.start]
        if column.dtype.kind in "US":
            width = max(1, int(np.char.str_len(column).max(initial=0)))
            column = column.astype(f"{column.dtype.kind}{width}")
        columns[name] = column
    return columns


def stack(name: str, runs: Sequence[int], replicas: Sequence[Columns]) -> Columns:
    """Stack the replicas of an experiment; raise if their columns differ.

    >>> stack("squares", range(2), [{"y": np.array(0)}, {"y": np.array(1)}])["y"].tolist()
    [0, 1]
    """
    layouts = [{key: (array.dtype, array.shape) for key, array in r.items()} for r in replicas]
    for i, layout in zip(runs, layouts, strict=True):
        require_same(name, (runs[0], layouts[0]), (i, layout))
    return {key: np.stack([replica[key] for replica in replicas]) for key in layouts[0]}


def require_same(name: str, first: tuple[int, Layout], second: tuple[int, Layout]) -> None:
    """Raise unless two runs have the same columns; strings may differ in length.

    >>> number, text = np.dtype(float), np.dtype("U3")
    >>> require_same("coin", (0, {"y": (number, ())}), (1, {"y": (text, ())}))
    Traceback (most recent call last):
    bayescontrol.lab.experiment.ExperimentFailed: coin: run 1 has columns {'y': ('text', ())}, ...
    """
    (run, layout), (other_run, other_layout) = ((i, comparable(x)) for i, x in (first, second))
    if layout != other_layout:
        raise ExperimentFailed(
            f"{name}: run {other_run} has columns {other_layout}, run {run} has {layout}; every "
            "run must return the same names, types and shapes"
        )


def comparable(layout: Layout) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return types and shapes as text and tuples, with one type for strings of any length."""
    kinds = {"U": "text", "S": "bytes"}
    return {name: (kinds.get(t.kind, str(t)), shape) for name, (t, shape) in layout.items()}


def ranges_of(runs: Iterable[int]) -> list[range]:
    """Split run numbers into ranges without gaps.

    >>> ranges_of([0, 1, 2, 5, 20, 21])
    [range(0, 3), range(5, 6), range(20, 22)]
    """
    numbers = np.array(sorted(runs), np.int64)
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [range(int(group[0]), int(group[-1]) + 1) for group in groups if group.size]
