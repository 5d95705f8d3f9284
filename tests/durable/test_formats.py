"""The stored formats: logs of every kind, exports and results are read, and continue.

`fixtures/make.py` wrote the files. The dump of PostgreSQL is tested in postgres/test_formats.py.
"""

import inspect
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from tests.durable.fixtures import make
from tests.durable.fixtures.make import FOLDER, NAMED, alike, levers, model_of, plain, summary

from bayescontrol import durable
from bayescontrol.baselines import CountingAgent, TabularLearner
from bayescontrol.beliefs.switching import _Changing
from bayescontrol.durable.events import FORMAT
from bayescontrol.durable.models import KINDS
from bayescontrol.durable.stores.sqlite_file import LAYOUT
from bayescontrol.errors import ModelMismatch
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.runner import run_replicas
from bayescontrol.lab.store import ResultStore, Study, read

#: The expected values of each log.
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())
#: Snapshots of a copy: all, only the older one (behind the log), or none -> those to delete.
SNAPSHOTS = {
    "all": "false",
    "the older": "seq = (SELECT max(seq) FROM snapshots s WHERE s.log = snapshots.log)",
    "none": "true",
}


def copy_store(folder: Path, snapshots: str = "all") -> str:
    """Copy kinds.db with these snapshots only; return its address."""
    path = shutil.copy(FOLDER / "kinds.db", folder)
    with closing(apsw.Connection(str(path))) as db:
        db.execute(f"DELETE FROM snapshots WHERE {SNAPSHOTS[snapshots]}")
    return f"sqlite:///{path}"


def require_replay_matches(agent: durable.DurableAgent) -> None:
    """Assert that a replay reaches the same state and decisions, and observations are known."""
    again, state = durable.replay(agent.log(), agent.model), agent.state()
    decisions = [event for event in agent.log() if isinstance(event, durable.Decided)]
    assert again.drawn == len(decisions)
    assert again.state.keys() == state.keys()
    assert all(again.state[name].tobytes() == v.tobytes() for name, v in state.items())
    for event in decisions[::5]:
        assert plain(agent.explain(str(event.seq)).decision.action) == plain(event.a)
    answered = next(event for event in agent.log() if isinstance(event, durable.Observed))
    assert agent.observe(str(answered.n), answered.o) is False


def require_as_expected(store: durable.LogStore) -> None:
    """Assert that every agent opens with the expected state, continues, and opens again."""
    assert store.names() == sorted(EXPECTED)
    for name, expected in EXPECTED.items():
        then = expected["then"]
        with durable.open_agent(store, name, model_of(name)) as agent:
            assert alike(summary(agent), {what: expected[what] for what in summary(agent)}), name
            require_replay_matches(agent)
            found = make.continued(agent, then)
            assert alike(found, {what: then[what] for what in found}), name
        with durable.open_agent(store, name, model_of(name)) as agent:
            assert alike(summary(agent), {what: then[what] for what in summary(agent)}), name
            require_replay_matches(agent)


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
def test_a_file_opens_with_its_state_and_continues(tmp_path: Path, snapshots: str) -> None:
    with closing(durable.open_store(copy_store(tmp_path, snapshots))) as store:
        require_as_expected(store)


def test_an_export_replays_to_the_expected_posterior_and_equals_the_file(tmp_path: Path) -> None:
    assert {path.stem for path in (FOLDER / "lines").iterdir()} == set(EXPECTED)
    with closing(durable.open_store(copy_store(tmp_path))) as store:
        for name, expected in EXPECTED.items():
            events = list(durable.read_log(FOLDER / "lines" / f"{name}.jsonl"))
            again = durable.replay(events, model_of(name))
            assert (again.events, again.drawn) == (expected["events"], len(expected["decisions"]))
            assert alike(plain(again.posterior()), expected["posterior"])
            with durable.open_agent(store, name, model_of(name)) as agent:
                assert list(map(str, agent.log())) == list(map(str, events))


def test_the_files_hold_every_kind_and_late_and_missing_observations(tmp_path: Path) -> None:
    """A new kind needs a problem in `problems.py`; then run `make.py`."""
    with closing(durable.open_store(copy_store(tmp_path))) as store:
        models = set()
        for name in store.names():
            with durable.open_agent(store, name, model_of(name)) as agent:
                created, *events = agent.log()
                assert isinstance(created, durable.Created)
                assert created.format == FORMAT
                assert (created.fingerprint is not None) == (created.model == NAMED)
                requested = [event.seq for event in events if isinstance(event, durable.Decided)]
                answered = [event.n for event in events if isinstance(event, durable.Observed)]
                assert len(answered) < len(requested)
                assert agent.accepts_late_feedback == (answered != sorted(answered)), name
                models.add(created.model)
            log = store.log(name)
            newest, older, *_ = (snapshot.seq for snapshot in log.snapshots())
            assert older < newest == log.head()
            log.close()
    assert models == {*KINDS, NAMED}
    read_only = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY
    with closing(apsw.Connection(f"file:{FOLDER}/kinds.db?immutable=1", flags=read_only)) as db:
        assert db.pragma("user_version") == LAYOUT


def test_changed_modes_are_detected_by_the_stored_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(ModelMismatch, match="their prior or their update differ"):
        durable.open_agent(copy_store(tmp_path), NAMED, levers(["left", "up"]))


# -- results of the lab ----------------------------------------------------------------------------


def test_a_result_folder_is_read_and_only_new_runs_are_run(tmp_path: Path) -> None:
    folder, experiment, ran = tmp_path / "results", make.paced(), []
    shutil.copytree(FOLDER / "results", folder)
    stored = read(folder).columns

    def run(settings: Any, i: int) -> Columns:
        ran.append(i)
        columns: Columns = experiment.run(settings, i)
        return columns

    settings = experiment.settings(runs=make.RUNS + 2, steps=4)
    with ResultStore(folder, Study.of(experiment, settings, "paced"), keep_stale=True) as store:
        found = run_replicas(replace(experiment, run=run), settings, store=store)
    assert ran == [make.RUNS, make.RUNS + 1]
    expected = run_replicas(experiment, settings)
    for name, values in expected.items():
        assert stored[name].dtype.kind == values.dtype.kind
        np.testing.assert_array_equal(stored[name], values[: make.RUNS])
        np.testing.assert_array_equal(found[name], values)


# -- names in the formats do not depend on names in the code ---------------------------------------


def _parts_of_the_library() -> Iterator[Any]:
    """The classes and functions of the problems, beliefs, agents and schedules."""
    homes = (
        "alarms", "bandits", "bank", "baselines", "beliefs", "finite", "lqr", "mdp", "modes",
        "pomdp", "rule", "schedules", "simulators",
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
def renamed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give every class and function of the library another name, module and repr."""
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
@pytest.mark.usefixtures("renamed")
def test_logs_open_after_classes_and_functions_are_renamed(tmp_path: Path, snapshots: str) -> None:
    with closing(durable.open_store(copy_store(tmp_path, snapshots))) as store:
        require_as_expected(store)


def test_every_class_of_agents_and_beliefs_declares_its_name_in_the_format() -> None:
    verbs, bases = ("observe", "save", "load", "copy"), {CountingAgent, TabularLearner, _Changing}
    classes = {
        cls
        for cls in _parts_of_the_library()
        if inspect.isclass(cls)
        and all(hasattr(cls, verb) for verb in verbs)
        and (hasattr(cls, "sample") or hasattr(cls, "act"))
    } - bases
    assert len(classes) > 20
    names = {cls: vars(cls).get("format_name") for cls in classes}
    assert [cls for cls, name in names.items() if name is None] == []
    assert len(set(names.values())) == len(names)
