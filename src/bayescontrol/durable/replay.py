"""Offline: a log as lines of JSON, folded without a store.

export_log(agent, file)  ->  {"seq": 1, "kind": "created", …} {"seq": 2, …} …
replay(read_log(file))   ->  the belief at its end, and every action drawn again
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from bayescontrol.arrays import Arrays
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Created, Decided, Event, from_line, numbered, to_line
from bayescontrol.durable.laws import LoggedLaw
from bayescontrol.durable.models import Model, as_logged, as_model, model_of
from bayescontrol.durable.places import reached
from bayescontrol.durable.plain import shown
from bayescontrol.durable.summary import summary
from bayescontrol.errors import DamagedLog, InvalidRequest, StoreFailed
from bayescontrol.files import atomic_write

#: A log: its events, its agent, or the file that it was exported to.
Source: TypeAlias = Iterable[Event] | DurableAgent | str | PathLike[str]


@dataclass(frozen=True)
class Replay:
    """Where a log leads.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2), seed=1) as agent:
    ...     for _ in range(3):
    ...         _ = agent.observe(agent.act(), 1)
    ...     replay(agent.log())
    Replay(7 events, 3 decisions drawn again)
    """

    #: The agent after the last event.
    agent: Any
    #: Its state, as `DurableAgent.state` gives it.
    state: Arrays
    events: int
    #: Decisions whose action was drawn again, and was the same.
    drawn: int

    def posterior(self) -> dict[str, dict[str, Any]]:
        """What is believed at the end."""
        return summary(self.agent)

    def __repr__(self) -> str:
        return f"Replay({self.events} events, {self.drawn} decisions drawn again)"


def export_log(events: Source, path: str | PathLike[str]) -> int:
    """Write the events as lines of JSON; gives their number.

    The file is there whole or not at all: what had its name is replaced when all is written. A
    store is never replaced.

    >>> import tempfile
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with (tempfile.TemporaryDirectory() as place,
    ...       open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2)) as agent):
    ...     _ = export_log(agent.log(), f"{place}/shop.jsonl")
    ...     [type(event).__name__ for event in read_log(f"{place}/shop.jsonl")]
    ['Created']
    """
    source, target = numbered(events_from(events), None), Path(path).resolve()
    if target.exists() and not target.is_dir() and not target.is_file():
        with reached(str(path)), target.open("wb") as pipe:
            return _write_lines(source, pipe)
    _require_no_store(target)
    with reached(str(path)), atomic_write(target) as file:
        return _write_lines(source, file)


def _write_lines(events: Iterable[Event], file: BinaryIO) -> int:
    count = 0
    for event in events:
        file.write(f"{to_line(event)}\n".encode())
        count += 1
    return count


def _require_no_store(path: Path) -> None:
    """A database, its journal or its lock must not become a file of lines."""
    stem = next((s for s in ("-wal", "-lock", "-journal") if path.name.endswith(s)), "")
    for file in {path, path.with_name(path.name.removesuffix(stem))}:
        if file.is_file():
            with reached(str(file)), file.open("rb") as begin:
                if begin.read(16) == b"SQLite format 3\0":
                    raise StoreFailed(
                        f"{path} is, or belongs to, a SQLite database: name another file to "
                        "export to; nothing in it was changed"
                    )


def events_from(source: Source) -> Iterator[Event]:
    """The events of an agent, of an exported file, or those given.

    >>> events_from(7)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidRequest: 7 is no log: give agent.log(), the agent, or the file ...
    """
    if isinstance(source, DurableAgent):
        return source.log()
    if isinstance(source, str) and "://" in source:
        raise InvalidRequest(
            f"{shown(source)} is the address of a store: open an agent of it, and give that"
        )
    if isinstance(source, str | PathLike):
        return read_log(source)
    if isinstance(source, Iterable):
        return iter(source)
    raise InvalidRequest(
        f"{shown(source)} is no log: give agent.log(), the agent, or the file of an export"
    )


def read_log(path: str | PathLike[str]) -> Iterator[Event]:
    """The events of a file of lines, checked, none missing before the last.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
    ...     list(read_log(file.name))
    []
    """
    with reached(str(path)):
        file = Path(path).open(encoding="utf-8")  # noqa: SIM115 - closed below
    with file:
        try:
            yield from numbered(from_line(line) for line in file)
        except UnicodeDecodeError:
            raise DamagedLog(
                f"{path} is not a file of lines: of a store, open the agent, or export its log"
            ) from None


def first_event(events: Iterator[Event]) -> Created:
    """The first event, which says of which model the others are.

    >>> first_event(iter([]))
    Traceback (most recent call last):
    bayescontrol.errors.DamagedLog: no event `created`: a log begins with it, give all of it
    """
    first = next(events, None)
    if not isinstance(first, Created):
        raise DamagedLog("no event `created`: a log begins with it, give all of it")
    return first


def chosen_model(source: Source, created: Created, model: Any) -> Model:
    """The model to fold a log with: the one given, the agent's, or what the log itself says.

    One that the log was not written with is a `ModelMismatch`.

    >>> made = Created(seq=1, format=1, model="coin", version=3, settings={}, seed=7, time=0.0)
    >>> chosen_model([made], made, None)
    Traceback (most recent call last):
    bayescontrol.errors.ModelMismatch: the log is of model 'coin', version 3, which is not this ...
    """
    if model is None and isinstance(source, DurableAgent):
        model = source.model
    if model is None:
        return model_of(created)
    return as_logged(created, as_model(model))


def replay(events: Source, model: Any = None, *, draw: bool = True) -> Replay:
    """Fold a whole log; with `draw`, require of every decision the same action and probability.

    `events` are the events, the agent, or the file of an export. Without a model the log says
    what it is; what differs is a `ModelMismatch`.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
    ...     _ = agent.observe(agent.act(), 1)
    ...     replay(agent.log()).posterior()
    {'red': {'mean': 0.666..., 'count': 1, 'alpha': 2.0, 'beta': 1.0}}
    """
    stream = numbered(events_from(events))
    created = first_event(stream)
    logged, decided = LoggedLaw(chosen_model(events, created, model), created), 0
    for event in stream:
        decided += isinstance(event, Decided)
        if isinstance(event, Decided) and draw:
            logged.decided(event, draw=True)
        else:
            logged.take(event)
    fold = logged.fold
    drawn = decided if draw or fold.driver.remembers else 0
    return Replay(fold.driver.agent, fold.state(), fold.seq, drawn)
