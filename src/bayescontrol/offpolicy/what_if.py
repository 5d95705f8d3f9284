"""What if another agent had decided? Off-policy estimates of its mean reward from a log.

    w_t = π_t(a_t | x_t) / p_t                         p_t, the propensity of a_t, is in the log
    inverse propensity    mean of  w_t r_t
    doubly robust         mean of  Σ_b π_t(b | x_t) r̂_t(b) + w_t (r_t - r̂_t(a_t))

π_t is the other policy at decision t: a fixed one, or that of an agent which learns from the same
log. r̂_t, the mean reward of each action so far, does not depend on r_t, so both estimates are
unbiased for the mean of v_t = Σ_b π_t(b | x_t) E[r_t | x_t, b, past] over the decisions of the log,
however bad r̂_t is.

The other policy decides among the same eligible actions: an agent takes the best of them, as it
would in the log, and π of a function is divided by its sum over them. Holdout, shares and prices
belong to the policy of the log, and have no effect on the other.

If the range of rewards is known, the intervals are those of `offpolicy.estimators`. Decisions
without an observation are left out. That is unbiased only if the presence of an observation
depends neither on the action nor on the reward. An amended observation counts with its last value.
Standard errors treat a session as one unit, because its decisions depend on each other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from bayescontrol import errors
from bayescontrol._arrays import require_between
from bayescontrol.durable.configuration import Restriction, Terms, first_value
from bayescontrol.durable.decisions import final_answers
from bayescontrol.durable.driver import Driver, ProbabilityCache
from bayescontrol.durable.events import (
    ARM_CHANGES,
    Aggregated,
    ArmChanged,
    Compacted,
    Configured,
    Created,
    Decided,
    Event,
    Observed,
    Probabilities,
    Withdrawn,
)
from bayescontrol.durable.fold import PLAIN, sealed_terms
from bayescontrol.durable.models import KINDS, as_model
from bayescontrol.durable.plain import Value, short_repr
from bayescontrol.durable.replay import EventSource, Replayer, chosen_model, read_history
from bayescontrol.offpolicy.estimators import Guess, RewardEstimate, RewardInterval, guess
from bayescontrol.protocols import Totals

#: The least and the greatest possible reward.
Bounds: TypeAlias = tuple[float, float]
#: Whether a decision may use an action; None if it may use all.
Eligible: TypeAlias = Callable[[Any], bool] | None


@dataclass(frozen=True)
class WhatIf:
    """The estimated mean reward of another policy, beside that of the log.

    >>> one = RewardEstimate(0.5, 0.1, 0.3, 0.7)
    >>> print(WhatIf(one, one, one, 100, 3, 100, 40.0, 2.0, bounds=(0, 1), all_propensities=True))
    mean reward per decision, with 95 % intervals
      other policy, doubly robust       0.5, between 0.3 and 0.7
      other policy, inverse propensity  0.5, between 0.3 and 0.7
      log                               0.5, between 0.3 and 0.7
    100 decisions with an observation, 3 without; effective sample size 40, largest weight 2
    """

    inverse_propensity: RewardEstimate
    doubly_robust: RewardEstimate
    #: The mean reward in the log.
    logged: RewardEstimate
    #: The number of decisions with an observation.
    decisions: int
    #: The number of decisions without an observation.
    unanswered: int
    #: The number of sessions with an observation; a decision without a session is one of its own.
    sessions: int
    #: The effective sample size (Σ w)² / Σ w².
    effective: float
    largest_weight: float
    #: The share of the other policy's probability on actions without any observation.
    unsupported: float = 0.0
    #: The range of rewards. None: it is unknown, and the intervals are normal approximations.
    bounds: Bounds | None = None
    #: Whether p_t of every action is known. Otherwise the interval cannot use r̂, and the doubly
    #: robust estimate has the interval of inverse propensity.
    all_propensities: bool = False
    level: float = 0.95

    def __str__(self) -> str:
        few = self.sessions < self.decisions
        in_sessions = f", in {errors.counted(self.sessions, 'session')}" if few else ""
        lines = [
            f"mean reward per decision, with {100 * self.level:.3g} % intervals",
            f"  other policy, doubly robust       {self.doubly_robust}",
            f"  other policy, inverse propensity  {self.inverse_propensity}",
            f"  log                               {self.logged}",
            f"{errors.counted(self.decisions, 'decision')} with an observation, {self.unanswered} "
            f"without{in_sessions}; effective sample size {self.effective:.0f}, largest weight "
            f"{self.largest_weight:.3g}",
        ]
        estimates = self.doubly_robust, self.inverse_propensity
        if self.unsupported > 0.0:
            lines.append(
                f"the other policy puts {100 * self.unsupported:.3g} % of its probability on "
                "actions without any observation: the log has no data on them"
            )
        elif self.effective < self.decisions / 10:
            lines.append("the log rarely took the actions of the other policy")
        if self.bounds is None and all(math.isfinite(e.error) for e in estimates):
            lines.append(
                "the intervals are normal, too narrow for heavy weights: pass bounds=(…, …)"
            )
        elif self.bounds is None:
            lines.append("pass bounds=(…, …) to get a finite interval")
        elif not self.all_propensities:
            lines.append("the model of the log is unknown: pass model=… to get a narrower interval")
        if not all(e.low <= e.mean <= e.high for e in estimates):
            lines.append(
                "a mean is outside its interval, because few heavy weights dominate it: trust the "
                "interval"
            )
        return "\n".join(lines)


def what_if(
    events: EventSource,
    other: Any,
    *,
    reward: Callable[[Any], float] | None = None,
    level: float = 0.95,
    bounds: Bounds | None = None,
    model: Any = None,
) -> WhatIf:
    """Estimate the mean reward of another policy on the decisions of this log.

    `other` is a problem of this library or a `named_model` (an agent that learns from the log), or
    a function π(x) -> {b: probability}, of which some eligible b must have a positive probability.
    `reward(o)` extracts the reward from an observation; by default it is o itself, or its first
    element. `events` are the events, the agent, or an exported file. Of a compacted log only the
    decisions since then count, and `other` must be a function.

    `bounds` are the least and the greatest possible reward. With them each interval covers the
    mean of v_t with probability at least `level`, for any log and any number of decisions. They
    are known if the log has a `BernoulliBandit`, `LogisticBandit`, `JointBandit` or
    `TabularModes`, or a `reward_range` in its configuration from the beginning. Without bounds the
    intervals are normal, and infinite if `effective` is 0 or `unsupported` is more than 1 - level.

    `model` is the model of the log, needed if it is a `named_model` and `events` are not the agent.

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
    require_between("level", level, 0.0, 1.0, ends="()")
    if reward is not None and not callable(reward):
        raise errors.InvalidRequest(
            f"reward={short_repr(reward)}: expected a function of the observation"
        )
    rewards = RewardFunction(reward or first_number, bounds)
    created, rest = read_history(events)
    history = list(rest)
    terms = sealed_terms(history[0]) if history and type(history[0]) is Compacted else PLAIN
    declared = declared_bounds(history, terms) if reward is None else None
    rewards.bounds = rewards.bounds or known_bounds(created, rewards) or declared
    try:
        replayer: Replayer | None = Replayer(chosen_model(events, created, model), created)
    except errors.ModelMismatch:
        if model is not None:
            raise
        replayer = None  # a named model that was not passed
    policy = _as_policy(other, _actions(created, history, terms))
    if isinstance(policy, _LearningPolicy) and history and type(history[0]) is Compacted:
        raise errors.InvalidRequest(
            f"events 2 to {history[0].seq} of the log were compacted, and an agent that learns "
            "from the log needs them: pass a function π(x) -> {action: probability}"
        )
    replayer = None if rewards.bounds is None else replayer
    evaluation = _Evaluation(policy, rewards, replayer, {*terms.inactive})
    return evaluation.run(history, level)


def _actions(created: Created, history: Sequence[Event], terms: Terms) -> list[Any] | None:
    """Return the actions of the model, and those added later, if the log lists them."""
    arms = created.settings.get("arms")
    if not isinstance(arms, int | list | tuple):
        return None
    first = range(arms) if isinstance(arms, int) else arms
    return [*first, *(arm for arm, _ in terms.added), *_added(history)]


def _added(history: Sequence[Event]) -> list[Any]:
    """Return the arms that these events add."""
    return [e.arm for e in history if isinstance(e, ArmChanged) and e.change == "added"]


# -- rewards -------------------------------------------------------------------------------------


class RewardFunction:
    """The reward r = reward(o) of an observation, checked against its bounds, if there are any."""

    def __init__(self, reward: Callable[[Any], float], bounds: Bounds | None) -> None:
        self._reward, self.bounds = reward, None if bounds is None else _check_bounds(bounds)

    def of(self, o: Value, where: str) -> float:
        """Return reward(o); raise `BadEvidence` if it is not a finite number within the bounds."""
        value: Any = self._reward(o)
        try:
            r = math.nan if isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError):
            r = math.nan
        if not math.isfinite(r):
            raise errors.BadEvidence(
                f"{where}: observation {short_repr(o)} has the reward {short_repr(value)}: "
                "expected a finite number; pass reward=…"
            )
        if self.bounds is not None and not self.bounds[0] <= r <= self.bounds[1]:
            raise errors.BadEvidence(
                f"{where}: observation {short_repr(o)} has the reward {r}, outside {self.bounds}: "
                "pass bounds=(…, …) that include every possible reward"
            )
        return r

    def scaled(self, r: float) -> float:
        """Return (r - low) / (high - low), clipped to [0, 1]."""
        low, high = self.bounds or (0.0, 1.0)
        return min(max((r - low) / (high - low or 1.0), 0.0), 1.0)  # 1.0: all rewards are equal

    def unscaled(self, v: float) -> float:
        """Return low + (high - low) v."""
        low, high = self.bounds or (0.0, 1.0)
        return low + (high - low) * v


def declared_bounds(history: Sequence[Event], terms: Terms) -> Bounds | None:
    """Return the range of rewards that the configurations declare, from the first event on.

    `terms` are those before the history.
    """
    settings = [event.configuration for event in history if isinstance(event, Configured)]
    ranges: list[Any] = [found.get("reward_range") for found in settings]
    if not (history and isinstance(history[0], Configured)):
        ranges.append(terms.configuration.reward_range)
    if None in ranges:
        return None
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def first_number(o: Value) -> float:
    """Return the observation, or its first element, as the reward; of totals, their mean."""
    if isinstance(o, Totals):
        return o.total / o.n
    first = first_value(o)
    if isinstance(first, bool | int | float):
        return float(first)
    raise errors.MissingCapability(f"observation {o!r} is not a number: pass a function reward=…")


def _check_bounds(bounds: Any) -> Bounds:
    """Return (low, high); raise `InvalidRequest` unless both are finite and low < high."""
    try:
        low, high = (float(b) for b in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        raise errors.InvalidRequest(
            f"bounds={short_repr(bounds)}: expected the least and the greatest possible reward"
        )
    return low, high


def known_bounds(created: Created, rewards: RewardFunction) -> Bounds | None:
    """Return min and max of reward(o) over all outcomes o, if the model has finitely many.

    Bounds must include every possible reward, not only those in the log.
    """
    outcomes = KINDS[created.model].model_kind.outcomes if created.model in KINDS else None
    if outcomes is None:
        return None
    possible = [rewards.of(o, "the model") for o in range(outcomes(created.settings))]
    return min(possible), max(possible)


# -- policies ------------------------------------------------------------------------------------


def _as_policy(other: Any, actions: list[Any] | None) -> "_Policy":
    """Return the policy: fixed for a function, learning from the log for a problem or a model."""
    if callable(other) and not hasattr(other, "agent"):
        return _Policy(other, actions)
    if isinstance(other, Mapping):
        raise errors.InvalidRequest(
            f"other={short_repr(other)}: pass a function of the situation, "
            "lambda x: {action: probability}"
        )
    return _LearningPolicy(as_model(other).driver(), actions)


class _Policy:
    """π(x), a function that returns probabilities of known actions."""

    def __init__(self, policy: Callable[[Any], Probabilities], actions: list[Any] | None) -> None:
        self._policy, self._actions = policy, actions

    def probabilities(self, x: Value, is_eligible: Eligible) -> Probabilities:
        """Return π(b | x) of every eligible b."""
        value: Any = self._policy(x)
        where = f"the policy returns {short_repr(value)} in situation {short_repr(x)}"
        if not isinstance(value, Mapping):
            raise errors.InvalidRequest(f"{where}: expected {{action: probability}}")
        try:
            pi = {a: float(p) for a, p in value.items()}
        except (TypeError, ValueError):
            pi = {}
        if not (all(p >= 0.0 for p in pi.values()) and abs(sum(pi.values()) - 1.0) <= 1e-9):
            raise errors.InvalidRequest(f"{where}: expected probabilities with sum 1")
        self._require_known(pi, where)
        if is_eligible is None:
            return pi
        pi = {a: p for a, p in pi.items() if is_eligible(a)}
        total = sum(pi.values())
        if not total > 0.0:
            raise errors.InvalidRequest(
                f"{where}, but at a decision no action with a positive probability was eligible: "
                "give a small one to what the policy takes then"
            )
        return {a: p / total for a, p in pi.items()}

    def learn(self, x: Value, a: Value, o: Value) -> None:
        """Learn that the agent of the log did a in x and observed o; a fixed policy does not."""

    def add_arm(self, event: ArmChanged) -> None:
        """Get the arm that the log has got; a fixed policy has all."""

    def _require_known(self, pi: Probabilities, where: str) -> Probabilities:
        """Return π; raise `UnknownAction` if it may take an action that the log lacks."""
        for a, p in pi.items():
            if p and self._actions is not None and a not in self._actions:
                raise errors.UnknownAction(
                    f"{where}: unknown action {short_repr(a)}; the log has "
                    f"{short_repr(self._actions)}"
                )
        return pi


class _LearningPolicy(_Policy):
    """π_t = P(b | âo_<t, x): an agent that learns from the log."""

    def __init__(self, driver: Driver, actions: list[Any] | None) -> None:
        if not driver.accepts_late_feedback:
            raise errors.MissingCapability(
                "an agent whose observations determine its situation cannot learn from the log of "
                "another agent: what_if needs one that accepts late feedback"
            )
        self._driver, self._actions = driver, actions

    def probabilities(self, x: Value, is_eligible: Eligible) -> Probabilities:
        """Return P(b | âo_<t, x) for every eligible action b."""
        restriction = None
        if is_eligible is not None:
            restriction = Restriction(tuple(filter(is_eligible, self._driver.arms())), ())
            if not restriction.among:
                raise errors.InvalidRequest(
                    f"{self._driver.agent!r} has no action that is eligible at a decision"
                )
        pi = self._driver.probabilities(self._situation(x), restriction)
        if pi is None:
            raise errors.MissingCapability(
                f"{self._driver.agent!r} has no exact action probabilities: pass a function "
                "π(x) -> {action: probability}"
            )
        return self._require_known(pi, f"the other agent has {short_repr(dict(pi))}")

    def learn(self, x: Value, a: Value, o: Value) -> None:
        """Update the belief: P(m | ·) ∝ P(o | m, x, a) P(m | ·)."""
        self._driver.learn(self._situation(x), a, o)

    def add_arm(self, event: ArmChanged) -> None:
        """Get the arm that the log has got, with its prior, unless the agent has it already."""
        if event.arm not in self._driver.arms():
            self._driver.add_arm(event.arm, event.prior)

    def _situation(self, x: Value) -> Value:
        """Return the situation for the driver; an agent without contexts ignores x."""
        return self._driver.situation(None if self._driver.context_free else x)


# -- evaluation ----------------------------------------------------------------------------------


class _Means:
    """r̂: the mean reward of each action so far; for an action without a reward, of all actions."""

    #: Stands for all actions.
    ALL: Final = object()

    def __init__(self) -> None:
        self.sums: dict[Any, tuple[float, int]] = {self.ALL: (0.0, 0)}

    def of(self, a: Value, default: float = 0.0) -> float:
        """Return r̂(a), or `default` if there was no reward at all so far."""
        total, n = self.sums.get(a, self.sums[self.ALL])
        return total / n if n else default

    def take(self, a: Value, r: float) -> None:
        """Add a reward of action a."""
        for b in (a, self.ALL):
            total, n = self.sums.get(b, (0.0, 0))
            self.sums[b] = (total + r, n + 1)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A decision before its observation: all parts of its terms except the reward."""

    decided: Decided
    pi: Probabilities
    w: float
    #: Σ_b π(b) r̂(b), and r̂(a).
    expected: float
    predicted: float
    #: For the intervals of the three estimates: inverse propensity, doubly robust, log.
    guesses: tuple[Guess, Guess, Guess] | None


class _Evaluation:
    """Runs through a log once and collects the terms of all estimates."""

    def __init__(
        self, other: _Policy, rewards: RewardFunction, replayer: Replayer | None, inactive: set[Any]
    ) -> None:
        self._other, self._rewards, self._replayer = other, rewards, replayer
        #: The arms that are paused or retired, and those that are added later.
        self._inactive = inactive
        self._all_propensities = replayer is not None
        self._means = _Means()
        self._pending: dict[int, _Pending] = {}
        # Σ_t π_t(b) of each action b, over the observed decisions.
        self._mass: dict[Any, float] = {}
        self._cache: ProbabilityCache[Probabilities] = ProbabilityCache()
        # For inverse propensity, doubly robust and the log: the terms and the intervals.
        self._terms: tuple[list[float], list[float], list[float]] = ([], [], [])
        self._intervals = RewardInterval(), RewardInterval(), RewardInterval()
        self._weights: list[float] = []
        #: The session of each term, or a number of its own.
        self._sessions: list[str | int] = []

    def run(self, events: Sequence[Event], level: float) -> WhatIf:
        """Read the log once, and return the estimates with intervals of this level."""
        final = final_answers(events)
        self._inactive.update(_added(events))
        for event in events:
            if isinstance(event, Decided):
                self._take_decision(event)
                continue
            if isinstance(event, Observed) and event.n in self._pending:
                answer = final.get(event.seq, event)
                if not isinstance(answer, Withdrawn):
                    self._take_observation(event, answer.o)
            elif isinstance(event, ArmChanged):
                self._take_arm(event)
            elif isinstance(event, Aggregated):
                self._other.learn(event.x, event.a, event.totals)
                self._cache.clear()
            if self._replayer is not None:
                self._replayer.take(event)
        if not self._weights:
            raise errors.InvalidRequest(
                f"the log has {len(self._pending)} decisions and no observation: there is nothing "
                "to estimate from"
            )
        weights, n = self._weights, len(self._weights)
        largest = max(weights)  # divide by it: squares of large weights overflow
        squares = math.fsum((w / largest) ** 2 for w in weights) if largest else 0.0
        effective = math.fsum(w / largest for w in weights) ** 2 / squares if squares else 0.0
        unsupported = math.fsum(p for a, p in self._mass.items() if a not in self._means.sums)
        estimates = [RewardEstimate.of(terms, level, self._sessions) for terms in self._terms]
        if effective == 0.0 or unsupported / n > 1.0 - level:
            for i, e in enumerate(estimates[:2]):  # those of the other policy
                estimates[i] = RewardEstimate(e.mean, math.inf, -math.inf, math.inf)
        if self._rewards.bounds is not None:
            for i, interval in enumerate(self._intervals):
                low, high = map(self._rewards.unscaled, interval.at(level))
                estimates[i] = replace(estimates[i], low=low, high=high)
        ips, dr, logged = estimates
        return WhatIf(
            inverse_propensity=ips, doubly_robust=dr, logged=logged, decisions=n,
            unanswered=len(self._pending), sessions=len(set(self._sessions)),
            effective=effective, largest_weight=largest,
            unsupported=unsupported / n, bounds=self._rewards.bounds,
            all_propensities=self._all_propensities, level=level,
        )  # fmt: skip

    def _take_decision(self, d: Decided) -> None:
        """Compute the parts of the terms of a decision that do not depend on its reward."""
        if not d.p:
            raise errors.MissingCapability(
                f"decision {d.seq} has no probability in the log: off-policy estimates need the "
                "probability of every action taken"
            )
        among = None if d.among is None else tuple(d.among)
        is_eligible = (
            None if among is None and not self._inactive else partial(self._may_use, among)
        )
        policy = partial(self._other.probabilities, is_eligible=is_eligible)
        pi = self._cache.get(d.x, policy, among)
        w = pi.get(d.a, 0.0) / d.p
        if not math.isfinite(w):
            raise errors.DamagedLog(f"decision {d.seq} has the invalid probability {d.p}")
        expected = math.fsum(p * self._means.of(a) for a, p in pi.items())
        guesses = self._guesses(d, pi, w) if self._rewards.bounds is not None else None
        self._pending[d.seq] = _Pending(d, pi, w, expected, self._means.of(d.a), guesses)

    def _may_use(self, among: tuple[Any, ...] | None, a: Any) -> bool:
        """Return whether a decision among these actions may use a."""
        return a not in self._inactive and (among is None or a in among)

    def _take_arm(self, event: ArmChanged) -> None:
        """Change the eligible arms."""
        if event.change == "added":
            self._other.add_arm(event)
        if ARM_CHANGES[event.change] == "active":
            self._inactive.discard(event.arm)
        else:
            self._inactive.add(event.arm)
        self._cache.clear()

    def _guesses(self, d: Decided, pi: Probabilities, w: float) -> tuple[Guess, Guess, Guess]:
        """Return the guesses for inverse propensity, doubly robust and the policy of the log."""
        propensities = None if self._replayer is None else self._replayer.take_decision(d)
        self._all_propensities &= propensities is not None
        scaled, start = self._rewards.scaled, self._rewards.unscaled(0.5)
        actions = [a for a, p in pi.items() if p > 0.0]
        r_hat = [scaled(self._means.of(a, start)) for a in actions]
        pi_values = [pi[a] for a in actions]
        ips = dr = guess(pi_values, p=None, r_hat=r_hat, a=None, w=w)
        if propensities is not None:
            # Use the p of the log for the action taken, so that w q(a) <= k holds exactly.
            p = [d.p or 0.0 if a == d.a else propensities.get(a, 0.0) for a in actions]
            dr = guess(pi_values, p, r_hat, actions.index(d.a) if d.a in actions else None, w)
        # The policy of the log has one "action", what it did, with weight 1.
        mean_so_far = scaled(self._means.of(_Means.ALL, start))
        return ips, dr, guess(pi=[1.0], p=None, r_hat=[mean_so_far], a=0, w=1.0)

    def _take_observation(self, event: Observed, o: Value) -> None:
        """Add the terms of the decision whose observation is o to all estimates; learn from it."""
        r = self._rewards.of(o, f"event {event.seq}")
        decision = self._pending.pop(event.n)
        for a, p in decision.pi.items():
            self._mass[a] = self._mass.get(a, 0.0) + p
        new = (decision.w * r, decision.expected + decision.w * (r - decision.predicted), r)
        for terms, term in zip(self._terms, new, strict=True):
            terms.append(term)
        self._weights.append(decision.w)
        self._sessions.append(decision.decided.session or event.n)
        if decision.guesses is not None:
            for interval, guesses in zip(self._intervals, decision.guesses, strict=True):
                interval.take(guesses, self._rewards.scaled(r))
        d = decision.decided
        self._other.learn(d.x, d.a, o)
        self._means.take(d.a, r)
        self._cache.clear()
