"""Logs of format 1 of every belief class, agent class and built-in kind can still be opened.

The files `logs/*/named.db`, `agents.db` and `problems.db` were written by `logs/make.py` from the
models in `named.py` and are never regenerated. The JSON file beside each holds the expected values
of its logs and the steps that follow.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.durable import named
from tests.durable.expected_logs import LOGS, alike, require_replay_matches
from tests.durable.fixtures import numbers, require_continues, require_expected
from tests.durable.test_formats import SNAPSHOTS, copy_store

from bayescontrol.baselines import CountingAgent, TabularLearner
from bayescontrol.beliefs.switching import _Changing
from bayescontrol.durable import Decided, Observed, open_agent, open_store
from bayescontrol.durable.events import read_events
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.log import DamagedSnapshot
from bayescontrol.errors import BayesControlError
from bayescontrol.schedules import every_step

#: (folder, file) of each fixture.
FIXTURES = [
    (folder.name, file)
    for folder in sorted(LOGS.iterdir())
    for file in named.FILES
    if (folder / f"{file}.json").exists()
]


def expected(folder: str, file: str) -> dict[str, Any]:
    """Load the expected values of each log."""
    result: dict[str, Any] = json.loads((LOGS / folder / f"{file}.json").read_text())
    return result


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
@pytest.mark.parametrize(("folder", "file"), FIXTURES)
def test_a_log_opens_with_the_expected_state_and_continues_as_expected(
    tmp_path: Path, folder: str, file: str, snapshots: str
) -> None:
    url = copy_store(LOGS / folder / f"{file}.db", tmp_path, snapshots)
    with closing(open_store(url, durable=False)) as store:
        logs = expected(folder, file)
        assert store.names() == sorted(logs)
        for name, result in logs.items():
            with open_agent(store, name, named.model_of(file, name)) as agent:
                require_expected(agent, result)
                require_replay_matches(agent)
                require_continues(agent, result["then"])
                assert alike(numbers(agent.state()), result["at the end"]), name
            with open_agent(store, name, named.model_of(file, name)) as agent:
                assert alike(numbers(agent.state()), result["at the end"]), name
                require_replay_matches(agent)


@pytest.mark.parametrize(("folder", "file"), FIXTURES)
def test_a_log_has_late_and_missing_observations_and_an_older_snapshot(
    tmp_path: Path, folder: str, file: str
) -> None:
    url = copy_store(LOGS / folder / f"{file}.db", tmp_path, "all")
    with closing(open_store(url, durable=False)) as store:
        for name, result in expected(folder, file).items():
            log = store.log(name)
            events = list(read_events(log))
            requested = [event.seq for event in events if isinstance(event, Decided)]
            answered = [event.n for event in events if isinstance(event, Observed)]
            newest, older = (snapshot.seq for snapshot in log.snapshots())
            assert requested[2] < older < requested[-2] < newest == log.head(), name
            assert len(answered) < len(requested), name
            assert result["alone"] == (answered != sorted(answered)), name
            log.close()


def test_every_built_in_kind_is_saved_with_and_without_a_schedule() -> None:
    saved: dict[str, set[bool]] = {}
    for file in ("problems", "changing"):
        for name, result in expected("v1", file).items():
            has_schedule = named.FILES[file][name].schedule is not every_step
            saved.setdefault(result["model"][0], set()).add(not has_schedule)
    assert saved == {kind: {True, False} for kind in KINDS}


def _parts_of_the_library() -> Iterator[Any]:
    """The classes of beliefs, agents, problems and schedules, and all functions beside them."""
    homes = (
        "bandits", "baselines", "beliefs", "experts", "linear", "live", "mdp", "modes", "problems",
        "rule", "schedules",
    )  # fmt: skip
    prefixes = tuple(f"bayescontrol.{home}" for home in homes)
    for name, module in list(sys.modules.items()):
        for thing in list(vars(module).values()) if name.startswith(prefixes) else ():
            if getattr(thing, "__module__", None) == name:
                if inspect.isclass(thing):
                    yield thing
                    yield from filter(inspect.isfunction, vars(thing).values())
                elif inspect.isfunction(thing):
                    yield thing


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give every class and function of the library another name, module and repr.

    The code of the Gittins index counts as edited: its tables are cached under a digest of it.
    """
    monkeypatch.setattr("bayescontrol.baselines.gittins_table._code", lambda: "edited")
    monkeypatch.setattr("bayescontrol.baselines.gittins_table.folder", lambda: tmp_path)
    before = [(thing, thing.__name__, thing.__qualname__) for thing in _parts_of_the_library()]
    for thing, name, _ in before:
        monkeypatch.setattr(thing, "__module__", "elsewhere")
        if inspect.isclass(thing) and not issubclass(thing, tuple):
            monkeypatch.setattr(thing, "__repr__", lambda self: "another text")
        thing.__name__, thing.__qualname__ = f"Other{name}", f"Elsewhere.Other{name}"
    yield
    for thing, name, qualname in before:
        thing.__name__, thing.__qualname__ = name, qualname


@pytest.mark.parametrize("snapshots", ["all", "none"])
@pytest.mark.parametrize(("folder", "file"), FIXTURES)
@pytest.mark.usefixtures("renamed")
def test_a_log_opens_after_classes_and_functions_are_renamed(
    tmp_path: Path, folder: str, file: str, snapshots: str
) -> None:
    url = copy_store(LOGS / folder / f"{file}.db", tmp_path, snapshots)
    broken = {}
    with closing(open_store(url, durable=False)) as store:
        for name, result in expected(folder, file).items():
            try:
                with open_agent(store, name, named.model_of(file, name)) as agent:
                    require_expected(agent, result)
                    require_continues(agent, result["then"])
            except (AssertionError, BayesControlError, DamagedSnapshot) as error:
                broken[name] = error
    assert broken == {}


#: Abstract base classes.
_BASES = {CountingAgent, TabularLearner, _Changing}


def _storable_classes() -> set[type]:
    """The classes of agents and beliefs that a durable agent can be made of."""
    verbs = ("observe", "save", "load", "copy")
    return {
        cls
        for cls in _parts_of_the_library()
        if inspect.isclass(cls)
        and all(hasattr(cls, verb) for verb in verbs)
        and (hasattr(cls, "sample") or hasattr(cls, "act"))
    } - _BASES


def test_every_class_of_agents_and_beliefs_declares_its_name_in_the_format() -> None:
    classes = _storable_classes()
    assert len(classes) > 20
    names = {cls: vars(cls).get("format_name") for cls in classes}
    assert [cls for cls, name in names.items() if name is None] == []
    assert len(set(names.values())) == len(names)


def test_every_class_of_agents_and_beliefs_has_a_log_among_the_fixtures() -> None:
    """A new class needs a case in `named.py` and a new file: existing files never change."""
    built = [
        named.model_of(file, name).build()  # type: ignore[union-attr]
        for file, cases in named.FILES.items()
        for name in (cases if file not in named.BUILT_IN else ())
    ]
    built += [case.model.agent() for case in named.CHANGING.values()]
    parts = [part for agent in built for part in (agent, getattr(agent, "belief", None))]
    found = {vars(type(part)).get("format_name") for part in parts}
    assert {vars(cls).get("format_name") for cls in _storable_classes()} - found == set()
