"""A sweep is drawn against its numeric setting, with a line for each value of the others."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from bayescontrol.report.folder import merged_tables
from bayescontrol.report.sweep import sweep_charts

from bayescontrol.lab.experiment import Claim, Score, Table
from bayescontrol.lab.runner import Result
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart
from bayescontrol.report.page import Section, index

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
