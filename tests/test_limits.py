"""Limits on child processes guard against hanging only: a busy machine must not fail a test."""

import ast
from pathlib import Path

from tests.limits import TIMEOUT

TESTS = Path(__file__).parent


def short_limits(source: str) -> list[int]:
    """Return the lines on which a child process is given a number of seconds below TIMEOUT."""
    return [
        call.lineno
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("run", "communicate", "check_output")
        for argument in call.keywords
        if argument.arg == "timeout" and isinstance(argument.value, ast.Constant)
        if float(str(argument.value.value)) < TIMEOUT
    ]


def test_child_processes_have_generous_limits() -> None:
    assert short_limits("subprocess.run(command, timeout=60)\nrun(timeout=5)") == [1]
    found = {path.name: short_limits(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
