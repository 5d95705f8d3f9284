"""The situation x = T(ao_<t): how it moves on, and where it starts.

    x_1 = situation        x_{t+1} = advance(x_t, a_t, o_t)

The agent owns its situation. Where the world shows its state and the agent's situation is that
state, both must start in the same one: otherwise the first thing learnt is a transition that
never happened.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bayescontrol.errors import BadSituation

X = TypeVar("X")
F = TypeVar("F", bound=Callable[..., Any])
#: T(x, a, o), the next situation.
Advance: TypeAlias = Callable[[Any, Any, Any], Any]


def stay(x: X, a: Any, o: Any) -> X:
    """T(ao_≤t) = T(ao_<t): the situation never changes.

    >>> stay("here", "any action", "any observation")
    'here'
    """
    return x


def as_advance(situation: Any, advance: Advance | None) -> Advance:
    """The map T, or `stay` where there is no situation. A situation needs a map.

    >>> as_advance(None, None) is stay
    True
    >>> as_advance(5.0, None)
    Traceback (most recent call last):
    bayescontrol.errors.BadSituation: situation=5.0 without advance: ...
    """
    if advance is None:
        if situation is not None:
            raise BadSituation(
                f"situation={situation!r} without advance: the agent would take itself to be "
                "there for ever. Pass advance=, a function of (x, a, o) that returns the next "
                "situation, such as lambda x, a, o: o; if the situation never changes, or you set "
                "agent.x yourself, pass advance=stay (from bayescontrol.rule)"
            )
        return stay
    if not callable(advance):
        raise TypeError(f"advance={advance!r} must be a function: advance(x, a, o) -> x")
    return advance


def follows_state(advance: F) -> F:
    """Declare that T(x, a, o) is the state that the world has just shown.

    >>> @follows_state
    ... def last_seen(x, a, o): return o
    >>> last_seen("here", "go", "there")
    'there'
    """
    advance.__dict__["follows_state"] = True
    return advance


def require_same_start(agent: Any, environment: Any) -> None:
    """Refuse an agent whose situation is the world's state, but another one than the world's.

    The world says by `shows_state` that its observations show its state `x`; the agent's map
    `advance` says by `follows_state` that its situation `x` is that state.

    >>> from bayescontrol.mdp import chain_mdp, mdp_agent
    >>> require_same_start(mdp_agent(2, start=0), chain_mdp(3).environment(start=1))
    Traceback (most recent call last):
    bayescontrol.errors.BadSituation: the agent is in 0, the world in 1: ...
    """
    if not getattr(environment, "shows_state", False):
        return
    while hasattr(agent, "agent"):  # wrapped
        agent = agent.agent
    if getattr(getattr(agent, "advance", None), "follows_state", False):
        here, there = agent.x, environment.x
        arrays = isinstance(here, list | np.ndarray) or isinstance(there, list | np.ndarray)
        if not (np.array_equal(here, there) if arrays else here == there):
            raise BadSituation(
                f"the agent is in {here!r}, the world in {there!r}: the agent would learn a "
                "transition that never happened. Make the agent with the world's state as its "
                "start, or, if it has learnt already, set agent.x to the world's state"
            )
