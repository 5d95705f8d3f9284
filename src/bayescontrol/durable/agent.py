"""The durable agent: every decision and every observation is on disk before it is acknowledged.

    act(x)            draw a_n ~ P(a | âo_<n, x) from the stream (seed, n), append it to the log
    observe(id, o)    append o to the log, learn it; repeating the call has no effect
    withdraw(id)      append that the observation was wrong, and fold the log without it
    configure(c)      append the configuration of later decisions

The belief is computed from the log. If the process is killed, opening the agent again restores the
belief bitwise. `explain` draws a decision again from the events before it.
"""

import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from os import PathLike
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from bayescontrol import errors
from bayescontrol._arrays import Arrays
from bayescontrol.durable import events, requests
from bayescontrol.durable.compaction import EventCounter, compact_log
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.decisions import Answer, Decisions, read_amendments
from bayescontrol.durable.decisions import Explanation as Explanation
from bayescontrol.durable.driver import posterior_summary
from bayescontrol.durable.fold import EarlierFolds, Fold, fold_log, load_first_valid
from bayescontrol.durable.models import Model
from bayescontrol.durable.plain import Value, as_stored
from bayescontrol.durable.stores.committer import Committer, Request, fail_all
from bayescontrol.durable.stores.log import Log, LogStore, SnapshotNotKept, require_usable
from bayescontrol.durable.turn import Turn
from bayescontrol.protocols import Summary, Totals

T = TypeVar("T")
#: The minimum number of seconds between two snapshots after amendments.
_AMENDED_PERIOD: Final = 1.0


class DurableAgent(AbstractContextManager["DurableAgent"]):
    """An agent with a log, for any number of threads. `open_agent` creates it.

    The arguments `store`, `log`, `model`, `created`, `snapshot_every` and `opened` are those that
    `open_agent` passes; programs do not create this class.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"])) as agent:
    ...     d = agent.act()
    ...     agent.observe(d.id, 1), agent.observe(d.id, 1)
    (True, False)
    """

    def __init__(
        self, store: LogStore, log: Log, model: Model, created: events.Created,
        snapshot_every: int, opened: ExitStack,
    ) -> None:  # fmt: skip
        self._store, self._log, self._snapshot_every = store, log, snapshot_every
        #: The name of the log, and the seed of the random streams.
        self.name, self.seed = log.name, created.seed
        self.model, self.created, driver = model, created, model.driver()
        #: Whether observations may come at any time; otherwise before the next `act`.
        self.accepts_late_feedback = driver.accepts_late_feedback
        # The fold of the log up to its head. One thread writes at a time, any number may read;
        # `_is_reading` is true while the thread with the guard is inside `_reading`.
        self._guard, self._is_reading = threading.RLock(), False
        self._decisions = Decisions(log)
        self._fold = fold_log(log, driver, created, self._decisions)
        # Earlier folds, from which the log is folded again after an amendment, and those that were
        # passed on the way when that was done last.
        self._earlier, self._on_the_way = EarlierFolds(), list[Fold]()
        # Whether an amendment has made the snapshots stale, and when that last led to a new one.
        self._is_amended, self._renewed_at = False, -math.inf
        self._last_snapshot = next((s.seq for s in log.snapshots(self.head)), 0)
        self._committer, self._writing = Committer[Request](self._write), threading.Lock()
        #: Seconds that the last batch of requests took to compute, without the disk.
        self.compute_seconds = 0.0
        self._counter = EventCounter(log)
        self._process, self._closed = os.getpid(), False
        self._opened = opened.pop_all()  # the log, and the store if this agent opened it

    # -- acting and observing --------------------------------------------------------------------

    def act(
        self, x: Value = None, *, key: str | None = None, among: Sequence[Value] | None = None,
        session: str | None = None,
    ) -> events.Decision:  # fmt: skip
        """Choose an action in situation x and log it before returning it.

        `key` makes the call idempotent: the same call with the same key, also after a crash,
        returns the same decision. Without a `session` its `probabilities` are then computed again,
        as in `explain`. `among` lists the eligible arms: each mode chooses the best among them. A
        `session` holds its decision: a call with the same session returns it, while its arm is
        eligible. Such a call does not store its `key`.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> shop = BernoulliBandit(["red", "blue", "green"])
        >>> with open_agent("sqlite:///:memory:", "shop", shop, seed=1) as agent:
        ...     d = agent.act(among=["red", "blue"], session="visitor-81")
        ...     d.probability, agent.act(session="visitor-81") == d
        (0.5, True)
        """
        decision: events.Decision = self._submit(requests.Act(x, key, among, session))
        is_known = decision.probabilities is None and decision.probability is not None
        if is_known and session is None:  # a session calls too often to fold the log each time
            decision = replace(decision, probabilities=self.explain(decision).probabilities)
        return decision

    def observe(self, id: events.DecisionId, o: Value, *, cost: float | None = None) -> bool:
        """Log and learn the observation of a decision; return False if it was known already.

        If the agent accepts late feedback, observations may come in any order, days later or
        never; otherwise before the next `act`. A different second observation is
        `ConflictingFeedback`; but one that replaces a recorded default, or comes after `withdraw`,
        is a correction. `o` may be the `Totals` of several rewards. `cost` is what the decision
        has cost, with all its rewards, for arms whose price is "reported".
        """
        return bool(self._submit(requests.Observe(id, o, cost)))

    def observe_totals(self, arm: Value, totals: Totals, x: Value = None, *, key: str) -> bool:
        """Log and learn the totals of rewards of an arm in situation x, without decisions.

        For conjugate arms they equal the same rewards one by one. The logistic belief depends on
        the order: it learns all ones first. A changing belief needs a decision for each reward. A
        second call with the same key returns False.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.bandits import Totals
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
        ...     _ = agent.observe_totals("red", Totals(98, 49), key="monday")
        ...     agent.posterior()["red"]["count"]
        98
        """
        return bool(self._submit(requests.ObserveTotals(arm, totals, x, key)))

    def withdraw(self, id: events.DecisionId) -> bool:
        """Take back a wrong observation of a decision; return False if it is withdrawn already.

        The decision is then unanswered, and `observe` may answer it again. The log is folded again
        without the observation, from a state before it. Logged probabilities stay as they were.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
        ...     d = agent.act()
        ...     agent.observe(d, 1), agent.withdraw(d), agent.observe(d, 0)
        ...     agent.posterior()["red"]["beta"]
        (True, True, True)
        2.0
        """
        return bool(self._submit(requests.Withdraw(id)))

    # -- arms and configuration --------------------------------------------------------------------

    def add_arm(self, arm: Value, prior: Value = None) -> int:
        """Add an arm; return the number of the event.

        `prior` is the prior of the arm, as the bandit takes it; by default that of the model, which
        may be learned from the other arms.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
        ...     agent.add_arm("blue", prior=(8, 2)), agent.pause_arm("red")
        ...     agent.probabilities(), agent.arms()
        (2, 3)
        ({'blue': 1.0}, {'red': 'paused', 'blue': 'active'})
        """
        return int(self._submit(requests.ChangeArm(arm, "added", prior)))

    def pause_arm(self, arm: Value) -> int:
        """Make an arm ineligible until it is resumed; return the number of the event."""
        return int(self._submit(requests.ChangeArm(arm, "paused")))

    def resume_arm(self, arm: Value) -> int:
        """Make a paused arm eligible again; return the number of the event."""
        return int(self._submit(requests.ChangeArm(arm, "resumed")))

    def retire_arm(self, arm: Value) -> int:
        """Make an arm ineligible for good; return the number of the event."""
        return int(self._submit(requests.ChangeArm(arm, "retired")))

    def arms(self) -> dict[Any, str]:
        """Return the state of every arm: "active", "paused" or "retired"."""
        with self._reading() as fold:
            return {a: fold.terms.arm_state(a) for a in fold.driver.arms()}

    def prices(self) -> dict[Any, float]:
        """Return the current price of every arm that has one: declared, or the mean cost so far."""
        with self._reading() as fold:
            return fold.terms.prices()

    @property
    def configuration(self) -> Configuration:
        """The configuration of the next decision."""
        return self._fold.terms.configuration

    def configure(self, configuration: Configuration) -> int:
        """Replace the configuration, from the next decision on; return the number of the event.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import Configuration, open_agent
        >>> shop = BernoulliBandit(["red", "blue"])
        >>> with open_agent("sqlite:///:memory:", "shop", shop) as agent:
        ...     _ = agent.configure(Configuration(shares={"red": (0.7, 1.0)}))
        ...     round(agent.probabilities()["red"], 12)
        0.7
        """
        return int(self._submit(requests.Configure(configuration)))

    def settle(self) -> int:
        """Record the defaults that are due; return how many decisions are open then.

        Every call that writes does it too: this is for agents without requests. Decisions are open
        while they wait for an observation, or for the end of the window; withdrawn ones are not.
        """
        return int(self._submit(requests.Settle()))

    def refit(self, draws: Value, *, through: int, log_weights: Value = None) -> int:
        """Log the posterior draws of a new fit and use them; return the number of the event.

        For models of draws, such as `DrawsBandit`. The fit contains the observations up to event
        `through`, the `head` when its data were read; later ones are learned again. The `draws` and
        `log_weights` are those of `DrawsBelief.refit`. An error changes nothing.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.bandits import DrawsBandit
        >>> from bayescontrol.durable import open_agent
        >>> shop = DrawsBandit(BernoulliBandit(["red", "blue"]), [[0.2, 0.6], [0.8, 0.7]])
        >>> with open_agent("sqlite:///:memory:", "shop", shop) as agent:
        ...     fitted, _ = agent.head, agent.observe(agent.act(), 1)
        ...     agent.refit([[0.3, 0.6], [0.7, 0.7], [0.8, 0.6]], through=fitted)
        4
        """
        return int(self._submit(requests.Refit(draws, through, log_weights)))

    def handle(self, batch: Sequence[Request]) -> None:
        """Handle many `Act` and `Observe` in one commit; set the result or the error of each."""
        try:
            self._require_open()
            self._write(batch)
        except Exception as error:  # the agent is closed
            fail_all(batch, error)

    def _submit(self, request: Request) -> Any:
        """Return the result of a request when it is durable, or raise its error."""
        self._require_open()
        return self._committer.submit(request)

    def _write(self, batch: Sequence[Request]) -> None:
        """Write one batch at a time, and store a snapshot if one is due."""
        with self._writing:
            self._require_open()
            batch = [r for r in batch if type(r) is not Request]
            done = not batch  # an empty request of `close` writes nothing
            try:
                while not done:  # repeat if another process appended first
                    with self._log.turn():
                        done = self._take_turn(batch)
            except Exception as error:
                fail_all(batch, error)
            self._snapshot_if_due()

    def _take_turn(self, batch: Sequence[Request]) -> bool:
        """Write a batch; return False if another process appended first: then call this again."""
        turn = self._compute(batch)
        if turn.rows:
            try:
                self._log.append(turn.rows)
            except errors.HeadMoved:
                if self._store.shared or self._log.head() > self.head:
                    return False
                raise
        self._adopt(turn)
        return True

    def _compute(self, batch: Sequence[Request]) -> Turn:
        """Compute the rows of a batch from all events before it."""
        began = time.perf_counter()
        with self._guard:
            self._catch_up()
            turn = Turn(self.name, self._fold, self._decisions, self._fold_again)
            turn.compute(batch)
        self.compute_seconds = time.perf_counter() - began
        return turn

    def _adopt(self, turn: Turn) -> None:
        """Make the state after a turn the current one and set the results: its rows are on disk."""
        if turn.rows:
            with self._guard:
                if turn.fold.seq > self.head:  # otherwise a reader has folded the rows already
                    for event in turn.events:
                        self._decisions.note(event)
                    if turn.amendments:
                        self._replace_earlier(min(turn.amendments))
                    elif self.configuration.window is not None:
                        self._earlier.add(self._fold)
                    self._fold = turn.fold
        turn.grant()

    def _catch_up(self) -> None:
        """Fold the events that other processes have appended. The caller holds the guard."""
        end = self._log.head()
        if end <= self.head:
            return
        amendments = read_amendments(self._log, self.head + 1, end)
        history = events.read_events(self._log, self.head + 1, end)
        is_compacted = self._log.sealed > self.head  # the next events were
        if amendments.reach(self.head) and not is_compacted:
            fold = self._fold_again({}, end)
            self._replace_earlier(min(amendments.final))
            for event in history:
                self._decisions.note(event)
        else:
            # A copy: a turn may share the agent, and an interrupt may come halfway.
            fold = Fold(self.model.driver(), self.seed) if is_compacted else self._fold.copy()
            fold.take(history, self._decisions, amendments=amendments)
        self._fold = fold

    def _fold_again(self, pending: Mapping[int, events.Amendment], stop: int) -> Fold:
        """Fold the log up to event `stop` with amendments, also with pending ones.

        Start from an earlier fold, or from a snapshot, without the amended observations. Other
        processes may have appended events after `stop`: `_catch_up` has not noted them yet.
        """
        first = min((*pending, *read_amendments(self._log, self.head + 1, stop).final))
        decisions = Decisions(self._log)
        fold = self._earlier.before(first)
        if fold is None or fold.seq < self._log.sealed:
            snapshots, driver = self._log.snapshots(first - 1), self.model.driver()
            fold = load_first_valid(self._log, snapshots, driver, self.created, decisions, stop)
        amendments = read_amendments(self._log, fold.seq + 1, stop).with_pending(pending)
        history = events.read_events(self._log, fold.seq + 1, stop)
        self._on_the_way = fold.take_retaining(history, decisions, amendments)
        if fold.seq < stop:
            raise errors.StoreBusy(
                f"log {self.name!r} was compacted while it was read: repeat the call"
            )
        return fold

    def _replace_earlier(self, first: int) -> None:
        """Replace the earlier folds that contain the answer `first`, which was amended."""
        self._earlier.replace(first, self._on_the_way)
        self._is_amended = True

    # -- reading ---------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The number of the last event that the belief includes.

        It may grow between two calls: to read several values at the same event, use one `ask`.
        """
        return self._fold.seq

    def posterior(self) -> Summary:
        """Return the posterior by arm or mode, in plain values.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])).posterior()
        {'red': {'mean': 0.5, 'count': 0, 'alpha': 1.0, 'beta': 1.0}}
        """
        with self._reading() as fold:
            return posterior_summary(fold.driver.agent)

    def probabilities(
        self, x: Value = None, among: Sequence[Value] | None = None
    ) -> events.Probabilities | None:
        """Return P(a | âo, x) of every eligible action, or None if it is not known exactly."""
        with self._reading() as fold:
            return fold.probabilities(fold.driver.situation(as_stored(x, "x")), among)

    def ask(self, question: Callable[[Any], T]) -> T:
        """Return `question(agent)` for the current agent. The question must not change it.

        All that the question reads, also `head` and `posterior()`, is at the same event.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
        ...     shop.ask(lambda agent: agent.belief.predictive(None, "red"))
        {0: 0.5, 1: 0.5}
        """
        with self._reading() as fold:
            return question(fold.driver.agent)

    def state(self) -> Arrays:
        """Return the state as named arrays. It is bitwise a function of the log."""
        with self._reading() as fold:
            return fold.state()

    @contextmanager
    def _reading(self) -> Iterator[Fold]:
        """Yield the fold, up to date; it does not change inside the block.

        A nested block yields the same fold.
        """
        self._require_open()
        with self._guard:
            nested = self._is_reading
            try:
                if not nested:
                    self._catch_up()
                    self._is_reading = True
                yield self._fold
            finally:
                self._is_reading = nested

    def log(self, start: int = 1, stop: int | None = None) -> Iterator[events.Event]:
        """Iterate over the events start … stop; without `stop`, to the current head."""
        self._require_open()
        for what, seq in (("start", start), ("stop", 1 if stop is None else stop)):
            if type(seq) is not int or seq < 1:
                raise errors.InvalidRequest(f"{what}={seq!r}: expected a positive integer")
        return events.read_events(self._log, start, stop)

    def counts(self) -> dict[str, int]:
        """Return how many events of each kind the log has, up to those that the belief includes.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
        ...     _ = shop.act(), shop.observe(shop.act(), 1)
        ...     shop.counts()
        {'created': 1, 'decided': 2, 'observed': 1}
        """
        with self._reading() as fold:
            return self._counter.counts(fold.seq)

    def decisions(
        self, start: int = 1, stop: int | None = None
    ) -> Iterator[tuple[events.Decision, Answer | None]]:
        """Iterate over the decisions among the events start … stop, each with its answer.

        The answer is None if the decision has none, or if it is withdrawn.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
        ...     _, second = shop.act(), shop.act()
        ...     _ = shop.observe(second, 1)
        ...     [(d.id, answer and answer.o) for d, answer in shop.decisions()]
        [('2', None), ('3', 1)]
        """
        found = Decisions(self._log)
        for event in self.log(start, stop):
            if isinstance(event, events.Decided):
                answer = found.find_answer(event.seq)
                is_open = answer is None or answer.is_withdrawn
                yield events.Decision.of(event, None, self.name), None if is_open else answer

    def explain(self, id: events.DecisionId) -> Explanation:
        """Draw a decision again and return its posterior, mode and probabilities.

        Raise `ModelMismatch` if the draw now gives another action.
        """
        self._require_open()
        event = (decisions := Decisions(self._log)).get(id)
        fold = fold_log(self._log, self.model.driver(), self.created, decisions, event.seq - 1)
        driver = fold.driver
        posterior = posterior_summary(driver.agent)
        belief = getattr(driver.copy().agent, "belief", None)
        probabilities = fold.draw_again(event).probabilities
        answer = decisions.find_answer(event.seq)
        return Explanation(
            events.Decision.of(event, probabilities), posterior, probabilities,
            mode=None if event.holdout else getattr(driver.agent, "mode", None),
            answered=answer is not None and not answer.is_withdrawn,
            observation=None if answer is None else answer.o,
            is_default=answer is not None and answer.is_default, belief=belief,
        )  # fmt: skip

    # -- housekeeping ----------------------------------------------------------------------------

    def snapshot(self) -> int:
        """Store a snapshot, so that the log opens faster; return the number of its last event."""
        self._require_open()
        with self._guard:
            snapshot = self._fold.save(self._decisions.open)
            self._is_amended = False
        self._log.save_snapshot(snapshot, self._snapshot_every)
        self._last_snapshot = snapshot.seq
        return snapshot.seq

    def _snapshot_if_due(self) -> None:
        """Store a snapshot if the last one is `snapshot_every` events old, or stale."""
        now = time.monotonic()
        is_stale = self._is_amended and now - self._renewed_at >= _AMENDED_PERIOD
        if is_stale or self.head - self._last_snapshot >= self._snapshot_every:
            self._renewed_at = now if is_stale else self._renewed_at
            with suppress(Warning):  # the requests succeed even if warnings are errors
                self._try_snapshot()

    def _try_snapshot(self) -> None:
        """Store a snapshot; only warn if this fails, because a snapshot is a cache."""
        try:
            self.snapshot()
        except Exception as error:
            self._last_snapshot = self.head  # do not try again at every turn
            text = f"no snapshot was stored after event {self.head} ({error}): the log has every "
            text += "event, but opening it takes longer"
            warnings.warn(text, SnapshotNotKept, stacklevel=3)

    def backup(self, path: str | PathLike[str]) -> None:
        """Copy the whole store to a new file, consistently, while the agent keeps running."""
        self._require_open()
        self._store.backup(path)

    def compact(self, through: int) -> int:
        """Replace the events 2 … `through` by a sealed snapshot; return how many were removed.

        The belief and all later decisions stay the same, bit for bit. The removed decisions cannot
        be observed, withdrawn or explained any more, and their keys and sessions are forgotten. On
        SQLite their content is erased from the file. Idempotent: repeat the call if it was
        interrupted.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as agent:
        ...     for _ in range(3):
        ...         _ = agent.observe(agent.act(), 1)
        ...     agent.compact(5), [event.seq for event in agent.log()]
        (4, [1, 5, 6, 7])
        """
        with self._writing:
            self._require_open()
            removed = compact_log(self._log, self.model, self.created, through)
            self._last_snapshot = max(self._last_snapshot, self._log.sealed)
        return removed

    def close(self) -> None:
        """Finish pending requests, store a snapshot if the log has grown, and close. Idempotent."""
        if self._process != os.getpid():  # a forked child must not close the agent of its parent
            return
        with suppress(errors.StoreFailed):  # the agent is closed already
            self._submit(Request())  # an empty request, which waits for those before it
        with self._writing:
            if self._closed:
                return
            try:
                if self.head > max(self._last_snapshot, 1):  # event 1 needs no snapshot
                    self._try_snapshot()
            finally:
                self._closed = True
                self._opened.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed or self._process != os.getpid():
            require_usable(f"agent {self.name!r}", closed=self._closed, process=self._process)

    def __repr__(self) -> str:
        model = f"{self.model.name!r} version {self.model.version}"
        return f"DurableAgent({self.name!r}, {model}, {self.head} events, {self._store.url})"


def handle_together(batches: Mapping[DurableAgent, Sequence[Request]]) -> None:
    """Handle requests of several agents of one SQLite store, as `handle` does, in one commit."""
    turns: dict[DurableAgent, Turn] = {}
    failures: dict[DurableAgent, Exception | None] = {}
    with ExitStack() as writing:
        for agent in sorted(batches, key=lambda agent: agent.name):  # two calls cannot deadlock
            writing.enter_context(agent._writing)
            try:
                agent._require_open()
                turns[agent] = agent._compute(batches[agent])
            except Exception as error:
                failures[agent] = error
        appending = [agent for agent, turn in turns.items() if turn.rows]
        appends = [(agent._log, turns[agent].rows) for agent in appending]
        try:
            if appends:
                log: Any = appends[0][0]
                failures |= zip(appending, log.append_together(appends), strict=True)
        except Exception as error:
            failures |= dict.fromkeys(appending, error)
        for agent, turn in turns.items():
            if failures.get(agent) is None:
                try:
                    agent._adopt(turn)
                except Exception as error:
                    failures[agent] = error
                agent._snapshot_if_due()
    for agent, failure in failures.items():
        if isinstance(failure, errors.HeadMoved):  # nothing of this batch is on disk: compute again
            agent.handle(batches[agent])
        elif failure is not None:
            fail_all(batches[agent], failure)
