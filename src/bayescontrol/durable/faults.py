"""Named points at which a test can kill the process.

    BAYESCONTROL_FAULT=after-commit:3     kill -9 when `after-commit` is reached the third time

Without the variable, `fault_point` does nothing.
"""

import os
import signal
from typing import Final

#: Every point, in the order in which a decision passes them.
POINTS: Final = (
    "before-compute",
    "before-append",
    "in-transaction",
    "before-commit",
    "after-commit",
    "before-return",
    "before-snapshot",
    "in-snapshot",
    "after-snapshot",
    "before-close",
)
#: The chosen point, and how often it is still to be reached.
_armed: dict[str, int] = {}


def arm(where: str) -> None:
    """Choose where to kill the process: "name", "name:3" for the third time, or "" for nowhere."""
    name, _, count = where.partition(":")
    if name and name not in POINTS:
        raise ValueError(f"unknown fault point {name!r}: expected one of {', '.join(POINTS)}")
    _armed.clear()
    if name:
        _armed[name] = int(count or 1)


def fault_point(name: str) -> None:
    """Kill the process if this is the chosen point."""
    if name in _armed:
        _armed[name] -= 1
        if _armed[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("BAYESCONTROL_FAULT", ""))
