"""Many clients, one server, also one that is killed: what was acknowledged happened once."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, Observed, open_agent, replay
from bayescontrol.serve import Client
from bayescontrol.serve.server import Server

VISITOR = Path(__file__).with_name("visitor.py")
CLIENTS = 4
SHOP = BernoulliBandit(["red", "green", "blue"])
SERVER = """
import sys
from bayescontrol.serve.server import Server
server = Server(sys.argv[1], port=int(sys.argv[2]))
print(server.url, flush=True)
server.run()
"""


def visitors(urls: list[str], visits: int) -> list["subprocess.Popen[str]"]:
    """A process for each address."""
    return [
        subprocess.Popen(
            [sys.executable, str(VISITOR), url, "shop", str(who), str(visits)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for who, url in enumerate(urls)
    ]


def histories(processes: list["subprocess.Popen[str]"]) -> list[dict[str, Any]]:
    """What was acknowledged, by all of them; each must have come to its end."""
    lines = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        lines += [json.loads(line) for line in out.splitlines()]
    return lines


def require_exactly_once(acknowledged: list[dict[str, Any]], events: list[Any]) -> None:
    """The checker: the log holds each acknowledged thing once, and nothing else of these keys."""
    decided = {event.key: event for event in events if isinstance(event, Decided)}
    observed = {event.n: event for event in events if isinstance(event, Observed)}
    assert len(decided) + len(observed) + 1 == len(events)  # no key and no n came twice
    acts = [one for one in acknowledged if "key" in one]
    answers = [one for one in acknowledged if "o" in one]
    assert max(Counter(one["id"] for one in acts).values()) == 1
    for one in acts:
        event = decided.pop(one["key"])
        assert (str(event.seq), event.a) == (one["id"], one["action"])
    for one in answers:
        assert observed.pop(int(one["id"])).o == one["o"]
    assert not decided
    assert not observed


def test_the_checker_finds_a_lost_and_a_doubled_operation() -> None:
    with open_agent("sqlite:///:memory:", "shop", SHOP, seed=1) as agent:
        one, two = agent.act(key="0-0"), agent.act(key="0-1")
        agent.observe(one, 1)
        told = [
            {"key": "0-0", "id": one.id, "action": one.action},
            {"key": "0-1", "id": two.id, "action": two.action},
            {"id": one.id, "o": 1},
        ]
        events = list(agent.log())
    require_exactly_once(told, events)
    with pytest.raises(KeyError):
        require_exactly_once([*told, {"id": two.id, "o": 0}], events)
    with pytest.raises(AssertionError):
        require_exactly_once(told[1:], events)
    with pytest.raises(AssertionError):
        require_exactly_once(told, [*events, events[-1]])


def test_four_client_processes_on_one_server_see_every_operation_exactly_once(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with Server(store, port=0) as server, Client(server.url) as client:
        client.create("shop", SHOP, seed=1)
        acknowledged = histories(visitors([server.url] * CLIENTS, 60))
        over_http = list(client.agent("shop").log())
        posterior = client.agent("shop").posterior()
    assert len(acknowledged) == CLIENTS * 60 * 2
    require_exactly_once(acknowledged, over_http)
    assert replay(over_http).posterior() == posterior
    with open_agent(store, "shop", SHOP) as agent:
        assert list(agent.log()) == over_http


@contextmanager
def server_process(store: str, port: int) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, store, str(port)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def killed_under_load(store: str, kills: int, visits: int) -> list[dict[str, Any]]:
    """Kill -9 while four clients ask, and start it again where it was; they ask on."""
    rng = np.random.default_rng(8)
    port = at_work = 0
    running: list[subprocess.Popen[str]] = []
    for kill in range(kills + 1):
        with server_process(store, port) as (process, url):
            port = int(url.rpartition(":")[2])
            if not running:
                with Client(url, timeout=60.0) as client:
                    client.create("shop", SHOP, seed=1)
                running = visitors([url] * CLIENTS, visits)
            if kill == kills:
                acknowledged = histories(running)
                process.send_signal(signal.SIGTERM)
                process.wait(30)
                assert at_work > kills // 2  # most kills came while someone asked
                return acknowledged
            with Client(url, timeout=60.0) as client:  # let it be up before it goes down
                client.agents()
            time.sleep(rng.uniform(0.05, 0.5))
            at_work += any(visitor.poll() is None for visitor in running)
    raise AssertionError


def require_survival(tmp_path: Path, kills: int, visits: int) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    acknowledged = killed_under_load(store, kills, visits)
    assert len(acknowledged) == CLIENTS * visits * 2
    with open_agent(store, "shop", SHOP) as agent:
        events = list(agent.log())
        require_exactly_once(acknowledged, events)
        again = replay(events)
        assert all(np.array_equal(again.state[name], v) for name, v in agent.state().items())


def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    require_survival(tmp_path, kills=3, visits=250)


@pytest.mark.slow
def test_nothing_is_lost_in_fifty_kills(tmp_path: Path) -> None:
    require_survival(tmp_path, kills=50, visits=4_000)
