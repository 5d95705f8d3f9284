"""Named moments at which a process may die, for tests that kill it there.

    BAYESCONTROL_FAULT=after-commit:3     kill -9 when `after-commit` is reached the third time

Without the variable `reach` does nothing.
"""

import os
import signal
from typing import Final

#: Every named moment, in the order in which a decision comes by them.
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
_armed: list[str | int] = []


def arm(where: str) -> None:
    """Die at this point: a name, or a name and a count, `name:3`.

    >>> arm("")
    """
    name, _, count = where.partition(":")
    if name and name not in POINTS:
        raise ValueError(f"no fault point {name!r}: there are {', '.join(POINTS)}")
    _armed[:] = [name, int(count or 1)] if name else []


def reach(name: str) -> None:
    """Die here, if this is where.

    >>> reach("after-commit")
    """
    if _armed and _armed[0] == name:
        left = int(_armed[1]) - 1
        _armed[1] = left
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("BAYESCONTROL_FAULT", ""))
