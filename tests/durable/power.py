"""A simulated disk that loses power: flushed data stays, other writes may be lost or torn.

    journal      every write, flush, truncation and deletion that SQLite requests, in order
    after k      per file: everything flushed, plus any subset of the later writes, each torn into
                 sectors of 512 bytes of which any subset arrived. A deleted file may reappear
                 unless its folder was flushed since

SQLite flushes the folder with the first flush of a new journal or write-ahead log.
"""

import random
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTOR = 512


class Write(NamedTuple):
    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: str
    size: int


class Sync(NamedTuple):
    file: str


class Delete(NamedTuple):
    file: str
    synced: bool


class SyncFolder(NamedTuple):
    pass


class Acknowledged(NamedTuple):
    what: tuple[Any, ...]


class Recorder(apsw.VFS):
    """Pass every call on to the real disk, and record it."""

    def __init__(self, name: str = "recorder") -> None:
        self.journal: list[Any] = []
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> "RecordedFile":
        return RecordedFile(self.journal, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        self.journal.append(Delete(Path(name).name, syncdir))


class RecordedFile(apsw.VFSFile):
    def __init__(self, journal: list[Any], name: Any, flags: list[int]) -> None:
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._journal, self._name = journal, Path(text).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._journal.append(Write(self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._journal.append(Truncate(self._name, size))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._journal.append(Sync(self._name))


def apply(content: bytearray, op: Any) -> None:
    if isinstance(op, Truncate):
        del content[op.size :]
        return
    end = op.offset + len(op.data)
    content.extend(b"\0" * max(0, end - len(content)))
    content[op.offset : end] = op.data


def torn(op: Any, rng: random.Random) -> list[Any]:
    """Return the random part of an unflushed operation that reached the disk."""
    if rng.random() < 0.4:
        return []
    if isinstance(op, Truncate) or rng.random() < 0.4:
        return [op]
    chunks = range(0, len(op.data), SECTOR)
    return [
        Write(op.file, op.offset + at, op.data[at : at + SECTOR])
        for at in chunks
        if rng.random() < 0.5
    ]


def disk_after(journal: list[Any], rng: random.Random) -> dict[str, bytes]:
    """Return the files after power has returned."""
    flushed: dict[str, bytearray] = {}
    pending: dict[str, list[Any]] = {}
    may_reappear: dict[str, bytearray] = {}
    for op in journal:
        if isinstance(op, Write | Truncate):
            pending.setdefault(op.file, []).append(op)
        elif isinstance(op, Sync):
            if op.file not in flushed and op.file.endswith(("-journal", "-wal")):
                may_reappear.clear()
            content = flushed.setdefault(op.file, bytearray())
            for waiting in pending.pop(op.file, []):
                apply(content, waiting)
        elif isinstance(op, Delete):
            if op.file in flushed:
                may_reappear[op.file] = flushed.pop(op.file)
            pending.pop(op.file, None)
            if op.synced:
                may_reappear.clear()
        elif isinstance(op, SyncFolder):
            may_reappear.clear()
    for name, content in may_reappear.items():
        if rng.random() < 0.5:
            flushed.setdefault(name, content)
    for name, ops in pending.items():
        content = flushed.get(name) or bytearray()
        for op in ops:
            for piece in torn(op, rng):
                apply(content, piece)
        if content:
            flushed[name] = content
    return {name: bytes(content) for name, content in flushed.items()}
