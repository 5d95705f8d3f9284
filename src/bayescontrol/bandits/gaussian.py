"""Gaussian rewards, with location, spread and noise learned, or with a prior of your own.

    learned       o ~ N(m, σ²)      m ~ N(μ₀, ρ²σ²)      p(μ₀, σ) ∝ 1/σ,  ρ on a grid
    σ known       o ~ N(m, σ²)      m ~ N(μ, 1/λ)
                  λ ← λ + 1/σ²      μ ← μ + (o - μ) / σ²λ
    σ unknown     o ~ N(m, 1/τ)     τ ~ Gamma(α, rate β),  m ~ N(μ, 1/κτ)
                  β ← β + κ (o - μ)² / 2(κ + 1)    μ ← μ + (o - μ)/(κ + 1)
                  κ ← κ + 1                        α ← α + ½
                  m is Student's t: 2α degrees of freedom, location μ, scale √(β/ακ)

`kernels.learned` has the posterior of the first. Means and standard deviations are limited to
1e150, so that their squares are finite.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol._support.description import SettingDoc
from bayescontrol.bandits import family
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.best_arm import Mixture, normal_best, student_best
from bayescontrol.bandits.changing_learned import SCALES, Given, unit_of
from bayescontrol.bandits.learned import NEGLIGIBLE, Learned, is_learned
from bayescontrol.bandits.roster import Arms, Roster
from bayescontrol.beliefs.totals import checked_totals
from bayescontrol.errors import InvalidPrior, QuadratureFailed
from bayescontrol.kernels.families import number
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

#: The largest reward, mean and standard deviation: their squares must be finite.
LARGEST: Final = 1e150
#: The smallest α with exact action probabilities: half of `kernels.quadrature.LEAST_NU`.
LEAST_ALPHA: Final = 0.125
#: The values of ρ, the spread of the mean rewards over the noise. If arms differ by a sixteenth of
#: the noise, each needs hundreds of pulls; above sixteen, one pull tells the mean.
RATIOS: Final = 2.0 ** np.arange(-4.0, 5.0)
#: Decimal digits of action probabilities, with one more than is stated.
DIGITS: Final = 8.0
_KIND: Final = family.FamilyKind(
    "gaussian-bandit",
    "Arms that pay a number with Gaussian noise.",
    family.settings_of(
        '"learned"; or [mean, sd] if the noise is known, else [μ, κ, α, β]',
        "The mean reward of an arm, on the scale of your rewards: N(mean, sd²), or normal-gamma. "
        'Default: "learned"; give both sd and prior, or neither.',
        sd=SettingDoc(
            '"learned", number or null',
            "Standard deviation σ of the noise; null: unknown, different for each arm. Default: "
            '"learned", the same for all arms.',
        ),
    ),
    example={"arms": ["red", "blue"], "sd": 2.0, "prior": [10, 5]},
    observation=11.5,
    feedback="a number",
    truth=[10.0, 12.0],
    refused=(1e200, -1e200),
    table=(
        family.TableRow("arms", "any number", "learned, with the noise", "rows (mean, sd)"),
        family.TableRow(
            "arms, sd=2, prior=(10, 5)",
            "any number, known sd",
            "to be given: mean and sd of the mean",
            "means",
        ),
        family.TableRow(
            "arms, sd=None, prior=(0, 1, 1, 1)",
            "any number, an unknown sd for each arm",
            "to be given: normal-gamma",
            "rows (mean, sd)",
        ),
    ),
)


class _GaussianFamily(family.Family):
    """Base of the Gaussian families, whose rows start with a mean and whose rewards are numbers."""

    #: The parameters that must be positive.
    positive: tuple[str, ...]

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return saved rows of parameters; raise InvalidPrior if one is invalid or too large."""
        rows = family.parameter_rows(saved, arms, self.columns, self.positive)
        for j, mean in enumerate(rows[:, 0]):
            if abs(mean) > LARGEST:
                raise InvalidPrior(f"arm {j}: the mean is {mean:g}, it must be within ±{LARGEST:g}")
        return rows

    def best_priced(
        self, rows: FloatArray, prices: FloatArray, mixture: Mixture | None = None
    ) -> FloatArray:
        """P(m_j - prices[j] > all others): the prices shift the posteriors."""
        shifts = prices if mixture is None else np.repeat(prices, np.diff(mixture.first))
        return self.best(np.column_stack([rows[:, 0] - shifts, rows[:, 1:]]), mixture)

    @abstractmethod
    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others)."""

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is a number within ±1e150."""
        return family.as_reward(
            o, "Gaussian", f"a number in ±{LARGEST:g}", lambda r: abs(r) <= LARGEST
        )


class GaussianRewards(_GaussianFamily):
    """Rewards N(m, σ²) with known σ; the means have N(μ, 1/λ) priors.

    >>> family = GaussianRewards(sd=2.0)
    >>> family.prior((0, 5), 1).tolist()  # given as mean and standard deviation of m
    [[0.0, 0.04]]
    >>> family
    GaussianRewards(sd=2.0)
    """

    model_kind: ClassVar[family.FamilyKind] = _KIND
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
        rows = family.parameter_rows(prior, arms, ("mean", "sd"), ("sd",))
        # An extreme sd gives λ = 0 or λ = ∞, which `self.rows` rejects, as it does large means.
        with np.errstate(over="ignore", divide="ignore"):
            rows[:, 1] = 1.0 / rows[:, 1] ** 2
        return self.rows(rows, arms)

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the mean rewards m_j as a column; each must be within ±1e150."""
        return family.true_rows(given, arms, {"mean reward": (-LARGEST, LARGEST)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw m_j ~ N(μ_j, 1/λ_j)."""
        return np.array([[rng.normal(mu, 1.0 / math.sqrt(lam))] for mu, lam in prior])

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = μ_j."""
        return rows[:, 0].copy()

    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others), by quadrature."""
        return normal_best(rows[:, 0], 1.0 / np.sqrt(rows[:, 1]), mixture)

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """λ ← λ + n/σ²,  μ ← μ + n (mean - μ) / σ²λ."""
        n, total, _ = checked_totals(totals, "Gaussian", -LARGEST, LARGEST)
        precision = n / (self.sd * self.sd)
        lam = row[1] + precision
        return np.array([row[0] + precision * (total / n - row[0]) / lam, lam])

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

    model_kind: ClassVar[family.FamilyKind] = _KIND
    kind = number("normal_gamma")
    format_text: ClassVar[str] = "NormalGamma()"
    columns = ("mu", "kappa", "alpha", "beta")
    positive = ("kappa", "alpha", "beta")
    default = (0.0, 1.0, 1.0, 1.0)

    def settings(self) -> dict[str, Any]:
        """Return sd: None, which means that σ is unknown."""
        return {"sd": None}

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return one row (mean, standard deviation) per arm, or raise InvalidTable."""
        return family.true_rows(given, arms, {"mean": (-LARGEST, LARGEST), "sd": (0.0, LARGEST)})

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

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Add the evidence of n rewards, with d = mean - μ; it needs the sum of squares.

        β ← β + (Σ r² - n mean² + κ n d²/(κ + n)) / 2     μ ← μ + n d/(κ + n)
        κ ← κ + n                                         α ← α + n/2
        """
        checked = checked_totals(totals, "Gaussian", -LARGEST, LARGEST, needs_squares=True)
        n, total, squares = checked
        mu, kappa, alpha, beta = row.tolist()
        mean = total / n
        d, within = mean - mu, cast("float", squares) - total * mean
        beta += 0.5 * (within + kappa * n * d * d / (kappa + n))
        return np.array([mu + n * d / (kappa + n), kappa + n, alpha + 0.5 * n, beta])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """μ + t_2α⁻¹(p) √(β/ακ)."""
        from scipy import special

        mu, kappa, alpha, beta = rows.T[:, :, None]
        return np.asarray(mu + special.stdtrit(2.0 * alpha, tails) * np.sqrt(beta / alpha / kappa))

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


def _totals(T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of rewards of each arm, from (mean, n, n/2, M/2)."""
    return T[:, 0] * T[:, 1], T[:, 1]


class LearnedGaussian(Learned):
    """Rewards N(m, σ²) with one σ; the means are N(μ₀, ρ²σ²). μ₀, σ and ρ are learned.

    >>> LearnedGaussian().prior(None, 1).tolist()  # the statistics of an arm without rewards
    [[0.0, 0.0, 0.0, 0.0]]
    """

    model_kind: ClassVar[family.FamilyKind] = _KIND

    def __init__(self) -> None:
        super().__init__(NormalGamma(), 1.0 / RATIOS[:, None] ** 2, _totals)
        self.kind_of_rows = number("gaussian")

    def group_grid(self) -> FloatArray:
        """Return the grid of λ = 1/ρ²."""
        return self.grid

    def settings(self) -> dict[str, Any]:
        """Return "learned", as logs store it."""
        return {"sd": "learned", "prior": "learned"}

    def given_each(self, location: float) -> list[Given]:
        """Return the location, noise and spread of changing arms, in units."""
        return [
            Given(
                {"location": location + error, "noise": sd, "spread": spread},
                GaussianRewards(sd), (location + error, spread),
            )
            for sd, spread, error in SCALES
        ]  # fmt: skip

    def find_unit(self, rewards: Sequence[float]) -> tuple[float, float] | None:
        """Return the mean of the rewards, and a unit about their standard deviation."""
        return unit_of(rewards, centred=True)

    def for_segments(self) -> Learned:
        """Return this family: the segments of an arm share a location, a spread and a noise."""
        return self

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return saved statistics (mean, n, n/2, M/2); raise InvalidPrior if they are invalid."""
        rows = as_numbers(saved, "the statistics of the arms", InvalidPrior)
        if rows.shape != (arms, 4) or not (
            (np.abs(rows[:, 0]) <= LARGEST).all()
            and np.isfinite(rows).all()
            and (rows[:, 1:] >= 0.0).all()
        ):
            raise InvalidPrior(f"the statistics of {arms} arms are {rows.tolist()}")
        return rows

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Raise InvalidPrior: the prior has no scale to draw from."""
        raise InvalidPrior(
            "the learned prior of Gaussian arms is flat on the location and the scale of rewards, "
            "so no world can be drawn from it: use environment([[mean, sd], …]), or "
            "GaussianBandit(arms, sd=2, prior=(10, 5))"
        )

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Add the statistics by Chan's formula."""
        with np.errstate(invalid="ignore"):
            both = NormalGamma().merged(prior, one, two)
        return np.where(one[:, 1:2] + two[:, 1:2], both, 0.0)

    def action_probabilities(
        self, group: Any, rows: FloatArray, roster: Roster, temperature: float
    ) -> FloatArray:
        """P(m_j is the largest) = Σ_ρ P(ρ) E P(m_j is the largest | ρ, σ, μ₀).

        With q = √S/σ, which is χ with n - 1 degrees of freedom, and z = √V (μ₀ - μ̂)/σ, which is
        normal, the means in units of σ are independent, with variances T/(n_j + λ), T the
        temperature, and means q (μ_j - μ̂)/√S + z λ/(n_j + λ)/√V. A shift of all means changes
        nothing; the one that is used makes their dependence on z weak. The rules for q and z have
        an error of about 1e-7. A less probable ρ needs fewer digits, so fewer nodes; nodes of a
        probability below 1e-10 are left out. Low temperatures need more nodes, about 1/√T times.
        """
        nu, active = int(group.statistics[:, 1].sum()) - 1, roster.active
        P, prices = np.zeros(len(active)), 0.0 if roster.prices is None else roster.prices
        for h in np.flatnonzero(group.w > 10.0**-DIGITS):
            w, lam, (location, V, S) = group.w[h], group.grid[h, 0], group.shared[h]
            precision = group.statistics[active, 1] + lam
            by_location = lam / precision
            by_location -= (precision @ by_location) / precision.sum()
            slope = by_location / math.sqrt(V)
            precision /= temperature
            q, p_q = chi_rule(nu, w, temperature)
            z, p_z = location_rule(np.abs(slope) * np.sqrt(precision), w)
            centre = (rows[h, active, 0] - location - prices) / math.sqrt(S)
            means = q[:, None, None] * centre + z[:, None] * slope
            p = w * np.outer(p_q, p_z)
            best = normal_best(means[p > NEGLIGIBLE], 1.0 / np.sqrt(precision), error=1e-10)
            P += p[p > NEGLIGIBLE] @ best
        return np.asarray(P / P.sum())

    def scales(self, group: Any) -> dict[str, float]:
        """Return estimates of μ₀, of the noise σ and of the spread ρσ of the means."""
        location, _, S = group.shared.T
        noise = np.sqrt(S / max(group.statistics[:, 1].sum() - 1.0, 1.0))
        return {
            "location": float(group.w @ location),
            "noise": float(group.w @ noise),
            "spread": float(group.w @ (noise * RATIOS)),
        }


def gauss_rule(x: FloatArray, w: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss's rule for the distribution with weights w at points x.

    They are the eigenvalues of the recurrence of its orthogonal polynomials (Golub & Welsch).

    >>> gauss_rule(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]), 1)
    (array([1.]), array([1.]))
    """
    matrix, last, polynomial, norm = np.zeros((nodes, nodes)), 0.0 * x, np.sqrt(w), 0.0
    for k in range(nodes):
        matrix[k, k] = x @ polynomial**2
        following = (x - matrix[k, k]) * polynomial - norm * last
        norm = math.sqrt(following @ following)
        if k + 1 < nodes:
            matrix[k, k + 1] = matrix[k + 1, k] = norm
            last, polynomial = polynomial, following / norm
    points, vectors = np.linalg.eigh(matrix)
    return points, vectors[0] ** 2


def _digits(w: float) -> float:
    """Return how many digits are needed of a term with the weight w, as a share of `DIGITS`."""
    return 1.0 + math.log10(w) / DIGITS


def chi_rule(nu: int, w: float = 1.0, temperature: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return Gauss's rule for the χ distribution with ν degrees of freedom, 28 nodes to 5.

    A term with the weight w < 1 needs fewer nodes, unless ν is small; a temperature below 1 makes
    P(a | q) steeper and needs more, here at most 100.

    >>> q, p = chi_rule(4)
    >>> round(float(p @ q**2), 9)
    4.0
    """
    nodes = (_digits(w) if nu > 8 else 1.0) * (4.0 + 24.0 / math.sqrt(nu))
    return _chi_rule(nu, min(100, math.ceil(nodes / math.sqrt(min(temperature, 1.0)))))


@lru_cache(maxsize=64)
def _chi_rule(nu: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    x, w = _legendre()
    low, high = max(0.0, math.sqrt(nu) - 10.0), math.sqrt(nu) + 10.0
    x = low + (high - low) * (x + 1.0) / 2.0
    log_density = (nu - 1.0) * np.log(x / math.sqrt(nu)) - (x * x - nu) / 2.0
    w = w * np.exp(log_density - log_density.max())
    return gauss_rule(x, w / w.sum(), nodes)


@lru_cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return the Gauss-Legendre rule with 160 nodes, which takes tens of milliseconds."""
    return np.polynomial.legendre.leggauss(160)


def normal_nodes(steepest: float, w: float) -> int:
    """Return the nodes for a term with the weight w, whose means move by `steepest` deviations.

    >>> normal_nodes(0.0, 1.0), normal_nodes(0.1, 1.0), normal_nodes(1.0, 1.0)
    (1, 4, 26)
    """
    nodes = 4.0 + 12.0 * steepest + 10.0 * steepest**4
    if steepest < 0.3:  # the error of n nodes is about steepest^2n
        nodes = min(nodes, -0.5 * DIGITS / math.log10(max(steepest, 1e-9)))
    return max(1, math.ceil(_digits(w) * nodes))


@lru_cache(maxsize=64)
def normal_rule(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the Gauss-Hermite rule for N(0, 1)."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return z, w / w.sum()


def location_rule(steepness: FloatArray, w: float) -> tuple[FloatArray, FloatArray]:
    """Return points and weights for z ~ N(0, 1), where z moves arm j by `steepness[j]` deviations.

    They are for a term with the weight w. Gauss's rule or equal steps, whichever has fewer points.
    P(a | z) is a normal distribution function along z with the standard deviation 1/|steepness|,
    which limits the steps.
    """
    nodes = normal_nodes(float(steepness.max()), w)
    half = math.ceil(6.0 * math.sqrt(1.0 + float(steepness @ steepness)))
    if nodes <= 2 * half + 1:
        return normal_rule(nodes)
    z = 6.0 * np.arange(-half, half + 1) / half
    p = np.exp(-0.5 * z * z)
    return z, p / p.sum()


class GaussianBandit(Bandit):
    """N arms that pay a number with Gaussian noise.

    By default the scale of the rewards is learned: the noise, the location of the mean rewards and
    their spread. The agent then acts in the same way in any unit of reward. Until two rewards
    differ, it chooses uniformly.

    Or give both `sd` and `prior`. With a number for `sd` the noise is known, and `prior` is the
    mean and the standard deviation of an arm's mean reward. With `sd=None` each arm has an unknown
    noise of its own, and `prior` is (μ, κ, α, β): see `NormalGamma`. Give one prior for all arms,
    or one per arm, on the scale of your rewards.

    `arms` is the number of arms or their names.

    >>> agent = GaussianBandit(["red", "blue"]).agent()
    >>> for arm, reward in (("red", 1.0), ("blue", 5.0), ("red", 2.0), ("blue", 4.0)):
    ...     agent.observe(arm, reward)
    >>> agent.action_probabilities()["blue"] > 0.9
    True
    >>> agent = GaussianBandit(["red", "blue"], sd=1.0, prior=(0, 1)).agent()
    >>> agent.observe("red", 2.0)
    >>> agent.belief.expected()
    {'red': 1.0, 'blue': 0.0}
    >>> GaussianBandit(2, sd=None, prior=(0, 1, 1, 1)).environment([[10, 1], [10.5, 3]])
    ArmsEnvironment(NormalGamma(), means 0: 10, 1: 10.5)
    """

    model_kind: ClassVar[family.FamilyKind] = _KIND

    def __init__(
        self, arms: Arms, sd: float | str | None = "learned", prior: ArrayLike | str = "learned"
    ) -> None:
        both = is_learned("sd", sd), is_learned("prior", prior)
        if all(both):
            super().__init__(LearnedGaussian(), arms)
            return
        if any(both) or prior is None:
            raise InvalidPrior(
                f"sd={sd!r} with prior={prior!r}: give both, as sd=2, prior=(10, 5) or sd=None, "
                "prior=(0, 1, 1, 1), or neither: then both are learned"
            )
        rewards = NormalGamma() if sd is None else GaussianRewards(cast("float", sd))
        super().__init__(rewards, arms, prior)
