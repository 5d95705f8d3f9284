"""Shards of a job are merged if they match; mismatches are reported."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bayescontrol.lab.sealed_npz import Damaged

from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.manifest import NoResults, Reproduction, write_manifest
from bayescontrol.lab.runner import run_replicas
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import CannotMerge, OtherResults, ResultStore, Shard, Study, merge, read


@pytest.fixture
def paced(study: Path) -> Experiment[Any]:
    return find(f"{study.with_name('paced_study.py')}:paced")


def fill(folder: Path, experiment: Experiment[Any], shard: str | None, **settings: Any) -> Path:
    chosen = experiment.settings(**{"runs": 10, **settings})
    part = Shard.parse(shard) if shard else None
    with ResultStore(folder, Study.of(experiment, chosen)) as store:
        run_replicas(experiment, chosen, store=store, shard=part)
    return folder


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
def test_the_shards_of_a_job_contain_each_run_once(n: int) -> None:
    parts = [Shard(i, n).of(10) for i in range(1, n + 1)]
    assert sorted(run for runs in parts for run in runs) == list(range(10))


def test_a_shard_keeps_its_runs_when_there_are_more() -> None:
    assert set(Shard(2, 3).of(10)) < set(Shard(2, 3).of(20))


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "-1/3", "1/0", "1.5/3"])
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettings, match=r"shard .*: .*1 <= i <= n, say 1/4"):
        Shard.parse(text)


def test_a_shard_without_runs_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="shard 5/8: with runs=4 it has no runs"):
        Shard(5, 8).of(4)


def test_shards_of_any_number_merge_to_the_bytes_of_one_job(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    whole = (fill(tmp_path / "whole", paced, None) / "columns.npz").read_bytes()
    parts = [fill(tmp_path / f"part-{i}", paced, f"{i}/3") for i in (3, 1, 2)]
    manifest = merge(tmp_path / "merged", parts)
    assert (tmp_path / "merged" / "columns.npz").read_bytes() == whole
    assert manifest.complete
    assert [part.runs for part in manifest.provenance] == [((0, 10, 1),)]
    again = merge(tmp_path / "merged", parts)
    assert again == manifest


def test_the_manifest_of_a_shard_is_incomplete(paced: Experiment[Any], tmp_path: Path) -> None:
    manifest = read(fill(tmp_path, paced, "2/3")).manifest
    assert not manifest.complete
    assert manifest.replicas == (1, 8, 3)
    assert manifest.runs == 10


def test_missing_runs_are_reported(paced: Experiment[Any], tmp_path: Path) -> None:
    parts = [fill(tmp_path / f"part-{i}", paced, f"{i}/3") for i in (1, 3)]
    with pytest.raises(CannotMerge, match="3 of 10 runs are missing: 1 to 7 by 3; run the"):
        merge(tmp_path / "merged", parts)
    assert not (tmp_path / "merged" / "columns.npz").exists()
    (first,) = parts[:1]
    with pytest.raises(CannotMerge, match="6 of 10 runs are missing: 1 to 2, 4 to 5, 7 to 8"):
        merge(tmp_path / "merged", [first])


def test_shards_of_different_lengths_leave_a_gap(paced: Experiment[Any], tmp_path: Path) -> None:
    parts = [
        fill(tmp_path / "1", paced, "1/2", runs=10),
        fill(tmp_path / "2", paced, "2/2", runs=14),
    ]
    with pytest.raises(CannotMerge, match="2 of 14 runs are missing: 10 to 12 by 2"):
        merge(tmp_path / "merged", parts)


def test_duplicate_runs_must_be_equal(paced: Experiment[Any], tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole", paced, None)
    odd = fill(tmp_path / "odd", paced, "2/2")
    merge(tmp_path / "merged", [whole, odd])
    assert (tmp_path / "merged" / "columns.npz").read_bytes() == (
        whole / "columns.npz"
    ).read_bytes()
    other = replace(
        paced, run=lambda settings, i: {**paced.run(settings, i), "end": np.array(float(i))}
    )
    changed = fill(tmp_path / "changed", other, "2/2")
    with pytest.raises(CannotMerge, match=r"changed was run with other code than .*whole"):
        merge(tmp_path / "conflict", [whole, changed])
    message = r"paced: run 1 differs in column 'end' between .*whole.* and .*changed"
    with pytest.raises(CannotMerge, match=message):
        merge(tmp_path / "conflict", [whole, changed], keep_stale=True)
    assert not (tmp_path / "conflict" / "columns.npz").exists()


def test_minus_zero_differs_from_zero_and_nan_equals_nan(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    whole = fill(tmp_path / "whole", paced, None)
    other = replace(
        paced,
        run=lambda settings, i: {
            **paced.run(settings, i),
            "nan": np.array([np.nan, 0.0][(i + 1) % 2]),
        },
    )
    same = fill(tmp_path / "nan", other, "2/2")
    merge(tmp_path / "merged", [whole, same], keep_stale=True)
    zero = fill(tmp_path / "zero", other, "1/2")
    with pytest.raises(CannotMerge, match="run 0 differs in column 'nan'"):
        merge(tmp_path / "conflict", [whole, zero], keep_stale=True)


def test_parts_of_different_studies_are_refused(paced: Experiment[Any], tmp_path: Path) -> None:
    one = fill(tmp_path / "one", paced, "1/2")
    other = fill(tmp_path / "other", paced, "2/2", seed=1)
    with pytest.raises(CannotMerge, match=r"other holds paced with .*'seed': 1.*one holds paced"):
        merge(tmp_path / "merged", [one, other])
    assert not (tmp_path / "merged").exists()
    with pytest.raises(OtherResults, match="not paced with"):
        merge(other, [one, fill(tmp_path / "two", paced, "2/2")])


def test_unfinished_damaged_or_invalid_parts_are_reported(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    one = fill(tmp_path / "one", paced, "1/2")
    (tmp_path / "half" / "pending").mkdir(parents=True)
    with pytest.raises(CannotMerge, match="half is not finished: repeat the command"):
        merge(tmp_path / "merged", [one, tmp_path / "half"])
    with pytest.raises(NoResults, match="nothing holds no results"):
        merge(tmp_path / "merged", [one, tmp_path / "nothing"])
    write_manifest(tmp_path, Reproduction(folders=("one",)))
    with pytest.raises(
        CannotMerge, match="holds several results: pass the folders of single shards"
    ):
        merge(tmp_path / "merged", [one, tmp_path])
    (one / "columns.npz").write_bytes(b"PK")
    with pytest.raises(Damaged, match=r"one/columns\.npz is truncated or was altered"):
        merge(tmp_path / "merged", [one])


def test_more_shards_can_be_merged_into_an_earlier_merge(
    paced: Experiment[Any], tmp_path: Path
) -> None:
    first = fill(tmp_path / "first", paced, None, runs=4)
    merge(tmp_path / "merged", [first])
    parts = [fill(tmp_path / str(i), paced, f"{i}/2", runs=9) for i in (1, 2)]
    shutil.rmtree(first)
    merge(tmp_path / "merged", [*parts, tmp_path / "merged"])
    whole = fill(tmp_path / "whole", paced, None, runs=9)
    merged = tmp_path / "merged" / "columns.npz"
    assert merged.read_bytes() == (whole / "columns.npz").read_bytes()
