"""An experiment into a folder: what is there is used, what is missing is run, then published."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from bayescontrol.cli.crew import Crew
from bayescontrol.cli.screen import say
from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.progress import live
from bayescontrol.lab.runner import run_replicas, wanted_runs
from bayescontrol.lab.shards import Shard
from bayescontrol.lab.store import ResultStore, StoredResults, Study
from bayescontrol.report import folder as folders
from bayescontrol.report.build import section_of
from bayescontrol.report.page import Section

#: Where in the context stands the folder that keeps what is done, should the command stop.
KEPT: Final = "bayescontrol.kept"


def run_into(
    folder: Path,
    experiment: Experiment[Any],
    settings: Any,
    crew: Crew,
    *,
    found: str = "",
    label: str = "",
    shard: Shard | None = None,
) -> StoredResults:
    """Run the replicas that the folder lacks, report how many it has, and return the results.

    >>> import tempfile
    >>> from bayescontrol.lab import find
    >>> from dataclasses import replace
    >>> entropy = find("entropy")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = run_into(Path(place), entropy, replace(entropy.quick, runs=1), Crew())
    ...     (Path(place) / "columns.npz").is_file(), results.manifest.complete
    (True, True)
    """
    label, wanted = label or experiment.name, wanted_runs(experiment, settings, shard)
    context = click.get_current_context(silent=True)
    with ResultStore(folder, Study.of(experiment, settings, found)) as store:
        if context is not None:
            context.meta.setdefault(KEPT, folder)
        left = sum(map(len, store.missing(wanted)))
        if left < len(wanted):
            rest = f"{left} to run" if left else "nothing to run"
            say(f"{label}: {len(wanted) - left} of {len(wanted)} replicas found, {rest}")
        if not left:
            run_replicas(experiment, settings, store=store, shard=shard)
            return store.results
        executor = crew.executor() if left > 1 else None
        with live(label) as progress:
            run_replicas(
                experiment, settings, 1, progress, executor=executor, store=store, shard=shard
            )
        return store.results


def publish(
    results: Path | StoredResults, swept: Iterable[str] = ()
) -> tuple[Section, tuple[Path, ...]]:
    """Score and draw results, write their claims, and return the files other than the page.

    Pass a folder, or results that are already in memory.

    >>> publish(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    folder = results if isinstance(results, Path) else results.folder
    section = section_of(results, swept=swept)
    folders.write_claims(section.result, folder)
    return section, folders.paths_of(folder, list(section.charts))
