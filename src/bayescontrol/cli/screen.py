"""What is printed where: results on standard output, everything else on standard error."""

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bayescontrol.lab.runner import Result
from bayescontrol.report import tables


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which says that a claim of ours fails."""
        raise BrokenPipeError(errno.EPIPE, "the reader of standard output has gone")


def screen() -> Console:
    """Standard output; in a file or a pipe wide enough for a claim on one or two lines.

    >>> screen().width > 0
    True
    """
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Screen(width=None if known else 120, highlight=False)


def print_tables(console: Console, result: Result) -> None:
    """The tables of a result.

    >>> from bayescontrol.lab import Score
    >>> print_tables(Console(), Result(None, None, {}, Score(())))
    """
    for content in result.score.tables:
        console.print(tables.table(content))


def print_result(console: Console, result: Result) -> None:
    """The tables of a result, then its claims.

    >>> from bayescontrol.lab import Score
    >>> print_result(Console(quiet=True), Result(None, None, {}, Score(())))
    """
    print_tables(console, result)
    console.print(tables.claims_table([result]))


def print_json(content: Any) -> None:
    """One JSON object, and nothing else.

    >>> print_json({"runs": 3})
    {
      "runs": 3
    }
    """
    click.echo(json.dumps(content, indent=2, allow_nan=False))


def say(words: str) -> None:
    """A word to the person, on standard error.

    >>> say("300 of 300 replicas found, nothing to run")
    """
    click.echo(words, err=True)


def say_where(index: Path) -> None:
    """Where the report is.

    >>> say_where(Path("/report/index.html"))
    Report: /report/index.html
    """
    click.echo(f"Report: {index.resolve()}")


@contextmanager
def standard_output_kept() -> Iterator[None]:
    """What an experiment prints goes to standard error: results alone are on the other.

    >>> with standard_output_kept():
    ...     print("throwing")
    """
    with redirect_stdout(sys.stderr):
        yield
