"""What can go wrong, as types.

Each message names the value, the place and the way out. Whatever raises one of
these has changed nothing: the belief, the agent and the record are bitwise as before.
"""

__all__ = [
    "BadEvidence",
    "BayesControlError",
    "EpisodeOver",
    "ImpossibleCondition",
    "ImpossibleObservation",
    "IncompatibleState",
    "InvalidPrior",
    "InvalidSystem",
    "InvalidTable",
    "MissingCapability",
    "MissingExtra",
    "NotCommunicating",
    "NotConverged",
    "NotStabilisable",
    "UnknownAction",
    "UnknownArm",
    "UnknownMode",
    "UnknownParameter",
    "UnknownState",
    "UnknownVariable",
]


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
