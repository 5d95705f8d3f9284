"""A headless Chromium, and fixtures that open pages in it.

The browser is open for one test file only: while Playwright's synchronous API is in use, no other
event loop can run in this process, and other tests need theirs.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from bayescontrol.lab import conduct, find
from bayescontrol.report.build import section, write_index, write_page

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
#: Studies small enough to be run for a test, large enough for error bars and bands.
_SMALL: Final[dict[str, dict[str, Any]]] = {
    "chain": {"runs": 12, "steps": 1000, "k_max": 5, "scale": 4, "growing_steps": 60},
    "delusion": {"runs": 24, "steps": 12},
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, or another one that is installed."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip(
            "pages are not tested, there is no Chromium: install it with `apt-get install "
            "chromium`, or put one called chromium or google-chrome on the PATH"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of two small studies with their pages, as `bayescontrol reproduce` makes them."""
    folder = tmp_path_factory.mktemp("report")
    sections = []
    for name, sizes in _SMALL.items():
        experiment = find(name)
        result = conduct(experiment, replace(experiment.quick, **sizes))
        sections.append(replace(section(result, folder / name), folder=name))
        write_page(sections[-1], folder / name)
    return write_index("The claims of the paper", sections, folder)[0]


@dataclass
class Visit:
    """An open page, its console messages and its requests."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def visit(chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a page at a given width, light or dark, on a desktop or a phone."""
    contexts = []

    def opened(path: Path, width: int = 1280, scheme: Any = "light", phone: bool = False) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=scheme,
            has_touch=phone,
            is_mobile=phone,
        )
        contexts.append(context)
        visited = Visit(context.new_page())
        visited.page.on("console", lambda message: visited.messages.append(message.text))
        visited.page.on("pageerror", lambda error: visited.messages.append(str(error)))
        visited.page.on("request", lambda request: visited.requests.append(request.url))
        visited.page.goto(path.as_uri())
        return visited

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def wide_page(visit: Callable[..., Visit], report: Path) -> Visit:
    """The page of a study on a wide screen; tests restore its state."""
    return visit(page_of(report, "chain"))


def page_of(report: Path, name: str) -> Path:
    """The page of a study, or the index."""
    return report if name == "index" else report.parent / name / "index.html"
