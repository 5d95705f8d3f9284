"""Expected utilities of I/O systems by enumeration, for comparison with planners."""

import math
from collections.abc import Callable, Sequence
from typing import Any


def expected_utility(g: Any, utility: Callable[[Any, Any], float], horizon: int) -> float:
    """E_G[Σ_t U(a_t, o_t)] up to a horizon, by enumeration."""

    def value(s: Any, steps_left: int) -> float:
        if steps_left == 0:
            return 0.0
        return math.fsum(
            p * q * (utility(a, o) + value(g.advance(s, a, o), steps_left - 1))
            for a, p in g.action_probabilities(s).items()
            for o, q in g.observation_probabilities(s, a).items()
            if p * q > 0.0
        )

    return value(g.start(), horizon)


def best_utility(
    environment: Any,
    actions: Sequence[Any],
    utility: Callable[[Any, Any], float],
    horizon: int,
) -> float:
    """max over all policies of E[Σ_t U(a_t, o_t)] in a known environment, by enumeration."""

    def value(s: Any, steps_left: int) -> float:
        if steps_left == 0:
            return 0.0
        return max(
            math.fsum(
                q * (utility(a, o) + value(environment.advance(s, a, o), steps_left - 1))
                for o, q in environment.observation_probabilities(s, a).items()
                if q > 0.0
            )
            for a in actions
        )

    return value(environment.start(), horizon)
