"""Logs of bandits with tiny prior parameters: those of version 1 are continued as they began."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.durable.kept import LOGS, alike, require_drawn_again, told, went_on
from tests.durable.logs.make_tiny_shapes import BANDITS, HELD
from tests.durable.test_formats import FOUND, copied

from bayescontrol.durable import DurableAgent, open_agent, open_store
from bayescontrol.durable.store import Store
from bayescontrol.schedules import Geometric, every_step

OLD: dict[str, Any] = json.loads((LOGS / "v1" / "tiny_shapes.json").read_text())


def opened(store: Store, name: str, by_problem: bool) -> DurableAgent:
    """By the problem object, or by the log alone."""
    if not by_problem:
        return open_agent(store, name)
    schedule = Geometric(0.5) if name == HELD else every_step
    return open_agent(store, name, BANDITS[name][0], schedule=schedule)


@pytest.mark.parametrize("by_problem", [False, True])
@pytest.mark.parametrize("snapshots", FOUND)
def test_a_log_of_version_1_opens_replays_and_continues_as_it_began(
    tmp_path: Path, snapshots: str, by_problem: bool
) -> None:
    """Every decision is drawn again, ties among equal doubles included."""
    url = copied(LOGS / "v1" / "tiny_shapes.db", tmp_path, snapshots)
    with closing(open_store(url)) as store:
        assert store.names() == sorted(OLD)
        for name, expected in OLD.items():
            then = expected["then"]
            assert expected["ties"]
            with opened(store, name, by_problem) as agent:
                assert agent.model.version == agent.created.version == 1
                assert alike(told(agent), {what: expected[what] for what in told(agent)})
                require_drawn_again(agent)
                assert agent.explain(str(expected["ties"][0]))
                came = went_on(agent, then)
                assert alike(came, {what: then[what] for what in came})
            with opened(store, name, by_problem) as agent:
                assert alike(told(agent), {what: then[what] for what in told(agent)})
                require_drawn_again(agent)
