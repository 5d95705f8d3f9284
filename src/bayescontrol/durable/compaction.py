"""Compact a log: replace its first events by the state after them.

    1, 2, 3, …, N, N + 1, …    ->    1, N, N + 1, …

The new event N, `compacted`, contains the fold of the events 1 … N, so that the fold of the log
stays the same, bit for bit. A later event may observe a decision up to N: the situation and the
action of such a decision stay, because the observation is learned with them. It must not amend an
event up to N, nor contain a fit of earlier data: then the state after N would not suffice.
"""

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
        removed = _replace(log, fold, decisions)
    log.vacuum()  # also if an earlier call was interrupted before this
    return removed


def _replace(log: Log, fold: Fold, decisions: Decisions) -> int:
    """Replace the events up to that of the fold; return how many were removed."""
    through, snapshot = fold.seq, fold.save()
    counts, late, last = _count_kinds(log, through), set[int](), through
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
        return counts["rows"]
    return 0  # another process compacted more


def _count_kinds(log: Log, through: int) -> Counter[str]:
    """Return the numbers of rows, decisions and observations among the events 2 … `through`."""
    counts = Counter[str]()
    for row in log.read(2, through):
        counts.update(("rows", row.kind))
        if row.kind == "compacted":
            earlier = decode_row(row, log.name)
            assert isinstance(earlier, Compacted)
            counts.update(decided=earlier.decisions, observed=earlier.observations)
    return counts


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
        f"through={through}: event {row.seq}, {row.kind}, needs event {needed}: compact through "
        f"{row.seq} or later, or less than {needed}"
    )


def last_event_before(events: Iterable[Event], moment: float) -> int:
    """Return the number of the last event before the first one at or after `moment`, at least 1."""
    last = 1
    for event in events:
        if event.time >= moment and not isinstance(event, Compacted):
            break
        last = event.seq
    return last
