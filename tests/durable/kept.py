"""What is told of an agent whose log is kept, in plain numbers, and whether it is so still."""

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
#: folder -> agent -> what is expected of it
NEWEST: dict[str, dict[str, Any]] = {
    file.parent.name: json.loads(file.read_text()) for file in sorted(LOGS.glob("*/expected.json"))
}
#: What a log of this name was made with; all others say themselves what they are of.
NAMED = "levers"


def levers(names: Sequence[str] = ("left", "right")) -> Model:
    """A model with code of its own: its log holds a fingerprint of the names and the prior."""

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
    """What an agent of this name is opened with."""
    return levers() if name == NAMED else None


def plain(value: Any) -> Any:
    """As JSON has it, but without tags."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def told(agent: DurableAgent) -> dict[str, Any]:
    """What is expected of an agent: its events, its decisions, what it believes."""
    events = list(agent.log())
    return {
        "events": agent.head,
        "posterior": plain(agent.posterior()),
        "decisions": [[e.seq, plain(e.a), e.p] for e in events if isinstance(e, Decided)],
    }


def went_on(agent: DurableAgent, then: dict[str, Any]) -> dict[str, Any]:
    """What it does when its last decision is answered and it is asked again."""
    o = then["answer"]
    assert agent.observe(str(then["n"]), tuple(o) if isinstance(o, list) else o)
    d = agent.act(then["x"], key="after all")
    return {"action": plain(d.action), "probability": d.probability} | told(agent)


def alike(one: Any, two: Any) -> bool:
    """Whether the numbers are the same; another machine's linear algebra has other last bits."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(v, two[name]) for name, v in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, float) and isinstance(two, float | int):
        return isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == two)


def require_kept(store: LogStore, folder: str) -> None:
    """Every agent is what it was, goes on, and is opened again where it then was."""
    assert store.names() == sorted(NEWEST[folder])
    for name, expected in NEWEST[folder].items():
        then = expected["then"]
        with open_agent(store, name, model_of(name)) as agent:
            assert alike(told(agent), {what: expected[what] for what in told(agent)})
            require_drawn_again(agent)
            came = went_on(agent, then)
            assert alike(came, {what: then[what] for what in came})
        with open_agent(store, name, model_of(name)) as agent:
            assert alike(told(agent), {what: then[what] for what in told(agent)})
            require_drawn_again(agent)


def require_drawn_again(agent: DurableAgent) -> None:
    """The log alone leads to the same state, each decision comes out again, answers are known."""
    again, state = replay(agent.log(), agent.model), agent.state()
    decisions = [event for event in agent.log() if isinstance(event, Decided)]
    assert again.drawn == len(decisions)
    assert again.state.keys() == state.keys()
    assert all(again.state[name].tobytes() == v.tobytes() for name, v in state.items())
    for event in decisions[::5]:
        assert plain(agent.explain(str(event.seq)).decision.action) == plain(event.a)
    answered = next(event for event in agent.log() if isinstance(event, Observed))
    assert agent.observe(str(answered.n), answered.o) is False
