"""The situation x = T(ao_<t) of an agent: its start and its transition map.

    x_1 = situation        x_{t+1} = advance(x_t, a_t, o_t)

The agent keeps its situation itself. If the situation is the state that the environment shows,
both must start in the same state; otherwise the agent first learns a transition that never
happened.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bayescontrol.errors import BadSituation
from bayescontrol.protocols import A, O

X = TypeVar("X")
F = TypeVar("F", bound=Callable[..., Any])
#: T(x, a, o), the next situation.
Advance: TypeAlias = Callable[[Any, Any, Any], Any]


def accept_late_feedback(advance: F) -> F:
    """Declare that feedback may come late, in any order or never.

    Use it only if observations do not determine the next situation: either the situation never
    changes, or the caller gives it with each decision.
    """
    advance.__dict__["accepts_late_feedback"] = True
    return advance


@accept_late_feedback
def stay(x: X, a: Any, o: Any) -> X:
    """Return x: the situation never changes, T(ao_≤t) = T(ao_<t).

    >>> stay("here", "any action", "any observation")
    'here'
    """
    return x


def as_advance(situation: Any, advance: Advance | None) -> Advance:
    """Return the map T; `stay` if there is no situation. Reject a situation without a map."""
    if advance is None:
        if situation is not None:
            raise BadSituation(
                f"situation={situation!r} without advance: the situation would never change. "
                "Pass advance=, a function (x, a, o) -> next situation, such as "
                "lambda x, a, o: o. If the situation is constant, or you set agent.x yourself, "
                "pass advance=bayescontrol.stay"
            )
        return stay
    if not callable(advance):
        raise TypeError(f"advance={advance!r} must be a function: advance(x, a, o) -> x")
    return advance


def next_situation(advance: Callable[[X, A, O], X], x: X, a: A, o: O) -> X:
    """Return T(x, a, o); raise BadSituation if the situation is lost.

    >>> next_situation(lambda x, a, o: print(o), "here", "go", "there")
    Traceback (most recent call last):
    bayescontrol.errors.BadSituation: advance('here', 'go', 'there') returned None: ...
    """
    y = advance(x, a, o)
    if y is None and x is not None:
        raise lost_situation(x, a, o)
    return y


def lost_situation(x: object, a: object, o: object) -> BadSituation:
    """Return the error for an `advance` that returned None."""
    return BadSituation(
        f"advance({x!r}, {a!r}, {o!r}) returned None: it must return the next situation. "
        "Perhaps a `return` is missing"
    )


def independent_of_feedback(advance: Advance, x: Any) -> bool:
    """Return whether feedback may come late: no observation decides the situation after x.

    A bound method of tabular modes is judged by their `successor` table: every entry must be x, so
    that the situation never changes. Any other `advance` must be marked with the decorator
    `accept_late_feedback`.
    """
    modes = getattr(advance, "__self__", None)  # None if `advance` is not a bound method
    successor = getattr(modes, "successor", None)
    if successor is not None:
        return not np.any(successor != x)
    return bool(getattr(advance, "accepts_late_feedback", False))


def follows_state(advance: F) -> F:
    """Declare that T(x, a, o) is the state that the environment has just shown.

    >>> @follows_state
    ... def last_seen(x, a, o): return o
    >>> last_seen("here", "go", "there")
    'there'
    """
    advance.__dict__["follows_state"] = True
    return advance


def require_same_start(agent: Any, environment: Any) -> None:
    """Raise `BadSituation` if agent and environment start in different states.

    This is checked if the environment declares with `shows_state` that observations show its
    state `x`, and the agent's `advance` declares with `follows_state` that this is the situation.

    >>> from bayescontrol.mdp import chain_mdp, GibbsMDP
    >>> require_same_start(GibbsMDP(2, start=0).agent(), chain_mdp(3).environment(start=1))
    Traceback (most recent call last):
    bayescontrol.errors.BadSituation: the agent starts in state 0, the environment in state 1: ...
    """
    if not getattr(environment, "shows_state", False):
        return
    while hasattr(agent, "agent"):  # unwrap Bumpless or Guarded
        agent = agent.agent
    if getattr(getattr(agent, "advance", None), "follows_state", False):
        x, world_x = agent.x, environment.x
        arrays = isinstance(x, list | np.ndarray) or isinstance(world_x, list | np.ndarray)
        if not (np.array_equal(x, world_x) if arrays else x == world_x):
            raise BadSituation(
                f"the agent starts in state {x!r}, the environment in state {world_x!r}: the "
                "agent would learn a transition that never happened. Create the agent with the "
                "environment's state as its start, or set agent.x to that state"
            )
