"""What the passes at one λ leave behind, and the room they work in.

    sweep(λ)          D(s, f; λ) from above, at the states next to the boundary of every level
    gap(λ₀, λ₁)       how far above, for every λ in [λ₀, λ₁]

The problem goes on for ever, or ends its learning at level T (`ends`): then one keeps for ever the
better of μ and λ, which is what truncating the look-ahead means here.
"""

import math
from dataclasses import dataclass

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray

#: So many states next to the boundary are kept of a level, and so many gaps.
NEAR, GAPS = 16, 48


@dataclass(frozen=True)
class Problem:
    """One arm, Beta(α, β) before its first pull, discount γ; levels n ≤ pulls are wanted.

    >>> Problem(1.0, 1.0, 0.9, 100).least
    0.00980...
    """

    alpha: float
    beta: float
    gamma: float
    pulls: int
    lookahead: int | None = None

    @property
    def m0(self) -> float:
        """α + β."""
        return self.alpha + self.beta

    @property
    def delta(self) -> float:
        """ln 1/γ."""
        return -math.log(self.gamma)

    @property
    def least(self) -> float:
        """The smallest posterior mean of the levels wanted: no index is smaller."""
        return self.alpha / (self.m0 + self.pulls)


@dataclass
class Sweep:
    """D at one λ next to the boundary, and the gap of its interval.

    >>> Sweep.empty(3, 10).near.shape
    (3, 16)
    """

    lam: float
    b: IntArray
    below: FloatArray
    near: FloatArray
    ref: IntArray
    e: FloatArray

    @classmethod
    def empty(cls, rows: int, levels: int) -> "Sweep":
        """Room for the first `rows` of so many levels."""
        b: IntArray = np.zeros(levels, np.int64)
        return cls(0.0, b, np.zeros(rows), np.zeros((rows, NEAR)), b, np.zeros((rows, GAPS)))

    def value(self) -> float:
        """D of the first state, (0, 0), from above."""
        return float(self.near[0, 0] if self.b[0] == 0 else self.below[0])


class Room:
    """Arrays for T levels and λ in [λ₀, λ₁].

    >>> room = Room(Problem(1.0, 1.0, 0.5, 0), levels=60, ghost=1e-9)
    >>> room.open(0.55, 0.57)
    >>> room.sweep(0.559).value() > 0 > room.sweep(0.5591).value()
    True
    """

    def __init__(self, problem: Problem, levels: int, ghost: float) -> None:
        self.problem, self.levels, self.ghost = problem, levels, ghost
        self.rows = min(problem.pulls + 1, levels)
        self.low, self.high = math.inf, -math.inf
        ends = problem.lookahead is not None
        rate = kernels.gittins.rate(problem.gamma)
        self._kappa = math.inf if ends else rate * (problem.m0 + levels + 1.0)
        self._x = problem.alpha + np.arange(levels + 3.0)
        self._d, self._e = np.zeros(levels + 3), np.zeros(levels + 3)
        self._inverse, self._beyond, self._ghost = np.empty((3, levels + 1))
        self._cut: IntArray = np.empty(levels + 1, np.int64)
        kernels.gittins.reach(
            problem.m0, problem.gamma, problem.pulls, ghost, self._beyond, self._ghost
        )

    def deeper(self, times: float, finer: float = 0.1) -> "Room":
        """Room for so many times 1 / ln 1/γ more levels, and a ghost so much smaller."""
        levels = self.levels
        if self.problem.lookahead is None:
            more = math.ceil(times / self.problem.delta)
            levels = max(levels + more, self.problem.pulls + 50)
        return Room(self.problem, levels, finer * self.ghost)

    def open(self, low: float, high: float) -> None:
        """Set the band for λ in [low, high]."""
        p = self.problem
        self.low, self.high = low, high
        kernels.gittins.limits(p.alpha, p.m0, high, self._beyond, self._inverse, self._cut)

    def sweep(self, lam: float, into: Sweep | None = None) -> Sweep:
        """D(·; λ) from above, λ in the interval that is open."""
        found = into
        if found is None or found.b.size != self.levels + 1 or found.near.shape[0] != self.rows:
            found = Sweep.empty(self.rows, self.levels + 1)
        found.lam = lam
        kernels.gittins.sweep(
            *self._arrays(self._d),
            lam,
            self.problem.gamma,
            self._kappa,
            found.b,
            found.below,
            found.near,
        )
        return found

    def gap(self, at: Sweep) -> None:
        """The gap over the interval that is open, given the sweep at its lower end."""
        at.ref, at.e = at.b.copy(), np.empty((self.rows, GAPS))
        kernels.gittins.gap(
            *self._arrays(self._e),
            self.low,
            self.high,
            self.problem.gamma,
            self._kappa,
            at.ref,
            at.e,
        )

    def _arrays(
        self, work: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray]:
        return work, self._x, self._inverse, self._ghost, self._cut
