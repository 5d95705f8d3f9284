"""Time to compute certified tables of Gittins indices, by discount and by number of pulls.

`python -m benchmarks.gittins` prints a table; the paper took several hours for .999 and 1,300
pulls.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bayescontrol.baselines import GittinsTable

__all__ = ["Row", "rows"]

DISCOUNTS = (0.9, 0.99, 0.999, 0.9999)
PULLS = (100, 300, 1000, 1300, 3000, 5000)


@dataclass(frozen=True)
class Row:
    """Timing of one table, computed without a cache."""

    discount: float
    pulls: int
    states: int
    seconds: float
    core: float
    error: float


def measure(discount: float, pulls: int, tolerance: float = 1e-4, rounds: int = 1) -> Row:
    """Return wall and CPU seconds of the fastest of `rounds` rounds, without the disk cache."""
    seconds = core = float("inf")
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        table = GittinsTable(discount, pulls, tolerance=tolerance, cache=False)
        seconds = min(seconds, time.perf_counter() - start)
        core = min(core, time.process_time() - used)
    return Row(discount, pulls, table.states, seconds, core, table.error)


def rows() -> Iterator[Row]:
    """Vary the discount at 1,000 pulls, then the pulls at .999; kernels are compiled first."""
    measure(0.9, 10)
    for discount in DISCOUNTS:
        yield measure(discount, 1000, rounds=3 if discount < 0.9995 else 1)
    for pulls in PULLS:
        yield measure(0.999, pulls, rounds=3 if pulls < 2000 else 1)


def main() -> None:
    """Measure and print one table."""
    console = Console()
    table = Table(
        title="Gittins indices of Bernoulli arms, uniform prior, infinite horizon",
        caption="Certified to 1e-4. The paper: several hours for .999 and 1,300 pulls.",
    )
    for column in (
        "discount",
        "pulls",
        "indices",
        "seconds",
        "CPU seconds",
        "ns per index",
        "proven error",
    ):
        table.add_column(column, justify="right")
    with console.status("computing tables"):
        for row in rows():
            table.add_row(
                f"{row.discount:g}",
                f"{row.pulls:,}",
                f"{row.states:,}",
                f"{row.seconds:.3g}",
                f"{row.core:.3g}",
                f"{1e9 * row.core / row.states:,.0f}",
                f"{row.error:.2e}",
            )
    console.print(table)


if __name__ == "__main__":
    main()
