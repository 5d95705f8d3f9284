"""What the agents of a server need is compiled before the server is ready."""

import logging
import threading
import time
from pathlib import Path

import pytest
from tests.limits import TIMEOUT
from tests.serve.raw import ask

from bayescontrol import BernoulliBandit, GaussianBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.models import KINDS
from bayescontrol.serve import agents
from bayescontrol.serve.requested_models import warm_up_kind
from bayescontrol.serve.server import Server


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_every_kind_acts_and_learns(kind: str) -> None:
    warm_up_kind(kind)  # which would raise


def test_a_server_is_ready_when_the_kinds_of_its_agents_are_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    for name, problem in (("a", BernoulliBandit(2)), ("b", GaussianBandit(2))):
        with open_agent(store, name, problem):
            pass
    entered, go_on, compiled = threading.Event(), threading.Event(), list[str]()

    def wait(kind: str) -> None:
        compiled.append(kind)
        entered.set()
        assert go_on.wait(TIMEOUT)
        warm_up_kind(kind)

    monkeypatch.setattr(agents, "warm_up_kind", wait)
    with caplog.at_level(logging.INFO), Server(store, port=0, warm_up=True) as server:
        assert entered.wait(TIMEOUT)
        assert ask(server.url, "GET", "/v1/health/ready").kind == "not-ready"
        assert ask(server.url, "POST", "/v1/agents/a/act", {}).status == 200
        go_on.set()
        deadline = time.monotonic() + TIMEOUT
        while ask(server.url, "GET", "/v1/health/ready").status != 200:
            assert time.monotonic() < deadline
    assert compiled == ["bernoulli-bandit", "gaussian-bandit"]
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("warmed up")]
    assert len(lines) == 1
    assert lines[0].startswith("warmed up bernoulli-bandit, gaussian-bandit in ")
    with Server(store, port=0) as server:
        while ask(server.url, "GET", "/v1/health/ready").status != 200:
            assert time.monotonic() < deadline
    assert len(compiled) == 2
