"""The belief that probes and the alarm read: over finitely many modes, P(m | âo_<t) for each."""

from typing import Any

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import MissingCapability

__all__ = ["finite_belief"]


def finite_belief(agent: Any, what: str) -> FiniteBelief[Any]:
    """The agent's belief over finitely many modes; `what` says what it is needed for.

    >>> from bayescontrol import BernoulliBandit
    >>> finite_belief(BernoulliBandit(2).agent(), "the alarm")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the alarm needs finitely many modes ...
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, FiniteBelief):
        has = "no belief" if belief is None else f"the belief {belief!r}"
        raise MissingCapability(
            f"{what} needs finitely many modes and the agent has {has}: "
            "give it a FiniteBelief, over a grid where the class is a continuum"
        )
    return belief
