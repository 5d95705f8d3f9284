"""The figures of the documentation are current, and every figure is shown somewhere."""

import re
from pathlib import Path

import pytest
from tests.docs.figures_script import figures

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("source", figures.sources())
def test_the_figures_of_a_page_are_current(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # code on the pages names files relative to the root
    texts = figures.make(source)
    assert texts
    old = [name for name, text in texts.items() if not figures.is_current(name, text)]
    assert old == [], f"run `python docs/figures.py {source}`, look at the figures, commit them"


def test_every_figure_is_shown_and_every_shown_figure_exists() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"_figures/([\w-]+\.\w+)", text))
    assert shown == {path.name for path in figures.FOLDER.iterdir()}


def test_figures_are_small_files_with_a_white_background_and_text() -> None:
    for path in figures.FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 150_000, path.name
        assert "fill: #ffffff" in text, path.name
        assert "<text" in text, path.name


def test_a_check_tolerates_rounding_and_nothing_else() -> None:
    stored = figures.FOLDER / "posterior.svg"
    text = stored.read_text(encoding="utf-8")
    number = re.search(r"(?<=M )\d+\.\d", text)
    assert number is not None

    def moved(by: float) -> str:
        return f"{text[: number.start()]}{float(number[0]) + by:.2f}{text[number.end() :]}"

    assert figures.is_current(stored.stem, moved(0.05))
    assert not figures.is_current(stored.stem, moved(1.0))
    assert not figures.is_current(stored.stem, text.replace("step t", "step s"))
    assert not figures.is_current(stored.stem, text.replace(">0.2</text>", ">0.3</text>"))
    assert not figures.is_current("no-such-figure", text)
