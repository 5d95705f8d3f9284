"""The types of arrays, by name."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
UIntArray: TypeAlias = npt.NDArray[np.uint64]
#: State as named arrays: `save` returns them and `load` takes them. They hold no pickled code.
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def as_numbers(value: Any, what: str, error: type[Exception]) -> FloatArray:
    """Return the value as a new array of floats; raise `error`, which names `what`, otherwise."""
    try:
        return np.array(value, np.float64, order="C")
    except (TypeError, ValueError) as reason:
        raise error(f"{what}: expected an array of numbers ({reason})") from None
