"""The delusion meter: false evidence that an agent's own actions would have injected.

    v_m = P(m | âo_<t)                       the intervened posterior: actions are no evidence
    log-odds  log2 P(a_t | m, x_t) - log2 Σ_m' P(a_t | m', x_t) v_m'     for or against m
    step      KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) )    conditioned on this one action only
    total     KL( P(m | ao_≤t) ‖ P(m | âo_≤t) )        conditioned on all actions so far

All in bits. None of it is evidence: whoever acts knows why it acted. Modes with equal
policies inject nothing, whatever they believe.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import ImpossibleCondition, ImpossibleObservation, MissingCapability
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule

Rule: TypeAlias = ControlRule[Any, Any, Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Delusion:
    """What the meter reads along a record of T steps over M modes; entry t is of step t + 1.

    >>> from bayescontrol.problems.prize import prize_or_frog
    >>> delusion(Record([0, 0], [1, 1]), prize_or_frog(0.75).agent())
    Delusion(2 steps: 1.42 bits step by step, 0.152 bits in all)
    """

    #: KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) ), in bits; shape (T,).
    step_bits: FloatArray
    #: KL( P(m | ao_≤t) ‖ P(m | âo_≤t) ), in bits; shape (T,).
    total_bits: FloatArray
    #: log2 P(a_t | m, x_t) / P(a_t | âo_<t), in bits; -∞ where mode m rules a_t out, nan where
    #: m itself was ruled out before: its odds are 0 whatever is seen. Shape (T, M).
    log_odds: FloatArray
    #: P(m | ao_≤t), actions taken for evidence; shape (T, M).
    naive: FloatArray
    #: P(m | âo_≤t), actions as interventions; shape (T, M).
    causal: FloatArray

    def __repr__(self) -> str:
        total = self.total_bits[-1] if self.total_bits.size else 0.0
        return (
            f"Delusion({len(self.step_bits)} steps: {self.step_bits.sum():.3g} bits "
            f"step by step, {total:.3g} bits in all)"
        )


def delusion(record: Record, agent: Rule) -> Delusion:
    """Read a record as the naive and as the causal agent would, and measure what divides them.

    `record` may be of any agent. `agent` brings the modes, the prior, the situation and how
    it advances: a rule that has seen nothing yet, over a `FiniteBelief`. It is copied and
    never changed.

    An action that every mode rules out is an `ImpossibleCondition`, unless the belief skips
    or floors impossible evidence. Where single actions are possible and all of them together
    are not, the naive agent has contradicted itself: from there on `naive` is nan and
    `total_bits` infinite.

    >>> from bayescontrol.problems.prize import FROG, prize_or_frog
    >>> read = delusion(Record([0, 1], [FROG, FROG]), prize_or_frog(0.75).agent())
    >>> read.step_bits          # the first pick is worth one bit, had it been evidence
    array([1.       , 0.4150375])
    >>> read.log_odds[0]        # for "it is in the left box", and against the other
    array([  1., -inf])
    >>> read.naive[0], read.causal[0]
    (array([1., 0.]), array([0.25, 0.75]))
    >>> read.total_bits         # having picked both boxes, it is in neither
    array([ 2., inf])
    """
    shape = steps, _ = len(record), len(_belief(agent))
    causal = agent.copy()
    naive: Rule | None = agent.copy()
    read = Delusion(
        step_bits=np.empty(steps),
        total_bits=np.full(steps, np.inf),
        log_odds=np.empty(shape),
        naive=np.full(shape, np.nan),
        causal=np.empty(shape),
    )
    log_v = _log_posterior(causal)
    for t, (a, o) in enumerate(record):
        log_told = _log_posterior(_told(causal, a, t))
        with np.errstate(invalid="ignore"):
            read.log_odds[t] = log_told - log_v
        read.step_bits[t] = _relative_entropy(log_told, log_v)
        causal.observe(a, o)
        log_v = _log_posterior(causal)
        read.causal[t] = _belief(causal).posterior()
        naive = None if naive is None else _believed(naive, a, o)
        if naive is not None:
            read.naive[t] = _belief(naive).posterior()
            read.total_bits[t] = _relative_entropy(_log_posterior(naive), log_v)
    return read


def _belief(agent: Rule) -> FiniteBelief[Any]:
    if not isinstance(agent.belief, FiniteBelief):
        raise MissingCapability(
            f"the meter reads the weight of every mode, {agent.belief!r} has none to read: "
            "give the agent a FiniteBelief"
        )
    return agent.belief


def _told(agent: Rule, a: Any, t: int) -> Rule:
    """The agent as it would be had it taken a for evidence."""
    twin = agent.copy()
    try:
        twin.witness(twin.x, a)
    except ImpossibleObservation:
        raise ImpossibleCondition(
            f"step {t + 1}: every mode with weight gives action {a!r} probability 0 in situation "
            f"{twin.x!r}: give the meter the modes of the agent that acted"
        ) from None
    return twin


def _believed(naive: Rule, a: Any, o: Any) -> Rule | None:
    """The agent after a and o, both taken for evidence; None if no mode is left."""
    try:
        naive.witness(naive.x, a)
        naive.observe(a, o)
    except ImpossibleObservation:
        return None
    return naive


def _log_posterior(agent: Rule) -> FloatArray:
    """log2 P(m | ·) over the belief's whole range: a mode 10^-2000 behind is still finite."""
    w, e, blocks = _belief(agent).weight_arrays()
    with np.errstate(divide="ignore"):
        log_v = np.log2(w) + kernels.blocks.exponents(w, e, blocks)
    return np.asarray(log_v - np.logaddexp2.reduce(log_v))


def _relative_entropy(log_p: FloatArray, log_q: FloatArray) -> float:
    """KL(p ‖ q) = Σ p log2(p / q), in bits; rounding may not make it negative."""
    some = log_p > -np.inf
    return max(0.0, float(np.exp2(log_p[some]) @ (log_p[some] - log_q[some])))
