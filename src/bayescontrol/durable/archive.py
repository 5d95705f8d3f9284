"""List the agents of a store, and bring logs from files and backups into one.

    list_agents(store)                  one `AgentSummary` for each log
    import_log(store, file, name)       an exported file becomes a log with the same rows
    restore_logs(store, backup)         all logs of a backup

An import checks everything first, and then stores all rows in one transaction: if it is
interrupted, the store has no new agent.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from os import PathLike
from typing import Any, TypeVar

import msgspec

from bayescontrol.durable.compaction import ANSWERS
from bayescontrol.durable.events import Compacted, Event, encode_row, read_created, read_events
from bayescontrol.durable.models import KINDS
from bayescontrol.durable.replay import read_history, read_log, replay
from bayescontrol.durable.stores.log import (
    Log,
    LogStore,
    Row,
    RowSource,
    exists_error,
    require_name,
)

T = TypeVar("T")


class AgentSummary(msgspec.Struct, frozen=True):
    """What a log contains.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", BernoulliBandit(["red"])) as agent:
    ...     _ = agent.act(), agent.observe(agent.act(), 1)
    >>> (shop,) = list_agents(store)
    >>> shop.name, shop.model, shop.events, shop.decisions, shop.observations, shop.open
    ('shop', 'bernoulli-bandit', 4, 2, 1, 1)
    """

    name: str
    model: str
    version: int
    #: The number of the last event.
    events: int
    #: Decisions and observations; those that were compacted are included.
    decisions: int
    observations: int
    #: Decisions that can be observed and are not.
    open: int
    #: The times of the first and the last event, in seconds since 1970.
    first: float
    last: float
    #: The events 2 … compacted were replaced by a sealed snapshot; 0 if none were.
    compacted: int
    #: The size of the events, without indexes and snapshots.
    bytes: int


def list_agents(store: LogStore) -> Iterator[AgentSummary]:
    """Iterate over summaries of all agents of a store, by name.

    >>> from bayescontrol.durable import open_store
    >>> list(list_agents(open_store("sqlite:///:memory:")))
    []
    """
    for name in store.names():
        with closing(store.log(name)) as log:
            yield _summary(log)


def _summary(log: Log) -> AgentSummary:
    """Return the summary of a log that is not empty."""
    created, head, sizes = read_created(log), log.head(), log.sizes()
    (last,) = read_events(log, head, head)
    decided = decisions = sizes.get("decided", (0, 0))[0]
    answers = observations = sum(sizes.get(kind, (0, 0))[0] for kind in ANSWERS)
    first = next(read_events(log, 2, head), None) if log.sealed else None
    if isinstance(first, Compacted):
        decisions, observations = decided + first.decisions, answers + first.observations
        decided += len(first.pending)
    return AgentSummary(
        log.name, created.model, created.version, head, decisions, observations, decided - answers,
        created.time, last.time, log.sealed, sum(size for _, size in sizes.values()),
    )  # fmt: skip


def import_log(
    store: LogStore,
    path: str | PathLike[str],
    name: str,
    *,
    draw_again: bool = True,
    on_event: Callable[[Event], Any] = lambda _: None,
) -> int:
    """Store an exported file as a new log, and return the number of its last event.

    The history is checked before anything is stored. If the model is built in, all decisions are
    drawn again and compared, unless `draw_again` is False. `on_event` is called twice for each
    event: when it is checked, and when it is stored.

    >>> import tempfile
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import export_log, open_agent, open_store
    >>> with (tempfile.TemporaryDirectory() as folder,
    ...       open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop):
    ...     _ = shop.observe(shop.act(), 1)
    ...     _ = export_log(shop, f"{folder}/shop.jsonl")
    ...     store = open_store("sqlite:///:memory:")
    ...     import_log(store, f"{folder}/shop.jsonl", "copy")
    ...     with open_agent(store, "copy") as copy:
    ...         copy.posterior() == shop.posterior()
    3
    True
    """
    if require_name(name) in store.names():
        raise exists_error(name, store.url)
    created, history = read_history(path)
    if draw_again and created.model in KINDS:
        head = replay(_watched(read_log(path), on_event)).events
    else:
        head = created.seq
        for event in _watched(history, on_event):
            head = event.seq
    store.import_logs({name: lambda: map(encode_row, _watched(read_log(path), on_event))})
    return head


def restore_logs(
    store: LogStore, backup: LogStore, *, on_event: Callable[[Any], Any] = lambda _: None
) -> list[str]:
    """Store all logs of a backup, all or none, and return their names.

    Every event of the backup is checked before anything is stored. `on_event` is called twice for
    each event, as in `import_log`.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> backup, store = open_store("sqlite:///:memory:"), open_store("sqlite:///:memory:")
    >>> open_agent(backup, "shop", BernoulliBandit(["red"])).close()
    >>> restore_logs(store, backup), store.names()
    (['shop'], ['shop'])
    """
    logs: dict[str, Log] = {name: backup.log(name) for name in backup.names()}
    for name in sorted(logs.keys() & set(store.names())):
        raise exists_error(name, store.url)
    for log in logs.values():
        _, history = read_history(read_events(log))
        for event in history:
            on_event(event)
    store.import_logs({name: _rows_of(log, on_event) for name, log in logs.items()})
    return list(logs)


def _rows_of(log: Log, on_event: Callable[[Row], Any]) -> RowSource:
    """Return a source of all rows of a log."""
    return lambda: _watched(log.read(), on_event)


def _watched(items: Iterator[T], on_item: Callable[[T], Any]) -> Iterator[T]:
    """Iterate over the items, and call `on_item` for each of them."""
    for item in items:
        on_item(item)
        yield item
