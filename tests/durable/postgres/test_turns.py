"""Writers of one log take turns: no writer waits forever, or for one that sleeps."""

import threading

import psycopg
import pytest
from tests.durable.concurrency import join, run_together, start, wait_until
from tests.durable.conformance import ROWS, decided
from tests.durable.postgres.server import Postgres

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.stores import postgres_server
from bayescontrol.durable.stores.postgres import PostgresStore
from bayescontrol.errors import HeadMoved, StoreBusy

SHOP = BernoulliBandit(["red", "blue"])


def test_a_lock_timeout_raises_an_error_and_writes_nothing(
    url: str, schema: str, server: Postgres
) -> None:
    store = PostgresStore(url, patience=0.2)
    log = store.log("checkout")
    log.append(ROWS[:1])
    with psycopg.connect(server.url()) as other:
        other.execute(f"SELECT * FROM {schema}.logs FOR UPDATE".encode())
        with pytest.raises(StoreBusy, match="nothing was written"):
            log.append(ROWS[1:2])
    assert log.head() == 1
    log.append(ROWS[1:2])
    store.close()


def test_a_sleeping_lock_holder_does_not_block_the_others(
    url: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "_LONGEST_WAIT", "3s")  # long enough to be seen waiting
    store = PostgresStore(url)
    log, twin = store.log("checkout"), store.log("checkout")
    log.append(ROWS[:1])
    with pytest.raises(HeadMoved):
        twin.append(ROWS[:1])

    def append() -> None:
        with twin.turn():
            twin.append(ROWS[1:2])

    with psycopg.connect(server.url()) as sleeper:
        sleeper.execute("SELECT pg_advisory_lock(%s)", (twin._queue_key,))
        threads = start(append)
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: server.sql(waits) != [(0,)])
        assert log.head() == 1
        join(threads)
        assert log.head() == 2
    store.close()


def test_a_connection_lost_in_a_turn_is_replaced_in_its_slot(url: str, server: Postgres) -> None:
    store = PostgresStore(url)
    log, twin = store.log("checkout"), store.log("checkout")
    log.append(ROWS[:1])
    with pytest.raises(HeadMoved):
        twin.append(ROWS[:1])
    # One slot only: asking for a second while holding the first would wait forever.
    store._server._connection_slots = threading.BoundedSemaphore(1)
    with twin.turn():
        with psycopg.connect(server.url()) as other:
            ours = store._server._reserved.connection.info.backend_pid
            assert other.execute("SELECT pg_terminate_backend(%s)", (ours,)).fetchone() == (True,)
        twin.append(ROWS[1:2])
    assert log.head() == 2
    with twin.turn():
        twin.append(ROWS[2:3])
    store.close()


def test_turns_are_taken_one_at_a_time_under_contention(url: str) -> None:
    store = PostgresStore(url)
    first = store.log("checkout")
    first.append(ROWS[:1])
    inside, most = 0, 0

    def append() -> None:
        nonlocal inside, most
        log = store.log("checkout")
        with pytest.raises(HeadMoved):
            log.append(ROWS[:1])
        for _ in range(5):
            with log.turn():
                inside += 1
                most = max(most, inside)
                log.append([decided(log.head() + 1)])
                inside -= 1

    run_together(*[append] * 6)
    assert (first.head(), most) == (31, 1)
    store.close()


def test_threads_of_one_process_are_committed_together(
    url: str, schema: str, server: Postgres
) -> None:
    with open_agent(url, "shop", SHOP) as agent:

        def visit() -> None:
            for _ in range(5):
                agent.observe(agent.act(), 1)

        run_together(*[visit] * 16)
        assert agent.head == 161
    ((batches,),) = server.sql(f"SELECT count(DISTINCT batch) FROM {schema}.events")
    assert batches < 80
