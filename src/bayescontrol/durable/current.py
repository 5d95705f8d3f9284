"""The agent as it is now: the fold of its log in memory, and how it moves on.

    compute    what the requests make of the fold, on a copy
    append     their rows, durably
    believe    the copy takes the fold's place

Others may append to the same log meanwhile: then what they wrote is folded first.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bayescontrol.durable.committer import Request
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, events_of
from bayescontrol.durable.faults import reach
from bayescontrol.durable.fold import Decisions, Fold, fold_log
from bayescontrol.durable.laws import Laws
from bayescontrol.durable.store import Log
from bayescontrol.durable.turn import Turn
from bayescontrol.errors import HeadMoved


class Current:
    """The fold of a log up to its head. One thread writes at a time, any number read.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> from bayescontrol.durable.requests import Act
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", BernoulliBandit(["red"])) as agent:
    ...     model, created = agent.model, agent.created
    >>> now = Current(store.log("shop"), model.driver(), created, shared=False)
    >>> now.write([Act(None, None)]), now.fold.seq
    (True, 2)
    """

    def __init__(self, log: Log, driver: Driver, created: Created, *, shared: bool) -> None:
        self._log, self._shared = log, shared
        self._guard = threading.RLock()
        self._is_reading = False  # whether the thread that holds the guard is in `reading`
        self._decisions = Decisions(log)
        self.fold = fold_log(log, driver, created, self._decisions)
        self._laws = Laws(self.fold.driver.law)

    def write(self, requests: Sequence[Request]) -> bool:
        """Whether it is done; if not, another process was faster."""
        reach("before-compute")
        with self._guard:
            self._catch_up()
            turn = Turn(self.fold, self._log, self._decisions, self._laws)
            turn.compute(requests)
        if turn.rows:
            reach("before-append")
            try:
                self._log.append(turn.rows)
            except HeadMoved:
                if self._shared or self._log.head() > self.fold.seq:
                    return False
                raise
            reach("after-commit")
            with self._guard:
                if turn.fold.seq > self.fold.seq:  # else a reader has folded it already
                    for decision in turn.decided:
                        self._decisions.put(decision)
                    for row in turn.rows:
                        if row.n is not None:
                            self._decisions.answered(row.n, row.seq)
                    self.fold, self._laws = turn.fold, turn.laws
        turn.grant()
        return True

    def _catch_up(self) -> None:
        """Fold what other processes have appended; the guard is held."""
        if self._log.head() > self.fold.seq:
            # A copy: a turn under way shares the agent, and who is interrupted leaves half of one.
            fold = self.fold.copy()
            fold.take(events_of(self._log, fold.seq + 1), self._decisions)
            self.fold, self._laws = fold, Laws(fold.driver.law)

    @contextmanager
    def reading(self) -> Iterator[Fold]:
        """The fold with all that others have appended; it stands still meanwhile.

        A reading within a reading is of the same fold.
        """
        with self._guard:
            nested = self._is_reading
            try:
                if not nested:
                    self._catch_up()
                    self._is_reading = True
                yield self.fold
            finally:
                self._is_reading = nested

    @contextmanager
    def still(self) -> Iterator[Fold]:
        """The fold as it is, without asking the store; it stands still meanwhile."""
        with self._guard:
            yield self.fold
