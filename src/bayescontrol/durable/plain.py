"""Encode values as JSON without loss: decoding returns the same bits and types.

    None, True, 3, 0.5, "red", [1, 2]        themselves
    (1, 2)          {"tuple": [1, 2]}         np.array([1.0])   {"array": [1.0], "dtype": …}
    Totals(9, 4.0)  {"totals": [9, 4.0]}
    {"a": 1}        {"dict": [["a", 1]]}      nan, inf          {"float": "nan"}
    2**63           {"int": "9223…"}          an integer that does not fit in 64 bits

Only data, never code. A named tuple comes back as a tuple, a NumPy number as a Python number.
"""

import math
import re
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.errors import DamagedLog, MissingCapability
from bayescontrol.protocols import Totals

_NUMERIC: Final = "biuf"
#: Types of arrays that are decoded. Others could need any amount of memory.
_DTYPE: Final = re.compile(r"[<>|=]?[biuf][1248]")
#: A value that a log can store: a situation, an action, an observation, or a setting.
Value: TypeAlias = Any
_SCALARS: Final = frozenset({type(None), bool, str})
_INT_LIMIT: Final = 2**63


def as_plain(value: Value, what: str = "a value") -> Any:
    """Encode a value for JSON. Error messages call the value `what`.

    >>> as_plain((1, float("inf")), "the action")
    {'tuple': [1, {'float': 'inf'}]}
    >>> as_plain(object, "the action")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the action is <class 'object'>: a log can store ...
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is int:
        return value if -_INT_LIMIT <= value < _INT_LIMIT else {"int": str(value)}
    if kind is list:
        return [as_plain(v, what) for v in value]
    if isinstance(value, Totals):
        return {"totals": [as_plain(v, what) for v in value]}
    if isinstance(value, tuple):
        return {"tuple": [as_plain(v, what) for v in value]}
    if kind is dict:
        return {"dict": [[as_plain(k, what), as_plain(v, what)] for k, v in value.items()]}
    if isinstance(value, np.generic) and value.dtype.kind in _NUMERIC + "U":
        return as_plain(value.item(), what)
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMERIC:
        flat = as_plain(value.ravel().tolist(), what)
        return {"array": flat, "shape": list(value.shape), "dtype": value.dtype.str}
    raise MissingCapability(
        f"{what} is {repr(value)[:80]}: a log can store numbers, strings, None, arrays, and lists, "
        "tuples and dicts of them"
    )


def from_plain(plain: Any) -> Value:
    """Decode what `as_plain` encoded.

    >>> from_plain({"tuple": [1, {"float": "inf"}]})
    (1, inf)
    """
    if type(plain) is list:
        return [from_plain(v) for v in plain]
    if type(plain) is not dict:
        return plain
    try:
        match plain:
            case {"tuple": items}:
                return tuple(from_plain(v) for v in items)
            case {"totals": [n, total, *squares]} if len(squares) < 2:
                return Totals(from_plain(n), from_plain(total), *map(from_plain, squares))
            case {"dict": items}:
                return {from_plain(k): from_plain(v) for k, v in items}
            case {"float": text}:
                return float(text)
            case {"int": text}:
                return int(text)
            case {"array": flat, "shape": s, "dtype": str(dtype)} if _DTYPE.fullmatch(dtype):
                return np.array(from_plain(flat), dtype).reshape(s)
    except (TypeError, ValueError, OverflowError):  # the value of a tag is malformed
        pass
    raise DamagedLog(f"{str(plain)[:80]} is not an encoded value of a log")


def as_stored(value: Value, what: str) -> Any:
    """Return the value as it will be read from the log, so that a replay computes the same.

    >>> as_stored(np.float64(0.5), "the observation")
    0.5
    """
    kind = type(value)
    if kind in _SCALARS or (kind is int and -_INT_LIMIT <= value < _INT_LIMIT):
        return value
    if kind is float and value == value:  # not NaN: of the many NaNs, the log stores one
        return value
    return from_plain(as_plain(value, what))


def same_value(left: Value, right: Value) -> bool:
    """Return whether two values are equal, also arrays and NaN.

    1 equals 1.0. A tuple equals a list, because JSON has no tuples.

    >>> same_value((1, np.array([0.5])), [1.0, np.array([0.5])])
    True
    """
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        both = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
        return both and left.shape == right.shape and same_value(left.tolist(), right.tolist())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(v, right[k]) for k, v in left.items())
    return bool(left == right or (left != left and right != right))


def short_repr(value: object, max_length: int = 80) -> str:
    """Return repr(value), cut to `max_length` characters, for messages."""
    text = repr(value)
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
