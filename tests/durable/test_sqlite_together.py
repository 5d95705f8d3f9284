"""Agents of one file share its flushes, and nothing else."""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.agents import same_state
from tests.durable.concurrency import catch, join, run_together, start, wait_until
from tests.durable.conformance import ROWS, decided

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Act, DurableAgent, Observe, Observed, open_agent, replay
from bayescontrol.durable.agent import handle_together
from bayescontrol.durable.events import encode_row
from bayescontrol.durable.stores.sqlite import SqliteLog, SqliteStore
from bayescontrol.errors import (
    BadEvidence,
    ConflictingFeedback,
    ConflictingKey,
    DiskFull,
    HeadMoved,
    StoreFailed,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}")
    yield opened
    opened.close()


def commits(store: SqliteStore) -> list[int]:
    """Return a list that grows by one with each transaction."""
    assert store._file is not None
    assert store._file._db is not None
    counted: list[int] = []

    def count() -> bool:
        counted.append(1)
        return False  # let it commit

    store._file._db.set_commit_hook(count)
    return counted


def call_together(
    store: SqliteStore, functions: Sequence[Callable[[], None]]
) -> list[BaseException | None]:
    """Call all functions while a transaction is open; return the error of each, or None."""
    file = store._require_open()
    busy, go = threading.Event(), threading.Event()
    results: dict[int, BaseException | None] = {}

    def slow(_: apsw.Connection) -> None:
        busy.set()
        go.wait()

    def run(i: int) -> None:
        results[i] = catch(functions[i])

    threads = start(lambda: file.write(slow))
    busy.wait()
    threads += start(*(partial(run, i) for i in range(len(functions))))
    wait_until(lambda: len(file._committer._waiting) == len(functions))
    go.set()
    join(threads)
    return [results[i] for i in range(len(functions))]


def test_logs_that_append_while_the_disk_is_busy_share_a_transaction(store: SqliteStore) -> None:
    logs, counted = [store.log(f"agent {i}") for i in range(8)], commits(store)
    result = call_together(store, [partial(log.append, ROWS) for log in logs])
    assert result == [None] * 8
    assert len(counted) == 2  # the slow transaction, and one for all of them
    assert [list(log.read()) for log in logs] == [ROWS] * 8


def test_a_failed_append_does_not_affect_the_others_of_its_transaction(store: SqliteStore) -> None:
    logs = [store.log(f"agent {i}") for i in range(3)]
    logs[1].append(ROWS)
    again = [*ROWS[:-1], decided(len(ROWS))]
    batches = (ROWS, again, ROWS)
    appends = [partial(log.append, rows) for log, rows in zip(logs, batches, strict=True)]
    result = call_together(store, appends)
    assert [type(error) for error in result] == [type(None), HeadMoved, type(None)]
    assert [list(log.read()) for log in logs] == [ROWS] * 3


def test_of_two_appends_of_the_same_row_one_fails(store: SqliteStore) -> None:
    log = store.log("checkout")
    log.append(ROWS[:1])
    result = call_together(store, [lambda: log.append(ROWS[1:2])] * 2)
    assert sorted(type(error).__name__ for error in result) == ["HeadMoved", "NoneType"]
    assert list(log.read()) == ROWS[:2]


def test_a_full_disk_fails_the_whole_transaction_and_all_logs_recover(store: SqliteStore) -> None:
    db = store._require_open()._db
    assert db is not None
    logs = [store.log(f"agent {i}") for i in range(3)]
    for log in logs:
        log.append(ROWS[:1])
    most = db.pragma("max_page_count")
    db.pragma("max_page_count", db.pragma("page_count"))
    large = [decided(2, payload=b"x" * 20_000)]
    batches = (ROWS[1:2], large, ROWS[1:2])
    appends = [partial(log.append, rows) for log, rows in zip(logs, batches, strict=True)]
    result = call_together(store, appends)
    assert [type(error) for error in result] == [DiskFull] * 3
    assert [log.head() for log in logs] == [1, 1, 1]
    db.pragma("max_page_count", most)
    for log in logs:
        log.append(ROWS[1:2])
    assert [list(log.read()) for log in logs] == [ROWS[:2]] * 3


def test_agents_of_one_file_share_flushes_and_each_equals_its_replay(store: SqliteStore) -> None:
    agents = [
        open_agent(store, f"agent {i}", BernoulliBandit(3), seed=i, snapshot_every=10**6)
        for i in range(8)
    ]
    counted = commits(store)

    def work(i: int) -> None:
        for t in range(25):
            d = agents[i].act()
            agents[i].observe(d, (t + i) % 2)

    run_together(*(partial(work, i) for i in range(8)))
    assert len(counted) < 8 * 50  # some were committed together, otherwise the test shows nothing
    for agent in agents:
        assert agent.head == 51
        assert same_state(agent, replay(agent.log()).state)
        agent.close()


def test_an_agent_that_computes_slowly_does_not_delay_another_agent_of_its_file(
    store: SqliteStore,
) -> None:
    shop = BernoulliBandit(["red", "blue"])
    computing, go = threading.Event(), threading.Event()
    with open_agent(store, "slow", shop) as slow, open_agent(store, "fast", shop) as fast:
        compute = slow._take_turn

        def wait_and_compute(batch: Sequence[Any]) -> bool:
            computing.set()
            go.wait()
            return compute(batch)

        slow._take_turn = wait_and_compute  # type: ignore[method-assign]
        threads = start(slow.act)
        computing.wait()
        assert fast.observe(fast.act(), 1)
        assert slow.head == 1
        go.set()
        join(threads)
        assert slow.head == 2


def shops(store: SqliteStore, count: int) -> list[DurableAgent]:
    """Return agents with one decision each."""
    agents = [open_agent(store, f"agent {i}", BernoulliBandit(2), seed=i) for i in range(count)]
    for agent in agents:
        agent.act()
    return agents


def test_requests_of_several_agents_are_handled_in_one_commit_as_each_alone(
    store: SqliteStore,
) -> None:
    agents = shops(store, 3)
    batches: dict[DurableAgent, list[Act | Observe]] = {
        agent: [Act(None, None), Observe("2", i % 2), *(Act(None, f"key {j}") for j in range(i))]
        for i, agent in enumerate(agents)
    }
    counted = commits(store)
    handle_together(batches)
    assert len(counted) == 1
    alone = shops(SqliteStore("sqlite:///:memory:"), 3)
    for agent, twin in zip(agents, alone, strict=True):
        twin.handle([type(r)(*_arguments(r)) for r in batches[agent]])
        assert all(request.result is not None for request in batches[agent])
        assert agent.head == twin.head
        assert same_state(agent, twin.state())
        assert same_state(agent, replay(agent.log()).state)


def _arguments(request: Act | Observe) -> tuple[Any, Any]:
    return (request.x, request.key) if isinstance(request, Act) else (request.id, request.o)


def test_an_agent_that_fails_does_not_affect_those_that_commit_with_it(store: SqliteStore) -> None:
    """One agent is closed, one has a damaged index, one rejects a value, one is behind its log."""
    closed, damaged, rejecting, behind, intact = agents = shops(store, 5)
    closed.close()
    damaged._decisions.find_key = lambda key: None  # type: ignore[method-assign]
    damaged.act(key="known")
    assert behind._log.head() == 2
    behind._log.append([encode_row(Observed(seq=3, n=2, o=1, time=0.0))])
    batches: dict[DurableAgent, list[Act | Observe]] = {
        agent: [Act(None, None), Observe("2", 0)] for agent in agents
    }
    batches[damaged] = [Act(None, "known" if i == 3 else f"key {i}") for i in range(10)]
    batches[rejecting] = [Act(None, None), Observe("2", 7)]
    handle_together(batches)
    result = {agent: [type(request.error) for request in batches[agent]] for agent in agents}
    fine = type(None)
    assert result[closed] == [StoreFailed] * 2
    assert result[damaged] == [ConflictingKey] * 10
    assert result[rejecting] == [fine, BadEvidence]
    assert result[behind] == [fine, ConflictingFeedback]  # the events were read first
    assert result[intact] == [fine, fine]
    assert [agent.head for agent in agents[1:]] == [3, 3, 4, 4]
    for agent in (rejecting, behind, intact):
        assert same_state(agent, replay(agent.log()).state)


def test_an_append_that_comes_too_late_is_computed_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, other = shops(store, 2)
    append = SqliteLog.append_together

    def grow_first(appends: Any) -> list[Exception | None]:
        monkeypatch.undo()
        late._log.append([encode_row(Observed(seq=3, n=2, o=1, time=0.0))])
        return append(appends)

    monkeypatch.setattr(SqliteLog, "append_together", staticmethod(grow_first))
    batches: dict[DurableAgent, list[Act | Observe]] = {
        agent: [Act(None, None)] for agent in (late, other)
    }
    handle_together(batches)
    assert [batches[agent][0].result.id for agent in (late, other)] == ["4", "3"]
    assert same_state(late, replay(late.log()).state)


def test_a_full_disk_acknowledges_nothing_of_a_common_commit(store: SqliteStore) -> None:
    agents = shops(store, 3)
    db = store._require_open()._db
    assert db is not None
    most = db.pragma("max_page_count")
    db.pragma("max_page_count", db.pragma("page_count"))
    key = "x" * 200
    batches: dict[DurableAgent, list[Act | Observe]] = {
        agent: [Act(None, f"{i:03}{key[:190]}") for i in range(100)] for agent in agents
    }
    handle_together(batches)
    assert {type(r.error) for batch in batches.values() for r in batch} == {DiskFull}
    assert {r.result for batch in batches.values() for r in batch} == {None}
    assert [agent.head for agent in agents] == [2, 2, 2]
    db.pragma("max_page_count", most)
    assert [agent.act().id for agent in agents] == ["3"] * 3
