"""Results on disk: a finished replica is never run twice, and a damaged one never used.

    FOLDER/manifest.json                              what the folder contains, written last
    FOLDER/columns.npz                                the requested runs in order
    FOLDER/pending/runs-00000000-00000031.npz         finished groups, not yet in columns.npz

The key of a folder is a hash of the experiment and its settings without `runs`: with more runs,
only the new ones are run. Every file is sealed and replaced atomically, so a kill at any time loses
only the replicas in progress. A file that is truncated, altered or of another key is named in the
log, renamed, and its runs are run again.

Every replica records the code that produced it (`Provenance.sources`). A replica of other code than
today's, or of unknown code, is stale: it is run again, unless the store is opened with
`keep_stale=True`. Stale files stay on disk until `finish` has replaced them.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from bayescontrol._support.files import create_folder, leftovers, lock_folder, writing_to
from bayescontrol.errors import BayesControlError, counted
from bayescontrol.lab import columns as sealed
from bayescontrol.lab import manifest as manifests
from bayescontrol.lab.columns import Damaged, Header, Layout, SealedFile, assemble, open_sealed
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed
from bayescontrol.lab.manifest import Manifest, NoResults, RunsProvenance, provenance_of_runs
from bayescontrol.lab.provenance import Provenance, provenance_of, source_of
from bayescontrol.lab.settings import key, plain

_log = logging.getLogger(__name__)
#: Packages whose versions may change results. Another version is reported, but not stale.
_RELEVANT_PACKAGES: Final = ("numpy", "scipy", "numba")


class OtherResults(BayesControlError, ValueError):
    """The folder belongs to another experiment or to other settings."""


@dataclass(frozen=True)
class Study:
    """An experiment with one set of settings; `find(found)` opens the experiment again.

    >>> Study("chain", "chain", {"seed": 0, "runs": 10}, "5e1f").runs
    10
    """

    name: str
    found: str
    settings: dict[str, Any]
    key: str
    provenance: Provenance | None = None
    is_in_file: bool = True  # otherwise changes of the code cannot be seen

    @classmethod
    def of(cls, experiment: Experiment[Any], settings: Any, found: str = "") -> Self:
        """Return the study of an experiment; pass `found` if it was loaded from a file."""
        name, digest = experiment.name, key(experiment.name, settings)  # validates the settings
        is_in_file, provenance = source_of(experiment.run) is not None, provenance_of(experiment)
        return cls(name, found or name, plain(settings), digest, provenance, is_in_file)

    @property
    def runs(self) -> int:
        """The requested number of runs."""
        return int(self.settings["runs"])

    def provenance_of_all(self) -> tuple[RunsProvenance, ...]:
        """Return the provenance of all runs if they are run now."""
        runs = ((0, self.runs),)
        return (RunsProvenance(runs, self.provenance),) if self.provenance else ()

    def mismatch_hint(self) -> str:
        """Return the end of an error message about a folder of another study."""
        return f"not {self.name} with {self.settings}: use another folder, or remove this one"


def manifest_of(folder: Path, study: Study) -> Manifest | None:
    """Return the manifest of the study's folder, or None if there is no readable manifest.

    Raise `OtherResults` if the folder belongs to another study.

    >>> manifest_of(Path("no-such-folder"), Study("chain", "chain", {}, "5e1f")) is None
    True
    """
    try:
        manifest = manifests.read_manifest(folder)
    except NoResults as error:
        if (folder / "manifest.json").exists():
            _log.warning("%s; it will be replaced", error)
        return None
    if not isinstance(manifest, Manifest):
        raise OtherResults(f"{folder} holds several results, {study.mismatch_hint()}")
    if manifest.key != study.key:
        content = f"{manifest.experiment} with {manifest.settings}"
        raise OtherResults(f"{folder} holds {content}, {study.mismatch_hint()}")
    return manifest


@dataclass(frozen=True)
class StoredResults:
    """Verified results of a folder."""

    folder: Path
    manifest: Manifest
    columns: Columns


def read(folder: Path) -> StoredResults:
    """Read the finished results of a folder; raise `Damaged` if a file was changed.

    >>> read(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    manifest = manifests.read_manifest(folder)
    if not isinstance(manifest, Manifest):
        example = folder / next(iter(manifest.folders), "FOLDER")
        raise NoResults(f"{folder} holds several results: pass a subfolder, e.g. {example}")
    file = open_sealed(folder / "columns.npz")
    if file.sha256 != manifest.sha256.get("columns.npz"):
        raise Damaged(
            f"{file.path} is not the file listed in manifest.json: repeat the command that "
            "wrote the folder"
        )
    return StoredResults(folder, manifest, assemble(manifest.experiment, file.runs, [file]))


class ResultStore:
    """The folder of one study, locked for writing by this process.

    With `keep_stale`, replicas that were run with other code are used, with a warning.

    >>> import tempfile
    >>> import numpy as np
    >>> study, here = Study("squares", "", {"runs": 3, "seed": 0}, "5e1f"), Provenance({}, {})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with ResultStore(Path(place), study) as store:
    ...         store.put(range(2), {"y": np.array([0, 1])}, here)
    ...     with ResultStore(Path(place), study) as store:
    ...         left = store.missing(range(3))
    ...         store.put(left[0], {"y": np.array([4])}, here)
    ...         left, store.finish(range(3))["y"].tolist()
    ([range(2, 3)], [0, 1, 4])
    """

    def __init__(self, folder: Path, study: Study, *, keep_stale: bool = False) -> None:
        self.folder, self.study, self._keep_stale = folder, study, keep_stale
        self._columns, self._pending = folder / "columns.npz", folder / "pending"
        self.files: list[SealedFile] = []
        self._stale: dict[Path, set[int]] = {}  # the stale runs of each file
        self._layout: Layout = {}
        #: The manifest of the folder, if it has one.
        self.manifest: Manifest | None = None
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        create_folder(self.folder)
        with ExitStack() as stack:  # unlocks the folder if it cannot be read
            stack.enter_context(lock_folder(self.folder))
            self._read_folder()
            self._lock = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def missing(self, wanted: range) -> list[range]:
        """Return the wanted runs that are stale or not yet on disk."""
        return sealed.ranges_of(set(wanted) - self._valid_runs(self.files))

    def discard(self) -> None:
        """Remove all results of the study from the folder."""
        with writing_to(self.folder):
            (self.folder / "manifest.json").unlink(missing_ok=True)
            for path in self._paths():
                path.unlink()
        self.files, self.manifest = [], None

    def put(self, runs: range, columns: Columns, provenance: Provenance) -> None:
        """Write some finished replicas to disk; raise if a worker ran other code than the study."""
        now = self.study.provenance or provenance
        sources = provenance.sources.items()
        changed = [name for name, digest in sources if now.sources.get(name, digest) != digest]
        if changed:
            raise ExperimentFailed(
                f"{self.study.name}: a worker ran other code than this process "
                f"({', '.join(changed)}); use the same files on every machine, and do not change "
                "them while workers start"
            )
        if self.files:
            self._layout = self._layout or self.files[0].layout()
            found = (runs[0], sealed.layout_of(columns))
            sealed.require_same(self.study.name, (self.files[0].runs[0], self._layout), found)
        provenance = msgspec.structs.replace(provenance, git=now.git, sources=now.sources)
        self._write_pending(runs, columns, provenance)

    def finish(self, wanted: range) -> Columns:
        """Join the wanted runs in columns.npz, write the manifest, and return the columns."""
        columns = assemble(self.study.name, wanted, self.files)
        files, previous = list(self.files), self.manifest
        if previous is not None and self._is_finished(previous, wanted):
            self._drop_pending(self.files[0])
            return columns
        known = previous.provenance if previous else ()
        self._keep_unwanted(wanted, known)
        header = Header(self.study.key, (wanted.start, wanted.stop))
        joined = sealed.write_sealed(self._columns, columns, header)
        self._stale.pop(self._columns, None)
        starts = [file.header.written_at for file in files if file.header.written_at]
        self.manifest = Manifest(
            experiment=self.study.name, found=self.study.found, settings=self.study.settings,
            seed=self.study.settings.get("seed"), runs=self.study.runs, key=self.study.key,
            sha256={self._columns.name: joined.sha256},
            provenance=provenance_of_runs(wanted, files, known),
            started=min([*starts, *([previous.started] if previous else [])], default=_now()),
            finished=_now(),
        )  # fmt: skip
        manifests.write_manifest(self.folder, self.manifest)
        self._drop_pending(joined)
        return columns

    def _paths(self) -> list[Path]:
        """Return the files with columns."""
        return [*self.folder.glob("columns.npz"), *sorted(self._pending.glob("runs-*.npz"))]

    def _valid_runs(self, files: Iterable[SealedFile]) -> set[int]:
        """Return the runs in these files that are not stale."""
        valid = (set(file.runs) - self._stale.get(file.path, set()) for file in files)
        return set[int]().union(*valid)

    def _read_folder(self) -> None:
        """Open and verify all files; change nothing if they belong to another study."""
        files, damaged = [], []
        for path in self._paths():
            try:
                files.append(open_sealed(path))
            except Damaged as error:
                damaged.append((path, str(error)))
        ours = [file for file in files if file.header.key == self.study.key]
        self.manifest = manifest_of(self.folder, self.study)
        if self.manifest is None and files and not ours:
            content = "unfinished runs of other settings"
            raise OtherResults(f"{self.folder} holds {content}, {self.study.mismatch_hint()}")
        damaged += [(f.path, f"{f.path} belongs to other settings") for f in files if f not in ours]
        for path, problem in damaged:
            renamed = path.with_name(f"{path.name}.damaged")
            with writing_to(self.folder):
                path.replace(renamed)
            _log.warning("%s; renamed to %s, its runs are run again", problem, renamed.name)
        for path in (*leftovers(self.folder), *leftovers(self._pending)):
            path.unlink(missing_ok=True)
        self.files, self._stale = ours, {}
        if self.study.provenance is not None:
            self._find_stale(self.study.provenance)

    def _find_stale(self, now: Provenance) -> None:
        """Find stale runs, log a warning about other code and versions, and drop stale files."""
        known = self.manifest.provenance if self.manifest else ()
        changed, packages = set[str](), set[str]()
        for file in self.files:
            for part in provenance_of_runs(file.runs, [file], known):
                one = part.provenance
                if one.sources == now.sources:
                    versions = {(n, one.versions.get(n)) for n in _RELEVANT_PACKAGES}
                    packages.update(name for name, _ in versions - now.versions.items())
                else:
                    self._stale.setdefault(file.path, set()).update(part.numbers())
                    changed.update(one.changed_modules(now.sources) if one.sources else ["unknown"])
        if stale_runs := set[int]().union(*self._stale.values()) - self._valid_runs(self.files):
            _log.warning(
                "%s: the code of %s differs from the code now (changed: %s). They are %s",
                self.folder,
                counted(len(stale_runs), "replica"),
                ", ".join(sorted(changed)),
                "used as they are" if self._keep_stale else "replaced; --keep-stale uses them",
            )
        if packages:
            _log.warning(
                "%s: some replicas were run with another version of %s; they are used as they "
                "are. --fresh runs all of them again",
                self.folder,
                ", ".join(sorted(packages)),
            )
        if self.files and not self.study.is_in_file:
            _log.warning("%s: run is in no file, changes of its code are not seen", self.folder)
        if self._keep_stale:
            # The last file that has a run is used.
            self.files.sort(key=lambda file: file.path not in self._stale)
            self._stale = {}
        else:
            self.files = [file for file in self.files if self._valid_runs([file])]
            if self._columns not in {file.path for file in self.files}:
                self.manifest = None

    def _is_finished(self, manifest: Manifest, wanted: range) -> bool:
        """Return whether the folder already holds exactly the wanted runs, in columns.npz.

        Then the first of `files` is the one in the manifest, and no later file, which would be
        used in its place, has any of these runs.
        """
        return (
            len(self.files) > 0
            and not self._valid_runs(self.files[1:]).intersection(wanted)
            and manifest.settings == self.study.settings
            and manifest.found == self.study.found
            and self.files[0].runs == wanted
            and manifest.sha256 == {self.files[0].path.name: self.files[0].sha256}
        )

    def _keep_unwanted(self, wanted: range, known: Sequence[RunsProvenance]) -> None:
        """Copy finished runs that are not in `wanted` to pending files, to keep them."""
        for file in [file for file in self.files if file.path == self._columns]:  # one or none
            pending = [other for other in self.files if other is not file]
            extra = self._valid_runs([file]) - self._valid_runs(pending) - set(wanted)
            for part in provenance_of_runs(sorted(extra), [file], known):
                for runs in (range(*span) for span in part.runs):
                    columns = assemble(self.study.name, runs, [file])
                    self._write_pending(runs, columns, part.provenance)

    def _write_pending(self, runs: range, columns: Columns, provenance: Provenance) -> None:
        """Write finished runs to a pending file, and add the file to `files`."""
        with writing_to(self._pending):
            self._pending.mkdir(exist_ok=True)
        path = self._pending / f"runs-{runs[0]:08d}-{runs[-1]:08d}.npz"
        header = Header(self.study.key, (runs.start, runs.stop), provenance, _now())
        self.files.append(sealed.write_sealed(path, columns, header))
        self._stale.pop(path, None)

    def _drop_pending(self, joined: SealedFile) -> None:
        """Remove all pending files but those with valid runs that are not in the joined file."""
        pending = [file for file in self.files if file.path != joined.path]
        left = [file for file in pending if not self._valid_runs([file]) <= set(joined.runs)]
        paths = {joined.path, *(file.path for file in left)}
        with writing_to(self._pending):
            for path in self._paths():
                if path not in paths:
                    path.unlink(missing_ok=True)
            if self._pending.is_dir() and not any(self._pending.iterdir()):
                self._pending.rmdir()
        self.files = [joined, *left]


def _now() -> str:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
