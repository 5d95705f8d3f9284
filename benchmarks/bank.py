"""Time and memory of a bank of plants: 20 linear modes of 4 states, 2 inputs and 2 outputs.

`python -m benchmarks.bank` prints the processor time of act plus observe: for the compiled bank,
for the same bank with a hazard, for a bank of 4 modes with an alarm, and for the modes in a list.
They take turns of 100 steps. `--long` runs a million steps of the bank and of the guarded bank, and
prints the time of a step and the memory of the process at ten times; neither may grow.
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
from bayescontrol.alarms import Guarded, LinearPredictor, RestartedAlarm
from bayescontrol.bank import Bank, BankAgent, PlantMode
from bayescontrol.lqr import riccati

__all__ = ["make_bank", "step_times"]

MODES, STATES = 20, 4


def make_bank(modes: int = MODES, states: int = STATES, **options: Any) -> Bank:
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
    return Bank(made, setpoint=[1.0, 0.0], **options)


def guarded(bank: Bank) -> Guarded:
    """Return an agent with an alarm for long runs."""
    return Guarded(bank.agent(), RestartedAlarm(LinearPredictor(), mean_time=1e12))


def agents(bank: Bank) -> dict[str, Any]:
    """Return agents over the compiled bank, with a hazard or an alarm, and over a list of modes."""
    small, changing = make_bank(4), make_bank(hazard=0.01, same_states=True)
    return {
        "bank, drawn mode": bank.agent(),
        "bank, most probable mode": bank.agent(choose="most probable"),
        "bank, hazard": changing.agent(),
        "bank of 4 modes": small.agent(),
        "bank of 4 modes, guarded": guarded(small),
        "list of modes": BankAgent(bank, FiniteBelief(bank.modes)),
    }


def step_times(steps: int = 20_000, turn: int = 100) -> Mapping[str, FloatArray]:
    """Return microseconds of processor time of act plus observe, at every step.

    The agents take turns. The list of modes, which is slow, has a twentieth of the steps.
    """
    bank = make_bank()
    clock, rng, contestants = time.thread_time_ns, Stream(0), agents(bank)
    worlds = {name: bank.environment("3") for name in contestants}
    taken: dict[str, list[int]] = {name: [] for name in contestants}
    base = min(-(clock() - clock()) for _ in range(1000))  # the time of a call of the clock
    gc.collect()
    gc.disable()
    for _ in range(steps // turn):
        for name, agent in contestants.items():
            for _ in range(turn // 20 if name == "list of modes" else turn):
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


def run_long(bank: Bank, agent: Any, steps: int = 1_000_000) -> list[tuple[float, float]]:
    """Run a million steps; return the time of a step in microseconds and the memory, ten times."""
    world, rng, found = bank.environment("3"), Stream(0), []
    for _ in range(10):
        start = time.thread_time()
        for _ in range(steps // 10):
            u = agent.act(rng)
            agent.observe(u, world.respond(u, rng))
        found.append(((time.thread_time() - start) * 1e7 / steps, resident()))
    return found


if __name__ == "__main__":
    table = Table(title=f"act plus observe, {MODES} modes of {STATES} states, microseconds")
    for column in ("agent", "median", "90 %", "99 %"):
        table.add_column(column)
    for name, us in step_times().items():
        table.add_row(name, *(f"{v:.1f}" for v in np.percentile(us, [50, 90, 99])))
    Console().print(table)
    if "--long" in sys.argv:
        long, small = make_bank(), make_bank(4)
        for name, bank, agent in (("bank", long, long.agent()), ("guarded", small, guarded(small))):
            Console().print(f"{name}, each 100,000 steps: microseconds with the world, and MB")
            Console().print([(round(us, 1), round(mb, 1)) for us, mb in run_long(bank, agent)])
