"""Arms that change: a static belief over the arms for each possible start of the segment.

    P(a | âo_<t) = Σ_s P(s | âo_<t) P(arm a is the best | rewards since s)

By default all arms change together. With `per_arm`, each arm has starts and hazards of its own, and
the arms are independent.
"""

from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, FloatArray, IntArray
from bayescontrol._support.saved import Parts, Plain, damaged, declare
from bayescontrol._support.values import pack
from bayescontrol.bandits.arms import ArmsBelief, MeanRewards, arms_loop
from bayescontrol.bandits.best_arm import Mixture
from bayescontrol.bandits.contexts.belief import LinearBelief, LinearWeights
from bayescontrol.bandits.contexts.regression import Prior
from bayescontrol.bandits.family import QUANTILE_GRID, mixed_quantiles
from bayescontrol.bandits.roster import HasArms, Roster
from bayescontrol.beliefs.change_points import (
    ArraySegments,
    ChangePointBelief,
    DecisionClock,
    Event,
)
from bayescontrol.errors import BadEvidence, InvalidPrior
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary
from bayescontrol.seeding import Stream, StreamLike


class ArmSegments(ArraySegments):
    """The posterior rows of the arms for each start."""

    def __init__(self, prior: ArmsBelief, starts: int) -> None:
        super().__init__(prior, starts, rows=prior.posterior())

    def likelihoods(self, mass: FloatArray, event: Event) -> tuple[FloatArray, float]:
        """Return P(r | segment) / scale of the starts with these masses, and ln of the scale."""
        (_, j, r), family = event, self.prior.family
        log_scale = kernels.changes.arm_likelihoods(
            family.kind, family.constants, self.arrays["rows"], len(mass), j, r, mass, self.p
        )
        return self.p[: len(mass)], log_scale

    def learn(self, size: int, event: Event) -> None:
        """Update the arm in the first `size` segments. An error changes nothing."""
        (_, j, r), family, rows = event, self.prior.family, self.arrays["rows"]
        before = rows[:size, j].copy()
        kernels.changes.learn_arm(family.kind, family.constants, rows, size, j, r)
        if not np.isfinite(rows[:size, j]).all():
            rows[:size, j] = before
            arm = self.prior.labels[j]
            raise BadEvidence(f"reward {r!r} of arm {arm!r} is too large for the posterior")


class ScoreSegments(ArraySegments):
    """The posterior weights of contextual arms for each start."""

    def __init__(self, prior: LinearBelief, starts: int) -> None:
        arrays = prior.loop_arrays()
        self._v = arrays.v
        super().__init__(prior, starts, factor=arrays.R.copy(), target=arrays.z.copy())

    def likelihoods(self, mass: FloatArray, event: Event) -> tuple[FloatArray, float]:
        """Return P(r | segment) / scale of the starts with these masses, and ln of the scale."""
        (x, j, r), link = event, self.prior.link
        log_scale = kernels.changes.score_likelihoods(
            link.kind, link.constants, self.arrays["factor"], self.arrays["target"], len(mass),
            j, np.array(x), r, self._v, mass, self.p,
        )  # fmt: skip
        return self.p[: len(mass)], log_scale

    def learn(self, size: int, event: Event) -> None:
        """Update the weights of the arm in the first `size` segments."""
        (x, j, r), link = event, self.prior.link
        kernels.changes.learn_scores(
            link.kind, link.constants, self.arrays["factor"], self.arrays["target"], size, j,
            np.array(x), r, self._v,
        )  # fmt: skip


class _ArmEvents(Plain):
    """The events (x, row of the arm, reward) of the window; they are saved with the arm's name."""

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the events."""
        arms = owner.names
        named = [event and (event[0], arms[event[1]], event[2]) for event in owner._events]
        arrays[self.name] = pack(named, self.what)


class ChangingArmsBelief(ChangePointBelief, HasArms[Any]):
    """P(h, s, m | âo_<t) for arms that change together, with or without contexts.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).changing().belief()
    >>> for t in range(60):
    ...     belief.observe(None, "red", int(t < 40))     # the arm stops paying
    >>> {a: round(p, 2) for a, p in belief.expected().items()}
    {'red': 0.06, 'blue': 0.5}
    """

    saved_fields = declare(
        _ArmEvents("events", "_events", what="the window of answers", copied=True)
    )

    format_name: ClassVar[str] = "ChangingArmsBelief"
    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure("mean reward", "reward")

    def __init__(self, belief: ArmsBelief | LinearBelief, **options: Any) -> None:
        super().__init__(belief, **options)
        self._roster = Roster(list(belief.labels))

    def segments(self, starts: int) -> ArraySegments:
        """Return the posteriors of all starts in arrays."""
        of_family = isinstance(self.prior, ArmsBelief)
        return (ArmSegments if of_family else ScoreSegments)(self.prior, starts)

    def _event(self, x: Any, a: Any, o: Any) -> Event:
        """Return a valid event as (x, row of arm a, reward), or raise an error."""
        event: Event = self.prior.row_event(x, self.place(a), o)
        return event

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its reward is lost."""
        super().take_event(event, decision)
        if event is not None:
            self._roster.counts[event[1]] += 1

    def _draw_segment(self, rng: StreamLike) -> Any:
        belief = super()._draw_segment(rng)
        belief.use_roster(self._roster)
        return belief

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t): draw a start, then an action of its belief."""
        self._drawn_from = None
        return self._draw_segment(rng).draw_action(x, rng)

    # -- queries -------------------------------------------------------------------------------

    def components(self) -> list[tuple[float, Any]]:
        """Return P(s | âo_<t) and the belief about the active arms, for every start s."""
        components = super().components()
        for _, belief in components:
            belief.use_roster(self._roster)
        return components

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t) = Σ_s P(s | âo_<t) P(arm a is the best | s)."""
        return self.average(lambda belief: belief.action_probabilities(x))

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        return self.average(lambda belief: belief.predictive(x, a))

    def expected(self, *x: Any) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm, in context x if the arms have contexts."""
        return self.average(lambda belief: belief.expected(*x))

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm: F = Σ_s P(s | âo_<t) F_s."""
        given = [(p, belief.mean_quantiles(QUANTILE_GRID, x)) for p, belief in self.components()]
        return {a: mixed_quantiles([(p, q[a]) for p, q in given], tails) for a in self.arms}

    def posterior_summary(self) -> Summary:
        """Return the mean and the number of rewards of every arm."""
        return self._summary(self.posterior_means().values())

    # -- for compiled loops --------------------------------------------------------------------

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop, which has no temperature other than 1."""
        return arms_loop(agent, environment) if agent.belief.prior.temperature == 1.0 else None

    @property
    def family(self) -> Any:
        """The family of the arms; None if the arms have contexts."""
        return getattr(self.prior, "family", None)

    def interact(
        self, truth: FloatArray, p: Stream, q: Stream, actions: IntArray, rewards: FloatArray
    ) -> None:
        """Act and learn in a world with these true parameters; fill `actions` and `rewards`.

        The compiled loop stops only where a state of the last window is saved.
        """
        if len(actions):
            self._pass_over()
        state, family, done = self._state, self.family, 0
        segments: Any = state.segments
        rows, prior = segments.arrays["rows"], self.prior.posterior()
        arms = kernels.arms.ArmRows(
            family.kind, family.constants, rows, self._roster.active, np.empty(len(prior))
        )
        starts = kernels.changes.StartArrays(
            state.w, state.mass, state.starts, state.dropped, state.hazards,
            np.empty(len(state.mass)), prior, state.log_evidence,
        )  # fmt: skip
        streams = kernels.random.Streams(p.state, q.state)
        while done < len(actions):
            unsaved, left = state.t - int(self._saved[-1]["time"]), len(actions) - done
            saves = (unsaved + left) // self.window
            is_long = saves > 2  # all but the last two states would be dropped
            n = (saves - 1) * self.window - unsaved if is_long else min(self.window - unsaved, left)
            part = slice(done, done + n)
            state.size = kernels.changes.interact_arms(
                arms, starts, state.size, state.t, truth, streams, actions[part], rewards[part]
            )
            state.t, done = state.t + n, done + n
            if is_long:
                self._saved, self._events = [state.save()], []
            else:
                pairs = zip(actions[part].tolist(), rewards[part].tolist(), strict=True)
                self._events += [(None, j, r) for j, r in pairs]
                self._save_window()
        self.fast_forward(actions)
        self._drawn_from = None

    @property
    def events(self) -> tuple[Event | None, ...]:
        """The events (x, row of the arm, reward) since the window began; None: no reward yet."""
        return tuple(self._events)

    # -- adding and retiring arms --------------------------------------------------------------

    def add(self, arm: Hashable, prior: Prior | None = None) -> None:
        """Add an arm: in every segment it has its prior, as if it had never been pulled.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(["red"]).changing().belief()
        >>> belief.add("blue", prior=(8, 2))
        >>> {a: round(r, 12) for a, r in belief.expected().items()}
        {'red': 0.5, 'blue': 0.8}
        """
        grown = self.prior.copy()
        grown.add(arm, prior)
        self.prior = grown
        segments = self.segments(self.most_starts)

        def with_arm(saved: Arrays) -> Arrays:
            rows = {f"segments/{name}": v[:, -1:] for name, v in segments.arrays.items()}
            joined = {k: np.concatenate([saved[k], v[: len(saved[k])]], 1) for k, v in rows.items()}
            return {**saved, **joined}

        now, self._saved = self._state.save(), [with_arm(saved) for saved in self._saved]
        self._state.segments = segments
        self._state.load(with_arm(now))
        self._roster.add(arm)
        self._drawn_from = None

    def restarted(
        self, static: ArmsBelief | LinearBelief, events: Sequence[Event | None]
    ) -> "ChangingArmsBelief":
        """Return a belief with another prior that has learned only these events of the window."""
        state, window_start = self._state, int(self._saved[0]["time"])
        belief = ChangingArmsBelief(
            static, hazards=state.hazards, hazard_prior=self._hazard_prior, starts=self.most_starts,
            window=self.window,
        )  # fmt: skip
        # Without evidence all segments are equal, so that one start stands for all.
        belief._state.t = belief._state.starts[0] = window_start
        belief._replay(belief._state.save(), [*events])
        belief._waiting = self._waiting
        return belief

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late answers for it are still learned."""
        self._roster.retire(arm)
        self._drawn_from = None

    def _check_state(self, new: SimpleNamespace) -> None:
        self.require_same_arms(new._roster)
        new._events = [e and (e[0], self.place(e[1]), e[2]) for e in new._events]
        super()._check_state(new)


class JoinedFilters(DecisionClock, HasArms[Any]):
    """Base of beliefs that consist of `_parts`, changing beliefs with the same clock."""

    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure("mean reward", "reward")

    _parts: list[Any]
    #: A static belief, which checks events.
    prior: Any

    def _event(self, x: Any, a: Any, o: Any) -> Event:
        """Return a valid event as (x, row of arm a, reward), or raise an error."""
        event: Event = self.prior.row_event(x, self.place(a), o)
        return event

    @property
    def decision(self) -> int:
        """The number of the current decision, from 0."""
        return int(self._parts[0].decision)

    @property
    def open_decisions(self) -> tuple[int, ...]:
        """The decisions that wait for an answer which would not come too late."""
        return tuple(self._parts[0].open_decisions)

    @property
    def window(self) -> int:
        """How many decisions late an answer may come."""
        return int(self._parts[0].window)

    @property
    def most_starts(self) -> int:
        """The largest number of starts."""
        return int(self._parts[0].most_starts)

    def begin(self) -> None:
        """Begin a decision."""
        for part in self._parts:
            part.begin()

    def answer(self, decision: int, x: Any, a: Any, o: Any) -> None:
        """Learn the reward of one of the last `window` decisions; `MISSING` if it was lost."""
        self.place(a)  # raises an error if there is no such arm
        super().answer(decision, x, a, o)

    def observed_part(self, o: Any) -> Any:
        """Return the reward in o: the part that `log_predictive` covers."""
        return self._parts[0].observed_part(o)

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        self._parts[0].merge(other)


class PerArmBelief(JoinedFilters):
    """P(h_a, s_a, m_a | âo_<t) for arms that change independently of each other.

    `parts` are changing beliefs with one arm each. At every decision time goes on for all of them.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).changing(per_arm=True).belief()
    >>> for t in range(60):
    ...     belief.observe(None, ["red", "blue"][t % 2], int(t % 2 == 1 or t < 40))
    >>> {a: round(p, 2) for a, p in belief.expected().items()}  # red has stopped paying
    {'red': 0.13, 'blue': 0.97}
    """

    saved_fields = declare(Parts("", "_parts"))

    format_name: ClassVar[str] = "PerArmBelief"
    _parts: list[ChangingArmsBelief]

    def __init__(self, parts: Sequence[ChangingArmsBelief]) -> None:
        self._parts, self.prior = list(parts), parts[0].prior
        for part in parts:  # the draws of separate arms can be compared as doubles only
            if isinstance(part.prior, ArmsBelief) and part.prior.compares_logs:
                raise InvalidPrior(
                    f"arm {part.labels[0]!r}: its prior parameters are too small for arms that "
                    "change separately: use parameters of at least 0.5 times the temperature, or "
                    "per_arm=False"
                )
        self._roster = Roster([part.labels[0] for part in parts])

    def hazards(self) -> dict[Any, dict[float, float]]:
        """P(h_a | âo_<t) of every arm."""
        return {a: part.hazards() for a, part in zip(self.labels, self._parts, strict=True)}

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn (x, row of the arm, reward); for the other arms, only time goes on."""
        if decision is not None and any(part.has_answer(decision) for part in self._parts):
            raise BadEvidence(
                f"decision {decision} has its reward already: give each decision one reward, or "
                "MISSING"
            )
        x, j, r = (None, 0, None) if event is None else event
        self._parts[j].take_event(event and (x, 0, r), decision)
        for part in (*self._parts[:j], *self._parts[j + 1 :]):
            part.take_event(None, decision)
        self._roster.counts[j] += event is not None

    @property
    def events(self) -> tuple[Event | None, ...]:
        """The events (x, row of the arm, reward) since the window began; None: no reward yet."""
        joined: list[Event | None] = [None] * len(self._parts[0].events)
        for j, part in enumerate(self._parts):
            for n, event in enumerate(part.events):
                joined[n] = (event[0], j, event[2]) if event is not None else joined[n]
        return tuple(joined)

    @property
    def log_evidence(self) -> float:
        """ln P(o_<t | â_<t): the sum over the arms."""
        return sum(part.log_evidence for part in self._parts)

    @property
    def window_start(self) -> Arrays:
        """The state at which the window begins: of the first arm, with the evidence of all."""
        starts = [part.window_start for part in self._parts]
        return {**starts[0], "log_evidence": np.sum([s["log_evidence"] for s in starts], axis=0)}

    def restarted(
        self, static: ArmsBelief | LinearBelief, events: Sequence[Event | None]
    ) -> "PerArmBelief":
        """Return a belief with another prior that has learned only these events of the window."""
        parts = []
        for j, (arm, part) in enumerate(zip(self.labels, self._parts, strict=True)):
            mine = [(e[0], 0, e[2]) if e and e[1] == j else None for e in events]
            parts.append(part.restarted(static.only(arm), mine))
            parts[j].use_roster(part._roster.copy())
        return PerArmBelief(parts)

    def sample(self, rng: StreamLike) -> Any:
        """Draw a start and the parameters of every active arm."""
        for j in self._roster.active.tolist():
            self._parts[j].sample(rng)
        self._last = self._joint_mode()
        return self._last

    def _joint_mode(self) -> Any:
        """Join the modes of the active arms that were drawn last; None before the first draw."""
        modes: list[Any] = [self._parts[j].last() for j in self._roster.active.tolist()]
        if None in modes:
            return None
        if isinstance(modes[0], MeanRewards):
            return MeanRewards(self.arms, np.concatenate([mode.means for mode in modes]))
        weights = np.concatenate([mode.weights for mode in modes])
        return LinearWeights(self.arms, weights, modes[0].schema)

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if observations are continuous."""
        return self._parts[self.place(a)].log_predictive(x, a, o)

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every reward o, if there are finitely many."""
        return self._parts[self.place(a)].predictive(x, a)

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t): the posterior of each arm is a mixture over its starts.

        P(a) = ∫ f_a(m) Π_{b≠a} F_b(m) dm, with f_a = Σ_s P(s_a = s | âo_<t) f_{a,s}.
        """
        parts = [self._parts[j].components() for j in self._roster.active.tolist()]
        first = np.cumsum([0, *(len(part) for part in parts)])
        p = np.array([p for part in parts for p, _ in part])
        marginals = np.concatenate([belief.marginals(x) for part in parts for _, belief in part])
        best = self.prior.best(marginals, Mixture(first, p))
        return dict(zip(self.arms, best.tolist(), strict=True))

    def expected(self, *x: Any) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm, in context x if the arms have contexts."""
        return {a: self._parts[self.place(a)].expected(*x)[a] for a in self.arms}

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm."""
        return {a: self._parts[self.place(a)].mean_quantiles(tails, x)[a] for a in self.arms}

    def posterior_summary(self) -> Summary:
        """Return the mean and the number of rewards of every arm."""
        return self._summary(
            mean for part in self._parts for mean in part.posterior_means().values()
        )

    def add(self, arm: Hashable, prior: Prior | None = None) -> None:
        """Add an arm with its prior; the other arms do not change.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(["red"]).changing(per_arm=True).belief()
        >>> belief.add("blue", prior=(8, 2))
        >>> {a: round(r, 12) for a, r in belief.expected().items()}
        {'red': 0.5, 'blue': 0.8}
        """
        static = self.prior.copy()
        static.add(arm, prior)
        first = self._parts[0]
        parts = [*self._parts, first.restarted(static.only(arm), [None] * len(first.events))]
        PerArmBelief(parts)  # raises an error if the draws of the arm cannot be compared
        self._roster.add(arm)
        self._parts, self._last = parts, None

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late answers for it are still learned."""
        self._roster.retire(arm)
        self._last = None

    def _check_state(self, new: SimpleNamespace) -> None:
        self.require_same_arms(new._roster)
        if len({part.open_decisions for part in new._parts}) > 1:
            raise damaged("its arms differ in open decisions")

    def _after_load(self) -> None:
        self._last = self._joint_mode()

    def __repr__(self) -> str:
        return f"PerArmBelief({len(self)} arms, decision {self.decision})"
