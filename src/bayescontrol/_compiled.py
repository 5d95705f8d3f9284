"""Find the compiled loop for an agent and an environment.

A compiled loop contains no mathematics: it calls the kernels that the Python code calls, and gives
the same record and the same final state bit for bit (`testing.check_fused`). `interact` uses it
automatically.

The class of an agent, of a belief or of an environment declares its loops with a static method
`fused_loop(agent, environment)`, which returns a loop, or None if it has none for this pair. It
must check the exact type of the other side, because a loop does not call methods that a subclass
overrides. For the same reason subclasses do not inherit `fused_loop`; they may declare it again.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

#: (agent, environment, steps, agent's stream, environment's stream) -> record
Loop: TypeAlias = Callable[[Any, Any, int, Stream, Stream], Record]


def learner(agent: Any) -> Any:
    """Return the belief of a plain `ControlRule`, or the agent itself if it is of another type."""
    return agent.belief if type(agent) is ControlRule else agent


def find_loop(agent: Any, environment: Any) -> Loop | None:
    """Return the compiled loop for this pair, or None: then `interact` runs the Python loop.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> find_loop(modes.agent(), modes.environment(0)) is None
    False
    >>> find_loop(object(), object()) is None
    True
    """
    for owner in (type(learner(agent)), type(environment)):
        finder = vars(owner).get("fused_loop")  # not getattr: subclasses must not inherit it
        loop: Loop | None = finder and finder(agent, environment)
        if loop is not None:
            return loop
    return None
