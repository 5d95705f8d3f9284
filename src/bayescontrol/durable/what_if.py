"""What if another agent had decided? Off-policy estimates of its mean reward from a log.

    w_t = π_t(a_t | x_t) / p_t                         p_t, the probability of a_t, is in the log
    inverse propensity    mean of  w_t r_t
    doubly robust         mean of  Σ_b π_t(b | x_t) r̂_t(b) + w_t (r_t - r̂_t(a_t))

π_t is the other's policy when decision t was taken: a fixed one, or that of an agent which learns
from the same log as it goes. r̂_t, the mean reward of each action so far, knows nothing of r_t, so
both are unbiased for the mean of v_t = Σ_b π_t(b | x_t) E[r_t | x_t, b, past] over the decisions
of the log, whatever r̂_t is worth.

Where the range of rewards is known, the intervals are those of `durable.off_policy`. Decisions
without an answer are left out; that is fair only if whether an answer comes depends neither on
the action nor on the reward.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from bayescontrol.durable.events import Created, Decided, Event, Observed, numbered
from bayescontrol.durable.laws import Decider, Law, Laws, LoggedLaw, as_decider
from bayescontrol.durable.off_policy import Estimate, Guess, Interval, guess
from bayescontrol.durable.plain import shown
from bayescontrol.durable.replay import Source, chosen_model, events_from, first_event
from bayescontrol.durable.worth import Bounds, Worth, known_bounds, required_bounds, reward_of
from bayescontrol.errors import (
    DamagedLog,
    InvalidRequest,
    MissingCapability,
    ModelMismatch,
    counted,
)


@dataclass(frozen=True)
class WhatIf:
    """What the other would have earned a decision, what was earned, and how much that rests on.

    >>> one = Estimate(0.5, 0.1, 0.3, 0.7)
    >>> print(WhatIf(one, one, one, 100, 3, 40.0, 2.0, bounds=(0, 1), whole_law=True))
    mean reward of a decision, with intervals at 95 %
      the other, doubly robust       0.5, between 0.3 and 0.7
      the other, inverse propensity  0.5, between 0.3 and 0.7
      the log                        0.5, between 0.3 and 0.7
    100 decisions answered, 3 not; they tell as much as 40 of the other's own, largest weight 2
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
    #: The range of rewards for which the intervals hold; None: they are normal, and may not.
    bounds: Bounds | None = None
    #: Whether p_t of every action was at hand: if not, the interval cannot make use of r̂, and the
    #: doubly robust estimate has that of inverse propensity.
    whole_law: bool = False
    level: float = 0.95

    def __str__(self) -> str:
        lines = [
            f"mean reward of a decision, with intervals at {100 * self.level:.3g} %",
            f"  the other, doubly robust       {self.doubly_robust}",
            f"  the other, inverse propensity  {self.inverse_propensity}",
            f"  the log                        {self.logged}",
            f"{counted(self.decisions, 'decision')} answered, {self.unanswered} not; they tell as "
            f"much as {self.effective:.0f} of the other's own, largest weight "
            f"{self.largest_weight:.3g}",
        ]
        estimates = self.doubly_robust, self.inverse_propensity
        if self.unsupported > 0.0:
            lines.append(
                f"{100 * self.unsupported:.3g} % of what the other does the log never did: of that "
                "it tells nothing"
            )
        elif self.effective < self.decisions / 10:
            lines.append("the log hardly tried what the other does")
        if self.bounds is None and all(math.isfinite(e.error) for e in estimates):
            lines.append("normal intervals, too narrow where weights are heavy: give bounds=(…, …)")
        elif self.bounds is None:
            lines.append("for an interval that is finite give bounds=(…, …)")
        elif not self.whole_law:
            lines.append("the log's model is not at hand: give model=… for a narrower interval")
        if not all(e.low <= e.mean <= e.high for e in estimates):
            lines.append(
                "a mean outside its interval: few heavy weights moved it; trust the interval"
            )
        return "\n".join(lines)


def what_if(
    events: Source,
    other: Any,
    *,
    reward: Callable[[Any], float] | None = None,
    level: float = 0.95,
    bounds: Bounds | None = None,
    model: Any = None,
) -> WhatIf:
    """How `other` would have fared on the decisions of this log.

    `other` is a problem of this library or a `named_model` (an agent that learns from the log's
    own observations), or a function π(x) -> {b: probability}. `reward(o)` reads the reward off an
    observation: by default o itself, or its first part. `events` are the events, the agent, or
    the file of an export.

    `bounds` are the least and the most that a reward can be. With them each interval holds the
    mean of v_t with probability `level` at least, for any log and any number of decisions. Where
    the log is of a `BernoulliBandit`, `LogisticBandit`, `JointBandit` or `TabularModes` they are
    known. Otherwise intervals are normal,
    infinite where `effective` is 0 or `unsupported` is more than 1 - level.

    `model` is the log's own, needed if it is a `named_model` and `events` are not the agent.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]),
    ...                 seed=1) as agent:
    ...     for _ in range(200):
    ...         d = agent.act()
    ...         _ = agent.observe(d, int(d.action == "red"))
    ...     always_red = what_if(agent, lambda x: {"red": 1.0})
    >>> print(always_red.doubly_robust)
    0.998, between 0.9... and 1
    """
    share: Any = level
    if not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise InvalidRequest(
            f"level={shown(share)}: the share of intervals that hold the truth, 0.95 say"
        )
    if reward is not None and not callable(reward):
        raise InvalidRequest(f"reward={shown(reward)}: a function of the observation")
    given = None if bounds is None else required_bounds(bounds)
    stream = numbered(events_from(events))
    created = first_event(stream)
    chosen = reward or reward_of
    worth = Worth(chosen, given or known_bounds(created, Worth(chosen, None)))
    logged = _logged_law(events, created, model)
    decider = as_decider(other, _actions(created))
    return _Evaluation(decider, worth, None if worth.bounds is None else logged).run(stream, level)


def _actions(created: Created) -> list[Any] | None:
    """What can be done, where the log says so."""
    arms = created.settings.get("arms")
    if type(arms) is int:
        return list(range(arms))
    return list(arms) if isinstance(arms, list | tuple) else None


def _logged_law(source: Source, created: Created, model: Any) -> LoggedLaw | None:
    try:
        return LoggedLaw(chosen_model(source, created, model), created)
    except ModelMismatch:
        if model is not None:
            raise
        return None  # the log says nothing that this release could fold


class _Means:
    """r̂: the mean reward of each action so far, of all actions where one has none, else `start`."""

    def __init__(self) -> None:
        self._sums: dict[Any, tuple[float, int]] = {}
        self._all = (0.0, 0)

    def of(self, a: Any, start: float = 0.0) -> float:
        total, n = self._sums.get(a, self._all)
        return total / n if n else start

    def overall(self, start: float) -> float:
        return self._all[0] / self._all[1] if self._all[1] else start

    def heard(self, a: Any) -> bool:
        return a in self._sums

    def take(self, a: Any, r: float) -> None:
        total, n = self._sums.get(a, (0.0, 0))
        self._sums[a] = (total + r, n + 1)
        self._all = (self._all[0] + r, self._all[1] + 1)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A decision before its answer: all that its terms need but the reward."""

    decided: Decided
    law: Law
    w: float
    #: Σ_b π(b) r̂(b), and r̂(a).
    expected: float
    predicted: float
    #: For the intervals of inverse propensity, doubly robust and logged.
    held: tuple[Guess, Guess, Guess] | None


class _Evaluation:
    def __init__(self, other: Decider, worth: Worth, logged: LoggedLaw | None) -> None:
        self._other, self._worth, self._logged = other, worth, logged
        self._whole_law = logged is not None
        self._means = _Means()
        self._pending: dict[int, _Pending] = {}
        self._mass: dict[Any, float] = {}
        self._laws = Laws(other.law)
        self._terms: tuple[list[float], list[float], list[float]] = ([], [], [])
        self._intervals = Interval(), Interval(), Interval()
        self._weights: list[float] = []

    def run(self, events: Iterable[Event], level: float) -> WhatIf:
        for event in events:
            if isinstance(event, Decided):
                self._decided(event)
            elif isinstance(event, Observed):
                self._observed(event)
        if not self._weights:
            raise InvalidRequest(
                f"the log has {len(self._pending)} decisions and no answer to any: there is "
                "nothing to tell from it yet"
            )
        weights, n = self._weights, len(self._weights)
        most = max(weights)  # by which they are divided: squares of large ones have no number
        squares = math.fsum((w / most) ** 2 for w in weights) if most else 0.0
        effective = math.fsum(w / most for w in weights) ** 2 / squares if squares else 0.0
        unseen = math.fsum(p for a, p in self._mass.items() if not self._means.heard(a))
        ips, dr, logged = (Estimate.of(terms, level) for terms in self._terms)
        if effective == 0.0 or unseen / n > 1.0 - level:
            ips, dr = (Estimate(e.mean, math.inf, -math.inf, math.inf) for e in (ips, dr))
        if self._worth.bounds is not None:
            ips, dr, logged = (
                replace(e, low=self._worth.unscaled(low), high=self._worth.unscaled(high))
                for e, (low, high) in zip(
                    (ips, dr, logged), (one.at(level) for one in self._intervals), strict=True
                )
            )
        return WhatIf(
            ips, dr, logged, n, len(self._pending), effective, max(weights), unseen / n,
            self._worth.bounds, self._whole_law, level,
        )  # fmt: skip

    def _decided(self, d: Decided) -> None:
        if not d.p:
            raise MissingCapability(
                f"decision {d.seq} has no probability in the log: what another would have earned "
                "cannot be told from it"
            )
        law = self._laws.of(d.x)
        w = law.get(d.a, 0.0) / d.p
        if not math.isfinite(w):
            raise DamagedLog(f"decision {d.seq} had probability {d.p}: nothing is ever so rare")
        expected = math.fsum(p * self._means.of(a) for a, p in law.items())
        held = self._held(d, law, w) if self._worth.bounds is not None else None
        self._pending[d.seq] = _Pending(d, law, w, expected, self._means.of(d.a), held)

    def _held(self, d: Decided, law: Law, w: float) -> tuple[Guess, Guess, Guess]:
        whole = None if self._logged is None else self._logged.decided(d)
        self._whole_law &= whole is not None
        scaled, start = self._worth.scaled, self._worth.unscaled(0.5)
        b = [a for a, pi in law.items() if pi > 0.0]
        pi, r_hat = [law[a] for a in b], [scaled(self._means.of(a, start)) for a in b]
        # The log's own p of the action taken: w q(a) <= k to the last digit.
        p = None if whole is None else [d.p or 0.0 if a == d.a else whole.get(a, 0.0) for a in b]
        ips = guess(pi, None, r_hat, None, w)
        dr = ips if p is None else guess(pi, p, r_hat, b.index(d.a) if d.a in b else None, w)
        return ips, dr, guess([1.0], None, [scaled(self._means.overall(start))], 0, 1.0)

    def _observed(self, event: Observed) -> None:
        if event.n not in self._pending:
            raise DamagedLog(f"event {event.seq} answers decision {event.n}, which is not open")
        r = self._worth.of(event.o, f"event {event.seq}")
        one = self._pending.pop(event.n)
        for a, p in one.law.items():
            self._mass[a] = self._mass.get(a, 0.0) + p
        new = (one.w * r, one.expected + one.w * (r - one.predicted), r)
        for terms, term in zip(self._terms, new, strict=True):
            terms.append(term)
        self._weights.append(one.w)
        if one.held is not None:
            for interval, held in zip(self._intervals, one.held, strict=True):
                interval.take(held, self._worth.scaled(r))
        d = one.decided
        self._other.learn(d.x, d.a, event.o)
        self._means.take(d.a, r)
        self._laws.clear()
        if self._logged is not None:
            self._logged.take(event)
