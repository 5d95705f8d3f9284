"""Metrics of records: delusion, rewards, regret and the share of the best arm.

The delusion meter measures the false evidence that conditioning on one's own actions would add:

    v_m = P(m | âo_<t)                       the intervened posterior: actions are not evidence
    log-odds  log2 P(a_t | m, x_t) - log2 Σ_m' P(a_t | m', x_t) v_m'     for or against m
    step      KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) )    conditioned on this one action only
    total     KL( P(m | ao_≤t) ‖ P(m | âo_≤t) )        conditioned on all actions so far

All are in bits. Modes with equal policies add nothing. `performance.py` has the other metrics.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import finite_belief
from bayescontrol.errors import ImpossibleCondition, ImpossibleObservation
from bayescontrol.performance import best_share, regret, rewards
from bayescontrol.record import Record
from bayescontrol.rule import Rule

__all__ = ["Delusion", "best_share", "delusion", "regret", "rewards"]


@dataclass(frozen=True, eq=False, repr=False)
class Delusion:
    """The measurements along a record of T steps with M modes; entry t is for step t + 1.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> delusion(Record([0, 0], [1, 1]), prize_or_frog(0.75).agent())
    Delusion(2 steps: 1.415 bits step by step, 0.152 bits in all)
    """

    #: KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) ), in bits; shape (T,).
    step_bits: FloatArray
    #: KL( P(m | ao_≤t) ‖ P(m | âo_≤t) ), in bits; shape (T,).
    total_bits: FloatArray
    #: log2 P(a_t | m, x_t) / P(a_t | âo_<t), in bits; -∞ where mode m rules a_t out, nan where
    #: m was ruled out before. Shape (T, M).
    log_odds: FloatArray
    #: P(m | ao_≤t), with actions treated as evidence; shape (T, M).
    naive: FloatArray
    #: P(m | âo_≤t), with actions treated as interventions; shape (T, M).
    causal: FloatArray

    def __repr__(self) -> str:
        total = self.total_bits[-1] if self.total_bits.size else 0.0
        return (
            f"Delusion({len(self.step_bits)} steps: {self.step_bits.sum():.4g} bits "
            f"step by step, {total:.4g} bits in all)"
        )


def delusion(record: Record, agent: Rule) -> Delusion:
    """Replay a record with a naive and a causal agent and measure how far their beliefs differ.

    `record` may come from any agent. `agent` is a rule over a `FiniteBelief` that has not learnt
    yet; it defines the modes, the prior, the first situation and how the situation advances. It is
    copied, not changed.

    Raises `ImpossibleCondition` for an action that every mode rules out, unless the belief skips or
    floors impossible evidence. If the actions are possible one by one but not together, the naive
    agent contradicts itself: from then on `naive` is nan and `total_bits` is infinite.

    >>> from bayescontrol.problems.examples import FROG, prize_or_frog
    >>> result = delusion(Record([0, 1], [FROG, FROG]), prize_or_frog(0.75).agent())
    >>> result.step_bits        # as evidence, the first pick would count one bit
    array([1.       , 0.4150375])
    >>> result.log_odds[0]      # for "the prize is in the left box", and against the other
    array([  1., -inf])
    >>> result.naive[0], result.causal[0]
    (array([1., 0.]), array([0.25, 0.75]))
    >>> result.total_bits       # after both picks, the naive agent excludes both boxes
    array([ 2., inf])
    """
    steps, modes = len(record), len(finite_belief(agent, "the delusion meter"))
    causal = agent.copy()
    naive: Rule | None = agent.copy()
    result = Delusion(
        step_bits=np.empty(steps),
        total_bits=np.full(steps, np.inf),
        log_odds=np.empty((steps, modes)),
        naive=np.full((steps, modes), np.nan),
        causal=np.empty((steps, modes)),
    )
    log_posterior = _log_posterior(causal)  # log2 P(m | âo_<t)
    for t, (a, o) in enumerate(record):
        log_with_action = _log_posterior(_condition_on_action(causal, a, t))
        # By Bayes' rule, P(m | âo_<t, a) / P(m | âo_<t) = P(a | m, x) / P(a | âo_<t).
        with np.errstate(invalid="ignore"):  # -∞ - (-∞) is nan where m was ruled out before
            result.log_odds[t] = log_with_action - log_posterior
        result.step_bits[t] = _relative_entropy(log_with_action, log_posterior)
        causal.observe(a, o)
        log_posterior = _log_posterior(causal)
        result.causal[t] = causal.belief.posterior()
        naive = None if naive is None else _condition_naive(naive, a, o)
        if naive is not None:
            result.naive[t] = naive.belief.posterior()
            result.total_bits[t] = _relative_entropy(_log_posterior(naive), log_posterior)
    return result


def _condition_on_action(agent: Rule, a: Any, t: int) -> Rule:
    """Return a copy of the agent that has conditioned on its action a in step t + 1."""
    conditioned = agent.copy()
    try:
        conditioned.witness(conditioned.x, a)
    except ImpossibleObservation:
        raise ImpossibleCondition(
            f"step {t + 1}: action {a!r} has probability 0 in situation {agent.x!r} under every "
            "mode: use the modes of the agent that acted"
        ) from None
    return conditioned


def _condition_naive(naive: Rule, a: Any, o: Any) -> Rule | None:
    """Let the naive agent condition on a and o, and return it; None if no mode remains."""
    try:
        naive.witness(naive.x, a)
        naive.observe(a, o)
    except ImpossibleObservation:
        return None
    return naive


def _log_posterior(agent: Rule) -> FloatArray:
    """Return log2 P(m | ·), which is finite even for a probability of 10^-2000."""
    w, e, blocks = agent.belief.weight_arrays()
    with np.errstate(divide="ignore"):
        log_v = np.log2(w) + kernels.finite.exponents(w, e, blocks)
    return np.asarray(log_v - np.logaddexp2.reduce(log_v))


def _relative_entropy(log_p: FloatArray, log_q: FloatArray) -> float:
    """Return KL(p ‖ q) = Σ p log2(p / q) in bits, at least 0 despite rounding."""
    possible = log_p > -np.inf
    log_p, log_q = log_p[possible], log_q[possible]
    return max(0.0, float(np.exp2(log_p) @ (log_p - log_q)))
