"""Poisson and exponential rewards, with Gamma priors over their rates.

    Poisson        o ~ Poisson(m)                        m ~ Gamma(a, rate b)
                   a ← a + o,  b ← b + 1                 o | past: negative binomial
    exponential    o ~ density θ e^(-θ o),  m = 1/θ      θ ~ Gamma(a, rate b)
                   a ← a + 1,  b ← b + o                 o | past: Lomax

The mean reward m of a Poisson arm is its rate; that of an exponential arm is 1 / rate.
"""

import math
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.bandits import family
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.learned import Learned, with_prior
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.totals import checked_totals
from bayescontrol.kernels.families import GAMMA, INVERSE_GAMMA, number
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

#: The largest exponential reward, and the largest mean reward.
LARGEST_TIME: Final = 1e150
#: The smallest sum of many exponential rewards, for each of them.
LEAST_TIME: Final = 1e-300
_POISSON: Final = family.FamilyKind(
    "poisson-bandit",
    "Arms that pay counts.",
    family.settings_of(
        '[a, b], or "learned"',
        "Gamma(a, rate b) over the mean of an arm. Default: [1, 1]. Learned: a and b are learned "
        "from all arms.",
    ),
    example={"arms": ["short", "long"]},
    observation=3,
    feedback="a whole number, 0 or more",
    truth=[1.0, 2.0],
    refused=(-1, 0.5, 1e300),
    table=(family.TableRow("arms", "0, 1, 2, …", "rate ~ Gamma(1, 1)", "rates"),),
)
_EXPONENTIAL: Final = family.FamilyKind(
    "exponential-bandit",
    "Arms that pay exponentially distributed amounts, waiting times for example.",
    family.settings_of(
        '[a, b], or "learned"',
        "Gamma(a, rate b) over 1 / mean of an arm. Default: [2, 1]. Learned: a and b are learned "
        "from all arms.",
    ),
    example={"arms": ["short", "long"]},
    observation=0.7,
    feedback="a number, 0 or more",
    truth=[1.0, 2.0],
    refused=(-1e-9, 1e200),
    table=(family.TableRow("arms", "a number from 0 up", "1/mean ~ Gamma(2, 1)", "means"),),
)
#: Values of (a, b) of a learned prior: the mean a/b from 4^-4 to 4^6, and the shape a, by which the
#: means of the arms differ by a factor of about 1 + 1/√a. The default (1, 1) is among them.
LEARNED_POISSON: Final = np.array(
    [(a, a / 4.0**k) for a in (1.0, 4.0, 16.0, 64.0) for k in range(-4, 7)]
)
#: The same for segments: many of them tell the prior of an arm more precisely.
POOLED_POISSON: Final = np.array(
    [(a, a / 2.0**k) for a in (1.0, 4.0, 16.0, 64.0, 256.0) for k in range(-8, 13)]
)
#: The same for exponential arms: the mean b/(a - 1) from 8^-6 to 8^6, with the default (2, 1).
LEARNED_EXPONENTIAL: Final = np.array(
    [(a, (a - 1.0) * 8.0**k) for a in (2.0, 4.0, 16.0, 64.0) for k in range(-6, 7)]
)


class Poisson(family.DensityFamily):
    """Rewards 0, 1, 2, …, Poisson with mean m; the means have Gamma(a, rate b) priors.

    >>> family = Poisson()
    >>> family.prior((3, 2), 1).tolist()  # equivalent to 3 events in 2 pulls
    [[3.0, 2.0]]
    >>> family.expected(family.prior((3, 2), 1))
    array([1.5])
    """

    model_kind: ClassVar[family.FamilyKind] = _POISSON
    kind = number("poisson")
    density = family.Density(GAMMA)
    format_text: ClassVar[str] = "Poisson()"
    columns = ("a", "b")
    default = (1.0, 1.0)  # the mean reward is exponential with mean 1

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the mean rewards m_j as a column; each must be in [0, 2^53]."""
        return family.true_rows(given, arms, {"mean reward": (0.0, family.LARGEST_COUNT)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw m_j ~ Gamma(a_j, rate b_j)."""
        means = [rng.gamma(a) / b for a, b in prior]
        advice = "use a larger b, or a smaller a"
        return family.checked_draws("mean reward", means, 0.0, family.LARGEST_COUNT, advice)

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is one of 0, 1, 2, …"""
        return family.as_count(o, "Poisson")

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = a_j / b_j."""
        return np.asarray(rows[:, 0] / rows[:, 1])

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Add the sum and the number of the rewards."""
        n, total, _ = checked_totals(totals, "Poisson", 0.0, family.LARGEST_COUNT, whole=True)
        return np.array([row[0] + total, row[1] + n])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """Solve P(a, b m) = p for m: the inverse of the regularised incomplete gamma function."""
        from scipy import special  # type: ignore[import-untyped]

        return np.asarray(special.gammaincinv(rows[:, :1], tails) / rows[:, 1:])

    def for_segments(self) -> Learned:
        """Return the family with a prior that the segments of an arm share."""
        return Learned(self, POOLED_POISSON, _totals)


class Exponential(family.DensityFamily):
    """Rewards ≥ 0, exponential with mean m = 1/θ; the rates θ have Gamma(a, rate b) priors.

    >>> family = Exponential()
    >>> family.expected(family.prior((3, 4), 1))  # b / (a - 1)
    array([2.])
    >>> family.expected(family.prior((1, 4), 1))
    array([inf])
    """

    model_kind: ClassVar[family.FamilyKind] = _EXPONENTIAL
    kind = number("exponential")
    density = family.Density(INVERSE_GAMMA)
    format_text: ClassVar[str] = "Exponential()"
    columns = ("a", "b")
    default = (2.0, 1.0)  # the expected mean reward is b / (a - 1) = 1

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the mean rewards m_j = 1/θ_j as a column; each must be in [1e-150, 1e150]."""
        return family.true_rows(given, arms, {"mean reward": (1.0 / LARGEST_TIME, LARGEST_TIME)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw θ_j ~ Gamma(a_j, rate b_j) and return m_j = 1/θ_j."""
        rates = [rng.gamma(a) / b for a, b in prior]
        means = [1.0 / theta if theta > 0.0 else math.inf for theta in rates]
        advice = "use a larger a, and b on the rewards' scale"
        return family.checked_draws("mean reward", means, 1.0 / LARGEST_TIME, LARGEST_TIME, advice)

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is a number from 0 to 1e150."""
        expected = f"a number from 0 to {LARGEST_TIME:g}"
        return family.as_reward(o, "exponential", expected, lambda r: 0.0 <= r <= LARGEST_TIME)

    expected = staticmethod(family.odds_means)

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Add the number and the sum of the rewards, which must be positive."""
        n, total, _ = checked_totals(totals, "exponential", LEAST_TIME, LARGEST_TIME)
        return np.array([row[0] + n, row[1] + total])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """Solve Q(a, b / m) = p for m: m = 1/θ is at most 1/t where θ is at least t."""
        from scipy import special

        return np.asarray(rows[:, 1:] / special.gammainccinv(rows[:, :1], tails))


def _totals(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of the counts and the number of pulls."""
    return sums[:, 0], sums[:, 1]


def _totals_of_amounts(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of the amounts and the number of pulls."""
    return sums[:, 1], sums[:, 0]


class PoissonBandit(Bandit):
    """N arms that pay counts, with Gamma(a, rate b) priors over their means.

    `prior` is one pair (a, b) for all arms, or one pair per arm, by default (1, 1). With
    `prior="learned"` the arms share a and b, which are learned from the rewards of all arms.

    `arms` is the number of arms or their names.

    >>> bandit = PoissonBandit(["red", "blue"])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 4)
    >>> agent.belief.expected()
    {'red': 2.5, 'blue': 1.0}
    >>> bandit.environment([2.0, 3.0]).best()
    'blue'
    """

    model_kind: ClassVar[family.FamilyKind] = _POISSON

    def __init__(self, arms: Arms, prior: ArrayLike | str | None = None) -> None:
        super().__init__(*with_prior(Poisson(), arms, prior, LEARNED_POISSON, _totals))


class ExponentialBandit(Bandit):
    """N arms that pay exponential amounts; `environment` takes their means.

    `prior` is one pair (a, b) for all arms, or one pair per arm, by default (2, 1): the rate
    θ = 1/m is Gamma(a, rate b). With `prior="learned"` the arms share a and b, which are learned.

    `arms` is the number of arms or their names.

    >>> bandit = ExponentialBandit(["red", "blue"])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 4.0)
    >>> agent.belief.expected()
    {'red': 2.5, 'blue': 1.0}
    >>> bandit.environment([2.0, 3.0]).best()
    'blue'
    """

    model_kind: ClassVar[family.FamilyKind] = _EXPONENTIAL

    def __init__(self, arms: Arms, prior: ArrayLike | str | None = None) -> None:
        grid, totals = LEARNED_EXPONENTIAL, _totals_of_amounts
        super().__init__(*with_prior(Exponential(), arms, prior, grid, totals))
