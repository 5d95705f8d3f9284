"""Requests to a durable agent; a turn converts a batch of them into events.

    Act            a decision                  Withdraw     take back an observation
    Observe        its observation             ChangeArm    add, pause, resume or retire an arm
    ObserveTotals  totals of an arm's rewards  Configure    shares, prices and times from now on
    Refit          posterior draws             Settle       record the defaults that are due

The constructor checks what does not depend on the agent.
"""

from collections.abc import Sequence
from typing import Any, Final

from bayescontrol import errors
from bayescontrol._arrays import as_numbers
from bayescontrol._support.names import LARGEST_PRICE
from bayescontrol.beliefs.draws import checked_draws
from bayescontrol.durable import events
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.plain import Value, as_stored, short_repr
from bayescontrol.durable.stores.committer import Request
from bayescontrol.protocols import Totals

#: The maximum length of a key and of the name of a session.
_MAX_KEY: Final = 200


def _require_key(key: Any, what: str) -> None:
    """Raise `InvalidRequest` if a key is not a short printable text."""
    valid = isinstance(key, str) and 1 <= len(key) <= _MAX_KEY and key.isprintable()
    if not valid:
        raise errors.InvalidRequest(
            f"{what}={short_repr(key)}: a {what} is a string of 1 to {_MAX_KEY} printable "
            "characters"
        )


class Act(Request):
    """Ask for an action in situation x. The result is a `Decision`.

    >>> Act(None, "visit-81").key
    'visit-81'
    """

    __slots__ = ("among", "key", "session", "x")

    def __init__(
        self, x: Value, key: str | None = None, among: Sequence[Value] | None = None,
        session: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if key is not None:
            _require_key(key, "key")
        if session is not None:
            _require_key(session, "session")
        self.key, self.session = key, session
        self.x = as_stored(x, "the situation")
        self.among: list[Value] | None = None
        if among is not None:
            given: Any = among
            if not isinstance(given, list | tuple):
                raise errors.InvalidRequest(
                    f"among={short_repr(among)}: give a list of the eligible arms"
                )
            self.among = as_stored(list(among), "an eligible arm")


class Observe(Request):
    """Report o, the observation of a decision. The result is False if o was known already.

    >>> Observe("2", 1).n
    2
    """

    __slots__ = ("cost", "id", "n", "o")

    def __init__(self, id: events.DecisionId, o: Value, cost: float | None = None) -> None:
        super().__init__()
        self.id, self.n, self.o = id, events.decision_number(id), as_stored(o, "the observation")
        self.cost = cost
        if cost is not None:
            given: Any = cost
            if not isinstance(given, int | float) or not abs(given) <= LARGEST_PRICE:
                raise errors.BadEvidence(
                    f"cost={short_repr(given)}: expected a number within ±{LARGEST_PRICE:g}"
                )
            self.cost = float(given)


class ObserveTotals(Request):
    """Report the totals of rewards of an arm that belong to no decision.

    The result is False if they were known already, by their key.

    >>> ObserveTotals("red", Totals(10, 3), None, "monday").totals.total
    3
    """

    __slots__ = ("a", "key", "totals", "x")

    def __init__(self, arm: Value, totals: Totals, x: Value, key: str) -> None:
        super().__init__()
        given: Any = totals
        if not isinstance(given, Totals):
            raise errors.BadEvidence(
                f"totals={short_repr(given)}: give Totals(n, total, squares) of the rewards"
            )
        if key is None:
            raise errors.InvalidRequest(
                "key=None: totals need a key, so that they count once if the call is repeated"
            )
        self.a, self.x = as_stored(arm, "the arm"), as_stored(x, "the situation")
        self.totals = as_stored(totals, "the totals")
        _require_key(key, "key")
        self.key = key


class Withdraw(Request):
    """Take back the observation of a decision. The result is False if it has been withdrawn.

    >>> Withdraw("2").n
    2
    """

    __slots__ = ("id", "n")

    def __init__(self, id: events.DecisionId) -> None:
        super().__init__()
        self.id, self.n = id, events.decision_number(id)


class ChangeArm(Request):
    """Add, pause, resume or retire an arm. The result is the number of the event.

    >>> ChangeArm("green", "added", (1, 1)).prior
    (1, 1)
    """

    __slots__ = ("arm", "change", "prior")

    def __init__(self, arm: Value, change: events.ArmChange, prior: Value = None) -> None:
        super().__init__()
        if change not in events.ARM_CHANGES:
            raise errors.InvalidRequest(
                f"change={change!r}: expected one of {', '.join(events.ARM_CHANGES)}"
            )
        if prior is not None and change != "added":
            raise errors.InvalidRequest(
                f"prior={short_repr(prior)}: only an arm that is added has a prior; leave it out"
            )
        self.arm, self.change = as_stored(arm, "the arm"), change
        self.prior = as_stored(prior, "the prior")


class Configure(Request):
    """Replace the configuration. The result is the number of the event.

    >>> Configure(Configuration(holdout=0.1)).settings
    {'holdout': 0.1}
    """

    __slots__ = ("configuration", "settings")

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        if not isinstance(configuration, Configuration):
            raise errors.InvalidRequest(
                f"configuration={short_repr(configuration)}: give a Configuration(…)"
            )
        self.configuration, self.settings = configuration, configuration.settings()


class Settle(Request):
    """Record the defaults that are due. The result is how many decisions are still open.

    >>> Settle().result is None
    True
    """


class Refit(Request):
    """Replace the posterior draws by those of a fit that contains the log up to event `through`.

    >>> Refit([[0.2, 0.7]], 12, None).through
    12
    """

    __slots__ = ("draws", "log_weights", "through")

    def __init__(self, draws: Value, through: int, log_weights: Value) -> None:
        super().__init__()
        if log_weights is not None:
            log_weights = as_numbers(log_weights, "log_weights", errors.InvalidPrior)
        self.draws = as_stored(checked_draws(draws), "the draws")
        self.through, self.log_weights = through, as_stored(log_weights, "log_weights")
