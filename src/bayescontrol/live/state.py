"""What was saved, looked at before anything is taken over: named arrays, and all of them there."""

from collections.abc import Mapping
from typing import Any

from bayescontrol.arrays import Arrays
from bayescontrol.errors import IncompatibleState


def saved_arrays(arrays: Any, what: str, *names: str) -> Arrays:
    """The arrays as they are, if these are among them; `what` they are of, for the error.

    >>> saved_arrays({"clock": 3}, "alarm", "clock", "log_e")
    Traceback (most recent call last):
    bayescontrol.errors.IncompatibleState: the saved alarm lacks the arrays ['log_e']
    """
    if not isinstance(arrays, Mapping):
        raise IncompatibleState(
            f"the saved {what} is {arrays!r}: it must be a mapping of arrays, as save() gives"
        )
    missing = set(names) - arrays.keys()
    if missing:
        raise IncompatibleState(f"the saved {what} lacks the arrays {sorted(missing)}")
    return dict(arrays)
