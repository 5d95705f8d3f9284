"""Metrics of records: rewards, regret, the share of the best arm, and delusion.

    reward       the observation o_t, or its field `reward`
    regret       R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ))
    best share   b_t = 1 if m_{a_t}(x_t) = max_j m_j(x_t), else 0

m_j(x) is the true mean reward of arm j in context x, or m_j without contexts. Regret is cumulative.
It uses mean rewards instead of observed rewards, to exclude chance.

The delusion meter measures the false evidence that conditioning on one's own actions would add:

    v_m = P(m | âo_<t)                       the intervened posterior: actions are not evidence
    log-odds  log2 P(a_t | m, x_t) - log2 Σ_m' P(a_t | m', x_t) v_m'     for or against m
    step      KL( P(m | âo_<t a_t) ‖ P(m | âo_<t) )    conditioned on this one action only
    total     KL( P(m | ao_≤t) ‖ P(m | âo_≤t) )        conditioned on all actions so far

All are in bits. Modes with equal policies add nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.beliefs.finite import finite_belief
from bayescontrol.record import Record
from bayescontrol.rule import Rule


class World(Protocol):
    """A world that knows the mean rewards of its arms.

    `means` returns the mean reward of every arm in the order of `labels`, and one row for each
    context if x is an array of contexts. A world with contexts has `contexts_of(record, start)`,
    which returns the context of each step. A world that changes has `worlds_of(record)`, which
    returns its worlds by their first steps.
    """

    @property
    def labels(self) -> Any: ...
    def means(self, x: Any = None) -> FloatArray: ...


def rewards(record: Record, reward: Callable[[Any, Any], float] | None = None) -> FloatArray:
    """Return the reward of every step: reward(a, o), the observation, or its field `reward`.

    >>> from bayescontrol import Record
    >>> rewards(Record([0, 1], [1, 0])), rewards(Record([0, 1], [1, 0]), lambda a, o: o - 0.1 * a)
    (array([1., 0.]), array([ 1. , -0.1]))
    """
    observed = record.observations
    if reward is not None:
        return np.array([reward(a, o) for a, o in record], np.float64)
    if "reward" in (observed.dtype.names or ()):
        return np.asarray(observed["reward"], np.float64)
    if observed.dtype.kind in "biuf" and observed.ndim == 1:
        return observed.astype(np.float64)
    found = [
        o.get("reward") if isinstance(o, Mapping) else getattr(o, "reward", None) for o in observed
    ]
    unknown = [t for t, r in enumerate(found) if r is None]
    if unknown or not found:
        t = unknown[0] if unknown else 0
        what = f"observation {t + 1} is {observed[t]!r}" if found else "there are no observations"
        raise errors.MissingCapability(
            f"the rewards are unknown: {what}, expected a number, or an object with `reward`, such "
            "as a NamedTuple. Pass a function: reward=lambda a, o: ..."
        )
    return np.array(found, np.float64)


def knows_means(world: Any) -> bool:
    """Return whether the regret of a run in this world can be computed."""
    return hasattr(world, "labels") and callable(getattr(world, "means", None))


def _means(record: Record, world: Any, start: Any) -> tuple[FloatArray, FloatArray]:
    """Return max_j m_j(x_t) and m_{a_t}(x_t) for every step."""
    if not knows_means(world):
        raise errors.MissingCapability(
            f"the mean rewards of {world!r} are unknown: it needs `labels` and a method "
            "means(x), and contexts_of(record, start) if it has contexts"
        )
    index = {a: j for j, a in enumerate(world.labels)}
    try:
        pulled = [index[a] for a in record.actions.tolist()]
    except KeyError as error:
        raise errors.UnknownArm(
            f"the record contains arm {error}, unknown in this world: pass the world of the run"
        ) from None
    means = _mean_table(record, world, start, len(index))
    return means.max(1), means[np.arange(len(pulled)), pulled]


def _mean_table(record: Record, world: Any, start: Any, arms: int) -> FloatArray:
    """Return m_j(x_t) for every step t and every arm j."""
    steps = len(record.actions)
    contexts = world.contexts_of(record, start) if hasattr(world, "contexts_of") else None
    worlds = world.worlds_of(record) if hasattr(world, "worlds_of") else {0: world}
    ends = [*list(worlds)[1:], steps]  # each world ends where the next begins
    parts = []
    for (begin, part), end in zip(worlds.items(), ends, strict=True):
        x = None if contexts is None else contexts[begin:end]
        shape = (max(min(end, steps) - begin, 0), arms)  # 0: it begins after the record
        parts.append(np.broadcast_to(part.means(x), shape))
    return np.concatenate(parts)


def regret(record: Record, world: World, start: ArrayLike | None = None) -> FloatArray:
    """Return the cumulative regret R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ)) of every step.

    `start` is the first context of the run. It is needed only for a world with contexts in which
    other runs have taken place too; worlds without contexts ignore it.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0.5, 0.5, 1. ])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(np.cumsum(best - pulled))


def best_share(record: Record, world: World, start: ArrayLike | None = None) -> FloatArray:
    """Return 1 for each step in which the arm has the largest mean reward, else 0.

    The mean of the result is the share of the best arm. `start` is as in `regret`.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> best_share(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0., 1., 0.])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(pulled == best, np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Delusion:
    """The measurements along a record of T steps with M modes; entry t is for step t + 1.

    >>> from bayescontrol.finite.examples import prize_or_frog
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

    `record` may come from any agent. `agent` is a rule over a `FiniteBelief` that has not learned
    yet; it defines the modes, the prior, the first situation and how the situation advances. It is
    copied, not changed.

    Raises `ImpossibleCondition` for an action that every mode rules out, unless the belief skips or
    floors impossible evidence. If the actions are possible one by one but not together, the naive
    agent contradicts itself: from then on `naive` is nan and `total_bits` is infinite.

    >>> from bayescontrol.finite.examples import FROG, prize_or_frog
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
        if naive is not None:
            try:
                naive.witness(naive.x, a)
                naive.observe(a, o)
            except errors.ImpossibleObservation:
                naive = None  # no mode remains
                continue
            result.naive[t] = naive.belief.posterior()
            result.total_bits[t] = _relative_entropy(_log_posterior(naive), log_posterior)
    return result


def _condition_on_action(agent: Rule, a: Any, t: int) -> Rule:
    """Return a copy of the agent that has conditioned on its action a in step t + 1."""
    conditioned = agent.copy()
    try:
        conditioned.witness(conditioned.x, a)
    except errors.ImpossibleObservation:
        raise errors.ImpossibleCondition(
            f"step {t + 1}: action {a!r} has probability 0 in situation {agent.x!r} under every "
            "mode: use the modes of the agent that acted"
        ) from None
    return conditioned


def _log_posterior(agent: Rule) -> FloatArray:
    """Return log2 P(m | ·), which is finite even for a probability of 10^-2000."""
    w, e, blocks = agent.belief.weight_arrays()
    with np.errstate(divide="ignore"):
        log_v = np.log2(w) + kernels.finite.exponents(e, blocks)
    return np.asarray(log_v - np.logaddexp2.reduce(log_v))


def _relative_entropy(log_p: FloatArray, log_q: FloatArray) -> float:
    """Return KL(p ‖ q) = Σ p log2(p / q) in bits, at least 0 despite rounding."""
    possible = log_p > -np.inf
    log_p, log_q = log_p[possible], log_q[possible]
    return max(0.0, float(np.exp2(log_p) @ (log_p - log_q)))
