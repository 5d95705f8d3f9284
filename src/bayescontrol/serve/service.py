"""What the paths share: the house, the monitor, the counters, and how the server is.

started    the store is open, requests are answered
ready      every agent has been opened
closing    nothing new begins; what is under way is finished
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from bayescontrol.durable.log import LogStore
from bayescontrol.durable.models import Model
from bayescontrol.serve.house import House
from bayescontrol.serve.limits import Limits
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.stream import Monitor

_logger = logging.getLogger("bayescontrol.serve")


class Service:
    """The server's insides; started and stopped by the event loop that it runs on.

    >>> from bayescontrol.durable import open_store
    >>> async def briefly():
    ...     service = Service(open_store("sqlite:///:memory:"))
    ...     await service.start()
    ...     await service.opened
    ...     ready = service.ready
    ...     await service.stop()
    ...     return ready, service.ready
    >>> asyncio.run(briefly())
    (True, False)
    """

    house: House
    #: Done when every agent has been opened, or has failed to.
    opened: "asyncio.Task[None]"

    def __init__(
        self,
        store: LogStore,
        models: Mapping[str, Model] | None = None,
        truths: Mapping[str, Mapping[Any, float]] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._store, self._models = store, models
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self.monitor = Monitor(self.metrics, truths, self.limits.streams)
        self.ready = self.closing = False
        #: Whether a token is needed.
        self.secured = False
        self._failed: dict[str, BaseException] = {}
        self.metrics.gauge(
            "ready",
            "1 when every agent is open and the last write did not fail.",
            lambda: float(self.ready and not self.house.writes_fail),
        )

    @property
    def failed(self) -> list[str]:
        """Agents that could not be opened, and have not been since."""
        return [name for name in self._failed if name not in self.house.desks]

    async def start(self) -> None:
        """Answer requests; open the agents meanwhile."""
        self.house = House(self._store, self._models, self.monitor, self.limits.agents)
        self.metrics.gauge("agents", "Agents that are open.", lambda: len(self.house.desks))
        self.metrics.gauge(
            "requests_waiting",
            "Requests that wait for a commit.",
            lambda: sum(desk.waiting for desk in self.house.desks.values()),
        )
        self.opened = asyncio.create_task(self._open())
        self._telling = asyncio.create_task(self.monitor.run(self.house.desks))

    async def _open(self) -> None:
        try:
            self._failed = await self.house.open_all()
        except Exception:
            _logger.exception("the store cannot be read: the server will not be ready")
            return
        for name, error in self._failed.items():
            _logger.warning("agent %r cannot be opened: %s", name, error)
        self.ready = not self.closing

    def close(self) -> None:
        """Nothing new from now on; whoever listens is let go."""
        self.closing, self.ready = True, False
        self.monitor.close()
        self.house.stop()

    async def stop(self) -> None:
        """Finish what is under way and close the store."""
        self.close()
        for task in (self.opened, self._telling):
            task.cancel()
        await asyncio.gather(self.opened, self._telling, return_exceptions=True)
        await self.house.close()
