"""The fold of a log: what the events 1 … seq make of the prior.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t),  in the order of the log

Deterministic, and bitwise the same whenever it is done: from the first event, from a snapshot, or
event by event as they come.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, Decided, Event, Observed, event_of, events_of
from bayescontrol.durable.plain import kept, same_value, shown
from bayescontrol.durable.snapshots import arrays_of, snapshot_of, warn_passed_over
from bayescontrol.durable.store import Log, Snapshot
from bayescontrol.durable.streams import Streams
from bayescontrol.errors import DamagedLog, IncompatibleState, ModelMismatch, UnknownDecision

#: Decisions kept in memory; older ones are looked up when their feedback comes.
_RECENT: Final = 2**15
#: Events at the end of a log whose decisions are drawn again when it is folded.
_CHECKED: Final = 16


class Decisions:
    """Decisions by number: the recent ones from memory, all others from the log, if there is one.

    >>> decisions = Decisions(None)
    >>> decisions.put(Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0))
    >>> decisions.get(2).a
    'red'
    """

    def __init__(self, log: Log | None, most: int | None = _RECENT) -> None:
        self._log, self._most = log, most if log is not None else None
        self._recent: dict[int, Decided] = {}
        self._order: deque[int] = deque()  # a dict that loses its first keys is slow to find one
        #: The events that answer recent decisions, and the recent decisions with a key.
        self._answers: dict[int, int] = {}
        self._keys: dict[str, int] = {}

    def put(self, decision: Decided) -> None:
        """Remember one that was just made; `DamagedLog` if another one has its key."""
        seq, key = decision.seq, decision.key
        if seq in self._recent:  # folded again
            return
        if key is not None and self._keys.setdefault(key, seq) != seq:
            raise self._damaged(
                f"decisions {self._keys[key]} and {seq} have the same key {shown(key)}"
            )
        self._recent[seq] = decision
        if self._most is not None:
            self._order.append(seq)
            if len(self._order) > self._most:
                oldest = self._recent.pop(self._order.popleft())
                self._answers.pop(oldest.seq, None)
                if oldest.key is not None:
                    self._keys.pop(oldest.key, None)

    def get(self, n: int) -> Decided:
        """Decision n; `UnknownDecision` if event n is not a decision."""
        found = self._recent.get(n)
        if found is None and self._log is not None and 1 <= n <= self._log.head():
            event = next(events_of(self._log, n, n), None)
            if event is None:
                raise self._damaged(f"event {n} is missing")
            found = event if isinstance(event, Decided) else None
        if found is None:
            where = f" in log {self._log.name!r}" if self._log is not None else ""
            raise UnknownDecision(f"no decision {n}{where}: give the id that `act` returned")
        return found

    def keyed(self, key: str) -> Decided | None:
        """The decision under this key, if there is one; `DamagedLog` if the index is wrong."""
        row = None if self._log is None else self._log.keyed(key)
        event = None if row is None else event_of(row, self._name)
        if event is None and key not in self._keys:
            return None
        if not isinstance(event, Decided) or event.seq != self._keys.get(key, event.seq):
            raise self._damaged(f"the index does not lead from key {shown(key)} to its decision")
        return event

    def answer(self, n: int) -> Observed | None:
        """The event that answers decision n, if there is one; `DamagedLog` if the index is wrong.

        Recent decisions without an answer are known: the store is not asked.
        """
        if self._log is None or (n in self._recent and n not in self._answers):
            return None
        row = self._log.observation(n)
        event = None if row is None else event_of(row, self._name)
        if event is None and n not in self._answers:
            return None
        if not isinstance(event, Observed) or event.seq != self._answers.get(n, event.seq):
            raise self._damaged(f"the index does not lead from decision {n} to its answer")
        return event

    def answered(self, n: int, seq: int) -> None:
        """Remember that event `seq` is the answer to decision n, if that is a recent one."""
        if n in self._recent:
            self._answers[n] = seq

    def answered_by(self, event: Observed) -> Decided:
        """The decision that a logged event answers.

        `DamagedLog` if there is no such decision before it, or if it has another answer.
        """
        n, seq = event.n, event.seq
        decision = self._recent.get(n)
        if decision is not None:
            first = self._answers.setdefault(n, seq)
        else:
            try:
                decision = self.get(n if n < seq else 0)
            except UnknownDecision:
                raise self._damaged(
                    f"event {seq} answers decision {n}, which does not exist"
                ) from None
            known = self.answer(n)
            first = 0 if known is None else known.seq
        if first != seq:
            raise self._damaged(f"events {first} and {seq} both answer decision {n}")
        return decision

    @property
    def _name(self) -> str | None:
        return None if self._log is None else self._log.name

    def _damaged(self, why: str) -> DamagedLog:
        where = "" if self._log is None else f"log {self._log.name!r}: "
        return DamagedLog(f"{where}{why}: the log is damaged; restore a backup")


class Fold:
    """The agent after event `seq`, and the decision that is due an answer, if it moves by them.

    >>> from bayescontrol import BernoulliBandit
    >>> fold = Fold(Driver(BernoulliBandit(["red", "blue"]).agent()), seed=7)
    >>> fold.decided(Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0), draw=False)
    >>> fold.observed(Observed(seq=3, n=2, o=1, time=0.0), None, "red")
    >>> fold.seq, fold.driver.agent.belief.expected()
    (3, {'red': 0.666..., 'blue': 0.5})
    """

    def __init__(self, driver: Driver, seed: int | Streams, seq: int = 1, due: int = 0) -> None:
        self.driver, self.seq = driver, seq
        #: The random numbers of each decision, of no other use.
        self.streams = Streams(seed) if isinstance(seed, int) else seed
        #: Of an agent that moves by its observations: the decision without one; 0 if there is none.
        self.due = due

    def decided(self, event: Decided, *, draw: bool) -> None:
        """With `draw`, which must be where draws are remembered, the action must come out again."""
        if draw:
            _, a = self.driver.draw(event.x, self.streams[event.seq])
            self.require_same(event, a)
        self.seq = event.seq
        if not self.driver.alone:
            self.due = event.seq

    def require_same(self, event: Decided, a: Any) -> None:
        """`ModelMismatch` if the model would not have done what it did."""
        if not same_value(kept(a, "the action"), event.a):
            raise ModelMismatch(
                f"decision {event.seq} was {event.a!r}, drawn again it is {a!r}: the code of the "
                "model has changed; give what it is now a new version, and a new log"
            )

    def require_probability(self, event: Decided, law: Mapping[Any, float] | None) -> None:
        """`ModelMismatch` if `law`, P(a | âo_<n), is not what the log says of the action taken.

        Another machine's last digits are no other model.
        """
        if event.p is None:
            return
        p = None if law is None else float(law.get(event.a, 0.0))
        if p is None or not math.isclose(p, event.p, rel_tol=1e-6, abs_tol=1e-9):
            now = "no probability" if p is None else f"{p:.6g}"
            raise ModelMismatch(
                f"decision {event.seq}, {shown(event.a)}, had probability {event.p:.6g}, now it "
                f"has {now}: the log, or the code of the model, has changed; give what it is now a "
                "new version, and a new log"
            )

    def observed(self, event: Observed, x: Any, a: Any) -> None:
        """Learn from o, the answer to a in x."""
        self.driver.learn(x, a, event.o)
        self.seq, self.due = event.seq, 0

    def take(
        self, events: Iterable[Event], decisions: Decisions, check_from: int | None = None
    ) -> None:
        """Fold these events, which follow; draw decisions again from `check_from` on."""
        first = math.inf if check_from is None else check_from
        if self.driver.remembers:
            first = 0
        put, answered_by, late = decisions.put, decisions.answered_by, self.driver.alone
        for event in events:
            if type(event) is Observed:
                decision = answered_by(event)
                if not late and event.n != self.due:
                    raise DamagedLog(
                        f"event {event.seq} answers decision {event.n}, but decision {self.due} "
                        "was due: the log is damaged; restore a backup"
                    )
                self.observed(event, decision.x, decision.a)
            elif type(event) is Decided:
                put(event)
                self.decided(event, draw=event.seq >= first)
            else:
                raise DamagedLog(f"event {event.seq}: a log is created once, by its first event")

    def copy(self) -> "Fold":
        """The same, free to go its own way."""
        return Fold(self.driver.copy(), self.streams, self.seq, self.due)

    def save(self) -> Snapshot:
        """The fold as a snapshot."""
        return snapshot_of(self.seq, self.state() | {"due": np.array(self.due)})

    def state(self) -> Arrays:
        """The state of the agent as named arrays."""
        return {f"agent/{name}": v for name, v in self.driver.save().items()}

    def load(self, snapshot: Snapshot) -> None:
        """Be where the snapshot was taken; `IncompatibleState` if it cannot be believed."""
        arrays = arrays_of(snapshot)
        try:
            due = int(arrays.pop("due"))
        except (KeyError, TypeError, ValueError):
            raise IncompatibleState("it lacks the decision that is due") from None
        inner = {n.removeprefix("agent/"): v for n, v in arrays.items()}
        self.driver.load(inner)
        self.seq, self.due = snapshot.seq, due


def fold_log(
    log: Log, driver: Driver, created: Created, decisions: Decisions, stop: int | None = None
) -> Fold:
    """The fold of events 1 … stop, from the newest snapshot before it that can be believed.

    The driver must be as new.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", BernoulliBandit(["red", "blue"])) as agent:
    ...     _ = agent.observe(agent.act(), 1)
    ...     driver, created = agent.model.driver(), agent.created
    >>> log = store.log("shop")
    >>> fold_log(log, driver, created, Decisions(log)).seq
    3
    """
    kept = log.snapshots(stop)  # before the head is asked for: others may keep one meanwhile
    end = log.head() if stop is None else stop
    for snapshot in kept:
        if snapshot.seq > end:
            warn_passed_over(snapshot.seq, f"the log ends at {end}")
            continue
        fold = Fold(driver.copy(), created.seed)
        try:
            fold.load(snapshot)
        except IncompatibleState as error:
            warn_passed_over(snapshot.seq, error)
            continue
        break
    else:
        fold = Fold(driver, created.seed)
    # The last few, so that changed code is found out before it goes on.
    fold.take(events_of(log, fold.seq + 1, end), decisions, end - _CHECKED + 1)
    return fold
