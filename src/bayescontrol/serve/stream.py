"""The stream of events that the live page listens to.

    event: agents      once a second: every agent that is open, in numbers
    event: decision    a sample of the decisions: twenty a second, and one of each agent

The monitor sees what goes over the desks. It computes nothing while nobody listens, but for two
sums: decisions, and the regret Σ_t (best mean - mean of a_t) where the truth is known.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.committer import Request
from bayescontrol.durable.events import Decision
from bayescontrol.durable.turn import Act, Observe
from bayescontrol.serve import frames, parameters
from bayescontrol.serve.desk import Desk
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.problems import Refused

_MOST_AGENTS: Final = 200
_SAMPLE: Final = 0.05  # seconds between two decisions, or two surprises, that are shown
_TURN: Final = 1.0  # seconds after which a decision of an agent is shown whatever others do
_RECENT: Final = 4096


class _Seen:
    """What the monitor remembers of one agent."""

    def __init__(self) -> None:
        self.last = 0  # the number of the last decision that was counted
        self.decisions = 0
        self.regret = 0.0
        self.recent: dict[str, Decision] = {}
        self.surprises: deque[float] = deque(maxlen=50)
        self.looked = 0.0
        self.shown = 0.0
        self.rates: deque[tuple[float, int]] = deque(maxlen=6)

    def rate(self, now: float) -> float:
        """Decisions a second, over the last five."""
        self.rates.append((now, self.decisions))
        (then, before), (_, after) = self.rates[0], self.rates[-1]
        return (after - before) / (now - then) if now > then else 0.0


class Monitor:
    """Sees what is decided, and tells whoever listens.

    `truths` gives the true mean reward of every action, by agent, where it is known.

    >>> Monitor(Metrics(), {"shop": {"red": 0.2, "blue": 0.3}}).listeners
    0
    """

    def __init__(
        self,
        metrics: Metrics,
        truths: Mapping[str, Mapping[Any, float]] | None = None,
        most: int = 32,
    ) -> None:
        self._metrics, self._truths, self._most = metrics, dict(truths or {}), most
        self._seen: dict[str, _Seen] = {}
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shown = 0.0
        metrics.gauge("listeners", "Pages that listen.", lambda: self.listeners)

    @property
    def listeners(self) -> int:
        """Pages that listen."""
        return len(self._queues)

    # -- what goes over the desks; in a worker thread --------------------------------------------

    def before(self, desk: Desk, requests: Sequence[Request]) -> None:
        """Read off how surprising one of the observations is, before it is learnt."""
        seen = self._of(desk)
        now = time.monotonic()
        if not self._queues or now - seen.looked < _SAMPLE:
            return
        for request in requests:
            if not isinstance(request, Observe):
                continue
            decision = seen.recent.get(str(request.id))
            if decision is not None:
                seen.looked = now
                self._surprise(desk, seen, decision, request.o)
                return

    def _surprise(self, desk: Desk, seen: _Seen, d: Decision, o: Any) -> None:
        def bits(rule: Any) -> float:
            return float(rule.belief.surprise(d.situation, d.action, o))

        try:
            found = desk.agent.ask(bits)
        except Exception:  # whatever is wrong with o, `observe` will say it
            return
        if math.isfinite(found):
            seen.surprises.append(found)

    def after(self, desk: Desk, requests: Sequence[Request]) -> None:
        """Count what was done."""
        seen, name = self._of(desk), desk.agent.name
        learnt = fresh = 0
        for request in requests:
            if isinstance(request, Act) and isinstance(request.result, Decision):
                fresh += self._decided(seen, name, request.result)
            else:
                learnt += request.result is True
        self._metrics.turns.add(name, value=len(requests))
        if fresh:
            self._metrics.decisions.add(name, by=fresh)
        if learnt:
            self._metrics.observations.add(name, by=learnt)

    def _decided(self, seen: _Seen, name: str, decision: Decision) -> bool:
        """Whether it is a new decision, and not one that was asked for again under its key."""
        n = int(decision.id)
        if n <= seen.last:
            return False
        seen.last = n
        seen.decisions += 1
        truth = self._truths.get(name)
        if truth is not None:
            seen.regret += max(truth.values()) - truth[decision.action]
        if self._queues:
            if len(seen.recent) >= _RECENT:
                seen.recent.clear()
            seen.recent[decision.id] = decision
            self._sample(seen, name, decision)
        return True

    def _sample(self, seen: _Seen, name: str, d: Decision) -> None:
        now = time.monotonic()
        due = now - self._shown >= _SAMPLE or now - seen.shown >= _TURN
        if due and self._loop is not None:
            self._shown = seen.shown = now
            told = {
                "agent": name, "id": d.id, "action": frames.label(d),
                "probability": d.probability, "time": d.time,
            }  # fmt: skip
            self._loop.call_soon_threadsafe(self._tell, _event("decision", told))

    def _of(self, desk: Desk) -> _Seen:
        return self._seen.setdefault(desk.agent.name, _Seen())

    # -- what is told ----------------------------------------------------------------------------

    async def run(self, desks: Mapping[str, Desk]) -> None:
        """Tell how the agents are, once a second, for ever."""
        self._loop = asyncio.get_running_loop()
        while True:
            if self._queues:
                self._tell(await self._frame(desks))
            await asyncio.sleep(1.0)

    async def _frame(self, desks: Mapping[str, Desk]) -> bytes:
        told = []
        for desk in list(desks.values())[:_MOST_AGENTS]:
            with suppress(Exception):  # one agent that fails is not shown
                told.append(await desk.read(partial(self._told, desk)))
        return _event("agents", told)

    def _told(self, desk: Desk, agent: DurableAgent) -> dict[str, Any]:
        seen, model = self._of(desk), agent.model.name

        def believed(rule: Any) -> tuple[int, int | None, dict[str, Any]]:
            modes, law = frames.modes(rule, model), frames.law(agent)
            return agent.head, frames.observed(rule), {
                "modes": modes,
                "measure": parameters.measure(rule, model),
                "probabilities": law,
                "remarks": parameters.remarks(agent, modes, law),
                "alarm": frames.alarm(rule),
            }  # fmt: skip

        head, count, now = agent.ask(believed)
        decided, observed = frames.counted(agent, head, count)
        few = list(seen.surprises)
        return {
            "name": agent.name,
            "model": f"{model} {agent.model.version}",
            "decisions": decided,
            "observations": observed,
            "pending": decided - observed,
            "rate_per_s": seen.rate(time.monotonic()),
            "surprise_bits": sum(few) / len(few) if few else None,
            "regret": seen.regret if agent.name in self._truths else None,
        } | now

    def _tell(self, event: bytes) -> None:
        for queue in self._queues:
            if not queue.full():  # who reads too slowly misses some
                queue.put_nowait(event)

    def listen(self, desks: Mapping[str, Desk]) -> AsyncIterator[bytes]:
        """The events from now on; `Refused` if too many listen."""
        if len(self._queues) >= self._most:
            raise Refused("overloaded", f"{self._most} pages listen", {"Retry-After": "10"})
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(64)
        self._queues.add(queue)
        return self._events(queue, desks)

    async def _events(
        self, queue: "asyncio.Queue[bytes | None]", desks: Mapping[str, Desk]
    ) -> AsyncIterator[bytes]:
        try:
            yield await self._frame(desks)  # at once: a new page need not wait
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._queues.discard(queue)

    def close(self) -> None:
        """Let everyone go who listens."""
        for queue in list(self._queues):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


def _event(kind: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))
