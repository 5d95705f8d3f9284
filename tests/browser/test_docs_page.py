"""The documentation page of the HTTP interface in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.live_stub import Open, tabs

from bayescontrol.durable.kinds import KINDS
from bayescontrol.serve import Server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server("sqlite:///:memory:", port=0) as server:
        yield server.url


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    yield from tabs(chromium)


@pytest.mark.parametrize(
    ("width", "more"), [(1280, {}), (390, {"is_mobile": True, "has_touch": True}), (320, {})]
)
def test_nothing_is_wider_than_the_window(
    tab: Open, url: str, width: int, more: dict[str, Any]
) -> None:
    messages: list[str] = []
    page: Page = tab(f"{url}/docs", width=width, messages=messages, **more)
    wide = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert wide == [width, width]
    # Nothing is cut off: long text wraps.
    cut = """all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"""
    assert page.locator("pre, td, h3, p").evaluate_all(cut) == 0
    assert messages == []


def test_the_examples_are_for_the_server_that_shows_them(tab: Open, url: str) -> None:
    page: Page = tab(f"{url}/docs")
    for name in KINDS:
        expect(page.locator(f"#{name}")).to_be_visible()
    examples = page.locator("pre").all_inner_texts()
    assert len(examples) == 1 + len(KINDS)
    assert all(f"{url}/v1/agents" in text for text in examples)
