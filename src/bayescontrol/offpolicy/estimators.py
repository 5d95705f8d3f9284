"""A confidence interval for the mean reward of another policy, valid for any logging policy.

    v_t = Σ_b π_t(b) E[r_t | b, past]        w_t = π_t(a_t) / p_t(a_t)        0 <= r_t <= 1
    ξ_t = w_t (r_t - q_t(a_t)) + Σ_b π_t(b) q_t(b) - m_t >= -1 / λ
    M_t(λ) = Π_{s<=t} (1 + λ ξ_s) exp(-λ (v_s - m_s))

q_t and m_t are guesses made before a_t is drawn. E[1 + λ ξ_t | past] <= 1 + λ (v_t - m_t), and
1 + z <= exp(z), so M is a supermartingale that starts at 1, and so is any mixture Σ_j ρ_j M_t(λ_j).
By Ville's inequality this mixture ever reaches 1 / α with probability at most α. The mean of v_t
for which it equals 1 / α is therefore a lower bound; applied to 1 - r it gives an upper bound.
There are no conditions on p_t, on the size of the weights or on the number of decisions; if
p_t(b) = 0, the first inequality is strict.

Inverse propensity has q = 0. Doubly robust has q_t(b) = min(r̂_t(b), k p_t(b) / π_t(b)), which
ensures ξ_t >= -k - 1. Each λ has its own k: small λ use all of r̂, large λ only a part of it.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray

_j: Final = np.arange(16.0)
#: λ_j = 3/4, 3/8, …: the best λ, about sqrt(2 log(1 / α) / Σ ξ²), is not known in advance.
LAM: Final[FloatArray] = 0.75 * 0.5**_j
#: ρ_j, with sum 1: more weight on large λ, which suit short logs.
RHO: Final[FloatArray] = (1.0 / (_j + 2)) / float(np.sum(1.0 / (_j + 2)))
#: k_j = 2^j - 1, so that λ_j (k_j + 1) = 3/4: no factor 1 + λ ξ is less than 1/4.
CAP: Final[FloatArray] = 2.0**_j - 1.0


@dataclass(frozen=True)
class RewardEstimate:
    """An unbiased mean, its standard error, and an interval for the expected value.

    The mean may be outside the interval: a few heavy weights move it far, but hardly move the
    interval.

    >>> print(RewardEstimate(0.5, 0.1, 0.3, 0.7))
    0.5, between 0.3 and 0.7
    """

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(
        cls, terms: Sequence[float], level: float, sessions: Sequence[Hashable] | None = None
    ) -> "RewardEstimate":
        """Return the mean of the terms, with a normal interval of this level.

        Terms with the same entry in `sessions` may depend on each other: then the error is that of
        the sums over sessions, of which the variance is estimated.

        >>> once = RewardEstimate.of([0.0, 1.0, 0.0, 1.0], 0.95)
        >>> twice = RewardEstimate.of([0.0, 1.0, 0.0, 1.0] * 2, 0.95, [1, 2, 3, 4] * 2)
        >>> once.error == twice.error
        True
        """
        n = len(terms)
        mean = math.fsum(terms) / n if n else math.nan
        deviations = [t - mean for t in terms]
        if sessions is not None:
            sums: dict[Hashable, float] = {}
            for session, d in zip(sessions, deviations, strict=True):
                sums[session] = sums.get(session, 0.0) + d
            deviations = list(sums.values())
        units = len(deviations)
        squares = math.fsum(d * d for d in deviations)
        error = math.sqrt(squares * units / (units - 1)) / n if units > 1 else math.inf
        z = -NormalDist().inv_cdf((1.0 - level) / 2)
        return cls(mean, error, mean - z * error, mean + z * error)

    def __str__(self) -> str:
        return f"{self.mean:.3g}, between {self.low:.3g} and {self.high:.3g}"


class Guess(NamedTuple):
    """The weight and the guesses of a decision; row 0 is about r, row 1 about 1 - r."""

    w: float
    #: m = Σ_b π(b) r̂(b).
    m: FloatArray
    #: q_j(a) of the action taken.
    q: FloatArray
    #: Σ_b π(b) q_j(b).
    expected: FloatArray


_ZERO: Final = np.zeros((2, 1))


def guess(
    pi: Sequence[float], p: Sequence[float] | None, r_hat: Sequence[float], a: int | None, w: float
) -> Guess:
    """Return the guesses for a decision: q_j(b) = min(r̂(b), k_j p(b) / π(b)), or 0 without p.

    `pi`, `p` and `r_hat` list the actions b with π(b) > 0. `a` is the index of the action taken in
    these lists, or None if π(a) = 0; `w` is its weight π(a) / p(a).

    >>> doubly_robust = guess([0.5, 0.5], [0.9, 0.1], [0.4, 0.2], 1, 5.0)
    >>> doubly_robust.q[0].round(3)[:3].tolist()         # k = 0, 1, 3; from k = 1 on it is r̂
    [0.0, 0.2, 0.2]
    """
    weights, expected_r = np.asarray(pi), np.asarray(r_hat)
    r = np.stack([expected_r, 1.0 - expected_r])
    m = (r @ weights)[:, None]
    if p is None:
        return Guess(w, m, _ZERO, _ZERO)
    with np.errstate(over="ignore"):  # for a tiny π(b) the quotient overflows, and q is r̂
        q = np.minimum(r[:, None, :], CAP[:, None] * np.asarray(p) / weights)
    return Guess(w, m, _ZERO if a is None else q[:, :, a].copy(), q @ weights)


class RewardInterval:
    """A confidence interval for the mean of v, for rewards in [0, 1].

    >>> interval = RewardInterval()
    >>> for r in [1, 1, 0, 1] * 25:                     # the policy of the log: every weight is 1
    ...     interval.take(guess([1.0], None, [0.75], 0, 1.0), r)
    >>> low, high = interval.at(0.95)
    >>> round(low, 2), round(high, 2)
    (0.58, 0.88)
    """

    def __init__(self) -> None:
        #: Σ_t log(1 + λ_j ξ_t) for r and for 1 - r.
        self.growth: FloatArray = np.zeros((2, len(LAM)))
        #: Σ_t m_t.
        self.m: FloatArray = np.zeros((2, 1))
        self.decisions = 0

    def take(self, guesses: Guess, r: float) -> None:
        """Add a decision with reward r. The order of decisions does not matter."""
        w, m, q, expected = guesses
        xi = w * (np.array([[r], [1.0 - r]]) - q) + expected - m
        self.growth += np.log1p(LAM * xi)
        self.m += m
        self.decisions += 1

    def at(self, level: float) -> tuple[float, float]:
        """Return (low, high), which contain the mean of v with probability at least `level`.

        Each side is wrong with probability at most (1 - level) / 2. If the sides cross, which is
        rarer still, they are swapped.
        """
        if not self.decisions:
            return 0.0, 1.0
        alpha, n = (1.0 - level) / 2, self.decisions
        below, above = (
            min(max((float(m[0]) + lower_bound(growth, alpha)) / n, 0.0), 1.0)
            for growth, m in zip(self.growth, self.m, strict=True)
        )
        return min(below, 1.0 - above), max(below, 1.0 - above)


def lower_bound(growth: FloatArray, alpha: float) -> float:
    """Solve Σ_j ρ_j exp(growth_j - λ_j D) = 1 / α for D, the lower bound of Σ (v_t - m_t).

    The logarithm of the left side is convex and decreasing, so Newton's method from the left
    converges monotonically.
    """
    log_mixture = np.log(RHO) + growth
    target = -math.log(alpha)
    d = float(np.max((log_mixture - target) / LAM))  # one term alone reaches the target: too small
    for _ in range(100):
        z = log_mixture - LAM * d
        top = float(z.max())
        weight = np.exp(z - top)
        total = float(weight.sum())
        step = (top + math.log(total) - target) * total / float(weight @ LAM)
        d += step
        if abs(step) <= 1e-12 * max(abs(d), 1.0):
            break
    return d
