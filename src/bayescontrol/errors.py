"""The errors that this library raises on purpose.

A message names the value, the place and what to do. Whatever raises one of these errors has
changed nothing: the belief, the agent and the record are as they were, bit for bit.
"""

from collections.abc import Iterator
from contextlib import contextmanager


def counted(n: int, thing: str) -> str:
    """Return a count with its noun, as messages need it: "1 state", "2 states"."""
    return f"{n} {thing}{'s' * (n != 1)}"


class BayesControlError(Exception):
    """Base class of all errors of this library."""


# -- beliefs and modes ------------------------------------------------------------------------


class InvalidPrior(BayesControlError, ValueError):
    """The prior P(m) is not a probability distribution over the modes."""


class BadEvidence(BayesControlError, ValueError):
    """The likelihood P(o | m, x, a) is NaN, negative, infinite or of the wrong shape."""

    #: Index of the mode that gave the likelihood, if one mode did.
    mode: int | None = None


class ImpossibleObservation(BadEvidence):
    """The observation has probability zero under every mode that still has weight."""


class TooLate(BadEvidence):
    """The answer to a decision comes later than the belief accepts."""


class UnknownMode(BayesControlError, LookupError):
    """There is no operation mode with this name or index."""


class IncompatibleState(BayesControlError, ValueError):
    """The saved or merged arrays do not belong to this object."""


class MissingCapability(BayesControlError, TypeError):
    """The object lacks an optional method that this call needs (see `bayescontrol.protocols`)."""


class BadSituation(BayesControlError, ValueError):
    """The situation is not one that the agent can use, or it differs from the world's state."""


# -- problems ---------------------------------------------------------------------------------


class InvalidTable(BayesControlError, ValueError):
    """The table is not a conditional distribution: wrong sum, shape or order."""


class UnknownArm(BayesControlError, LookupError):
    """The bandit has no arm with this name or number."""


class UnknownState(BayesControlError, LookupError):
    """The Markov decision problem has no state with this name or number."""


class UnknownAction(BayesControlError, LookupError):
    """There is no such action, or the current state does not offer it."""


class UnknownVariable(BayesControlError, LookupError):
    """The causal model has no such variable, or the variable never takes this value."""


class ImpossibleCondition(BadEvidence):
    """The condition y of P(x | y) has probability zero."""


class NotCommunicating(BayesControlError, ValueError):
    """Some states cannot be reached from others, so the average reward depends on the start."""


class NotConverged(BayesControlError, ArithmeticError):
    """The iteration reached its limit before its tolerance."""


class QuadratureFailed(BayesControlError, ArithmeticError):
    """∫ f_i Π F_j was not computed to 1e-12: the scales of the posteriors differ too much."""


class NotCompilable(BayesControlError, TypeError):
    """Numba cannot compile one of the functions."""


class EpisodeOver(BayesControlError, RuntimeError):
    """The environment has ended its episode and cannot respond any more."""


class UnknownParameter(BayesControlError, LookupError):
    """The plant has no parameter with this name."""


class InvalidSystem(BayesControlError, ValueError):
    """The matrices of a linear system do not fit, are not definite, or are not finite."""


class NotStabilisable(BayesControlError, ArithmeticError):
    """No gain stabilises the system: the Riccati equation has no stabilising solution."""


class MissingExtra(BayesControlError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> "MissingExtra":
        """Return the error for a feature that needs a package from an extra."""
        return cls(
            f"{what} needs {package}, which is not installed: pip install 'bayescontrol[{extra}]'"
        )


@contextmanager
def needs_extra(what: str, package: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtra` if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra.of(what, package, extra) from error


# -- durable agents ---------------------------------------------------------------------------


class StoreFailed(BayesControlError, OSError):
    """The database cannot be opened, read or written. Acknowledged events are safe.

    The last event may or may not be stored: reopen, or retry with the same key.
    """


class StoreBusy(StoreFailed):
    """Another writer holds the database or the log."""


class DiskFull(StoreFailed):
    """There is no space for another event. Nothing was written; retry when there is space."""


class NetworkFileSystem(StoreFailed):
    """The file is on a network file system, where locks and flushes are not reliable."""


class DamagedLog(StoreFailed):
    """The file is not a log of this library, or it is damaged."""


class NewerFormat(StoreFailed):
    """The log was written by a later release, in a format that this one cannot read."""


class NotDurable(StoreFailed):
    """The database acknowledges writes before they are on disk."""


class NotPermitted(StoreFailed, PermissionError):
    """The database refuses this role. Nothing was written."""


class HeadMoved(BayesControlError, RuntimeError):
    """The log has grown since it was last read: read the new events, then append again."""


class UnknownStore(BayesControlError, ValueError):
    """The address does not name a supported database, or the database has no such log."""


class ModelMismatch(BayesControlError, ValueError):
    """The log belongs to a model with another name, version or settings."""


class UnknownDecision(BayesControlError, LookupError):
    """The log has no decision with this id."""


class CompactedDecision(UnknownDecision):
    """The decision was compacted: its events were replaced by a sealed snapshot of the belief."""


class AgentExists(BayesControlError, ValueError):
    """The store already has an agent of this name. Nothing was changed."""


class ConflictingFeedback(BayesControlError, ValueError):
    """The decision already has a different observation. The first one stands."""


class ConflictingKey(BayesControlError, ValueError):
    """The idempotency key was used before with a different situation."""


class FeedbackDue(BayesControlError, RuntimeError):
    """The agent needs the observation of its last action before it can act again."""


class InvalidRequest(BayesControlError, ValueError):
    """The query is not valid for this log."""


class Unwritable(BayesControlError, OSError):
    """The folder for results cannot be created or written to, or its disk is full."""


class Busy(BayesControlError, RuntimeError):
    """Another process is writing to the folder."""
