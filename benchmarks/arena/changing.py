"""Compare the agents of the experiment `changing` with partition tree weighting, run by run.

    python -m benchmarks.arena.changing --runs 200          regret in the four bandits
    python -m benchmarks.arena.changing --tune --runs 60    the forgetting factors of the experiment

The worlds and their random numbers are those of the experiment. The tree knows the number of steps.
The seed is 0, and 1000 to choose forgetting factors, which the experiment uses as constants.
"""

import argparse
import time

import numpy as np
from benchmarks.arena.agents.partition_tree import PartitionTree
from rich.console import Console
from rich.table import Table

from bayescontrol._arrays import FloatArray
from bayescontrol.lab import mean_and_error
from bayescontrol.report.tables import with_error
from bayescontrol_paper.changing import (
    AGENTS,
    BANDITS,
    FORGETTING,
    LINEAR,
    PLANT,
    PLAY_LINEAR,
    RULE,
    STATIC,
    Settings,
    play,
)

TREE = "partition tree weighting"
#: The factors that are compared.
GRID = (0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)


def regrets(settings: Settings, name: str) -> dict[str, FloatArray]:
    """Return the regret of each agent at the end, by run."""
    makers = {**AGENTS, TREE: lambda bandit, steps: PartitionTree(list(bandit.labels), steps)}
    found: dict[str, list[float]] = {label: [] for label in makers}
    for run in range(settings.runs):
        for label, played in play(settings, run, name, makers).items():
            found[label].append(float(played.regret[-1]))
    return {label: np.array(values) for label, values in found.items()}


def forgetting_scores(settings: Settings, name: str) -> dict[str, FloatArray]:
    """Return the regret with contexts or log₁₀ of the cost of the plant, for each factor."""
    agents = {f"forgetting {factor:g}": (FORGETTING, factor) for factor in GRID}
    agents |= {RULE: (RULE, 1.0), STATIC: (STATIC, 1.0)}
    scores = {
        label: np.array([PLAY_LINEAR[name](settings, run, *agent) for run in range(settings.runs)])
        for label, agent in agents.items()
    }
    return {label: np.log10(s) if name == PLANT else s for label, s in scores.items()}


def main() -> None:
    """Measure, and print a table for each world."""
    parser = argparse.ArgumentParser(description="Compare agents in worlds that change.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--tune", action="store_true", help="compare forgetting factors instead")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else 1000 if arguments.tune else 0
    settings, measure = Settings(seed=seed, runs=arguments.runs), regrets
    if arguments.tune:
        measure = forgetting_scores
    for name in LINEAR if arguments.tune else BANDITS:
        began = time.perf_counter()
        values = measure(settings, name)
        unit = "log₁₀ of cost / optimum" if name == PLANT else "regret"
        seconds = time.perf_counter() - began
        table = Table(
            title=f"{name}, {settings.steps(name):,} steps, {arguments.runs} runs, seed {seed}, "
            f"{seconds:.0f} s"
        )
        for column in ("agent", unit, "median"):
            table.add_column(column, justify="left" if column == "agent" else "right")
        for label, runs in values.items():
            mean, error = mean_and_error(runs)
            table.add_row(label, with_error(float(mean), float(error)), f"{np.median(runs):.3g}")
        Console().print(table)


if __name__ == "__main__":
    main()
