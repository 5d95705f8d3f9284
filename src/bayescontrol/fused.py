"""Compiled loops for pairs of agent and environment.

A fused loop holds no mathematics: it calls the kernels that the readable code calls, and
gives the same record and the same final state to the last bit (a law in `testing`).
`interact` finds it here, so the user's call never changes.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.problems import parametric_loop, tabular
from bayescontrol.problems.bandits import (
    ArmsBelief,
    ArmsEnvironment,
    LinearBelief,
    LinearEnvironment,
    bandit,
    linear_world,
)
from bayescontrol.problems.parametric import ParametricEnvironment
from bayescontrol.problems.tabular import TabularEnvironment
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

__all__ = ["Loop", "find_loop", "register_loop"]

#: (agent, environment, steps, agent's stream, environment's stream) -> record
Loop: TypeAlias = Callable[[Any, Any, int, Stream, Stream], Record]

#: (a rule's belief type or an agent's own, environment type) -> what finds the loop for a pair
_LOOPS: dict[tuple[type, type], Callable[[Any, Any], Loop | None]] = {
    (FiniteBelief, TabularEnvironment): tabular.fused_loop,
    (FiniteBelief, ParametricEnvironment): parametric_loop.fused_loop,
    (ArmsBelief, ArmsEnvironment): bandit.fused_loop,
    (LinearBelief, LinearEnvironment): linear_world.fused_loop,
}


def register_loop(
    belief: type, environment: type, finder: Callable[[Any, Any], Loop | None]
) -> None:
    """For rules with this belief, or agents of this type, ask `finder(agent, environment)`.

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
    kind = type(agent.belief) if type(agent) is ControlRule else type(agent)
    finder = _LOOPS.get((kind, type(environment)))
    return finder(agent, environment) if finder else None
