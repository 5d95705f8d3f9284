"""`bayescontrol reproduce`: run all experiments and write a report with a page for each."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from bayescontrol.cli import results_folder, screen
from bayescontrol.cli.workers import WorkerPool, worker_options
from bayescontrol.lab.executors import available_cores
from bayescontrol.lab.experiment import Experiment, all_ours_hold
from bayescontrol.lab.manifest import Reproduction, write_manifest
from bayescontrol.lab.registry import UnknownExperiment, find, from_anywhere, names
from bayescontrol.lab.store import Study, manifest_of
from bayescontrol.report import folder as folders
from bayescontrol.report.build import title_of, write_index
from bayescontrol.report.tables import overview


@click.command()
@click.argument("more", metavar="[NAME]...", nargs=-1)
@click.option("--quick/--full", default=True, help="Quick size (minutes) or the size in the paper.")
@click.option("--only", metavar="NAME,...", multiple=True, help="Run only these experiments.")
@worker_options(default="every core")
@results_folder.stale_options
@click.option("--out", type=click.Path(path_type=Path), default=Path("report"), show_default=True)
@screen.json_option()
def reproduce(
    more: tuple[str, ...],
    quick: bool,
    only: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    keep_stale: bool,
    fresh: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Run all experiments and write a report: each claim, our number, and whether it holds."""
    results_folder.check_stale_options(keep_stale, fresh, out)
    names_given = map(str.strip, ",".join((*only, *more)).split(","))
    requested = tuple(dict.fromkeys(filter(None, names_given)))
    broken: dict[str, str] = {}
    chosen = {name: find(name) for name in requested} if requested else _find_all(broken)
    if not chosen and not broken:
        raise UnknownExperiment("no experiment is registered: reinstall the package")
    sizes = {name: e.quick if quick else e.full for name, e in chosen.items()}
    max_runs = max((settings.runs for settings in sizes.values()), default=1)
    workers = workers or (None if dask else available_cores())
    done = []
    with (
        results_folder.exclusive_folder(out, lambda existing: isinstance(existing, Reproduction)),
        WorkerPool(workers, dask, max_runs, list(chosen)) as pool,
    ):
        # Fail before the first run if a folder holds the results of other settings.
        studies = [(out / e.name, Study.of(e, sizes[name])) for name, e in chosen.items()]
        for place, one in studies:
            manifest_of(place, one)
        if fresh:
            results_folder.discard(studies)
        for position, (name, experiment) in enumerate(chosen.items(), 1):
            label = f"{experiment.name} ({position} of {len(chosen)})"
            study = (out / experiment.name, experiment, sizes[name], pool, from_anywhere(name))
            with (
                redirect_stdout(sys.stderr),
                results_folder.recorded_failure(experiment.name, pool, broken),
            ):
                results = results_folder.run_into(*study, label, keep_stale=keep_stale)
                done.append(results_folder.publish(results, experiment.name))
        tried = tuple(dict.fromkeys((*(e.name for e in chosen.values()), *broken)))
        manifest = Reproduction(folders=tried, broken=broken)
        write_manifest(out, manifest)
        index, *_ = write_index(title_of(manifest), [section for section, _ in done], out, broken)
    if as_json:
        objects = [folders.as_object(section.result, paths) for section, paths in done]
        screen.print_json({"experiments": objects, "artifacts": [str(index)]})
    else:
        screen.open_console().print(overview([section.result for section, _ in done]))
        screen.print_report_path(index)
    if broken:
        sys.exit(3)
    sys.exit(0 if all(all_ours_hold(section.result.score.claims) for section, _ in done) else 1)


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
