"""What a durable agent needs: bytes on disk and in memory, and seconds to open it.

    python -m benchmarks.capacity [--decisions 2000]

Every decision has a key of 32 characters and an observation. `docs/capacity.md` shows the result.
"""

import argparse
import gc
import tempfile
import time
import tracemalloc
import uuid
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import open_agent, open_store

KINDS: dict[str, tuple[Any, Any]] = {
    "Bernoulli bandit, 2 arms": (BernoulliBandit(["red", "blue"]), None),
    "Bernoulli bandit, 100 arms": (BernoulliBandit(100), None),
    "linear bandit, 3 arms, 10 features": (
        LinearBandit(3, features=10), [0.125 * i for i in range(10)]
    ),
}  # fmt: skip


def size(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir())


def disk_and_time(problem: Any, x: Any, decisions: int) -> tuple[float, float, float]:
    """Return bytes per decision, and the seconds to open from events and from a snapshot."""
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/shop.db"
        store = open_store(url, durable=False)
        with open_agent(store, "shop", problem, seed=0) as agent:
            for i in range(decisions):
                agent.observe(agent.act(x, key=uuid.uuid4().hex), i % 2)
        store.close()
        on_disk = size(Path(place)) / decisions
        seconds = []
        for forget in (True, False):
            store = open_store(url, durable=False)
            if forget:
                store._file.write(lambda db: db.execute("DELETE FROM snapshots"))  # type: ignore[attr-defined]
            began = time.perf_counter()
            with open_agent(store, "shop"):
                seconds.append(time.perf_counter() - began)
            store.close()
    return on_disk, seconds[0], seconds[1]


def memory(problem: Any, agents: int = 200) -> float:
    """Return the bytes of Python objects and arrays of one open agent."""
    store = open_store("sqlite:///:memory:")
    opened = [open_agent(store, "first", problem)]
    gc.collect()
    tracemalloc.start()
    opened += [open_agent(store, f"agent-{i}", problem) for i in range(agents)]
    gc.collect()
    found = tracemalloc.get_traced_memory()[0] / agents
    tracemalloc.stop()
    store.close()
    del opened
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=2_000)
    decisions = parser.parse_args().decisions
    table = Table(title=f"{decisions:,} decisions with their observations, SQLite")
    columns = ("model", "disk per decision", "memory per agent", "opened from events", "snapshot")
    for column in columns:
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, (problem, x) in KINDS.items():
        disk_and_time(problem, x, 10)  # compile
        on_disk, events, snapshot = disk_and_time(problem, x, decisions)
        table.add_row(
            name, f"{on_disk:.0f} bytes", f"{memory(problem) / 1000:.0f} kB", f"{events:.2f} s",
            f"{1000 * snapshot:.1f} ms",
        )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
