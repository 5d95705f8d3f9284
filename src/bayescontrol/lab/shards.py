"""Split a study into shards for job arrays, each in its own folder, and merge them.

    shard i of n:   runs i - 1, i - 1 + n, i - 1 + 2n, ...      i = 1 .. n

With more runs a shard keeps its runs and gets new ones, so that none is run twice. Merging requires
that all shards have the same key, that no run is missing, and that a run found twice is the same
byte for byte.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.columns import assemble, missing, progressions, require_same
from bayescontrol.lab.manifest import Manifest, read_manifest
from bayescontrol.lab.sealed_npz import SealedFile, open_sealed
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import ResultStore, Study

_TEXT: Final = re.compile(r"(\d+)/(\d+)")


class CannotMerge(BayesControlError, ValueError):
    """Shards have different settings, contradict each other, or leave runs out."""


@dataclass(frozen=True)
class Shard:
    """Shard i of n, counted from 1.

    >>> Shard.parse("2/3").of(10)
    range(1, 10, 3)
    """

    i: int
    n: int

    def __post_init__(self) -> None:
        if not 1 <= self.i <= self.n:
            raise InvalidSettings(f"shard {self}: it must be i/n with 1 <= i <= n, say 1/4")

    def __str__(self) -> str:
        return f"{self.i}/{self.n}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse i/n, as written on the command line."""
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise InvalidSettings(f"shard {text}: write i/n with 1 <= i <= n, say 1/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, runs: int) -> range:
        """Return the runs of this shard."""
        if self.i > runs:
            raise InvalidSettings(
                f"shard {self}: with runs={runs} it has no runs; use at most {runs} shards"
            )
        return range(self.i - 1, runs, self.n)


def merge(out: Path, folders: Sequence[Path]) -> Manifest:
    """Merge the shards in `folders`, and the runs in `out`, to all runs in `out`.

    >>> merge(Path("out"), [Path("no-such-folder")])
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    manifests = [_manifest(folder) for folder in folders]
    first = manifests[0]
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.key != first.key:
            raise CannotMerge(
                f"{folder} holds {manifest.experiment} with {manifest.settings}, {folders[0]} "
                f"holds {first.experiment} with {first.settings}: merge shards of one experiment "
                "with the same settings"
            )
    runs = max(manifest.runs for manifest in manifests)
    study = Study(first.experiment, first.found, {**first.settings, "runs": runs}, first.key)
    with ResultStore(out, study) as store:
        parts = [folder for folder in folders if folder.resolve() != out.resolve()]
        files = [open_sealed(folder / "columns.npz") for folder in parts]
        everything = [*files, *store.files]
        gaps = missing(range(runs), everything)
        if gaps:
            raise CannotMerge(
                f"{sum(map(len, gaps))} of {runs} runs are missing: {_format_runs(gaps)}; "
                "run the missing shards with the same settings"
            )
        for (one, other), shared in _overlaps(everything).items():
            _require_equal(study.name, everything[one], everything[other], shared)
        store.finish(range(runs), files, [part for m in manifests for part in m.provenance])
    return store.results.manifest


def _manifest(folder: Path) -> Manifest:
    if (folder / "pending").is_dir():
        raise CannotMerge(f"{folder} is not finished: repeat the command that writes it")
    manifest = read_manifest(folder)
    if not isinstance(manifest, Manifest):
        raise CannotMerge(f"{folder} holds several results: name the folders of shards")
    return manifest


def _overlaps(files: Sequence[SealedFile]) -> dict[tuple[int, int], list[int]]:
    """Return the runs that two files share, for each such pair."""
    latest: dict[int, int] = {}
    shared: dict[tuple[int, int], list[int]] = {}
    for number, file in enumerate(files):
        for run in file.runs:
            if run in latest:
                shared.setdefault((latest[run], number), []).append(run)
            latest[run] = number
    return shared


def _require_equal(name: str, one: SealedFile, other: SealedFile, shared: Sequence[int]) -> None:
    require_same(name, (one.runs[0], one.layout()), (other.runs[0], other.layout()))
    for column in one.layout():
        for runs in progressions(shared):
            first, second = (
                assemble(name, runs, [file], only=column)[column] for file in (one, other)
            )
            for run, a, b in zip(runs, first, second, strict=True):
                if a.tobytes() != b.tobytes():
                    raise CannotMerge(
                        f"{name}: run {run} differs in column {column!r} between {one.path} and "
                        f"{other.path}: they were run with different code; run one again"
                    )


def _format_runs(gaps: Sequence[range]) -> str:
    parts = []
    for runs in gaps[:5]:
        step = f" in steps of {runs.step}" if runs.step > 1 else ""
        parts.append(f"{runs[0]}-{runs[-1]}{step}" if len(runs) > 1 else f"{runs[0]}")
    return ", ".join(parts) + (" and more" if len(gaps) > 5 else "")
