"""`bayescontrol verify` names every damaged event, repairs nothing and disturbs no writer."""

import json
import random
import shutil
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("sql", "events", "words"),
    [
        ("UPDATE events SET payload = CAST(payload || ' ' AS BLOB) WHERE log = 1 AND seq IN (4, 9)",
         [4, 9], "log 'search': event 4 is damaged, its checksum is wrong"),
        ("UPDATE events SET kind = CAST(x'ff64' AS TEXT) WHERE log = 1 AND seq = 5", [5],
         "event 5 of agent 'search': "),
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


@pytest.mark.parametrize(
    "url", ["sqlite:///nothing.db", "sqlite:///empty", "postgre://ann:secret@host/shop"]
)
def test_what_cannot_be_read_is_a_usage_error(url: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = CliRunner().invoke(main, ["verify", url])
    assert done.exit_code == 2
    assert "secret" not in done.output
    assert [(p.name, p.stat().st_size) for p in tmp_path.iterdir()] == [("empty", 0)]


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


def test_a_file_in_use_is_not_read_and_its_writer_goes_on(path: Path) -> None:
    with open_agent(f"sqlite:///{path}", "shop", SHOP) as agent:
        command = [sys.executable, "-m", "bayescontrol.cli", "verify", f"sqlite:///{path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert "is being written by" in done.stderr
        agent.observe(agent.act(), 1)
    assert verify(f"sqlite:///{path}", code=0)["agents"]["shop"] == 5
