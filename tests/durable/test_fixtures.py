"""Logs of format 1 over every belief class, agent class and built-in kind open for ever.

The files `logs/*/named.db`, `agents.db` and `problems.db` were written by the code of their time
and are never regenerated; `logs/make.py` made them from the models in `named.py`. The JSON beside
each says what was expected of its logs and what they did next.
"""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.durable import named
from tests.durable.fixtures import numbers, require_expected, require_goes_on
from tests.durable.kept import LOGS, alike, require_drawn_again
from tests.durable.test_formats import FOUND, copied

from bayescontrol.durable import Decided, Observed, open_agent, open_store
from bayescontrol.durable.events import events_of
from bayescontrol.durable.kinds import KINDS
from bayescontrol.schedules import every_step

#: (folder, file) of each fixture.
FIXTURES = [
    (folder.name, file)
    for folder in sorted(LOGS.iterdir())
    for file in named.FILES
    if (folder / f"{file}.json").exists()
]


def expected(folder: str, file: str) -> dict[str, Any]:
    """What is expected of each log."""
    told: dict[str, Any] = json.loads((LOGS / folder / f"{file}.json").read_text())
    return told


@pytest.mark.parametrize("snapshots", FOUND)
@pytest.mark.parametrize(("folder", "file"), FIXTURES)
def test_a_log_opens_as_it_was_and_goes_on_as_it_did(
    tmp_path: Path, folder: str, file: str, snapshots: str
) -> None:
    url = copied(LOGS / folder / f"{file}.db", tmp_path, snapshots)
    with closing(open_store(url, durable=False)) as store:
        logs = expected(folder, file)
        assert store.names() == sorted(logs)
        for name, told in logs.items():
            with open_agent(store, name, named.model_of(file, name)) as agent:
                require_expected(agent, told)
                require_drawn_again(agent)
                require_goes_on(agent, told["then"])
                assert alike(numbers(agent.state()), told["at the end"]), name
            with open_agent(store, name, named.model_of(file, name)) as agent:
                assert alike(numbers(agent.state()), told["at the end"]), name
                require_drawn_again(agent)


@pytest.mark.parametrize(("folder", "file"), FIXTURES)
def test_a_log_has_late_and_missing_answers_and_a_snapshot_between_its_events(
    tmp_path: Path, folder: str, file: str
) -> None:
    url = copied(LOGS / folder / f"{file}.db", tmp_path, "all")
    with closing(open_store(url, durable=False)) as store:
        for name, told in expected(folder, file).items():
            log = store.log(name)
            events = list(events_of(log))
            asked = [event.seq for event in events if isinstance(event, Decided)]
            answered = [event.n for event in events if isinstance(event, Observed)]
            newest, older = (snapshot.seq for snapshot in log.snapshots())
            assert asked[2] < older < asked[-2] < newest == log.head(), name
            assert len(answered) < len(asked), name
            assert told["alone"] == (answered != sorted(answered)), name
            log.close()


def test_every_built_in_kind_is_kept_with_and_without_a_schedule() -> None:
    kept = {told["model"][0]: set[bool]() for told in expected("v1", "problems").values()}
    for name, told in expected("v1", "problems").items():
        kept[told["model"][0]].add(named.PROBLEMS[name].schedule is every_step)
    assert kept == {kind: {True, False} for kind in KINDS}
