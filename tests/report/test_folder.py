"""What is left on disk can be read back, and says the same each time."""

import base64
import json
import math
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bayescontrol.lab.claims import Claim
from bayescontrol.lab.experiment import Columns, Experiment, Outcome, Table
from bayescontrol.lab.runner import ExperimentFailed, Result, conduct
from bayescontrol.report import figures
from bayescontrol.report.folder import Unwritable, as_object, plain, prepare, write, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVIL = "<script>alert('x')</script>"


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    runs: int = 3
    label: str = EVIL
    eps: float = math.nan


def _run(settings: Settings, i: int) -> Columns:
    return {"file": np.arange(3) + i, "self": np.array(f"run {i}")}


def _score(settings: Settings, columns: Columns) -> Outcome:
    claims = (
        Claim("sum", EVIL, "ours", 1.0, math.inf, math.nan, True),
        Claim("printed", "p", "paper", 1.0, 2.0, None, False, reason=EVIL),
    )
    return Outcome(claims, (Table(EVIL, (EVIL, "n"), ((EVIL, 1.5),), EVIL),))


def _figures(settings: Settings, columns: Columns) -> "dict[str, Figure]":
    fig, (ax,) = figures.figure(2, 1)
    ax.plot([0, 1])
    return {"line": fig}


EVIL_STUDY = Experiment("evil", EVIL, Settings, Settings(), Settings(), _run, _score, _figures)


@pytest.fixture
def result() -> Result:
    return conduct(EVIL_STUDY, Settings())


class Tags(HTMLParser):
    """Every tag of a page, and whether each is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_object_has_exactly_the_promised_keys(result: Result) -> None:
    content = as_object(result, [Path("a.png")])
    assert list(content) == ["experiment", "settings", "claims", "artifacts"]
    for claim in content["claims"]:
        assert list(claim) == ["name", "claim", "source", "expected", "ours", "error", "holds"]


def test_numbers_that_json_lacks_become_words_that_read_back(result: Result) -> None:
    content = json.loads(json.dumps(as_object(result), allow_nan=False))
    assert content["settings"]["eps"] == "NaN"
    assert [content["claims"][0][key] for key in ("ours", "error")] == ["Infinity", "NaN"]
    assert content["claims"][1]["error"] is None
    assert float(plain(-math.inf)) == -math.inf


def test_columns_are_read_back_without_pickle(result: Result, tmp_path: Path) -> None:
    write(result, tmp_path)
    with np.load(tmp_path / "columns.npz", allow_pickle=False) as columns:
        assert columns["file"].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        assert columns["self"].tolist() == ["run 0", "run 1", "run 2"]


def test_the_same_result_leaves_the_same_bytes(result: Result, tmp_path: Path) -> None:
    first = [p.read_bytes() for p in write(result, tmp_path / "a").paths]
    again = [p.read_bytes() for p in write(conduct(EVIL_STUDY, Settings()), tmp_path / "b").paths]
    assert first == again


def test_every_artifact_is_listed_and_exists(result: Result, tmp_path: Path) -> None:
    paths = write(result, tmp_path / "deep" / "er").paths
    assert {path.name for path in paths} == {
        "line.png",
        "line.pdf",
        "claims.json",
        "columns.npz",
        "index.html",
    }
    assert set(paths) == set((tmp_path / "deep" / "er").iterdir())


def test_the_claims_on_disk_carry_reasons_and_versions(result: Result, tmp_path: Path) -> None:
    write(result, tmp_path)
    content = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert content["claims"][1]["reason"] == EVIL
    assert {"bayescontrol", "numpy", "python"} <= set(content["versions"])


def test_the_page_is_well_formed_escaped_and_self_contained(result: Result, tmp_path: Path) -> None:
    section = write(result, tmp_path / "evil").section
    html = write_page(EVIL, [section, section], tmp_path).read_text("utf-8")
    tags = Tags(html)
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.seen}
    assert html.count("&lt;script&gt;") > 10
    sources = [attrs["src"] or "" for tag, attrs in tags.seen if tag == "img"]
    assert len(sources) == 2
    head, data = sources[0].split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data) == (tmp_path / "evil" / "line.png").read_bytes()
    assert not [
        attrs for tag, attrs in tags.seen if tag in {"link", "script"} or "http" in str(attrs)
    ]
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html


def test_the_page_tells_the_verdicts(result: Result, tmp_path: Path) -> None:
    html = write_page("Report", [write(result, tmp_path).section], tmp_path).read_text("utf-8")
    assert "2 claims:" in html
    assert '<span class="refuted">1 of the paper refuted</span>' in html
    assert "of ours failed" not in html


def test_a_file_in_the_way_is_named(tmp_path: Path, result: Result) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: .*; name another folder"):
        prepare(tmp_path / "taken")
    (tmp_path / "claims.json").mkdir()
    with pytest.raises(Unwritable, match="cannot write to"):
        write(result, tmp_path)


def test_a_figure_cannot_leave_its_folder(result: Result, tmp_path: Path) -> None:
    drawing = figures.figure(1, 1)[0]
    away: Any = replace(EVIL_STUDY, figures=lambda settings, columns: {"../x": drawing})
    with pytest.raises(ExperimentFailed, match=r"figure '\.\./x' becomes a file"):
        write(replace(result, experiment=away), tmp_path)


def test_a_broken_figure_is_named(result: Result, tmp_path: Path) -> None:
    broken: Any = replace(EVIL_STUDY, figures=lambda settings, columns: {"line": 1 / 0})  # type: ignore[dict-item]
    with pytest.raises(ExperimentFailed, match="evil: figures raised ZeroDivisionError"):
        write(replace(result, experiment=broken), tmp_path)
