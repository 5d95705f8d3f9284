"""`make bench`: speed ratios within one run, which are less noisy than absolute times."""

import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from benchmarks.agents import act_and_observe, fused_and_readable, user_written_modes
from benchmarks.bandit import REFERENCE, per_decision
from benchmarks.changing import STATIC
from benchmarks.changing import step as changing_step
from benchmarks.convergence import verdicts
from benchmarks.durable import MODEL, THREADS, group_commit
from benchmarks.finite_belief import update_and_draw
from benchmarks.imports import import_times
from benchmarks.lab import runner_and_loop
from benchmarks.lqr import BY_HAND as LQR_BY_HAND
from benchmarks.lqr import step as linear_step
from benchmarks.mdp import GYMNASIUM, NUMPY, gibbs_step, r_learning_step
from benchmarks.serve import CONNECTIONS, LOOSE, request_times
from benchmarks.timing import Timing
from rich.console import Console
from rich.table import Table

from bayescontrol.durable import open_agent, open_store
from bayescontrol.durable.events import encode_row
from bayescontrol.seeding import Stream


def rows_of(what: str, timings: dict[str, Timing], reference: str) -> list[tuple[str, ...]]:
    """One row per contestant: its time and its ratio to the reference."""
    base = timings[reference].median
    return [
        (what if i == 0 else "", name, str(t), f"{t.median / base:.3g}")
        for i, (name, t) in enumerate(timings.items())
    ]


def _timings(seconds: Mapping[str, Sequence[float]]) -> dict[str, Timing]:
    return {name: Timing(float(np.median(s)), min(s), max(s)) for name, s in seconds.items()}


FLUSH = "one flush of the disk"
FOLDED = "from its events"


def durable_operation() -> dict[str, Timing]:
    """Seconds per durable decision or observation, and per flush of the disk."""
    with tempfile.TemporaryDirectory() as place:
        rounds = group_commit(Path(place), seconds=0.5, rounds=3)
    return _timings(
        {
            FLUSH: [1.0 / one.flushes for one in rounds],
            "one thread": [1.0 / one.one for one in rounds],
            f"{THREADS} threads": [1.0 / one.many for one in rounds],
        }
    )


def opened_log(visits: int = 10_000) -> dict[str, Timing]:
    """Seconds to open a log, from its events and from a snapshot."""
    rng = Stream(0)
    with open_agent("sqlite:///:memory:", "shop", MODEL, seed=1) as agent:
        for _ in range(visits):
            agent.observe(agent.act(), rng.integers(2))
        rows = [encode_row(event) for event in agent.log()]
    measured: dict[str, list[float]] = {FOLDED: [], "from a snapshot": []}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as place:
            url = f"sqlite:///{Path(place) / 'shop.db'}"
            store = open_store(url)
            store.log("shop").append(rows)
            store.close()
            for seconds in measured.values():  # closing writes a snapshot
                start = time.perf_counter()
                agent = open_agent(url, "shop")
                seconds.append(time.perf_counter() - start)
                agent.close()
    return _timings(measured)


def main() -> None:
    """Measure everything and print one table."""
    console = Console()
    table = Table(
        title=f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}",
        caption="Median of interleaved rounds (lowest-highest). Ratio: below 1 is faster.",
    )
    for column in ("operation", "implementation", "time", "ratio"):
        table.add_column(column, justify="right" if column == "ratio" else "left")
    sections = [
        *(
            (f"update and draw, M = {m:,}", lambda m=m: update_and_draw(m), "NumPy by hand")
            for m in (10, 1_000, 1_000_000)
        ),
        ("act and observe, 10 modes", act_and_observe, "NumPy by hand"),
        ("interact, a step over tables", fused_and_readable, "readable"),
        ("a decision, 10 levers", per_decision, REFERENCE),
        ("a step, 10 arms that change", changing_step, STATIC),
        ("three-cups, a step of the Gibbs agent", gibbs_step, NUMPY),
        ("three-cups, a step of R-learning", r_learning_step, GYMNASIUM),
        ("a linear plant, 4 states and 2 inputs, a step", linear_step, LQR_BY_HAND),
        ("a verdict, 100 modes x 100 situations", verdicts, "solving 100 grid-worlds"),
        ("import, start-up subtracted", import_times, "numpy"),
        ("lab, a job of ten seconds", runner_and_loop, "replicas within bayescontrol"),
        ("a durable decision or observation, SQLite", durable_operation, FLUSH),
        ("opening a log of 20,001 events", opened_log, FOLDED),
        (f"an HTTP request, {CONNECTIONS} connections", request_times, LOOSE),
    ]
    for what, measure, reference in sections:
        with console.status(f"measuring: {what}"):
            rows = rows_of(what, measure(), reference)
        for row in rows:
            table.add_row(*row)
        table.add_section()
    with console.status("measuring: interact with ten user-written modes"):
        step = user_written_modes()
    table.add_row(
        "interact, 10 user-written modes", "bayescontrol", str(step), f"{1 / step.median:,.0f}/s"
    )
    console.print(table)


if __name__ == "__main__":
    main()
