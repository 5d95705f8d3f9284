"""The report in a real browser: figures are visible, legends work, nothing is requested."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from playwright.sync_api import Locator
from tests.browser.conftest import page_of

from bayescontrol.lab import Score
from bayescontrol.lab.runner import Result
from bayescontrol.plot.chart import Chart, Guide, Panel, Series
from bayescontrol.report.build import section, write_index, write_page

Open: TypeAlias = Callable[..., Any]

GROWING = "figure:has(h3:text-is('The growing chain'))"
#: The number of visible marks of a plot.
MARKS = """plot => [...plot.querySelectorAll('[data-group]')]
    .filter(mark => mark.getBoundingClientRect().height + mark.getBoundingClientRect().width > 0)
    .length"""
#: The contrast of every text in tables and captions with its background.
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


def legend(page: Any, figure: str, label: str) -> Locator:
    """The legend button of a series."""
    button: Locator = page.locator(f"{figure} .legend button", has_text=label).first
    return button


@pytest.mark.parametrize(("name", "panels"), [("chain", 1 + 2), ("delusion", 4)])
def test_every_figure_is_drawn_without_a_message_and_without_the_network(
    visit: Open, report: Path, name: str, panels: int
) -> None:
    opened = visit(page_of(report, name))
    plots = opened.page.locator(".plot").all()
    assert len(plots) == panels
    for plot in plots:
        assert plot.evaluate(MARKS) >= 4
        assert plot.locator("text").count() >= 6
    assert opened.messages == []
    assert opened.requests == [page_of(report, name).as_uri()]


@pytest.mark.parametrize("name", ["index", "chain", "delusion"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_the_screen_and_is_legible_in_light_and_dark(
    visit: Open, report: Path, name: str, scheme: str, width: int
) -> None:
    """Text has a contrast of at least 4.5 to 1, as the accessibility guidelines require."""
    opened = visit(page_of(report, name), width, scheme, phone=width < 600)
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    assert min(opened.page.evaluate(CONTRAST)) >= 4.5
    assert opened.messages == []


def test_the_index_leads_to_the_page_of_an_experiment_and_back(visit: Open, report: Path) -> None:
    opened = visit(report)
    opened.page.get_by_role("link", name="delusion").first.click()
    assert opened.page.title() == "delusion"
    opened.page.get_by_role("link", name="All results").click()
    assert opened.page.title() == "The claims of the paper"
    assert opened.messages == []


def test_our_checks_are_folded_and_open_on_a_click(wide_page: Any) -> None:
    checks = wide_page.page.locator("h2:text-is('Our own checks') + details")
    table = checks.locator("table")
    assert not table.is_visible()
    checks.locator("summary").click()
    assert table.is_visible()
    checks.locator("summary").click()


def test_a_legend_button_hides_a_series_in_every_panel_and_shows_it_again(wide_page: Any) -> None:
    left, right = wide_page.page.locator(f"{GROWING} .plot").all()
    before = [left.evaluate(MARKS), right.evaluate(MARKS)]
    button = legend(wide_page.page, GROWING, "doubling")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert left.evaluate(MARKS) < before[0]
    assert right.evaluate(MARKS) < before[1]
    button.press("Enter")  # a keyboard works as well
    assert button.get_attribute("aria-pressed") == "true"
    assert [left.evaluate(MARKS), right.evaluate(MARKS)] == before
    assert wide_page.messages == []


def test_a_band_is_hidden_with_its_line(visit: Open, report: Path) -> None:
    panel = visit(page_of(report, "delusion")).page.locator(".panel").first
    plot, button = panel.locator(".plot"), panel.locator("button", has_text="causal: right")
    before = plot.evaluate(MARKS)
    button.click()
    assert plot.evaluate(MARKS) == before - 2
    button.click()
    assert plot.evaluate(MARKS) == before


def test_dark_mode_changes_page_and_figures_and_keeps_hidden_series(
    wide_page: Any,
) -> None:
    left = wide_page.page.locator(f"{GROWING} .plot").first
    button = legend(wide_page.page, GROWING, "doubling")
    button.click()
    hidden = left.evaluate(MARKS)

    def colours() -> list[str]:
        ground = "getComputedStyle(document.body).backgroundColor"
        fill = "plot => getComputedStyle(plot.querySelector('text')).fill"
        line = "plot => getComputedStyle(plot.querySelector('[data-group] path')).stroke"
        return [wide_page.page.evaluate(ground), left.evaluate(fill), left.evaluate(line)]

    assert colours() == ["rgb(255, 255, 255)", "rgb(26, 26, 26)", "rgb(0, 0, 0)"]
    wide_page.page.emulate_media(color_scheme="dark")
    assert colours() == ["rgb(21, 24, 28)", "rgb(232, 232, 232)", "rgb(242, 242, 242)"]
    assert left.evaluate(MARKS) == hidden
    wide_page.page.emulate_media(color_scheme="light")
    button.click()
    assert wide_page.messages == []


def test_no_text_in_tables_is_small(wide_page: Any) -> None:
    size = "cells => Math.min(...cells.map(cell => parseFloat(getComputedStyle(cell).fontSize)))"
    assert wide_page.page.locator("td, th").evaluate_all(size) >= 14


def test_the_links_to_the_figure_files_work(wide_page: Any) -> None:
    links = wide_page.page.locator(".files a").all()
    assert len(links) == 4
    for link in links:
        path = Path(unquote(urlparse(link.evaluate("a => a.href")).path))
        assert path.read_bytes()[:4] in (b"%PDF", b"\x89PNG")


def test_on_a_phone_tables_scroll_and_the_page_does_not(visit: Open, report: Path) -> None:
    phone = visit(page_of(report, "chain"), 390, phone=True)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390
    assert phone.page.evaluate("innerWidth") == 390
    tables = phone.page.locator(".wide:has(table.plain)")
    assert tables.evaluate_all("all => all.some(t => t.scrollWidth > t.clientWidth)")
    assert tables.evaluate_all("all => all.every(t => getComputedStyle(t).overflowX === 'auto')")
    for plot in phone.page.locator(".plot").all():
        box = plot.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["height"] > 200
    assert phone.messages == []


def test_a_tap_on_the_legend_hides_a_series(visit: Open, report: Path) -> None:
    phone = visit(page_of(report, "chain"), 390, "dark", phone=True)
    left = phone.page.locator(f"{GROWING} .plot").first
    before = left.evaluate(MARKS)
    legend(phone.page, GROWING, "doubling").tap()
    assert left.evaluate(MARKS) < before
    assert phone.messages == []


def test_panels_are_side_by_side_on_a_wide_screen_and_stacked_on_a_narrow_one(
    wide_page: Any,
) -> None:
    left, right = wide_page.page.locator(f"{GROWING} .plot").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    wide_page.page.set_viewport_size({"width": 390, "height": 844})
    assert left.bounding_box()["x"] == right.bounding_box()["x"]
    wide_page.page.set_viewport_size({"width": 1280, "height": 844})


def test_missing_values_and_odd_names_are_drawn_without_a_message(
    visit: Open, tmp_path: Path
) -> None:
    x = np.arange(1.0, 6.0)
    nothing = np.full(5, np.inf)  # the error of a single run
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
    opened = visit(write_page(section(Result(study, {}, {}, Score(())), tmp_path), tmp_path))
    assert opened.messages == []
    assert opened.page.title() == "odd"
    assert odd in opened.page.locator("main > p").all_text_contents()
    for plot in opened.page.locator(".plot").all():
        assert plot.locator("text").all_text_contents().count(odd) == 2
        assert plot.locator("b").count() == 0
    assert odd in opened.page.locator(".legend button").all_text_contents()


def test_the_browser_refuses_to_fetch_anything(visit: Open, tmp_path: Path) -> None:
    opened = visit(write_index("Empty", [], tmp_path)[0])
    refused = "url => fetch(url).then(() => 'fetched', () => 'refused')"
    assert opened.page.evaluate(refused, "http://127.0.0.1:9/") == "refused"
    assert "Content Security Policy" in " ".join(opened.messages)
