"""Stopped by SIGTERM, a server finishes what is under way and closes its store."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.serve.raw import Raw, ask

from bayescontrol import BernoulliBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.durable.store import open_store
from bayescontrol.errors import StoreBusy
from bayescontrol.serve import Client
from bayescontrol.serve.server import Server


def command(*arguments: str) -> "subprocess.Popen[str]":
    code = "from bayescontrol.cli.serve import serve; serve()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    process = command(store, "--port", "0")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    try:
        with Client(url) as client:
            shop = client.create("shop", BernoulliBandit(2), seed=1)
            for _ in range(5):
                shop.observe(shop.act(), 1)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert url in err
    assert "Traceback" not in out + err
    log = open_store(store).log("shop")
    assert [snapshot.seq for snapshot in log.snapshots()] == [11]  # taken when it was closed
    log.close()


def test_a_model_of_ones_own_and_a_token_of_the_environment_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, token = tmp_path / "shop.py", "a-token-of-the-environment"
    file.write_text(
        "from bayescontrol import BernoulliBandit\n"
        "from bayescontrol.durable import named_model\n"
        "mine = named_model('mine', version=1, build=lambda: BernoulliBandit(2).agent())\n"
    )
    monkeypatch.setenv("BAYESCONTROL_TOKEN", token)
    process = command("sqlite:///:memory:", "--port", "0", "--model", f"{file}:mine")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    try:
        assert ask(url, "GET", "/v1/agents").status == 401
        with Client(url, token) as client:
            assert client.create("shop", "mine").act().action in (0, 1)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert token not in out + err


class Blocked:
    """An agent that acts when it is let."""

    entered, let = threading.Event(), threading.Event()

    def __init__(self) -> None:
        self.rule = BernoulliBandit(2).agent()

    def act(self, rng: Any) -> Any:
        self.entered.set()
        assert self.let.wait(20.0)
        return self.rule.act(rng)

    def observe(self, a: Any, o: Any) -> None:
        self.rule.observe(a, o)

    def copy(self) -> "Blocked":
        twin = Blocked()
        twin.rule = self.rule.copy()
        return twin

    def save(self) -> Any:
        return self.rule.save()

    def load(self, arrays: Any) -> None:
        self.rule.load(arrays)


def test_what_is_under_way_is_finished_and_nothing_new_is_accepted(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    model = named_model("blocked", version=1, build=Blocked)
    Blocked.let.set()
    answers: list[Raw] = []
    with Server(store, port=0, models={"blocked": model}) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "blocked"})
        Blocked.let.clear()
        Blocked.entered.clear()
        visit = threading.Thread(
            target=lambda: answers.append(ask(server.url, "POST", "/v1/agents/shop/act", {}))
        )
        visit.start()
        assert Blocked.entered.wait(20.0)
        server.stop()
        parts, refused = urlsplit(server.url), False
        for _ in range(100):
            try:
                ask(server.url, "GET", "/v1/health/live")
            except OSError:
                refused = True
                break
            time.sleep(0.05)
        assert refused, parts
        assert not answers
        Blocked.let.set()
        visit.join()
    assert answers[0].status == 200
    with open_agent(store, "shop", model) as agent:
        assert agent.head == 2


def test_pages_that_listen_do_not_keep_a_server_from_stopping() -> None:
    begun = time.monotonic()
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        lines = client.lines("/events")
        assert next(lines) == b"event: agents"
        server.stop()
        list(lines)  # to the end of the stream
    assert time.monotonic() - begun < 8.0


def test_a_store_that_is_in_use_is_told_before_anything_is_served(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with Server(store, port=0):
        process = command(store, "--port", "0")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "shop.db" in err
    assert "Traceback" not in err
    assert issubclass(StoreBusy, OSError)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop.db"], "write sqlite:///"),
        (["sqlite:///:memory:", "--host", "0.0.0.0"], "can be reached by others"),
        (["sqlite:///:memory:", "--token-file", "/no/such/file"], "cannot be read"),
        (["sqlite:///:memory:", "--concurrency", "0"], "must be positive"),
        (["sqlite:///:memory:", "--model", "shop"], "write FILE.py:NAME"),
        (["sqlite:///no/such/folder/shop.db"], "folder"),
    ],
)
def test_a_wrong_call_is_explained(arguments: list[str], words: str) -> None:
    from click.testing import CliRunner

    from bayescontrol.cli.serve import serve

    answer = CliRunner().invoke(
        serve, [*arguments, "--port", "0"], env={"BAYESCONTROL_TOKEN": None}
    )
    assert answer.exit_code == 2
    assert words in answer.output


def test_no_token_can_be_given_on_the_command_line() -> None:
    from bayescontrol.cli.serve import serve

    assert [p.name for p in serve.params if p.name and "token" in p.name] == ["token_file"]
