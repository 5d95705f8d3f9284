"""Build reports from stored results, wherever the experiment can be imported.

    score = score(settings, columns),   charts = figures(settings, columns)

Both are pure functions of the stored columns, so a report runs no replica. Each folder of a result
gets a page and its figures. A sweep or a reproduction also gets an index with links to the pages; a
sweep has a figure of its claims there.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayescontrol._support.files import create_folder, write_file, writing_to
from bayescontrol.lab.columns import format_runs
from bayescontrol.lab.experiment import FILE_NAME, ExperimentFailed, failures_of
from bayescontrol.lab.manifest import (
    Manifest,
    NoResults,
    Reproduction,
    RunsProvenance,
    Sweep,
    read_manifest,
    results_in,
)
from bayescontrol.lab.provenance import Provenance, study_sources, versions
from bayescontrol.lab.registry import find
from bayescontrol.lab.runner import Result, score
from bayescontrol.lab.settings import describe, plain, restore
from bayescontrol.lab.store import StoredResults, read
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart
from bayescontrol.report.page import Section, index, page
from bayescontrol.report.sweep import sweep_charts

_log = logging.getLogger(__name__)
_PAGE: Final = "index.html"


def build(results: Path, out: Path | None = None) -> Path:
    """Score and draw the results in a folder; return the page or the index, `out`/index.html.

    Without `out`, pages and figures are written beside the results.

    >>> build(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    manifest, target = read_manifest(results), out or results
    swept = manifest.sweep if isinstance(manifest, Sweep) else ()
    sections = []
    for folder in results_in(results):
        relative = folder.relative_to(results)
        name = "" if relative == Path() else relative.as_posix()
        sections.append(section_of(folder, target / relative, name, swept))
        if sections[-1].warning:
            _log.warning("%s: %s", folder, sections[-1].warning)
    if isinstance(manifest, Manifest):
        return target / _PAGE
    return write_index(title_of(manifest), sections, target, manifest.broken)[0]


def section(result: Result, folder: Path) -> Section:
    """Write the figures of a result to `folder` and return its section of a page."""
    charts = charts_of(result)
    _save_charts(charts, folder)
    # The index of many results must not hold all their columns.
    return Section(replace(result, columns={}), plain(result.settings), charts)


def _save_charts(charts: Mapping[str, Chart], folder: Path) -> None:
    create_folder(folder)
    with writing_to(folder):
        for name, chart in charts.items():
            figures.save(chart, folder / name)


def charts_of(result: Result) -> dict[str, Chart]:
    """Return the charts of a result by file name; raise if a name or a chart is invalid."""
    name = result.experiment.name
    with failures_of(name, "figures", result.settings):
        charts = dict(result.experiment.figures(result.settings, result.columns))
    for label, chart in charts.items():
        if not FILE_NAME.fullmatch(label):
            raise ExperimentFailed(
                f"{name}: figure {label!r} is not a valid file name; use letters, digits, - and _"
            )
        if not isinstance(chart, Chart):
            raise ExperimentFailed(
                f"{name}: figure {label!r} is a {type(chart).__name__}; return a Chart "
                "of bayescontrol.plot.chart"
            )
    return charts


def write_page(section: Section, folder: Path) -> Path:
    """Write the page of one result to FOLDER/index.html, atomically."""
    create_folder(folder)
    return write_file(folder / _PAGE, page(section, versions()).encode())


def write_index(
    title: str, sections: Sequence[Section], folder: Path, broken: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """Write the index of several results to FOLDER/index.html, and the figures of a sweep.

    Returns the paths, the index first.
    """
    charts = sweep_charts(sections)
    _save_charts(charts, folder)
    content = index(title, sections, versions(), broken or {}, charts).encode()
    drawn = (folder / f"{name}.{kind}" for name in charts for kind in ("png", "pdf"))
    return (write_file(folder / _PAGE, content), *drawn)


def section_of(
    results: Path | StoredResults,
    place: Path | None = None,
    name: str = "",
    swept: Iterable[str] = (),
) -> Section:
    """Score and draw one result; write page and figures to `place`, by default its own folder.

    `results` is a folder, or results already in memory. `name` is the folder relative to that of
    the index, empty if there is no index. `swept` names the settings that a sweep varies.
    """
    stored = read(results) if isinstance(results, Path) else results
    folder, manifest = stored.folder, stored.manifest
    if not manifest.complete:
        raise NoResults(
            f"{folder} holds {len(range(*manifest.replicas))} of {manifest.runs} runs, one shard: "
            "merge the shards with `bayescontrol merge` first"
        )
    experiment = find(manifest.found)
    settings = restore(experiment.settings, manifest.settings)
    place = place or folder
    result = score(experiment, settings, stored.columns)
    drawn = section(replace(result, provenance=manifest.provenance), place)
    done = replace(
        drawn,
        folder=name,
        swept={key: drawn.settings[key] for key in swept},
        meaning={field.name: field.description for field in describe(experiment.settings)},
        provenance=_provenance(manifest),
        warning=_describe_changes(manifest, study_sources(experiment)),
    )
    write_page(done, place)
    return done


def title_of(manifest: Sweep | Reproduction) -> str:
    """Return the title of the index of a folder."""
    if isinstance(manifest, Sweep):
        return f"{manifest.experiment} over {', '.join(manifest.sweep)}"
    return "bayescontrol: the claims of the paper and our results"


def _provenance(manifest: Manifest) -> dict[str, Any]:
    return {
        # A registered name, or file.py:attribute without its folder.
        "experiment": Path(manifest.found).name,
        "started": manifest.started,
        "finished": manifest.finished,
        "key of the settings": manifest.key,
        **{f"sha256 of {name}": digest for name, digest in manifest.sha256.items()},
        **{_format_runs(part): _describe(part.provenance) for part in manifest.provenance},
    }


def _describe_changes(manifest: Manifest, now: dict[str, str]) -> str:
    """Return a sentence for each part of the runs whose code differs from the code now."""
    sentences = []
    for part in manifest.provenance:
        if changed := part.provenance.changed_modules(now):
            names = ", ".join(changed) if part.provenance.sources else "the old code is unknown"
            sentences.append(f"The code has changed since {_format_runs(part)}: {names}.")
    return " ".join(sentences)


def _format_runs(part: RunsProvenance) -> str:
    return f"runs {format_runs(range(*span) for span in part.runs)}"


def _describe(provenance: Provenance) -> dict[str, Any]:
    git = provenance.git
    return {
        "commit": git.commit + ", and changes since" * git.dirty if git else "no repository",
        "sha256 of the code": provenance.sources or provenance.code,
        **provenance.machine,
        **provenance.versions,
    }
