"""The command line: list, run, reproduce.

    exit code 0    every claim of ours holds (claims of the paper may be refuted)
              1    a claim of ours fails
              2    a wrong call: an unknown experiment, a bad setting, an unwritable folder
              3    an experiment broke: a replica raised, or a worker died
            130    stopped by Ctrl-C

Results go to standard output; progress, warnings and errors to standard error.
"""

import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.lab.claims import all_ours_hold
from bayescontrol.lab.experiment import Experiment, UnknownExperiment, find, names
from bayescontrol.lab.progress import live
from bayescontrol.lab.runner import ExperimentFailed, Result, conduct
from bayescontrol.lab.settings import InvalidSettings, describe, parse
from bayescontrol.report import folder, tables

__all__ = ["main"]


class _WrongCall(click.ClickException):
    exit_code = 2


class _Commands(click.Group):
    """Errors with a way out, and no traceback, for what the caller can put right."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UnknownExperiment, InvalidSettings, folder.Unwritable) as error:
            raise _WrongCall(str(error)) from error
        except ExperimentFailed as error:
            if error.__cause__ is not None:
                click.echo("".join(traceback.format_exception(error.__cause__)), err=True)
            click.echo(f"Error: {error}", err=True)
            ctx.exit(3)
        except KeyboardInterrupt:
            click.echo("\nStopped. Nothing is left running.", err=True)
            ctx.exit(130)


@click.group(
    "bayescontrol",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The Bayesian control rule: experiments with their claims, and how to repeat them.",
    epilog="Exit codes: 0 every claim of ours holds, 1 one fails, 2 a wrong call, "
    "3 an experiment broke, 130 stopped by Ctrl-C.",
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


_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; NaN and infinities as strings."
)
_out = click.Path(path_type=Path)


@main.command("list")
@click.argument("name", required=False)
def list_(name: str | None) -> None:
    """List the experiments, or the settings of the one called NAME."""
    screen = _screen()
    if name is not None:
        _show_settings(find(name), screen)
        return
    grid = Grid.grid(padding=(0, 3))
    for known in names():
        try:
            grid.add_row(Text(known, style="bold"), Text(find(known).summary))
        except UnknownExperiment as error:
            grid.add_row(Text(known, style="bold"), Text(str(error), style="red"))
    screen.print(grid)
    click.echo("bayescontrol list NAME shows the settings, bayescontrol run NAME runs it", err=True)


@main.command()
@click.argument("name")
@click.option("--seed", metavar="INT", help="Seed of all random numbers.")
@click.option("--runs", metavar="INT", help="Number of replicas.")
@click.option("--steps", metavar="INT", help="Length of a replica.")
@click.option("--set", "others", metavar="KEY=VALUE", multiple=True, help="Any other setting.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--out", type=_out, help="Write figures, claims, columns and a page to DIR.")
@_json
def run(
    name: str,
    seed: str | None,
    runs: str | None,
    steps: str | None,
    others: tuple[str, ...],
    workers: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the experiment called NAME (or at file.py:attribute) and check its claims."""
    experiment = find(name)
    named = (("seed", seed), ("runs", runs), ("steps", steps))
    given = [(key, value) for key, value in named if value is not None]
    settings = parse(experiment.settings, _together(given, others))
    if out is not None:
        folder.prepare(out)
    with _standard_output_kept():
        result = _conduct(experiment, settings, workers, experiment.name)
        paths = () if out is None else folder.write(result, out).paths
    if as_json:
        _print_json(folder.as_object(result, paths))
    else:
        screen = _screen()
        screen.print(Text.assemble((experiment.name, "bold"), f": {experiment.summary}"))
        screen.print(Text(str(settings), style="dim"))
        _print_results(screen, [result])
        if out is not None:
            _say_where(paths[-1])
    sys.exit(0 if all_ours_hold(result.outcome.claims) else 1)


@main.command()
@click.argument("more", metavar="[NAME]...", nargs=-1)
@click.option("--quick/--full", default=True, help="A minute or two, or the paper's size.")
@click.option("--only", metavar="NAME...", multiple=True, help="These experiments, not all.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: every core]")
@click.option("--out", type=_out, default=Path("report"), show_default=True)
@_json
def reproduce(
    more: tuple[str, ...],
    quick: bool,
    only: tuple[str, ...],
    workers: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Run every experiment and write one report: the paper's claim, our number, a verdict."""
    chosen = [find(name) for name in dict.fromkeys((*only, *more)) or names()]
    if not chosen:
        raise _WrongCall("no experiment is registered: install the package again")
    folder.prepare(out)
    screen = _screen()
    results, sections, paths = [], [], []
    for position, experiment in enumerate(chosen, 1):
        label = f"{experiment.name} ({position} of {len(chosen)})"
        settings = experiment.quick if quick else experiment.full
        with _standard_output_kept():
            results.append(_conduct(experiment, settings, workers or _cores(), label))
            written = folder.write(results[-1], out / experiment.name, with_page=False)
        sections.append(written.section)
        paths.append(written.paths)
        if not as_json:
            for content in results[-1].outcome.tables:
                screen.print(tables.table(content))
    index = folder.write_page("bayescontrol: the paper's claims and ours", sections, out)
    if as_json:
        objects = [folder.as_object(*pair) for pair in zip(results, paths, strict=True)]
        _print_json({"experiments": objects, "artifacts": [str(index)]})
    else:
        screen.print(tables.claims_table(results))
        _say_where(index)
    sys.exit(0 if all(all_ours_hold(result.outcome.claims) for result in results) else 1)


def _conduct(experiment: Experiment[Any], settings: Any, workers: int, label: str) -> Result:
    with live(label) as progress:
        return conduct(experiment, settings, workers, progress)


def _together(given: Sequence[tuple[str, str]], others: Sequence[str]) -> dict[str, str]:
    values = dict(given)
    for text in others:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettings(f"--set {text}: write --set KEY=VALUE")
        if key in values:
            raise InvalidSettings(f"--set {text}: {key} is given twice, first as {values[key]}")
        values[key] = value
    return values


def _show_settings(experiment: Experiment[Any], screen: Console) -> None:
    screen.print(Text.assemble((experiment.name, "bold"), f": {experiment.summary}\n"))
    grid = Grid("setting", "type", "default", "description", box=None, pad_edge=False)
    for field in describe(experiment.settings):
        cells = (field.name, field.type, str(field.default), field.description)
        grid.add_row(*map(Text, cells))
    screen.print(grid)


def _print_results(screen: Console, results: Sequence[Result]) -> None:
    for result in results:
        for content in result.outcome.tables:
            screen.print(tables.table(content))
    screen.print(tables.claims_table(results))


def _print_json(content: Any) -> None:
    click.echo(json.dumps(content, indent=2, allow_nan=False))


def _say_where(index: Path) -> None:
    click.echo(f"Report: {index.resolve()}")


def _screen() -> Console:
    """Standard output; in a file or a pipe wide enough for a claim on one or two lines."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 120, highlight=False)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _standard_output_kept() -> Iterator[None]:
    """What an experiment prints goes to standard error: results alone are on the other."""
    with redirect_stdout(sys.stderr):
        yield


if __name__ == "__main__":
    main()
