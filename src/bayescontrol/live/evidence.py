"""The belief that probes and the alarm read: over finitely many modes, P(m | âo_<t) for each."""

from typing import Any

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import LogModeArray, ModeArray, ObservationProbabilities

__all__ = ["finite_belief", "gives_probabilities"]


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


def gives_probabilities(belief: FiniteBelief[Any]) -> bool:
    """Are the modes known to give probabilities, not densities: Σ_o P(o | m, x, a) = 1?

    They are if any of them offers `observation_probabilities`. One that only has a likelihood
    may give either.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> gives_probabilities(random_modes(2).agent().belief)
    True
    """
    if belief.offers(ObservationProbabilities):
        return True
    modes: Any = belief.modes
    some = [modes[0]] if isinstance(modes, ModeArray | LogModeArray) else modes
    return any(isinstance(mode, ObservationProbabilities) for mode in some)
