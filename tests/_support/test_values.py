"""Situations and states as arrays: plain data is restored exactly, and code is not stored."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.testing.laws import npy_round_trip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
)
plain = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(scalars, inner, max_size=4),
    ),
    max_leaves=10,
)


@given(plain)
def test_plain_values_are_restored_exactly(value: Any) -> None:
    saved = npy_round_trip({"x": pack(value, "x")})["x"]
    assert unpack(saved) == value
    assert repr(unpack(saved)) == repr(value)


@given(hnp.arrays(st.sampled_from([np.float64, np.int64, np.bool_]), hnp.array_shapes()))
def test_numeric_arrays_are_restored_bit_for_bit(value: Any) -> None:
    saved = unpack(npy_round_trip({"x": pack(value, "x")})["x"])
    assert saved.dtype == value.dtype
    assert saved.tobytes() == value.tobytes()


def test_numpy_numbers_are_restored_as_numbers() -> None:
    assert unpack(pack(np.int64(3), "x")) == 3
    assert unpack(pack(np.float64(0.1), "x")) == 0.1


def test_packed_and_unpacked_arrays_are_copies() -> None:
    value = np.zeros(2)
    packed = pack(value, "x")
    unpacked = unpack(packed)
    value[0] = packed[1] = 7.0
    assert unpacked.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "value",
    [lambda: 1, object(), Fraction(1, 2), math.nan, (1, math.inf), np.array([None]), {1: object()}],
)
def test_objects_other_than_plain_data_cannot_be_saved(value: object) -> None:
    with pytest.raises(MissingCapability, match="the situation is"):
        pack(value, "the situation")


@pytest.mark.parametrize(
    "array",
    [
        np.array("__import__('os').getcwd()"),
        np.array("(1,"),
        np.array("open"),
        np.array(["1", "2"]),
        np.array(b"1 +"),
        np.array(None),
    ],
)
def test_invalid_bytes_are_refused_and_never_executed(array: Any) -> None:
    with pytest.raises(IncompatibleState):
        unpack(array)
