"""A chart for each world, and what it shows."""

import numpy as np
import pytest
from tests.audit.conftest import Between

from bayescontrol.audit import WORLDS, audit, charts
from bayescontrol.plot.figures import png


def test_every_audited_world_has_a_chart_that_renders(between: Between) -> None:
    names = ["liar", "two-lights"]
    result = audit({n: between(WORLDS[n], 0.5) for n in names}, names, steps=3, runs=30)
    found = charts(result)
    assert list(found) == names
    for name in names:
        assert png(found[name]).startswith(b"\x89PNG\r\n")
        panels = found[name].panels
        assert [panel.title[:3] for panel in panels] == ["(a)", "(b)", "(c)"]
        assert [series.label for series in panels[0].series] == [
            "written: λ = 0.50", "forced: λ = 0.50",
        ]  # fmt: skip


def test_the_chart_shows_pairs_on_a_line_and_the_index_of_each_position(between: Between) -> None:
    result = audit(between(WORLDS["chain"], 0.3), "chain", steps=3, runs=100)
    chart = charts(result)["chain"]
    d, e = result.rows[1].pairs
    np.testing.assert_allclose(e, 0.3 * d, atol=1e-9)
    shown = chart.panels[0].series[1]
    np.testing.assert_allclose(shown.y, 0.3 * np.asarray(shown.x), atol=1.2e-3)
    by_position = chart.panels[1].series[1]
    assert list(by_position.x) == [3, 4, 5, 6]  # the first step pays alike in both modes
    np.testing.assert_allclose(by_position.y, 0.3, atol=1e-9)


def test_a_world_that_identifies_no_index_has_a_chart_without_positions(between: Between) -> None:
    engine = WORLDS["fire-engine"]
    result = audit(between(engine, 0.0), engine, steps=1, runs=20)
    chart = charts(result)["fire-engine"]
    assert chart.panels[0].series[0].label == "written"
    assert png(chart).startswith(b"\x89PNG")


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_index_of_zero_has_no_sign_in_the_legend(share: float, between: Between) -> None:
    chart = charts(audit(between(WORLDS["liar"], share), "liar", steps=2, runs=30))["liar"]
    assert {s.label.split(" = ")[1] for s in chart.panels[0].series} == {f"{share:.2f}"}
