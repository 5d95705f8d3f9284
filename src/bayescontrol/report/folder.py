"""The files of a results folder other than the columns, and the objects that `--json` prints.

    FOLDER/manifest.json       contents and provenance                 (bayescontrol.lab.store)
    FOLDER/columns.npz         the replicas                            (bayescontrol.lab.store)
    FOLDER/claims.json         the `--json` object with reasons and versions
    FOLDER/FIGURE.png, .pdf    each figure                             (bayescontrol.report.build)
    FOLDER/index.html          the page                                (bayescontrol.report.build)

The folder of a sweep or a reproduction has an index.html with links to the pages, and a folder for
each result. A sweep adds claims.csv: one row for each point and claim. JSON has no NaN or
infinities: they are written as the strings "NaN", "Infinity" and "-Infinity", which Python's
`float` and JavaScript's `Number` read back.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayescontrol._support.files import write_file
from bayescontrol.lab.experiment import Score, Table
from bayescontrol.lab.provenance import versions
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import Point, plain
from bayescontrol.report.tables import number, number_and_verdict

_KEYS: Final = ("name", "claim", "source", "expected", "ours", "error", "holds")
#: Keys added in later versions; in claims.csv these columns follow all others.
_ADDED: Final = ("verdict", "exact", "place", "threshold_origin")
#: Points of a sweep in one table on a terminal.
_POINTS: Final = 4


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
            {key: plain(getattr(claim, key)) for key in (*_KEYS, *_ADDED)}
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


def sweep_tables(scores: Sequence[tuple[Point, Score]]) -> list[Table]:
    """Return the numbers of all claims, a column for each point of a sweep, and all tables.

    >>> from bayescontrol.lab import Claim
    >>> claim = Claim("x", "x is 1", "ours", 1.0, 1.0, None, True)
    >>> sweep_tables([(Point(None, {"C": 5}, ""), Score((claim,)))])[0].header
    ('claim', 'expected', 'C = 5')
    """
    names = ", ".join(scores[0][0].swept) if scores else ""
    by_name = [{claim.name: claim for claim in score.claims} for _, score in scores]
    expected: dict[str, str] = {}
    for claim in (claim for _, score in scores for claim in score.claims):
        text = number(claim.expected)
        expected[claim.name] = text if expected.get(claim.name, text) == text else "varies"
    tables = []
    for start in range(0, len(scores) if expected else 0, _POINTS):
        part = slice(start, start + _POINTS)
        rows = (
            (name, text, *(number_and_verdict(found.get(name)) for found in by_name[part]))
            for name, text in expected.items()
        )
        header = ("claim", "expected", *(point.label for point, _ in scores[part]))
        tables.append(Table(f"Our numbers over {names}", header, tuple(rows)))
    return tables + merged_tables([(point.swept, score) for point, score in scores])


def merged_tables(scores: Iterable[tuple[Mapping[str, object], Score]]) -> list[Table]:
    """Merge equal tables of the points of a sweep; the swept values are the first columns.

    >>> score = Score((), (Table("Regret", ("agent", "mean"), (("rule", 2.0),)),))
    >>> merged_tables([({"k": 1}, score), ({"k": 2}, score)])[0].rows
    ((1, 'rule', 2.0), (2, 'rule', 2.0))
    """
    found: dict[tuple[str, tuple[str, ...]], Table] = {}
    for swept, score in scores:
        values = tuple(v if isinstance(v, int | float) else str(v) for v in swept.values())
        for table in score.tables:
            header = (*swept, *table.header)
            merged = found.setdefault((table.title, header), replace(table, header=header, rows=()))
            rows = (*merged.rows, *((*values, *row) for row in table.rows))
            found[table.title, header] = replace(merged, rows=rows)
    return list(found.values())


def write_sweep_claims(scores: Sequence[tuple[Point, Score]], folder: Path) -> Path:
    """Write claims.csv, with one row for each point and claim.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = write_sweep_claims([(Point(None, {"C": 5}, "5e1f"), Score(()))], Path(place))
    ...     path.read_text().strip()
    'C,name,claim,source,expected,ours,error,holds,folder,verdict,exact,place,threshold_origin'
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow((*(scores[0][0].swept if scores else ()), *_KEYS, "folder", *_ADDED))
    for point, score in scores:
        for claim in score.claims:
            values, added = ([plain(getattr(claim, k)) for k in keys] for keys in (_KEYS, _ADDED))
            lines.writerow((*point.swept.values(), *values, point.folder, *added))
    return write_file(folder / "claims.csv", text.getvalue().encode())
