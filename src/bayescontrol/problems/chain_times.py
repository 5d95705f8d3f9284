"""How long the rule takes to identify a chain, exactly, under each schedule.

    every step    E T = 2^k - 1                         first reward: 2^k - 1 + k/2
    Every(j)      E T = (2^r - 1) j - (r j - k),  r = ⌈k/j⌉
    Geometric(p)  E T = Σ_{i<k} s^-i,  s = 1 - p/2: the chance that a run goes on
    doubling      T < 3k, surely

Until T the posterior is what the prior was, uniform, so every draw is a fair coin and the
trailing run is a Markov chain of its own: the environment plays no part.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import MissingCapability
from bayescontrol.problems.chain import GrowingChain
from bayescontrol.schedules import Every, Geometric, Held, Schedule, doubling, every_step


class Waiting(NamedTuple):
    """Mean and standard deviation of a waiting time, in steps.

    >>> Waiting(7.0, 4.69).mean
    7.0
    """

    mean: float
    sd: float


def identification_time(k: int, schedule: Schedule = every_step) -> Waiting:
    """E T and its standard deviation for the rule with this schedule, exactly.

    A run of n + 1 blocks takes G tries, geometric with chance s, of a run of n and one block:
    μ_{n+1} = (μ_n + 1)/s,  σ²_{n+1} = σ²_n/s + (1 - s)(μ_n + 1)²/s². The first block is free.

    >>> identification_time(3).mean, identification_time(3, Every(3)), identification_time(1).sd
    (7.0, Waiting(mean=3.0, sd=0.0), 0.0)
    >>> identification_time(12, doubling).mean
    19.3125
    """
    if schedule is doubling:  # a block of 2^n ≥ k steps begins at 2^n < 2k
        law = identification_law(lambda _t: k, schedule, 3 * k)
        t = np.arange(1, 3 * k + 1)
        mean = float(t @ law)
        return Waiting(mean, math.sqrt(float((t - mean) ** 2 @ law)))
    j, s = (schedule.k, 0.5) if isinstance(schedule, Every) else (1, _continues(schedule))
    r = -(-k // j)
    mean, variance = 0.0, 0.0
    for _ in range(r - 1):
        variance = variance / s + (1.0 - s) * ((mean + 1.0) / s) ** 2
        mean = (mean + 1.0) / s
    return Waiting((1.0 + mean) * j - (r * j - k), math.sqrt(variance) * j)


def first_reward_time(k: int) -> Waiting:
    """2^k - 1 + k/2: the first long run is of the wrong action half the time, then k more steps.

    >>> first_reward_time(10).mean
    1028.0
    """
    mean, sd = identification_time(k)
    return Waiting(mean + k / 2, math.hypot(sd, k / 2))


def identification_law(
    required: Callable[[int], int], schedule: Schedule, steps: int
) -> FloatArray:
    """P(T = t) for t = 1 … steps, where `required(t)` = k_t equal actions identify at step t.

    The trailing run n is a Markov chain: n + 1 with probability 1 - q_t/2, else 1, where q_t is
    the probability that a mode is drawn before step t; absorbed at n ≥ k_t. No subtraction
    anywhere, so tiny probabilities keep their digits.

    >>> identification_law(lambda t: 2, every_step, 4).tolist()
    [0.0, 0.5, 0.25, 0.125]
    """
    q = _redraws(schedule, steps)
    law = np.zeros(steps)
    u = np.zeros(steps + 2)  # u[n] = P(not identified, run n)
    u[0] = 1.0
    longest = 0
    for t in range(1, steps + 1):
        switch = 0.5 * q[t - 1] if t > 1 else 0.0
        fresh = switch * u[: longest + 1].sum()
        u[1 : longest + 2] = (1.0 - switch) * u[: longest + 1]
        u[0] = 0.0
        u[1] += fresh
        k = min(required(t), longest + 2)
        law[t - 1] = u[k : longest + 2].sum()
        u[k : longest + 2] = 0.0
        longest = k - 1
    return law


def tail_bound(growing: GrowingChain, schedule: Schedule, steps: int) -> float:
    """An upper bound of P(steps < T < ∞) in the growing chain, for modes held a bounded time.

    P(the last n actions are equal) ≤ c ρ^n and k_t ≥ scale √t, so the sum over t > steps is at
    most c ∫ ρ^(scale √t) dt = 2c (z + 1) e^-z / λ²,  z = λ √steps,  λ = -scale ln ρ.

    >>> f"{tail_bound(GrowingChain(), every_step, 100):.0e}"
    '5e-30'
    """
    if schedule is doubling:
        raise MissingCapability(
            "doubling holds modes without bound, and identifies: sum its identification_law"
        )
    if isinstance(schedule, Every):  # at least ⌊(n-1)/j⌋ draws inside any n steps
        rho, c = 2.0 ** (-1.0 / schedule.k), 2.0
    else:
        rho = _continues(schedule)
        c = 1.0 / rho
    lam = -growing.scale * math.log(rho)
    z = lam * math.sqrt(steps)
    return min(1.0, 2.0 * c * (z + 1.0) * math.exp(-z) / lam**2)


def _redraws(schedule: Schedule, steps: int) -> FloatArray:
    """q_t: the probability that a mode is drawn before action t = 0 … steps - 1."""
    q = np.ones(steps)
    if isinstance(schedule, Geometric):
        q[1:] = schedule.p
        return q
    if schedule not in (every_step, doubling) and not isinstance(schedule, Every):
        raise MissingCapability(
            f"no exact law is known for the schedule {schedule!r}: simulate it, or use every_step, "
            "doubling, Every(j) or Geometric(p)"
        )
    nobody: Any = None  # these schedules toss no coin
    drawn_at = 0
    for t in range(1, steps):
        if schedule(Held(t, t - drawn_at, None, None), nobody):
            drawn_at = t
        else:
            q[t] = 0.0
    return q


def _continues(schedule: Schedule) -> float:
    """s = 1 - q/2: the chance that a run goes on, where that is the same at every step."""
    return 1.0 - float(_redraws(schedule, 2)[1]) / 2.0
