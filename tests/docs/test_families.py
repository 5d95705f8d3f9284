"""What the pages say about the families of bandits is made from their descriptions."""

from pathlib import Path

import pytest
from docs.family_tables import PAGES, texts, with_texts

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_the_families_of_a_page_are_up_to_date(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_texts(text) == text, "run python docs/family_tables.py"


def test_every_text_is_on_a_page_and_a_missing_row_is_noticed() -> None:
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    assert all(f"<!-- {name} -->" in pages for name in texts())
    assert "| `GeometricBandit(arms)` |" in texts()["families"]
    assert texts()["no exact probabilities"] == "`CategoricalBandit`"
