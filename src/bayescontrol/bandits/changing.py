"""Arms that change: a static belief over the arms for each possible start of the segment.

    P(a | âo_<t) = Σ_s P(s | âo_<t) P(arm a is the best | rewards since s)

By default all arms change together. With `per_arm`, each arm has starts and hazards of its own, and
the arms are independent.
"""

from collections.abc import Hashable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.saved import Copied, Parts, damaged, declare
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
from bayescontrol.errors import BadEvidence, InvalidPrior, MissingCapability
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Totals
from bayescontrol.seeding import Stream, StreamLike, state_of


class ArmSegments(ArraySegments):
    """The posterior rows of the arms for each start."""

    saved_fields = declare(Copied("drawn"), Copied("_event", nested=True))

    def __init__(self, prior: ArmsBelief, *arguments: Any) -> None:
        super().__init__(prior, *arguments, rows=prior.posterior())
        #: The mean rewards drawn last, unless they were drawn as logarithms.
        self.drawn = np.empty(len(prior.posterior()))
        #: The arm and the reward of a single event, for the kernel.
        self._event = np.empty(1, np.int64), np.empty(1)

    def draw_arm(self, active: IntArray, rng: StreamLike) -> int:
        """Draw a start, then the arm that is the best in its segment."""
        family = self.prior.family
        return kernels.changes.draw_arm(
            family.kind, family.constants, self.arrays["rows"], active, self.drawn,
            self.weights.mass, self.size, state_of(rng),
        )  # fmt: skip

    def likelihoods(self, event: Event) -> tuple[FloatArray, float]:
        """Return P(r | segment) / scale of all starts, and ln of the scale."""
        (_, j, r), family, weights = event, self.prior.family, self.weights
        log_scale = kernels.changes.arm_likelihoods(
            family.kind, family.constants, self.arrays["rows"], self.size, j, r, weights.mass,
            weights.p,
        )  # fmt: skip
        return weights.p[: self.size], log_scale

    def learn(self, events: Sequence[Event | None]) -> None:
        """Learn the events one by one; without evidence only time goes on."""
        arms, rewards = self._event
        if len(events) == 1:
            (event,) = events
            arms[0], rewards[0] = event[1:] if event else (-1, 0.0)
        else:
            arms = np.array([event[1] if event else -1 for event in events], np.int64)
            rewards = np.array([event[2] if event else 0.0 for event in events], np.float64)
        family = self.prior.family
        done = kernels.changes.learn_rewards(
            family.kind, family.constants, self.arrays["rows"], self.size, self.t, arms, rewards,
            *self.weights,
        )  # fmt: skip
        self.pass_time(done)
        if done < len(events):
            arm, r = self.prior.labels[arms[done]], float(rewards[done])
            raise BadEvidence(f"reward {r!r} of arm {arm!r} is too large for the posterior")

    def pass_time(self, steps: int) -> None:
        """Count the steps of a kernel: each of them begins a segment."""
        self.t, self.size = self.t + steps, min(self.size + steps, len(self.weights.mass))


class ScoreSegments(ArraySegments):
    """The posterior weights of contextual arms for each start."""

    def __init__(self, prior: LinearBelief, *arguments: Any) -> None:
        arrays = prior.loop_arrays()
        self._v = arrays.v
        super().__init__(prior, *arguments, factor=arrays.R, target=arrays.z)

    def likelihoods(self, event: Event) -> tuple[FloatArray, float]:
        """Return P(r | segment) / scale of all starts, and ln of the scale."""
        (x, j, r), link, weights = event, self.prior.link, self.weights
        log_scale = kernels.changes.score_likelihoods(
            link.kind, link.constants, self.arrays["factor"], self.arrays["target"], self.size,
            j, np.array(x), r, self._v, weights.mass, weights.p,
        )  # fmt: skip
        return weights.p[: self.size], log_scale

    def update(self, event: Event) -> None:
        """Update the weights of the arm in all segments."""
        (x, j, r), link = event, self.prior.link
        kernels.changes.learn_scores(
            link.kind, link.constants, self.arrays["factor"], self.arrays["target"], self.size, j,
            np.array(x), r, self._v,
        )  # fmt: skip


class _ArmsClock(DecisionClock, HasArms[Any]):
    """Base of beliefs about changing arms, whose events are (x, row of the arm, reward)."""

    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure("mean reward", "reward")
    #: A static belief, which checks events.
    prior: Any

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Raise MissingCapability: rewards have effect by the time at which they came."""
        raise MissingCapability(
            "a changing belief needs to know when each reward came, so it cannot learn totals: "
            "observe one reward of each decision"
        )

    def _event(self, x: Any, a: Any, o: Any) -> Any:
        """Return a valid event, or raise an error."""
        return self.prior.row_event(x, self.place(a), o)


class ChangingArmsBelief(_ArmsClock, ChangePointBelief):
    """P(h, s, m | âo_<t) for arms that change together, with or without contexts.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).changing().belief()
    >>> for t in range(60):
    ...     belief.observe(None, "red", int(t < 40))     # the arm stops paying
    >>> {a: round(p, 2) for a, p in belief.expected().items()}
    {'red': 0.06, 'blue': 0.5}
    """

    format_name: ClassVar[str] = "ChangingArmsBelief"

    def __init__(self, belief: ArmsBelief | LinearBelief, **options: Any) -> None:
        super().__init__(belief, **options)
        self._roster = Roster(list(belief.labels))

    def segments(self) -> type[ArraySegments]:
        """Return the class of the posteriors of all starts in arrays."""
        return ArmSegments if isinstance(self.prior, ArmsBelief) else ScoreSegments

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its reward is lost."""
        super().take_event(event, decision)
        if event:
            self._roster.counts[event[1]] += 1

    def _draw_segment(self, rng: StreamLike) -> Any:
        belief = super()._draw_segment(rng)
        belief.use_roster(self._roster)
        return belief

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t): draw a start, then an action of its belief."""
        self._drawn_from = None
        is_compiled = self.prior.temperature == 1.0 and self._roster.prices is None
        if self.family is None or not is_compiled:
            return self._draw_segment(rng).draw_action(x, rng)
        state: Any = self._state
        return self._roster.labels[state.draw_arm(self._roster.active, rng)]

    def draw_mean(self, rng: StreamLike) -> float:
        """Draw a start and the mean reward of the only arm."""
        state: Any = self._state
        return float(state.drawn[state.draw_arm(self._roster.active, rng)])

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
        state: Any = self._state
        family, start, end = self.family, state.t, state.t + len(actions)
        arms = kernels.arms.ArmRows(
            family.kind, family.constants, state.arrays["rows"], self._roster.active,
            np.empty(len(self._roster.labels)),
        )  # fmt: skip
        streams = kernels.random.Streams(p.state, q.state)
        last = end - end % self.window
        for stop in (last - self.window, last, end):
            if stop <= state.t:
                continue
            part = slice(state.t - start, stop - start)
            done = kernels.changes.interact_arms(
                arms, state.weights, state.size, state.t, truth, streams, actions[part],
                rewards[part],
            )  # fmt: skip
            if done < stop - state.t:
                self._replay()
                raise BadEvidence(f"step {part.start + done}: the reward is too large")
            state.pass_time(done)
            if stop < last:  # the window begins here
                self._saved, self._events = [state.snapshot()], []
                continue
            pairs = zip(actions[part].tolist(), rewards[part].tolist(), strict=True)
            self._events += [(None, j, r) for j, r in pairs]
            if stop == last:
                self._save_window()
        self._waiting = {n for n in self._waiting if n >= state.t - self.window}
        self.fast_forward(actions)
        self._drawn_from = None

    @property
    def events(self) -> Iterable[Event | None]:
        """The events (x, row of the arm, reward) since the window began; None: no reward yet."""
        return self._events

    # -- adding and retiring arms --------------------------------------------------------------

    def add(self, arm: Hashable, prior: Prior | None = None) -> None:
        """Add an arm: in every segment it has its prior, as if it had never been pulled.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(["red"]).changing().belief()
        >>> belief.add("blue", prior=(8, 2))
        >>> {a: round(r, 12) for a, r in belief.expected().items()}
        {'red': 0.5, 'blue': 0.8}
        """
        grown, old = self.prior.copy(), self._state
        grown.add(arm, prior)
        state = self.segments()(grown, old.weights.hazards, self._hazard_prior, self.most_starts)

        def with_arm(saved: Any) -> Any:
            pairs = zip(saved.arrays[5:], state.arrays.values(), strict=True)
            rows = [np.concatenate([v, prior[:, -1:]], 1) for v, prior in pairs]
            return saved._replace(arrays=saved.arrays[:5] + rows)

        state.restore(with_arm(old.snapshot()))
        self._saved = [with_arm(saved) for saved in self._saved]
        self.prior, self._state = grown, state
        self._roster.add(arm)
        self._drawn_from = None

    def restarted(
        self, static: ArmsBelief | LinearBelief, events: Iterable[Event | None]
    ) -> "ChangingArmsBelief":
        """Return a belief with another prior that has learned only these events of the window."""
        belief = ChangingArmsBelief(
            static, hazards=self._state.weights.hazards.tolist(),
            hazard_prior=self._hazard_prior.tolist(), starts=self.most_starts, window=self.window,
        )  # fmt: skip
        # Without evidence all segments are equal, so that one start stands for all.
        state, start = belief._state, self.window_start.t
        state.t = state.weights.starts[0] = start
        belief._saved, belief._events = [state.snapshot()], [*events]
        belief._replay(start)
        belief._waiting = self._waiting.copy()
        return belief

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late answers for it are still learned."""
        self._roster.retire(arm)
        self._drawn_from = None

    def _check_state(self, new: SimpleNamespace) -> None:
        self.require_same_arms(new._roster)
        rows = range(len(self.labels))
        if not all(event[1] in rows for event in new._events if event):
            raise damaged("an event has an arm that does not exist")
        super()._check_state(new)


class ManyFilters(_ArmsClock):
    """Base of beliefs that consist of filters with a common clock, such as one for each arm."""

    #: The filters: changing beliefs.
    _parts: list[Any]

    def answer(self, decision: int, x: Any, a: Any, o: Any) -> None:
        """Learn the reward of one of the last `window` decisions; `MISSING` if it was lost."""
        self.place(a)  # raises an error if there is no such arm
        super().answer(decision, x, a, o)

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
        """The largest number of starts of a filter."""
        return int(self._parts[0].most_starts)

    def begin(self) -> None:
        """Begin a decision."""
        for part in self._parts:
            part.begin()

    def observed_part(self, o: Any) -> Any:
        """Return the reward in o: the part that `log_predictive` covers."""
        return self._parts[0].observed_part(o)

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        self._parts[0].merge(other)


class PerArmBelief(ManyFilters):
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
        if decision is not None and self._parts[0].has_answer(decision):
            raise BadEvidence(
                f"decision {decision} has its reward already: give each one reward, or MISSING"
            )
        x, j, r = event or (None, 0, None)
        self._parts[j].take_event(event and (x, 0, r), decision)
        for part in (*self._parts[:j], *self._parts[j + 1 :]):
            part.take_event(event and (), decision)
        self._roster.counts[j] += event is not None

    @property
    def events(self) -> Iterable[Event | None]:
        """The events (x, row of the arm, reward) since the window began; None: no reward yet."""
        for events in zip(*(part.events for part in self._parts), strict=True):
            learned = ((event[0], j, event[2]) for j, event in enumerate(events) if event)
            yield next(learned, None)

    @property
    def log_evidence(self) -> float:
        """ln P(o_<t | â_<t): the sum over the arms."""
        return sum(part.log_evidence for part in self._parts)

    @property
    def window_start(self) -> Any:
        """The state of the first arm at which the window begins."""
        return self._parts[0].window_start

    @property
    def window_evidence(self) -> float:
        """`log_evidence` when the window began."""
        return sum(part.window_evidence for part in self._parts)

    def restarted(
        self, static: ArmsBelief | LinearBelief, events: Iterable[Event | None]
    ) -> "PerArmBelief":
        """Return a belief with another prior that has learned only these events of the window."""
        parts, events = [], list(events)
        for j, (arm, part) in enumerate(zip(self.labels, self._parts, strict=True)):
            mine = [e and ((e[0], 0, e[2]) if e[1] == j else ()) for e in events]
            parts.append(part.restarted(static.only(arm), mine))
            parts[j].use_roster(part._roster.copy())
        return PerArmBelief(parts)

    def sample(self, rng: StreamLike) -> Any:
        """Draw a start and the parameters of every active arm, eligible or not."""
        for j in self._roster.all_active.tolist():
            self._parts[j].sample(rng)
        self._last = self._joint_mode()
        return self._last

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t): draw a start and the mean reward of every active arm."""
        if isinstance(self.prior, ArmsBelief) and self.prior.temperature == 1.0:
            means = [self._parts[j].draw_mean(rng) for j in self._roster.active.tolist()]
            mode = MeanRewards(self.arms, np.array(means))
            mode.prices = self._roster.prices
        else:
            mode = self.sample(rng)
        self._last = None
        for part in self._parts:
            part._drawn_from = None
        return mode.act(x, rng)

    def _joint_mode(self) -> Any:
        """Join the modes of the active arms that were drawn last; None before the first draw."""
        modes: list[Any] = [self._parts[j].last() for j in self._roster.active.tolist()]
        if None in modes:
            return None
        joint: Any
        if isinstance(modes[0], MeanRewards):
            joint = MeanRewards(self.arms, np.concatenate([mode.means for mode in modes]))
        else:
            weights = np.concatenate([mode.weights for mode in modes])
            joint = LinearWeights(self.arms, weights, modes[0].schema, modes[0].link)
        joint.prices = self._roster.prices
        return joint

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
        prices = self._roster.prices
        beliefs = [belief for part in parts for _, belief in part]
        marginals = np.concatenate([b.marginals(x, scaled=prices is None) for b in beliefs])
        best = self.prior.best(marginals, Mixture(first, p), prices)
        return dict(zip(self.arms, best.tolist(), strict=True))

    def expected(self, *x: Any) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm, in context x if the arms have contexts."""
        return {a: self._parts[self.place(a)].expected(*x)[a] for a in self.arms}

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm."""
        return {a: self._parts[self.place(a)].mean_quantiles(tails, x)[a] for a in self.arms}

    def posterior_summary(self) -> Summary:
        """Return the mean and the number of rewards of every arm."""
        return self._summary(m for part in self._parts for m in part.posterior_means().values())

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
        events = [event and () for event in self.events]
        parts = [*self._parts, self._parts[0].restarted(static.only(arm), events)]
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
