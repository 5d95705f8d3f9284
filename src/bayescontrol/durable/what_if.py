"""What if another agent had decided? Off-policy estimates of its mean reward from a log.

    w_t = π_t(a_t | x_t) / p_t                         p_t, the probability of a_t, is in the log
    inverse propensity    mean of  w_t r_t
    doubly robust         mean of  Σ_a π_t(a | x_t) r̂_t(x_t, a) + w_t (r_t - r̂_t(x_t, a_t))

π_t is the other's policy when decision t was taken: a fixed one, or that of an agent which learns
from the same log as it goes. r̂_t, the mean reward of each action so far, knows nothing of r_t, so
both are unbiased whatever r̂_t is worth: Σ (term - value of π_t) is a martingale. Decisions without
an answer are left out; that is fair only if whether an answer comes does not depend on it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Decided, Event, Observed
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, canonical
from bayescontrol.durable.replay import opening
from bayescontrol.errors import MissingCapability

__all__ = ["Estimate", "WhatIf", "what_if"]

#: π(x) -> {a: P(a | x)}
Fixed: TypeAlias = Callable[[Any], Mapping[Any, float]]


@dataclass(frozen=True)
class Estimate:
    """A mean, its standard error, and the interval at the level asked for.

    >>> Estimate.of([1.0, 0.0, 1.0, 0.0], 0.95)
    Estimate(mean=0.5, error=0.2886..., low=-0.0657..., high=1.0657...)
    """

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, terms: list[float], level: float) -> "Estimate":
        """By the central limit theorem for martingales: normal, with the terms' own spread."""
        n = len(terms)
        mean = math.fsum(terms) / n if n else math.nan
        spread = math.fsum((t - mean) ** 2 for t in terms)
        error = math.sqrt(spread / (n - 1) / n) if n > 1 else math.inf
        z = NormalDist().inv_cdf(0.5 + level / 2)
        return cls(mean, error, mean - z * error, mean + z * error)


@dataclass(frozen=True)
class WhatIf:
    """What the other would have earned a decision, what was earned, and how much that rests on.

    >>> one = Estimate(0.5, 0.1, 0.3, 0.7)
    >>> WhatIf(one, one, one, 100, 3, 40.0, 2.0).decisions
    100
    """

    inverse_propensity: Estimate
    doubly_robust: Estimate
    #: What was earned in fact.
    logged: Estimate
    #: Decisions with an answer.
    decisions: int
    #: Decisions without one.
    unanswered: int
    #: (Σ w)² / Σ w²: so many decisions of the other's own would tell as much, roughly.
    effective: float
    largest_weight: float


def what_if(
    events: Iterable[Event],
    other: Any,
    *,
    reward: Callable[[Any], float] | None = None,
    level: float = 0.95,
) -> WhatIf:
    """How `other` would have fared on the decisions of this log.

    `other` is a problem of this library or a `named_model` (an agent that learns from the log's
    own observations), or a function π(x) -> {a: probability}. `reward(o)` reads the reward off an
    observation: by default o itself, or its first part.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]),
    ...                 seed=1) as agent:
    ...     for _ in range(200):
    ...         d = agent.act()
    ...         _ = agent.observe(d, int(d.action == "red"))
    ...     always_blue = what_if(agent.log(), lambda x: {"blue": 1.0})
    >>> always_blue.doubly_robust.mean, always_blue.decisions
    (0.0, 200)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level}: the share of intervals that hold the truth, 0.95 say")
    stream = iter(events)
    opening(stream)
    other_policy = _Fixed(other) if _is_function(other) else _Learner(as_model(other).driver())
    return _Evaluation(other_policy, reward or _reward).run(stream, level)


def _is_function(other: Any) -> bool:
    return callable(other) and not hasattr(other, "agent")


def _reward(o: Any) -> float:
    first = o[0] if isinstance(o, tuple | list) and o else o
    if isinstance(first, bool | int | float):
        return float(first)
    raise MissingCapability(f"observation {o!r} is no reward: say what it is worth, reward=…")


class _Fixed:
    def __init__(self, policy: Fixed) -> None:
        self._policy = policy

    def law(self, x: Any) -> Mapping[Any, float]:
        law = self._policy(x)
        if abs(sum(law.values()) - 1.0) > 1e-9 or min(law.values()) < 0.0:
            raise ValueError(f"the policy gives {dict(law)!r} in {x!r}: not probabilities of sum 1")
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """A fixed policy does not."""


class _Learner:
    def __init__(self, driver: Driver) -> None:
        if not driver.alone:
            raise MissingCapability(
                "an agent that moves by its observations cannot learn from the path of another: "
                "what-if needs feedback that stands alone"
            )
        self._driver = driver

    def law(self, x: Any) -> Mapping[Any, float]:
        law = self._driver.law(self._driver.situation(x))
        if law is None:
            raise MissingCapability(
                f"{self._driver.agent!r} has no exact action probabilities: give a function "
                "π(x) -> {action: probability}"
            )
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        self._driver.learn(x, a, o)


class _Means:
    """r̂: the mean reward of each action so far, of all actions where one has none."""

    def __init__(self) -> None:
        self._sums: dict[Any, tuple[float, int]] = {}
        self._all = (0.0, 0)

    def of(self, a: Any) -> float:
        total, n = self._sums.get(a, self._all)
        return total / n if n else 0.0

    def take(self, a: Any, r: float) -> None:
        total, n = self._sums.get(a, (0.0, 0))
        self._sums[a] = (total + r, n + 1)
        self._all = (self._all[0] + r, self._all[1] + 1)


class _Evaluation:
    def __init__(self, other: _Fixed | _Learner, reward: Callable[[Any], float]) -> None:
        self._other, self._reward = other, reward
        self._means = _Means()
        self._pending: dict[int, tuple[Decided, float, float, float]] = {}
        self._laws: dict[bytes, Mapping[Any, float]] = {}

    def run(self, events: Iterable[Event], level: float) -> WhatIf:
        weighed, robust, logged, weights = [], [], [], []
        for event in events:
            if isinstance(event, Decided):
                self._decided(event)
            elif isinstance(event, Observed):
                d, w, expected, predicted = self._pending.pop(event.n)
                r = self._reward(event.o)
                weighed.append(w * r)
                robust.append(expected + w * (r - predicted))
                logged.append(r)
                weights.append(w)
                self._other.learn(d.x, d.a, event.o)
                self._means.take(d.a, r)
                self._laws.clear()
        squares = math.fsum(w * w for w in weights)
        return WhatIf(
            Estimate.of(weighed, level), Estimate.of(robust, level), Estimate.of(logged, level),
            len(logged), len(self._pending),
            math.fsum(weights) ** 2 / squares if squares else 0.0, max(weights, default=0.0),
        )  # fmt: skip

    def _decided(self, d: Decided) -> None:
        if not d.p:
            raise MissingCapability(
                f"decision {d.seq} has no probability in the log: what another would have earned "
                "cannot be told from it"
            )
        key = canonical(as_plain(d.x, "the situation"))
        if key not in self._laws:
            self._laws[key] = self._other.law(d.x)
        law = self._laws[key]
        expected = math.fsum(p * self._means.of(a) for a, p in law.items())
        self._pending[d.seq] = (d, law.get(d.a, 0.0) / d.p, expected, self._means.of(d.a))
