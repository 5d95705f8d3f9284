"""A decision's stream is the one that `seeding.stream` names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import stream
from bayescontrol.durable.streams import Streams


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**63 - 1))
def test_the_streams_of_a_log_are_those_of_its_seed(seed: int, n: int) -> None:
    assert Streams(seed)[n] == stream(seed, n, "agent")


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64, 2**96 - 1, 2**128 - 1])
def test_also_where_words_begin_and_end(seed: int) -> None:
    for n in (0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1):
        assert Streams(seed)[n] == stream(seed, n, "agent")
