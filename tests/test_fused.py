"""The table of compiled loops."""

from importlib import import_module
from typing import Any

import pytest

from bayescontrol.fused import _OURS, _finder, find_loop, register_loop
from bayescontrol.record import Record
from bayescontrol.seeding import Stream


@pytest.mark.parametrize(("pair", "home"), _OURS.items())
def test_every_name_in_the_table_exists(pair: tuple[str, str], home: str) -> None:
    for name in pair:
        module, _, kind = name.rpartition(".")
        found = getattr(import_module(f"bayescontrol.{module}"), kind)
        assert f"{found.__module__}.{found.__qualname__}" == f"bayescontrol.{name}"
    assert callable(_finder(home))


def test_a_users_own_pair_is_found_by_its_exact_types() -> None:
    class Agent:
        pass

    class Heir(Agent):
        pass

    class World:
        pass

    def loop(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
        return Record([], [])

    register_loop(Agent, World, lambda agent, world: loop)
    assert find_loop(Agent(), World()) is loop
    assert find_loop(Heir(), World()) is None
