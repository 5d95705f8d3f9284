"""The agents of one store, each behind its desk.

a name that is in the store    opened when it is first asked for: its log is folded
a new name and a model         made; the same again is the same agent
named models                   of the caller's own, registered when the server is started
"""

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from bayescontrol.durable.agent import DurableAgent, open_agent
from bayescontrol.durable.events import Created, Event, read_events
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.log import LogStore, require_name
from bayescontrol.durable.models import Model, as_logged
from bayescontrol.errors import (
    BayesControlError,
    DiskFull,
    ModelMismatch,
    StoreFailed,
    UnknownStore,
)
from bayescontrol.seeding import Stream
from bayescontrol.serve.desk import Desk, Watcher
from bayescontrol.serve.models import requested_model
from bayescontrol.serve.problems import BadSettings, Refused, UnknownAgent, kind_of
from bayescontrol.serve.schemas import value_of

_logger = logging.getLogger("bayescontrol.serve")
_READERS: Final = 4
_WRITERS: Final = 8
_FOLDERS: Final = 2
#: Seconds in which a store must say that it is there.
_PATIENCE: Final = 3.0
#: Seconds after a failed write, or a failed trial, before another is tried.
_TRIAL: Final = 5.0


class House:
    """The desks of a store, by the names of their agents.

    >>> from bayescontrol.durable import open_store
    >>> async def open_and_close():
    ...     house = House(open_store("sqlite:///:memory:"))
    ...     _, new = await house.create("shop", "bernoulli-bandit", {"arms": 2}, None)
    ...     names = await house.names()
    ...     await house.close()
    ...     return new, names
    >>> asyncio.run(open_and_close())
    (True, ['shop'])
    """

    def __init__(
        self,
        store: LogStore,
        models: Mapping[str, Model] | None = None,
        watcher: Watcher | None = None,
        most: int = 1_000,
    ) -> None:
        self.store, self.models = store, dict(models or {})
        self._watcher, self._most = watcher, most
        # Apart, so that those who read a long log do not keep those who write waiting.
        self._readers = ThreadPoolExecutor(_READERS, "bayescontrol-read")
        self._writers = ThreadPoolExecutor(_WRITERS, "bayescontrol-write")
        # Opening and explaining may fold a long log: they have threads of their own.
        self._folders = ThreadPoolExecutor(_FOLDERS, "bayescontrol-fold")
        self._checker = ThreadPoolExecutor(1, "bayescontrol-check")
        self._answer: asyncio.Future[list[str]] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._failure: tuple[float, StoreFailed] | None = None
        self._tried = -math.inf
        self._loop = asyncio.get_running_loop()
        self._opening: dict[str, asyncio.Task[bool]] = {}
        #: The desks that are open.
        self.desks: dict[str, Desk] = {}

    async def names(self) -> list[str]:
        """Every agent in the store."""
        return await self._loop.run_in_executor(self._readers, self.store.names)

    # -- whether the store works -----------------------------------------------------------------

    @property
    def writes_fail(self) -> bool:
        """Whether the last write failed, and none has succeeded since."""
        return self._failure is not None

    def _wrote(self, error: StoreFailed | None) -> None:
        """Remember how the last write ended; called in any thread."""
        self._failure = None if error is None else (time.monotonic(), error)

    async def check(self) -> None:
        """`StoreFailed` if the store does not answer, `Refused` if it takes no writes.

        A load balancer sends no requests to a server that is not ready, so after a failed write
        the server tests one itself.
        """
        await self._require_answer()
        failure, now = self._failure, time.monotonic()  # a writer's thread may set it meanwhile
        if failure is not None and now >= max(failure[0], self._tried) + _TRIAL:
            self._tried = now
            desk = next(iter(self.desks.values()), None)
            await self._soon(self._loop.run_in_executor(self._checker, self._try_to_write, desk))
        failure = self._failure
        if failure is not None:
            raise Refused("store-failed", f"the last write failed: {kind_of(failure[1])}")

    async def _require_answer(self) -> None:
        """Whoever asks at the same time shares one question, which holds one thread at most."""
        if self._answer is None or self._answer.done():
            self._answer = self._loop.run_in_executor(self._checker, self.store.names)
        await self._soon(self._answer)

    async def _soon(self, future: "asyncio.Future[Any]") -> None:
        future.add_done_callback(_retrieve)
        try:
            await asyncio.wait_for(asyncio.shield(future), _PATIENCE)
        except TimeoutError:
            raise StoreFailed(f"the store has not answered for {_PATIENCE:g} seconds") from None

    def _try_to_write(self, desk: Desk | None) -> None:
        """Write what changes nothing, a snapshot; without an agent, let callers try."""
        try:
            if desk is not None:
                desk.agent.snapshot()
        except StoreFailed as error:
            self._wrote(error)
        else:
            self._wrote(None)

    async def _give_up_silent_store(self) -> None:
        """Close a shared store that does not answer, so that nobody waits for it any more."""
        while self.store.shared:
            try:
                await self._require_answer()
            except StoreFailed as error:
                _logger.warning("the server stops without its store: %s", error)
                self.store.close()
                return
            await asyncio.sleep(_PATIENCE / 3)

    # -- the desks -------------------------------------------------------------------------------

    async def desk(self, name: str) -> Desk:
        """The desk of the agent; `UnknownAgent` if the store has none of that name."""
        found = self.desks.get(name)
        if found is not None:
            return found
        with suppress(UnknownStore):  # the name is invalid, or there is no such agent
            require_name(name)
            return (await self._open(name, None, None))[0]
        raise UnknownAgent(f"no agent {name!r}")

    async def create(
        self, name: str, model: str, settings: Mapping[str, Any], seed: int | None
    ) -> tuple[Desk, bool]:
        """The agent of that name, and whether it is new; `ModelMismatch` if it is another's."""
        require_name(name)
        given = {key: value_of(v, f"setting {key}", BadSettings) for key, v in settings.items()}
        wanted = await self._loop.run_in_executor(
            self._readers, requested_model, model, given, self.models
        )
        known = await self.names()
        if name not in known and len(known) >= self._most:
            raise Refused("too-many-agents", f"{len(known)} agents")
        return await self._open(name, wanted, seed)

    async def open_all(self) -> dict[str, BaseException]:
        """Open every agent; gives those that cannot be opened, and why."""
        failed: dict[str, BaseException] = {}
        for name in await self.names():
            try:
                await self.desk(name)
            except BayesControlError as error:
                failed[name] = error
        return failed

    async def _open(self, name: str, model: Model | None, seed: int | None) -> tuple[Desk, bool]:
        new = False
        if name not in self.desks:
            task, joined = self._opening.get(name), True
            if task is None:
                task, joined = asyncio.create_task(self._make(name, model, seed)), False
                self._opening[name] = task
            # A caller whose time is up goes; the agent is opened all the same, for the next.
            new = await asyncio.shield(task) and not joined
        desk = self.desks[name]
        if model is not None:
            # This may run the caller's own code, which makes the model: not on the event loop.
            created = desk.agent.created
            await self._loop.run_in_executor(self._readers, as_logged, created, model)
        if seed is not None and seed != desk.agent.seed:
            raise ModelMismatch(f"agent {name!r} was made with another seed than {seed}")
        return desk, new

    async def _make(self, name: str, model: Model | None, seed: int | None) -> bool:
        """Open the agent, and say whether it is new."""
        try:
            first = await self._loop.run_in_executor(self._readers, self._first, name)
            new = first is None
            if model is None:
                model = self._registered(name, first)
            # Opening may fold a long log; creating does not.
            pool = self._readers if new else self._folders
            agent = await self._loop.run_in_executor(pool, self._opened, name, model, seed)
            self.desks[name] = Desk(
                agent, self._writers, self._readers, self._watcher,
                folders=self._folders, on_write=self._wrote,
            )  # fmt: skip
        except DiskFull as error:
            self._wrote(error)
            raise
        else:
            if new:
                self._wrote(None)
            return new
        finally:
            del self._opening[name]

    def _first(self, name: str) -> Event | None:
        """The first event of the log, None if there is none.

        Listing all agents instead would make opening them quadratic in their number.
        """
        log = self.store.log(name)
        try:
            return next(read_events(log, 1, 1), None)
        finally:
            log.close()

    def _opened(self, name: str, model: Model | None, seed: int | None) -> DurableAgent:
        agent = open_agent(self.store, name, model, seed=seed)
        _warm(agent)
        return agent

    def _registered(self, name: str, first: Event | None) -> Model | None:
        """The caller's own model of the name that the log gives, if there is one."""
        if not isinstance(first, Created) or first.model in KINDS:
            return None
        if first.model not in self.models:
            raise ModelMismatch(
                f"agent {name!r} is of model {first.model!r}, version {first.version}, which the "
                "server was not started with: start it with --model FILE.py:NAME"
            )
        return self.models[first.model]

    def stop(self) -> None:
        """Do not wait any more for a store that does not answer: `close` comes soon."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._give_up_silent_store())

    async def close(self) -> None:
        """Finish what is under way, close the agents and the store."""
        self.stop()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for desk in list(self.desks.values()):
            await desk.close()
        if self._stopping is not None:
            self._stopping.cancel()
        await self._loop.run_in_executor(self._readers, self.store.close)
        for pool in (self._writers, self._readers, self._folders, self._checker):
            pool.shutdown()


def _retrieve(future: "asyncio.Future[Any]") -> None:
    """Mark an error as seen: whoever asked may be gone when it comes."""
    if not future.cancelled():
        future.exception()


def _warm(agent: DurableAgent) -> None:
    """Draw once from a twin, so that the first visitor need not wait for a compiler."""
    driver = agent.model.driver()
    with suppress(Exception):  # a contextual agent wants a situation, which only a visitor has
        driver.draw(driver.situation(None), Stream(0))
        driver.probabilities(driver.situation(None))
