"""Geometric rewards: the number of failures before the first success, with a Beta prior over p.

    P(o | p) = p (1 - p)^o,  o = 0, 1, 2, …       p ~ Beta(α, β)
    α ← α + 1,  β ← β + o                         o | past: B(α + 1, β + o) / B(α, β)

The mean reward is m = (1 - p)/p, and E[m] = β/(α - 1) is finite for α > 1 only. The default prior
is therefore Beta(2, 1), with E[m] = 1: under Beta(1, 1) the expected reward of an arm would be ∞.
Other texts count the trials up to the success, o + 1.
"""

from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.bandits import family
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.totals import checked_totals
from bayescontrol.kernels.families import BETA, number
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

#: The smallest probability of success: with it rewards stay far below 2^53, where counts end.
LEAST_P: Final = 1e-12
_KIND: Final = family.FamilyKind(
    "geometric-bandit",
    "Arms that pay the number of failures before a success.",
    family.settings_of(
        "[α, β]", "Beta(α, β) over the probability of success of an arm. Default: [2, 1]."
    ),
    example={"arms": ["short", "medium", "long"]},
    observation=3,
    feedback="a whole number, 0 or more",
    truth=[0.4, 0.3, 0.25],
    refused=(-1, 0.5, 1e300),
    table=(family.TableRow("arms", "0, 1, 2, …", "p ~ Beta(2, 1), mean (1 - p)/p", "values of p"),),
)


class Geometric(family.DensityFamily):
    """Failures before a success of probability p; the p have Beta(α, β) priors.

    >>> family = Geometric()
    >>> family.expected(family.prior((3, 4), 1))  # β / (α - 1)
    array([2.])
    >>> family.expected(family.prior((1, 1), 1))
    array([inf])
    """

    model_kind: ClassVar[family.FamilyKind] = _KIND
    kind = number("geometric")
    density = family.Density(BETA, (1, 0))  # of 1 - p ~ Beta(β, α)
    format_text: ClassVar[str] = "Geometric()"
    columns = ("alpha", "beta")
    default = (2.0, 1.0)  # the expected mean reward is β / (α - 1) = 1

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the probabilities p_j as a column; each must be in [1e-12, 1]."""
        return family.true_rows(given, arms, {"probability of success": (LEAST_P, 1.0)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw p_j ~ Beta(α_j, β_j)."""
        drawn = [rng.beta(alpha, beta) for alpha, beta in prior]
        advice = "use a larger alpha, or a smaller beta"
        return family.checked_draws("probability of success", drawn, LEAST_P, 1.0, advice)

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is one of 0, 1, 2, …"""
        return family.as_count(o, "geometric")

    def means(self, truth: FloatArray) -> FloatArray:
        """m_j = (1 - p_j) / p_j."""
        return np.asarray((1.0 - truth[:, 0]) / truth[:, 0])

    expected = staticmethod(family.odds_means)

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Add the number and the sum of the rewards."""
        n, total, _ = checked_totals(totals, "geometric", 0.0, family.LARGEST_COUNT, whole=True)
        return np.array([row[0] + n, row[1] + total])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """m = q/(1 - q) for the quantile q of 1 - p ~ Beta(β, α)."""
        from scipy import special  # type: ignore[import-untyped]

        p = special.betainccinv(rows[:, :1], rows[:, 1:], tails)  # P(p ≥ this) is the tail
        return np.asarray((1.0 - p) / p)


class GeometricBandit(Bandit):
    """N arms that pay the number of failures before a success; `environment` takes the p.

    `prior` is one pair (α, β) for all arms, or one pair per arm, by default (2, 1): p is
    Beta(α, β). The mean reward (1 - p)/p has a finite expectation for α > 1.

    `arms` is the number of arms or their names.

    >>> bandit = GeometricBandit(["red", "blue"])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 4)
    >>> agent.belief.expected()
    {'red': 2.5, 'blue': 1.0}
    >>> bandit.environment([0.5, 0.25]).best()
    'blue'
    """

    model_kind: ClassVar[family.FamilyKind] = _KIND

    def __init__(self, arms: Arms, prior: ArrayLike | None = None) -> None:
        super().__init__(Geometric(), arms, prior)
