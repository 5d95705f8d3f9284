"""HTTP requests per second at 50 connections, with one agent and with twenty, in turns in one run.

    python -m benchmarks.serve                      about a minute on an idle machine with two cores
    python -m benchmarks.serve --connections 32     with 32 connections
    python -m benchmarks.serve --before FOLDER      also the server of an earlier checkout
    python -m benchmarks.serve --batch 100          decisions one by one, and in batches of 100

Each server runs in a process of its own: one waits for the disk and one does not. The clients run
in a further process on the same machine. A visit is two requests, act and observe. The flush rate
of the disk is printed for comparison.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from benchmarks.durable import flushes
from benchmarks.timing import Timing
from rich.console import Console
from rich.table import Table

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decision
from bayescontrol.serve import Client

__all__ = ["DURABLE", "LOOSE", "Load", "Serving", "in_turn", "load", "request_times", "server"]

CONNECTIONS = 50
#: Numbers of agents that share the requests.
AGENTS = (1, 20)
DURABLE, LOOSE, BEFORE = "durable", "not durable", "before"
_HEAD = (
    b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)
#: A server that prints its address, and then its CPU time for every line of its input.
_SERVER = """
import sys, threading, time
from bayescontrol.serve.server import Server
server = Server(sys.argv[1], port=0, durable=sys.argv[2] == "True")
print(server.url, flush=True)
def report():
    for _ in sys.stdin:
        print(time.process_time(), flush=True)
threading.Thread(target=report, daemon=True).start()
server.run()
"""


@dataclass(frozen=True)
class Load:
    """The result of a round: total seconds, seconds of each request, CPU seconds of the server."""

    seconds: float
    each: np.ndarray
    processor: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.each) / self.seconds

    @property
    def cost(self) -> float:
        """CPU time of the server per request, in microseconds."""
        return self.processor / len(self.each) * 1e6

    def quantile(self, q: float) -> float:
        """A quantile of the request times, in milliseconds."""
        return float(np.quantile(self.each, q)) * 1e3


@dataclass(frozen=True)
class Serving:
    """A server in a separate process."""

    process: "subprocess.Popen[str]"
    port: int

    def processor(self) -> float:
        """CPU seconds that the server has used so far."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


@contextmanager
def server(store: Path, durable: bool, checkout: Path | None = None) -> Iterator[Serving]:
    """Run a server in a separate process, with the code of this or of another checkout."""
    environment = dict(os.environ)
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout / "src")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, f"sqlite:///{store}", str(durable)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield Serving(process, int(process.stdout.readline().strip().rpartition(":")[2]))
    finally:
        process.terminate()
        process.wait(30)


class _Visitor(asyncio.Protocol):
    """One connection, which sends the next request when the last one is answered.

    It does as little as possible: server and clients share the processor.
    """

    def __init__(self, agent: str, left: Iterator[int], each: list[float]) -> None:
        self._left, self._each, self._answer = left, each, b""
        self._paths = {a: b"/v1/agents/%s/%s" % (agent.encode(), a) for a in (b"act", b"observe")}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Start the first visit."""
        self._transport = transport
        self._ask(b"act", b"{}")

    def _ask(self, what: bytes, body: bytes) -> None:
        self._asked, self._started = what, time.perf_counter()
        self._transport.write(_HEAD % (self._paths[what], len(body)) + body)

    def data_received(self, data: bytes) -> None:
        """Send the next request when the answer is complete."""
        self._answer += data
        head, _, body = self._answer.partition(b"\r\n\r\n")
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not length or len(body) < int(length):
            return
        self._answer = b""
        self._each.append(time.perf_counter() - self._started)
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(body.decode()))
        elif self._asked == b"act":
            d = msgspec.json.decode(body)
            reward = d["action"] == 2
            self._ask(b"observe", b'{"id":"%s","observation":%d}' % (d["id"].encode(), reward))
        elif next(self._left, None) is not None:
            self._ask(b"act", b"{}")
        else:
            self._transport.close()
            self.done.set_result(None)


async def _load(served: Serving, requests: int, connections: int, agents: int) -> Load:
    loop, left = asyncio.get_running_loop(), iter(range(requests // 2 - connections))
    each: list[float] = []
    started, busy = time.perf_counter(), served.processor()
    visitors = [
        await loop.create_connection(
            partial(_Visitor, f"shop-{i % agents}", left, each), "127.0.0.1", served.port
        )
        for i in range(connections)
    ]
    await asyncio.gather(*(visitor.done for _, visitor in visitors))
    return Load(time.perf_counter() - started, np.array(each), served.processor() - busy)


def load(served: Serving, requests: int, connections: int = CONNECTIONS, agents: int = 1) -> Load:
    """Send `requests` requests, half of them `act` and half `observe`, to this many agents."""
    client = Client(f"http://127.0.0.1:{served.port}")
    for i in range(agents):
        client.create(f"shop-{i}", BernoulliBandit(4), seed=1)
    client.close()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_load(served, requests, connections, agents))
    return uvloop.run(_load(served, requests, connections, agents))


def in_turn(
    folder: Path,
    requests: int,
    rounds: int,
    agents: Sequence[int] = AGENTS,
    before: Path | None = None,
    connections: int = CONNECTIONS,
) -> dict[tuple[str, int], list[Load]]:
    """Alternate rounds of requests to the servers, by server and number of agents, when warm.

    `before` is an earlier checkout, whose durable server takes part.
    """
    checkouts = {DURABLE: None, LOOSE: None} | ({} if before is None else {BEFORE: before})
    loads: dict[tuple[str, int], list[Load]] = {
        (side, count): [] for count in agents for side in checkouts
    }
    with ExitStack() as running:
        served = {
            side: running.enter_context(server(folder / f"{side}.db", side != LOOSE, checkout))
            for side, checkout in checkouts.items()
        }
        for one in served.values():
            load(one, 2_000, connections, max(agents))
        for _ in range(rounds):
            for (side, count), results in loads.items():
                results.append(load(served[side], requests, connections, count))
    return loads


def request_times(requests: int = 2_000, rounds: int = 3) -> dict[str, Timing]:
    """Seconds divided by requests, which run concurrently; for `make bench`."""
    with tempfile.TemporaryDirectory() as place:
        loads = in_turn(Path(place), requests, rounds, agents=[1])
    timings = {}
    for (side, _), results in loads.items():
        seconds = [1.0 / one.rate for one in results]
        timings[side] = Timing(float(np.median(seconds)), min(seconds), max(seconds))
    return timings


def batches(folder: Path, size: int, rounds: int) -> dict[str, list[float]]:
    """Return decisions per second over one connection, singly and in batches, and at 50.

    A decision is an act and its observation, both on disk.
    """
    rates: dict[str, list[float]] = {"one by one": [], f"batches of {size}": []}
    rates[f"one by one, {CONNECTIONS} connections"] = []
    with server(folder / "batches.db", durable=True) as served:
        load(served, 2_000)
        client = Client(f"http://127.0.0.1:{served.port}")
        shop = client.agent("shop-0")

        def singly() -> None:
            for _ in range(size):
                shop.observe(shop.act().id, 1)

        def in_batches() -> None:
            for _ in range(10):
                decisions = shop.act_batch([{}] * size)
                shop.observe_batch(
                    [{"id": d.id, "o": 1} for d in decisions if isinstance(d, Decision)]
                )

        for _ in range(rounds):
            for name, work, count in (
                ("one by one", singly, size), (f"batches of {size}", in_batches, 10 * size),
            ):  # fmt: skip
                started = time.perf_counter()
                work()
                rates[name].append(count / (time.perf_counter() - started))
            many = load(served, 4_000)
            rates[f"one by one, {CONNECTIONS} connections"].append(many.rate / 2)
        client.close()
    return rates


def _spread(values: Sequence[float], digits: int = 0) -> str:
    """Return the median and the range as text."""
    return f"{np.median(values):,.{digits}f} ({min(values):,.{digits}f}-{max(values):,.{digits}f})"


def main() -> None:
    """Measure in turns; print the medians of each server, and of the ratios to the first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=6_000, help="requests per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="the folder of an earlier checkout")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--batch", type=int, help="compare batches of this size instead")
    arguments = parser.parse_args()
    if arguments.batch:
        with tempfile.TemporaryDirectory() as place:
            rates = batches(Path(place), arguments.batch, arguments.rounds)
        table = Table("decisions", "decisions/s", "ratio to one by one")
        for name, found in rates.items():
            ratios = [r / one for r, one in zip(found, rates["one by one"], strict=True)]
            table.add_row(name, _spread(found), _spread(ratios, 1))
        Console().print(table)
        return
    with tempfile.TemporaryDirectory() as place:
        disk = flushes(Path(place), seconds=0.5)
        loads = in_turn(
            Path(place), arguments.requests, arguments.rounds, before=arguments.before,
            connections=arguments.connections,
        )  # fmt: skip
    table = Table(title=f"{arguments.connections} connections, act and observe")
    columns = ("server", "agents", "requests/s", "durable is faster", "median", "p99", "CPU")
    for column in columns:
        table.add_column(column, justify="left" if column == "server" else "right")
    for (side, count), results in loads.items():
        pairs = zip(loads[DURABLE, count], results, strict=True)
        each = [f"{np.median([r.quantile(q) for r in results]):.1f} ms" for q in (0.5, 0.99)]
        table.add_row(
            side, str(count), _spread([r.rate for r in results]),
            _spread([ours.rate / other.rate for ours, other in pairs], 2), *each,
            f"{np.median([r.cost for r in results]):.0f} us",
        )  # fmt: skip
    table.caption = f"the disk flushes {disk:,.0f} times per second"
    Console().print(table)


if __name__ == "__main__":
    main()
