"""Results on disk: a finished replica is never run twice, and a damaged one never used.

    FOLDER/manifest.json                              what it holds, written last
    FOLDER/columns.npz                                the runs that were asked for, in their order
    FOLDER/pending/runs-00000000-00000031.npz         finished groups that are not yet in it

The key of a folder is a hash of the experiment and its settings without `runs`: with more runs,
only the new ones are run. Every file is sealed and replaced as a whole, so that a kill at any
moment loses what was being run and nothing else. What is torn, altered or of another key is
named in the log, set aside under another name, and run again.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from bayescontrol.files import leftovers, lock_folder, writing_to
from bayescontrol.lab.assembly import assemble, missing, span
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.making import makings
from bayescontrol.lab.manifest import Making, Manifest, NoResults, read_manifest, write_manifest
from bayescontrol.lab.pieces import (
    Damaged,
    File,
    Layout,
    Note,
    layout_of,
    open_sealed,
    write_sealed,
)
from bayescontrol.lab.provenance import Made
from bayescontrol.lab.replicas import require_same
from bayescontrol.lab.study import OtherResults, Study, manifest_of

_log = logging.getLogger(__name__)
_DECIDING: Final = ("bayescontrol", "numpy", "numba")  # versions that may change a number


@dataclass(frozen=True)
class Stored:
    """Results read back from a folder, verified.

    >>> list(Stored.__dataclass_fields__)
    ['folder', 'manifest', 'columns']
    """

    folder: Path
    manifest: Manifest
    columns: Columns


def read(folder: Path) -> Stored:
    """The finished results of a folder; `Damaged` names a file that is not as it was written.

    >>> read(Path("no-such-folder"))
    Traceback (most recent call last):
    bayescontrol.lab.manifest.NoResults: no-such-folder holds no results: ...
    """
    manifest = read_manifest(folder)
    if not isinstance(manifest, Manifest):
        raise NoResults(f"{folder} holds several results: name one of its folders")
    file = open_sealed(folder / "columns.npz")
    if file.sha256 != manifest.sha256.get("columns.npz"):
        raise Damaged(
            f"{file.path} is not the file that manifest.json speaks of: give the command that "
            "made the folder again"
        )
    return Stored(folder, manifest, assemble(manifest.experiment, file.runs, [file]))


class ResultStore:
    """The folder of one study, with this process as its only writer.

    >>> import tempfile
    >>> import numpy as np
    >>> study, made = Study("squares", "", {"runs": 3, "seed": 0}, "5e1f"), Made({}, {}, "")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with ResultStore(Path(place), study) as store:
    ...         store.put(range(2), {"y": np.array([0, 1])}, made)
    ...     with ResultStore(Path(place), study) as store:
    ...         left = store.missing(range(3))
    ...         store.put(left[0], {"y": np.array([4])}, made)
    ...         left, store.finish(range(3))["y"].tolist()
    ([range(2, 3)], [0, 1, 4])
    """

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder, self.study = folder, study
        self._columns, self._pending = folder / "columns.npz", folder / "pending"
        self.files: list[File] = []
        self._layout: Layout = {}
        self._manifest: Manifest | None = None
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(lock_folder(self.folder))
        try:
            self._take_stock()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def missing(self, wanted: range) -> list[range]:
        """The wanted runs that are not yet on disk."""
        return missing(wanted, self.files)

    def put(self, runs: range, columns: Columns, made: Made) -> None:
        """Keep some finished replicas: from now on they survive."""
        there = self.files[0] if self.files else None
        if there is not None:
            self._layout = self._layout or there.layout()
            found = (runs[0], layout_of(columns))
            require_same(self.study.name, (there.runs[0], self._layout), found)
        self._write_pending(runs, columns, msgspec.structs.replace(made, git=self.study.git))

    def finish(
        self, wanted: range, others: Sequence[File] = (), made: Sequence[Making] = ()
    ) -> Columns:
        """Join the wanted runs in columns.npz, write the manifest, and give them back.

        `others` are files of other folders with the same key, made as `made` says.
        """
        files = [*others, *self.files]
        columns = assemble(self.study.name, wanted, files)
        if self._is_finished(wanted):
            self._drop_pending(self.files[0])
            return columns
        before = self._manifest
        known = [*made, *(before.made if before else ())]
        self._keep_unwanted(wanted, known)
        note = Note(self.study.key, span(wanted))
        joined = File(self._columns, note, write_sealed(self._columns, columns, note))
        starts = [file.note.at for file in files if file.note.at]
        self._manifest = Manifest(
            experiment=self.study.name,
            found=self.study.found,
            settings=self.study.settings,
            seed=self.study.settings.get("seed"),
            runs=self.study.runs,
            key=self.study.key,
            replicas=span(wanted),
            sha256={self._columns.name: joined.sha256},
            made=makings(wanted, files, known),
            started=min([*starts, *([before.started] if before else [])], default=_now()),
            finished=_now(),
        )
        write_manifest(self.folder, self._manifest)
        self._drop_pending(joined)
        return columns

    def _take_stock(self) -> None:
        """Look at everything that is there; touch nothing if it belongs to another study."""
        paths = [path for path in (self._columns,) if path.exists()]
        paths += sorted(self._pending.glob("runs-*.npz"))
        files, damaged = [], []
        for path in paths:
            try:
                files.append(open_sealed(path))
            except Damaged as error:
                damaged.append((path, str(error)))
        ours = [file for file in files if file.note.key == self.study.key]
        self._manifest = manifest_of(self.folder, self.study)
        if self._manifest is None and files and not ours:
            raise OtherResults(
                f"{self.folder} holds unfinished runs of other settings, {self.study.way_out()}"
            )
        strays = [file.path for file in files if file not in ours]
        damaged += [(path, f"{path} belongs to other settings") for path in strays]
        for path, problem in damaged:
            aside = path.with_name(f"{path.name}.damaged")
            with writing_to(self.folder):
                path.replace(aside)
            _log.warning("%s; it is kept as %s, and its runs are run again", problem, aside.name)
        for path in (*leftovers(self.folder), *leftovers(self._pending)):
            path.unlink(missing_ok=True)
        self.files = ours
        self._warn_of_changes()

    def _warn_of_changes(self) -> None:
        now = self.study.made
        makers = [making.made for making in self._manifest.made] if self._manifest else []
        makers += [file.note.made for file in self.files if file.note.made]
        if now is not None and any(_differ(made, now) for made in makers):
            _log.warning(
                "%s: the code or the versions have changed since some of these replicas were "
                "made; they are used as they are. Remove the folder to run all of them again",
                self.folder,
            )

    def _is_finished(self, wanted: range) -> bool:
        manifest, first = self._manifest, self.files[0] if self.files else None
        return (
            manifest is not None
            and first is not None
            and manifest.settings == self.study.settings
            and manifest.found == self.study.found
            and manifest.replicas == first.note.runs == span(wanted)
            and manifest.sha256 == {first.path.name: first.sha256}
        )

    def _keep_unwanted(self, wanted: range, known: Sequence[Making]) -> None:
        """With fewer runs than before, the others wait among the pending ones."""
        for file in [file for file in self.files if file.path == self._columns]:
            pending = [other for other in self.files if other is not file]
            extra = [
                run for runs in missing(file.runs, pending) for run in runs if run not in wanted
            ]
            for making in makings(sorted(extra), [file], known):
                for runs in (range(*one) for one in making.runs):
                    columns = assemble(self.study.name, runs, [file])
                    self._write_pending(runs, columns, making.made)

    def _write_pending(self, runs: range, columns: Columns, made: Made) -> None:
        with writing_to(self._pending):
            self._pending.mkdir(exist_ok=True)
        path = self._pending / f"runs-{runs[0]:08d}-{runs[-1]:08d}.npz"
        note = Note(self.study.key, span(runs), made, _now())
        self.files.append(File(path, note, write_sealed(path, columns, note)))

    def _drop_pending(self, joined: File) -> None:
        left = [joined]
        with writing_to(self._pending):
            for file in self.files:
                if file.path == joined.path:
                    continue
                if all(run in joined.runs for run in file.runs):
                    file.path.unlink(missing_ok=True)
                else:
                    left.append(file)
            if self._pending.is_dir() and not any(self._pending.iterdir()):
                self._pending.rmdir()
        self.files = left


def _differ(made: Made, now: Made) -> bool:
    return made.code != now.code or any(
        made.versions.get(name) != now.versions.get(name) for name in _DECIDING
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
