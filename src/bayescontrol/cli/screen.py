"""Print results to standard output and everything else to standard error."""

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console


class UsageError(click.ClickException):
    """An error that the user can correct."""

    exit_code = 2


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`: Rich would exit with code 1, which means that a claim fails."""
        raise BrokenPipeError(errno.EPIPE, "the reader of standard output has gone")


def open_console() -> Console:
    """Return a console on standard output; a file or a pipe is 120 columns wide."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Screen(width=None if has_width else 120, highlight=False)


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
