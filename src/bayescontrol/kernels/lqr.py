"""Adaptive linear-quadratic control: learn a system, draw one, solve it, act.

    y = A x + B u + w,   w ~ N(0, W)          Θ = [A B],  z = (x, u),  d = n + m

    F = [[R, Z], [0, S]]        FᵀF = prior + Σ (z, y)(z, y)ᵀ,     F upper triangular
    Θᵀ | W ~ MN(R⁻¹Z, (RᵀR)⁻¹, W)             W ~ IW(SᵀS, ν)

One triangular factor holds the whole regression: the mean, the precision RᵀR and the scatter SᵀS of
the residuals. A row (z, y) is added by rotations, which are more accurate than sums of squares. A
covariance is given by a factor, W = VᵀV.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import AnyArray, FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import HALF_LOG_2PI, log, log_gamma_function, log_one_plus
from bayescontrol.kernels.random import Streams, gamma, normal
from bayescontrol.kernels.regression import absorb, dot
from bayescontrol.kernels.riccati import Room, copy, riccati

#: States and inputs beyond this are invalid: their squares would overflow.
LARGEST = 1e100


class LinearModeArrays(NamedTuple):
    """A system and its solution: A, B, V with W = VᵀV, the costs to go P and the gain K.

    >>> import numpy as np
    >>> LinearModeArrays(*(np.eye(1) for _ in range(5))).K
    array([[1.]])
    """

    A: FloatArray
    B: FloatArray
    V: FloatArray
    P: FloatArray
    K: FloatArray


@leaf
def is_within_limits(v: FloatArray) -> bool:
    """Return whether every entry is a number of at most `LARGEST` in absolute value.

    >>> import numpy as np
    >>> [is_within_limits(np.array(v)) for v in ([1.0, -2.0], [np.nan], [1e101])]
    [True, False, False]
    """
    for i in range(v.size):
        if not abs(v[i]) <= LARGEST:  # too large, or NaN
            return False
    return True


@leaf
def _copy_vector(source: AnyArray, target: AnyArray) -> None:
    """Copy the entries of `source` to `target`."""
    for i in range(source.size):
        target[i] = source[i]


@leaf
def control(K: FloatArray, x: FloatArray, u: FloatArray) -> None:
    """Write u = -K x.

    >>> import numpy as np
    >>> u = np.empty(1)
    >>> control(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), u)
    >>> u
    array([-11.])
    """
    for i in range(u.size):
        u[i] = -dot(K[i], x)


@leaf
def explore(u: FloatArray, sigma: float, warm_up: int, t: int, rng_state: UIntArray) -> None:
    """Add exploration noise: u ← u + s n, n standard normal.

    s = 1 up to step `warm_up`, then σ t^(-1/4), a variance of σ²/√t.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> u, v = np.zeros(2), np.zeros(2)
    >>> explore(u, 0.5, 0, 16, Stream(0).state)
    >>> explore(v, 0.5, 16, 16, Stream(0).state)
    >>> (v / u).tolist()
    [4.0, 4.0]
    """
    scale = 1.0 if t <= warm_up else sigma / math.sqrt(math.sqrt(t))
    if scale > 0.0:
        for i in range(u.size):
            u[i] += scale * normal(rng_state)


@leaf
def advance(
    A: FloatArray, B: FloatArray, V: FloatArray, x: FloatArray, u: FloatArray, y: FloatArray,
    rng_state: UIntArray,
) -> None:  # fmt: skip
    """Write y = A x + B u + Vᵀn, n standard normal.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> y, one = np.empty(1), np.ones((1, 1))
    >>> advance(2 * one, one, 0 * one, np.array([3.0]), np.array([1.0]), y, Stream(0).state)
    >>> y
    array([7.])
    """
    for i in range(y.size):
        total = 0.0
        for j in range(x.size):
            total += A[i, j] * x[j]
        for j in range(u.size):
            total += B[i, j] * u[j]
        y[i] = total
    for k in range(y.size):
        w = normal(rng_state)
        for i in range(y.size):
            y[i] += V[k, i] * w


@leaf
def learn(
    F: FloatArray, x: FloatArray, u: FloatArray, y: FloatArray, row: FloatArray, v: FloatArray,
    zero: FloatArray,
) -> None:  # fmt: skip
    """Add an observation: FᵀF ← FᵀF + (x, u, y)(x, u, y)ᵀ, in place.

    row, v and zero are scratch for d + n numbers; zero must contain zeros, and stays zero.

    >>> import numpy as np
    >>> F = np.eye(3)
    >>> x, u, y = np.array([1.0]), np.array([2.0]), np.array([3.0])
    >>> learn(F, x, u, y, np.empty(3), np.empty(3), np.zeros(3))
    >>> (F.T @ F).round(12).tolist()
    [[2.0, 2.0, 3.0], [2.0, 5.0, 6.0], [3.0, 6.0, 10.0]]
    """
    n, m = x.size, u.size
    for i in range(n):
        row[i], row[n + m + i] = x[i], y[i]
    for i in range(m):
        row[n + i] = u[i]
    absorb(F, zero, row, 1.0, 0.0, v)


@leaf
def log_predictive(
    F: FloatArray, V: FloatArray, nu: float, x: FloatArray, u: FloatArray, y: FloatArray,
    v: FloatArray,
) -> float:  # fmt: skip
    """Return ln P(y | x, u): N(Θ z, c W) if ν = 0 and W = VᵀV is known, else Student's t.

    c = 1 + zᵀ(RᵀR)⁻¹z. Student's t has ν - n + 1 degrees of freedom and the scatter c SᵀS. v is
    scratch for d + n numbers.

    >>> import numpy as np
    >>> F, x, u, y = np.eye(3), np.zeros(1), np.zeros(1), np.zeros(1)
    >>> round(log_predictive(F, np.eye(1), 0.0, x, u, y, np.empty(3)), 6)  # N(0; 0, 1)
    -0.918939
    """
    n, d = x.size, x.size + u.size
    factor = 1.0  # c
    for k in range(d):  # v = R⁻ᵀ z
        v[k] = x[k] if k < n else u[k - n]
        for i in range(k):
            v[k] -= F[i, k] * v[i]
        v[k] /= F[k, k]
        factor += v[k] * v[k]
    square, log_det = 0.0, n * log(factor)
    for k in range(n):  # e = y - Zᵀ v, then S⁻ᵀ e or V⁻ᵀ e
        e = y[k]
        for i in range(d):
            e -= F[i, d + k] * v[i]
        for i in range(k):
            e -= (V[i, k] if nu == 0.0 else F[d + i, d + k]) * v[d + i]
        diagonal = V[k, k] if nu == 0.0 else F[d + k, d + k]
        v[d + k] = e / diagonal
        square += v[d + k] * v[d + k]
        log_det += 2.0 * log(diagonal)
    if nu == 0.0:
        return float(-0.5 * (log_det + square / factor) - n * HALF_LOG_2PI)
    dof = nu + 1.0
    constant = log_gamma_function(0.5 * dof) - log_gamma_function(0.5 * (dof - n))
    constant -= 0.5 * n * log(math.pi)
    return float(constant - 0.5 * (log_det + dof * log_one_plus(square / factor)))


@leaf
def growth(F: FloatArray, diagonal: FloatArray) -> float:
    """Return det(RᵀR) divided by its value when R had this diagonal.

    >>> import numpy as np
    >>> growth(np.diag([2.0, 3.0, 1.0]), np.ones(2))
    36.0
    """
    ratio = 1.0
    for i in range(diagonal.size):
        ratio *= F[i, i] / diagonal[i]
    return ratio * ratio


@leaf
def draw_noise(F: FloatArray, nu: float, V: FloatArray, rng_state: UIntArray) -> None:
    """Draw W = VᵀV ~ IW(SᵀS, ν) and write V.

    V = T⁻¹S with Bartlett's triangle T of normals and √χ².

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> V = np.empty((1, 1))
    >>> draw_noise(np.diag([1.0, 1.0, 1e3]), 1e6, V, Stream(0).state)
    >>> abs(V.item() - 1.0) < 0.01
    True
    """
    n = V.shape[0]
    d = F.shape[0] - n
    for i in range(n):
        for k in range(n):
            V[i, k] = F[d + i, d + k] if k >= i else 0.0
        for j in range(i):
            t = normal(rng_state)
            for k in range(n):
                V[i, k] -= t * V[j, k]
        length = math.sqrt(2.0 * gamma(rng_state, 0.5 * (nu - i)))
        for k in range(n):
            V[i, k] /= length


@leaf
def _copy_z(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """Write Zᵀ to [A B]."""
    n, m = B.shape
    for i in range(n):
        for k in range(n):
            A[i, k] = F[k, n + m + i]
        for k in range(m):
            B[i, k] = F[n + k, n + m + i]


@leaf
def _substitute(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """Replace [A B]ᵀ by R⁻¹[A B]ᵀ, by back substitution."""
    n, m = B.shape
    d = n + m
    for i in range(n):
        for k in range(d - 1, -1, -1):
            value = A[i, k] if k < n else B[i, k - n]
            for j in range(k + 1, d):
                value -= F[k, j] * (A[i, j] if j < n else B[i, j - n])
            value /= F[k, k]
            if k < n:
                A[i, k] = value
            else:
                B[i, k - n] = value


@leaf
def mean_system(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """Write the mean and mode of the posterior, [A B]ᵀ = R⁻¹Z, to A and B.

    >>> import numpy as np
    >>> A, B = np.empty((1, 1)), np.empty((1, 1))
    >>> mean_system(np.array([[2.0, 0.0, 1.0], [0.0, 4.0, 2.0], [0.0, 0.0, 1.0]]), A, B)
    >>> A.item(), B.item()
    (0.5, 0.5)
    """
    _copy_z(F, A, B)
    _substitute(F, A, B)


@leaf
def draw_system(
    F: FloatArray, V: FloatArray, A: FloatArray, B: FloatArray, rng_state: UIntArray
) -> None:
    """Draw a system from the posterior and write it to A and B.

    [A B]ᵀ = R⁻¹(Z + N V), N standard normal: a draw of MN(R⁻¹Z, (RᵀR)⁻¹, VᵀV).

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> A, B = np.empty((1, 1)), np.empty((1, 1))
    >>> F = np.array([[1e9, 0.0, 5e8], [0.0, 1e9, 1e9], [0.0, 0.0, 1.0]])
    >>> draw_system(F, np.eye(1), A, B, Stream(0).state)
    >>> round(A.item(), 6), round(B.item(), 6)
    (0.5, 1.0)
    """
    n, m = B.shape
    _copy_z(F, A, B)
    for k in range(n + m):
        for j in range(n):
            noise = normal(rng_state)
            for i in range(n):
                if k < n:
                    A[i, k] += noise * V[j, i]
                else:
                    B[i, k - n] += noise * V[j, i]
    _substitute(F, A, B)


@leaf
def draw_mode(
    F: FloatArray, nu: float, Q: FloatArray, R: FloatArray, mode: LinearModeArrays, tries: int,
    room: Room, rng_state: UIntArray,
) -> int:  # fmt: skip
    """Draw systems until one has a stabilising gain; write it and its solution to `mode`.

    Return the number of failed draws, or -1 if all `tries` failed. With ν > 0 the noise is drawn
    too; with ν = 0 it is known, and mode.V is unchanged.

    >>> import numpy as np
    >>> from bayescontrol.kernels.riccati import room
    >>> from bayescontrol.seeding import Stream
    >>> mode, one = LinearModeArrays(*(np.ones((1, 1)) for _ in range(5))), np.ones((1, 1))
    >>> draw_mode(np.eye(3), 0.0, one, one, mode, 10, room(1, 1), Stream(0).state)
    0
    >>> bool(abs(mode.A - mode.B * mode.K).item() < 1)
    True
    """
    for failed in range(tries):
        if nu > 0.0:
            draw_noise(F, nu, mode.V, rng_state)
        draw_system(F, mode.V, mode.A, mode.B, rng_state)
        if riccati(mode.A, mode.B, Q, R, mode.P, mode.K, room):
            return failed
    return -1


@leaf
def mean_noise(F: FloatArray, nu: float, V: FloatArray) -> None:
    """Write V with VᵀV = E[W] = SᵀS / (ν - n - 1); if W has no mean, divide by ν instead.

    >>> import numpy as np
    >>> V = np.empty((1, 1))
    >>> mean_noise(np.diag([1.0, 1.0, 6.0]), 11.0, V)
    >>> V.item()
    2.0
    """
    n = V.shape[0]
    d = F.shape[0] - n
    divisor = nu - n - 1.0
    scale = math.sqrt(divisor if divisor > 0.0 else nu)
    for i in range(n):
        for k in range(n):
            V[i, k] = F[d + i, d + k] / scale


@leaf
def mean_mode(
    F: FloatArray, nu: float, Q: FloatArray, R: FloatArray, mode: LinearModeArrays, room: Room
) -> bool:
    """Write the mean system and its solution to `mode`; return False if no gain stabilises it.

    With ν > 0 the noise is its mean; with ν = 0 it is known, and mode.V is unchanged.

    >>> import numpy as np
    >>> from bayescontrol.kernels.riccati import room
    >>> mode, one = LinearModeArrays(*(np.ones((1, 1)) for _ in range(5))), np.ones((1, 1))
    >>> mean_mode(np.eye(3), 0.0, one, one, mode, room(1, 1)), mode.K.item()
    (True, 0.0)
    """
    if nu > 0.0:
        mean_noise(F, nu, mode.V)
    mean_system(F, mode.A, mode.B)
    return riccati(mode.A, mode.B, Q, R, mode.P, mode.K, room)


@leaf
def copy_mode(source: LinearModeArrays, target: LinearModeArrays) -> None:
    """Copy all arrays of `source` to `target`.

    >>> import numpy as np
    >>> one, two = (LinearModeArrays(*(c * np.ones((1, 1)) for _ in range(5))) for c in (1.0, 2.0))
    >>> copy_mode(two, one)
    >>> one.K.item()
    2.0
    """
    for i in range(len(source)):
        copy(source[i], target[i])


# ------------------------------------------------------------------------------------------------
# The loop of adaptive linear-quadratic control; it only calls other kernels.
#
#     when the schedule requires [A B] ~ posterior, K by Riccati       u = -K x  (+ exploration)
#     y = A* x + B* u + w        the posterior learns (x, u, y)        x ← y
#
# It equals the readable agent and plant bit for bit, and stops where only the readable code can
# continue.

#: Why the loop ended: all steps are done; no draw had a stabilising gain; the input or the next
#: state is too large.
DONE, NO_GAIN, INPUT_TOO_LARGE, STATE_TOO_LARGE = range(4)
#: When a mode is replaced: after k steps; after as many steps as preceded its draw; or when the
#: determinant of the precision has grown by a factor.
AGE, DOUBLING, DETERMINANT = range(3)
#: Indices of the clock: actions so far, the time of the last draw, whether there is a mode, and the
#: number of systems without a stabilising gain.
T, DRAWN_AT, HELD, FAILED = range(4)


class PlantArrays(NamedTuple):
    """The true plant: y = A x + B u + Vᵀn, n standard normal."""

    A: FloatArray
    B: FloatArray
    V: FloatArray


class LoopSettings(NamedTuple):
    """Settings of the agent.

    >>> LoopSettings.__annotations__["sigma"]
    <class 'float'>
    """

    schedule: int  #: AGE, DOUBLING or DETERMINANT
    number: float  #: the steps of AGE, or the factor of DETERMINANT
    sampled: bool  #: whether modes are drawn; otherwise the mean is used, with exploration
    tries: int  #: the limit of draws without a stabilising gain
    sigma: float  #: σ and the warm-up of `explore`
    warm_up: int
    nu: float  #: ν before the first step of the loop; 0 if the noise is known
    Q: FloatArray
    R: FloatArray


class Rooms(NamedTuple):
    """Scratch arrays of the loop, and what it remembers of the last draw.

    >>> Rooms._fields[0]
    'riccati'
    """

    riccati: Room
    trial: LinearModeArrays
    row: FloatArray
    v: FloatArray
    zero: FloatArray
    diagonal: FloatArray  #: the diagonal of R when the current mode was drawn
    before: UIntArray  #: the agent's stream before the last draw


@leaf
def is_due(schedule: int, number: float, t: int, drawn_at: int, grown: float) -> bool:
    """Return whether the schedule requires a new mode at time t.

    `grown` is the factor by which the determinant has grown; only DETERMINANT uses it.

    >>> is_due(AGE, 3.0, 5, 2, 1.0), is_due(DOUBLING, 0.0, 7, 4, 1.0)
    (True, False)
    >>> is_due(DETERMINANT, 2.0, 9, 2, 2.5)
    True
    """
    if schedule == AGE:
        return t - drawn_at >= number
    if schedule == DOUBLING:
        return t - drawn_at >= max(1, drawn_at)
    return grown >= number


@leaf
def _renew(
    F: FloatArray, settings: LoopSettings, nu: float, mode: LinearModeArrays, clock: IntArray,
    rooms: Rooms, p: UIntArray,
) -> bool:  # fmt: skip
    """Replace the current mode; return False if that fails.

    If all draws fail, the generator's state p is restored. If the mean has no stabilising gain, the
    current mode is used again; without a current mode this is a failure.
    """
    trial = rooms.trial
    if settings.sampled:
        _copy_vector(p, rooms.before)
        failed = draw_mode(F, nu, settings.Q, settings.R, trial, settings.tries, rooms.riccati, p)
        if failed < 0:
            _copy_vector(rooms.before, p)
            return False
        clock[FAILED] += failed
        copy_mode(trial, mode)
    elif mean_mode(F, nu, settings.Q, settings.R, trial, rooms.riccati):
        copy_mode(trial, mode)
    elif clock[HELD]:
        clock[FAILED] += 1
    else:
        return False
    clock[DRAWN_AT], clock[HELD] = clock[T], 1
    for i in range(rooms.diagonal.size):
        rooms.diagonal[i] = F[i, i]
    return True


@leaf
def interact(
    F: FloatArray, settings: LoopSettings, mode: LinearModeArrays, clock: IntArray, rooms: Rooms,
    plant: PlantArrays, x: FloatArray, drawn_in: FloatArray, streams: Streams,
    inputs: FloatArray, states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Fill inputs and states, a row per step; return the steps done and why the loop ended.

    x is the current state; `drawn_in` is the state in which the current mode was drawn. Both are
    updated.

    >>> from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator
    >>> from bayescontrol._compiled import find_loop
    >>> from bayescontrol.seeding import Stream
    >>> system = double_integrator()
    >>> agent = LinearQuadratic.on(system, prior=SystemPrior()).agent()
    >>> plant = LinearPlant(system)
    >>> find_loop(agent, plant)(agent, plant, 5, Stream(1), Stream(2))
    Record(5 steps: actions float64×1, observations float64×2)
    """
    p, q = streams
    for s in range(inputs.shape[0]):
        u, y = inputs[s], states[s]
        grown = growth(F, rooms.diagonal) if settings.schedule == DETERMINANT else 0.0
        t, drawn_at = clock[T], clock[DRAWN_AT]
        if not clock[HELD] or is_due(settings.schedule, settings.number, t, drawn_at, grown):
            nu = settings.nu + s if settings.nu > 0.0 else 0.0
            if not _renew(F, settings, nu, mode, clock, rooms, p):
                return s, NO_GAIN
            _copy_vector(x, drawn_in)
        control(mode.K, x, u)
        clock[T] += 1
        if not settings.sampled:
            explore(u, settings.sigma, settings.warm_up, clock[T], p)
        if not is_within_limits(u):
            return s, INPUT_TOO_LARGE
        advance(plant.A, plant.B, plant.V, x, u, y, q)
        if not is_within_limits(y):
            return s, STATE_TOO_LARGE
        learn(F, x, u, y, rooms.row, rooms.v, rooms.zero)
        _copy_vector(y, x)
    return inputs.shape[0], DONE


@leaf
def regulate(
    K: FloatArray, plant: PlantArrays, x: FloatArray, q: UIntArray, inputs: FloatArray,
    states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Run the plant with the fixed gain K: fill inputs and states, a row per step.

    Return the steps done and why the loop ended. x, the current state, is updated.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> one, inputs, states = np.ones((1, 1)), np.empty((3, 1)), np.empty((3, 1))
    >>> plant, x = PlantArrays(one, one, 0 * one), np.array([8.0])
    >>> regulate(0.5 * one, plant, x, Stream(0).state, inputs, states)
    (3, 0)
    >>> states[:, 0].tolist()
    [4.0, 2.0, 1.0]
    """
    for s in range(inputs.shape[0]):
        control(K, x, inputs[s])
        if not is_within_limits(inputs[s]):
            return s, INPUT_TOO_LARGE
        advance(plant.A, plant.B, plant.V, x, inputs[s], states[s], q)
        _copy_vector(states[s], x)
    return inputs.shape[0], DONE
