"""Read every event and snapshot of a store and list those that are damaged.

    SQLite        a copy of the file and of its write-ahead log is opened and read
    PostgreSQL    the tables are read in place

Nothing in the store is changed or locked, so its writer may run meanwhile. A copy is consistent if
the write-ahead log was not restarted while it was made: whatever a checkpoint changed in the file
in the meantime is in that log too.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

from bayescontrol.durable.events import decode_row
from bayescontrol.durable.log import CHUNK, Log, LogStore, Row, damaged_error, open_store, os_errors
from bayescontrol.durable.wal import find_damage
from bayescontrol.errors import DamagedLog, StoreBusy, StoreFailed, UnknownStore

#: How often to copy a file whose write-ahead log is restarted during the copy.
_ATTEMPTS: Final = 20


class Damage(NamedTuple):
    """A damaged event; None and None if the store cannot be opened."""

    agent: str | None
    event: int | None
    problem: str


def verify_store(
    url: str, on_progress: Callable[[int, int], None]
) -> tuple[dict[str, int], list[Damage]]:
    """Return the number of events of each agent, and the damaged ones.

    Calls on_progress(events read, all events) now and then.
    """
    heads, damage, read = dict[str, int](), list[Damage](), 0
    try:
        with _open_for_reading(url) as store:
            logs = [store.log(name) for name in store.names()]
            heads.update((log.name, log.head()) for log in logs)
            for log in logs:
                for first in range(1, heads[log.name] + 1, CHUNK):
                    last = min(first + CHUNK - 1, heads[log.name])
                    damage += _damaged_events(log, first, last)
                    read += last - first + 1
                    on_progress(read, sum(heads.values()))
    except DamagedLog as error:
        damage.append(Damage(None, None, str(error)))
    return heads, damage


def _damaged_events(log: Log, first: int, last: int) -> Iterator[Damage]:
    """Iterate over the events that are missing or damaged."""
    rows = {row.seq: row for row in _rows(log, first, last)}
    for seq in range(first, last + 1):
        try:
            if seq not in rows:
                raise damaged_error(log.name, f"event {seq} is missing")
            decode_row(rows[seq], log.name)
        except DamagedLog as error:
            yield Damage(log.name, seq, str(error))


def _rows(log: Log, first: int, last: int) -> list[Row]:
    """Return the rows; a row that cannot be read has an impossible checksum."""
    try:
        return list(log.read(first, last))
    except DamagedLog:
        if first == last:
            return [Row(first, "", None, None, b"", -1)]
        middle = (first + last) // 2
        return _rows(log, first, middle) + _rows(log, middle + 1, last)


@contextmanager
def _open_for_reading(url: str) -> Iterator[LogStore]:
    """Open a PostgreSQL store, or a copy of a SQLite file; never create one."""
    if url.startswith(("postgresql:", "postgres:")):
        from bayescontrol.durable.postgres import PostgresStore

        with closing(PostgresStore(url, durable=False, create=False)) as store:
            yield store
        return
    if not url.startswith("sqlite:///"):  # do not repeat the address: it may contain a password
        raise UnknownStore("the address of a store begins with sqlite:/// or postgresql://")
    path = Path(url.removeprefix("sqlite:///"))
    if not path.is_file():
        raise StoreFailed(f"there is no file {path}: an absolute path has four slashes")
    with TemporaryDirectory(prefix="bayescontrol-") as folder:
        copy = Path(folder) / path.name
        with os_errors(str(path), "it is copied to the folder for temporary files, see TMPDIR"):
            _copy(path, copy)
        try:
            with closing(open_store(f"sqlite:///{copy}", durable=False)) as store:
                yield store
        except DamagedLog as error:
            raise DamagedLog(str(error).replace(str(copy), str(path))) from None


def _copy(path: Path, copy: Path) -> None:
    """Copy a file and its write-ahead log as they were at one moment."""
    wal, last_damage = Path(f"{path}-wal"), None
    for _ in range(_ATTEMPTS):
        generation = _generation(path, wal)
        shutil.copyfile(path, copy)
        Path(f"{copy}-wal").write_bytes(wal.read_bytes() if wal.exists() else b"")
        damage = find_damage(copy)
        # A frame that was written during the copy looks broken, but not twice.
        if _generation(path, wal) == generation and damage in (None, last_damage):
            return
        last_damage = damage
    raise StoreBusy(f"{path} is written too fast to be copied: retry when there are fewer requests")


def _generation(path: Path, wal: Path) -> tuple[bytes, int]:
    """Return what changes when the write-ahead log is restarted, or the file without a log."""
    header = np.fromfile(wal, np.uint8, 32).tobytes() if wal.exists() else b""
    return header, 0 if header else path.stat().st_mtime_ns
