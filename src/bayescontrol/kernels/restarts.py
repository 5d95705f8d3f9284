"""Sums of e-processes that started at different times, in a bounded number of places.

    R_t^s(m) = R_{t-1}^s(m) q^s(o_t) / P(o_t | m, x_t, a_t)          M_t(m) = Σ_s R_t^s(m)

`starts[i]` is the first step of the start in place i, 0 if the place is free. All R and M are
logarithms.
"""

import math

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, log, log_one_plus


@leaf
def log_add(a: float, b: float) -> float:
    """Return ln(e^a + e^b).

    >>> round(log_add(0.0, 0.0), 6), log_add(-math.inf, -math.inf), log_add(math.inf, 1.0)
    (0.693147, -inf, inf)
    """
    high, low = max(a, b), min(a, b)
    if low == -math.inf or high == math.inf:
        return high
    return high + log_one_plus(exp(low - high))


@leaf
def weigh(
    starts: IntArray, log_r: FloatArray, log_q: FloatArray, log_p: FloatArray, w: FloatArray,
    log_m: FloatArray,
) -> None:  # fmt: skip
    """Update ln R with an observation and write ln M.

    log_q[i] is NaN if start i has no prediction: then its R stays. A mode with P = 0 gets R = ∞. A
    mode of weight 0 gets M = ∞: it does not count, for ∞ is never the minimum over the modes.

    >>> import numpy as np
    >>> log_r, log_m = np.zeros((2, 2)), np.empty(2)
    >>> weigh(np.array([1, 2]), log_r, np.array([-1.0, math.nan]), np.array([-2.0, -math.inf]),
    ...       np.ones(2), log_m)
    >>> log_r.tolist(), log_m.round(4).tolist()
    ([[1.0, inf], [0.0, inf]], [1.3133, inf])
    """
    for m in range(log_p.size):
        top, total = -math.inf, 0.0
        for i in range(starts.size):
            if starts[i] == 0:
                log_r[i, m] = -math.inf
            elif log_p[m] == -math.inf or log_r[i, m] == math.inf:
                log_r[i, m] = math.inf
            elif not math.isnan(log_q[i]):
                log_r[i, m] += log_q[i] - log_p[m]
            top = max(top, log_r[i, m])
        log_m[m] = top if w[m] > 0.0 else math.inf
        if abs(log_m[m]) < math.inf:
            for i in range(starts.size):
                total += exp(log_r[i, m] - top)
            log_m[m] += log(total)


@leaf
def end_start(starts: IntArray, log_r: FloatArray, place: int) -> None:
    """Free a place and give its R to the next younger start.

    >>> import numpy as np
    >>> starts, log_r = np.array([1, 3, 2]), np.zeros((3, 1))
    >>> end_start(starts, log_r, 0)
    >>> starts.tolist(), log_r.ravel().round(4).tolist()
    ([0, 3, 2], [-inf, 0.0, 0.6931])
    """
    next_start = -1
    for i in range(starts.size):
        if starts[i] > starts[place] and (next_start < 0 or starts[i] < starts[next_start]):
            next_start = i
    for m in range(log_r.shape[1]):
        if next_start >= 0:
            log_r[next_start, m] = log_add(log_r[next_start, m], log_r[place, m])
        log_r[place, m] = -math.inf
    starts[place] = 0


@leaf
def renew(starts: IntArray, log_r: FloatArray, t: int, lifetime: int) -> int:
    """End old starts after step t, begin one for step t + 1 and return its place.

    A start s = 2^l · odd ends when it has `lifetime` · 2^l observations. If no place is free, the
    oldest start ends.

    >>> import numpy as np
    >>> starts, log_r = np.array([1, 2, 0]), np.zeros((3, 0))
    >>> renew(starts, log_r, 2, 2), starts.tolist()
    (0, [3, 2, 0])
    """
    oldest = 0
    for i in range(starts.size):
        s = starts[i]
        if s > 0 and t + 1 - s >= lifetime * (s & -s):  # s & -s is 2^l
            end_start(starts, log_r, i)
        if starts[i] < starts[oldest]:
            oldest = i  # a free place, or the oldest start
    if starts[oldest] > 0:
        end_start(starts, log_r, oldest)
    starts[oldest] = t + 1
    for m in range(log_r.shape[1]):
        log_r[oldest, m] = 0.0
    return oldest
