"""Learning from differences in time: Q-learning, and what other learners of values share.

    M(y) = max_a Q(y,a)                                  every right-hand side as it was before
    Q(x,a) ← (1-α) Q(x,a) + α (r + γ M(y))               ε ← ε · decay
    with probability ε any action, else arg max_a Q(x,a)

Q(x,a) = -∞ marks an action that x does not offer. Of several best actions the first is taken, so
nothing is random but what is said to be. `learn` refuses, and changes nothing, where a value
would leave the doubles.

A loop runs until its columns are full, or stops at a state that the agent has no number for, or
at a refusal: that step is answered, and not learnt. There is one loop per learner, since Numba
caches no kernel that takes another as an argument.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.mdp import Tables, respond
from bayescontrol.kernels.xoshiro import below, uniform


@leaf
def unsigned(n: int) -> int:
    """n as a place: a signed one might count from the end, and asking costs a third of a step.

    >>> unsigned(3)
    3
    """
    place: int = np.uint64(n)  # type: ignore[assignment]
    return place


@leaf
def signed(n: int) -> int:
    """A place as a number again: in kernels signed and unsigned make a float together.

    >>> signed(3)
    3
    """
    number: int = np.int64(n)  # type: ignore[assignment]
    return number


class QValues(NamedTuple):
    """What Q-learning has learnt: Q[x, a], -∞ where x does not offer a, and [ε].

    >>> QValues(Q=np.zeros((1, 2)), epsilon=np.zeros(1)).epsilon
    array([0.])
    """

    Q: FloatArray
    epsilon: FloatArray


class QHow(NamedTuple):
    """The settings of Q-learning.

    >>> QHow(gamma=0.9, alpha=0.1, decay=1.0).gamma
    0.9
    """

    gamma: float
    alpha: float
    decay: float


@leaf
def best_action(Q: FloatArray, x: int) -> int:
    """arg max_a Q(x,a), the first of several.

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
    """A uniform choice of the actions that x offers.

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
def choose(v: QValues, x: int, state: UIntArray) -> int:
    """The action of ε-greedy Q-learning in state x. With ε = 0 nothing is drawn.

    >>> from bayescontrol.seeding import Stream
    >>> choose(QValues(np.array([[0.0, 2.0]]), np.zeros(1)), 0, Stream(0).state)
    1
    """
    if v.epsilon[0] > 0.0 and uniform(state) < v.epsilon[0]:
        return any_action(v.Q, x, state)
    return best_action(v.Q, x)


@leaf
def learn(v: QValues, how: QHow, x: int, a: int, r: float, y: int) -> bool:
    """Q-learning's update of Q(x,a) after reward r and state y; ε decays.

    >>> v = QValues(np.ones((2, 2)), np.array([0.5]))
    >>> learn(v, QHow(0.5, 0.25, 0.9), 0, 1, 2.0, 1)
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
def interact(
    v: QValues,
    how: QHow,
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
    """Q-learning in an MDP from step t on; gives the steps learnt and where the world is.

    `number` gives the agent's number of a state of the world, or -1; `at` is the world's state.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> v, how = QValues(np.ones((2, 2)), np.zeros(1)), QHow(0.5, 0.5, 1.0)
    >>> interact(v, how, chain_mdp(2).tables, np.arange(2), 0, 0,
    ...          Stream(1).state, Stream(2).state, actions, rewards, states)[0]
    50
    >>> float(rewards[-10:].sum())
    5.0
    """
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = number[here]
        a = choose(v, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s], rewards[s], states[s] = a, r, signed(here)
        y = number[here]
        if y < 0 or not learn(v, how, x, a, r, y):
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
    """The policy a = π(x) in an MDP with A actions; gives where the world is.

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
