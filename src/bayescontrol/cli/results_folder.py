"""Results folders: run missing replicas, publish the results, `merge` and `report`."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Final

import click

from bayescontrol._support.files import create_folder, lock_folder
from bayescontrol.cli import screen
from bayescontrol.cli.workers import WorkerPool
from bayescontrol.errors import counted
from bayescontrol.lab import store
from bayescontrol.lab.experiment import Experiment, ExperimentFailed, all_ours_hold
from bayescontrol.lab.manifest import AnyManifest, NoResults, Reproduction, read_manifest
from bayescontrol.lab.progress import live
from bayescontrol.lab.runner import run_replicas, wanted_runs
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import OtherResults, ResultStore, Shard, StoredResults, Study
from bayescontrol.report import folder as folders
from bayescontrol.report.build import build, section_of
from bayescontrol.report.page import Section

#: Keys in the click context: the folder with the finished replicas, and whether --fresh was used.
RESULTS_FOLDER: Final = "bayescontrol.kept"
IS_FRESH: Final = "bayescontrol.fresh"


def run_into(
    folder: Path,
    experiment: Experiment[Any],
    settings: Any,
    pool: WorkerPool,
    found: str,
    label: str,
    *,
    keep_stale: bool,
    shard: Shard | None = None,
) -> StoredResults:
    """Run the replicas that are missing or stale in the folder, and return all results.

    `found` is the name that finds the experiment from any folder; `label` is shown as progress.
    """
    wanted = wanted_runs(experiment, settings, shard)
    study = Study.of(experiment, settings, found)
    with ResultStore(folder, study, keep_stale=keep_stale) as results:
        click.get_current_context().meta.setdefault(RESULTS_FOLDER, folder)
        missing = sum(map(len, results.missing(wanted)))
        if missing < len(wanted):
            to_run = f"{missing} to run" if missing else "nothing to run"
            found_runs = f"{len(wanted) - missing} of {len(wanted)} replicas found"
            screen.print_message(f"{label}: {found_runs}, {to_run}")
        executor = pool.executor() if missing > 1 else None
        with live(label) if missing else nullcontext() as progress:
            run_replicas(
                experiment, settings, 1, progress, executor=executor, store=results, shard=shard
            )
        return results.results


def publish(
    results: Path | StoredResults, name: str = "", swept: Iterable[str] = ()
) -> tuple[Section, tuple[Path, ...]]:
    """Score and draw the results of a folder, or results in memory; write the claims and the page.

    `name` is the folder relative to that of an index; `swept` are the names of the settings that a
    sweep varies. Returns the section for the index, and the paths of all files, the page last.
    """
    folder = results if isinstance(results, Path) else results.folder
    section = section_of(results, name=name, swept=swept)
    folders.write_claims(section.result, folder)
    return section, folders.paths_of(folder, list(section.charts))


def stale_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --keep-stale and --fresh to a command."""
    keep_stale = click.option(
        "--keep-stale", is_flag=True, help="Use stored replicas even if the code has changed since."
    )
    fresh = click.option(
        "--fresh", is_flag=True, help="Discard the stored replicas first and run all of them."
    )
    return keep_stale(fresh(command))


def check_stale_options(keep_stale: bool, fresh: bool, out: Path | None) -> None:
    """Raise if both options are used, or one of them without a folder of results."""
    if (keep_stale and fresh) or (out is None and (keep_stale or fresh)):
        raise InvalidSettings("use either --keep-stale or --fresh, and only together with --out")


def discard(results: Iterable[tuple[Path, Study]]) -> None:
    """Discard the stored results of some studies, before the first of them runs."""
    click.get_current_context().meta[IS_FRESH] = True
    for folder, study in results:
        if folder.is_dir():
            with ResultStore(folder, study) as stored:
                stored.discard()


@contextmanager
def exclusive_folder(folder: Path, is_ours: Callable[[AnyManifest], bool]) -> Iterator[None]:
    """Lock a folder for the results of several experiments or settings, until the block ends.

    Creates the folder if it is missing. Raises `OtherResults` if the folder already holds results
    whose manifest `is_ours` does not accept. Stores the folder in the click context.
    """
    create_folder(folder)
    with lock_folder(folder):
        with suppress(NoResults):
            existing = read_manifest(folder)
            if not is_ours(existing):
                if isinstance(existing, Reproduction):
                    what = counted(len(existing.folders), "experiment")
                else:
                    what = existing.experiment
                raise OtherResults(
                    f"{folder} already holds the results of {what} "
                    f"({existing.__struct_config__.tag}): choose another folder, or delete this one"
                )
        click.get_current_context().meta[RESULTS_FOLDER] = folder
        yield


@contextmanager
def recorded_failure(name: str, pool: WorkerPool, broken: dict[str, str]) -> Iterator[None]:
    """If the experiment fails in the block, print its error and store it in `broken[name]`.

    Then the workers are restarted.
    """
    try:
        yield
    except ExperimentFailed as error:
        screen.print_failure(error)
        broken[name] = str(error)
        pool.renew()


_folder = click.Path(path_type=Path)


@click.command()
@click.argument("out", type=_folder)
@click.argument("parts", metavar="SHARD...", type=_folder, nargs=-1, required=True)
@click.option("--keep-stale", is_flag=True, help="Join the shards even if their code differs.")
@screen.json_option()
def merge(out: Path, parts: tuple[Path, ...], keep_stale: bool, as_json: bool) -> None:
    """Join folders written by run --shard into OUT, and check the claims."""
    with redirect_stdout(sys.stderr):
        store.merge(out, parts, keep_stale=keep_stale)
        section, paths = publish(out)
    if as_json:
        screen.print_json(folders.as_object(section.result, paths))
    else:
        screen.print_result(screen.open_console(), section.result, has_page=True)
        screen.print_report_path(paths[-1])
    sys.exit(0 if all_ours_hold(section.result.score.claims) else 1)


@click.command()
@click.argument("results", type=_folder)
@click.option(
    "--out", type=_folder, help="Folder for the pages and the figures.  [default: RESULTS]"
)
def report(results: Path, out: Path | None) -> None:
    """Write the pages and the figures for a results folder again."""
    with redirect_stdout(sys.stderr):
        index = build(results, out)
    screen.print_report_path(index)
