"""`bayescontrol merge` and `bayescontrol report`: what to do with results that are there."""

import sys
from pathlib import Path

import click

from bayescontrol.cli.into import publish
from bayescontrol.cli.screen import (
    print_json,
    print_result,
    say_where,
    screen,
    standard_output_kept,
)
from bayescontrol.lab import shards
from bayescontrol.lab.experiment import all_ours_hold
from bayescontrol.report import folder as folders
from bayescontrol.report.build import build, write_page

_folder = click.Path(path_type=Path)


@click.command()
@click.argument("out", type=_folder)
@click.argument("parts", metavar="SHARD...", type=_folder, nargs=-1, required=True)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; NaN and infinities as strings."
)
def merge(out: Path, parts: tuple[Path, ...], as_json: bool) -> None:
    """Join the folders SHARD..., filled with run --shard, in OUT, and check the claims."""
    with standard_output_kept():
        shards.merge(out, parts)
        section, paths = publish(out)
        paths = (*paths, write_page(section.heading, [section], out))
    if as_json:
        print_json(folders.as_object(section.result, paths))
    else:
        print_result(screen(), section.result)
        say_where(paths[-1])
    sys.exit(0 if all_ours_hold(section.result.score.claims) else 1)


@click.command()
@click.argument("results", type=_folder)
@click.option("--out", type=_folder, help="Where the page and figures go.  [default: RESULTS]")
def report(results: Path, out: Path | None) -> None:
    """Make the page and the figures of RESULTS again: of one experiment, a sweep, or several."""
    with standard_output_kept():
        index = build(results, out)
    say_where(index)
