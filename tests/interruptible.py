"""A command that can be stopped by Ctrl-C, even if the test process ignores the signal."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def interruptible(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Start the command in a new session; at the end, kill it and close its pipes.

    A child process inherits ignored signals (as in a background job or with `nohup`), but resets
    handled signals to their default.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:  # closes its pipes and waits
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # including its child processes
