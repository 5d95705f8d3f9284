"""Gymnasium is an extra: the library does without, and says how to get it."""

import subprocess
import sys

WITHOUT = "import sys; sys.modules['gymnasium'] = None\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_without_gymnasium_the_error_is_typed_and_names_the_command() -> None:
    done = run(WITHOUT + "import bayescontrol.gym")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("bayescontrol.errors.MissingExtra: bayescontrol.gym needs Gymnasium")
    assert last.endswith("pip install 'bayescontrol[gym]'")


def test_it_is_an_import_error_too() -> None:
    program = "try:\n    import bayescontrol.gym\nexcept ImportError:\n    print('caught')"
    assert run(WITHOUT + program).stdout == "caught\n"


def test_without_gymnasium_all_the_rest_works() -> None:
    program = (
        "import bayescontrol\n"
        "from bayescontrol import warm\n"
        "for name in bayescontrol.__all__: getattr(bayescontrol, name)\n"
        "print('fine')"
    )
    assert run(WITHOUT + program).stdout == "fine\n"


def test_importing_the_library_does_not_import_gymnasium() -> None:
    program = "import bayescontrol, sys; print('gymnasium' in sys.modules)"
    assert run(program).stdout == "False\n"
