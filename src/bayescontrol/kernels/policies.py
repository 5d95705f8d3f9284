"""Bandit policies on counts: their indices, choices and compiled loop.

    n_j rewards of arm j, s_j their sum, q_j the sum of their squares, x̄ = s/n, t = Σ_j n_j
    ε-greedy     with probability ε α^(t+1) any arm, else arg max x̄_j
    softmax      arm j with probability ∝ e^(x̄_j/τ_t),  τ_t = τ α^(t+1)
    UCB1         x̄ + √(2 ln t / n)                                   (Auer et al. 2002)
    KL-UCB       max{x : n KL(x̄ ‖ x) ≤ ln t' + c max(0, ln ln t')}, t' = t + 1
                                                                     (Garivier & Cappé 2011)
    Gittins      the index ν(s_j, n_j - s_j) from a table, see `kernels.gittins`

An arm without a reward has the index ∞ in UCB1 and KL-UCB; greedy policies assume a mean of ½. Ties
are broken uniformly.

A policy is a number, because Numba cannot cache a kernel that takes another as an argument. The
clock t counts rewards, not decisions, so a policy is a function of its evidence, and late, missing
or reordered feedback needs no bookkeeping.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import respond
from bayescontrol.kernels.beta_distribution import divergence_bound
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.gittins import state_index
from bayescontrol.kernels.random import Streams, below, categorical, uniform


@leaf
def estimates(n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """Write x̄ of each arm to `out`; ½ for an arm without a reward.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> estimates(np.array([4.0, 0.0]), np.array([3.0, 0.0]), out)
    >>> out
    array([0.75, 0.5 ])
    """
    for j in range(n.size):
        out[j] = s[j] / n[j] if n[j] > 0.0 else 0.5


@leaf
def ucb1(t: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """Write x̄ + √(2 ln t / n) to `out`; ∞ for an arm without a reward.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> ucb1(1.0, np.array([1.0, 0.0]), np.array([1.0, 0.0]), out)
    >>> out
    array([ 1., inf])
    """
    log_t = log(t)
    for j in range(n.size):
        out[j] = s[j] / n[j] + math.sqrt(2.0 * log_t / n[j]) if n[j] > 0.0 else math.inf


@leaf
def kl_ucb(t: float, c: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """Write max{x : n KL(x̄ ‖ x) ≤ ln t' + c max(0, ln ln t')}, t' = t + 1, to `out`.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> kl_ucb(3.0, 0.0, np.array([2.0, 1.0]), np.array([0.0, 1.0]), out)
    >>> out  # 2 ln 1/(1-x) = ln 4, and nothing above 1
    array([0.5, 1. ])
    """
    level = log(t + 1.0)
    if c != 0.0 and level > 1.0:
        level += c * log(level)
    for j in range(n.size):
        misses = n[j] - s[j]
        if not n[j] > 0.0:  # no reward yet
            out[j] = math.inf
        elif not misses > 0.0:  # x̄ = 1
            out[j] = 1.0
        elif not level > 0.0:  # only x = x̄ satisfies the constraint
            out[j] = s[j] / n[j]
        elif not s[j] > 0.0:  # x̄ = 0: solve n ln 1/(1-x) = level
            out[j] = 1.0 - exp(-level / n[j])
        else:
            out[j] = 1.0 / (1.0 + exp(-divergence_bound(s[j], misses, level)))


# ------------------------------------------------------------------------------------------------
# Choices, learning and the loop of all policies.

#: The policies; the comments list their `parameters`.
UNIFORM = 0  # nothing
ORACLE = 1  # the mean reward of every arm
EPSILON_GREEDY = 2  # ε, α
SOFTMAX = 3  # τ, α
UCB1 = 4  # nothing
KL_UCB = 5  # c
GITTINS = 6  # the table of ν; rewards are 0 or 1

#: The sum of squares of larger rewards would overflow.
MAX_REWARD = 1e150
#: The valid rewards of a policy: any number below MAX_REWARD, [0, 1], {0, 1}.
FINITE, UNIT, BINARY = range(3)


@leaf
def accepts(support: int, r: float) -> bool:
    """Return whether a policy with this support can learn from reward r.

    >>> accepts(UNIT, 0.5), accepts(BINARY, 0.5), accepts(FINITE, float("nan"))
    (True, False, False)
    """
    if support == BINARY:
        return r == 0.0 or r == 1.0
    if support == UNIT:
        return 0.0 <= r <= 1.0
    return -MAX_REWARD < r < MAX_REWARD


@leaf
def learn(a: int, r: float, counts: FloatArray) -> None:
    """Count reward r of arm a; the rows of `counts` are n, s and q.

    >>> import numpy as np
    >>> counts = np.zeros((3, 2))
    >>> learn(1, 0.5, counts)
    >>> counts[:, 1].tolist()
    [1.0, 0.5, 0.25]
    """
    counts[0, a] += 1.0
    counts[1, a] += r
    counts[2, a] += r * r


@leaf
def arg_max(values: FloatArray, rng_state: UIntArray) -> int:
    """Return the index of the largest value; ties are broken by one draw.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> arg_max(np.array([0.5, 0.7, 0.1]), Stream(1).state)
    1
    """
    best, ties = 0, 1
    for j in range(1, values.size):
        if values[j] > values[best]:
            best, ties = j, 1
        elif values[j] == values[best]:
            ties += 1
    if ties > 1:
        skip = below(rng_state, ties)
        for j in range(best, values.size):
            if values[j] == values[best]:
                if skip == 0:
                    return j
                skip -= 1
    return best


@leaf
def fading(start: float, rate: float, t: float) -> float:
    """Return start · rate^(t+1): the value at decision t + 1, after t rewards.

    >>> round(fading(0.1, 0.5, 1.0), 15)
    0.025
    """
    return start if rate == 1.0 else start * exp((t + 1.0) * log(rate))


@leaf
def weights(values: FloatArray, temperature: float, out: FloatArray) -> None:
    """Write e^((v_j - max v)/τ) to `out`; at τ = 0 only the largest values have weight.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> weights(np.array([0.1, 0.3]), 0.0, out)
    >>> out
    array([0., 1.])
    """
    largest = values[0]
    for j in range(1, values.size):
        largest = max(largest, values[j])
    for j in range(values.size):
        gap = values[j] - largest
        # At τ = 0 the quotient is -∞, since kernels divide as NumPy does, and e^(-∞) = 0.
        out[j] = exp(gap / temperature) if gap < 0.0 else 1.0


@leaf
def index(kind: int, parameters: FloatArray, t: float, counts: FloatArray, out: FloatArray) -> None:
    """Write the index of every arm to `out`; for greedy policies, the estimated mean.

    >>> import numpy as np
    >>> counts, out = np.array([[2.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), np.empty(2)
    >>> index(EPSILON_GREEDY, np.array([0.1, 1.0]), 3.0, counts, out)
    >>> out
    array([0.5, 1. ])
    """
    if kind == ORACLE:
        for j in range(out.size):
            out[j] = parameters[j]
    elif kind == UCB1:
        ucb1(t, counts[0], counts[1], out)
    elif kind == KL_UCB:
        kl_ucb(t, parameters[0], counts[0], counts[1], out)
    else:
        estimates(counts[0], counts[1], out)


@leaf
def highest_index_arm(
    nu: FloatArray, counts: FloatArray, values: FloatArray, rng_state: UIntArray
) -> int:
    """Return arg max_j ν(s_j, n_j - s_j); -1, without a draw, if an arm is beyond the table.

    `values` is scratch for the ν of every arm.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> nu, values = np.array([0.7, 0.5, 0.8]), np.empty(2)  # up to one reward
    >>> highest_index_arm(nu, np.array([[0.0, 1.0], [0.0, 1.0]]), values, Stream(0).state)
    1
    >>> highest_index_arm(nu, np.array([[0.0, 2.0], [0.0, 2.0]]), values, Stream(0).state)
    -1
    """
    n, s = counts[0], counts[1]
    for j in range(n.size):
        state = state_index(int(s[j]), int(n[j] - s[j]))
        if state >= nu.size:
            return -1
        values[j] = nu[state]
    return arg_max(values, rng_state)


@leaf
def choose(
    kind: int, parameters: FloatArray, counts: FloatArray, scratch: FloatArray, rng_state: UIntArray
) -> int:
    """Return the arm that the policy pulls next; only `scratch` and `rng_state` change.

    Return -1 if the Gittins index of an arm is not in the table.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> counts = np.array([[2.0, 2.0], [0.0, 2.0], [0.0, 2.0]])
    >>> choose(UCB1, np.empty(0), counts, np.empty((1, 2)), Stream(1).state)
    1
    """
    arms = counts.shape[1]
    if kind == UNIFORM:
        return below(rng_state, arms)
    values = scratch[0]
    if kind == GITTINS:
        return highest_index_arm(parameters, counts, values, rng_state)
    t = 0.0
    for j in range(arms):
        t += counts[0, j]
    if kind == EPSILON_GREEDY and uniform(rng_state) < fading(parameters[0], parameters[1], t):
        return below(rng_state, arms)
    index(kind, parameters, t, counts, values)
    if kind == SOFTMAX:
        weights(values, fading(parameters[0], parameters[1], t), values)
        return categorical(rng_state, values)
    return arg_max(values, rng_state)


class Policy(NamedTuple):
    """A policy, the set of its valid rewards, and the counts n, s and q of every arm."""

    kind: int
    parameters: FloatArray
    support: int
    counts: FloatArray
    scratch: FloatArray


class ArmsWorld(NamedTuple):
    """The true parameters of arms of one family, for `kernels.arms.respond`."""

    kind: int
    constants: FloatArray
    truth: FloatArray


@leaf
def interact(
    policy: Policy, world: ArmsWorld, streams: Streams, actions: IntArray, rewards: FloatArray
) -> int:
    """Choose, pull, learn; fill the columns and return the steps done.

    Stops early at an invalid reward, or if `choose` returns -1.

    >>> import numpy as np
    >>> from bayescontrol.kernels.arms import BERNOULLI
    >>> from bayescontrol.seeding import Stream
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> policy = Policy(UCB1, np.empty(0), UNIT, np.zeros((3, 2)), np.empty((1, 2)))
    >>> world = ArmsWorld(BERNOULLI, np.empty(0), np.array([[0.0], [1.0]]))
    >>> interact(policy, world, Streams(Stream(1).state, Stream(2).state), actions, rewards)
    50
    >>> bool((rewards == actions).all())
    True
    """
    kind, parameters, support, counts, scratch = policy
    p, q = streams
    for t in range(actions.size):
        a = choose(kind, parameters, counts, scratch, p)
        if a < 0:
            return t
        r = respond(world.kind, world.constants, world.truth[a], q)
        actions[t], rewards[t] = a, r
        if not accepts(support, r):
            return t
        learn(a, r, counts)
    return int(actions.size)
