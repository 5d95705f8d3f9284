"""Make notebooks from pages of the documentation; the pages stay the only source.

    python docs/notebooks.py FOLDER     write the notebooks to FOLDER

The build of the documentation writes them to `docs/_notebooks` and puts a link below the title of
each page. A cell ends where the page shows a result, because a notebook shows only the last one.
"""

import re
import sys
from doctest import DocTestParser, Example
from pathlib import Path
from typing import Any, Final

import nbformat

DOCS: Final = Path(__file__).resolve().parent
#: The pages that are also notebooks.
PAGES: Final = ("tutorial", "bandits", "contextual-bandit", "changing-bandit", "mdp")

#: Its functions have no types.
_nbformat: Any = nbformat
_NOTE: Final = (
    "*Made from a page of the documentation of bayescontrol. It needs the library with its extra "
    "`plot`.*"
)
_FENCE: Final = re.compile(r"^```(\{?[\w-]*\}?)[^\n]*\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
#: A link to another page or place of the documentation, which a notebook does not have.
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
_TITLE: Final = re.compile(r"\A# .*\n")


def notebook(page: str) -> Any:
    """Return the notebook of a page; its code cells have the expected result as `metadata.want`."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    cells = [_text(_NOTE)]
    end = 0
    for fence in _FENCE.finditer(text):
        kind, body = fence.groups()
        if kind == "python" and ">>>" in body:
            cells += [_text(text[end : fence.start()]), *_code(body)]
        elif kind == "{figure}":
            cells += [_text(text[end : fence.start()]), _text(_caption(page, body))]
        else:
            continue
        end = fence.end()
    cells.append(_text(text[end:]))
    cells = [cell for cell in cells if cell.source]
    title = cells.pop(1)  # the note follows the text with the title
    cells.insert(0, title)
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return _nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def write_notebooks(folder: Path) -> None:
    """Write the notebook of every page; leave unchanged files alone."""
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        document = notebook(page)
        for cell in document.cells:
            cell.metadata.pop("want", None)
        _nbformat.validate(document)
        path, text = folder / f"{page}.ipynb", _nbformat.writes(document)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def with_link(page: str, text: str) -> str:
    """Return the text of a page with a link to its notebook below the title."""
    link = f"\n{{download}}`Download this page as a notebook <_notebooks/{page}.ipynb>`\n"
    return _TITLE.sub(lambda title: title[0] + link, text) if page in PAGES else text


def _text(text: str) -> Any:
    return _nbformat.v4.new_markdown_cell(_LINK.sub(r"\1", text).strip())


def _caption(page: str, body: str) -> str:
    """Return the caption of a figure; if the page does not draw it, say that it is missing here."""
    caption = body.partition("\n\n")[2]
    sentences, _, command = caption.rpartition("\n\n")
    return sentences if f"{page}.md" in command else f"*The page has a figure here:* {caption}"


def _code(body: str) -> list[Any]:
    """Return the cells of a block of examples."""
    cells: list[Any] = []
    sources: list[str] = []
    examples = DocTestParser().get_examples(body)
    for number, example in enumerate(examples):
        sources.append(example.source.rstrip())
        if example.want or number == len(examples) - 1:
            cells.append(
                _nbformat.v4.new_code_cell("\n".join(sources), metadata=_metadata(example))
            )
            sources = []
    return cells


def _metadata(example: Example) -> dict[str, Any]:
    tags = {"tags": ["raises-exception"]} if example.exc_msg else {}
    error = re.sub(r"^[\w.]*\.(?=\w+:)", "", example.exc_msg or "")  # a notebook omits the module
    return {"want": error or example.want, **tags}


if __name__ == "__main__":
    write_notebooks(Path(sys.argv[1]))
