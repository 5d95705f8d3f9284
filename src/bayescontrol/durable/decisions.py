"""The decisions of a log, their answers, and what amends them.

    decision n  ←  observed or defaulted (n)  ←  corrected or withdrawn  ←  corrected …

Each event is answered or amended by at most one other. The last one of the chain says what the
observation is. A belief learns it in place of the first answer: so the state after an amendment is
that of a log in which the observation was right, or missing, from the beginning.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from bayescontrol.beliefs.particles import Event as Step
from bayescontrol.durable import events
from bayescontrol.durable.plain import Value, short_repr
from bayescontrol.durable.stores.log import Log, Row, damaged_error
from bayescontrol.errors import CompactedDecision, InvalidRequest, UnknownDecision
from bayescontrol.protocols import Summary

#: The number of decisions in memory; older ones are read from the log when they are observed.
_RECENT: Final = 2**15


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The first answer of a decision, and the last event that amends it, or the answer itself."""

    first: events.Observed
    last: events.Observed | events.Amendment

    @property
    def is_withdrawn(self) -> bool:
        """Whether the decision has no observation any more."""
        return isinstance(self.last, events.Withdrawn)

    @property
    def is_default(self) -> bool:
        """Whether the observation is a recorded default."""
        return isinstance(self.last, events.Observed) and self.last.default

    @property
    def o(self) -> Any:
        """The observation; None if it is withdrawn."""
        return None if isinstance(self.last, events.Withdrawn) else self.last.o

    @property
    def cost(self) -> float | None:
        """The reported cost, if there is one."""
        return None if isinstance(self.last, events.Withdrawn) else self.last.cost


@dataclass(frozen=True)
class Explanation:
    """Why a decision was made: the posterior, the mode drawn and the probabilities at that time.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> shop = BernoulliBandit(["red", "blue"])
    >>> with open_agent("sqlite:///:memory:", "shop", shop, seed=2) as agent:
    ...     print(agent.explain(agent.act()))
    decision 2: 'blue' with probability 0.5
    drawn: MeanRewards(red: 0.2677, blue: 0.39)
    """

    decision: events.Decision
    #: The posterior at that time, in the format of `DurableAgent.posterior`.
    posterior: Summary
    #: P(a | past) of every action, or None if it is not known exactly.
    probabilities: Mapping[Any, float] | None
    #: The mode that was drawn, or None if the agent does not reveal it.
    mode: Any
    #: Whether the decision has an observation, and that observation.
    answered: bool = False
    observation: Value = None
    #: Whether the observation is the default, which was recorded at the end of the window.
    is_default: bool = False
    #: The belief at that time.
    belief: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        d = self.decision
        where = "" if d.situation is None else f" in situation {d.situation!r}"
        p = "" if d.probability is None else f" with probability {d.probability:.4g}"
        mode = "" if self.mode is None else f"\ndrawn: {self.mode!r}"
        return f"decision {d.id}{where}: {d.action!r}{p}{mode}"


class Amendments(NamedTuple):
    """What amends the observations of a part of a log.

    `final` has the last amendment by the number of the first answer. `last` is the number of the
    last amendment: decisions before it were made without it.
    """

    final: Mapping[int, events.Amendment]
    last: int

    def reach(self, seq: int) -> bool:
        """Whether an answer up to event `seq` is amended."""
        return any(first <= seq for first in self.final)

    def with_pending(self, pending: Mapping[int, events.Amendment]) -> "Amendments":
        """Return these and pending amendments."""
        last = max((e.seq for e in pending.values()), default=0)
        return Amendments({**self.final, **pending}, max(self.last, last))


NO_AMENDMENTS: Final = Amendments({}, 0)


def read_amendments(log: Log, start: int, stop: int) -> Amendments:
    """Return the amendments among the events start … stop."""
    rows = log.amendments(start, stop)
    final = final_answers(events.decode_row(row, log.name) for row in rows)
    return Amendments(final, rows[-1].seq if rows else 0)


def final_answers(history: Iterable[events.Event]) -> dict[int, events.Amendment]:
    """Return the last amendment of each amended answer, by the number of the first answer."""
    return {e.answer: e for e in history if isinstance(e, events.Amendment)}


class Decisions:
    """Decisions by number: recent ones from memory, others from the log, if there is one."""

    def __init__(self, log: Log | None) -> None:
        self._log, self._name = log, None if log is None else log.name
        self._max_recent = math.inf if log is None else _RECENT
        # Oldest first. After deletions, a plain dict would find its first key slowly.
        self._recent: OrderedDict[int, events.Decided] = OrderedDict()
        # Numbers of recent events: the observation of each decision, the decision with each key.
        self._observed: dict[int, int] = {}
        self._keys: dict[str | None, int] = {}
        # Without a log: all observations.
        self._observations: list[events.Observed] = []
        # If events were compacted: the sealed snapshot, and its decisions that were observed later.
        self._sealed: events.Compacted | None = None
        self._pending: dict[int, events.Decided] = {}
        #: While a configuration has a window: the time of each decision that has no answer.
        self.open: OrderedDict[int, float] | None = None

    def put(self, decision: events.Decided) -> None:
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

    def forget(self, sealed: events.Compacted) -> None:
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

    def _compacted(self) -> events.Compacted | None:
        """Return the sealed snapshot of the log, if there is one."""
        if self._log is not None and self._log.sealed > (self._sealed.seq if self._sealed else 0):
            row = self._log.find_sealed()
            event = None if row is None else events.decode_row(row, self._name)
            if not isinstance(event, events.Compacted):
                raise damaged_error(self._name, "the sealed snapshot is missing")
            self.forget(event)
        return self._sealed

    def get(self, id: events.DecisionId) -> events.Decided:
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
            found = event if isinstance(event, events.Decided) else None
        if found is None:
            raise UnknownDecision(
                f"no decision {short_repr(id)} in log {self._name!r}: pass the id that `act` "
                "returned"
            )
        return found

    def find_key(self, key: str) -> events.Decided | events.Aggregated | None:
        """Return the event with this key, if any; raise `DamagedLog` if the index is wrong."""
        self._compacted()  # forget the keys that were compacted
        row = None if self._log is None else self._log.find_key(key)
        lookup, seq = f"key {short_repr(key)} to its event", self._keys.get(key)
        found: events.Decided | events.Aggregated | None = self._decode(
            row, events.Decided | events.Aggregated, lookup, seq
        )
        return found

    def find_session(self, session: str) -> events.Decided | None:
        """Return the last decision of a session, if any."""
        row = None if self._log is None else self._log.find_session(session)
        found: events.Decided | None = self._decode(
            row, events.Decided, f"session {short_repr(session)}"
        )
        return found

    def find_answer(self, n: int) -> Answer | None:
        """Return the answer of decision n with its last amendment; None if it was never answered.

        Raise `DamagedLog` if an index is wrong.
        """
        first = self.find_observation(n)
        if first is None:
            return None
        last: events.Observed | events.Amendment = first
        while self._log is not None and (row := self._log.find_answer(last.seq)) is not None:
            found = self._decode(
                row, events.Corrected | events.Withdrawn, f"event {last.seq} to its amendment"
            )
            if found is None or found.seq <= last.seq:
                raise damaged_error(self._name, f"event {row.seq} amends the later {last.seq}")
            last = found
        return Answer(first, last)

    def is_unanswered(self, n: int) -> bool:
        """Return whether decision n is recent and has no observation, without reading the store."""
        return n in self._recent and n not in self._observed

    def find_observation(self, n: int) -> events.Observed | None:
        """Return the first answer of decision n, if any; raise `DamagedLog` if the index is wrong.

        If the decision is recent and has no observation, the store is not read.
        """
        if self._log is None or self.is_unanswered(n):
            return None
        row, lookup = self._log.find_answer(n), f"decision {n} to its observation"
        found: events.Observed | None = self._decode(
            row, events.Observed, lookup, self._observed.get(n)
        )
        return found

    def _decode(self, row: Row | None, kinds: Any, lookup: str, seq: int | None = None) -> Any:
        """Decode the row that an index leads to; raise `DamagedLog` if it is not event `seq`.

        `seq` is None if the event is not recent: then it may be any event of these kinds, or none.
        """
        if row is None and (seq is None or self._has_vanished(seq)):
            return None
        event = None if row is None else events.decode_row(row, self._name)
        if not isinstance(event, kinds) or event.seq != (seq or event.seq):
            raise damaged_error(self._name, f"the index does not lead from {lookup}")
        return event

    def _has_vanished(self, seq: int) -> bool:
        """Return whether another process has just compacted event `seq`."""
        if self._log is not None:
            self._log.head()
        sealed = self._compacted()
        return sealed is not None and seq <= sealed.seq

    def note(self, event: events.Event) -> None:
        """Remember an event that the fold has taken elsewhere."""
        if isinstance(event, events.Decided):
            self.put(event)
        elif isinstance(event, events.Observed):
            if event.n in self._recent:
                self._observed[event.n] = event.seq
            if self.open is not None:
                self.open.pop(event.n, None)
        elif isinstance(event, events.Configured):
            # Collect open decisions from the next one on; or stop, without a window.
            has_window = "window" in event.configuration
            self.open = (self.open or OrderedDict()) if has_window else None

    def observed_by(self, event: events.Observed) -> events.Decided:
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

    def recorded(self, n: int) -> events.Decided:
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
            amendments = earlier.with_pending(amendments.final)
        steps = list[Step]()
        for event in history:
            if isinstance(event, events.Observed) and after < event.seq <= stop:
                answer, decision = amendments.final.get(event.seq, event), self.recorded(event.n)
                if not isinstance(answer, events.Withdrawn):
                    steps.append((decision.x, decision.a, answer.o))
        return steps
