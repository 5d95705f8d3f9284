"""Marks of maps: shades, borders, arrows and invalid values."""

from typing import Any

import numpy as np
import pytest

from bayescontrol.plot.chart import Chart, Heat, InvalidChart, Panel, Strokes, arrows


def test_a_shade_is_the_share_of_the_highest_value_and_at_most_1() -> None:
    heat = Heat("share", np.array([[0.0, 0.05, 0.2, 0.9]]), 0.2)
    assert heat.shade(heat.values).tolist() == [[0.0, 0.25, 1.0, 1.0]]


def test_a_power_below_one_lifts_small_values() -> None:
    heat = Heat("share", np.array([[0.002, 0.2]]), 0.2, power=0.5)
    np.testing.assert_allclose(heat.shade(heat.values), [[0.1, 1.0]])


@pytest.mark.parametrize("high", [0.013, 0.2, 0.25, 1.0, 7.0])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_colour_scale_has_ticks_at_both_ends_and_between(high: float, power: float) -> None:
    ticks = Heat("share", np.zeros((1, 1)), high, power=power).ticks()
    assert (ticks[0], ticks[-1]) == (0.0, high)
    assert (np.diff(ticks) > 0).all()
    assert 2 <= ticks.size <= 7


@pytest.mark.parametrize("d", [(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0), (0.6, 0.8)])
def test_an_arrow_is_centred_and_its_barbs_are_behind_its_tip(
    d: tuple[float, float],
) -> None:
    strokes = arrows("action", [2.0], [-3.0], [d[0]], [d[1]])
    tail, tip, left, again, right, gap = np.c_[strokes.x, strokes.y]
    np.testing.assert_allclose((tail + tip) / 2, [2.0, -3.0])
    np.testing.assert_allclose(tip - tail, d)
    np.testing.assert_array_equal(tip, again)
    assert (left - tip) @ d == pytest.approx((right - tip) @ d)
    assert (left - tip) @ d < 0
    np.testing.assert_allclose((left + right) / 2 - tip, -0.38 * np.array(d), atol=1e-12)
    assert np.isnan(gap).all()


@pytest.mark.parametrize(
    ("values", "changes", "message"),
    [
        (np.zeros(3), {}, "shape"),
        (np.zeros((0, 3)), {}, "shape"),
        (np.array([[-0.1]]), {}, "at least 0"),
        (np.array([[np.inf]]), {}, "at least 0"),
        (np.zeros((1, 1)), {"high": 0.0}, "high is 0.0"),
        (np.zeros((1, 1)), {"power": -1.0}, "power is -1.0"),
        (np.zeros((1, 1)), {"colour": "puce"}, "colour is 'puce'"),
        (np.zeros((1, 1)), {"label": " "}, "the label is empty"),
    ],
)
def test_an_invalid_heat_map_is_refused(values: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidChart, match=message):
        Heat(**{"label": "share", "values": values, "high": 1.0, **changes})


def test_strokes_of_unequal_length_are_refused() -> None:
    with pytest.raises(InvalidChart, match="membrane"):
        Strokes("membrane", np.zeros(2), np.zeros(3))


def test_marks_copy_their_arrays() -> None:
    values, x = np.zeros((1, 1)), np.zeros(2)
    heat, strokes = Heat("share", values, 1.0), Strokes("edge", x, x)
    values[:], x[:] = 1.0, 1.0
    assert heat.values[0, 0] == strokes.x[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        heat.values[0, 0] = 2.0


def test_a_panel_with_a_heat_is_a_map_as_large_as_its_cells() -> None:
    panel = Panel("", "column", "row", [], heats=[Heat("share", np.zeros((2, 3)), 1.0)])
    assert panel.is_map
    assert (panel.extent("x"), panel.extent("y")) == ((0.0, 3.0), (-2.0, 0.0))
    assert Chart("A map", [panel], "Look.").panels[0].marks == tuple(panel.heats)


def test_a_map_on_a_logarithmic_axis_is_refused() -> None:
    heats = [Heat("share", np.zeros((2, 3)), 1.0)]
    with pytest.raises(InvalidChart, match="logarithmic"):
        Panel("", "column", "row", [], heats=heats, xscale="log")
