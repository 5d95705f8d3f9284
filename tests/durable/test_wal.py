"""A damaged write-ahead log is reported; a log that a crash or a power cut left is not.

The checks are exact and the seeds are fixed, so there are no false alarms.
"""

import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import apsw
import pytest
from tests.durable.power import SECTOR
from tests.durable.test_sqlite_flips import flip
from tests.durable.test_verify import verify

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Act, open_agent
from bayescontrol.durable.stores import sqlite_file
from bayescontrol.durable.stores.sqlite_file import require_intact_wal
from bayescontrol.errors import DamagedLog

SHOP = BernoulliBandit(["red", "blue"])
FRAME = 24 + 4096
KILLED = """
import os, signal, sys
from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
agent = open_agent(sys.argv[1], "shop", BernoulliBandit(["red", "blue"]), snapshot_every=100)
for i in range(int(sys.argv[2])):
    agent.observe(agent.act(key=f"visit-{i}"), i % 2)
    print(agent.head, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path, rounds: int) -> tuple[Path, int]:
    """Return the store of a process that was killed, and its last acknowledged event."""
    path = folder / "shop.db"
    command = [sys.executable, "-c", KILLED, f"sqlite:///{path}", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    return path, int(done.stdout.split()[-1])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A store whose log was restarted once, so that old frames follow the current ones."""
    return killed(tmp_path_factory.mktemp("killed"), 300)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A store with all its events in the write-ahead log."""
    return killed(tmp_path_factory.mktemp("killed"), 12)


def copy_of(path: Path, folder: Path, wal: bytes | None = None) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / "shop.db")
    (folder / "shop.db-wal").write_bytes(wal_of(path) if wal is None else wal)
    return folder / "shop.db"


def wal_of(path: Path) -> bytes:
    return Path(f"{path}-wal").read_bytes()


def fields(wal: bytes) -> list[tuple[int, ...]]:
    """Page number, pages after a commit, salts and checksums of every frame."""
    return [struct.unpack_from(">6I", wal, at) for at in range(32, len(wal) - FRAME + 1, FRAME)]


def current(wal: bytes) -> list[int]:
    """The positions of the commit frames of the current generation."""
    salts = struct.unpack_from(">2I", wal, 16)
    return [i for i, frame in enumerate(fields(wal)) if frame[2:4] == salts and frame[1]]


def damage(path: Path) -> str:
    try:
        require_intact_wal(path)
    except DamagedLog as error:
        return str(error)
    return ""


def outcome(path: Path, head: int) -> str:
    try:
        with open_agent(f"sqlite:///{path}", "shop", SHOP) as agent:
            return "same" if agent.head == head else "silently lost"
    except DamagedLog:
        return "reported"


def test_of_60_flips_in_the_log_of_a_killed_process_none_silently_drops_a_flushed_commit(
    store: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, head = store
    wal = wal_of(path)
    commits = current(wal)
    assert len(commits) < sum(frame[1] != 0 for frame in fields(wal)) - 100  # most are old
    rng = random.Random(24)
    bits = [rng.randrange(len(wal) * 8) for _ in range(60)]
    found: dict[str, list[str]] = {}
    for scan in "on", "off":
        if scan == "off":
            monkeypatch.setattr(sqlite_file, "require_intact_wal", lambda path: None)
        found[scan] = []
        for bit in bits:
            copy = copy_of(path, tmp_path / "copy")
            flip(Path(f"{copy}-wal"), bit)
            found[scan].append(outcome(copy, head))
    last = range(commits[-2] + 1, commits[-1] + 1)  # the last transaction
    for bit, on, off in zip(bits, found["on"], found["off"], strict=True):
        if (bit // 8 - 32) // FRAME in last:
            continue
        assert on == ("reported" if off == "silently lost" else off), bit
    assert Counter(found["off"])["silently lost"] >= 15
    assert Counter(found["on"])["silently lost"] <= 1


def test_the_error_says_how_much_is_lost_and_changes_nothing(
    small: tuple[Path, int], tmp_path: Path
) -> None:
    path, head = small
    wal = wal_of(path)
    commits = current(wal)
    copy = copy_of(path, tmp_path / "copy")
    flip(Path(f"{copy}-wal"), (32 + FRAME * (commits[-6] + 1) + 99) * 8)
    before = [copy.read_bytes(), wal_of(copy)]
    words = rf"shop.db-wal is damaged at frame {commits[-6] + 2}: at least 4 acknowledged commits "
    words += "cannot be read. Restore a backup and delete .*-wal"
    for _ in range(2):  # the lock is released
        with pytest.raises(DamagedLog, match=words):
            open_agent(f"sqlite:///{copy}", "shop", SHOP)
    (found,) = verify(f"sqlite:///{copy}", code=1)["damage"]
    assert "at least 4 acknowledged commits" in found["problem"]
    assert [copy.read_bytes(), wal_of(copy)] == before
    assert sorted(p.name for p in copy.parent.iterdir()) == ["shop.db", "shop.db-wal"]
    db = apsw.Connection(str(copy))  # the way out that the message gives
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    with open_agent(f"sqlite:///{copy}", "shop", SHOP) as agent:
        assert agent.head == head - 5


@pytest.mark.parametrize("byte", [*range(0, 32, 3), None])
def test_a_damaged_header_is_reported(
    small: tuple[Path, int], tmp_path: Path, byte: int | None
) -> None:
    wal = bytearray(wal_of(small[0]))
    if byte is None:
        wal[:SECTOR] = bytes(SECTOR)
    else:
        wal[byte] ^= 16
    copy = copy_of(small[0], tmp_path / "copy", bytes(wal))
    with pytest.raises(DamagedLog, match="at its header: none of its commits can be read"):
        open_agent(f"sqlite:///{copy}", "shop", SHOP)


def resealed(wal: bytes, order: str) -> bytes:
    """Compute all checksums again, with words in the given byte order."""
    result = bytearray(wal)
    struct.pack_into(">I", result, 0, 0x377F0682 + (order == ">"))
    s1 = s2 = 0
    for start, stop, place in [
        (0, 24, 24),
        *((at, at + FRAME, at + 16) for at in range(32, len(wal), FRAME)),
    ]:
        data = (
            result[start:stop] if start == 0 else result[start : start + 8] + wal[start + 24 : stop]
        )
        for x0, x1 in struct.iter_unpack(f"{order}2I", data):
            s1 = (s1 + x0 + s2) % 2**32
            s2 = (s2 + x1 + s1) % 2**32
        struct.pack_into(">2I", result, place, s1, s2)
    return bytes(result)


def test_checksums_are_those_of_sqlite_and_the_other_byte_order_is_no_damage(
    small: tuple[Path, int], tmp_path: Path
) -> None:
    path, head = small
    wal = wal_of(path)
    this, other = "<>" if sys.byteorder == "little" else "><"
    assert resealed(wal, this) == wal
    copy = copy_of(path, tmp_path / "copy", resealed(wal, other))
    assert not damage(copy)
    assert outcome(copy, head) == "same"


@pytest.mark.parametrize(
    ("change", "is_reported"),
    [((0, 8), True), ((4, 128), True), ((9, 1), True), ((15, 1), True), ((24, 1), True),
     ((4119, 1), True), ((16, 1), False), ((23, 128), False), ("mark", False)],
)  # fmt: skip
def test_only_checksum_and_mark_of_the_commit_before_the_last_are_not_protected(
    small: tuple[Path, int], tmp_path: Path, change: tuple[int, int] | str, is_reported: bool
) -> None:
    wal = bytearray(wal_of(small[0]))
    start = 32 + FRAME * current(bytes(wal))[-2]
    assert start % SECTOR <= SECTOR - 24
    if isinstance(change, str):
        wal[start + 4 : start + 8] = bytes(4)
    else:
        wal[start + change[0]] ^= change[1]
    assert bool(damage(copy_of(small[0], tmp_path / "copy", bytes(wal)))) == is_reported


def test_a_file_of_another_program_beside_any_log_is_a_damaged_log(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(b"Dear diary, " * 500)
    Path(f"{path}-wal").write_bytes(random.Random(1).randbytes(9000))
    with pytest.raises(DamagedLog, match="is not a store"):
        open_agent(f"sqlite:///{path}", "shop", SHOP)


def torn_logs(before: bytes, after: bytes, rng: random.Random) -> list[bytes]:
    """Logs that a power cut can leave: of the sectors that a commit writes, any may be missing."""
    before = before.ljust(len(after), b"\0")
    parts = [slice(i, i + SECTOR) for i in range(0, len(after), SECTOR)]
    changed = [part for part in parts if before[part] != after[part]]
    missing = [[part] for part in changed]
    missing += [[part for part in changed if rng.random() < p] for p in (0.1, 0.5, 0.9) * 20]
    result = []
    for lost in missing:
        log = bytearray(after)
        for part in lost:
            log[part] = before[part]
        result.append(bytes(log))
    return result


def test_a_last_transaction_that_a_power_cut_tore_is_not_damage(
    store: tuple[Path, int], tmp_path: Path
) -> None:
    """A second cut meets frames that the first left behind, with the current salts."""
    rng = random.Random(5)
    path, head = store
    for requests in (60, 3, 40):  # transactions of several pages
        copy = copy_of(path, tmp_path / "copy")
        before = wal_of(copy)
        agent = open_agent(f"sqlite:///{copy}", "shop", SHOP, snapshot_every=10**6)
        agent.handle([Act(None, f"{head}-{rng.random()}-{'x' * 150}") for _ in range(requests)])
        after = wal_of(copy)
        copy = copy_of(path, tmp_path / "other")
        logs = torn_logs(before, after, rng)
        agent.close()
        assert len(logs) > 75
        for log in logs:
            Path(f"{copy}-wal").write_bytes(log)
            assert not damage(copy)
        # The first commit loses one sector; the frames behind it stay.
        path = copy_of(path, tmp_path / f"torn-{requests}", logs[2])
        assert outcome(copy_of(path, tmp_path / "copy"), head) == "same"


def test_the_header_of_a_frame_that_a_power_cut_mixed_with_an_old_one_is_not_believed(
    small: tuple[Path, int], tmp_path: Path
) -> None:
    """An old sector says that the frame is a commit; the new one has the checksum of another."""
    copy = copy_of(small[0], tmp_path / "copy")
    first = len(fields(wal_of(copy)))
    with open_agent(f"sqlite:///{copy}", "shop", SHOP, snapshot_every=10**6) as agent:
        agent.handle([Act(None, f"{i}-{'x' * 180}") for i in range(600)])
        wal = wal_of(copy)
    copy = copy_of(small[0], tmp_path / "other")
    places = [32 + FRAME * i for i in range(first, len(fields(wal)) - 1)]
    mixed = [at for at in places if at % SECTOR > SECTOR - 24]
    assert len(places) > 64
    assert mixed
    for at in mixed:
        log = bytearray(wal)
        struct.pack_into(">I", log, at + 4, 9)
        Path(f"{copy}-wal").write_bytes(log)
        assert not damage(copy)
