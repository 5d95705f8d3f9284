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
from typing import Any, Final, TypeAlias

from bayescontrol import errors
from bayescontrol.durable import events
from bayescontrol.durable.decisions import Amendments, Answer, Decisions
from bayescontrol.durable.events import Amendment, Configured, Corrected, Observed, Withdrawn
from bayescontrol.durable.fold import Drawn, Fold
from bayescontrol.durable.plain import as_stored, same_value, short_repr
from bayescontrol.durable.requests import (
    Act,
    ChangeArm,
    Configure,
    Observe,
    ObserveTotals,
    Refit,
    Settle,
    Withdraw,
)
from bayescontrol.durable.stores.committer import Request
from bayescontrol.durable.stores.log import Row, damaged_error

#: Errors in a request that are found before the agent draws or learns: nothing must be undone.
_REQUEST_ERRORS: Final = (
    *(errors.BadSituation, errors.ConflictingFeedback, errors.ConflictingKey),
    *(errors.DamagedLog, errors.FeedbackDue, errors.InvalidRequest, errors.UnknownDecision),
)
#: The place of requests in a turn; all others come last.
_ORDER: Final[Mapping[type, int]] = {Configure: 0, ChangeArm: 0, Act: 1}
_LAST: Final = 2
#: The maximum number of defaults in one turn.
_MAX_DEFAULTS: Final = 1_000
#: Folds the log again, with these amendments by the number of the first answer.
_FoldAgain: TypeAlias = Callable[[Mapping[int, Amendment], int], Fold]


class _Rejected(Exception):
    """The agent raised the error in `args`; the copy of the fold may have changed halfway."""


class Turn:
    """Computes the rows of a batch of requests; changes nothing but the requests.

    `compute` sets the errors of the requests. `grant` sets their results: call it when the rows
    are on disk. `fold_again(amendments, last)` returns the fold of the log with amendments that
    are not in it yet, of which `last` is the largest number.
    """

    def __init__(self, name: str, fold: Fold, decisions: Decisions, fold_again: _FoldAgain) -> None:
        self._name, self._before, self._decisions = name, fold, decisions
        self._fold_again = fold_again
        self._late_feedback = fold.driver.accepts_late_feedback

    def compute(self, requests: Sequence[Request]) -> None:
        """Compute the rows of all requests except those that have an error."""
        try:
            self._compute(requests, isolate=False)
        except _Rejected:  # repeat all requests, and undo those that the agent rejects
            self._compute(requests, isolate=True)

    def _compute(self, requests: Sequence[Request], *, isolate: bool) -> None:
        """Compute the rows of the requests, starting from the fold before this turn.

        If the agent rejects a request, raise `_Rejected`. With `isolate`, copy the agent before
        each request that may change it: a rejected request then gets its error, its changes are
        undone, and the next requests follow.
        """
        before = self._before
        # The driver is shared, and copied only before the agent first changes.
        self.fold = Fold(before.driver, before.seed, before.seq, before.due, before.terms)
        self.rows: list[Row] = []
        #: The events of the rows that are no decisions or answers.
        self.others: list[events.Event] = []
        self.decided: list[events.Decided] = []
        self._results: list[tuple[Request, Any]] = []
        self._keys: dict[str, events.Decision | events.Aggregated] = {}
        self._sessions: dict[str, events.Decided] = {}
        self.observations: dict[int, Observed] = {}
        #: The amendments of this turn, by the number of the first answer.
        self.amendments: dict[int, Amendment] = {}
        #: The current answers of the decisions that this turn amends.
        self._amended: dict[int, Answer] = {}
        self._time = time.time()
        if self._late_feedback:  # otherwise the order stays
            requests = self._amend(requests, isolate)
            requests.sort(key=lambda request: _ORDER.get(type(request), _LAST))
        for request in requests:
            if isinstance(request, Settle):
                continue
            # Discard errors from the aborted attempt.
            request.error, request.rejected_by_agent = None, False
            # What to restore if the agent rejects this request.
            row_count, driver, terms = len(self.rows), self.fold.driver, self.fold.terms
            if isolate and (driver.draws_change or type(request) is not Act):
                self.fold.driver = driver.copy()
            try:
                result = self._handle(request)
            except _REQUEST_ERRORS as error:
                request.error = error
            except _Rejected as rejected:
                if not isolate:
                    raise
                request.error, request.rejected_by_agent = rejected.args[0], True
                del self.rows[row_count:]
                self.fold.driver, self.fold.terms = driver, terms
            else:
                self._results.append((request, result))
        open_count = 0
        if self._decisions.waiting():  # defaults come last: an answer in the same batch is in time
            open_count = self._record_defaults({r.n for r in requests if isinstance(r, Observe)})
        self._results += [(r, open_count) for r in requests if isinstance(r, Settle)]

    def _handle(self, request: Request) -> Any:
        """Add the rows of a request; return its result."""
        if isinstance(request, Act):
            return self._act(request)
        if isinstance(request, Observe):
            return self._observe(request)
        if isinstance(request, ObserveTotals):
            return self._observe_totals(request)
        if isinstance(request, ChangeArm):
            return self._change_arm(request)
        if isinstance(request, Configure):
            return self._configure(request)
        if isinstance(request, Refit):
            return self._refit(request)
        assert isinstance(request, Withdraw)
        raise errors.InvalidRequest(
            "the observations of this agent determine its situations: they cannot be withdrawn"
        )

    def grant(self) -> None:
        """Set the results: the rows are on disk."""
        for request, result in self._results:
            request.result = result

    # -- decisions -------------------------------------------------------------------------------

    def _act(self, request: Act) -> events.Decision:
        """Draw a decision and add its row, or return the one with the same key or session."""
        known = self._known_decision(request)
        if known is not None:
            return known
        if self.fold.due:
            raise errors.FeedbackDue(
                f"decision {self.fold.due} has no observation yet, and that observation determines "
                f"the next situation: call observe({str(self.fold.due)!r}, o) first"
            )
        fold = self.fold
        n = fold.seq + 1
        if fold.driver.draws_change:
            self._copy_once()
        try:
            x = fold.driver.situation(request.x)
            drawn: Drawn = fold.draw(n, x, request.among)
            a, probabilities = as_stored(drawn.a, "the action"), drawn.probabilities
            x = as_stored(x, "the situation")
            p = None if probabilities is None else float(probabilities.get(a, 0.0))
            event = events.Decided(
                seq=n, x=x, a=a, p=p, key=request.key, time=self._time, session=request.session,
                among=request.among, holdout=drawn.holdout,
            )  # fmt: skip
            self.rows.append(events.encode_row(event))
        except Exception as error:
            raise _Rejected(error) from error
        fold.take_decision(event, draw=False)
        self.decided.append(event)
        decision = events.Decision.of(event, probabilities, self._name)
        if request.key is not None:
            self._keys[request.key] = decision
        if request.session is not None:
            self._sessions[request.session] = event
        return decision

    def _known_decision(self, request: Act) -> events.Decision | None:
        """Return the decision that the key or the session of a request already has."""
        if request.key is not None:
            known = self._known_by_key(request)
            if known is not None:
                return known
        if request.session is None:
            return None
        found = self._sessions.get(request.session)
        found = found or self._decisions.find_session(request.session)
        if found is None or self.fold.terms.arm_state(found.a) != "active":
            return None
        if request.among is not None and found.a not in request.among:
            return None
        return events.Decision.of(found, None, self._name)

    def _known_by_key(self, request: Act) -> events.Decision | None:
        """Return the decision with the key of a request; raise `ConflictingKey` if x differs."""
        assert request.key is not None
        known = self._keys.get(request.key)
        if known is None:
            logged = self._decisions.find_key(request.key)
            if isinstance(logged, events.Decided):
                known = events.Decision.of(logged, None, self._name)
            else:
                known = logged
        if known is None:
            return None
        if isinstance(known, events.Aggregated):
            raise errors.ConflictingKey(
                f"key {short_repr(request.key)} belongs to the totals of event {known.seq}: use a "
                "new key"
            )
        x = self._before.driver.situation(request.x) if self._late_feedback else known.situation
        if not same_value(known.situation, x):
            raise errors.ConflictingKey(
                f"key {short_repr(request.key)} belongs to decision {known.id} in situation "
                f"{short_repr(known.situation)}, not in {short_repr(request.x)}: use a new key"
            )
        return known

    # -- feedback --------------------------------------------------------------------------------

    def _observe(self, request: Observe) -> bool:
        """Learn an observation and add its row; return False if it was known already."""
        n, o = request.n, request.o
        decision = self._require_decision(request.id)
        known: Observed | Amendment | None = self.observations.get(n)
        if known is None and (answer := self._decisions.find_answer(n)) is not None:
            known = answer.last
        if known is not None:
            return _compare(n, o, known)
        if not self._late_feedback and n != self.fold.due:
            raise damaged_error(
                self._name, f"decision {n} was never observed, but later ones exist"
            )
        event = Observed(seq=self.fold.seq + 1, n=n, o=o, time=self._time, cost=request.cost)
        self._learn(event, decision)
        return True

    def _learn(self, event: Observed, decision: events.Decided) -> None:
        """Learn the first answer of a decision and add its row."""
        self._copy_once()
        try:
            if not event.default:  # it was checked with the configuration
                what = f"observation of decision {event.n}:"
                self.fold.terms.configuration.require_in_range(event.o, what)
            self.rows.append(events.encode_row(event))
            self.fold.take_observation(event, decision.x, decision.a)
        except Exception as error:
            raise _Rejected(_observation_error(error, event.n, event.o)) from error
        self.observations[event.n] = event

    def _record_defaults(self, answered: set[int]) -> int:
        """Record the default for open decisions whose window is over; return how many are open."""
        configuration, waiting = self.fold.terms.configuration, self._decisions.waiting()
        ended = any(
            isinstance(e, Configured) and "window" not in e.configuration for e in self.others
        )
        if configuration.window is None or waiting is None or ended:
            return 0
        latest = self._time - configuration.window
        due = takewhile(lambda item: item[1] <= latest, waiting.items())
        for n, _ in list(islice(due, _MAX_DEFAULTS)):
            if n in answered or n in self.observations:
                continue
            event = Observed(
                seq=self.fold.seq + 1, n=n, o=configuration.default, time=self._time, default=True
            )
            rows, driver = len(self.rows), self.fold.driver
            try:
                self._learn(event, self._decisions.get(n))
            except _Rejected as rejected:  # an invalid default must not fail the other requests
                del self.rows[rows:]
                self.fold.driver = driver
                del waiting[n]
                warnings.warn(
                    f"decision {n} of {self._name!r} stays open: {rejected.args[0]}; configure a "
                    "valid default", stacklevel=2,
                )  # fmt: skip
        return len(waiting) - sum(n in waiting for n in self.observations)

    def _observe_totals(self, request: ObserveTotals) -> bool:
        """Learn totals and add their row; return False if they were known already."""
        known: Any = self._keys.get(request.key) or self._decisions.find_key(request.key)
        if known is not None:
            same = isinstance(known, events.Aggregated) and same_value(
                [known.x, known.a, list(known.totals)],
                [request.x, request.a, list(request.totals)],
            )
            if same:
                return False
            raise errors.ConflictingKey(
                f"key {short_repr(request.key)} belongs to {short_repr(known)}: use a new key"
            )
        if not self._late_feedback:
            raise errors.InvalidRequest(
                "the observations of this agent determine its situations: totals cannot replace "
                "them"
            )
        event = events.Aggregated(
            seq=self.fold.seq + 1, x=request.x, a=request.a, totals=request.totals,
            key=request.key, time=self._time,
        )  # fmt: skip
        self._copy_once()
        try:
            self.fold.terms.configuration.require_in_range(request.totals, "the mean of")
            self.rows.append(events.encode_row(event))
            self.fold.take_totals(event)
        except Exception as error:
            raise _Rejected(error) from error
        self._keys[request.key] = event
        return True

    # -- amendments ------------------------------------------------------------------------------

    def _amend(self, requests: Sequence[Request], isolate: bool) -> list[Request]:
        """Add the rows of amendments and fold the log with them; return the other requests.

        With `isolate`, fold after each of them, so that one that the agent rejects is left out.
        """
        others, results = list[Request](), list[tuple[Request, bool]]()
        for request in requests:
            if not isinstance(request, Withdraw | Observe):
                others.append(request)
                continue
            request.error, request.rejected_by_agent = None, False
            before = dict(self.amendments), dict(self._amended), len(self.rows), self.fold
            try:
                answer = self._answer(request.n)
                if answer is None and isinstance(request, Observe):
                    others.append(request)
                    continue
                event = self._amendment(request, answer)
                if isolate and event is not None:
                    self._refold()
            except _REQUEST_ERRORS as error:
                request.error = error
            except _Rejected as rejected:
                self.amendments, self._amended, rows, self.fold = before
                del self.rows[rows:]
                request.error, request.rejected_by_agent = rejected.args[0], True
            else:
                results.append((request, event is not None))
        if self.amendments and not isolate:
            self._refold()
        self._results += results
        return others

    def _answer(self, n: int) -> Answer | None:
        """Return the current answer of decision n, if it has one."""
        answer = self._amended.get(n)
        if answer is None and self._decisions.may_have_answer(n):
            answer = self._decisions.find_answer(n)
        return answer

    def _amendment(self, request: Withdraw | Observe, answer: Answer | None) -> Amendment | None:
        """Add the row of an amendment; return None if the request amends nothing."""
        n = request.n
        self._require_decision(request.id)
        if answer is None:
            raise errors.InvalidRequest(f"decision {n} has no observation to withdraw")
        if isinstance(request, Withdraw):
            if answer.is_withdrawn:
                return None
            event: Amendment = Withdrawn(seq=self._next(), n=answer.last.seq, time=self._time)
        else:
            if not (answer.is_withdrawn or answer.is_default):
                _compare(n, request.o, answer.last)  # raises `ConflictingFeedback`, or known
                return None
            what = f"observation of decision {n}:"
            try:
                self.fold.terms.configuration.require_in_range(request.o, what)
            except errors.BadEvidence as error:
                raise _Rejected(error) from error
            event = Corrected(
                seq=self._next(), n=answer.last.seq, o=request.o, time=self._time,
                cost=request.cost,
            )  # fmt: skip
        self.rows.append(events.encode_row(event))
        self.amendments[answer.first.seq] = event
        self._amended[n] = Answer(answer.first, event)
        return event

    def _next(self) -> int:
        """Return the number of the next event, before the log is folded with the amendments."""
        return self._before.seq + len(self.rows) + 1

    def _refold(self) -> None:
        """Fold the log again with the amendments so far."""
        last = self._before.seq + len(self.rows)
        try:
            self.fold = self._fold_again(self.amendments, last)
        except errors.StoreFailed:
            raise
        except Exception as error:
            raise _Rejected(error) from error
        self.fold.seq = last

    # -- changes of the terms --------------------------------------------------------------------

    def _change_arm(self, request: ChangeArm) -> int:
        """Change an arm and add the row; return the number of the event."""
        self._copy_once()
        event = events.ArmChanged(
            seq=self.fold.seq + 1, arm=request.arm, change=request.change, time=self._time,
            prior=request.prior,
        )  # fmt: skip
        try:
            self.fold.driver.require_choosing()
            self.fold.terms.require_change(request.arm, request.change, self.fold.driver.arms())
            self.rows.append(events.encode_row(event))
            self.fold.take_terms(event)
        except Exception as error:
            raise _Rejected(error) from error
        self.others.append(event)
        return event.seq

    def _configure(self, request: Configure) -> int:
        """Replace the configuration and add the row; return the number of the event."""
        event = events.Configured(
            seq=self.fold.seq + 1, configuration=request.settings, time=self._time
        )
        try:
            self.fold.require_valid(request.configuration)
            self.rows.append(events.encode_row(event))
            self.fold.take_terms(event)
        except Exception as error:
            raise _Rejected(error) from error
        self.others.append(event)
        return event.seq

    def _refit(self, request: Refit) -> int:
        """Replace the draws and add the row; return the number of the event."""
        through, before = request.through, self._before.seq
        if type(through) is not int or not 1 <= through <= before:
            raise errors.InvalidRequest(
                f"through={through!r}: give the number of the last event that the draws contain, "
                f"from 1 (no observation) to {before}"
            )
        self._copy_once()
        event = events.Refitted(
            seq=self.fold.seq + 1, through=through, draws=request.draws,
            log_weights=request.log_weights, time=self._time,
        )  # fmt: skip
        later = self._decisions.steps(through, before, Amendments(self.amendments, 0))
        for observed in self.observations.values():  # of this turn
            d = self._decisions.get(observed.n)
            later.append((d.x, d.a, observed.o))
        try:
            self.fold.take_refit(event, later)
            self.rows.append(events.encode_row(event))
        except Exception as error:
            raise _Rejected(error) from error
        return event.seq

    # -- checks ----------------------------------------------------------------------------------

    def _require_decision(self, id: str | int | events.Decision) -> events.Decided:
        """Return the decision with this id; raise `UnknownDecision` if it is of another log."""
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

    def _copy_once(self) -> None:
        """Copy the agent, unless this turn has copied it already."""
        if self.fold.driver is self._before.driver:
            self.fold.driver = self.fold.driver.copy()


def _compare(n: int, o: Any, known: Observed | Amendment) -> bool:
    """Return False if o is the known observation; raise `ConflictingFeedback` if it differs."""
    assert not isinstance(known, Withdrawn)
    if same_value(known.o, o):
        return False
    raise errors.ConflictingFeedback(
        f"decision {n} already has the observation {short_repr(known.o)}, which is kept; "
        f"{short_repr(o)} is rejected; withdraw the first one to replace it"
    )


def _observation_error(error: Exception, n: int, o: Any) -> Exception:
    """Return the error, or `BadEvidence` instead of a TypeError if o is not hashable."""
    if not isinstance(error, TypeError) or isinstance(error, errors.BayesControlError):
        return error
    try:
        hash(o)
    except TypeError:
        return errors.BadEvidence(
            f"observation {short_repr(o)} of decision {n} is not hashable ({error}): pass a "
            "number, a string or a tuple"
        )
    return error
