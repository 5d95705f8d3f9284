"""The types of arrays, by name."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
UIntArray: TypeAlias = npt.NDArray[np.uint64]
#: State as named arrays: what `save` gives and `load` takes. Never pickled code.
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def as_numbers(value: Any, what: str, error: type[Exception]) -> FloatArray:
    """Return a new array of floats; raise `error` if `value`, described by `what`, is not numeric."""
    try:
        return np.array(value, np.float64, order="C")
    except (TypeError, ValueError) as reason:
        raise error(f"{what}: expected an array of numbers ({reason})") from None
