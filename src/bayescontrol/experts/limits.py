"""Limits of an input: u ← min(max(u, low), high), component by component."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import UnknownAction
from bayescontrol.experts.mode import refuse_pair, require_function


def limited(
    policy: Callable[[Any], Any], low: npt.ArrayLike, high: npt.ArrayLike
) -> Callable[[Any], Any]:
    """x ↦ min(max(policy(x), low), high): a controller that never asks for more.

    A number stays a number. A controller of many inputs may have a limit for each. What is no
    number, or not one for each limit, is refused: `UnknownAction`.

    >>> torque = limited(lambda x: -10.0 * x, -2.0, 2.0)
    >>> torque(0.1), torque(5.0)
    (-1.0, -2.0)
    >>> limited(torque, 1.0, -1.0)
    Traceback (most recent call last):
    ValueError: limits low=1.0, high=-1.0: low must be below high
    """
    require_function(policy, "policy(x)", "limited")
    least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if least.shape != most.shape and least.ndim and most.ndim:
        raise ValueError(f"limits low={low!r}, high={high!r}: as many of one as of the other")
    if not (least < most).all():
        raise ValueError(f"limits low={low!r}, high={high!r}: low must be below high")
    shape, who = (least + most).shape, getattr(policy, "__qualname__", repr(policy))

    def checked(x: Any) -> Any:
        u = policy(x)
        refuse_pair(u, f"the policy {who}")
        try:
            value = np.asarray(u, np.float64)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        if np.isnan(value).any():
            raise UnknownAction(f"the policy {who} asks for {u!r} in situation {x!r}: no number")
        if shape and value.shape != shape:
            raise UnknownAction(
                f"the policy {who} asks for {u!r}, of shape {value.shape}: the limits are for "
                f"inputs of shape {shape}"
            )
        return u if value.ndim == 0 else np.asarray(u)

    if shape:
        return lambda x: np.clip(checked(x), least, most)
    bottom, top = float(least), float(most)

    def within(x: Any) -> Any:
        u = checked(x)
        return np.clip(u, bottom, top) if isinstance(u, np.ndarray) else min(max(u, bottom), top)

    return within
