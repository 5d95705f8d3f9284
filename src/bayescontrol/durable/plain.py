"""Values as JSON, exactly: what goes in comes out, to the last bit and of the same type.

    None, True, 3, 0.5, "red", [1, 2]        themselves
    (1, 2)          {"tuple": [1, 2]}         np.array([1.0])   {"array": [1.0], "dtype": …}
    {"a": 1}        {"dict": [["a", 1]]}      nan, inf          {"float": "nan"}

Plain data only, never code. A named tuple comes back as a tuple, a NumPy number as a number.
"""

import math
from typing import Any, Final

import msgspec
import numpy as np

from bayescontrol.errors import DamagedLog, MissingCapability

_NUMERIC: Final = "biuf"
_SCALARS: Final = frozenset({type(None), bool, str})
_MOST: Final = 2**63


def as_plain(value: Any, what: str) -> Any:
    """The value as JSON can hold it; `what` it is stands in the error if it cannot.

    >>> as_plain((1, float("inf")), "the action")
    {'tuple': [1, {'float': 'inf'}]}
    >>> as_plain(object, "the action")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the action is <class 'object'>: only numbers, texts, ...
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is int:
        return value if -_MOST <= value < _MOST else {"int": str(value)}
    if kind is list:
        return [as_plain(v, what) for v in value]
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
        f"{what} is {repr(value)[:80]}: only numbers, texts, None, arrays, and lists, tuples and "
        "dicts of them can be kept in a log"
    )


def from_plain(plain: Any) -> Any:
    """The value that `as_plain` was given.

    >>> from_plain({"tuple": [1, {"float": "inf"}]})
    (1, inf)
    """
    if type(plain) is list:
        return [from_plain(v) for v in plain]
    if type(plain) is not dict:
        return plain
    try:
        return _tagged(plain)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DamagedLog(f"{str(plain)[:80]} is not a value that a log keeps") from None


def _tagged(plain: dict[str, Any]) -> Any:
    match plain:
        case {"tuple": items}:
            return tuple(from_plain(v) for v in items)
        case {"dict": items}:
            return {from_plain(k): from_plain(v) for k, v in items}
        case {"float": text}:
            return float(text)
        case {"int": text}:
            return int(text)
        case {"array": flat, "shape": shape, "dtype": dtype} if np.dtype(dtype).kind in _NUMERIC:
            return np.array(from_plain(flat), dtype).reshape(shape)
    raise KeyError


def kept(value: Any, what: str) -> Any:
    """The value as it will be read from the log: what an agent does now, it must do again then.

    >>> kept(np.float64(0.5), "the observation")
    0.5
    """
    kind = type(value)
    if kind in _SCALARS or (kind is int and -_MOST <= value < _MOST):
        return value
    if kind is float and value == value:  # there are many NaNs, of which a log keeps one
        return value
    return from_plain(as_plain(value, what))


def canonical(plain: Any) -> bytes:
    """The one text of a plain value.

    >>> canonical({"tuple": [1, 0.5]})
    b'{"tuple":[1,0.5]}'
    """
    return msgspec.json.encode(plain)


def same_value(one: Any, two: Any) -> bool:
    """Whether two values are equal, arrays and NaN included; 1 and 1.0 are.

    >>> same_value((1, np.array([0.5])), (1.0, np.array([0.5])))
    True
    >>> same_value([1], (1,))
    False
    """
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        both = isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
        return both and one.shape == two.shape and same_value(one.tolist(), two.tolist())
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        alike = isinstance(one, list) == isinstance(two, list) and len(one) == len(two)
        return alike and all(map(same_value, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_value(v, two[k]) for k, v in one.items())
    return bool(one == two or (one != one and two != two))


def same_answer(one: Any, two: Any) -> bool:
    """Whether two observations say the same: a list that came by the network is a tuple.

    >>> same_answer([1, (2,)], (1, [2]))
    True
    """
    return same_value(_listed(one), _listed(two))


def _listed(value: Any) -> Any:
    return [_listed(v) for v in value] if isinstance(value, list | tuple) else value


def shown(value: Any, most: int = 80) -> str:
    """The value as a message tells it: never a page of it.

    >>> shown("x" * 100, 10)
    "'xxxxxxxx…"
    """
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
