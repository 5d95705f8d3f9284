"""Time the runner with its store, compared with calling the replica in a plain loop.

`make bench` runs a job of ten seconds; `python -m benchmarks.lab --seconds 30` one of thirty.
Fixed costs (opening, joining, the manifest) weigh more in shorter jobs.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks.timing import Timing

from bayescontrol import interact
from bayescontrol.finite.tabular import random_modes
from bayescontrol.lab import Columns, Experiment, Score, run_replicas
from bayescontrol.lab.store import ResultStore, Study
from bayescontrol.plot.chart import Chart

__all__ = ["runner_and_loop"]

STEPS = 50_000
CURVE = 1_000


@dataclass(frozen=True)
class Settings:
    """The number of replicas."""

    seed: int = 0
    runs: int = 100


MODES = random_modes(10, situations=3, actions=3, seed=1)


def replica(settings: Settings, i: int) -> Columns:
    """Run 50,000 steps of the compiled loop, about ten milliseconds; return a curve."""
    record = interact(MODES.agent(), MODES.environment(0), STEPS, seed=settings.seed, run=i)
    share = np.cumsum(record.observations) / np.arange(1, STEPS + 1)
    return {"share": share[:: STEPS // CURVE], "last": np.array(record.actions[-1])}


def score(settings: Settings, columns: Columns) -> Score:
    """No claims."""
    return Score(())


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """No figures."""
    return {}


experiment = Experiment(
    "overhead", "what the runner costs", Settings, Settings(), Settings(), replica, score, draw
)


def loop(settings: Settings) -> Columns:
    """Run all replicas in a hand-written loop."""
    columns = [replica(settings, i) for i in range(settings.runs)]
    return {name: np.stack([one[name] for one in columns]) for name in columns[0]}


def stored(experiment: Experiment[Settings], settings: Settings, folder: Path) -> Columns:
    """Run on one core; write each group to disk when it is done, and the manifest at the end."""
    with ResultStore(folder, Study.of(experiment, settings)) as store:
        return run_replicas(experiment, settings, store=store)


def runner_and_loop(seconds: float = 10.0) -> dict[str, Timing]:
    """Time a job of about `seconds`: in a plain loop, by the runner, and its replicas only.

    The last two come from the same run, so that noise affects both; their ratio is the overhead.
    """
    replica(Settings(), 0)
    start = time.perf_counter()
    loop(Settings(runs=50))
    settings = Settings(runs=round(seconds / (time.perf_counter() - start) * 50))
    replica_seconds = 0.0

    def timed(settings: Settings, i: int) -> Columns:
        nonlocal replica_seconds
        start = time.perf_counter()
        columns = replica(settings, i)
        replica_seconds += time.perf_counter() - start
        return columns

    start = time.perf_counter()
    by_hand = loop(settings)
    loop_seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        ours = stored(replace(experiment, run=timed), settings, Path(place))
        runner_seconds = time.perf_counter() - start
    assert all(ours[name].tobytes() == by_hand[name].tobytes() for name in by_hand)
    measured = {
        "replicas within bayescontrol": replica_seconds,
        "bayescontrol, serial, store on": runner_seconds,
        "a plain loop, another time": loop_seconds,
    }
    return {name: Timing(t, t, t) for name, t in measured.items()}


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10.0)
    timings = runner_and_loop(options.parse_args().seconds)
    base = next(iter(timings.values())).median
    for name, timing in timings.items():
        print(f"{name:<32} {timing.median:6.2f} s   ratio {timing.median / base:.3f}")
