"""Gaussian rewards with known or unknown variance.

    σ known       o ~ N(m, σ²)      m ~ N(μ, 1/λ)
                  λ ← λ + 1/σ²      μ ← μ + (o - μ) / σ²λ
    σ unknown     o ~ N(m, 1/τ)     τ ~ Gamma(α, rate β),  m ~ N(μ, 1/κτ)
                  β ← β + κ (o - μ)² / 2(κ + 1)    μ ← μ + (o - μ)/(κ + 1)
                  κ ← κ + 1                        α ← α + ½
                  m is Student's t: 2α degrees of freedom, location μ, scale √(β/ακ)

Means and standard deviations are limited to 1e150, so that their squares are finite.
"""

import math
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, require_between
from bayescontrol._support.description import SettingDoc
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.best_arm import Mixture, normal_best, student_best
from bayescontrol.bandits.family import (
    Family,
    FamilyKind,
    TableRow,
    as_reward,
    parameter_rows,
    settings_of,
    true_rows,
)
from bayescontrol.bandits.roster import Arms
from bayescontrol.errors import InvalidPrior, QuadratureFailed
from bayescontrol.kernels.families import number
from bayescontrol.seeding import Stream

#: The largest reward, mean and standard deviation: their squares must be finite.
LARGEST: Final = 1e150
#: The smallest α with exact action probabilities: half of `kernels.quadrature.LEAST_NU`.
LEAST_ALPHA: Final = 0.125
_KIND: Final = FamilyKind(
    "gaussian-bandit",
    "Arms that pay a number with Gaussian noise.",
    settings_of(
        "[mean, sd] if the noise is known, else [μ, κ, α, β]",
        "The mean reward of an arm, on the scale of your rewards: N(mean, sd²), default [0, 1]; or "
        "normal-gamma, default [0, 1, 1, 1].",
        sd=SettingDoc(
            "number or null",
            "Standard deviation σ of the noise; null: unknown, learned for each arm. Default: 1.",
        ),
    ),
    example={"arms": ["red", "blue"], "sd": 2.0, "prior": [10, 5]},
    observation=11.5,
    feedback="a number",
    truth=[10.0, 12.0],
    refused=(1e200, -1e200),
    table=(
        TableRow("arms, sd=1", "any number, known sd", "(0, 1): mean and sd of the mean", "means"),
        TableRow(
            "arms, sd=None",
            "any number, sd unknown",
            "normal-gamma (0, 1, 1, 1)",
            "rows (mean, sd)",
        ),
    ),
)


class _GaussianFamily(Family):
    """Base of the Gaussian families, whose rows start with a mean and whose rewards are numbers."""

    #: The parameters that must be positive.
    positive: tuple[str, ...]

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return saved rows of parameters; raise InvalidPrior if one is invalid or too large."""
        rows = parameter_rows(saved, arms, self.columns, self.positive)
        for j, mean in enumerate(rows[:, 0]):
            if abs(mean) > LARGEST:
                raise InvalidPrior(f"arm {j}: the mean is {mean:g}, it must be within ±{LARGEST:g}")
        return rows

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is a number within ±1e150."""
        return as_reward(o, "Gaussian", f"a number in ±{LARGEST:g}", lambda r: abs(r) <= LARGEST)


class GaussianRewards(_GaussianFamily):
    """Rewards N(m, σ²) with known σ; the means have N(μ, 1/λ) priors.

    >>> family = GaussianRewards(sd=2.0)
    >>> family.prior((0, 5), 1).tolist()  # given as mean and standard deviation of m
    [[0.0, 0.04]]
    >>> family
    GaussianRewards(sd=2.0)
    """

    model_kind: ClassVar[FamilyKind] = _KIND
    kind = number("gaussian")
    columns = ("mu", "lam")
    positive = ("lam",)
    default = (0.0, 1.0)  # mean and standard deviation of m

    def __init__(self, sd: float = 1.0) -> None:
        self.sd = require_between("sd", sd, 1.0 / LARGEST, LARGEST, error=InvalidPrior)
        self.constants = np.array([self.sd])

    def settings(self) -> dict[str, Any]:
        """Return σ, as logs store it."""
        return {"sd": self.sd}

    def prior(self, given: ArrayLike | None, arms: int) -> FloatArray:
        """Convert a prior on m to one row (μ, λ = 1/sd²) per arm.

        `given` is (mean, sd) for all arms or for each, by default (0, 1).
        """
        prior = self.default if given is None else given
        rows = parameter_rows(prior, arms, ("mean", "sd"), ("sd",))
        # An extreme sd gives λ = 0 or λ = ∞, which `self.rows` rejects, as it does large means.
        with np.errstate(over="ignore", divide="ignore"):
            rows[:, 1] = 1.0 / rows[:, 1] ** 2
        return self.rows(rows, arms)

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the mean rewards m_j as a column; each must be within ±1e150."""
        return true_rows(given, arms, {"mean reward": (-LARGEST, LARGEST)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw m_j ~ N(μ_j, 1/λ_j)."""
        return np.array([[rng.normal(mu, 1.0 / math.sqrt(lam))] for mu, lam in prior])

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = μ_j."""
        return rows[:, 0].copy()

    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others), by quadrature."""
        return normal_best(rows[:, 0], 1.0 / np.sqrt(rows[:, 1]), mixture)

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """μ + Φ⁻¹(p) / √λ."""
        from scipy import special  # type: ignore[import-untyped]

        return np.asarray(rows[:, :1] + special.ndtri(tails) / np.sqrt(rows[:, 1:]))

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """λ = λ₁ + λ₂ - λ₀,  λ (μ - μ₀) = λ₁ (μ₁ - μ₀) + λ₂ (μ₂ - μ₀)."""
        mu0, lam0 = prior.T
        lam = one[:, 1] + (two[:, 1] - lam0)
        shift = one[:, 1] * (one[:, 0] - mu0) + two[:, 1] * (two[:, 0] - mu0)
        return np.column_stack([mu0 + shift / lam, lam])

    def format_text(self) -> str:
        """The name of the family in stored data, which is part of the format."""
        return f"Gaussian(sd={self.sd})"

    def __repr__(self) -> str:
        return f"GaussianRewards(sd={self.sd})"


class NormalGamma(_GaussianFamily):
    """Rewards N(m, 1/τ) with m and τ unknown: τ ~ Gamma(α, rate β), m ~ N(μ, 1/κτ).

    A prior (μ, κ, α, β) is equivalent to κ rewards with mean μ and 2α rewards with variance β/α.
    The mean of m exists for α > ½.

    >>> family = NormalGamma()
    >>> family.prior(None, 1).tolist()
    [[0.0, 1.0, 1.0, 1.0]]
    >>> round(family.log_predictive(family.prior((0, 1, 0.5, 1), 1)[0], 0.0), 6)  # -ln 2π
    -1.837877
    """

    model_kind: ClassVar[FamilyKind] = _KIND
    kind = number("normal_gamma")
    columns = ("mu", "kappa", "alpha", "beta")
    positive = ("kappa", "alpha", "beta")
    default = (0.0, 1.0, 1.0, 1.0)

    def settings(self) -> dict[str, Any]:
        """Return sd: None, which means that σ is unknown."""
        return {"sd": None}

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return one row (mean, standard deviation) per arm, or raise InvalidTable."""
        return true_rows(given, arms, {"mean": (-LARGEST, LARGEST), "sd": (0.0, LARGEST)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw τ_j ~ Gamma(α_j, rate β_j), then m_j ~ N(μ_j, 1/κ_j τ_j); return (m_j, 1/√τ_j)."""
        drawn = np.empty((len(prior), 2))
        for j, (mu, kappa, alpha, beta) in enumerate(prior):
            tau = rng.gamma(alpha) / beta
            sd = 1.0 / math.sqrt(tau) if tau > 0.0 else math.inf
            if not sd <= LARGEST:  # also if sd is infinite
                raise InvalidPrior(
                    f"arm {j}: the prior with alpha = {alpha:g} drew a standard deviation of "
                    f"{sd:g}: use alpha of at least 0.1"
                )
            drawn[j] = rng.normal(mu, sd / math.sqrt(kappa)), sd
        return drawn

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = μ_j; NaN for α_j ≤ ½, where m_j has no mean."""
        return np.where(rows[:, 2] > 0.5, rows[:, 0], np.nan)

    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others), by quadrature; raises `QuadratureFailed` below α = 1/8."""
        mu, kappa, alpha, beta = rows.T
        i = int(alpha.argmin())
        if alpha[i] < LEAST_ALPHA:
            j = i if mixture is None else mixture.arm(i)
            raise QuadratureFailed(
                f"arm {j}: alpha = {alpha[i]:g}: with unknown variance exact probabilities need "
                f"alpha of at least {LEAST_ALPHA}; each reward adds 1/2"
            )
        return student_best(mu, np.sqrt(beta / alpha / kappa), 2.0 * alpha, mixture)

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """μ + t_2α⁻¹(p) √(β/ακ)."""
        from scipy import special

        mu, kappa, alpha, beta = rows.T[:, :, None]
        return np.asarray(
            mu + special.stdtrit(2.0 * alpha, tails) * np.sqrt(beta / (alpha * kappa))
        )

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Add the evidence of both by Chan's formula, with d = μ - μ₀ and κ = κ₁ + κ₂ - κ₀.

            κ d = κ₁d₁ + κ₂d₂
            β = β₁ + β₂ - β₀ + (κ₁κ₂(d₁ - d₂)² - κ₀(κ₁d₁² + κ₂d₂²)) / 2κ

        No digits are lost beyond the rounding of the rows.
        """
        mu0, kappa0, alpha0, beta0 = prior.T
        (mu1, kappa1, alpha1, beta1), (mu2, kappa2, alpha2, beta2) = one.T, two.T
        d1, d2 = mu1 - mu0, mu2 - mu0
        kappa = kappa1 + (kappa2 - kappa0)
        between = kappa1 * kappa2 * (mu1 - mu2) ** 2
        within = kappa0 * (kappa1 * d1**2 + kappa2 * d2**2)
        return np.column_stack(
            [
                mu0 + (kappa1 * d1 + kappa2 * d2) / kappa,
                kappa,
                alpha1 + (alpha2 - alpha0),
                beta1 + (beta2 - beta0) + 0.5 * (between - within) / kappa,
            ]
        )

    def format_text(self) -> str:
        """The name of the family in stored data, which is part of the format."""
        return "NormalGamma()"


class GaussianBandit(Bandit):
    """N arms that pay a number with Gaussian noise.

    With `sd` the standard deviation of the noise is known, and `prior` is the mean and the
    standard deviation of an arm's mean reward, by default (0, 1). With `sd=None` the noise is
    learned for each arm, and `prior` is (μ, κ, α, β), by default (0, 1, 1, 1): see `NormalGamma`.
    Give one prior for all arms, or one per arm, on the scale of your rewards.

    `arms` is the number of arms or their names.

    >>> agent = GaussianBandit(["red", "blue"], sd=1.0, prior=(0, 1)).agent()
    >>> agent.observe("red", 2.0)
    >>> agent.belief.expected()
    {'red': 1.0, 'blue': 0.0}
    >>> GaussianBandit(2, sd=None).environment([[10, 1], [10.5, 3]])
    ArmsEnvironment(NormalGamma(), means 0: 10, 1: 10.5)
    """

    model_kind: ClassVar[FamilyKind] = _KIND

    def __init__(self, arms: Arms, sd: float | None = 1.0, prior: ArrayLike | None = None) -> None:
        super().__init__(NormalGamma() if sd is None else GaussianRewards(sd), arms, prior)
