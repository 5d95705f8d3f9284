"""Fold a log: compute the agent's state after events 1 … seq.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t),  in the order of the log
    decision n draws from Stream.named(seed, n, "agent")

Folding is deterministic. The state is bitwise the same from the first event, from a snapshot, or
event by event as they arrive.
"""

import math
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from bayescontrol._arrays import Arrays
from bayescontrol.beliefs.particles import Event as Step
from bayescontrol.durable import events
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import (
    Compacted,
    Created,
    Decided,
    Decision,
    Observed,
    Refitted,
)
from bayescontrol.durable.log import DamagedSnapshot, Log, Row, Snapshot, damaged_error
from bayescontrol.durable.models import KINDS, Model
from bayescontrol.durable.plain import as_stored, same_value, short_repr
from bayescontrol.errors import (
    CompactedDecision,
    DamagedLog,
    IncompatibleState,
    InvalidRequest,
    ModelMismatch,
    StoreBusy,
    UnknownDecision,
)
from bayescontrol.seeding import Stream

E = TypeVar("E", Decided, Observed)

#: The number of decisions in memory; older ones are read from the log when they are observed.
_RECENT: Final = 2**15
#: When a log is folded, the decisions among this many last events are drawn again.
_CHECKED: Final = 16
#: The maximum number of events that are folded again.
_MAX_FOLDED: Final = 1_000
#: Start at least this many events before the newest snapshot, so that some are decisions.
_MIN_DISTANCE: Final = 100
#: The relative difference that rounding on another machine may cause, and the absolute one of a
#: probability.
_TOLERANCE, _PROBABILITY_TOLERANCE = 1e-6, 1e-9


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

    def put(self, decision: Decided) -> None:
        """Add a new decision; raise `DamagedLog` if another decision has the same key."""
        seq, key = decision.seq, decision.key
        if seq in self._recent:  # this part of the log is folded again
            return
        if key is not None and self._keys.setdefault(key, seq) != seq:
            why = f"decisions {self._keys[key]} and {seq} have the same key {short_repr(key)}"
            raise damaged_error(self._name, why)
        self._recent[seq] = decision
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

    def find_key(self, key: str) -> Decided | None:
        """Return the decision with this key, if any; raise `DamagedLog` if the index is wrong."""
        self._compacted()  # forget the keys that were compacted
        row = None if self._log is None else self._log.find_key(key)
        lookup = f"key {short_repr(key)} to its decision"
        return self._decode(row, Decided, self._keys.get(key), lookup)

    def find_observation(self, n: int) -> Observed | None:
        """Return the observation of decision n, if any; raise `DamagedLog` if the index is wrong.

        If the decision is recent and has no observation, the store is not read.
        """
        if self._log is None or (n in self._recent and n not in self._observed):
            return None
        lookup = f"decision {n} to its observation"
        return self._decode(self._log.find_answer(n), Observed, self._observed.get(n), lookup)

    def _decode(self, row: Row | None, kind: type[E], seq: int | None, lookup: str) -> E | None:
        """Decode the row that an index leads to; raise `DamagedLog` if it is not event `seq`.

        `seq` is None if the event is not recent: then it may be any event of this kind, or none.
        """
        if row is None and (seq is None or self._has_vanished(seq)):
            return None
        event = None if row is None else events.decode_row(row, self._name)
        if not isinstance(event, kind) or event.seq != (seq or event.seq):
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
        if self._log is None:
            self._observations.append(event)
        return decision

    def recorded(self, n: int) -> Decided:
        """Return decision n, also if it was compacted but observed later."""
        self._compacted()
        return self._pending.get(n) or self.get(n)

    def steps(self, after: int, stop: int) -> list[Step]:
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
        observed = [e for e in history if isinstance(e, Observed) and after < e.seq <= stop]
        return [((d := self.recorded(e.n)).x, d.a, e.o) for e in observed]


class Fold:
    """The agent after event `seq`; `seed` is the seed of the log.

    `due` is the number of the decision that must be observed before the next decision, for an
    agent that does not accept late feedback; 0 if no decision must.
    """

    def __init__(self, driver: Driver, seed: int, seq: int = 1, due: int = 0) -> None:
        self.driver, self.seed, self.seq, self.due = driver, seed, seq, due

    def draw(self, n: int, x: Any) -> Any:
        """Return the action of decision n in situation x, drawn from the stream of n."""
        return self.driver.act(x, Stream.named(self.seed, n, "agent"))

    def take_decision(self, event: Decided, *, draw: bool) -> None:
        """Fold a decision. With `draw`, repeat the draw and require the same action.

        `draw` is required if draws change the agent.
        """
        if draw:
            self.draw_again(event)
        self.driver.remember(event.seq)
        self.seq = event.seq
        if not self.driver.accepts_late_feedback:
            self.due = event.seq

    def draw_again(self, event: Decided) -> None:
        """Draw a logged decision again; raise `ModelMismatch` if this gives another action."""
        a = self.draw(event.seq, event.x)
        if not same_value(as_stored(a, "the action"), event.a):
            raise ModelMismatch(
                f"decision {event.seq} was {event.a!r}, drawn again it is {a!r}: the code of the "
                "model has changed; give the changed model a new version and a new log"
            )

    def require_probability(
        self, event: Decided, probabilities: events.Probabilities | None
    ) -> None:
        """Raise `ModelMismatch` if P(a | âo_<n) differs from the log by more than rounding."""
        if event.p is None:
            return
        p = None if probabilities is None else float(probabilities.get(event.a, 0.0))
        tolerances = {"rel_tol": _TOLERANCE, "abs_tol": _PROBABILITY_TOLERANCE}
        if p is None or not math.isclose(p, event.p, **tolerances):
            now = "none" if p is None else f"{p:.6g}"
            raise ModelMismatch(
                f"decision {event.seq}, {short_repr(event.a)}, had probability {event.p:.6g}, "
                f"computed again it has {now}: the log or the code of the model has changed; give "
                "the changed model a new version and a new log"
            )

    def take_observation(self, event: Observed, x: Any, a: Any) -> None:
        """Fold an observation: learn it as the observation of action a in x."""
        self.driver.learn(x, a, event.o, event.n)
        self.seq, self.due = event.seq, 0

    def take_refit(self, event: Refitted, later: list[Step]) -> None:
        """Fold the draws of a new fit, which does not contain the steps `later`."""
        self.driver.refit(event.draws, later, event.log_weights)
        self.seq = event.seq

    def take_sealed(self, event: Compacted) -> None:
        """Continue with the state of a sealed snapshot."""
        if self.seq != 1:
            raise StoreBusy(
                f"the log was compacted through event {event.seq} while it was read: open it again"
            )
        try:
            self.load(Snapshot(event.seq, event.state, event.digest), event.seq)
        except IncompatibleState as error:
            raise ModelMismatch(
                f"the sealed snapshot at event {event.seq} does not fit the model ({error}): open "
                "the log with the model and the release that compacted it, or restore a backup"
            ) from None

    def take(
        self, history: Iterable[events.Event], decisions: Decisions, check_from: float = math.inf
    ) -> None:
        """Fold the next events; repeat the draws of decisions from `check_from` on."""
        draw_from = 0 if self.driver.draws_change else check_from
        put, observed_by = decisions.put, decisions.observed_by
        accepts_late_feedback = self.driver.accepts_late_feedback
        for event in history:
            if type(event) is Observed:
                decision = observed_by(event)
                if not accepts_late_feedback and event.n != self.due:
                    due = f"decision {self.due}" if self.due else "no decision"
                    why = f"event {event.seq} observes decision {event.n}, but {due} was due"
                    raise damaged_error(None, why)
                self.take_observation(event, decision.x, decision.a)
            elif type(event) is Decided:
                put(event)
                self.take_decision(event, draw=event.seq >= draw_from)
            elif type(event) is Refitted:
                self.take_refit(event, decisions.steps(event.through, event.seq - 1))
            elif type(event) is Compacted:
                decisions.forget(event)
                self.take_sealed(event)
            else:
                raise DamagedLog(f"event {event.seq}: only the first event creates a log")

    def copy(self) -> "Fold":
        """Return an independent copy."""
        return Fold(self.driver.copy(), self.seed, self.seq, self.due)

    def save(self) -> Snapshot:
        """Return the fold as a snapshot."""
        return Snapshot.of(self.seq, self.state() | {"due": np.array(self.due)})

    def state(self) -> Arrays:
        """Return the state of the agent as named arrays."""
        return {f"agent/{name}": v for name, v in self.driver.save().items()}

    def load(self, snapshot: Snapshot, end: int) -> None:
        """Restore a snapshot.

        Raise `IncompatibleState` if the snapshot is damaged, of another model, or newer than event
        `end`, the last event of the log.
        """
        if snapshot.seq > end:
            raise IncompatibleState(f"the log ends at event {end}")
        arrays = snapshot.arrays()
        due = int(arrays.pop("due"))
        self.driver.load({name.removeprefix("agent/"): v for name, v in arrays.items()})
        self.seq, self.due = snapshot.seq, due


def load_first_valid(
    snapshots: Iterator[Snapshot], driver: Driver, created: Created, end: int, *, warn: bool
) -> Fold:
    """Return the fold at the first valid snapshot up to event `end`, otherwise a new fold.

    The driver must hold a new agent. With `warn`, warn of each invalid snapshot.
    """
    for snapshot in snapshots:
        fold = Fold(driver.copy(), created.seed)
        try:
            fold.load(snapshot, end)
        except IncompatibleState as error:
            if warn:
                text = f"the snapshot after event {snapshot.seq} is skipped ({error}): the log is "
                warnings.warn(f"{text}folded instead", DamagedSnapshot, stacklevel=4)
        else:
            return fold
    return Fold(driver, created.seed)


def fold_log(
    log: Log, driver: Driver, created: Created, decisions: Decisions, stop: int | None = None
) -> Fold:
    """Fold events 1 … stop, starting from the newest valid snapshot.

    The driver must hold a new agent.
    """
    # List the snapshots before reading the head: other processes may store a newer one meanwhile.
    snapshots = log.snapshots(stop)
    end = log.head() if stop is None else stop
    fold = load_first_valid(snapshots, driver, created, end, warn=True)
    # Repeat the last few draws, to detect changed code before the log grows.
    fold.take(events.read_events(log, fold.seq + 1, end), decisions, end - _CHECKED + 1)
    return fold


# -- changed code --------------------------------------------------------------------------------


def require_no_drift(log: Log, model: Model, created: Created) -> None:
    """Raise `ModelMismatch` if a named model no longer reproduces its log.

    Opening a log from a snapshot skips the events before it, which would hide changed code. So up
    to 1,000 events are folded again: those after the last snapshot that is at least 100 events
    older than the newest snapshot, or from the beginning if there is none. Their decisions are
    drawn again, and a_n and P(a_n | âo_<n) are compared. If they reach the newest snapshot, the
    states are compared too.
    """
    newest = None if model.name in KINDS else next(log.snapshots(), None)
    if newest is None:
        return
    end = newest.seq - _MIN_DISTANCE
    fold = load_first_valid(log.snapshots(end), model.driver(), created, end, warn=False)
    decisions = Decisions(log)
    for event in islice(events.read_events(log, fold.seq + 1, newest.seq), _MAX_FOLDED):
        probabilities = fold.driver.probabilities(event.x) if isinstance(event, Decided) else None
        fold.take([event], decisions, event.seq)
        if isinstance(event, Decided) and probabilities is not None:
            fold.require_probability(event, probabilities)
    if fold.seq == newest.seq and not _matches(newest, fold.state()):
        raise ModelMismatch(
            f"model {model.name!r} version {model.version} has changed: after event {newest.seq} "
            "its state differs from the snapshot; give the changed model a new version and a new "
            "log"
        )


def _matches(snapshot: Snapshot, state: Arrays) -> bool:
    """Return False if the state differs from an intact snapshot by more than rounding."""
    try:
        saved = snapshot.arrays()
    except IncompatibleState:  # opening the log skips it, with a warning
        return True
    return all(name in saved and _is_close(saved[name], v) for name, v in state.items())


def _is_close(saved: Any, computed: Any) -> bool:
    """Return whether two arrays have the same shape and type, and values equal up to rounding."""
    if saved.shape != computed.shape or saved.dtype.kind != computed.dtype.kind:
        return False
    if saved.dtype.kind != "f":
        return bool(np.array_equal(saved, computed))
    scale = _TOLERANCE * float(np.abs(computed[np.isfinite(computed)]).max(initial=0.0))
    return bool(np.allclose(saved, computed, rtol=_TOLERANCE, atol=scale, equal_nan=True))
