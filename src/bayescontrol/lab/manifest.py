"""FOLDER/manifest.json: what the folder contains and how it was produced.

    kind "results"      one experiment with one set of settings: key, hashes, provenance
    kind "sweep"        one experiment with several sets of settings, a folder for each
    kind "reproduce"    several experiments, a folder for each

The manifest is written last, when everything it lists is on disk.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bayescontrol._support.files import write_file
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.columns import SealedFile, Span, ranges_of
from bayescontrol.lab.provenance import Provenance

_FILE = "manifest.json"


class NoResults(BayesControlError, LookupError):
    """A folder has no results, or its manifest cannot be read."""


class RunsProvenance(msgspec.Struct, frozen=True):
    """Runs that have the same provenance."""

    runs: tuple[Span, ...]
    provenance: Provenance

    def __str__(self) -> str:
        texts = (f"{i} to {end - 1}" if end - i > 1 else f"{i}" for i, end in self.runs)
        return f"runs {', '.join(texts)}"

    def numbers(self) -> list[int]:
        """Return the numbers of the runs."""
        return [run for runs in self.runs for run in range(*runs)]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="results"):
    """One experiment with one set of settings.

    `found` is the name with which `bayescontrol.lab.find` opens the experiment again; `settings`
    is the input of `bayescontrol.lab.settings.restore`.
    """

    format: int = 1
    experiment: str
    found: str
    settings: dict[str, Any]
    seed: Any
    runs: int
    key: str
    sha256: dict[str, str]
    provenance: tuple[RunsProvenance, ...]
    started: str
    finished: str


class Sweep(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep"):
    """One experiment at every point of a sweep; `folders` are in the order of the points."""

    format: int = 1
    experiment: str
    found: str
    sweep: dict[str, list[Any]]
    folders: tuple[str, ...]
    broken: dict[str, str] = {}


class Reproduction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="reproduce"):
    """Several experiments; `broken` maps folders without results to the error."""

    format: int = 1
    folders: tuple[str, ...]
    broken: dict[str, str] = {}


AnyManifest: TypeAlias = Manifest | Sweep | Reproduction


def read_manifest(folder: Path) -> AnyManifest:
    """Read the manifest of a folder.

    >>> read_manifest(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: there is no ...
    """
    path = folder / _FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NoResults(
            f"{folder} holds no results: there is no readable {path}; pass a folder that "
            "`bayescontrol run` or `reproduce` has finished"
        ) from error
    try:
        return msgspec.json.decode(content, type=Manifest | Sweep | Reproduction)
    except msgspec.MsgspecError as error:
        raise NoResults(
            f"{path} cannot be read ({error}): repeat the command that wrote the folder"
        ) from error


def write_manifest(folder: Path, manifest: AnyManifest) -> Path:
    """Write manifest.json atomically."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return write_file(folder / _FILE, content)


def results_in(folder: Path) -> tuple[Path, ...]:
    """Return the folders of single results: the folder itself, or those of a sweep or batch."""
    manifest = read_manifest(folder)
    if isinstance(manifest, Manifest):
        return (folder,)
    return tuple(folder / name for name in manifest.folders if name not in manifest.broken)


def provenance_of_runs(
    wanted: Sequence[int], files: Iterable[SealedFile], known: Iterable[RunsProvenance]
) -> tuple[RunsProvenance, ...]:
    """Group the wanted runs by provenance.

    The provenance of a run comes from the last of the `files` that contains the run, or else from
    `known`, the provenance in a manifest.

    >>> first, second = Provenance({"numpy": "1.26"}, {}), Provenance({"numpy": "2.0"}, {})
    >>> known = [RunsProvenance(((0, 4),), first), RunsProvenance(((4, 6),), second)]
    >>> [str(part) for part in provenance_of_runs(range(1, 6), [], known)]
    ['runs 1 to 3', 'runs 4 to 5']
    """
    by_run = {run: part.provenance for part in known for run in part.numbers()}
    for file in files:
        if file.header.provenance is not None:
            by_run.update(dict.fromkeys(file.runs, file.header.provenance))
    groups: dict[bytes, tuple[Provenance, list[int]]] = {}
    for run in wanted:
        one = by_run.get(run, Provenance({}, {}))
        groups.setdefault(msgspec.json.encode(one), (one, []))[1].append(run)
    return tuple(
        RunsProvenance(tuple((r.start, r.stop) for r in ranges_of(runs)), one)
        for one, runs in groups.values()
    )
