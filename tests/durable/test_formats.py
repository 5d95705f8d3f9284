"""Logs of every released format open for ever: files that were written then, kept here.

A file is never changed. Whoever raises `events.FORMAT` or the layout of the tables adds a folder
with `python -m tests.durable.logs.make tests/durable/logs/NAME`. That of PostgreSQL is loaded in
postgres/test_formats.py.
"""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.expected_logs import (
    LOGS,
    NAMED,
    NEWEST,
    alike,
    levers,
    model_of,
    plain,
    require_as_expected,
    require_drawn_again,
)

from bayescontrol.durable import Created, open_agent, open_store, read_log, replay
from bayescontrol.durable.events import FORMAT
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.sqlite_file import LAYOUT
from bayescontrol.errors import ModelMismatch

#: The first file, which came before `make`: agent -> (events, next action, posterior).
FIRST: dict[str, tuple[int, Any, dict[str, dict[str, Any]]]] = {
    "checkout": (
        21,
        "red",
        {
            "red": {"mean": 0.6666666666666666, "count": 1, "alpha": 2.0, "beta": 1.0},
            "('a', 1)": {"mean": 0.4444444444444444, "count": 7, "alpha": 4.0, "beta": 5.0},
        },
    ),
    "maze": (19, "left", {"rho": {"mean": 1.7931891726430584, "count": 9}}),
    "search": (
        15,
        "y",
        {
            "x": {"mean": [0.16844803404749237, 0.090187164482275], "count": 2},
            "y": {"mean": [0.2572731610550874, 0.13314334448507462], "count": 4},
        },
    ),
}
#: Which snapshots are found: those that were kept, the older one, which is behind the log, or none.
FOUND = {"all": "seq < 0", "the older": "seq IN (SELECT max(seq) FROM snapshots s "
         "WHERE s.log = snapshots.log)", "none": "seq > 0"}  # fmt: skip


def copied(file: Path, folder: Path, snapshots: str) -> str:
    """The address of a copy that has these snapshots."""
    path = shutil.copy(file, folder)
    db = apsw.Connection(str(path))
    db.execute(f"DELETE FROM snapshots WHERE {FOUND[snapshots]}")
    db.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("snapshots", FOUND)
def test_the_first_file_opens_as_it_was_and_goes_on(tmp_path: Path, snapshots: str) -> None:
    url = copied(LOGS / "v1.db", tmp_path, snapshots)
    with closing(open_store(url)) as store:
        assert store.names() == sorted(FIRST)
        for name, (events, action, posterior) in FIRST.items():
            with open_agent(store, name) as agent:
                assert agent.head == events
                assert alike(plain(agent.posterior()), posterior)
                x = [0.5, 0.5] if name == "search" else None
                assert agent.act(x).action == action
            with open_agent(store, name) as agent:
                assert agent.head == events + 1
                require_drawn_again(agent)


@pytest.mark.parametrize("snapshots", FOUND)
@pytest.mark.parametrize("folder", NEWEST)
def test_a_file_with_every_kind_opens_as_it_was_and_goes_on(
    tmp_path: Path, folder: str, snapshots: str
) -> None:
    url = copied(LOGS / folder / "kinds.db", tmp_path, snapshots)
    with closing(open_store(url)) as store:
        require_as_expected(store, folder)


@pytest.mark.parametrize("folder", NEWEST)
def test_an_export_of_every_kind_is_read_as_it_was(folder: str) -> None:
    assert {p.stem for p in (LOGS / folder / "lines").iterdir()} == set(NEWEST[folder])
    for name, expected in NEWEST[folder].items():
        again = replay(read_log(LOGS / folder / "lines" / f"{name}.jsonl"), model_of(name))
        assert (again.events, again.drawn) == (expected["events"], len(expected["decisions"]))
        assert alike(plain(again.posterior()), expected["posterior"])


@pytest.mark.parametrize("folder", NEWEST)
def test_file_and_export_say_the_same(tmp_path: Path, folder: str) -> None:
    url = copied(LOGS / folder / "kinds.db", tmp_path, "all")
    with closing(open_store(url)) as store:
        for name in store.names():
            with open_agent(store, name, model_of(name)) as agent:
                lines = read_log(LOGS / folder / "lines" / f"{name}.jsonl")
                assert list(map(str, agent.log())) == list(map(str, lines))


@pytest.mark.parametrize("folder", NEWEST)
def test_changed_modes_are_known_by_the_fingerprint_that_was_written(
    tmp_path: Path, folder: str
) -> None:
    url = copied(LOGS / folder / "kinds.db", tmp_path, "all")
    with pytest.raises(ModelMismatch, match="their names or their prior differ"):
        open_agent(url, NAMED, levers(["left", "up"]))


@pytest.mark.parametrize("folder", NEWEST)
def test_every_kind_and_a_user_model_are_saved(folder: str) -> None:
    saved = set()
    for file in (LOGS / folder / "lines").iterdir():
        created = next(iter(read_log(file)))
        assert isinstance(created, Created)
        assert (created.fingerprint is not None) == (created.model == NAMED)
        saved.add(created.model)
    assert saved >= ({*KINDS, NAMED} if folder == f"v{FORMAT}" else {NAMED})


def test_there_is_a_file_of_the_present_format() -> None:
    """A new format needs a new file before it is released."""
    saved = set()
    for file in LOGS.glob("**/*.db"):
        db = apsw.Connection(f"file:{file}?immutable=1", flags=apsw.SQLITE_OPEN_URI | 1)
        for (payload,) in db.execute("SELECT payload FROM events WHERE seq = 1"):
            saved.add((db.pragma("user_version"), json.loads(payload)["format"]))
        db.close()
    assert (LAYOUT, FORMAT) in saved
    assert f"v{FORMAT}" in NEWEST
