"""Chunks of runs give the same columns, however they are cut and ordered."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol.lab.columns import Incomplete, RowsInMemory, assemble, missing, progressions, span
from bayescontrol.lab.experiment import ExperimentFailed
from bayescontrol.lab.runner import Job

WORDS = ("", "a", "bbb", "cc")


def run(settings: None, i: int) -> dict[str, Any]:
    return {"i": np.array([i, -i]), "word": np.array(WORDS[i % 4])}


JOB = Job("cut", run, None)


@given(st.lists(st.integers(0, 60), min_size=1, unique=True))
def test_progressions_cover_the_numbers_once_and_in_order(numbers: list[int]) -> None:
    numbers.sort()
    parts = progressions(numbers)
    assert [run for runs in parts for run in runs] == numbers
    assert all(range(*span(runs)) == runs for runs in parts)


@given(st.data())
def test_any_cut_of_the_runs_gives_the_same_bytes(data: st.DataObject) -> None:
    step = data.draw(st.integers(1, 3))
    wanted = range(data.draw(st.integers(0, 2)), 30, step)
    left, parts = list(wanted), []
    while left:
        part = sorted(data.draw(st.sets(st.sampled_from(left), min_size=1)))
        parts += progressions(part)
        left = [run for run in left if run not in part]
    shuffled = data.draw(st.permutations(parts))
    columns = assemble("cut", wanted, [RowsInMemory(runs, JOB(runs).columns) for runs in shuffled])
    whole = JOB(wanted).columns
    assert {name: a.tobytes() for name, a in columns.items()} == {
        name: a.tobytes() for name, a in whole.items()
    }
    assert columns["word"].dtype == whole["word"].dtype


def test_surplus_runs_and_their_longer_words_are_left_out() -> None:
    columns = assemble("cut", range(2), [RowsInMemory(range(4), JOB(range(4)).columns)])
    assert columns["word"].tolist() == ["", "a"]
    assert columns["word"].dtype == np.dtype("U1")


def test_missing_columns_are_never_invented() -> None:
    with pytest.raises(Incomplete, match="cut: 2 runs are missing, first run 1"):
        assemble("cut", range(3), [RowsInMemory(range(1), JOB(range(1)).columns)])


def test_a_run_that_no_shard_holds_is_missing() -> None:
    chunks = [RowsInMemory(range(0, 6, 2), {}), RowsInMemory(range(5, 9), {})]
    assert missing(range(10), chunks) == [range(1, 4, 2), range(9, 10)]
    assert missing(range(0, 6, 2), chunks) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros((1, 2)), np.zeros((1, 3))),
        (np.zeros(1), np.zeros(1, dtype=np.int64)),
        (np.zeros(1), np.zeros(1, dtype=np.float32)),
        (np.array(["a"]), np.array([b"a"])),
    ],
)
def test_incompatible_columns_are_reported_with_their_run(one: Any, other: Any) -> None:
    with pytest.raises(ExperimentFailed, match=r"cut: run 1 has columns .*, run 0 has"):
        assemble(
            "cut",
            range(2),
            [RowsInMemory(range(1), {"y": one}), RowsInMemory(range(1, 2), {"y": other})],
        )
