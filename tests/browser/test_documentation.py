"""The pages of the documentation in a browser: version, search, copying and long lines."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import bayescontrol

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = """# Hazards

```python
>>> hazard = 0.1
>>> for _ in range(2):
...     hazard = hazard / 2
>>> hazard
0.025
>>> LONG
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the index, a guide and the design records, with the configuration of the project."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS / "adr", source / "adr")
    shutil.copy(DOCS / "index.md", source)
    guide = GUIDE.replace("LONG", "x = '" + "long " * 60 + "'")
    (source / "changing-bandit.md").write_text(guide, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-Q", "-b", "html", "-c", str(DOCS)]
    subprocess.run([*command, str(source), str(out)], check=True, timeout=900)
    return out


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 900, "height": 800})
    yield page
    page.close()


def test_the_index_shows_the_version(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    assert f"Version {bayescontrol.__version__}" in page.inner_text("article")
    assert bayescontrol.__version__ in page.title()


def test_search_ranks_design_records_below_guides(site: Path, page: Page) -> None:
    page.goto((site / "search.html").as_uri() + "?q=hazard")
    page.wait_for_selector("#search-results li a")
    page.wait_for_function("document.querySelectorAll('#search-results li').length > 1")
    found = page.eval_on_selector_all("#search-results li a", "a => a.map(x => x.href)")
    is_record = ["/adr/" in link for link in found]
    assert "changing-bandit.html" in found[0]
    assert any(is_record)
    assert is_record == sorted(is_record)


def test_code_is_copied_without_prompts_and_long_lines_wrap(site: Path, page: Page) -> None:
    page.goto((site / "changing-bandit.html").as_uri())
    page.wait_for_selector("button.copybtn", state="attached")
    page.evaluate(
        "document.addEventListener('copy', () => window.copied = document.activeElement.value)"
    )
    page.click("button.copybtn", force=True)
    copied = page.evaluate("window.copied")
    assert copied.startswith("hazard = 0.1\nfor _ in range(2):\n    hazard = hazard / 2\nhazard\n")
    assert "0.025" not in copied
    width, content = page.eval_on_selector("pre", "p => [p.clientWidth, p.scrollWidth]")
    assert content <= width
