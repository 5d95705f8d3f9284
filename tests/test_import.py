"""`import bayescontrol` does not import compilers, plotting, servers or clusters."""

import json
import subprocess
import sys
from pkgutil import iter_modules

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

    for name in bayescontrol.__all__:  # type: ignore[attr-defined]
        assert hasattr(bayescontrol, name)


def test_every_package_is_an_attribute_and_underscores_are_hidden() -> None:
    import bayescontrol as bc

    for name in ("plot", "lqr", "bank", "alarms", "metrics"):
        assert getattr(bc, name) is sys.modules[f"bayescontrol.{name}"]
    assert {"plot", "gym", "serve", "GeometricBandit", "SwitchingBelief"} <= set(dir(bc))
    assert not [name for name in dir(bc) if name.startswith("_") and name != "__version__"]
    with pytest.raises(AttributeError, match="no attribute 'NoBandit'"):
        bc.NoBandit  # type: ignore[attr-defined] # noqa: B018


def test_every_package_and_module_without_underscore_is_public() -> None:
    import bayescontrol as bc

    found = {module.name for module in iter_modules(bc.__path__) if module.name[0] != "_"}
    assert found == {name for name, module in bc._modules().items() if module == "bayescontrol"}  # type: ignore[attr-defined]
