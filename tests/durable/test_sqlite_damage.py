"""Foreign, newer, torn or altered files raise typed errors and are not changed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.conformance import ROWS

from bayescontrol import BernoulliBandit
from bayescontrol.durable import export_log, open_agent, read_log, replay
from bayescontrol.durable.events import Decided, Event, Observed, encode_row, to_line
from bayescontrol.durable.stores import sqlite_file
from bayescontrol.durable.stores.log import Row
from bayescontrol.durable.stores.sqlite import SqliteStore
from bayescontrol.durable.stores.sqlite_file import sqlite_errors
from bayescontrol.errors import DamagedLog, NewerFormat, StoreFailed
from bayescontrol.offpolicy import what_if

SHOP = BernoulliBandit(["red", "blue"])


def execute(path: Path, *statements: str) -> None:
    """Change a file behind the back of the library."""
    db = apsw.Connection(str(path))
    for sql in statements:
        db.execute(sql)
    db.close()


@pytest.mark.parametrize(
    "content",
    [b"not a database, but long enough to be looked at" * 30, b"\0" * 5000, b"PK\3\4" * 99],
)
def test_a_foreign_file_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(content)
    with pytest.raises(DamagedLog, match="not a store"):
        SqliteStore(f"sqlite:///{path}")
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["shop.db"]


def test_the_database_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    execute(path, "CREATE TABLE customers (name)")
    content = path.read_bytes()
    with pytest.raises(DamagedLog, match="another program"):
        SqliteStore(f"sqlite:///{path}")
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.touch()
    store = SqliteStore(f"sqlite:///{path}")
    store.log("checkout").append(ROWS)
    store.close()


def test_a_newer_layout_is_refused(path: Path) -> None:
    execute(path, "PRAGMA user_version = 99")
    with pytest.raises(NewerFormat, match=r"layout 99.*install a later release"):
        SqliteStore(f"sqlite:///{path}")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "UPDATE events SET payload = CAST(replace(payload, '\"o\":1', '\"o\":0') AS BLOB) "
            "WHERE seq = 5",
            "event 5 is damaged",
        ),
        ("DELETE FROM events WHERE seq = 4", "event 4 is missing"),
        ("DELETE FROM events WHERE seq = 1", "does not start with an event `created`"),
    ],
)
def test_a_changed_or_missing_row_is_detected(tmp_path: Path, sql: str, message: str) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with open_agent(url, "shop", SHOP) as agent:
        for _ in range(5):
            agent.observe(agent.act(), 1)
    execute(tmp_path / "shop.db", "DELETE FROM snapshots", sql)
    with pytest.raises(DamagedLog, match=message):
        open_agent(url, "shop", SHOP)


@pytest.mark.parametrize(
    ("what", "sql"),
    [
        ("trigger", "CREATE TRIGGER extra AFTER INSERT ON events BEGIN DELETE FROM events; END"),
        ("trigger", "CREATE TRIGGER extra BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END"),
        ("view", "CREATE VIEW extra AS SELECT * FROM events"),
        ("index", "CREATE UNIQUE INDEX extra ON events (log, kind, seq)"),
        ("table", "CREATE TABLE extra (x)"),
    ],
)
def test_an_addition_to_the_schema_is_refused_until_it_is_dropped(
    path: Path, what: str, sql: str
) -> None:
    execute(path, sql)
    with pytest.raises(DamagedLog, match=rf"contains {what} 'extra'.*DROP it"):
        SqliteStore(f"sqlite:///{path}")
    execute(path, f"DROP {what} extra; ANALYZE")
    store = SqliteStore(f"sqlite:///{path}")
    assert len(list(store.log("checkout").read())) == len(ROWS)
    store.close()


# -- events that contradict each other, with valid checksums --------------------------------

CONTRADICTIONS: dict[str, Event] = {
    "a second answer": Observed(seq=6, n=2, o=1, time=1.0),
    "a second decision under one key": Decided(  # the action that the agent takes there
        seq=6, x=None, a="blue", p=0.25, key="visit-1", time=1.0
    ),
    "an observation of an event that is not a decision": Observed(seq=6, n=3, o=1, time=1.0),
    "an observation of a decision that does not exist": Observed(seq=6, n=9, o=1, time=1.0),
}


def history(store: SqliteStore) -> list[Event]:
    """Events 1 to 5: decisions 2 and 4 with keys visit-1 and visit-2, each with observation 1."""
    with open_agent(store, "shop", SHOP, seed=1) as agent:
        for key in "visit-1", "visit-2":
            agent.observe(agent.act(key=key), 1)
        return list(agent.log())


@pytest.mark.parametrize("case", CONTRADICTIONS)
@pytest.mark.parametrize("snapshots", [True, False])
def test_a_log_that_contradicts_itself_is_damaged(case: str, snapshots: bool) -> None:
    store = SqliteStore("sqlite:///:memory:")
    history(store)
    # Without its unique indexes the table accepts rows that no agent would write.
    with store._require_open().transaction() as db:
        db.execute("DROP INDEX keys; DROP INDEX answers")
        if not snapshots:
            db.execute("DELETE FROM snapshots")
    log = store.log("shop")
    log.append([encode_row(CONTRADICTIONS[case])])
    log.close()
    damaged = pytest.raises(DamagedLog, match=r"log 'shop'.*restore a backup")
    if not snapshots:  # all events are folded at opening
        with damaged:
            open_agent(store, "shop", SHOP)
        return
    with damaged:  # at the latest when decision 2, which is in the snapshot, is looked up
        open_agent(store, "shop", SHOP).act(key="visit-1")


@pytest.mark.parametrize("case", CONTRADICTIONS)
@pytest.mark.parametrize(
    "use",
    [
        lambda events, path: replay(events),
        lambda events, path: replay(events, draw=False),
        lambda events, path: what_if(events, lambda x: {"red": 1.0}),
        lambda events, path: what_if(events, lambda x: {"red": 1.0}, reward=float, bounds=(0, 2)),
        lambda events, path: export_log(events, path / "shop.jsonl"),
    ],
)
def test_events_that_contradict_each_other_are_refused(
    case: str, use: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    events = history(SqliteStore("sqlite:///:memory:"))
    use(events, tmp_path)
    with pytest.raises(DamagedLog, match="event 6"):
        use([*events, CONTRADICTIONS[case]], tmp_path)
    lines = [to_line(event) + "\n" for event in (*events, CONTRADICTIONS[case])]
    (tmp_path / "shop.jsonl").write_text("".join(lines))
    with pytest.raises(DamagedLog, match="event 6"):
        list(read_log(tmp_path / "shop.jsonl"))


def test_an_export_can_start_at_any_event(tmp_path: Path) -> None:
    events = history(SqliteStore("sqlite:///:memory:"))
    assert export_log(events[2:], tmp_path / "shop.jsonl") == 3
    with pytest.raises(DamagedLog, match="event 6 observes decision 2"):
        export_log([*events[2:], CONTRADICTIONS["a second answer"]], tmp_path / "shop.jsonl")


# -- damage that appears while the file is open ---------------------------------------------------


@pytest.mark.parametrize(
    ("column", "index", "found", "wrong"),
    [("key", "keys", b"visit-2", b"visit-6"), ("n", "answers", b"\x04\x05", b"\x06\x05")],
)
def test_an_index_that_points_to_another_row_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, index: str, found: bytes,
    wrong: bytes,
) -> None:  # fmt: skip
    path = tmp_path / "shop.db"
    store = SqliteStore(f"sqlite:///{path}")
    history(store)
    with open_agent(store, "shop", SHOP) as agent:
        assert agent.act().id == "6"
    store.close()
    db = apsw.Connection(str(path))
    page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).get - 1
    db.close()
    content = bytearray(path.read_bytes())
    at = content.index(found, page * 4096 + 12)  # after the header of the page
    content[at : at + len(wrong)] = wrong
    path.write_bytes(content)
    with pytest.raises(DamagedLog, match=rf"shop.db.*index {index}.*restore a backup"):
        SqliteStore(f"sqlite:///{path}")
    monkeypatch.setattr(sqlite_file, "_require_intact", lambda db, place: None)
    with (
        open_agent(f"sqlite:///{path}", "shop", SHOP) as agent,
        pytest.raises(DamagedLog, match=r"log 'shop': .*restore a backup"),
    ):
        agent.act(key="visit-6") if column == "key" else agent.observe("6", 1)
    store = SqliteStore(f"sqlite:///{path}")
    log = store.log("shop")
    assert log.head() == 6  # the first of two rows is accepted, the second is not
    new = (
        Row(8, "", 6, None, None, b"", 0)
        if column == "n"
        else Row(8, "", None, "visit-6", None, b"", 0)
    )
    with pytest.raises(DamagedLog, match="index"):
        log.append([Row(7, "", 7, "visit-7", None, b"", 0), new])
    assert log.head() == 6
    store.close()


def test_an_sql_error_is_damage_only_if_the_schema_differs() -> None:
    """A wrong state of the connection must not make anybody replace an intact file."""
    with pytest.raises(DamagedLog), sqlite_errors("shop.db"):
        raise apsw.SQLError("no such column: payload")
    with pytest.raises(StoreFailed, match=r"reopen the store") as caught, sqlite_errors("shop.db"):
        raise apsw.SQLError("cannot start a transaction within a transaction")
    assert not isinstance(caught.value, DamagedLog)
