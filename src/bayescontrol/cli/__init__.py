"""The command line: list, run, merge, report, reproduce, check, serve, demo.

    exit code 0    every claim of ours holds (claims of the paper may be refuted)
              1    a claim of ours fails
              2    a wrong call: an unknown experiment, a bad setting, a folder that is unwritable,
                   in use, or holds other results, a cluster that does not answer
              3    an experiment broke: a replica raised, or a worker died
              4    standard output cannot be written: a closed pipe, a full disk
            130    stopped by Ctrl-C
              0, 10, 11, 12    of `check`: covered by the theorem, settles all the same, undecided,
                               may never settle

Results go to standard output; progress, warnings and errors to standard error.
"""

import errno
import os
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import click
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.cli import check, demo, folders, reproduce, run, serve
from bayescontrol.cli.asked import ModesBroke
from bayescontrol.cli.into import KEPT
from bayescontrol.cli.screen import say, screen
from bayescontrol.errors import InvalidPrior, InvalidTable, MissingCapability, UnknownMode
from bayescontrol.files import Busy, Unwritable
from bayescontrol.lab.executors import ClusterUnavailable
from bayescontrol.lab.experiment import Experiment, ExperimentFailed
from bayescontrol.lab.manifest import NoResults
from bayescontrol.lab.registry import CannotImport, UnknownExperiment, find, names
from bayescontrol.lab.sealed_npz import Damaged
from bayescontrol.lab.settings import InvalidSettings, describe
from bayescontrol.lab.shards import CannotMerge
from bayescontrol.lab.store import OtherResults
from bayescontrol.problems.classes import InvalidSetting, UnknownClass
from bayescontrol.problems.tabulate import TooManySituations

__all__ = ["main"]

_WRONG_CALLS = (
    Busy,
    CannotImport,
    CannotMerge,
    ClusterUnavailable,
    Damaged,
    InvalidPrior,
    InvalidSetting,
    InvalidSettings,
    InvalidTable,
    MissingCapability,
    NoResults,
    OtherResults,
    TooManySituations,
    UnknownClass,
    UnknownExperiment,
    UnknownMode,
    Unwritable,
)


class _WrongCall(click.ClickException):
    exit_code = 2


class _Commands(click.Group):
    """Errors with a way out, and no traceback, for what the caller can put right."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except _WRONG_CALLS as error:
            raise _WrongCall(str(error)) from error
        except ModesBroke as error:
            say(f"Error: {error}")
            ctx.exit(3)
        except ExperimentFailed as error:
            if error.__cause__ is not None:
                say("".join(traceback.format_exception(error.__cause__)))
            say(f"Error: {error}")
            _say_what_is_kept(ctx)
            ctx.exit(3)
        except OSError as error:
            # Whoever reads standard output has gone, or its disk is full: no verdict on a claim.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno != errno.EPIPE:
                say(f"Error: cannot write the results: {error.strerror or error}")
            ctx.exit(4)
        except KeyboardInterrupt:
            say("\nStopped. Nothing is left running.")
            _say_what_is_kept(ctx)
            ctx.exit(130)


def _say_what_is_kept(ctx: click.Context) -> None:
    if KEPT in ctx.meta:
        say(f"Finished replicas are kept in {ctx.meta[KEPT]}; the same command goes on from there.")


@click.group(
    "bayescontrol",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The Bayesian control rule: experiments with their claims, and how to repeat them.",
    epilog="Exit codes: 0 every claim of ours holds, 1 one fails, 2 a wrong call, "
    "3 an experiment broke, 4 standard output cannot be written, 130 stopped by Ctrl-C.",
)
@click.version_option(package_name="bayescontrol", prog_name="bayescontrol")
def main() -> None:
    """The command `bayescontrol`.

    >>> from click.testing import CliRunner
    >>> CliRunner().invoke(main, ["run", "no-such-study"]).exit_code
    2
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a ? on a screen without ± is better than an error
            stream.reconfigure(errors="replace")


@main.command("list")
@click.argument("name", required=False)
def list_(name: str | None) -> None:
    """List the experiments, or the settings of the one called NAME."""
    console = screen()
    if name is not None:
        _show_settings(find(name), console)
        return
    grid = Grid.grid(padding=(0, 3))
    for known in names():
        try:
            grid.add_row(Text(known, style="bold"), Text(find(known).summary))
        except UnknownExperiment as error:
            grid.add_row(Text(known, style="bold"), Text(str(error), style="red"))
    console.print(grid)
    say("bayescontrol list NAME shows the settings, bayescontrol run NAME runs it")


def _show_settings(experiment: Experiment[Any], console: Console) -> None:
    console.print(Text.assemble((experiment.name, "bold"), f": {experiment.summary}\n"))
    grid = Grid("setting", "type", "default", "description", box=None, pad_edge=False)
    for field in describe(experiment.settings):
        cells = (field.name, field.type, str(field.default), field.description)
        grid.add_row(*map(Text, cells))
    console.print(grid)
    for size in ("quick", "full"):
        settings = getattr(experiment, size)
        differs = [
            f"{field.name}={getattr(settings, field.name)}"
            for field in describe(experiment.settings)
            if getattr(settings, field.name) != field.default
        ]
        console.print(Text(f"reproduce --{size}: {', '.join(differs) or 'the defaults'}"))


_COMMANDS = (
    run.run, folders.merge, folders.report, reproduce.reproduce, check.check,
    serve.serve, demo.demo,
)  # fmt: skip
for _command in _COMMANDS:
    main.add_command(_command)
