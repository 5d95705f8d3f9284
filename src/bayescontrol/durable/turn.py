"""One turn of the committer: requests in, rows out.

    act        an event `decided`, drawn from the fold of all events before it
    observe    an event `observed`, learnt by a copy of the fold

The copy takes the place of the fold when the rows are on disk. Where feedback stands alone,
decisions come first: they share one posterior, and its action probabilities are computed once.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

from bayescontrol.durable.committer import Request
from bayescontrol.durable.decision import Decision
from bayescontrol.durable.events import Decided, Observed, as_row
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.laws import Laws
from bayescontrol.durable.plain import kept, same_answer, same_value, shown
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.durable.store import Log, Row
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    BayesControlError,
    ConflictingFeedback,
    ConflictingKey,
    DamagedLog,
    FeedbackDue,
    UnknownDecision,
)

_REFUSED: Final = (
    BadSituation, ConflictingFeedback, ConflictingKey, DamagedLog, FeedbackDue, UnknownDecision,
)  # fmt: skip


class _Rejected(Exception):
    """The agent raised: whatever the copy is now, it is not used."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Turn:
    """What the requests make of the fold; nothing is changed but the requests' results.

    Errors are set on their requests as they are found; results are set by `grant`, when the rows
    are on disk.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent, open_store
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", BernoulliBandit(["red", "blue"])) as agent:
    ...     driver, created = agent.model.driver(), agent.created
    >>> log = store.log("shop")
    >>> turn = Turn(Fold(driver, created.seed), log, Decisions(log), Laws(driver.law))
    >>> turn.compute([Act(None, None), Act(None, None), Observe("9", 1)])
    >>> [row.seq for row in turn.rows]
    [2, 3]
    """

    def __init__(self, fold: Fold, log: Log, decisions: Decisions, laws: Laws[Any]) -> None:
        self._before, self._decisions = fold, decisions
        self._known_laws = laws
        self._alone, self._name = fold.driver.alone, log.name

    def compute(self, requests: Sequence[Request]) -> None:
        """Find the rows; a request that the agent refuses is left out, as if it had never come."""
        try:
            self._compute(requests, careful=False)
        except _Rejected:  # again: with a copy before each that could leave half of a change behind
            self._compute(requests, careful=True)

    def _compute(self, requests: Sequence[Request], *, careful: bool) -> None:
        before = self._before
        # The agent itself is copied when it first changes.
        self.fold = Fold(before.driver, before.streams, before.seq, before.due)
        self.rows: list[Row] = []
        self.decided: list[Decided] = []
        self._results: list[tuple[Request, Any]] = []
        self._keys: dict[str, Decision] = {}
        self.answered: dict[int, Any] = {}
        #: The action probabilities that hold after this turn.
        self.laws = self._known_laws
        self._time = time.time()
        ordered = requests
        if self._alone and len(requests) > 1:
            ordered = [r for r in requests if type(r) is Act]
            ordered += [r for r in requests if type(r) is not Act]
        for request in ordered:
            # What an attempt that came to nothing found does not hold.
            request.error, request.refused = None, False
            rows, driver, laws = len(self.rows), self.fold.driver, self.laws
            if careful and (driver.remembers or type(request) is not Act):
                self._fork()
            try:
                result = self._act(request) if type(request) is Act else self._observe(request)
            except _REFUSED as error:
                request.error = error
            except _Rejected as rejected:
                if not careful:
                    raise
                request.error, request.refused = rejected.error, True
                del self.rows[rows:]
                self.fold.driver, self.laws = driver, laws
            else:
                self._results.append((request, result))

    def grant(self) -> None:
        """The rows are on disk: say so."""
        for request, result in self._results:
            request.result = result

    # -- one request -----------------------------------------------------------------------------

    def _act(self, request: Act) -> Decision:
        known = None if request.key is None else self._keyed(request.key)
        if known is not None:
            asked = self._alone and not same_value(
                known.situation, self._before.driver.situation(request.x)
            )
            if asked:
                raise ConflictingKey(
                    f"key {shown(request.key)} stands for decision {known.id} in situation "
                    f"{shown(known.situation)}, now it comes with {shown(request.x)}: use a new key"
                )
            return known
        if self.fold.due:
            raise FeedbackDue(
                f"decision {self.fold.due} has not been answered, and its answer leads to the "
                f"next situation: observe({str(self.fold.due)!r}, o) first"
            )
        fold = self.fold
        n = fold.seq + 1
        if fold.driver.remembers:
            self._own()
        driver = fold.driver
        try:
            x = driver.situation(request.x)
            law = self.laws.of(x)
            _, a = driver.draw(x, fold.streams[n])
            x, a = kept(x, "the situation"), kept(a, "the action")
            p = None if law is None else float(law.get(a, 0.0))
            event = Decided(seq=n, x=x, a=a, p=p, key=request.key, time=self._time)
            self.rows.append(as_row(event))
        except Exception as error:
            raise _Rejected(error) from error
        fold.decided(event, draw=False)
        if driver.remembers:
            self.laws.clear()
        self.decided.append(event)
        # A copy: what a caller does with it must not change what the next ones are told.
        decision = Decision.of(event, None if law is None else dict(law), self._name)
        if request.key is not None:
            self._keys[request.key] = decision
        return decision

    def _keyed(self, key: str) -> Decision | None:
        if key in self._keys:
            return self._keys[key]
        event = self._decisions.keyed(key)
        return None if event is None else Decision.of(event, None, self._name)

    def _observe(self, request: Request) -> bool:
        assert isinstance(request, Observe)
        n, o = request.n, request.o
        try:
            decision = self._decisions.get(n)
        except UnknownDecision:
            raise UnknownDecision(
                f"no decision {shown(request.id)} in log {self._name!r}: give the id that "
                "`act` returned"
            ) from None
        if isinstance(request.id, Decision):
            self._require_ours(request.id, decision)
        known = self.answered.get(n, self)
        if known is self:
            event = self._decisions.answer(n)
            known = self if event is None else event.o
        if known is not self:
            if same_answer(known, o):
                return False
            raise ConflictingFeedback(
                f"decision {n} was answered by {shown(known)}, now {shown(o)} comes for it: the "
                "first answer stands"
            )
        if not self._alone and n != self.fold.due:
            raise DamagedLog(f"decision {n} has no answer, and decisions after it were made")
        self._own()
        learnt = Observed(seq=self.fold.seq + 1, n=n, o=o, time=self._time)
        try:
            self.rows.append(as_row(learnt))
            self.fold.observed(learnt, decision.x, decision.a)
        except Exception as error:
            raise _Rejected(_told(error, n, o)) from error
        self.answered[n] = o
        self.laws.clear()
        return True

    def _require_ours(self, given: Decision, logged: Decided) -> None:
        """A `Decision` of another log or another store may have the number of one of ours."""
        ours = given.agent in (None, self._name) and given.time == logged.time
        if not (ours and same_value(given.action, logged.a)):
            raise UnknownDecision(
                f"decision {given.id} of {given.agent or 'another log'!r}, action "
                f"{shown(given.action)}, is not the decision {logged.seq} of log "
                f"{self._name!r}, action {shown(logged.a)}: give it to the agent that made it"
            )

    def _own(self) -> None:
        """From here on the fold changes: let it be a copy."""
        if self.fold.driver is self._before.driver:
            self._fork()

    def _fork(self) -> None:
        self.fold.driver = self.fold.driver.copy()
        self.laws = Laws(self.fold.driver.law)


def _told(error: Exception, n: int, o: Any) -> Exception:
    """What the agent says of o: where it looks observations up, a list is none."""
    if not isinstance(error, TypeError) or isinstance(error, BayesControlError):
        return error
    try:
        hash(o)
    except TypeError:
        return BadEvidence(
            f"observation {shown(o)} of decision {n} cannot be looked up ({error}): give a "
            "number, a text or a tuple"
        )
    return error
