"""The types of arrays, by name, and checks of numbers."""

import math
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Error: TypeAlias = type[Exception]

if TYPE_CHECKING:
    ArrayLike: TypeAlias = npt.ArrayLike
    FloatArray: TypeAlias = npt.NDArray[np.float64]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    UIntArray: TypeAlias = npt.NDArray[np.uint64]
    #: An array of numbers or text.
    AnyArray: TypeAlias = npt.NDArray[Any]
    #: State as named arrays: `save` returns them and `load` takes them. They hold no pickled code.
    Arrays: TypeAlias = dict[str, AnyArray]
else:  # `help` and the reference show these short names in place of long unions
    ArrayLike = type("array_like", (), {"__module__": "builtins"})
    AnyArray = FloatArray = BoolArray = IntArray = UIntArray = np.ndarray
    Arrays = dict[str, np.ndarray]


def as_numbers(value: Any, what: str, error: Error) -> FloatArray:
    """Return the value as a new array of floats; raise `error`, which names `what`, otherwise."""
    try:
        if np.iscomplexobj(value):  # NumPy would drop the imaginary part and only warn
            raise TypeError("complex numbers are not supported")  # noqa: TRY301 - one message for both
        return np.array(value, np.float64, order="C")
    except (TypeError, ValueError) as reason:
        raise error(f"{what}: expected an array of numbers ({reason})") from None


def as_integer(
    name: str, value: Any, least: int, error: Error = ValueError, *, end: float = math.inf
) -> int:
    """Return a setting as an int; raise `error` unless it is an integer in least … end - 1."""
    if type(value) is int and least <= value < end:
        return value
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number < end:
        bound = "" if end == math.inf else f" and below {end:.6g}"
        raise error(f"{name}={value!r}: expected an integer of at least {least}{bound}")
    return number


def require_between(
    name: str, value: Any, low: float, high: float, *, ends: str = "[]", error: Error = ValueError
) -> float:
    """Return a setting as a float; raise `error` unless it is in the interval.

    `ends` are the brackets of the interval: "[)" includes `low` and excludes `high`.
    """
    number = float(value) if isinstance(value, Real) else math.nan
    is_above = number > low or (ends[0] == "[" and number == low)
    is_below = number < high or (ends[1] == "]" and number == high)
    if not (is_above and is_below):
        raise error(f"{name}={value!r}: it must be in {ends[0]}{low}, {high}{ends[1]}")
    return number


def copy_if_array(value: T) -> T:
    """Return a copy of an array, because simulators may reuse it, and any other value itself."""
    return value.copy() if isinstance(value, np.ndarray) else value
