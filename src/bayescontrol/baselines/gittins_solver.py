"""Gittins indices of a Bernoulli arm, with proven bounds.

    ν(α, β) = sup_τ E Σ_{t<τ} γ^t o_t / E Σ_{t<τ} γ^t,       D(ν) = 0

D(s, f; λ) is the advantage of an arm with s successes and f failures over a certain reward of λ per
pull. D is convex and decreasing in λ. `kernels.gittins` computes D in one pass over the levels
n = s + f, with an error bound:

    sweep(λ…)         upper bounds of D at the states next to the boundary of every level
    gap(λ…)           how far these bounds can be above D, for all these λ

`gittins_index` searches the zero of D for one state. The chord of D over [low, high] meets zero
above ν, and the chord through two points below ν meets zero below ν. Alternating between the two
converges faster than bisection.

`march` brackets all indices of a table. λ increases step by step from the smallest index to the
largest, and each pass gives the sign of ν - λ for all states. A state whose sign has changed is
bracketed by chords of D. Eight steps are computed together, and their gap is bounded once. The step
length follows the width of the latest brackets; the few that are too wide at the end are split by
further passes.

The problem has an infinite horizon, or learning ends at level T (`lookahead`): from there on the
better of μ and λ is chosen for ever.
"""

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_integer, require_between
from bayescontrol.errors import BayesControlError, InvalidPrior

if TYPE_CHECKING:
    from bayescontrol.kernels.gittins import Passes

#: How many states next to the boundary are stored for each level.
NEAR = 12


@dataclass(frozen=True)
class GittinsProblem:
    """One arm with prior Beta(α, β) and discount γ; indices are required up to level `pulls`."""

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


class Workspace:
    """Arrays for passes over `levels` levels, at `lanes` values of λ at a time.

    `ghost` bounds the error of leaving out the states far above the boundary. A smaller ghost is
    more exact and needs more states.
    """

    def __init__(self, problem: GittinsProblem, levels: int, ghost: float, lanes: int = 1) -> None:
        self.problem, self.levels, self.ghost, self.lanes = problem, levels, ghost, lanes
        learning_ends = problem.lookahead is not None
        rate = kernels.gittins.rate(problem.gamma)
        x = problem.alpha + np.arange(levels - levels % 8 + kernels.gittins.VECTOR + 16.0)
        # Vectors load faster from rows that begin at multiples of 64 bytes.
        flat = np.zeros(4 * x.size * lanes + 8)
        start = -flat.ctypes.data // 8 % 8
        self._scratch = flat[start : start + 4 * x.size * lanes].reshape(4, -1)
        self._scratch[3] = x.repeat(lanes)
        rows = min(problem.pulls + 2, levels) + 1
        # Two results: the last three passes are needed together with the next ones.
        self._results = [
            kernels.gittins.Passes(
                lam=np.empty(lanes),
                ref=np.empty(levels + 1, np.int64),
                b=np.empty((lanes, rows), np.int64),
                near=np.empty((rows, NEAR, lanes)),
                e=np.empty((rows, NEAR)),
            )
            for _ in range(2)
        ]
        inverse, ghosts, self._beyond = np.empty((3, levels + 1))
        self.band = kernels.gittins.Band(
            x=x,
            tiled=self._scratch[3],
            inverse=inverse,
            ghost=ghosts,
            cut=np.empty(levels + 1, np.int64),
            m0=problem.m0,
            gamma=problem.gamma,
            kappa=math.inf if learning_ends else rate * (problem.m0 + levels + 1.0),
            pulls=problem.pulls,
        )
        kernels.gittins.reach(problem.m0, problem.gamma, problem.pulls, ghost, self._beyond, ghosts)

    def deeper(self, times: float, finer: float = 0.1, lanes: int = 1) -> "Workspace":
        """Return a workspace with `times` / ln(1/γ) more levels and the ghost times `finer`."""
        levels = self.levels
        if self.problem.lookahead is None:
            more = math.ceil(times / self.problem.delta)
            levels = max(levels + more, self.problem.pulls + 50)
        return Workspace(self.problem, levels, finer * self.ghost, lanes)

    def sweep(self, lam: ArrayLike, *, gap: bool = False) -> "Passes":
        """Return upper bounds of D(·; λ) for each λ, in increasing order, with `gap` also gaps.

        The call after the next one overwrites them.
        """
        p, band = self.problem, self.band
        self._results.reverse()
        passes = self._results[0]
        passes.lam[:] = lam
        kernels.gittins.limits(p.alpha, p.m0, passes.lam[-1], self._beyond, band.inverse, band.cut)
        kernels.gittins.sweep(self._scratch, band, passes)
        if gap:
            kernels.gittins.gap(self._scratch[0], band, passes)
        return passes


# -- all indices of a table -------------------------------------------------------------------

#: Steps of λ that are computed together, with one bound of their gaps. For discounts above
#: WIDE_BAND a level has more states, and fewer steps fit into the fastest memory.
LANES, WIDE_BAND, WIDE_LANES = 8, 0.9995, 4
#: The most rounds of splitting, and of searching for the number of levels.
SPLITS, PROBES = 40, 60
#: The share of the tolerance that the gap may use; a smaller share needs more levels.
SHARE = 0.1
#: The width of the brackets aimed at, as a share of the tolerance.
TARGET = 0.9
#: The most and the fewest additional levels in `_march_up`, times ln(1/γ), and how they change.
MOST, FEWEST, CHANGE = 3.0, -1.0, 0.25
#: How much a step of λ may grow or shrink at a time.
GROWTH, DECAY = 1.2, 0.6
#: A bound of the rounding errors in the last few operations on a bracket.
LAST = 1e-15


class NotCertified(BayesControlError, ArithmeticError):
    """Double precision does not suffice to certify the indices to the requested tolerance."""


def march(problem: GittinsProblem, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Return proven bounds (lower, upper) of the index of every state up to `problem.pulls`.

    Half their distance is at most the tolerance. Raise NotCertified if that is impossible.
    """
    states = (problem.pulls + 1) * (problem.pulls + 2) // 2
    lower, upper = np.zeros(states), np.ones(states)
    if problem.lookahead == problem.pulls:  # no learning after the last level: ν = μ
        n = problem.pulls
        mu = (problem.alpha + np.arange(n + 1)) / (problem.m0 + n)
        lower[n * (n + 1) // 2 :] = upper[n * (n + 1) // 2 :] = mu
    workspace = _workspace_for(problem, tolerance)
    if workspace.levels > 0:
        _march_up(workspace, lower, upper, tolerance)
    undecided = 0
    for attempt in range(SPLITS):
        wide = np.flatnonzero(upper - lower > 2.0 * (tolerance - LAST))
        if not wide.size:
            return lower - LAST, upper + LAST
        if undecided:
            workspace = workspace.deeper(min(2.0 + attempt, 6.0))
        undecided = _split(workspace, lower, upper, wide, tolerance)
    raise NotCertified(f"cannot certify {problem} to {tolerance}: use a larger tolerance")


def _split(
    workspace: Workspace, lower: FloatArray, upper: FloatArray, wide: IntArray, tolerance: float
) -> int:
    """Split every bracket that is too wide, with as few passes as possible.

    One λ can split a bracket if both parts become narrow enough; a wider bracket is halved.
    Returns how often a pass could not decide on which side of λ an index lies.
    """
    # State i = n (n+1) / 2 + s is at level n with s successes.
    levels = (np.sqrt(8.0 * wide + 1.0).astype(np.int64) - 1) // 2
    successes = wide - levels * (levels + 1) // 2
    reach = 2.0 * (tolerance - LAST)
    middle = 0.5 * (lower[wide] + upper[wide])
    first = np.minimum(upper[wide] - reach, middle)
    last = np.maximum(lower[wide] + reach, middle)
    lam, undecided = -math.inf, 0
    for i in np.argsort(last):
        if first[i] > lam:  # the last pass has not split this bracket
            lam = float(0.5 * (last[i] + middle[i]))
            passes = workspace.sweep(lam, gap=True)
            undecided += kernels.gittins.split(lower, upper, levels, successes, passes)
    return undecided


def _workspace_for(problem: GittinsProblem, tolerance: float) -> Workspace:
    """Return a workspace with enough levels for an index in the middle of the table."""
    ghost = 0.1 * SHARE * tolerance  # a smaller one hardly narrows the gap
    levels = problem.lookahead
    workspace = Workspace(problem, problem.pulls + 50 if levels is None else levels, ghost, 2)
    lam = (problem.alpha + 0.5 * problem.pulls) / (problem.m0 + problem.pulls)
    for _ in range(PROBES):
        passes = workspace.sweep((lam - 0.5 * tolerance, lam), gap=True)
        if levels is not None or kernels.gittins.slack(passes) <= SHARE * tolerance:
            break
        workspace = workspace.deeper(0.3, 1.0, 2)
    return workspace


def _march_up(initial: Workspace, lower: FloatArray, upper: FloatArray, tolerance: float) -> None:
    """Step λ up from the smallest posterior mean until no state continues; update the brackets."""
    problem, h = initial.problem, tolerance  # h: the step of λ
    n = np.arange(min(problem.pulls, initial.levels - 1) + 1)
    lanes = LANES if problem.gamma <= WIDE_BAND else WIDE_LANES
    steps = np.arange(1, lanes + 1)
    deeper = cache(partial(initial.deeper, finer=1.0, lanes=lanes))
    extra = 2.0  # most levels are needed near 0 and 1
    lam = problem.alpha / (problem.m0 + problem.pulls)  # the smallest mean: below all indices
    before = deeper(extra).sweep(lam * steps / lanes, gap=True)
    while True:
        workspace = deeper(extra)
        passes = workspace.sweep(before.lam[-1] + h * steps, gap=True)
        excess = kernels.gittins.slack(passes) / (SHARE * tolerance)
        if excess > 1.0:
            extra = min(extra + CHANGE, MOST)
        elif excess < 0.6:  # far below the allowed gap: fewer levels suffice
            extra = max(extra - CHANGE, FEWEST)
        error = kernels.gittins.settle(lower, upper, workspace.band, before, passes)
        if (passes.b[-2, : n.size] > n).all():
            return
        # The width of a bracket grows like h². The few that are too wide are split at the end.
        factor = math.sqrt(TARGET * tolerance / error) if error > 0.0 else GROWTH
        h = max(h * min(GROWTH, max(DECAY, factor)), tolerance)
        before = passes


# -- one index ---------------------------------------------------------------------------------

#: The largest supported discount.
LARGEST_DISCOUNT = 0.9999
#: The distance of 1 to the next larger double.
EPSILON = 2.0**-52
#: The most rounds, each with more levels, and passes per round.
ROUNDS, PASSES = 4, 60


def gittins_index(
    alpha: float, beta: float, discount: float, *, lookahead: int | None = None
) -> float:
    """Return ν(α, β), the middle of `gittins_bounds`.

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
    """Return proven bounds low < ν(α, β) < high.

    Their distance is at most 2 `tolerance`, or what double precision allows. With `lookahead` the
    arm can be learned about for that many more pulls; after that it is pulled for ever, or never
    again.

    >>> low, high = gittins_bounds(2, 1, 0.7)
    >>> low < 0.735803824072994 < high, high - low < 1e-12
    (True, True)
    >>> gittins_bounds(2, 1, 0.7, lookahead=0) == (2 / 3, 2 / 3)
    True
    """
    problem = checked_problem((alpha, beta), discount, 0, lookahead)
    mu = problem.alpha / problem.m0
    if problem.lookahead == 0:
        return mu, mu
    low, high, depth = mu, 1.0, 1.0
    for _ in range(ROUNDS):
        levels = problem.lookahead
        if levels is None:
            # After these levels the discount γ^n is about a tenth of the tolerance, to the `depth`.
            levels = 60 + math.ceil(depth * -math.log(0.1 * tolerance) / problem.delta)
        search = _Search(Workspace(problem, levels, 0.01 * tolerance / depth), low, high)
        before = high - low
        low, high = search.close_in(0.1 * tolerance)
        if high - low <= 2.0 * tolerance or high - low > 0.5 * before:  # done, or no progress
            break
        depth *= 1.5
    return low, high


def checked_problem(
    prior: tuple[float, float], discount: float, pulls: int, lookahead: int | None
) -> GittinsProblem:
    """Return the problem with these arguments; raise InvalidPrior or ValueError if invalid."""
    alpha, beta = (float(x) for x in prior)
    if not (0.0 < alpha < 1e12 and 0.0 < beta < 1e12):
        raise InvalidPrior(f"prior=({alpha}, {beta}): α and β must be above 0 and below 1e12")
    discount = require_between("discount", discount, 0, LARGEST_DISCOUNT, ends="(]")
    pulls = as_integer("pulls", pulls, 0)
    if lookahead is not None:
        lookahead = as_integer("lookahead", lookahead, pulls)
    return GittinsProblem(alpha, beta, discount, pulls, lookahead)


class _Search:
    """A search for the zero of D between `low` and `high`.

    `left` are points (λ, D) below the zero, `right` is the last point above it.
    """

    def __init__(self, workspace: Workspace, low: float, high: float) -> None:
        self.workspace, self.low, self.high = workspace, low, high
        self.left: list[tuple[float, float]] = []
        self.right = (high, self._value(high))

    def _value(self, lam: float) -> float:
        """Return an upper bound of D at the first state, (0, 0), for this λ; at most 0 if it stops.

        Where the state stops, D = 0 would not show how far it is from continuing. The value is then
        the advantage of pulling once more.
        """
        passes = self.workspace.sweep(lam)
        if passes.ref[0] == 0:
            return float(passes.near[0, 0, 0])
        after_success = float(passes.near[1, 0, 0]) if passes.ref[1] == 1 else 0.0
        problem = self.workspace.problem
        mu, gamma = problem.alpha / problem.m0, problem.gamma
        return min((1.0 - gamma) * (mu - lam) + gamma * mu * after_success, 0.0)

    def close_in(self, width: float) -> tuple[float, float]:
        """Bracket the zero of the upper bound of D, then derive proven bounds of the true zero."""
        if self.right[1] > 0.0:  # too few levels even to prove ν < high
            return self.low, self.high
        self.left.append((self.low, self._value(self.low)))
        for step in range(PASSES):
            if self.right[0] - self.left[-1][0] <= width:
                break
            lam = self._next(step)
            value = self._value(lam)
            if value > 0.0:
                self.left.append((lam, value))
            else:
                self.right = (lam, value)
        return self._proven(), min(self.high, self.right[0] * (1.0 + EPSILON))

    def _next(self, step: int) -> float:
        """Return the next λ.

        Take turns: secant through both ends, secant through the last two left points, bisection.
        """
        (a, Da), (b, Db) = self.left[-1], self.right
        lam = a + (b - a) * Da / (Da - Db)
        if step % 3 == 1 and len(self.left) > 1:
            z, Dz = self.left[-2]
            if Dz > Da:
                lam = a + (a - z) * Da / (Dz - Da)
        elif step % 3 == 2:
            lam = 0.5 * (a + b)
        return lam if a < lam < b else 0.5 * (a + b)

    def _proven(self) -> float:
        """Return a λ, as large as possible, at which D minus its gap is still positive."""
        (a, Da), (b, Db) = self.left[0], self.right  # D is steeper left of ν than this chord
        slope, lam = (Da - Db) / (b - a), self.left[-1][0]
        if len(self.left) > 1:
            (z, Dz), (a, Da) = self.left[-2:]
            slope = max((Dz - Da) / (a - z), 1e-3 * slope)  # not 0, despite rounding
        for _ in range(PASSES):
            passes = self.workspace.sweep(lam, gap=True)
            D, e = float(passes.near[0, 0, 0]), float(passes.e[0, 0])
            if passes.ref[0] == 0 and e < D:
                return max(lam * (1.0 - EPSILON), self.low)
            if lam == self.low:
                break
            # Go left by as much as D is short of its gap, and a little more; assume a smaller slope
            # each time, so that the steps grow until a λ is proven.
            lam, slope = max(lam - 1.01 * (e - D) / slope - EPSILON, self.low), 0.7 * slope
        return self.low
