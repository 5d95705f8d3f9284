"""Servers on PostgreSQL: two share one agent, and one stops while its database is down."""

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from tests.durable.postgres.server import Postgres, started
from tests.durable.postgres.test_readers import before_each_head
from tests.serve.raw import Raw, ask
from tests.serve.visits import CLIENTS, SHOP, require_exactly_once, visitors

from bayescontrol import BernoulliBandit
from bayescontrol.durable import SnapshotNotKept, open_agent, open_store, replay
from bayescontrol.serve import Client, Limits, UnknownAgent
from bayescontrol.serve.monitor import Metrics, Monitor
from bayescontrol.serve.server import Server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with started() as server:
        yield server


@pytest.mark.parametrize("under_way", [False, True])
def test_a_server_without_its_database_stops_soon_and_loses_nothing(
    postgres: Postgres, under_way: bool
) -> None:
    url = postgres.url(schema=f"down_{under_way}")
    limits = Limits(grace=60.0, deadline=60.0)  # the time to wait if it waited for the database
    with warnings.catch_warnings(record=True) as warned, ExitStack() as stack:
        warnings.simplefilter("always")
        server = stack.enter_context(Server(url, port=0, limits=limits))
        with Client(server.url) as client:
            client.call("GET", "/v1/health/ready")
            names = ("shop", "search", "mail")
            acknowledged = {n: client.create(n, SHOP, seed=1).act(key="visit-1") for n in names}
        postgres.crash()
        try:
            ready = ask(server.url, "GET", "/v1/health/ready")
            assert (ready.status, ready.kind) == (503, "store-failed")
            answers: list[Raw] = []
            visit = threading.Thread(
                target=lambda: answers.append(ask(server.url, "POST", "/v1/agents/shop/act", {}))
            )
            if under_way:
                visit.start()
                time.sleep(0.5)
            began = time.monotonic()
            stack.close()
            took = time.monotonic() - began
            if under_way:
                visit.join()
                assert (answers[0].status, answers[0].kind) == (503, "store-failed")
        finally:
            postgres.start()
    assert took < 15.0
    assert {one.category for one in warned} == {SnapshotNotKept}
    with Server(url, port=0) as server, Client(server.url) as client:
        for name, decision in acknowledged.items():
            again = client.agent(name)
            assert again.info()["decisions"] == 1
            assert again.act(key="visit-1") == decision


@contextmanager
def two_clients(url: str) -> Iterator[tuple[Client, Client]]:
    """Two servers of one store, each with a client."""
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(url, port=0)) for _ in range(2)]
        first, second = (stack.enter_context(Client(server.url)) for server in servers)
        yield first, second


def test_clients_of_two_servers_share_one_agent_and_every_operation_happens_once(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.url(schema="served")
    with two_clients(url) as (first, second):
        first.create("shop", SHOP, seed=1)
        assert second.agents() == ["shop"]
        urls = [first.url, second.url] * (CLIENTS // 2)
        with visitors(urls, 30, tmp_path) as running:
            acknowledged = running.history()
        events = list(second.agent("shop").log())
        posteriors = [client.agent("shop").posterior() for client in (first, second)]
    require_exactly_once(acknowledged, events)
    assert replay(events).posterior() == posteriors[0] == posteriors[1]


def test_a_posterior_is_returned_with_its_last_event(postgres: Postgres) -> None:
    """Also if another process has written since the last read."""
    url = postgres.url(schema="posterior")
    with two_clients(url) as (first, second):
        writer = first.create("fresh", SHOP, seed=1)
        reader = second.agent("fresh")
        assert reader.posterior()
        for n in range(1, 4):
            writer.observe(writer.act(), 1)
            result = second.call("GET", "/v1/agents/fresh/posterior")
            counts = [row["count"] for row in result["posterior"].values()]
            assert (result["head"], sum(counts)) == (1 + 2 * n, n)


def test_a_frame_of_the_live_page_is_consistent(postgres: Postgres) -> None:
    one_arm, url = BernoulliBandit(["red"]), postgres.url(schema="frame")
    with open_agent(url, "arm", one_arm, seed=1) as writer, open_agent(url, "arm") as reader:
        before_each_head(reader, lambda: writer.observe(writer.act(), 1))
        monitor = Monitor(Metrics())
        for _ in range(3):
            frame = monitor.agent_state(reader)
            n = frame["observations"]
            assert frame["pending"] == 0
            assert frame["modes"][0]["mean"] == pytest.approx((1 + n) / (2 + n))


def test_the_name_of_an_agent_that_another_process_deleted_is_free(postgres: Postgres) -> None:
    url = postgres.url(schema="deleted")
    with (
        Server(url, port=0) as server,
        Client(server.url) as client,
        closing(open_store(url)) as store,
    ):
        client.create("shop", SHOP, seed=1).act()
        store.delete("shop")
        with pytest.raises(UnknownAgent, match="was deleted"):
            client.agent("shop").act()
        assert ask(server.url, "GET", "/v1/agents/shop").kind == "unknown-agent"
        client.create("shop", SHOP, seed=2).act()
        store.delete("shop")  # the server notices it when the agent is created again
        assert client.create("shop", SHOP, seed=3).info()["decisions"] == 0
        assert client.agents() == ["shop"]
