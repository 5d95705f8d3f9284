"""Brackets of all indices of a table: march λ from the smallest index to the largest.

    λ₀ < λ₁ < λ₂ < …      at each λ one pass gives the sign of ν - λ for all states

A state whose sign has changed is bracketed by chords of D (see `kernels.gittins`). The steps are as
long as the brackets of the last ones allow; the few that are too wide at the end are split, by
passes that begin at a later level. Brackets only shrink. The gap of the passes is bounded once for
an interval of some ten steps.
"""

import math

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.gittins.passes import Problem, Room, Sweep
from bayescontrol.errors import BayesControlError

#: Steps to an interval, and states of a level whose lower bound is looked after.
STEPS, DEPTH = 10, 4
#: At most so many rounds of splitting, and of trying how many levels are enough.
ROUNDS, PROBES = 40, 60
#: What the gap may cost an index, as a share of the tolerance: less lets the steps be longer.
SHARE = 0.005
#: The rounding of the last few operations on a bracket.
LAST = 1e-15


class NotCertified(BayesControlError, ArithmeticError):
    """The brackets do not become as narrow as asked for, in double precision.

    >>> issubclass(NotCertified, ArithmeticError)
    True
    """


def march(problem: Problem, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """(lower, upper) for every state up to `problem.pulls`, half their distance ≤ tolerance.

    >>> lower, upper = march(Problem(1.0, 1.0, 0.9, 20), 1e-4)
    >>> bool(lower[0] < 0.70289 < upper[0]), bool((upper - lower).max() <= 2e-4)
    (True, True)
    """
    states = (problem.pulls + 1) * (problem.pulls + 2) // 2
    lower, upper = np.zeros(states), np.ones(states)
    if problem.lookahead == problem.pulls:  # nothing is left to learn at the last level: ν = μ
        n = problem.pulls
        mu = (problem.alpha + np.arange(n + 1)) / (problem.m0 + n)
        lower[n * (n + 1) // 2 :] = upper[n * (n + 1) // 2 :] = mu
    room = _deep_enough(problem, tolerance)
    if room.rows:
        _visit(room, lower, upper, tolerance)
    undecided = 1
    for again in range(ROUNDS):
        wide = np.flatnonzero(upper - lower > 2.0 * (tolerance - LAST))
        if not wide.size:
            return lower - LAST, upper + LAST
        if undecided:
            room = room.deeper(min(2.0 + again, 6.0))
        undecided = _split(room, lower, upper, wide, tolerance)
    raise NotCertified(
        f"the indices of {problem} cannot be certified to {tolerance}: ask for a larger tolerance"
    )


def _split(
    room: Room, lower: FloatArray, upper: FloatArray, wide: IntArray, tolerance: float
) -> int:
    """A pass inside every bracket that is too wide, as few of them as will do.

    λ serves a bracket if both its parts are narrow enough; a bracket too wide for that is halved.
    Gives how often a pass could not tell on which side of λ an index lies.
    """
    levels = (np.sqrt(8.0 * wide + 1.0).astype(np.int64) - 1) // 2
    reach = 2.0 * (tolerance - LAST)
    middle = 0.5 * (lower[wide] + upper[wide])
    first = np.minimum(upper[wide] - reach, middle)
    last = np.maximum(lower[wide] + reach, middle)
    lam, undecided = -math.inf, 0
    for i in np.argsort(last):
        if first[i] > lam:
            lam = float(0.5 * (last[i] + middle[i]))
            found = _interval(room, lam, 0.0)
            undecided += kernels.gittins.split(
                lower, upper, levels, wide - levels * (levels + 1) // 2,
                lam, found.b, found.near, found.e,
            )  # fmt: skip
    return undecided


def _deep_enough(problem: Problem, tolerance: float) -> Room:
    """Passes that begin late enough for an index in the middle."""
    # About half of what the gap may cost: D falls about as fast in λ as g does in μ.
    ghost = 0.4 * SHARE * tolerance * min(kernels.gittins.rate(problem.gamma), 1.0)
    levels = problem.lookahead
    room = Room(problem, problem.pulls + 50 if levels is None else levels, ghost)
    lam = (problem.alpha + 0.5 * problem.pulls) / (problem.m0 + problem.pulls)
    for _ in range(PROBES):
        before = _interval(room, lam - 0.5 * tolerance, tolerance)
        now = room.sweep(lam)
        now.e = before.e
        if levels is not None or _slack(before, now) <= SHARE * tolerance:
            break
        room = room.deeper(0.3, 1.0)
    return room


def _slack(before: Sweep, now: Sweep) -> float:
    return kernels.gittins.slack(before.lam, now.lam, before.b, before.near, now.b, now.near, now.e)


def _visit(room: Room, lower: FloatArray, upper: FloatArray, tolerance: float) -> None:
    """March from the smallest posterior mean until nothing goes on."""
    problem, n = room.problem, np.arange(room.rows)
    h, lam, extra, middle = tolerance, problem.least, 0.0, room
    before = _interval(room, lam - min(h, 0.5 * lam), h)
    now = _interval(room, lam, h)
    spare: Sweep | None = None
    while True:
        kernels.gittins.lift(
            lower, before.lam, now.lam, before.b, before.near,
            now.b, now.near, now.ref, now.e, DEPTH,
        )  # fmt: skip
        then = _step(room, now.lam + h, now, spare)
        if then is None:
            missing = _missing(_slack(before, now) / (SHARE * tolerance))
            if abs(missing) > 0.2:
                extra = max(-0.5, min(2.0, extra + missing))
                room = middle.deeper(extra, 1.0)
            then = _interval(room, now.lam + h, h)
        error = kernels.gittins.settle(
            lower, upper, problem.alpha, problem.m0, problem.gamma,
            np.array([before.lam, now.lam, then.lam]),
            before.b, before.near, now.b, now.below, now.ref, now.e, then.b, then.below,
        )  # fmt: skip
        if (before.b[: n.size] > n).all():
            return
        before, now, spare = now, then, before
        h *= min(1.2, max(0.6, 0.85 * math.sqrt(tolerance / error))) if error > 0.0 else 1.2
        h = max(
            h, tolerance
        )  # at such steps the sign alone will do: it is the gap that is too wide


def _missing(excess: float) -> float:
    """ln excess, within reason: the gap falls as γ to the number of levels."""
    return min(0.5, max(-0.5, math.log(excess))) if excess > 0.0 else 0.0


def _step(room: Room, lam: float, now: Sweep, spare: Sweep | None) -> Sweep | None:
    """The pass at λ, if the interval that is open serves."""
    if lam > room.high:
        return None
    then = room.sweep(lam, spare)
    if not (then.b >= now.ref).all():
        return None
    then.ref, then.e = now.ref, now.e
    return then


def _interval(room: Room, lam: float, h: float) -> Sweep:
    """The pass at λ, and the gap from there over some steps."""
    room.open(lam, lam + STEPS * h)
    found = room.sweep(lam)
    room.gap(found)
    return found
