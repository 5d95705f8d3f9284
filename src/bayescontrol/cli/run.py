"""`bayescontrol run`: run an experiment, at one setting or over a sweep."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bayescontrol.cli.results_folder import (
    exclusive_folder,
    publish,
    run_into,
    run_or_record_failure,
)
from bayescontrol.cli.screen import (
    print_json,
    print_report_path,
    print_result,
    screen,
    stdout_to_stderr,
)
from bayescontrol.cli.workers import WorkerPool, worker_options
from bayescontrol.lab.experiment import Experiment, Score, all_ours_hold
from bayescontrol.lab.manifest import Sweep, write_manifest
from bayescontrol.lab.progress import live
from bayescontrol.lab.registry import find, from_anywhere
from bayescontrol.lab.runner import Result, conduct
from bayescontrol.lab.settings import InvalidSettings, Point, axes, parse, points, values_of
from bayescontrol.lab.shards import Shard
from bayescontrol.report import folder as folders
from bayescontrol.report import tables
from bayescontrol.report.build import title_of, write_page
from bayescontrol.report.page import Section


@click.command()
@click.argument("name")
@click.option("--seed", metavar="INT", help="Seed of all random numbers.")
@click.option("--runs", metavar="INT", help="Number of replicas.")
@click.option("--steps", metavar="INT", help="Length of a replica.")
@click.option(
    "--set", "others", metavar="KEY=VALUE", multiple=True, help="Another setting; may be repeated."
)
@click.option(
    "--sweep",
    "sweeps",
    metavar="KEY=V1,V2,...",
    multiple=True,
    help="Run at each of these values; repeat for a product of settings.",
)
@worker_options(default="1")
@click.option("--shard", metavar="I/N", help="Run only replicas I-1, I-1+N, ...; join with merge.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for results, figures, claims and a page; the same command continues an "
    "interrupted run.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object (for a sweep with a list of points); NaN and infinities as "
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
        raise InvalidSettings(f"--shard {part} needs --out DIR and cannot be combined with --sweep")
    found = from_anywhere(name)
    if sweeps:
        chosen = points(experiment, given, values_of(sweeps))
        most = max(point.settings.runs for point in chosen)
        with WorkerPool(workers, dask, most, [name]) as pool:
            code = sweep(experiment, found, chosen, pool, out, as_json)
    else:
        settings = parse(experiment.settings, given)
        with WorkerPool(workers, dask, settings.runs, [name]) as pool:
            code = _single(experiment, found, settings, pool, part, out, as_json)
    sys.exit(code)


def _single(
    experiment: Experiment[Any],
    found: str,
    settings: Any,
    pool: WorkerPool,
    shard: Shard | None,
    out: Path | None,
    as_json: bool,
) -> int:
    paths: tuple[Path, ...] = ()
    with stdout_to_stderr():
        if out is None:
            with live(experiment.name) as progress:
                result = conduct(experiment, settings, 1, progress, executor=pool.executor())
        else:
            results = run_into(out, experiment, settings, pool, found=found, shard=shard)
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
            print_report_path(paths[-1])
    return 0 if all_ours_hold(result.score.claims) else 1


def _together(given: Sequence[tuple[str, str]], others: Sequence[str]) -> dict[str, str]:
    values = dict(given)
    for text in others:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettings(f"--set {text}: expected KEY=VALUE")
        if key in values:
            raise InvalidSettings(f"--set {text}: {key} was already set to {values[key]}")
        values[key] = value
    return values


@dataclass(frozen=True)
class _Done:
    point: Point
    result: Result  # without its columns: a sweep may have many
    paths: tuple[Path, ...] = ()
    section: Section | None = None


def sweep(
    experiment: Experiment[Any],
    found: str,
    points: Sequence[Point],
    pool: WorkerPool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run all points and print their claims; the exit code."""
    broken: dict[str, str] = {}
    with stdout_to_stderr():
        if out is None:
            done = _in_memory(experiment, points, pool, broken)
            artifacts: tuple[Path, ...] = ()
        else:
            manifest = Sweep(
                experiment=experiment.name,
                found=found,
                sweep=axes(points),
                folders=tuple(point.folder for point in points),
                broken=broken,
            )
            done, artifacts = _on_disk(experiment, manifest, points, pool, out)
    if as_json:
        objects = [folders.as_object(one.result, one.paths) for one in done]
        print_json(folders.sweep_as_object(experiment.name, axes(points), objects, artifacts))
    else:
        console = screen()
        console.print(Text.assemble((experiment.name, "bold"), f": {experiment.summary}"))
        for one in done:
            for table in one.result.score.tables:
                titled = replace(table, title=f"{table.title}, {one.point.label}")
                console.print(tables.table(titled))
        claims = folders.sweep_table([(one.point, one.result.score) for one in done])
        console.print(tables.table(claims))
        if artifacts:
            print_report_path(artifacts[-1])
    if broken:
        return 3
    return 0 if all(all_ours_hold(one.result.score.claims) for one in done) else 1


def _in_memory(
    experiment: Experiment[Any], points: Sequence[Point], pool: WorkerPool, broken: dict[str, str]
) -> list[_Done]:
    def one(point: Point) -> _Done:
        with live(_label(experiment, point, points)) as progress:
            executor = pool.executor()
            result = conduct(experiment, point.settings, 1, progress, executor=executor)
        return _Done(point, replace(result, columns={}))

    tried = [
        run_or_record_failure(point.folder, partial(one, point), pool, broken) for point in points
    ]
    return [one for one in tried if one is not None]


def _on_disk(
    experiment: Experiment[Any],
    manifest: Sweep,
    points: Sequence[Point],
    pool: WorkerPool,
    out: Path,
) -> tuple[list[_Done], tuple[Path, ...]]:
    def one(point: Point) -> _Done:
        folder = out / point.folder
        label = _label(experiment, point, points)
        found = manifest.found
        results = run_into(folder, experiment, point.settings, pool, found=found, label=label)
        section, paths = publish(results, swept=point.swept)
        return _Done(point, section.result, paths, replace(section, folder=point.folder))

    def is_ours(there: object) -> bool:
        return isinstance(there, Sweep) and there.experiment == manifest.experiment

    with exclusive_folder(out, is_ours):
        broken = manifest.broken
        tried = [
            run_or_record_failure(point.folder, partial(one, point), pool, broken)
            for point in points
        ]
        done = [one for one in tried if one is not None]
        artifacts = (
            write_manifest(out, manifest),
            folders.write_sweep_claims([(one.point, one.result.score) for one in done], out),
            write_page(
                title_of(manifest),
                [one.section for one in done if one.section is not None],
                out,
                manifest.broken,
            ),
        )
    return done, artifacts


def _label(experiment: Experiment[Any], point: Point, points: Sequence[Point]) -> str:
    return f"{experiment.name}, {point.label} ({points.index(point) + 1} of {len(points)})"
