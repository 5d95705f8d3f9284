"""The loop of adaptive linear-quadratic control: no mathematics, only calls of other kernels.

    when the schedule says so  [A B] ~ posterior, K by Riccati       u = -K x  (+ exploration)
    y = A* x + B* u + w        the posterior learns (x, u, y)        x ← y

Bit for bit what the readable agent and plant do. It stops, and says why, where only the readable
code can go on.
"""

from typing import NamedTuple

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.lqr import (
    Mode,
    advance,
    control,
    copy_mode,
    draw_mode,
    explore,
    growth,
    learn,
    mean_mode,
    within,
)
from bayescontrol.kernels.riccati import Room

#: Why the loop has ended: every step is done; no draw had a stabilising gain; the input, or the
#: state that came of it, is beyond what can be learnt.
DONE, NO_GAIN, TOO_MUCH, BEYOND = range(4)
#: When a mode is given up: after k steps, after as many as came before it, or when the
#: determinant of the precision has grown by a factor.
AGE, DOUBLING, DETERMINANT = range(3)
#: The places of the clock: actions so far, the time of the last draw, whether a mode is held,
#: and how many systems had no stabilising gain.
T, DRAWN_AT, HELD, FAILED = range(4)
CLOCK = 4


class How(NamedTuple):
    """What the agent is: its schedule and its number, draws or the mean, exploration, ν and Q, R.

    >>> How.__annotations__["sigma"]
    <class 'float'>
    """

    schedule: int
    number: float
    sampled: bool
    tries: int
    sigma: float
    warm_up: int
    nu: float  #: before the first of these steps; 0 where the noise is known
    Q: FloatArray
    R: FloatArray


class Rooms(NamedTuple):
    """Room for the steps of the loop; `diagonal` is of R when the mode in charge was drawn.

    >>> Rooms._fields[0]
    'riccati'
    """

    riccati: Room
    trial: Mode
    row: FloatArray
    v: FloatArray
    zero: FloatArray
    diagonal: FloatArray
    before: UIntArray  #: the agent's stream, as it was before the last draw


@leaf
def due(schedule: int, number: float, t: int, drawn_at: int, grown: float) -> bool:
    """Whether the mode drawn at that time is given up.

    >>> due(AGE, 3.0, 5, 2, 1.0), due(DOUBLING, 0.0, 7, 4, 1.0), due(DETERMINANT, 2.0, 9, 2, 2.5)
    (True, False, True)
    """
    if schedule == AGE:
        return t - drawn_at >= number
    if schedule == DOUBLING:
        return t - drawn_at >= max(1, drawn_at)
    return grown >= number


@leaf
def _renew(F: FloatArray, how: How, nu: float, mode: Mode, clock: IntArray, rooms: Rooms,
           p: UIntArray) -> bool:  # fmt: skip
    """Put another mode in charge. A mean without a gain leaves the one in charge, if there is."""
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
    F: FloatArray, how: How, mode: Mode, clock: IntArray, rooms: Rooms,
    A: FloatArray, B: FloatArray, V: FloatArray, x: FloatArray, drawn_in: FloatArray,
    p: UIntArray, q: UIntArray, inputs: FloatArray, states: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Fill inputs and states, one row a step; gives the steps done and why it ended.

    x is the state, and `drawn_in` the one in which the mode in charge was drawn; both move on.

    >>> from bayescontrol.linear import LinearAgent, LinearPlant, double_integrator
    >>> from bayescontrol.linear.agent import fused_loop
    >>> from bayescontrol.seeding import Stream
    >>> agent, plant = LinearAgent.on(double_integrator()), LinearPlant(double_integrator())
    >>> fused_loop(agent, plant)(agent, plant, 5, Stream(1), Stream(2))
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
    """As `interact`, for one gain and nothing to learn.

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
