"""Any cut of the runs gives the same columns; a sealed file is intact or not used."""

import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol.lab.columns import (
    Damaged,
    Header,
    Incomplete,
    RowsInMemory,
    SealedFile,
    assemble,
    layout_of,
    open_sealed,
    ranges_of,
    write_sealed,
)
from bayescontrol.lab.experiment import ExperimentFailed
from bayescontrol.lab.provenance import Provenance
from bayescontrol.lab.runner import Job

WORDS = ("", "a", "bbb", "cc")


def run(settings: None, i: int) -> dict[str, Any]:
    return {"i": np.array([i, -i]), "word": np.array(WORDS[i % 4])}


JOB = Job("cut", run, None)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_cover_the_numbers_once_and_in_order(numbers: set[int]) -> None:
    parts = ranges_of(numbers)
    assert [run for runs in parts for run in runs] == sorted(numbers)
    assert all(one.stop < other.start for one, other in pairwise(parts))


@given(st.data())
def test_any_cut_of_the_runs_gives_the_same_bytes(data: st.DataObject) -> None:
    wanted = range(data.draw(st.integers(0, 2)), 30)
    left, parts = list(wanted), []
    while left:
        part = data.draw(st.sets(st.sampled_from(left), min_size=1))
        parts += ranges_of(part)
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


# -- sealed files -----------------------------------------------------------------------------


COLUMNS: dict[str, np.ndarray[Any, Any]] = {
    "walk": np.arange(12.0).reshape(4, 3),
    "word": np.array(["a", "bb", "c", "é"]),
    "nothing": np.zeros((4, 0, 2)),
    "file": np.array([True, False, True, False]),
}
HEADER = Header("5e1f", (2, 6), Provenance({"numpy": "2.0"}, {}), "2026-01-01T00:00:00+00:00")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_sealed(tmp_path / "some.npz", COLUMNS, HEADER)
    return tmp_path / "some.npz"


def test_columns_header_and_runs_round_trip(path: Path) -> None:
    file = open_sealed(path)
    assert file.header == HEADER
    assert file.runs == range(2, 6)
    assert file.layout() == layout_of(COLUMNS)
    for name, array in assemble("x", file.runs, [file]).items():
        assert array.tobytes() == COLUMNS[name].tobytes()


def test_numpy_reads_the_columns_without_pickle_and_nothing_else_is_in_the_file(path: Path) -> None:
    with np.load(path, allow_pickle=False) as columns:
        assert list(columns.files) == list(COLUMNS)
        assert columns["word"].tolist() == ["a", "bb", "c", "é"]


def test_equal_columns_give_equal_bytes_and_a_digest(path: Path) -> None:
    again = path.with_name("again.npz")
    assert write_sealed(again, COLUMNS, HEADER).sha256 == open_sealed(path).sha256
    assert again.read_bytes() == path.read_bytes()


def test_every_flipped_byte_is_detected(path: Path) -> None:
    write_sealed(path, {"word": COLUMNS["word"]}, HEADER)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(Damaged, match="its seal is broken"):
            open_sealed(path)


def test_every_truncation_is_detected(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(Damaged, match=r"some\.npz is truncated or was altered"):
            open_sealed(path)


def test_a_foreign_or_missing_file_is_reported(path: Path) -> None:
    np.savez(path, y=np.zeros(3))
    with pytest.raises(Damaged, match=r"some\.npz"):
        open_sealed(path)
    path.unlink()
    with pytest.raises(Damaged, match=r"cannot be read: .*No such file"):
        open_sealed(path)


def test_columns_that_do_not_match_their_header_are_refused(path: Path) -> None:
    write_sealed(path, COLUMNS, Header("5e1f", (0, 3)))
    with pytest.raises(Damaged, match="column 'walk' does not hold 3 runs"):
        open_sealed(path).layout()


def test_a_file_that_changes_while_in_use_is_detected(path: Path) -> None:
    file = open_sealed(path)
    whole = bytearray(path.read_bytes())
    whole[whole.index(np.float64(7.0).tobytes())] ^= 1
    path.write_bytes(whole)
    with pytest.raises(Damaged, match="was changed while it was in use"):
        list(file.blocks("walk"))
    path.unlink()
    with pytest.raises(Damaged, match="was changed while it was in use"):
        list(file.blocks("walk"))


def test_large_columns_are_read_in_blocks(tmp_path: Path) -> None:
    rows = np.arange(3 * (1 << 21), dtype=np.float64).reshape(3, -1)  # 16 MiB a row
    write_sealed(tmp_path / "large.npz", {"y": rows}, Header("", (0, 3)))
    file: SealedFile = open_sealed(tmp_path / "large.npz")
    found = [(runs, block.shape[0]) for runs, block in file.blocks("y")]
    assert found == [(range(1), 1), (range(1, 2), 1), (range(2, 3), 1)]


def test_members_are_not_compressed_and_carry_no_time(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
