"""`import bayescontrol` is light: compilers, plotting, servers and clusters stay out."""

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


def test_the_laws_need_no_test_library() -> None:
    assert loaded_by("import bayescontrol.testing") & {"pytest", "hypothesis", "mpmath"} == set()


@pytest.mark.parametrize("name", ["Stream(0).random()", "FiniteBelief"])
def test_numba_arrives_with_the_first_number_and_not_before(name: str) -> None:
    modules = loaded_by(f"import bayescontrol; bayescontrol.{name}")
    assert ("numba" in modules) == name.endswith("random()")
    assert not modules & {"matplotlib", "rich", "click"}


def test_every_public_name_is_there() -> None:
    import bayescontrol

    for name in bayescontrol.__all__:
        assert hasattr(bayescontrol, name)


def test_every_public_name_has_its_module() -> None:
    import bayescontrol

    assert sorted(bayescontrol.__all__) == sorted(bayescontrol._MODULES)
