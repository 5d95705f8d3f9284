"""An interval for another policy's mean reward that holds whatever the log's agent did.

    v_t = Σ_b π_t(b) E[r_t | b, past]        w_t = π_t(a_t) / p_t(a_t)        0 <= r_t <= 1
    ξ_t = w_t (r_t - q_t(a_t)) + Σ_b π_t(b) q_t(b) - m_t >= -1 / λ
    M_t(λ) = Π_{s<=t} (1 + λ ξ_s) exp(-λ (v_s - m_s))

q_t and m_t are guesses made before a_t is drawn. E[1 + λ ξ_t | past] <= 1 + λ (v_t - m_t), and
1 + z <= exp(z): M is a supermartingale that begins at 1, and so is any mixture Σ_j ρ_j M_t(λ_j).
By Ville's inequality it ever reaches 1 / α with probability at most α, so the mean of the v_t is
at least where it does. Of 1 - r this is the upper side. Nothing is asked of p_t, of the weights'
size or of the number of decisions; where p_t(b) = 0 the first inequality is strict, no more.

Inverse propensity is q = 0. Doubly robust is q_t(b) = min(r̂_t(b), k p_t(b) / π_t(b)), for then
ξ_t >= -k - 1: each λ has its own k, so small bets use the whole of r̂ and large ones little of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray

_j: Final = np.arange(16.0)
#: λ_j = 3/4, 3/8, …: the best is about sqrt(2 log(1 / α) / Σ ξ²), which nobody knows before.
LAM: Final[FloatArray] = 0.75 * 0.5**_j
#: ρ_j, of sum 1: more on the large ones, which serve short logs.
RHO: Final[FloatArray] = (1.0 / (_j + 2)) / float(np.sum(1.0 / (_j + 2)))
#: k_j = 2^j - 1, so that λ_j (k_j + 1) = 3/4: no factor 1 + λ ξ is less than 1/4.
CAP: Final[FloatArray] = 2.0**_j - 1.0


@dataclass(frozen=True)
class Estimate:
    """An unbiased mean, its standard error, and an interval for what it estimates.

    The mean may lie outside: weights that few decisions carry move it far, and the interval
    little.

    >>> print(Estimate(0.5, 0.1, 0.3, 0.7))
    0.5, between 0.3 and 0.7
    """

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, terms: Sequence[float], level: float) -> "Estimate":
        """The mean of the terms; normal, with the terms' own spread.

        >>> Estimate.of([1.0, 0.0, 1.0, 0.0], 0.95)
        Estimate(mean=0.5, error=0.2886..., low=-0.0657..., high=1.0657...)
        """
        n = len(terms)
        mean = math.fsum(terms) / n if n else math.nan
        spread = math.fsum((t - mean) * (t - mean) for t in terms)
        error = math.sqrt(spread / (n - 1) / n) if n > 1 else math.inf
        z = -NormalDist().inv_cdf((1.0 - level) / 2)
        return cls(mean, error, mean - z * error, mean + z * error)

    def __str__(self) -> str:
        return f"{self.mean:.3g}, between {self.low:.3g} and {self.high:.3g}"


class Guess(NamedTuple):
    """What is held of a decision before its answer; row 0 is of r, row 1 of 1 - r.

    >>> guess([1.0], None, [0.3], 0, 2.0).m.tolist()
    [[0.3], [0.7]]
    """

    w: float
    #: m = Σ_b π(b) r̂(b).
    m: FloatArray
    #: q_j(a), of the action taken.
    q: FloatArray
    #: Σ_b π(b) q_j(b).
    expected: FloatArray


_NOTHING: Final = np.zeros((2, 1))


def guess(
    pi: Sequence[float], p: Sequence[float] | None, r_hat: Sequence[float], a: int | None, w: float
) -> Guess:
    """q_j(b) = min(r̂(b), k_j p(b) / π(b)), over the actions with π(b) > 0; without p it is 0.

    `a` is the place of the action taken among them, None if it has none: then w = 0.

    >>> held = guess([0.5, 0.5], [0.9, 0.1], [0.4, 0.2], 1, 5.0)
    >>> held.q[0].round(3)[:3].tolist()                  # k = 0, 1, 3: then it is r̂
    [0.0, 0.2, 0.2]
    """
    law = np.asarray(pi)
    one = np.asarray(r_hat)
    r = np.stack([one, 1.0 - one])
    m = (r @ law)[:, None]
    if p is None:
        return Guess(w, m, _NOTHING, _NOTHING)
    with np.errstate(over="ignore"):  # where π(b) is next to nothing it is r̂; 0 · p comes first
        q = np.minimum(r[:, None, :], CAP[:, None] * np.asarray(p) / law)
    return Guess(w, m, _NOTHING if a is None else q[:, :, a].copy(), q @ law)


class Interval:
    """Both sides of the mean of v, of rewards in [0, 1].

    >>> told = Interval()
    >>> for r in [1, 1, 0, 1] * 25:                     # the log's own policy: every weight is 1
    ...     told.take(guess([1.0], None, [0.75], 0, 1.0), r)
    >>> low, high = told.at(0.95)
    >>> round(low, 2), round(high, 2)
    (0.58, 0.88)
    """

    def __init__(self) -> None:
        #: Σ_t log(1 + λ_j ξ_t), of r and of 1 - r.
        self.growth: FloatArray = np.zeros((2, len(LAM)))
        #: Σ_t m_t.
        self.m: FloatArray = np.zeros((2, 1))
        self.decisions = 0

    def take(self, held: Guess, r: float) -> None:
        """One more decision, which paid r. The order is of no consequence.

        >>> Interval().take(guess([1.0], None, [0.5], 0, 1.0), 1)
        """
        w, m, q, expected = held
        xi = w * (np.array([[r], [1.0 - r]]) - q) + expected - m
        self.growth += np.log1p(LAM * xi)
        self.m += m
        self.decisions += 1

    def at(self, level: float) -> tuple[float, float]:
        """(low, high), which hold the mean of v with probability `level` at least.

        Each side errs with probability (1 - level) / 2 at most. Should they cross, which is rarer
        than that, all between them is given.

        >>> Interval().at(0.95)
        (0.0, 1.0)
        """
        if not self.decisions:
            return 0.0, 1.0
        alpha, n = (1.0 - level) / 2, self.decisions
        below, above = (
            min(max((float(m[0]) + lower(growth, alpha)) / n, 0.0), 1.0)
            for growth, m in zip(self.growth, self.m, strict=True)
        )
        return min(below, 1.0 - above), max(below, 1.0 - above)


def lower(growth: FloatArray, alpha: float) -> float:
    """The D where Σ_j ρ_j exp(growth_j - λ_j D) = 1 / α: with D = Σ (v_t - m_t) it is the mixture.

    The logarithm of the left side is convex and falls: Newton's method, begun on its left,
    comes nearer with every step and never passes.

    >>> round(lower(np.zeros(16), 0.025), 2)
    -6.93
    """
    log_mixture = np.log(RHO) + growth
    target = -math.log(alpha)
    d = float(np.max((log_mixture - target) / LAM))
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
