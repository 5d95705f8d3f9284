"""The durable agent: every decision and every observation is on disk before it is acknowledged.

    act(x)            a_n ~ P(a | âo_<n, x), drawn from the stream (seed, n), logged, returned
    observe(id, o)    logged, learnt; the same again changes nothing, another is a conflict

The log is the truth, the belief its fold. Killed at any moment and opened again, the agent is
bitwise where its log ends.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from os import PathLike
from types import TracebackType
from typing import Any, TypeVar

from msgspec.structs import replace

from bayescontrol.arrays import Arrays
from bayescontrol.durable.committer import Committer, Request, own
from bayescontrol.durable.current import Current
from bayescontrol.durable.decision import Decision
from bayescontrol.durable.events import Created, Event, events_of
from bayescontrol.durable.explain import Explanation, explained
from bayescontrol.durable.faults import reach
from bayescontrol.durable.fold import Fold
from bayescontrol.durable.models import Model
from bayescontrol.durable.plain import kept
from bayescontrol.durable.requests import Act, Close, Many, Observe
from bayescontrol.durable.snapshots import warn_not_kept
from bayescontrol.durable.store import Log, Store, closed
from bayescontrol.durable.summary import summary
from bayescontrol.errors import InvalidRequest, MissingCapability, StoreBusy, StoreFailed

T = TypeVar("T")


class DurableAgent:
    """An agent over a log. Any number of threads may use it; `open_agent` makes one.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"])) as agent:
    ...     d = agent.act()
    ...     agent.observe(d.id, 1), agent.observe(d.id, 1)
    (True, False)
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        model: Model,
        created: Created,
        snapshot_every: int,
        owns_store: bool,
    ) -> None:
        self._store, self._log, self._every = store, log, snapshot_every
        self._owns_store = owns_store
        #: The model, and what the first event of the log says of it.
        self.model, self.created = model, created
        self._now = Current(log, model.driver(), created, shared=store.shared)
        self._kept = next((s.seq for s in log.snapshots(self.head)), 0)
        self._committer: Committer[Request] = Committer(self._write)
        self._process = os.getpid()
        self._closed = False

    # -- the two verbs ---------------------------------------------------------------------------

    def act(self, x: Any = None, *, key: str | None = None) -> Decision:
        """What to do in situation x, on disk before it is returned.

        `key` is a name for this question: asked again under the same key, also after a crash, the
        answer is the same decision. Its `probabilities` are then computed again, as `explain`
        does.
        """
        decision: Decision = self._submitted(Act(x, key))
        if decision.probabilities is None and decision.probability is not None:  # asked before
            decision = replace(decision, probabilities=self.explain(decision).probabilities)
        return decision

    def observe(self, id: str | Decision, o: Any) -> bool:
        """The answer to a decision: True if it was learnt, False if it was known.

        In any order, days later, or never, where feedback stands alone; where it leads to the next
        situation, before the next `act`. Another answer than the first is `ConflictingFeedback`.
        """
        learnt: bool = self._submitted(Observe(id, o))
        return learnt

    def together(self, requests: Sequence[Request]) -> None:
        """Many at once, in one turn: each `Act` and `Observe` ends with a result or an error."""
        try:
            self._submitted(Many(requests))
        except Exception as error:  # whoever is without an answer has this one
            for request in requests:
                if request.error is None and request.result is None:
                    request.error = error

    def _submitted(self, request: Request) -> Any:
        self._require_open()
        answer = self._committer.submit(request)
        reach("before-return")
        return answer

    def _write(self, requests: list[Request]) -> None:
        """One turn: compute, append, and only then believe."""
        self._require_open()
        asked = [one for r in requests for one in (r.all if isinstance(r, Many) else [r])]
        wanted = [r for r in asked if not isinstance(r, Close)]
        done = not wanted
        try:
            while not done:
                with self._log.turn():
                    done = self._now.write(wanted)
        except Exception as error:  # of those who asked, not of whoever closes
            for request in requests:
                if not isinstance(request, Close):
                    request.error = request.error or own(error)
        if len(wanted) < len(asked):
            self._shut()
        elif self.head - self._kept >= self._every:
            try:
                self.snapshot()
            except Exception as error:  # a cache: what it stands for is on disk
                self._kept = self.head  # not again at every turn
                with suppress(Warning):  # also where a warning is an error: all is granted already
                    warn_not_kept(self.head, error)

    # -- what a reader may ask -------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._log.name

    @property
    def seed(self) -> int:
        """The seed of every stream."""
        return self.created.seed

    @property
    def alone(self) -> bool:
        """Whether an answer may come at any time; else it is due before the next `act`.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])).alone
        True
        """
        return self._now.fold.driver.alone

    @property
    def head(self) -> int:
        """The event that the belief has got to.

        Others may write between two calls: to read several values at one event, use one `ask`.
        """
        return self._now.fold.seq

    def posterior(self) -> dict[str, dict[str, Any]]:
        """What is believed now, by arm or mode, in plain values.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])).posterior()
        {'red': {'mean': 0.5, 'count': 0, 'alpha': 1.0, 'beta': 1.0}}
        """
        with self._reading() as fold:
            return summary(fold.driver.agent)

    def probabilities(self, x: Any = None) -> dict[Any, float] | None:
        """P(a | âo, x) for every action, if it were to act now; None where it is not exact."""
        with self._reading() as fold:
            driver = fold.driver
            law: Mapping[Any, float] | None = driver.law(driver.situation(kept(x, "x")))
            return None if law is None else dict(law)

    def ask(self, question: Callable[[Any], T]) -> T:
        """Return `question(agent)`, asked of the agent as it is now; it must change nothing.

        All that the question reads, `head` and `posterior()` included, is of the same event.

        >>> from bayescontrol import BernoulliBandit
        >>> from bayescontrol.durable import open_agent
        >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
        ...     shop.ask(lambda agent: agent.belief.surprise(None, "red", 1))
        1.0
        """
        with self._reading() as fold:
            return question(fold.driver.agent)

    def state(self) -> Arrays:
        """The state as named arrays: bitwise a function of the log."""
        with self._reading() as fold:
            return fold.state()

    def _reading(self) -> AbstractContextManager[Fold]:
        self._require_open()
        return self._now.reading()

    def log(self, start: int = 1, stop: int | None = None) -> Iterator[Event]:
        """The events, checked one by one; without `stop` to the head of now."""
        self._require_open()
        for what, seq in (("start", start), ("stop", 1 if stop is None else stop)):
            if type(seq) is not int or seq < 1:
                raise InvalidRequest(f"{what}={seq!r}: events are numbered from 1")
        return events_of(self._log, start, stop)

    def explain(self, id: str | Decision) -> Explanation:
        """Why it was done: the posterior then, the mode drawn, the probabilities; drawn again."""
        self._require_open()
        return explained(self._log, self.model, self.created, id)

    # -- housekeeping ----------------------------------------------------------------------------

    def snapshot(self) -> int:
        """Keep the fold beside the log, so that it opens faster. Gives its place in the log."""
        self._require_open()
        with self._now.still() as fold:
            snapshot = fold.save()
        reach("before-snapshot")
        self._log.keep(snapshot, self._every)
        reach("after-snapshot")
        self._kept = snapshot.seq
        return snapshot.seq

    def backup(self, path: str | PathLike[str]) -> None:
        """A copy of the whole store in a new file, consistent, while the agent goes on."""
        self._require_open()
        copy = getattr(self._store, "backup", None)
        if copy is None:
            raise MissingCapability(f"{self._store.url}: use the database's own tool, pg_dump")
        copy(path)

    def close(self) -> None:
        """Finish what is under way, take a snapshot if there is news, and give the log back.

        Again: nothing.
        """
        with suppress(StoreFailed):  # closed already
            self._submitted(Close())

    def _shut(self) -> None:
        reach("before-close")
        try:
            if self.head > max(self._kept, 1):
                self.snapshot()
        except StoreFailed as error:
            warn_not_kept(self.head, error)
        finally:
            self._closed = True
            self._log.close()
            if self._owns_store:
                self._store.close()

    def __enter__(self) -> "DurableAgent":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise closed(f"agent {self.name!r}")
        if self._process != os.getpid():  # its locks may be held by threads that are not here
            raise StoreBusy(
                f"agent {self.name!r} is open in the process that this one was forked from"
            )

    def __repr__(self) -> str:
        about = f"{self.model.name!r} version {self.model.version}"
        return f"DurableAgent({self.name!r}, {about}, {self.head} events, {self._store.url})"
