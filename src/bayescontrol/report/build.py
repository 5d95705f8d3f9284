"""Build reports from stored results, wherever the experiment can be imported.

    score = score(settings, columns),   charts = figures(settings, columns)

Both are pure functions of the stored columns, so a report runs no replica.

    FOLDER/manifest.json       contents and provenance                 (bayescontrol.lab.store)
    FOLDER/columns.npz         the replicas                            (bayescontrol.lab.store)
    FOLDER/claims.json         the `--json` object with reasons and versions
    FOLDER/FIGURE.png, .pdf    each figure
    FOLDER/index.html          the page

The folder of a sweep or a reproduction has an index.html with links to the pages, and a folder for
each result. A sweep adds claims.csv, one row for each point and claim, and a figure of its claims.
JSON has no NaN or infinities: they are written as the strings "NaN", "Infinity" and "-Infinity",
which Python's `float` and JavaScript's `Number` read back.
"""

import csv
import io
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from bayescontrol._support.files import create_folder, write_file, writing_to
from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import (
    FILE_NAME,
    Claim,
    ExperimentFailed,
    Score,
    Table,
    failures_of,
)
from bayescontrol.lab.manifest import Manifest, Reproduction, Sweep, read_manifest, results_in
from bayescontrol.lab.provenance import Provenance, study_sources, versions
from bayescontrol.lab.runner import Result, score
from bayescontrol.lab.settings import Point, describe, plain, restore
from bayescontrol.lab.store import StoredResults, read
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Marker, Panel, Scale, Series
from bayescontrol.report.page import Section, charts_page, index, page

_log = logging.getLogger(__name__)
_PAGE: Final = "index.html"
#: The fields of a claim in claims.json and claims.csv.
_CLAIM_FIELDS: Final = (
    "name", "claim", "source", "expected", "ours", "error", "holds", "verdict", "exact", "place",
    "threshold_origin",
)  # fmt: skip
# In the chart of a sweep:
#: An axis is logarithmic if its values are positive and span at least this factor.
_LOG_RATIO: Final = 30.0
#: Numbers with a smaller relative difference count as equal.
_ROUNDING: Final = 1e-9
#: The panels in a row.
_COLUMNS: Final = 3
#: The lines in a panel that a reader can distinguish.
_MOST_LINES: Final = 6


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
        sections.append(write_section(folder, target / relative, name, swept))
        if sections[-1].warning:
            _log.warning("%s: %s", folder, sections[-1].warning)
    if isinstance(manifest, Manifest):
        return target / _PAGE
    page_path, *_ = write_index(title_of(manifest), sections, target, manifest.broken)
    return page_path


def section(result: Result, folder: Path) -> Section:
    """Write the figures of a result to `folder` and return its section of a page."""
    charts = charts_of(result)
    _save_charts(charts, folder)
    # The index of many results must not hold all their columns.
    return Section(replace(result, columns={}), plain(result.settings), charts)


def _save_charts(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write each chart as PNG and PDF; return the files."""
    create_folder(folder)
    with writing_to(folder):
        saved = (figures.save(chart, folder / name) for name, chart in charts.items())
        return [path for paths in saved for path in paths]


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


def write_charts(
    title: str, summary: str, charts: Mapping[str, Chart], content: Sequence[Table], folder: Path
) -> Path:
    """Write a page with tables and charts to FOLDER/index.html, and the figures beside it."""
    _save_charts(charts, folder)
    text = charts_page(title, summary, charts, content, versions())
    return write_file(folder / _PAGE, text.encode())


def write_index(
    title: str, sections: Sequence[Section], folder: Path, broken: Mapping[str, str] = {}
) -> tuple[Path, ...]:
    """Write the index of several results to FOLDER/index.html, and the figures of a sweep.

    Returns the paths: the index, then the figures.
    """
    charts = sweep_charts(sections)
    pictures = _save_charts(charts, folder)
    content = index(title, sections, versions(), broken, charts).encode()
    return (write_file(folder / _PAGE, content), *pictures)


def write_section(
    results: Path | StoredResults,
    target: Path | None = None,
    name: str = "",
    swept: Iterable[str] = (),
) -> Section:
    """Score and draw one result, write its page and figures, and return its section.

    They are written to `target`, by default the folder of the result.

    `results` is a folder, or results already in memory. `name` is the folder relative to that of
    the index, empty if there is no index. `swept` names the settings that a sweep varies.
    """
    stored = read(results) if isinstance(results, Path) else results
    manifest, target = stored.manifest, target or stored.folder
    experiment = find(manifest.found)
    settings = restore(experiment.settings, manifest.settings)
    result = score(experiment, settings, stored.columns)
    bare = section(replace(result, provenance=manifest.provenance), target)
    done = replace(
        bare,
        folder=name,
        swept={key: bare.settings[key] for key in swept},
        meaning={field.name: field.description for field in describe(experiment.settings)},
        provenance=_provenance_rows(manifest),
        warning=_describe_changes(manifest, study_sources(experiment)),
    )
    write_page(done, target)
    return done


def title_of(manifest: Sweep | Reproduction) -> str:
    """Return the title of the index of a folder."""
    if isinstance(manifest, Sweep):
        return f"{manifest.experiment} over {', '.join(manifest.sweep)}"
    return "bayescontrol: the claims of the paper and our results"


def _provenance_rows(manifest: Manifest) -> dict[str, Any]:
    """Return the provenance of a result as its page lists it."""
    return {
        # A registered name, or file.py:attribute without its folder.
        "experiment": Path(manifest.found).name,
        "started": manifest.started,
        "finished": manifest.finished,
        "key of the settings": manifest.key,
        **{f"sha256 of {name}": digest for name, digest in manifest.sha256.items()},
        **{str(part): _describe_provenance(part.provenance) for part in manifest.provenance},
    }


def _describe_changes(manifest: Manifest, now: dict[str, str]) -> str:
    """Return a sentence for each part of the runs whose code differs from the code now."""
    sentences = []
    for part in manifest.provenance:
        if changed := part.provenance.changed_modules(now):
            names = ", ".join(changed) if part.provenance.sources else "the old code is unknown"
            sentences.append(f"The code has changed since {part}: {names}.")
    return " ".join(sentences)


def _describe_provenance(provenance: Provenance) -> dict[str, Any]:
    """Return the commit, code, machine and versions that produced some runs."""
    git = provenance.git
    return {
        "commit": git.commit + ", and changes since" * git.dirty if git else "no repository",
        "sha256 of the code": provenance.sources,
        **provenance.machine,
        **provenance.versions,
    }


# -- claims --------------------------------------------------------------------------------------


def as_object(result: Result, artifacts: Sequence[Path] = ()) -> dict[str, Any]:
    """Return {experiment, settings, claims, artifacts, code}, the output of `run --json`.

    >>> from types import SimpleNamespace as Some
    >>> result = Result(Some(name="chain"), {"runs": 4}, {}, Score(()))
    >>> as_object(result, [Path("report/index.html")])["artifacts"]
    ['report/index.html']
    """
    return {
        "experiment": result.experiment.name,
        "settings": plain(result.settings),
        "claims": [
            {key: plain(getattr(claim, key)) for key in _CLAIM_FIELDS}
            for claim in result.score.claims
        ],
        "artifacts": [str(path) for path in artifacts],
        "code": plain(result.provenance),
    }


def paths_of(folder: Path, figures: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of one result, its page last.

    >>> [path.name for path in paths_of(Path("chain"), ["times"])]
    ['manifest.json', 'columns.npz', 'claims.json', 'times.png', 'times.pdf', 'index.html']
    """
    drawn = [f"{name}.{kind}" for name in figures for kind in ("png", "pdf")]
    names = ("manifest.json", "columns.npz", "claims.json", *drawn, "index.html")
    return tuple(folder / name for name in names)


def write_claims(result: Result, folder: Path) -> Path:
    """Write claims.json: the `--json` object with reasons and versions."""
    content = as_object(result)
    del content["artifacts"], content["code"]  # the manifest states the code
    for claim, entry in zip(result.score.claims, content["claims"], strict=True):
        entry["reason"] = claim.reason
    content["versions"] = versions()
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_file(folder / "claims.json", f"{text}\n".encode())


def write_sweep_claims(scores: Sequence[tuple[Point, Score]], folder: Path) -> Path:
    """Write claims.csv, with one row for each point and claim.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_sweep_claims([(Point(None, {"C": 5}, "5e1f"), Score(()))], Path(folder))
    ...     path.read_text().strip()
    'C,name,claim,source,expected,ours,error,holds,verdict,exact,place,threshold_origin,folder'
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow((*(scores[0][0].swept if scores else ()), *_CLAIM_FIELDS, "folder"))
    for point, scored in scores:
        for claim in scored.claims:
            values = (plain(getattr(claim, field)) for field in _CLAIM_FIELDS)
            lines.writerow((*point.swept.values(), *values, point.folder))
    return write_file(folder / "claims.csv", text.getvalue().encode())


# -- the chart of a sweep --------------------------------------------------------------------------


def sweep_charts(sections: Sequence[Section]) -> dict[str, Chart]:
    """Return the chart of a sweep by file name; empty if no numbers can be drawn.

    There is a panel for each claim. Its horizontal axis is the swept setting with the most numbers
    as values; there is a line for each combination of the values of the other settings. A chart
    needs a swept setting with two numbers or more, and at most six lines in a panel.
    """
    # The different numbers of each swept setting.
    swept = {
        name: {section.swept[name] for section in sections if _is_number(section.swept[name])}
        for name in (sections[0].swept if sections else ())
    }
    axis = max(swept, key=lambda name: len(swept[name]), default="")
    lines: dict[str, list[Section]] = {}
    for section in sections:
        if axis and _is_number(section.swept[axis]):
            rest = (f", {name} = {value}" for name, value in section.swept.items() if name != axis)
            lines.setdefault("".join(rest), []).append(section)  # by the other settings, as text
    if len(swept.get(axis, ())) < 2 or len(lines) > _MOST_LINES:
        return {}
    all_claims = (claim for section in sections for claim in section.result.score.claims)
    names = dict.fromkeys(claim.name for claim in all_claims)
    panels = [panel for name in names if (panel := _panel(name, axis, lines)) is not None]
    if not panels:
        return {}
    chart = Chart(
        f"Our numbers against {axis}",
        panels,
        "Each panel shows the number of one claim; its sentence is on the page of each point. "
        "A dotted line is the value that the claim expects, where it expects a number. Claims "
        "with the same number at all points are only in the table.",
        columns=min(_COLUMNS, len(panels)),
        note="bands: ± 2 standard errors",
    )
    return {"sweep": chart}


def _panel(name: str, axis: str, lines: Mapping[str, Sequence[Section]]) -> Panel | None:
    """Return the panel of one claim; None unless it has different numbers at two points.

    `lines` has the sections of each line, by the text of its settings other than `axis`.
    """
    series: list[Series] = []
    for k, (label, sections) in enumerate(lines.items()):
        found = {
            float(str(section.swept[axis])): claim
            for section in sections
            for claim in section.result.score.claims
            if claim.name == name and _is_number(claim.ours)
        }
        if len(found) > 1:
            series += _series(sorted(found.items()), label, k)
    # Only series of our numbers have bounds; those of expected numbers have none.
    ours = np.array([y for one in series if one.low is not None for y in one.y])
    if not series or np.ptp(ours) <= _ROUNDING * np.abs(ours).max():
        return None
    x = np.concatenate([one.x for one in series])
    scale: Scale = "log" if x.min() > 0 and x.max() >= _LOG_RATIO * x.min() else "linear"
    return Panel(name, axis, "our number", series, xscale=scale, legend="below")


def _series(found: Sequence[tuple[float, Claim]], label: str, k: int) -> list[Series]:
    """Return line k of a panel: our numbers, and the expected ones if all are numbers.

    `found` has the claim at each value of the swept setting; `label` names the other settings.
    """
    x = np.array([value for value, _ in found])
    ours = np.array([float(claim.ours) for _, claim in found])
    # Two standard errors; the error of an exact number is a tolerance, and is not drawn.
    bar = 2 * np.array([0.0 if claim.exact else claim.error or 0.0 for _, claim in found])
    group = f"ours{label}"  # a common group has a common colour
    series = [Series(group, x, ours, ours - bar, ours + bar, marker=get_args(Marker)[k])]
    if all(_is_number(claim.expected) for _, claim in found):
        expected = np.array([float(claim.expected) for _, claim in found])
        series.append(Series(f"expected{label}", x, expected, dash="dot", group=group))
    return series


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
