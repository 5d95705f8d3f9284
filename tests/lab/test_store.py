"""Finished replicas are never repeated or lost, and damaged ones are never used."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.limits import TIMEOUT

from bayescontrol.errors import Busy, Unwritable
from bayescontrol.lab.columns import Damaged
from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed
from bayescontrol.lab.manifest import Manifest, NoResults, read_manifest, results_in
from bayescontrol.lab.provenance import Provenance
from bayescontrol.lab.runner import Job, run_replicas
from bayescontrol.lab.store import OtherResults, ResultStore, Study, read

MADE = Provenance({"bayescontrol": "0"}, {"cores": "elsewhere"})


class Counted:
    """An experiment that records which runs were run."""

    def __init__(self, experiment: Experiment[Any]) -> None:
        self.runs: list[int] = []

        @wraps(experiment.run)  # the code of a study is found by the module of `run`
        def run(settings: Any, i: int) -> Columns:
            self.runs.append(i)
            return experiment.run(settings, i)

        self.experiment = replace(experiment, run=run)


def run_in(folder: Path, experiment: Experiment[Any], settings: Any) -> Columns:
    with ResultStore(folder, Study.of(experiment, settings)) as store:
        return run_replicas(experiment, settings, store=store)


def as_bytes(columns: Columns) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in columns.items()}


def half_done(folder: Path, experiment: Experiment[Any], settings: Any, *groups: range) -> None:
    """Leave the folder as a killed command does, with replicas of another machine."""
    job = Job(experiment.name, experiment.run, settings)
    with ResultStore(folder, Study.of(experiment, settings)) as store:
        for runs in groups:
            store.put(runs, job(runs).columns, MADE)


# -- finished runs are not repeated -----------------------------------------------------------


def test_stored_results_are_reused(paced: Experiment[Any], tmp_path: Path) -> None:
    settings, counted = paced.settings(runs=9), Counted(paced)
    first = run_in(tmp_path, counted.experiment, settings)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    again = run_in(tmp_path, counted.experiment, settings)
    assert counted.runs == list(range(9))
    assert as_bytes(first) == as_bytes(again) == as_bytes(read(tmp_path).columns)
    assert as_bytes(first) == as_bytes(run_replicas(paced, settings))
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_only_new_runs_are_run_and_fewer_runs_delete_none(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    counted = Counted(paced)
    for runs in (5, 8, 3, 8, 10):
        columns = run_in(tmp_path / "grown", counted.experiment, paced.settings(runs=runs))
        run_in(tmp_path / str(runs), paced, paced.settings(runs=runs))
        fresh = (tmp_path / str(runs) / "columns.npz").read_bytes()
        assert (tmp_path / "grown" / "columns.npz").read_bytes() == fresh
        assert columns["walk"].shape[0] == runs
        assert read(tmp_path / "grown").manifest.runs == runs
    assert sorted(counted.runs) == list(range(10))
    assert not (tmp_path / "grown" / "pending").exists()


def test_a_killed_command_continues_where_it_stopped(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    settings, counted = paced.settings(runs=12), Counted(paced)
    half_done(tmp_path / "torn", paced, settings, range(3), range(7, 9), range(4, 5))
    run_in(tmp_path / "torn", counted.experiment, settings)
    run_in(tmp_path / "whole", paced, settings)
    assert counted.runs == [3, 5, 6, 9, 10, 11]
    torn, whole = (tmp_path / name / "columns.npz" for name in ("torn", "whole"))
    assert torn.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in (tmp_path / "torn").iterdir()) == [
        "columns.npz",
        "manifest.json",
    ]


def test_a_failing_command_keeps_its_finished_replicas(study: Path, tmp_path: Path) -> None:
    faulty = find(f"{study.with_name('paced_study.py')}:faulty")
    with pytest.raises(ExperimentFailed, match="run 7 raised ValueError"):
        run_in(tmp_path, faulty, faulty.quick)
    with ResultStore(tmp_path, Study.of(faulty, faulty.quick)) as store:
        assert store.missing(range(12)) == [range(7, 12)]


# -- damaged and foreign files are reported, their runs repeated ----------------------------------


def flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3] ^= 1
    path.write_bytes(whole)


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(b""),
        lambda path: np.savez(path, walk=np.zeros((3, 20))),
    ],
    ids=["flipped", "torn", "empty", "swapped"],
)
@pytest.mark.parametrize("damaged_file", ["pending/runs-00000003-00000005.npz", "columns.npz"])
def test_a_damaged_file_is_reported_and_its_runs_are_repeated(
    paced: Experiment[Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], object],
    damaged_file: str,
) -> None:
    settings, counted = paced.settings(runs=9), Counted(paced)
    folder = tmp_path / "harmed"
    if damaged_file == "columns.npz":
        run_in(folder, paced, settings)
    else:
        half_done(folder, paced, settings, range(3), range(3, 6), range(6, 9))
    damage(folder / damaged_file)
    run_in(folder, counted.experiment, settings)
    assert counted.runs == (list(range(9)) if damaged_file == "columns.npz" else [3, 4, 5])
    (named,) = (r.getMessage() for r in caplog.records if "renamed to" in r.getMessage())
    assert str(folder / damaged_file) in named
    assert (folder / f"{damaged_file}.damaged").is_file()
    run_in(tmp_path / "whole", paced, settings)
    assert (folder / "columns.npz").read_bytes() == (
        tmp_path / "whole" / "columns.npz"
    ).read_bytes()


def test_a_file_of_other_settings_is_reported_and_not_used(
    paced: Experiment[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = paced.settings(runs=6), paced.settings(runs=6, seed=1)
    half_done(tmp_path / "ours", paced, ours, range(3))
    half_done(tmp_path / "theirs", paced, theirs, range(3, 6))
    stray = "runs-00000003-00000005.npz"
    shutil.copy(tmp_path / "theirs" / "pending" / stray, tmp_path / "ours" / "pending" / stray)
    columns = run_in(tmp_path / "ours", paced, ours)
    assert as_bytes(columns) == as_bytes(run_replicas(paced, ours))
    assert f"{stray} belongs to other settings; renamed to {stray}.damaged" in caplog.text


def test_an_unreadable_manifest_is_reported_and_rewritten(
    paced: Experiment[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings, counted = paced.settings(runs=4), Counted(paced)
    run_in(tmp_path, paced, settings)
    (tmp_path / "manifest.json").write_text('{"kind": "results"')
    run_in(tmp_path, counted.experiment, settings)
    assert counted.runs == [0, 1, 2, 3]  # the code of the replicas is unknown
    assert "manifest.json cannot be read" in caplog.text
    assert "the code of 4 replicas differs from the code now (changed: unknown)" in caplog.text
    assert read(tmp_path).manifest.runs == 4


def test_altered_unfinished_or_swapped_results_are_not_read(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    half_done(tmp_path / "half", paced, paced.settings(runs=4), range(2))
    with pytest.raises(NoResults, match=r"half holds no results"):
        read(tmp_path / "half")
    run_in(tmp_path / "one", paced, paced.settings(runs=4))
    run_in(tmp_path / "two", paced, paced.settings(runs=5))
    shutil.copy(tmp_path / "two" / "columns.npz", tmp_path / "one" / "columns.npz")
    with pytest.raises(Damaged, match=r"is not the file listed in manifest\.json"):
        read(tmp_path / "one")
    flip(tmp_path / "two" / "columns.npz")
    with pytest.raises(Damaged, match="its seal is broken"):
        read(tmp_path / "two")


def test_another_study_is_refused_before_any_file_changes(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    run_in(tmp_path / "done", paced, paced.settings(runs=2))
    half_done(tmp_path / "half", paced, paced.settings(runs=2), range(1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = paced.settings(runs=2, seed=9)
    with pytest.raises(OtherResults, match=r"done holds paced with .*'seed': 0.*, not paced with"):
        run_in(tmp_path / "done", paced, other)
    with pytest.raises(OtherResults, match="half holds unfinished runs of other settings"):
        run_in(tmp_path / "half", paced, other)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_another_version_of_numpy_is_reported_and_its_replicas_are_used(
    paced: Experiment[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counted(paced)
    settings = paced.settings(runs=4)
    half_done(tmp_path, paced, settings, range(2))
    run_in(tmp_path, counted.experiment, settings)
    assert counted.runs == [2, 3]
    assert "some replicas were run with another version of numba, numpy, scipy" in caplog.text


# -- one writer, and a disk that is full ---------------------------------------------------------


def test_a_second_writer_is_refused(paced: Experiment[Any], tmp_path: Path) -> None:
    study = Study.of(paced, paced.quick)
    with ResultStore(tmp_path, study), pytest.raises(Busy, match="is being written by process"):
        ResultStore(tmp_path, study).__enter__()


FULL = """
import resource, sys
from pathlib import Path
from bayescontrol.lab import find, run_replicas
from bayescontrol.lab import runner
from bayescontrol.errors import Unwritable
from bayescontrol.lab.store import ResultStore, Study
runner._MOST_BYTES = 4000
paced = find(sys.argv[1])
settings = paced.settings(runs=60)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    with ResultStore(Path(sys.argv[2]), Study.of(paced, settings)) as store:
        run_replicas(paced, settings, store=store)
except Unwritable as error:
    print(error)
"""


@pytest.mark.parametrize(("limit", "saved"), [(8000, 60), (3000, 0)])
def test_a_full_disk_loses_no_finished_replica(
    study: Path, paced: Experiment[Any], tmp_path: Path, limit: int, saved: int
) -> None:
    """Groups fit under the higher limit and columns.npz does not; under the lower none fits."""
    name = f"{study.with_name('paced_study.py')}:paced"
    command = [sys.executable, "-c", FULL, name, str(tmp_path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    assert f"cannot write to {tmp_path}" in done.stdout
    assert "File too large; use another folder, or free disk space" in done.stdout
    assert [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")] == []
    settings, counted = paced.settings(runs=60), Counted(paced)
    columns = run_in(tmp_path, counted.experiment, settings)
    assert len(counted.runs) == 60 - saved
    assert as_bytes(columns) == as_bytes(run_replicas(paced, settings))


def test_a_file_in_place_of_the_folder_is_reported(paced: Experiment[Any], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken"):
        run_in(tmp_path / "taken", paced, paced.quick)


def test_columns_that_change_between_commands_are_refused(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    settings = paced.settings(runs=4)
    half_done(tmp_path, paced, settings, range(2))

    @wraps(paced.run)
    def changed_run(settings: Any, i: int) -> Columns:
        return {"walk": np.zeros(3)}

    changed = replace(paced, run=changed_run)
    with pytest.raises(ExperimentFailed, match=r"paced: run 2 has columns .*, run 0 has"):
        run_in(tmp_path, changed, settings)


# -- the manifest ---------------------------------------------------------------------------------


def test_the_manifest_holds_settings_seed_key_versions_machine_hashes_and_dates(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    settings = paced.settings(runs=3, seed=5)
    run_in(tmp_path, paced, settings)
    content = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert content["kind"] == "results"
    assert (content["experiment"], content["seed"], content["runs"]) == ("paced", 5, 3)
    assert content["settings"]["words"] == ["a", "bb", "ccc", "dddd"]
    assert len(content["key"]) == len(content["sha256"]["columns.npz"]) == 64
    (creating,) = content["provenance"]
    assert creating["runs"] == [[0, 3]]
    assert {"bayescontrol", "numpy", "python"} <= set(creating["provenance"]["versions"])
    assert {"system", "processor", "cores"} == set(creating["provenance"]["machine"])
    assert content["started"] <= content["finished"]
    assert results_in(tmp_path) == (tmp_path,)


def test_the_manifest_records_which_machine_made_which_runs(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    settings = paced.settings(runs=6)
    half_done(tmp_path, paced, settings, range(2), range(4, 6))
    run_in(tmp_path, paced, settings)
    run_in(tmp_path, paced, replace(settings, runs=8))
    manifest = read_manifest(tmp_path)
    assert isinstance(manifest, Manifest)
    assert {p.provenance.machine["cores"] == "elsewhere": str(p) for p in manifest.provenance} == {
        True: "runs 0 to 1, 4 to 5",
        False: "runs 2 to 3, 6 to 7",
    }
