"""Bounds of the three POMDPs of the literature, and the processor time to plan for them.

`python -m benchmarks.pomdp` prints the values at the start with discount .95 and unobserved
rewards, and the processor seconds of each planner, each run once.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from rich.console import Console
from rich.table import Table

from bayescontrol.pomdp import (
    POMDP,
    AlphaVectors,
    fast_informed_bound,
    hallway,
    point_based,
    qmdp,
    shuttle,
    tiger,
)

__all__ = ["value_and_seconds"]

#: A problem, and the numbers of points of its lower bounds.
PROBLEMS: Final = (
    ("tiger", tiger(rewards_observed=False), (100,)),
    ("shuttle", shuttle(rewards_observed=False), (100,)),
    ("hallway(endless=False)", hallway(endless=False, rewards_observed=False), (100, 200, 400)),
    ("hallway()", hallway(rewards_observed=False), (200,)),
)


def value_and_seconds(plan: Callable[[POMDP], AlphaVectors], problem: POMDP) -> tuple[float, float]:
    """Return the value at the start, and the processor time to compute the vectors."""
    began = time.process_time()
    vectors = plan(problem)
    return vectors.value(problem.start), time.process_time() - began


def main() -> None:
    """Plan and print a table."""
    table = Table(title="Values at the start, and processor time of single runs")
    for column in ("problem", "planner", "value", "seconds"):
        table.add_column(column, justify="left" if column[0] == "p" else "right")
    console = Console()
    for name, problem, sizes in PROBLEMS:
        planners: dict[str, Callable[[POMDP], AlphaVectors]] = {
            "qmdp": qmdp, "fast_informed_bound": fast_informed_bound,
        }  # fmt: skip
        for points in sizes:
            planners[f"point_based, {points} points"] = partial(point_based, points=points)
        for planner, plan in planners.items():
            with console.status(f"planning: {name}, {planner}"):
                value, seconds = value_and_seconds(plan, problem)
            table.add_row(name, planner, f"{value:.4f}", f"{seconds:.2f}")
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
