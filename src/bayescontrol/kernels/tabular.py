"""The loop of the control rule over tables: no mathematics, only calls of other kernels.

    m ~ v        a ~ policy[m, x]        o ~ truth[x, a]        v ← v · hypothesis[x, a, o]

Bit for bit what the readable agent and environment do.
"""

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import jit
from bayescontrol.kernels.finite import OK, condition, draw
from bayescontrol.kernels.random import categorical
from bayescontrol.kernels.xoshiro import uniform


@jit
def interact(
    w: FloatArray,
    e: IntArray,
    blocks: FloatArray,
    policy: FloatArray,
    hypothesis: FloatArray,
    successor: IntArray,
    truth: FloatArray,
    x: int,
    y: int,
    p: UIntArray,
    q: UIntArray,
    drawn: IntArray,
    actions: IntArray,
    observations: IntArray,
) -> tuple[int, int, int, int]:
    """Fill the columns; gives the steps done, the situations of the last draw and of now,
    and the environment's.

    Fewer steps than asked: the observation of that step is bad evidence, and was not learnt.

    >>> import numpy as np
    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes, columns = random_modes(2), np.empty((3, 5), np.int64)
    >>> p, q = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint64)
    >>> interact(*modes.agent().belief.weight_arrays(), modes.policy, modes.by_mode,
    ...          modes.successor, modes.hypothesis[0], 0, 0, p, q, *columns)[0]
    5
    """
    drawn_in = x
    for t in range(actions.shape[0]):
        drawn_in = x
        m = draw(w, e, blocks, uniform(p))
        a = categorical(p, policy[m, x])
        o = categorical(q, truth[y, a])
        drawn[t], actions[t], observations[t] = m, a, o
        y = successor[y, a, o]
        if condition(w, e, blocks, hypothesis[x, a, o]) != OK:
            return t, drawn_in, x, y
        x = successor[x, a, o]
    return actions.shape[0], drawn_in, x, y
