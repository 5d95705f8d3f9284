"""Every notebook of the documentation runs, shows its figures, and prints what its page says."""

import json
import re
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import notebooks  # noqa: E402

sys.path.remove(str(DOCS))  # its scripts would hide modules of the same name


def text_of(cell: Any) -> str:
    """Return what the cell printed, its result, or its error, as a doctest shows them."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif output.output_type == "execute_result":
            parts.append(output.data["text/plain"] + "\n")
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}\n")
    return "".join(parts)


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_a_notebook_shows_what_its_page_shows(page: str, tmp_path: Path) -> None:
    document = notebooks.notebook(page)
    code = [cell for cell in document.cells if cell.cell_type == "code"]
    NotebookClient(document, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    wrong = [
        (cell.source, text_of(cell))
        for cell in code
        if not OutputChecker().check_output(
            cell.metadata.want, text_of(cell), ELLIPSIS | NORMALIZE_WHITESPACE
        )
    ]
    assert wrong == []
    images = sum("image/png" in getattr(o, "data", {}) for cell in code for o in cell.outputs)
    text = (DOCS / f"{page}.md").read_text("utf-8")
    drawn = re.findall(rf"^`python docs/figures\.py {page}\.md`$", text, re.MULTILINE)
    assert images == len(drawn) > 0


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_a_notebook_has_all_code_of_its_page_and_no_dead_links(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    document = notebooks.notebook(page)
    code = "".join(cell.source for cell in document.cells if cell.cell_type == "code")
    lines = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", text, re.MULTILINE)
    assert re.sub(r"\s", "", code) == re.sub(r"\s", "", "".join(lines))
    prose = "\n".join(cell.source for cell in document.cells if cell.cell_type == "markdown")
    assert prose.startswith(text.partition("\n")[0])
    assert ".md)" not in prose
    assert "_figures/" not in prose
    assert "{" not in re.sub(r"`[^`]*`|\$[^$]*\$", "", prose.replace("$$", "$"))


def test_notebooks_are_written_once_and_their_pages_link_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    notebooks.write_notebooks(folder)
    assert {path.stem for path in folder.iterdir()} == set(notebooks.PAGES)
    assert len(notebooks.PAGES) == 5
    path = folder / "tutorial.ipynb"
    stored = json.loads(path.read_text("utf-8"))
    nbformat.validate(stored)
    assert not any("want" in cell["metadata"] for cell in stored["cells"])
    before = path.stat().st_mtime_ns
    notebooks.write_notebooks(folder)
    assert path.stat().st_mtime_ns == before
    link = "<_notebooks/tutorial.ipynb>"
    assert link in notebooks.with_link("tutorial", "# A\n\ntext\n").splitlines()[2]
    assert notebooks.with_link("howto", "# A\n") == "# A\n"
