"""Limits of an input: u ← min(max(u, low), high), component by component."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["limited"]


def limited(
    policy: Callable[[Any], Any], low: npt.ArrayLike, high: npt.ArrayLike
) -> Callable[[Any], Any]:
    """x ↦ min(max(policy(x), low), high): a controller that never asks for more.

    A number stays a number. A controller of many inputs may have a limit for each.

    >>> torque = limited(lambda x: -10.0 * x, -2.0, 2.0)
    >>> torque(0.1), torque(5.0)
    (-1.0, -2.0)
    >>> limited(torque, 1.0, -1.0)
    Traceback (most recent call last):
    ValueError: limits low=1.0, high=-1.0: low must be below high
    """
    least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if not (least < most).all():
        raise ValueError(f"limits low={low!r}, high={high!r}: low must be below high")
    if least.ndim or most.ndim:
        return lambda x: np.clip(policy(x), least, most)
    bottom, top = float(least), float(most)

    def within(x: Any) -> Any:
        u = policy(x)
        return np.clip(u, bottom, top) if isinstance(u, np.ndarray) else min(max(u, bottom), top)

    return within
