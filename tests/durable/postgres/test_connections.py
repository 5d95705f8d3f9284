"""Lost servers and sessions: calls wait for the server, and sessions are replaced."""

import threading

import pytest
from tests.durable.postgres.server import Postgres

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.stores.postgres import PostgresStore
from bayescontrol.errors import StoreFailed

SHOP = BernoulliBandit(["red", "blue"])


def test_a_call_waits_for_a_restarting_server(url: str, server: Postgres) -> None:
    with open_agent(url, "shop", SHOP) as agent:
        first = agent.act()
        server.stop()
        starter = threading.Timer(1.0, server.start)
        starter.start()
        second = agent.act()
        starter.join()
        assert agent.observe(first, 1)
        assert [e.seq for e in agent.log()] == [1, 2, 3, 4]
        assert second.id == "3"


def test_a_lost_server_is_an_error_and_the_agent_continues_when_it_returns(
    url: str, server: Postgres
) -> None:
    store = PostgresStore(url, patience=0.3)
    with open_agent(store, "shop", SHOP) as agent:
        agent.act(key="one")
        server.crash()
        with pytest.raises(StoreFailed, match="retry with the same key"):
            agent.act(key="two")
        with pytest.raises(StoreFailed):
            agent.posterior()
        server.start()
        assert agent.act(key="two").id == "3"
        assert agent.head == 3
    store.close()
