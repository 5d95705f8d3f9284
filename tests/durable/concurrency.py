"""Threads of the tests: start them, join them, and wait for a condition."""

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.limits import TIMEOUT


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def start(*functions: Callable[[], Any]) -> list[threading.Thread]:
    """Call each function in a thread."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    """Wait until all threads have ended."""
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


def run_together(*functions: Callable[[], Any]) -> None:
    """Call each function in a thread, and wait until all have returned."""
    join(start(*functions))


def catch(function: Callable[[], Any]) -> BaseException | None:
    """Return the error that the function raises, or None."""
    try:
        function()
    except BaseException as error:
        return error
    return None
