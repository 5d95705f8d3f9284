"""The delusion meter: false evidence that an agent's own actions would have injected.

    v_m = P(m | âo_<t)                       the intervened posterior: actions are no evidence
    log-odds  log2 P(a_t | m, x_t) - log2 Σ_m' P(a_t | m', x_t) v_m'     for or against m
    step      KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) )    conditioned on this one action only
    total     KL( P(m | ao_≤t) ‖ P(m | âo_≤t) )        conditioned on all actions so far

All in bits. None of it is evidence: whoever acts knows why it acted. Modes with equal
policies inject nothing, whatever they believe.

What a run on a bandit has cost.

    regret       R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ))
    best share   b_t = 1 if m_{a_t}(x_t) = max_j m_j(x_t), else 0

m_j(x) is the true mean reward of arm j in context x; without contexts it is m_j. Regret is
cumulative: it never falls. It counts means, not the rewards that were paid, so that the luck of the
draw does not enter.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import (
    ImpossibleCondition,
    ImpossibleObservation,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule

__all__ = ["Delusion", "best_share", "delusion", "regret"]


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
        log_v = np.log2(w) + kernels.finite.exponents(w, e, blocks)
    return np.asarray(log_v - np.logaddexp2.reduce(log_v))


def _relative_entropy(log_p: FloatArray, log_q: FloatArray) -> float:
    """KL(p ‖ q) = Σ p log2(p / q), in bits; rounding may not make it negative."""
    some = log_p > -np.inf
    return max(0.0, float(np.exp2(log_p[some]) @ (log_p[some] - log_q[some])))


class _World(Protocol):
    """Arms in order, with their mean rewards `means` or `mean_rewards(record, start)`."""

    @property
    def labels(self) -> Any: ...


def _means(record: Record, world: _World, start: Any) -> tuple[FloatArray, FloatArray]:
    """max_j m_j and m_{a_t}, for every step."""
    given: Any = world
    if not hasattr(given, "labels"):
        rows = None
    elif hasattr(given, "mean_rewards"):
        rows = given.mean_rewards(record, start)
    else:
        rows = getattr(given, "means", None)
        rows = rows[None] if isinstance(rows, np.ndarray) else None
    if rows is None:
        raise MissingCapability(
            f"{world!r} does not tell the mean reward of each arm: it needs `labels` and `means`, "
            "or with contexts `labels` and `mean_rewards(record, start)`"
        )
    places = {a: j for j, a in enumerate(given.labels)}
    try:
        pulled = [places[a] for a in record.actions.tolist()]
    except KeyError as error:
        raise UnknownArm(
            f"the record pulls arm {error}, which this world does not have: give the world of the "
            "run"
        ) from None
    rows = np.broadcast_to(rows, (len(pulled), len(places)))
    return rows.max(1), rows[np.arange(len(pulled)), pulled]


def regret(record: Record, world: _World, start: npt.ArrayLike | None = None) -> FloatArray:
    """R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ)), for every step t of the record.

    `start` is the context in which the run began. It is needed only for a world with contexts that
    has been used for more than this run; other worlds ignore it.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0.5, 0.5, 1. ])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(np.cumsum(best - pulled))


def best_share(record: Record, world: _World, start: npt.ArrayLike | None = None) -> FloatArray:
    """1 where the arm pulled has the largest mean reward, else 0; its mean is the share.

    `start` is as in `regret`.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> best_share(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0., 1., 0.])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(pulled == best, np.float64)
