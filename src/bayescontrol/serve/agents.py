"""The agents of one store on the event loop of a server.

an existing name         the agent is opened when it is first requested: its log is replayed
a new name and a model   the agent is created; repeating the request returns the same agent
named models             models of the user, registered when the server starts

Requests that arrive while a commit is running form the next commit. A worker thread runs once per
commit, not once per request. The agents of a SQLite store share commits, except those that compute
for long, or run code of the user: nobody waits for them.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from bayescontrol import errors
from bayescontrol.bandits import Schema
from bayescontrol.durable.agent import DurableAgent, Explanation, handle_together
from bayescontrol.durable.events import Created, Decision, Event, read_events
from bayescontrol.durable.models import KINDS, Model, as_logged
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.durable.stores.committer import Request
from bayescontrol.durable.stores.log import LogStore
from bayescontrol.seeding import Stream
from bayescontrol.serve.access import Limits
from bayescontrol.serve.http_errors import Refused, UnknownAgent, as_refusal, kind_of
from bayescontrol.serve.monitor import Metrics, Monitor
from bayescontrol.serve.requested_models import requested_model, warm_up_kind
from bayescontrol.serve.values import agent_tag, decode_id, with_ids

if TYPE_CHECKING:
    from bayescontrol.serve.backups import Backups

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
#: Seconds within which a store must answer.
_STORE_TIMEOUT: Final = 3.0
#: Seconds after a failed write, or a failed test write, before the next test write.
_RETRY_WRITE: Final = 5.0
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


class Commits:
    """Commits the requests of one agent, or of several agents of a SQLite store, one after another.

    `on_write` is called after each commit with the error of the store, or None after a successful
    write.
    """

    def __init__(
        self, writers: Executor, monitor: Monitor,
        on_write: Callable[[errors.StoreFailed | None], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._writers, self._monitor, self._on_write = writers, monitor, on_write
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
        """Commit the waiting requests in a worker thread; stop if there are none."""
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
            self._notify(self._monitor.before_commit, requests)
            if len(requests) == 1:
                for agent, batch in requests.items():
                    agent.handle(batch)
            else:
                handle_together(requests)
            for agent, batch in requests.items():
                self._report_write(batch, agent.head > heads[agent])
            self._notify(self._monitor.after_commit, requests)
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

    def _notify(self, method: Callable[..., None], batches: Mapping[DurableAgent, Any]) -> None:
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
        #: The fields of its situations, if they have names.
        self.schema = schema
        #: The tag of the agent in the ids of its decisions, see `serve.values`.
        self.tag = agent_tag(agent.created)
        self._waiting: deque[_Waiting] = deque()
        #: How many requests wait for the next commit.
        self.waiting = 0
        self._idle = asyncio.Event()  # set while no request waits or is being committed
        self._idle.set()
        self._closing = False
        self._replays = 0
        self._probabilities: dict[str, Mapping[Any, float]] = {}  # by number of the decision

    async def act(
        self, x: Any, key: str | None, among: Sequence[Any] | None = None,
        session: str | None = None,
    ) -> Decision:  # fmt: skip
        """See `DurableAgent.act`.

        A request with a known key returns the logged decision, without `probabilities`. Clients of
        a busy server often repeat a request soon, so those of recent decisions with a key are
        cached; others are computed again from the log.
        """
        decision: Decision = await self.handle(Act(x, key, among, session))
        if (key is None and session is None) or decision.probability is None:  # not known exactly
            return decision
        probabilities = decision.probabilities or self._probabilities.get(decision.id)
        if probabilities is None:
            probabilities = (await self.explain(decision)).probabilities
        if probabilities is not None:
            self._probabilities[decision.id] = probabilities
            if len(self._probabilities) > _MAX_CACHED:  # forget the oldest
                del self._probabilities[next(iter(self._probabilities))]
        return replace(decision, probabilities=probabilities)

    async def observe(self, id: str, o: Any, cost: float | None = None) -> bool:
        """See `DurableAgent.observe`; `id` is the id over HTTP."""
        return bool(await self.handle(Observe(self.number(id), o, cost)))

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
            return await _run(self._pools.replayers, self.agent.explain, id)
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
                raise as_refusal(error) from error

        return await self.read(query)

    async def read(self, query: Callable[[DurableAgent], T]) -> T:
        """Return `query(agent)`, computed in a thread."""
        return await _run(self._pools.readers, query, self.agent)

    async def close(self) -> None:
        """Finish waiting requests, then close the agent."""
        self._closing = True
        await self._idle.wait()
        await _run(self._pools.writers, self.agent.close)

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
        """Return the requests of the next commit; become idle if there are none."""
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
        if request.error is not None:
            error = as_refusal(request.error) if request.rejected_by_agent else request.error
            return with_ids(error, self.tag)
        if request.result is None:  # never acknowledge what may not have been written
            return errors.StoreFailed(
                "the request may or may not be stored; repeat it with the same key"
            )
        return request.result


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
        self._pools = Pools(
            ThreadPoolExecutor(_READERS, "bayescontrol-read"),
            ThreadPoolExecutor(_WRITERS, "bayescontrol-write"),
            ThreadPoolExecutor(_REPLAYERS, "bayescontrol-replay"),
        )
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
        return await _run(self._pools.readers, self.store.names)

    async def get(self, name: str) -> ServedAgent:
        """Return an agent, opened if necessary; raise `UnknownAgent` if it is unknown."""
        with suppress(errors.UnknownStore):  # the name is invalid, or there is no such agent
            return (await self._get_or_open(name, None, None))[0]
        raise UnknownAgent(f"the store has no agent {name!r}")

    async def create(
        self, name: str, model: str, settings: Mapping[str, Any], seed: int | None
    ) -> tuple[ServedAgent, bool]:
        """Create or open an agent. Returns it and whether it is new.

        Raises `ModelMismatch` if an agent of that name has another model, settings or seed.
        """
        requested = await _run(self._pools.readers, requested_model, model, settings, self.models)
        if name not in self.open:
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
        if name not in self.open:
            is_first = name not in self._opening
            if is_first:
                self._opening[name] = asyncio.create_task(self._open(name, model, seed))
            # If this caller times out, opening continues for the next one.
            new = await asyncio.shield(self._opening[name]) and is_first
        served = self.open[name]
        if model is not None:
            # This may run the user's own code, which builds the model, so it needs a thread.
            await _run(self._pools.readers, as_logged, served.agent.created, model)
        if seed is not None and seed != served.agent.seed:
            raise errors.ModelMismatch(
                f"agent {name!r} was created with a seed other than {seed}: omit the seed"
            )
        return served, new

    async def _open(self, name: str, model: Model | None, seed: int | None) -> bool:
        """Open the agent and return whether it is new."""
        try:
            first = await _run(self._pools.readers, self._first_event, name)
            new = first is None
            if model is None:
                model = self._registered_model(name, first)
            # Opening may replay a long log; creating does not.
            pool = self._pools.readers if new else self._pools.replayers
            agent, schema = await _run(pool, self._open_agent, name, model, seed)
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
            await self._within_timeout(_run(self._checker, self._test_write, served))
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

    async def start(self) -> None:
        """Start answering requests, and open the agents in the background."""
        self.opened = asyncio.create_task(self._open_in_background())
        self._tasks = [self.opened, asyncio.create_task(self.monitor.run(self.open))]

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
                    await _run(self._pools.replayers, warm_up_kind, kind)
                seconds = time.monotonic() - began
                _logger.info("warmed up %s in %.1f s", ", ".join(sorted(kinds)) or "-", seconds)
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
        await _run(self._pools.readers, self.store.close)
        for pool in (*self._pools, self._checker):
            pool.shutdown()


def _stored_schema(model: Model) -> Schema | None:
    """Return the schema in the settings of a model, or of the problem inside a changing one."""
    features = model.settings.get("settings", model.settings).get("features")
    return Schema(features) if isinstance(features, Mapping) else None


def _run(pool: Executor, work: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":
    """Call a function in a thread of the pool; return a future of its result."""
    return asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
