"""The report in a real browser: it draws, answers to a click, and asks nobody for anything."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from playwright.sync_api import Locator

from bayescontrol.lab import Outcome
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Guide, Series
from bayescontrol.lab.runner import Result
from bayescontrol.report.build import section, write_page

Open: TypeAlias = Callable[..., Any]

GROWING = "figure:has(h3:text-is('The growing chain'))"
#: The groups of the traces that a plot shows.
SHOWN = """plot => [...new Set(plot._fullData.filter(t => t.visible === true)
    .map(t => t.legendgroup))]"""
#: Marks that are really there: paths with a course, in the layer of the data.
MARKS = """plot => [...plot.querySelectorAll('.scatterlayer path')]
    .filter(path => (path.getAttribute('d') || '').length > 4).length"""
#: The contrast of every text in tables and captions with what lies behind it.
CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (c) => c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/rgba\\(.*, 0\\)/.test(colour)) return parts(colour);
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('h1, h2, td, th, td span, .reason, .note, .read, a')]
    .map(node => {
      const [a, b] = [light(parts(getComputedStyle(node).color)), light(ground(node))];
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    });
}"""


def click(plot: Locator, group: str, *, shows: bool) -> None:
    """Click an entry of the legend and wait until its group is shown, or hidden."""
    plot.locator(".legend .traces", has_text=group).locator(".legendtoggle").click()
    plot.page.wait_for_function(
        f"([plot, group, shows]) => ({SHOWN})(plot).includes(group) === shows",
        arg=[plot.element_handle(), group, shows],
    )


def test_every_figure_is_drawn_without_a_word_and_without_the_network(
    desk: Any, report: Path
) -> None:
    plots = desk.page.locator(".plot").all()
    assert len(plots) == 1 + 2 + 4
    for plot in plots:
        assert plot.evaluate(MARKS) >= 4
    assert desk.said == []
    assert {urlparse(url).scheme for url in desk.asked} <= {"file", "data", "blob"}
    assert [url for url in desk.asked if url.startswith("file:")] == [report.as_uri()]


def test_a_click_on_the_legend_hides_a_series_in_every_panel_and_brings_it_back(desk: Any) -> None:
    left, right = desk.page.locator(f"{GROWING} .plot").all()
    before = [left.evaluate(MARKS), right.evaluate(MARKS)]
    click(right, "doubling", shows=False)
    assert "doubling" not in left.evaluate(SHOWN)
    assert "Bayes-optimal" in left.evaluate(SHOWN)
    assert left.evaluate(MARKS) < before[0]
    assert right.evaluate(MARKS) < before[1]
    click(right, "doubling", shows=True)
    assert [left.evaluate(MARKS), right.evaluate(MARKS)] == before
    assert desk.said == []


def test_a_band_is_hidden_with_its_line(desk: Any) -> None:
    plot = desk.page.locator(".plot").nth(3)
    bands = "plot => plot.querySelectorAll('.scatterlayer .js-fill').length"
    assert plot.evaluate(bands) == 4
    click(plot, "causal: right", shows=False)
    assert plot.evaluate(bands) == 3
    click(plot, "causal: right", shows=True)


def test_a_value_under_the_pointer_comes_with_its_interval(desk: Any) -> None:
    plot = desk.page.locator(".plot").first
    points = plot.locator(".scatterlayer .points:has(path)").first  # of the rule, apart from all
    points.locator("path").last.hover(force=True)
    box = plot.locator(".hoverlayer .hovertext").first
    box.wait_for()
    words = box.text_content()
    assert "length of the chain, k: 5" in words
    assert " to " in words
    assert "every step" in words


def test_the_dark_changes_the_page_and_the_figures_and_keeps_what_was_hidden(desk: Any) -> None:
    left, right = desk.page.locator(f"{GROWING} .plot").all()
    click(right, "doubling", shows=False)

    def colours() -> tuple[str, ...]:
        ground = "getComputedStyle(document.body).backgroundColor"
        paper = "plot => plot._fullLayout.paper_bgcolor"
        ink = "plot => plot._fullData[0].line.color"
        return desk.page.evaluate(ground), left.evaluate(paper), left.evaluate(ink)

    assert colours() == ("rgb(255, 255, 255)", "#ffffff", "#000000")
    desk.page.emulate_media(color_scheme="dark")
    assert colours() == ("rgb(21, 24, 28)", "#15181c", "#f2f2f2")
    for plot in (left, right):
        assert "doubling" not in plot.evaluate(SHOWN)
    desk.page.emulate_media(color_scheme="light")
    click(right, "doubling", shows=True)
    assert desk.said == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_text_stands_out_from_its_ground(desk: Any, scheme: Any) -> None:
    """4.5 to 1, as the accessibility guidelines ask; and no text is small."""
    desk.page.emulate_media(color_scheme=scheme)
    assert min(desk.page.evaluate(CONTRAST)) >= 4.5
    size = "cells => Math.min(...cells.map(cell => parseFloat(getComputedStyle(cell).fontSize)))"
    assert desk.page.locator("td, th").evaluate_all(size) >= 14


def test_the_printed_figures_lie_where_the_page_says(desk: Any) -> None:
    links = desk.page.locator(".files a").all()
    assert len(links) == 6
    for link in links:
        path = Path(unquote(urlparse(link.evaluate("a => a.href")).path))
        assert path.read_bytes()[:4] in (b"%PDF", b"\x89PNG")


def test_on_a_phone_tables_scroll_and_the_page_does_not(visit: Open, report: Path) -> None:
    phone = visit(report, 390, phone=True)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390
    assert phone.page.evaluate("innerWidth") == 390
    tables = phone.page.locator(".wide:has(table.plain)")
    assert tables.evaluate_all("all => all.some(t => t.scrollWidth > t.clientWidth)")
    assert tables.evaluate_all("all => all.every(t => getComputedStyle(t).overflowX === 'auto')")
    for plot in phone.page.locator(".plot").all():
        box = plot.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert plot.evaluate("plot => plot._fullLayout.yaxis._length") > 170
        assert plot.evaluate("plot => plot._fullLayout.dragmode") is False
    assert phone.said == []


def test_a_finger_on_the_legend_hides_a_series_too(visit: Open, report: Path) -> None:
    phone = visit(report, 390, "dark", phone=True)
    left, right = phone.page.locator(f"{GROWING} .plot").all()
    right.locator(".legend .traces", has_text="doubling").locator(".legendtoggle").tap()
    hidden = f"plot => !({SHOWN})(plot).includes('doubling')"
    phone.page.wait_for_function(hidden, arg=left.element_handle())
    assert phone.said == []


def test_panels_stand_side_by_side_on_a_screen_and_below_each_other_if_it_is_narrow(
    desk: Any,
) -> None:
    left, right = desk.page.locator(f"{GROWING} .plot").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    desk.page.set_viewport_size({"width": 390, "height": 844})
    assert left.bounding_box()["x"] == right.bounding_box()["x"]
    desk.page.set_viewport_size({"width": 1280, "height": 844})


def test_missing_values_and_odd_names_are_drawn_in_silence(visit: Open, tmp_path: Path) -> None:
    x = np.arange(1.0, 6.0)
    nothing = np.full(5, np.inf)  # of the error of a single run
    y = np.array([1.0, np.nan, 3.0, np.inf, 0.0])
    high = np.array([2, 3, np.nan, 5, 6])
    odd = "</script><b>%{x} $a$ & #0072b2"
    series = [
        Series(odd, x, y, -nothing, nothing),
        Series("partly", x, x, np.array([0.5, 1, np.nan, 3, -1]), high, colour="green"),
        Series("bars", x, x, high - 2, high, "points"),
        Series("step", x, x, x / 2, x * 2, "step", colour="purple"),
        Series("nowhere", x, y * np.nan),
    ]
    guides = [Guide("y"), Guide("x", 2.0, "vertical"), Guide("y = x", direction="diagonal")]
    panels = [
        Panel("linear", odd, odd, series, guides),
        Panel("log", odd, odd, series, guides[1:], "log", "log2", notes=[odd]),
    ]
    chart = Chart(odd, panels, odd, columns=2, note=odd)
    study: Any = SimpleNamespace(name="odd", summary=odd, figures=lambda *_: {"odd": chart})
    path = write_page(odd, [section(Result(study, {}, {}, Outcome(())), tmp_path)], tmp_path)
    opened = visit(path)
    assert opened.said == []
    assert opened.page.title() == odd
    for plot in opened.page.locator(".plot").all():
        assert plot.locator(".xtitle").text_content() == odd
        assert odd in plot.locator(".legendtext").all_text_contents()
        assert plot.locator(".xtitle b").count() == 0


def test_the_browser_would_refuse_to_fetch_anything(visit: Open, tmp_path: Path) -> None:
    opened = visit(write_page("Empty", [], tmp_path))
    refused = "url => fetch(url).then(() => 'fetched', () => 'refused')"
    assert opened.page.evaluate(refused, "http://127.0.0.1:9/") == "refused"
    assert "Content Security Policy" in " ".join(opened.said)
