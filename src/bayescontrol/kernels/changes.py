"""Change points: the posterior of the start of the current segment and of the hazard rate.

    w[j, i] = P(h_j, s_i | âo_<t)          hazard h_j; the segment began at time s_i
    observe        w[j, i] ← p_i w[j, i] / Σ p w             p_i = P(o | rewards since s_i, a)
    next step      w[j, i] ← (1 - h_j) w[j, i],   w[j, new] = h_j Σ_i w[j, i]

(Adams & MacKay 2007; the hazard is a constant on a grid.) The posterior of the arms depends on the
start only, so the starts share it for all hazards. If all places are taken, a new start replaces
the start with the smallest mass, which gives its mass to the nearest start in time.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import (
    BERNOULLI,
    ArmRows,
    draw_action,
    learn,
    log_predictive,
    respond,
)
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.lqr import learn as learn_system
from bayescontrol.kernels.lqr import log_predictive as log_system_predictive
from bayescontrol.kernels.random import Streams, uniform
from bayescontrol.kernels.regression import learn as learn_score
from bayescontrol.kernels.regression import log_predictive as log_score_predictive
from bayescontrol.kernels.regression import score

#: Smaller weights become 0: arithmetic with denormal numbers is slow.
TINY = 1e-290


@leaf
def condition(w: FloatArray, mass: FloatArray, size: int, p: FloatArray) -> float:
    """Multiply the weights of `size` starts by their likelihoods p; return ln Σ p w.

    `mass[i]` is Σ_j w[j, i] before, and p_i times as much afterwards; p becomes p / Σ p w.

    >>> import numpy as np
    >>> w = np.array([[0.5, 0.5]])
    >>> log_evidence = condition(w, w[0].copy(), 2, np.array([0.9, 0.3]))
    >>> w.round(12).tolist(), round(exp(log_evidence), 12)
    ([[0.75, 0.25]], 0.6)
    """
    before = mass[:size].sum()
    for i in range(size):
        mass[i] *= p[i]
    after = mass[:size].sum()
    for i in range(size):
        p[i] = p[i] / after if mass[i] > 0.0 else 0.0  # the quotient may be ∞ without mass
    for j in range(w.shape[0]):
        for i in range(size):
            w[j, i] *= p[i]
    return log(after / before)


@leaf
def _free_place(w: FloatArray, mass: FloatArray, starts: IntArray, dropped: FloatArray) -> int:
    """Return the place with the smallest mass, after giving its mass to the nearest start."""
    place, nearest = int(np.argmin(mass)), -1
    for i in range(mass.size):
        distance = abs(starts[i] - starts[place])
        if i != place and (nearest < 0 or distance < abs(starts[nearest] - starts[place])):
            nearest = i
    dropped[0] = mass[place]
    dropped[1] += mass[place]
    mass[nearest] += mass[place]
    for j in range(w.shape[0]):
        w[j, nearest] += w[j, place]
        w[j, place] = 0.0
    return place


@leaf
def change(
    w: FloatArray, size: int, hazards: FloatArray, t: int, mass: FloatArray, starts: IntArray,
    dropped: FloatArray,
) -> int:  # fmt: skip
    """Start a new segment at time t with probability h_j; return its place.

    The first `size` places are taken. `mass[i]` becomes Σ_j w[j, i]. `dropped[0]` becomes the mass
    of the start that loses its place, and `dropped[1]` grows by it.

    >>> import numpy as np
    >>> w, mass, dropped = np.array([[1.0, 0.0]]), np.array([1.0, 0.0]), np.zeros(2)
    >>> starts = np.zeros(2, np.int64)
    >>> change(w, 1, np.array([0.25]), 1, mass, starts, dropped), mass.tolist()
    (1, [0.75, 0.25])
    >>> change(w, 2, np.array([0.5]), 2, mass, starts, dropped), mass.tolist(), dropped.tolist()
    (1, [0.5, 0.5], [0.125, 0.125])
    >>> starts.tolist()
    [0, 2]
    """
    mass[:size] = 0.0
    for j in range(w.shape[0]):
        stay = 1.0 - hazards[j]
        for i in range(size):
            w[j, i] = stay * w[j, i] if w[j, i] > TINY else 0.0
            mass[i] += w[j, i]
    place = size
    dropped[0] = 0.0
    if size == mass.size:
        place = _free_place(w, mass, starts, dropped)
    mass[place], starts[place] = 0.0, t
    for j in range(w.shape[0]):
        # The w of the old starts are multiplied by 1 - h_j already.
        w[j, place] = hazards[j] / (1.0 - hazards[j]) * w[j, :size].sum()
        mass[place] += w[j, place]
    return place


@leaf
def draw_start(mass: FloatArray, size: int, rng_state: UIntArray) -> int:
    """Draw the place of a start with probability proportional to its mass.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> draw_start(np.array([0.0, 1.0]), 2, Stream(0).state)
    1
    """
    u = uniform(rng_state) * mass[:size].sum()
    last = 0
    for i in range(size):
        u -= mass[i]
        if u < 0.0:
            return i
        if mass[i] > 0.0:
            last = i
    return last  # the sum was rounded


@leaf
def _scale(p: FloatArray, size: int, mass: FloatArray) -> float:
    """Turn logarithms into likelihoods over the largest; return the largest logarithm.

    Starts without mass do not count: else the likelihoods of all others could be 0 as doubles.
    """
    largest = -math.inf
    for i in range(size):
        if mass[i] > 0.0:
            largest = max(largest, p[i])
    for i in range(size):
        p[i] = exp(min(p[i] - largest, 0.0))
    return largest


@leaf
def arm_likelihoods(
    kind: int, constants: FloatArray, rows: FloatArray, size: int, a: int, r: float,
    mass: FloatArray, p: FloatArray,
) -> float:  # fmt: skip
    """Write P(r | rows[i, a]) of each start i to p, divided by a scale; return ln of the scale.

    The scale is the largest likelihood of a start with mass; larger ones are written as 1.

    >>> import numpy as np
    >>> rows, p, mass = np.array([[[3.0, 1.0]]]), np.empty(1), np.ones(1)
    >>> arm_likelihoods(BERNOULLI, np.empty(0), rows, 1, 0, 1.0, mass, p), p.tolist()
    (0.0, [0.75])
    """
    if kind == BERNOULLI:
        for i in range(size):
            row = rows[i, a]
            p[i] = (row[0] if r > 0.5 else row[1]) / (row[0] + row[1])
        return 0.0
    for i in range(size):
        p[i] = log_predictive(kind, constants, rows[i, a], r)
    return _scale(p, size, mass)


@leaf
def score_likelihoods(
    kind: int, constants: FloatArray, R: FloatArray, z: FloatArray, size: int, a: int,
    x: FloatArray, r: float, v: FloatArray, mass: FloatArray, p: FloatArray,
) -> float:  # fmt: skip
    """As `arm_likelihoods`, for an arm with linear scores in context x; v is scratch.

    >>> import numpy as np
    >>> R, z, p = np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1)), np.empty(1)
    >>> x, v = np.ones(1), np.empty(1)
    >>> log_scale = score_likelihoods(1, np.empty(0), R, z, 1, 0, x, 1.0, v, x, p)
    >>> round(exp(log_scale), 12), p.tolist()
    (0.5, [1.0])
    """
    for i in range(size):
        s, q = score(R[i, a], z[i, a], x, v)
        p[i] = log_score_predictive(kind, constants, s, q, r)
    return _scale(p, size, mass)


@leaf
def learn_scores(
    kind: int, constants: FloatArray, R: FloatArray, z: FloatArray, size: int, a: int,
    x: FloatArray, r: float, v: FloatArray,
) -> None:  # fmt: skip
    """Update the weights of arm a in each of the first `size` segments; v is scratch.

    >>> import numpy as np
    >>> R, z = np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1))
    >>> learn_scores(0, np.ones(1), R, z, 1, 0, np.ones(1), 2.0, np.empty(1))
    >>> float((z / R).round(12).item())
    1.0
    """
    for i in range(size):
        learn_score(kind, constants, R[i, a], z[i, a], x, r, v)


@leaf
def system_likelihoods(
    F: FloatArray, V: FloatArray, nu: FloatArray, size: int, x: FloatArray, u: FloatArray,
    y: FloatArray, v: FloatArray, mass: FloatArray, p: FloatArray,
) -> float:  # fmt: skip
    """As `arm_likelihoods`, for linear systems with the factors F[i] and ν[i], see `kernels.lqr`.

    >>> import numpy as np
    >>> F, zero, p = np.eye(3)[None], np.zeros(1), np.empty(1)
    >>> nu, v, mass = np.zeros(1), np.empty(3), np.ones(1)
    >>> log_scale = system_likelihoods(F, np.eye(1), nu, 1, zero, zero, zero, v, mass, p)
    >>> round(log_scale, 6), p.tolist()
    (-0.918939, [1.0])
    """
    for i in range(size):
        p[i] = log_system_predictive(F[i], V, nu[i], x, u, y, v)
    return _scale(p, size, mass)


@leaf
def learn_systems(
    F: FloatArray, size: int, x: FloatArray, u: FloatArray, y: FloatArray, row: FloatArray,
    v: FloatArray, zero: FloatArray,
) -> None:  # fmt: skip
    """Update the first `size` systems, see `kernels.lqr.learn`.

    >>> import numpy as np
    >>> F, one, zero = np.eye(3)[None].copy(), np.ones(1), np.zeros(3)
    >>> learn_systems(F, 1, one, one, one, np.empty(3), np.empty(3), zero)
    >>> float((F[0, 0, 0] ** 2).round(12))
    2.0
    """
    for i in range(size):
        learn_system(F[i], x, u, y, row, v, zero)


class StartArrays(NamedTuple):
    """The weights w[j, i] of hazard j and start i, and what is derived from them."""

    w: FloatArray
    mass: FloatArray
    starts: IntArray
    dropped: FloatArray
    #: ln P(rewards), one number.
    log_evidence: FloatArray
    hazards: FloatArray
    #: Scratch: the likelihood of a reward under each start.
    p: FloatArray


@leaf
def draw_arm(
    kind: int, constants: FloatArray, rows: FloatArray, active: IntArray, drawn: FloatArray,
    mass: FloatArray, size: int, rng_state: UIntArray,
) -> int:  # fmt: skip
    """Draw a start, then an action of its arms `rows[i]`; `drawn` is scratch.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, mass = np.array([[[9.0, 1e9], [1e9, 9.0]]]), np.ones(1)
    >>> constants, state = np.empty(0), Stream(0).state
    >>> draw_arm(BERNOULLI, constants, rows, np.arange(2), np.empty(2), mass, 1, state)
    1
    """
    i = draw_start(mass, size, rng_state)
    return draw_action(kind, constants, rows[i], active, drawn, rng_state)


@leaf
def learn_rewards(
    kind: int, constants: FloatArray, rows: FloatArray, size: int, t: int, arms: IntArray,
    rewards: FloatArray, w: FloatArray, mass: FloatArray, starts: IntArray, dropped: FloatArray,
    log_evidence: FloatArray, hazards: FloatArray, p: FloatArray,
) -> int:  # fmt: skip
    """Learn the rewards of these arms one by one; an arm below 0 stands for a step without reward.

    The last arrays are those of `StartArrays`, one by one: to pass a tuple takes longer.
    `t` is the time of the first step, at which `size` places are taken. The last of the `rows` are
    the prior of a new segment. Return how many steps were learned: less than all if the next reward
    is too large for the posterior, which is then useless.

    >>> import numpy as np
    >>> rows, w, mass = np.ones((3, 1, 2)), np.array([[1.0, 0.0]]), np.array([1.0, 0.0])
    >>> segments = StartArrays(w, mass, np.zeros(2, np.int64), np.zeros(2), np.zeros(1),
    ...                        np.array([0.25]), np.empty(2))
    >>> learn_rewards(BERNOULLI, np.empty(0), rows, 1, 0, np.array([0]), np.ones(1), *segments)
    1
    >>> mass.tolist(), rows[:, 0].tolist()
    ([0.75, 0.25], [[2.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    """
    for k in range(arms.size):
        a, r, used = arms[k], rewards[k], min(size + k, mass.size)
        if a >= 0:
            log_scale = arm_likelihoods(kind, constants, rows, used, a, r, mass, p)
            is_too_large = False
            for i in range(used):
                learn(kind, constants, rows[i, a], r)
                for c in range(rows.shape[2]):
                    is_too_large |= not abs(rows[i, a, c]) < math.inf
            if is_too_large:
                return k
            log_evidence[0] += condition(w, mass, used, p) + log_scale
        place = change(w, used, hazards, t + k + 1, mass, starts, dropped)
        for j in range(rows.shape[1]):
            for c in range(rows.shape[2]):
                rows[place, j, c] = rows[-1, j, c]
    return int(arms.size)


@leaf
def interact_arms(
    arms: ArmRows, segments: StartArrays, size: int, t0: int, truth: FloatArray, streams: Streams,
    actions: IntArray, rewards: FloatArray,
) -> int:  # fmt: skip
    """Run the control rule over arms that change together; return how many steps were learned.

    Fills `actions` and `rewards`. Stops before a reward that is too large for the posterior.
    `t0` is the time of the first step, at which `size` places are taken. `arms.rows[i, a]` is the
    posterior row of arm a if start i is the right one; the last rows are those of a new segment.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> w, mass, starts = np.array([[1.0, 0.0, 0.0]]), np.array([1.0, 0.0, 0.0]), np.zeros(3, int)
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> arms = ArmRows(BERNOULLI, np.empty(0), np.ones((4, 2, 2)), np.arange(2), np.empty(2))
    >>> segments = StartArrays(w, mass, starts, np.zeros(2), np.zeros(1), np.array([0.01]),
    ...                        np.empty(3))
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> interact_arms(arms, segments, 1, 0, np.array([[0.0], [1.0]]), streams, actions, rewards)
    50
    >>> bool((rewards == actions).all())
    True
    """
    kind, constants, rows, active, drawn = arms
    w, mass, starts, dropped, log_evidence, hazards, likelihoods = segments
    p, q = streams
    for t in range(actions.size):
        used, now = min(size + t, mass.size), slice(t, t + 1)
        a = draw_arm(kind, constants, rows, active, drawn, mass, used, p)
        actions[t], rewards[t] = a, respond(kind, constants, truth[a], q)
        if not learn_rewards(
            kind, constants, rows, used, t0 + t, actions[now], rewards[now], w, mass, starts,
            dropped, log_evidence, hazards, likelihoods,
        ):  # fmt: skip
            return t
    return int(actions.size)
