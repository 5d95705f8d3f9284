"""Many clients of one server, which may be killed: acknowledged operations happen once."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.durable.agents import same_state
from tests.limits import TIMEOUT
from tests.serve.process import served
from tests.serve.visits import CLIENTS, SHOP, Visitors, require_exactly_once, visitors

from bayescontrol.durable import open_agent, replay
from bayescontrol.serve import Client
from bayescontrol.serve.server import Server


def test_the_checker_detects_lost_and_duplicated_operations() -> None:
    with open_agent("sqlite:///:memory:", "shop", SHOP, seed=1) as agent:
        one, two = agent.act(key="0-0"), agent.act(key="0-1")
        agent.observe(one, 1)
        result = [
            {"key": "0-0", "id": one.id, "action": one.action},
            {"key": "0-1", "id": two.id, "action": two.action},
            {"id": one.id, "o": 1},
        ]
        events = list(agent.log())
    require_exactly_once(result, events)
    with pytest.raises(KeyError):
        require_exactly_once([*result, {"id": two.id, "o": 0}], events)
    with pytest.raises(AssertionError):
        require_exactly_once(result[1:], events)
    with pytest.raises(AssertionError):
        require_exactly_once(result, [*events, events[-1]])


def test_four_client_processes_on_one_server_see_every_operation_exactly_once(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with Server(store, port=0) as server, Client(server.url) as client:
        client.create("shop", SHOP, seed=1)
        with visitors([server.url] * CLIENTS, 60, tmp_path) as running:
            acknowledged = running.history()
        over_http = list(client.agent("shop").log())
        posterior = client.agent("shop").posterior()
    assert len(acknowledged) == CLIENTS * 60 * 2
    require_exactly_once(acknowledged, over_http)
    assert replay(over_http).posterior() == posterior
    with open_agent(store, "shop", SHOP) as agent:
        assert list(agent.log()) == over_http


def killed_under_load(folder: Path, store: str, kills: int, visits: int) -> list[dict[str, Any]]:
    """Kill the server with -9 while four clients send requests, and restart it on the same port.

    Each kill waits for its share of the acknowledgements, so that all kills hit a busy server.
    """
    rng = np.random.default_rng(8)
    port, running = "0", None
    with ExitStack() as stack:
        for kill in range(kills):
            with served(store, "--port", port) as (process, url):
                port = url.rpartition(":")[2]
                if running is None:
                    with Client(url, timeout=TIMEOUT) as client:
                        client.create("shop", SHOP, seed=1)
                    running = stack.enter_context(visitors([url] * CLIENTS, visits, folder))
                share = running.total / (kills + 1)
                running.wait_for(int(share * (kill + rng.uniform(0.2, 1.0))))
                process.kill()
        assert running is not None
        return _finished(store, port, running)


def _finished(store: str, port: str, running: Visitors) -> list[dict[str, Any]]:
    with served(store, "--port", port) as (process, _):
        acknowledged = running.history()
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
    return acknowledged


@pytest.mark.parametrize(
    ("kills", "visits"), [(3, 250), pytest.param(50, 2_000, marks=pytest.mark.slow)]
)
def test_a_killed_server_loses_and_duplicates_nothing_acknowledged(
    tmp_path: Path, kills: int, visits: int
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    acknowledged = killed_under_load(tmp_path, store, kills, visits)
    assert len(acknowledged) == CLIENTS * visits * 2
    with open_agent(store, "shop", SHOP) as agent:
        events = list(agent.log())
        require_exactly_once(acknowledged, events)
        assert same_state(agent, replay(events).state)
