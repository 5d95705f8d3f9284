"""Time per decision on the paper's benchmark, compared with other libraries in one run.

    10 Bernoulli levers with uniform biases, Thompson sampling with uniform priors, 1,000 steps

Each contestant runs in a separate process with one thread, all of them on one core. Contestants
take turns, so that noise affects all of them equally. The regret checks that they solve the same
problem: Thompson sampling loses 28.2 per run on average. Run with `python -m benchmarks.bandit`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.bandit_players import STEPS, WORLD
from benchmarks.peers.environments import PEERS, NotInstalled, interpreter
from benchmarks.peers.process import Process
from benchmarks.timing import Timing
from rich.console import Console
from rich.table import Table

__all__ = ["REFERENCE", "Bench", "measure", "per_decision"]

REFERENCE = "Numba, NumPy's numbers"
OURS = {
    REFERENCE: "numba-numpy",
    "Numba, our numbers": "numba-own",
    "NumPy in Python": "numpy",
    "bayescontrol, interact": "fused",
    "bayescontrol, readable": "readable",
}
ROUNDS = 9
#: A request has as many runs as take about this long, and at least one.
SECONDS = 0.25


@dataclass(frozen=True)
class Bench:
    """Seconds per decision, their ratio to the reference in the same round, and the regret of every
    run, by contestant; and the contestants that are missing, with the reason.
    """

    timings: dict[str, Timing]
    ratios: dict[str, Timing]
    regrets: dict[str, list[float]]
    missing: dict[str, str]


class Contestant:
    """A process that plays runs on request."""

    def __init__(self, python: str | Path, module: str, player: str) -> None:
        self.process = Process(python, module, one_core=True)
        self.player, self.played, self.runs = player, 0, 1
        self.seconds: list[float] = []
        self.regrets: list[float] = []
        self._ask()  # a warm-up
        first = self._ask()["seconds"]
        self.runs = max(1, min(2_000, round(SECONDS / first)))

    def play(self) -> None:
        """Send one request and record the answer."""
        answer = self._ask()
        self.seconds.append(answer["seconds"] / (self.runs * STEPS))
        self.regrets += answer["scores"]

    def _ask(self) -> dict[str, Any]:
        request = {"player": self.player, "world": WORLD, "seed": 0, "steps": STEPS}
        answer = self.process.ask(request | {"first": self.played, "runs": self.runs})
        self.played += self.runs
        return answer

    def close(self) -> None:
        """Close the pipe, which ends the process."""
        self.process.close()


def measure(rounds: int = ROUNDS) -> Bench:
    """Time all available contestants `rounds` times each, taking turns."""
    contestants: dict[str, Contestant] = {}
    missing: dict[str, str] = {}
    try:
        for name, player in OURS.items():
            contestants[name] = Contestant(sys.executable, "benchmarks.bandit_players", player)
        for module, name in PEERS.items():
            try:
                python = interpreter(module)
                contestants[name] = Contestant(python, f"benchmarks.peers.{module}", "Thompson")
            except NotInstalled as reason:
                missing[name] = str(reason)
        for _ in range(rounds):
            for contestant in contestants.values():
                contestant.play()
    finally:
        for contestant in contestants.values():
            contestant.close()
    base = contestants[REFERENCE].seconds
    return Bench(
        {name: _timing(c.seconds) for name, c in contestants.items()},
        {
            name: _timing([s / b for s, b in zip(c.seconds, base, strict=True)])
            for name, c in contestants.items()
        },
        {name: c.regrets for name, c in contestants.items()},
        missing,
    )


def _timing(rounds: list[float]) -> Timing:
    return Timing(float(np.median(rounds)), min(rounds), max(rounds))


def per_decision() -> dict[str, Timing]:
    """Return the timings for `make bench`; print a line for each missing peer."""
    bench = measure()
    for name, reason in bench.missing.items():
        print(f"{name} is not available: {reason}", file=sys.stderr)
    return bench.timings


def main() -> None:
    """Measure and print a table."""
    console = Console()
    with console.status("a decision, 10 levers (the first time: installing the peers)"):
        bench = measure()
    table = Table(
        caption=f"Median of {ROUNDS} rounds (lowest-highest), one core. The ratio is taken within "
        "each round. Regret of a run: mean ± two standard errors."
    )
    for column in ("implementation", "a decision", "ratio", "regret"):
        table.add_column(column, justify="left" if column == "implementation" else "right")
    for name, timing in sorted(bench.timings.items(), key=lambda item: item[1].median):
        ratio, lost = bench.ratios[name], np.array(bench.regrets[name])
        table.add_row(
            name,
            str(timing),
            f"{ratio.median:.3g} ({ratio.low:.3g}-{ratio.high:.3g})",
            f"{lost.mean():.1f} ± {2 * lost.std(ddof=1) / np.sqrt(lost.size):.1f}",
        )
    console.print(table)
    for name, reason in bench.missing.items():
        console.print(f"{name} is not available: {reason}")


if __name__ == "__main__":
    main()
