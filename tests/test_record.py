"""Records: columns that store actions, observations and probes exactly."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol._support.columns import as_column, as_rows, select
from bayescontrol.record import Probe, Record


class Outcome(NamedTuple):
    """An observation with fields."""

    reward: float
    state: Any


values = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.none(),
    st.tuples(st.integers(), st.text()),
    st.builds(Outcome, st.floats(allow_nan=False), st.integers()),
)


@given(st.lists(values, max_size=8))
def test_a_column_stores_exact_values(given_: list[Any]) -> None:
    """Including integers that a double would round, text with NULs, and mixed types."""
    assert as_column(given_).tolist() == given_


@given(
    st.one_of(
        st.lists(st.integers(-(2**53), 2**53), min_size=1),
        st.lists(st.floats(), min_size=1),
        st.lists(st.booleans(), min_size=1),
        st.lists(st.sampled_from("abc"), min_size=1),
    )
)
def test_plain_numbers_and_text_make_plain_columns(given_: list[Any]) -> None:
    assert as_column(given_).dtype.kind in "ifbU"


def test_arrays_of_the_same_shape_are_stacked_and_others_are_not() -> None:
    assert as_column([np.zeros(3), np.ones(3)]).shape == (2, 3)
    assert as_column([np.zeros(3), np.ones(2)]).dtype == object
    assert as_column([np.float32(1.0), np.float32(2.0)]).dtype == np.float32


def test_numpy_and_python_numbers_can_be_mixed() -> None:
    assert as_column([np.int64(1), 2]).dtype == np.int64
    assert as_column([np.float64(0.5), 2]).tolist() == [0.5, 2.0]
    assert as_column([np.str_("a"), np.int64(1)]).tolist() == ["a", 1]


def test_iterating_a_record_returns_the_original_values() -> None:
    assert list(Record([0, 1], ["x", "y"])) == [(0, "x"), (1, "y")]
    rows = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    for (_, o), row in zip(Record([0, 1], rows), rows, strict=True):
        assert isinstance(o, np.ndarray)
        assert o.tobytes() == row.tobytes()


def test_equality_compares_all_columns_bit_for_bit() -> None:
    record = Record([0, 1], [0.0, 1.0], {"v": [np.zeros(2), np.ones(2)]})
    assert record == Record([0, 1], [0.0, 1.0], {"v": [np.zeros(2), np.ones(2)]})
    assert record != Record([0, 1], [-0.0, 1.0], {"v": [np.zeros(2), np.ones(2)]})
    assert record != Record([0, 1], [0, 1], {"v": [np.zeros(2), np.ones(2)]})
    assert record != Record([0, 1], [0.0, 1.0])
    assert Record([], []) == Record([], [])
    assert record != "a record"


def test_columns_of_objects_are_compared_by_value() -> None:
    def make(last: float) -> Record:
        return Record([(0, "a"), None], [np.zeros(2), np.array([1.0, 2.0, last])])

    assert make(3.0) == make(3.0)
    assert make(3.0) != make(4.0)


def test_columns_must_have_the_same_length_and_known_names() -> None:
    with pytest.raises(ValueError, match="'v' has 1 entries"):
        Record([0, 1], [0, 1], {"v": [0]})
    with pytest.raises(KeyError, match="the columns are actions, observations"):
        Record([0], [1])["reward"]


def test_a_probe_runs_before_or_after_the_observation() -> None:
    with pytest.raises(ValueError, match="during"):
        Probe(lambda *_: 0, "during")  # type: ignore[arg-type]


def test_the_text_and_html_repr_of_a_record() -> None:
    record = Record([0] * 12, ["<b>"] * 12, {"v": [np.zeros(2)] * 12})
    assert repr(record) == "Record(12 steps: actions int64, observations <U3, v float64×2)"
    html = record._repr_html_()
    assert "&lt;b&gt;" in html
    assert "12 steps, the first 10" in html


@given(
    st.lists(
        st.builds(Outcome, st.floats(allow_nan=False), st.sampled_from([1, 2, "a", (0, 1)])),
        min_size=1,
    )
)
def test_named_tuples_make_one_column_of_fields(given_: list[Outcome]) -> None:
    column = as_column(given_)
    assert column.dtype.names == ("reward", "state")
    assert column["reward"].dtype == np.float64
    assert column["reward"].tolist() == [o.reward for o in given_]
    assert column.tolist() == given_


def test_fields_are_returned_by_name_and_give_the_same_column() -> None:
    record = Record(["up", "down"], [Outcome(0.0, (0, 1)), Outcome(2.5, (1, 1))])
    stream = list(record)
    assert stream == [("up", (0.0, (0, 1))), ("down", (2.5, (1, 1)))]
    assert [o.reward for _, o in stream] == [0.0, 2.5]
    assert Record([a for a, _ in stream], [o for _, o in stream]) == record
    assert repr(record) == (
        "Record(2 steps: actions <U4, observations (reward float64, state object))"
    )


def test_equality_of_records_with_fields() -> None:
    def make(reward: float, state: Any) -> Record:
        return Record([0, 0], [Outcome(0.0, (0, 0)), Outcome(reward, state)])

    assert make(1.0, (0, 1)) == make(1.0, (0, 1))
    assert make(0.0, (0, 1)) != make(-0.0, (0, 1))
    assert make(1.0, (0, 1)) != make(1.0, (0, 2))
    assert make(1.0, (0, 1)) != Record([0, 0], [(0.0, (0, 0)), (1.0, (0, 1))])


def test_named_tuples_of_arrays_or_of_mixed_types_stay_objects() -> None:
    class Other(NamedTuple):
        reward: float
        state: int

    assert as_column([Outcome(0.0, np.zeros(2)), Outcome(1.0, np.zeros(2))]).dtype == object
    assert as_column([Outcome(0.0, 1), Other(1.0, 2)]).dtype == object
    assert as_column([Outcome(0.0, Other(1.0, 2))]).dtype == object


@given(st.lists(st.integers(0, 3)), st.permutations(["a", "bcd", 1, 2.5, (0, 1), True, 2**70]))
def test_selected_values_give_the_same_column_as_a_list(
    numbers: list[int], names: list[Any]
) -> None:
    ours = select(names, np.array(numbers, np.int64))
    listed = as_column([names[i] for i in numbers])
    assert (ours.dtype, ours.tolist()) == (listed.dtype, listed.tolist())


def test_as_rows_equals_a_list_of_named_tuples() -> None:
    rows = as_rows({"reward": np.array([0.0, 2.5]), "state": np.array([7, 3])})
    assert Record([0, 0], rows) == Record([0, 0], [Outcome(0.0, 7), Outcome(2.5, 3)])
