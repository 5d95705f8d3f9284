"""Divergence processes: the evidence of a record for one mode against another, in nats.

    d_t(m*‖m)   = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)
    P(m | âo_≤t) ≤ P(m)/P(m*) e^(-d_t(m*‖m))            for every history, whichever m* is true
    d_t(m*‖m)   = Σ_m' g_t(m')                          split by the drawn mode m'
    G_t(m')     = Σ_{τ≤t, m' drawn} Σ_a P(a | m', x_τ) KL( P(·|m*, x_τ, a) ‖ P(·|m, x_τ, a) )

G sums the conditional mean of each step of g, so in the world of m* the difference g - G is a
martingale. Its actions come from m', its observations from m* (our reading, see docs/errata.md).
G is never negative, and zero only where the modes cannot be distinguished.

Kernels process the records of tabular classes. Other records are replayed step by step, with
bitwise equal results.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bayescontrol import _mode_queries, kernels
from bayescontrol._arrays import AnyArray, FloatArray, IntArray
from bayescontrol._mode_queries import ModeArrayQueries, ModeListQueries, mode_index
from bayescontrol.beliefs.finite import FiniteBelief, finite_belief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownMode, counted
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.protocols import MISSING, ActionProbabilities, ObservationProbabilities
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule, Rule

Hypotheses: TypeAlias = ModeListQueries[Any] | ModeArrayQueries[Any]


def _checked_belief(record: Record, agent: Rule) -> FiniteBelief[Any]:
    """Return the belief of the agent; raise an error if the record or the agent is not suitable."""
    if not isinstance(record, Record):
        raise MissingCapability(
            f"record={record!r} is not a Record: pass the result of interact(...), then the agent"
        )
    belief = finite_belief(agent, "the divergence of modes")
    if not isinstance(agent, ControlRule):
        raise MissingCapability(f"{agent!r} is not a ControlRule: if guarded, pass its `.agent`")
    if belief.count:
        raise ValueError(
            f"the agent has {counted(belief.count, 'observation')} already: pass a new one"
        )
    return belief


def _table(record: Record, agent: Rule) -> tuple[TabularModes, IntArray, IntArray, IntArray] | None:
    """Return the tables and x, a, o of every step, or None if the kernels cannot be used."""
    modes, columns = agent.belief.modes, (record.actions, record.observations)
    fits = (
        isinstance(modes, TabularModes)
        and agent.belief.on_impossible == "raise"
        and agent.advance == modes.advance
        and type(agent).observe is ControlRule.observe
        and type(agent).learn is ControlRule.learn
        and isinstance(agent.x, int)
        and 0 <= agent.x < modes.policy.shape[1]
        and all(map(_are_indices, columns, modes.successor.shape[1:]))
    )
    if not fits:
        return None
    a, o = (np.ascontiguousarray(column, np.int64) for column in columns)
    x = np.empty(len(record), np.int64)
    kernels.divergence.follow(modes.successor, agent.x, a, o, x)
    return modes, x, a, o


def _are_indices(column: AnyArray, count: int) -> bool:
    """Return whether a column holds integers in 0 … count - 1, at least one."""
    is_integer = column.ndim == 1 and column.dtype.kind in "iu" and column.size > 0
    return bool(is_integer and column.min() >= 0 and column.max() < count)


def _replay_steps(
    record: Record, agent: Rule, hypotheses: Hypotheses
) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
    """Yield x_t, the evidence of step t as the belief uses it, and P(m | âo_≤t), for each step.

    While the caller handles step t, `hypotheses` are in their states at time t.
    """
    replica = agent.copy()
    for t, (a, o) in enumerate(record):
        x, before = replica.x, replica.belief.impossible
        try:
            evidence = _likelihoods(hypotheses, x, a, o)
            replica.observe(a, o)
        except BadEvidence as error:
            error.add_note(f"at step {t + 1} of {len(record)} of the record")
            raise
        if replica.belief.impossible > before:  # the belief skipped the step, or used a floor
            on_impossible, is_log = replica.belief.on_impossible, hypotheses.log
            if isinstance(on_impossible, Floor):
                floor = on_impossible.epsilon
                evidence = np.maximum(evidence, np.log(floor) if is_log else floor)
            else:
                evidence = np.full_like(evidence, 0.0 if is_log else 1.0)
        yield x, evidence, replica.belief.posterior()
        hypotheses.states[:] = hypotheses.advanced_states(x, a, o)


def _likelihoods(hypotheses: Hypotheses, x: Any, a: Any, o: Any) -> FloatArray:
    """Return P(o | m, x, a) of all modes, or its logarithm; 1 if o is missing.

    Raise `BadEvidence` if a or o is not hashable.
    """
    if o is MISSING:
        return np.full(len(hypotheses), 0.0 if hypotheses.log else 1.0)
    try:
        return hypotheses.likelihoods(x, a, o)
    except TypeError:
        _mode_queries.require_hashable(action=a, observation=o)
        raise


def _mean(hypotheses: Hypotheses, x: Any, drawn: int, true: int, other: int) -> float:
    """Return Σ_a P(a | m', x) KL( P(· | m*, x, a) ‖ P(· | m, x, a) ) for the drawn mode m'."""
    mean = 0.0
    [policy] = _distributions(
        hypotheses, ActionProbabilities, lambda m: m.action_probabilities(x), drawn
    )
    for a, share in policy.items():
        if share > 0.0:
            p_true, p_other = _distributions(
                hypotheses, ObservationProbabilities,
                lambda m, a=a: m.observation_probabilities(x, a), true, other,
            )  # fmt: skip
            p = np.array(list(p_true.values()), np.float64)
            q = np.array([p_other.get(o, 0.0) for o in p_true], np.float64)
            mean += share * kernels.divergence.relative_entropy(p, q)
    return mean


def _distributions(
    hypotheses: Hypotheses, capability: type, method: Callable[..., Any], *modes: int
) -> list[dict[Any, float]]:
    """Return the distribution of each of these modes; a mode array is queried once for all."""
    if isinstance(hypotheses, ModeArrayQueries):
        answers, shape = hypotheses.query_each(capability, method), hypotheses.shape
        each = {k: np.broadcast_to(p, shape) for k, p in answers.items()}
        return [{k: float(p[m]) for k, p in each.items()} for m in modes]
    if not hypotheses.supports(capability):
        hypotheses.query_each(capability, method)  # raises an error with the mode and the method
    return [dict(method(hypotheses.bound[m])) for m in modes]


@dataclass(frozen=True, eq=False, repr=False)
class Divergences:
    """The divergence processes of all pairs of M modes along a record of T steps.

    Entry t is after t steps; entry 0 is before the first. d_t(m*‖m) is ∞ once m is ruled out, -∞
    once m* is, and nan once both are.

    >>> from bayescontrol.finite.examples import FROG, prize_or_frog
    >>> read = divergences(Record([0, 0], [FROG, FROG]), prize_or_frog(0.75).agent())
    >>> read
    Divergences(2 steps, 2 modes: d_2 from -2.2 to 2.2 nats)
    >>> read.of(true=1, other=0)
    array([0.        , 1.09861229, 2.19722458])
    >>> read.posterior[-1] <= read.posterior_bound(true=1)[-1]
    array([ True,  True])
    """

    #: P(o_t | m, x_t, a_t) of each step as the belief uses it, or its logarithm; shape (T, M).
    evidence: FloatArray
    #: Whether `evidence` holds logarithms.
    is_log: bool
    #: P(m | âo_≤t); shape (T + 1, M). Row 0 is the prior.
    posterior: FloatArray
    #: L[t, m] = Σ_{τ≤t} ln P(o_τ | m, x_τ, a_τ); shape (T + 1, M).
    log_likelihoods: FloatArray
    #: The names of the M modes.
    names: tuple[str, ...]

    def of(self, true: int | str, other: int | str) -> FloatArray:
        """Return d_t(m*‖m) for m* = `true`, m = `other` and t = 0 … T; modes by index or name.

        The terms are summed: the difference of two columns of L would lose digits.
        """
        d = np.empty(len(self.posterior))
        kernels.divergence.accumulate(self.terms(true, other), d)
        return d

    def terms(self, true: int | str, other: int | str) -> FloatArray:
        """Return the T terms of d_t(m*‖m)."""
        m_star, m = (mode_index(i, self.names) for i in (true, other))
        out = np.empty(len(self.evidence))
        kernels.divergence.log_ratios(self.evidence, self.is_log, m_star, m, out)
        return out

    def pairs(self) -> FloatArray:
        """Return d_t(m*‖m) of every pair, as an array [t, m*, m]."""
        modes = range(self.posterior.shape[1])
        columns = [[self.of(true, other) for other in modes] for true in modes]
        return np.ascontiguousarray(np.moveaxis(np.array(columns), -1, 0))

    def posterior_bound(self, true: int | str) -> FloatArray:
        """Return P(m)/P(m*) e^(-d_t(m*‖m)), an upper bound on P(m | âo_≤t), as an array [t, m].

        It is ∞ where P(m*) = 0 or m* is ruled out, and nan where d_t is.
        """
        prior = self.posterior[0]
        m_star = mode_index(true, self.names)
        out = np.where(prior > 0.0, np.inf, 0.0)[:, None].repeat(len(self.posterior), axis=1)
        for m in np.flatnonzero(prior).tolist() if prior[m_star] > 0.0 else ():
            odds = float(prior[m] / prior[m_star])
            kernels.divergence.bound(self.of(m_star, m), odds, out[m])
        return np.ascontiguousarray(out.T)

    def __repr__(self) -> str:
        T, M = self.evidence.shape
        last = self.log_likelihoods[-1]
        alive = last[np.isfinite(last)]
        spread = float(np.ptp(alive)) if alive.size else 0.0
        ruled_out = "" if alive.size == M else f", {M - alive.size} ruled out"
        return (
            f"Divergences({counted(T, 'step')}, {counted(M, 'mode')}{ruled_out}: "
            f"d_{T} from {-spread:.3g} to {spread:.3g} nats)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SubDivergences:
    """d_t(m*‖m) split by the drawn mode, and the conditional mean of each part.

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> probes = ["drawn_mode"]
    >>> record = interact(modes.agent(), modes.environment(0), 9, seed=0, probes=probes)
    >>> split = sub_divergences(record, modes.agent(), true=0, other=1)
    >>> split.g.sum(1).round(6).tolist() == split.d.round(6).tolist()
    True
    """

    #: The indices of m* and m.
    true: int
    other: int
    #: The drawn mode of each step; shape (T,).
    drawn: IntArray
    #: d_t(m*‖m), t = 0 … T.
    d: FloatArray
    #: g_t(m'), as an array [t, m'].
    g: FloatArray
    #: G_t(m'), as an array [t, m'].
    G: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Return g - G as an array [t, m']; nan where both are infinite."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.g - self.G)

    def __repr__(self) -> str:
        return (
            f"SubDivergences({counted(len(self.drawn), 'step')}, mode {self.other} from "
            f"{self.true}: d = {self.d[-1]:.3g} nats, expected {self.G[-1].sum():.3g})"
        )


def divergences(record: Record, agent: Rule) -> Divergences:
    """Compute the likelihoods and posteriors of all modes along a record.

    The method `pairs` of the result returns the divergences of all pairs of modes,

        d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)

    `record` may come from any agent and contain actions that no mode takes. (Tables from `tabulate`
    only know the actions that some mode may take.) `agent` defines the modes, the prior, the
    situation and how it advances. It must be a new control rule over a `FiniteBelief`, and is not
    changed. The belief decides how impossible observations count: skipped, or raised to a floor.

    >>> from bayescontrol.finite.examples import FROG, PRIZE, prize_or_frog
    >>> read = divergences(Record([0, 1], [PRIZE, FROG]), prize_or_frog(0.75).agent())
    >>> read.log_likelihoods
    array([[ 0.        ,  0.        ],
           [-0.28768207, -1.38629436],
           [-0.57536414, -2.77258872]])
    >>> read.pairs()[-1]
    array([[ 0.        ,  2.19722458],
           [-2.19722458,  0.        ]])
    """
    evidence, is_log, posterior = _replay(record, agent)
    T, M = evidence.shape
    L = np.empty((M, T + 1))
    # Probability 1: the ratio to it is the likelihood itself.
    certain = np.zeros(T) if is_log else np.ones(T)
    for m in range(M):
        pair = np.stack([evidence[:, m], certain], axis=-1)
        kernels.divergence.log_ratios(pair, is_log, 0, 1, terms := np.empty(T))
        kernels.divergence.accumulate(terms, L[m])
    names = tuple(_mode_queries.names_of(agent.belief.modes))
    return Divergences(evidence, is_log, posterior, np.ascontiguousarray(L.T), names)


def _replay(record: Record, agent: Rule) -> tuple[FloatArray, bool, FloatArray]:
    """Return P(o_t | m, x_t, a_t), whether it is in logarithms, and P(m | âo_≤t).

    The first has a row for each step, the last also a row for the prior.
    """
    belief = _checked_belief(record, agent)
    posterior = np.empty((len(record) + 1, len(belief)))
    table = _table(record, agent)
    if table is not None:
        evidence = np.ascontiguousarray(table[0].by_mode[table[1:]])
        weights = belief.copy().weight_arrays()
        # The kernel returns the steps done: fewer than all if some evidence is invalid.
        if kernels.divergence.posteriors(*weights, evidence, posterior) == len(record):
            return evidence, False, posterior
    # The step-by-step code also raises the error for invalid evidence.
    hypotheses = _mode_queries.queries_for(belief.modes)
    evidence = np.empty((len(record), len(belief)))
    posterior[0] = belief.posterior()
    for t, step in enumerate(_replay_steps(record, agent, hypotheses)):
        _, evidence[t], posterior[t + 1] = step
    return evidence, hypotheses.log, posterior


def sub_divergences(
    record: Record, agent: Rule, true: int | str, other: int | str
) -> SubDivergences:
    """Return g_t(m') and G_t(m') of d_t(m*‖m) for m* = `true` and m = `other`, by index or name.

    The record needs a column "drawn_mode" (or "drawn") with the drawn modes:

        interact(agent, environment, steps, probes=["drawn_mode"])

    `agent` is as for `divergences`; its modes must offer `action_probabilities` and
    `observation_probabilities`. G is infinite from the first step at which the drawn mode could
    have led to an observation that m rules out and m* does not; g only once it was observed. A
    floor under the likelihoods changes g, not G.

    >>> from bayescontrol.finite.examples import FROG, prize_or_frog
    >>> record = Record([0, 1], [FROG, FROG], {"drawn": [0, 1]})
    >>> split = sub_divergences(record, prize_or_frog(0.75).agent(), true=0, other=1)
    >>> split.g[-1], split.G[-1]
    (array([-1.09861229,  1.09861229]), array([0.54930614, 0.54930614]))
    """
    found = divergences(record, agent)
    modes = found.posterior.shape[1]
    m_star, m = mode_index(true, found.names), mode_index(other, found.names)
    drawn = _drawn_modes(record, modes)
    means = _means(record, agent, drawn, m_star, m)
    g, G = np.empty((2, len(record) + 1, modes))
    kernels.divergence.demultiplex(found.terms(m_star, m), drawn, g)
    kernels.divergence.demultiplex(means, drawn, G)
    return SubDivergences(m_star, m, drawn, found.of(m_star, m), g, G)


def _means(record: Record, agent: Rule, drawn: IntArray, true: int, other: int) -> FloatArray:
    """Return the conditional mean of each step of d_t(m*‖m), given the drawn mode; shape (T,)."""
    table = _table(record, agent)
    if table is not None:
        modes, x, _, _ = table
        mean, others = np.empty((len(modes), modes.policy.shape[1], 1)), np.array([other])
        kernels.divergence.mean_tables(modes.policy, modes.hypothesis, true, others, mean)
        return np.asarray(mean[drawn, x, 0])
    hypotheses = _mode_queries.queries_for(agent.belief.modes)
    steps = enumerate(_replay_steps(record, agent, hypotheses))
    return np.array([_mean(hypotheses, x, int(drawn[t]), true, other) for t, (x, _, _) in steps])


def _drawn_modes(record: Record, modes: int) -> IntArray:
    """Return the column of drawn modes after checking it."""
    name = "drawn_mode" if "drawn_mode" in record.probes else "drawn"
    if name not in record.probes:
        raise MissingCapability(
            "the record has no column of drawn modes: record it with "
            'interact(..., probes=["drawn_mode"])'
        )
    drawn = record[name]
    if len(drawn) and not _are_indices(drawn, modes):
        raise UnknownMode(f'column "{name}" must hold mode indices 0 … {modes - 1}, not {drawn}')
    return np.ascontiguousarray(drawn, np.int64)
