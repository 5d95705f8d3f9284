"""The decisions of a log, their answers, and what amends them.

    decision n  ←  observed or defaulted (n)  ←  corrected or withdrawn  ←  corrected …

Each event is answered or amended by at most one other. The last one of the chain says what the
observation is. A belief learns it in place of the first answer: so the state after an amendment is
that of a log in which the observation was right, or missing, from the beginning.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from bayescontrol.beliefs.particles import Event as Step
from bayescontrol.durable import events
from bayescontrol.durable.events import (
    Aggregated,
    Amendment,
    Compacted,
    Configured,
    Corrected,
    Decided,
    Decision,
    Observed,
    Withdrawn,
)
from bayescontrol.durable.plain import short_repr
from bayescontrol.durable.stores.log import Log, Row, damaged_error
from bayescontrol.errors import CompactedDecision, InvalidRequest, UnknownDecision

#: The number of decisions in memory; older ones are read from the log when they are observed.
_RECENT: Final = 2**15


class Answer(NamedTuple):
    """The first answer of a decision, and the last event that amends it, or the answer itself."""

    first: Observed
    last: Observed | Amendment

    @property
    def is_withdrawn(self) -> bool:
        """Whether the decision has no observation any more."""
        return isinstance(self.last, Withdrawn)

    @property
    def is_default(self) -> bool:
        """Whether the observation is a recorded default."""
        return isinstance(self.last, Observed) and self.last.default

    @property
    def o(self) -> Any:
        """The observation; None if it is withdrawn."""
        return None if isinstance(self.last, Withdrawn) else self.last.o


class Amendments(NamedTuple):
    """What amends the observations of a part of a log.

    `final` has the last amendment by the number of the first answer. `last` is the number of the
    last amendment: decisions before it were made without it.
    """

    final: Mapping[int, Amendment]
    last: int

    def reach(self, seq: int) -> bool:
        """Whether an answer up to event `seq` is amended."""
        return any(first <= seq for first in self.final)

    def with_pending(self, pending: Mapping[int, Amendment], last: int) -> "Amendments":
        """Return these and pending amendments, of which `last` is the largest number."""
        return Amendments({**self.final, **pending}, last if pending else self.last)


NO_AMENDMENTS: Final = Amendments({}, 0)


def read_amendments(log: Log, start: int, stop: int) -> Amendments:
    """Return the amendments among the events start … stop."""
    final, first_answers, last = dict[int, Amendment](), dict[int, int](), 0
    for row in log.amendments(start, stop):
        event = events.decode_row(row, log.name)
        assert isinstance(event, Corrected | Withdrawn)
        first = first_answers.get(event.n) or _first_answer(log, event)
        first_answers[event.seq], final[first], last = first, event, event.seq
    return Amendments(final, last)


def final_answers(history: Iterable[events.Event]) -> dict[int, Amendment]:
    """Return the last amendment of each amended answer, by the number of the first answer."""
    final, first_answers = dict[int, Amendment](), dict[int, int]()
    for event in history:
        if isinstance(event, Corrected | Withdrawn):
            first = first_answers.get(event.n, event.n)
            first_answers[event.seq], final[first] = first, event
    return final


def _first_answer(log: Log, event: Amendment) -> int:
    """Return the number of the answer that an amendment leads to."""
    n, seq = event.n, event.seq
    while 1 <= n < seq:
        found = next(events.read_events(log, n, n), None)
        if isinstance(found, Observed):
            return n
        if not isinstance(found, Corrected | Withdrawn):
            break
        n, seq = found.n, n
    raise damaged_error(log.name, f"event {event.seq} amends event {event.n}, which is no answer")


class Decisions:
    """Decisions by number: recent ones from memory, others from the log, if there is one."""

    def __init__(self, log: Log | None) -> None:
        self._log, self._name = log, None if log is None else log.name
        self._max_recent = math.inf if log is None else _RECENT
        # Oldest first. After deletions, a plain dict would find its first key slowly.
        self._recent: OrderedDict[int, Decided] = OrderedDict()
        # Numbers of recent events: the observation of each decision, the decision with each key.
        self._observed: dict[int, int] = {}
        self._keys: dict[str | None, int] = {}
        # Without a log: all observations.
        self._observations: list[Observed] = []
        # If events were compacted: the sealed snapshot, and its decisions that were observed later.
        self._sealed: Compacted | None = None
        self._pending: dict[int, Decided] = {}
        #: While a configuration has a window: the time of each decision that has no answer.
        self.open: OrderedDict[int, float] | None = None

    def put(self, decision: Decided) -> None:
        """Add a new decision; raise `DamagedLog` if another decision has the same key."""
        seq, key = decision.seq, decision.key
        if seq in self._recent:  # this part of the log is folded again
            return
        if key is not None and self._keys.setdefault(key, seq) != seq:
            why = f"decisions {self._keys[key]} and {seq} have the same key {short_repr(key)}"
            raise damaged_error(self._name, why)
        self._recent[seq] = decision
        if self.open is not None:
            self.open[seq] = decision.time
        if len(self._recent) > self._max_recent:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Forget the oldest decision in memory."""
        _, oldest = self._recent.popitem(last=False)
        self._observed.pop(oldest.seq, None)
        self._keys.pop(oldest.key, None)

    def forget(self, sealed: Compacted) -> None:
        """Forget the decisions that were compacted."""
        self._sealed = replace(sealed, state=b"", pending=[])  # the state may be large
        self._pending = {decision.seq: decision for decision in sealed.pending}
        while self._recent and next(iter(self._recent)) <= sealed.seq:
            self._forget_oldest()
        while self.open and next(iter(self.open)) <= sealed.seq:
            self.open.popitem(last=False)

    def waiting(self) -> OrderedDict[int, float] | None:
        """Return the times of the open decisions, without compacted ones; None without a window."""
        if self.open:
            self._compacted()  # forget what was compacted
        return self.open

    def _compacted(self) -> Compacted | None:
        """Return the sealed snapshot of the log, if there is one."""
        if self._log is not None and self._log.sealed > (self._sealed.seq if self._sealed else 0):
            row = self._log.find_sealed()
            event = None if row is None else events.decode_row(row, self._name)
            if not isinstance(event, Compacted):
                raise damaged_error(self._name, "the sealed snapshot is missing")
            self.forget(event)
        return self._sealed

    def get(self, id: str | int | Decision) -> Decided:
        """Return the decision with this id; raise `UnknownDecision` if it does not exist.

        Raise `CompactedDecision` if it was compacted.
        """
        n, sealed = events.decision_number(id), self._compacted()
        if sealed is not None and 1 < n <= sealed.seq:
            date = datetime.fromtimestamp(sealed.time, UTC).isoformat(" ", "minutes")[:16]
            raise CompactedDecision(
                f"decision {n} of log {self._name!r} cannot be observed or explained any more: "
                f"events 2 to {sealed.seq} were compacted on {date} UTC"
            )
        found = self._recent.get(n)
        if found is None and self._log is not None and 1 <= n <= self._log.head():
            event = next(events.read_events(self._log, n, n), None)
            if event is None:
                if self._has_vanished(n):
                    return self.get(n)  # raises `CompactedDecision`
                raise damaged_error(self._name, f"event {n} is missing")
            found = event if isinstance(event, Decided) else None
        if found is None:
            raise UnknownDecision(
                f"no decision {short_repr(id)} in log {self._name!r}: pass the id that `act` "
                "returned"
            )
        return found

    def find_key(self, key: str) -> Decided | Aggregated | None:
        """Return the event with this key, if any; raise `DamagedLog` if the index is wrong."""
        self._compacted()  # forget the keys that were compacted
        row = None if self._log is None else self._log.find_key(key)
        lookup = f"key {short_repr(key)} to its event"
        found: Decided | Aggregated | None = self._decode(
            row, (Decided, Aggregated), self._keys.get(key), lookup
        )
        return found

    def find_session(self, session: str) -> Decided | None:
        """Return the last decision of a session, if any."""
        row = None if self._log is None else self._log.find_session(session)
        lookup = f"session {short_repr(session)}"
        found: Decided | None = self._decode(row, (Decided,), None, lookup)
        return found

    def find_answer(self, n: int) -> Answer | None:
        """Return the answer of decision n with its last amendment; None if it was never answered.

        Raise `DamagedLog` if an index is wrong.
        """
        first = self.find_observation(n)
        if first is None:
            return None
        last: Observed | Amendment = first
        while self._log is not None and (row := self._log.find_answer(last.seq)) is not None:
            lookup = f"event {last.seq} to its amendment"
            found = self._decode(row, (Corrected, Withdrawn), None, lookup)
            if found is None or found.seq <= last.seq:
                raise damaged_error(self._name, f"event {row.seq} amends the later {last.seq}")
            last = found
        return Answer(first, last)

    def may_have_answer(self, n: int) -> bool:
        """Return False if decision n is recent and has no answer; does not read the store."""
        return self._log is not None and not (n in self._recent and n not in self._observed)

    def find_observation(self, n: int) -> Observed | None:
        """Return the first answer of decision n, if any; raise `DamagedLog` if the index is wrong.

        If the decision is recent and has no observation, the store is not read.
        """
        if self._log is None or not self.may_have_answer(n):
            return None
        lookup = f"decision {n} to its observation"
        row, seq = self._log.find_answer(n), self._observed.get(n)
        found: Observed | None = self._decode(row, (Observed,), seq, lookup)
        return found

    def _decode(
        self, row: Row | None, kinds: tuple[type, ...], seq: int | None, lookup: str
    ) -> Any:
        """Decode the row that an index leads to; raise `DamagedLog` if it is not event `seq`.

        `seq` is None if the event is not recent: then it may be any event of these kinds, or none.
        """
        if row is None and (seq is None or self._has_vanished(seq)):
            return None
        event = None if row is None else events.decode_row(row, self._name)
        if (
            event is None
            or not isinstance(event, kinds)
            or row is None
            or row.seq != (seq or row.seq)
        ):
            raise damaged_error(self._name, f"the index does not lead from {lookup}")
        return event

    def _has_vanished(self, seq: int) -> bool:
        """Return whether another process has just compacted event `seq`."""
        if self._log is not None:
            self._log.head()
        sealed = self._compacted()
        return sealed is not None and seq <= sealed.seq

    def put_observation(self, event: Observed) -> None:
        """Remember which decision the event observes, if that decision is recent."""
        if event.n in self._recent:
            self._observed[event.n] = event.seq
        if self.open is not None:
            self.open.pop(event.n, None)

    def note(self, event: events.Event) -> None:
        """Remember an event that the fold has taken elsewhere."""
        if isinstance(event, Decided):
            self.put(event)
        elif isinstance(event, Observed):
            self.put_observation(event)
        elif isinstance(event, Configured):
            self.track("window" in event.configuration)

    def track(self, window: bool) -> None:
        """Begin to collect open decisions, from the next one on; or stop, without a window."""
        self.open = (self.open or OrderedDict()) if window else None

    def observed_by(self, event: Observed) -> Decided:
        """Return the decision that a logged event observes.

        Raise `DamagedLog` if that decision does not exist before the event, or if another event
        observes it too.
        """
        n, seq = event.n, event.seq
        decision = self._recent.get(n)
        if decision is None and self._compacted() is not None:
            decision = self._pending.get(n)
        if decision is not None:
            first = self._observed.setdefault(n, seq)  # the event that observed n first
        else:
            try:
                decision = self.get(n if n < seq else 0)
            except UnknownDecision:
                why = f"event {seq} observes decision {n}, which does not exist"
                raise damaged_error(self._name, why) from None
            known = self.find_observation(n)
            first = 0 if known is None else known.seq
        if first != seq:
            raise damaged_error(self._name, f"events {first} and {seq} both observe decision {n}")
        if self.open is not None:
            self.open.pop(n, None)
        # A part of the log may be folded again.
        if self._log is None and not (self._observations and self._observations[-1].seq >= seq):
            self._observations.append(event)
        return decision

    def recorded(self, n: int) -> Decided:
        """Return decision n, also if it was compacted but observed later."""
        self._compacted()
        return self._pending.get(n) or self.get(n)

    def steps(self, after: int, stop: int, amendments: Amendments = NO_AMENDMENTS) -> list[Step]:
        """Return (x, a, o) of the observations after event `after`, up to event `stop`.

        Raise `InvalidRequest` if some of them were compacted.
        """
        sealed = self._compacted()
        if sealed is not None and after < sealed.seq:
            raise InvalidRequest(
                f"events 2 to {sealed.seq} were compacted, so a fit must contain the observations "
                f"up to event {sealed.seq} or later, not only up to {after}"
            )
        history: Iterable[events.Event] = self._observations
        if self._log is not None:
            history = events.read_events(self._log, after + 1, stop)
            earlier = read_amendments(self._log, after + 1, stop)
            amendments = earlier.with_pending(amendments.final, amendments.last)
        observed = [e for e in history if isinstance(e, Observed) and after < e.seq <= stop]
        final = [(e.n, amendments.final.get(e.seq, e)) for e in observed]
        return [
            ((d := self.recorded(n)).x, d.a, e.o) for n, e in final if not isinstance(e, Withdrawn)
        ]
