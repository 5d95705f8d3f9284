"""Durable agents: throughput of group commit, and the time to open a long log.

    python -m benchmarks.durable                 all benchmarks, about a minute
    python -m benchmarks.durable --events 100000 --seconds 1

A single thread waits for a flush at every decision and every observation. With many threads, all
requests that arrive during a flush are committed together. The speed-up depends on the disk, so
the flush rate of the disk is measured in the same rounds. For comparison: the cost of an operation
without waiting for the disk (`durable=False`), and the cost of 32 threads that share a committer
and only flush a page.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from bayescontrol import BernoulliBandit
from bayescontrol.durable import DurableAgent, open_agent, open_store
from bayescontrol.durable.events import Decided, Observed, encode_row
from bayescontrol.durable.stores.committer import Committer, Request
from bayescontrol.durable.stores.sqlite import SqliteStore
from bayescontrol.seeding import Stream

__all__ = ["Costs", "GroupCommit", "Opening", "costs", "group_commit", "many", "opening"]

MODEL = BernoulliBandit(10)
THREADS = 32
#: Seconds added to each flush: a good disk without a battery, and a slow one.
SLOWER = (1e-3, 5e-3)


@dataclass(frozen=True)
class GroupCommit:
    """Operations and disk flushes per second in one round."""

    flushes: float
    one: float
    many: float

    @property
    def ratio(self) -> float:
        """The speed-up of many threads over one."""
        return self.many / self.one


def flushes(folder: Path, seconds: float) -> float:
    """Flushes per second: write a page, as to a write-ahead log, and flush it."""
    handle = os.open(folder / "flushes", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    count, end = 0, time.perf_counter() + seconds
    try:
        while time.perf_counter() < end:
            os.pwrite(handle, b"x" * 4096, 4096 * (count % 1000))
            os.fsync(handle)
            count += 1
    finally:
        os.close(handle)
    return count / seconds


def rate(agent: DurableAgent, threads: int, seconds: float) -> float:
    """Operations per second; each thread waits until one is durable before the next."""
    end = time.perf_counter() + seconds
    done = [0] * threads

    def work(i: int) -> None:
        rng = Stream(i)
        while time.perf_counter() < end:
            agent.observe(agent.act().id, rng.integers(2))
            done[i] += 2

    seconds = _run_threads(threads, work)
    return sum(done) / seconds


def _run_threads(threads: int, work: Callable[[int], None]) -> float:
    """Run `work` in threads; return the seconds until all are done."""
    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


class _SlowFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], wait: float) -> None:
        super().__init__("", name, flags)
        self._wait = wait

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite calls it so
        """Flush, then wait like a slower disk."""
        super().xSync(flags)
        time.sleep(self._wait)


class _SlowDisk(apsw.VFS):
    """The real disk with `wait` seconds added to every flush."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self.called = f"slower by {wait}"
        super().__init__(self.called, "")

    def xOpen(self, name: Any, flags: list[int]) -> _SlowFile:  # noqa: N802 - SQLite calls it so
        return _SlowFile(name, flags, self._wait)


def group_commit(
    folder: Path, seconds: float = 2.0, rounds: int = 5, wait: float = 0.0
) -> list[GroupCommit]:
    """In each round measure the flush rate, then one thread, then 32 threads on the same agent.

    `wait` seconds are added to each flush, to simulate a slower disk.
    """
    results = []
    disk = _SlowDisk(wait) if wait else None  # must outlive the store
    store = SqliteStore(f"sqlite:///{folder}/shop {wait}.db", vfs=disk.called if disk else None)
    with open_agent(store, "shop", MODEL, seed=1) as agent:
        rate(agent, 2, 0.5)  # compile
        for _ in range(rounds):
            per_second = 1.0 / (1.0 / flushes(folder, seconds / 2) + wait)
            one, many = rate(agent, 1, seconds), rate(agent, THREADS, seconds)
            results.append(GroupCommit(per_second, one, many))
    store.close()
    return results


@dataclass(frozen=True)
class Costs:
    """Microseconds per operation without waiting for the disk, and per request of bare threads."""

    one: float
    many: float
    #: 32 threads that share a committer, which only flushes a page for each group.
    threads: float


def costs(folder: Path, seconds: float = 2.0) -> Costs:
    """Measure the cost without flushes, and the cost of threads and flushes without an agent."""
    url = f"sqlite:///{folder / 'free.db'}"
    with open_agent(url, "shop", MODEL, seed=1, durable=False) as agent:
        rate(agent, 2, 0.5)  # compile
        one, many = rate(agent, 1, seconds), rate(agent, THREADS, seconds)
    handle = os.open(folder / "page", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def write(requests: list[Request]) -> None:
        os.pwrite(handle, b"x" * 4096, 0)
        os.fsync(handle)

    committer, done = Committer(write), [0] * THREADS
    end = time.perf_counter() + seconds

    def work(i: int) -> None:
        while time.perf_counter() < end:
            committer.submit(Request())
            done[i] += 1

    took = _run_threads(THREADS, work)
    os.close(handle)
    return Costs(1e6 / one, 1e6 / many, 1e6 * took / sum(done))


@dataclass(frozen=True)
class Opening:
    """Wall and CPU seconds to open a log from its events, and wall seconds from a snapshot."""

    events: int
    seconds: float
    processor: float
    from_snapshot: float


def fill_log(url: str, events: int) -> None:
    """Write a log of about `events` events, half of them observations, for the agent "shop"."""
    open_agent(url, "shop", MODEL, seed=1).close()
    store, rng = open_store(url, durable=False), Stream(0)
    log = store.log("shop")
    head = log.head()
    while head + 1 < events:
        half = min(250, (events - head) // 2)
        rows = []
        # End with observations: opening a log redraws its last decision, and this agent did not
        # draw the decisions here.
        for n in range(head + 1, head + half + 1):
            a = rng.integers(10)
            rows.append(encode_row(Decided(seq=n, x=None, a=a, p=0.1, key=None, time=1.7e9 + n)))
        for n in range(head + 1, head + half + 1):
            o = rng.integers(2)
            rows.append(encode_row(Observed(seq=n + half, n=n, o=o, time=1.7e9 + n)))
        log.append(rows)
        head = log.head()
    store.close()


def opening(folder: Path, events: int = 1_000_000) -> Opening:
    """Open a log of `events` events, without and with a snapshot."""
    url = f"sqlite:///{folder / 'long.db'}"
    fill_log(url, events)
    start, busy = time.perf_counter(), time.process_time()
    with open_agent(url, "shop") as agent:
        seconds, processor = time.perf_counter() - start, time.process_time() - busy
        opened = agent.head
    start = time.perf_counter()
    open_agent(url, "shop").close()
    return Opening(opened, seconds, processor, time.perf_counter() - start)


def many(folder: Path, agents: int) -> float:
    """Seconds to open a store and each of its `agents` agents."""
    url = f"sqlite:///{folder / f'{agents} agents.db'}"
    store = open_store(url, durable=False)
    for i in range(agents):
        open_agent(store, f"agent {i}", MODEL, seed=i).close()
    store.close()
    start = time.perf_counter()
    store = open_store(url, durable=False)
    for name in store.names():
        open_agent(store, name)
    seconds = time.perf_counter() - start
    store.close()
    return seconds


def main() -> None:
    """Run all benchmarks and print their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        print("flushes/s   1 thread/s   32 threads/s   ratio")
        for wait in (0.0, *SLOWER):
            rounds = 3 if wait else 5
            results = group_commit(Path(place), options.seconds, rounds, wait)
            for one in results:
                rates = f"{one.flushes:9,.0f}   {one.one:10,.0f}   {one.many:12,.0f}"
                print(f"{rates}   {one.ratio:5.1f}", flush=True)
            disk = f"each flush made {1e3 * wait:g} ms slower" if wait else "the disk as it is"
            print(f"{disk}: median ratio {statistics.median(one.ratio for one in results):.1f}")
        cost = costs(Path(place), options.seconds)
        print(
            f"without waiting for the disk: {cost.one:.0f} µs an operation, with {THREADS} threads "
            f"{cost.many:.0f} µs; {THREADS} threads and flushes without an agent: "
            f"{cost.threads:.0f} µs"
        )
        found = opening(Path(place), options.events)
        print(
            f"{found.events:,} events opened in {found.seconds:.1f} s "
            f"({found.processor:.1f} s of CPU time), "
            f"with a snapshot in {1e3 * found.from_snapshot:.0f} ms"
        )
        for agents in (1_000, 2_000):
            print(f"{agents:,} agents opened in {many(Path(place), agents):.1f} s")


if __name__ == "__main__":
    main()
