"""`bayescontrol verify` names every damaged event, changes nothing and disturbs no writer."""

import json
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from tests.durable.test_sqlite_flips import bits, build, flip

from bayescontrol import BernoulliBandit
from bayescontrol.cli.main import main
from bayescontrol.durable import open_agent, open_store
from bayescontrol.durable.events import read_events
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.errors import DamagedLog

SHOP = BernoulliBandit(["red", "blue"])


def verify(url: str, *, code: int) -> dict[str, Any]:
    """Run the command, check its exit code, and return its JSON."""
    done = CliRunner().invoke(main, ["verify", url, "--json"])
    assert done.exit_code == code, (done.output, done.exception)
    content: dict[str, Any] = json.loads(done.stdout)
    assert content["intact"] == (code == 0)
    return content


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two agents with 11 and 3 events, closed."""
    for name, rounds in (("search", 5), ("shop", 1)):
        with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", name, SHOP, seed=1) as agent:
            for _ in range(rounds):
                agent.observe(agent.act(), 1)
    return tmp_path / "shop.db"


def test_an_intact_store_has_no_damage(path: Path) -> None:
    content = verify(f"sqlite:///{path}", code=0)
    assert content == {"intact": True, "agents": {"search": 11, "shop": 3}, "damage": []}
    done = CliRunner().invoke(main, ["verify", f"sqlite:///{path}"])
    assert done.stdout == "2 agents, 14 events: intact\n"
    assert "Reading events" in done.stderr


@pytest.mark.parametrize(
    ("sql", "events", "words"),
    [
        ("UPDATE events SET payload = CAST(payload || ' ' AS BLOB) WHERE log = 1 AND seq IN (4, 9)",
         [4, 9], "log 'search': event 4 is damaged, its checksum is wrong"),
        ("UPDATE events SET kind = CAST(x'ff64' AS TEXT) WHERE log = 1 AND seq = 5", [5],
         "log 'search': event 5 is damaged"),
        ("DELETE FROM events WHERE log = 1 AND seq IN (1, 7)", [1, 7],
         "log 'search': event 1 is missing"),
    ],
)  # fmt: skip
def test_every_damaged_event_is_named_and_nothing_is_changed(
    path: Path, sql: str, events: list[int], words: str
) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    content = path.read_bytes()
    damage = verify(f"sqlite:///{path}", code=1)["damage"]
    assert [(d["agent"], d["event"]) for d in damage] == [("search", seq) for seq in events]
    assert words in damage[0]["problem"]
    done = CliRunner().invoke(main, ["verify", f"sqlite:///{path}"])
    assert words in done.stdout
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == ["shop.db"]


def test_a_store_that_cannot_be_opened_is_reported_by_its_own_path(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8192)
    (damage,) = verify(f"sqlite:///{path}", code=1)["damage"]
    assert damage["agent"] is damage["event"] is None
    assert damage["problem"].startswith(f"{path} is not a store, or is damaged")


@pytest.mark.parametrize("url", ["sqlite:///nothing.db", "postgre://ann:secret@host/shop"])
def test_what_cannot_be_read_is_a_usage_error(url: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = CliRunner().invoke(main, ["verify", url])
    assert done.exit_code == 2
    assert "secret" not in done.output
    assert not list(tmp_path.iterdir())


def test_flips_that_surface_only_when_the_event_is_read_are_found(tmp_path: Path) -> None:
    intact, copy = tmp_path / "intact.db", tmp_path / "copy.db"
    build(intact)
    found = []
    for bit in bits(intact, ["events"], 30, random.Random(25)):
        for file in tmp_path.glob("copy.db*"):
            file.unlink()
        shutil.copy(intact, copy)
        flip(copy, bit)
        try:
            store = open_store(f"sqlite:///{copy}", durable=False)
        except DamagedLog:
            verify(f"sqlite:///{copy}", code=1)
            continue
        try:
            for name in store.names():
                list(read_events(store.log(name)))
            found.append(False)
        except DamagedLog:
            found.append(True)
        store.close()
        verify(f"sqlite:///{copy}", code=1 if found[-1] else 0)
    assert sum(found) > 10


def test_a_running_writer_is_not_disturbed(path: Path) -> None:
    stop, failures = threading.Event(), list[Exception]()
    store = SqliteStore(str(path), durable=False)
    store._require_open().all("PRAGMA wal_autocheckpoint = 40")  # restart the log often
    agent = open_agent(store, "shop", SHOP)

    def work() -> None:
        try:
            while not stop.is_set():
                agent.observe(agent.act(), 1)
                stop.wait(0.001)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        heads = []
        for _ in range(8):
            before = agent.head
            heads.append(verify(f"sqlite:///{path}", code=0)["agents"]["shop"])
            assert before - 1 <= heads[-1] <= agent.head
    finally:
        stop.set()
        thread.join()
    assert not failures
    assert heads == sorted(heads)
    assert heads[-1] > heads[0] + 40
    head = agent.head
    agent.close()
    store.close()
    assert verify(f"sqlite:///{path}", code=0)["agents"]["shop"] == head
