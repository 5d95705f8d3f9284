"""The report in a real browser: figures are visible, legends work, nothing is requested."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from tests.browser.conftest import Open, least_contrast, width_of

from bayescontrol.lab import Score, conduct, find
from bayescontrol.lab.runner import Result
from bayescontrol.plot.chart import Chart, Guide, Panel, Series
from bayescontrol.report.build import section, write_index, write_page

#: Studies small enough to be run for a test, large enough for error bars and bands.
_SMALL: Final[dict[str, dict[str, Any]]] = {
    "chain": {"runs": 12, "steps": 1000, "k_max": 5, "scale": 4, "growing_steps": 60},
    "delusion": {"runs": 24, "steps": 12},
}
GROWING = "figure:has(h3:text-is('The growing chain'))"
#: The number of visible marks of a plot.
MARKS = """plot => [...plot.querySelectorAll('[data-group]:not([role=button])')]
    .filter(mark => mark.getBoundingClientRect().height + mark.getBoundingClientRect().width > 0)
    .length"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two small studies with their pages, as `bayescontrol reproduce` makes them."""
    folder = tmp_path_factory.mktemp("report")
    sections = []
    for name, sizes in _SMALL.items():
        experiment = find(name)
        result = conduct(experiment, replace(experiment.quick, **sizes))
        sections.append(replace(section(result, folder / name), folder=name))
        write_page(sections[-1], folder / name)
    return write_index("The claims of the paper", sections, folder)[0].parent


@pytest.mark.parametrize(("name", "charts"), [(".", 0), ("chain", 2), ("delusion", 1)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_the_screen_is_legible_and_needs_no_network(
    visit: Open, report: Path, name: str, charts: int, scheme: str, width: int
) -> None:
    path = report / name / "index.html"
    visited = visit(path, width, phone=width < 600, color_scheme=scheme)
    assert width_of(visited.page) == [width, width]
    texts = "h1, h2, td, th, td span, .reason, .note, .read, a"
    assert least_contrast(visited.page, texts) >= 4.5
    plots = visited.page.locator(".plot").all()
    assert len(plots) == charts
    for plot in plots:
        assert plot.evaluate(MARKS) >= 4
        assert plot.locator("text").count() >= 6
        box = plot.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert visited.messages == []
    assert visited.requests == [path.as_uri()]


def test_links_lead_to_pages_figure_files_and_folded_checks(visit: Open, report: Path) -> None:
    visited = visit(report / "index.html")
    page = visited.page
    page.get_by_role("link", name="delusion").first.click()
    assert page.title() == "delusion"
    page.get_by_role("link", name="All results").click()
    assert page.title() == "The claims of the paper"
    page.get_by_role("link", name="chain").first.click()
    page.wait_for_load_state("load")
    links = page.locator(".files a").all()
    assert len(links) == 4
    for link in links:
        path = Path(unquote(urlparse(link.evaluate("a => a.href")).path))
        assert path.read_bytes()[:4] in (b"%PDF", b"\x89PNG")
    size = "cells => Math.min(...cells.map(cell => parseFloat(getComputedStyle(cell).fontSize)))"
    assert page.locator("td, th").evaluate_all(size) >= 14
    checks = page.locator("h2:text-is('Our own checks') + details")
    assert not checks.locator("table").is_visible()
    checks.locator("summary").click()
    assert checks.locator("table").is_visible()
    assert visited.messages == []


@pytest.mark.parametrize("phone", [False, True])
def test_the_legend_hides_a_series_in_every_panel_also_in_dark_mode(
    visit: Open, report: Path, phone: bool
) -> None:
    visited = visit(report / "chain" / "index.html", 390 if phone else 1280, phone)
    page = visited.page
    plot = page.locator(f"{GROWING} .plot")
    box: Any = plot.bounding_box()
    assert (plot.evaluate("plot => plot.scrollWidth") > box["width"]) == phone
    before = plot.evaluate(MARKS)
    button = plot.locator("[role=button]", has_text="doubling")
    (button.tap if phone else button.click)()
    assert button.get_attribute("aria-pressed") == "false"
    hidden = plot.evaluate(MARKS)
    assert hidden <= before - 2  # in both panels

    def colours() -> list[str]:
        ground = "getComputedStyle(document.body).backgroundColor"
        fill = "plot => getComputedStyle(plot.querySelector('text')).fill"
        line = "plot => getComputedStyle(plot.querySelector('[data-group] path')).stroke"
        return [page.evaluate(ground), plot.evaluate(fill), plot.evaluate(line)]

    assert colours() == ["rgb(255, 255, 255)", "rgb(26, 26, 26)", "rgb(0, 0, 0)"]
    page.emulate_media(color_scheme="dark")
    assert colours() == ["rgb(21, 24, 28)", "rgb(232, 232, 232)", "rgb(242, 242, 242)"]
    assert plot.evaluate(MARKS) == hidden
    button.press("Enter")  # a keyboard works as well
    assert button.get_attribute("aria-pressed") == "true"
    assert plot.evaluate(MARKS) == before
    tables = page.locator(".wide:has(table.plain)")  # on a phone they scroll, the page does not
    wide = tables.evaluate_all("all => all.some(t => t.scrollWidth > t.clientWidth)")
    assert wide or not phone
    assert tables.evaluate_all("all => all.every(t => getComputedStyle(t).overflowX === 'auto')")
    assert visited.messages == []


def test_a_band_is_hidden_with_its_line(visit: Open, report: Path) -> None:
    plot = visit(report / "delusion" / "index.html").page.locator(".plot")
    button = plot.locator("[role=button]", has_text="causal: right")
    before = plot.evaluate(MARKS)
    button.click()
    assert plot.evaluate(MARKS) == before - 2


def test_missing_values_and_odd_names_are_drawn_and_nothing_is_fetched(
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
    visited = visit(write_page(section(Result(study, {}, {}, Score(())), tmp_path), tmp_path))
    page = visited.page
    assert visited.messages == []
    assert page.title() == "odd"
    assert odd in page.locator("main > p").all_text_contents()
    for plot in page.locator(".plot").all():
        # Two panels have two axes each, one has a note, and they share a legend.
        assert plot.locator("text").all_text_contents().count(odd) == 2 * 2 + 1 + 1
        assert plot.locator("b").count() == 0
    assert odd in page.locator(".plot [role=button] text").all_text_contents()
    fetched = "url => fetch(url).then(() => 'fetched', () => 'refused')"
    assert page.evaluate(fetched, "http://127.0.0.1:9/") == "refused"
    assert "Content Security Policy" in " ".join(visited.messages)
