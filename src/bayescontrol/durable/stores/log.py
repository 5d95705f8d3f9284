"""The interface of every store of logs, and the snapshots beside a log.

    log        rows 1, 2, 3, …, without gaps; appended all or none, never changed
    compact    replaces rows 2 … seq by a row with number seq: the log then is 1, seq, seq + 1, …
    append     durable when it returns; raises `HeadMoved` unless the first row is head + 1
    snapshot   the agent's state after rows 1 … seq, as named arrays with a BLAKE2b checksum

A store handles rows and bytes. The meaning of the rows and their checksums is in
`durable.events`. A snapshot is a cache: if it is missing, damaged or of another model, the log is
folded instead.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, LiteralString, NamedTuple, Protocol, Self, TypeAlias

import msgspec
import numpy as np

from bayescontrol import errors
from bayescontrol._arrays import Arrays
from bayescontrol._support.files import os_errors_as

#: Rows to read at once.
CHUNK: Final = 10_000
#: The number of newest snapshots that are never deleted.
_NEWEST: Final = 2
#: The maximum number of older snapshots, and the maximum of their total size in bytes.
MAX_OLDER: Final = 128
_MAX_OLDER_BYTES: Final = 2**26
#: The mode of files with events: only their owner can read and write them.
PRIVATE: Final = 0o600
#: The maximum length of the name of a log.
_MAX_LENGTH: Final = 200
#: The module and the class of each URL scheme. They need an extra, so they are imported late.
_STORES: Final = {
    "sqlite": ("bayescontrol.durable.stores.sqlite", "SqliteStore"),
    "postgresql": ("bayescontrol.durable.stores.postgres", "PostgresStore"),
    "postgres": ("bayescontrol.durable.stores.postgres", "PostgresStore"),
}


#: Queries of one log, which a store completes with its own names and parameters. `Log._select` says
#: what they return.
QUERIES: Final[Mapping[str, LiteralString]] = {
    "rows": "{select_rows} AND seq BETWEEN {first} AND {second} ORDER BY seq LIMIT {chunk}",
    "amendments": (
        "{select_rows} AND seq BETWEEN {first} AND {second} "
        "AND kind IN ('corrected', 'withdrawn') ORDER BY seq"
    ),
    "n": "{select_rows} AND n = {first}",
    "key": "{select_rows} AND key = {first}",
    "session": "{select_rows} AND session = {first} ORDER BY seq DESC LIMIT 1",
    "second": "{select_rows} AND seq > 1 ORDER BY seq LIMIT 1",
    "sizes": (
        "SELECT kind, count(*), sum(length(payload)) FROM {events} WHERE log = {log} "
        "AND seq BETWEEN {first} AND {second} GROUP BY kind"
    ),
    "snapshots": "SELECT seq FROM {snapshots} WHERE log = {log} ORDER BY seq DESC",
    "snapshot": (
        "SELECT seq, state, checksum FROM {snapshots} WHERE log = {log} AND seq = {first}"
    ),
}


class Row(NamedTuple):
    """One event as a store keeps it."""

    seq: int  #: its position in the log, from 1
    kind: str  #: "created", "decided", "observed", …, see `durable.events`
    n: int | None  #: the seq of the event that this one answers or amends
    key: str | None  #: the caller's idempotency key
    session: str | None  #: for a decision: the session that it belongs to
    payload: bytes
    checksum: int  #: 0 … 2³² - 1


class _Array(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


_decode = msgspec.msgpack.Decoder(dict[str, _Array]).decode


class Snapshot(NamedTuple):
    """The state after the rows up to and including `seq`, as bytes."""

    seq: int
    state: bytes
    checksum: bytes

    @classmethod
    def of(cls, seq: int, arrays: Arrays) -> Self:
        """Encode named arrays as the snapshot after event `seq`."""
        encoded = {
            name: _Array(v.dtype.str, v.shape, np.ascontiguousarray(v).tobytes())
            for name, v in sorted(arrays.items())
        }
        state = msgspec.msgpack.encode(encoded)
        return cls(seq, state, _digest(seq, state))

    def arrays(self) -> Arrays:
        """Decode the arrays; raise `IncompatibleState` if the snapshot is damaged."""
        if _digest(self.seq, self.state) != self.checksum:
            raise errors.IncompatibleState("the checksum of the snapshot is wrong")
        try:
            return {
                name: np.frombuffer(v.data, np.dtype(v.dtype)).reshape(v.shape).copy()
                for name, v in _decode(self.state).items()
            }
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            raise errors.IncompatibleState(f"the snapshot cannot be read: {error}") from None


def _digest(seq: int, state: bytes) -> bytes:
    """Return the checksum of a snapshot, which also depends on its seq."""
    return blake2b(state, digest_size=16, key=str(seq).encode()).digest()


# -- checks and errors that all stores share -----------------------------------------------------


def redacted(url: str) -> str:
    """Return an invalid address without what may be a user and a password, for messages.

    >>> redacted("postgres://shop:secret@db/shop"), redacted("pg:a:b@c@db?password=secret")
    ('postgres://***@db/shop', 'pg:***@db?password=***')
    """
    shown = re.sub(r"(password=)('[^']*'|[^&\s]*)", r"\1***", url, flags=re.IGNORECASE)
    return re.sub(r"^(\w+:/*)?.*@", r"\1***@", shown, flags=re.DOTALL)


def require_name(name: object) -> str:
    """Return the name of a log; raise `UnknownStore` if it is invalid."""
    if isinstance(name, str) and 1 <= len(name) <= _MAX_LENGTH and name.isprintable():
        return name
    raise errors.UnknownStore(
        f"name={name!r}: the name of a log has 1 to {_MAX_LENGTH} printable characters"
    )


def require_readable(source: str, what: Literal["format", "layout"], found: int, last: int) -> None:
    """Raise `NewerFormat` if `source` has a later format or layout than the last one we know."""
    if found > last:
        raise errors.NewerFormat(
            f"{source} has {what} {found}, this release reads {what}s up to {last}: install a "
            "later release"
        )


def damaged_error(log: str | None, why: str) -> errors.DamagedLog:
    """Return the error for a damaged log; `log` is its name, or None if that is not known."""
    where = "" if log is None else f"log {log!r}: "
    return errors.DamagedLog(f"{where}{why}: the log is damaged; restore a backup")


def exists_error(name: str, url: str) -> errors.AgentExists:
    """Return the error for a new log whose name is taken."""
    return errors.AgentExists(
        f"{url} already has an agent {name!r}: delete it or choose another name; nothing was "
        "changed"
    )


def unknown_error(name: str, url: str) -> errors.UnknownStore:
    """Return the error for a log that does not exist."""
    return errors.UnknownStore(f"{url} has no agent {name!r}; `bayescontrol store list` lists all")


def require_usable(what: str, *, closed: bool, process: int | None = None) -> None:
    """Raise `StoreFailed` if `what` is closed, `StoreBusy` if a parent process opened it.

    After a fork, locks may belong to threads that the child does not have.
    """
    if closed:
        raise errors.StoreFailed(f"{what} is closed: open it again")
    if process not in (None, os.getpid()):
        raise errors.StoreBusy(
            f"{what} was opened before this process was forked: open it again here"
        )


def require_new_file(path: Path) -> None:
    """Raise `StoreFailed` unless a backup can be written to this path."""
    if path.exists() or path.is_symlink():
        raise errors.StoreFailed(f"{path} exists already: choose a new file for the backup")
    if not path.parent.is_dir():
        raise errors.StoreFailed(f"{path}: there is no folder {path.parent}: create it first")


def os_errors(
    path: str, advice: str = "choose a file in a folder that is writable"
) -> AbstractContextManager[None]:
    """Raise `StoreFailed` in place of errors of the operating system."""
    return os_errors_as(errors.StoreFailed, path, advice)


# -- stores and logs -------------------------------------------------------------------------------


class Log(ABC):
    """The log of one agent; the base class of the logs of all stores.

    Its methods may be called from any thread. After `close` they raise `StoreFailed`.

    >>> log: Log = open_store("sqlite:///:memory:").log("checkout")
    >>> log.append([Row(1, "created", None, None, None, b"{}", 0)])
    >>> log.head(), [row.kind for row in log.read()]
    (1, ['created'])
    """

    def __init__(self, name: str) -> None:
        #: The name of the agent.
        self.name = require_name(name)
        #: The events 2 … sealed are compacted; 0 if none are. As of the last call of `head`.
        self.sealed = 0
        self._closed = False

    @abstractmethod
    def head(self) -> int:
        """Return the seq of the last row on disk, 0 for an empty log."""

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None:
        """Append all rows or none; the rows are on disk when the call returns.

        Raises `HeadMoved` unless rows[0].seq is head + 1; ValueError if the rows have gaps;
        `ConflictingFeedback` if a decision already has an observation; `ConflictingKey` if a key
        already has a decision. After `StoreFailed` the rows may or may not be stored; after any
        other error, `DiskFull` and `StoreBusy` included, they are not.
        """

    def turn(self) -> AbstractContextManager[None]:
        """Return a context in which to read, decide and append.

        By default it does nothing. In a shared store, processes whose appends conflict take turns
        in it, so that none computes a decision in vain. `append` is also correct outside of it.
        """
        return nullcontext()

    @abstractmethod
    def save_snapshot(self, snapshot: Snapshot, spacing: int = 10_000) -> None:
        """Store a snapshot durably and delete the snapshots that are no longer needed.

        `snapshots_to_delete` chooses them; `spacing` is in events.
        """

    @abstractmethod
    def _select(self, query: str, *values: Any) -> Any:
        """Return the result of one of `QUERIES`, for values that replace `first` and `second`.

        These are, by their first and last seq: the first `CHUNK` rows, all amendments, or the
        number of rows and their bytes by kind; rows by n or by key; the last row of a session; the
        row after event 1; the seqs of the snapshots; or one snapshot by seq.
        """

    @abstractmethod
    def compact(self, row: Row, head: int) -> None:
        """Replace the rows 2 … row.seq by `row`, durably and all or none; delete older snapshots.

        Raises `HeadMoved` unless the last row is `head`. `durable.compaction` computes the row.
        """

    @abstractmethod
    def vacuum(self) -> None:
        """Erase what deleted rows have left in the file, if a server does not do that itself."""

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        """Iterate over the rows start … stop, both included; without `stop`, to the head.

        Reads lazily, in chunks, so that writers wait only briefly.
        """
        self._require_open()
        start, last = max(start, 1), self.head() if stop is None else stop
        while start <= last:
            rows = self._select("rows", start, last)
            yield from map(Row._make, rows)
            if len(rows) < CHUNK:
                return
            start = rows[-1][0] + 1

    def amendments(self, start: int, stop: int) -> list[Row]:
        """Return the rows start … stop that correct or withdraw an observation."""
        self._require_open()
        return [Row._make(row) for row in self._select("amendments", start, stop)]

    def find_answer(self, n: int) -> Row | None:
        """Return the row that answers or amends event n, if there is one."""
        return self._single("n", n, self._select("n", n))

    def find_key(self, key: str) -> Row | None:
        """Return the row with this key, if there is one."""
        return self._single("key", key, self._select("key", key))

    def find_session(self, session: str) -> Row | None:
        """Return the last decision of a session, if there is one."""
        return self._single("session", session, self._select("session", session))

    def find_sealed(self) -> Row | None:
        """Return the row that has replaced compacted rows, if there is one."""
        rows = [Row._make(row) for row in self._select("second")]
        return rows[0] if rows and rows[0].kind == "compacted" else None

    def sizes(self, start: int = 1, stop: int | None = None) -> dict[str, tuple[int, int]]:
        """Return for each kind among the rows start … stop their number and bytes of payload."""
        found = self._select("sizes", start, self.head() if stop is None else stop)
        return {kind: (int(n), int(size)) for kind, n, size in found}

    def _single(self, column: str, value: Any, found: Sequence[Sequence[Any]]) -> Row | None:
        """Return the row that a lookup by key or n found, or None if it found nothing.

        Raise `DamagedLog` if the row has another key or n than `value`, or if there are two rows:
        then the index of the store is damaged.
        """
        rows = [Row._make(row) for row in found]
        for row in rows:
            if getattr(row, column) != value or len(rows) > 1:
                why = f"the index leads from {column}={value!r} to event {row.seq}, which has "
                raise damaged_error(self.name, f"{why}another {column}, or is not the only one")
        return rows[0] if rows else None

    def _duplicate_error(self, column: str) -> errors.BayesControlError:
        """Return the error for a key with two decisions, or a decision n with two observations."""
        if column == "key":
            return errors.ConflictingKey(f"log {self.name!r}: this key already has a decision")
        return errors.ConflictingFeedback(f"log {self.name!r}: the decision is already observed")

    def snapshots(self, until: int | None = None) -> Iterator[Snapshot]:
        """Iterate over the snapshots, newest first, at or before event `until`.

        The list of snapshots is read immediately, each state when the iterator reaches it.
        """
        found = [seq for (seq,) in self._select("snapshots") if seq > self.sealed]
        rows = (self._select("snapshot", seq) for seq in found if until is None or seq <= until)
        return (Snapshot._make(row[0]) for row in rows if row)  # no row: deleted meanwhile

    def close(self) -> None:
        """Release the log. Idempotent."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            require_usable(f"log {self.name!r}", closed=True)

    def _require_appendable(self, rows: Sequence[Row]) -> None:
        """Raise ValueError unless there is at least one row and the numbers are n, n + 1, …"""
        self._require_open()
        if not rows or any(row.seq != rows[0].seq + i for i, row in enumerate(rows)):
            seqs = [row.seq for row in rows]
            raise ValueError(f"rows {seqs} are not consecutive: expected n, n + 1, …")


#: Returns the rows of a new log, from the first one.
RowSource: TypeAlias = Callable[[], Iterable[Row]]


class LogStore(Protocol):
    """Logs by name: a SQLite file or a PostgreSQL schema.

    >>> store: LogStore = open_store("sqlite:///:memory:")
    >>> store.names(), store.shared
    ([], False)
    """

    @property
    def url(self) -> str:
        """The address, without a password."""

    @property
    def shared(self) -> bool:
        """Whether other processes may append to the same log."""

    def names(self) -> list[str]:
        """Return the names of the logs with at least one row, sorted."""

    def log(self, name: str, /) -> Log:
        """Open the log with this name; a new log is empty.

        Raises `StoreBusy` if the log is already open, unless the store is shared.
        """

    def import_logs(self, logs: Mapping[str, RowSource], /) -> None:
        """Store new logs, all or none. A source is called again if a connection is lost.

        Raises `AgentExists` if there is a log of that name.
        """

    def delete(self, name: str, /) -> None:
        """Delete a log and its snapshots, durably; raise `UnknownStore` if it does not exist.

        Raises `StoreBusy` if the log is open, unless the store is shared.
        """

    def backup(self, path: str | PathLike[str], /) -> None:
        """Copy all logs to a new SQLite file, consistently, while agents keep running."""

    def close(self) -> None:
        """Close the store and its logs. Idempotent."""


def open_store(url: str, *, durable: bool = True, create: bool = True) -> LogStore:
    """Open the store at this address: "sqlite:///shop.db" or "postgresql://…".

    Three slashes begin a relative path, four an absolute one. With `durable=False` writes do not
    wait for the disk: a power cut may lose the last events. With `create=False`, raise
    `UnknownStore` if there is no store at this address.

    >>> open_store("mysql://localhost/shop")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: url='mysql://localhost/shop': write sqlite:///file.db ...
    """
    scheme = str(url).partition(":")[0]
    if scheme not in _STORES:
        raise errors.UnknownStore(
            f"url={redacted(str(url))!r}: write sqlite:///file.db (four slashes for an absolute "
            "path) or postgresql://user@host/database"
        )
    module, name = _STORES[scheme]
    store: LogStore = getattr(import_module(module), name)(url, durable=durable, create=create)
    return store


# -- snapshots -----------------------------------------------------------------------------------


class DamagedSnapshot(UserWarning):
    """A snapshot was skipped; the log is folded instead, which takes longer.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DamagedSnapshot)     # fail instead of folding
    """


class SnapshotNotKept(UserWarning):
    """A snapshot could not be written. No event is lost; the next opening takes longer.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SnapshotNotKept)
    """


def snapshots_to_delete(seqs: Iterable[int], spacing: int, size: int) -> list[int]:
    """Return the snapshots to delete, of those after the events `seqs`.

    The two newest are always kept, plus at most m older ones: m = 128, or fewer if m snapshots of
    `size` bytes exceed 64 MiB. The gap of a snapshot is the number of events between its two
    neighbours; the oldest has the start of the log as a neighbour. Repeatedly delete the older
    snapshot with the smallest gap, while that gap is at most `spacing` events or more than m older
    snapshots remain. In a log of n events the gaps sum to at most 2 n, so no deletion leaves a gap
    of more than max(spacing, 2 n / m) events.

    >>> snapshots_to_delete([100, 200, 280, 300, 310], 100, 1_000)
    [280]
    """
    remaining, deleted = sorted(seqs), []  # oldest first
    max_kept = _NEWEST + min(MAX_OLDER, _MAX_OLDER_BYTES // max(size, 1))

    def gap(i: int) -> int:
        return remaining[i + 1] - (remaining[i - 1] if i else 0)

    while len(remaining) > _NEWEST:
        i = min(range(len(remaining) - _NEWEST), key=gap)
        if gap(i) > spacing and len(remaining) <= max_kept:
            break
        deleted.append(remaining.pop(i))
    return deleted
