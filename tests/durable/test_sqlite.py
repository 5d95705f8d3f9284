"""The SQLite store: the conformance tests, valid locations of a file, and its one writer."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.conformance import ROWS, Reopen, StoreConformance, decided

from bayescontrol.durable import open_agent, open_store
from bayescontrol.durable.stores import sqlite_file
from bayescontrol.durable.stores.sqlite import SqliteStore
from bayescontrol.errors import NetworkFileSystem, StoreBusy, StoreFailed, UnknownStore


class TestSqlite(StoreConformance):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        return lambda: SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}")


# -- locations ------------------------------------------------------------------------------------

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
box:/export /home/ann/box nfs4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
ann@host: /home/ann/box/local fuse.sshfs rw 0 0
/dev/sdb1 /home/ann/box/disk xfs rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/shop.db", "ext4"),
        ("/home/ann/box/shop.db", "nfs4"),
        ("/home/ann/boxes/shop.db", "ext4"),
        ("/home/ann/box/disk/shop.db", "xfs"),
        ("/home/ann/box/local/shop.db", "fuse.sshfs"),
        ("/mnt/with space/shop.db", "cifs"),
        ("/tmp/shop.db", "tmpfs"),
    ],
)
def test_the_file_system_is_that_of_the_longest_mount_point(path: str, kind: str) -> None:
    assert sqlite_file._file_system(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/sda1 / ext4 rw 0 0\nbox:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(sqlite_file.require_local, "__defaults__", (table,))
    with pytest.raises(NetworkFileSystem, match=r"\(nfs4\).*local disk, or use postgresql"):
        SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}")
    assert not (tmp_path / "shop.db").exists()


def test_invalid_locations_of_a_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="no folder"):
        SqliteStore(f"sqlite:///{tmp_path / 'missing' / 'shop.db'}")
    with pytest.raises(StoreFailed, match="not a file"):
        SqliteStore(f"sqlite:///{tmp_path}")
    wrong: list[Any] = ["", "shop.db", "sqlite:shop.db", "sqlite://", "sqlite:///", "http://x", 3]
    for url in [*wrong, None, Path("shop.db"), "sqlite:///shop.db?mode=ro"]:
        with pytest.raises(UnknownStore, match="url="):
            open_store(url)
        with pytest.raises(UnknownStore):
            open_agent(url, "shop")


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    open_store(f"sqlite:///{tmp_path}/there.db").close()
    assert sorted(os.listdir(tmp_path)) == ["here.db", "there.db"]
    (tmp_path / "empty.db").touch()
    for url, words in (
        ("gone.db", f"in {tmp_path}/gone.db, which does not exist: .*four slashes"),
        (f"{tmp_path}/empty.db", f"in {tmp_path}/empty.db, which is empty .*: check the path$"),
    ):
        with pytest.raises(UnknownStore, match=words):
            open_store(f"sqlite:///{url}", create=False)


# -- one process writes a file, by one connection: all others are refused -------------------------


def test_a_closed_store_is_one_file(path: Path) -> None:
    assert os.listdir(path.parent) == ["shop.db"]


HOLDER = """
import sys
from bayescontrol.durable.stores.sqlite import SqliteStore
store = SqliteStore("sqlite:///" + sys.argv[1])
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def test_a_second_process_is_refused_until_the_first_is_gone(path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy, match=f"written by process {holder.pid} on .*postgresql"):
            SqliteStore(f"sqlite:///{path}")
        holder.kill()  # its lock is released with it
        holder.wait()
    store = SqliteStore(f"sqlite:///{path}")
    assert list(store.log("checkout").read()) == ROWS
    store.close()


def test_a_second_process_is_refused_even_if_sqlite_has_lost_its_lock(path: Path) -> None:
    """POSIX locks are released when the process closes *any* handle of the file; ours is not."""
    store = SqliteStore(f"sqlite:///{path}")
    with path.open("rb"):  # a backup, say
        pass
    command = [sys.executable, "-c", HOLDER, str(path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False, input="")
    assert "StoreBusy" in second.stderr
    store.close()


def test_another_program_that_writes_is_detected(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreBusy, match="another program"):
        SqliteStore(f"sqlite:///{path}")
    other.execute("ROLLBACK")
    other.close()
    SqliteStore(f"sqlite:///{path}").close()


def test_there_is_never_a_second_connection_that_could_checkpoint(path: Path) -> None:
    """A corruption bug of old SQLite releases needs two connections; ours is exclusive."""
    store = SqliteStore(f"sqlite:///{path}")
    store.log("checkout").append([decided(7)])
    assert not Path(f"{path}-shm").exists()  # no shared memory: nobody else can join
    other = apsw.Connection(str(path))
    with pytest.raises(apsw.BusyError):
        other.execute("SELECT * FROM events").fetchall()
    other.close()
    other = apsw.Connection(str(path))
    with pytest.raises(apsw.BusyError):
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.close()
    store.close()
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_a_file_is_not_opened_with_two_durability_settings(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/shop.db")
    with pytest.raises(StoreBusy, match="durable=True"):
        open_store(f"sqlite:///{tmp_path}/shop.db", durable=False)
    store.close()
