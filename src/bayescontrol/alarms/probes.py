"""Probes for a running agent: how many modes remain, and how well they predict.

    effective modes     2^H,  H = -Σ_m P(m | âo_≤t) log2 P(m | âo_≤t)               a number
    mode surprise       -log2 P(o_t | m, x, a_t)  for every m                       bits, (M,)
    alarm evidence      log2 E_t                                                    bits

Surprises are measured before the agent observes o_t, the other two probes after it. A probe never
changes a run. Over T steps a column has shape (T,) or (T, M). `bayescontrol.record` has the probes
`posterior` and `log_score`, the surprise of the mixture of all modes.
"""

from typing import Any, Final

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.beliefs.finite import finite_belief
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.beliefs.weights import LN2
from bayescontrol.errors import MissingCapability
from bayescontrol.record import Probe


def _effective_modes(agent: Any, _a: Any, _o: Any) -> float:
    """2^H of the posterior P(m | âo_≤t): a number between 1 and M, over T steps (T,).

    It is 1 if the agent is certain and M if all M modes are equally likely.
    It is measured after the agent has observed o_t.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> print(f"{effective_modes.measure(prize_or_frog().agent(), 0, 1):.6f}")
    2.000000
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, ParticleBelief):
        belief = finite_belief(agent, "the effective number of modes")
    v = belief.posterior()
    v = v[v > 0.0]
    return float(np.exp(-(v * np.log(v)).sum()))


def _mode_surprise(agent: Any, a: Any, o: Any) -> FloatArray:
    """-log2 P(o | m, x, a) for every mode, in bits; ∞ where the mode rules o out.

    As a probe it is measured before the agent observes o_t: an array (M,), over T steps (T, M). If
    the modes give densities, the value depends on the unit of o and may be negative.

    >>> from bayescontrol import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.75, 0.25]]]])
    >>> mode_surprise.measure(coins.agent(), 0, 1)
    array([inf,  2.])
    """
    belief = finite_belief(agent, "the surprise of each mode")
    return -belief.log_likelihoods(agent.x, a, o) / LN2 + 0.0


def _alarm_evidence(agent: Any, _a: Any, _o: Any) -> float:
    """log2 E_t of a guarded agent's alarm, in bits: a number, over T steps (T,).

    These are the bits by which the predictor is ahead of the best mode; the alarm is raised at
    log2 1/δ. It is measured after the agent has observed o_t.

    >>> from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> agent = Guarded(prize_or_frog().agent(), Alarm(KrichevskyTrofimov(2), delta=0.01))
    >>> alarm_evidence.measure(agent, 0, 1)
    0.0
    """
    alarm = getattr(agent, "alarm", None)
    if alarm is None:
        raise MissingCapability(f"{agent!r} has no alarm: use Guarded(agent, Alarm(...))")
    return float(alarm.evidence_bits)


#: 2^H of the posterior P(m | âo_≤t), after the update: a number from 1 to M, over T steps (T,).
effective_modes: Final = Probe(_effective_modes)
#: -log2 P(o_t | m, x, a_t) in bits for every m, before the update: an array (M,), over T steps
#: (T, M); ∞ where a mode rules o_t out.
mode_surprise: Final = Probe(_mode_surprise, "before")
#: log2 E_t of a guarded agent's alarm in bits, after the update: a number, over T steps (T,).
alarm_evidence: Final = Probe(_alarm_evidence)
