"""`bayescontrol run --sweep`: one experiment at several settings, and one table of all claims."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from bayescontrol.cli.crew import Crew
from bayescontrol.cli.into import publish, run_into
from bayescontrol.cli.screen import print_json, say_where, screen, standard_output_kept
from bayescontrol.cli.several import attempt, owned
from bayescontrol.lab.experiment import Experiment, all_ours_hold
from bayescontrol.lab.manifest import Sweep, write_manifest
from bayescontrol.lab.progress import live
from bayescontrol.lab.runner import Result, conduct
from bayescontrol.lab.settings import Point, axes
from bayescontrol.report import folder as folders
from bayescontrol.report import tables
from bayescontrol.report.build import title_of, write_page
from bayescontrol.report.page import Section


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
    crew: Crew,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run all points and print their claims; the exit code.

    >>> from click.testing import CliRunner
    >>> from bayescontrol.cli import main
    >>> CliRunner().invoke(main, ["run", "chain", "--sweep", "no_such_setting=1,2"]).exit_code
    2
    """
    broken: dict[str, str] = {}
    with standard_output_kept():
        if out is None:
            done = _in_memory(experiment, points, crew, broken)
            artifacts: tuple[Path, ...] = ()
        else:
            manifest = Sweep(
                experiment=experiment.name,
                found=found,
                sweep=axes(points),
                folders=tuple(point.folder for point in points),
                broken=broken,
            )
            done, artifacts = _on_disk(experiment, manifest, points, crew, out)
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
            say_where(artifacts[-1])
    if broken:
        return 3
    return 0 if all(all_ours_hold(one.result.score.claims) for one in done) else 1


def _in_memory(
    experiment: Experiment[Any], points: Sequence[Point], crew: Crew, broken: dict[str, str]
) -> list[_Done]:
    def one(point: Point) -> _Done:
        with live(_label(experiment, point, points)) as progress:
            executor = crew.executor()
            result = conduct(experiment, point.settings, 1, progress, executor=executor)
        return _Done(point, replace(result, columns={}))

    tried = [attempt(point.folder, partial(one, point), crew, broken) for point in points]
    return [one for one in tried if one is not None]


def _on_disk(
    experiment: Experiment[Any],
    manifest: Sweep,
    points: Sequence[Point],
    crew: Crew,
    out: Path,
) -> tuple[list[_Done], tuple[Path, ...]]:
    def one(point: Point) -> _Done:
        folder = out / point.folder
        label = _label(experiment, point, points)
        found = manifest.found
        results = run_into(folder, experiment, point.settings, crew, found=found, label=label)
        section, paths = publish(results, swept=point.swept)
        return _Done(point, section.result, paths, replace(section, folder=point.folder))

    def is_ours(there: object) -> bool:
        return isinstance(there, Sweep) and there.experiment == manifest.experiment

    with owned(out, is_ours):
        broken = manifest.broken
        tried = [attempt(point.folder, partial(one, point), crew, broken) for point in points]
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
