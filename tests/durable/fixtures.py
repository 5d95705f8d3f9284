"""What is expected of a log in a fixture, now and after further steps, in plain JSON values.

events     their number, and a digest of the export: equal to the last byte
state      names, types and shapes of the arrays, and some of their numbers
why        action, probabilities and posterior of some decisions, as `explain` tells them
then       the steps that follow: answers, questions, and the decisions that come of them
"""

from hashlib import blake2b
from typing import Any

import numpy as np
from tests.durable.expected_logs import alike, plain

from bayescontrol.arrays import Arrays
from bayescontrol.durable import Decided, DurableAgent
from bayescontrol.durable.events import to_line
from bayescontrol.durable.plain import from_plain

#: About how many numbers of an array are written down, spread over it.
_NUMBERS = 12


def rounded(value: Any) -> Any:
    """To twelve digits; NaN and infinities as texts, which JSON can hold."""
    if isinstance(value, float):
        return float(f"{value:.12g}") if np.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def numbers(arrays: Arrays) -> dict[str, list[Any]]:
    """Type, shape and some of the numbers of each array; texts in full."""
    result = {}
    for name, array in sorted(arrays.items()):
        flat = array.ravel()
        part = flat[:: max(1, flat.size // _NUMBERS)]
        result[name] = [array.dtype.str, list(array.shape), rounded(part.tolist())]
    return result


def expected_of(agent: DurableAgent) -> dict[str, Any]:
    """What the agent says of itself and of its log."""
    events = list(agent.log())
    decisions = [str(event.seq) for event in events if isinstance(event, Decided)]
    lines = "\n".join(map(to_line, events))
    return {
        "model": [agent.model.name, agent.model.version, agent.created.fingerprint],
        "alone": agent.accepts_late_feedback,
        "events": [agent.head, blake2b(lines.encode(), digest_size=16).hexdigest()],
        "posterior": rounded(plain(agent.posterior())),
        "state": numbers(agent.state()),
        "why": {n: _why(agent, n) for n in decisions[1::5]},
    }


def _why(agent: DurableAgent, n: str) -> list[Any]:
    why = agent.explain(n)
    result = why.decision.action, why.probabilities, why.posterior
    return [rounded(plain(part)) for part in result]


def require_expected(agent: DurableAgent, expected: dict[str, Any]) -> None:
    """Assert that the agent and its log are as the fixture says."""
    found = expected_of(agent)
    for what, value in found.items():
        assert alike(value, expected[what]), (agent.name, what, value, expected[what])


def require_goes_on(agent: DurableAgent, steps: list[dict[str, Any]]) -> None:
    """Assert that the steps that followed then come out again."""
    for step in steps:
        if "o" in step:
            assert agent.observe(str(step["n"]), from_plain(step["o"]))
        else:
            d = agent.act(from_plain(step["x"]))
            found = {"n": int(d.id), "a": plain(d.action), "p": d.probability}
            assert alike(found, {name: step[name] for name in found}), (agent.name, found, step)
