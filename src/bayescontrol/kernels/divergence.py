"""Divergence processes: sums of log-likelihood ratios with compensated rounding.

    term_t = ln P(o_t | m*, x_t, a_t) / P(o_t | m, x_t, a_t)
    d_t    = Σ_{τ≤t} term_τ                            the divergence process
    g_t    = Σ_{τ≤t, m' in charge} term_τ              its part while m' was in charge
    G_t    = Σ_{τ≤t, m' in charge} Σ_a P(a | m', x_τ) KL( P(· | m*, x_τ, a) ‖ P(· | m, x_τ, a) )

A sum is infinite if one mode is ruled out, and NaN if both are. Each sum carries its rounding
error, so that long runs lose no precision.
"""

import math

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.finite import OK, condition, posterior
from bayescontrol.kernels.tabular import interact

# The range in which p/q is a normal double.
LEAST_RATIO, MOST_RATIO = 1e-300, 1e300


@leaf
def weight_of_evidence(p: float, q: float) -> float:
    """ln p/q; ∞ if only q is zero, -∞ if only p is, nan if both are.

    Near p = q it uses ln(1 + f), f = (p - q) / q, because ln of a rounded ratio is inaccurate.

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
    return log(ratio) if LEAST_RATIO < ratio < MOST_RATIO else log(p) - log(q)


@leaf
def add(total: float, lost: float, term: float) -> tuple[float, float]:
    """The sum total + lost + term as (rounded sum, rounding error)."""
    s = total + term
    if not abs(s) < math.inf:
        return s, 0.0
    back = s - total
    return s, lost + ((total - (s - back)) + (term - back))


@leaf
def ratios(evidence: FloatArray, logs: bool, true: int, other: int, out: FloatArray) -> None:
    """term_t into `out`, from the likelihoods of every step (rows) and mode, or their logarithms.

    >>> ratios(np.array([[0.5, 0.25], [0.5, 0.0]]), False, 0, 1, out := np.empty(2))
    >>> out
    array([0.69314718,        inf])
    """
    for t in range(out.shape[0]):
        p, q = evidence[t, true], evidence[t, other]
        out[t] = p - q if logs else weight_of_evidence(p, q)


@leaf
def accumulate(terms: FloatArray, out: FloatArray) -> None:
    """out_t = Σ_{τ≤t} term_τ, with out_0 = 0.

    >>> accumulate(np.array([1.0, 1e-17, -1.0]), out := np.empty(4))
    >>> out
    array([0.e+00, 1.e+00, 1.e+00, 1.e-17])
    """
    total, lost = 0.0, 0.0
    out[0] = 0.0
    for t in range(terms.shape[0]):
        total, lost = add(total, lost, terms[t])
        out[t + 1] = total + lost


@jit
def demultiplex(terms: FloatArray, drawn: IntArray, out: FloatArray) -> None:
    """out[t, m'] = Σ_{τ≤t, m' in charge} term_τ, with out[0] = 0.

    >>> demultiplex(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), out := np.empty((4, 2)))
    >>> out[-1]
    array([5., 2.])
    """
    lost = np.zeros(out.shape[1])
    total = np.zeros(out.shape[1])
    out[0] = 0.0
    for t in range(terms.shape[0]):
        m = drawn[t]
        total[m], lost[m] = add(total[m], lost[m], terms[t])
        out[t + 1] = out[t]
        out[t + 1, m] = total[m] + lost[m]


@leaf
def bound(d: FloatArray, odds: float, out: FloatArray) -> None:
    """P(m)/P(m*) e^(-d_t) into `out`.

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
    """x_t, the situations in which the actions were taken, into `out`.

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
    """P(m | âo_≤t) for t = 0 … T into `out`; returns the steps done, fewer at bad evidence.

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
    """KL(p ‖ q) = Σ_o p ln p/q, in nats; ∞ if q rules out what p does not.

    >>> relative_entropy(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    0.6931471805599453
    """
    total, lost = 0.0, 0.0
    for o in range(p.shape[0]):
        if p[o] > 0.0:
            total, lost = add(total, lost, p[o] * weight_of_evidence(p[o], q[o]))
    return max(0.0, total + lost)  # not negative by rounding


@leaf
def ratio_table(hypothesis: FloatArray, true: int, against: IntArray, out: FloatArray) -> None:
    """out[x, a, o, j] = ln P(o | m*, x, a) / P(o | m_j, x, a) for the modes m_j of `against`.

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
    """out[m', x, j] = Σ_a P(a | m', x) KL( P(· | m*, x, a) ‖ P(· | m_j, x, a) ).

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


@jit
def ensemble(
    fresh_w: FloatArray,
    fresh_e: IntArray,
    fresh_blocks: FloatArray,
    policy: FloatArray,
    by_mode: FloatArray,
    successor: IntArray,
    truth: FloatArray,
    start: int,
    true: int,
    term: FloatArray,
    mean: FloatArray,
    p: UIntArray,
    q: UIntArray,
    times: IntArray,
    d: FloatArray,
    g: FloatArray,
    G: FloatArray,
    sup: FloatArray,
    v: FloatArray,
    low: FloatArray,
) -> None:
    """Many runs of the rule in the world of m*: the sums at `times`, and their extremes until then.
    m* must have positive weight, so that no observation is bad evidence.

    `p` and `q` are the streams of agent and environment, one row per run; `term` and `mean` come
    from `ratio_table` and `mean_tables`. The rule itself is `kernels.tabular.interact`.

        sup = sup_{τ≤t} |g_τ - G_τ|  by mode in charge      low = min_{τ≤t} P(m* | âo_≤τ) / P(m*)

    See `bayescontrol.convergence.boundedness.simulate_divergences`, which creates the arrays.

    >>> from bayescontrol.convergence.boundedness import simulate_divergences
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> simulate_divergences(prize_or_frog(0.75), true=0, steps=5, runs=3).d.shape
    (3, 1, 2)
    """
    modes, others = policy.shape[0], term.shape[3]
    w, e, blocks, now = fresh_w.copy(), fresh_e.copy(), fresh_blocks.copy(), np.empty(modes)
    posterior(w, e, blocks, now)
    prior = now[true]
    sums, lost = np.empty((3, modes, others)), np.empty((3, modes, others))  # g, G; d in row 0
    far = np.empty((modes, others))
    column = np.empty((3, 1), np.int64)
    for run in range(p.shape[0]):
        w[:], e[:], blocks[:] = fresh_w, fresh_e, fresh_blocks
        sums[:], lost[:], far[:] = 0.0, 0.0, 0.0
        posterior(w, e, blocks, now)
        x, y, least, t = start, start, 1.0, 0
        for k in range(times.shape[0]):
            while t < times[k]:
                _, here, x, y = interact(
                    w, e, blocks, policy, by_mode, successor, truth, x, y, p[run], q[run],
                    column[0], column[1], column[2],
                )  # fmt: skip
                t += 1
                m, a, o = column[0, 0], column[1, 0], column[2, 0]
                for j in range(others):
                    z, mu = term[here, a, o, j], mean[m, here, j]
                    sums[0, m, j], lost[0, m, j] = add(sums[0, m, j], lost[0, m, j], z)
                    sums[1, m, j], lost[1, m, j] = add(sums[1, m, j], lost[1, m, j], mu)
                    sums[2, 0, j], lost[2, 0, j] = add(sums[2, 0, j], lost[2, 0, j], z)
                    off = sums[0, m, j] + lost[0, m, j] - (sums[1, m, j] + lost[1, m, j])
                    far[m, j] = max(far[m, j], abs(off)) if off == off else math.inf
                posterior(w, e, blocks, now)
                least = min(least, now[true] / prior)
            g[run, k] = sums[0] + lost[0]
            G[run, k] = sums[1] + lost[1]
            d[run, k] = sums[2, 0] + lost[2, 0]
            sup[run, k], v[run, k], low[run, k] = far, now, least


# ------------------------------------------------------------------------------------------------
# Where the predictions of two modes differ, and by how much.
#
#     differ   |p_o - q_o| > tolerance · max(p_o, q_o)  for some o with p_o > 0
#     D        KL(p ‖ q) = Σ_o p_o ln p_o / q_o, zero where they do not differ
#
# Only outcomes that are possible under p count.


@leaf
def differ(p: FloatArray, q: FloatArray, tolerance: float) -> bool:
    """Whether two predictions differ in an outcome that the first considers possible.

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
    truth: FloatArray,
    hypothesis: FloatArray,
    tolerance: float,
    nats: FloatArray,
    differs: FloatArray,
) -> None:
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
