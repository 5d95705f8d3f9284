"""Find the compiled loop for an agent and an environment.

A compiled loop contains no mathematics: it calls the kernels that the Python code calls, and gives
the same record and the same final state bit for bit (`testing.check_fused`). `interact` uses it
automatically.

Loops belong to the side of the agent. The class of an agent, of a belief, or of the modes of a
belief declares its loops with a static method `fused_loop(agent, environment)`, which returns a
loop, or None if it has none for this pair. It must check the exact type of the environment, because
a loop does not call methods that a subclass overrides. For the same reason subclasses do not
inherit `fused_loop`; they may declare it again.

An environment that becomes another one during a run has a method `parts(steps)`. It yields each
world and the number of steps in it; the loop of the agent runs once for each of them.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

#: (agent, environment, steps, agent's stream, environment's stream) -> record
CompiledLoop: TypeAlias = Callable[[Any, Any, int, Stream, Stream], Record]


def learner(agent: Any) -> Any:
    """Return the belief of a plain `ControlRule`, or the agent itself if it is of another type."""
    return agent.belief if type(agent) is ControlRule else agent


def find_loop(agent: Any, environment: Any) -> CompiledLoop | None:
    """Return the compiled loop for this pair, or None: then `interact` runs the Python loop.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> find_loop(modes.agent(), modes.environment(0)) is None
    False
    >>> find_loop(object(), object()) is None
    True
    """
    if "parts" in vars(type(environment)):  # an environment that changes during the run
        return None if find_loop(agent, environment.world) is None else _run_parts
    belief = learner(agent)
    for owner in (belief, getattr(belief, "modes", None)):
        finder = vars(type(owner)).get("fused_loop")  # not getattr: subclasses must not inherit it
        loop: CompiledLoop | None = finder and finder(agent, environment)
        if loop is not None:
            return loop
    return None


def _run_parts(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    """Run the loop of the agent in each world of a changing environment."""
    records = list[Record]()
    for world, count in environment.parts(steps):
        loop = find_loop(agent, world)
        assert loop is not None  # the worlds differ in their parameters only
        records.append(loop(agent, world, count, p, q))
    actions = np.concatenate([record.actions for record in records])
    return Record(actions, np.concatenate([record.observations for record in records]))
