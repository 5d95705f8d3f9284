"""What can be wrong with a file, said by type, and nothing in it changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from tests.durable.conformance import ROWS, decided

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent, open_store, places
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.durable.sqlite_file import APPLICATION, SqliteFile
from bayescontrol.errors import (
    DamagedLog,
    DiskFull,
    NetworkFileSystem,
    NewerFormat,
    StoreBusy,
    StoreFailed,
    UnknownStore,
)

SHOP = BernoulliBandit(["red", "blue"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a log of six rows, closed."""
    store = SqliteStore(str(tmp_path / "shop.db"))
    store.log("checkout").append(ROWS)
    store.close()
    return tmp_path / "shop.db"


def test_a_closed_store_is_one_file(path: Path) -> None:
    assert os.listdir(path.parent) == ["shop.db"]


HOLDER = """
import sys
from bayescontrol.durable.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
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
            SqliteStore(str(path))
        holder.kill()  # its lock dies with it
        holder.wait()
    store = SqliteStore(str(path))
    assert list(store.log("checkout").read()) == ROWS
    store.close()


def test_a_second_process_is_refused_even_if_sqlite_has_lost_its_lock(path: Path) -> None:
    """POSIX locks go when *any* handle of the file is closed in the process; ours do not."""
    store = SqliteStore(str(path))
    with path.open("rb"):  # a backup, say
        pass
    command = [sys.executable, "-c", HOLDER, str(path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False, input="")
    assert "StoreBusy" in second.stderr
    store.close()


def test_another_program_that_writes_is_noticed(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreBusy, match="another program"):
        SqliteStore(str(path))
    other.execute("ROLLBACK")
    other.close()
    SqliteStore(str(path)).close()


def test_there_is_never_a_second_connection_that_could_checkpoint(path: Path) -> None:
    """The corruption of old SQLites needs two; ours is exclusive, and its SQLite is not old."""
    store = SqliteStore(str(path))
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


def test_many_threads_and_checkpoints_leave_a_sound_file(path: Path) -> None:
    store = SqliteStore(str(path))
    log = store.log("checkout")
    store._require_open().file.all("PRAGMA wal_autocheckpoint = 2")
    for seq in range(7, 200):
        log.append([decided(seq, payload=b"x" * 3000)])
    store.close()
    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    db.close()


@pytest.mark.parametrize(
    "content",
    [b"not a database, but long enough to be looked at" * 30, b"\0" * 5000, b"PK\3\4" * 99],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(content)
    with pytest.raises(DamagedLog, match="not a store"):
        SqliteStore(str(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["shop.db"]


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE customers (name)")
    db.close()
    content = path.read_bytes()
    with pytest.raises(DamagedLog, match="another program"):
        SqliteStore(str(path))
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.touch()
    store = SqliteStore(str(path))
    store.log("checkout").append(ROWS)
    store.close()


def test_a_newer_layout_is_refused(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.pragma("user_version", 99)
    db.close()
    with pytest.raises(NewerFormat, match=r"layout 99.*install a later one"):
        SqliteStore(str(path))


def test_a_file_cut_short_is_damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8192)
    with pytest.raises(DamagedLog, match="damaged"):
        list(SqliteStore(str(path)).log("checkout").read())


def test_a_changed_byte_in_a_row_is_found_by_its_checksum(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with open_agent(url, "shop", SHOP) as agent:
        for _ in range(5):
            agent.observe(agent.act(), 1)
    db = apsw.Connection(str(tmp_path / "shop.db"))
    db.execute("DELETE FROM snapshots")
    db.execute(
        "UPDATE events SET payload = CAST(replace(payload, '\"o\":1', '\"o\":0') AS BLOB) "
        "WHERE seq = 5"
    )
    db.close()
    with pytest.raises(DamagedLog, match="event 5 is not what was written"):
        open_agent(url, "shop", SHOP)


def test_a_missing_row_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with open_agent(url, "shop", SHOP) as agent:
        for _ in range(5):
            agent.observe(agent.act(), 1)
    for seq in (4, 1):
        db = apsw.Connection(str(tmp_path / "shop.db"))
        db.execute("DELETE FROM snapshots")
        db.execute("DELETE FROM events WHERE seq = ?", (seq,))
        db.close()
        with pytest.raises(DamagedLog):
            open_agent(url, "shop", SHOP)


def test_a_full_disk_is_said_and_nothing_is_written_and_it_goes_on_later(tmp_path: Path) -> None:
    with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", SHOP) as agent:
        d = agent.act()
        file: SqliteFile = agent._store._require_open().file  # type: ignore[attr-defined]
        pages = file.all("PRAGMA page_count")[0][0]
        file.all(f"PRAGMA max_page_count = {pages}")
        key = 0
        with pytest.raises(DiskFull, match="no room for another event; nothing was written"):  # noqa: PT012
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
made = 0
try:
    for made in range(100_000):
        agent.act()
except DiskFull as error:
    print(type(error).__name__)
os.unlink(f"{place}/filler")
filler.close()
head = agent.head
assert head == made + 1, (head, made)
agent.act()
agent.close()
again = open_agent(f"sqlite:///{place}/shop.db", "shop")
assert again.head == head + 1
print("whole")
"""


def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("making a small disk needs to be root")
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us make a small disk")
    try:
        done = subprocess.run(
            [sys.executable, "-c", SMALL_DISK, str(place)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert done.stdout.split() == ["DiskFull", "whole"], done.stderr


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
    assert places.file_system(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/sda1 / ext4 rw 0 0\nbox:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(places.require_local, "__defaults__", (table,))
    with pytest.raises(NetworkFileSystem, match=r"\(nfs4\).*local disk, or use postgresql"):
        SqliteStore(str(tmp_path / "shop.db"))
    assert not (tmp_path / "shop.db").exists()


def test_places_that_cannot_be_are_said(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="no folder"):
        SqliteStore(str(tmp_path / "missing" / "shop.db"))
    with pytest.raises(StoreFailed, match="not a file"):
        SqliteStore(str(tmp_path))
    for url in ("", "shop.db", "sqlite:shop.db", "sqlite://", "sqlite:///", "http://x", None, 3):
        with pytest.raises(UnknownStore, match="url="):
            open_store(url)  # type: ignore[arg-type]


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    open_store(f"sqlite:///{tmp_path}/there.db").close()
    assert sorted(os.listdir(tmp_path)) == ["here.db", "there.db"]


def test_one_file_has_one_way_to_be_durable(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/shop.db")
    with pytest.raises(StoreBusy, match="durable=True"):
        open_store(f"sqlite:///{tmp_path}/shop.db", durable=False)
    store.close()


def test_a_forked_child_may_not_use_the_parents_store(path: Path) -> None:
    code = """
import os, sys
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.errors import StoreBusy
store = SqliteStore(sys.argv[1])
if os.fork() == 0:
    try:
        store.names()
    except StoreBusy:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
store.names()
store.close()
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == 0


def test_a_flush_that_fails_ends_the_use_of_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on disk is unknown then; only opening anew finds out."""

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
    store = SqliteStore(str(path), vfs="broken")
    log = store.log("checkout")
    log.append([decided(7)])
    monkeypatch.setattr(BrokenFile, "failing", True)
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)  # apsw tells it of errors in a VFS
    monkeypatch.setattr(sys, "unraisablehook", lambda *_: None)
    with pytest.raises(StoreFailed, match="unknown: reopen"):
        log.append([decided(8)])
    monkeypatch.setattr(BrokenFile, "failing", False)
    with pytest.raises(StoreFailed, match="failed before"):
        log.append([decided(8)])
    store.close()
    del vfs
    again = SqliteStore(str(path))
    assert again.log("checkout").head() in (7, 8)
    again.close()


def test_the_mark_of_our_files_does_not_change() -> None:
    assert APPLICATION == 0x4261436F
