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
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter, index
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import AnyArray, ArrayLike, Arrays, FloatArray, as_integer
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
from bayescontrol.protocols import MISSING
from bayescontrol.seeding import StreamLike, state_of

#: The default hazard rates, equally probable: from a change in ten steps to one in a million.
HAZARDS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
#: An event in plain values, as `plain_event` of a static belief returns it: (x, a, o). The empty
#: tuple stands for an answer that is no evidence for this belief, but for another one.
Event = tuple[Any, ...]
K = TypeVar("K")


class Snapshot(NamedTuple):
    """The posterior at time t. Nothing in it is ever changed."""

    t: int
    #: The number of starts.
    size: int
    #: w, mass, starts, dropped and log_evidence of `StartArrays`, and the arrays of the segments.
    arrays: list[AnyArray]
    #: The beliefs of the places, if they are not in arrays.
    beliefs: dict[int, Any]


class Segments(Saved):
    """The posterior now: the weights of hazards and starts, and a static belief for each start.

    `hazards` are the hazard rates and `weights` their probabilities. Every start that is kept has a
    place, at most `starts` in all: its index in the arrays. The first `size` places are used. A new
    start takes a free place, or that of the start that is dropped.
    """

    saved_fields = declare(
        Copied("weights", nested=True),
        Copied("arrays", nested=True),
        Copied("_beliefs", nested=True),
    )

    def __init__(
        self, prior: Any, hazards: FloatArray, weights: FloatArray, starts: int, **arrays: Any
    ) -> None:
        self.prior = prior
        self.size, self.t = 1, 0
        w, mass = np.zeros((len(hazards), starts)), np.zeros(starts)
        w[:, 0], mass[0] = weights, 1.0
        self.weights = kernels.changes.StartArrays(
            w, mass, np.zeros(starts, np.int64), np.zeros(2), np.zeros(1), hazards, np.empty(starts)
        )
        #: The arrays of all places, and those of the prior as one more place.
        self.arrays: Arrays = {name: np.stack([v] * (starts + 1)) for name, v in arrays.items()}
        self._beliefs = {0: prior.copy()}

    def belief(self, place: int) -> Any:
        """Return the belief of a place."""
        return self._beliefs[place]

    def likelihoods(self, event: Event) -> tuple[FloatArray, float]:
        """Return P(o | segment) / scale for all starts, and ln of the scale."""
        logs = np.array([self._beliefs[i].log_predictive(*event) for i in range(self.size)])
        largest = float(logs[self.weights.mass[: self.size] > 0.0].max())
        return np.exp(np.minimum(logs - largest, 0.0)), largest

    def learn(self, events: Sequence[Event | None]) -> None:
        """Learn the events one by one; without evidence only time goes on.

        After an error the state is useless: go back to a snapshot.
        """
        w, mass, starts, dropped, log_evidence, hazards, _ = self.weights
        for event in events:
            if event:
                p, log_scale = self.likelihoods(event)
                self.update(event)
                log_evidence[0] += kernels.changes.condition(w, mass, self.size, p) + log_scale
            self.t += 1
            place = kernels.changes.change(w, self.size, hazards, self.t, mass, starts, dropped)
            self.restart(place)
            self.size = max(self.size, place + 1)

    def update(self, event: Event) -> None:
        """Update the beliefs of all starts."""
        # Snapshots share the beliefs: change copies of them.
        self._beliefs = {i: self._beliefs[i].copy() for i in range(self.size)}
        for belief in self._beliefs.values():
            belief.observe(*event)

    def restart(self, place: int) -> None:
        """Begin a new segment with the prior."""
        self._beliefs[place] = self.prior.copy()

    def probabilities(self) -> FloatArray:
        """P(s | past) of the starts."""
        mass = self.weights.mass[: self.size]
        return np.asarray(mass / mass.sum())

    def snapshot(self) -> Snapshot:
        """Return a copy of the state, for `restore`."""
        arrays = [v.copy() for v in (*self.weights[:5], *self.arrays.values())]
        return Snapshot(self.t, self.size, arrays, self._beliefs.copy())

    def restore(self, saved: Snapshot) -> None:
        """Go back to a snapshot."""
        self.t, self.size, arrays, beliefs = saved
        for now, before in zip((*self.weights[:5], *self.arrays.values()), arrays, strict=True):
            now[...] = before
        self._beliefs = beliefs.copy()

    def _used(self, saved: Snapshot) -> Arrays:
        """Return the used places of the arrays, by the names under which they are saved."""
        n, (w, mass, starts, dropped, log_evidence, *arrays) = saved.size, saved.arrays
        weights = {"weights": w[:, :n], "mass": mass[:n], "starts": starts[:n], "dropped": dropped}
        places = {f"segments/{k}": v[:n] for k, v in zip(self.arrays, arrays, strict=True)}
        return weights | {"log_evidence": log_evidence} | places

    def save(self, saved: Snapshot | None = None) -> Arrays:
        """Return the state, or that of a snapshot, as named arrays."""
        saved = self.snapshot() if saved is None else saved
        arrays = {name: v.copy() for name, v in self._used(saved).items()}
        for i, belief in saved.beliefs.items():
            arrays |= with_prefix(f"segments/{i}/", belief.save())
        return arrays | {"time": np.array(saved.t)}

    def read(self, arrays: Arrays) -> Snapshot:
        """Return what `save` saved, for the same hazards and at most as many starts."""
        arrays = SavedArrays(arrays)
        size, most = np.size(arrays["starts"]), len(self.weights.mass)
        if not 1 <= size <= most:
            raise errors.IncompatibleState(f"saved with {size} starts: `starts` allows 1 to {most}")
        t = int(checked_array(arrays, "time", np.int64, ()))
        beliefs = {i: self.prior.copy() for i in range(size if self._beliefs else 0)}
        for i, belief in beliefs.items():
            belief.load(part_of(arrays, f"segments/{i}/"))
        saved = self.snapshot()._replace(t=t, size=size, beliefs=beliefs)
        for name, v in self._used(saved).items():
            v[...] = checked_array(arrays, name, v.dtype, v.shape)
        return saved


class ArraySegments(Segments):
    """Segments whose posteriors are parts of a few arrays, for compiled kernels.

    The method `use_arrays` of a belief makes it use the given arrays as its posterior.
    """

    # In a copy the views would be arrays that no longer learn.
    saved_fields = declare(Cache("_views", lambda _: {}))

    def __init__(self, *arguments: Any, **arrays: Any) -> None:
        super().__init__(*arguments, **arrays)
        self._beliefs = {}
        #: Beliefs that use the arrays, by place.
        self._views = dict[int, Any]()

    def belief(self, place: int) -> Any:
        """Return the belief of a place: a view of the arrays."""
        if place not in self._views:
            self._views[place] = self.prior.copy()
        # Each time: what the belief has derived from the arrays may be out of date.
        self._views[place].use_arrays(*(v[place] for v in self.arrays.values()))
        return self._views[place]

    def restart(self, place: int) -> None:
        """Begin a new segment with the prior."""
        for v in self.arrays.values():
            v[place] = v[-1]


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
        ArrayGroup("saved/", lambda belief: belief._state.save(belief.window_start)),
        FixedPart("prior/", "prior"),
        Part("drawn_from/", "_drawn_from", blank=lambda belief: belief.prior.copy()),
        Fixed(
            "settings",
            lambda b: np.array([*b._state.weights.hazards, b.most_starts, b.window]),
            setting="hazards, starts and window",
        ),
        Array("waiting", lambda b: np.array(b.open_decisions, np.int64), shape=(None,)),
        Plain("events", "_events", what="the window of answers", copied=True),
        *map(Copied, ("_saved", "_waiting", "_state")),
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
            raise errors.InvalidTable(f"hazards={hazards!r}: expected probabilities below 1")
        self.prior, self.window = belief, as_integer("window", window, 1)
        self._hazard_prior, most = weights, as_integer("starts", starts, 2)
        self._state = self.segments()(belief, h, weights / weights.sum(), most)
        self._waiting = set[int]()
        self._drawn_from: Any = None  # the belief that has drawn the last mode
        #: States at earlier times, and all events since the first of them.
        self._saved, self._events = [self._state.snapshot()], list[Event | None]()

    def segments(self) -> type[Segments]:
        """Return the class of the beliefs of all starts; subclasses may use compiled ones."""
        if getattr(self.prior, "learns_scale", False):
            raise errors.MissingCapability(
                f"{self.prior!r} learns its scale, which every new segment would forget: use "
                "problem.changing(), or a belief with a given prior"
            )
        for method in ("plain_event", "log_predictive"):
            if not hasattr(self.prior, method):
                raise errors.MissingCapability(
                    f"{self.prior!r} cannot change: it lacks {method}(x, a, o)"
                )
        return Segments

    @property
    def most_starts(self) -> int:
        """The largest number of starts."""
        return len(self._state.weights.mass)

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
        self._waiting.add(self._state.t)

    def _pass_over(self) -> None:
        """Go on without the answer to the current decision, if it was begun; it stays open."""
        if self._state.t in self._waiting:
            self._close(None)

    def _event(self, x: Any, a: Any, o: Any) -> Any:
        """Return a valid event in plain values, or raise an error."""
        return self.prior.plain_event(x, a, o)

    def take_event(self, event: Event | None, decision: int | None = None) -> None:
        """Learn the event of a decision, by default the current one; None: its answer is lost."""
        now, first = self._state.t, self.window_start.t
        n = now if decision is None else decision
        is_late = decision is not None and (n != now or n not in self._waiting)
        if is_late:
            self._require_open(n)
        elif self._waiting and n not in self._waiting:
            still_open = ", ".join(map(str, self.open_decisions))
            raise errors.BadEvidence(
                f"no decision was made since the last observation, and earlier decisions are open "
                f"({still_open}): pass decision=NUMBER to say which one is meant"
            )
        try:
            if not is_late:
                self._close(event)
            elif event is not None:
                self._events[n - first] = event
                if event:
                    self._replay(n)
        except BaseException:
            if is_late:
                self._events[n - first] = None
            self._replay()
            raise
        self._waiting.discard(n)

    def _require_open(self, n: int) -> None:
        """Raise an error unless decision n was made, is recent enough, and has no answer."""
        now = self._state.t
        if not 0 <= n < now:
            raise errors.BadEvidence(
                f"decision {n} has not been made: the next decision is {now}. Read "
                "`belief.decision` after the action and before its observation"
            )
        if n < max(now - self.window, self.window_start.t):
            raise errors.TooLate(
                f"the answer to decision {n} comes {now - n} decisions late: this belief accepts "
                f"answers up to {self.window} decisions late; set `window`"
            )
        if self.has_answer(n):
            raise errors.BadEvidence(f"decision {n} has an answer already: give each only one")

    def has_answer(self, decision: int) -> bool:
        """Whether a decision of the window has an answer."""
        n = decision - self.window_start.t
        return 0 <= n < len(self._events) and self._events[n] is not None

    def _close(self, event: Event | None) -> None:
        """Go to the next decision."""
        state, saved, window = self._state, self._saved, self.window
        if event is None and saved[-1].t < state.t:  # the answer may come late
            saved.append(state.snapshot())
            if len(saved) > 4 * window.bit_length():
                self._thin_out()
        state.learn((event,))
        self._events.append(event)
        self._waiting.discard(state.t - 1 - window)
        if state.t % window == 0:
            self._save_window()

    def _thin_out(self) -> None:
        """Drop snapshots; a late answer still repeats at most twice as many decisions as needed."""
        saved, now = self._saved, self._state.t + 1
        for i in range(len(saved) - 2, 0, -1):
            is_near = now - saved[i - 1].t <= 2 * (now - saved[i + 1].t)
            if is_near and saved[i].t % self.window:
                del saved[i]

    def _save_window(self) -> None:
        """Save the state every `window` decisions, and drop what is older than the one before."""
        self._saved.append(self._state.snapshot())
        start = self._state.t - self.window
        if self.window_start.t < start:
            del self._events[: start - self.window_start.t]
            self._saved = [saved for saved in self._saved if saved.t >= start]

    def _replay(self, n: float = math.inf) -> None:
        """Compute the state again from decision n on, whose answer has come; ∞: after an error."""
        state, window, first = self._state, self.window, self.window_start.t
        events, now = self._events, first + len(self._events)
        i = bisect_right(self._saved, n, key=attrgetter("t")) - 1
        t = self._saved[i].t
        state.restore(self._saved[i])
        # A snapshot that was taken for decision n makes room for one of the next open decision.
        is_free = t == n and t % window > 0
        saved = self._saved[: i + (not is_free)]
        while t < now:
            after = t + 1 if is_free else now + 1 - (now + 1 - t) // 2
            stop = next((m for m in range(after, now) if events[m - first] is None), now)
            stop, is_free = min(stop, t - t % window + window), False
            state.learn(events[t - first : stop - first])
            if stop < now or stop % window == 0:
                saved.append(state.snapshot())
            t = stop
        self._saved = saved

    # -- drawing -------------------------------------------------------------------------------

    def sample(self, rng: StreamLike) -> Any:
        """Draw a start, then a mode of its segment."""
        self._drawn_from = self._draw_segment(rng).copy()  # the segment goes on learning
        return self._drawn_from.sample(rng)

    def _draw_segment(self, rng: StreamLike) -> Any:
        """Draw a start and return the belief of its segment."""
        state = self._state
        place = kernels.changes.draw_start(state.weights.mass, state.size, state_of(rng))
        return state.belief(place)

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
        used = state.weights.starts[
            : state.size
        ].tolist()  # places are reused: not in the order of time
        return dict(sorted(zip(used, state.probabilities().tolist(), strict=True)))

    def hazards(self) -> dict[float, float]:
        """P(h | âo_<t) for each hazard rate of the grid."""
        weights = self._state.weights
        w = weights.w[:, : self._state.size].sum(1)
        return dict(zip(weights.hazards.tolist(), (w / w.sum()).tolist(), strict=True))

    @property
    def log_evidence(self) -> float:
        """ln P(o_<t | â_<t): the sum of the log predictive densities of all observations."""
        return float(self._state.weights.log_evidence[0])

    @property
    def window_start(self) -> Snapshot:
        """The oldest saved state, at which the window begins; no later answer changes it."""
        return self._saved[0]

    @property
    def window_evidence(self) -> float:
        """`log_evidence` when the window began."""
        return float(self._saved[0].arrays[4][0])

    @property
    def dropped(self) -> float:
        """The probability of the start dropped at the last step, which the nearest start took."""
        return float(self._state.weights.dropped[0])

    @property
    def total_dropped(self) -> float:
        """The sum of `dropped` over all steps."""
        return float(self._state.weights.dropped[1])

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if observations are continuous."""
        p, log_scale = self._state.likelihoods(self._event(x, a, o))
        return math.log(float(p @ self._state.probabilities())) + log_scale

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
        p = self._state.probabilities()
        starts = np.flatnonzero(p > 1e-15 / len(p)).tolist()
        return [(float(p[place]), self._state.belief(place)) for place in starts]

    # -- saving and copying ----------------------------------------------------------------------

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        raise errors.IncompatibleState(
            f"{self!r} cannot be merged: a belief about a changing world depends on the order of "
            "the observations. Give all of them to one belief, in order"
        )

    def _check_state(self, new: SimpleNamespace) -> None:
        trial, start = self.copy(), self._state.read(new.saved)
        if start.t < 0 or start.t % self.window or len(new._events) >= 2 * self.window:
            raise damaged(f"its window begins at {start.t} and has {len(new._events)} events")
        trial._saved, trial._events = [start], new._events
        trial._replay(start.t)
        for n in new.waiting.tolist():
            is_recent = max(0, trial.decision - self.window) <= n <= trial.decision
            if not is_recent:
                raise damaged(
                    f"decision {n} is listed as open, but it is not among the last {self.window} "
                    f"decisions up to {trial.decision}"
                )
            if trial.has_answer(n):
                raise damaged(f"decision {n} is listed as open, but it has an answer")
        new._waiting = set(new.waiting.tolist())
        new._state, new._saved = trial._state, trial._saved

    def __repr__(self) -> str:
        start, p = max(self.starts().items(), key=lambda item: item[1])
        return (
            f"{type(self).__name__}(decision {self.decision}, segment since {start} with "
            f"probability {p:.4g})"
        )
