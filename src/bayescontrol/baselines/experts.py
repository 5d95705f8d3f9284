"""Fixed mixtures of experts: agents with many controllers and no belief.

    one expert      u = π_m(x)                      right or wrong, for ever
    mean            u = (1/M) Σ_m π_m(x)            where inputs are numbers
    dithered mean   u = π_m(x), m uniform, anew at each step: the same mean, from two actions
    vote            u = arg max_a Σ_m [π_m(x) = a]  ties: the smallest action

An average of controllers is not a controller for the average plant: two experts who push in
opposite directions average to none.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayescontrol.errors import MissingCapability
from bayescontrol.seeding import Stream


def mean_action(actions: Sequence[Any], rng: Stream) -> Any:
    """(1/M) Σ_m a_m.

    >>> mean_action([1.0, 1.0, -1.0, 1.0], rng=None)
    0.5
    """
    mean = np.mean(np.asarray(actions, np.float64), axis=0)
    return mean if mean.ndim else float(mean)


def dithered_mean(actions: Sequence[Any], rng: Stream) -> Any:
    """One of the actions, each as likely: its expectation is the mean.

    >>> dithered_mean([1, 1, 1], Stream(0))
    1
    """
    return actions[rng.integers(len(actions))]


def vote(actions: Sequence[Any], rng: Stream) -> Any:
    """The action of most experts; of equals the smallest.

    >>> vote([0, 1, 1], rng=None), vote([0, 1], rng=None)
    (1, 0)
    """
    counts = Counter(actions)
    most = max(counts.values())
    return min(a for a, n in counts.items() if n == most)


class FixedExperts:
    """An agent that asks all its experts at every step and combines what they say.

    `policies` are functions π_m(x), `combine(actions, rng)` makes one action of theirs; one
    policy alone is an expert on its own. The situation is the last observation.

    >>> agent = FixedExperts([lambda x: -x, lambda x: +x], start=1.0, combine=mean_action)
    >>> agent.act(Stream(0))
    0.0
    """

    def __init__(
        self,
        policies: Sequence[Callable[[Any], Any]],
        start: Any,
        combine: Callable[[Sequence[Any], Stream], Any] = vote,
    ) -> None:
        self.policies = list(policies)
        if not self.policies or not all(map(callable, self.policies)):
            raise MissingCapability(f"policies={policies!r}: at least one, each a function of x")
        self.x, self.combine = start, combine

    def act(self, rng: Stream) -> Any:
        """combine(π_1(x), …, π_M(x))."""
        x = self.x
        return self.combine([policy(x) for policy in self.policies], rng)

    def observe(self, a: Any, o: Any) -> None:
        """x ← o, and nothing is learnt."""
        self.x = o

    def __repr__(self) -> str:
        return f"FixedExperts({len(self.policies)} policies, {self.combine.__name__})"
