"""Beliefs about worlds that change: when the current segment began is part of the mode.

    mode           (h, s, m): hazard rate, start of the segment, and a mode of a static belief
    P(h, s | past)      learned, see `kernels.changes`;  h is on a grid
    P(m | h, s, past) = P(m | observations since s): a static belief for each start

At every decision the world changes with probability h. Then all that was learned before is void,
and the prior returns. At most `starts` starts are kept. If there are more, the one with the
smallest probability is dropped, and the nearest start in time takes its probability.

Time counts decisions. A step without an answer moves the clock and is no evidence. An answer may
come up to `window` decisions late: the belief is then computed again from a saved state, as if the
answer had come in time.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from operator import index
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, Arrays, FloatArray, IntArray, as_integer
from bayescontrol._mode_queries import observed_part
from bayescontrol._support.saved import (
    Array,
    ArrayGroup,
    Cache,
    Copied,
    Fixed,
    FixedPart,
    Part,
    Plain,
    Saved,
    SavedArrays,
    checked_array,
    damaged,
    declare,
    part_of,
    with_prefix,
)
from bayescontrol.beliefs.switching import hazard_grid
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    TooLate,
)
from bayescontrol.protocols import MISSING
from bayescontrol.seeding import StreamLike, state_of

#: The default hazard rates, equally probable: from a change in ten steps to one in a million.
HAZARDS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
#: An event in plain values, as `plain_event` of a static belief returns it: (x, a, o).
Event = tuple[Any, Any, Any]
K = TypeVar("K")


class Segments(Saved):
    """The static beliefs of all starts: each learns from the start of its segment.

    Every start that is kept has a place: its index in the arrays of `State`. A new start takes a
    free place, or that of the start that is dropped.
    """

    saved_fields = declare(Copied("_beliefs", nested=True))

    def __init__(self, prior: Any, starts: int) -> None:
        self.prior, self.starts = prior, starts
        self._beliefs = {0: prior.copy()}

    def belief(self, place: int) -> Any:
        """Return the belief of a place."""
        return self._beliefs[place]

    def likelihoods(self, mass: FloatArray, event: Event) -> tuple[FloatArray, float]:
        """Return P(o | segment) / scale for the starts with these masses, and ln of the scale."""
        logs = np.array([self._beliefs[i].log_predictive(*event) for i in range(len(mass))])
        largest = float(logs[mass > 0.0].max())
        return np.exp(np.minimum(logs - largest, 0.0)), largest

    def learn(self, size: int, event: Event) -> None:
        """Let the first `size` beliefs learn. An error changes nothing."""
        learned = {i: self._beliefs[i].copy() for i in range(size)}
        for belief in learned.values():
            belief.observe(*event)
        self._beliefs = learned

    def restart(self, place: int) -> None:
        """Begin a new segment with the prior."""
        self._beliefs[place] = self.prior.copy()

    def save_places(self, size: int) -> Arrays:
        """Return the beliefs of the first `size` places as named arrays."""
        saved = ((i, self._beliefs[i].save()) for i in range(size))
        return {f"{i}/{name}": v for i, arrays in saved for name, v in arrays.items()}

    def load_places(self, size: int, arrays: Arrays) -> None:
        """Restore what `save_places` returned."""
        self._beliefs = {i: self.prior.copy() for i in range(size)}
        for i, belief in self._beliefs.items():
            belief.load(part_of(arrays, f"{i}/"))


class ArraySegments(Segments):
    """Segments whose posteriors are parts of a few arrays, for compiled kernels.

    The method `use_arrays` of a belief makes it use the given arrays as its posterior.
    `prior_arrays` are these arrays of the prior.
    """

    saved_fields = declare(
        # Beliefs are views: in a copy they would be arrays that no longer learn.
        Cache("_beliefs", lambda _: {}),
        Copied("arrays", nested=True),
        Copied("p"),
    )

    def __init__(self, prior: Any, starts: int, **prior_arrays: FloatArray) -> None:
        super().__init__(prior, starts)
        self._prior_arrays = prior_arrays
        self._beliefs = {}
        self.arrays: Arrays = {name: np.stack([v] * starts) for name, v in prior_arrays.items()}
        self.p = np.empty(starts)

    def attach(self, belief: Any, *parts: FloatArray) -> None:
        """Make the belief use these arrays as its posterior."""
        belief.use_arrays(*parts)

    def belief(self, place: int) -> Any:
        """Return the belief of a place: a view of the arrays."""
        if place not in self._beliefs:
            self._beliefs[place] = self.prior.copy()
            self.attach(self._beliefs[place], *(v[place] for v in self.arrays.values()))
        return self._beliefs[place]

    def restart(self, place: int) -> None:
        """Begin a new segment with the prior."""
        for name, prior in self._prior_arrays.items():
            self.arrays[name][place] = prior

    def save_places(self, size: int) -> Arrays:
        """Return the arrays of the first `size` places."""
        return {name: v[:size].copy() for name, v in self.arrays.items()}

    def load_places(self, size: int, arrays: Arrays) -> None:
        """Restore what `save_places` returned."""
        saved = SavedArrays(arrays)
        for name, v in self.arrays.items():
            v[:size] = checked_array(saved, name, v.dtype, (size, *v.shape[1:]))


class State(Saved):
    """The posterior at one time: weights of hazards and starts, and the beliefs of the segments.

    The arrays `w` [hazard, place], `mass` [place] and `starts` [place] have room for all places.
    The first `size` places are used, and only these are saved.
    """

    saved_fields = declare(
        *map(Copied, ("w", "mass", "starts", "dropped", "log_evidence", "segments"))
    )

    def __init__(self, segments: Segments, hazards: FloatArray, weights: FloatArray) -> None:
        self.segments, self.hazards = segments, hazards
        self.size, self.t = 1, 0
        self.w, self.mass = np.zeros((len(hazards), segments.starts)), np.zeros(segments.starts)
        self.w[:, 0], self.mass[0] = weights, 1.0
        self.starts: IntArray = np.zeros(segments.starts, np.int64)
        #: The probability of the starts that were dropped at the last step, and at all steps.
        self.dropped = np.zeros(2)
        #: ln P(observations), given the belief of a new segment.
        self.log_evidence = np.zeros(1)

    def observe(self, event: Event | None) -> None:
        """Condition on an event, if there is one, and go to the next time."""
        if event is not None:
            p, log_scale = self.segments.likelihoods(self.mass[: self.size], event)
            self.segments.learn(self.size, event)
            self.log_evidence[0] += kernels.changes.condition(self.w, self.size, p) + log_scale
        self.t += 1
        place = kernels.changes.change(
            self.w, self.size, self.hazards, self.t, self.mass, self.starts, self.dropped
        )
        self.segments.restart(place)
        self.size = max(self.size, place + 1)

    def probabilities(self) -> FloatArray:
        """P(s | past) of the starts."""
        mass = self.mass[: self.size]
        return np.asarray(mass / mass.sum())

    def save(self) -> Arrays:
        """Return the used places as named arrays."""
        used = {"weights": self.w, "mass": self.mass, "starts": self.starts}
        arrays = {name: array[..., : self.size].copy() for name, array in used.items()}
        arrays |= {"time": np.array(self.t), "dropped": self.dropped.copy()}
        arrays["log_evidence"] = self.log_evidence.copy()
        return arrays | with_prefix("segments/", self.segments.save_places(self.size))

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for the same hazards and at most as many starts."""
        arrays = SavedArrays(arrays)
        size, most = np.size(arrays["starts"]), len(self.mass)
        if not 1 <= size <= most:
            raise IncompatibleState(
                f"the saved state has {size} starts: expected 1 to `starts`, which is {most}"
            )
        new = self.copy()
        for name, array in (("weights", new.w), ("mass", new.mass), ("starts", new.starts)):
            array[..., :size] = checked_array(arrays, name, array.dtype, (*array.shape[:-1], size))
            array[..., size:] = 0
        new.t = int(checked_array(arrays, "time", np.int64, ()))
        new.dropped[:] = checked_array(arrays, "dropped", np.float64, (2,))
        new.log_evidence[:] = checked_array(arrays, "log_evidence", np.float64, (1,))
        new.segments.load_places(size, part_of(arrays, "segments/"))
        new.size = size
        vars(self).update(vars(new))


class DecisionClock(Saved):
    """Base of beliefs in which time counts decisions; each decision has at most one answer."""

    @abstractmethod
    def _event(self, x: Any, a: Any, o: Any) -> Event:
        """Return a valid event in plain values, in the form of the belief, or raise an error."""

    @abstractmethod
    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its answer is lost."""

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn the answer to the current decision. An error leaves the belief unchanged.

        Without a decision, o is learned as the answer to a new one. If earlier decisions are open,
        this is an error: use `answer`, with the number of the decision.
        """
        self.take_event(self._event(x, a, o))

    def skip(self, x: Any, a: Any) -> None:
        """Close the current decision without an answer; it may still come late."""
        self.take_event(None)

    def answer(self, decision: int, x: Any, a: Any, o: Any) -> None:
        """Learn the answer to a decision, at most `window` decisions ago; `MISSING`: it is lost.

        The belief is the same as if the answer had come in time. An older answer raises `TooLate`.
        """
        event = None if o is MISSING else self._event(x, a, o)
        self.take_event(event, index(decision))


class ChangePointBelief(DecisionClock):
    """P(h, s, m | âo_<t): a static belief for each possible start of the current segment.

    `belief` is the static belief of a new segment. `hazards` are the possible probabilities of a
    change per step, and `hazard_prior` their probabilities, equal by default. At most `starts`
    starts are kept. Answers may come up to `window` decisions late.

    >>> from bayescontrol import LinearBandit
    >>> bandit = LinearBandit(["red"], features=1, sd=0.1, prior=(0, 1))
    >>> belief = ChangePointBelief(bandit.belief())
    >>> for t in range(40):
    ...     belief.observe([1.0], "red", 1.0 if t < 30 else -1.0)
    >>> max(belief.starts(), key=belief.starts().get)
    30
    """

    format_name: ClassVar[str] = "ChangePointBelief"
    #: A saved belief is the start of the window and its events, from which `load` continues.
    saved_fields = declare(
        ArrayGroup("saved/", lambda belief: belief.window_start),
        FixedPart("prior/", "prior"),
        Part("drawn_from/", "_drawn_from", blank=lambda belief: belief.prior.copy()),
        Fixed(
            "settings",
            lambda belief: np.array([*belief._state.hazards, belief.most_starts, belief.window]),
            setting="hazards, starts and window",
        ),
        Array("waiting", lambda b: np.array(b.open_decisions, np.int64), shape=(None,)),
        Plain("events", "_events", what="the window of answers", copied=True),
        Copied("_saved"),
        Copied("_state"),
    )

    def __init__(
        self,
        belief: Any,
        *,
        hazards: ArrayLike = HAZARDS,
        hazard_prior: ArrayLike | None = None,
        starts: int = 64,
        window: int = 100,
    ) -> None:
        h, weights = hazard_grid(hazards, hazard_prior)
        if (h == 1.0).any():
            raise InvalidTable(f"hazards={hazards!r}: expected probabilities below 1")
        self.prior, self.window = belief, as_integer("window", window, 1)
        segments = self.segments(as_integer("starts", starts, 2))
        self._hazard_prior = weights
        self._state = State(segments, h, weights / weights.sum())
        self._waiting = frozenset[int]()
        self._drawn_from: Any = None  # the belief that has drawn the last mode
        #: States at earlier times, as arrays, and all events since the first of them.
        self._saved, self._events = [self._state.save()], list[Event | None]()

    def segments(self, starts: int) -> Segments:
        """Return the beliefs of all starts; subclasses may use compiled ones."""
        if getattr(self.prior, "learns_scale", False):
            raise MissingCapability(
                f"{self.prior!r} learns its scale, which every new segment would forget: use "
                "problem.changing(), or a belief with a given prior"
            )
        for method in ("plain_event", "log_predictive"):
            if not hasattr(self.prior, method):
                raise MissingCapability(
                    f"{self.prior!r} cannot change: it has no {method}(x, a, o)"
                )
        return Segments(self.prior, starts)

    @property
    def most_starts(self) -> int:
        """The largest number of starts."""
        return self._state.segments.starts

    # -- time --------------------------------------------------------------------------------

    @property
    def decision(self) -> int:
        """The number of the current decision, from 0; `answer` needs it for late answers."""
        return self._state.t

    @property
    def open_decisions(self) -> tuple[int, ...]:
        """The decisions without an answer that are recent enough to get one."""
        return tuple(sorted(self._waiting))

    def begin(self) -> None:
        """Begin a decision. If the one before has no answer yet, time goes on without it."""
        self._pass_over()
        self._waiting |= {self.decision}

    def _pass_over(self) -> None:
        """Go on without the answer to the current decision, if it was begun; it stays open."""
        if self.decision in self._waiting:
            self._close(None)

    def _event(self, x: Any, a: Any, o: Any) -> Event:
        """Return a valid event in plain values, or raise an error."""
        event: Event = self.prior.plain_event(x, a, o)
        return event

    def _answer_current(self, event: Event | None) -> None:
        """Close the current decision, or a new one, with this answer; None if it is lost."""
        n = self.decision
        if self._waiting and n not in self._waiting:
            still_open = ", ".join(map(str, self.open_decisions))
            raise BadEvidence(
                f"no decision was made since the last observation, and earlier decisions are open "
                f"({still_open}): pass decision=NUMBER to say which one is meant"
            )
        self._close(event)
        self._waiting -= {n}

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its answer is lost."""
        n, now = decision, self.decision
        if n is None or (n == now and n in self._waiting):
            self._answer_current(event)
            return
        if not 0 <= n < now:
            raise BadEvidence(
                f"decision {n} has not been made: the next decision is {now}. Read "
                "`belief.decision` after the action and before its observation"
            )
        first = int(self._saved[0]["time"])
        if n < max(now - self.window, first):
            raise TooLate(
                f"the answer to decision {n} comes {now - n} decisions late: this belief accepts "
                f"answers up to {self.window} decisions late; set `window`"
            )
        if self.has_answer(n):
            raise BadEvidence(f"decision {n} has an answer already: give each decision one answer")
        if event is not None:
            events = [*self._events]
            events[n - first] = event
            self._replay(self._saved[0], events)
        self._waiting -= {n}

    def has_answer(self, decision: int) -> bool:
        """Whether a decision of the window has an answer."""
        n = decision - int(self._saved[0]["time"])
        return 0 <= n < len(self._events) and self._events[n] is not None

    def _close(self, event: Event | None) -> None:
        """Go to the next decision."""
        self._state.observe(event)
        self._events.append(event)
        self._save_window()

    def _save_window(self) -> None:
        """Save the state every `window` steps, and drop what is too old."""
        if self._waiting:
            self._waiting = frozenset(n for n in self._waiting if n >= self.decision - self.window)
        if self._state.t - self._saved[-1]["time"] >= self.window:
            self._saved.append(self._state.save())
        if len(self._saved) > 2:
            del self._events[: int(self._saved[1]["time"] - self._saved[0]["time"])]
            del self._saved[0]

    def _replay(self, saved: Arrays, events: list[Event | None]) -> None:
        """Start from a saved state and repeat the events. An error changes nothing."""
        trial = self.copy()
        trial._saved, trial._events = [saved], []
        trial._state.load(saved)
        for event in events:
            trial._close(event)
        self._state, self._saved, self._events = trial._state, trial._saved, trial._events

    # -- drawing -------------------------------------------------------------------------------

    def sample(self, rng: StreamLike) -> Any:
        """Draw a start, then a mode of its segment."""
        self._drawn_from = self._draw_segment(rng).copy()  # the segment goes on learning
        return self._drawn_from.sample(rng)

    def _draw_segment(self, rng: StreamLike) -> Any:
        """Draw a start and return the belief of its segment."""
        state = self._state
        place = kernels.changes.draw_start(state.mass, state.size, state_of(rng))
        return state.segments.belief(place)

    def last(self) -> Any:
        """Return the mode drawn last."""
        return None if self._drawn_from is None else self._drawn_from.last()

    # -- queries -------------------------------------------------------------------------------

    def posterior(self) -> FloatArray:
        """P(s | âo_<t) of every start that is kept, in the order of time."""
        return np.array(list(self.starts().values()))

    def starts(self) -> dict[int, float]:
        """P(s | âo_<t): the probability that the current segment began at decision s."""
        state = self._state
        used = state.starts[: state.size].tolist()  # places are reused: not in the order of time
        return dict(sorted(zip(used, state.probabilities().tolist(), strict=True)))

    def hazards(self) -> dict[float, float]:
        """P(h | âo_<t) for each hazard rate of the grid."""
        w = self._state.w[:, : self._state.size].sum(1)
        return dict(zip(self._state.hazards.tolist(), (w / w.sum()).tolist(), strict=True))

    @property
    def log_evidence(self) -> float:
        """ln P(o_<t | â_<t): the sum of the log predictive densities of all observations."""
        return float(self._state.log_evidence[0])

    @property
    def window_start(self) -> Arrays:
        """The oldest saved state, at which the window begins; no later answer changes it."""
        return self._saved[0]

    @property
    def dropped(self) -> float:
        """The probability of the start dropped at the last step, which the nearest start took."""
        return float(self._state.dropped[0])

    @property
    def total_dropped(self) -> float:
        """The sum of `dropped` over all steps."""
        return float(self._state.dropped[1])

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if observations are continuous."""
        state = self._state
        p, log_scale = state.segments.likelihoods(state.mass[: state.size], self._event(x, a, o))
        return math.log(float(p @ state.probabilities())) + log_scale

    def observed_part(self, o: Any) -> Any:
        """Return the part of o that the static belief predicts."""
        return observed_part(self.prior, o)

    def average(self, query: Callable[[Any], dict[K, Any]]) -> dict[K, Any]:
        """Return Σ_s P(s | âo_<t) query(belief of the segment), key by key."""
        total = dict[K, Any]()
        for p, belief in self.components():
            for key, value in query(belief).items():
                total[key] = total.get(key, 0.0) + p * value
        return total

    def posterior_means(self) -> dict[str, Any]:
        """Return the means in `posterior_summary` of the static beliefs, averaged over starts."""
        means = self.average(
            lambda belief: {k: np.array(v["mean"]) for k, v in belief.posterior_summary().items()}
        )
        return {k: v.tolist() for k, v in means.items()}

    def components(self) -> list[tuple[float, Any]]:
        """Return P(s | âo_<t) and the belief of the segment of every start s.

        Starts with a total probability below 1e-15 are left out.
        """
        p, segments = self._state.probabilities(), self._state.segments
        starts = np.flatnonzero(p > 1e-15 / len(p)).tolist()
        return [(float(p[place]), segments.belief(place)) for place in starts]

    # -- saving and copying ----------------------------------------------------------------------

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        raise IncompatibleState(
            f"{self!r} cannot be merged: a belief about a changing world depends on the order of "
            "the observations. Give all of them to one belief, in order"
        )

    def _check_state(self, new: SimpleNamespace) -> None:
        trial = self.copy()
        trial._replay(new.saved, new._events)
        for n in new.waiting.tolist():
            is_recent = max(0, trial.decision - self.window) <= n <= trial.decision
            if not is_recent:
                raise damaged(
                    f"decision {n} is listed as open, but it is not among the last {self.window} "
                    f"decisions up to {trial.decision}"
                )
            if trial.has_answer(n):
                raise damaged(f"decision {n} is listed as open, but it has an answer")
        new._waiting = frozenset(new.waiting.tolist())
        new._state, new._saved, new._events = trial._state, trial._saved, trial._events

    def __repr__(self) -> str:
        start, p = max(self.starts().items(), key=lambda item: item[1])
        return (
            f"{type(self).__name__}(decision {self.decision}, segment since {start} with "
            f"probability {p:.4g})"
        )
