"""Files that are foreign, newer, torn or altered: said by type, and nothing in them changed."""

import os
from pathlib import Path

import apsw
import pytest
from tests.durable.conformance import ROWS

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.durable.sqlite_file import APPLICATION
from bayescontrol.errors import DamagedLog, NewerFormat

SHOP = BernoulliBandit(["red", "blue"])


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


def test_the_mark_of_our_files_does_not_change() -> None:
    assert APPLICATION == 0x4261436F
