"""The turn that converts a batch of requests into rows of the log.

    compute    the rows and the next state, on a copy of the fold
    append     the rows, durably
    adopt      the copy replaces the fold

If the agent accepts late feedback, the order in a turn is: amendments, after which the log is
folded again; changes of arms and of the configuration; decisions, which share one posterior, so
that the action probabilities are computed once; observations, and the defaults that are due.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Final, TypeAlias, TypeVar

from bayescontrol import errors
from bayescontrol.durable import events, requests
from bayescontrol.durable.decisions import Amendments, Answer, Decisions
from bayescontrol.durable.fold import Fold
from bayescontrol.durable.plain import Value, as_stored, same_value, short_repr
from bayescontrol.durable.requests import Act as Act
from bayescontrol.durable.stores.committer import Request
from bayescontrol.durable.stores.log import Row, damaged_error

#: Errors in a request that are found before the agent draws or learns: nothing must be undone.
_REQUEST_ERRORS: Final = (
    *(errors.BadSituation, errors.ConflictingFeedback, errors.ConflictingKey),
    *(errors.DamagedLog, errors.FeedbackDue, errors.InvalidRequest, errors.MissingCapability),
    *(errors.UnknownArm, errors.UnknownDecision),
)
#: The place of requests in a turn; all others come last.
_ORDER: Final[Mapping[type, int]] = {requests.Configure: 0, requests.ChangeArm: 0, Act: 1}
_LAST: Final = 2
#: The maximum number of defaults in one turn.
_MAX_DEFAULTS: Final = 1_000
#: Folds the log again, with these amendments by the number of the first answer.
_FoldAgain: TypeAlias = Callable[[Mapping[int, events.Amendment], int], Fold]
E = TypeVar("E", bound=events.Event)


class _Rejected(Exception):
    """The agent raised an error; the copy of the fold may have changed halfway."""


class Turn:
    """Computes the rows of a batch of requests; changes nothing but the requests.

    `compute` sets the errors of the requests. `grant` sets their results: call it when the rows
    are on disk. `fold_again(amendments, stop)` returns the fold of the log up to event `stop`
    with amendments that are not in it yet.
    """

    def __init__(self, name: str, fold: Fold, decisions: Decisions, fold_again: _FoldAgain) -> None:
        self._name, self._before, self._decisions = name, fold, decisions
        self._fold_again = fold_again
        self._late_feedback = fold.driver.accepts_late_feedback

    def compute(self, batch: Sequence[Request]) -> None:
        """Compute the rows of all requests except those that have an error."""
        try:
            self._compute(batch, isolate=False)
        except _Rejected:  # repeat all requests, and undo those that the agent rejects
            self._compute(batch, isolate=True)

    def _compute(self, batch: Sequence[Request], *, isolate: bool) -> None:
        """Compute the rows of the requests, starting from the fold before this turn.

        If the agent rejects a request, raise `_Rejected`. With `isolate`, copy the agent before
        each change: a rejected request then gets its error, its changes are undone, and the next
        requests follow.
        """
        before, self._isolate = self._before, isolate
        # The driver is shared, and copied only before the agent first changes.
        self.fold = Fold(before.driver, before.seed, before.seq, before.due, before.terms)
        #: The events of this turn, and their rows.
        self.events: list[events.Event] = []
        self.rows: list[Row] = []
        self._results: list[tuple[Request, Any]] = []
        self._keys: dict[str, events.Decided | events.Aggregated] = {}
        self._sessions: dict[str, events.Decided] = {}
        #: The amendments of this turn, by the number of the first answer.
        self.amendments: dict[int, events.Amendment] = {}
        # The answers of this turn, also amended ones, by the decision.
        self._answers: dict[int, Answer] = {}
        self._time = time.time()
        if self._late_feedback:  # otherwise the order stays
            batch = [r for r in batch if not (self._may_amend(r) and self._try(r, self._amend, r))]
            if self.amendments and not isolate:
                try:
                    self._refold(self.amendments)
                except errors.StoreFailed:
                    raise
                except Exception as error:
                    raise _Rejected from error
            batch.sort(key=lambda request: _ORDER.get(type(request), _LAST))
        settling: list[Request] = []
        for request in batch:
            if isinstance(request, requests.Settle):
                settling.append(request)
            else:
                self._try(request, _HANDLERS[type(request)], self, request)
        open_count = 0
        if self._decisions.waiting():  # defaults come last: an answer in the same batch is in time
            answered = {r.n for r in batch if isinstance(r, requests.Observe)}
            open_count = self._record_defaults(answered)
        self._results += [(request, open_count) for request in settling]

    def _try(self, request: Request, handle: Callable[..., Any], *arguments: Any) -> bool:
        """Handle a request; return whether it now has a result or an error."""
        # Discard errors from the aborted attempt.
        request.error, request.rejected_by_agent, self._agent_works = None, False, False
        count, fold, driver, terms = len(self.rows), self.fold, self.fold.driver, self.fold.terms
        try:
            result = handle(*arguments)
        except Exception as error:
            rejected = self._agent_works and not isinstance(error, errors.StoreFailed)
            if not rejected and not isinstance(error, _REQUEST_ERRORS):
                raise
            if rejected and not self._isolate:
                raise _Rejected from error
            del self.rows[count:], self.events[count:]
            self.fold, fold.driver, fold.terms = fold, driver, terms
            request.error, request.rejected_by_agent = _readable_error(error, request), rejected
            return True
        if result is not None:
            self._results.append((request, result))
        return result is not None

    def _let_agent_work(self, *, copies: bool = True) -> None:
        """Regard later errors of this request as those of the agent; copy it before it changes."""
        self._agent_works = True
        if copies and (self._isolate or self.fold.driver is self._before.driver):
            self.fold.driver = self.fold.driver.copy()

    def _next(self) -> int:
        """Return the number of the next event."""
        return self._before.seq + len(self.rows) + 1

    def _add(self, event: E) -> E:
        """Add an event and its row."""
        self.rows.append(events.encode_row(event))
        self.events.append(event)
        return event

    def grant(self) -> None:
        """Set the results: the rows are on disk."""
        for request, result in self._results:
            request.result = result

    # -- decisions -------------------------------------------------------------------------------

    def _act(self, request: Act) -> events.Decision:
        """Draw a decision, or return the one with the same key or session."""
        if request.session is not None and not self._late_feedback:
            raise errors.MissingCapability(
                f"session={short_repr(request.session)}: the observations of this agent determine "
                "its situations, so a session cannot repeat an action: omit `session`"
            )
        if request.key is not None or request.session is not None:
            known = self._find_decision(request)
            if known is not None:
                return known
        fold = self.fold
        if fold.due:
            raise errors.FeedbackDue(
                f"decision {fold.due} has no observation yet, and that observation determines "
                f"the next situation: call observe({str(fold.due)!r}, o) first"
            )
        self._let_agent_work(copies=fold.driver.draws_change)
        x = fold.driver.situation(request.x)
        a, probabilities, holdout = fold.draw(fold.seq + 1, x, request.among)
        a, x = as_stored(a, "the action"), as_stored(x, "the situation")
        decided = events.Decided(
            seq=self._next(), time=self._time, x=x, a=a, key=request.key, session=request.session,
            p=None if probabilities is None else float(probabilities.get(a, 0.0)),
            among=request.among, holdout=holdout,
        )  # fmt: skip
        event = self._add(decided)
        fold.take_decision(event, draw=False)
        decision = events.Decision.of(event, probabilities, self._name)
        if request.key is not None:
            self._keys[request.key] = event
        if request.session is not None:
            self._sessions[request.session] = event
        return decision

    def _find_decision(self, request: Act) -> events.Decision | None:
        """Return the decision with the key of a request, or else one that its session holds."""
        known = None if request.key is None else self._find_key(request.key)
        fold, session = self.fold, request.session
        if known is not None:
            return self._same_call(known, request)
        if session is None:
            return None
        held = self._sessions.get(session) or self._decisions.find_session(session)
        if held is None:
            return None
        restriction = fold.terms.restriction(request.among, fold.driver.arms)
        if restriction and restriction.among and held.a not in restriction.among:
            return None
        x = fold.driver.situation(request.x)
        if not same_value(held.x, x):
            fold.driver.probabilities(x)  # raises an error if x is invalid
        return events.Decision.of(held, None, self._name)

    def _same_call(
        self, known: events.Decided | events.Aggregated, request: Act
    ) -> events.Decision:
        """Return the decision with a key; raise `ConflictingKey` if another call had the key."""
        shown = f"key {short_repr(request.key)} belongs to"
        if isinstance(known, events.Aggregated):
            raise errors.ConflictingKey(f"{shown} the totals of event {known.seq}: use a new key")
        x = self._before.driver.situation(request.x) if self._late_feedback else known.x
        for what, first, given in (
            ("in situation", known.x, x),
            ("of session", known.session, request.session),
            ("among", known.among, request.among),
        ):
            if not same_value(first, given):
                raise errors.ConflictingKey(
                    f"{shown} decision {known.seq} {what} {short_repr(first)}, not "
                    f"{short_repr(given)}: use a new key"
                )
        return events.Decision.of(known, None, self._name)

    def _find_key(self, key: str) -> events.Decided | events.Aggregated | None:
        """Return what has this key, in this turn or in the log."""
        return self._keys.get(key) or self._decisions.find_key(key)

    # -- feedback --------------------------------------------------------------------------------

    def _observe(self, request: requests.Observe) -> bool:
        """Learn an observation; return False if it was known already."""
        n = request.n
        decision = self._require_decision(request)
        answer = self._find_answer(n)
        if answer is not None:
            return _compare(request, answer, can_withdraw=self._late_feedback)
        if not self._late_feedback and n != self.fold.due:
            why = f"decision {n} was never observed, but later ones exist"
            raise damaged_error(self._name, why)
        return self._learn(decision, request.o, request.cost)

    def _learn(
        self, decision: events.Decided, o: Value, cost: float | None, default: bool = False
    ) -> bool:
        """Learn the first answer of a decision."""
        self._let_agent_work()
        n = decision.seq
        self._require_in_range(o, n)
        observed = events.Observed(
            seq=self._next(), time=self._time, n=n, o=o, cost=cost, default=default
        )
        event = self._add(observed)
        self.fold.take_observation(event, decision.x, decision.a)
        self._answers[n] = Answer(event, event)
        return True

    def _require_in_range(self, o: Value, n: int | None = None) -> None:
        """Raise `BadEvidence` if the observation of decision n, or totals, are out of range."""
        configuration = self.fold.terms.configuration
        if configuration.reward_range is not None:
            what = "the mean of" if n is None else f"observation of decision {n}:"
            configuration.require_in_range(o, what)

    def _record_defaults(self, answered: set[int]) -> int:
        """Record the default for open decisions whose window is over; return how many are open."""
        configuration, waiting = self.fold.terms.configuration, self._decisions.waiting()
        ended = any(
            isinstance(e, events.Configured) and "window" not in e.configuration
            for e in self.events
        )
        if configuration.window is None or waiting is None or ended:
            return 0
        latest = self._time - configuration.window
        due, late = takewhile(lambda item: item[1] <= latest, waiting.items()), 0
        for n, _ in list(islice(due, _MAX_DEFAULTS)):
            if n in answered or n in self._answers:
                continue
            if self.fold.driver.is_too_late(n):
                late += 1
                del waiting[n]
                continue
            decision, request = self._decisions.get(n), Request()
            self._try(request, self._learn, decision, configuration.default, None, True)
            if request.error is not None:  # an invalid default must not fail the other requests
                del waiting[n]
                warnings.warn(
                    f"decision {n} of {self._name!r} stays open: {request.error}; configure a "
                    "valid default", stacklevel=2,
                )  # fmt: skip
        if late:
            warnings.warn(
                f"{late} decisions of {self._name!r} get no default: a changing model learns only "
                "about recent decisions; configure a shorter window, or create the model with a "
                "larger `window`", stacklevel=2,
            )  # fmt: skip
        return len(waiting) - sum(n in waiting for n in self._answers)

    def _observe_totals(self, request: requests.ObserveTotals) -> bool:
        """Learn totals; return False if they were known already."""
        if not self._late_feedback:
            raise errors.InvalidRequest(
                "the observations of this agent determine its situations: totals cannot replace "
                "them"
            )
        x, known = self.fold.driver.situation(request.x), self._find_key(request.key)
        if known is not None:
            is_totals = isinstance(known, events.Aggregated)
            if isinstance(known, events.Aggregated) and same_value(
                [known.x, known.a, known.totals], [x, request.a, request.totals]
            ):
                return False
            what = f"other totals, event {known.seq}" if is_totals else f"decision {known.seq}"
            raise errors.ConflictingKey(
                f"key {short_repr(request.key)} belongs to {what}: use a new key"
            )
        self._let_agent_work()
        self._require_in_range(request.totals)
        aggregated = events.Aggregated(
            seq=self._next(), time=self._time, x=as_stored(x, "the situation"), a=request.a,
            totals=request.totals, key=request.key,
        )  # fmt: skip
        event = self._add(aggregated)
        self.fold.take_other(event)
        self._keys[request.key] = event
        return True

    # -- amendments ------------------------------------------------------------------------------

    def _may_amend(self, request: Request) -> bool:
        """Return whether `_amend` must look at a request: its decision may have an answer."""
        if isinstance(request, requests.Observe):
            return not self._decisions.is_unanswered(request.n)
        return isinstance(request, requests.Withdraw)

    def _amend(self, request: requests.Withdraw | requests.Observe) -> bool | None:
        """Amend an answer; return False if it is withdrawn already, None if nothing is amended.

        The log is folded again after all amendments; or after each of them, with `isolate`.
        """
        n, withdraws = request.n, isinstance(request, requests.Withdraw)
        if not self._late_feedback:
            raise errors.InvalidRequest(
                "the observations of this agent determine its situations: they cannot be withdrawn"
            )
        answer = self._find_answer(n)
        is_withdrawn = answer is not None and answer.is_withdrawn
        if not withdraws and answer is None:
            return None  # `_observe` learns it
        self._require_decision(request)
        if (
            isinstance(request, requests.Observe)
            and answer is not None
            and not (answer.is_withdrawn or answer.is_default)
        ):
            # before a later request withdraws the answer
            return _compare(request, answer, can_withdraw=True)
        if answer is None:
            raise errors.InvalidRequest(f"decision {n} has no observation to withdraw")
        if withdraws and is_withdrawn:
            return False
        self._let_agent_work(copies=False)
        first = answer.first
        event: events.Amendment
        if isinstance(request, requests.Withdraw):
            event = events.Withdrawn(
                seq=self._next(), time=self._time, n=answer.last.seq, answer=first.seq
            )
        else:
            self._require_in_range(request.o, n)
            event = events.Corrected(
                seq=self._next(), time=self._time, n=answer.last.seq, answer=first.seq,
                o=request.o, cost=request.cost,
            )  # fmt: skip
        self._add(event)
        if self._isolate:
            self._refold({**self.amendments, first.seq: event})
        self.amendments[first.seq], self._answers[n] = event, Answer(first, event)
        return True

    def _refold(self, amendments: Mapping[int, events.Amendment]) -> None:
        """Fold the log again with the amendments so far."""
        self.fold = self._fold_again(amendments, self._before.seq)
        self.fold.seq += len(self.rows)

    # -- changes of the terms --------------------------------------------------------------------

    def _change_arm(self, request: requests.ChangeArm) -> int:
        """Change an arm; return the number of the event."""
        self._let_agent_work()
        fold, arm, change = self.fold, request.arm, request.change
        fold.driver.require_choosing()
        fold.terms.require_change(arm, change, fold.driver.arms())
        changed = events.ArmChanged(
            seq=self._next(), time=self._time, arm=arm, change=change, prior=request.prior
        )
        event = self._add(changed)
        fold.take_other(event)
        return event.seq

    def _configure(self, request: requests.Configure) -> int:
        """Replace the configuration; return the number of the event."""
        self._let_agent_work(copies=False)
        self.fold.require_valid(request.configuration)
        configured = events.Configured(
            seq=self._next(), time=self._time, configuration=request.settings
        )
        event = self._add(configured)
        self.fold.take_other(event)
        return event.seq

    def _refit(self, request: requests.Refit) -> int:
        """Replace the draws; return the number of the event."""
        through, before = request.through, self._before.seq
        if type(through) is not int or not 1 <= through <= before:
            raise errors.InvalidRequest(
                f"through={through!r}: give the number of the last event that the draws contain, "
                f"from 1 (no observation) to {before}"
            )
        later = self._decisions.steps(through, before, Amendments(self.amendments, 0))
        for event in self.events:
            if isinstance(event, events.Observed):
                d = self._decisions.get(event.n)
                later.append((d.x, d.a, event.o))
        self._let_agent_work()
        refitted = events.Refitted(
            seq=self._next(), time=self._time, through=through, draws=request.draws,
            log_weights=request.log_weights,
        )  # fmt: skip
        self._add(refitted)
        self.fold.take_other(refitted, later)
        return refitted.seq

    # -- checks ----------------------------------------------------------------------------------

    def _find_answer(self, n: int) -> Answer | None:
        """Return the answer of decision n, in this turn or in the log."""
        answer = self._answers.get(n)
        if answer is None and not self._decisions.is_unanswered(n):
            answer = self._decisions.find_answer(n)
        return answer

    def _require_decision(self, request: requests.Observe | requests.Withdraw) -> events.Decided:
        """Return the decision of a request; raise `UnknownDecision` if it is of another log."""
        id = request.id
        logged = self._decisions.get(id)
        if isinstance(id, events.Decision):
            is_same = id.agent in (None, self._name) and id.time == logged.time
            if not (is_same and same_value(id.action, logged.a)):
                raise errors.UnknownDecision(
                    f"decision {id.id} of {id.agent or 'another log'!r}, action "
                    f"{short_repr(id.action)} at time {id.time}, is not decision {logged.seq} of "
                    f"log {self._name!r}, action {short_repr(logged.a)} at time {logged.time}: "
                    "pass it to the agent that made it"
                )
        return logged


_HANDLERS: Final[Mapping[type, Callable[[Turn, Any], Any]]] = {
    Act: Turn._act, requests.Observe: Turn._observe, requests.Withdraw: Turn._amend,
    requests.ObserveTotals: Turn._observe_totals, requests.ChangeArm: Turn._change_arm,
    requests.Configure: Turn._configure, requests.Refit: Turn._refit,
}  # fmt: skip


def _compare(request: requests.Observe, answer: Answer, *, can_withdraw: bool) -> bool:
    """Return False if a repeated observation equals the answer; else raise ConflictingFeedback."""
    if same_value(answer.o, request.o) and answer.cost == request.cost:
        return False
    first, second = (
        short_repr(o) + ("" if cost is None else f" with cost {cost:g}")
        for o, cost in ((answer.o, answer.cost), (request.o, request.cost))
    )
    raise errors.ConflictingFeedback(
        f"decision {request.n} already has the observation {first}, which is kept; {second} is "
        "rejected" + "; withdraw the first one to replace it" * can_withdraw
    )


def _readable_error(error: Exception, request: Request) -> Exception:
    """Return the error, or `BadEvidence` instead of a TypeError if o is not hashable."""
    is_ours = isinstance(error, errors.BayesControlError)
    if is_ours or not (isinstance(error, TypeError) and isinstance(request, requests.Observe)):
        return error
    try:
        hash(request.o)
    except TypeError:
        return errors.BadEvidence(
            f"observation {short_repr(request.o)} of decision {request.n} is not hashable "
            f"({error}): pass a number, a string or a tuple"
        )
    return error
