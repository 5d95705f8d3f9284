"""Agents that explore in durable logs: the probability of each action is stored and replayed."""

from typing import Any

import msgspec
import pytest
from tests.exploration.motor import COMMANDS, motor, motor_belief

from bayescontrol import ContextTrees, JointBandit, Stream, pomdp
from bayescontrol.durable import Decided, DurableAgent, named_model, open_agent, replay
from bayescontrol.errors import MissingCapability, ModelMismatch
from bayescontrol.exploration import ExploringRule, Falling, Remedy
from bayescontrol.schedules import Every, every_step

TIGER = pomdp.tiger()
TREES = ContextTrees(
    list(TIGER.actions),
    {"heard": list(TIGER.observations), "reward": [-100, -1, 10]},
    depth=5,
    exploration=Falling(20),
    remedy=Remedy(share=0.5, steps=4, chance=0.5),
)
MEMORY = "sqlite:///:memory:"


def run(agent: DurableAgent, steps: int, world: Any) -> list[float | None]:
    """Act and observe; return the stored probabilities."""
    rng = Stream(0)
    for _ in range(steps):
        d = agent.act()
        agent.observe(d, world.respond(d.action, rng))
    return [event.p for event in agent.log() if isinstance(event, Decided)]


def motor_model() -> Any:
    """A finite class with private states, and the remedy."""
    return named_model(
        "motor", version=1,
        build=lambda: ExploringRule(
            motor_belief(5), COMMANDS, exploration=Falling(10),
            remedy=Remedy(share=0.5, steps=6, chance=0.5),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "world"),
    [(TREES, TIGER.environment), (motor_model(), lambda: motor(5))],
    ids=["trees", "motor"],
)
def test_the_probability_of_each_action_is_stored_and_replayed(
    tmp_path: Any, model: Any, world: Any
) -> None:
    """Also in an agent that is opened again from a snapshot, within a remedy or not."""
    url, built = f"sqlite:///{tmp_path}/log.db", model is TREES
    options: dict[str, Any] = {"schedule": Every(3)} if built else {}
    with open_agent(url, "a", model, seed=3, snapshot_every=10, **options) as agent:
        stored = run(agent, 30, world())
        assert None not in stored
        assert len(set(stored)) > 5
        again = replay(agent.log(), None if built else model)
        assert again.drawn == 30
    with open_agent(url, "a", None if built else model) as agent:
        both = run(agent, 10, world())
        explained = agent.explain(next(e.seq for e in agent.log() if isinstance(e, Decided)))
        assert explained.probabilities is not None
        assert sum(explained.probabilities.values()) == pytest.approx(1.0)
    with open_agent(MEMORY, "a", model, seed=3, **options) as agent:
        whole = run(agent, 30, world())
        assert whole == stored
    assert both[:30] == stored


def test_a_log_with_another_probability_is_refused() -> None:
    with open_agent(MEMORY, "a", TREES, seed=1) as agent:
        run(agent, 5, TIGER.environment())
        events = [
            msgspec.structs.replace(e, p=0.123) if isinstance(e, Decided) and e.seq > 8 else e
            for e in agent.log()
        ]
    for draw in (True, False):
        with pytest.raises(ModelMismatch, match=r"had probability 0\.123"):
            replay(events, draw=draw)


def test_where_feedback_may_come_late_only_probabilities_over_all_modes_are_stored() -> None:
    """Other policies may be compared with them, which a held mode would never follow."""

    def build(schedule: Any, **options: Any) -> Any:
        bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])
        return named_model(
            "joint", version=1,
            build=lambda: ExploringRule.of(bandit.agent(schedule=schedule), 2, **options),
        )  # fmt: skip

    with open_agent(MEMORY, "a", build(every_step, exploration=lambda t: 0.2), seed=0) as agent:
        d = agent.act()
        assert d.probability == 0.5
    for model in (build(Every(2)), build(every_step, remedy=Remedy())):
        with open_agent(MEMORY, "a", model, seed=0) as agent:
            assert agent.act().probability is None


def test_exploration_that_is_code_has_no_place_in_a_log() -> None:
    problem = ContextTrees(2, {"reward": [0, 1]}, exploration=lambda t: 0.1)
    with pytest.raises(MissingCapability, match="named_model"):
        open_agent(MEMORY, "a", problem)
