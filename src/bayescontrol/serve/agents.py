"""The agents of one store on the event loop of a server.

an existing name         the agent is opened when it is first requested: its log is replayed
a deleted agent          its name is free again, also if another process has deleted it
a new name and a model   the agent is created; repeating the request returns the same agent
named models             models of the user, registered when the server starts
"""

import asyncio
import logging
import math
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

from bayescontrol import errors
from bayescontrol.bandits import Schema
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Created, Event, read_events
from bayescontrol.durable.models import KINDS, Model, as_logged
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.stores.log import LogStore, SnapshotNotKept
from bayescontrol.seeding import Stream
from bayescontrol.serve.access import Limits
from bayescontrol.serve.http_errors import Refused, UnknownAgent, kind_of
from bayescontrol.serve.monitor import Metrics, Monitor
from bayescontrol.serve.request_queue import Commits, Pools, ServedAgent, run
from bayescontrol.serve.requested_models import requested_model, warm_up_kind

if TYPE_CHECKING:
    from bayescontrol.serve.backups import Backups

_logger = logging.getLogger("bayescontrol.serve")
#: Seconds within which a store must answer.
_STORE_TIMEOUT: Final = 3.0
#: Seconds between two looks for decisions whose window is over.
_SETTLE_PERIOD: Final = 1.0
#: Seconds after a failed write, or a failed test write, before the next test write.
_RETRY_WRITE: Final = 5.0


class ServedAgents:
    """The agents of a store by name, and the state of the server that shares them.

    `models` are the user's own models by name. `truths` gives the true mean reward of every
    action, by agent, where it is known. The server is `ready` when every agent has been opened,
    and `closing` when it accepts no more requests and finishes pending ones.

    >>> from bayescontrol.durable import open_store
    >>> async def open_and_close():
    ...     agents = ServedAgents(open_store("sqlite:///:memory:"))
    ...     await agents.start()
    ...     _, new = await agents.create("shop", "bernoulli-bandit", {"arms": 2}, None)
    ...     await agents.opened
    ...     names, ready = await agents.names(), agents.ready
    ...     await agents.close()
    ...     return new, names, ready, agents.ready
    >>> asyncio.run(open_and_close())
    (True, ['shop'], True, False)
    """

    #: Done when every agent has been opened or has failed to open.
    opened: "asyncio.Task[None]"

    def __init__(
        self, store: LogStore, models: Mapping[str, Model] | None = None,
        truths: Mapping[str, Mapping[Any, float]] | None = None, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self.store, self.models = store, dict(models or {})
        self.limits, self.metrics = limits or Limits(), Metrics()
        self.monitor = Monitor(self.metrics, truths, self.limits.streams)
        self.ready = self.closing = False
        #: Whether requests need a token.
        self.needs_token = False
        #: Whether to compile what the agents need before the server is ready.
        self.warm_up = False
        #: The backups of the store; None if the server makes none.
        self.backups: Backups | None = None
        self._pools = Pools.start()
        self._shared_commits = Commits(self._pools.writers, self.monitor, self._record_write)
        self._checker = ThreadPoolExecutor(1, "bayescontrol-check")
        self._store_check: asyncio.Future[list[str]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping: asyncio.Task[None] | None = None
        # If the last write failed: when, and its error.
        self._failure: tuple[float, errors.StoreFailed] | None = None
        self._last_test_write = -math.inf
        self._last_write = time.monotonic()  # or the start
        self._unopened = 0
        self._opening: dict[str, asyncio.Task[bool]] = {}
        #: The names of agents that could not be opened so far.
        self.failed: list[str] = []
        #: The agents that are open.
        self.open: dict[str, ServedAgent] = {}
        gauge = self.metrics.gauge
        gauge("agents", "Agents that are open.", lambda: len(self.open))
        gauge("requests_waiting", "Requests that wait for a commit.",
              lambda: sum(agent.waiting for agent in self.open.values()))  # fmt: skip
        gauge("agents_unopened", "Agents that the server has not tried to open yet.",
              lambda: self._unopened)  # fmt: skip
        gauge("agents_failed", "Agents that could not be opened.", lambda: len(self.failed))
        gauge("seconds_since_write", "Seconds since the last write, or since the start.",
              lambda: time.monotonic() - self._last_write)  # fmt: skip
        gauge("ready", "1 when every agent is open and the last write did not fail.",
              lambda: float(self.ready and self._failure is None))  # fmt: skip

    async def names(self) -> list[str]:
        """Return the names of all agents in the store."""
        return await run(self._pools.readers, self.store.names)

    async def get(self, name: str) -> ServedAgent:
        """Return an agent, opened if necessary; raise `UnknownAgent` if it is unknown."""
        served = self.open.get(name)
        if served is not None and not served.is_deleted:
            return served
        with suppress(errors.UnknownStore):  # the name is invalid, or there is no such agent
            return (await self._get_or_open(name, None, None))[0]
        raise UnknownAgent(f"the store has no agent {name!r}")

    async def create(
        self, name: str, model: str, settings: Mapping[str, object], seed: int | None
    ) -> tuple[ServedAgent, bool]:
        """Create or open an agent. Returns it and whether it is new.

        Raises `ModelMismatch` if an agent of that name has another model, settings or seed.
        """
        requested = await run(self._pools.readers, requested_model, model, settings, self.models)
        if name in self.open:
            with suppress(UnknownAgent):  # it was deleted: create it again
                await self.open[name].ask(lambda _: None)
        else:
            names = await self.names()
            if name not in names and len(names) >= self.limits.agents:
                raise Refused("too-many-agents", f"the store already has {len(names)} agents")
        return await self._get_or_open(name, requested, seed)

    async def _get_or_open(
        self, name: str, model: Model | None, seed: int | None
    ) -> tuple[ServedAgent, bool]:
        """Return an agent, and whether this call has created it.

        Without a `model`, the agent must exist. A `model` or `seed` other than that of an existing
        agent raises `ModelMismatch`.
        """
        new = False
        if name in self.open and self.open[name].is_deleted:
            with suppress(SnapshotNotKept):  # a deleted log takes none
                await self.open.pop(name).close()
        if name not in self.open:
            is_first = name not in self._opening
            if is_first:
                self._opening[name] = asyncio.create_task(self._open(name, model, seed))
            # If this caller times out, opening continues for the next one.
            new = await asyncio.shield(self._opening[name]) and is_first
        served = self.open[name]
        if model is not None:
            # This may run the user's own code, which builds the model, so it needs a thread.
            await run(self._pools.readers, as_logged, served.agent.created, model)
        if seed is not None and seed != served.agent.seed:
            raise errors.ModelMismatch(
                f"agent {name!r} was created with a seed other than {seed}: omit the seed"
            )
        return served, new

    async def _open(self, name: str, model: Model | None, seed: int | None) -> bool:
        """Open the agent and return whether it is new."""
        try:
            first = await run(self._pools.readers, self._first_event, name)
            new = first is None
            if model is None:
                model = self._registered_model(name, first)
            # Opening may replay a long log; creating does not.
            pool = self._pools.readers if new else self._pools.replayers
            agent, schema = await run(pool, self._open_agent, name, model, seed)
            single = Commits(self._pools.writers, self.monitor, self._record_write)
            shares = not self.store.shared and agent.model.name in KINDS
            shared = self._shared_commits if shares else None
            self.open[name] = ServedAgent(agent, self._pools, single, shared, schema)
            self.failed = [other for other in self.failed if other != name]
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

    def _open_agent(
        self, name: str, model: Model | None, seed: int | None
    ) -> tuple[DurableAgent, Schema | None]:
        """Open or create the agent, and compile its code; also return the schema of situations."""
        agent = open_agent(self.store, name, model, seed=seed)
        # Draw once from a copy, so that the first request does not wait for the compiler.
        driver = agent.model.driver()
        with suppress(Exception):  # a contextual agent needs a situation
            x = driver.situation(None)
            driver.act(x, Stream(0))
            driver.probabilities(x)
        belief = getattr(driver.agent, "belief", None)
        return agent, getattr(belief, "schema", None) or _stored_schema(agent.model)

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

    # -- whether the store works -----------------------------------------------------------------

    def _record_write(self, error: errors.StoreFailed | None) -> None:
        """Remember how the last write ended; called in any thread."""
        now = time.monotonic()
        self._failure = None if error is None else (now, error)
        if error is None:
            self._last_write = now

    async def check(self) -> None:
        """Raise `StoreFailed` if the store does not answer, `Refused` if it accepts no writes.

        A load balancer sends no requests to a server that is not ready, so no request would show
        that writes work again. After a failed write the server therefore tests a write itself.
        """
        await self._require_answer()
        # Read the attribute, (time, error), once: a writer thread may change it at any time.
        failure, now = self._failure, time.monotonic()
        if failure is not None and now >= max(failure[0], self._last_test_write) + _RETRY_WRITE:
            self._last_test_write = now
            served = next(iter(self.open.values()), None)
            await self._within_timeout(run(self._checker, self._test_write, served))
        failure = self._failure
        if failure is not None:
            raise Refused("store-failed", f"the last write failed: {kind_of(failure[1])}")

    async def _require_answer(self) -> None:
        """Raise `StoreFailed` if the store does not answer. Concurrent calls share one query."""
        if self._store_check is None or self._store_check.done():
            self._store_check = run(self._checker, self.store.names)
        await self._within_timeout(self._store_check)

    async def _within_timeout(self, future: "asyncio.Future[Any]") -> None:
        """Wait for a query of the store; raise `StoreFailed` after `_STORE_TIMEOUT` seconds."""
        # Retrieve an error, so that asyncio does not log it when no caller waits any more.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        done, _ = await asyncio.wait([future], timeout=_STORE_TIMEOUT)  # does not cancel it
        if not done:
            raise errors.StoreFailed(f"the store did not answer within {_STORE_TIMEOUT:g} seconds")
        future.result()

    def _test_write(self, served: ServedAgent | None) -> None:
        """Write a snapshot, which changes no agent, and record whether this failed.

        Without an agent to write, the store counts as working until the next write.
        """
        try:
            if served is not None:
                served.agent.snapshot()
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
            await asyncio.sleep(_STORE_TIMEOUT / 3)  # the store answers: ask again later

    # -- starting and stopping -------------------------------------------------------------------

    async def start(self, *work: Coroutine[Any, Any, None]) -> None:
        """Start answering requests, and open the agents in the background, where `work` runs too.

        `close` cancels the work.
        """
        self.opened = asyncio.create_task(self._open_in_background())
        work = (self.monitor.run(self.open), self._settle(), *work)
        self._tasks = [self.opened, *map(asyncio.create_task, work)]

    async def _settle(self) -> None:
        """Record the defaults of the open agents that are due, until cancelled."""
        while True:
            await asyncio.sleep(_SETTLE_PERIOD)
            settled = (served.settle() for served in self.open.values())
            for error in await asyncio.gather(*settled, return_exceptions=True):
                # Errors of the library are those that the next request of the agent gets.
                if isinstance(error, Exception) and not isinstance(error, errors.BayesControlError):
                    _logger.error("defaults were not recorded", exc_info=error)

    async def _open_in_background(self) -> None:
        """Open every agent, log those that fail, then declare the server ready."""
        try:
            names = await self.names()
            for self._unopened, name in zip(range(len(names), 0, -1), names, strict=True):
                try:
                    await self.get(name)
                except errors.BayesControlError as error:
                    self.failed.append(name)
                    _logger.warning("agent %r cannot be opened: %s", name, error)
            self._unopened = 0
            if self.warm_up:
                began = time.monotonic()
                kinds = {served.agent.model.name for served in self.open.values()} & set(KINDS)
                for kind in sorted(kinds):
                    await run(self._pools.replayers, warm_up_kind, kind)
                if kinds:
                    seconds = time.monotonic() - began
                    _logger.info("warmed up %s in %.1f s", ", ".join(sorted(kinds)), seconds)
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
        for served in list(self.open.values()):
            await served.close()
        if self._stopping is not None:
            self._stopping.cancel()
        await run(self._pools.readers, self.store.close)
        for pool in (*self._pools, self._checker):
            pool.shutdown()


def _stored_schema(model: Model) -> Schema | None:
    """Return the schema in the settings of a model, or of the problem inside a changing one."""
    features = model.settings.get("settings", model.settings).get("features")
    return Schema(features) if isinstance(features, Mapping) else None
