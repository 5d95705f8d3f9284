"""Temporal-difference learning: Q-learning and R-learning.

    M(y) = max_a Q(y,a)                                  right-hand sides before the step
    Q(x,a) ← (1-α) Q(x,a) + α (r + γ M(y))               ε ← ε · decay
    with probability ε any action, else arg max_a Q(x,a)

Q(x,a) = -∞ marks an action that x does not offer. Ties go to the first action. `q_learn`
and `r_learn` return False, and change nothing, if a value would not be finite.

A loop runs until its columns are full, or stops at a state that is new to the agent or at values
that are not finite: that step is in the columns but was not learned. There is one loop per learner,
because Numba cannot cache a kernel that takes another as an argument.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.mdp import MdpRun, StepArray, Tables, respond
from bayescontrol.kernels.random import below, uniform

# Numba checks signed indices for negative values, which takes a third of the time of a step. It
# converts a mix of signed and unsigned integers to float.
unsigned: Callable[[int], int] = np.uint64  # type: ignore[assignment]
signed: Callable[[int], int] = np.int64  # type: ignore[assignment]


class QArrays(NamedTuple):
    """The state of Q-learning: Q[x, a], -∞ where x does not offer a, and [ε].

    >>> QArrays(Q=np.zeros((1, 2)), epsilon=np.zeros(1)).epsilon
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


@inlined
def best_action(Q: FloatArray, x: int) -> int:
    """Return arg max_a Q(x,a); the first action in case of a tie.

    The inner loop looks for an action that is better than the best so far. The processor predicts
    where it ends; a conditional move would make the next step wait for the values.

    >>> best_action(np.array([[0.0, 2.0, 2.0]]), 0)
    1
    """
    row, A, a, best = unsigned(x), unsigned(Q.shape[1]), unsigned(0), 0
    while a < A:
        best, largest = signed(a), Q[row, a]
        a += unsigned(1)
        while a < A and not Q[row, a] > largest:
            a += unsigned(1)
    return best


@leaf
def any_action(Q: FloatArray, x: int, rng_state: UIntArray) -> int:
    """Draw uniformly one of the actions that x offers; there is at least one.

    >>> from bayescontrol.seeding import Stream
    >>> any_action(np.array([[-np.inf, 2.0, -np.inf]]), 0, Stream(0).state)
    1
    """
    offered = 0
    for a in range(Q.shape[1]):
        if Q[x, a] > -math.inf:
            offered += 1
    skip = below(rng_state, offered)
    for a in range(Q.shape[1]):
        if Q[x, a] > -math.inf:
            if skip == 0:
                return a
            skip -= 1
    return -1


@inlined
def top(Q: FloatArray, x: int) -> float:
    """Return M(x) = max_a Q(x,a).

    >>> top(np.array([[0.0, 2.0, 2.0]]), 0)
    2.0
    """
    row = unsigned(x)
    largest = Q[row, 0]
    for a in range(unsigned(1), unsigned(Q.shape[1])):
        largest = max(largest, Q[row, a])
    return float(largest)


@inlined
def q_choose(v: QArrays, x: int, rng_state: UIntArray) -> int:
    """Return the action of ε-greedy Q-learning in state x. With ε = 0 nothing is drawn.

    >>> from bayescontrol.seeding import Stream
    >>> q_choose(QArrays(np.array([[0.0, 2.0]]), np.zeros(1)), 0, Stream(0).state)
    1
    """
    if v.epsilon[0] > 0.0 and uniform(rng_state) < v.epsilon[0]:
        return any_action(v.Q, x, rng_state)
    return best_action(v.Q, x)


@inlined
def q_learn(v: QArrays, settings: QSettings, x: int, a: int, r: float, y: int) -> bool:
    """Update Q(x,a) by Q-learning after reward r and next state y; ε decays.

    Returns False, with nothing changed, if the new value would not be finite.

    >>> v = QArrays(np.ones((2, 2)), np.array([0.5]))
    >>> q_learn(v, QSettings(0.5, 0.25, 0.9), 0, 1, 2.0, 1)
    True
    >>> float(v.Q[0, 1]), float(v.epsilon[0])
    (1.375, 0.45)
    """
    i, j = unsigned(x), unsigned(a)
    new = (1.0 - settings.alpha) * v.Q[i, j] + settings.alpha * (r + settings.gamma * top(v.Q, y))
    if not math.isfinite(new):
        return False
    v.Q[i, j] = new
    v.epsilon[0] *= settings.decay
    return True


@leaf
def q_interact(v: QArrays, settings: QSettings, run: MdpRun, at: int, t: int) -> tuple[int, int]:
    """Run Q-learning in an MDP from step t on; return the steps done and the final state.

    `at` and the final state are states of the environment.

    >>> from bayescontrol.kernels.mdp import STEP
    >>> from bayescontrol.kernels.random import Streams
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> actions, rows = np.empty(50, np.int64), np.empty(50, STEP)
    >>> v, settings = QArrays(np.ones((2, 2)), np.zeros(1)), QSettings(0.5, 0.5, 1.0)
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> run = MdpRun(chain_mdp(2).tables, np.arange(2), streams, actions, rows)
    >>> q_interact(v, settings, run, 0, 0)[0]
    50
    >>> float(rows["reward"][-10:].sum())
    5.0
    """
    tables, index_of, (p, q), actions, rows = run
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = index_of[here]
        a = q_choose(v, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s] = a
        rows[s]["reward"], rows[s]["state"] = r, signed(here)
        y = index_of[here]
        if y < 0 or not q_learn(v, settings, x, a, r, y):
            return signed(s), signed(here)
    return actions.size, signed(here)


@leaf
def follow(
    policy: IntArray, A: int, tables: Tables, at: int, q: UIntArray, actions: IntArray,
    rows: StepArray,
) -> int:  # fmt: skip
    """Follow the policy a = π(x) in an MDP with A actions; return the final state.

    >>> from bayescontrol.kernels.mdp import STEP
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> actions, rows = np.empty(4, np.int64), np.empty(4, STEP)
    >>> follow(np.array([0, 0]), 2, chain_mdp(2).tables, 0, Stream(1).state,
    ...        actions, rows)
    0
    >>> rows["reward"]
    array([0., 1., 0., 1.])
    """
    here = unsigned(at)
    for s in range(unsigned(0), unsigned(actions.size)):
        a = policy[here]
        entry = unsigned(respond(tables, here, unsigned(a), unsigned(A), q))
        here = unsigned(tables.successor[entry])
        actions[s] = a
        rows[s]["reward"], rows[s]["state"] = tables.reward[entry], signed(here)
    return signed(here)


# ------------------------------------------------------------------------------------------------
# R-learning with uncertainty exploration, as the paper prints it.
#
#     M(y) = max_a Q(y,a)                                  right-hand sides before the step
#     Q(x,a) ← (1-α) Q(x,a) + α (r - ρ + M(y))             ρ ← (1-β) ρ + β (r + M(y) - Q(x,a))
#     explore: arg max_a Q(x,a) + C/F(x,a), untried actions (F = 0) first


class RArrays(NamedTuple):
    """The state of R-learning: arrays [x, a], and [ρ].

    >>> import numpy as np
    >>> RArrays(Q=np.zeros((1, 2)), F=np.zeros((1, 2)), bonus=np.full((1, 2), np.inf),
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


@inlined
def uncertain_action(Q: FloatArray, bonus: FloatArray, x: int) -> int:
    """Return arg max_a Q(x,a) + C/F(x,a); the first action in case of a tie.

    An untried action has the bonus ∞, so it comes first. The loops are those of `best_action`.

    >>> import numpy as np
    >>> Q = np.array([[0.0, 2.0, 1.0, -np.inf]])
    >>> uncertain_action(Q, np.array([[30.0, 6.0, np.inf, 0.0]]), 0)
    2
    >>> uncertain_action(Q, np.array([[30.0, 6.0, 10.0, 0.0]]), 0)
    0
    """
    row, A, a, best = unsigned(x), unsigned(Q.shape[1]), unsigned(0), 0
    while a < A:
        best, largest = signed(a), Q[row, a] + bonus[row, a]
        a += unsigned(1)
        while a < A and not Q[row, a] + bonus[row, a] > largest:
            a += unsigned(1)
    return best


@leaf
def _r_explore(
    Q: FloatArray, bonus: FloatArray, p_exp: float, otherwise_random: bool, x: int,
    rng_state: UIntArray,
) -> int:  # fmt: skip
    """Explore with probability p_exp, else act as `otherwise_random` says.

    A separate function, to keep the common path short.
    """
    if uniform(rng_state) < p_exp:
        return uncertain_action(Q, bonus, x)
    return any_action(Q, x, rng_state) if otherwise_random else best_action(Q, x)


@inlined
def r_choose(v: RArrays, settings: RSettings, x: int, rng_state: UIntArray) -> int:
    """Return the action of R-learning in state x. With p_exp = 1 nothing is drawn.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> v = RArrays(np.array([[0.0, 2.0]]), np.ones((1, 2)), np.full((1, 2), 30.0), np.zeros(1))
    >>> r_choose(v, RSettings(30.0, 1.0, 0.5, 0.001, False, False), 0, Stream(0).state)
    1
    """
    if settings.p_exp < 1.0:
        return _r_explore(v.Q, v.bonus, settings.p_exp, settings.otherwise_random, x, rng_state)
    return uncertain_action(v.Q, v.bonus, x)


@inlined
def r_learn(v: RArrays, settings: RSettings, x: int, a: int, r: float, y: int) -> bool:
    """Update Q(x,a) and ρ by R-learning after reward r and next state y.

    Returns False, with nothing changed, if a value would not be finite. With `greedy_only`, ρ
    learns only from an action with Q(x,a) = M(x).

    >>> import numpy as np
    >>> v = RArrays(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> r_learn(v, RSettings(30.0, 1.0, 0.5, 0.25, False, False), 0, 1, 1.0, 1)
    True
    >>> float(v.Q[0, 1]), float(v.F[0, 1]), float(v.bonus[0, 1]), float(v.rho[0])
    (0.5, 1.0, 30.0, 0.25)
    """
    i, j = unsigned(x), unsigned(a)
    q, rho, M = v.Q[i, j], v.rho[0], top(v.Q, y)
    new = (1.0 - settings.alpha) * q + settings.alpha * (r - rho + M)
    if not settings.greedy_only or q >= top(v.Q, x):
        rho = (1.0 - settings.beta) * rho + settings.beta * (r + M - q)
    if not (math.isfinite(new) and math.isfinite(rho)):
        return False
    v.Q[i, j], v.rho[0] = new, rho
    v.F[i, j] += 1.0
    v.bonus[i, j] = settings.C / v.F[i, j]
    return True


@leaf
def r_interact(v: RArrays, settings: RSettings, run: MdpRun, at: int, t: int) -> tuple[int, int]:
    """Run R-learning in an MDP from step t on; return the steps done and the final state.

    `at` and the final state are states of the environment.

    >>> import numpy as np
    >>> from bayescontrol.kernels.mdp import STEP
    >>> from bayescontrol.kernels.random import Streams
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> v = RArrays(np.zeros((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.inf), np.zeros(1))
    >>> actions, rows = np.empty(50, np.int64), np.empty(50, STEP)
    >>> settings = RSettings(1.0, 1.0, 0.5, 0.001, False, False)
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> run = MdpRun(chain_mdp(2).tables, np.arange(2), streams, actions, rows)
    >>> r_interact(v, settings, run, 0, 0)[0]
    50
    >>> float(rows["reward"][-10:].sum())
    5.0
    """
    tables, index_of, (p, q), actions, rows = run
    A = unsigned(v.Q.shape[1])
    here = unsigned(at)
    for s in range(unsigned(t), unsigned(actions.size)):
        x = index_of[here]
        a = r_choose(v, settings, x, p)
        entry = unsigned(respond(tables, here, unsigned(a), A, q))
        here, r = unsigned(tables.successor[entry]), tables.reward[entry]
        actions[s] = a
        rows[s]["reward"], rows[s]["state"] = r, signed(here)
        y = index_of[here]
        if y < 0 or not r_learn(v, settings, x, a, r, y):
            return signed(s), signed(here)
    return actions.size, signed(here)
