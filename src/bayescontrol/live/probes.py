"""Probes for a running agent: how many modes remain, and how well they predict.

    posterior           P(m | âo_≤t)  for every m                                   shape (M,)
    effective modes     2^H,  H = -Σ_m P(m | âo_≤t) log2 P(m | âo_≤t)               a number
    mode surprise       -log2 P(o_t | m, x, a_t)  for every m                       bits, (M,)
    mixture surprise    -log2 P(o_t | âo_<t â_t)                                    bits
                        = -log2 Σ_m P(o_t | m, x, a_t) P(m | âo_<t)
    alarm evidence      log2 E_t                                                    bits

Surprises are measured before the agent observes o_t, the others after it. A probe never changes a
run. Over T steps a column has shape (T,) or (T, M).
"""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.live.alarm import finite_belief
from bayescontrol.record import Probe

LN2: Final = 0.6931471805599453


def count_effective_modes(agent: Any) -> float:
    """Return 2^H: 1 if the agent is certain, M if all M modes are equally likely."""
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, ParticleBelief):
        belief = finite_belief(agent, "the effective number of modes")
    v = belief.posterior()
    v = v[v > 0.0]
    return float(np.exp(-(v * np.log(v)).sum()))


def mode_surprises(agent: Any, a: Any, o: Any) -> FloatArray:
    """-log2 P(o | m, x, a) for every mode, in bits; ∞ where the mode rules o out.

    As a probe it is measured before the agent observes o_t: an array (M,), over T steps (T, M). If
    the modes give densities, the value depends on the unit of o and may be negative.

    >>> from bayescontrol import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.75, 0.25]]]])
    >>> mode_surprises(coins.agent(), 0, 1)
    array([inf,  2.])
    """
    belief = finite_belief(agent, "the surprise of each mode")
    return -belief.log_likelihoods(agent.x, a, o) / LN2 + 0.0


def _posterior(agent: Any, _a: Any, _o: Any) -> FloatArray:
    """P(m | âo_≤t) for every m: an array (M,) that sums to one, over T steps (T, M).

    It is measured after the agent has observed o_t.

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog()
    >>> record = interact(modes.agent(), modes.environment(0), 9, probes={"v": posterior})
    >>> record["v"].shape
    (9, 2)
    """
    weights: FloatArray = _belief_method(agent, "posterior", "the posterior")()
    return weights


def _effective_modes(agent: Any, _a: Any, _o: Any) -> float:
    """2^H of the posterior P(m | âo_≤t): a number between 1 and M, over T steps (T,).

    It is 1 if the agent is certain and M if all M modes are equally likely.
    It is measured after the agent has observed o_t.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> print(f"{effective_modes.measure(prize_or_frog().agent(), 0, 1):.6f}")
    2.000000
    """
    return count_effective_modes(agent)


def _mixture_surprise(agent: Any, a: Any, o: Any) -> float:
    """-log2 P(o_t | âo_<t â_t), in bits: a number, over T steps (T,); ∞ if all modes rule o out.

    It is measured before the agent observes o_t. Its sum over the steps is the code length of the
    observations. It equals `bayescontrol.record.log_score`.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> print(f"{mixture_surprise.measure(prize_or_frog().agent(), 0, 1):.6f}")
    1.000000
    """
    surprise = _belief_method(agent, "surprise", "the surprise of the mixture")
    return float(surprise(agent.x, a, o))


def _alarm_evidence(agent: Any, _a: Any, _o: Any) -> float:
    """log2 E_t of a guarded agent's alarm, in bits: a number, over T steps (T,).

    These are the bits by which the predictor is ahead of the best mode; the alarm is raised at
    log2 1/δ. It is measured after the agent has observed o_t.

    >>> from bayescontrol.live import Alarm, Guarded, KrichevskyTrofimov
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> agent = Guarded(prize_or_frog().agent(), Alarm(KrichevskyTrofimov(2), delta=0.01))
    >>> alarm_evidence.measure(agent, 0, 1)
    0.0
    """
    alarm = getattr(agent, "alarm", None)
    if alarm is None:
        raise MissingCapability(f"{agent!r} has no alarm: use Guarded(agent, Alarm(...))")
    return float(alarm.evidence_bits)


def _belief_method(agent: Any, name: str, what: str) -> Callable[..., Any]:
    """Return a method of the agent's belief; `what` names the probe in the error."""
    belief = getattr(agent, "belief", None)
    method = getattr(belief, name, None)
    if not callable(method):
        has = "no belief" if belief is None else f"the belief {belief!r} without {name}()"
        raise MissingCapability(f"cannot measure {what}: {agent!r} has {has}")
    found: Callable[..., Any] = method
    return found


def _probe(
    measure: Callable[[Any, Any, Any], Any], when: Literal["before", "after"] = "after"
) -> Probe:
    """Create a probe whose docstring is that of its function."""
    probe = Probe(measure, when)
    object.__setattr__(probe, "__doc__", measure.__doc__)
    return probe


#: P(m | âo_≤t) for every m, after the update: an array (M,), over T steps (T, M).
posterior: Final = _probe(_posterior)
#: 2^H of the posterior P(m | âo_≤t), after the update: a number from 1 to M, over T steps (T,).
effective_modes: Final = _probe(_effective_modes)
#: -log2 P(o_t | m, x, a_t) in bits for every m, before the update: an array (M,), over T steps
#: (T, M); ∞ where a mode rules o_t out.
mode_surprise: Final = _probe(mode_surprises, "before")
#: -log2 P(o_t | âo_<t â_t) in bits, before the update: a number, over T steps (T,); ∞ if every
#: mode rules o_t out.
mixture_surprise: Final = _probe(_mixture_surprise, "before")
#: log2 E_t of a guarded agent's alarm in bits, after the update: a number, over T steps (T,).
alarm_evidence: Final = _probe(_alarm_evidence)
