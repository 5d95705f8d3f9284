"""Charts: invalid or unreadable content is refused, and visible values are computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol.plot import figures
from bayescontrol.plot.chart import PALETTE, Chart, Guide, InvalidChart, Panel, Region, Series, Word
from bayescontrol.plot.legend import with_colours, with_distinct_lines

X = np.arange(1.0, 5.0)
LINE = Series("rule", X, X)
FLAT = Region("best", np.array([0, 5, 5]), np.array([0, -1, 2]))


def panel(*series: Series, **other: Any) -> Panel:
    return Panel("Regret", "step t", "regret", series or (LINE,), **other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Series("rule", X, X[:2]), r"series 'rule': x has shape \(4,\), y \(2,\)"),
        (lambda: Series("rule", X[None], X[None]), "with one axis"),
        (lambda: Series("rule", X[:0], X[:0]), "a length of at least 1"),
        (lambda: Series("rule", X, X, X[:2], X), r"low \(2,\), high \(4,\)"),
        (lambda: Series("rule", X, X, low=X), "give both low and high"),
        (lambda: Series("rule", X, X, X + 1, X), "at x = 1, low = 2 is above high = 1"),
        (lambda: Series("rule", X * np.nan, X), "x holds NaN or infinities"),
        (lambda: Series("rule", X, np.array(["a"] * 4)), "y does not hold plain numbers"),
        (lambda: Series(" ", X, X), "series ' ': the label is empty"),
        (lambda: Series("rule", X, X, colour="red"), "'red'; it must be blue, vermillion"),  # type: ignore[arg-type]
        (lambda: Series("rule", X, X, kind="bar"), "'bar'; it must be line, step or points"),  # type: ignore[arg-type]
        (lambda: Series("rule", X, X, marker="x"), "marker is 'x'; it must be circle"),  # type: ignore[arg-type]
        (lambda: Guide("prior", np.nan), "guide 'prior': at is nan; it must be finite"),
        (lambda: Guide("bound", 1.0, "diagonal"), "0 for a diagonal"),
        (lambda: Region("best", X[:2], X[:2]), r"region 'best': x has shape \(2,\), y \(2,\)"),
        (lambda: Region("best", X[None], X[None]), "one axis and a length of at least 3"),
        (lambda: Region("best", X, X[:3]), r"x has shape \(4,\), y \(3,\)"),
        (lambda: Region("best", X, X * np.inf), "region 'best': all corners must be finite"),
        (lambda: Region("best", X, X, shade=1.5), "shade is 1.5; it must be between 0 and 1"),
        (lambda: Region("", X, X), "region '': the label is empty"),
        (lambda: Region("best", X, X, "red"), "'red'; it must be blue"),  # type: ignore[arg-type]
        (lambda: Word("m₁", np.nan, 0.0), r"word 'm₁': the position \(nan, 0.0\) is not finite"),
        (lambda: Word(" ", 0.0, 0.0), "word ' ': the text is empty"),
        (lambda: panel(regions=[FLAT], xscale="log"), "x = 0 or less cannot be drawn"),
        (lambda: panel(regions=[FLAT], yscale="log"), "y = 0 or less cannot be drawn"),
        (lambda: Panel("", "step t", "", [LINE]), "the ylabel is empty; a reader needs it"),
        (lambda: Panel("", "", "regret", [LINE]), "the xlabel is empty"),
        (lambda: Panel("", "step t", "regret", []), "it has nothing to draw"),
        (lambda: panel(ylim=(1, 1)), r"panel 'Regret': ylim is \(1, 1\); it must increase"),
        (
            lambda: panel(yscale="log", ylim=(0, None)),
            r"ylim is \(0, None\), not positive on a log",
        ),
        (lambda: panel(Series("rule", X - 1, X), xscale="log"), "x = 0 or less cannot be drawn"),
        (lambda: panel(yscale="cube"), "yscale is 'cube'; it must be linear, log or log2"),
        (lambda: Chart("", [panel()], "Lower is better."), "chart '': the title is empty"),
        (lambda: Chart("Regret", [panel()], ""), "chart 'Regret': the how_to_read is empty"),
        (lambda: Chart("Regret", [panel()], "Lower is better.", 2), "1 panels in 2 columns"),
        (lambda: Chart("Regret", [], "Lower is better."), "0 panels in 1 columns"),
        (
            lambda: Chart("Two", [panel(), Panel("", "t", "y", [LINE])], "Lower is better."),
            "a panel of chart 'Two': the title is empty",
        ),
    ],
)
def test_a_chart_that_cannot_be_drawn_or_read_is_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(InvalidChart, match=message):
        make()


def test_a_series_copies_its_numbers() -> None:
    y = np.arange(4)
    series = Series("rule", X, y)
    y[0] = 99
    assert series.y.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        series.y[0] = 1


def test_points_have_a_marker_and_every_mark_a_group() -> None:
    assert Series("rule", X, X, kind="points").marker == "circle"
    assert LINE.marker is None
    assert (LINE.group, Series("rule: k", X, X, group="rule").group) == ("rule", "rule")
    assert Guide("prior").group == "prior"


def test_regions_are_drawn_first_and_words_last() -> None:
    word, guide = Word("m₁", 1.0, 1.0), Guide("prior")
    marks = panel(LINE, regions=[FLAT], words=[word], guides=[guide]).marks
    assert marks == (FLAT, LINE, guide, word)


def test_the_mean_of_runs_has_a_band_of_two_standard_errors() -> None:
    runs = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    series = Series.of_runs("rule", np.arange(2), runs, colour="green")
    assert series.y.tolist() == [2.0, 1.0]
    assert series.low is not None
    assert series.high is not None
    assert series.low == pytest.approx([2 - 4 / np.sqrt(3), 1.0])
    assert series.high == pytest.approx([2 + 4 / np.sqrt(3), 1.0])
    assert series.colour == "green"


def test_one_run_has_a_line_and_no_band() -> None:
    series = Series.of_runs("rule", X, X[None])
    observed = panel(series).visible(series)
    assert observed.y.tolist() == X.tolist()
    assert np.isnan(np.r_[observed.low, observed.high]).all()


def test_non_finite_values_are_not_drawn() -> None:
    y = np.array([1.0, np.nan, np.inf, 4.0])
    series = Series(
        "rule", X, y, np.array([0.0, 0.0, 0.0, -np.inf]), np.array([2.0, 2.0, 2.0, 5.0])
    )
    observed = panel(series).visible(series)
    np.testing.assert_array_equal(observed.y, [1.0, np.nan, np.nan, 4.0])
    np.testing.assert_array_equal(observed.low, [0.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(observed.high, [2.0, np.nan, np.nan, np.nan])


def test_a_logarithmic_axis_shows_positive_values_only_and_clips_bands() -> None:
    low, high = np.array([-1.0, 0.0, 0.5, -3.0]), np.array([2.0, 3.0, 4.0, -2.0])
    series = Series("rule", X, np.array([1.0, 2.0, 0.0, -2.5]), low, high)
    observed = panel(series, yscale="log").visible(series)
    np.testing.assert_array_equal(observed.y, [1.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(observed.low, [0.5, 0.5, np.nan, np.nan])
    np.testing.assert_array_equal(observed.high, [2.0, 3.0, np.nan, np.nan])
    limited = panel(series, yscale="log", ylim=(0.1, None)).visible(series)
    np.testing.assert_array_equal(limited.low, [0.1, 0.1, np.nan, np.nan])


def test_an_axis_ends_where_its_limits_or_the_data_end() -> None:
    series = Series("rule", X, X, X - 2, X + 3)
    assert panel(series).extent("x") == (1.0, 4.0)
    assert panel(series).extent("y") == (-1.0, 7.0)
    assert panel(series, ylim=(None, 5.0)).extent("y") == (-1.0, 5.0)
    assert panel(LINE, regions=[FLAT]).extent("x") == (0.0, 5.0)
    assert Panel("", "x", "y", [], regions=[FLAT]).extent("y") == (-1.0, 2.0)
    nowhere = Series("nowhere", X, X * np.nan)
    assert panel(nowhere).extent("y") == (1.0, 1.0)


def test_series_without_a_colour_get_different_ones_and_keep_them_in_all_panels() -> None:
    def unstyled(title: str, *names: str) -> Panel:
        return Panel(title, "x", "y", [Series(n, np.arange(2), np.ones(2)) for n in names])

    given = Series("given", np.arange(2), np.ones(2), colour="vermillion")
    many = [chr(97 + k) for k in range(9)]
    first, second = with_distinct_lines(
        Chart("c", [unstyled("1", "u", "v", "green"), unstyled("2", "v", "w")], "Read.", 2)
    ).panels
    assert [s.colour for s in first.series] == ["blue", "vermillion", "green"]
    assert [s.colour for s in second.series] == ["vermillion", "orange"]
    mixed = Panel("3", "x", "y", [*unstyled("", "u", "v").series, given])
    assert [s.colour for s in with_colours([mixed])[0].series] == ["blue", "green", "vermillion"]
    all_colours = [s.colour for s in with_colours([unstyled("4", *many)])[0].series]
    assert all_colours == [*PALETTE, "blue"]
    colours = {line.get_color() for line in figures.draw(unstyled("5", "u", "v")).axes[0].lines}
    assert len(colours) == 2
