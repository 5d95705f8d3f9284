"""The reference: short types, described parameters, lists of names, a page for each main class."""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import reference_pages as pages  # noqa: E402

sys.path.remove(str(DOCS))  # its scripts would hide modules of the same name

REFERENCE = sorted(path.name for path in (DOCS / "reference").glob("*.md"))
MODULES = sorted({
    name
    for page in REFERENCE
    for name in re.findall(r"automodule:: (\S+)", (DOCS / "reference" / page).read_text("utf-8"))
})  # fmt: skip
MAIN = [(module, name) for module, names in pages.MAIN.items() for name in names]


def test_every_public_package_has_a_page() -> None:
    folders = {
        path.parent.name for path in (DOCS.parent / "src/bayescontrol").glob("*/__init__.py")
    }
    public = {name for name in folders if name[0] != "_"} - {"cli", "report"}  # the command line
    assert public <= {Path(page).stem for page in REFERENCE}
    index = (DOCS / "reference/index.md").read_text("utf-8").split("toctree")[1]
    assert {Path(page).stem for page in REFERENCE} - {"index"} == set(
        re.findall(r"^\w+$", index, re.M)
    )


def documented(module: str) -> list[tuple[str, Any]]:
    """Return the classes, functions and methods of a module, by name."""
    values = [(name, getattr(import_module(module), name)) for name in _names(module)]
    methods = [
        (f"{name}.{method}", function)
        for name, value in values
        if inspect.isclass(value)
        for method, function in vars(value).items()
        if inspect.isfunction(function) and (method == "__init__" or method[0] != "_")
    ]
    return values + methods


def _names(module: str) -> list[str]:
    return pages.public_names(import_module(module))


@pytest.mark.parametrize("module", MODULES)
def test_signatures_have_short_types(module: str) -> None:
    for name, value in documented(module):
        try:
            shown = str(inspect.signature(value))
        except (TypeError, ValueError):
            continue
        assert "_SupportsArray" not in shown, name
        assert "_NestedSequence" not in shown, name


def test_help_says_array_like() -> None:
    from bayescontrol import BernoulliBandit, FiniteBelief
    from bayescontrol.bandits import MeanRewards

    assert "prior: array_like | str | None = None" in str(inspect.signature(BernoulliBandit))
    assert "prior: array_like | None = None" in str(inspect.signature(FiniteBelief))
    assert inspect.signature(MeanRewards).parameters["means"].annotation is np.ndarray


@pytest.mark.parametrize(("module", "name"), MAIN)
def test_every_parameter_of_a_main_class_is_described(module: str, name: str) -> None:
    cls = getattr(import_module(module), name)
    lines = inspect.getdoc(cls).splitlines()  # type: ignore[union-attr]
    pages.describe_parameters("class", cls, lines)
    described = {match[1] for line in lines if (match := re.match(r":param (\w+): \S", line))}
    assert set(pages.parameters(cls)) <= described


def test_a_parameter_is_described_by_the_sentence_that_names_it() -> None:
    def draw(size: int, seed: int) -> None: ...

    lines = ["Draw numbers.", "", "`size` is how", "many. Pass `seed` to repeat.", "", ">>> `size`"]
    pages.describe_parameters("function", draw, lines)
    assert lines[-3:-1] == [
        ":param size: `size` is how many.",
        ":param seed: Pass `seed` to repeat.",
    ]


@pytest.mark.parametrize("page", REFERENCE)
def test_every_page_lists_its_names_and_leaves_main_classes_to_their_pages(page: str) -> None:
    text = (DOCS / "reference" / page).read_text("utf-8")
    shown = pages.list_names(text)
    for block in re.finditer(r"automodule:: (\S+)\n((?:   :.*\n)*)", text):
        if ":no-members:" in block[2]:
            continue
        found = re.search(r":exclude-members: (.*)\n", block[2])
        excluded = found[1].split(", ") if found else []
        excluded += [
            name for module in pages.MAIN if module != block[1] for name in pages.MAIN[module]
        ]
        start = shown.index(f".. currentmodule:: {block[1]}\n")
        part = shown[start : shown.index("```", start)]
        lists, _, directive = part.partition(".. automodule::")
        left_out = re.findall(r"\w+", directive.partition(":exclude-members:")[2])
        for name in set(_names(block[1])) - set(excluded):
            assert f"\n   {name}\n" in lists, name
            is_main = name in pages.MAIN.get(block[1], ())
            before = lists[: lists.index(f"\n   {name}\n")]
            assert ("toctree" in before.rpartition("autosummary")[2]) == is_main
            assert (name in left_out) == is_main


def test_main_classes_get_a_page_and_stale_pages_go(tmp_path: Path) -> None:
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "old.md").write_text("# old", "utf-8")
    pages.write_class_pages(folder)
    assert {path.stem for path in folder.iterdir()} == {f"{m}.{n}" for m, n in MAIN}
    text = (folder / "bayescontrol.mdp.MDP.md").read_text("utf-8")
    assert text.startswith("# MDP\n")
    assert ".. autoclass:: bayescontrol.mdp.MDP\n" in text
