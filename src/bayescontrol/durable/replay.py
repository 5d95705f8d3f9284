"""Export a log as lines of JSON, and replay it without a store.

export_log(agent, file)  ->  {"seq": 1, "kind": "created", …} {"seq": 2, …} …
replay(read_log(file))   ->  the agent after the last event; all actions are drawn again
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from bayescontrol._arrays import Arrays
from bayescontrol._support.files import atomic_write
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.decisions import Amendments, Decisions
from bayescontrol.durable.driver import posterior_summary
from bayescontrol.durable.events import (
    Amendment,
    Corrected,
    Created,
    Decided,
    Event,
    Probabilities,
    Withdrawn,
    check_history,
    from_line,
    to_line,
)
from bayescontrol.durable.fold import EarlierFolds, Fold
from bayescontrol.durable.models import Model, as_logged, as_model, model_of
from bayescontrol.durable.plain import short_repr
from bayescontrol.durable.stores.log import PRIVATE, os_errors
from bayescontrol.errors import DamagedLog, InvalidRequest, StoreFailed
from bayescontrol.protocols import Summary

#: A log: its events, its agent, or the file that it was exported to.
EventSource: TypeAlias = Iterable[Event] | DurableAgent | str | PathLike[str]


@dataclass(frozen=True)
class Replay:
    """The result of replaying a log.

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
    #: The number of decisions that were drawn again, with the same action.
    drawn: int

    def posterior(self) -> Summary:
        """Return the posterior at the end, in the format of `DurableAgent.posterior`."""
        return posterior_summary(self.agent)

    def __repr__(self) -> str:
        return f"Replay({self.events} events, {self.drawn} decisions drawn again)"


def export_log(events: EventSource, path: str | PathLike[str]) -> int:
    """Write the events as lines of JSON and return their number.

    The write is atomic and replaces an existing file, except a SQLite database. Only the owner can
    read the new file.

    >>> import tempfile
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with (tempfile.TemporaryDirectory() as folder,
    ...       open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2)) as agent):
    ...     _ = export_log(agent.log(), f"{folder}/shop.jsonl")
    ...     [type(event).__name__ for event in read_log(f"{folder}/shop.jsonl")]
    ['Created']
    """
    source, target = check_history(events_from(events), None), Path(path).resolve()
    is_pipe = target.exists() and not target.is_dir() and not target.is_file()
    if not is_pipe:
        _require_no_database(target)
    count = 0
    opened = target.open("wb") if is_pipe else atomic_write(target, mode=PRIVATE)
    with os_errors(str(path)), opened as file:
        for event in source:
            file.write(f"{to_line(event)}\n".encode())
            count += 1
    return count


def _require_no_database(path: Path) -> None:
    """Raise `StoreFailed` if the path is a SQLite database, or the journal or lock of one."""
    suffix = next((s for s in ("-wal", "-lock", "-journal") if path.name.endswith(s)), "")
    for file in {path, path.with_name(path.name.removesuffix(suffix))}:
        if file.is_file():
            with os_errors(str(file)), file.open("rb") as opened:
                if opened.read(16) == b"SQLite format 3\0":
                    raise StoreFailed(
                        f"{path} is, or belongs to, a SQLite database: export to another file; "
                        "nothing was changed"
                    )


def events_from(source: EventSource) -> Iterator[Event]:
    """Iterate over the events of an agent, of an exported file, or of an iterable of events."""
    if isinstance(source, DurableAgent):
        return source.log()
    if isinstance(source, str) and "://" in source:
        raise InvalidRequest(
            f"{short_repr(source)} is the address of a store: open an agent, and pass that"
        )
    if isinstance(source, str | PathLike):
        return read_log(source)
    if isinstance(source, Iterable):
        return iter(source)
    raise InvalidRequest(
        f"{short_repr(source)} is not a log: pass agent.log(), the agent, or an exported file"
    )


def read_log(path: str | PathLike[str]) -> Iterator[Event]:
    """Iterate over the events of an exported file.

    Raise `DamagedLog` if an event is damaged or missing.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
    ...     list(read_log(file.name))
    []
    """
    with os_errors(str(path)):
        file = Path(path).open(encoding="utf-8")  # noqa: SIM115 - closed below
    with file:
        try:
            yield from check_history(from_line(line) for line in file)
        except UnicodeDecodeError:
            raise DamagedLog(
                f"{path} is not an exported log: open the agent of a store, or export its log"
            ) from None


def read_history(source: EventSource) -> tuple[Created, Iterator[Event]]:
    """Return the first event, which describes the model, and an iterator over the later ones."""
    history = check_history(events_from(source))
    first = next(history, None)
    if not isinstance(first, Created):
        found = "the log is empty" if first is None else f"the log starts with {short_repr(first)}"
        raise DamagedLog(f"{found}: pass the log from its first event, `created`")
    return first, history


def chosen_model(source: EventSource, created: Created, model: Any) -> Model:
    """Return the model of a log: the one given, the agent's, or the one the log describes.

    Raise `ModelMismatch` if the log was written with another model.
    """
    if model is None and isinstance(source, DurableAgent):
        model = source.model
    if model is None:
        return model_of(created)
    return as_logged(created, as_model(model))


class Replayer:
    """Folds a log with its own model, and computes the probabilities of every action again."""

    def __init__(self, model: Model, created: Created) -> None:
        self._model, self._created = model, created
        self._fold = self._new_fold()
        self._decisions = Decisions(None)
        self._events: list[Event] = []
        self._final: dict[int, Amendment] = {}  # by the number of the first answer
        self._pending = 0  # the first answer that was amended since the last fold; 0 for none
        self._earlier = EarlierFolds()

    def _new_fold(self) -> Fold:
        return Fold(self._model.driver(), self._created.seed)

    @property
    def fold(self) -> Fold:
        """The agent after the last event."""
        if self._pending:  # several amendments in a row are folded together
            fold = self._earlier.before(self._pending) or self._new_fold()
            history = self._events[bisect_right(self._events, fold.seq, key=lambda e: e.seq) :]
            amendments = Amendments(self._final, self._events[-1].seq)
            passed = fold.take_retaining(history, self._decisions, amendments)
            self._earlier.replace(self._pending, passed)
            self._fold, self._pending = fold, 0
        return self._fold

    def take_decision(self, d: Decided, *, draw: bool = False) -> Probabilities | None:
        """Fold a decision; return P(b | past, x) of every action b, or None if it is unknown.

        Raise `ModelMismatch` if the probability of the action differs from the log. With `draw`,
        draw the action again, and raise `ModelMismatch` also if it differs.
        """
        fold = self.fold
        probabilities = None
        if d.p is not None and not fold.driver.explores:  # else the draw compares it
            probabilities = fold.probabilities(d.x, d.among)
            fold.require_probability(d, probabilities)
        self._take(d, check_from=d.seq if draw else d.seq + 1)
        return probabilities

    def take(self, event: Event) -> None:
        """Fold an event without comparing probabilities."""
        if isinstance(event, Corrected | Withdrawn):
            self._final[event.answer] = event
            self._pending = min(self._pending or event.answer, event.answer)
            self._events.append(event)
        else:
            self._take(event)

    def _take(self, event: Event, check_from: float = math.inf) -> None:
        fold = self.fold
        if self._earlier.is_due(fold.seq):
            self._earlier.add(fold.copy())
        fold.take([event], self._decisions, check_from, Amendments(self._final, 0))
        self._events.append(event)


def replay(events: EventSource, model: Any = None, *, draw: bool = True) -> Replay:
    """Fold a whole log; with `draw`, draw every decision again.

    `events` are the events, the agent, or an exported file. `model` is needed if the log has a
    `named_model`. Raise `ModelMismatch` if an action that is drawn again, or its probability,
    differs from the log.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
    ...     _ = agent.observe(agent.act(), 1)
    ...     replay(agent.log()).posterior()
    {'red': {'mean': 0.666..., 'count': 1, 'alpha': 2.0, 'beta': 1.0}}
    """
    created, history = read_history(events)
    replayer, decision_count = Replayer(chosen_model(events, created, model), created), 0
    for event in history:
        decision_count += isinstance(event, Decided)
        if isinstance(event, Decided) and draw:
            replayer.take_decision(event, draw=True)
        else:
            replayer.take(event)
    fold = replayer.fold
    drawn = decision_count if draw or fold.driver.draws_change else 0
    return Replay(fold.driver.agent, fold.state(), fold.seq, drawn)
