"""Situations and private states as arrays: plain data only, never code.

A NumPy array stays itself; anything that Python can read back from its own `repr` as a
literal (None, numbers, strings, and tuples, lists, dicts, sets of them) becomes text.
"""

import ast
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import IncompatibleState, MissingCapability

__all__ = ["pack", "unpack"]

NUMERIC = "biufc"


def pack(value: Any, what: str) -> npt.NDArray[Any]:
    """A plain value as an array.

    >>> pack((1, "left"), "the situation")
    array("(1, 'left')", dtype='<U11')
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC:
        return value.copy()
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    try:
        same = bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise MissingCapability(
            f"{what} is {text[:80]}: only arrays and plain Python literals can be saved; "
            "keep it as a tuple of numbers or as an array"
        )
    return np.array(text)


def unpack(array: npt.NDArray[Any]) -> Any:
    """The value that `pack` was given.

    >>> unpack(pack((1, "left"), "the situation"))
    (1, 'left')
    """
    if array.dtype.kind in NUMERIC:
        return array.copy()
    try:
        return ast.literal_eval(array.item())
    except (ValueError, SyntaxError, TypeError):
        raise IncompatibleState(f"{str(array)[:80]!r} is not a saved value") from None
