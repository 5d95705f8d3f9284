"""Every problem that describes itself survives: killed, it is bitwise where its log ends."""

import subprocess
import sys
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from tests.durable.test_models import PROBLEMS

from bayescontrol import Stream
from bayescontrol.durable import DurableAgent, open_agent, replay
from bayescontrol.durable.linear import LinearQuadratic
from bayescontrol.durable.models import as_model
from bayescontrol.errors import BadEvidence, BadSituation, FeedbackDue
from bayescontrol.problems.chain import GrowingChain
from bayescontrol.problems.tabular import TabularModes

STEPS = 12


def situation(problem: Any, rng: Stream) -> Any:
    """A context, where there is one to give."""
    features = getattr(problem, "features", None)
    return None if features is None else rng.normal(size=features).tolist()


def observation(problem: Any, agent: DurableAgent, action: Any, x: Any, rng: Stream) -> Any:
    """What may come of an action."""
    if isinstance(problem, TabularModes):
        p = problem.hypothesis[0, 0 if x is None else x, action]
        return int(np.flatnonzero(p)[rng.integers(int((p > 0.0).sum()))])
    if isinstance(problem, GrowingChain):
        t, _, n = problem.advance(x, action, 0)
        return int(action == 0 and n >= problem.required(t))
    if isinstance(problem, LinearQuadratic):
        y = rng.normal(size=len(x)).tolist()
        return y if problem.known is not None else (y, float(x @ x + action @ action))
    match agent.model.name:
        case "gibbs-mdp":
            return (rng.random(), rng.integers(3) if problem.states else f"room {rng.integers(3)}")
        case "categorical-bandit":
            return problem.family.constants[0].item()
        case "gaussian-bandit" | "linear-bandit" | "exponential-bandit":
            return rng.random()
    return rng.integers(2)


def live(problem: Any, agent: DurableAgent, seed: int) -> None:
    """Some decisions, answered; the last is not."""
    rng = Stream(seed)
    for _ in range(STEPS):
        d = agent.act(situation(problem, rng))
        agent.observe(d, observation(problem, agent, d.action, d.situation, rng))
    agent.act(situation(problem, rng))


def digest(agent: DurableAgent) -> str:
    """Of the state, to the last bit."""
    told = blake2b(digest_size=8)
    for name, v in sorted(agent.state().items()):
        told.update(f"{name} {v.dtype} {v.shape}".encode() + v.tobytes())
    return f"{agent.head} {told.hexdigest()}"


_LIFE = """
import os, sys
from bayescontrol.durable import open_agent, open_store
from tests.durable.test_kinds import PROBLEMS, digest, live
store = open_store(sys.argv[1])
for i, (name, problem) in enumerate(PROBLEMS.items()):
    agent = open_agent(store, f"agent-{i}", problem, seed=i)
    live(problem, agent, i)
    print(digest(agent), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A store whose process was killed, and what its agents were when it was."""
    store = f"sqlite:///{tmp_path_factory.mktemp('killed') / 'all.db'}"
    done = subprocess.run(
        [sys.executable, "-c", _LIFE, store], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -9, done.stderr
    return store, dict(zip(PROBLEMS, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", PROBLEMS)
def test_killed_and_opened_by_name_alone_it_is_bitwise_where_its_log_ends(
    killed: tuple[str, dict[str, str]], name: str
) -> None:
    store, digests = killed
    agent_name = f"agent-{list(PROBLEMS).index(name)}"
    with open_agent(store, agent_name) as agent:
        assert digest(agent) == digests[name]
        last = str(agent.head)
        assert agent.explain(last).decision.id == last
        assert replay(agent.log()).posterior() == agent.posterior()
    with open_agent(store, agent_name, PROBLEMS[name]) as agent:  # now from its snapshot
        assert digest(agent) == digests[name]


def test_one_stream_at_a_time_where_the_state_moves() -> None:
    with open_agent("sqlite:///:memory:", "cart", PROBLEMS["linear plant"], seed=0) as agent:
        d = agent.act()
        with pytest.raises(FeedbackDue):
            agent.act()
        assert agent.observe(d, [0.5, 0.25])
        assert np.array_equal(agent.act().situation, [0.5, 0.25])
        assert agent.posterior()["A"]["count"] == 1


def test_unknown_costs_come_with_the_next_state_or_nothing_is_written() -> None:
    with open_agent("sqlite:///:memory:", "cart", PROBLEMS["linear plant, unknown costs"]) as agent:
        d = agent.act()
        for wrong in ([0.5, 0.25], ([0.5], 1.0), ([0.5, 0.25], "dear"), 3, None):
            with pytest.raises(BadEvidence):
                agent.observe(d, wrong)
        assert agent.head == 2
        assert agent.observe(d, ([0.5, 0.25], 1.5))
        assert agent.observe(d, [[0.5, 0.25], 1.5]) is False  # as JSON would have it


def test_the_log_of_planned_modes_holds_their_tables_not_the_plan() -> None:
    model = as_model(PROBLEMS["MDPs"])
    assert model.name == "tabular-modes"
    assert model.settings["policy"] == PROBLEMS["MDPs"].policy.tolist()


def test_a_situation_says_nothing_to_correlated_arms_and_is_refused() -> None:
    with open_agent("sqlite:///:memory:", "arms", PROBLEMS["correlated"], seed=0) as agent:
        with pytest.raises(BadSituation):
            agent.act([1.0])
        assert agent.head == 1
