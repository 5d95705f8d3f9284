"""The Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

    P(m | âo_≤t)  ∝  P(o_t | m, x, a_t) P(m | âo_<t)

Draw a mode, do what it would do. Observations are evidence; the agent's own actions are
interventions (the hats) and are not.
"""

from collections.abc import Callable
from html import escape
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from bayescontrol._arrays import IntArray, as_integer
from bayescontrol._mode_queries import has, require, require_instance, require_policies
from bayescontrol._support.display import shown
from bayescontrol._support.saved import Array, Part, Plain, Saved, damaged, declare
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import (
    MISSING,
    ActionDraws,
    ActionLikelihood,
    ActionProbabilities,
    Belief,
    CountsDecisions,
    Diagnosis,
    MixingBelief,
    Policy,
    Predictions,
    Resumable,
    Retirement,
    Skips,
    Unresolved,
)
from bayescontrol.schedules import Held, Schedule, every_step, require_schedule
from bayescontrol.seeding import Stream, StreamLike, require_stream
from bayescontrol.situations import as_advance, independent_of_feedback, lost_situation

M = TypeVar("M", bound=Policy[Any, Any])
X = TypeVar("X")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


class ControlRule(Saved, Generic[M, X, A, O]):
    """The adaptive agent for a belief over operation modes.

    `situation` is the first x, and `advance(x, a, o)` returns the next one (the paper's map T):
    give both or neither. `schedule` decides when to draw a new mode; by default at every step.

    `belief` holds the modes and learns; it needs `sample(rng)` and `observe(x, a, o)`.

    >>> from bayescontrol import DiscreteMode, FiniteBelief, Stream
    >>> def lever(good):  # hypothesis: `good` pays in 9 of 10 pulls; policy: pull it
    ...     return DiscreteMode(lambda x: {good: 1.0},
    ...                         lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8})
    >>> agent = ControlRule(FiniteBelief([lever("left"), lever("right")]))
    >>> agent.action_probabilities()
    {'left': 0.5, 'right': 0.5}
    >>> agent.observe("left", 1)
    >>> agent.action_probabilities()
    {'left': 0.818..., 'right': 0.181...}
    """

    format_name: ClassVar[str] = "ControlRule"
    #: Whether `mode` is the mode that acted last. If not, the belief may draw an action directly,
    #: from the same distribution, without a mode.
    reveals_mode: bool = False
    saved_fields = declare(
        Part("belief/", "belief", in_place=True),
        Array("clock", lambda agent: agent._clock()),
        Plain("situation", "x"),
        Plain("drawn_in", "_drawn_in", "the situation of the last draw"),
    )

    def __init__(
        self,
        belief: Belief[M, X, A, O],
        situation: X = None,  # type: ignore[assignment]
        advance: Callable[[X, A, O], X] | None = None,
        schedule: Schedule = every_step,
    ) -> None:
        require_instance(belief, "the belief")
        if not (hasattr(belief, "sample") and hasattr(belief, "observe")):
            raise MissingCapability(
                f"{belief!r} is not a belief: it has no sample(rng) or no observe(x, a, o). "
                "For a list of modes use ControlRule(FiniteBelief(modes))"
            )
        require_policies(belief)
        #: Any, because a belief may have more methods than `Belief`, such as a posterior.
        self.belief: Any = belief
        self.x = situation
        self.advance: Callable[[X, A, O], X] = as_advance(situation, advance)
        self.schedule: Schedule = require_schedule(schedule)
        #: The mode that acts now.
        self.mode: M | None = None
        #: The actions issued so far; the t and the situation x of the last draw of a mode.
        self._t = 0
        self._drawn_at = 0
        self._drawn_in = situation
        #: The belief that was asked for capabilities, and its answers: see `_ask`.
        self._checked_belief: Any = None
        self._answers: dict[type, bool] = {}
        self._draws_actions = self._counts_decisions = False

    # -- the two steps of the rule -------------------------------------------------------

    def decide(self, x: X, rng: Stream) -> tuple[M, A]:
        """m ~ P(m | âo_<t), then a ~ P(a | m, x)."""
        belief = self.belief
        if belief is not self._checked_belief:
            self._ask(belief)
        if self._counts_decisions:
            belief.begin()
        m = belief.sample(rng)
        return m, m.act(x, rng)

    def learn(self, x: X, a: A, o: O, *, decision: int | None = None) -> None:
        """P(m | âo_≤t) ∝ P(o | m, x, a) P(m | âo_<t). `MISSING` is no evidence, but time goes on.

        A belief about a changing world needs the number of the `decision` if o comes late: between
        the action and its observation it was `belief.decision`.
        """
        if decision is not None and self._offers(CountsDecisions):
            self.belief.answer(decision, x, a, o)
        elif o is MISSING:
            if self._offers(Skips):
                self.belief.skip(x, a)
        else:
            self.belief.observe(x, a, o)

    # -- the rule as an agent ------------------------------------------------------------

    def act(self, rng: StreamLike) -> A:
        """Return a_t: draw a mode if one is due, and do what it would do."""
        if not isinstance(rng, Stream):
            rng = require_stream(rng)  # a NumPy Generator
        belief, x, m = self.belief, self.x, self.mode
        if belief is not self._checked_belief:
            self._ask(belief)
        a: A
        if self._draws_actions and self.schedule is every_step and not self.reveals_mode:
            if self._counts_decisions:
                belief.begin()
            self.mode, a = None, belief.draw_action(x, rng)
            self._drawn_at, self._drawn_in = self._t, x
        elif m is None or self.schedule is every_step or self._due(rng):
            self.mode, a = self.decide(x, rng)
            self._drawn_at, self._drawn_in = self._t, x
        else:
            if self._counts_decisions:
                belief.begin()
            a = m.act(x, rng)
        self.issue(a)
        self._t += 1
        return a

    def batch(self, size: int, rng: StreamLike) -> list[A]:
        """Draw `size` actions with `act`, without observations in between.

        Actions are not evidence, so they can be drawn before any observation. Pass the feedback
        to `observe` in any order, late, or never; if the world changes (`problem.changing()`), pass
        it to `learn` with the number of the decision.

        >>> from bayescontrol import BernoulliBandit, Stream
        >>> sorted(set(BernoulliBandit(["red", "blue"]).agent().batch(20, Stream(0))))
        ['blue', 'red']
        """
        stream = require_stream(rng)
        return [self.act(stream) for _ in range(as_integer("size", size, 0))]

    def issue(self, a: A) -> None:
        """P(m | âo_<t â_t) = P(m | âo_<t): the agent's own action is not evidence."""

    def observe(self, a: A, o: O) -> None:
        """Learn from o_t, then update the situation: x ← T(x, a_t, o_t).

        If o_t was lost, pass `MISSING`: private states, clocks and the situation move on, without
        evidence. `advance` receives it too.
        """
        x = self.x
        y = self.advance(x, a, o)
        if y is None and x is not None:
            raise lost_situation(x, a, o)
        if y is o and isinstance(y, np.ndarray):  # the environment may reuse this array
            y = y.copy()
        self.learn(x, a, o)
        self.x = y

    @property
    def accepts_late_feedback(self) -> bool:
        """Whether `learn` may be called late, in any order or never.

        It may unless observations determine the situation, or the belief declares that it needs
        them in order.
        """
        belief: bool = getattr(self.belief, "accepts_late_feedback", True)
        return belief and independent_of_feedback(self.advance, self.x)

    def fast_forward(self, acted: int, drawn_in: X, x: X) -> None:
        """Update everything but the belief after `acted` steps of a compiled loop."""
        self._t += acted
        self._drawn_at, self._drawn_in, self.x = self._t - 1, drawn_in, x
        self.mode = None if self._offers(ActionDraws) else self._belief_with(Resumable).last()

    def _due(self, rng: Stream) -> bool:
        """Return True if the held mode was retired, or the schedule asks for a new one."""
        return self._is_retired() or self.schedule(self._held(), rng)

    def _is_retired(self) -> bool:
        """Return True if the held mode was retired."""
        return self._offers(Retirement) and bool(self.belief.is_retired(self.mode))

    def _held(self) -> Held[X]:
        """Return the held mode as a schedule sees it."""
        return Held(self._t, self._t - self._drawn_at, self.x, self._drawn_in)

    # -- exact probabilities ---------------------------------------------------------------

    def action_probabilities(self) -> dict[A, float]:
        """P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t), for all a_t."""
        x = self.x
        if self._offers(ActionProbabilities):
            return dict(self.belief.action_probabilities(x))
        mixing: MixingBelief = self._belief_with(MixingBelief, ActionProbabilities)
        return mixing.mix(ActionProbabilities, lambda m: m.action_probabilities(x))

    def predictive(self, a: A) -> dict[O, float]:
        """P(o_t | âo_<t â_t) = Σ_m P(o_t | m, x, a_t) P(m | âo_<t)."""
        predictions: Predictions[X, A, O] = self._belief_with(Predictions)
        return predictions.predictive(self.x, a)

    def witness(self, x: X, a: A) -> None:
        """P(m | ·) ∝ P(a | m, x) P(m | ·): learn from an action of *another* agent, an expert.

        Modes need `action_probabilities(x)` or, for continuous actions, the density
        `action_likelihood(x, a)`. To learn from the observation that followed, call
        `learn(x, a, o)` too.

        Never pass this agent's own actions: conditioning on one's own actions is the delusion
        that the paper is about.
        """
        belief: MixingBelief = self._belief_with(MixingBelief)
        what = f"witnessed: action {a!r} in situation {x!r}"
        if belief.offers(ActionLikelihood):
            belief.reweigh(ActionLikelihood, lambda m: m.action_likelihood(x, a), what)
        else:
            belief.reweigh(
                ActionProbabilities, lambda m: m.action_probabilities(x).get(a, 0.0), what
            )

    def unresolved(self, *, nats: float = 1e-3, distance: float | None = None) -> Unresolved:
        """Return the models that predict as well as the belief, but would act otherwise.

        If their share is large, the agent may be confirming itself: its own actions do not show
        whether they are true. A model counts if its policy differs by at least `distance` in total
        variation (default: 0.1, for context trees 0.2), and its predictions by at most `nats` a
        step. With context trees, no models are listed, and the share is that of the latest cycles
        in which some other action is untested; see `bayescontrol.trees.unresolved`.

        In a finite class, policies are compared in the latest situations; after a compiled loop,
        which does not record them, only in the present one. A run with the probe "unresolved" is
        not compiled.

        >>> from bayescontrol.finite.chain import chain
        >>> agent = chain(5).agent()
        >>> for a in (0, 1, 0, 1):  # five equal actions would decide between the modes
        ...     agent.observe(a, 0)
        >>> agent.unresolved()
        Unresolved(share=1.0, modes=(TabularMode(0, 'A'), TabularMode(1, 'B')))
        """
        belief: Diagnosis[X] = self._belief_with(Diagnosis)
        if distance is None:
            return belief.unresolved(self.x, nats=nats)
        return belief.unresolved(self.x, nats=nats, distance=distance)

    def _offers(self, capability: type) -> bool:
        """Return whether the belief has a capability. The answer is cached."""
        if self.belief is not self._checked_belief:
            self._ask(self.belief)
        if capability not in self._answers:
            self._answers[capability] = has(self.belief, capability)
        return self._answers[capability]

    def _ask(self, belief: Any) -> None:
        """Ask a new belief for the capabilities that every step needs."""
        self._checked_belief, self._answers = belief, {}
        self._draws_actions = self._offers(ActionDraws)
        self._counts_decisions = self._offers(CountsDecisions)

    def _belief_with(self, capability: Any, simpler: type | None = None) -> Any:
        """Return the belief; raise MissingCapability if it lacks the capability.

        The error asks for the `simpler` capability, if there is one that suffices.
        """
        if not self._offers(capability):
            require(self.belief, simpler or capability, f"{self.belief!r} can act and learn, but")
        return self.belief

    # -- state ---------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy; what never changes is shared."""
        if self.belief is not self._checked_belief:
            self._ask(self.belief)
        return super().copy()

    def _clock(self) -> IntArray:
        """Return t, the time of the last draw, and whether a mode is held."""
        return np.array([self._t, self._drawn_at, self.mode is not None])

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error if the saved clock is invalid; `_after_load` finds the held mode."""
        t, drawn_at, has_mode = new.clock.tolist()
        if not 0 <= drawn_at <= t:
            raise damaged(f"the clock is {new.clock}: expected t >= drawn_at >= 0 and has_mode")
        new._t, new._drawn_at = t, drawn_at
        new.mode = _UNKNOWN if has_mode else None

    def _after_load(self) -> None:
        """Hold the mode that the belief has drawn last, if a mode is held."""
        if self.mode is not None:
            self.mode = self._belief_with(Resumable).last()

    def _after_copy(self) -> None:
        if type(self.belief) is type(self._checked_belief):
            self._checked_belief = self.belief  # a copy has the same capabilities
        self._after_load()

    def __repr__(self) -> str:
        where = "" if self.x is None else f", situation {self.x!r}"
        return f"{type(self).__name__}({self.belief!r}{where}, t={self._t})"

    def _repr_html_(self) -> str:
        """Show the agent and its belief in a notebook."""
        html = getattr(self.belief, "_repr_html_", None)
        where = "" if self.x is None else f", situation {escape(shown(self.x))}"
        body = html() if html else ""
        return f"<div><b>{type(self).__name__}</b>, t={self._t}{where}{body}</div>"


#: A mode that is held, until the belief has been loaded.
_UNKNOWN: Any = object()
#: A control rule over any modes.
Rule: TypeAlias = ControlRule[Any, Any, Any, Any]
