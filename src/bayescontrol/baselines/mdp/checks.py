"""What agents of MDPs are given, checked: settings in their interval, observations o = (r, y).

r finite, else `BadEvidence` with the state and the action
"""

import math
from numbers import Real
from typing import Any

from bayescontrol.errors import BadEvidence


def between(name: str, value: Any, low: float, high: float, *, ends: str = "[]") -> float:
    """A setting, if it lies in the interval; a ValueError that names it, if not.

    >>> between("alpha", 1.5, 0, 1)
    Traceback (most recent call last):
    ValueError: alpha=1.5: it must be in [0, 1]
    """
    number = float(value) if isinstance(value, Real) else math.nan
    above = number > low or (ends[0] == "[" and number == low)
    below = number < high or (ends[1] == "]" and number == high)
    if not (above and below):
        raise ValueError(f"{name}={value!r}: it must be in {ends[0]}{low}, {high}{ends[1]}")
    return number


def read_step(x: Any, a: Any, o: Any) -> tuple[float, Any]:
    """o as (r, y); `BadEvidence`, with x and a, if it is none or r is no finite number.

    >>> read_step("home", "go", (1, "away"))
    (1.0, 'away')
    """
    try:
        r, y = o
    except (TypeError, ValueError):
        raise BadEvidence(
            f"observation {o!r} after action {a!r} in state {x!r}: it must be (reward, state)"
        ) from None
    if not (isinstance(r, Real) and math.isfinite(r)):
        raise BadEvidence(
            f"reward {r!r} after action {a!r} in state {x!r}: it must be a finite number"
        )
    return float(r), y
