"""What can go wrong, as types.

Each message names the value, the place and the way out. Whatever raises one of
these has changed nothing: the belief, the agent and the record are bitwise as before.
"""


class BayesControlError(Exception):
    """The root of every error this library raises on purpose.

    >>> issubclass(InvalidPrior, BayesControlError) and issubclass(InvalidPrior, ValueError)
    True
    """


class InvalidPrior(BayesControlError, ValueError):
    """P(m) is not a probability distribution over the modes: Σ_m P(m) ≠ 1, or worse.

    >>> raise InvalidPrior("the prior sums to 1.2, not to 1: pass prior / prior.sum()")
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: the prior sums to 1.2, not to 1: pass prior / prior.sum()
    """


class BadEvidence(BayesControlError, ValueError):
    """P(o | m, x, a) is NaN, negative, infinite or of the wrong shape.

    >>> raise BadEvidence("mode 3 gives likelihood nan to observation 7")
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: mode 3 gives likelihood nan to observation 7
    """

    #: The index of the mode at fault, where there is one.
    mode: int | None = None


class ImpossibleObservation(BadEvidence):
    """P(o | m, x, a) = 0 for every mode that still has weight: the class is wrong.

    >>> issubclass(ImpossibleObservation, BadEvidence)
    True
    """


class UnknownArm(BayesControlError, LookupError):
    """No arm of the bandit has that name or number.

    >>> issubclass(UnknownArm, LookupError)
    True
    """


class UnknownMode(BayesControlError, LookupError):
    """No operation mode has that name or index.

    >>> issubclass(UnknownMode, LookupError)
    True
    """


class IncompatibleState(BayesControlError, ValueError):
    """Saved or merged arrays do not belong to this belief or stream.

    >>> issubclass(IncompatibleState, ValueError)
    True
    """


class MissingCapability(BayesControlError, TypeError):
    """The object lacks an optional method that this call needs (see `bayescontrol.protocols`).

    >>> issubclass(MissingCapability, TypeError)
    True
    """


class InvalidTable(BayesControlError, ValueError):
    """A table is not P(x | parents): Σ_x P(x | parents) ≠ 1, a wrong shape, a wrong order.

    >>> issubclass(InvalidTable, ValueError)
    True
    """


class UnknownVariable(BayesControlError, LookupError):
    """A causal model has no variable of that name, or the variable never takes that value.

    >>> issubclass(UnknownVariable, LookupError)
    True
    """


class ImpossibleCondition(BadEvidence):
    """P(x | y) with P(y) = 0: no probability is defined there.

    >>> issubclass(ImpossibleCondition, BadEvidence)
    True
    """


class UnknownState(BayesControlError, LookupError):
    """No state of the Markov decision problem has that name or number.

    >>> issubclass(UnknownState, LookupError)
    True
    """


class UnknownAction(BayesControlError, LookupError):
    """No action has that name or number, or the state at hand does not offer it.

    >>> issubclass(UnknownAction, LookupError)
    True
    """


class NotCommunicating(BayesControlError, ValueError):
    """Some states cannot be reached from others, whatever is done: the gain depends on x.

    >>> issubclass(NotCommunicating, ValueError)
    True
    """


class NotConverged(BayesControlError, ArithmeticError):
    """An iteration came to its limit before it came to its tolerance.

    >>> issubclass(NotConverged, ArithmeticError)
    True
    """


class EpisodeOver(BayesControlError, RuntimeError):
    """The world has ended its episode: there is no o after this a.

    >>> issubclass(EpisodeOver, RuntimeError)
    True
    """


class UnknownParameter(BayesControlError, LookupError):
    """The plant has no parameter of that name.

    >>> issubclass(UnknownParameter, LookupError)
    True
    """


class MissingExtra(BayesControlError, ImportError):
    """An optional dependency is not installed; the message says how to get it.

    >>> raise MissingExtra("gymnasium is not installed: pip install 'bayescontrol[gym]'")
    Traceback (most recent call last):
    bayescontrol.errors.MissingExtra: gymnasium is not installed: pip install 'bayescontrol[gym]'
    """


class InvalidSystem(BayesControlError, ValueError):
    """The matrices of a linear system do not fit, are not definite, or hold no numbers.

    >>> issubclass(InvalidSystem, ValueError)
    True
    """


class NotStabilisable(BayesControlError, ArithmeticError):
    """No gain stabilises the system: the Riccati equation has no stabilising solution.

    >>> issubclass(NotStabilisable, ArithmeticError)
    True
    """


# -- agents that survive ---------------------------------------------------------------------


class StoreFailed(BayesControlError, OSError):
    """A store cannot be opened, read or written: what was acknowledged before is kept.

    Whether the last event was still written is unknown: reopen, or ask again under the same key.

    >>> issubclass(StoreFailed, OSError)
    True
    """


class StoreBusy(StoreFailed):
    """Another writer has the store or the log: there is one at a time.

    >>> issubclass(StoreBusy, StoreFailed)
    True
    """


class DiskFull(StoreFailed):
    """No room for another event. Nothing was written; the agent goes on when there is room.

    >>> issubclass(DiskFull, StoreFailed)
    True
    """


class NetworkFileSystem(StoreFailed):
    """The file lies on a file system whose locks and flushes cannot be relied upon.

    >>> issubclass(NetworkFileSystem, StoreFailed)
    True
    """


class DamagedLog(StoreFailed):
    """The file is not a log, or not all of it: torn, altered, or of another program.

    >>> issubclass(DamagedLog, StoreFailed)
    True
    """


class NewerFormat(StoreFailed):
    """A later release wrote this log, in a format that this one cannot read.

    >>> issubclass(NewerFormat, StoreFailed)
    True
    """


class HeadMoved(BayesControlError, RuntimeError):
    """The log has grown since it was read last: read what came, then append again.

    >>> issubclass(HeadMoved, RuntimeError)
    True
    """


class UnknownStore(BayesControlError, ValueError):
    """The address names no kind of store, or no log in it.

    >>> issubclass(UnknownStore, ValueError)
    True
    """


class ModelMismatch(BayesControlError, ValueError):
    """The log belongs to a model of another name, version or settings.

    >>> issubclass(ModelMismatch, ValueError)
    True
    """


class UnknownDecision(BayesControlError, LookupError):
    """No decision of the log has that id.

    >>> issubclass(UnknownDecision, LookupError)
    True
    """


class ConflictingFeedback(BayesControlError, ValueError):
    """A decision has one observation; another one came for it. The first one stands.

    >>> issubclass(ConflictingFeedback, ValueError)
    True
    """


class ConflictingKey(BayesControlError, ValueError):
    """A key stands for one decision; it came again with another situation.

    >>> issubclass(ConflictingKey, ValueError)
    True
    """


class FeedbackDue(BayesControlError, RuntimeError):
    """Where one step leads to the next, o_t must come before a_(t+1) can be asked for.

    >>> issubclass(FeedbackDue, RuntimeError)
    True
    """


class NotDurable(StoreFailed):
    """The database acknowledges what it has not yet on disk: a power cut would take it.

    >>> issubclass(NotDurable, StoreFailed)
    True
    """


class NotPermitted(StoreFailed, PermissionError):
    """The database does not let this role connect, read or write. Nothing was written.

    >>> issubclass(NotPermitted, PermissionError)
    True
    """


class InvalidRequest(BayesControlError, ValueError):
    """What is asked of a log cannot be asked: no such range, no policy, nothing to tell it from.

    >>> issubclass(InvalidRequest, ValueError)
    True
    """


class BadSituation(BayesControlError, ValueError):
    """A situation that the agent cannot use, or that is not the world's.

    The agent uses no situation, has no `advance`, or starts in another state than the world.

    >>> issubclass(BadSituation, ValueError)
    True
    """
