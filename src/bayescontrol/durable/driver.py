"""Drive an agent from a log: draw actions from a given random stream, learn observations.

    act(x, rng)       m ~ P(m | âo_<n),  a ~ P(a | m, x)
    learn(x, a, o)    P(m | ·) ∝ P(o | m, x, a) P(m | ·)

Either feedback may come late (a bandit: the caller gives x, and o arrives in any order), or every
observation moves the agent to its next situation (an MDP), so it is due before the next decision.
A draw either leaves the agent unchanged, or changes it (a Gibbs chain, particles, a mode that is
held for several steps): then replaying the log must repeat the draw.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np

from bayescontrol import errors
from bayescontrol._arrays import Arrays
from bayescontrol._mode_queries import has
from bayescontrol._support.values import format_name, pack, unpack
from bayescontrol.beliefs.draws import DrawsBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.particles import Event
from bayescontrol.durable.configuration import Restriction
from bayescontrol.durable.plain import Value, as_plain, short_repr
from bayescontrol.errors import BadEvidence, BadSituation, IncompatibleState, MissingCapability
from bayescontrol.exploration import ExploringRule
from bayescontrol.lqr.agent import LinearAgent
from bayescontrol.protocols import (
    AggregatedRewards,
    Choosing,
    CountsDecisions,
    Persistent,
    PosteriorSummary,
    Summary,
    Totals,
)
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream


def posterior_summary(agent: Any) -> Summary:
    """Return the posterior of the agent in plain numbers, by the names of its arms or modes.

    >>> from bayescontrol import TabularModes
    >>> boxes = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.5, 0.5]]]])
    >>> posterior_summary(boxes.agent())
    {'m0': {'probability': 0.5}, 'm1': {'probability': 0.5}}
    """
    belief: Any = getattr(agent, "belief", None)
    if has(belief, PosteriorSummary):
        return belief.posterior_summary()
    count = getattr(belief, "count", None)
    return {} if count is None else {"all": {"count": int(count)}}


def _declares(belief: Any, name: str) -> bool:
    """Return whether the class of the belief declares `name` itself.

    An inherited declaration does not count: the subclass may behave differently.
    """
    return bool(vars(type(belief)).get(name, False))


def _bad_situation(x: Value, error: BadEvidence) -> BadSituation:
    """Return the error for a draw: no observation is involved, so x is at fault."""
    return BadSituation("this agent needs a situation: call act(x)" if x is None else str(error))


T = TypeVar("T")
#: The maximum number of situations whose probabilities are cached.
_MAX_CACHED: Final = 256


class ProbabilityCache(Generic[T]):
    """Caches P(a | past, x) by x. Call `clear` whenever the posterior changes."""

    def __init__(self) -> None:
        self._cached: dict[Any, T] = {}

    def get(self, x: Value, compute: Callable[[Any], T], more: Any = None) -> T:
        """Return compute(x), or its cached result. Callers share it and must not change it.

        `more` is what the result also depends on.
        """
        key: Any = b"" if x is None else msgspec.json.encode(as_plain(x, "the situation"))
        key = key if more is None else (key, more)
        if key not in self._cached:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            self._cached[key] = compute(x)
        return self._cached[key]

    def clear(self) -> None:
        """Invalidate the cache."""
        self._cached.clear()


class Driver:
    """An agent, and the properties of the agent that matter for its log.

    `accepts_late_feedback`: observations may come in any order; None derives it from the agent.
    `draws_change`: a draw changes the state, unless the belief declares `stateless_draws`.
    `context_free`: the agent uses no situation, and `act(x)` is an error; the class of the belief
    may declare it.
    """

    def __init__(
        self, agent: Any, accepts_late_feedback: bool | None = None, context_free: bool = False
    ) -> None:
        self.agent: Any = agent
        if not (hasattr(agent, "act") and hasattr(agent, "observe")):
            hint = "; use its method .agent()" if hasattr(agent, "agent") else ""
            raise MissingCapability(f"{agent!r} is not an agent: it lacks act or observe{hint}")
        if not has(agent, Persistent) or not hasattr(agent, "copy"):
            raise MissingCapability(
                f"{agent!r} cannot be saved: a durable agent needs copy(), save() and load()"
            )
        if accepts_late_feedback is None:
            accepts_late_feedback = isinstance(agent, ControlRule) and agent.accepts_late_feedback
        self.accepts_late_feedback = accepts_late_feedback
        if accepts_late_feedback and not isinstance(agent, ControlRule):
            raise MissingCapability(f"accepts_late_feedback=True: {agent!r} is not a ControlRule")
        if isinstance(agent, ControlRule):
            agent.reveals_mode = True  # `explain` shows it
        draws_each_step = getattr(agent, "schedule", every_step) is every_step
        is_plain_rule = type(agent) is ControlRule and draws_each_step
        self.draws_change = not (is_plain_rule and _declares(self.agent.belief, "stateless_draws"))
        self._draws_each_step = draws_each_step
        # Some beliefs know them for some eligible arms only, whatever was asked for before.
        self._may_have_probabilities = draws_each_step and hasattr(agent, "action_probabilities")
        self._has_probabilities = self._may_have_probabilities
        self._cache: ProbabilityCache[dict[Any, float] | None] = ProbabilityCache()
        # For a belief that counts decisions: its count at each recent decision, by event number.
        self._counts_decisions = has(getattr(agent, "belief", None), CountsDecisions)
        self._decisions: dict[int, int] = {}
        self._start = getattr(agent, "x", None)
        self.context_free = accepts_late_feedback and (
            context_free
            or _declares(self.agent.belief, "context_free")
            or _declares(getattr(self.agent.belief, "prior", None), "context_free")
        )
        # `advance` of an agent of `TabularModes` is a method of its tables: then x is an index.
        tables = getattr(getattr(agent, "advance", None), "__self__", None)
        self._situation_count = len(getattr(tables, "successor", ()))  # 0 if there are no tables
        if not self.draws_change:
            self._undrawn = self.agent.belief.save()["drawn"]  # before any mode is drawn

    @property
    def _belief(self) -> Any:
        """The belief of the agent; None if it has none."""
        return getattr(self.agent, "belief", None)

    @property
    def observes_rewards(self) -> bool:
        """Whether an observation is a reward, or starts with one; those of plants are states."""
        return not isinstance(self.agent, LinearAgent)

    def situation(self, x: Value) -> Any:
        """Return the situation of the next decision: x, or the agent's current one."""
        current = self._start if self.accepts_late_feedback else getattr(self.agent, "x", None)
        if x is None:
            return current
        if not self.accepts_late_feedback:
            raise BadSituation(
                f"x={short_repr(x)}: the observations of this agent determine its situation, now "
                f"{short_repr(current)}: call act() without x"
            )
        if self.context_free and current is None:
            raise BadSituation(
                f"x={short_repr(x)}: this bandit uses no situation: call act() without x, or use a "
                "LinearBandit or LogisticBandit"
            )
        if self._situation_count and not (type(x) is int and 0 <= x < self._situation_count):
            last = self._situation_count - 1
            expected = f"an integer from 0 to {last}" if last else "0"
            raise BadSituation(f"x={short_repr(x)}: expected {expected}, or no situation")
        return x

    def act(self, x: Value, rng: Stream, restriction: Restriction | None = None) -> Any:
        """Return the action that the agent draws in situation x, within the restriction."""
        if self.draws_change:
            self._cache.clear()
        if isinstance(self.agent, ControlRule):
            self.agent.x = x
        try:
            if restriction is None:
                return self.agent.act(rng)
            with self._choosing(self.agent, restriction):
                return self.agent.act(rng)
        except BadEvidence as error:
            raise _bad_situation(x, error) from error

    @property
    def explores(self) -> bool:
        """Whether P(a | past, m) is known once the agent has acted, given the mode m that acts.

        It is stored where a decision depends on all observations before it. Elsewhere it might be
        compared with other policies, which the held mode would never follow.
        """
        return isinstance(self.agent, ExploringRule) and not self.accepts_late_feedback

    def require_choosing(self, prices: Sequence[Hashable] = ()) -> None:
        """Raise MissingCapability if modes cannot choose among some arms, or at prices of these."""
        # Different prices, because equal ones have no effect.
        different = tuple((arm, float(i + 1)) for i, arm in enumerate(prices))
        with self._choosing(self.agent, Restriction(None, different)):
            pass

    def require_reward(self, o: Value) -> None:
        """Raise BadEvidence if the arms cannot pay o, as far as that is known in advance."""
        belief = self._belief
        static = getattr(belief, "prior", belief)
        rewards = getattr(static, "family", None) or getattr(static, "link", None)
        if rewards is not None:
            rewards.reward(o)
        elif self._start is not None or self.context_free:
            self.copy().learn(self._start, self.arms()[0], o)

    def _choosing(
        self, agent: Any, restriction: Restriction | None
    ) -> AbstractContextManager[None]:
        """Return a context in which the modes of an agent choose within the restriction."""
        if restriction is None:
            return nullcontext()
        belief = getattr(agent, "belief", None)
        if not has(belief, Choosing) or not self._draws_each_step:
            held = "" if self._draws_each_step else ", because it holds modes for several steps"
            raise MissingCapability(
                f"{agent!r} cannot choose among some of its arms, or by price{held}: omit `among`, "
                "activate all arms, and configure no prices"
            )
        return belief.choosing(restriction.among, dict(restriction.prices) or None)

    def forget_mode(self) -> None:
        """Forget the mode drawn last, which did not choose the action."""
        if hasattr(self.agent, "mode") and self._draws_each_step:
            self.agent.mode = None

    def arms(self) -> Sequence[Any]:
        """Return all arms, also inactive ones; raise MissingCapability without arms."""
        labels = getattr(self._belief, "labels", None)
        if labels is None and self.accepts_late_feedback:
            labels = self.probabilities(self._start)
        if labels is None:
            raise MissingCapability(
                f"{self.agent!r} has no list of arms: changes of arms, `among`, a holdout, shares "
                "and prices need a bandit or a class of modes"
            )
        return tuple(labels)

    def add_arm(self, arm: Value, prior: Value) -> None:
        """Add an arm to the belief."""
        add = getattr(self._belief, "add", None)
        if add is None or not hasattr(self._belief, "labels"):
            raise MissingCapability(f"{self.agent!r} cannot get more arms")
        self._cache.clear()
        add(arm, prior) if prior is not None else add(arm)

    def remember(self, n: int) -> None:
        """Remember that event n is the current decision, if the belief counts decisions."""
        if self._counts_decisions:
            belief = self.agent.belief
            self._decisions[n] = belief.decision
            if len(self._decisions) > belief.window + 1:
                del self._decisions[min(self._decisions)]

    def is_too_late(self, n: int) -> bool:
        """Whether a changing world has moved on since decision n, so that nothing is learned."""
        return bool(self._decisions) and n not in self._decisions

    def probabilities(
        self, x: Value, restriction: Restriction | None = None
    ) -> dict[Any, float] | None:
        """Return P(a | âo_<n) of every action, or None if it is not known exactly.

        The probabilities are not known while a mode is held, and if the arms are so far apart that
        the integral fails.
        """
        compute = partial(self._compute_probabilities, restriction=restriction)
        cached = self._cache.get(x, compute, restriction)
        return None if cached is None else dict(cached)

    def _compute_probabilities(
        self, x: Value, restriction: Restriction | None = None
    ) -> dict[Any, float] | None:
        agent = self.agent
        known = self._has_probabilities if restriction is None else self._may_have_probabilities
        if not known:
            return None
        if isinstance(agent, ControlRule):
            agent.x = x
            if self._counts_decisions:
                agent = agent.copy()
                agent.belief.begin()  # time goes on before the next decision
        try:
            with self._choosing(agent, restriction):
                return dict(agent.action_probabilities())
        except MissingCapability:
            if restriction is None:
                self._has_probabilities = False
            return None
        except ArithmeticError:
            return None
        except BadEvidence as error:
            raise _bad_situation(x, error) from error

    def learn(self, x: Value, a: Value, o: Value, n: int | None = None) -> None:
        """Learn from o, the observation after action a in x, which event n decided."""
        self._cache.clear()
        if type(o) is Totals:
            if not has(self._belief, AggregatedRewards):
                raise MissingCapability(
                    f"{self.agent!r} cannot learn from totals: observe one reward of each decision"
                )
            self._belief.observe_totals(x, a, o)
        elif n is not None and self._decisions and self.accepts_late_feedback:
            if self.is_too_late(n):
                raise errors.TooLate(
                    f"the observation of decision {n} comes more than {self.agent.belief.window} "
                    "decisions late, which a changing model does not accept; set its `window`"
                )
            self.agent.learn(x, a, o, decision=self._decisions[n])
        elif self.accepts_late_feedback:
            self.agent.learn(x, a, o)
        else:
            self.agent.observe(a, o)

    def refit(self, draws: Value, later: Sequence[Event], log_weights: Value) -> None:
        """Replace the posterior draws of the belief, and learn the later steps (x, a, o)."""
        belief = self._belief
        if not isinstance(belief, DrawsBelief):
            raise MissingCapability(
                f"{self.agent!r} cannot be refitted: only models of draws can, such as DrawsBandit"
            )
        self._cache.clear()
        belief.replace_draws(draws, later, log_weights)

    def save(self) -> Arrays:
        """Return the state as named arrays, without the last mode unless draws change the agent."""
        if self.draws_change:
            arrays: Arrays = dict(self.agent.save())
            if self._decisions:
                arrays["decisions"] = np.array([*self._decisions.items()], np.int64)
            return arrays
        arrays = {f"belief/{name}": v for name, v in self.agent.belief.save().items()}
        arrays["belief/drawn"] = self._undrawn.copy()
        if not self.accepts_late_feedback:
            arrays["situation"] = pack(self.agent.x, "the situation")
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore the state that `save` returned."""
        self._cache.clear()
        if self.draws_change:
            decisions = arrays.get("decisions", np.empty((0, 2), np.int64))
            self.agent.load({name: v for name, v in arrays.items() if name != "decisions"})
            self._decisions = {int(n): int(decision) for n, decision in decisions}
            return
        if not self.accepts_late_feedback and "situation" not in arrays:
            raise IncompatibleState("the saved state lacks the array 'situation'")
        saved = {k.removeprefix("belief/"): v for k, v in arrays.items() if k != "situation"}
        x = self.agent.x if self.accepts_late_feedback else unpack(arrays["situation"])
        self.agent.belief.load(saved)
        self.agent.x = x

    def fingerprint(self) -> str:
        """Return a digest of the new agent: its class, the names of its modes or arms, its prior.

        Numbers are rounded to nine digits, because the last bits depend on the machine. The digest
        is stored, so its parts are a file format: class names come from `format_name` if the class
        declares it.
        """
        belief: Any = getattr(self.agent, "belief", None)
        kinds = [format_name(kind, kind.__qualname__) for kind in (type(self.agent), type(belief))]
        parts = [*kinds, str(self.accepts_late_feedback)]
        if isinstance(belief, FiniteBelief):
            parts += [belief.name(m) for m in range(len(belief.posterior()))]
        parts += map(repr, getattr(belief, "labels", ()))
        for name, v in sorted(self.save().items()):
            flat = v.ravel().tolist() if v.dtype.kind in "biuf" else [v.tobytes()]
            rounded = [f"{entry:.9g}" if type(entry) is float else entry for entry in flat]
            parts.append(f"{name} {v.shape} {rounded}")
        return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def copy(self) -> "Driver":
        """Return an independent copy."""
        duplicate = Driver.__new__(Driver)
        duplicate.__dict__.update(self.__dict__)
        duplicate.agent, duplicate._decisions = self.agent.copy(), dict(self._decisions)
        duplicate._cache = ProbabilityCache()
        return duplicate
