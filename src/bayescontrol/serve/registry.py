"""The agents of one store by name, and the state of the server that shares them.

an existing name         the agent is opened when it is first requested: its log is replayed
a new name and a model   the agent is created; repeating the request returns the same agent
named models             models of the user, registered when the server starts
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, Final, TypeVar

from bayescontrol import errors
from bayescontrol.durable.agent import DurableAgent, open_agent
from bayescontrol.durable.events import Created, Event, read_events
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.log import LogStore, require_name
from bayescontrol.durable.models import Model, as_logged
from bayescontrol.seeding import Stream
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.middleware import Limits
from bayescontrol.serve.models import requested_model
from bayescontrol.serve.monitor import Monitor
from bayescontrol.serve.problems import Refused, UnknownAgent, kind_of
from bayescontrol.serve.request_queue import RequestQueue

T = TypeVar("T")
_logger = logging.getLogger("bayescontrol.serve")
#: Threads of each pool.
_READERS: Final = 4
_WRITERS: Final = 8
_REPLAYERS: Final = 1
#: Seconds within which a store must answer.
_STORE_TIMEOUT: Final = 3.0
#: Seconds after a failed write, or a failed test write, before the next test write.
_RETRY_WRITE: Final = 5.0


class AgentRegistry:
    """The request queues of a store by the names of their agents, and the state of the server.

    `models` are the user's own models by name. `truths` gives the true mean reward of every
    action, by agent, where it is known. The server is `ready` when every agent has been opened,
    and `closing` when it accepts no more requests and finishes pending ones.

    >>> from bayescontrol.durable import open_store
    >>> async def open_and_close():
    ...     registry = AgentRegistry(open_store("sqlite:///:memory:"))
    ...     await registry.start()
    ...     _, new = await registry.create("shop", "bernoulli-bandit", {"arms": 2}, None)
    ...     await registry.opened
    ...     names, ready = await registry.names(), registry.ready
    ...     await registry.close()
    ...     return new, names, ready, registry.ready
    >>> asyncio.run(open_and_close())
    (True, ['shop'], True, False)
    """

    #: Done when every agent has been opened or has failed to open.
    opened: "asyncio.Task[None]"

    def __init__(
        self,
        store: LogStore,
        models: Mapping[str, Model] | None = None,
        truths: Mapping[str, Mapping[Any, float]] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.store, self.models = store, dict(models or {})
        self.limits, self.metrics = limits or Limits(), Metrics()
        self.monitor = Monitor(self.metrics, truths, self.limits.streams)
        self.ready = self.closing = False
        #: Whether requests need a token.
        self.needs_token = False
        # Separate pools: reading a long log must not delay writes, and opening or explaining an
        # agent, which may replay a long log, must delay neither.
        self._readers = ThreadPoolExecutor(_READERS, "bayescontrol-read")
        self._writers = ThreadPoolExecutor(_WRITERS, "bayescontrol-write")
        self._replayers = ThreadPoolExecutor(_REPLAYERS, "bayescontrol-replay")
        self._checker = ThreadPoolExecutor(1, "bayescontrol-check")
        self._store_check: asyncio.Future[list[str]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping: asyncio.Task[None] | None = None
        self._failure: tuple[float, errors.StoreFailed] | None = None  # of the last write, and when
        self._last_test_write = -math.inf
        self._opening: dict[str, asyncio.Task[bool]] = {}
        self._failed: list[str] = []
        #: The queues of the agents that are open.
        self.queues: dict[str, RequestQueue] = {}
        gauge = self.metrics.gauge
        gauge("agents", "Agents that are open.", lambda: len(self.queues))
        gauge(
            "requests_waiting",
            "Requests that wait for a commit.",
            lambda: sum(queue.waiting for queue in self.queues.values()),
        )
        gauge(
            "ready",
            "1 when every agent is open and the last write did not fail.",
            lambda: float(self.ready and self._failure is None),
        )

    async def names(self) -> list[str]:
        """Return the names of all agents in the store."""
        return await _run(self._readers, self.store.names)

    # -- whether the store works -----------------------------------------------------------------

    def _record_write(self, error: errors.StoreFailed | None) -> None:
        """Remember how the last write ended; called in any thread."""
        self._failure = None if error is None else (time.monotonic(), error)

    async def check(self) -> None:
        """Raise `StoreFailed` if the store does not answer, `Refused` if it accepts no writes.

        A load balancer sends no requests to a server that is not ready, so no request would show
        that writes work again. After a failed write the server therefore tests a write itself.
        """
        await self._require_answer()
        # Read the attribute once: a writer thread may change it at any time.
        failure, now = self._failure, time.monotonic()
        if failure is not None and now >= max(failure[0], self._last_test_write) + _RETRY_WRITE:
            self._last_test_write = now
            queue = next(iter(self.queues.values()), None)
            await self._within_timeout(_run(self._checker, self._test_write, queue))
        failure = self._failure
        if failure is not None:
            raise Refused("store-failed", f"the last write failed: {kind_of(failure[1])}")

    async def _require_answer(self) -> None:
        """Raise `StoreFailed` if the store does not answer. Concurrent calls share one query."""
        if self._store_check is None or self._store_check.done():
            self._store_check = _run(self._checker, self.store.names)
        await self._within_timeout(self._store_check)

    async def _within_timeout(self, future: "asyncio.Future[Any]") -> None:
        """Wait for a query of the store; raise `StoreFailed` after `_STORE_TIMEOUT` seconds."""
        # Retrieve an error, so that asyncio does not log it when no caller waits any more.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        done, _ = await asyncio.wait([future], timeout=_STORE_TIMEOUT)  # does not cancel it
        if not done:
            raise errors.StoreFailed(f"the store did not answer within {_STORE_TIMEOUT:g} seconds")
        future.result()

    def _test_write(self, queue: RequestQueue | None) -> None:
        """Write a snapshot, which changes no agent, and record whether this failed.

        Without an agent to write, the store counts as working until the next write.
        """
        try:
            if queue is not None:
                queue.agent.snapshot()
            self._record_write(None)
        except errors.StoreFailed as error:
            self._record_write(error)

    async def _close_unresponsive_store(self) -> None:
        """Close a shared store that does not answer, so that shutting down does not hang."""
        while self.store.shared:
            try:
                await self._require_answer()
            except errors.StoreFailed as error:
                _logger.warning("the server stops without its store: %s", error)
                self.store.close()
                return
            await asyncio.sleep(_STORE_TIMEOUT / 3)

    # -- the agents ------------------------------------------------------------------------------

    async def queue(self, name: str) -> RequestQueue:
        """Return the queue of an agent; raise `UnknownAgent` if the store has no such agent."""
        with suppress(errors.UnknownStore):  # the name is invalid, or there is no such agent
            require_name(name)
            return (await self._open(name, None, None))[0]
        raise UnknownAgent(f"the store has no agent {name!r}")

    async def create(
        self, name: str, model: str, settings: Mapping[str, Any], seed: int | None
    ) -> tuple[RequestQueue, bool]:
        """Create or open an agent. Returns its queue and whether the agent is new.

        Raises `ModelMismatch` if an agent of that name has another model, settings or seed.
        """
        require_name(name)
        requested = await _run(self._readers, requested_model, model, settings, self.models)
        names = await self.names()
        if name not in names and len(names) >= self.limits.agents:
            raise Refused("too-many-agents", f"the store already has {len(names)} agents")
        return await self._open(name, requested, seed)

    async def _open(
        self, name: str, model: Model | None, seed: int | None
    ) -> tuple[RequestQueue, bool]:
        """Return the queue of an agent, and whether this call has created the agent.

        Raises `ModelMismatch` if the agent has another model, settings or seed.
        """
        new = False
        if name not in self.queues:
            is_first = name not in self._opening
            if is_first:
                self._opening[name] = asyncio.create_task(self._open_queue(name, model, seed))
            # If this caller times out, opening continues for the next one.
            new = await asyncio.shield(self._opening[name]) and is_first
        queue = self.queues[name]
        if model is not None:
            # This may run the user's own code, which builds the model, so it needs a thread.
            await _run(self._readers, as_logged, queue.agent.created, model)
        if seed is not None and seed != queue.agent.seed:
            raise errors.ModelMismatch(f"agent {name!r} was created with a seed other than {seed}")
        return queue, new

    async def _open_queue(self, name: str, model: Model | None, seed: int | None) -> bool:
        """Open the agent and return whether it is new."""
        try:
            first = await _run(self._readers, self._first_event, name)
            new = first is None
            if model is None:
                model = self._registered_model(name, first)
            # Opening may replay a long log; creating does not.
            pool = self._readers if new else self._replayers
            agent = await _run(pool, self._open_agent, name, model, seed)
            self.queues[name] = RequestQueue(
                agent, self._writers, self._readers, self.monitor,
                replayers=self._replayers, on_write=self._record_write,
            )  # fmt: skip
        except errors.DiskFull as error:
            self._record_write(error)
            raise
        else:
            if new:
                self._record_write(None)
            return new
        finally:
            del self._opening[name]

    def _first_event(self, name: str) -> Event | None:
        """Return the first event of an agent's log; None if the log is empty.

        Listing all agents instead would make opening them quadratic in their number.
        """
        with closing(self.store.log(name)) as log:
            return next(read_events(log, 1, 1), None)

    def _open_agent(self, name: str, model: Model | None, seed: int | None) -> DurableAgent:
        """Open or create the agent, and compile its code."""
        agent = open_agent(self.store, name, model, seed=seed)
        # Draw once from a copy, so that the first request does not wait for the compiler.
        driver = agent.model.driver()
        with suppress(Exception):  # a contextual agent needs a situation
            driver.draw(driver.situation(None), Stream(0))
            driver.probabilities(driver.situation(None))
        return agent

    def _registered_model(self, name: str, first: Event | None) -> Model | None:
        """Return the user's own model that the log names; None for a model of the library."""
        if not isinstance(first, Created) or first.model in KINDS:
            return None
        if first.model not in self.models:
            raise errors.ModelMismatch(
                f"agent {name!r} has the model {first.model!r}, version {first.version}, which "
                "this server does not know: start the server with --model FILE.py:NAME"
            )
        return self.models[first.model]

    # -- starting and stopping -------------------------------------------------------------------

    @property
    def failed(self) -> list[str]:
        """The names of agents that could not be opened so far."""
        return [name for name in self._failed if name not in self.queues]

    async def start(self) -> None:
        """Start answering requests, and open the agents in the background."""
        self.opened = asyncio.create_task(self._open_in_background())
        self._tasks = [self.opened, asyncio.create_task(self.monitor.run(self.queues))]

    async def _open_in_background(self) -> None:
        """Open every agent, log those that fail, then declare the server ready."""
        try:
            for name in await self.names():
                try:
                    await self.queue(name)
                except errors.BayesControlError as error:
                    self._failed.append(name)
                    _logger.warning("agent %r cannot be opened: %s", name, error)
        except Exception:
            _logger.exception("the store cannot be read: the server will not become ready")
            return
        self.ready = not self.closing

    def stop(self) -> None:
        """Accept no more requests, end the event streams, and close an unresponsive store."""
        self.closing, self.ready = True, False
        self.monitor.close()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._close_unresponsive_store())

    async def close(self) -> None:
        """Finish pending requests, then close the agents and the store."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._opening.values(), return_exceptions=True)
        for queue in list(self.queues.values()):
            await queue.close()
        if self._stopping is not None:
            self._stopping.cancel()
        await _run(self._readers, self.store.close)
        for pool in (self._writers, self._readers, self._replayers, self._checker):
            pool.shutdown()


def _run(pool: Executor, work: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":
    """Call a function in a thread of the pool."""
    return asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
