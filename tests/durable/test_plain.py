"""Values are read from a log exactly as they were written."""

import math
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from bayescontrol.durable.plain import as_plain, as_stored, from_plain, same_value
from bayescontrol.errors import DamagedLog, MissingCapability

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8)
)
numbers = st.integers() | st.floats(allow_nan=False)  # no NaN as a key: it is not equal to itself
hashable = st.recursive(
    numbers | st.text(max_size=8), lambda v: st.lists(v, max_size=3).map(tuple), max_leaves=5
)
arrays = npst.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
values = st.recursive(
    scalars | arrays,
    lambda v: (
        st.lists(v, max_size=3)
        | st.lists(v, max_size=3).map(tuple)
        | st.dictionaries(hashable, v, max_size=3)
    ),
    max_leaves=8,
)


def through_json(value: Any) -> Any:
    return from_plain(msgspec.json.decode(msgspec.json.encode(as_plain(value, "a value"))))


def identical(one: Any, two: Any) -> bool:
    """The same types and bits, all the way down."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray):
        alike = one.dtype == two.dtype and one.shape == two.shape
        return bool(alike and one.tobytes() == two.tobytes())
    if isinstance(one, float):
        return bool(one.hex() == two.hex())
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(identical, one, two))
    if isinstance(one, dict):
        return identical([*one.items()], [*two.items()])
    return bool(one == two)


def without_payload(value: Any) -> Any:
    """Replace every NaN by the same one: NaN payloads are not stored."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.where(np.isnan(value), np.array(np.nan, value.dtype), value)
    if isinstance(value, float):
        return math.nan if value != value else value
    if isinstance(value, list | tuple):
        return type(value)(map(without_payload, value))
    if isinstance(value, dict):
        return {without_payload(k): without_payload(v) for k, v in value.items()}
    return value


@given(values)
def test_a_value_round_trips_to_the_last_bit(value: Any) -> None:
    back = through_json(value)
    assert identical(without_payload(value), without_payload(back))
    assert same_value(value, back)


def test_edge_cases_round_trip() -> None:
    awkward: list[Any] = [-0.0, 5e-324, 2**63, -(2**63) - 1, 0.1 + 0.2, "\0\ud7ff"]
    awkward += [(), [], {}, ((),)]
    for value in awkward:
        assert identical(through_json(value), value)


class Pair(NamedTuple):
    r: float
    y: str


def test_numpy_numbers_and_named_tuples_become_plain() -> None:
    assert identical(as_stored(np.float64(0.5), "a value"), 0.5)
    assert identical(as_stored(np.int8(3), "a value"), 3)
    assert identical(as_stored(np.str_("red"), "a value"), "red")
    assert identical(as_stored(Pair(1.0, "b"), "a value"), (1.0, "b"))


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "value",
    [object(), Colour.RED, Number.ONE, {1}, b"bytes", lambda: 0, np.array(["a"]), 1j, [object]],
    ids=lambda value: type(value).__name__,
)
def test_a_setting_that_is_not_plain_data_is_refused_by_name(value: Any) -> None:
    with pytest.raises(MissingCapability, match="the action is"):
        as_plain(value, "the action")


@pytest.mark.parametrize(
    "plain",
    [{}, {"tuple": 3}, {"float": "x"}, {"array": [1], "shape": [2], "dtype": "<f8"}, {"code": "x"}],
)
def test_impossible_log_contents_are_reported_as_damage(plain: Any) -> None:
    with pytest.raises(DamagedLog):
        from_plain(plain)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, 1.0, True),
        (True, 1, True),
        (math.nan, math.nan, True),
        ([1], (1,), True),  # JSON has no tuples
        ("1", 1, False),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0]), np.array([[1.0]]), False),
        (np.array([1.0]), [1.0], False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
        ((1, 2), (1, 2, 3), False),
        (None, 0, False),
    ],
)
def test_values_are_compared_by_value_and_not_by_type(one: Any, two: Any, same: bool) -> None:
    assert same_value(one, two) is same
    assert same_value(two, one) is same
