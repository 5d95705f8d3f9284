"""Requests to an agent, and the turn that converts a batch of requests into rows of the log.

    compute    the rows and the next state, on a copy of the fold
    append     the rows, durably
    adopt      the copy replaces the fold

An `Act` becomes an event `decided`, drawn from the fold of all events before it. An `Observe`
becomes an event `observed`, a `Refit` an event `refitted`. If the agent accepts late feedback,
decisions come first: they share one posterior, so the action probabilities are computed once.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

from bayescontrol import errors
from bayescontrol._arrays import as_numbers
from bayescontrol.beliefs.draws import checked_draws
from bayescontrol.durable import events
from bayescontrol.durable.committer import Request
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.log import Row, damaged_error
from bayescontrol.durable.plain import as_stored, same_value, short_repr

#: Errors in a request that are found before the agent draws or learns: nothing must be undone.
_REQUEST_ERRORS: Final = (
    *(errors.BadSituation, errors.ConflictingFeedback, errors.ConflictingKey),
    *(errors.DamagedLog, errors.FeedbackDue, errors.InvalidRequest, errors.UnknownDecision),
)


class Act(Request):
    """Ask for an action in situation x. The result is a `Decision`.

    >>> Act(None, "visit-81").key
    'visit-81'
    """

    __slots__ = ("key", "x")

    def __init__(self, x: Any, key: str | None) -> None:
        super().__init__()
        valid = isinstance(key, str) and 1 <= len(key) <= 200 and key.isprintable()
        if key is not None and not valid:
            raise errors.InvalidRequest(
                f"key={short_repr(key)}: a key is a string of 1 to 200 printable characters"
            )
        self.key = key
        self.x = as_stored(x, "the situation")


class Observe(Request):
    """Report o, the observation of a decision. The result is False if o was known already.

    >>> Observe("2", 1).n
    2
    """

    __slots__ = ("id", "n", "o")

    def __init__(self, id: str | events.Decision, o: Any) -> None:
        super().__init__()
        self.id, self.n, self.o = id, events.decision_number(id), as_stored(o, "the observation")


class Refit(Request):
    """Replace the posterior draws by those of a fit that contains the log up to event `through`.

    >>> Refit([[0.2, 0.7]], 12, None).through
    12
    """

    __slots__ = ("draws", "log_weights", "through")

    def __init__(self, draws: Any, through: int, log_weights: Any) -> None:
        super().__init__()
        if log_weights is not None:
            log_weights = as_numbers(log_weights, "log_weights", errors.InvalidPrior)
        self.draws = as_stored(checked_draws(draws), "the draws")
        self.through, self.log_weights = through, as_stored(log_weights, "log_weights")


class _Rejected(Exception):
    """The agent raised the error in `args`; the copy of the fold may have changed halfway."""


class Turn:
    """Computes the rows of a batch of requests; changes nothing but the requests.

    `compute` sets the errors of the requests. `grant` sets their results: call it when the rows
    are on disk.
    """

    def __init__(self, name: str, fold: Fold, decisions: Decisions) -> None:
        self._name, self._before, self._decisions = name, fold, decisions
        self._late_feedback = fold.driver.accepts_late_feedback

    def compute(self, requests: Sequence[Act | Observe | Refit]) -> None:
        """Compute the rows of all requests except those that have an error."""
        try:
            self._compute(requests, isolate=False)
        except _Rejected:  # repeat all requests, and undo those that the agent rejects
            self._compute(requests, isolate=True)

    def _compute(self, requests: Sequence[Act | Observe | Refit], *, isolate: bool) -> None:
        """Compute the rows of the requests, starting from the fold before this turn.

        If the agent rejects a request, raise `_Rejected`. With `isolate`, copy the agent before
        each request that may change it: a rejected request then gets its error, its changes are
        undone, and the next requests follow.
        """
        before = self._before
        # The driver is shared, and copied only before the agent first changes.
        self.fold = Fold(before.driver, before.seed, before.seq, before.due)
        self.rows: list[Row] = []
        self.decided: list[events.Decided] = []
        self._results: list[tuple[Request, Any]] = []
        self._keys: dict[str, events.Decision] = {}
        self.observations: dict[int, events.Observed] = {}
        self._time = time.time()
        if self._late_feedback:  # decisions come first; otherwise the order stays
            requests = sorted(requests, key=lambda request: type(request) is not Act)
        for request in requests:
            # Discard errors from the aborted attempt.
            request.error, request.rejected_by_agent = None, False
            # What to restore if the agent rejects this request.
            row_count, driver = len(self.rows), self.fold.driver
            if isolate and (driver.draws_change or type(request) is not Act):
                self.fold.driver = driver.copy()
            try:
                if isinstance(request, Act):
                    result: Any = self._act(request)
                elif isinstance(request, Observe):
                    result = self._observe(request)
                else:
                    result = self._refit(request)
            except _REQUEST_ERRORS as error:
                request.error = error
            except _Rejected as rejected:
                if not isolate:
                    raise
                request.error, request.rejected_by_agent = rejected.args[0], True
                del self.rows[row_count:]
                self.fold.driver = driver
            else:
                self._results.append((request, result))

    def grant(self) -> None:
        """Set the results: the rows are on disk."""
        for request, result in self._results:
            request.result = result

    # -- one request -----------------------------------------------------------------------------

    def _act(self, request: Act) -> events.Decision:
        """Draw a decision and add its row, or return the decision that has the same key."""
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
        driver = fold.driver
        try:
            x = driver.situation(request.x)
            probabilities = driver.probabilities(x)
            a = as_stored(fold.draw(n, x), "the action")
            x = as_stored(x, "the situation")
            p = None if probabilities is None else float(probabilities.get(a, 0.0))
            event = events.Decided(seq=n, x=x, a=a, p=p, key=request.key, time=self._time)
            self.rows.append(events.encode_row(event))
        except Exception as error:
            raise _Rejected(error) from error
        fold.take_decision(event, draw=False)
        self.decided.append(event)
        decision = events.Decision.of(event, probabilities, self._name)
        if request.key is not None:
            self._keys[request.key] = decision
        return decision

    def _known_decision(self, request: Act) -> events.Decision | None:
        """Return the decision with the key of the request, if there is one.

        Raise `ConflictingKey` if that decision was made in another situation.
        """
        if request.key is None:
            return None
        known = self._keys.get(request.key)
        if known is None:
            logged = self._decisions.find_key(request.key)
            if logged is None:
                return None
            known = events.Decision.of(logged, None, self._name)
        x = self._before.driver.situation(request.x) if self._late_feedback else known.situation
        if not same_value(known.situation, x):
            raise errors.ConflictingKey(
                f"key {short_repr(request.key)} belongs to decision {known.id} in situation "
                f"{short_repr(known.situation)}, not in {short_repr(request.x)}: use a new key"
            )
        return known

    def _observe(self, request: Observe) -> bool:
        """Learn an observation and add its row; return False if it was known already."""
        n, o = request.n, request.o
        decision = self._decisions.get(request.id)
        if isinstance(request.id, events.Decision):
            self._require_same_decision(request.id, decision)
        known = self.observations.get(n) or self._decisions.find_observation(n)
        if known is not None:
            if same_value(known.o, o):
                return False
            raise errors.ConflictingFeedback(
                f"decision {n} already has the observation {short_repr(known.o)}, which is kept; "
                f"{short_repr(o)} is rejected"
            )
        if not self._late_feedback and n != self.fold.due:
            raise damaged_error(
                self._name, f"decision {n} was never observed, but later ones exist"
            )
        self._copy_once()
        learned = events.Observed(seq=self.fold.seq + 1, n=n, o=o, time=self._time)
        try:
            self.rows.append(events.encode_row(learned))
            self.fold.take_observation(learned, decision.x, decision.a)
        except Exception as error:
            raise _Rejected(_observation_error(error, n, o)) from error
        self.observations[n] = learned
        return True

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
        later = self._decisions.steps(through, before)
        for observed in self.observations.values():  # of this turn
            d = self._decisions.get(observed.n)
            later.append((d.x, d.a, observed.o))
        try:
            self.fold.take_refit(event, later)
            self.rows.append(events.encode_row(event))
        except Exception as error:
            raise _Rejected(error) from error
        return event.seq

    def _require_same_decision(self, given: events.Decision, logged: events.Decided) -> None:
        """Raise `UnknownDecision` if `given` is a decision of another log with the same id."""
        is_same = given.agent in (None, self._name) and given.time == logged.time
        if not (is_same and same_value(given.action, logged.a)):
            raise errors.UnknownDecision(
                f"decision {given.id} of {given.agent or 'another log'!r}, action "
                f"{short_repr(given.action)} at time {given.time}, is not decision {logged.seq} of "
                f"log {self._name!r}, action {short_repr(logged.a)} at time {logged.time}: pass it "
                "to the agent that made it"
            )

    def _copy_once(self) -> None:
        """Copy the agent, unless this turn has copied it already."""
        if self.fold.driver is self._before.driver:
            self.fold.driver = self.fold.driver.copy()


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
