"""What an experiment leaves on disk, and the object that `--json` prints.

    FOLDER/index.html          the page
    FOLDER/claims.json         the object of `--json` with reasons and versions
    FOLDER/columns.npz         the columns, one .npy each; no pickle, the same bytes each time
    FOLDER/FIGURE.png, .pdf    each figure

JSON has no NaN or infinities: they are written as the strings "NaN", "Infinity" and
"-Infinity", which Python's `float` and JavaScript's `Number` read back.
"""

import json
import math
import platform
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.runner import ExperimentFailed, Result
from bayescontrol.report import figures
from bayescontrol.report.page import Section, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Artifacts",
    "Unwritable",
    "as_object",
    "plain",
    "prepare",
    "versions",
    "write",
    "write_page",
]

_KEYS: Final = ("name", "claim", "source", "expected", "ours", "error", "holds")
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Unwritable(BayesControlError, OSError):
    """The folder for results cannot be made or written to.

    >>> issubclass(Unwritable, OSError)
    True
    """


@dataclass(frozen=True)
class Artifacts:
    """The files of one result, and what the page shows of it.

    >>> list(Artifacts.__dataclass_fields__)
    ['paths', 'section']
    """

    paths: tuple[Path, ...]
    section: Section


def plain(value: Any) -> Any:
    """Any settings or numbers as JSON can hold them; NaN and infinities become strings.

    >>> plain({"eps": math.nan, "depths": (1, math.inf), "name": "chain"})
    {'eps': 'NaN', 'depths': [1, 'Infinity'], 'name': 'chain'}
    """
    bare = msgspec.to_builtins(value)
    if isinstance(bare, Mapping):
        return {str(key): plain(item) for key, item in bare.items()}
    if isinstance(bare, list | tuple):
        return [plain(item) for item in bare]
    if isinstance(bare, float) and not math.isfinite(bare):
        return "NaN" if math.isnan(bare) else "Infinity" if bare > 0 else "-Infinity"
    return bare


def as_object(result: Result, artifacts: Sequence[Path] = ()) -> dict[str, Any]:
    """{experiment, settings, claims, artifacts}: what `bayescontrol run --json` prints.

    >>> from types import SimpleNamespace as Some
    >>> from bayescontrol.lab.experiment import Outcome
    >>> result = Result(Some(name="chain"), {"runs": 4}, {}, Outcome(()))
    >>> as_object(result, [Path("report/index.html")])["artifacts"]
    ['report/index.html']
    """
    return {
        "experiment": result.experiment.name,
        "settings": plain(result.settings),
        "claims": [
            {key: plain(getattr(claim, key)) for key in _KEYS} for claim in result.outcome.claims
        ],
        "artifacts": [str(path) for path in artifacts],
    }


def versions() -> dict[str, str]:
    """What the numbers were made with; nothing is imported to find out.

    >>> "bayescontrol" in versions() and "python" in versions()
    True
    """
    found = {name: version(name) for name in ("bayescontrol", "numpy", "numba", "matplotlib")}
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def prepare(folder: Path) -> None:
    """Make the folder and try to write to it, before any time is spent on a run.

    >>> prepare(Path(__file__) / "report")
    Traceback (most recent call last):
    bayescontrol.report.folder.Unwritable: cannot write to .../report: ...
    """
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write(result: Result, folder: Path, *, with_page: bool = True) -> Artifacts:
    """Draw the figures and write everything that belongs to one result.

    >>> from types import SimpleNamespace as Some
    >>> from bayescontrol.lab.experiment import Outcome
    >>> still = Some(name="chain", summary="no figures", figures=lambda settings, columns: {})
    >>> result = Result(still, {"runs": 4}, {"y": np.arange(4)}, Outcome(()))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in write(result, Path(place)).paths]
    ['claims.json', 'columns.npz', 'index.html']
    """
    prepare(folder)
    images = _draw(result)
    paths: list[Path] = []
    with _writing_to(folder):
        for label, drawing in images.items():
            paths += figures.save(drawing, folder / label)
        paths += [_write_claims(result, folder), _write_columns(result.columns, folder)]
    section = Section(
        result,
        plain(result.settings),
        {label: (folder / f"{label}.png").read_bytes() for label in images},
    )
    if with_page:
        paths.append(write_page(result.experiment.name, [section], folder))
    return Artifacts(tuple(paths), section)


def write_page(title: str, sections: Sequence[Section], folder: Path) -> Path:
    """The page of one or several results, as FOLDER/index.html.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_page("Report", [], Path(place)).name
    'index.html'
    """
    path = folder / "index.html"
    with _writing_to(folder):
        path.write_text(page(title, sections, versions()), encoding="utf-8")
    return path


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(
            f"cannot write to {folder}: {error.strerror or error}; name another folder"
        ) from error


def _draw(result: Result) -> "dict[str, Figure]":
    name = result.experiment.name
    try:
        drawn = dict(result.experiment.figures(result.settings, result.columns))
    except Exception as error:
        raise ExperimentFailed(
            f"{name}: figures raised {type(error).__name__}: {error}, with {result.settings}"
        ) from error
    for label in drawn:
        if not _FILE.fullmatch(label):
            raise ExperimentFailed(
                f"{name}: figure {label!r} becomes a file; use letters, digits, - and _"
            )
    return drawn


def _write_claims(result: Result, folder: Path) -> Path:
    content = as_object(result)
    del content["artifacts"]
    for claim, written in zip(result.outcome.claims, content["claims"], strict=True):
        written["reason"] = claim.reason
    path = folder / "claims.json"
    content["versions"] = versions()
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _write_columns(columns: Columns, folder: Path) -> Path:
    path = folder / "columns.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in columns.items():
            # A `ZipInfo` of its own carries no clock time; large columns need zip64.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return path
