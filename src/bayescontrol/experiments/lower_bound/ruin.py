"""Prize or frog is a gambler's walk: how often the truth falls k steps behind, exactly.

each look is a step up with probability r, down with 1 - r, whichever box is opened
P(m* | ·) / P(m*) = 2 / (1 + (r/(1-r))^k)          k steps behind
P(ever k behind)  = ((1-r)/r)^k                     gambler's ruin; by time t a little less
"""

import math

import numpy as np

from bayescontrol.experiments.lower_bound.worlds import RELIABILITY


def left(k: int) -> float:
    """P(m* | ·) / P(m*) when the truth is k steps behind.

    >>> [round(left(k), 4) for k in (0, 1, 2, 3)]
    [1.0, 0.5, 0.2, 0.0714]
    """
    return 2.0 / (1.0 + (RELIABILITY / (1.0 - RELIABILITY)) ** k)


def fallen(k: int, steps: int) -> float:
    """P(k steps behind at some time up to `steps`).

    >>> fallen(2, steps=2), round(fallen(2, steps=500), 12) == round(3.0**-2, 12)
    (0.0625, True)
    """
    # p[j]: the chance to stand j + 1 steps above the level, not having been there.
    p = np.zeros(steps + k + 1)
    p[k - 1], gone = 1.0, 0.0
    for _ in range(steps):
        gone += float(p[0]) * (1.0 - RELIABILITY)
        up = np.concatenate(([0.0], p[:-1]))
        down = np.concatenate((p[1:], [0.0]))
        p = RELIABILITY * up + (1.0 - RELIABILITY) * down
    return gone


def behind_by(delta: float) -> int:
    """The fewest steps behind that leave less than δ of the prior weight.

    >>> [behind_by(delta) for delta in (0.6, 0.3, 0.1)]
    [1, 2, 3]
    """
    odds = RELIABILITY / (1.0 - RELIABILITY)
    return max(1, math.floor(math.log(2.0 / delta - 1.0, odds)) + 1)
