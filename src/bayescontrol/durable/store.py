"""Where logs are kept: the interface of every store.

    a log      rows 1, 2, 3, …, dense; appended whole or not at all, never changed
    append     on disk when it returns; refused (`HeadMoved`) if the first row is not head + 1
    snapshot   the fold of rows 1 … seq, a cache: it may be missing, old or damaged

A store knows rows and bytes. What they mean, and whether their checksums hold, is the business of
whoever reads them (`durable.events`), so that every store is checked alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol

from bayescontrol.errors import (
    ConflictingFeedback,
    ConflictingKey,
    DamagedLog,
    StoreFailed,
    UnknownStore,
)

#: Rows that are read at once.
CHUNK: Final = 10_000
#: The newest snapshots of a log, which stay whatever their distance.
KEPT: Final = 2
#: The most older snapshots of a log, evenly spaced, and the most bytes that they may take.
SPACED: Final = 128
_BYTES: Final = 2**26


class Row(NamedTuple):
    """One event as a store keeps it.

    >>> Row(2, "decided", None, "visit-81", b"{}", 0).seq
    2
    """

    seq: int  #: its place in the log, from 1
    kind: str  #: "created", "decided" or "observed"
    n: int | None  #: of an observation: the seq of the decision that it is about
    key: str | None  #: of a decision: the key that it was asked for under
    payload: bytes
    checksum: int  #: 0 … 2³² - 1


class Snapshot(NamedTuple):
    """The fold of the rows up to and including `seq`, as bytes.

    >>> Snapshot(12, b"state", b"digest").seq
    12
    """

    seq: int
    state: bytes
    checksum: bytes


class Log(Protocol):
    """One agent's log. Its methods may be called from any thread.

    >>> log: Log = open_store("sqlite:///:memory:").log("checkout")
    >>> log.append([Row(1, "created", None, None, b"{}", 0)])
    >>> log.head(), [row.kind for row in log.read()]
    (1, ['created'])
    """

    @property
    def name(self) -> str:
        """The agent's name."""
        ...

    def head(self) -> int:
        """The seq of the last row on disk; 0 for an empty log. Of a shared store: right now."""
        ...

    def append(self, rows: Sequence[Row], /) -> None:
        """All rows, atomically; durable when it returns.

        rows[0].seq must be head + 1, else `HeadMoved`, and they must be dense (ValueError). A
        second observation of one n is a `ConflictingFeedback`, a second decision under one key a
        `ConflictingKey`. On any error nothing was written, save `StoreFailed`, where that is
        unknown (`DiskFull` and `StoreBusy`: nothing was written).
        """
        ...

    def turn(self) -> AbstractContextManager[None]:
        """To read, decide and append in: of a crowded shared log, one process after the other.

        It saves work and is no condition: `append` checks the head all the same.
        """
        ...

    def read(self, start: int = 1, stop: int | None = None, /) -> Iterator[Row]:
        """The rows start … stop in order, both included; to the head of now without `stop`.

        Lazily, and without being in the way of writers.
        """
        ...

    def observation(self, n: int, /) -> Row | None:
        """The row that observes decision n."""
        ...

    def keyed(self, key: str, /) -> Row | None:
        """The decision that was asked for under this key."""
        ...

    def keep(self, snapshot: Snapshot, spacing: int = 10_000, /) -> None:
        """Put a snapshot beside the log, durably, and drop those that are `superfluous`."""
        ...

    def snapshots(self, until: int | None = None, /) -> Iterator[Snapshot]:
        """The snapshots, newest first; with `until`, of this event or an earlier one.

        Which there are is found out at once; each is read when it is asked for.
        """
        ...

    def close(self) -> None:
        """Give the log back. Once closed, every other method raises `StoreFailed`."""
        ...


class Store(Protocol):
    """Logs by name.

    >>> store: Store = open_store("sqlite:///:memory:")
    >>> store.names(), store.shared
    ([], False)
    """

    @property
    def url(self) -> str:
        """Its address, without a password."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes may append to the same log: then a head may move."""
        ...

    def names(self) -> list[str]:
        """The logs that have at least one row, in alphabetical order."""
        ...

    def log(self, name: str, /) -> Log:
        """The log of this name, empty if there is none yet.

        Where the store is not shared, a log that is open already is `StoreBusy`.
        """
        ...

    def close(self) -> None:
        """Give the store back; its logs are closed with it. Again: nothing."""
        ...


#: The module of each kind: it has a function open_store(url, *, durable) -> Store.
_KINDS: Final = {
    "sqlite": "bayescontrol.durable.sqlite",
    "postgresql": "bayescontrol.durable.postgres",
    "postgres": "bayescontrol.durable.postgres",
}
_LONGEST_NAME: Final = 200


def open_store(url: str, *, durable: bool = True) -> Store:
    """The store at this address: "sqlite:///shop.db" or "postgresql://…".

    Three slashes and a path are relative to the working directory, four are absolute.
    `durable=False` does not wait for the disk: a power cut may take the last events with it.

    >>> open_store("mysql://localhost/shop")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: url='mysql://localhost/shop': write sqlite:///file.db ...
    """
    given: Any = url
    kind, colon, _ = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not colon or kind not in _KINDS:
        raise UnknownStore(
            f"url={url!r}: write sqlite:///file.db (four slashes for an absolute path) or "
            "postgresql://user@host/database"
        )
    store: Store = import_module(_KINDS[kind]).open_store(url, durable=durable)
    return store


def require_name(name: str) -> str:
    """The name, if a log can be called so.

    >>> require_name("checkout")
    'checkout'
    >>> require_name("")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: name='': a log is called by 1 to 200 printable characters
    """
    given: Any = name
    if not (isinstance(given, str) and 1 <= len(given) <= _LONGEST_NAME and given.isprintable()):
        raise UnknownStore(
            f"name={name!r}: a log is called by 1 to {_LONGEST_NAME} printable characters"
        )
    return name


# -- what every store says alike -----------------------------------------------------------------


def require_dense(rows: Sequence[Row]) -> None:
    """ValueError unless the rows are n, n + 1, …, and at least one.

    >>> require_dense([Row(2, "decided", None, None, b"{}", 0)])
    >>> require_dense([])
    Traceback (most recent call last):
    ValueError: rows [] are not dense: give n, n + 1, …
    """
    if not rows or any(row.seq != rows[0].seq + i for i, row in enumerate(rows)):
        raise ValueError(f"rows {[row.seq for row in rows]} are not dense: give n, n + 1, …")


def doubled(name: str, column: Literal["key", "n"]) -> ConflictingKey | ConflictingFeedback:
    """What is there once in a log has come again.

    >>> doubled("checkout", "n")
    ConflictingFeedback("log 'checkout': a decision has one observation")
    """
    if column == "key":
        return ConflictingKey(f"log {name!r}: a key stands for one decision")
    return ConflictingFeedback(f"log {name!r}: a decision has one observation")


def looked_up(
    name: str, column: Literal["key", "n"], value: str | int, found: Sequence[Sequence[Any]]
) -> Row | None:
    """Return the row that a lookup by key or n found, or None.

    `DamagedLog` if it is not the row that was asked for: then the index is damaged.

    >>> looked_up("checkout", "n", 2, [(5, "observed", 3, None, b"{}", 0)])
    Traceback (most recent call last):
    bayescontrol.errors.DamagedLog: log 'checkout': the index leads from n=2 to event 5, which ...
    """
    rows = [Row._make(row) for row in found]
    for row in rows:
        if getattr(row, column) != value or len(rows) > 1:
            raise DamagedLog(
                f"log {name!r}: the index leads from {column}={value!r} to event {row.seq}, which "
                "is the wrong one, or not the only one: the store is damaged; restore a backup"
            )
    return rows[0] if rows else None


def superfluous(seqs: Iterable[int], spacing: int, size: int) -> list[int]:
    """The snapshots to drop, so that the others are few and any event is near to one.

    `size` is the size of a snapshot in bytes. The newest two stay, and at most m older ones:
    m = 128, or fewer if those would take more than 64 MiB. An older one is dropped if the gap that
    it leaves is at most `spacing`; while there are more than m, the one that leaves the smallest
    gap is dropped. In a log of n events these gaps sum to at most 2 n, so that dropping leaves no
    gap of more than max(spacing, 2 n / m) events.

    >>> superfluous([100, 200, 280, 300, 310], 100, 1_000)
    [280]
    """
    rest, dropped = sorted(seqs), []
    most = KEPT + min(SPACED, _BYTES // max(size, 1))

    def gap(i: int) -> int:
        return rest[i + 1] - (rest[i - 1] if i else 0)

    while len(rest) > KEPT:
        i = min(range(len(rest) - KEPT), key=gap)
        if gap(i) > spacing and len(rest) <= most:
            break
        dropped.append(rest.pop(i))
    return dropped


def closed(what: str) -> StoreFailed:
    """It was given back, and is used all the same.

    >>> closed("shop.db")
    StoreFailed('shop.db is closed: open it again')
    """
    return StoreFailed(f"{what} is closed: open it again")
