"""Poisson and binomial numbers, in a time that grows with the logarithm of the mean.

    binomial(n, p)     how many of n uniform numbers are below p
    poisson(mean)      how many events of a unit-rate process occur before time `mean`

Both look at one order statistic and continue on one side of it (Ahrens & Dieter 1974):

    the i-th smallest of n uniform numbers has the distribution Beta(i, n + 1 - i)
    the n-th event occurs at a time with the distribution Gamma(n)

Numbers are whole doubles, exact up to 2^53.
"""

import numpy as np

from bayescontrol._arrays import IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.random import beta, exponential, gamma

#: Up to this mean the events of a Poisson process are counted one by one.
SMALL_MEAN = 16.0


@leaf
def _count_below(state: UIntArray, n: float, p: float) -> float:
    """Draw how many of n uniform numbers are below p, by bisection, for p < 1.

    Let x be the i-th smallest. If x < p, count i numbers and continue with the n - i above x;
    otherwise continue with the i - 1 below x.
    """
    count = 0.0
    while n > 0.0:
        i = np.floor(0.5 * n) + 1.0
        x = beta(state, i, n + 1.0 - i)
        if x < p:
            count += i
            n -= i
            p = (p - x) / (1.0 - x)
        else:
            n = i - 1.0
            p /= x
    return count


@leaf
def binomial(state: UIntArray, n: float, p: float) -> float:
    """Draw the number of successes in n trials of probability p, 0 ≤ p ≤ 1.

    >>> from bayescontrol.seeding import Stream
    >>> binomial(Stream(1).state, 5.0, 0.0), binomial(Stream(1).state, 5.0, 1.0)
    (0.0, 5.0)
    """
    # By symmetry p is at most 1/2: an x that rounds to 1 is never compared with p = 1.
    if p > 0.5:
        return n - _count_below(state, n, 1.0 - p)
    return _count_below(state, n, p)


@leaf
def poisson(state: UIntArray, mean: float) -> float:
    """Draw the number of events of a unit-rate process before time `mean` ≥ 0.

    If the n-th event is before `mean`, count n events and continue with the remaining time.
    Otherwise each of the n - 1 earlier events is before `mean` with probability mean / time.

    >>> from bayescontrol.seeding import Stream
    >>> poisson(Stream(1).state, 0.0)
    0.0
    """
    count = 0.0
    while mean > SMALL_MEAN:
        # With this n the n-th event is usually before `mean`, and little time remains.
        n = np.floor(0.875 * mean)
        time = gamma(state, n)
        if time > mean:
            return count + _count_below(state, n - 1.0, mean / time)
        count += n
        mean -= time
    time = exponential(state)
    while time < mean:
        count += 1.0
        time += exponential(state)
    return count


@leaf
def fill_binomial(state: UIntArray, n: float, p: float, out: IntArray) -> None:
    """Fill `out` by calls of `binomial`."""
    for i in range(out.size):
        out[i] = int(binomial(state, n, p))


@leaf
def fill_poisson(state: UIntArray, mean: float, out: IntArray) -> None:
    """Fill `out` by calls of `poisson`."""
    for i in range(out.size):
        out[i] = int(poisson(state, mean))
