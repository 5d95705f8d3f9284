"""Columns of a record: lists of values as arrays."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from bayescontrol._arrays import AnyArray, IntArray


def as_column(values: Sequence[Any] | AnyArray) -> AnyArray:
    """Convert a list of values of one type to an array; other lists become object arrays.

    Named tuples become a structured array with the same fields.

    >>> as_column([1, 2]), as_column(["a", ("b", 1)]).dtype
    (array([1, 2]), dtype('O'))
    >>> from bayescontrol.mdp import Step
    >>> as_column([Step(0.0, 7), Step(2.5, 3)])
    array([(0. , 7), (2.5, 3)], dtype=[('reward', '<f8'), ('state', '<i8')])
    """
    if isinstance(values, np.ndarray):
        return values
    types: set[Any] = {getattr(v, "dtype", type(v)) for v in values}
    if len(types) > 1:
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        types = {type(v) for v in values}
    only_type = next(iter(types)) if len(types) == 1 else None
    are_plain = types <= {int, bool} or types <= {float, int} or types == {str}
    if are_plain or isinstance(only_type, np.dtype):
        with suppress(ValueError, OverflowError):
            column = np.array(values)
            if column.dtype.kind in "biufcU" and (not are_plain or _holds_exactly(column, values)):
                return column
    is_tuple = isinstance(only_type, type) and issubclass(only_type, tuple)
    names: tuple[str, ...] = getattr(only_type, "_fields", ()) if is_tuple else ()
    if names:
        fields = [as_column(field) for field in zip(*values, strict=True)]
        if all(field.ndim == 1 and field.dtype.names is None for field in fields):
            return as_rows(dict(zip(names, fields, strict=True)))
    objects = np.empty(len(values), object)
    for i, value in enumerate(values):
        objects[i] = value
    return objects


def _holds_exactly(column: AnyArray, values: Sequence[object]) -> bool:
    """Check that NumPy changed no value: it rounds large integers and strips NUL characters."""
    # c != c holds for NaN, which is not equal to itself.
    return all(c == v or c != c for c, v in zip(column.tolist(), values, strict=True))


def as_rows(fields: Mapping[str, AnyArray]) -> AnyArray:
    """Join columns to one structured array."""
    length = len(next(iter(fields.values())))
    rows = np.empty(length, [(name, field.dtype) for name, field in fields.items()])
    for name, field in fields.items():
        rows[name] = field
    return rows


def select(values: Sequence[Any], numbers: IntArray) -> AnyArray:
    """Return `as_column([values[i] for i in numbers])`, without building the list."""
    used = np.flatnonzero(np.bincount(numbers, minlength=len(values)))
    position = np.zeros(len(values), np.intp)
    position[used] = np.arange(used.size)
    # The type of a column depends on which values it holds, not on how often.
    return as_column([values[i] for i in used.tolist()])[position[numbers]]
