"""Situations and private states as arrays: plain data only, never code.

A NumPy array stays itself; anything that Python can read back from its own `repr` as a
literal (None, numbers, strings, and tuples, lists, dicts, sets of them) becomes text.

Classes and their parameters stand in stored data under names that do not depend on the code:
`format_name` and `format_text`.
"""

import ast
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import IncompatibleState, MissingCapability

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


def format_name(cls: type, default: str) -> str:
    """Return the name of a class in stored data: the `format_name` that the class declares.

    A class that declares none has the `default`, its own name. Subclasses do not inherit the
    declaration.

    >>> class Renamed:
    ...     format_name = "Original"
    >>> format_name(Renamed, "Renamed"), format_name(int, "int")
    ('Original', 'int')
    """
    name: str = vars(cls).get("format_name", default)
    return name


def format_text(value: Any) -> str:
    """Return the text of a value in stored data: what its class gives as `format_text()`.

    Otherwise its repr. As with `format_name`, the method of a base class does not count.

    >>> class Prior:
    ...     def format_text(self): return "Prior(scale=2)"
    >>> format_text(Prior()), format_text((1, 2))
    ('Prior(scale=2)', '(1, 2)')
    """
    declared = vars(type(value)).get("format_text")
    return repr(value) if declared is None else str(declared(value))
