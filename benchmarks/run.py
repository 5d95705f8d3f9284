"""`make bench`: speed as ratios within one run. Machines are noisy; ratios are less so."""

import platform

import numpy as np
from benchmarks.agents import act_and_observe, fused_and_readable, user_written_modes
from benchmarks.bandit import REFERENCE, per_decision
from benchmarks.convergence import verdicts
from benchmarks.finite_belief import update_and_draw
from benchmarks.imports import import_times
from benchmarks.lab import runner_and_loop
from benchmarks.lqr import BY_HAND as LQR_BY_HAND
from benchmarks.lqr import step as linear_step
from benchmarks.mdp import GYMNASIUM, NUMPY, gibbs_step, r_learning_step
from benchmarks.timing import Timing
from rich.console import Console
from rich.table import Table


def rows_of(what: str, timings: dict[str, Timing], reference: str) -> list[tuple[str, ...]]:
    """One row for each contestant, its time and its ratio to the reference."""
    base = timings[reference].median
    return [
        (what if i == 0 else "", name, str(t), f"{t.median / base:.3g}")
        for i, (name, t) in enumerate(timings.items())
    ]


def main() -> None:
    """Measure everything and print one table."""
    console = Console()
    table = Table(
        title=f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}",
        caption="Median over rounds that take turns (lowest-highest). Ratio: below 1 is faster.",
    )
    for column in ("what", "who", "time", "ratio"):
        table.add_column(column, justify="right" if column == "ratio" else "left")
    sections = [
        *(
            (f"update and draw, M = {m:,}", lambda m=m: update_and_draw(m), "NumPy by hand")
            for m in (10, 1_000, 1_000_000)
        ),
        ("act and observe, 10 modes", act_and_observe, "NumPy by hand"),
        ("interact, a step over tables", fused_and_readable, "readable"),
        ("a decision, 10 levers", per_decision, REFERENCE),
        ("three-cups, a step of the Gibbs agent", gibbs_step, NUMPY),
        ("three-cups, a step of R-learning", r_learning_step, GYMNASIUM),
        ("a linear plant, 4 states and 2 inputs, a step", linear_step, LQR_BY_HAND),
        ("a verdict, 100 modes x 100 situations", verdicts, "solving 100 grid-worlds"),
        ("import, start-up subtracted", import_times, "numpy"),
        ("lab, a job of ten seconds", runner_and_loop, "replicas within bayescontrol"),
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
