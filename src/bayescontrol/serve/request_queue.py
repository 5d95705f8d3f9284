"""The request queue of one agent: collects requests on the event loop and commits them together.

    while one commit is running, new requests wait; then all of them form the next commit

A worker thread runs once per commit, not once per request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from bayescontrol.durable.agent import DurableAgent, Explanation
from bayescontrol.durable.committer import Request
from bayescontrol.durable.events import Decision
from bayescontrol.durable.turn import Act, Observe
from bayescontrol.errors import DamagedLog, NewerFormat, StoreFailed
from bayescontrol.serve.monitor import Monitor
from bayescontrol.serve.problems import Refused, value_error

T = TypeVar("T")
_logger = logging.getLogger("bayescontrol.serve")
#: Maximum requests that wait for one agent, in addition to those being committed.
_MAX_WAITING: Final = 1024
#: Maximum queries of one agent that may replay its log, waiting or running.
_MAX_REPLAYS: Final = 8
#: Maximum decisions with a key whose probabilities are cached.
_MAX_CACHED: Final = 1024
#: Maximum requests in one commit.
_MAX_BATCH: Final = 256
_Waiting: TypeAlias = tuple[Request, "asyncio.Future[Any]"]


class RequestQueue:
    """A durable agent on an event loop: `act` and `observe` return once the event is on disk.

    `writers` run commits, `readers` run queries, `replayers` (default: `readers`) run queries that
    may replay a long log. `on_write` is called after each commit with the error of the store, or
    None after a successful write.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> from bayescontrol.serve.metrics import Metrics
    >>> async def visit():
    ...     agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"]))
    ...     queue = RequestQueue(agent, pool := ThreadPoolExecutor(1), pool, Monitor(Metrics()))
    ...     decision = await queue.act(None, None)
    ...     learned = await queue.observe(decision.id, 1), await queue.observe(decision.id, 1)
    ...     await queue.close()
    ...     return decision.action, learned
    >>> asyncio.run(visit())
    ('red', (True, False))
    """

    def __init__(
        self,
        agent: DurableAgent,
        writers: Executor,
        readers: Executor,
        monitor: Monitor,
        *,
        replayers: Executor | None = None,
        on_write: Callable[[StoreFailed | None], None] = lambda _: None,
    ) -> None:
        self.agent = agent
        self._writers, self._readers, self._monitor = writers, readers, monitor
        self._replayers, self._on_write = replayers or readers, on_write
        self._waiting: deque[_Waiting] = deque()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()  # set while no commit is running or scheduled
        self._idle.set()
        self._closing = False
        self._replays = 0
        self._probabilities: dict[str, Mapping[Any, float]] = {}  # by decision id

    @property
    def waiting(self) -> int:
        """The number of requests that wait for the next commit."""
        return len(self._waiting)

    # -- requests --------------------------------------------------------------------------------

    async def act(self, x: Any, key: str | None) -> Decision:
        """See `DurableAgent.act`."""
        decision: Decision = await self._put(Act(x, key))
        if key is None or decision.probability is None:
            return decision
        return await self._with_probabilities(decision)

    async def _with_probabilities(self, decision: Decision) -> Decision:
        """Add P(a | past) of every action to a decision that was made under a key.

        Retries usually come soon, when the server is busy. Recent probabilities are therefore
        cached; those of older decisions are computed again from the log.
        """
        found = decision.probabilities or self._probabilities.get(decision.id)
        if found is None:
            found = (await self.explain(decision)).probabilities
        if found is not None:
            self._probabilities[decision.id] = found
            if len(self._probabilities) > _MAX_CACHED:
                del self._probabilities[next(iter(self._probabilities))]
        return replace(decision, probabilities=found)

    async def observe(self, id: str, o: Any) -> bool:
        """See `DurableAgent.observe`."""
        return bool(await self._put(Observe(id, o)))

    async def explain(self, id: str | Decision) -> Explanation:
        """See `DurableAgent.explain`. Runs in its own thread, because it may replay a long log."""
        if self._replays >= _MAX_REPLAYS:
            raise Refused("overloaded", f"{_MAX_REPLAYS} decisions are being explained")
        self._replays += 1
        try:
            return await self._loop.run_in_executor(self._replayers, self.agent.explain, id)
        finally:
            self._replays -= 1

    async def probabilities(self, x: Any) -> Mapping[Any, float] | None:
        """See `DurableAgent.probabilities`."""

        def query(agent: DurableAgent) -> Mapping[Any, float] | None:
            # Read what other processes wrote first: such an error is not caused by x.
            agent.ask(lambda _: None)
            try:
                return agent.probabilities(x)
            except Exception as error:
                raise value_error(error) from error

        return await self.read(query)

    async def read(self, query: Callable[[DurableAgent], T]) -> T:
        """Return `query(agent)`, computed in a thread."""
        return await self._loop.run_in_executor(self._readers, query, self.agent)

    # -- commits ---------------------------------------------------------------------------------

    def _put(self, request: Request) -> "asyncio.Future[Any]":
        """Add a request to the next commit; raise `Refused` if the queue is full or closing."""
        if self._closing:
            raise Refused(
                "shutting-down", "the server accepts no more requests", {"Retry-After": "5"}
            )
        if len(self._waiting) >= _MAX_WAITING:
            raise Refused(
                "overloaded", f"{len(self._waiting)} requests wait for agent {self.agent.name!r}"
            )
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((request, future))
        if self._idle.is_set():
            self._idle.clear()
            # Not immediately, so that requests that the loop has already read join this commit.
            self._loop.call_soon(self._start_commit)
        return future

    def _start_commit(self) -> None:
        """Commit the waiting requests in a worker thread; become idle if there are none."""
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < _MAX_BATCH:
            request, future = self._waiting.popleft()
            if not future.done():  # skip requests whose caller stopped waiting
                batch.append((request, future))
        if batch:
            self._writers.submit(self._commit, batch)
        else:
            self._idle.set()

    def _commit(self, batch: list[_Waiting]) -> None:
        """Write a batch; runs in a worker thread."""
        requests = [request for request, _ in batch]
        try:
            self._notify(self._monitor.before_commit, requests)
            head = self.agent.head
            self.agent.handle(requests)
            self._report_write(requests, self.agent.head > head)
            self._notify(self._monitor.after_commit, requests)
        finally:
            self._loop.call_soon_threadsafe(self._finish_commit, batch)

    def _report_write(self, requests: Sequence[Request], written: bool) -> None:
        """Call `on_write` with the error of the store, or with None if events were written.

        A log that is damaged or too new affects one agent only, so it is not reported.
        """
        for request in requests:
            error = request.error
            if isinstance(error, StoreFailed) and not isinstance(error, DamagedLog | NewerFormat):
                self._on_write(error)
                return
        if written:
            self._on_write(None)

    def _notify(
        self, method: Callable[[DurableAgent, Sequence[Request]], None], requests: Sequence[Request]
    ) -> None:
        try:
            method(self.agent, requests)
        except Exception:  # an error of the monitor must not fail the requests
            _logger.exception("the monitor failed for agent %r", self.agent.name)

    def _finish_commit(self, batch: list[_Waiting]) -> None:
        """Pass results and errors to the callers, then start the next commit."""
        for request, future in batch:
            if future.done():
                continue
            if request.error is not None:
                error = value_error(request.error) if request.rejected_by_agent else request.error
                future.set_exception(error)
            elif request.result is None:  # never acknowledge what may not have been written
                future.set_exception(
                    StoreFailed("the request may or may not be stored; repeat it with the same key")
                )
            else:
                future.set_result(request.result)
        self._start_commit()

    async def close(self) -> None:
        """Finish waiting requests, then close the agent."""
        self._closing = True
        await self._idle.wait()
        await self._loop.run_in_executor(self._writers, self.agent.close)
