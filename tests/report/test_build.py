"""A report is built from a folder alone: of one result, a sweep, or several experiments."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bayescontrol.lab.sealed_npz import Damaged

from bayescontrol.errors import Unwritable
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed, Score
from bayescontrol.lab.manifest import NoResults, Reproduction, Sweep, read_manifest, write_manifest
from bayescontrol.lab.runner import Result
from bayescontrol.plot.chart import Chart
from bayescontrol.report.build import build, charts_of, section, write_index

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


def test_a_shard_is_not_a_result(keep: Keep, tmp_path: Path) -> None:
    keep(tmp_path)
    manifest: Any = read_manifest(tmp_path)
    shard = type(manifest)(
        **{name: getattr(manifest, name) for name in manifest.__struct_fields__} | {"runs": 6}
    )
    write_manifest(tmp_path, shard)
    with pytest.raises(NoResults, match="holds 3 of 6 runs, one shard: merge the shards"):
        build(tmp_path)


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
    def figures(settings: Any, columns: Columns) -> dict[str, Chart]:
        raise KeyError("absent")

    broken = replace(evil, figures=figures)
    with pytest.raises(ExperimentFailed, match="evil: figures raised KeyError: 'absent', with Set"):
        charts_of(replace(result, experiment=broken))


def test_a_file_in_place_of_a_folder_is_reported(result: Result, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: "):
        section(replace(result, score=Score(())), tmp_path / "taken")
    with pytest.raises(Unwritable, match=r"cannot write to .*taken: "):
        write_index("Report", [], tmp_path / "taken")
