"""Compaction, deletion and backups while other processes have the agent open."""

import os
import signal
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import SHOP, same_state
from tests.durable.concurrency import join, start
from tests.durable.postgres.server import Postgres
from tests.durable.test_archive import run
from tests.durable.test_verify import verify

from bayescontrol.durable import DurableAgent, open_agent, open_store, replay
from bayescontrol.durable.events import Compacted
from bayescontrol.durable.stores.postgres import PostgresLog
from bayescontrol.errors import CompactedDecision, ConflictingFeedback, UnknownStore


def agents(url: str, count: int = 2) -> list[DurableAgent]:
    """The same agent, as `count` processes have it open: each with its own store and memory."""
    return [open_agent(url, "shop", SHOP, seed=4) for _ in range(count)]


def test_other_processes_go_on_correctly_after_a_compaction(url: str) -> None:
    one, current, behind = agents(url, 3)
    ids = [one.act(key=f"visit-{i}").id for i in range(6)]
    for id in ids[:3]:
        one.observe(id, 1)
    assert (current.posterior(), current.head) == (one.posterior(), 10)  # it has read all events
    assert behind.head == 1
    assert one.compact(8) == 7
    for agent in (current, behind, one):
        with pytest.raises(CompactedDecision, match=f"decision {ids[4]} .*events 2 to 8"):
            agent.observe(ids[4], 1)
        with pytest.raises(CompactedDecision):
            agent.explain(ids[4])
        assert same_state(agent, one)
    d = behind.act(key="visit-0")  # the key is forgotten
    assert d.id == current.act(key="visit-0").id == "11"
    assert current.observe(d, 0)
    assert one.observe(d, 0) is False
    behind.snapshot()
    with open_agent(url, "shop") as again:
        for agent in (one, current, behind):
            assert same_state(again, agent)
        assert same_state(again, replay(again).state)
        assert [event.seq for event in again.log()] == [1, 8, 9, 10, 11, 12]
    for agent in (one, current, behind):
        agent.close()
    assert verify(url, code=0)["agents"] == {"shop": 12}


def test_an_answer_that_was_computed_before_the_compaction_is_not_stored(url: str) -> None:
    one, other = agents(url)
    d = one.act()
    one.observe(one.act(), 1)
    append: Any = PostgresLog.append
    assert other.head == 1

    def late(log: PostgresLog, rows: Any) -> None:
        if one.head == 4:
            PostgresLog.append = append  # type: ignore[method-assign]
            assert one.compact(4) == 3
        append(log, rows)

    PostgresLog.append = late  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(CompactedDecision):
            other.observe(d, 1)
    finally:
        PostgresLog.append = append  # type: ignore[method-assign]
    assert [event.seq for event in one.log()] == [1, 4]
    one.close()
    other.close()


def test_an_old_snapshot_cannot_come_back_after_a_compaction(
    url: str, server: Postgres, schema: str
) -> None:
    one, other = agents(url)
    for _ in range(4):
        one.observe(one.act(), 1)
    other.posterior()
    for _ in range(4):
        one.observe(one.act(), 1)
    one.compact(15)
    other.snapshot()  # of event 9
    assert server.sql(f"SELECT count(*) FROM {schema}.snapshots WHERE seq <= 15") == [(0,)]
    one.close()
    other.close()


def test_many_writers_and_a_compacting_process_agree(url: str) -> None:
    """Each thread has the agent open for itself, as a process would."""
    writers, wrong = agents(url, 3), list[BaseException]()
    done = threading.Event()

    def write(agent: DurableAgent, number: int) -> None:
        try:
            waiting = []
            for i in range(40):
                waiting.append(agent.act(key=f"{number}-{i}").id)
                if i % 3:
                    with suppress(CompactedDecision):
                        agent.observe(waiting.pop(i % len(waiting)), i % 2)
        except BaseException as error:
            wrong.append(error)

    def compact() -> None:
        try:
            with open_agent(url, "shop") as agent:
                while not done.is_set():
                    agent.posterior()
                    if agent.head > 12:
                        agent.compact(agent.head - 10)
        except BaseException as error:
            wrong.append(error)

    compacting = start(compact)
    join(start(*(lambda a=a, i=i: write(a, i) for i, a in enumerate(writers))))
    done.set()
    join(compacting)
    assert wrong == []
    with open_agent(url, "shop") as agent:
        assert all(same_state(agent, writer) for writer in writers)
        assert same_state(agent, replay(agent).state)
        assert isinstance(next(agent.log(2)), Compacted)
        assert agent.head > 120
    for writer in writers:
        writer.close()
    assert verify(url, code=0)["intact"]


def test_an_agent_that_is_deleted_while_it_is_open_says_so(url: str) -> None:
    one, other = agents(url)
    one.observe(one.act(), 1)
    assert other.posterior() == one.posterior()
    assert "Deleted" in run("delete", url, "shop", "--yes").stdout
    for agent in (one, other):
        with pytest.raises(UnknownStore, match="'shop' was deleted from"):
            agent.act()
    with open_agent(url, "shop", SHOP, seed=9) as new:
        new.act()
        for agent in (one, other):
            with pytest.raises(UnknownStore, match="was deleted from"):
                agent.observe("2", 1)
        assert new.observe("2", 1)
    for agent in (one, other):
        agent._last_snapshot = agent.head  # closing must not write a snapshot
        agent.close()


def test_a_backup_is_consistent_and_goes_from_postgresql_to_sqlite_and_back(
    url: str, server: Postgres, tmp_path: Path
) -> None:
    one, other = agents(url)
    done, count = threading.Event(), 0

    def work() -> None:
        while not done.is_set():
            with suppress(ConflictingFeedback):
                other.observe(other.act(), 1)

    for _ in range(10):
        one.observe(one.act(), 1)
    one.compact(10)
    thread = start(work)
    for count in range(3):
        one.backup(tmp_path / f"copy{count}.db")
    done.set()
    join(thread)
    lite = f"sqlite:///{tmp_path / 'copy2.db'}"
    assert verify(lite, code=0)["agents"]["shop"] > 20
    with open_agent(lite, "shop") as copy:
        assert same_state(copy, replay(one.log(1, copy.head)).state)
    back = server.url(schema="restored_from_sqlite")
    run("restore", tmp_path / "copy2.db", back)
    run("export", back, "shop", tmp_path / "shop.jsonl")
    run("import", url, tmp_path / "shop.jsonl", "--name", "copy")
    with closing(open_store(url)) as store, closing(open_store(lite)) as source:
        assert list(store.log("copy").read()) == list(source.log("shop").read())
        assert [agent["name"] for agent in _listed(url)] == ["copy", "shop"]
    one.close()
    other.close()


def _listed(url: str) -> list[dict[str, Any]]:
    import json

    agents: list[dict[str, Any]] = json.loads(run("list", url, "--json").stdout)["agents"]
    return agents


@pytest.mark.parametrize("statement", range(6))
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_kill_leaves_the_old_log_or_the_compacted_one(url: str, statement: int) -> None:
    """Kill the process before each statement of the transaction."""
    with open_agent(url, "shop", SHOP, seed=1) as agent:
        for i in range(10):
            agent.observe(agent.act(), i % 2)
        state = agent.state()
    child = os.fork()
    if child == 0:
        import psycopg

        with open_agent(url, "shop") as agent:
            compact, execute = PostgresLog.compact, psycopg.Connection.execute
            left = statement

            def counted(connection: Any, query: Any, *arguments: Any, **options: Any) -> Any:
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return execute(connection, query, *arguments, **options)

            def compacted(log: PostgresLog, row: Any, head: int) -> None:
                psycopg.Connection.execute = counted  # type: ignore[method-assign, assignment]
                compact(log, row, head)

            PostgresLog.compact = compacted  # type: ignore[method-assign, assignment]
            agent.compact(15)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with open_agent(url, "shop") as agent:
        assert [event.seq for event in agent.log()] == list(range(1, 22))
        assert same_state(agent, state)
        assert agent.compact(15) == 14
        assert same_state(agent, replay(agent).state)
