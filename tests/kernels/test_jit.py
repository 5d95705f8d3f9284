"""Compiled kernels are cached under the digest of all sources that they depend on."""

import ast
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from bayescontrol.kernels import _jit

SOURCES = Path(_jit.__file__).parent
ARENA = Path(__file__).parents[2] / "benchmarks" / "arena"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the sources of all kernels."""
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(SOURCES, tmp_path / "kernels", ignore=ignore))


def jit_of(sources: Path) -> ModuleType:
    """Import the module `_jit` from these sources."""
    spec = importlib.util.spec_from_file_location("copied_jit", sources / "_jit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_changed_kernel_changes_the_digest_of_its_callers(sources: Path) -> None:
    names = ("elementary", "finite", "riccati", "tabular")
    before = {name: jit_of(sources)._digest(sources / f"{name}.py") for name in names}
    assert before == {name: _jit._digest(SOURCES / f"{name}.py") for name in names}
    with (sources / "elementary.py").open("a") as file:
        file.write("# changed\n")
    after = jit_of(sources)
    changed = [name for name in names if after._digest(sources / f"{name}.py") != before[name]]
    assert changed == ["elementary", "finite", "tabular"]


def test_a_changed_family_changes_the_digest_of_the_arms(sources: Path) -> None:
    before = jit_of(sources)._digest(sources / "arms.py")
    with (sources / "families" / "geometric.py").open("a") as file:
        file.write("# changed\n")
    assert jit_of(sources)._digest(sources / "arms.py") != before


def imported_kernels(path: Path) -> set[str]:
    """The kernel modules that a module imports, with any import syntax."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayescontrol"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts = [name.split(".") for name in names]
        found |= {p[2] for p in parts if p[:2] == ["bayescontrol", "kernels"] and len(p) > 2}
    return {name for name in found if (SOURCES / f"{name}.py").is_file()}


@pytest.mark.parametrize(
    "path",
    sorted([*SOURCES.rglob("[a-z]*.py"), *ARENA.rglob("[a-z]*.py")]),
    ids=lambda path: path.stem,
)
def test_the_digest_covers_every_kernel_that_is_imported(path: Path) -> None:
    assert imported_kernels(path) <= {file.stem for file in _jit._sources(path, {})}
