"""Agents that never learn: the uniform agent, and fixed combinations of experts.

    uniform         Pr(a_t | ao_<t) = 1 / |A|       Pr(o_t | ao_<t a_t) = 1 / |O|
    one expert      u = π_m(x)
    mean            u = (1/M) Σ_m π_m(x)            for numeric actions
    dithered mean   u = π_m(x), m drawn uniformly at each step: the mean, using the experts' actions
    vote            u = arg max_a Σ_m [π_m(x) = a]  ties: the smallest action

An average of controllers is not a controller for the average plant: two experts that push in
opposite directions average to no action at all.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from bayescontrol.errors import MissingCapability
from bayescontrol.seeding import Stream, StreamLike, require_stream

A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


class UniformSystem(Generic[A, O]):
    """An I/O system without memory, uniform over actions and over observations.

    >>> system = UniformSystem(["left", "right"], range(4))
    >>> system.action_probabilities(system.start())
    {'left': 0.5, 'right': 0.5}
    """

    def __init__(self, actions: Sequence[A], observations: Sequence[O]) -> None:
        for name, symbols in (("actions", actions), ("observations", observations)):
            if len(symbols) == 0 or len(set(symbols)) < len(symbols):
                raise ValueError(
                    f"{name}={symbols!r}: give at least one symbol, and each only once"
                )
        self._actions = dict.fromkeys(actions, 1.0 / len(actions))
        self._observations = dict.fromkeys(observations, 1.0 / len(observations))

    def start(self) -> None:
        """Return None: the system has no state."""

    def action_probabilities(self, s: None) -> dict[A, float]:
        """1 / |A|."""
        return dict(self._actions)

    def observation_probabilities(self, s: None, a: A) -> dict[O, float]:
        """1 / |O|."""
        return dict(self._observations)

    def advance(self, s: None, a: A, o: O) -> None:
        """Return None: the system has no state."""

    def __repr__(self) -> str:
        return (
            f"UniformSystem({len(self._actions)} actions, {len(self._observations)} observations)"
        )


def mean_action(actions: Sequence[Any], rng: Stream) -> Any:
    """Return (1/M) Σ_m a_m.

    >>> mean_action([1.0, 1.0, -1.0, 1.0], rng=None)
    0.5
    """
    mean = np.mean(np.asarray(actions, np.float64), axis=0)
    return mean if mean.ndim else float(mean)


def dithered_mean(actions: Sequence[Any], rng: Stream) -> Any:
    """Draw one of the actions uniformly, so that its expectation is the mean of the actions.

    >>> dithered_mean([1, 1, 1], Stream(0))
    1
    """
    return actions[rng.integers(len(actions))]


def vote(actions: Sequence[Any], rng: Stream) -> Any:
    """Return the most frequent action; in a tie, the smallest of them.

    >>> vote([0, 1, 1], rng=None), vote([0, 1], rng=None)
    (1, 0)
    """
    counts = Counter(actions)
    most_votes = max(counts.values())
    return min(a for a, n in counts.items() if n == most_votes)


class FixedExperts:
    """An agent that queries all its experts at every step and combines their actions.

    `policies` are functions π_m(x); `combine(actions, rng)` turns their actions into one. With a
    single policy the agent is that expert. The situation is the last observation.

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
            raise MissingCapability(
                f"policies={policies!r}: give at least one policy, each a function of x"
            )
        self.x, self.combine = start, combine

    def act(self, rng: StreamLike) -> Any:
        """Return combine([π_1(x), …, π_M(x)], rng)."""
        x = self.x
        return self.combine([policy(x) for policy in self.policies], require_stream(rng))

    def observe(self, a: Any, o: Any) -> None:
        """x ← o; the agent learns nothing."""
        self.x = o

    def __repr__(self) -> str:
        return f"FixedExperts({len(self.policies)} policies, {self.combine.__name__})"
