"""The commands `list`, `run`, `reproduce` and `report`: run experiments, and write their pages."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol._support.files import create_folder, lock_folder
from bayescontrol.cli import screen
from bayescontrol.errors import counted
from bayescontrol.lab import manifest as manifests
from bayescontrol.lab import settings as lab_settings
from bayescontrol.lab.discovery import UnknownExperiment, find, from_anywhere, names, split_name
from bayescontrol.lab.experiment import Experiment, ExperimentFailed, all_ours_hold
from bayescontrol.lab.manifest import AnyManifest, NoResults, Reproduction, Sweep
from bayescontrol.lab.parallel import available_cores, dask_cluster
from bayescontrol.lab.progress import live
from bayescontrol.lab.runner import Result, conduct, run_replicas, wanted_runs
from bayescontrol.lab.settings import InvalidSettings, Point, add_settings, plain
from bayescontrol.lab.store import OtherResults, ResultStore, StoredResults, Study, manifest_of
from bayescontrol.report import build, tables
from bayescontrol.report.page import Section

#: Keys in the click context: the folder with the finished replicas, and whether --fresh was used.
RESULTS_FOLDER: Final = "bayescontrol.kept"
IS_FRESH: Final = "bayescontrol.fresh"
#: About how many lines `run` prints; further tables are only on the page.
_SCREEN: Final = 48
_folder: Final = click.Path(path_type=Path)


# Options of both `run` and `reproduce`.
_workers_option = partial(click.option, "--workers", type=click.IntRange(min=1))
_dask_option = click.option(
    "--dask", metavar="ADDRESS", help="Dask scheduler: tcp://HOST:PORT, or local."
)
_keep_stale_option = click.option(
    "--keep-stale", is_flag=True, help="Use stored replicas even if the code has changed since."
)
_fresh_option = click.option(
    "--fresh", is_flag=True, help="Discard the stored replicas first and run all of them."
)


@contextmanager
def _started_workers(
    workers: int | None, dask: str | None, studies: Iterable[str]
) -> Iterator[int | None]:
    """Yield the number of processes for `run_replicas`; None if they run on a Dask cluster.

    `studies` are the names of the experiments. Those that are defined in a file are sent to the
    cluster, which cannot import the file.
    """
    if dask is None:
        yield workers
        return
    files = [file.resolve() for file, _ in map(split_name, studies) if file is not None]
    with dask_cluster(dask, workers, files):
        yield None


def _require_out_for(keep_stale: bool, fresh: bool, out: Path | None) -> None:
    """Raise if both options are used, or one of them without a folder of results."""
    if (keep_stale and fresh) or (out is None and (keep_stale or fresh)):
        raise InvalidSettings("use either --keep-stale or --fresh, and only together with --out")


@click.command("list")
@click.argument("name", required=False)
def list_(name: str | None) -> None:
    """List the experiments, or the settings of one: NAME, file.py or file.py:attribute."""
    if name is not None:
        _show_settings(find(name))
        return
    grid = Grid.grid(padding=(0, 3))
    for listed in names():
        try:
            grid.add_row(Text(listed, style="bold"), Text(find(listed).summary))
        except UnknownExperiment as error:
            grid.add_row(Text(listed, style="bold"), Text(str(error), style="red"))
    screen.open_console().print(grid)
    screen.print_message("bayescontrol list NAME shows the settings, bayescontrol run NAME runs it")


def _show_settings(experiment: Experiment[Any]) -> None:
    """Print the settings of an experiment, and those of its quick and its full size."""
    console = screen.print_title(experiment.name, f"{experiment.summary}\n")
    grid = Grid("setting", "type", "default", "description", box=None, pad_edge=False)
    fields = lab_settings.describe(experiment.settings)
    for field in fields:
        cells = (field.name, field.type, str(field.default), field.description)
        grid.add_row(*map(Text, cells))
    console.print(grid)
    for size in ("quick", "full"):
        settings = getattr(experiment, size)
        changed = [
            f"{field.name}={getattr(settings, field.name)}"
            for field in fields
            if getattr(settings, field.name) != field.default
        ]
        console.print(Text(f"reproduce --{size}: {', '.join(changed) or 'the defaults'}"))


# -- run and reproduce ---------------------------------------------------------------------------


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
@_workers_option(help="Number of worker processes.  [default: 1]")
@_dask_option
@_keep_stale_option
@_fresh_option
@click.option(
    "--out",
    type=_folder,
    help="Folder for results, figures, claims and a page; the same command continues an "
    "interrupted run.",
)
@screen.json_option(" (for a sweep with a list of points)")
def run(
    name: str, seed: str | None, runs: str | None, steps: str | None, pairs: tuple[str, ...],
    sweeps: tuple[str, ...], workers: int | None, dask: str | None, keep_stale: bool, fresh: bool,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run the experiment called NAME (or in file.py, or at file.py:attribute); check its claims."""
    _require_out_for(keep_stale, fresh, out)
    experiment = find(name)
    options = (("seed", seed), ("runs", runs), ("steps", steps))
    texts = add_settings({key: v for key, v in options if v is not None}, pairs)
    if sweeps:
        chosen = lab_settings.points(experiment, texts, lab_settings.values_of(sweeps))
    else:
        chosen = (Point(lab_settings.parse(experiment.settings, texts), {}, ""),)
    if fresh and out is not None:
        _discard((out / point.folder, Study.of(experiment, point.settings)) for point in chosen)
    with _started_workers(workers or (None if dask else 1), dask, [name]) as count:
        command = _Run(experiment, from_anywhere(name), count, out, as_json, keep_stale)
        code = command.sweep(chosen) if sweeps else command.single(chosen[0])
    sys.exit(code)


class _Finished(NamedTuple):
    """The result of one experiment or point of a sweep; `paths` and `section` only with --out."""

    point: Point
    result: Result  # without its columns: a sweep may have many
    paths: tuple[Path, ...] = ()
    section: Section | None = None


def _sections(done: Sequence[_Finished]) -> list[Section]:
    """Return the sections of the page of several results."""
    return [item.section for item in done if item.section is not None]


def _exit_code(done: Sequence[_Finished], broken: Mapping[str, str] = {}) -> int:
    """Return 3 if an experiment failed, 1 if a claim of ours does, else 0."""
    claims = (claim for item in done for claim in item.result.score.claims)
    return 3 if broken else 0 if all_ours_hold(claims) else 1


@dataclass(frozen=True)
class _Run:
    """An experiment to run, in memory or in the folder `out`."""

    experiment: Experiment[Any]
    found: str  # the name that finds the experiment from any folder
    workers: int | None
    out: Path | None
    as_json: bool
    keep_stale: bool

    def single(self, point: Point) -> int:
        """Run one point and print its claims; return the exit code."""
        with redirect_stdout(sys.stderr):
            finished = self.run_point(point, self.experiment.name)
        if self.as_json:
            screen.print_json(build.as_object(finished.result, finished.paths))
        else:
            console = screen.print_title(self.experiment.name, self.experiment.summary)
            console.print(Text(str(point.settings), style="dim"))
            _print_result(console, finished.result, has_page=self.out is not None)
            if self.out is not None:
                screen.print_report_path(finished.paths[-1])
        return _exit_code([finished])

    def sweep(self, points: Sequence[Point]) -> int:
        """Run all points and print their claims; return the exit code."""
        name, out = self.experiment.name, self.out
        swept, folders = lab_settings.axes(points), tuple(point.folder for point in points)
        manifest = Sweep(experiment=name, found=self.found, sweep=swept, folders=folders, broken={})

        done: list[_Finished] = []
        artifacts: tuple[Path, ...] = ()
        with redirect_stdout(sys.stderr), _exclusive_folder(out, Sweep, name):
            for position, point in enumerate(points, 1):
                label = f"{name}, {point.label} ({position} of {len(points)})"
                with _recorded_failure(point.folder, manifest.broken):
                    done.append(self.run_point(point, label))
            scores = [(item.point, item.result.score) for item in done]
            if out is not None:
                manifest_path = manifests.write_manifest(out, manifest)
                claims_path = build.write_sweep_claims(scores, out)
                title, sections = build.title_of(manifest), _sections(done)
                index, *drawn = build.write_index(title, sections, out, manifest.broken)
                artifacts = (manifest_path, claims_path, *drawn, index)
        if self.as_json:
            objects = [build.as_object(item.result, item.paths) for item in done]
            content = {"experiment": name, "sweep": plain(manifest.sweep), "points": objects}
            screen.print_json({**content, "artifacts": [str(path) for path in artifacts]})
        else:
            console = screen.print_title(name, self.experiment.summary)
            for table in tables.sweep_tables(scores):
                console.print(screen.table(table))
            if artifacts:
                screen.print_report_path(artifacts[-1])
        return _exit_code(done, manifest.broken)

    def run_point(self, point: Point, label: str) -> _Finished:
        """Run the experiment in memory, or in the point's folder of `out`."""
        study = (self.experiment, point.settings)
        if self.out is None:
            provenance = Study.of(*study).provenance_of_all() if self.as_json else ()
            with live(label) as progress:
                result = conduct(*study, self.workers, progress)
            return _Finished(point, replace(result, columns={}, provenance=provenance))
        folder = self.out / point.folder
        stored = self._run_into(folder, point.settings, label)
        section = build.write_section(stored, name=point.folder, swept=point.swept)
        build.write_claims(section.result, folder)
        paths = build.paths_of(folder, list(section.charts))
        return _Finished(point, section.result, paths, section)

    def _run_into(self, folder: Path, settings: Any, label: str) -> StoredResults:
        """Run the replicas that are missing or stale in the folder, and return all results."""
        experiment, wanted = self.experiment, wanted_runs(self.experiment, settings)
        study = Study.of(experiment, settings, self.found)
        with ResultStore(folder, study, keep_stale=self.keep_stale) as store:
            click.get_current_context().meta.setdefault(RESULTS_FOLDER, folder)
            missing = sum(map(len, store.missing(wanted)))
            if missing < len(wanted):
                to_run = f"{missing} to run" if missing else "nothing to run"
                found_runs = f"{len(wanted) - missing} of {len(wanted)} replicas found"
                screen.print_message(f"{label}: {found_runs}, {to_run}")
            with live(label) if missing else nullcontext() as progress:
                columns = run_replicas(experiment, settings, self.workers, progress, store=store)
            assert store.manifest is not None  # written when all runs are finished
            return StoredResults(folder, store.manifest, columns)


@click.command()
@click.argument("more", metavar="[NAME]...", nargs=-1)
@click.option("--quick/--full", default=True, help="Quick size (minutes) or the size in the paper.")
@click.option("--only", metavar="NAME,...", multiple=True, help="Run only these experiments.")
@_workers_option(help="Number of worker processes.  [default: every core]")
@_dask_option
@_keep_stale_option
@_fresh_option
@click.option("--out", type=_folder, default=Path("report"), show_default=True)
@screen.json_option()
def reproduce(
    more: tuple[str, ...], quick: bool, only: tuple[str, ...], workers: int | None,
    dask: str | None, keep_stale: bool, fresh: bool, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Run all experiments and write a report: each claim, our number, and whether it holds."""
    _require_out_for(keep_stale, fresh, out)
    names_given = map(str.strip, ",".join((*only, *more)).split(","))
    requested = tuple(dict.fromkeys(filter(None, names_given)))
    broken: dict[str, str] = {}
    chosen = {name: find(name) for name in requested} if requested else _find_all(broken)
    if not chosen and not broken:
        raise UnknownExperiment("no experiment is registered: reinstall the package")
    sizes = {name: e.quick if quick else e.full for name, e in chosen.items()}
    workers = workers or (None if dask else available_cores())
    done: list[_Finished] = []
    with (
        _exclusive_folder(out, Reproduction),
        _started_workers(workers, dask, chosen) as count,
    ):
        # Fail before the first run if a folder holds the results of other settings.
        studies = [(out / e.name, Study.of(e, sizes[name])) for name, e in chosen.items()]
        for folder, study in studies:
            manifest_of(folder, study)
        if fresh:
            _discard(studies)
        for position, (name, experiment) in enumerate(chosen.items(), 1):
            command = _Run(experiment, from_anywhere(name), count, out, as_json, keep_stale)
            point = Point(sizes[name], {}, experiment.name)
            with redirect_stdout(sys.stderr), _recorded_failure(experiment.name, broken):
                label = f"{experiment.name} ({position} of {len(chosen)})"
                done.append(command.run_point(point, label))
        tried = tuple(dict.fromkeys((*(e.name for e in chosen.values()), *broken)))
        manifest = Reproduction(folders=tried, broken=broken)
        manifests.write_manifest(out, manifest)
        index, *_ = build.write_index(build.title_of(manifest), _sections(done), out, broken)
    if as_json:
        objects = [build.as_object(item.result, item.paths) for item in done]
        screen.print_json({"experiments": objects, "artifacts": [str(index)]})
    else:
        screen.open_console().print(screen.overview([item.result for item in done]))
        screen.print_report_path(index)
    sys.exit(_exit_code(done, broken))


def _find_all(broken: dict[str, str]) -> dict[str, Experiment[Any]]:
    """Return all registered experiments; record those that cannot be loaded in `broken`."""
    experiments = {}
    for name in names():
        try:
            experiments[name] = find(name)
        except UnknownExperiment as error:
            screen.print_message(f"Error: {error}")
            broken[name] = str(error)
    return experiments


@click.command()
@click.argument("results", type=_folder)
@click.option(
    "--out", type=_folder, help="Folder for the pages and the figures.  [default: RESULTS]"
)
def report(results: Path, out: Path | None) -> None:
    """Write the pages and the figures for a results folder again."""
    with redirect_stdout(sys.stderr):
        index = build.build(results, out)
    screen.print_report_path(index)


# -- folders of results ---------------------------------------------------------------------------


def _discard(results: Iterable[tuple[Path, Study]]) -> None:
    """Discard the stored results of some studies, before the first of them runs."""
    click.get_current_context().meta[IS_FRESH] = True
    for folder, study in results:
        if folder.is_dir():
            with ResultStore(folder, study) as stored:
                stored.discard()


@contextmanager
def _exclusive_folder(
    folder: Path | None, kind: type[AnyManifest], experiment: str = ""
) -> Iterator[None]:
    """Lock a folder for the results of several experiments or settings, until the block ends.

    Creates the folder if it is missing. Raises `OtherResults` if it already holds results of
    another kind, or of another experiment than `experiment`. Stores the folder in the click
    context. Does nothing without a folder.
    """
    if folder is None:
        yield
        return
    create_folder(folder)
    with lock_folder(folder):
        with suppress(NoResults):
            existing = manifests.read_manifest(folder)
            if isinstance(existing, Reproduction):
                found, what = "", counted(len(existing.folders), "experiment")
            else:
                found = what = existing.experiment
            if not isinstance(existing, kind) or found != experiment:
                raise OtherResults(
                    f"{folder} already holds the results of {what} "
                    f"({existing.__struct_config__.tag}): choose another folder, or delete this one"
                )
        click.get_current_context().meta[RESULTS_FOLDER] = folder
        yield


@contextmanager
def _recorded_failure(name: str, broken: dict[str, str]) -> Iterator[None]:
    """If the experiment fails in the block, print its error and store it in `broken[name]`."""
    try:
        yield
    except ExperimentFailed as error:
        screen.print_failure(error)
        broken[name] = str(error)


def _print_result(console: Console, result: Result, *, has_page: bool) -> None:
    """Print the claims of a result and its first tables, about one screen in all."""
    claims = screen.claims_table(result)
    lines = len(console.render_lines(claims))
    console.print(claims)
    for position, content in enumerate(map(screen.table, result.score.tables)):
        lines += len(console.render_lines(content))
        if lines > _SCREEN:
            more = counted(len(result.score.tables) - position, "more table")
            where = "on the page" if has_page else "pass --out DIR for a page with all"
            console.print(f"{more}: {where}")
            break
        console.print(content)
    paper, ours = tables.summary(result.score.claims).values()  # in the order of the sources
    of_paper = "" if paper == "none" else f"Claims of the paper: {paper}. "
    console.print(f"{of_paper}Our own checks: {ours}.")
