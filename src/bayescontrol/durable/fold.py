"""Fold a log: compute the agent's state after events 1 … seq.

    P(m | âo_≤t) ∝ P(o_t | m, x, a_t) P(m | âo_<t),  in the order of the log
    decision n draws from Stream.named(seed, n, "agent"); its holdout and its shares from streams
    with these names

Folding is deterministic. The state is bitwise the same from the first event, from a snapshot, or
event by event as they arrive. What an amendment changes is folded again, see `durable.decisions`.
"""

import math
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol import errors
from bayescontrol._arrays import Arrays
from bayescontrol.beliefs.particles import Event as Step
from bayescontrol.durable import events
from bayescontrol.durable.configuration import (
    Configuration,
    Restriction,
    Terms,
    draw_from,
    limited,
    redrawn,
    require_shares,
)
from bayescontrol.durable.decisions import (
    NO_AMENDMENTS,
    Amendments,
    Decisions,
    read_amendments,
)
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.models import KINDS, Model
from bayescontrol.durable.plain import Value, as_stored, same_value, short_repr
from bayescontrol.durable.stores.log import (
    DamagedSnapshot,
    Log,
    Snapshot,
    damaged_error,
    snapshots_to_delete,
)
from bayescontrol.seeding import Stream

#: When a log is folded, the decisions among this many last events are drawn again.
_CHECKED: Final = 16
#: The maximum number of events that are folded again.
_MAX_FOLDED: Final = 1_000
#: Start at least this many events before the newest snapshot, so that some are decisions.
_MIN_DISTANCE: Final = 100
#: The relative difference that rounding on another machine may cause, and the absolute one of a
#: probability.
_TOLERANCE, _PROBABILITY_TOLERANCE = 1e-6, 1e-9
#: Smaller probabilities have few correct digits, which a large c would amplify: they count as this.
_RESOLVED: Final = 1e-8
#: Events between two folds that are retained for amendments, and the size of a fold in bytes that
#: the choice of those to delete assumes.
_SPACING, _ASSUMED_SIZE = 1_000, 2**21
#: The terms of an agent without a configuration and with the arms of its model.
PLAIN: Final = Terms()


class Drawn(NamedTuple):
    """An action that was drawn, and how."""

    a: Value
    #: P(b | past, x) of every action b, given the mode that acts if the agent explores; or None if
    #: it is not known exactly.
    probabilities: events.Probabilities | None
    holdout: bool


class _Policies(NamedTuple):
    """The probabilities from which a decision is drawn."""

    #: P of the agent, and clip(c P); None if they are not known exactly.
    agent: dict[Any, float] | None
    limited: dict[Any, float] | None
    #: clip(d Q) of the holdout.
    holdout: dict[Any, float]

    def mixed(self, h: float) -> dict[Any, float] | None:
        """Return (1 - h) clip(c P) + h clip(d Q)."""
        if self.limited is None:
            return None
        return {a: (1.0 - h) * p + h * self.holdout[a] for a, p in self.limited.items()}


class Fold:
    """The agent after event `seq`; `seed` is the seed of the log.

    `due` is the number of the decision that must be observed before the next decision, for an
    agent that does not accept late feedback; 0 if no decision must. `terms` is what the log says
    beside the belief.
    """

    def __init__(
        self, driver: Driver, seed: int, seq: int = 1, due: int = 0, terms: Terms = PLAIN
    ) -> None:
        self.driver, self.seed, self.seq, self.due, self.terms = driver, seed, seq, due, terms

    # -- decisions -------------------------------------------------------------------------------

    def draw(self, n: int, x: Value, among: Sequence[Value] | None = None) -> Drawn:
        """Draw the action of decision n in situation x from the streams of n."""
        restriction = self.terms.restriction(among, self.driver.arms)
        configuration = self.terms.configuration
        stream = Stream.named(self.seed, n, "agent")
        if configuration.is_plain:
            P = self.driver.probabilities(x, restriction)
            a = self.driver.act(x, stream, restriction)
            if P is None and self.driver.explores:
                P = dict(self.driver.agent.probabilities)
            return Drawn(a, P, False)
        # Before the agent acts, because in a changing world time goes on with every decision, also
        # in the holdout.
        policies = self._policies(x, restriction)
        a = self.driver.act(x, stream, restriction)
        holdout = Stream.named(self.seed, n, "holdout").random() < configuration.holdout
        shares = Stream.named(self.seed, n, "shares")
        if holdout:
            self.driver.forget_mode()
            a = draw_from(policies.holdout, shares.random())
        elif configuration.shares:
            assert policies.agent is not None
            assert policies.limited is not None
            a = redrawn(a, policies.agent, policies.limited, shares)
        return Drawn(a, policies.mixed(configuration.holdout), holdout)

    def probabilities(
        self, x: Value, among: Sequence[Value] | None = None
    ) -> events.Probabilities | None:
        """P(a | past, x) of every action that may be drawn; None if it is not known exactly."""
        restriction = self.terms.restriction(among, self.driver.arms)
        configuration = self.terms.configuration
        if configuration.is_plain:
            return self.driver.probabilities(x, restriction)
        return self._policies(x, restriction).mixed(configuration.holdout)

    def _policies(self, x: Value, restriction: Restriction | None) -> _Policies:
        """Return the probabilities of the agent and of the holdout, with and without the shares."""
        configuration, shares = self.terms.configuration, self.terms.configuration.shares
        P, among = self.driver.probabilities(x, restriction), restriction and restriction.among
        if P is None and shares:
            raise errors.MissingCapability(
                "this agent has no exact action probabilities, which shares of arms need: "
                "configure it without `shares`"
            )
        eligible, control = [*(among or P or self.driver.arms())], configuration.control
        if control is None or (among is not None and control not in among):
            chosen = eligible
        else:
            chosen = [control]
        actions = dict.fromkeys([*eligible, *chosen])
        Q = {a: (a in chosen) / len(chosen) for a in actions}
        agent = None if P is None else {a: P.get(a, 0.0) for a in actions}
        if agent is None or not shares:
            return _Policies(agent, agent, Q)
        resolved = {a: max(p, _RESOLVED) for a, p in agent.items()}
        return _Policies(agent, limited(resolved, shares), limited(Q, shares))

    def require_valid(self, configuration: Configuration) -> None:
        """Raise an error if this agent cannot follow a configuration."""
        c, driver = configuration, self.driver
        if c.shares or c.prices or c.holdout or c.control is not None:
            arms = driver.arms()
            c.require_arms(arms)
            active = self.terms.active(arms)
            require_shares(active, c.shares)
            if c.control is not None and c.control not in active:
                raise errors.InvalidRequest(
                    f"control: arm {c.control!r} is {self.terms.arm_state(c.control)}: choose an "
                    "active arm"
                )
        if c.prices:
            driver.require_choosing([*c.prices])
        if c.window is not None:
            if not driver.accepts_late_feedback:
                raise errors.MissingCapability(
                    "this agent needs each observation before its next decision: it cannot have a "
                    "window"
                )
            driver.require_reward(c.default)
        if c.reward_range is not None and not driver.observes_rewards:
            raise errors.MissingCapability(
                "the observations of this agent are states, not rewards: it cannot have a "
                "reward_range"
            )

    def take_decision(self, event: events.Decided, *, draw: bool, compare: bool = True) -> None:
        """Fold a decision. With `draw`, repeat the draw; with `compare`, require the same action.

        `draw` is required if draws change the agent.
        """
        if draw and compare:
            self.draw_again(event)
        elif draw:
            self.draw(event.seq, event.x, event.among)
        self.driver.remember(event.seq)
        self.seq = event.seq
        if not self.driver.accepts_late_feedback:
            self.due = event.seq

    def draw_again(self, event: events.Decided) -> Drawn:
        """Draw a logged decision again; raise `ModelMismatch` if this gives another action.

        If the agent explores, also if the action has another probability.
        """
        drawn = self.draw(event.seq, event.x, event.among)
        a, holdout = drawn.a, drawn.holdout
        if holdout != event.holdout or not same_value(as_stored(a, "the action"), event.a):
            raise errors.ModelMismatch(
                f"decision {event.seq} was {event.a!r}, drawn again it is {a!r}: the code of the "
                "model has changed; give the changed model a new version and a new log"
            )
        if self.driver.explores:
            self.require_probability(event, drawn.probabilities)
        return drawn

    def require_probability(
        self, event: events.Decided, probabilities: events.Probabilities | None
    ) -> None:
        """Raise `ModelMismatch` if P(a | âo_<n) differs from the log by more than rounding."""
        if event.p is None:
            return
        p = None if probabilities is None else float(probabilities.get(event.a, 0.0))
        tolerances = {"rel_tol": _TOLERANCE, "abs_tol": _PROBABILITY_TOLERANCE}
        if p is None or not math.isclose(p, event.p, **tolerances):
            now = "none" if p is None else f"{p:.6g}"
            raise errors.ModelMismatch(
                f"decision {event.seq}, {short_repr(event.a)}, had probability {event.p:.6g}, "
                f"computed again it has {now}: the log or the code of the model has changed; give "
                "the changed model a new version and a new log"
            )

    def take_observation(
        self, event: events.Observed, x: Value, a: Value, final: events.Corrected | None = None
    ) -> None:
        """Fold an observation: learn it, or what replaces it, as that of action a in x."""
        o = final or event
        self.driver.learn(x, a, o.o, event.n)
        if o.cost is not None:
            self.terms = self.terms.with_cost(a, o.cost, o.o)
        self.seq, self.due = event.seq, 0

    def take_other(self, event: events.AgentEvent, later: Sequence[Step] = ()) -> None:
        """Fold an event about the agent; `later` are the steps that a new fit does not contain."""
        if isinstance(event, events.Configured):
            self.terms = self.terms.configured(Configuration.from_settings(event.configuration))
        elif isinstance(event, events.ArmChanged):
            if event.change == "added":
                self.driver.add_arm(event.arm, event.prior)
            self.terms = self.terms.changed(event)
        elif isinstance(event, events.Aggregated):
            self.driver.learn(event.x, event.a, event.totals)
        else:
            self.driver.refit(event.draws, later, event.log_weights)
        self.seq = event.seq

    def take_sealed(self, event: events.Compacted, decisions: Decisions) -> None:
        """Continue with the state of a sealed snapshot."""
        if self.seq != 1:
            raise errors.StoreBusy(
                f"the log was compacted through event {event.seq} while it was read: open it again"
            )
        try:
            snapshot = Snapshot(event.seq, event.state, event.digest)
            decisions.open = self.load(snapshot, event.seq)
        except errors.IncompatibleState as error:
            raise errors.ModelMismatch(
                f"the sealed snapshot at event {event.seq} does not fit the model ({error}): open "
                "the log with the model and the release that compacted it, or restore a backup"
            ) from None

    def take(
        self, history: Iterable[events.Event], decisions: Decisions, check_from: float = math.inf,
        amendments: Amendments = NO_AMENDMENTS,
    ) -> None:  # fmt: skip
        """Fold the next events; repeat the draws of decisions from `check_from` on.

        `amendments` are all that the history contains. Decisions before the last one of them
        cannot be compared: they were made without it.
        """
        draw_from = 0 if self.driver.draws_change else check_from
        put, observed_by, final = decisions.put, decisions.observed_by, amendments.final
        accepts_late_feedback = self.driver.accepts_late_feedback
        for event in history:
            if isinstance(event, events.Observed):
                decision = observed_by(event)
                if not accepts_late_feedback and event.n != self.due:
                    due = f"decision {self.due}" if self.due else "no decision"
                    why = f"event {event.seq} observes decision {event.n}, but {due} was due"
                    raise damaged_error(None, why)
                o = final.get(event.seq) if final else None
                if isinstance(o, events.Withdrawn):
                    self.seq = event.seq
                else:
                    self.take_observation(event, decision.x, decision.a, o)
            elif isinstance(event, events.Decided):
                put(event)
                seq = event.seq
                self.take_decision(event, draw=seq >= draw_from, compare=seq > amendments.last)
            elif isinstance(event, events.Refitted):
                self.take_other(event, decisions.steps(event.through, event.seq - 1, amendments))
            elif isinstance(event, events.Amendment):
                if event.seq > amendments.last:
                    raise damaged_error(None, f"event {event.seq} amends what is folded already")
                self.seq = event.seq
            elif isinstance(event, events.Compacted):
                decisions.forget(event)
                self.take_sealed(event, decisions)
            elif isinstance(event, events.Created):
                raise errors.DamagedLog(f"event {event.seq}: only the first event creates a log")
            else:
                decisions.note(event)
                self.take_other(event)

    def take_retaining(
        self, history: Iterable[events.Event], decisions: Decisions, amendments: Amendments
    ) -> "list[Fold]":
        """Fold the next events, as `take` does; return copies of the folds on the way."""
        passed, remaining = list[Fold](), iter(history)
        while events_of_part := list(islice(remaining, _SPACING)):
            self.take(events_of_part, decisions, amendments=amendments)
            passed.append(self.copy())
        return passed[:-1]

    def copy(self) -> "Fold":
        """Return an independent copy."""
        return Fold(self.driver.copy(), self.seed, self.seq, self.due, self.terms)

    def save(self, open_decisions: "OrderedDict[int, float] | None" = None) -> Snapshot:
        """Return the fold and the times of open decisions as a snapshot."""
        arrays = {"due": np.array(self.due)}
        if self.terms is not PLAIN:
            arrays["terms"] = self.terms.save()
        if open_decisions is not None:
            arrays["open"] = np.array([*open_decisions.items()], np.float64).reshape(-1, 2)
        return Snapshot.of(self.seq, self.state() | arrays)

    def state(self) -> Arrays:
        """Return the state of the agent as named arrays."""
        return {f"agent/{name}": v for name, v in self.driver.save().items()}

    def load(self, snapshot: Snapshot, end: int) -> "OrderedDict[int, float] | None":
        """Restore a snapshot; return the times of open decisions, if they are collected.

        Raise `IncompatibleState` if the snapshot is damaged, of another model, or newer than event
        `end`, the last event of the log.
        """
        if snapshot.seq > end:
            raise errors.IncompatibleState(f"the log ends at event {end}")
        arrays = snapshot.arrays()
        due, terms, found = int(arrays.pop("due")), PLAIN, arrays.pop("open", None)
        if "terms" in arrays:
            terms = Terms.load(arrays.pop("terms"))
            for arm, prior in terms.added:
                self.driver.add_arm(arm, prior)
        self.driver.load({name.removeprefix("agent/"): v for name, v in arrays.items()})
        self.seq, self.due, self.terms = snapshot.seq, due, terms
        if found is None:  # a sealed snapshot has no open decisions
            return None if terms.configuration.window is None else OrderedDict()
        return OrderedDict((int(n), when) for n, when in found.tolist())


def sealed_terms(event: events.Compacted) -> Terms:
    """Return the terms after the events that were compacted."""
    saved = Snapshot(event.seq, event.state, event.digest).arrays().get("terms")
    return PLAIN if saved is None else Terms.load(saved)


class EarlierFolds:
    """Folds of the same log after earlier events, oldest first; at most about thirty.

    >>> EarlierFolds().before(10) is None
    True
    """

    def __init__(self) -> None:
        self._folds: list[Fold] = []

    def is_due(self, seq: int) -> bool:
        """Return whether the last fold is old enough to add one after event `seq`."""
        return seq - (self._folds[-1].seq if self._folds else 0) >= _SPACING

    def add(self, fold: Fold) -> None:
        """Retain a fold that does not change any more, if one is due."""
        if self.is_due(fold.seq):
            self._folds.append(fold)
            deleted = snapshots_to_delete([f.seq for f in self._folds], _SPACING, _ASSUMED_SIZE)
            self._folds = [f for f in self._folds if f.seq not in deleted]

    def before(self, first: int) -> Fold | None:
        """Return a copy of the newest fold before event `first`; None if all are later."""
        found = [f for f in self._folds if f.seq < first]
        return found[-1].copy() if found else None

    def replace(self, first: int, folds: Iterable[Fold]) -> None:
        """Replace the folds from event `first` on."""
        self._folds = [f for f in self._folds if f.seq < first]
        for fold in folds:
            self.add(fold)


def load_first_valid(
    log: Log, snapshots: Iterable[Snapshot], driver: Driver, created: events.Created,
    decisions: Decisions, end: int, *, warn: bool = False,
) -> Fold:  # fmt: skip
    """Return the fold at the first valid one of these snapshots, otherwise a new fold.

    The driver must hold a new agent. A snapshot is not valid if a later event, up to `end`, amends
    an observation that it contains. With `warn`, warn of each damaged snapshot.
    """
    for snapshot in snapshots:
        if read_amendments(log, snapshot.seq + 1, end).reach(snapshot.seq):
            continue
        fold = Fold(driver.copy(), created.seed)
        try:
            decisions.open = fold.load(snapshot, end)
        except errors.IncompatibleState as error:
            if warn:
                text = f"the snapshot after event {snapshot.seq} is skipped ({error}): the log is "
                warnings.warn(f"{text}folded instead", DamagedSnapshot, stacklevel=4)
        else:
            return fold
    return Fold(driver, created.seed)


def fold_log(
    log: Log, driver: Driver, created: events.Created, decisions: Decisions, stop: int | None = None
) -> Fold:
    """Fold events 1 … stop, starting from the newest valid snapshot.

    The driver must hold a new agent.
    """
    # List the snapshots before reading the head: other processes may store a newer one meanwhile.
    snapshots = log.snapshots(stop)
    end = log.head() if stop is None else stop
    fold = load_first_valid(log, snapshots, driver, created, decisions, end, warn=True)
    # Repeat the last few draws, to detect changed code before the log grows.
    amendments = read_amendments(log, fold.seq + 1, end)
    history = events.read_events(log, fold.seq + 1, end)
    fold.take(history, decisions, end - _CHECKED + 1, amendments)
    return fold


# -- changed code --------------------------------------------------------------------------------


def require_no_drift(log: Log, model: Model, created: events.Created) -> None:
    """Raise `ModelMismatch` if a named model no longer reproduces its log.

    Opening a log from a snapshot skips the events before it, which would hide changed code. So up
    to 1,000 events are folded again: those after the last snapshot that is at least 100 events
    older than the newest snapshot, or from the beginning. Their decisions are
    drawn again, and a_n and P(a_n | âo_<n) are compared. If they reach the newest snapshot, the
    states are compared too.
    """
    newest = None if model.name in KINDS else next(log.snapshots(), None)
    if newest is None:
        return
    decisions = Decisions(log)
    end = max(newest.seq - _MIN_DISTANCE, 1)
    fold = load_first_valid(log, log.snapshots(end), model.driver(), created, decisions, end)
    amendments = read_amendments(log, fold.seq + 1, newest.seq)
    for event in islice(events.read_events(log, fold.seq + 1, newest.seq), _MAX_FOLDED):
        probabilities = None
        if isinstance(event, events.Decided) and event.seq > amendments.last:
            probabilities = fold.probabilities(event.x, event.among)
        fold.take([event], decisions, event.seq, amendments)
        if isinstance(event, events.Decided) and probabilities is not None:
            fold.require_probability(event, probabilities)
    if fold.seq == newest.seq and not _matches(newest, fold.state()):
        raise errors.ModelMismatch(
            f"model {model.name!r} version {model.version} has changed: after event {newest.seq} "
            "its state differs from the snapshot; give the changed model a new version and a new "
            "log"
        )


def _matches(snapshot: Snapshot, state: Arrays) -> bool:
    """Return False if the state differs from an intact snapshot by more than rounding."""
    try:
        saved = snapshot.arrays()
    except errors.IncompatibleState:  # opening the log skips it, with a warning
        return True
    return all(name in saved and _is_close(saved[name], v) for name, v in state.items())


def _is_close(saved: Any, computed: Any) -> bool:
    """Return whether two arrays have the same shape and type, and values equal up to rounding."""
    if saved.shape != computed.shape or saved.dtype.kind != computed.dtype.kind:
        return False
    if saved.dtype.kind != "f":
        return bool(np.array_equal(saved, computed))
    scale = _TOLERANCE * float(np.abs(computed[np.isfinite(computed)]).max(initial=0.0))
    return bool(np.allclose(saved, computed, rtol=_TOLERANCE, atol=scale, equal_nan=True))
