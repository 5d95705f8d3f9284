"""A server with simulated visitors, for a demonstration of the live page.

    checkout     four designs of a page; the probabilities that a visitor buys are known, so that
                 the page can show the regret; feedback arrives late, twice, or never
    dispenser    three experts on a lever, with an alarm; after a third of the time the lever
                 breaks, and no expert fits any more

The visitors use HTTP, as real ones would.
"""

import heapq
import math
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.durable.events import Decided, Decision
from bayescontrol.durable.models import Model, named_model
from bayescontrol.errors import FeedbackDue
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.seeding import Stream
from bayescontrol.serve.client import Client, RemoteAgent
from bayescontrol.serve.server import Server

#: P(a visitor buys | design), by design.
CHECKOUT: Final = {"plain": 0.05, "short form": 0.07, "with pictures": 0.09, "one click": 0.14}
#: P(the lever pays | expert), according to each expert; without a pull, `_IDLE_PAYS`.
DISPENSER: Final = {"thrifty": 0.7, "fair": 0.8, "generous": 0.9}
_IDLE_PAYS: Final = 0.2
#: P(the broken lever pays), and the share of the time after which it breaks: early enough for the
#: alarm, since over the whole time it then pays less than any expert expects.
_BROKEN, _BREAKS_AFTER = 0.1, 1.0 / 3.0
#: The probabilities that feedback never arrives, or arrives twice.
_NEVER, _TWICE = 0.1, 0.05
#: Mean seconds until feedback arrives.
_MEAN_DELAY: Final = 2.0


def dispenser() -> Model:
    """Return the model of the lever: three experts, and the alarm in case none of them fits."""
    pays = DISPENSER.values()
    modes = TabularModes(  # every expert mostly pulls the lever
        policy=[[[0.1, 0.9]]] * len(pays),
        hypothesis=[[[[1 - _IDLE_PAYS, _IDLE_PAYS], [1 - p, p]]] for p in pays],
        names=list(DISPENSER),
    )

    def build() -> Guarded:
        return Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01))

    return named_model("dispenser", version=1, build=build)


@contextmanager
def running_demo(
    seconds: float, *, store: str | None = None, port: int = 0, rate: float = 40.0, seed: int = 0
) -> Iterator[Server]:
    """Run a server until the block ends, with `rate` visitors a second for `seconds`.

    Without a `store`, the logs are deleted afterwards.

    >>> with running_demo(1.0) as server, Client(server.url) as client:
    ...     sorted(client.agents())
    ['checkout', 'dispenser']
    """
    for name, value in (("seconds", seconds), ("rate", rate)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}={value!r} is invalid: it must be positive and finite")
    Stream.named(seed, 0, "visitors")  # reject an invalid seed here, not in a thread
    with tempfile.TemporaryDirectory(prefix="bayescontrol-demo-") as folder:
        url = store or f"sqlite:///{Path(folder) / 'demo.db'}"
        model = dispenser()
        models, truths = {model.name: model}, {"checkout": CHECKOUT}
        server = Server(url, port=port, models=models, truths=truths)
        stopped = threading.Event()
        with server, Client(server.url) as client:
            client.create("checkout", BernoulliBandit(list(CHECKOUT)))
            client.create("dispenser", model.name)
            end = time.monotonic() + seconds
            threads = [
                threading.Thread(target=_run, args=(visits, end, stopped))
                for visits in (_shop(client, rate, seed), _pull(client, end, rate, seed))
            ]
            for thread in threads:
                thread.start()
            try:
                yield server
            finally:
                stopped.set()
                for thread in threads:
                    thread.join()


def _run(visits: Iterator[float], end: float, stopped: threading.Event) -> None:
    """Run visits, with the pauses that they yield, until the time `end` or `stopped` is set."""
    for pause in visits:
        if stopped.wait(pause) or time.monotonic() >= end:
            return


def _shop(client: Client, rate: float, seed: int) -> Iterator[float]:
    """Show visitors a design of the checkout page, and observe later whether they buy.

    Yields the seconds until the next visitor.
    """
    agent, rng = client.agent("checkout"), Stream.named(seed, 0, "visitors")
    world = BernoulliBandit(list(CHECKOUT)).environment(list(CHECKOUT.values()))
    pending: list[tuple[float, str, float]] = []  # a heap: when to send, decision id, o
    while True:
        decision = agent.act()
        o = world.respond(decision.action, rng)
        u = rng.random()
        feedback_count = 0 if u < _NEVER else 2 if u < _NEVER + _TWICE else 1
        for _ in range(feedback_count):
            when = time.monotonic() + rng.exponential(_MEAN_DELAY)
            heapq.heappush(pending, (when, decision.id, o))
        while pending and pending[0][0] <= time.monotonic():
            _, id_, o = heapq.heappop(pending)
            agent.observe(id_, o)
        yield rng.exponential(1.0 / rate)


def _pull(client: Client, end: float, rate: float, seed: int) -> Iterator[float]:
    """Pull the lever, which pays as the generous expert expects until it breaks.

    Yields the seconds until the next decision; `end` is the end of the demonstration.
    """
    agent, rng = client.agent("dispenser"), Stream.named(seed, 0, "lever")
    now = time.monotonic()
    breaks_at = now + _BREAKS_AFTER * (end - now)
    while True:
        decision = _next_decision(agent)
        p_lever = DISPENSER["generous"] if time.monotonic() < breaks_at else _BROKEN
        p = p_lever if decision.action == 1 else _IDLE_PAYS  # action 1 pulls the lever
        agent.observe(decision.id, int(rng.random() < p))
        yield rng.exponential(4.0 / rate)  # a quarter of the visits to the shop


def _next_decision(agent: RemoteAgent) -> Decision:
    """Return the next decision, or the last one in the log if it still needs an observation."""
    try:
        return agent.act()
    except FeedbackDue:
        decisions = [event for event in agent.log() if isinstance(event, Decided)]
        return Decision.of(decisions[-1])
