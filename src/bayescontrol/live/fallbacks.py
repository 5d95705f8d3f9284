"""What an agent falls back on: an action, or a policy P(a | x).

    a policy      has act(x, rng), as a mode has, or is a function of (x, rng)
    an action     everything else

What cannot be either is refused when it is given, not when it is needed.
"""

import inspect
from typing import Any

from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import ActionProbabilities
from bayescontrol.seeding import Stream


def as_fallback(fallback: Any) -> Any:
    """The fallback, if it is one.

    >>> as_fallback(7)
    7
    >>> as_fallback(lambda rng: 7)
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: fallback=...: it must take (x, rng), the situation ...
    """
    if isinstance(fallback, type):
        raise MissingCapability(
            f"fallback={fallback.__name__} is a class: make an instance, {fallback.__name__}(...)"
        )
    asked = getattr(fallback, "act", fallback)
    if not callable(asked):
        if asked is not fallback:
            raise MissingCapability(f"fallback={fallback!r}: its act is {asked!r}, no method")
        return fallback
    try:
        inspect.signature(asked).bind(None, None)
    except ValueError:  # built in, and silent about what it takes
        return fallback
    except TypeError:
        raise MissingCapability(
            f"fallback={fallback!r}: it must take (x, rng), the situation and a stream of random "
            "numbers, and give an action. For an agent, which takes (rng) alone, write "
            "lambda x, rng: agent.act(rng); for an action that is a function, lambda x, rng: action"
        ) from None
    return fallback


def fallback_action(fallback: Any, x: Any, rng: Stream) -> Any:
    """a: the action itself, or what the policy does in x.

    >>> fallback_action("stop", 3, Stream(0)), fallback_action(lambda x, rng: -x, 3, Stream(0))
    ('stop', -3)
    """
    if hasattr(fallback, "act"):
        return fallback.act(x, rng)
    return fallback(x, rng) if callable(fallback) else fallback


def fallback_law(fallback: Any, x: Any) -> dict[Any, float]:
    """P(a | x) of the fallback.

    >>> fallback_law("stop", 3)
    {'stop': 1.0}
    """
    if isinstance(fallback, ActionProbabilities):
        return dict(fallback.action_probabilities(x))
    if hasattr(fallback, "act") or callable(fallback):
        raise MissingCapability(
            f"the fallback {fallback!r} acts, but does not say how likely: give it "
            "action_probabilities(x)"
        )
    try:
        return {fallback: 1.0}
    except TypeError:
        raise MissingCapability(
            f"the fallback {fallback!r} cannot be looked up: use a number, a text or a tuple"
        ) from None
