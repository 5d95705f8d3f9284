"""Offline: a log as lines of JSON, folded without a store.

export_log(agent, file)  ->  {"seq": 1, "kind": "created", …} {"seq": 2, …} …
replay(read_log(file))   ->  the belief at its end, and every action drawn again
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from bayescontrol.arrays import Arrays
from bayescontrol.durable.events import (
    Created,
    Decided,
    Event,
    from_line,
    numbered,
    to_line,
)
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.models import as_model, model_of, require_same
from bayescontrol.durable.summary import summary
from bayescontrol.errors import DamagedLog

__all__ = ["Replay", "export_log", "opening", "read_log", "replay"]


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


def export_log(events: Iterable[Event], path: str | PathLike[str]) -> int:
    """Write the events as lines of JSON; gives their number.

    >>> import tempfile
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with (tempfile.TemporaryDirectory() as place,
    ...       open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2)) as agent):
    ...     _ = export_log(agent.log(), f"{place}/shop.jsonl")
    ...     [type(event).__name__ for event in read_log(f"{place}/shop.jsonl")]
    ['Created']
    """
    count = 0
    with Path(path).open("w", encoding="utf-8") as file:
        for event in events:
            file.write(to_line(event) + "\n")
            count += 1
    return count


def read_log(path: str | PathLike[str]) -> Iterator[Event]:
    """The events of a file of lines, checked, none missing before the last.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
    ...     list(read_log(file.name))
    []
    """
    with Path(path).open(encoding="utf-8") as file:
        yield from numbered(from_line(line) for line in file)


def opening(events: Iterator[Event]) -> Created:
    """The first event, which says of which model the others are.

    >>> opening(iter([]))
    Traceback (most recent call last):
    bayescontrol.errors.DamagedLog: no event `created`: a log begins with it, give all of it
    """
    first = next(events, None)
    if not isinstance(first, Created):
        raise DamagedLog("no event `created`: a log begins with it, give all of it")
    return first


def replay(events: Iterable[Event], model: Any = None, *, draw: bool = True) -> Replay:
    """Fold a whole log; with `draw`, draw every decision again and require the same action.

    Without a model the log says what it is; what differs is a `ModelMismatch`.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
    ...     _ = agent.observe(agent.act(), 1)
    ...     replay(agent.log()).posterior()
    {'red': {'mean': 0.666..., 'count': 1, 'alpha': 2.0, 'beta': 1.0}}
    """
    stream = iter(events)
    created = opening(stream)
    chosen = model_of(created) if model is None else as_model(model)
    require_same(created, chosen)
    fold = Fold(chosen.driver(), created.seed)
    decisions, drawn = Decisions(None), 0
    again = draw and not fold.driver.remembers
    for event in numbered(_after(created, stream)):
        if isinstance(event, Decided):
            if again:
                fold.require_same(event, fold.driver.draw(event.x, fold.streams[event.seq])[1])
            drawn += again or fold.driver.remembers
        if event is not created:
            fold.take([event], decisions)
    return Replay(fold.driver.agent, fold.state(), fold.seq, drawn)


def _after(first: Event, rest: Iterable[Event]) -> Iterator[Event]:
    yield first
    yield from rest
