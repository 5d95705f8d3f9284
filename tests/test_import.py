"""`import bayescontrol` does not import compilers, plotting, servers or clusters."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "numba", "llvmlite", "scipy", "matplotlib", "rich", "click", "dask", "distributed",
    "gymnasium", "pandas", "aiohttp", "fastapi", "flask", "http.server", "starlette", "tornado",
    "uvicorn", "multiprocessing.pool", "concurrent.futures.process", "sqlite3", "hypothesis",
    "pytest", "mpmath",
}  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert loaded_by("import bayescontrol") & HEAVY == set()


def test_the_laws_do_not_import_a_test_library() -> None:
    assert loaded_by("import bayescontrol.testing") & {"pytest", "hypothesis", "mpmath"} == set()


@pytest.mark.parametrize("name", ["Stream(0).random()", "FiniteBelief"])
def test_numba_is_imported_with_the_first_random_number(name: str) -> None:
    modules = loaded_by(f"import bayescontrol; bayescontrol.{name}")
    assert ("numba" in modules) == name.endswith("random()")
    assert not modules & {"matplotlib", "rich", "click"}


def test_every_public_name_can_be_imported() -> None:
    import bayescontrol

    for name in bayescontrol.__all__:
        assert hasattr(bayescontrol, name)


def test_every_public_name_has_its_module() -> None:
    import bayescontrol

    assert sorted(bayescontrol.__all__) == sorted(bayescontrol._MODULES)
