"""The loop of the control rule over tables, until the wrong modes have lost their weight.

    m ~ v  every `hold` steps        a ~ policy[m, x]        o ~ truth[x, a]
    v ← v · hypothesis[x, a, o]      first[m] = min{t : P(m | âo_≤t) < below}

Bit for bit the run of the readable agent: the same kernels draw, act and learn.
"""

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import jit
from bayescontrol.kernels.finite import OK, condition, draw, share, total
from bayescontrol.kernels.random import categorical
from bayescontrol.kernels.xoshiro import uniform

#: No such step up to the horizon.
NOT_YET = -1


@jit
def settle(
    w: FloatArray,
    e: IntArray,
    blocks: FloatArray,
    policy: FloatArray,
    hypothesis: FloatArray,
    successor: IntArray,
    truth: FloatArray,
    x: int,
    p: UIntArray,
    q: UIntArray,
    below: float,
    hold: int,
    horizon: int,
    awaited: IntArray,
    first: IntArray,
    last: IntArray,
) -> int:
    """Fill first[m], and last[m], from which on P(m | âo_≤t) stays below, for m in `awaited`.

    Without that second column (`last` of size 0) the run ends as soon as all of them have been
    below. NOT_YET stands for a step that has not come by the horizon. Gives the steps done; if
    they are fewer for no such reason, the observation of the next one was bad evidence.

    >>> import numpy as np
    >>> from bayescontrol.problems.chain import chain
    >>> modes, first, none = chain(2), np.empty(2, np.int64), np.empty(0, np.int64)
    >>> p, q = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint64)
    >>> settle(*modes.agent().belief.weight_arrays(), modes.policy, modes.by_mode,
    ...        modes.successor, modes.hypothesis[0], 0, p, q, 0.01, 2, 100, np.array([1]),
    ...        first, none)
    2
    >>> first
    array([-1,  2])
    """
    first[:] = NOT_YET
    last[:] = NOT_YET
    to_the_end = last.shape[0] > 0
    waiting = awaited.copy()
    n = waiting.shape[0]
    m = 0
    for t in range(horizon + 1):
        s, k = total(blocks)
        kept = 0
        for i in range(n):
            mode = waiting[i]
            fallen = share(w, e, blocks, mode, s, k) < below
            if fallen and first[mode] == NOT_YET:
                first[mode] = t
            if to_the_end:
                if not fallen:
                    last[mode] = NOT_YET
                elif last[mode] == NOT_YET:
                    last[mode] = t
            if to_the_end or not fallen:
                waiting[kept] = mode
                kept += 1
        n = kept
        if n == 0 or t == horizon:
            return t
        if t % hold == 0:
            m = draw(w, e, blocks, uniform(p))
        a = categorical(p, policy[m, x])
        o = categorical(q, truth[x, a])
        if condition(w, e, blocks, hypothesis[x, a, o]) != OK:
            return t
        x = successor[x, a, o]
    return horizon
