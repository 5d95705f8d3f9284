"""Optional dependencies: without them the core works, and errors name the extra to install."""

import subprocess
import sys

import pytest
from tests.limits import TIMEOUT

OPEN = "from bayescontrol.durable import open_store; open_store"
CASES = [
    ("gymnasium", "import bayescontrol.gym", "gym"),
    ("apsw", f"{OPEN}('sqlite:///:memory:')", "durable"),
    ("psycopg", f"{OPEN}('postgresql:///x')", "postgres"),
    ("matplotlib", "from bayescontrol.plot import figures; figures._matplotlib()", "plot"),
    ("joblib", "from bayescontrol.lab.parallel import unordered as u; next(u(abs, [1], 2))", "lab"),
    ("distributed", "from bayescontrol.lab.parallel import dask_cluster as c; c().__enter__()",
     "cluster"),
    ("litestar", "from bayescontrol.serve import Server", "serve"),
    ("xarray", "from bayescontrol.lab import export; export.to_pandas({})", "export"),
]  # fmt: skip
OPTIONAL = (
    "apsw", "control", "distributed", "gymnasium", "joblib", "litestar", "matplotlib",
    "pandas", "prometheus_client", "psycopg", "rich", "uvicorn", "uvloop", "xarray",
)  # fmt: skip


def run_without(packages: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + program], capture_output=True, text=True, timeout=TIMEOUT
    )


@pytest.mark.parametrize(("package", "program", "extra"), CASES)
def test_an_error_names_the_command_that_installs_the_extra(
    package: str, program: str, extra: str
) -> None:
    done = run_without((package,), program)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("bayescontrol.errors.MissingExtra: ")
    assert last.endswith(
        f"needs {package}, which is not installed: pip install 'bayescontrol[{extra}]'"
    )


def test_a_missing_extra_is_an_import_error() -> None:
    program = "try:\n    import bayescontrol.gym\nexcept ImportError:\n    print('caught')"
    assert run_without(("gymnasium",), program).stdout == "caught\n"


def test_every_public_name_and_a_run_work_without_any_extra() -> None:
    program = (
        "import bayescontrol as bc\n"
        "for name in bc.__all__: getattr(bc, name)\n"
        "import bayescontrol.baselines, bayescontrol.beliefs, bayescontrol.bank\n"
        "import bayescontrol.simulators\n"
        "import bayescontrol.lab, bayescontrol.lqr, bayescontrol.mdp, bayescontrol.durable\n"
        "problem = bc.BernoulliBandit(2)\n"
        "print(len(bc.interact(problem.agent(), problem.environment([0.2, 0.8]), 10)))"
    )
    done = run_without(OPTIONAL, program)
    assert done.stdout == "10\n", done.stderr


def test_the_command_line_names_its_extra_without_a_traceback() -> None:
    done = run_without(("rich",), "from bayescontrol.cli.main import main; main()")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: the command line needs rich, which is not installed: "
        "pip install 'bayescontrol[lab]'\n"
    )


def test_importing_the_library_does_not_import_gymnasium() -> None:
    done = run_without((), "import bayescontrol; print('gymnasium' in sys.modules)")
    assert done.stdout == "False\n"
