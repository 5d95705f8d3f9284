"""Invalid calls of a durable agent raise typed errors and change nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.durable.agents import MEMORY, SHOP, same_state, url
from tests.durable.problems import PROBLEMS

from bayescontrol import BernoulliBandit, JointBandit, LinearBandit, PoissonBandit
from bayescontrol.durable import Decision, DurableAgent, named_model, open_agent, open_store
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    InvalidRequest,
    MissingCapability,
    ModelMismatch,
    StoreFailed,
    UnknownDecision,
    UnknownStore,
)
from bayescontrol.mdp import GibbsMDP
from bayescontrol.schedules import doubling
from bayescontrol.seeding import Stream

NAN = float("nan")
CONTEXTS = LinearBandit(["a", "b"], features=2)
JOINT = JointBandit([[0.9, 0.1], [0.1, 0.9]])


class Case(NamedTuple):
    """A call with wrong values, after one decision; then o is observed."""

    problem: Any
    call: Callable[[DurableAgent, Decision, Any], object]
    wrong: list[Any]
    error: Any
    match: str = "."
    x: Any = None
    o: Any = 1


def act(agent: DurableAgent, d: Decision, x: Any) -> object:
    return agent.act(x)


def probabilities(agent: DurableAgent, d: Decision, x: Any) -> object:
    return agent.probabilities(x)


def observe(agent: DurableAgent, d: Decision, o: Any) -> object:
    return agent.observe(d, o)


IDS = ["", "1", "3", "99", "02", "two", "-2", "2.0", "²", 99, 2.0, True, None, "9" * 10_000]
NO_CONTEXTS = [None, [1.0], [1.0, 2.0, 3.0], "text", [NAN, 1.0], 3.0, [[1.0, 2.0]]]
NO_INDEX = [1, -1, [1.0], "a", True, 0.0]
COSTS = ([0.5, 0.25], ([0.5], 1.0), ([0.5, 0.25], "dear"), 3, None)

CASES = {
    "observe an id": Case(
        SHOP, lambda agent, d, id: agent.observe(id, 1), IDS, UnknownDecision, "no decision"
    ),
    "explain an id": Case(
        SHOP, lambda agent, d, id: agent.explain(id), IDS, UnknownDecision, "no decision"
    ),
    "a reward": Case(
        SHOP, observe, [2, NAN, "yes", None, object(), [1], -1], (BadEvidence, TypeError)
    ),
    "an observation without its cost": Case(
        PROBLEMS["linear plant, unknown costs"], observe, [*COSTS], BadEvidence,
        o=([0.5, 0.25], 1.5),
    ),
    "an observation that is no pair": Case(
        GibbsMDP(2, start="home"), observe, ["no pair"], BadEvidence, o=(1.0, "away")
    ),
    "act in a context": Case(CONTEXTS, act, NO_CONTEXTS, BadSituation, x=[1.0, 2.0]),
    "probabilities in a context": Case(
        CONTEXTS, probabilities, NO_CONTEXTS, BadSituation, x=[1.0, 2.0]
    ),
    "act outside the tables": Case(
        JOINT, act, NO_INDEX, BadSituation, "expected 0, or no situation", x=0
    ),
    "probabilities outside the tables": Case(
        JOINT, probabilities, NO_INDEX, BadSituation, "expected 0, or no situation"
    ),
    "act without contexts": Case(SHOP, act, [3, [1.0], "home"], BadSituation, "uses no situation"),
    "act without contexts, with a key": Case(
        SHOP, lambda agent, d, x: agent.act(x, key="k"), [3, [1.0]], BadSituation, "no situation"
    ),
    "probabilities without contexts": Case(SHOP, probabilities, [3], BadSituation),
    "act, correlated arms": Case(PROBLEMS["correlated"], act, [[1.0]], BadSituation),
    "a key": Case(
        SHOP, lambda agent, d, key: agent.act(key=key),
        ["", "x" * 201, "a\nb", 3, b"k", "k" * 10_000],
        InvalidRequest, "a key is a string of 1 to 200",
    ),
    "the first event to read": Case(
        SHOP, lambda agent, d, start: agent.log(start), [0, -3, 1.5], InvalidRequest,
        "positive integer",
    ),
    "the last event to read": Case(
        SHOP, lambda agent, d, stop: agent.log(1, stop), [0], InvalidRequest, "stop=0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_invalid_call_is_refused_and_changes_nothing(name: str) -> None:
    case = CASES[name]
    with open_agent(MEMORY, "shop", case.problem, seed=1) as agent:
        d = agent.act(case.x)
        state, head = agent.state(), agent.head
        for wrong in case.wrong:
            with pytest.raises(case.error, match=case.match) as caught:
                case.call(agent, d, wrong)
            assert len(str(caught.value)) < 300
            assert same_state(agent, state)
            assert agent.head == head
        assert agent.observe(d, case.o)


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": 1.5}, {"seed": 2**128}, {"snapshot_every": 0}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        open_agent(MEMORY, "shop", SHOP, **options)


def test_a_place_that_cannot_be_written_to_is_refused() -> None:
    for place in ("/proc/shop.db", "/proc/self/shop.db", "/sys/shop.db"):
        with pytest.raises(StoreFailed):
            open_agent(f"sqlite:///{place}", "shop", SHOP)


def test_a_decision_of_another_agent_is_refused() -> None:
    with open_agent(MEMORY, "one", SHOP) as one, open_agent(MEMORY, "two", SHOP) as two:
        d, local = one.act(), two.act()
        with pytest.raises(UnknownDecision, match="'one'"):
            two.observe(d, 1)
        assert two.head == 2
        assert two.observe(local, 1)
    with open_agent(MEMORY, "one", SHOP) as namesake:
        namesake.act()
        with pytest.raises(UnknownDecision, match="the agent that made it"):
            namesake.observe(d, 1)


def test_a_closed_agent_raises_on_every_call(tmp_path: Path) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP)
    d = agent.act()
    agent.close()
    agent.close()
    for use in (
        agent.act, agent.posterior, agent.probabilities, agent.state, agent.snapshot,
        lambda: agent.observe(d, 1), lambda: agent.explain(d), lambda: list(agent.log()),
    ):  # fmt: skip
        with pytest.raises(StoreFailed, match="closed"):
            use()


def mine(**options: Any) -> Any:
    return named_model("mine", build=SHOP.agent, **{"version": 1, **options})


@pytest.mark.parametrize(
    ("model", "other", "difference"),
    [
        (SHOP, BernoulliBandit(["red", "green"]), r"arms: .*'blue'\] in the log, .*'green'\] now"),
        (SHOP, BernoulliBandit(["red", "blue"], prior=(2, 1)), "prior: "),
        (SHOP, PoissonBandit(["red", "blue"]), "model 'bernoulli-bandit', not 'poisson-bandit'"),
        (SHOP, mine(), "not 'mine'"),
        (mine(), mine(version=2), "version 1, not 2"),
        (mine(), mine(settings={"bias": 0.5}), r"bias: not set in the log, 0\.5 now"),
        (mine(), None, "open it with named_model"),
    ],
)
def test_reopening_with_another_model_says_what_differs(
    tmp_path: Path, model: Any, other: Any, difference: str
) -> None:
    open_agent(url(tmp_path), "shop", model).close()
    with pytest.raises(ModelMismatch, match=difference):
        open_agent(url(tmp_path), "shop", other)
    with pytest.raises(ModelMismatch, match="seed"):
        open_agent(url(tmp_path), "shop", model, seed=1)
    if model is SHOP:
        with pytest.raises(ModelMismatch, match="schedule"):
            open_agent(url(tmp_path), "shop", SHOP, schedule=doubling)
        open_agent(url(tmp_path), "shop", BernoulliBandit(["red", "blue"], prior=(1, 1))).close()


def test_agents_that_cannot_be_saved_are_refused_before_a_log_is_created(tmp_path: Path) -> None:
    class Bare:
        def act(self, rng: Stream) -> int:
            return 0

        def observe(self, a: int, o: int) -> None: ...

    for model, error, why in (
        (None, UnknownStore, "no agent 'shop': pass a model"),
        (named_model("bare", version=1, build=Bare), MissingCapability, r"copy\(\), save\(\)"),
        (SHOP.agent(), MissingCapability, "named_model"),
    ):
        with pytest.raises(error, match=why):
            open_agent(url(tmp_path), "shop", model)
    store = open_store(url(tmp_path))
    assert store.names() == []
    store.close()
