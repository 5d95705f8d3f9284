"""Logs of every released format can still be opened: files written by the release itself.

A file is never changed. If you raise `events.FORMAT` or change the layout of the tables, add a
folder with `python -m tests.durable.logs.make tests/durable/logs/NAME`. The dump of PostgreSQL is
tested in postgres/test_formats.py.
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
    require_replay_matches,
)

from bayescontrol.durable import Created, open_agent, open_store, read_log, replay
from bayescontrol.durable.events import FORMAT
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.sqlite_file import LAYOUT
from bayescontrol.errors import ModelMismatch

#: The first file, written before `make` existed: agent -> (events, next action, posterior).
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
#: Snapshots of a copy: all, only the older one (behind the log), or none -> those to delete.
SNAPSHOTS = {"all": "seq < 0", "the older": "seq IN (SELECT max(seq) FROM snapshots s "
         "WHERE s.log = snapshots.log)", "none": "seq > 0"}  # fmt: skip


def copy_store(file: Path, folder: Path, snapshots: str) -> str:
    """Copy the file with these snapshots only; return its address."""
    path = shutil.copy(file, folder)
    db = apsw.Connection(str(path))
    db.execute(f"DELETE FROM snapshots WHERE {SNAPSHOTS[snapshots]}")
    db.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
def test_the_first_file_opens_with_its_state_and_continues(tmp_path: Path, snapshots: str) -> None:
    url = copy_store(LOGS / "v1.db", tmp_path, snapshots)
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
                require_replay_matches(agent)


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
@pytest.mark.parametrize("folder", NEWEST)
def test_a_file_with_every_kind_opens_with_its_state_and_continues(
    tmp_path: Path, folder: str, snapshots: str
) -> None:
    url = copy_store(LOGS / folder / "kinds.db", tmp_path, snapshots)
    with closing(open_store(url)) as store:
        require_as_expected(store, folder)


@pytest.mark.parametrize("folder", NEWEST)
def test_an_export_of_every_kind_replays_to_the_expected_posterior(folder: str) -> None:
    assert {p.stem for p in (LOGS / folder / "lines").iterdir()} == set(NEWEST[folder])
    for name, expected in NEWEST[folder].items():
        again = replay(read_log(LOGS / folder / "lines" / f"{name}.jsonl"), model_of(name))
        assert (again.events, again.drawn) == (expected["events"], len(expected["decisions"]))
        assert alike(plain(again.posterior()), expected["posterior"])


@pytest.mark.parametrize("folder", NEWEST)
def test_file_and_export_hold_the_same_events(tmp_path: Path, folder: str) -> None:
    url = copy_store(LOGS / folder / "kinds.db", tmp_path, "all")
    with closing(open_store(url)) as store:
        for name in store.names():
            with open_agent(store, name, model_of(name)) as agent:
                lines = read_log(LOGS / folder / "lines" / f"{name}.jsonl")
                assert list(map(str, agent.log())) == list(map(str, lines))


@pytest.mark.parametrize("folder", NEWEST)
def test_changed_modes_are_detected_by_the_stored_fingerprint(tmp_path: Path, folder: str) -> None:
    url = copy_store(LOGS / folder / "kinds.db", tmp_path, "all")
    with pytest.raises(ModelMismatch, match="their prior or their update differ"):
        open_agent(url, NAMED, levers(["left", "up"]))


@pytest.mark.parametrize("folder", NEWEST)
def test_every_kind_and_a_user_model_are_saved(folder: str) -> None:
    saved = set()
    for file in (LOGS / folder / "lines").iterdir():
        created = next(iter(read_log(file)))
        assert isinstance(created, Created)
        assert (created.fingerprint is not None) == (created.model == NAMED)
        saved.add(created.model)
    later = {"changing"}  # its logs are in changing.db
    assert saved >= ({*KINDS, NAMED} - later if folder == f"v{FORMAT}" else {NAMED})


def test_there_is_a_file_of_the_current_format() -> None:
    """A new format needs a new file before it is released."""
    saved = set()
    for file in LOGS.glob("**/*.db"):
        db = apsw.Connection(f"file:{file}?immutable=1", flags=apsw.SQLITE_OPEN_URI | 1)
        for (payload,) in db.execute("SELECT payload FROM events WHERE seq = 1"):
            saved.add((db.pragma("user_version"), json.loads(payload)["format"]))
        db.close()
    assert (LAYOUT, FORMAT) in saved
    assert f"v{FORMAT}" in NEWEST
