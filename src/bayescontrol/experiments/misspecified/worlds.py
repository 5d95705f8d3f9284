"""Three machines in the class, five outside it, and how far each is from the nearest mode.

    mode m     lever m is good, the others are poor, whatever came before; policy: pull lever m
    worn θ     the good lever's harmless misses turn into losses, a share θ of them
    streaks    as many losses as in the class, but a loss brings on the next

    D = min_m Σ_x μ(x) Σ_o Q(o | x, a_m) ln [Q(o | x, a_m) / P(o | m, x, a_m)]     nats a step

A world outside the class is a row of the tables with prior 0: no belief ever draws it. μ is the
stationary law of situations under the policy of m, where m is what the agent settles on.
"""

from functools import cache
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.problems.tabular import Labels, TabularModes

#: The action that is always safe, and earns nothing.
REST: Final = 3
#: What a win, a miss and a loss are worth.
REWARD: Final = np.array([1.0, 0.0, -3.0])
WEAR: Final = (0.25, 0.5, 0.75, 1.0)
INSIDE: Final = ("lever 0", "lever 1", "lever 2")
OUTSIDE: Final = (*(f"worn {theta:g}" for theta in WEAR), "streaks")
WORLDS: Final = INSIDE + OUTSIDE
#: What is told of the good lever of each world.
ABOUT: Final = {
    **{world: f"{world}, as mode {m} expects" for m, world in enumerate(INSIDE)},
    **{f"worn {t:g}": f"lever 0, {t:.0%} of its misses now lose" for t in WEAR},
    "streaks": "lever 0, but a loss brings on the next",
}

_GOOD: Final = np.array([0.6, 0.3, 0.1])
_POOR: Final = np.array([0.2, 0.4, 0.4])
#: P(loss | a loss came before). The rate without one keeps a tenth of all pulls losses.
_STREAK: Final = 0.4
_LABELS: Final = Labels(
    ("after no loss", "after a loss"),
    ("pull 0", "pull 1", "pull 2", "rest"),
    ("win", "miss", "loss"),
)


def _worn(theta: float) -> FloatArray:
    return np.asarray(_GOOD + theta * _GOOD[1] * np.array([0.0, -1.0, 1.0]))


def _streaks(loss: float) -> FloatArray:
    return np.append(_GOOD[:2] * (1.0 - loss) / _GOOD[:2].sum(), loss)


@cache
def machines() -> TabularModes:
    """All eight worlds as one class in which only the first three have weight.

    >>> machines()
    TabularModes(8 modes, 2 situations, 4 actions, 3 observations)
    >>> machines().prior.round(3)
    array([0.333, 0.333, 0.333, 0.   , 0.   , 0.   , 0.   , 0.   ])
    """
    n = len(INSIDE)
    hypothesis = np.empty((len(WORLDS), 2, 4, 3))
    hypothesis[:, :, :] = _POOR
    hypothesis[:, :, REST] = [0.0, 1.0, 0.0]
    for m in range(n):
        hypothesis[m, :, m] = _GOOD
    for k, theta in enumerate(WEAR):
        hypothesis[n + k, :, 0] = _worn(theta)
    rare = _GOOD[2] * (1.0 - _STREAK) / (1.0 - _GOOD[2])
    hypothesis[-1, :, 0] = [_streaks(rare), _streaks(_STREAK)]
    # Outside the class nobody acts; these rows are the best that could be done.
    lever = [0, 1, 2, *(0 if _worn(theta) @ REWARD > 0 else REST for theta in WEAR), 0]
    policy = np.eye(4)[lever][:, None].repeat(2, axis=1)
    successor = np.broadcast_to([0, 0, 1], (2, 4, 3))
    prior = np.where(np.arange(len(WORLDS)) < n, 1.0 / n, 0.0)
    return TabularModes(policy, hypothesis, successor, names=WORLDS, prior=prior, labels=_LABELS)


@cache
def distances() -> dict[str, float]:
    """D of every world, in nats a step; 0 inside the class.

    >>> {world: round(D, 3) for world, D in distances().items() if D > 0}
    {'worn 0.25': 0.033, 'worn 0.5': 0.125, 'worn 0.75': 0.279, 'worn 1': 0.555, 'streaks': 0.037}
    """
    return {world: _distance(k) for k, world in enumerate(WORLDS)}


def _distance(k: int) -> float:
    settled = []
    for m in range(len(INSIDE)):
        rates = _rates(k, m)
        if rates[m] == rates.min():  # pulling lever m, nothing explains the world better than m
            settled.append(float(rates[m]))
    return min(settled)


def _rates(k: int, m: int) -> FloatArray:
    """The relative entropy of world k from each mode, in nats a step, while lever m is pulled."""
    modes = machines()
    q = modes.hypothesis[k, :, m]
    move = np.zeros((2, 2))
    for o in range(3):
        move[np.arange(2), modes.successor[:, m, o]] += q[:, o]
    mu = np.array([move[1, 0], move[0, 1]])
    p = modes.hypothesis[: len(INSIDE), :, m]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0.0, q * np.log(q / p), 0.0)
    return np.asarray(terms.sum(-1) @ (mu / mu.sum()))
