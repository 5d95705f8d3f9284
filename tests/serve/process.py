"""The command `bayescontrol serve` in a separate process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CODE = "from bayescontrol.cli.serve import serve; serve()"


def command(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _CODE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def served(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Yield the process and its address; kill it at the end if it has not stopped."""
    process = command(*arguments)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
