"""Logs of bandits with tiny prior parameters: logs of version 1 continue in version 1.

New logs have version 2, whose actions follow the logged probabilities.
"""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from tests.durable.expected_logs import LOGS, alike, continued, require_replay_matches, summary
from tests.durable.logs.make_tiny_shapes import BANDITS, HELD
from tests.durable.test_formats import SNAPSHOTS, copy_store

from bayescontrol import GaussianBandit
from bayescontrol.durable import (
    Created,
    DurableAgent,
    export_log,
    open_agent,
    open_store,
    read_log,
    replay,
)
from bayescontrol.durable.events import Event
from bayescontrol.durable.log import LogStore
from bayescontrol.durable.models import Model, as_model, model_of
from bayescontrol.errors import ModelMismatch, QuadratureFailed
from bayescontrol.offpolicy import what_if
from bayescontrol.schedules import Geometric, every_step
from bayescontrol.serve.agents import ServedAgents

OLD: dict[str, Any] = json.loads((LOGS / "v1" / "tiny_shapes.json").read_text())

#: The logs of the kinds that have a version 2.
HAVE_VERSION_2 = [name for name in OLD if name != "categorical"]


def opened(store: LogStore, name: str, by_problem: bool) -> DurableAgent:
    """Open the agent with its problem, or from the log alone."""
    if not by_problem:
        return open_agent(store, name)
    schedule = Geometric(0.5) if name == HELD else every_step
    return open_agent(store, name, BANDITS[name][0], schedule=schedule)


@pytest.mark.parametrize("by_problem", [False, True])
@pytest.mark.parametrize("snapshots", SNAPSHOTS)
def test_a_log_of_version_1_opens_replays_and_continues_in_version_1(
    tmp_path: Path, snapshots: str, by_problem: bool
) -> None:
    """The replay reproduces every decision, including ties among equal doubles."""
    url = copy_store(LOGS / "v1" / "tiny_shapes.db", tmp_path, snapshots)
    with closing(open_store(url)) as store:
        assert store.names() == sorted(OLD)
        for name, expected in OLD.items():
            then = expected["then"]
            assert expected["ties"]
            with opened(store, name, by_problem) as agent:
                assert agent.model.version == agent.created.version == 1
                assert alike(summary(agent), {what: expected[what] for what in summary(agent)})
                require_replay_matches(agent)
                tied = agent.explain(str(expected["ties"][0])).mode.means
                assert np.count_nonzero(tied == tied.max()) > 1
                found = continued(agent, then)
                assert alike(found, {what: then[what] for what in found})
            with opened(store, name, by_problem) as agent:
                assert alike(summary(agent), {what: then[what] for what in summary(agent)})
                require_replay_matches(agent)


def in_version(created: Created, version: int) -> Created:
    """The first event of the same log in another version."""
    return msgspec.structs.replace(created, version=version)


@pytest.fixture(scope="module")
def old_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Event]]:
    """The events of each log of version 1."""
    url = copy_store(LOGS / "v1" / "tiny_shapes.db", tmp_path_factory.mktemp("old"), "all")
    with closing(open_store(url)) as store:
        found = {}
        for name in store.names():
            with open_agent(store, name) as agent:
                found[name] = list(agent.log())
        return found


@pytest.mark.parametrize("name", HAVE_VERSION_2)
def test_version_2_would_have_decided_differently(
    old_logs: dict[str, list[Event]], name: str
) -> None:
    """Otherwise the stored logs would not test the ties of version 1."""
    created, *rest = old_logs[name]
    assert isinstance(created, Created)
    assert replay([created, *rest]).drawn == len(OLD[name]["decisions"])
    with pytest.raises(ModelMismatch, match="drawn again"):
        replay([in_version(created, 2), *rest])


def test_an_export_of_version_1_works_with_replay_and_what_if(
    old_logs: dict[str, list[Event]], tmp_path: Path
) -> None:
    for name in ("bernoulli", "poisson"):
        problem, file = BANDITS[name][0], tmp_path / f"{name}.jsonl"
        export_log(old_logs[name], file)
        for model in (None, problem, as_model(problem)):
            assert replay(read_log(file), model).drawn == len(OLD[name]["decisions"])
            answer = what_if(read_log(file), lambda x: {"red": 1.0}, model=model, bounds=(0, 1))
            assert answer.all_propensities
            assert answer.doubly_robust.mean == pytest.approx(BANDITS[name][1], abs=0.5)


def test_a_server_continues_a_log_of_version_1(tmp_path: Path) -> None:
    url = copy_store(LOGS / "v1" / "tiny_shapes.db", tmp_path, "all")
    model = as_model(BANDITS["bernoulli"][0])

    async def visit() -> tuple[bool, int, Any]:
        agents = ServedAgents(open_store(url))
        served, new = await agents.create("bernoulli", model.name, dict(model.settings), None)
        decision = await served.act(None, None)
        again, _ = await agents.create("bernoulli", model.name, dict(model.settings), None)
        assert again is served
        await agents.close()
        return new, served.agent.model.version, decision.action

    new, version, _ = asyncio.run(visit())
    assert (new, version) == (False, 1)
    with closing(open_store(url)) as store, open_agent(store, "bernoulli") as agent:
        require_replay_matches(agent)


def version_1(problem: Any) -> Model:
    """Return the model of the problem in version 1."""
    model = as_model(problem)
    created = Created(
        seq=1, format=1, model=model.name, version=1, settings=dict(model.settings), seed=0,
        time=0.0,
    )  # fmt: skip
    return model_of(created)


@pytest.mark.parametrize("name", ["bernoulli", "bernoulli, zeros"])
def test_decisions_of_version_2_but_not_1_follow_the_logged_probabilities(name: str) -> None:
    """Chi-square of 6,000 decisions, false alarm 1e-6; version 1 is the planted bug."""
    problem = BANDITS[name][0]
    if name == "bernoulli, zeros":
        problem = type(problem)(3, prior=[(1e-4, 0.1), (5e-4, 7), (1e-3, 0.2)])
    for model, version in ((problem, 2), (version_1(problem), 1)):
        with open_agent("sqlite:///:memory:", "tiny", model, seed=3) as agent:
            assert agent.created.version == agent.model.version == version
            decisions = [agent.act() for _ in range(6000)]
            stated = agent.probabilities()
            assert stated is not None
            actions = [d.action for d in decisions]
            assert all(d.probability == stated[d.action] for d in decisions)
            counts = [actions.count(a) for a in stated]
            found = stats.chisquare(counts, 6000 * np.array(list(stated.values()))).pvalue
            assert (found > 1e-6) == (version == 2)
            assert replay(agent).drawn == 6000


def test_an_agent_acts_before_its_probabilities_are_known() -> None:
    """With unknown variance they are known for alpha >= 1/8; each reward adds 1/2 to alpha."""
    bandit = GaussianBandit(2, sd=None, prior=(0, 1, 0.1, 1))
    with pytest.raises(QuadratureFailed, match=r"arm 0: alpha = 0\.1"):
        bandit.agent().action_probabilities()
    with open_agent("sqlite:///:memory:", "noise", bandit, seed=1) as agent:
        for a in (0, 1):
            first = agent.act()
            assert first.probability is None
            while first.action != a:
                first = agent.act()
            agent.observe(first, 1.0)
        assert agent.act().probability is not None
