"""Compiled loops of the control rule over tables; they only call other kernels.

    m ~ v        a ~ policy[m, x]        o ~ truth[x, a]        v ← v · hypothesis[x, a, o]

They equal the readable agent and environment bit for bit.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels import finite
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import log
from bayescontrol.kernels.finite import OK, Weights, condition, sample
from bayescontrol.kernels.random import Streams, categorical


class ModeTables(NamedTuple):
    """The tables of a class of modes, as loops read them."""

    #: policy[m, x, a] = P(a | m, x)
    policy: FloatArray
    #: hypothesis[x, a, o, m] = P(o | m, x, a)
    hypothesis: FloatArray
    #: successor[x, a, o] = T(x, a, o)
    successor: IntArray


class Columns(NamedTuple):
    """What a loop writes in every step: the drawn mode, the action and the observation."""

    drawn: IntArray
    actions: IntArray
    observations: IntArray


@leaf
def learn(
    w: FloatArray, e: IntArray, blocks: FloatArray, hypothesis: FloatArray, x: int, a: int, o: int
) -> bool:
    """v ← v · hypothesis[x, a, o]; return False, and change nothing, if that is impossible.

    >>> import numpy as np
    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> weights = modes.agent().belief.weight_arrays()
    >>> learn(*weights, modes.by_mode, 0, 0, 1), learn(*weights, modes.by_mode, 0, 0, 2)
    (True, False)
    """
    situations, actions, observations, _ = hypothesis.shape
    exists = 0 <= x < situations and 0 <= a < actions and 0 <= o < observations
    return exists and condition(w, e, blocks, hypothesis[x, a, o]) == OK


@jit
def interact(
    weights: Weights, tables: ModeTables, truth: FloatArray, x: int, y: int, streams: Streams,
    columns: Columns,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Fill the columns; return (steps done, situation of the last draw, x, y).

    x is the current situation of the agent, y that of the environment. Stops early at bad evidence:
    that observation is in the columns but was not learned.

    >>> import numpy as np
    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes, columns = random_modes(2), Columns(*np.empty((3, 5), np.int64))
    >>> streams = Streams(*np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint64))
    >>> weights = modes.agent().belief.weight_arrays()
    >>> interact(weights, modes.tables, modes.hypothesis[0], 0, 0, streams, columns)[0]
    5
    """
    w, e, blocks = weights
    policy, hypothesis, successor = tables
    p, q = streams
    drawn, actions, observations = columns
    drawn_in = x
    for t in range(actions.shape[0]):
        drawn_in = x
        m = sample(w, e, blocks, p)
        a = categorical(p, policy[m, x])
        o = categorical(q, truth[y, a])
        drawn[t], actions[t], observations[t] = m, a, o
        y = successor[y, a, o]
        if condition(w, e, blocks, hypothesis[x, a, o]) != OK:
            return t, drawn_in, x, y
        x = successor[x, a, o]
    return actions.shape[0], drawn_in, x, y


# ------------------------------------------------------------------------------------------------
# The loop until the wrong modes have lost their weight.
#
#     m ~ v  every `hold` steps        a ~ policy[m, x]        o ~ truth[x, a]
#     v ← v · hypothesis[x, a, o]      first[m] = min{t : P(m | âo_≤t) < threshold}

#: Stands for a step that did not occur up to the horizon.
NOT_YET = -1


class SettlingLimits(NamedTuple):
    """When a mode has lost its weight, how long a mode is held, and how long to wait."""

    threshold: float
    hold: int
    horizon: int


@jit
def settle(
    weights: Weights, tables: ModeTables, truth: FloatArray, x: int, streams: Streams,
    limits: SettlingLimits, awaited: IntArray, first: IntArray,
) -> int:  # fmt: skip
    """Fill first[m] for the modes m in `awaited`; return the steps done.

    first[m] is the first step t with P(m | âo_≤t) < threshold, or NOT_YET. The run ends as soon as
    every awaited mode has been below the threshold, or at bad evidence.

    >>> import numpy as np
    >>> from bayescontrol.finite.chain import chain
    >>> modes, first = chain(2), np.empty(2, np.int64)
    >>> streams = Streams(*np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint64))
    >>> weights, limits = modes.agent().belief.weight_arrays(), SettlingLimits(0.01, 2, 100)
    >>> settle(weights, modes.tables, modes.hypothesis[0], 0, streams, limits, np.array([1]), first)
    2
    >>> first
    array([-1,  2])
    """
    w, e, blocks = weights
    policy, hypothesis, successor = tables
    p, q = streams
    threshold, hold, horizon = limits
    first[:] = NOT_YET
    waiting = awaited.copy()
    n = waiting.shape[0]
    m = 0
    for t in range(horizon + 1):
        s, k = finite.total(blocks)
        remaining = 0
        for i in range(n):
            mode = waiting[i]
            if finite.share(w, e, blocks, mode, s, k) < threshold:
                first[mode] = t
            else:
                waiting[remaining] = mode
                remaining += 1
        n = remaining
        if n == 0 or t == horizon:
            return t
        if t % hold == 0:
            m = sample(w, e, blocks, p)
        a = categorical(p, policy[m, x])
        o = categorical(q, truth[x, a])
        if condition(w, e, blocks, hypothesis[x, a, o]) != OK:
            return t
        x = successor[x, a, o]
    return horizon


# ------------------------------------------------------------------------------------------------
# The e-process of the alarm, and its predictor of finitely many observations.
#
#     q(o | x, a, past) = (n_o + 1/2) / (n + K/2)         n_o of the n observations in (x, a)
#     ln E_t(m) = Σ_τ [ln q(o_τ | ·) - ln P(o_τ | m, x_τ, a_τ)]         ln E_t = min_m ln E_t(m)
#
# A row of counts is n_0 … n_{K-1} and then n. A mode with weight 0, or one that gave o
# probability 0, has E = ∞ for ever.


@leaf
def log_estimate(counts: IntArray, o: int) -> float:
    """Return ln (n_o + 1/2) / (n + K/2): the estimate from the counts before o.

    >>> import numpy as np
    >>> round(math.exp(log_estimate(np.array([3, 0, 3]), 0)), 12)
    0.875
    """
    K = counts.shape[0] - 1
    return log((counts[o] + 0.5) / (counts[K] + 0.5 * K))


@leaf
def count(counts: IntArray, o: int) -> None:
    """Increment n_o and n.

    >>> import numpy as np
    >>> counts = np.array([3, 0, 3])
    >>> count(counts, 1)
    >>> counts
    array([3, 1, 4])
    """
    counts[o] += 1
    counts[counts.shape[0] - 1] += 1


@leaf
def weigh(
    log_e: FloatArray, w: FloatArray, log_p: FloatArray, log_q: float, out: FloatArray
) -> float:
    """Write ln E_t(m) = ln E_{t-1}(m) + ln q - ln P(o | m, x, a) to `out`; return the minimum.

    It is ∞ for a mode that does not count: one of weight 0, or ruled out now or before.

    >>> import numpy as np
    >>> out = np.empty(3)
    >>> weigh(np.zeros(3), np.ones(3), np.array([-1.0, -2.0, -np.inf]), -1.5, out)
    -0.5
    >>> out
    array([-0.5,  0.5,  inf])
    """
    smallest = math.inf
    for m in range(log_e.shape[0]):
        # Modes with E = ∞ are handled separately, to avoid ∞ - ∞.
        if log_e[m] == math.inf or w[m] == 0.0 or log_p[m] == -math.inf:
            out[m] = math.inf
        else:
            out[m] = log_e[m] + (log_q - log_p[m])
        smallest = min(smallest, out[m])
    return smallest


class AlarmState(NamedTuple):
    """The alarm in a loop; the loop updates `counts` and `log_e` in place."""

    #: counts[x, a] = n_0 … n_{K-1}, n
    counts: IntArray
    log_e: FloatArray
    threshold: float
    raised: bool
    #: The action while the alarm is raised, -1 for none.
    fallback: int


@jit
def interact_with_alarm(
    weights: Weights, tables: ModeTables, truth: FloatArray, x: int, y: int, streams: Streams,
    alarm: AlarmState, columns: Columns,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Fill the columns until the alarm is raised.

    Return (steps done, observations learned, situation of the last draw, x, y). Without a
    fallback the loop ends at an observation that all modes rule out, which is in the columns but
    was not learned; with a fallback the belief ignores such an observation. `drawn` is -1 where the
    fallback acted.

    >>> import numpy as np
    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes, columns = random_modes(2), Columns(*np.empty((3, 5), np.int64))
    >>> streams = Streams(*np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint64))
    >>> alarm = AlarmState(np.zeros((1, 2, 3), np.int64), np.zeros(2), 3.0, False, -1)
    >>> weights = modes.agent().belief.weight_arrays()
    >>> interact_with_alarm(weights, modes.tables, modes.hypothesis[0], 0, 0, streams, alarm,
    ...                     columns)[:2]
    (5, 5)
    """
    w, e, blocks = weights
    policy, hypothesis, successor = tables
    p, q = streams
    counts, log_e, threshold, raised, fallback = alarm
    drawn, actions, observations = columns
    drawn_in, learned = x, 0
    log_p, after = np.empty_like(log_e), np.empty_like(log_e)
    for t in range(actions.shape[0]):
        if raised and fallback >= 0:
            m, a = -1, fallback
        else:
            drawn_in = x
            m = sample(w, e, blocks, p)
            a = categorical(p, policy[m, x])
        o = categorical(q, truth[y, a])
        drawn[t], actions[t], observations[t] = m, a, o
        y = successor[y, a, o]
        finite.log_likelihoods(hypothesis[x, a, o], log_p)
        smallest_log_e = weigh(log_e, w, log_p, log_estimate(counts[x, a], o), after)
        if condition(w, e, blocks, hypothesis[x, a, o]) == OK:
            learned += 1
        elif fallback < 0:
            return t, learned, drawn_in, x, y
        log_e[:] = after
        count(counts[x, a], o)
        x = successor[x, a, o]
        if smallest_log_e >= threshold and not raised:
            return t + 1, learned, drawn_in, x, y
    return actions.shape[0], learned, drawn_in, x, y
