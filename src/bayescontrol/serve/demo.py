"""A server with visitors who are not real, so that the live page has something to show.

    checkout     four designs of a page; a visitor buys with a probability that is known here, so
                 that the regret can be shown; answers come late, twice, or never
    dispenser    three experts on a lever, guarded by the alarm; after a third of the time the
                 lever breaks, and no expert fits any more

The visitors come over HTTP, as real ones would.
"""

import heapq
import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bayescontrol.bandits import BernoulliBandit
from bayescontrol.durable.events import Decided, Decision
from bayescontrol.durable.models import Model, named_model
from bayescontrol.errors import FeedbackDue
from bayescontrol.live import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.seeding import Stream
from bayescontrol.serve.client import Client, RemoteAgent
from bayescontrol.serve.server import Server

#: P(a visitor buys | design), by design.
CHECKOUT: Final = {"plain": 0.05, "short form": 0.07, "with pictures": 0.09, "one click": 0.14}
#: P(the lever pays | expert): what each expert believes of it.
DISPENSER: Final = {"thrifty": 0.7, "fair": 0.8, "generous": 0.9}
#: What the lever pays when it is broken, and when: late enough to be seen well, early enough for
#: the alarm, since over the whole time it pays less than any expert believes.
_BROKEN, _BREAKS = 0.1, 1.0 / 3.0
_NEVER, _TWICE = 0.1, 0.05
_PATIENCE: Final = 2.0  # seconds until an answer, on average


def dispenser() -> Model:
    """Pull or leave: three experts, and the alarm for the case that none is right.

    >>> dispenser().build().alarm.raised
    False
    """
    pays = DISPENSER.values()
    modes = TabularModes(  # who believes in the lever pulls it, and sometimes tries the other
        policy=[[[0.1, 0.9]]] * len(pays),
        hypothesis=[[[[0.8, 0.2], [1 - p, p]]] for p in pays],
        names=list(DISPENSER),
    )

    def build() -> Guarded:
        return Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01))

    return named_model("dispenser", version=1, build=build)


@contextmanager
def running_demo(
    seconds: float,
    *,
    store: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    rate: float = 40.0,
    seed: int = 0,
) -> Iterator[Server]:
    """A server with visitors, `rate` a second, until the block ends; they stay for `seconds`.

    Without a `store` the logs are gone afterwards.

    >>> with running_demo(1.0) as server, Client(server.url) as client:
    ...     sorted(client.agents())
    ['checkout', 'dispenser']
    """
    for name, value in (("seconds", seconds), ("rate", rate)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}={value!r}: it must be a positive number")
    Stream.named(seed, 0, "visitors")  # a seed that is none is refused here, not in a thread
    with tempfile.TemporaryDirectory(prefix="bayescontrol-demo-") as folder:
        where = store or f"sqlite:///{Path(folder) / 'demo.db'}"
        model = dispenser()
        server = Server(
            where, host=host, port=port, models={model.name: model}, truths={"checkout": CHECKOUT}
        )
        stopped = threading.Event()
        with server, Client(server.url) as client:
            client.create("checkout", BernoulliBandit(list(CHECKOUT)))
            client.create("dispenser", model.name)
            ends = time.monotonic() + seconds
            threads = [
                threading.Thread(target=_until, args=(visits, client, ends, rate, seed, stopped))
                for visits in (_shop, _pull)
            ]
            for thread in threads:
                thread.start()
            try:
                yield server
            finally:
                stopped.set()
                for thread in threads:
                    thread.join()


def _until(
    visits: Callable[..., Iterator[float]],
    client: Client,
    ends: float,
    rate: float,
    seed: int,
    stopped: threading.Event,
) -> None:
    """Go on, pause by pause, until it is time or someone says stop."""
    for pause in visits(client, ends, rate, seed):
        if stopped.wait(pause) or time.monotonic() >= ends:
            return


def _shop(client: Client, ends: float, rate: float, seed: int) -> Iterator[float]:
    """Visitors see a design; what they do is heard of later."""
    agent, rng = client.agent("checkout"), Stream.named(seed, 0, "visitors")
    world = BernoulliBandit(list(CHECKOUT)).environment(list(CHECKOUT.values()))
    answers: list[tuple[float, str, float]] = []
    while True:
        decision = agent.act()
        o = world.respond(decision.action, rng)
        for _ in range(_heard_of(rng)):
            when = time.monotonic() + rng.exponential(_PATIENCE)
            heapq.heappush(answers, (when, decision.id, o))
        while answers and answers[0][0] <= time.monotonic():
            _, id_, o = heapq.heappop(answers)
            agent.observe(id_, o)
        yield rng.exponential(1.0 / rate)


def _heard_of(rng: Stream) -> int:
    """How often a visitor's answer comes."""
    luck = rng.random()
    return 0 if luck < _NEVER else 2 if luck < _NEVER + _TWICE else 1


def _pull(client: Client, ends: float, rate: float, seed: int) -> Iterator[float]:
    """The lever pays as the generous expert says, then breaks."""
    agent, rng = client.agent("dispenser"), Stream.named(seed, 0, "lever")
    now = time.monotonic()
    breaks = now + _BREAKS * (ends - now)
    while True:
        decision = _asked(agent)
        works = DISPENSER["generous"] if time.monotonic() < breaks else _BROKEN
        chance = works if decision.action == 1 else 0.2
        agent.observe(decision.id, int(rng.random() < chance))
        yield rng.exponential(4.0 / rate)


def _asked(agent: RemoteAgent) -> Decision:
    """The next decision; in a log that was kept, the one that is still due an answer."""
    try:
        return agent.act()
    except FeedbackDue:
        made = [event for event in agent.log() if isinstance(event, Decided)]
        return Decision.of(made[-1])
