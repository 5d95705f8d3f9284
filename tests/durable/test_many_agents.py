"""The work to open a store grows linearly with the number of its agents."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.stores.sqlite import SqliteStore
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.http_errors import UnknownAgent


def store_of(folder: Path, agents: int) -> SqliteStore:
    """Create a store with this many agents, all closed."""
    store = SqliteStore(f"sqlite:///{folder / f'{agents}.db'}", durable=False)
    for i in range(agents):
        with open_agent(store, f"agent {i}", BernoulliBandit(["red", "blue"]), seed=i) as agent:
            agent.observe(agent.act(), 1)
    return store


def open_one_by_one(store: SqliteStore) -> int:
    agents = [open_agent(store, name) for name in store.names()]
    for agent in agents:
        agent.close()
    return len(agents)


def open_in_a_server(store: SqliteStore) -> int:
    async def opened() -> int:
        agents = ServedAgents(store)
        await agents.start()
        await agents.opened
        assert agents.failed == []
        found = len(agents.open)
        await agents.close()
        return found

    return asyncio.run(opened())


def steps(store: SqliteStore, work: Callable[[SqliteStore], int]) -> tuple[int, int]:
    """Return the result of `work` and the number of steps of SQLite's virtual machine."""
    total = 0

    def add(event: dict[str, Any]) -> None:
        nonlocal total
        total += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    db = store._require_open()._open()
    db.trace_v2(apsw.SQLITE_TRACE_PROFILE, add, id="steps")
    found = work(store)
    return found, total


@pytest.mark.parametrize("work", [open_one_by_one, open_in_a_server])
def test_twice_the_agents_take_about_twice_the_work(
    tmp_path: Path, work: Callable[[SqliteStore], int]
) -> None:
    few, many = (steps(store_of(tmp_path, agents), work) for agents in (50, 100))
    assert (few[0], many[0]) == (50, 100)
    assert many[1] <= 2.2 * few[1], (few, many)


def test_requests_for_unknown_agents_leave_no_log_open(tmp_path: Path) -> None:
    store = store_of(tmp_path, 2)

    async def ask() -> None:
        agents = ServedAgents(store)
        for name in range(50):
            with pytest.raises(UnknownAgent):
                await agents.get(f"nobody {name}")
        assert await agents.get((await agents.names())[0]) is not None
        assert len(store._logs) == 1
        await agents.close()

    asyncio.run(ask())
