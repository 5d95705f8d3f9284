"""R-learning with uncertainty exploration, as the paper prints it.

    M(y) = max_a Q(y,a)                                  every right-hand side as it was before
    Q(x,a) ← (1-α) Q(x,a) + α (r - ρ + M(y))             ρ ← (1-β) ρ + β (r + M(y) - Q(x,a))
    explore: arg max_a Q(x,a) + C/F(x,a), untried actions (F = 0) first

Conventions as in `bayescontrol.kernels.td`: -∞ marks an action that x does not offer, of several
best actions the first is taken, and `learn` refuses what would leave the doubles.
"""

import math
from typing import NamedTuple

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.mdp import Tables, respond
from bayescontrol.kernels.td import any_action, best_action, signed, top, unsigned
from bayescontrol.kernels.xoshiro import uniform


class RValues(NamedTuple):
    """What R-learning has learnt: [x, a] each, and [ρ].

    >>> import numpy as np
    >>> RValues(Q=np.zeros((1, 2)), F=np.zeros((1, 2)), bonus=np.full((1, 2), np.inf),
    ...         rho=np.zeros(1)).rho
    array([0.])
    """

    #: Q(x,a), -∞ where x does not offer a.
    Q: FloatArray
    #: How often a was tried in x.
    F: FloatArray
    #: C/F(x,a), ∞ where untried, 0 where x does not offer a: kept, for a division takes its time.
    bonus: FloatArray
    rho: FloatArray


class RHow(NamedTuple):
    """The settings of R-learning.

    >>> RHow(C=30.0, p_exp=1.0, alpha=0.5, beta=0.001, otherwise_random=False,
    ...      greedy_only=False).C
    30.0
    """

    C: float
    p_exp: float
    alpha: float
    beta: float
    #: What is done with probability 1 - p_exp: any action, or the best.
    otherwise_random: bool
    greedy_only: bool


@leaf
def uncertain_action(Q: FloatArray, bonus: FloatArray, x: int) -> int:
    """arg max_a Q(x,a) + C/F(x,a), the first of several: an untried action before all others.

    >>> import numpy as np
    >>> Q = np.array([[0.0, 2.0, 1.0, -np.inf]])
    >>> uncertain_action(Q, np.array([[30.0, 6.0, np.inf, 0.0]]), 0)
    2
    >>> uncertain_action(Q, np.array([[30.0, 6.0, 10.0, 0.0]]), 0)
    0
    """
    place = unsigned(x)
    best, most = 0, Q[place, 0] + bonus[place, 0]
    for a in range(unsigned(1), unsigned(Q.shape[1])):
        value = Q[place, a] + bonus[place, a]
        if value > most:
            best = signed(a)
        most = max(most, value)
    return best


@leaf
def _choose_by_chance(
    Q: FloatArray, bonus: FloatArray, p_exp: float, otherwise_random: bool, x: int, state: UIntArray
) -> int:
    """With probability p_exp explore, else do otherwise.

    Apart, so that the common path stays short: a call costs a third of a step.
    """
    if uniform(state) < p_exp:
        return uncertain_action(Q, bonus, x)
    return any_action(Q, x, state) if otherwise_random else best_action(Q, x)


@leaf
def choose(v: RValues, how: RHow, x: int, state: UIntArray) -> int:
    """The action of R-learning in state x. With p_exp = 1 nothing is drawn.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> v = RValues(np.array([[0.0, 2.0]]), np.ones((1, 2)), np.full((1, 2), 30.0), np.zeros(1))
    >>> choose(v, RHow(30.0, 1.0, 0.5, 0.001, False, False), 0, Stream(0).state)
    1
    """
    if how.p_exp < 1.0:
        return _choose_by_chance(v.Q, v.bonus, how.p_exp, how.otherwise_random, x, state)
    return uncertain_action(v.Q, v.bonus, x)


@leaf
def learn(v: RValues, how: RHow, x: int, a: int, r: float, y: int) -> bool:
    """R-learning's updates of Q(x,a) and ρ after reward r and state y.

    With `greedy_only`, ρ learns only from an action with Q(x,a) = M(x).

    >>> import numpy as np
    >>> v = RValues(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> learn(v, RHow(30.0, 1.0, 0.5, 0.25, False, False), 0, 1, 1.0, 1)
    True
    >>> float(v.Q[0, 1]), float(v.F[0, 1]), float(v.bonus[0, 1]), float(v.rho[0])
    (0.5, 1.0, 30.0, 0.25)
    """
    i, j = unsigned(x), unsigned(a)
    q, rho, M = v.Q[i, j], v.rho[0], top(v.Q, y)
    new = (1.0 - how.alpha) * q + how.alpha * (r - rho + M)
    if not how.greedy_only or q >= top(v.Q, x):
        rho = (1.0 - how.beta) * rho + how.beta * (r + M - q)
    if not (math.isfinite(new) and math.isfinite(rho)):
        return False
    v.Q[i, j], v.rho[0] = new, rho
    v.F[i, j] += 1.0
    v.bonus[i, j] = how.C / v.F[i, j]
    return True


@leaf
def interact(
    v: RValues,
    how: RHow,
    tables: Tables,
    number: IntArray,
    at: int,
    t: int,
    p: UIntArray,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
    states: IntArray,
) -> tuple[int, int]:
    """R-learning in an MDP from step t on; gives the steps learnt and where the world is.

    >>> import numpy as np
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> v = RValues(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> interact(v, RHow(1.0, 1.0, 0.5, 0.001, False, False), chain_mdp(2).tables, np.arange(2),
    ...          0, 0, Stream(1).state, Stream(2).state, actions, rewards, states)[0]
    50
    >>> float(rewards[-10:].sum())
    5.0
    """
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = number[here]
        a = choose(v, how, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s], rewards[s], states[s] = a, r, signed(here)
        y = number[here]
        if y < 0 or not learn(v, how, x, a, r, y):
            return signed(s), signed(here)
    return actions.size, signed(here)
