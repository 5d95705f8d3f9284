"""Exported logs and backups become agents again: the same rows, the same state, or nothing."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from tests.durable.agents import MODELS, SHOP, live, same_state

from bayescontrol.cli.main import main
from bayescontrol.durable import export_log, open_agent, open_store
from bayescontrol.durable.archive import import_log, list_agents, restore_logs
from bayescontrol.durable.events import from_line, to_line
from bayescontrol.durable.stores.log import Row
from bayescontrol.errors import (
    AgentExists,
    DamagedLog,
    ModelMismatch,
    NewerFormat,
    StoreFailed,
    UnknownStore,
)
from bayescontrol.seeding import Stream


def run(*arguments: object, code: int = 0) -> Result:
    """Run `bayescontrol store …` and check its exit code."""
    done = CliRunner().invoke(main, ["store", *map(str, arguments)])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def rows(url: str, name: str) -> list[Row]:
    with closing(open_store(url)) as store:
        return list(store.log(name).read())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def url(file: Path) -> str:
    """A store with two agents, of 22 and 9 events; the log of the second is compacted."""
    address = f"sqlite:///{file}"
    with open_agent(address, "search", MODELS["linear"][0], seed=1) as agent:
        live(agent, 12, "linear")
    with open_agent(address, "shop", SHOP, seed=2) as agent:
        for i in range(4):
            agent.observe(agent.act(key=f"visit-{i}"), i % 2)
        agent.compact(4)
    return address


@pytest.mark.parametrize("case", MODELS)
def test_an_imported_agent_is_the_same_bit_for_bit(case: str, tmp_path: Path) -> None:
    model, question, _ = MODELS[case]
    with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", model) as agent:
        live(agent, 15, case)
        export_log(agent, tmp_path / "shop.jsonl")
        with closing(open_store(f"sqlite:///{tmp_path / 'copy.db'}")) as store:
            assert import_log(store, tmp_path / "shop.jsonl", "copy") == agent.head
            assert list(store.log("copy").read()) == list(agent._log.read())
        with open_agent(f"sqlite:///{tmp_path / 'copy.db'}", "copy", model) as copy:
            assert same_state(agent, copy)
            assert (agent.seed, agent.created) == (copy.seed, copy.created)
            x = question(Stream(9)) if agent.accepts_late_feedback else None
            one, two = agent.act(x), copy.act(x)
            assert (one.id, one.action, one.probability) == (two.id, two.action, two.probability)


def change(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(f"{line}\n" for line in edit(path.read_text().splitlines())))


#: How an exported file is changed, the error, and a part of its message.
BROKEN: dict[str, tuple[Callable[[list[str]], list[str]], type[Exception], str]] = {
    "empty": (lambda lines: [], DamagedLog, "the log is empty"),
    "no event 1": (lambda lines: lines[1:], DamagedLog, "expected event 1, found event 2"),
    "a missing event": (lambda lines: lines[:4] + lines[5:], DamagedLog, "expected event 5"),
    "a changed action": (
        lambda lines: [line.replace('"a":"red"', '"a":"blue"') for line in lines],
        DamagedLog, "checksum is wrong",
    ),
    "cut off": (lambda lines: [*lines[:-1], lines[-1][:30]], DamagedLog, "is not an event"),
    "not text": (lambda lines: ["BaCo"], DamagedLog, "is not an event"),
}  # fmt: skip


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    with open_agent(f"sqlite:///{tmp_path / 'old.db'}", "shop", SHOP, seed=2) as agent:
        for i in range(6):
            agent.observe(agent.act(), i % 2)
        export_log(agent, tmp_path / "shop.jsonl")
    return tmp_path / "shop.jsonl"


@pytest.mark.parametrize("what", BROKEN)
def test_a_damaged_file_is_refused_and_nothing_is_stored(
    exported: Path, tmp_path: Path, what: str
) -> None:
    edit, error, words = BROKEN[what]
    change(exported, edit)
    with closing(open_store(f"sqlite:///{tmp_path / 'new.db'}")) as store:
        with pytest.raises(error, match=words):
            import_log(store, exported, "shop")
        assert store.names() == []
    done = run("import", f"sqlite:///{tmp_path / 'new.db'}", exported, code=1)
    assert words in done.stderr


def change_first_event(path: Path, **fields: Any) -> None:
    """Change the event `created` of an exported file, with a valid checksum."""
    change(path, lambda lines: [to_line(replace(from_line(lines[0]), **fields)), *lines[1:]])


def test_a_file_of_a_newer_format_or_another_history_is_refused(
    exported: Path, tmp_path: Path
) -> None:
    original = exported.read_text()
    with closing(open_store(f"sqlite:///{tmp_path / 'new.db'}")) as store:
        change_first_event(exported, format=2)
        with pytest.raises(NewerFormat, match="format 2"):
            import_log(store, exported, "shop")
        exported.write_text(original)
        change_first_event(exported, seed=3)
        with pytest.raises(ModelMismatch, match="drawn again"):
            import_log(store, exported, "shop")
        assert store.names() == []
        # The history itself is valid: another kind of processor may draw differently.
        assert import_log(store, exported, "shop", draw_again=False) == 13


KILL = """
import os, signal, sys
from bayescontrol.durable import open_store
from bayescontrol.durable import archive
def stop(event, count=[0]):
    count[0] += 1
    if count[0] == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
store = open_store(sys.argv[1])
archive.import_log(store, sys.argv[2], "shop", on_event=stop)
"""


@pytest.mark.parametrize("events", [5, 14, 20, 26])
def test_a_killed_import_leaves_no_agent(exported: Path, tmp_path: Path, events: int) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    command = [sys.executable, "-c", KILL, url, str(exported), str(events)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with closing(open_store(url)) as store:
        assert store.names() == []
        assert import_log(store, exported, "shop") == 13


def test_a_restored_store_has_all_agents_of_the_backup(url: str, tmp_path: Path) -> None:
    backup, target = tmp_path / "backup.db", f"sqlite:///{tmp_path / 'new.db'}"
    run("backup", url, backup)
    run("backup", url, backup, code=2)
    done = run("restore", backup, target)
    assert done.stdout.endswith("Restored 2 agents: search, shop\n")
    for name in ("search", "shop"):
        assert rows(target, name) == rows(url, name)
        model = MODELS["linear"][0] if name == "search" else SHOP
        with open_agent(url, name) as one, open_agent(target, name, model) as two:
            assert same_state(one, two)
    assert "already has an agent 'search'" in run("restore", backup, target, code=2).stderr


def test_a_restore_changes_nothing_if_one_name_is_taken_or_the_backup_is_damaged(
    url: str, tmp_path: Path
) -> None:
    backup, target = tmp_path / "backup.db", f"sqlite:///{tmp_path / 'new.db'}"
    run("backup", url, backup)
    open_agent(target, "shop", SHOP, seed=9).close()
    before = rows(target, "shop")
    with closing(open_store(target)) as store, closing(open_store(f"sqlite:///{backup}")) as source:
        with pytest.raises(AgentExists, match="'shop'"):
            restore_logs(store, source)
        assert store.names() == ["shop"]
    assert rows(target, "shop") == before
    with closing(apsw.Connection(str(backup))) as db:
        db.execute("UPDATE events SET payload = CAST(payload || ' ' AS BLOB) WHERE seq = 7")
    new = f"sqlite:///{tmp_path / 'other.db'}"
    assert "event 7 is damaged" in run("restore", backup, new, code=1).stderr
    with closing(open_store(new)) as store:
        assert store.names() == []
    with backup.open("r+b") as opened:
        opened.truncate(backup.stat().st_size - 8192)
    assert (
        "is damaged" in run("restore", backup, f"sqlite:///{tmp_path / 'third.db'}", code=1).stderr
    )
    assert not (tmp_path / "third.db").exists()
    run("restore", tmp_path / "nothing.db", new, code=2)


def test_the_list_counts_what_was_compacted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.loads(run("list", url, "--json").stdout)
    with closing(open_store(url)) as store:
        (search, shop) = list_agents(store)
        size = sum(len(row.payload) for row in store.log("shop").read())
    assert [a["name"] for a in content["agents"]] == ["search", "shop"]
    assert content["agents"][1]["decisions"] == shop.decisions == 4
    assert (shop.events, shop.observations, shop.open, shop.compacted) == (9, 4, 0, 4)
    assert (shop.model, shop.bytes) == ("bernoulli-bandit", size)
    assert (search.decisions, search.decisions - search.observations) == (12, search.open)
    assert search.open > 0
    assert shop.first <= shop.last
    monkeypatch.setenv("COLUMNS", "120")
    text = run("list", url).stdout
    assert re.search(r"shop +bernoulli-bandit 1 +9 +4 +4 +0 ", text)


def test_exports_go_to_a_file_to_standard_output_or_to_a_folder(url: str, tmp_path: Path) -> None:
    with open_agent(url, "a/b.ü", SHOP):
        pass
    run("export", url, "--all", tmp_path / "all")
    names = sorted(path.name for path in (tmp_path / "all").iterdir())
    assert names == ["a%2Fb.%C3%BC.jsonl", "search.jsonl", "shop.jsonl"]
    run("export", url, "shop", tmp_path / "shop.jsonl")
    text = (tmp_path / "shop.jsonl").read_text()
    assert (
        run("export", url, "shop", "-").stdout == text == (tmp_path / "all/shop.jsonl").read_text()
    )
    target = f"sqlite:///{tmp_path / 'new.db'}"
    for name in names:
        run("import", target, tmp_path / "all" / name)
    assert [a["name"] for a in json.loads(run("list", target, "--json").stdout)["agents"]] == [
        "a/b.ü", "search", "shop",
    ]  # fmt: skip
    assert rows(target, "shop") == rows(url, "shop")
    run("import", target, tmp_path / "shop.jsonl", "--name", "copy")
    assert "already has" in run("import", target, tmp_path / "shop.jsonl", code=2).stderr


def test_compaction_by_date_or_by_event(url: str) -> None:
    with open_agent(url, "search") as agent:
        head = agent.head
    assert run("compact", url, "search", "--before", "2001-01-31").stdout == "Replaced 0 events.\n"
    assert "Replaced 4 events" in run("compact", url, "search", "--through", 5).stdout
    run("compact", url, "search", "--through", 99, code=2)
    run("compact", url, "search", code=2)
    run("compact", url, "search", "--through", 9, "--before", "2001-01-31", code=2)
    done = run("compact", url, "search", "--before", "2101-01-31T00:00:00")
    assert done.stdout == f"Replaced {head - 4} events.\n"
    assert CliRunner().invoke(main, ["verify", url]).exit_code == 0


def test_deletion_needs_a_confirmation(url: str, file: Path) -> None:
    assert "confirm it with --yes" in run("delete", url, "shop", code=2).stderr
    assert b"visit-3" in file.read_bytes()
    assert run("delete", url, "shop", "--yes").stdout == "Deleted agent 'shop'.\n"
    assert b"visit-3" not in file.read_bytes()
    assert "has no agent 'shop'" in run("delete", url, "shop", "--yes", code=2).stderr
    assert [a["name"] for a in json.loads(run("list", url, "--json").stdout)["agents"]] == [
        "search"
    ]


COMMANDS = [
    ["list"], ["export", "shop", "-"], ["backup", "copy.db"], ["compact", "shop", "--through", "5"],
    ["delete", "shop", "--yes"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_store_that_is_missing_damaged_or_in_use_is_reported(
    command: list[str], url: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESCONTROL_STORE", "postgre://ann:secret@nowhere.invalid/shop")
    assert "secret" not in run(*command, code=2).output
    secret = tmp_path / "address"
    secret.touch(0o600)
    secret.write_text("postgresql://ann:secret@nowhere.invalid/shop?connect_timeout=1\n")
    assert "secret" not in run(*command, "--store-file", secret, code=2).output
    monkeypatch.setenv("BAYESCONTROL_STORE", "sqlite:///missing.db")
    assert "there is no store" in run(*command, code=2).stderr
    assert not (tmp_path / "missing.db").exists()
    assert "expected the arguments STORE" in run(*command, "a", "b", "c", code=2).stderr
    monkeypatch.setenv("BAYESCONTROL_STORE", url)
    child = os.fork()
    if child == 0:  # another process has the store
        open_store(url)
        (tmp_path / "open").touch()
        signal.pause()
    try:
        while not (tmp_path / "open").exists():
            pass
        assert "is being written by process" in run(*command, code=2).stderr
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - 8192)
    assert "is damaged" in run(*command, code=1).stderr


def test_unknown_agents_and_names_are_refused(url: str, tmp_path: Path) -> None:
    for command in (["export", url, "nobody", "-"], ["compact", url, "nobody", "--through", "3"]):
        assert "has no agent 'nobody'" in run(*command, code=2).stderr
    run("export", url, "shop", tmp_path / "shop.jsonl")
    assert "name=" in run("import", url, tmp_path / "shop.jsonl", "--name", "a\nb", code=2).stderr
    with closing(open_store(url)) as store:
        with pytest.raises(UnknownStore, match="name="):
            import_log(store, tmp_path / "shop.jsonl", "")
        with pytest.raises(StoreFailed, match="No such file"):
            import_log(store, tmp_path / "nothing.jsonl", "new")
