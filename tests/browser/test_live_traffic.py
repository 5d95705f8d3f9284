"""The live page beside a real server with real traffic: two agents, one of which goes wrong."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.live_stub import Open, figure, tabs


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    yield from tabs(chromium)


@pytest.fixture
def demo() -> Iterator[str]:
    """The address of a demo that ends by itself; in a process of its own, as a user starts it."""
    code = "from bayescontrol.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--seconds", "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def test_the_page_shows_real_traffic_as_it_comes(tab: Open, demo: str) -> None:
    assert demo.startswith("http://127.0.0.1:")
    said: list[str] = []
    page = tab(demo, said=said)
    expect(page.locator("#agents button")).to_have_count(2, timeout=10_000)
    first = _decisions(page.locator("#agent .facts").inner_text())
    time.sleep(3.0)
    later = _decisions(page.locator("#agent .facts").inner_text())
    assert later > first
    for title, marks in (
        ("Posterior now", "circle.dot"),
        ("Action probabilities now", "rect.bar"),
        ("Decisions per second", "path.line"),
    ):
        expect(figure(page, title).locator(".canvas svg").locator(marks).first).to_be_visible()
    assert said == []


def _decisions(facts: str) -> int:
    lines = facts.split("\n")
    return int(lines[lines.index("decisions") + 1].replace(",", ""))
