"""The loop of index play: no mathematics, only calls of other kernels.

    a = arg max_j ν(r_j, f_j)        o ~ Q(o | a)        r_a += o  or  f_a += 1 - o

Bit for bit what the readable agent and environment do.
"""

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import respond
from bayescontrol.kernels.gittins import choose


@leaf
def interact(
    nu: FloatArray,
    pulls: int,
    r: FloatArray,
    f: FloatArray,
    family: int,
    constants: FloatArray,
    truth: FloatArray,
    p: UIntArray,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
) -> int:
    """Fill the columns; gives the steps done, fewer than asked where the table ends.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> nu, (r, f), truth = np.array([0.7, 0.5, 0.8]), np.zeros((2, 2)), np.ones((2, 1))
    >>> actions, rewards = np.empty(3, np.int64), np.empty(3)
    >>> interact(nu, 1, r, f, 0, np.empty(0), truth, Stream(1).state, Stream(2).state,
    ...          actions, rewards)
    2
    """
    for t in range(actions.size):
        a = choose(nu, pulls, r, f, p)
        if a < 0:
            return t
        o = respond(family, constants, truth[a], q)
        if o > 0.0:
            r[a] += 1.0
        else:
            f[a] += 1.0
        actions[t], rewards[t] = a, o
    return int(actions.size)
