"""A report is built from a folder alone: of one result, a sweep, or several experiments."""

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bayescontrol.errors import Unwritable
from bayescontrol.lab.columns import Damaged
from bayescontrol.lab.experiment import Claim, Columns, Experiment, ExperimentFailed, Score, Table
from bayescontrol.lab.manifest import NoResults, Reproduction, Sweep, read_manifest, write_manifest
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import Point, plain
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart
from bayescontrol.report.build import (
    as_object,
    build,
    charts_of,
    section,
    sweep_charts,
    write_claims,
    write_index,
    write_sweep_claims,
)
from bayescontrol.report.page import Section, index
from bayescontrol.report.tables import merged_tables, sweep_tables

Keep = Callable[..., None]


def test_one_result_gets_its_page_and_figures_in_its_folder(keep: Keep, tmp_path: Path) -> None:
    keep(tmp_path)
    page = build(tmp_path)
    assert page == tmp_path / "index.html"
    names = {"index.html", "line.png", "line.pdf", "columns.npz", "manifest.json"}
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} >= names
    html = page.read_text("utf-8")
    assert "<h1>evil</h1>" in html
    assert 'href="line.pdf"' in html
    assert "number of replicas" in html
    assert read_manifest(tmp_path).sha256["columns.npz"] in html  # type: ignore[union-attr]
    assert "evil_study.py:evil" in html
    assert str(Path(__file__).parent) not in html


def test_a_report_in_another_folder_is_the_same(keep: Keep, tmp_path: Path) -> None:
    keep(tmp_path / "results")
    held = sorted(path.name for path in (tmp_path / "results").iterdir())
    pages = [build(tmp_path / "results", tmp_path / name) for name in ("a", "deep/er")]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == held
    for folder in ("a", "deep/er"):
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == [
            "index.html", "line.pdf", "line.png",
        ]  # fmt: skip


def test_several_experiments_have_a_page_each_and_a_failed_one_is_in_the_index(
    keep: Keep, tmp_path: Path
) -> None:
    keep(tmp_path / "evil")
    content = Reproduction(folders=("evil", "maze"), broken={"maze": "no way out"})
    write_manifest(tmp_path, content)
    html = build(tmp_path, tmp_path / "out").read_text("utf-8")
    assert (tmp_path / "out" / "evil" / "line.png").is_file()
    assert '<a href="evil/index.html">evil</a>' in html
    page = (tmp_path / "out" / "evil" / "index.html").read_text("utf-8")
    assert '<a href="../index.html">' in page
    assert 'href="line.png"' in page
    assert "<dt>maze</dt><dd>no way out</dd>" in html


def test_a_sweep_is_named_by_its_settings(keep: Keep, tmp_path: Path) -> None:
    for name, slope in (("s1", 1.0), ("s2", 2.0)):
        keep(tmp_path / name, slope=slope)
    swept = Sweep(experiment="evil", found="", sweep={"slope": [1, 2]}, folders=("s1", "s2"))
    write_manifest(tmp_path, swept)
    html = build(tmp_path).read_text("utf-8")
    assert "<h1>evil over slope</h1>" in html
    assert '<a href="s1/index.html">slope = 1.0</a>' in html
    assert "<h1>evil, slope = 2.0</h1>" in (tmp_path / "s2" / "index.html").read_text("utf-8")
    assert "Our numbers, side by side" in html
    assert "Our numbers against slope" in html
    assert 'href="sweep.pdf"' in html
    assert (tmp_path / "sweep.pdf").is_file()
    assert html.count("<script>") == 1
    assert ">27, refuted</span>" in html  # the sum at slope 2


def test_an_altered_result_is_never_shown(keep: Keep, tmp_path: Path) -> None:
    keep(tmp_path)
    columns = bytearray((tmp_path / "columns.npz").read_bytes())
    columns[len(columns) // 2] ^= 1
    (tmp_path / "columns.npz").write_bytes(columns)
    with pytest.raises(Damaged, match=r"columns\.npz"):
        build(tmp_path)
    assert not (tmp_path / "index.html").exists()


def test_a_folder_without_results_gives_no_report(tmp_path: Path) -> None:
    with pytest.raises(NoResults, match="holds no results"):
        build(tmp_path)


def test_a_section_does_not_hold_the_columns(result: Result, tmp_path: Path) -> None:
    assert result.columns
    assert not section(result, tmp_path).result.columns


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        ({"../x": None}, r"evil: figure '\.\./x' is not a valid file name"),
        ({"x": "picture"}, "evil: figure 'x' is a str; return a Chart"),
    ],
)
def test_a_figure_that_is_not_a_chart_or_has_an_invalid_name_is_refused(
    result: Result, evil: Experiment[Any], drawn: dict[str, Any], message: str
) -> None:
    wrong = replace(evil, figures=lambda settings, columns: drawn)
    with pytest.raises(ExperimentFailed, match=message):
        charts_of(replace(result, experiment=wrong))


def test_a_failed_figure_is_reported(result: Result, evil: Experiment[Any]) -> None:
    def fail(settings: Any, columns: Columns) -> dict[str, Chart]:
        raise KeyError("absent")

    broken = replace(evil, figures=fail)
    with pytest.raises(ExperimentFailed, match="evil: figures raised KeyError: 'absent', with Set"):
        charts_of(replace(result, experiment=broken))


def test_a_file_in_place_of_a_folder_is_reported(result: Result, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: "):
        section(replace(result, score=Score(())), tmp_path / "taken")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: .*; use another folder"):
        write_index("Report", [], tmp_path / "taken")
    with pytest.raises(Unwritable, match="cannot write to"):
        write_claims(result, tmp_path / "taken")


# -- claims ------------------------------------------------------------------------------------


EVIL = "</script><script>alert('x')</script>"
KEYS = ["name", "claim", "source", "expected", "ours", "error", "holds", "verdict", "exact",
        "place", "threshold_origin"]  # fmt: skip


def test_the_object_has_exactly_the_promised_keys(result: Result) -> None:
    content = as_object(result, [Path("a.png")])
    assert list(content) == ["experiment", "settings", "claims", "artifacts", "code"]
    for claim in content["claims"]:
        assert list(claim) == KEYS
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
    assert path.read_bytes() == write_claims(result, tmp_path).read_bytes()
    content = json.loads(path.read_text("utf-8"))
    assert content["claims"][1]["reason"] == EVIL
    assert {"bayescontrol", "numpy", "python"} <= set(content["versions"])


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
    assert list(rows[0]) == ["slope", "word", *KEYS, "folder"]
    assert [row["folder"] for row in rows] == ["s1", "s1", "s2", "s2"]
    assert rows[0]["word"] == "a,b"
    assert math.isinf(float(rows[0]["ours"]))
    assert math.isnan(float(rows[0]["error"]))


# -- the chart of a sweep -----------------------------------------------------------------------


MEAN = Claim("mean", "the mean is 1", "ours", 1.0, 2.0, 0.25, True)
WORD = Claim("word", "it is a", "paper", "a", "a", None, True, place="section 1")
BOUND = Claim("bound", "it is small", "paper", "< 9", 3.0, None, True, place="section 1")


def point(ours: float, *claims: Claim, **swept: Any) -> Section:
    study: Any = SimpleNamespace(name="coin")
    score = Score((replace(MEAN, ours=ours), *claims))
    return Section(Result(study, {}, {}, score), {}, {}, swept=swept)


def test_each_numeric_claim_is_a_panel_against_the_swept_value() -> None:
    equal = replace(MEAN, name="equal")
    points = [
        point(ours, WORD, equal, replace(BOUND, ours=ours), k=k)
        for k, ours in ((4, 2.0), (1, 5.0), (2, 3.0))
    ]
    chart = sweep_charts(points)["sweep"]
    assert [panel.title for panel in chart.panels] == ["mean", "bound"]
    ours, expected = chart.panels[0].series
    assert (ours.x.tolist(), ours.y.tolist()) == ([1.0, 2.0, 4.0], [5.0, 3.0, 2.0])
    assert ours.high is not None
    assert (ours.high - ours.y).tolist() == [0.5] * 3  # two standard errors
    assert expected.y.tolist() == [1.0] * 3
    assert [series.label for series in chart.panels[1].series] == ["ours"]
    assert figures.png(chart)[1:4] == b"PNG"


def test_the_index_of_a_sweep_shows_the_tables_and_figures_of_all_points(chart: Chart) -> None:
    table = Table("Regret", ("agent", "mean"), (("rule", 2.5),))
    score = Score((), (replace(table, paper=1),))
    points = [
        replace(
            one, folder=f"p{k}", result=replace(one.result, score=score),
            charts={"b": chart, "a": replace(chart, paper={3: ""})},
        )
        for k, one in enumerate(point(0.0, k=k) for k in (1, 2000))
    ]  # fmt: skip
    (merged,) = merged_tables((p.swept, p.result.score) for p in points)
    assert merged.header == ("k", "agent", "mean")
    assert merged.rows == ((1, "rule", 2.5), (2000, "rule", 2.5))
    html = index("sweep", points, {})
    assert "<h3>Regret</h3>" in html
    shown = re.findall(r'<b>([^<]*)</b><a href="([^"]*)"><img src="data:image/png', html)
    assert shown == [
        ("k = 1", "p0/index.html#b"), ("k = 2000", "p1/index.html#b"),
        ("k = 1", "p0/index.html#a"), ("k = 2000", "p1/index.html#a"),
    ]  # fmt: skip
    assert "of the paper" not in html.partition("<h2>Tables and figures</h2>")[2]


def test_other_swept_settings_make_a_line_for_each_value() -> None:
    points = [point(k, k=k, side=side) for side in ("a", "b") for k in (1, 2, 100)]
    (panel,) = sweep_charts(points)["sweep"].panels
    ours = [series for series in panel.series if series.label.startswith("ours")]
    assert [series.label for series in ours] == ["ours, side = a", "ours, side = b"]
    assert len({(series.dash, series.marker) for series in ours}) == 2
    assert (panel.xlabel, panel.xscale) == ("k", "log")


@pytest.mark.parametrize(
    "points",
    [
        [],
        [point(1.0)],
        [point(1.0, k=1)],
        [point(1.0, side="a"), point(2.0, side="b")],
        [point(float("nan"), k=1), point(float("nan"), k=2)],
        [point(k, k=k, side=side) for side in "abcdefg" for k in (1, 2)],
    ],
)
def test_nothing_is_drawn_without_two_numbers_or_with_too_many_lines(points: Any) -> None:
    assert sweep_charts(points) == {}
