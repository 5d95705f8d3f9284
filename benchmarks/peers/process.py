"""Start a contestant in its own process and send it requests; `worker` has the protocol."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.environments import ROOT, NotInstalled, interpreter

__all__ = ["Process", "start"]

ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Process:
    """A process with one thread that plays runs on request."""

    def __init__(self, python: str | Path, *module: str, one_core: bool = False) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        self.process = subprocess.Popen(
            [python, "-m", *module], cwd=ROOT, env=os.environ | ONE_THREAD, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        if one_core and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        try:
            self._line()  # "ready"
        except NotInstalled:
            self.close()
            raise

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer; raise `NotInstalled` if the process ended."""
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # reading says why the process ended
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines() or ["it printed no error"]
            raise NotInstalled(f"its process ended: {lines[-1][:200]}")
        return line

    def close(self) -> None:
        """Close the pipe, which ends the process."""
        try:
            self.process.communicate()
        except BrokenPipeError:
            self.process.wait()
        self.errors.close()


@contextmanager
def start(module: str, peer: str = "") -> Iterator[Process]:
    """Start `python -m module` in the environment of a peer, or in ours; close it at the end.

    Raise `NotInstalled` if the peer cannot be installed or its process does not start.
    """
    python = interpreter(peer) if peer else Path(sys.executable)
    process = Process(python, module)
    try:
        yield process
    finally:
        process.close()
