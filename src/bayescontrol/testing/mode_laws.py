"""Laws of a single mode: what it says are probabilities, and its past stays as it was.

    Σ_a P(a | m, x) = 1        Σ_o P(o | m, x, a) = 1        s' = advance(s, a, o), s unchanged

They look at what a mode offers: exact probabilities and a private state are capabilities.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import ActionProbabilities, ObservationProbabilities, Stateful
from bayescontrol.testing.state import Event, require
from bayescontrol.values import pack


def check_mode(mode: Any, history: Sequence[Event], who: str = "the mode") -> None:
    """Laws 1 and 7 for one mode, in the situations of a history: sums of one, states kept.

    >>> class Greedy:
    ...     def action_probabilities(self, x): return {"left": 0.7, "right": 0.7}
    >>> check_mode(Greedy(), [(None, "left", 1)])
    Traceback (most recent call last):
    bayescontrol.testing.state.LawBroken: the policy of the mode sums to 1.4 in situation None
    """
    s = mode.start() if isinstance(mode, Stateful) else None
    for x, a, o in history:
        here = s if isinstance(mode, Stateful) else x
        if isinstance(mode, ActionProbabilities):
            total = sum(mode.action_probabilities(here).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the policy of {who} sums to {total:.9g} in situation {here!r}",
            )
        if isinstance(mode, ObservationProbabilities):
            total = sum(mode.observation_probabilities(here, a).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the hypothesis of {who} sums to {total:.9g} in situation {here!r} "
                f"after action {a!r}",
            )
        if isinstance(mode, Stateful):
            before = deepcopy(s)
            after = mode.advance(s, a, o)
            require(
                pack(before, "the state").tobytes() == pack(s, "the state").tobytes(),
                f"advance({before!r}, {a!r}, {o!r}) of {who} changed the state it was given: "
                "return a new one",
            )
            s = after
