"""The live page with a real server and real traffic: two agents, one of which breaks."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.live_stub import Open, figure, tabs
from tests.limits import TIMEOUT

_MILLISECONDS = 1000 * TIMEOUT


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    yield from tabs(chromium)


@pytest.fixture
def demo() -> Iterator[str]:
    """The address of a demo that ends by itself, in a separate process."""
    code = "from bayescontrol.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--seconds", "21", "--rate", "120"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def facts(page: Page) -> dict[str, str]:
    """Return the facts of the selected agent."""
    lines = page.locator("#agent .facts").inner_text().split("\n")
    return dict(zip(lines[::2], lines[1::2], strict=True))


def fact(page: Page, name: str) -> float:
    return float(facts(page)[name].replace(",", ""))


def require_drawn(page: Page, *drawn: tuple[str, str]) -> None:
    for title, marks in drawn:
        expect(figure(page, title).locator(".canvas svg").locator(marks).first).to_be_visible(
            timeout=_MILLISECONDS
        )


def test_the_page_shows_real_traffic_and_the_alarm_of_the_broken_lever(
    tab: Open, demo: str
) -> None:
    """The lever is pulled fifty times before it breaks; the alarm fails with probability < 3e-3."""
    assert demo.startswith("http://127.0.0.1:")
    messages: list[str] = []
    page = tab(demo, messages=messages)
    expect(page.locator("#agents button")).to_have_count(2, timeout=_MILLISECONDS)
    page.get_by_role("button", name="checkout").click()
    first = fact(page, "decisions")
    page.wait_for_function(
        """before => {
          const facts = [...document.querySelectorAll("#agent .facts div")];
          const of = Object.fromEntries(
            facts.map((row) => [...row.children].map((cell) => cell.innerText)));
          const number = (name) => Number((of[name] ?? "").replace(",", ""));
          return number("decisions") > before && number("surprise (bits)") > 0
            && number("regret (reward)") > 0;
        }""",
        arg=first,
        timeout=_MILLISECONDS,
    )
    assert "no mode fits" not in facts(page)
    require_drawn(
        page,
        ("Posterior now", "circle.dot"),
        ("Action probabilities now", "rect.bar"),
        ("Decisions per second", "path.line"),
        ("Surprise", "path.line"),
        ("Regret", "path.line"),
    )
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("dispenser: no mode fits what is observed.", timeout=_MILLISECONDS)
    assert page.title() == "Alarm: dispenser · bayescontrol"
    page.get_by_role("button", name="dispenser").click()
    expect(page.locator("#agent h2")).to_have_text("dispenser")
    assert facts(page)["no mode fits"] == "ALARM"
    assert fact(page, "surprise (bits)") > 0.0
    require_drawn(
        page,
        ("Posterior now", "rect.bar"),
        ("Surprise", "path.line"),
        ("Evidence that no mode fits", "path.line"),
    )
    expect(figure(page, "Evidence that no mode fits")).to_contain_text("alarm at 6.64 bits")
    expect(figure(page, "Regret")).to_be_hidden()
    assert messages == []
