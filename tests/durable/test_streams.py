"""A decision's stream is the one that `Stream.named` gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream
from bayescontrol.durable.fold import Streams


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**63 - 1))
def test_the_streams_of_a_log_are_those_of_its_seed(seed: int, n: int) -> None:
    assert Streams(seed)[n] == Stream.named(seed, n, "agent")


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64, 2**96 - 1, 2**128 - 1])
def test_also_where_words_begin_and_end(seed: int) -> None:
    for n in (0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1):
        assert Streams(seed)[n] == Stream.named(seed, n, "agent")


def test_streams_in_a_row_are_the_same_as_one_by_one_in_any_order() -> None:
    streams = Streams(7)
    for n in (*range(1, 50), *range(50, 0, -3), *range(2**32 - 20, 2**32 + 20, 3)):
        assert streams[n] == Stream.named(7, n, "agent")


def test_a_stream_starts_fresh_at_each_request() -> None:
    streams = Streams(7)
    streams[3].random(size=10)
    assert streams[3] == Stream.named(7, 3, "agent")
