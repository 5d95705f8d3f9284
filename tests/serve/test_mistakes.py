"""Common mistakes of new users get helpful errors that reveal no secrets."""

from pathlib import Path

import pytest

from bayescontrol import BernoulliBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.errors import BayesControlError, ModelMismatch
from bayescontrol.serve import Client
from bayescontrol.serve.access import Tokens
from bayescontrol.serve.http_errors import Unavailable
from bayescontrol.serve.server import Server

SECRET = "a-secret-that-is-long-enough"
NOBODY = "http://127.0.0.1:9"


class Clock:
    """A clock that advances only in `sleep`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_server_that_is_down_is_unavailable_after_five_seconds_and_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, clock = Client(NOBODY), Clock()
    monkeypatch.setattr("bayescontrol.serve.client.time", clock)
    assert not client.ready()
    with pytest.raises(Unavailable, match="is the server running") as caught:
        client.agent("shop").act()
    assert isinstance(caught.value, BayesControlError)
    assert isinstance(caught.value, ConnectionError)
    assert 3.0 < clock.now <= 5.0  # the last pause, of up to two seconds, is not started
    with pytest.raises(Unavailable):
        next(client.agent("shop").log())


def test_an_agent_whose_model_is_missing_is_named_with_a_hint(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    mine = named_model("mine", version=1, build=BernoulliBandit(2).agent)
    open_agent(store, "shop", mine).close()
    for tokens, named in ((None, ["shop"]), (Tokens([SECRET]), [])):
        with Server(store, port=0, tokens=tokens) as server, Client(server.url, SECRET) as client:
            shown = client.call("GET", "/v1/health/ready")
            assert (shown["failed"], shown["unopened"]) == (1, named)
            with pytest.raises(
                ModelMismatch, match=r"'shop' has the model 'mine'.*--model FILE.py"
            ):
                client.agent("shop").act()
