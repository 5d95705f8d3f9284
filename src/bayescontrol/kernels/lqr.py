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

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.random import gamma, normal
from bayescontrol.kernels.regression import absorb
from bayescontrol.kernels.riccati import Room, copy, riccati

#: States and inputs beyond this are invalid: their squares would overflow.
LARGEST = 1e100


class Mode(NamedTuple):
    """A system and its solution: A, B, V with W = VᵀV, the costs to go P and the gain K.

    >>> import numpy as np
    >>> Mode(*(np.eye(1) for _ in range(5))).K
    array([[1.]])
    """

    A: FloatArray
    B: FloatArray
    V: FloatArray
    P: FloatArray
    K: FloatArray


@leaf
def within(v: FloatArray) -> bool:
    """Whether every entry is a number of at most `LARGEST`.

    >>> import numpy as np
    >>> within(np.array([1.0, -2.0])), within(np.array([np.nan])), within(np.array([1e101]))
    (True, False, False)
    """
    for i in range(v.size):
        if not abs(v[i]) <= LARGEST:
            return False
    return True


@leaf
def control(K: FloatArray, x: FloatArray, u: FloatArray) -> None:
    """u = -K x.

    >>> import numpy as np
    >>> u = np.empty(1)
    >>> control(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), u)
    >>> u
    array([-11.])
    """
    for i in range(u.size):
        total = 0.0
        for j in range(x.size):
            total += K[i, j] * x[j]
        u[i] = -total


@leaf
def explore(u: FloatArray, sigma: float, warm_up: int, t: int, state: UIntArray) -> None:
    """u ← u + s n, n standard normal: s = 1 at first, then σ t^(-1/4), a variance of σ²/√t.

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
            u[i] += scale * normal(state)


@leaf
def advance(
    A: FloatArray, B: FloatArray, V: FloatArray, x: FloatArray, u: FloatArray, y: FloatArray,
    state: UIntArray,
) -> None:  # fmt: skip
    """y = A x + B u + Vᵀn, n standard normal.

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
        w = normal(state)
        for i in range(y.size):
            y[i] += V[k, i] * w


@leaf
def learn(
    F: FloatArray, x: FloatArray, u: FloatArray, y: FloatArray, row: FloatArray, v: FloatArray,
    zero: FloatArray,
) -> None:  # fmt: skip
    """FᵀF ← FᵀF + (x, u, y)(x, u, y)ᵀ, in place; row, v and zero are scratch for d + n numbers.

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
def growth(F: FloatArray, diagonal: FloatArray) -> float:
    """det(RᵀR) relative to its value when R had this diagonal.

    >>> import numpy as np
    >>> growth(np.diag([2.0, 3.0, 1.0]), np.ones(2))
    36.0
    """
    ratio = 1.0
    for i in range(diagonal.size):
        ratio *= F[i, i] / diagonal[i]
    return ratio * ratio


@leaf
def draw_noise(F: FloatArray, nu: float, V: FloatArray, state: UIntArray) -> None:
    """W = VᵀV ~ IW(SᵀS, ν): V = T⁻¹S with Bartlett's triangle T of normals and √χ².

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
            t = normal(state)
            for k in range(n):
                V[i, k] -= t * V[j, k]
        length = math.sqrt(2.0 * gamma(state, 0.5 * (nu - i)))
        for k in range(n):
            V[i, k] /= length


@leaf
def _copy_z(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """[A B] ← Zᵀ."""
    n, m = B.shape
    for i in range(n):
        for k in range(n):
            A[i, k] = F[k, n + m + i]
        for k in range(m):
            B[i, k] = F[n + k, n + m + i]


@leaf
def _substitute(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """[A B]ᵀ ← R⁻¹[A B]ᵀ, in place."""
    n, m = B.shape
    d = n + m
    for i in range(n):
        for k in range(d - 1, -1, -1):
            rest = A[i, k] if k < n else B[i, k - n]
            for j in range(k + 1, d):
                rest -= F[k, j] * (A[i, j] if j < n else B[i, j - n])
            rest /= F[k, k]
            if k < n:
                A[i, k] = rest
            else:
                B[i, k - n] = rest


@leaf
def mean_system(F: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """[A B]ᵀ = R⁻¹Z: the mean and mode of the posterior.

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
    F: FloatArray, V: FloatArray, A: FloatArray, B: FloatArray, state: UIntArray
) -> None:
    """[A B]ᵀ = R⁻¹(Z + N V), N standard normal: a draw of MN(R⁻¹Z, (RᵀR)⁻¹, VᵀV).

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
            noise = normal(state)
            for i in range(n):
                if k < n:
                    A[i, k] += noise * V[j, i]
                else:
                    B[i, k - n] += noise * V[j, i]
    _substitute(F, A, B)


@leaf
def draw_mode(
    F: FloatArray, nu: float, Q: FloatArray, R: FloatArray, mode: Mode, tries: int, room: Room,
    state: UIntArray,
) -> int:  # fmt: skip
    """Draw a system with a stabilising gain; return the failed draws, -1 if all `tries` failed.

    With ν > 0 the noise is drawn too; with ν = 0 it is known, and mode.V is unchanged.

    >>> import numpy as np
    >>> from bayescontrol.kernels.riccati import room
    >>> from bayescontrol.seeding import Stream
    >>> mode, one = Mode(*(np.ones((1, 1)) for _ in range(5))), np.ones((1, 1))
    >>> draw_mode(np.eye(3), 0.0, one, one, mode, 10, room(1, 1), Stream(0).state)
    0
    >>> bool(abs(mode.A - mode.B * mode.K).item() < 1)
    True
    """
    for failed in range(tries):
        if nu > 0.0:
            draw_noise(F, nu, mode.V, state)
        draw_system(F, mode.V, mode.A, mode.B, state)
        if riccati(mode.A, mode.B, Q, R, mode.P, mode.K, room):
            return failed
    return -1


@leaf
def mean_noise(F: FloatArray, nu: float, V: FloatArray) -> None:
    """E[W] = VᵀV = SᵀS / (ν - n - 1); divided by ν if there is no mean.

    >>> import numpy as np
    >>> V = np.empty((1, 1))
    >>> mean_noise(np.diag([1.0, 1.0, 6.0]), 11.0, V)
    >>> V.item()
    2.0
    """
    n = V.shape[0]
    d = F.shape[0] - n
    spare = nu - n - 1.0
    scale = math.sqrt(spare if spare > 0.0 else nu)
    for i in range(n):
        for k in range(n):
            V[i, k] = F[d + i, d + k] / scale


@leaf
def mean_mode(
    F: FloatArray, nu: float, Q: FloatArray, R: FloatArray, mode: Mode, room: Room
) -> bool:
    """The mean system and its gain; False if no gain stabilises it.

    With ν > 0 the noise is its mean; with ν = 0 it is known, and mode.V is unchanged.

    >>> import numpy as np
    >>> from bayescontrol.kernels.riccati import room
    >>> mode, one = Mode(*(np.ones((1, 1)) for _ in range(5))), np.ones((1, 1))
    >>> mean_mode(np.eye(3), 0.0, one, one, mode, room(1, 1)), mode.K.item()
    (True, 0.0)
    """
    if nu > 0.0:
        mean_noise(F, nu, mode.V)
    mean_system(F, mode.A, mode.B)
    return riccati(mode.A, mode.B, Q, R, mode.P, mode.K, room)


@leaf
def copy_mode(source: Mode, target: Mode) -> None:
    """target ← source.

    >>> import numpy as np
    >>> one, two = (Mode(*(c * np.ones((1, 1)) for _ in range(5))) for c in (1.0, 2.0))
    >>> copy_mode(two, one)
    >>> one.K.item()
    2.0
    """
    copy(source.A, target.A)
    copy(source.B, target.B)
    copy(source.V, target.V)
    copy(source.P, target.P)
    copy(source.K, target.K)


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
DONE, NO_GAIN, TOO_MUCH, BEYOND = range(4)
#: When a mode is replaced: after k steps, after as many as preceded it, or when the determinant of
#: the precision has grown by a factor.
AGE, DOUBLING, DETERMINANT = range(3)
#: Indices of the clock: actions so far, the time of the last draw, whether there is a mode, and the
#: number of systems without a stabilising gain.
T, DRAWN_AT, HELD, FAILED = range(4)


class LoopSettings(NamedTuple):
    """Settings of the agent: schedule and its parameter, drawn or mean, exploration, ν, Q and R.

    >>> LoopSettings.__annotations__["sigma"]
    <class 'float'>
    """

    schedule: int
    number: float
    sampled: bool
    tries: int
    sigma: float
    warm_up: int
    nu: float  #: before the first of these steps; 0 if the noise is known
    Q: FloatArray
    R: FloatArray


class Rooms(NamedTuple):
    """Scratch arrays of the loop; `diagonal` is that of R when the current mode was drawn.

    >>> Rooms._fields[0]
    'riccati'
    """

    riccati: Room
    trial: Mode
    row: FloatArray
    v: FloatArray
    zero: FloatArray
    diagonal: FloatArray
    before: UIntArray  #: the agent's stream before the last draw


@leaf
def due(schedule: int, number: float, t: int, drawn_at: int, grown: float) -> bool:
    """Whether the schedule requires a new mode.

    >>> due(AGE, 3.0, 5, 2, 1.0), due(DOUBLING, 0.0, 7, 4, 1.0), due(DETERMINANT, 2.0, 9, 2, 2.5)
    (True, False, True)
    """
    if schedule == AGE:
        return t - drawn_at >= number
    if schedule == DOUBLING:
        return t - drawn_at >= max(1, drawn_at)
    return grown >= number


@leaf
def _renew(F: FloatArray, how: LoopSettings, nu: float, mode: Mode, clock: IntArray, rooms: Rooms,
           p: UIntArray) -> bool:  # fmt: skip
    """Replace the current mode. If the mean has no gain, the current mode stays."""
    trial = rooms.trial
    if how.sampled:
        for i in range(4):
            rooms.before[i] = p[i]
        failed = draw_mode(F, nu, how.Q, how.R, trial, how.tries, rooms.riccati, p)
        if failed < 0:
            for i in range(4):
                p[i] = rooms.before[i]
            return False
        clock[FAILED] += failed
        copy_mode(trial, mode)
    elif mean_mode(F, nu, how.Q, how.R, trial, rooms.riccati):
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
    F: FloatArray, how: LoopSettings, mode: Mode, clock: IntArray, rooms: Rooms,
    A: FloatArray, B: FloatArray, V: FloatArray, x: FloatArray, drawn_in: FloatArray,
    p: UIntArray, q: UIntArray, inputs: FloatArray, states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Fill inputs and states, a row per step; return the steps done and why the loop ended.

    x is the state and `drawn_in` the one in which the current mode was drawn; both are updated.

    >>> from bayescontrol.linear import LinearPlant, LinearQuadratic, double_integrator
    >>> from bayescontrol.fused import find_loop
    >>> from bayescontrol.seeding import Stream
    >>> system = double_integrator()
    >>> agent, plant = LinearQuadratic.on(system).agent(), LinearPlant(system)
    >>> find_loop(agent, plant)(agent, plant, 5, Stream(1), Stream(2))
    Record(5 steps: actions float64×1, observations float64×2)
    """
    for s in range(inputs.shape[0]):
        u, y = inputs[s], states[s]
        grown = growth(F, rooms.diagonal) if how.schedule == DETERMINANT else 0.0
        if not clock[HELD] or due(how.schedule, how.number, clock[T], clock[DRAWN_AT], grown):
            nu = how.nu + s if how.nu > 0.0 else 0.0
            if not _renew(F, how, nu, mode, clock, rooms, p):
                return s, NO_GAIN
            for i in range(x.size):
                drawn_in[i] = x[i]
        control(mode.K, x, u)
        clock[T] += 1
        if not how.sampled:
            explore(u, how.sigma, how.warm_up, clock[T], p)
        if not within(u):
            return s, TOO_MUCH
        advance(A, B, V, x, u, y, q)
        if not within(y):
            return s, BEYOND
        learn(F, x, u, y, rooms.row, rooms.v, rooms.zero)
        for i in range(x.size):
            x[i] = y[i]
    return inputs.shape[0], DONE


@leaf
def regulate(
    K: FloatArray, A: FloatArray, B: FloatArray, V: FloatArray, x: FloatArray, q: UIntArray,
    inputs: FloatArray, states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """As `interact`, with a fixed gain and without learning.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> one, inputs, states = np.ones((1, 1)), np.empty((3, 1)), np.empty((3, 1))
    >>> regulate(0.5 * one, one, one, 0 * one, np.array([8.0]), Stream(0).state, inputs, states)
    (3, 0)
    >>> states[:, 0].tolist()
    [4.0, 2.0, 1.0]
    """
    for s in range(inputs.shape[0]):
        control(K, x, inputs[s])
        if not within(inputs[s]):
            return s, TOO_MUCH
        advance(A, B, V, x, inputs[s], states[s], q)
        for i in range(x.size):
            x[i] = states[s, i]
    return inputs.shape[0], DONE
