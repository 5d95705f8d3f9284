"""Probes for an agent that is running: how many modes are left, and how well they predict.

    effective modes     2^H,  H = -Σ_m P(m | âo_≤t) log2 P(m | âo_≤t)
    mode surprise       -log2 P(o_t | m, x, a_t)  for every m
    mixture surprise    -log2 P(o_t | âo_<t â_t)  =  -log2 Σ_m P(o_t | m, x, a_t) P(m | âo_<t)

A surprise is read before the agent takes o_t in, the rest after. A probe never changes a run.
"""

from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.live.evidence import finite_belief
from bayescontrol.record import Probe, log_score, posterior

__all__ = [
    "alarm_evidence",
    "count_effective_modes",
    "effective_modes",
    "mixture_surprise",
    "mode_surprise",
    "mode_surprises",
    "posterior",
]

LN2: Final = 0.6931471805599453


def count_effective_modes(agent: Any) -> float:
    """2^H: one if the agent is sure, M if all M modes are equally likely.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> print(f"{count_effective_modes(random_modes(4).agent()):.6f}")
    4.000000
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, ParticleBelief):
        belief = finite_belief(agent, "the effective number of modes")
    v = belief.posterior()
    v = v[v > 0.0]
    return float(np.exp(-(v * np.log(v)).sum()))


def mode_surprises(agent: Any, a: Any, o: Any) -> FloatArray:
    """-log2 P(o | m, x, a) for every mode, in bits; ∞ where the mode rules o out.

    >>> from bayescontrol import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.75, 0.25]]]])
    >>> mode_surprises(coins.agent(), 0, 1)
    array([inf,  2.])
    """
    belief = finite_belief(agent, "the surprise of each mode")
    return -belief.log_likelihoods(agent.x, a, o) / LN2 + 0.0


def _alarm_evidence(agent: Any) -> float:
    alarm = getattr(agent, "alarm", None)
    if alarm is None:
        raise MissingCapability(f"{agent!r} has no alarm: write Guarded(agent, Alarm(...))")
    return float(alarm.evidence_bits)


#: 2^H of the posterior P(m | âo_≤t).
effective_modes: Final = Probe(lambda agent, _a, _o: count_effective_modes(agent))
#: -log2 P(o_t | m, x, a_t) for every m.
mode_surprise: Final = Probe(mode_surprises, "before")
#: -log2 P(o_t | âo_<t â_t).
mixture_surprise: Final = log_score
#: log2 E_t of a guarded agent's alarm: the bits against the best mode.
alarm_evidence: Final = Probe(lambda agent, _a, _o: _alarm_evidence(agent))
