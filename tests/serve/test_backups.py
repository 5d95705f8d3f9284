"""Backups of a served store, regular and on request."""

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.limits import TIMEOUT
from tests.serve.process import served
from tests.serve.raw import ask, memory

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent, open_store
from bayescontrol.durable.stores.log import Row
from bayescontrol.errors import DiskFull, StoreFailed
from bayescontrol.serve import Client
from bayescontrol.serve.backups import BackupPlan, Backups
from bayescontrol.serve.monitor import Metrics
from bayescontrol.serve.server import Server

SHOP = BernoulliBandit(["red", "blue"])
NAME = r"shop-\d{8}T\d{6}Z\.db"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def metric(url: str, name: str) -> float:
    text = ask(url, "GET", "/v1/metrics").body.decode()
    (found,) = re.findall(rf"^bayescontrol_{name} (\S+)$", text, re.MULTILINE)
    return float(found)


def test_a_backup_on_request_holds_every_acknowledged_event(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    store = f"sqlite:///{tmp_path}/shop.db"
    with Server(store, port=0, backups=BackupPlan(folder)) as server, Client(server.url) as client:
        shop = client.create("checkout", SHOP, seed=1)
        for i in range(5):
            shop.observe(shop.act(), i % 2)
        assert metric(server.url, "seconds_since_backup") == float("inf")
        answer = ask(server.url, "POST", "/v1/backups")
        assert answer.status == 201
        made = answer.json
        assert re.fullmatch(NAME, made["name"])
        assert made["bytes"] == (folder / made["name"]).stat().st_size
        assert abs(made["time"] - time.time()) < TIMEOUT
        assert ask(server.url, "GET", "/v1/backups").json == {"backups": [made]}
        assert 0.0 <= metric(server.url, "seconds_since_backup") < TIMEOUT
        posterior = shop.posterior()
        shop.observe(shop.act(), 1)  # later than the backup
    with open_agent(f"sqlite:///{folder}/{made['name']}", "checkout") as agent:
        assert agent.head == 11
        assert agent.posterior() == posterior


def test_decisions_go_on_during_a_backup_which_is_consistent(tmp_path: Path) -> None:
    """The file has 20 MB, so that the backup takes many steps."""
    with open_agent(f"sqlite:///{tmp_path}/shop.db", "shop", SHOP, seed=1) as agent:
        for _ in range(200):
            agent.observe(agent.act(), 1)
    store: Any = open_store(f"sqlite:///{tmp_path}/shop.db")
    filler = store.log("filler")
    for n in range(1, 201):
        filler.append([Row(n, "created", None, None, None, bytes(100_000), 0)])
    during, stop = [0], threading.Event()
    with open_agent(store, "shop") as agent:

        def decide() -> None:
            while not stop.is_set():
                agent.observe(agent.act(), 1)
                during[0] += 1

        decider = threading.Thread(target=decide)
        decider.start()
        wait_until(lambda: during[0] > 0)
        before = during[0]
        store.backup(tmp_path / "copy.db")
        after = during[0]
        stop.set()
        decider.join()
    store.close()
    assert after > before + 1
    with open_agent(f"sqlite:///{tmp_path}/copy.db", "shop") as copy:
        decisions = 200 + before
        assert 2 * decisions <= copy.head - 1 <= 2 * (200 + after + 1)
        assert len(list(copy.log())) == copy.head


def test_old_backups_of_this_store_are_deleted_and_no_other_file(tmp_path: Path) -> None:
    others = ["shop.db", "shop-20260101T000000Z.db.txt", "shop-2-20260101T000000Z.db", "notes"]
    others += ["shop-20269999T000000Z.db"]  # no time
    for name in others:
        (tmp_path / name).touch()
    for day in (1, 2, 3):
        (tmp_path / f"shop-2026010{day}T000000Z.db").touch()
    backups = Backups(
        BackupPlan(tmp_path, keep=2), lambda path: path.write_bytes(b"all"),
        "postgresql://db:5432/shop?options=x", Metrics(),
    )  # fmt: skip
    made = [backups._make() for _ in range(2)]  # the second waits for the next second
    assert made == backups.all()
    assert {path.name for path in tmp_path.iterdir()} == {*others, *(one.name for one in made)}
    backups.close()


def test_a_failed_backup_is_reported_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fails = [True]
    store: Any = open_store("sqlite:///:memory:")

    class Failing:
        """The store, whose backups fail as on a full disk."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def backup(self, path: Path) -> None:
            if fails[0]:
                raise DiskFull(f"{path}: no space left")
            store.backup(path)

    plan = BackupPlan(tmp_path, every=0.2)
    store_that_fails: Any = Failing()
    with Server(store_that_fails, port=0, backups=plan) as server:
        wait_until(lambda: sum("backup to" in r.message for r in caplog.records) >= 2)
        assert metric(server.url, "backup_failed") == 1.0
        assert ask(server.url, "POST", "/v1/backups").kind == "disk-full"
        assert ask(server.url, "GET", "/v1/health/ready").status == 200
        fails[0] = False
        wait_until(lambda: len(list(tmp_path.iterdir())) > 0)
        wait_until(lambda: metric(server.url, "backup_failed") == 0.0)


def test_backups_are_made_regularly_and_a_restart_does_not_hasten_them(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    line = [f"sqlite:///{tmp_path}/shop.db", "--port", "0", "--backup-folder", str(folder)]
    line += ["--backup-every", "3600", "--backup-keep", "3"]
    for _ in range(2):
        with served(*line) as (process, url):
            wait_until(lambda: len(list(folder.iterdir())) == 1)
            while ask(url, "GET", "/v1/health/ready").status != 200:
                time.sleep(0.02)
            time.sleep(1.5)  # more than a tick
            process.terminate()
            assert process.wait(TIMEOUT) == 0
    (backup,) = folder.iterdir()
    assert re.fullmatch(NAME, backup.name)


def test_a_server_stops_during_a_backup(tmp_path: Path) -> None:
    entered = threading.Event()
    store: Any = open_store(f"sqlite:///{tmp_path}/shop.db")

    class Slow:
        """The store, whose backups wait until it is closed."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def backup(self, path: Path) -> None:
            entered.set()
            wait_until(lambda: store._file is None)
            store.backup(path)

    folder = tmp_path / "backups"
    folder.mkdir()
    slow: Any = Slow()
    with Server(slow, port=0, backups=BackupPlan(folder, every=1.0)):
        assert entered.wait(TIMEOUT)
    assert list(folder.iterdir()) == []


def test_without_a_folder_there_are_no_backups(tmp_path: Path) -> None:
    with memory() as server:
        for method in ("GET", "POST"):
            answer = ask(server.url, method, "/v1/backups")
            assert (answer.status, answer.kind) == (409, "backups-off")
    with pytest.raises(StoreFailed, match="create it first"):
        memory(backups=BackupPlan(tmp_path / "missing"))
