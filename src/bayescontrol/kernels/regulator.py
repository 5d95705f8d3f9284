"""Adaptive regulation in the units of the plant: find the scale, then draw systems and regulate.

    u = u_r - K (x - r) - K_q q + σ n,  limited to [low, high]        q ← q + (x - r)

While the scale is unknown, K is the backup gain or 0, and the excitation σ grows from small values:

    σ_i² = g² c / (m R_ii),   c the average of (x - r)ᵀQ(x - r) so far,   g = 0.001, 0.00125, … 1

So the largest excitation costs as much as the states. The scale is known when the data
show the effect of every input (`input_signal`). Then systems are drawn. The gain of a drawn system
is used if it stabilises the mean system; otherwise the backup gain is used, or without one the gain
of the mean system, or the last gain. Every rule is the same in any units of states, inputs and
costs.
"""

import math
from typing import NamedTuple

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.lqr import (
    DETERMINANT,
    DONE,
    DRAWN_AT,
    FAILED,
    HELD,
    INPUT_TOO_LARGE,
    STATE_TOO_LARGE,
    T,
    advance,
    draw_noise,
    draw_system,
    growth,
    is_due,
    is_within_limits,
    learn,
    mean_system,
)
from bayescontrol.kernels.random import normal
from bayescontrol.kernels.riccati import Room, copy, lyapunov, riccati, solve_linear

#: The first value of g, its growth per step, and the largest value.
_FIRST, _GROWTH, _FULL = 1e-3, 1.25, 1.0
#: The scale is known if each input has this signal, from 2 (2n + m) observations on, and at the
#: latest after this many observations for each state and input.
_SIGNAL, _LONGEST = 1000.0, 50
#: Entries of the memory: the cost of the states until the scale was known, g, and the number of
#: observations when the scale became known (0 before, -1 if the prior is given).
COST, SIZE, KNOWN = range(3)
#: Another index of the clock: how often a drawn gain was replaced.
REFUSED = 4
#: Where the gain of a mode is from: the search for the scale, a drawn system, or a replacement.
SEARCH, DRAWN, REPLACED = range(3)


class Regulation(NamedTuple):
    """Settings: n states, m inputs, of which k states are integrated.

    >>> Regulation._fields[:2]
    ('Q', 'R')
    """

    Q: FloatArray  #: (n + k) × (n + k)
    R: FloatArray
    backup: FloatArray  #: m × n
    has_backup: bool
    low: FloatArray
    high: FloatArray
    setpoint: FloatArray
    integrated: IntArray  #: the k indices of integrated states
    tries: int


class RegulatorArrays(NamedTuple):
    """A mode: a system as in `LinearModeArrays`, u_r, the deviation of the excitation, the source.

    >>> RegulatorArrays._fields[-1]
    'source'
    """

    A: FloatArray
    B: FloatArray
    V: FloatArray
    P: FloatArray  #: (n + k) × (n + k)
    K: FloatArray  #: m × (n + k)
    offset: FloatArray
    sd: FloatArray
    source: IntArray


class Rooms(NamedTuple):
    """Scratch arrays.

    >>> Rooms._fields[0]
    'riccati'
    """

    riccati: Room
    trial: RegulatorArrays
    mean: RegulatorArrays
    a: FloatArray  #: (n + k) × (n + k)
    b: FloatArray  #: (n + k) × m
    row: FloatArray
    v: FloatArray
    zero: FloatArray


@leaf
def _augment(A: FloatArray, B: FloatArray, integrated: IntArray, rooms: Rooms) -> None:
    """Write the system with the integrals as further states, [[A, 0], [C, I]] and [B, 0]."""
    n, m = B.shape
    for i in range(rooms.a.shape[0]):
        for j in range(rooms.a.shape[0]):
            rooms.a[i, j] = A[i, j] if i < n and j < n else 0.0
        for j in range(m):
            rooms.b[i, j] = B[i, j] if i < n else 0.0
    for k in range(integrated.size):
        rooms.a[n + k, integrated[k]] = rooms.a[n + k, n + k] = 1.0


@leaf
def _solve(settings: Regulation, mode: RegulatorArrays, rooms: Rooms) -> bool:
    """Write P, K and u_r of the system of a mode; return False if no gain stabilises it.

    u_r minimises the distance of A r + B u_r from r, weighted with P; 0 if it is not unique.
    """
    _augment(mode.A, mode.B, settings.integrated, rooms)
    Q, R = settings.Q, settings.R
    if not riccati(rooms.a, rooms.b, Q, R, mode.P, mode.K, rooms.riccati):
        return False
    n, m = mode.B.shape
    left, right = rooms.riccati.r, rooms.riccati.s  # m × m, and column 0 of m × (n + k)
    for i in range(m):
        for j in range(m):
            left[i, j] = 0.0
        right[i, 0] = 0.0
        for k in range(n):
            weight = 0.0  # (BᵀP)_ik
            for j in range(n):
                weight += mode.B[j, i] * mode.P[j, k]
            missing = settings.setpoint[k]  # ((I - A) r)_k
            for j in range(n):
                missing -= mode.A[k, j] * settings.setpoint[j]
            right[i, 0] += weight * missing
            for j in range(m):
                left[i, j] += weight * mode.B[k, j]
    solved = solve_linear(left, right[:, :1])
    for i in range(m):
        mode.offset[i] = right[i, 0] if solved else 0.0
    return True


@leaf
def _stabilises_mean(F: FloatArray, settings: Regulation, rooms: Rooms) -> bool:
    """Return whether the gain of the trial stabilises the mean system."""
    mean, K, a = rooms.mean, rooms.trial.K, rooms.a
    mean_system(F, mean.A, mean.B)
    _augment(mean.A, mean.B, settings.integrated, rooms)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            for k in range(K.shape[0]):
                a[i, j] -= rooms.b[i, k] * K[k, j]
    return lyapunov(a, settings.Q, mean.P, rooms.riccati)


@leaf
def _use_backup(settings: Regulation, mode: RegulatorArrays) -> None:
    """Use the backup gain, which is 0 if there is none, without integrals."""
    for i in range(mode.K.shape[0]):
        for j in range(mode.K.shape[1]):
            mode.K[i, j] = settings.backup[i, j] if j < settings.backup.shape[1] else 0.0


@leaf
def _copy_mode(source: RegulatorArrays, target: RegulatorArrays) -> None:
    copy(source.A, target.A)
    copy(source.B, target.B)
    copy(source.V, target.V)
    copy(source.P, target.P)
    copy(source.K, target.K)
    for i in range(source.offset.size):
        target.offset[i] = source.offset[i]


@leaf
def renew(
    F: FloatArray, nu: float, count: int, settings: Regulation, memory: FloatArray,
    mode: RegulatorArrays, rooms: Rooms, rng_state: UIntArray,
) -> int:  # fmt: skip
    """Write the next mode; return the number of drawn systems without a stabilising gain.

    `mode` holds the last mode, or zeros. ν is 0 if the noise is known.

    >>> from bayescontrol.linear import LinearQuadratic
    >>> from bayescontrol.seeding import Stream
    >>> belief = LinearQuadratic([[1.0]], [[1.0]], prior="learned", backup=[[0.3]]).agent().belief
    >>> belief.sample(Stream(0)).K
    array([[0.3]])
    """
    m, trial = mode.K.shape[0], rooms.trial
    if memory[KNOWN] == 0.0:
        _use_backup(settings, mode)
        mode.source[0] = SEARCH
        for i in range(m):
            mode.offset[i] = 0.0
            mode.sd[i] = memory[SIZE]
            if memory[COST] > 0.0:
                mode.sd[i] *= math.sqrt(memory[COST] / (count * m * settings.R[i, i]))
            elif settings.high[i] - settings.low[i] < math.inf:
                mode.sd[i] *= 0.5 * (settings.high[i] - settings.low[i])
        return 0
    for i in range(m):
        mode.sd[i] = 0.0
    for failed in range(settings.tries):
        if nu > 0.0:
            draw_noise(F, nu, trial.V, rng_state)
        draw_system(F, trial.V, trial.A, trial.B, rng_state)
        if _solve(settings, trial, rooms):
            if _stabilises_mean(F, settings, rooms):
                _copy_mode(trial, mode)
                mode.source[0] = DRAWN
                return failed
            break
    else:
        failed = settings.tries
    mode.source[0] = REPLACED
    if settings.has_backup:
        _use_backup(settings, mode)
    else:
        mean_system(F, rooms.mean.A, rooms.mean.B)
        copy(trial.V, rooms.mean.V)
        if _solve(settings, rooms.mean, rooms):
            _copy_mode(rooms.mean, mode)
    return failed


@leaf
def choose_input(
    settings: Regulation, mode: RegulatorArrays, x: FloatArray, q: FloatArray, u: FloatArray,
    rng_state: UIntArray,
) -> None:  # fmt: skip
    """Write u = u_r - K (x - r) - K_q q + σ n, limited to [low, high].

    >>> from bayescontrol.linear import LinearQuadratic
    >>> from bayescontrol.seeding import Stream
    >>> limited = LinearQuadratic([[1.0]], [[1.0]], prior="learned", backup=[[0.5]], limits=(-1, 1))
    >>> limited.agent().belief.sample(Stream(0)).act([4.0], Stream(0))
    array([-1.])
    """
    n = x.size
    for i in range(u.size):
        value = mode.offset[i]
        for j in range(n):
            value -= mode.K[i, j] * (x[j] - settings.setpoint[j])
        for k in range(q.size):
            value -= mode.K[i, n + k] * q[k]
        if mode.sd[i] > 0.0:
            value += mode.sd[i] * normal(rng_state)
        u[i] = min(max(value, settings.low[i]), settings.high[i])


@leaf
def input_signal(F: FloatArray, n: int, m: int, nu: float, w: FloatArray, b: FloatArray) -> float:
    """Return the least bᵀW⁻¹b / λ of an input: b is its column of B, and Wλ the covariance of b.

    Without any effect, it is about n. w and b are scratch for m and n numbers.

    >>> import numpy as np
    >>> F = np.array([[1.0, 0.0, 0.0], [0.0, 5.0, 20.0], [0.0, 0.0, 2.0]])  # B = 4, W = 1, λ = 1/25
    >>> round(input_signal(F, 1, 1, 4.0, np.empty(1), np.empty(1)), 9)
    400.0
    """
    least, d = math.inf, n + m
    for i in range(m):
        variance, square = 0.0, 0.0
        for j in range(i, m):  # w is row i of U⁻¹, where U is the block of the inputs of R
            w[j] = 1.0 if j == i else 0.0
            for k in range(i, j):
                w[j] -= w[k] * F[n + k, n + j]
            w[j] /= F[n + j, n + j]
            variance += w[j] * w[j]
        for j in range(n):  # S⁻ᵀ b
            b[j] = 0.0
            for k in range(i, m):
                b[j] += w[k] * F[n + k, d + j]
            for k in range(j):
                b[j] -= F[d + k, d + j] * b[k]
            b[j] /= F[d + j, d + j]
            square += b[j] * b[j]
        least = min(least, nu * square / variance)
    return least


@leaf
def observe(
    F: FloatArray, count: int, settings: Regulation, memory: FloatArray, q: FloatArray,
    x: FloatArray, u: FloatArray, y: FloatArray, rooms: Rooms,
) -> None:  # fmt: skip
    """Learn from (x, u, y), observation number `count` from 0; update the memory and integrals.

    An integral rests while an input is at a limit, and until the scale is known.

    >>> from bayescontrol.linear import LinearQuadratic
    >>> belief = LinearQuadratic([[1.0]], [[1.0]], prior="learned").agent().belief
    >>> belief.observe([2.0], [1.0], [1.5])
    >>> belief.memory.tolist()
    [4.0, 0.0, 0.0]
    """
    n, m, t = x.size, u.size, count + 1
    learn(F, x, u, y, rooms.row, rooms.v, rooms.zero)
    if memory[KNOWN] == 0.0:
        for i in range(n):
            for j in range(n):
                e, f = x[i] - settings.setpoint[i], x[j] - settings.setpoint[j]
                memory[COST] += e * settings.Q[i, j] * f
        if t >= n + m:
            memory[SIZE] = min(_FULL, _GROWTH * memory[SIZE]) if t > n + m else _FIRST
        if t >= 2 * (2 * n + m) and (
            t >= _LONGEST * (n + m)
            or input_signal(F, n, m, float(t - n - m), rooms.row, rooms.v) >= _SIGNAL
        ):
            memory[KNOWN] = t
        return
    for i in range(m):
        if not settings.low[i] < u[i] < settings.high[i]:
            return
    for k in range(q.size):
        q[k] += x[settings.integrated[k]] - settings.setpoint[settings.integrated[k]]


@leaf
def interact(
    F: FloatArray, nu: float, count: int, settings: Regulation, schedule: int, number: float,
    memory: FloatArray, q: FloatArray, mode: RegulatorArrays, clock: IntArray,
    diagonal: FloatArray, rooms: Rooms, A: FloatArray, B: FloatArray, V: FloatArray,
    x: FloatArray, drawn_in: FloatArray, p_state: UIntArray, q_state: UIntArray,
    inputs: FloatArray, states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Fill inputs and states, a row per step, as `lqr.interact` does.

    `nu` and `count` are the values before the first step; `diagonal` is that of R at the last draw.

    >>> from bayescontrol import interact
    >>> from bayescontrol.linear import LinearQuadratic, double_integrator
    >>> system = double_integrator()
    >>> problem = LinearQuadratic(system.Q, system.R, prior="learned")
    >>> interact(problem.agent(), problem.environment(system), 5, seed=0)
    Record(5 steps: actions float64×1, observations float64×2)
    """
    for s in range(inputs.shape[0]):
        u, y = inputs[s], states[s]
        grown = growth(F, diagonal) if schedule == DETERMINANT else 0.0
        if (
            not clock[HELD]
            or mode.source[0] != DRAWN
            or is_due(schedule, number, clock[T], clock[DRAWN_AT], grown)
        ):
            freedom = nu + s if nu > 0.0 else 0.0
            clock[FAILED] += renew(F, freedom, count + s, settings, memory, mode, rooms, p_state)
            clock[REFUSED] += mode.source[0] == REPLACED
            clock[DRAWN_AT], clock[HELD] = clock[T], 1
            for i in range(diagonal.size):
                diagonal[i] = F[i, i]
            for i in range(x.size):
                drawn_in[i] = x[i]
        choose_input(settings, mode, x, q, u, p_state)
        clock[T] += 1
        if not is_within_limits(u):
            return s, INPUT_TOO_LARGE
        advance(A, B, V, x, u, y, q_state)
        if not is_within_limits(y):
            return s, STATE_TOO_LARGE
        observe(F, count + s, settings, memory, q, x, u, y, rooms)
        for i in range(x.size):
            x[i] = y[i]
    return inputs.shape[0], DONE
