"""Print results to standard output and everything else to standard error; tables of claims."""

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.lab.experiment import ClaimVerdict, Table
from bayescontrol.lab.runner import Result
from bayescontrol.report import tables

#: The style of each verdict.
_STYLES: Final[Mapping[ClaimVerdict, str]] = {
    "holds": "green",
    "refuted": "yellow",
    "not comparable": "dim",
    "undecided": "cyan",
    "fails": "bold red",
}


class UsageError(click.ClickException):
    """An error that the user can correct."""

    exit_code = 2


class _Screen(Console):
    """A console on standard output."""

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`: Rich would exit with code 1, which means that a claim fails."""
        raise BrokenPipeError(errno.EPIPE, "the reader of standard output has gone")


def open_console() -> Console:
    """Return a console on standard output; a file or a pipe is 120 columns wide."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Screen(width=None if has_width else 120, highlight=False)


def print_title(name: str, about: str) -> Console:
    """Print a name and what it is about; return the console."""
    console = open_console()
    console.print(Text.assemble((name, "bold"), f": {about}"))
    return console


def json_option(remark: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option --json to a command; its help includes the remark."""
    text = f"Print one JSON object{remark}; NaN and infinities as strings."
    return click.option("--json", "as_json", is_flag=True, help=text)


def print_json(content: Any) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(content, indent=2, allow_nan=False))


def print_message(message: str) -> None:
    """Print a message to standard error."""
    click.echo(message, err=True)


def print_failure(error: Exception) -> None:
    """Print the traceback of the cause of an error, and its message."""
    if error.__cause__ is not None:
        print_message("".join(traceback.format_exception(error.__cause__)))
    print_message(f"Error: {error}")


def print_report_path(index: Path) -> None:
    """Print the path of the report."""
    click.echo(f"Report: {index.resolve()}")


def claims_table(result: Result) -> Group:
    """Return the claims of one result: those of the paper in full, our checks in a line each."""
    grids = []
    for source, (heading, expected) in tables.HEADINGS.items():
        claims = [claim for claim in result.score.claims if claim.source == source]
        grid = _grid(heading)
        grid.add_column("verdict", no_wrap=True)
        grid.add_column("claim", overflow="fold", ratio=1)
        for name in (expected, "exact", "simulated"):
            grid.add_column(name, justify="right", overflow="fold")
        for claim in claims:
            verdict = Text(tables.verdict_of(claim), _STYLES[claim.verdict])
            about = f" ({claim.place})\n{claim.claim}" if source == "paper" else ""
            if claim.reason and not claim.holds:
                about += f"\n{claim.explanation}"
            label = Text.assemble((claim.name, "bold"), about)
            grid.add_row(verdict, label, *map(Text, tables.numbers_of(claim)))
        grids += [grid] if claims else []
    return Group(*grids)


def overview(results: Sequence[Result]) -> Group:
    """Return a line for each result, and a line for each claim that is not confirmed."""
    grid = _grid("Claims")
    claims = [(result.experiment.name, c) for result in results for c in result.score.claims]
    for name in ("experiment", "of the paper", "our own checks"):
        grid.add_column(name, overflow="fold")
    for result in results:
        counts = tables.summary(result.score.claims)
        grid.add_row(Text(result.experiment.name), *counts.values())
    grid.add_section()
    grid.add_row("all", *tables.summary(claim for _, claim in claims).values(), style="bold")
    lines = [
        Text.assemble(
            (f"  {tables.verdict_of(claim)}  ", _STYLES[claim.verdict]),
            (f"{experiment}, {claim.name}: ", "bold"),
            claim.explanation or claim.claim,
            no_wrap=True,
            overflow="ellipsis",
        )
        for experiment, claim in claims
        if not claim.holds
    ]
    left_out = tables.left_out(results)
    return Group(grid, *lines, *([Text(left_out)] if left_out else []))


def table(content: Table) -> Group:
    """Return a table of an experiment, with numbers aligned to the right."""
    grid, columns = _grid(content.title), tables.columns_of(content)
    for name, column in zip(content.header, columns, strict=True):
        side: Any = "right" if column.is_numeric else "left"
        grid.add_column(Text(name), justify=side, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*map(Text, row))
    return Group(grid, *([Text(f"  {content.note}", style="dim")] if content.note else []))


def _grid(title: str) -> Grid:
    """Return an empty table with this title."""
    return Grid(title=Text(title, style="bold"), title_justify="left", box=SIMPLE_HEAD)
