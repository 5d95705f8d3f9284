"""`bayescontrol run`: one experiment, at one setting or over several."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bayescontrol.cli.crew import Crew, crew_options
from bayescontrol.cli.into import publish, run_into
from bayescontrol.cli.screen import (
    print_json,
    print_result,
    say_where,
    screen,
    standard_output_kept,
)
from bayescontrol.cli.sweep import sweep
from bayescontrol.lab.experiment import Experiment, Score, all_ours_hold
from bayescontrol.lab.progress import live
from bayescontrol.lab.registry import find, from_anywhere
from bayescontrol.lab.runner import Result, conduct
from bayescontrol.lab.settings import InvalidSettings, parse, points, values_of
from bayescontrol.lab.shards import Shard
from bayescontrol.report import folder as folders
from bayescontrol.report.build import write_page


@click.command()
@click.argument("name")
@click.option("--seed", metavar="INT", help="Seed of all random numbers.")
@click.option("--runs", metavar="INT", help="Number of replicas.")
@click.option("--steps", metavar="INT", help="Length of a replica.")
@click.option("--set", "others", metavar="KEY=VALUE", multiple=True, help="Any other setting.")
@click.option(
    "--sweep",
    "sweeps",
    metavar="KEY=V1,V2,...",
    multiple=True,
    help="Run at each of these values; several times for a product.",
)
@crew_options(default="1")
@click.option("--shard", metavar="I/N", help="Only runs I-1, I-1+N, ...; join with merge.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Keep results in DIR, with figures, claims and a page; the same command goes on "
    "where it stopped.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object, of a sweep one with a list of points; NaN and infinities as "
    "strings.",
)
def run(
    name: str,
    seed: str | None,
    runs: str | None,
    steps: str | None,
    others: tuple[str, ...],
    sweeps: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    shard: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the experiment called NAME (or at file.py:attribute) and check its claims."""
    experiment = find(name)
    named = (("seed", seed), ("runs", runs), ("steps", steps))
    given = _together([(key, value) for key, value in named if value is not None], others)
    part = None if shard is None else Shard.parse(shard)
    if part is not None and (out is None or sweeps):
        raise InvalidSettings(f"--shard {part}: it needs --out DIR, and one setting, not --sweep")
    found = from_anywhere(name)
    if sweeps:
        chosen = points(experiment, given, values_of(sweeps))
        most = max(point.settings.runs for point in chosen)
        with Crew(workers, dask, most, [name]) as crew:
            code = sweep(experiment, found, chosen, crew, out, as_json)
    else:
        settings = parse(experiment.settings, given)
        with Crew(workers, dask, settings.runs, [name]) as crew:
            code = _single(experiment, found, settings, crew, part, out, as_json)
    sys.exit(code)


def _single(
    experiment: Experiment[Any],
    found: str,
    settings: Any,
    crew: Crew,
    shard: Shard | None,
    out: Path | None,
    as_json: bool,
) -> int:
    paths: tuple[Path, ...] = ()
    with standard_output_kept():
        if out is None:
            with live(experiment.name) as progress:
                result = conduct(experiment, settings, 1, progress, executor=crew.executor())
        else:
            results = run_into(out, experiment, settings, crew, found=found, shard=shard)
            if shard is not None:
                result = Result(experiment, settings, {}, Score(()))
                paths = folders.paths_of(out, ())[:2]
            else:
                section, paths = publish(results)
                result = section.result
                paths = (*paths, write_page(experiment.name, [section], out))
    if as_json:
        print_json(folders.as_object(result, paths))
    elif shard is not None:
        click.echo(f"Shard {shard}: {paths[1]}; join all shards with `bayescontrol merge OUT ...`")
    else:
        console = screen()
        console.print(Text.assemble((experiment.name, "bold"), f": {experiment.summary}"))
        console.print(Text(str(settings), style="dim"))
        print_result(console, result)
        if out is not None:
            say_where(paths[-1])
    return 0 if all_ours_hold(result.score.claims) else 1


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
