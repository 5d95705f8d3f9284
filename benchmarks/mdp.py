"""Speed on the grid-world: the Gibbs agent, R-learning, and the paper's table.

    a step     choose, respond, learn; the Gibbs agent first does one full sweep
    table      4 agents x 10 runs x 500,000 steps on 2 cores, compiled beforehand

`python -m benchmarks.mdp` prints both; `benchmarks.growth` shows how a step grows with the states.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from benchmarks.mdp_by_hand import (
    DenseSweep,
    GymnasiumStyle,
    PlainSweep,
    ToyText,
    play_gibbs,
    play_r_learning,
)
from benchmarks.timing import Timing, take_turns
from rich.console import Console
from rich.table import Table

from bayescontrol import Stream, interact
from bayescontrol.baselines import RLearning
from bayescontrol.mdp import GibbsMDP, GibbsPrior, Maze
from bayescontrol_paper.maze import AGENTS, RULES, Settings, world

__all__ = ["GYMNASIUM", "NUMPY", "full_table", "gibbs_step", "r_learning_step"]

NUMPY = "NumPy, tuned for few states"
GYMNASIUM = "Gymnasium-style, tuned"
RUNS, STEPS, CORES = 10, 500_000, 2
#: The paper's four agents: its own with the default prior, and R-learning with three settings.
FOUR = [name for name in AGENTS if name != RULES[0]]


def gibbs_step() -> dict[str, Timing]:
    """Time a step with one full sweep on `three-cups`, after all states have been visited."""
    mdp = Maze("three-cups").mdp()
    worlds = [GymnasiumStyle(mdp) for _ in range(2)]
    plain, dense = PlainSweep(worlds[0].shape), DenseSweep(worlds[1].shape)
    agent, environment = GibbsMDP(4, 0, GibbsPrior(precision=1.0)).agent(), mdp.environment(0)
    streams = Stream(1), Stream(2)
    return _per_step(
        {
            NUMPY: (lambda n: play_gibbs(dense, worlds[1], n), 3_000),
            "NumPy, equation by equation": (lambda n: play_gibbs(plain, worlds[0], n), 1_500),
            "bayescontrol": (lambda n: interact(agent, environment, n, streams=streams), 20_000),
        },
        before=10_000,
    )


def r_learning_step() -> dict[str, Timing]:
    """Time a step on `three-cups` with C = 30; every call starts a new run."""
    mdp = Maze("three-cups").mdp()
    tuned, toy_text = GymnasiumStyle(mdp), ToyText(mdp)

    def ours(n: int) -> object:
        return interact(RLearning.on(mdp, C=30.0, start=0), mdp.environment(0), n, seed=0)

    return _per_step(
        {
            GYMNASIUM: (lambda n: play_r_learning(tuned, n), 8_000),
            "Gymnasium-style, as toy text": (lambda n: play_r_learning(toy_text, n), 5_000),
            "bayescontrol": (ours, STEPS),
        },
        before=1_000,
    )


def _per_step(
    players: dict[str, tuple[Callable[[int], object], int]], before: int
) -> dict[str, Timing]:
    """Time each player for its number of steps, taking turns, after `before` untimed steps."""
    for play, _ in players.values():
        play(before)
    calls = {name: lambda play=play, n=n: play(n) for name, (play, n) in players.items()}
    timings = take_turns(calls, calls=1)
    return {name: timing.per(players[name][1]) for name, timing in timings.items()}


@dataclass(frozen=True)
class FullTable:
    """Total wall seconds, CPU seconds by agent, and the late reward of each run."""

    seconds: float
    on_core: dict[str, float]
    late: dict[str, list[float]]


def full_table(steps: int = STEPS) -> FullTable:
    """Do the runs of the paper's table as the experiment `maze` does, on two cores."""
    jobs = [(name, run, steps) for name in FOUR for run in range(RUNS)]
    with ProcessPoolExecutor(CORES, get_context("spawn"), initializer=_warm) as pool:
        list(pool.map(_linger, range(CORES)))
        start = time.perf_counter()
        answers = list(pool.map(_play, jobs))
        seconds = time.perf_counter() - start
    table = FullTable(seconds, dict.fromkeys(FOUR, 0.0), {name: [] for name in FOUR})
    for (name, _, _), (taken, late) in zip(jobs, answers, strict=True):
        table.on_core[name] += taken
        table.late[name].append(late)
    return table


def _warm() -> None:
    for name in FOUR:
        _play((name, 0, 1_000))


def _linger(_: int) -> None:
    """Wait long enough that each process gets one of these jobs, so that both have started."""
    time.sleep(0.5)


def _play(job: tuple[str, int, int]) -> tuple[float, float]:
    """Return the seconds of one run, and the mean reward of its last tenth (at most 10,000)."""
    name, run, steps = job
    started = time.perf_counter()
    settings, mdp = Settings(), world("three-cups").mdp
    start = int(Stream.named(settings.seed, run, "start").integers(len(mdp.states)))
    streams = (
        Stream.named(settings.seed, run, name),
        Stream.named(settings.seed, run, "environment"),
    )
    agent = AGENTS[name](settings, mdp, start)
    record = interact(agent, mdp.environment(start), steps, streams=streams)
    last = min(settings.window, steps // 10)
    late = float(record.observations["reward"][-last:].mean())
    return time.perf_counter() - started, late


def _print_steps(console: Console) -> None:
    table = Table(
        title=f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}",
        caption="Median of interleaved rounds (lowest-highest). Ratio: our time to theirs.",
    )
    for column in ("a step", "implementation", "time", "ratio"):
        table.add_column(column)
    measures: dict[str, Callable[[], dict[str, Timing]]] = {
        "Gibbs agent": gibbs_step,
        "R-learning": r_learning_step,
    }
    for what, measure in measures.items():
        with console.status(f"measuring: {what}"):
            timings = measure()
        ours = timings.pop("bayescontrol")
        for i, (name, timing) in enumerate(timings.items()):
            ratio = f"1/{timing.median / ours.median:.1f}"
            table.add_row("" if i else what, name, str(timing), ratio)
        table.add_row("", "bayescontrol", str(ours), "")
        table.add_section()
    console.print(table)


def _print_full_table(console: Console, steps: int) -> None:
    with console.status("measuring: the paper's table"):
        found = full_table(steps)
    table = Table(
        title=f"4 agents x {RUNS} runs x {steps:,} steps: {found.seconds:.1f} s",
        caption=f"{CORES} processes, warm, {os.cpu_count()} cores. Reward: mean ± standard "
        "deviation over runs, at their end.",
    )
    for column in ("agent", "CPU seconds", "reward"):
        table.add_column(column, justify="left" if column == "agent" else "right")
    for name, late in found.late.items():
        reward = f"{np.mean(late):.4f} ± {np.std(late, ddof=1):.4f}"
        table.add_row(name, f"{found.on_core[name]:.2f}", reward)
    console.print(table)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--steps", type=int, default=STEPS, help="steps of each run of the table")
    arguments = options.parse_args()
    console = Console()
    _print_steps(console)
    _print_full_table(console, arguments.steps)


if __name__ == "__main__":
    main()
