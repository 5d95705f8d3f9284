"""The files of a results folder other than the columns, and the objects that `--json` prints.

    FOLDER/manifest.json       contents and provenance                 (bayescontrol.lab.store)
    FOLDER/columns.npz         the replicas                            (bayescontrol.lab.store)
    FOLDER/claims.json         the `--json` object with reasons and versions
    FOLDER/FIGURE.png, .pdf    each figure                             (bayescontrol.report.build)
    FOLDER/index.html          the page                                (bayescontrol.report.build)

A sweep adds FOLDER/claims.csv: one row for each point and claim. JSON has no NaN or infinities:
they are written as the strings "NaN", "Infinity" and "-Infinity", which Python's `float` and
JavaScript's `Number` read back.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bayescontrol.files import write_file
from bayescontrol.lab.experiment import Score, Table
from bayescontrol.lab.provenance import versions
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import Point, plain
from bayescontrol.report.tables import number, with_error

_KEYS: Final = ("name", "claim", "source", "expected", "ours", "error", "holds")
#: Keys added in later versions; in claims.csv these columns follow all others.
_ADDED: Final = ("verdict", "exact", "place", "threshold_origin")


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
    """Return the files of one result other than its page.

    >>> [path.name for path in paths_of(Path("chain"), ["times"])]
    ['manifest.json', 'columns.npz', 'claims.json', 'times.png', 'times.pdf']
    """
    drawn = [f"{name}.{kind}" for name in figures for kind in ("png", "pdf")]
    return tuple(folder / name for name in ("manifest.json", "columns.npz", "claims.json", *drawn))


def write_claims(result: Result, folder: Path) -> Path:
    """Write claims.json: the `--json` object with reasons and versions."""
    content = as_object(result)
    del content["artifacts"], content["code"]  # the manifest states the code
    for claim, entry in zip(result.score.claims, content["claims"], strict=True):
        entry["reason"] = claim.reason
    content["versions"] = versions()
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_file(folder / "claims.json", f"{text}\n".encode())


def sweep_table(scores: Sequence[tuple[Point, Score]]) -> Table:
    """Return a table of the claims of all points of a sweep.

    >>> sweep_table([(Point(None, {"C": 5}, ""), Score(()))]).header
    ('C', 'claim', 'source', 'expected', 'ours', 'verdict')
    """
    names = tuple(scores[0][0].swept) if scores else ()
    rows = tuple(
        (
            *(number(value) if isinstance(value, float) else str(value) for value in values),
            claim.name,
            claim.source,
            number(claim.expected),
            with_error(claim.ours, claim.error),
            claim.verdict,
        )
        for point, score in scores
        for values in (point.swept.values(),)
        for claim in score.claims
    )
    header = (*names, "claim", "source", "expected", "ours", "verdict")
    return Table(f"Claims over {', '.join(names)}", header, rows)


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
