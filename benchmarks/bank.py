"""Time and memory of a bank of plants: 20 linear modes of 4 states, 2 inputs and 2 outputs.

`python -m benchmarks.bank` prints the processor time of act plus observe, for the compiled bank and
for the same modes in a list, which take turns in one run. The requirement for the bank is a median
of 20 us and a 99th percentile of 60 us. `--long` runs a million steps and prints the memory of the
process at ten times, which must not grow.
"""

import gc
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bayescontrol import FiniteBelief, Stream
from bayescontrol._arrays import FloatArray
from bayescontrol.bank import Bank, BankAgent, PlantMode
from bayescontrol.lqr import riccati

__all__ = ["make_bank", "step_times"]

MODES, STATES = 20, 4


def make_bank(modes: int = MODES, states: int = STATES) -> Bank:
    """Return a bank of random stable plants with their regulators and a setpoint."""
    rng, made = np.random.default_rng(0), []
    for m in range(modes):
        A, B = rng.normal(size=(states, states)), rng.normal(size=(states, 2))
        A *= 0.9 / abs(np.linalg.eigvals(A)).max()
        _, K = riccati(A, B, np.eye(states), np.eye(2))
        C = rng.normal(size=(2, states))
        made.append(
            PlantMode(
                (A, B, C), K, process_noise=0.1, sensor_noise=0.1, limits=(-5, 5), name=f"{m}"
            )
        )
    return Bank(made, setpoint=[1.0, 0.0])


def agents(bank: Bank) -> dict[str, BankAgent]:
    """Return agents over the compiled bank and over a list of the same modes."""
    return {
        "bank, drawn mode": bank.agent(),
        "bank, most probable mode": bank.agent(choose="most probable"),
        "list of modes": BankAgent(bank, FiniteBelief(bank.modes)),
    }


def step_times(steps: int = 20_000, every: int = 20) -> Mapping[str, FloatArray]:
    """Return microseconds of processor time of act plus observe, at every step.

    The list of modes, which is slow, takes part in one of `every` steps.
    """
    bank = make_bank()
    clock, rng, contestants = time.thread_time_ns, Stream(0), agents(bank)
    worlds = {name: bank.environment("3") for name in contestants}
    taken: dict[str, list[int]] = {name: [] for name in contestants}
    base = min(-(clock() - clock()) for _ in range(1000))  # the time of a call of the clock
    gc.collect()
    gc.disable()
    for k in range(steps):
        for name, agent in contestants.items():
            if name == "list of modes" and k % every:
                continue
            start = clock()
            u = agent.act(rng)
            acted = clock()
            y = worlds[name].respond(u, rng)
            resumed = clock()
            agent.observe(u, y)
            taken[name].append(clock() - resumed + acted - start - 2 * base)
    gc.enable()
    return {name: np.array(ns)[len(ns) // 20 :] / 1e3 for name, ns in taken.items()}


def resident() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def run_long(steps: int = 1_000_000) -> list[float]:
    """Run a million steps, with lost samples; return the memory at ten times."""
    bank = make_bank()
    agent: Any = bank.agent()
    world, rng, memory = bank.environment("3"), Stream(0), []
    for k in range(steps):
        u = agent.act(rng)
        agent.observe(u, world.respond(u, rng))
        if (k + 1) % (steps // 10) == 0:
            memory.append(resident())
    return memory


if __name__ == "__main__":
    table = Table(title=f"act plus observe, {MODES} modes of {STATES} states, microseconds")
    for column in ("agent", "median", "90 %", "99 %"):
        table.add_column(column)
    for name, us in step_times().items():
        table.add_row(name, *(f"{v:.1f}" for v in np.percentile(us, [50, 90, 99])))
    Console().print(table)
    if "--long" in sys.argv:
        Console().print("MB after each 100,000 steps:", [round(m, 1) for m in run_long()])
