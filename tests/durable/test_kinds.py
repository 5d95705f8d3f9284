"""An agent of every built-in kind, killed and reopened, is bitwise at the end of its log."""

import subprocess
import sys

import pytest
from tests.durable.problems import PROBLEMS, digest
from tests.limits import TIMEOUT

from bayescontrol.durable import open_agent, replay
from bayescontrol.durable.models import as_model

_SCRIPT = """
import os, sys
from bayescontrol.durable import open_agent, open_store
from tests.durable.problems import PROBLEMS, digest, live
store = open_store(sys.argv[1])
for i, (name, problem) in enumerate(PROBLEMS.items()):
    agent = open_agent(store, f"agent-{i}", problem, seed=i)
    live(problem, agent, i)
    print(digest(agent), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A store whose process was killed, and the digests of its agents at that time."""
    store = f"sqlite:///{tmp_path_factory.mktemp('killed') / 'all.db'}"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, store], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == -9, done.stderr
    return store, dict(zip(PROBLEMS, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_killed_agent_reopens_by_name_with_bitwise_the_same_state(
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


def test_an_observation_with_its_cost_is_the_same_as_decoded_from_json() -> None:
    with open_agent("sqlite:///:memory:", "cart", PROBLEMS["linear plant, unknown costs"]) as agent:
        d = agent.act()
        assert agent.observe(d, ([0.5, 0.25], 1.5))
        assert agent.observe(d, [[0.5, 0.25], 1.5]) is False


def test_the_log_of_planned_modes_holds_their_tables_not_the_plan() -> None:
    model = as_model(PROBLEMS["MDPs"])
    assert model.name == "tabular-modes"
    assert model.settings["policy"] == PROBLEMS["MDPs"].policy.tolist()
