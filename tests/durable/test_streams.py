"""The random stream of a decision equals the one of `Stream.named`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream
from bayescontrol.durable.fold import Streams


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**63 - 1))
def test_a_stream_is_the_named_stream_of_its_seed_and_event(seed: int, n: int) -> None:
    assert Streams(seed)[n] == Stream.named(seed, n, "agent")


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64, 2**96 - 1, 2**128 - 1])
def test_streams_are_right_at_word_boundaries(seed: int) -> None:
    for n in (0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1):
        assert Streams(seed)[n] == Stream.named(seed, n, "agent")


def test_streams_do_not_depend_on_the_order_of_access_and_start_fresh() -> None:
    streams = Streams(7)
    for n in (*range(1, 50), *range(50, 0, -3), *range(2**32 - 20, 2**32 + 20, 3)):
        streams[n].random(size=10)
        assert streams[n] == Stream.named(7, n, "agent")
