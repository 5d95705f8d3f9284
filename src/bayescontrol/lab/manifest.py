"""FOLDER/manifest.json: what the folder holds, and how it came about.

    kind "results"      one experiment at one setting: settings, key, hashes, with what it was made
    kind "sweep"        one experiment at several settings, a folder for each
    kind "reproduce"    several experiments, a folder for each

It is written last, when everything that it speaks of is on the disk.
"""

from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bayescontrol.errors import BayesControlError
from bayescontrol.files import atomic_write, writing_to
from bayescontrol.lab.provenance import Made

#: Runs: first, last + 1, step.
Span: TypeAlias = tuple[int, int, int]

_FILE = "manifest.json"


class NoResults(BayesControlError, LookupError):
    """A folder holds no results, or a manifest that cannot be read.

    >>> issubclass(NoResults, LookupError)
    True
    """


class Making(msgspec.Struct, frozen=True):
    """Which runs were made with what.

    >>> Making(((0, 300, 1),), Made({}, {}, "")).runs
    ((0, 300, 1),)
    """

    runs: tuple[Span, ...]
    made: Made


class Manifest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="results"):
    """One experiment at one setting.

    `found` is the name under which `bayescontrol.lab.find` opens the experiment again;
    `settings` is what `bayescontrol.lab.settings.restore` reads back; `replicas` are the runs
    in columns.npz: all of them, or one shard's.

    >>> Manifest.__struct_config__.tag
    'results'
    """

    format: int = 1
    experiment: str
    found: str
    settings: dict[str, Any]
    seed: Any
    runs: int
    key: str
    replicas: Span
    sha256: dict[str, str]
    made: tuple[Making, ...]
    started: str
    finished: str

    @property
    def complete(self) -> bool:
        """Whether all runs are there, not only a shard of them."""
        return self.replicas == (0, self.runs, 1)


class Sweep(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep"):
    """One experiment over the product of some settings; `folders` in the order of the product.

    >>> Sweep(experiment="chain", found="chain", sweep={"k": [1, 2]}, folders=()).broken
    {}
    """

    format: int = 1
    experiment: str
    found: str
    sweep: dict[str, list[Any]]
    folders: tuple[str, ...]
    broken: dict[str, str] = {}


class Reproduction(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="reproduce"):
    """Several experiments; `broken` says of each folder without results what went wrong.

    >>> Reproduction(folders=("chain", "delusion")).folders
    ('chain', 'delusion')
    """

    format: int = 1
    folders: tuple[str, ...]
    broken: dict[str, str] = {}


def read_manifest(folder: Path) -> Manifest | Sweep | Reproduction:
    """What the folder says of itself.

    >>> read_manifest(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: there is no ...
    """
    path = folder / _FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NoResults(
            f"{folder} holds no results: there is no {path} that can be read; name a folder "
            "that `bayescontrol run`, `merge` or `reproduce` finished"
        ) from error
    try:
        return msgspec.json.decode(content, type=Manifest | Sweep | Reproduction)
    except msgspec.MsgspecError as error:
        raise NoResults(
            f"{path} cannot be read ({error}): give the command that made the folder again"
        ) from error


def write_manifest(folder: Path, manifest: Manifest | Sweep | Reproduction) -> Path:
    """Write manifest.json, whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = write_manifest(Path(place), Reproduction(folders=("chain",)))
    ...     read_manifest(Path(place)).folders
    ('chain',)
    """
    path = folder / _FILE
    with writing_to(path.parent), atomic_write(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return path


def results_in(folder: Path) -> tuple[Path, ...]:
    """The folders of single results: the folder itself, or those of a sweep or a reproduction.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = write_manifest(Path(place), Reproduction(folders=("chain",)))
    ...     [path.name for path in results_in(Path(place))]
    ['chain']
    """
    manifest = read_manifest(folder)
    if isinstance(manifest, Manifest):
        return (folder,)
    return tuple(folder / name for name in manifest.folders if name not in manifest.broken)
