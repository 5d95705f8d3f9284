"""A headless Chromium, and fixtures that open pages in it.

The browser is open for one test file only: while Playwright's synchronous API is in use, no other
event loop can run in this process, and other tests need theirs.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.live_stub import Stub
from tests.limits import TIMEOUT

expect.set_options(timeout=1000 * TIMEOUT)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: The contrast of the visible texts that a selector finds with their backgrounds.
_CONTRAST: Final = """selector => {
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
  return [...document.querySelectorAll(selector)]
    .filter(node => node.checkVisibility() && node.textContent.trim())
    .map(node => {
      const style = getComputedStyle(node);
      const colour = node.tagName === 'text' ? style.fill : style.color;
      const [a, b] = [light(parts(colour)), light(ground(node))];
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    });
}"""


@dataclass
class Visit:
    """An open page, its console messages and its requests."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open: TypeAlias = Callable[..., Visit]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, or another one that is installed."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("pages are not tested: install Chromium with `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Open]:
    """Open a page of a server or a file; all are closed at the end."""
    contexts = []

    def opened(address: str | Path, width: int = 1280, phone: bool = False, **more: Any) -> Visit:
        size: Any = {"width": width, "height": 844}
        context = chromium.new_context(viewport=size, has_touch=phone, is_mobile=phone, **more)
        contexts.append(context)
        visited = Visit(context.new_page())
        visited.page.set_default_timeout(1000 * TIMEOUT)
        visited.page.on("console", lambda message: visited.messages.append(message.text))
        visited.page.on("pageerror", lambda error: visited.messages.append(str(error)))
        visited.page.on("request", lambda request: visited.requests.append(request.url))
        visited.page.goto(address.as_uri() if isinstance(address, Path) else address)
        return visited

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server of the live page with scripted events."""
    stub = Stub()
    yield stub
    stub.close()


def least_contrast(page: Page, selector: str) -> float:
    """The least contrast of a text with its background; the guidelines require 4.5."""
    return float(min(page.evaluate(_CONTRAST, selector)))


def width_of(page: Page) -> list[int]:
    """The width of the window, and of its content, which must not be larger."""
    found: list[int] = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    return found
