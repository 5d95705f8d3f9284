"""Compiled loops for pairs of agent and environment.

A fused loop holds no mathematics: it calls the kernels that the readable code calls, and
gives the same record and the same final state to the last bit (a law in `testing`).
`interact` finds it here, so the user's call never changes.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.problems.tabular import TabularEnvironment, fused_loop
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

__all__ = ["Loop", "find_loop", "register_loop"]

#: (agent, environment, steps, agent's stream, environment's stream) -> record
Loop: TypeAlias = Callable[[Any, Any, int, Stream, Stream], Record]

#: (belief type, environment type) -> (agent, environment) -> the loop for them, or None
_LOOPS: dict[tuple[type, type], Callable[[Any, Any], Loop | None]] = {
    (FiniteBelief, TabularEnvironment): fused_loop,
}


def register_loop(
    belief: type, environment: type, finder: Callable[[Any, Any], Loop | None]
) -> None:
    """For rules with this belief in this environment, ask `finder(agent, environment)`.

    >>> class World:
    ...     def respond(self, a, rng): return a
    >>> register_loop(FiniteBelief, World, lambda agent, world: None)
    """
    _LOOPS[belief, environment] = finder


def find_loop(agent: Any, environment: Any) -> Loop | None:
    """The compiled loop for this pair, or None: then `interact` runs the readable one.

    >>> find_loop(object(), object()) is None
    True
    """
    if type(agent) is not ControlRule:
        return None
    finder = _LOOPS.get((type(agent.belief), type(environment)))
    return finder(agent, environment) if finder else None
