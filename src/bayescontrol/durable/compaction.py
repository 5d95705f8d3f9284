"""Compact a log: replace its first events by the state after them.

    1, 2, 3, …, N, N + 1, …    ->    1, N, N + 1, …

The new event N, `compacted`, contains the fold of the events 1 … N, so that the fold of the log
stays the same, bit for bit. A later event may observe a decision up to N: the situation and the
action of such a decision stay, because the observation is learned with them. It must not amend an
event up to N, nor contain a fit of earlier data: then the state after N would not suffice.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

from bayescontrol import errors
from bayescontrol.durable.decisions import Decisions
from bayescontrol.durable.events import (
    Compacted,
    Created,
    Event,
    Refitted,
    decode_row,
    encode_row,
)
from bayescontrol.durable.fold import Fold, fold_log
from bayescontrol.durable.models import Model
from bayescontrol.durable.stores.log import Log, Row

#: The kinds of events that answer a decision.
ANSWERS: Final = ("observed", "defaulted")


def count_events(log: Log, start: int, stop: int) -> Counter[str]:
    """Count the events start … stop by kind, and the decisions and answers that were compacted."""
    counts = Counter({kind: n for kind, (n, _) in log.sizes(start, stop).items()})
    row = log.find_sealed() if counts["compacted"] else None
    if row is not None:
        sealed = decode_row(row, log.name)
        assert isinstance(sealed, Compacted)
        counts.update(decided=sealed.decisions, observed=sealed.observations)
    return counts


class EventCounter:
    """Counts the events of a log; each call counts the new ones only."""

    def __init__(self, log: Log) -> None:
        self._log, self._lock = log, threading.Lock()
        self._counts, self._counted, self._sealed = Counter[str](), 0, 0

    def counts(self, seq: int) -> dict[str, int]:
        """Return how many events of each kind the log has up to event `seq`, or a later one."""
        with self._lock:
            head, sealed = max(seq, self._counted), self._log.sealed
            if sealed != self._sealed:
                self._counts, self._counted, self._sealed = Counter(), 0, sealed
            self._counts.update(count_events(self._log, self._counted + 1, head))
            self._counted = head
            return dict(self._counts)


def compact_log(log: Log, model: Model, created: Created, through: int) -> int:
    """Replace the events 2 … `through` by a sealed snapshot; return how many were removed.

    Raise `InvalidRequest` if a later event, or the next observation, needs one of them.
    """
    head, removed = log.head(), 0
    if type(through) is not int or not 2 <= through <= head:
        raise errors.InvalidRequest(
            f"through={through!r}: expected the number of an event, from 2 to {head}"
        )
    if through > log.sealed:
        decisions = Decisions(log)
        fold = fold_log(log, model.driver(), created, decisions, stop=through)
        Fold(model.driver(), fold.seed).load(fold.save(), through)  # raises before events go
        removed = _replace(log, fold, decisions)
    log.vacuum()  # also if an earlier call was interrupted before this
    return removed


def _replace(log: Log, fold: Fold, decisions: Decisions) -> int:
    """Replace the events up to that of the fold; return how many were removed."""
    through, snapshot = fold.seq, fold.save()
    counts, late, last = count_events(log, 2, through), set[int](), through
    removed = sum(n for n, _ in log.sizes(2, through).values())
    while log.sealed < through:
        head = log.head()
        late.update(filter(None, (_late_answer(row, through) for row in log.read(last + 1, head))))
        last = head
        if fold.due and fold.due not in late:
            raise errors.InvalidRequest(
                f"through={through}: decision {fold.due} must be observed before the next "
                "decision: observe it first, or compact earlier events only"
            )
        sealed = Compacted(
            seq=through, state=snapshot.state, digest=snapshot.checksum, time=time.time(),
            decisions=counts["decided"], observations=sum(counts[kind] for kind in ANSWERS),
            pending=[decisions.recorded(n) for n in sorted(late)],
        )  # fmt: skip
        try:
            log.compact(encode_row(sealed), head)
        except errors.HeadMoved:  # another process has appended or compacted: read its events
            continue
        return removed
    return 0  # another process compacted more


def _late_answer(row: Row, through: int) -> int | None:
    """Return the decision up to event `through` that the row answers, if it answers one.

    Raise `InvalidRequest` if the row needs the events up to `through` in another way.
    """
    needed = row.n
    if row.kind == "refitted":
        event = decode_row(row)
        assert isinstance(event, Refitted)
        needed = event.through + 1  # the observations from there on are learned again
    if needed is None or needed > through:
        return None
    if row.kind in ANSWERS:
        return needed
    raise errors.InvalidRequest(
        f"through={through}: event {row.seq} ({row.kind}) depends on event {needed}: compact both, "
        f"through={row.seq} or later, or neither, through={needed - 1} or earlier"
    )


def last_event_before(events: Iterable[Event], moment: float) -> int:
    """Return the number of the last event before the first one at or after `moment`, at least 1."""
    last = 1
    for event in events:
        if event.time >= moment and not isinstance(event, Compacted):
            break
        last = event.seq
    return last
