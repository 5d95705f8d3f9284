"""The Gittins index of one state, as narrow as doubles allow.

    ν(α, β) = sup_τ E Σ_{t<τ} γ^t o_t / E Σ_{t<τ} γ^t,       D(ν) = 0

D is convex and falls: the chord over [low, high] meets zero above ν, the chord through two points
below ν meets zero below it. In turn they close in faster than any bisection.
"""

import math
import operator

from bayescontrol.baselines.gittins.passes import Problem, Room, Sweep
from bayescontrol.errors import InvalidPrior

#: Discounts up to this one are solved.
LARGEST_DISCOUNT = 0.9999
#: Rounds with ever more levels, and passes to a round.
ROUNDS, PASSES = 4, 60


def gittins_index(
    alpha: float, beta: float, discount: float, *, lookahead: int | None = None
) -> float:
    """ν(α, β): the middle of `gittins_bounds`.

    >>> round(gittins_index(1, 1, 0.9), 5), round(gittins_index(1, 1, 0.999), 10)
    (0.70289, 0.9537564919)
    """
    low, high = gittins_bounds(alpha, beta, discount, lookahead=lookahead)
    return 0.5 * (low + high)


def gittins_bounds(
    alpha: float,
    beta: float,
    discount: float,
    *,
    lookahead: int | None = None,
    tolerance: float = 1e-12,
) -> tuple[float, float]:
    """low < ν(α, β) < high, proven; half their distance is `tolerance`, or what doubles allow.

    With `lookahead`, of the arm that can be learnt about for so many more pulls: after them one
    keeps to it for ever, or leaves it for ever.

    >>> low, high = gittins_bounds(2, 1, 0.7)
    >>> low < 0.73580382407298 < high, high - low < 1e-12
    (True, True)
    >>> gittins_bounds(2, 1, 0.7, lookahead=0) == (2 / 3, 2 / 3)
    True
    """
    problem = checked((alpha, beta), discount, 0, lookahead)
    mu = problem.alpha / problem.m0
    if problem.lookahead == 0:
        return mu, mu
    low, high, deep = mu, 1.0, 1.0
    for _ in range(ROUNDS):
        levels = problem.lookahead
        if levels is None:
            levels = 60 + math.ceil(deep * -math.log(0.1 * tolerance) / problem.delta)
        search = _Search(Room(problem, levels, 0.01 * tolerance / deep), low, high)
        before = high - low
        low, high = search.close_in(0.1 * tolerance)
        if high - low <= 2.0 * tolerance or high - low > 0.5 * before:
            break
        deep *= 1.5
    return low, high


def checked(
    prior: tuple[float, float], discount: float, pulls: int, lookahead: int | None
) -> Problem:
    """The problem, or what is wrong with it.

    >>> checked((1, 1), 1.0, 10, None)
    Traceback (most recent call last):
    ValueError: discount=1.0: it must be above 0 and at most 0.9999
    """
    alpha, beta = (float(x) for x in prior)
    if not (0.0 < alpha < 1e12 and 0.0 < beta < 1e12):
        raise InvalidPrior(f"Beta({alpha}, {beta}) is no prior: both must be above 0, below 1e12")
    if not 0.0 < discount <= LARGEST_DISCOUNT:
        raise ValueError(f"discount={discount}: it must be above 0 and at most {LARGEST_DISCOUNT}")
    pulls = operator.index(pulls)
    if pulls < 0:
        raise ValueError(f"pulls={pulls}: a table holds the states up to 0 pulls or more")
    if lookahead is not None:
        lookahead = operator.index(lookahead)
        if lookahead < pulls:
            raise ValueError(
                f"lookahead={lookahead}: it ends before the table does; give at least pulls={pulls}"
            )
    return Problem(alpha, beta, float(discount), pulls, lookahead)


class _Search:
    """The zero of D between `low` and `high`; `left` are the points below it, last one last."""

    def __init__(self, room: Room, low: float, high: float) -> None:
        self.room, self.low, self.high = room, low, high
        self.found: Sweep | None = None
        self.left: list[tuple[float, float]] = []
        self.right = (high, self._value(high))

    def _value(self, lam: float) -> float:
        self.room.open(lam, lam)
        self.found = self.room.sweep(lam, self.found)
        return self.found.value()

    def close_in(self, width: float) -> tuple[float, float]:
        """Bounds of the zero of D as `sweep` has it, then of the true one."""
        if self.right[1] > 0.0:  # the passes are too short to say so much as ν < high
            return self.low, self.high
        self.left.append((self.low, self._value(self.low)))
        for turn in range(PASSES):
            a, b = self.left[-1][0], self.right[0]
            if b - a <= width:
                break
            lam = self._next(turn)
            value = self._value(lam)
            if value > 0.0:
                self.left.append((lam, value))
            else:
                self.right = (lam, value)
        return self._proven(), min(self.high, self.right[0] * (1.0 + 2.0**-52))

    def _next(self, turn: int) -> float:
        (a, Da), (b, Db) = self.left[-1], self.right
        chord = a + (b - a) * Da / (Da - Db)
        if turn % 3 == 1 and len(self.left) > 1:
            z, Dz = self.left[-2]
            if Dz > Da:
                chord = a + (a - z) * Da / (Dz - Da)
        elif turn % 3 == 2:
            chord = 0.5 * (a + b)
        return chord if a < chord < b else 0.5 * (a + b)

    def _proven(self) -> float:
        """The largest λ at hand where D is positive even without its gap."""
        (a, Da), (b, Db) = self.left[0], self.right  # D is steeper left of ν than this chord
        steep, lam = (Da - Db) / (b - a), self.left[-1][0]
        if len(self.left) > 1:
            (z, Dz), (a, Da) = self.left[-2:]
            steep = max((Dz - Da) / (a - z), 1e-3 * steep)
        for _ in range(PASSES):
            self.room.open(lam, lam)
            found = self.room.sweep(lam)
            self.room.gap(found)
            D, e = found.value(), float(found.e[0, 0])
            if found.b[0] == 0 and e < D:
                return max(lam * (1.0 - 2.0**-52), self.low)
            if lam == self.low:
                break
            lam, steep = max(lam - 1.01 * (e - D) / steep - 2.0**-52, self.low), 0.7 * steep
        return self.low
