"""From results to a report, anywhere the experiment can be imported.

    score = score(settings, columns),   charts = figures(settings, columns)

Both are pure functions of what the folder holds, so a report needs no replica. A folder of one
result gets a page and its figures; a sweep or a reproduction one page for all, and figures in a
folder for each.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayescontrol.files import atomic_write, writing_to
from bayescontrol.lab.chart import Chart
from bayescontrol.lab.experiment import find
from bayescontrol.lab.manifest import (
    Making,
    Manifest,
    NoResults,
    Reproduction,
    Sweep,
    read_manifest,
    results_in,
)
from bayescontrol.lab.provenance import versions
from bayescontrol.lab.replicas import ExperimentFailed
from bayescontrol.lab.runner import Result, score
from bayescontrol.lab.settings import describe, plain, restore
from bayescontrol.lab.store import read
from bayescontrol.report import figures
from bayescontrol.report.page import Section, page

_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def build(results: Path, out: Path | None = None) -> Path:
    """Score and draw what the folder `results` holds; the page, `out`/index.html.

    Without `out` the page and the figures lie with the results.

    >>> build(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    whole, place = read_manifest(results), results if out is None else out
    swept = whole.sweep if isinstance(whole, Sweep) else ()
    sections = []
    for folder in results_in(results):
        within = folder.relative_to(results)
        where = "" if within == Path() else within.as_posix()
        sections.append(replace(section_of(folder, place / within, swept), folder=where))
    broken = {} if isinstance(whole, Manifest) else whole.broken
    return write_page(title_of(whole), sections, place, broken)


def section(result: Result, folder: Path) -> Section:
    """Draw the figures of a result into `folder`; what a page in it shows of the result.

    >>> import tempfile
    >>> from types import SimpleNamespace as Some
    >>> from bayescontrol.lab.experiment import Score
    >>> still = Some(name="chain", summary="no figures", figures=lambda settings, columns: {})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     section(Result(still, {"runs": 4}, {}, Score(())), Path(place)).settings
    {'runs': 4}
    """
    charts = charts_of(result)
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart in charts.items():
            figures.save(chart, folder / name)
    # A page for many results must not hold all their columns.
    return Section(replace(result, columns={}), plain(result.settings), charts)


def charts_of(result: Result) -> dict[str, Chart]:
    """The charts of a result by the names of their files: figures(settings, columns).

    >>> from types import SimpleNamespace as Some
    >>> odd = Some(name="chain", figures=lambda settings, columns: {"../times": None})
    >>> charts_of(Result(odd, None, {}, None))
    Traceback (most recent call last):
    bayescontrol...ExperimentFailed: chain: figure '../times' becomes a file; ...
    """
    name = result.experiment.name
    try:
        charts = dict(result.experiment.figures(result.settings, result.columns))
    except Exception as error:  # whatever a user's code may raise
        raise ExperimentFailed(
            f"{name}: figures raised {type(error).__name__}: {error}, with {result.settings}"
        ) from error
    for label, chart in charts.items():
        if not _FILE.fullmatch(label):
            raise ExperimentFailed(
                f"{name}: figure {label!r} becomes a file; use letters, digits, - and _"
            )
        if not isinstance(chart, Chart):
            raise ExperimentFailed(
                f"{name}: figure {label!r} is a {type(chart).__name__}; return a Chart "
                "of bayescontrol.lab.chart"
            )
    return charts


def write_page(
    title: str,
    sections: Sequence[Section],
    folder: Path,
    broken: Mapping[str, str] | None = None,
) -> Path:
    """The page of one or several results, as FOLDER/index.html, whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_page("Report", [], Path(place)).name
    'index.html'
    """
    path = folder / "index.html"
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(page(title, sections, versions(), broken or {}).encode())
    return path


def section_of(folder: Path, place: Path | None = None, swept: Iterable[str] = ()) -> Section:
    """Score and draw one result, its figures into `place`; the label tells the swept settings.

    >>> section_of(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    stored = read(folder)
    manifest = stored.manifest
    if not manifest.complete:
        raise NoResults(
            f"{folder} holds {len(range(*manifest.replicas))} of {manifest.runs} runs, one shard: "
            "join the shards with `bayescontrol merge` first"
        )
    experiment = find(manifest.found)
    settings = restore(experiment.settings, manifest.settings)
    values = plain(settings)
    return replace(
        section(score(experiment, settings, stored.columns), folder if place is None else place),
        label=", ".join(f"{name} = {values[name]}" for name in swept),
        meaning={field.name: field.description for field in describe(experiment.settings)},
        provenance=_provenance(manifest),
    )


def title_of(manifest: Manifest | Sweep | Reproduction) -> str:
    """What stands over the page of a folder.

    >>> title_of(Reproduction(folders=("chain",)))
    "bayescontrol: the paper's claims and ours"
    """
    if isinstance(manifest, Manifest):
        return manifest.experiment
    if isinstance(manifest, Sweep):
        return f"{manifest.experiment} over {', '.join(manifest.sweep)}"
    return "bayescontrol: the paper's claims and ours"


def _provenance(manifest: Manifest) -> dict[str, Any]:
    return {
        "experiment": Path(manifest.found).name,  # of a file its name, not where it lies
        "started": manifest.started,
        "finished": manifest.finished,
        "key of the settings": manifest.key,
        **{f"sha256 of {name}": digest for name, digest in manifest.sha256.items()},
        **{_runs(making): _making(making) for making in manifest.made},
    }


def _runs(making: Making) -> str:
    spans = []
    for start, stop, step in making.runs:
        last = range(start, stop, step)[-1]
        few = f"{start}" if last == start else f"{start} to {last}"
        spans.append(few if step == 1 or last == start else f"{few} by {step}")
    return f"runs {', '.join(spans)}"


def _making(making: Making) -> dict[str, Any]:
    made = making.made
    git = "no repository"
    if made.git is not None:
        git = made.git.commit + (", and changes since" if made.git.dirty else "")
    return {"commit": git, "sha256 of the code": made.code, **made.machine, **made.versions}
