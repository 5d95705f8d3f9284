"""What if another agent had decided? Off-policy estimates of its mean reward from a log.

    w_t = π_t(a_t | x_t) / p_t                         p_t, the probability of a_t, is in the log
    inverse propensity    mean of  w_t r_t
    doubly robust         mean of  Σ_a π_t(a | x_t) r̂_t(x_t, a) + w_t (r_t - r̂_t(x_t, a_t))

π_t is the other's policy when decision t was taken: a fixed one, or that of an agent which learns
from the same log as it goes. r̂_t, the mean reward of each action so far, knows nothing of r_t, so
both are unbiased whatever r̂_t is worth: Σ (term - value of π_t) is a martingale. Decisions without
an answer are left out; that is fair only if whether an answer comes does not depend on it.

Overlap: what was never done cannot be told. Where π has more than a share 1 - level of its
probability on actions that no answered decision took, the intervals are infinite.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.durable.models import as_model
from bayescontrol.durable.plain import as_plain, canonical, shown
from bayescontrol.durable.replay import Source, events_from, opening
from bayescontrol.errors import (
    BadEvidence,
    DamagedLog,
    InvalidRequest,
    MissingCapability,
    UnknownAction,
)

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
    #: The share of the other's probability on actions that no answered decision took.
    unsupported: float = 0.0


def what_if(
    events: Source,
    other: Any,
    *,
    reward: Callable[[Any], float] | None = None,
    level: float = 0.95,
) -> WhatIf:
    """How `other` would have fared on the decisions of this log.

    `other` is a problem of this library or a `named_model` (an agent that learns from the log's
    own observations), or a function π(x) -> {a: probability}. `reward(o)` reads the reward off an
    observation: by default o itself, or its first part. `events` are the events, the agent, or
    the file of an export.

    The log must overlap with the other: if no decision did what the other does, `effective` is 0
    or `unsupported` is large, and the intervals are infinite.

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
    if reward is not None and not callable(reward):
        raise InvalidRequest(f"reward={shown(reward)}: a function of the observation")
    stream = events_from(events)
    actions = _actions(opening(stream))
    other_policy = (
        _Fixed(other, actions) if _is_function(other) else _Learner(as_model(other).driver())
    )
    return _Evaluation(other_policy, reward or _reward).run(stream, level)


def _actions(created: Created) -> list[Any] | None:
    """What can be done, where the log says so."""
    arms = created.settings.get("arms")
    if type(arms) is int:
        return list(range(arms))
    return list(arms) if isinstance(arms, list | tuple) else None


def _is_function(other: Any) -> bool:
    return callable(other) and not hasattr(other, "agent")


def _reward(o: Any) -> float:
    first = o[0] if isinstance(o, tuple | list) and o else o
    if isinstance(first, bool | int | float):
        return float(first)
    raise MissingCapability(f"observation {o!r} is no reward: say what it is worth, reward=…")


class _Fixed:
    def __init__(self, policy: Fixed, actions: list[Any] | None) -> None:
        self._policy, self._actions = policy, actions

    def law(self, x: Any) -> Mapping[Any, float]:
        given: Any = self._policy(x)
        where = f"the policy gives {shown(given)} in {shown(x)}"
        if not isinstance(given, Mapping):
            raise InvalidRequest(f"{where}: not probabilities, {{action: probability}}")
        try:
            law = {a: float(p) for a, p in given.items()}
        except (TypeError, ValueError):
            law = {}
        if not (all(p >= 0.0 for p in law.values()) and abs(sum(law.values()) - 1.0) <= 1e-9):
            raise InvalidRequest(f"{where}: not probabilities of sum 1")
        for a, p in law.items():
            if p and self._actions is not None and a not in self._actions:
                raise UnknownAction(
                    f"{where}: action {shown(a)} is none of the log's, {shown(self._actions)}"
                )
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
        law = self._driver.law(self._driver.situation(None if self._driver.context_free else x))
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

    def heard(self, a: Any) -> bool:
        return a in self._sums

    def take(self, a: Any, r: float) -> None:
        total, n = self._sums.get(a, (0.0, 0))
        self._sums[a] = (total + r, n + 1)
        self._all = (self._all[0] + r, self._all[1] + 1)


#: The decision, its weight, Σ_a π r̂, r̂ of its action, and π.
_Pending: TypeAlias = tuple[Decided, float, float, float, Mapping[Any, float]]


class _Evaluation:
    def __init__(self, other: _Fixed | _Learner, reward: Callable[[Any], float]) -> None:
        self._other, self._reward = other, reward
        self._means = _Means()
        self._pending: dict[int, _Pending] = {}
        self._mass: dict[Any, float] = {}
        self._laws: dict[bytes, Mapping[Any, float]] = {}

    def run(self, events: Iterable[Event], level: float) -> WhatIf:
        weighed, robust, logged, weights = [], [], [], []
        for event in events:
            if isinstance(event, Decided):
                self._decided(event)
            elif isinstance(event, Observed):
                d, w, expected, predicted, law = self._answered(event)
                r = self._worth(event)
                for a, p in law.items():
                    self._mass[a] = self._mass.get(a, 0.0) + p
                weighed.append(w * r)
                robust.append(expected + w * (r - predicted))
                logged.append(r)
                weights.append(w)
                self._other.learn(d.x, d.a, event.o)
                self._means.take(d.a, r)
                self._laws.clear()
        if not logged:
            raise InvalidRequest(
                f"the log has {len(self._pending)} decisions and no answer to any: there is "
                "nothing to tell from it yet"
            )
        squares = math.fsum(w * w for w in weights)
        effective = math.fsum(weights) ** 2 / squares if squares else 0.0
        unseen = math.fsum(p for a, p in self._mass.items() if not self._means.heard(a))
        unsupported = unseen / len(logged)
        ips, dr = Estimate.of(weighed, level), Estimate.of(robust, level)
        if effective == 0.0 or unsupported > 1.0 - level:
            ips, dr = (Estimate(e.mean, math.inf, -math.inf, math.inf) for e in (ips, dr))
        return WhatIf(
            ips, dr, Estimate.of(logged, level), len(logged), len(self._pending),
            effective, max(weights), unsupported,
        )  # fmt: skip

    def _answered(self, event: Observed) -> _Pending:
        if event.n not in self._pending:
            raise DamagedLog(f"event {event.seq} answers decision {event.n}, which is not open")
        return self._pending.pop(event.n)

    def _worth(self, event: Observed) -> float:
        given: Any = self._reward(event.o)
        try:
            r = math.nan if isinstance(given, str | bytes) else float(given)
        except (TypeError, ValueError):
            r = math.nan
        if not math.isfinite(r):
            raise BadEvidence(
                f"event {event.seq}: observation {shown(event.o)} is worth {shown(given)}: a "
                "reward is a finite number; say what it is worth, reward=…"
            )
        return r

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
        self._pending[d.seq] = (d, law.get(d.a, 0.0) / d.p, expected, self._means.of(d.a), law)
