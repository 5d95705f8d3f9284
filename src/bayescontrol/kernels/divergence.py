"""Divergence processes: sums of log-likelihood ratios with compensated rounding.

    term_t = ln P(o_t | m*, x_t, a_t) / P(o_t | m, x_t, a_t)
    d_t    = Σ_{τ≤t} term_τ                            the divergence process
    g_t    = Σ_{τ≤t, m' in charge} term_τ              its part while m' was in charge
    G_t    = Σ_{τ≤t, m' in charge} Σ_a P(a | m', x_τ) KL( P(· | m*, x_τ, a) ‖ P(· | m, x_τ, a) )

A sum is infinite if one mode is ruled out, and NaN if both are. Each sum carries its rounding
error, so that long runs lose no precision.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.finite import OK, Weights, condition, posterior
from bayescontrol.kernels.random import Streams
from bayescontrol.kernels.tabular import Columns, ModeTables, interact

# The range in which p/q is a normal double.
MIN_RATIO, MAX_RATIO = 1e-300, 1e300


@leaf
def weight_of_evidence(p: float, q: float) -> float:
    """Return ln p/q; ∞ if only q is zero, -∞ if only p is zero, NaN if both are zero.

    Near p = q the result is computed as ln(1 + f), f = (p - q) / q, because the logarithm of a
    rounded ratio is inaccurate.

    >>> weight_of_evidence(0.5, 0.25), weight_of_evidence(0.5, 0.0), weight_of_evidence(0.0, 0.0)
    (0.6931471805599453, inf, nan)
    >>> weight_of_evidence(0.5 + 1e-14, 0.5)
    1.998401444325...e-14
    """
    if p == 0.0 and q == 0.0:
        return math.nan
    if 0.5 * q <= p <= 2.0 * q:
        f = (p - q) / q
        u = 1.0 + f
        return f if u == 1.0 else log(u) * f / (u - 1.0)
    ratio = p / q
    return log(ratio) if MIN_RATIO < ratio < MAX_RATIO else log(p) - log(q)


@leaf
def add(total: float, rounding: float, term: float) -> tuple[float, float]:
    """Return total + rounding + term as (rounded sum, rounding error), by Knuth's two-sum."""
    s = total + term
    if not abs(s) < math.inf:  # infinite or NaN: there is no rounding error
        return s, 0.0
    back = s - total
    return s, rounding + ((total - (s - back)) + (term - back))


@leaf
def log_ratios(evidence: FloatArray, is_log: bool, true: int, other: int, out: FloatArray) -> None:
    """Write term_t, the log-likelihood ratio of mode `true` to mode `other` at step t, to `out`.

    `evidence` has a row for each step and a column for each mode. It holds likelihoods, or
    log-likelihoods if `is_log`.

    >>> log_ratios(np.array([[0.5, 0.25], [0.5, 0.0]]), False, 0, 1, out := np.empty(2))
    >>> out
    array([0.69314718,        inf])
    """
    for t in range(out.shape[0]):
        p, q = evidence[t, true], evidence[t, other]
        out[t] = p - q if is_log else weight_of_evidence(p, q)


@leaf
def accumulate(terms: FloatArray, out: FloatArray) -> None:
    """Write out[t] = Σ_{τ≤t} term_τ, with out[0] = 0.

    >>> accumulate(np.array([1.0, 1e-17, -1.0]), out := np.empty(4))
    >>> out
    array([0.e+00, 1.e+00, 1.e+00, 1.e-17])
    """
    total, rounding = 0.0, 0.0
    out[0] = 0.0
    for t in range(terms.shape[0]):
        total, rounding = add(total, rounding, terms[t])
        out[t + 1] = total + rounding


@jit
def demultiplex(terms: FloatArray, drawn: IntArray, out: FloatArray) -> None:
    """Write out[t, m'] = Σ_{τ≤t, m' in charge} term_τ, with out[0] = 0; drawn[t] is in charge.

    >>> demultiplex(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), out := np.empty((4, 2)))
    >>> out[-1]
    array([5., 2.])
    """
    rounding = np.zeros(out.shape[1])
    total = np.zeros(out.shape[1])
    out[0] = 0.0
    for t in range(terms.shape[0]):
        m = drawn[t]
        total[m], rounding[m] = add(total[m], rounding[m], terms[t])
        out[t + 1] = out[t]
        out[t + 1, m] = total[m] + rounding[m]


@leaf
def bound(d: FloatArray, odds: float, out: FloatArray) -> None:
    """Write P(m)/P(m*) e^(-d_t) to `out`; `odds` is P(m)/P(m*).

    >>> bound(np.array([0.0, np.inf]), 0.5, out := np.empty(2))
    >>> out
    array([0.5, 0. ])
    """
    for t in range(d.shape[0]):
        out[t] = odds * exp(-d[t])


@leaf
def follow(
    successor: IntArray, x: int, actions: IntArray, observations: IntArray, out: IntArray
) -> None:
    """Write x_t, the situation in which each action was taken, to `out`; x is the first one.

    >>> flip = np.array([[[1, 1]], [[0, 0]]])
    >>> follow(flip, 0, np.zeros(3, np.int64), np.zeros(3, np.int64), out := np.empty(3, np.int64))
    >>> out
    array([0, 1, 0])
    """
    for t in range(out.shape[0]):
        out[t] = x
        x = successor[x, actions[t], observations[t]]


@jit
def posteriors(
    w: FloatArray, e: IntArray, blocks: FloatArray, evidence: FloatArray, out: FloatArray
) -> int:
    """Write P(m | âo_≤t) for t = 0 … T to `out`; return the steps done.

    Stops early at bad evidence, which `condition` rejects.

    >>> from bayescontrol.kernels.finite import build
    >>> w, e = np.array([0.5, 0.5]), np.zeros(2, np.int64)
    >>> posteriors(w, e, build(w, e), np.array([[0.75, 0.25]]), out := np.empty((2, 2)))
    1
    >>> out
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    posterior(w, e, blocks, out[0])
    for t in range(evidence.shape[0]):
        if condition(w, e, blocks, evidence[t]) != OK:
            return t
        posterior(w, e, blocks, out[t + 1])
    return int(evidence.shape[0])


@leaf
def relative_entropy(p: FloatArray, q: FloatArray) -> float:
    """Return KL(p ‖ q) = Σ_o p ln p/q, in nats; ∞ if q excludes an outcome that p allows.

    >>> relative_entropy(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    0.6931471805599453
    """
    total, rounding = 0.0, 0.0
    for o in range(p.shape[0]):
        if p[o] > 0.0:
            total, rounding = add(total, rounding, p[o] * weight_of_evidence(p[o], q[o]))
    return max(0.0, total + rounding)  # not negative by rounding


@leaf
def ratio_table(hypothesis: FloatArray, true: int, against: IntArray, out: FloatArray) -> None:
    """Write out[x, a, o, j] = ln P(o | m*, x, a) / P(o | m_j, x, a), m_j the modes `against`.

    >>> table = np.array([[[[0.5, 0.5]]], [[[1.0, 0.0]]]])
    >>> ratio_table(table, 0, np.array([1]), out := np.empty((1, 1, 2, 1)))
    >>> out.ravel()
    array([-0.69314718,         inf])
    """
    situations, actions, observations, others = out.shape
    for x in range(situations):
        for a in range(actions):
            for o in range(observations):
                for j in range(others):
                    p, q = hypothesis[true, x, a, o], hypothesis[against[j], x, a, o]
                    out[x, a, o, j] = weight_of_evidence(p, q)


@jit
def mean_tables(
    policy: FloatArray, hypothesis: FloatArray, true: int, against: IntArray, out: FloatArray
) -> None:
    """Write out[m', x, j] = Σ_a P(a | m', x) KL( P(· | m*, x, a) ‖ P(· | m_j, x, a) ).

    Actions that m' never takes do not count, even if they would rule m_j out.

    >>> policy = np.array([[[1.0]], [[1.0]]])
    >>> table = np.array([[[[1.0, 0.0]]], [[[0.5, 0.5]]]])
    >>> mean_tables(policy, table, 0, np.array([1]), out := np.empty((2, 1, 1)))
    >>> out.ravel()
    array([0.69314718, 0.69314718])
    """
    modes, situations, actions = policy.shape
    out[:] = 0.0
    for x in range(situations):
        for a in range(actions):
            for j in range(against.shape[0]):
                divergence = relative_entropy(hypothesis[true, x, a], hypothesis[against[j], x, a])
                for m in range(modes):
                    if policy[m, x, a] > 0.0:
                        out[m, x, j] += policy[m, x, a] * divergence


class Increments(NamedTuple):
    """What a step adds to g and d (`ratio_table`), and to G (`mean_tables`)."""

    term: FloatArray
    mean: FloatArray


class DivergenceSums(NamedTuple):
    """The results of `ensemble`, each with the axes [run, time, …].

    sup = sup_{τ≤t} |g_τ - G_τ|  by mode in charge      low = min_{τ≤t} P(m* | âo_≤τ) / P(m*)
    """

    d: FloatArray
    g: FloatArray
    G: FloatArray
    sup: FloatArray
    #: P(m | âo_≤t)
    v: FloatArray
    low: FloatArray


@jit
def ensemble(
    prior_weights: Weights, tables: ModeTables, truth: FloatArray, start: int, true: int,
    increments: Increments, streams: Streams, times: IntArray, sums_at: DivergenceSums,
) -> None:  # fmt: skip
    """Simulate many runs of the rule in the world of m*; write the sums at `times`.

    m* must have positive weight, so that no observation is bad evidence. `streams` have a row for
    each run. The rule itself is `kernels.tabular.interact`.

    See `bayescontrol.convergence.boundedness.simulate_divergences`, which creates the arrays.

    >>> from bayescontrol.convergence.boundedness import simulate_divergences
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> simulate_divergences(prize_or_frog(0.75), true=0, steps=5, runs=3).d.shape
    (3, 1, 2)
    """
    term, mean = increments
    d, g, G, sup, v, low = sums_at
    modes, others = mean.shape[0], term.shape[3]
    prior_w, prior_e, prior_blocks = prior_weights
    w, e, blocks, current = prior_w.copy(), prior_e.copy(), prior_blocks.copy(), np.empty(modes)
    weights = Weights(w, e, blocks)
    posterior(w, e, blocks, current)
    prior_of_true = current[true]
    sums, rounding = np.empty((3, modes, others)), np.empty((3, modes, others))  # g, G, d
    largest_gap = np.empty((modes, others))
    column = np.empty((3, 1), np.int64)
    columns = Columns(column[0], column[1], column[2])
    for run in range(streams.p.shape[0]):
        run_streams = Streams(streams.p[run], streams.q[run])
        w[:], e[:], blocks[:] = prior_w, prior_e, prior_blocks
        sums[:], rounding[:], largest_gap[:] = 0.0, 0.0, 0.0
        posterior(w, e, blocks, current)
        x, y, lowest, t = start, start, 1.0, 0
        for k in range(times.shape[0]):
            while t < times[k]:
                _, drawn_in, x, y = interact(weights, tables, truth, x, y, run_streams, columns)
                t += 1
                m, a, o = column[0, 0], column[1, 0], column[2, 0]
                for j in range(others):
                    z, mu = term[drawn_in, a, o, j], mean[m, drawn_in, j]
                    sums[0, m, j], rounding[0, m, j] = add(sums[0, m, j], rounding[0, m, j], z)
                    sums[1, m, j], rounding[1, m, j] = add(sums[1, m, j], rounding[1, m, j], mu)
                    sums[2, 0, j], rounding[2, 0, j] = add(sums[2, 0, j], rounding[2, 0, j], z)
                    gap = sums[0, m, j] + rounding[0, m, j] - (sums[1, m, j] + rounding[1, m, j])
                    # NaN, from ∞ - ∞, counts as infinite.
                    largest_gap[m, j] = max(largest_gap[m, j], abs(gap)) if gap == gap else math.inf
                posterior(w, e, blocks, current)
                lowest = min(lowest, current[true] / prior_of_true)
            g[run, k] = sums[0] + rounding[0]
            G[run, k] = sums[1] + rounding[1]
            d[run, k] = sums[2, 0] + rounding[2, 0]
            sup[run, k], v[run, k], low[run, k] = largest_gap, current, lowest


# ------------------------------------------------------------------------------------------------
# Where the predictions of two modes differ, and by how much.
#
#     differ   |p_o - q_o| > tolerance · max(p_o, q_o)  for some o with p_o > 0
#     D        KL(p ‖ q) = Σ_o p_o ln p_o / q_o, zero where they do not differ
#
# Only outcomes that are possible under p count.


@leaf
def differ(p: FloatArray, q: FloatArray, tolerance: float) -> bool:
    """Return whether two predictions differ in an outcome that the first considers possible.

    >>> import numpy as np
    >>> differ(np.array([0.5, 0.5]), np.array([0.5 + 1e-15, 0.5]), 1e-12)
    False
    """
    for o in range(p.shape[0]):
        if p[o] > 0.0 and abs(p[o] - q[o]) > tolerance * max(p[o], q[o]):
            return True
    return False


@jit
def compare(
    truth: FloatArray, hypothesis: FloatArray, tolerance: float, nats: FloatArray,
    differs: FloatArray,
) -> None:  # fmt: skip
    """Fill nats[m, x, a] = D and differs[m, x, a] for every mode m against `truth[x, a, o]`.

    >>> import numpy as np
    >>> truth, others = np.array([[[1.0, 0.0]]]), np.array([[[[1.0, 0.0]]], [[[0.5, 0.5]]]])
    >>> nats, differs = np.empty((2, 1, 1)), np.empty((2, 1, 1), bool)
    >>> compare(truth, others, 1e-12, nats, differs)
    >>> nats.ravel(), differs.ravel()
    (array([0.        , 0.69314718]), array([False,  True]))
    """
    modes, situations, actions, _ = hypothesis.shape
    for m in range(modes):
        for x in range(situations):
            for a in range(actions):
                differs[m, x, a] = differ(truth[x, a], hypothesis[m, x, a], tolerance)
                nats[m, x, a] = 0.0
                if differs[m, x, a]:
                    nats[m, x, a] = relative_entropy(truth[x, a], hypothesis[m, x, a])
