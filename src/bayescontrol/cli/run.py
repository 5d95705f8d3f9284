"""`bayescontrol run`: run an experiment, at one setting or over a sweep."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.text import Text

from bayescontrol.cli import results_folder, screen
from bayescontrol.cli.workers import WorkerPool, worker_options
from bayescontrol.lab.experiment import Experiment, Score, all_ours_hold
from bayescontrol.lab.manifest import Sweep, write_manifest
from bayescontrol.lab.progress import live
from bayescontrol.lab.registry import find, from_anywhere
from bayescontrol.lab.runner import Result, conduct
from bayescontrol.lab.settings import InvalidSettings, Point, axes, parse, plain, points, values_of
from bayescontrol.lab.store import Shard, StoredResults, Study
from bayescontrol.report import folder as folders
from bayescontrol.report import tables
from bayescontrol.report.build import title_of, write_index
from bayescontrol.report.page import Section


@click.command()
@click.argument("name")
@click.option("--seed", metavar="INT", help="Seed of all random numbers.")
@click.option("--runs", metavar="INT", help="Number of replicas.")
@click.option("--steps", metavar="INT", help="Length of a replica.")
@click.option(
    "--set", "pairs", metavar="KEY=VALUE", multiple=True, help="Another setting; may be repeated."
)
@click.option(
    "--sweep",
    "sweeps",
    metavar="KEY=V1,V2,...",
    multiple=True,
    help="Run at each of these values; repeat for a product of settings.",
)
@worker_options(default="1")
@results_folder.stale_options
@click.option("--shard", metavar="I/N", help="Run only replicas I-1, I-1+N, ...; join with merge.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for results, figures, claims and a page; the same command continues an "
    "interrupted run.",
)
@screen.json_option(" (for a sweep with a list of points)")
def run(
    name: str,
    seed: str | None,
    runs: str | None,
    steps: str | None,
    pairs: tuple[str, ...],
    sweeps: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    keep_stale: bool,
    fresh: bool,
    shard: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the experiment called NAME (or in file.py, or at file.py:attribute); check its claims."""
    results_folder.check_stale_options(keep_stale, fresh, out)
    experiment = find(name)
    options = (("seed", seed), ("runs", runs), ("steps", steps))
    texts = _add_pairs({key: v for key, v in options if v is not None}, pairs)
    part = None if shard is None else Shard.parse(shard)
    if part is not None and (out is None or sweeps):
        raise InvalidSettings(f"--shard {part} needs --out DIR and cannot be combined with --sweep")
    if sweeps:
        chosen = points(experiment, texts, values_of(sweeps))
    else:
        chosen = (Point(parse(experiment.settings, texts), {}, ""),)
    if fresh and out is not None:
        results_folder.discard(
            (out / point.folder, Study.of(experiment, point.settings)) for point in chosen
        )
    max_runs = max(point.settings.runs for point in chosen)
    with WorkerPool(workers, dask, max_runs, [name]) as pool:
        command = _Run(experiment, from_anywhere(name), pool, out, as_json, keep_stale)
        code = command.sweep(chosen) if sweeps else command.single(chosen[0], part)
    sys.exit(code)


def _add_pairs(values: dict[str, str], pairs: Sequence[str]) -> dict[str, str]:
    """Add settings of the form KEY=VALUE to `values`; reject a setting that is given twice."""
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettings(f"--set {text}: expected KEY=VALUE")
        if key in values:
            raise InvalidSettings(f"--set {text}: {key} was already set to {values[key]}")
        values[key] = value
    return values


class _Finished(NamedTuple):
    """The result of one point of a sweep; `paths` and `section` only with --out."""

    point: Point
    result: Result  # without its columns: a sweep may have many
    paths: tuple[Path, ...] = ()
    section: Section | None = None


@dataclass(frozen=True)
class _Run:
    """An experiment to run, in memory or in the folder `out`."""

    experiment: Experiment[Any]
    found: str  # the name that finds the experiment from any folder
    pool: WorkerPool
    out: Path | None
    as_json: bool
    keep_stale: bool

    def single(self, point: Point, shard: Shard | None) -> int:
        """Run one point or a shard of it, and print its claims; return the exit code."""
        with redirect_stdout(sys.stderr):
            if shard is not None and self.out is not None:
                stored = self._run_into(self.out, point, self.experiment.name, shard)
                parts = stored.manifest.provenance
                result = Result(self.experiment, point.settings, {}, Score(()), parts)
                paths = folders.paths_of(self.out, ())[:2]
            else:
                done = self._run_point(point, self.experiment.name)
                result, paths = done.result, done.paths
        if self.as_json:
            screen.print_json(folders.as_object(result, paths))
        elif shard is not None:
            hint = "join all shards with `bayescontrol merge OUT ...`"
            click.echo(f"Shard {shard}: {paths[1]}; {hint}")
        else:
            console = self._print_title()
            console.print(Text(str(point.settings), style="dim"))
            screen.print_result(console, result, has_page=self.out is not None)
            if self.out is not None:
                screen.print_report_path(paths[-1])
        return 0 if all_ours_hold(result.score.claims) else 1

    def sweep(self, points: Sequence[Point]) -> int:
        """Run all points and print their claims; return the exit code."""
        name, out = self.experiment.name, self.out
        subfolders = tuple(point.folder for point in points)
        manifest = Sweep(
            experiment=name, found=self.found, sweep=axes(points), folders=subfolders, broken={}
        )

        def is_ours(existing: object) -> bool:
            return isinstance(existing, Sweep) and existing.experiment == name

        done: list[_Finished] = []
        artifacts: tuple[Path, ...] = ()
        with (
            redirect_stdout(sys.stderr),
            results_folder.exclusive_folder(out, is_ours) if out else nullcontext(),
        ):
            for position, point in enumerate(points, 1):
                label = f"{name}, {point.label} ({position} of {len(points)})"
                with results_folder.recorded_failure(point.folder, self.pool, manifest.broken):
                    done.append(self._run_point(point, label))
            scores = [(item.point, item.result.score) for item in done]
            if out is not None:
                sections = [item.section for item in done if item.section is not None]
                written = write_manifest(out, manifest), folders.write_sweep_claims(scores, out)
                index, *drawn = write_index(title_of(manifest), sections, out, manifest.broken)
                artifacts = (*written, *drawn, index)
        if self.as_json:
            objects = [folders.as_object(item.result, item.paths) for item in done]
            content = {"experiment": name, "sweep": plain(manifest.sweep), "points": objects}
            screen.print_json({**content, "artifacts": [str(path) for path in artifacts]})
        else:
            console = self._print_title()
            for table in folders.sweep_tables(scores):
                console.print(tables.table(table))
            if artifacts:
                screen.print_report_path(artifacts[-1])
        if manifest.broken:
            return 3
        return 0 if all(all_ours_hold(item.result.score.claims) for item in done) else 1

    def _run_point(self, point: Point, label: str) -> _Finished:
        """Run the experiment in memory, or in the point's folder of `out`."""
        study = (self.experiment, point.settings)
        if self.out is None:
            provenance = Study.of(*study).provenance_of_all() if self.as_json else ()
            with live(label) as progress:
                result = conduct(*study, 1, progress, executor=self.pool.executor())
            return _Finished(point, replace(result, columns={}, provenance=provenance))
        stored = self._run_into(self.out / point.folder, point, label)
        section, paths = results_folder.publish(stored, point.folder, point.swept)
        return _Finished(point, section.result, paths, section)

    def _run_into(
        self, folder: Path, point: Point, label: str, shard: Shard | None = None
    ) -> StoredResults:
        study = (folder, self.experiment, point.settings, self.pool, self.found, label)
        return results_folder.run_into(*study, keep_stale=self.keep_stale, shard=shard)

    def _print_title(self) -> Console:
        """Print the name and summary of the experiment; return the console."""
        console = screen.open_console()
        console.print(Text.assemble((self.experiment.name, "bold"), f": {self.experiment.summary}"))
        return console
