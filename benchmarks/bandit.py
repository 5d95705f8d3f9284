"""Time per decision on the paper's benchmark, compared with other libraries in one run.

    10 Bernoulli levers with uniform biases, Thompson sampling with uniform priors, 1,000 steps

Each contestant runs in a separate process with one thread, all of them on one core. Contestants
take turns, so that noise affects all of them equally. The regret checks that they solve the same
problem: Thompson sampling loses 28.2 per run on average. Run with `python -m benchmarks.bandit`.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers.environments import PEERS, ROOT, NotInstalled, interpreter
from benchmarks.peers.worker import STEPS
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
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


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

    def __init__(self, python: str | Path, *module: str) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        self.process = subprocess.Popen(
            [python, "-m", *module], cwd=ROOT, env=os.environ | ONE_THREAD, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        if hasattr(os, "sched_setaffinity"):
            core = max(os.sched_getaffinity(0))
            os.sched_setaffinity(self.process.pid, {core})
        self._line()
        self.played, self.runs = 0, 1
        self.seconds: list[float] = []
        self.regrets: list[float] = []
        first = self._ask()["seconds"]
        self.runs = max(1, min(2_000, round(SECONDS / first)))

    def play(self) -> None:
        """Send one request and record the answer."""
        answer = self._ask()
        self.seconds.append(answer["seconds"] / (self.runs * STEPS))
        self.regrets += answer["regrets"]

    def _ask(self) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"runs": self.runs, "first": self.played}) + "\n")
        self.process.stdin.flush()
        self.played += self.runs
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines() or ["it printed no error"]
            raise NotInstalled(f"its process ended: {lines[-1][:200]}")
        return line

    def close(self) -> None:
        """Close the pipe, which ends the process."""
        self.process.communicate()
        self.errors.close()


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
                contestants[name] = Contestant(python, f"benchmarks.peers.{module}")
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
