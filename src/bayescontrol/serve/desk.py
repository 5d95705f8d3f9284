"""The desk of one agent: requests wait on the event loop and go to the disk together.

    while one commit is under way, what comes waits; then all of it is the next commit

A thread is asked once for a whole commit, not once for each request: with 32 connections that
halves the work of a request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from msgspec.structs import replace

from bayescontrol.durable.agent import DurableAgent, Explanation
from bayescontrol.durable.committer import Request
from bayescontrol.durable.events import Decision
from bayescontrol.durable.turn import Act, Observe
from bayescontrol.errors import DamagedLog, NewerFormat, StoreFailed
from bayescontrol.serve.problems import Refused, of_value

T = TypeVar("T")
_logger = logging.getLogger("bayescontrol.serve")
#: Requests that wait for one agent, beyond those under way.
_MOST_WAITING: Final = 1024
#: Decisions under a key whose probabilities are remembered.
_MOST_REMEMBERED: Final = 1024
#: Requests of one commit.
_MOST_TOGETHER: Final = 256
_Waiting: TypeAlias = tuple[Request, "asyncio.Future[Any]"]


class Watcher(Protocol):
    """Who sees what goes over a desk; called in a worker thread.

    >>> class Counter:
    ...     seen = 0
    ...     def before(self, desk, requests): ...
    ...     def after(self, desk, requests):
    ...         self.seen += len(requests)
    >>> watcher: Watcher = Counter()
    """

    def before(self, desk: "Desk", requests: Sequence[Request], /) -> None:
        """These are about to be written."""

    def after(self, desk: "Desk", requests: Sequence[Request], /) -> None:
        """These have been written, each with its result or its error."""


class Desk:
    """An agent on an event loop: `act` and `observe` answer when the event is on disk.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> async def visit():
    ...     agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"]))
    ...     desk = Desk(agent, pool := ThreadPoolExecutor(1), pool)
    ...     decision = await desk.act(None, None)
    ...     known = await desk.observe(decision.id, 1), await desk.observe(decision.id, 1)
    ...     await desk.close()
    ...     return decision.action, known
    >>> asyncio.run(visit())
    ('red', (True, False))
    """

    def __init__(
        self,
        agent: DurableAgent,
        writers: Executor,
        readers: Executor,
        watcher: Watcher | None = None,
        *,
        folders: Executor | None = None,
        on_write: Callable[[StoreFailed | None], None] | None = None,
    ) -> None:
        self.agent = agent
        self._writers, self._readers, self._watcher = writers, readers, watcher
        self._folders, self._on_write = folders or readers, on_write
        self._waiting: deque[_Waiting] = deque()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._laws: dict[str, Mapping[Any, float]] = {}

    @property
    def waiting(self) -> int:
        """Requests that wait for the next commit."""
        return len(self._waiting)

    async def act(self, x: Any, key: str | None) -> Decision:
        """As `DurableAgent.act`."""
        decision: Decision = await self._put(Act(x, key))
        if key is None or decision.probability is None:
            return decision
        return await self._with_law(decision)

    async def _with_law(self, d: Decision) -> Decision:
        """The same with P(a | past) of every action, however often it is asked for.

        Who asks again does so soon, and often when there is much to do: so it is remembered. That
        of an old one is drawn again from the log.
        """
        law = d.probabilities
        if law is None:
            law = self._laws.get(d.id)
            if law is None:
                law = (await self.explain(d)).probabilities
            d = replace(d, probabilities=law)
        if law is not None:
            self._laws[d.id] = law
            if len(self._laws) > _MOST_REMEMBERED:
                del self._laws[next(iter(self._laws))]
        return d

    async def explain(self, id: str | Decision) -> Explanation:
        """As `DurableAgent.explain`: it may fold a long log, so it has threads of its own."""
        return await self._loop.run_in_executor(self._folders, self.agent.explain, id)

    async def observe(self, id: str, o: Any) -> bool:
        """As `DurableAgent.observe`."""
        learnt: bool = await self._put(Observe(id, o))
        return learnt

    async def probabilities(self, x: Any) -> Mapping[Any, float] | None:
        """As `DurableAgent.probabilities`."""

        def asked(agent: DurableAgent) -> Mapping[Any, float] | None:
            agent.ask(lambda _: None)  # takes in what others wrote: what fails there is not x
            try:
                return agent.probabilities(x)
            except Exception as error:
                raise of_value(error) from error

        return await self.read(asked)

    async def read(self, question: Callable[[DurableAgent], T]) -> T:
        """What the question says of the agent, asked in a thread."""
        return await self._loop.run_in_executor(self._readers, question, self.agent)

    def _put(self, request: Request) -> "asyncio.Future[Any]":
        if self._closing:
            raise Refused("shutting-down", "no more can be asked", {"Retry-After": "5"})
        if len(self._waiting) >= _MOST_WAITING:
            raise Refused(
                "overloaded",
                f"{len(self._waiting)} requests wait for agent {self.agent.name!r}",
                {"Retry-After": "1"},
            )
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((request, future))
        if self._idle.is_set():
            self._idle.clear()
            # Not at once: what else the loop has read by now goes along.
            self._loop.call_soon(self._hand_over)
        return future

    def _hand_over(self) -> None:
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < _MOST_TOGETHER:
            request, future = self._waiting.popleft()
            if not future.done():  # whoever gave up waiting has not been served either
                batch.append((request, future))
        if batch:
            self._writers.submit(self._work, batch)
        else:
            self._idle.set()

    def _work(self, batch: list[_Waiting]) -> None:
        requests = [request for request, _ in batch]
        try:
            if self._watcher is not None:
                self._see(self._watcher.before, requests)
            head = self.agent.head
            self.agent.handle(requests)
            if self._on_write is not None:
                self._report(requests, self.agent.head > head, self._on_write)
            if self._watcher is not None:
                self._see(self._watcher.after, requests)
        finally:
            self._loop.call_soon_threadsafe(self._answer, batch)

    def _report(
        self,
        requests: Sequence[Request],
        written: bool,
        on_write: Callable[[StoreFailed | None], None],
    ) -> None:
        """Say whether the store takes writes. A damaged log affects one agent only."""
        for request in requests:
            error = request.error
            if isinstance(error, StoreFailed) and not isinstance(error, DamagedLog | NewerFormat):
                on_write(error)
                return
        if written:
            on_write(None)

    def _see(
        self, look: Callable[["Desk", Sequence[Request]], None], requests: Sequence[Request]
    ) -> None:
        try:
            look(self, requests)
        except Exception:  # who only looks on must not be in the way
            _logger.exception("agent %r cannot be watched", self.agent.name)

    def _answer(self, batch: list[_Waiting]) -> None:
        for request, future in batch:
            if future.done():
                continue
            if request.error is not None:
                error = of_value(request.error) if request.refused else request.error
                future.set_exception(error)
            elif request.result is None:  # never acknowledge what nobody has written
                future.set_exception(StoreFailed("it is not known whether this was written"))
            else:
                future.set_result(request.result)
        self._hand_over()

    async def close(self) -> None:
        """Finish what is under way, then close the agent."""
        self._closing = True
        await self._idle.wait()
        await self._loop.run_in_executor(self._writers, self.agent.close)
