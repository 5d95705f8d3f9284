"""A full or failing disk: acknowledged operations survive, and unknown outcomes are reported."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from tests.durable.conformance import decided
from tests.durable.small_disk import small_disk

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.stores.sqlite import SqliteStore
from bayescontrol.errors import DiskFull, StoreFailed

SHOP = BernoulliBandit(["red", "blue"])


def test_a_full_disk_is_reported_writes_nothing_and_is_recovered_from(tmp_path: Path) -> None:
    with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", SHOP) as agent:
        d = agent.act()
        file = agent._store._require_open()  # type: ignore[attr-defined]
        pages = file.all("PRAGMA page_count")[0][0]
        file.all(f"PRAGMA max_page_count = {pages}")
        key = 0
        with pytest.raises(DiskFull, match="the disk is full; nothing was written"):  # noqa: PT012
            for key in range(10_000):
                agent.act(key=f"{key:0200d}")
        head, state = agent.head, agent.state()
        for _ in range(2):
            with pytest.raises(DiskFull):
                agent.act(key=f"{key:0200d}")
        assert agent.head == head == len(list(agent.log()))
        file.all("PRAGMA max_page_count = 1000000")
        assert agent.observe(d, 1)
        assert agent.act(key=f"{key:0200d}").id == str(head + 2)
        assert state.keys() == agent.state().keys()


SMALL_DISK = """
import os, sys
from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.errors import DiskFull
place = sys.argv[1]
agent = open_agent(f"sqlite:///{place}/shop.db", "shop", BernoulliBandit(2))
filler = open(f"{place}/filler", "wb", buffering=0)
try:
    while True:
        filler.write(b"x" * 4096)
except OSError:
    pass
count = 0
try:
    for count in range(100_000):
        agent.act()
except DiskFull as error:
    print(type(error).__name__)
os.unlink(f"{place}/filler")
filler.close()
head = agent.head
assert head == count + 1, (head, count)
agent.act()
agent.close()
again = open_agent(f"sqlite:///{place}/shop.db", "shop")
assert again.head == head + 1
print("whole")
"""


def test_a_really_full_disk_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path) as place:
        command = [sys.executable, "-c", SMALL_DISK, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["DiskFull", "whole"], done.stderr


def test_a_failed_flush_requires_the_store_to_be_reopened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content of the disk is unknown then; only opening the store again finds out."""

    class Broken(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("broken", "")

        def xOpen(self, name: object, flags: list[int]) -> "BrokenFile":
            return BrokenFile(name, flags)

    class BrokenFile(apsw.VFSFile):
        failing = False

        def __init__(self, name: object, flags: list[int]) -> None:
            super().__init__("", name, flags)  # type: ignore[arg-type]

        def xSync(self, flags: int) -> None:
            if BrokenFile.failing:
                raise apsw.IOError
            super().xSync(flags)

    vfs = Broken()
    store = SqliteStore(f"sqlite:///{path}", vfs="broken")
    log = store.log("checkout")
    log.append([decided(7)])
    monkeypatch.setattr(BrokenFile, "failing", True)
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)  # apsw reports errors of a VFS there
    monkeypatch.setattr(sys, "unraisablehook", lambda *_: None)
    with pytest.raises(StoreFailed, match="reopen the store"):
        log.append([decided(8)])
    monkeypatch.setattr(BrokenFile, "failing", False)
    with pytest.raises(StoreFailed, match="failed before"):
        log.append([decided(8)])
    store.close()
    del vfs
    again = SqliteStore(f"sqlite:///{path}")
    assert again.log("checkout").head() in (7, 8)
    again.close()
