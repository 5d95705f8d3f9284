"""The agents of one store, each behind its desk.

a name that is in the store    opened when it is first asked for: its log is folded
a new name and a model         made; the same again is the same agent
named models                   of the caller's own, registered when the server is started
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Created, event_of
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.models import Model, require_same
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.store import Store, require_name
from bayescontrol.errors import BayesControlError, ModelMismatch, UnknownStore
from bayescontrol.seeding import Stream
from bayescontrol.serve.desk import Desk, Watcher
from bayescontrol.serve.problems import BadSettings, Refused, UnknownAgent
from bayescontrol.serve.schemas import value_of
from bayescontrol.serve.settings import described

__all__ = ["House"]

_READERS: Final = 4
_WRITERS: Final = 8


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
        store: Store,
        models: Mapping[str, Model] | None = None,
        watcher: Watcher | None = None,
        most: int = 1_000,
    ) -> None:
        self.store, self.models = store, dict(models or {})
        self._watcher, self._most = watcher, most
        # Apart, so that those who read a long log do not keep those who write waiting.
        self._readers = ThreadPoolExecutor(_READERS, "bayescontrol-read")
        self._writers = ThreadPoolExecutor(_WRITERS, "bayescontrol-write")
        self._loop = asyncio.get_running_loop()
        self._opening: dict[str, asyncio.Task[bool]] = {}
        #: The desks that are open.
        self.desks: dict[str, Desk] = {}

    async def names(self) -> list[str]:
        """Every agent in the store."""
        return await self._loop.run_in_executor(self._readers, self.store.names)

    async def desk(self, name: str) -> Desk:
        """The desk of the agent; `UnknownAgent` if the store has none of that name."""
        found = self.desks.get(name)
        if found is not None:
            return found
        with suppress(UnknownStore):
            require_name(name)
            if name in await self.names():
                return (await self._open(name, None, None))[0]
        raise UnknownAgent(f"no agent {name!r}")

    async def create(
        self, name: str, model: str, settings: Mapping[str, Any], seed: int | None
    ) -> tuple[Desk, bool]:
        """The agent of that name, and whether it is new; `ModelMismatch` if it is another's."""
        require_name(name)
        given = {key: value_of(v, f"setting {key}", BadSettings) for key, v in settings.items()}
        wanted = await self._loop.run_in_executor(
            self._readers, described, model, given, self.models
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
            require_same(desk.agent.created, model)
        if seed is not None and seed != desk.agent.seed:
            raise ModelMismatch(f"agent {name!r} was made with another seed than {seed}")
        return desk, new

    async def _make(self, name: str, model: Model | None, seed: int | None) -> bool:
        """Open the agent, and say whether it is new."""
        try:
            new = name not in await self.names()
            agent = await self._loop.run_in_executor(self._readers, self._opened, name, model, seed)
            self.desks[name] = Desk(agent, self._writers, self._readers, self._watcher)
            return new
        finally:
            del self._opening[name]

    def _opened(self, name: str, model: Model | None, seed: int | None) -> DurableAgent:
        if model is None:
            model = self._registered(name)
        agent = open_agent(self.store, name, model, seed=seed)
        _warm(agent)
        return agent

    def _registered(self, name: str) -> Model | None:
        """The caller's own model of the name that the log gives, if there is one."""
        log = self.store.log(name)
        try:
            first = event_of(next(log.read(1, 1)))
        finally:
            log.close()
        if not isinstance(first, Created) or first.model in KINDS:
            return None
        if first.model not in self.models:
            raise ModelMismatch(
                f"agent {name!r} is of model {first.model!r}, version {first.version}, which the "
                "server was not started with: start it with --model FILE.py:NAME"
            )
        return self.models[first.model]

    async def close(self) -> None:
        """Finish what is under way, close the agents and the store."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for desk in list(self.desks.values()):
            await desk.close()
        await self._loop.run_in_executor(self._readers, self.store.close)
        self._writers.shutdown()
        self._readers.shutdown()


def _warm(agent: DurableAgent) -> None:
    """Draw once from a twin, so that the first visitor need not wait for a compiler."""
    driver = agent.model.driver()
    with suppress(Exception):  # a contextual agent wants a situation, which only a visitor has
        driver.draw(driver.situation(None), Stream(0))
        driver.law(driver.situation(None))
