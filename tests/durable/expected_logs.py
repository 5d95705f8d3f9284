"""Compare agents that are opened from stored logs with the results stored beside them."""

import json
from collections.abc import Sequence
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
from bayescontrol.durable import (
    Decided,
    DurableAgent,
    LogStore,
    Model,
    Observed,
    named_model,
    open_agent,
    replay,
)

LOGS = Path(__file__).parent / "logs"
#: folder -> agent -> its expected results
NEWEST: dict[str, dict[str, Any]] = {
    file.parent.name: json.loads(file.read_text()) for file in sorted(LOGS.glob("*/expected.json"))
}
#: The log of a named model; all other logs are of built-in models.
NAMED = "levers"
#: Logs whose likelihoods call NumPy's exp. Its last bit depends on the processor: a snapshot of
#: another machine need not equal a replay bit for bit.
CALLS_NUMPY = ("particles", "resample-move")


def levers(names: Sequence[str] = ("left", "right")) -> Model:
    """A named model: its log holds a fingerprint of the names and the prior."""

    def lever(good: str) -> DiscreteMode[Any, Any, Any]:
        return DiscreteMode(
            lambda x: {good: 0.9, "none": 0.1},
            lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8},
            good,
        )

    def build() -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(FiniteBelief([lever(name) for name in names], [1 / 3, 2 / 3]))

    return named_model(NAMED, version=3, build=build, settings={"bias": 0.1})


def model_of(name: str) -> Model | None:
    """Return the model to open the agent with; None for a built-in model."""
    return levers() if name == NAMED else None


def plain(value: Any) -> Any:
    """Convert to plain JSON values, without type tags."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def summary(agent: DurableAgent) -> dict[str, Any]:
    """Return the number of events, the posterior and the decisions of an agent."""
    events = list(agent.log())
    return {
        "events": agent.head,
        "posterior": plain(agent.posterior()),
        "decisions": [[e.seq, plain(e.a), e.p] for e in events if isinstance(e, Decided)],
    }


def continued(agent: DurableAgent, then: dict[str, Any]) -> dict[str, Any]:
    """Observe the last decision, act again, and return the decision and the new summary."""
    o = then["answer"]
    assert agent.observe(str(then["n"]), tuple(o) if isinstance(o, list) else o)
    d = agent.act(then["x"], key="after all")
    return {"action": plain(d.action), "probability": d.probability} | summary(agent)


def alike(one: Any, two: Any) -> bool:
    """Compare, up to the last bits: linear algebra differs between machines."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(v, two[name]) for name, v in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, float) and isinstance(two, float | int):
        return isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == two)


def require_as_expected(store: LogStore, folder: str) -> None:
    """Assert that every agent opens with the expected state, continues, and opens again."""
    assert store.names() == sorted(NEWEST[folder])
    for name, expected in NEWEST[folder].items():
        then = expected["then"]
        with open_agent(store, name, model_of(name)) as agent:
            assert alike(summary(agent), {what: expected[what] for what in summary(agent)})
            require_replay_matches(agent)
            found = continued(agent, then)
            assert alike(found, {what: then[what] for what in found})
        with open_agent(store, name, model_of(name)) as agent:
            assert alike(summary(agent), {what: then[what] for what in summary(agent)})
            require_replay_matches(agent)


def require_replay_matches(agent: DurableAgent) -> None:
    """Assert that a replay reaches the same state and decisions, and observations are known."""
    again, state = replay(agent.log(), agent.model), agent.state()
    decisions = [event for event in agent.log() if isinstance(event, Decided)]
    assert again.drawn == len(decisions)
    assert again.state.keys() == state.keys()
    if agent.name in CALLS_NUMPY:
        assert alike(plain(again.state), plain(state))
    else:
        assert all(again.state[name].tobytes() == v.tobytes() for name, v in state.items())
    for event in decisions[::5]:
        assert plain(agent.explain(str(event.seq)).decision.action) == plain(event.a)
    answered = next(event for event in agent.log() if isinstance(event, Observed))
    assert agent.observe(str(answered.n), answered.o) is False
