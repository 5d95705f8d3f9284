"""A server stopped by SIGTERM finishes running requests and closes its store."""

import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.limits import TIMEOUT
from tests.serve.paused import Pause
from tests.serve.process import command, served
from tests.serve.raw import ask, connected, memory, rest

from bayescontrol import BernoulliBandit
from bayescontrol.cli.serve import serve, verify
from bayescontrol.durable import open_agent
from bayescontrol.durable.stores.log import open_store
from bayescontrol.durable.stores.postgres import PostgresStore
from bayescontrol.serve import Client, Limits
from bayescontrol.serve.server import Server


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with served(store, "--port", "0") as (process, url):
        with Client(url) as client:
            shop = client.create("shop", BernoulliBandit(2), seed=1)
            for _ in range(5):
                shop.observe(shop.act(), 1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    assert url in err
    assert "Traceback" not in out + err
    log = open_store(store).log("shop")
    assert [snapshot.seq for snapshot in log.snapshots()] == [11]  # taken when it was closed
    log.close()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_server_started_with_ctrl_c_ignored_keeps_ignoring_it(ignored: bool) -> None:
    """Shell scripts start background jobs this way; SIGTERM still stops the server."""
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)
    with served("sqlite:///:memory:", "--port", "0") as (process, url):
        signal.signal(signal.SIGINT, before)
        with Client(url, timeout=TIMEOUT) as client:
            client.call("GET", "/v1/health/ready")
        process.send_signal(signal.SIGINT)
        if ignored:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2.0)
            assert ask(url, "GET", "/v1/health/live").status == 200
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == (0 if ignored else 1)
    assert "Traceback" not in err


def test_a_user_model_and_a_token_of_the_environment_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, token = tmp_path / "shop.py", "a-token-of-the-environment"
    file.write_text(
        "from bayescontrol import BernoulliBandit\n"
        "from bayescontrol.durable import named_model\n"
        "mine = named_model('mine', version=1, build=lambda: BernoulliBandit(2).agent())\n"
    )
    monkeypatch.setenv("BAYESCONTROL_TOKEN", token)
    line = ("sqlite:///:memory:", "--port", "0", "--model", f"{file}:mine")
    with served(*line) as (process, url):
        assert ask(url, "GET", "/v1/agents").status == 401
        with Client(url, token) as client:
            assert client.create("shop", "mine").act().action in (0, 1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    assert token not in out + err


def test_a_shutdown_finishes_running_requests_and_accepts_no_new_ones(tmp_path: Path) -> None:
    store, pause = f"sqlite:///{tmp_path}/shop.db", Pause()
    limits = Limits(grace=TIMEOUT, deadline=TIMEOUT)
    with (
        ThreadPoolExecutor(1) as pool,
        Server(store, port=0, models=pause.models, limits=limits) as server,
    ):
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"})
        with pause.hold():
            act = pool.submit(ask, server.url, "POST", "/v1/agents/shop/act", {})
            assert pause.entered.wait(TIMEOUT)
            server.stop()
            with suppress(OSError):
                while True:  # until the port is closed
                    ask(server.url, "GET", "/v1/health/live")
            assert not act.done()
        assert act.result().status == 200
    with open_agent(store, "shop", pause.models["paused"]) as agent:
        assert agent.head == 2


def test_a_stopped_server_does_not_look_for_garbage_at_its_exit() -> None:
    """That would take longer than the rest of stopping, because of the libraries."""
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(len(gc.get_objects()), gc.get_freeze_count()))\n"
        "from bayescontrol.cli.serve import serve; serve()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "sqlite:///:memory:", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=TIMEOUT)
    collectable, frozen = map(int, out.split())
    assert frozen > 10_000 > collectable


@pytest.mark.parametrize("pause", [0.0, 0.2])
def test_a_keep_alive_connection_ends_with_an_answer_that_says_so(pause: float) -> None:
    """A client that sends a request every `pause` seconds never meets a closed connection."""
    request = b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with memory() as server, connected(server.url) as connection, connected(server.url) as idle:
        idle.sendall(request)
        assert idle.recv(4096).startswith(b"HTTP/1.1 200")
        threading.Timer(0.3, server.stop).start()
        answer, end = b"", time.monotonic() + 60.0
        while b"connection: close" not in answer:
            assert time.monotonic() < end
            connection.sendall(request)
            answer = connection.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(pause)
        assert rest(connection) == b""
        assert rest(idle) == b""  # not reset


def test_open_event_streams_do_not_keep_a_server_from_stopping() -> None:
    limits = Limits(grace=2 * TIMEOUT)  # the time to wait if they did
    with memory(limits=limits) as server, Client(server.url) as client:
        lines = client.lines("/events")
        assert next(lines) == b"event: agents"
        server.stop()
        reader = threading.Thread(target=list, args=(lines,))  # to the end of the stream
        reader.start()
        reader.join(TIMEOUT)
        assert not reader.is_alive()


def test_a_store_in_use_is_reported_before_anything_is_served(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with Server(store, port=0):
        process = command(store, "--port", "0")
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 2
    assert "shop.db is being written by" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop.db"], "write sqlite:///"),
        (["sqlite:///:memory:", "--host", "0.0.0.0"], "other machines can reach"),
        (["sqlite:///:memory:", "--token-file", "/no/such/file"], "cannot read tokens"),
        (["sqlite:///:memory:", "--concurrency", "0"], "must be positive"),
        (["sqlite:///:memory:", "--model", "shop"], "write FILE.py:NAME"),
        (["sqlite:///no/such/folder/shop.db"], "folder"),
    ],
)
def test_an_invalid_command_line_is_explained(arguments: list[str], words: str) -> None:
    answer = CliRunner().invoke(
        serve, [*arguments, "--port", "0"], env={"BAYESCONTROL_TOKEN": None}
    )
    assert answer.exit_code == 2
    assert words in answer.output


def test_no_token_can_be_given_on_the_command_line() -> None:
    assert [p.name for p in serve.params if p.name and "token" in p.name] == ["token_file"]


@pytest.mark.parametrize("command", [serve, verify])
def test_a_password_on_the_command_line_is_refused(command: Any) -> None:
    for address in (
        "postgresql://shop:secret@db/shop",
        "postgresql://shop@db/shop?password=secret",
    ):
        answer = CliRunner().invoke(command, [address])
        assert answer.exit_code == 2
        assert "--store-file" in answer.output
        assert "BAYESCONTROL_STORE" in answer.output
        assert "secret" not in answer.output


PASSWORD = "pw-nobody/may:see@all"


@pytest.mark.parametrize(
    "address",
    [
        "postgres:/shop:{}@127.0.0.1:1/shop",
        "postgre://shop:{}@127.0.0.1:1/shop",
        "sqlite://shop:{}@127.0.0.1/shop",
        "sqlite:///shop?password={}",
        "postgresql://shop:{}@127.0.0.1:1/shop",
        "postgresql://shop@127.0.0.1:1/shop?password=pw-nobody",
        "postgresql://shop:pw-nobody%40all@127.0.0.1:1/shop?connect_timeout=1",
    ],
)
@pytest.mark.parametrize("source", ["argument", "file", "variable"])
def test_the_password_of_a_store_is_never_printed(
    address: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, file = address.format(PASSWORD), tmp_path / "store"
    file.write_text(f"{address}\n")
    if source == "variable":
        monkeypatch.setenv("BAYESCONTROL_STORE", address)
    given = {"argument": [address], "file": ["--store-file", str(file)], "variable": []}[source]
    defaults = PostgresStore.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "patience", 0.0)
    answer = CliRunner().invoke(serve, [*given, "--port", "0"])
    assert answer.exit_code == 2, answer.output
    shown = answer.output + "".join(traceback.format_exception(answer.exception))
    for part in ("pw-nobody", "may:see", "see@all", "@all"):
        assert part not in shown, shown


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        (["a:"], None, "'a:'"),
        (["a:"], "b:", "'a:'"),
        ([], "b:", "'b:'"),
        (["--store-file", "FILE"], None, "'file:'"),
        (["--store-file", "FILE"], "b:", "'file:'"),
        (["a:", "--store-file", "FILE"], None, "give one of"),
        ([], None, "give one of"),
        (["--store-file", "missing"], None, "No such file"),
    ],
)
def test_the_store_is_given_once_by_an_argument_a_file_or_a_variable(
    given: list[str],
    variable: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("file:\n")
    answer = CliRunner().invoke(
        serve, [*given, "--port", "0"], env={"BAYESCONTROL_STORE": variable}
    )
    assert answer.exit_code == 2
    assert expected in answer.output
