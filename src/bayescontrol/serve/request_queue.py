"""The requests of one agent on the event loop of a server, and the commits that handle them.

Requests that arrive while a commit is running form the next commit. A worker thread runs once per
commit, not once per request. The agents of a SQLite store share commits, except those that compute
for long, or run code of the user: nobody waits for them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from bayescontrol import errors
from bayescontrol.bandits import Schema
from bayescontrol.durable.agent import DurableAgent, Explanation, handle_together
from bayescontrol.durable.events import Decision
from bayescontrol.durable.requests import Act, Observe, Settle
from bayescontrol.durable.stores.committer import Request
from bayescontrol.serve.http_errors import Refused, UnknownAgent, as_refusal
from bayescontrol.serve.monitor import Monitor
from bayescontrol.serve.values import agent_tag, decode_id, with_ids

T = TypeVar("T")
_logger = logging.getLogger("bayescontrol.serve")
#: Threads of each pool.
_READERS: Final = 4
_WRITERS: Final = 8
_REPLAYERS: Final = 1
#: An agent with this many waiting requests, besides those being committed, accepts no more.
_MAX_WAITING: Final = 1024
#: Maximum queries of one agent that may replay its log, waiting or running.
_MAX_REPLAYS: Final = 8
#: Maximum decisions with a key whose probabilities are cached.
_MAX_CACHED: Final = 1024
#: Seconds of computing from which an agent commits alone, so that others need not wait for it.
_SLOW: Final = 0.005
#: A commit takes requests of an agent until it has this many. A batch is never divided.
_MAX_BATCH: Final = 256
#: Requests that are committed together, and the future that is done when they are handled.
_Waiting: TypeAlias = tuple[Sequence[Request], "asyncio.Future[None]"]
_Batches: TypeAlias = dict["ServedAgent", list[_Waiting]]


class Pools(NamedTuple):
    """Threads for queries, for commits, and for what may replay a long log.

    They are separate: reading a long log must not delay commits, and opening or explaining an agent
    must delay neither.
    """

    readers: Executor
    writers: Executor
    replayers: Executor

    @classmethod
    def start(cls) -> "Pools":
        """Return the pools of a server."""
        sizes = (_READERS, _WRITERS, _REPLAYERS)
        names = (f"bayescontrol-{what}" for what in ("read", "write", "replay"))
        return cls(*map(ThreadPoolExecutor, sizes, names))


class Commits:
    """Commits the requests of one agent, or of several agents of a SQLite store, one after another.

    `on_write` is called after each commit with the error of the store, or None after a successful
    write.
    """

    def __init__(
        self, writers: Executor, monitor: Monitor,
        on_write: Callable[[errors.StoreFailed | None], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._writers, self.monitor, self._on_write = writers, monitor, on_write
        self._ready: list[ServedAgent] = []  # agents with requests for the next commit
        self._running = False  # whether a commit is running or scheduled

    def schedule(self, served: "ServedAgent") -> None:
        """Include the waiting requests of an agent in the next commit."""
        self._ready.append(served)
        if not self._running:
            self._running = True
            # Not immediately, so that requests that the loop has already read join this commit.
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Commit the waiting requests in a worker thread; stop without any."""
        ready, self._ready = self._ready, []
        batches = {served: batch for served in ready if (batch := served.take_batch())}
        self._running = bool(batches)
        if batches:
            self._writers.submit(self._commit, batches, asyncio.get_running_loop())

    def _commit(self, batches: _Batches, loop: asyncio.AbstractEventLoop) -> None:
        """Write the batches; runs in a worker thread."""
        requests = {
            served.agent: [request for group, _ in batch for request in group]
            for served, batch in batches.items()
        }
        heads = {agent: agent.head for agent in requests}
        try:
            self._notify(self.monitor.before_commit, requests)
            if len(requests) == 1:
                for agent, batch in requests.items():
                    agent.handle(batch)
            else:
                handle_together(requests)
            for agent, batch in requests.items():
                self._report_write(batch, agent.head > heads[agent])
            self._notify(self.monitor.after_commit, requests)
        finally:
            loop.call_soon_threadsafe(self._finish, batches)

    def _report_write(self, requests: Sequence[Request], written: bool) -> None:
        """Call `on_write` with the error of the store, or with None if events were written.

        A log that is damaged or too new affects one agent only, so it is not reported.
        """
        of_one_agent = errors.DamagedLog | errors.NewerFormat
        failures = [r.error for r in requests if isinstance(r.error, errors.StoreFailed)]
        of_store = [error for error in failures if not isinstance(error, of_one_agent)]
        if of_store or written:
            self._on_write(of_store[0] if of_store else None)

    def _notify(
        self, method: Callable[..., None], batches: Mapping[DurableAgent, Sequence[Request]]
    ) -> None:
        """Call a method of the monitor; log its errors, which must not fail the requests."""
        for agent, batch in batches.items():
            try:
                method(agent, batch)
            except Exception:
                _logger.exception("the monitor failed for agent %r", agent.name)

    def _finish(self, batches: _Batches) -> None:
        """Tell the callers that their requests are handled, then start the next commit."""
        for served, batch in batches.items():
            served.finish_batch(batch)
        self._start()


class ServedAgent:
    """A durable agent on an event loop: `act` and `observe` return once the event is on disk.

    `single` commits the requests of this agent alone, `shared` those of all agents that allow it.
    `schema` describes situations whose fields have names.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> from bayescontrol.serve.monitor import Metrics
    >>> from bayescontrol.serve.values import encode_id
    >>> async def visit():
    ...     agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"]))
    ...     pools = Pools(*[ThreadPoolExecutor(1)] * 3)
    ...     served = ServedAgent(agent, pools, Commits(pools.writers, Monitor(Metrics())))
    ...     decision = await served.act(None, None)
    ...     id = encode_id(served.tag, decision.id)
    ...     learned = await served.observe(id, 1), await served.observe(id, 1)
    ...     await served.close()
    ...     return decision.action, learned
    >>> asyncio.run(visit())
    ('red', (True, False))
    """

    def __init__(
        self, agent: DurableAgent, pools: Pools, single: Commits, shared: Commits | None = None,
        schema: Schema | None = None,
    ) -> None:  # fmt: skip
        self.agent, self._pools, self._single = agent, pools, single
        self._shared = single if shared is None else shared
        self.metrics = single.monitor.metrics
        #: The fields of its situations, if they have names.
        self.schema = schema
        #: The tag of the agent in the ids of its decisions, see `serve.values`.
        self.tag = agent_tag(agent.name, agent.created)
        self._waiting: deque[_Waiting] = deque()
        #: How many requests wait for the next commit.
        self.waiting = 0
        self._idle = asyncio.Event()  # set while no request waits or is being committed
        self._idle.set()
        self._closing = False
        #: Whether another process has deleted the agent.
        self.is_deleted = False
        self._replays = 0
        self._probabilities: dict[str, Mapping[object, float]] = {}  # by number of the decision

    async def act(
        self, x: object, key: str | None, among: Sequence[object] | None = None,
        session: str | None = None,
    ) -> Decision:  # fmt: skip
        """See `DurableAgent.act`.

        A request with a known key or session returns the logged decision, without `probabilities`.
        Clients of a busy server often repeat a request soon, so those of recent decisions are
        cached. Others are computed again from the log, but not for a session, which calls often.
        """
        decision: Decision = await self.handle(Act(x, key, among, session))
        if (key is None and session is None) or decision.probability is None:  # not known exactly
            return decision
        probabilities = decision.probabilities or self._probabilities.get(decision.id)
        if probabilities is None and session is None:
            probabilities = (await self.explain(decision)).probabilities
        if probabilities is not None:
            self._probabilities[decision.id] = probabilities
            if len(self._probabilities) > _MAX_CACHED:  # forget the oldest
                del self._probabilities[next(iter(self._probabilities))]
        return replace(decision, probabilities=probabilities)

    async def observe(self, id: str, o: object, cost: float | None = None) -> bool:
        """See `DurableAgent.observe`; `id` is the id over HTTP."""
        return bool(await self.handle(Observe(self.number(id), o, cost)))

    async def settle(self) -> None:
        """Record the defaults that are due, if the configuration has a window."""
        if self.agent.configuration.window is not None and not (self.waiting or self.is_deleted):
            await self.handle(Settle())

    async def handle_batch(self, requests: Sequence[Request]) -> list[Any]:
        """Handle the requests in one commit; return the result of each, or its error."""
        await self._put(requests)
        return [self._outcome(request) for request in requests]

    def number(self, id: str) -> str:
        """Return the number of a decision from its id over HTTP, or raise `UnknownDecision`."""
        return decode_id(self.tag, id, self.agent.name)

    async def explain(self, id: str | Decision) -> Explanation:
        """See `DurableAgent.explain`. Runs in its own thread, because it may replay a long log."""
        if isinstance(id, str):
            id = self.number(id)
        if self._replays >= _MAX_REPLAYS:
            raise Refused("overloaded", f"{_MAX_REPLAYS} decisions are being explained")
        self._replays += 1
        try:
            return await self._run(self._pools.replayers, lambda agent: agent.explain(id))
        except errors.UnknownDecision as error:  # also `CompactedDecision`
            raise with_ids(error, self.tag)  # noqa: B904 - the same error
        finally:
            self._replays -= 1

    async def probabilities(
        self, x: object, among: Sequence[object] | None = None
    ) -> Mapping[object, float] | None:
        """See `DurableAgent.probabilities`."""

        def query(agent: DurableAgent) -> Mapping[object, float] | None:
            try:
                return agent.probabilities(x, among)
            except Exception as error:
                raise as_refusal(error) from error

        return await self.ask(query)

    async def read(self, query: Callable[[DurableAgent], T]) -> T:
        """Return `query(agent)`, computed in a thread."""
        return await self._run(self._pools.readers, query)

    async def _run(self, pool: Executor, query: Callable[[DurableAgent], T]) -> T:
        """Return `query(agent)`, computed in a thread of the pool."""
        try:
            return await run(pool, query, self.agent)
        except errors.UnknownStore as error:
            raise self._deleted_error() from error

    def _deleted_error(self) -> UnknownAgent:
        """Remember that the agent was deleted; return the error."""
        self.is_deleted = True
        return UnknownAgent(f"agent {self.agent.name!r} was deleted while the server used it")

    async def ask(self, query: Callable[[DurableAgent], T]) -> T:
        """Return `query(agent)`, in which all that it reads is at the same, the latest event."""
        return await self.read(lambda agent: agent.ask(lambda _: query(agent)))

    async def close(self) -> None:
        """Finish waiting requests, then close the agent."""
        self._closing = True
        await self._idle.wait()
        await run(self._pools.writers, self.agent.close)

    # -- commits ---------------------------------------------------------------------------------

    async def handle(self, request: Request) -> Any:
        """Return the result of a request after the next commit, or raise its error."""
        await self._put((request,))
        outcome = self._outcome(request)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _put(self, requests: Sequence[Request]) -> "asyncio.Future[None]":
        """Add requests to the next commit; raise `Refused` if too many wait or it is closing."""
        if self._closing:
            why = "the server accepts no more requests"
            raise Refused("shutting-down", why, {"Retry-After": "5"})
        if self.waiting >= _MAX_WAITING:
            why = f"{self.waiting} requests wait for agent {self.agent.name!r}"
            raise Refused("overloaded", why)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((requests, future))
        self.waiting += len(requests)
        if self._idle.is_set():
            self._idle.clear()
            self._schedule()
        return future

    def _schedule(self) -> None:
        """Include the waiting requests in the next commit."""
        is_slow = self.agent.compute_seconds > _SLOW
        (self._single if is_slow else self._shared).schedule(self)

    def take_batch(self) -> list[_Waiting]:
        """Return the requests of the next commit; become idle without any."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and size < _MAX_BATCH:
            requests, future = self._waiting.popleft()
            self.waiting -= len(requests)
            if not future.done():  # skip requests whose caller stopped waiting
                batch.append((requests, future))
                size += len(requests)
        if not batch:
            self._idle.set()
        return batch

    def finish_batch(self, batch: list[_Waiting]) -> None:
        """Wake the callers, and schedule the requests that came meanwhile."""
        for _, future in batch:
            if not future.done():
                future.set_result(None)
        self._schedule()

    def _outcome(self, request: Request) -> Any:
        """Return the result of a request that was in a commit, or its error."""
        if isinstance(request.error, errors.UnknownStore):
            return self._deleted_error()
        if request.error is not None:
            error = as_refusal(request.error) if request.rejected_by_agent else request.error
            return with_ids(error, self.tag)
        if request.result is None:  # never acknowledge what may not have been written
            return errors.StoreFailed(
                "the request may or may not be stored; repeat it with the same key"
            )
        return request.result


def run(pool: Executor, work: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
    """Call a function in a thread of the pool; return a future of its result."""
    return asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
