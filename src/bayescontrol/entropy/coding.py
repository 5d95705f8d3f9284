"""The ideal code of an interaction, and what learning costs.

    L(ao_≤t) = -log2 Pr(ao_≤t) = -Σ_τ (log2 Pr(a_τ | ao_<τ) + log2 Pr(o_τ | ao_<τ a_τ))
    cost     = L under the agent - L under the expert of the true mode m*

On histories from P_m*, m* ~ P(m), the mean cost is D. The naive mixture, which contains every
P_m with weight P(m), never pays more than -log2 P(m*), and neither does the control rule for
observations.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from bayescontrol.entropy.curves import Bits
from bayescontrol.entropy.laws import GONE, ask, expect, require_system
from bayescontrol.protocols import IOSystem


def code_length(system: IOSystem[Any, Any, Any], record: Iterable[tuple[Any, Any]]) -> Bits:
    """L(ao_≤t) = -log2 Pr(ao_≤t) for every t of a record, in bits, actions and observations apart.

    The record is a `Record` or any stream of pairs (a, o). A symbol that Pr rules out has an
    infinitely long code; after such an action Pr may still expect observations.

    >>> from bayescontrol import DiscreteMode, Record
    >>> from bayescontrol.systems import Situated
    >>> coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> code_length(coin, Record(["toss", "toss", "pass"], ["H", "T", "H"]))
    Bits(actions=array([ 0.,  0., inf]), observations=array([1., 2., 3.]))
    """
    require_system("the system", system)
    s: Any = system.start()
    bits: list[tuple[float, float]] = []
    for a, o in record:
        p_a = ask("the system", system.action_probabilities, s).get(a, 0.0)
        p_o = expect("the system", system, s, a, p_a).get(o, 0.0)
        s = system.advance(s, a, o) if p_o > 0.0 else GONE
        bits.append((_surprise(p_a), _surprise(p_o)))
    actions, observations = np.array(bits, np.float64).reshape(-1, 2).cumsum(axis=0).T
    return Bits(actions, observations)


def learning_cost(
    agent: IOSystem[Any, Any, Any],
    expert: IOSystem[Any, Any, Any],
    record: Iterable[tuple[Any, Any]],
) -> Bits:
    """L(ao_≤t) under the agent minus L(ao_≤t) under the expert P_m*: bits that learning cost.

    The part of the actions is -∞ once the record holds one that the expert would never take,
    and NaN once neither would; that of the observations does not suffer from it.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> from bayescontrol.systems import AgentSystem, Situated
    >>> def coin(p): return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": p, "T": 1 - p})
    >>> agent = AgentSystem(ControlRule(FiniteBelief([coin(1.0), coin(0.5)])))
    >>> learning_cost(agent, Situated(coin(1.0)), [("toss", "H")] * 3).observations.round(3)
    array([0.415, 0.678, 0.83 ])
    """
    stream = list(record)
    ours, best = code_length(agent, stream), code_length(expert, stream)
    with np.errstate(invalid="ignore"):  # ∞ - ∞ where neither would have done it
        return Bits(ours.actions - best.actions, ours.observations - best.observations)


def _surprise(p: float) -> float:
    return -math.log2(p) + 0.0 if p > 0.0 else math.inf
