"""Contexts: what is seen before an arm is pulled.

    x_t ∈ ℝᵈ        o_t = (r_t, x_{t+1})        T(x, a, o) = the context in o

In a stream the next context comes with the reward. Where rewards come late or alone, the rule is
used by its two halves: `agent.decide(x, rng)` now, `agent.learn(x, a, r)` when r is known.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence

F = TypeVar("F", bound=Callable[..., Any])

#: Numbers beyond this are refused: squares and sums of such numbers stay numbers.
LARGEST = 1e50

# Contexts shorter than the root of this are scaled before their scores are squared.
_SHORT = 1e-100


class NoContext(BadEvidence):
    """An agent was asked to act or to learn before it was told the context.

    >>> str(NoContext())
    'no context yet: use decide(x, rng) and learn(x, a, o), or agent(start=x)...'
    """

    def __init__(self) -> None:
        super().__init__(
            "no context yet: use decide(x, rng) and learn(x, a, o), or agent(start=x); in a "
            "simulated world agent(start=world.start)"
        )


class Outcome(NamedTuple):
    """o = (r, x'): a reward, and the context of the next decision.

    >>> Outcome(0.5, (1.0, -2.0))
    Outcome(reward=0.5, context=(1.0, -2.0))
    """

    reward: float
    context: tuple[float, ...]


def accept_late_feedback(advance: F) -> F:
    """Mark a function `advance` of agents that are given their context with each question.

    Their feedback may come late, in any order, or never: it leads to no situation. A durable agent
    looks for the attribute `accepts_late_feedback` of its `advance`.

    >>> next_context.accepts_late_feedback
    True
    """
    advance.__dict__["accepts_late_feedback"] = True
    return advance


def as_context(x: npt.ArrayLike, features: int) -> FloatArray:
    """x as a vector of finite numbers, one for each feature.

    >>> as_context([1, 2], 2)
    array([1., 2.])
    >>> as_context([1, float("nan")], 2)
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: context [1, nan]: every feature must be a finite number ...
    """
    if x is None:
        raise NoContext
    try:
        v = np.asarray(x)
    except ValueError:
        v = np.empty(0, object)
    if v.shape != (features,) or v.dtype.kind not in "biuf":
        raise BadEvidence(f"context {x!r}: it must be a vector of {features} numbers")
    v = np.ascontiguousarray(v, np.float64)
    if not kernels.regression.dot(v, v) <= LARGEST * LARGEST:
        raise BadEvidence(f"context {x!r}: every feature must be a finite number up to {LARGEST:g}")
    return v


def comparable(v: FloatArray) -> FloatArray:
    """v, or if it is very short c·v, c a power of 2: the same arm is best, and nothing underflows.

    >>> comparable(np.array([2.0, 1.0])), comparable(np.array([2.0**-500, 2.0**-501]))
    (array([2., 1.]), array([0.5 , 0.25]))
    """
    if kernels.regression.dot(v, v) >= _SHORT:
        return v
    _, exponent = np.frexp(np.abs(v).max())
    return np.asarray(np.ldexp(v, -exponent))


@accept_late_feedback
def next_context(x: FloatArray | None, a: Any, o: Any) -> FloatArray:
    """T(x, a, o): the context in o; a reward that came alone leaves x.

    >>> next_context(np.zeros(2), "red", Outcome(1.0, (3.0, 4.0)))
    array([3., 4.])
    """
    if x is None:
        raise NoContext
    if isinstance(o, Outcome):
        return as_context(o.context, len(x)).copy()
    return x


def reward_of(o: Any) -> Any:
    """The reward in o, or o itself where it is a reward alone.

    >>> reward_of(Outcome(1.0, (3.0,))), reward_of(2.0)
    (1.0, 2.0)
    """
    return o.reward if isinstance(o, Outcome) else o
