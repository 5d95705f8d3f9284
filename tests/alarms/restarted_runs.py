"""A compiled loop of the control rule on a motor, watched by a `RestartedAlarm`: many long runs.

It calls the kernels of the alarm. `test_restarted.py` compares it with the readable classes.
"""

import math

import numpy as np

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import jit
from bayescontrol.kernels.random import normal, uniform
from bayescontrol.kernels.restarts import absorb_rows, log_student, renew, weigh
from bayescontrol.seeding import Stream

GAINS = np.array([2.0, 4.0, 8.0])
SIGMA = 0.05


@jit
def first_alarm(
    log_c: float, hazard: float, horizon: int, state: UIntArray, events: FloatArray
) -> int:
    """Run until M_t ≥ c, at most `horizon` steps; return the number of steps.

    The true mode is drawn from the prior, and again with probability `hazard` at each step. The
    first rows of `events` receive x, u, o and ln M_t.
    """
    modes, places = GAINS.size, 64
    columns = modes if hazard == 0.0 else 1
    starts, n = np.zeros(places, np.int64), np.zeros(places, np.int64)
    starts[0], everywhere = 1, np.ones(columns)
    F, log_q, log_m = np.zeros((6, 6, places)), np.empty(places), np.empty(columns)
    log_r = np.full((places, columns), -np.inf)
    log_r[0] = 0.0
    row, log_p, x = np.empty(6), np.empty(modes), np.zeros(2)
    w, truth = np.full(modes, 1.0 / modes), int(modes * uniform(state))
    for t in range(1, horizon + 1):
        if t > 1 and uniform(state) < hazard:
            truth = int(modes * uniform(state))
        drawn, m = uniform(state), 0
        while m < modes - 1 and drawn >= w[m]:
            drawn -= w[m]
            m += 1
        u = (-2.0 * x[0] - x[1]) / GAINS[m]
        row[0], row[1], row[2], row[3] = 1.0, x[0], x[1], u
        row[4] = x[0] + 0.1 * x[1] + SIGMA * normal(state)
        row[5] = x[1] + 0.1 * (GAINS[truth] * u - x[1]) + SIGMA * normal(state)
        for m in range(modes):
            e = row[4] - x[0] - 0.1 * x[1]
            f = row[5] - x[1] - 0.1 * (GAINS[m] * u - x[1])
            log_p[m] = -(e * e + f * f) / (2 * SIGMA**2) - math.log(2 * math.pi * SIGMA**2)
        top = log_p.max()
        after = w * np.exp(log_p - top)
        log_student(F, n, row, 4, log_q)
        if hazard == 0.0:
            weigh(starts, log_r, log_q, log_p, everywhere, log_m)
        else:
            log_mean = np.array([math.log(after.sum()) + top])
            weigh(starts, log_r, log_q, log_mean, everywhere, log_m)
        w = after / after.sum()
        w = (1.0 - hazard) * w + hazard / modes
        absorb_rows(F, n, row)
        place = renew(starts, log_r, t, 8)
        F[:, :, place] = 0.0
        n[place] = 0
        if t <= len(events):
            events[t - 1, :5], events[t - 1, 5] = row[1:], log_m.min()
        if log_m.min() >= log_c:
            return t
        x[:] = row[4:]
    return horizon


def mean_time(runs: int, horizon: int, bound: float, hazard: float, first: int = 0) -> FloatArray:
    """min(T, horizon) of each run, T the time of the first false alarm."""
    log_c, events = math.log(bound), np.empty((0, 6))
    seeds = range(first, first + runs)
    times = [first_alarm(log_c, hazard, horizon, Stream(s).state, events) for s in seeds]
    return np.array(times, np.float64)
