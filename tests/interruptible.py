"""A command that can be stopped by Ctrl-C, also where whoever runs the tests ignores it."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def interruptible(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Start the command in a session of its own; at the end it is gone, with its pipes.

    An ignored signal stays ignored in a child (a background job, `nohup`); one that has a handler
    gets its default back.
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
                os.killpg(process.pid, signal.SIGKILL)  # and those that it has started
