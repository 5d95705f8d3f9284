"""HTTP requests per second at 32 connections, durable and not durable, taking turns in one run.

    python -m benchmarks.serve                      about a minute on an idle machine with two cores

Two servers run in separate processes: one waits for the disk and one does not. The clients run in
a third process on the same machine. A visit is two requests, act and observe. The flush rate of
the disk is printed for comparison.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from benchmarks.durable import flushes
from benchmarks.timing import Timing
from rich.console import Console
from rich.table import Table

__all__ = ["DURABLE", "LOOSE", "Load", "in_turn", "load", "request_times", "server"]

CONNECTIONS = 32
_SERVER = """
import sys
from bayescontrol.serve.server import Server
server = Server(sys.argv[1], port=0, durable=sys.argv[2] == "durable")
print(server.url, flush=True)
server.run()
"""


@dataclass(frozen=True)
class Load:
    """The result of a round: total seconds, and seconds of each request."""

    seconds: float
    each: np.ndarray

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.each) / self.seconds

    def quantile(self, q: float) -> float:
        """A quantile of the request times, in milliseconds."""
        return float(np.quantile(self.each, q)) * 1e3


@contextmanager
def server(folder: Path, durable: bool) -> Iterator[int]:
    """Run a server in a separate process; yield its port."""
    kind = "durable" if durable else "not"
    store = f"sqlite:///{folder / kind}.db"
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, store, kind], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().strip().rpartition(":")[2])
    finally:
        process.terminate()
        process.wait(30)


async def _ask(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], path: str, body: bytes
) -> bytes:
    reader, writer = streams
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    content = await reader.readexactly(length)
    if answer[9:11] != b"20":
        raise RuntimeError(content.decode())
    return content


async def _load(port: int, requests: int, connections: int, agent: str) -> Load:
    left = requests
    each: list[float] = []
    name = msgspec.json.encode(
        {"name": agent, "model": "bernoulli-bandit", "settings": {"arms": 4}, "seed": 1}
    )

    async def visits() -> None:
        nonlocal left
        streams = await asyncio.open_connection("127.0.0.1", port)
        while left > 0:
            left -= 2
            started = time.perf_counter()
            decision = msgspec.json.decode(await _ask(streams, f"/v1/agents/{agent}/act", b"{}"))
            between = time.perf_counter()
            answer = b'{"id":"%s","observation":%d}' % (
                decision["id"].encode(),
                decision["action"] == 2,
            )
            await _ask(streams, f"/v1/agents/{agent}/observe", answer)
            each.extend((between - started, time.perf_counter() - between))
        streams[1].close()

    first = await asyncio.open_connection("127.0.0.1", port)
    await _ask(first, "/v1/agents", name)
    first[1].close()
    started = time.perf_counter()
    await asyncio.gather(*(visits() for _ in range(connections)))
    return Load(time.perf_counter() - started, np.array(each))


def load(port: int, requests: int, connections: int = CONNECTIONS, agent: str = "shop") -> Load:
    """Send `requests` requests, half of them `act` and half `observe`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_load(port, requests, connections, agent))
    return uvloop.run(_load(port, requests, connections, agent))


DURABLE, LOOSE = "durable", "not durable"


def in_turn(folder: Path, requests: int, rounds: int) -> dict[str, list[Load]]:
    """Alternate rounds of requests to a durable and a non-durable server, after a warm-up."""
    sides: dict[str, list[Load]] = {DURABLE: [], LOOSE: []}
    with server(folder, True) as durable, server(folder, False) as loose:
        ports = {DURABLE: durable, LOOSE: loose}
        for port in ports.values():
            load(port, 2_000)
        for _ in range(rounds):
            for side, port in ports.items():
                sides[side].append(load(port, requests))
    return sides


def request_times(requests: int = 2_000, rounds: int = 3) -> dict[str, Timing]:
    """Seconds divided by requests, which run concurrently; for `make bench`."""
    with tempfile.TemporaryDirectory() as place:
        sides = in_turn(Path(place), requests, rounds)
    timings = {}
    for side, loads in sides.items():
        seconds = [1.0 / one.rate for one in loads]
        timings[side] = Timing(float(np.median(seconds)), min(seconds), max(seconds))
    return timings


def main() -> None:
    """Measure in turns; print the median of each server and of their ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=6_000, help="requests per round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        disk = flushes(folder, seconds=0.5)
        sides = in_turn(folder, arguments.requests, arguments.rounds)
    table = Table(title=f"{CONNECTIONS} connections, act and observe")
    for column in ("server", "requests/s", "median", "p99"):
        table.add_column(column, justify="left" if column == "server" else "right")
    for side, rounds in sides.items():
        rates = [one.rate for one in rounds]
        spread = f"{np.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"
        each = [f"{np.median([r.quantile(q) for r in rounds]):.1f} ms" for q in (0.5, 0.99)]
        table.add_row(side, spread, *each)
    ratios = [a.rate / b.rate for a, b in zip(*sides.values(), strict=True)]
    spread = f"{np.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    table.caption = (
        f"durable / not durable: {spread}; the disk flushes {disk:,.0f} times per second"
    )
    console.print(table)


if __name__ == "__main__":
    main()
