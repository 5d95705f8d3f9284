"""Expected values of a fixture log, now and after further steps, as plain JSON values.

events     their number, and a digest of the export
state      names, types and shapes of the arrays, and some of their elements
why        action, probabilities and posterior of some decisions, as returned by `explain`
then       the steps that follow: observations, situations, and the resulting decisions
"""

from hashlib import blake2b
from typing import Any

import numpy as np
from tests.durable.expected_logs import alike, plain

from bayescontrol._arrays import Arrays
from bayescontrol.durable import Decided, DurableAgent
from bayescontrol.durable.events import to_line
from bayescontrol.durable.plain import from_plain

#: Approximate number of elements stored per array, evenly spaced.
_NUMBERS = 12


def rounded(value: Any) -> Any:
    """Round to twelve digits; NaN and infinities become strings, as JSON has no such numbers."""
    if isinstance(value, float):
        return float(f"{value:.12g}") if np.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def numbers(arrays: Arrays) -> dict[str, list[Any]]:
    """Return the type, the shape and some elements of each array."""
    result = {}
    for name, array in sorted(arrays.items()):
        flat = array.ravel()
        part = flat[:: max(1, flat.size // _NUMBERS)]
        result[name] = [array.dtype.str, list(array.shape), rounded(part.tolist())]
    return result


def expected_of(agent: DurableAgent) -> dict[str, Any]:
    """Summarise the agent and its log."""
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
    """Assert that the agent and its log match the fixture."""
    found = expected_of(agent)
    for what, value in found.items():
        assert alike(value, expected[what]), (agent.name, what, value, expected[what])


def require_continues(agent: DurableAgent, steps: list[dict[str, Any]]) -> None:
    """Assert that the recorded next steps are reproduced."""
    for step in steps:
        if "o" in step:
            assert agent.observe(str(step["n"]), from_plain(step["o"]))
        else:
            d = agent.act(from_plain(step["x"]))
            found = {"n": int(d.id), "a": plain(d.action), "p": d.probability}
            assert alike(found, {name: step[name] for name in found}), (agent.name, found, step)
