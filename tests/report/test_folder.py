"""The files beside the columns can be read back, and are reproducible."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from bayescontrol.report.folder import (
    as_object,
    paths_of,
    sweep_tables,
    write_claims,
    write_sweep_claims,
)

from bayescontrol._support.files import create_folder
from bayescontrol.errors import Unwritable
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import Point, plain

EVIL = "</script><script>alert('x')</script>"
KEYS = ["name", "claim", "source", "expected", "ours", "error", "holds"]
ADDED = ["verdict", "exact", "place", "threshold_origin"]


def test_the_object_has_exactly_the_promised_keys(result: Result) -> None:
    content = as_object(result, [Path("a.png")])
    assert list(content) == ["experiment", "settings", "claims", "artifacts", "code"]
    for claim in content["claims"]:
        assert list(claim) == [*KEYS, *ADDED]
    assert [claim["verdict"] for claim in content["claims"]] == ["holds", "refuted"]
    assert [claim["exact"] for claim in content["claims"]] == [False, False]
    assert content["claims"][1]["place"] == EVIL


def test_nan_and_infinity_become_strings_that_can_be_parsed(result: Result) -> None:
    content = json.loads(json.dumps(as_object(result), allow_nan=False))
    assert content["settings"]["eps"] == "NaN"
    assert [content["claims"][0][key] for key in ("ours", "error")] == ["Infinity", "NaN"]
    assert content["claims"][1]["error"] is None
    assert float(plain(-math.inf)) == -math.inf


def test_the_stored_claims_have_reasons_and_versions(result: Result, tmp_path: Path) -> None:
    path = write_claims(result, tmp_path)
    content = json.loads(path.read_text("utf-8"))
    assert content["claims"][1]["reason"] == EVIL
    assert {"bayescontrol", "numpy", "python"} <= set(content["versions"])


def test_the_same_result_leaves_the_same_bytes(result: Result, tmp_path: Path) -> None:
    first = write_claims(result, tmp_path).read_bytes()
    assert write_claims(result, tmp_path).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["claims.json"]


def test_the_files_of_a_result_are_listed(tmp_path: Path) -> None:
    names = [path.name for path in paths_of(tmp_path, ["line"])]
    kept = ["manifest.json", "columns.npz", "claims.json", "line.png", "line.pdf", "index.html"]
    assert names == kept


@pytest.fixture
def points(result: Result) -> list[tuple[Point, Any]]:
    return [
        (Point(None, {"slope": slope, "word": "a,b"}, f"s{slope}"), result.score)
        for slope in (1, 2)
    ]


def test_a_sweep_has_a_row_for_each_claim_and_a_column_for_each_point(
    points: list[tuple[Point, Any]],
) -> None:
    table, merged = sweep_tables(points)
    assert merged.header[:2] == ("slope", "word")
    assert table.header == ("claim", "expected", "slope = 1, word = a,b", "slope = 2, word = a,b")
    assert table.rows == (
        ("sum", "1", "inf ± nan", "inf ± nan"),
        ("printed", "1", "18, refuted", "18, refuted"),
    )


def test_a_long_sweep_is_split_into_tables_that_fit_a_screen(
    points: list[tuple[Point, Any]],
) -> None:
    assert [len(table.header) for table in sweep_tables(points * 3)] == [6, 4, 4]


def test_the_claims_of_a_sweep_can_be_read_by_a_spreadsheet(
    points: list[tuple[Point, Any]], tmp_path: Path
) -> None:
    with write_sweep_claims(points, tmp_path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["slope", "word", *KEYS, "folder", *ADDED]
    assert [row["folder"] for row in rows] == ["s1", "s1", "s2", "s2"]
    assert rows[0]["word"] == "a,b"
    assert math.isinf(float(rows[0]["ours"]))
    assert math.isnan(float(rows[0]["error"]))


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path, result: Result) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: .*; use another folder"):
        create_folder(tmp_path / "taken")
    with pytest.raises(Unwritable, match="cannot write to"):
        write_claims(result, tmp_path / "taken")
