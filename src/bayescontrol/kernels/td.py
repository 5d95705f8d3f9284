"""Temporal-difference learning: Q-learning and R-learning.

    M(y) = max_a Q(y,a)                                  right-hand sides before the step
    Q(x,a) ← (1-α) Q(x,a) + α (r + γ M(y))               ε ← ε · decay
    with probability ε any action, else arg max_a Q(x,a)

Q(x,a) = -∞ marks an action that x does not offer. Ties go to the first action. `q_learn`
and `r_learn` return False, and change nothing, if a value would not be finite.

A loop runs until its columns are full, or stops at a state that is new to the agent or at values
that are not finite: that step is in the columns but was not learnt. There is one loop per learner,
because Numba cannot cache a kernel that takes another as an argument.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.mdp import Tables, respond
from bayescontrol.kernels.random import below, uniform


@leaf
def unsigned(n: int) -> int:
    """Return n as an unsigned index, which is faster in Numba.

    Numba checks signed indices for negative values; that takes a third of the time of a step.

    >>> unsigned(3)
    3
    """
    index: int = np.uint64(n)  # type: ignore[assignment]
    return index


@leaf
def signed(n: int) -> int:
    """Return an index as a signed integer: Numba converts a mix of signed and unsigned to float.

    >>> signed(3)
    3
    """
    number: int = np.int64(n)  # type: ignore[assignment]
    return number


class QValues(NamedTuple):
    """The state of Q-learning: Q[x, a], -∞ where x does not offer a, and [ε].

    >>> QValues(Q=np.zeros((1, 2)), epsilon=np.zeros(1)).epsilon
    array([0.])
    """

    Q: FloatArray
    epsilon: FloatArray


class QSettings(NamedTuple):
    """The settings of Q-learning.

    >>> QSettings(gamma=0.9, alpha=0.1, decay=1.0).gamma
    0.9
    """

    gamma: float
    alpha: float
    decay: float


@leaf
def best_action(Q: FloatArray, x: int) -> int:
    """arg max_a Q(x,a), the first of equals.

    >>> best_action(np.array([[0.0, 2.0, 2.0]]), 0)
    1
    """
    place = unsigned(x)
    best, most = 0, Q[place, 0]
    for a in range(unsigned(1), unsigned(Q.shape[1])):
        if Q[place, a] > most:
            best = signed(a)
        most = max(most, Q[place, a])
    return best


@leaf
def any_action(Q: FloatArray, x: int, state: UIntArray) -> int:
    """A uniformly drawn action that x offers.

    >>> from bayescontrol.seeding import Stream
    >>> any_action(np.array([[-np.inf, 2.0, -np.inf]]), 0, Stream(0).state)
    1
    """
    offered = 0
    for a in range(Q.shape[1]):
        if Q[x, a] > -math.inf:
            offered += 1
    left = below(state, offered)
    for a in range(Q.shape[1]):
        if Q[x, a] > -math.inf:
            if left == 0:
                return a
            left -= 1
    return -1


@leaf
def top(Q: FloatArray, x: int) -> float:
    """M(x) = max_a Q(x,a).

    >>> top(np.array([[0.0, 2.0, 2.0]]), 0)
    2.0
    """
    place = unsigned(x)
    largest = Q[place, 0]
    for a in range(unsigned(1), unsigned(Q.shape[1])):
        largest = max(largest, Q[place, a])
    return float(largest)


@leaf
def q_choose(v: QValues, x: int, state: UIntArray) -> int:
    """The action of ε-greedy Q-learning in state x. With ε = 0 nothing is drawn.

    >>> from bayescontrol.seeding import Stream
    >>> q_choose(QValues(np.array([[0.0, 2.0]]), np.zeros(1)), 0, Stream(0).state)
    1
    """
    if v.epsilon[0] > 0.0 and uniform(state) < v.epsilon[0]:
        return any_action(v.Q, x, state)
    return best_action(v.Q, x)


@leaf
def q_learn(v: QValues, how: QSettings, x: int, a: int, r: float, y: int) -> bool:
    """Q-learning's update of Q(x,a) after reward r and state y; ε decays.

    >>> v = QValues(np.ones((2, 2)), np.array([0.5]))
    >>> q_learn(v, QSettings(0.5, 0.25, 0.9), 0, 1, 2.0, 1)
    True
    >>> float(v.Q[0, 1]), float(v.epsilon[0])
    (1.375, 0.45)
    """
    i, j = unsigned(x), unsigned(a)
    new = (1.0 - how.alpha) * v.Q[i, j] + how.alpha * (r + how.gamma * top(v.Q, y))
    if not math.isfinite(new):
        return False
    v.Q[i, j] = new
    v.epsilon[0] *= how.decay
    return True


@leaf
def q_interact(
    v: QValues,
    how: QSettings,
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
    """Q-learning in an MDP from step t on; returns the steps done and the final state.

    `number` maps states of the environment to those of the agent, or -1; `at` is the former.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> v, how = QValues(np.ones((2, 2)), np.zeros(1)), QSettings(0.5, 0.5, 1.0)
    >>> q_interact(v, how, chain_mdp(2).tables, np.arange(2), 0, 0,
    ...          Stream(1).state, Stream(2).state, actions, rewards, states)[0]
    50
    >>> float(rewards[-10:].sum())
    5.0
    """
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = number[here]
        a = q_choose(v, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s], rewards[s], states[s] = a, r, signed(here)
        y = number[here]
        if y < 0 or not q_learn(v, how, x, a, r, y):
            return signed(s), signed(here)
    return actions.size, signed(here)


@leaf
def follow(
    policy: IntArray,
    A: int,
    tables: Tables,
    at: int,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
    states: IntArray,
) -> int:
    """The policy a = π(x) in an MDP with A actions; returns the final state.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> actions, rewards, states = np.empty(4, np.int64), np.empty(4), np.empty(4, np.int64)
    >>> follow(np.array([0, 0]), 2, chain_mdp(2).tables, 0, Stream(1).state,
    ...        actions, rewards, states)
    0
    >>> rewards
    array([0., 1., 0., 1.])
    """
    here = unsigned(at)
    for s in range(unsigned(0), unsigned(actions.size)):
        a = policy[here]
        entry = unsigned(respond(tables, here, unsigned(a), unsigned(A), q))
        here = unsigned(tables.successor[entry])
        actions[s], rewards[s], states[s] = a, tables.reward[entry], signed(here)
    return signed(here)


# ------------------------------------------------------------------------------------------------
# R-learning with uncertainty exploration, as the paper prints it.
#
#     M(y) = max_a Q(y,a)                                  right-hand sides before the step
#     Q(x,a) ← (1-α) Q(x,a) + α (r - ρ + M(y))             ρ ← (1-β) ρ + β (r + M(y) - Q(x,a))
#     explore: arg max_a Q(x,a) + C/F(x,a), untried actions (F = 0) first


class RValues(NamedTuple):
    """The state of R-learning: arrays [x, a], and [ρ].

    >>> import numpy as np
    >>> RValues(Q=np.zeros((1, 2)), F=np.zeros((1, 2)), bonus=np.full((1, 2), np.inf),
    ...         rho=np.zeros(1)).rho
    array([0.])
    """

    #: Q(x,a), -∞ where x does not offer a.
    Q: FloatArray
    #: How often a was tried in x.
    F: FloatArray
    #: C/F(x,a), ∞ where untried, 0 where x does not offer a: stored to avoid the division.
    bonus: FloatArray
    rho: FloatArray


class RSettings(NamedTuple):
    """The settings of R-learning.

    >>> RSettings(C=30.0, p_exp=1.0, alpha=0.5, beta=0.001, otherwise_random=False,
    ...      greedy_only=False).C
    30.0
    """

    C: float
    p_exp: float
    alpha: float
    beta: float
    #: With probability 1 - p_exp: a random action instead of the best.
    otherwise_random: bool
    greedy_only: bool


@leaf
def uncertain_action(Q: FloatArray, bonus: FloatArray, x: int) -> int:
    """arg max_a Q(x,a) + C/F(x,a), the first of equals; untried actions come first.

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
def _r_choose_by_chance(
    Q: FloatArray, bonus: FloatArray, p_exp: float, otherwise_random: bool, x: int, state: UIntArray
) -> int:
    """Explore with probability p_exp, else act as `otherwise_random` says.

    A separate function, to keep the common path short.
    """
    if uniform(state) < p_exp:
        return uncertain_action(Q, bonus, x)
    return any_action(Q, x, state) if otherwise_random else best_action(Q, x)


@leaf
def r_choose(v: RValues, how: RSettings, x: int, state: UIntArray) -> int:
    """The action of R-learning in state x. With p_exp = 1 nothing is drawn.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> v = RValues(np.array([[0.0, 2.0]]), np.ones((1, 2)), np.full((1, 2), 30.0), np.zeros(1))
    >>> r_choose(v, RSettings(30.0, 1.0, 0.5, 0.001, False, False), 0, Stream(0).state)
    1
    """
    if how.p_exp < 1.0:
        return _r_choose_by_chance(v.Q, v.bonus, how.p_exp, how.otherwise_random, x, state)
    return uncertain_action(v.Q, v.bonus, x)


@leaf
def r_learn(v: RValues, how: RSettings, x: int, a: int, r: float, y: int) -> bool:
    """R-learning's updates of Q(x,a) and ρ after reward r and state y.

    With `greedy_only`, ρ learns only from an action with Q(x,a) = M(x).

    >>> import numpy as np
    >>> v = RValues(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> r_learn(v, RSettings(30.0, 1.0, 0.5, 0.25, False, False), 0, 1, 1.0, 1)
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
def r_interact(
    v: RValues,
    how: RSettings,
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
    """R-learning in an MDP from step t on; returns the steps done and the final state.

    >>> import numpy as np
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> v = RValues(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> settings = RSettings(1.0, 1.0, 0.5, 0.001, False, False)
    >>> r_interact(v, settings, chain_mdp(2).tables, np.arange(2),
    ...          0, 0, Stream(1).state, Stream(2).state, actions, rewards, states)[0]
    50
    >>> float(rewards[-10:].sum())
    5.0
    """
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = number[here]
        a = r_choose(v, how, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s], rewards[s], states[s] = a, r, signed(here)
        y = number[here]
        if y < 0 or not r_learn(v, how, x, a, r, y):
            return signed(s), signed(here)
    return actions.size, signed(here)
