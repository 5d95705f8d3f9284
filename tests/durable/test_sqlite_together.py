"""Agents of one file share its flushes, and nothing else."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import pytest
from tests.durable.conformance import ROWS, decided

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent, open_store, replay
from bayescontrol.durable.committer import Request
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.errors import DiskFull, HeadMoved


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "shop.db"))
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
    store: SqliteStore, functions: list[Callable[[], None]]
) -> list[Exception | None]:
    """Call all functions while a transaction is open; return the error of each, or None."""
    file = store._require_open()
    busy, go = threading.Event(), threading.Event()
    results: list[Exception | None] = [None] * len(functions)

    def slow(_: apsw.Connection) -> None:
        busy.set()
        go.wait()

    def run(i: int) -> None:
        try:
            functions[i]()
        except Exception as error:
            results[i] = error

    first = threading.Thread(target=file.write, args=(slow,))
    first.start()
    busy.wait()
    others = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for other in others:
        other.start()
    while len(file._committer._waiting) < len(functions):
        time.sleep(0.001)
    go.set()
    for thread in (first, *others):
        thread.join()
    return results


def test_logs_that_append_while_the_disk_is_busy_share_a_transaction(store: SqliteStore) -> None:
    logs, counted = [store.log(f"agent {i}") for i in range(8)], commits(store)
    result = call_together(store, [lambda log=log: log.append(ROWS) for log in logs])  # type: ignore[misc]
    assert result == [None] * 8
    assert len(counted) == 2  # the slow transaction, and one for all of them
    assert [list(log.read()) for log in logs] == [ROWS] * 8


def test_a_failed_append_does_not_affect_the_others_of_its_transaction(store: SqliteStore) -> None:
    logs = [store.log(f"agent {i}") for i in range(3)]
    logs[1].append(ROWS)
    again = [*ROWS[:-1], decided(len(ROWS))]
    result = call_together(
        store,
        [lambda: logs[0].append(ROWS), lambda: logs[1].append(again), lambda: logs[2].append(ROWS)],
    )
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
    result = call_together(
        store,
        [
            lambda: logs[0].append(ROWS[1:2]),
            lambda: logs[1].append(large),
            lambda: logs[2].append(ROWS[1:2]),
        ],
    )
    assert [type(error) for error in result] == [DiskFull] * 3
    assert [log.head() for log in logs] == [1, 1, 1]
    db.pragma("max_page_count", most)
    for log in logs:
        log.append(ROWS[1:2])
    assert [list(log.read()) for log in logs] == [ROWS[:2]] * 3


def test_agents_of_one_file_share_flushes_and_each_equals_its_replay(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    agents = [
        open_agent(store, f"agent {i}", BernoulliBandit(3), seed=i, snapshot_every=10**6)
        for i in range(8)
    ]
    counted = commits(store)

    def work(i: int) -> None:
        for t in range(25):
            d = agents[i].act()
            agents[i].observe(d, (t + i) % 2)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counted) < 8 * 50  # some were committed together, otherwise the test shows nothing
    for agent in agents:
        state = agent.state()
        again = replay(agent.log()).state
        assert agent.head == 51
        assert all(again[name].tobytes() == state[name].tobytes() for name in state)
        agent.close()
    store.close()


def test_an_agent_that_computes_slowly_does_not_delay_another_agent_of_its_file(
    store: SqliteStore,
) -> None:
    shop = BernoulliBandit(["red", "blue"])
    computing, go = threading.Event(), threading.Event()
    with open_agent(store, "slow", shop) as slow, open_agent(store, "fast", shop) as fast:
        compute = slow._take_turn

        def wait_and_compute(requests: Sequence[Request]) -> bool:
            computing.set()
            go.wait()
            return compute(requests)

        slow._take_turn = wait_and_compute  # type: ignore[method-assign]
        thread = threading.Thread(target=slow.act)
        thread.start()
        computing.wait()
        assert fast.observe(fast.act(), 1)
        assert slow.head == 1
        go.set()
        thread.join()
        assert slow.head == 2
