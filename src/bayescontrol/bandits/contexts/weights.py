"""Posteriors of the weights of linear scores: with given scales, or with scales that are learned.

    given      w_j ~ N(μ₀, Λ₀⁻¹),  noise σ
    learned    w_ji ~ N(0, ρ² s² / c_i²),  noise s,  p(s) ∝ 1/s,  ρ √d one of 2^-3 … 2^5, P(ρ) ∝ ρ²
    logistic   w_ji ~ N(0, ρ² / c_i²),  ρ √d one of 2^-1 … 2^5, equally likely; no noise

The ratio ρ of prior and noise, and the noise s, are shared by all arms. So are the scales c_i of
the features: the largest |x_i| of all learned contexts, rounded up to a power of 2, or 1 if the
scale is given. Then ρ √d is the ratio of signal and noise. The posterior is a mixture over ρ,

    P(a | past, x) = Σ_ρ P(ρ | past) ∫ p(s | ρ, past) P(a | past, x, ρ, s) ds

Given ρ, the scores have a multivariate t distribution with n degrees of freedom, n the number of
rewards. The integral over s is a sum at about 25 points (250 if n = 1), with a quadrature over the
scores (`best_arm`) at each; two arms need none. `kernels.scales` says how P(ρ | past) is updated.
"""

import math
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import BoolArray, FloatArray, IntArray, UIntArray, as_integer
from bayescontrol._support.regressions import Regressions
from bayescontrol._support.saved import Array, Cache, Fixed, Saved, damaged, declare
from bayescontrol.bandits.best_arm import Mixture, normal_best
from bayescontrol.bandits.contexts.regression import LEARNED, FiniteLink, Link, Prior, prior_factors
from bayescontrol.bandits.family import mixed_predictive
from bayescontrol.bandits.priced import priced_best
from bayescontrol.errors import IncompatibleState, InvalidPrior
from bayescontrol.kernels.families import NORMAL
from bayescontrol.protocols import Totals

# The binary logarithms of the smallest and largest ρ √d: with noise, and for rewards 0 and 1.
_WITH_NOISE: Final = (-3, 5)
_WITHOUT_NOISE: Final = (-1, 5)
#: Points of the integral over s with a density below e^-30 of the largest are omitted, and the
#: distance of the points, relative to the width of the density and at most, has an error of 1e-10.
_FALL, _STEP, _LARGEST_STEP = 30.0, 0.65, 0.25
#: Halvings of the interval that contains a quantile.
_HALVINGS: Final = 60


class FixedScales(Regressions):
    """Posteriors of weights with a given prior; the noise is a constant of the link."""

    #: The factor of the standard deviations of draws: √T at temperature T.
    spread = 1.0
    #: Whether the scale of the rewards is known.
    is_known = True

    def __init__(self, link: Link, R: FloatArray, z: FloatArray) -> None:
        super().__init__(R, z)
        self.link = link

    def learn(self, j: int, x: FloatArray, r: float) -> None:
        """Learn reward r of the score x·w_j."""
        link = self.link
        kernels.regression.learn(link.kind, link.constants, self.R[j], self.z[j], x, r, self.v)

    def learn_totals(self, j: int, x: FloatArray, totals: Totals) -> None:
        """Learn n rewards of the score x·w_j: like one reward of √n x·w_j."""
        root = math.sqrt(totals.n)
        self.learn(j, root * x, totals.total / root)

    def expected(self, j: int, x: FloatArray) -> float:
        """E[r] for the score x·w_j."""
        return self.link.expected(*self.score(j, x))

    def log_predictive(self, j: int, x: FloatArray, r: float) -> float:
        """ln P(r) for the score x·w_j."""
        return self.link.log_predictive(*self.score(j, x), r)

    def predictive(self, j: int, x: FloatArray) -> dict[float, float]:
        """P(r) of every reward r, for a link with finitely many."""
        return cast("FiniteLink", self.link).predictive(*self.score(j, x))

    def score_quantiles(self, j: int, x: FloatArray, tails: FloatArray) -> FloatArray:
        """Return quantiles of the score x·w_j."""
        mean, variance = self.score(j, x)
        return np.asarray(mean + np.sqrt(variance) * _student_quantile(np.inf, tails))

    def draw_rows(self, rows: IntArray, rng_state: UIntArray) -> FloatArray:
        """Draw w_j for every row j."""
        return _draw_weights(self.R, self.z, rows, rng_state, self.spread)

    def draw_arm(self, active: IntArray, x: FloatArray, rng_state: UIntArray) -> int:
        """Draw the scores x·w_j of the active arms; return the best arm."""
        R, z, v = self.R, self.z, self.v
        return kernels.regression.draw_action(R, z, active, x, v, rng_state, self.spread)

    def best(self, rows: IntArray, x: FloatArray, prices: FloatArray | None = None) -> FloatArray:
        """P(score x·w_j is the largest) for every row j, or the mean reward less its price."""
        mean, variance = np.array([self.score(j, x) for j in rows.tolist()]).T
        scores = np.column_stack([mean, self.spread * np.sqrt(variance)])
        return best_score(scores, self.link, prices=prices)

    def p_above(self, j: int, x: FloatArray, least: float = 0.0) -> float:
        """P(x·w_j > least); ½ if both are equal for certain."""
        mean, variance = self.score(j, x)
        return float(_p_positive(mean - least, self.spread**2 * variance, np.inf))

    def append_prior(self, prior: Prior | None) -> None:
        """Append a regression with this prior, by default that of the first one."""
        if prior is None:
            R, z = (part[:1] for part in self._prior)
        else:
            R, z = prior_factors(prior, 1, self.features)
        self.append(FixedScales(self.link, R, z))

    def interact(self, link: Link, active: IntArray, x: FloatArray, *run: Any) -> None:
        """Run the compiled loop in a world with this link."""
        arms = kernels.regression.ArmWeights(self.R, self.z, active, self.v)
        run = (*run, self.spread)
        kernels.regression.interact(link.kind, link.constants, arms, x, *run)

    def draw_prior(self, rng_state: UIntArray, noise: float) -> FloatArray:
        """Draw the weights of all arms from the prior."""
        return FixedScales(self.link, *self._prior).draw_rows(np.arange(len(self)), rng_state)


class LearnedScales(Saved):
    """Posteriors of N weight vectors with d features for each ratio ρ; prior and noise are learned.

    >>> from bayescontrol import LinearBandit, interact
    >>> bandit = LinearBandit(2, features=1)
    >>> world = bandit.environment([[1.0], [-1.0]], sd=0.1)
    >>> agent = bandit.agent(world.start)
    >>> record = interact(agent, world, 500, seed=0)
    >>> round(agent.belief.scales()["noise"], 2)
    0.1
    """

    saved_fields = declare(
        Fixed("ratios", "rho"),
        Array("factor", "R", shape=("size", None, "features", "features")),
        Array("target", "z", shape=("size", None, "features")),
        Array("residuals", "S"),
        Array("log_evidence", "L"),
        Array("rewards", "n"),
        Array("ratio_probabilities", "p"),
        Array("feature_scales", "c"),
        Array("events"),
        Cache("_arrays", lambda _: None),
    )
    #: The factor of the standard deviations of draws given ρ and s: √T at temperature T.
    spread = 1.0

    def __init__(
        self, link: Link, arms: int, features: int, scaled: BoolArray | None = None
    ) -> None:
        self.link, self.features = link, as_integer("features", features, 1, InvalidPrior)
        self._has_noise = link.sd == LEARNED
        least, largest = _WITH_NOISE if self._has_noise else _WITHOUT_NOISE
        self.rho = 2.0 ** np.arange(least, largest + 1) / np.sqrt(features)
        self.size = len(self.rho)
        #: Whether the scale of a feature is learned, and the scales so far: `ScaledWeights.c`.
        self.learned = np.ones(features, bool) if scaled is None else ~scaled
        self.c = np.where(self.learned, -1.0, 1.0)
        #: The first rewards without noise, until the scales are frozen.
        first = 0 if self._has_noise else kernels.scales.FREEZE_AFTER
        self.events = np.zeros((first, 2 + features))
        self.R, self.z = self._prior(arms)
        self.S, self.L = np.zeros(self.size), 2.0 * np.log(self.rho) * self._has_noise
        #: The number of rewards, and the number at which dropped ratios are tried again.
        self.n = np.array([0, arms * features])
        #: P(ρ | past); 0 for dropped ratios.
        self.p = self._prior_ratios()
        self._arrays: kernels.scales.ScaledWeights | None = None

    def _prior_ratios(self) -> FloatArray:
        """P(ρ) ∝ ρ², so that the agent explores until the rewards say more; uniform without noise.

        Without noise the posterior is approximate, and worse for a wide prior.
        """
        weights = self.rho**2 if self._has_noise else np.ones(self.size)
        return np.asarray(weights / weights.sum())

    def _prior(self, arms: int) -> tuple[FloatArray, FloatArray]:
        """Return the factors and targets of arms without rewards."""
        R = np.tile(np.diag(np.abs(self.c)), (self.size, arms, 1, 1))
        return R / self.rho[:, None, None, None], np.zeros((self.size, arms, self.features))

    def __len__(self) -> int:
        """The number of weight vectors."""
        return int(self.z.shape[1])

    @property
    def arrays(self) -> "kernels.scales.ScaledWeights":
        """The arrays that kernels update in place, with scratch."""
        if self._arrays is None:
            arms, d = len(self), self.features
            self._arrays = kernels.scales.ScaledWeights(
                self.rho, self.R, self.z, self.S, self.L, self.n, self.p, np.empty(d),
                np.empty((arms, d, d)), np.empty((arms, d)), self.c, self.learned,
                self.events,
            )  # fmt: skip
        return self._arrays

    def learn(self, j: int, x: FloatArray, r: float) -> None:
        """Learn reward r of the score x·w_j."""
        kernels.scales.learn_reward(self.link.kind, self.arrays, j, x, r)

    def learn_totals(self, j: int, x: FloatArray, totals: Totals) -> None:
        """Learn n rewards of the score x·w_j, with their sum of squares; not for `Logit`."""
        n, total, squares = totals
        kernels.scales.learn_totals(self.arrays, j, x, n, total, cast("float", squares))

    # -- the mixture over ρ --------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether the scale of the rewards is known: one of them was not 0, or they have none."""
        return not self._has_noise or bool(self.S.any())

    def _noise(self) -> tuple[FloatArray, float]:
        """Return the scale S/n of s² for every ρ in use, and n; 1 and ∞ without noise."""
        S = self.S[self.p > 0.0]
        n = max(int(self.n[0]), 1)
        return (S / n, float(n)) if self._has_noise else (np.ones(S.size), np.inf)

    def _score(self, j: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of x·w_j, and its variance relative to s², for every ρ in use."""
        score, v = kernels.regression.score, self.arrays.v
        used = np.flatnonzero(self.p).tolist()
        mean, variance = np.array([score(self.R[h, j], self.z[h, j], x, v) for h in used]).T
        return mean, variance

    def _average(self, values: Any) -> Any:
        """Return Σ P(ρ | past) value_ρ over the ratios in use."""
        return self.p[self.p > 0.0] @ np.asarray(values)

    def scales(self) -> dict[str, float]:
        """Return the posterior means of the noise √(S/n), if any, and of ρ √(S/n), of the weights.

        The weights are those of features in units of their scale.
        Empty until a reward other than 0 was learned.
        """
        if not self.is_known:
            return {}
        noise = np.sqrt(self._noise()[0])
        weights = float(self._average(self.rho[self.p > 0.0] * noise))
        shared = {"noise": float(self._average(noise))} if self._has_noise else {}
        return {**shared, "weights": weights}

    def ratios(self) -> dict[float, float]:
        """P(ρ | past) of the ratios in use."""
        used = self.p > 0.0
        return dict(zip(self.rho[used].tolist(), self.p[used].tolist(), strict=True))

    def score(self, j: int, x: FloatArray) -> tuple[float, float]:
        """Return the mean and the variance of x·w_j; the variance is infinite if n ≤ 2."""
        mean, q = self._score(j, x)
        noise, n = self._noise()
        factor = 1.0 if n == np.inf else n / (n - 2.0) if n > 2.0 else np.inf
        m = float(self._average(mean))
        return m, float(self._average((mean - m) ** 2) + factor * self._average(noise * q))

    def expected(self, j: int, x: FloatArray) -> float:
        """E[r] for the score x·w_j."""
        return float(self._average([self.link.expected(m, q) for m, q in self._pairs(j, x)]))

    def _pairs(self, j: int, x: FloatArray) -> list[tuple[float, float]]:
        """Return the results of `_score` as pairs."""
        mean, variance = self._score(j, x)
        return list(zip(mean.tolist(), variance.tolist(), strict=True))

    def log_predictive(self, j: int, x: FloatArray, r: float) -> float:
        """ln P(r) for the score x·w_j; 0 while the scale of the rewards is unknown.

        Given ρ, a reward with noise has Student's t distribution with n degrees of freedom.
        """
        from scipy import special  # type: ignore[import-untyped]

        if not self.is_known:
            return 0.0
        if self._has_noise:
            (mean, q), (noise, n) = self._score(j, x), self._noise()
            c = n * noise * (1.0 + q)
            logs = -0.5 * (np.log(np.pi * c) + (n + 1.0) * np.log1p((r - mean) / c * (r - mean)))
            logs += special.gammaln(0.5 * (n + 1.0)) - special.gammaln(0.5 * n)
        else:
            logs = np.array([self.link.log_predictive(m, q, r) for m, q in self._pairs(j, x)])
        return float(special.logsumexp(logs, b=self.p[self.p > 0.0]))

    def predictive(self, j: int, x: FloatArray) -> dict[float, float]:
        """P(r) of every reward r, for a link with finitely many."""
        link = cast("FiniteLink", self.link)
        given = [link.predictive(m, q) for m, q in self._pairs(j, x)]
        return mixed_predictive(self.p[self.p > 0.0], given)

    def score_quantiles(self, j: int, x: FloatArray, tails: FloatArray) -> FloatArray:
        """Return quantiles of the score x·w_j; NaN while the scale of the rewards is unknown."""
        if not self.is_known:
            return np.full(np.shape(tails), np.nan)
        (mean, q), (noise, n) = self._score(j, x), self._noise()
        sd = np.sqrt(noise * q)
        quantiles = mean[:, None] + sd[:, None] * _student_quantile(n, tails)
        low, high = quantiles.min(0), quantiles.max(0)
        for _ in range(_HALVINGS if len(mean) > 1 and sd.all() else 0):
            middle = 0.5 * (low + high)
            F = self._average(_student(n, (middle - mean[:, None]) / sd[:, None]))
            low, high = np.where(tails > F, middle, low), np.where(tails > F, high, middle)
        return np.asarray(0.5 * (low + high))

    def mean(self, j: int) -> FloatArray:
        """Return E w_j."""
        used = np.flatnonzero(self.p)
        mu = np.empty((used.size, self.features))
        for h, row in zip(used.tolist(), mu, strict=True):
            kernels.regression.solve_upper(self.R[h, j], self.z[h, j], row)
        return np.asarray(self._average(mu))

    def precision(self, j: int) -> FloatArray:
        """Return E Λ_j, the precision of w_j relative to 1/s²."""
        R = self.R[self.p > 0.0, j]
        return np.asarray(np.einsum("h,hki,hkm->im", self.p[self.p > 0.0], R, R))

    # -- draws and choices ---------------------------------------------------------------------

    def draw_rows(self, rows: IntArray, rng_state: UIntArray) -> FloatArray:
        """Draw ρ and s, then w_j for every row j; 0 while the scale of the rewards is unknown."""
        h, s = kernels.scales.draw_scale(self.link.kind, self.arrays, rng_state)
        if s == 0.0:  # the scale is unknown
            return np.zeros((rows.size, self.features))
        return _draw_weights(self.R[h], self.z[h], rows, rng_state, s * self.spread)

    def draw_prior(self, rng_state: UIntArray, noise: float) -> FloatArray:
        """Draw ρ and the weights of all arms from the prior, given the noise."""
        prior = LearnedScales(self.link, len(self), self.features)
        h = kernels.random.categorical(rng_state, prior.p)
        return _draw_weights(prior.R[h], prior.z[h], np.arange(len(self)), rng_state, noise)

    def draw_arm(self, active: IntArray, x: FloatArray, rng_state: UIntArray) -> int:
        """Draw ρ, s and the scores x·w_j of the active arms; return the best arm."""
        kind, arrays, spread = self.link.kind, self.arrays, self.spread
        return kernels.scales.draw_arm(kind, arrays, active, x, rng_state, spread)

    def best(self, rows: IntArray, x: FloatArray, prices: FloatArray | None = None) -> FloatArray:
        """P(score x·w_j is the largest) for every row j, or the mean reward less its price."""
        if not self.is_known:
            return np.full(rows.size, 1.0 / rows.size)
        mean, q = np.array([self._score(j, x) for j in rows.tolist()]).transpose(1, 2, 0)
        noise, n = self._noise()
        q *= self.spread**2
        if prices is not None and not self._has_noise:  # the mean reward is not the score
            scores = np.stack([mean, np.sqrt(q)], -1)
            return np.asarray(
                self._average([best_score(s, self.link, None, prices) for s in scores])
            )
        if prices is not None:
            mean = mean - prices
        if rows.size == 2:
            p = _p_positive(mean[:, 0] - mean[:, 1], noise * q.sum(1), n)
            return np.asarray(self._average(np.column_stack([p, 1.0 - p])))
        if not q.all():  # a context of zeros
            is_best = mean[0] == mean[0].max()
            return np.asarray(is_best / is_best.sum())
        s, weights = _noise_points(n)
        sd = np.sqrt(noise[:, None, None] * q[:, None, :]) * s[:, None]
        P = normal_best(np.broadcast_to(mean[:, None, :], sd.shape), sd)
        return np.asarray(self._average(np.einsum("u,hua->ha", weights, P)))

    def p_above(self, j: int, x: FloatArray, least: float = 0.0) -> float:
        """P(x·w_j > least); ½ if both are equal for certain, or the scale of rewards is unknown."""
        if not self.is_known:
            return 0.5
        mean, q = self._score(j, x)
        noise, n = self._noise()
        return float(self._average(_p_positive(mean - least, self.spread**2 * noise * q, n)))

    def interact(self, link: Link, active: IntArray, x: FloatArray, *run: Any) -> None:
        """Run the compiled loop in a world with this link."""
        run = (*run, self.spread)
        kernels.scales.interact(link.kind, link.constants, self.arrays, active, x, *run)

    # -- changes -------------------------------------------------------------------------------

    def append_prior(self, prior: Prior | None) -> None:
        """Append a weight vector without rewards; its prior is the learned one."""
        if prior is not None:
            raise InvalidPrior(
                f"prior={prior!r}: the arms have one learned prior; omit `prior`, or create the "
                "bandit with `sd` and `prior`"
            )
        R, z = self._prior(1)
        self.R, self.z = np.concatenate([self.R, R], 1), np.concatenate([self.z, z], 1)
        self._arrays = None

    def same_prior(self, other: Any) -> bool:
        """Whether both have the same prior."""
        return isinstance(other, LearnedScales) and np.array_equal(self.rho, other.rho)

    def merge(self, other: "LearnedScales") -> None:
        """Add the rewards of `other`: their sums Σ x xᵀ, Σ r x and Σ r². Needs noise."""
        joint, scales = self.copy(), kernels.scales
        mine, theirs = joint.arrays, other.copy().arrays
        squares = scales.statistics(mine, int(self.p.argmax()))
        squares += scales.statistics(theirs, int(other.p.argmax()))
        mine.A[:] += theirs.A
        mine.b[:] += theirs.b
        joint.n[0] += other.n[0]
        joint.c[:] = np.maximum(self.c, other.c)
        joint.p[:] = self._prior_ratios()
        if joint.n[0] and not all(scales.assemble(mine, h, squares) for h in range(self.size)):
            raise IncompatibleState(
                "the beliefs cannot be merged: their evidence is lost in rounding errors; learn "
                "the rewards one by one instead"
            )
        scales.weigh(self.link.kind, mine)
        vars(self).update(vars(joint))

    def _check_state(self, new: SimpleNamespace) -> None:
        in_use = new.p > 0.0
        diagonal = np.diagonal(new.R[in_use], axis1=-2, axis2=-1)
        if not in_use.any() or (new.p < 0.0).any() or not abs(new.p.sum() - 1.0) < 1e-9:
            raise damaged(f"the probabilities of the ratios are {new.p}")
        if np.tril(new.R[in_use], -1).any() or not (diagonal > 0.0).all():
            raise damaged("'factor' is not a triangular factor")
        if new.R.shape[1] != new.z.shape[1] or (new.S < 0.0).any() or (new.n < 0).any():
            raise damaged(f"{new.R.shape[1]} factors, {new.z.shape[1]} targets, {new.n} rewards")
        if not ((new.c > 0.0) | (new.c == -1.0)).all():
            raise damaged(f"the scales of the features are {new.c}")
        arms = new.events[:, 0]
        if not ((arms >= 0.0) & (arms < new.z.shape[1])).all():
            raise damaged(f"the first rewards are of the arms {arms}")

    def _after_load(self) -> None:
        self._arrays = None


#: The posteriors of all weights of a belief.
WeightPosteriors: TypeAlias = FixedScales | LearnedScales


def make_posteriors(
    link: Link, prior: Prior, arms: int, features: int, scaled: BoolArray | None = None
) -> WeightPosteriors:
    """Return the prior of `arms` weight vectors, or raise InvalidPrior.

    `scaled` says which features have a given scale.
    """
    learns_prior = isinstance(prior, str) and prior == LEARNED
    if link.sd is not None and learns_prior != (link.sd == LEARNED):
        raise InvalidPrior(
            f"sd={link.sd!r}, prior={prior!r}: give both, as sd=1, prior=(0, 1), or neither: then "
            "noise and prior are learned"
        )
    if learns_prior:
        return LearnedScales(link, arms, features, scaled)
    return FixedScales(link, *prior_factors(prior, arms, features))


def _draw_weights(
    R: FloatArray, z: FloatArray, rows: IntArray, rng_state: UIntArray, s: float
) -> FloatArray:
    """Draw w_j for every row j; s multiplies the standard deviations."""
    weights, v = np.empty((rows.size, z.shape[1])), np.empty(z.shape[1])
    for w, j in zip(weights, rows.tolist(), strict=True):
        kernels.regression.draw_weights(R[j], z[j], v, w, rng_state, s)
    return weights


def best_score(
    scores: FloatArray,
    link: Link,
    mixture: Mixture | None = None,
    prices: FloatArray | None = None,
) -> FloatArray:
    """P(arm j is the best) for (mean, standard deviation) of scores, or for a mixture each.

    The best arm has the largest score, or with `prices` the largest mean reward minus price.
    """
    s, sd = scores.T
    if prices is not None:
        if link.sd is None:  # the mean reward is not the score
            if sd.all():
                return priced_best(NORMAL, s, sd, prices, mixture, bounded=True)
            s = link.mean(s)
        s = s - (prices if mixture is None else np.repeat(prices, np.diff(mixture.first)))
    if sd.all():
        return normal_best(s, sd, mixture)
    # Scores without uncertainty, as in the context 0, have no density to integrate.
    if mixture is not None:
        s = np.add.reduceat(mixture.p * s, mixture.first[:-1])
    is_best = s == s.max()
    return np.asarray(is_best / is_best.sum())


def _noise_points(n: float) -> tuple[FloatArray, FloatArray]:
    """Return points s and weights that integrate over s² = n/(2g), g ~ Gamma(n/2): s² has scale 1.

    The trapezoidal rule for t = ln(2g/n), whose density is ∝ exp(-n/2 (e^t - 1 - t)).
    """
    if n == np.inf:
        return np.ones(1), np.ones(1)
    width = np.sqrt(2.0 / n)
    step = min(_LARGEST_STEP, _STEP * width)
    right = np.sqrt(2.0 * _FALL) * width
    left = right + 2.0 * _FALL / n + 1.0
    t = step * np.arange(-int(left / step), int(right / step) + 1)
    fall = 0.5 * n * (np.expm1(t) - t)
    t, weights = t[fall < _FALL], np.exp(-fall[fall < _FALL])
    return np.exp(-0.5 * t), weights / weights.sum()


def _student(n: float, t: FloatArray) -> FloatArray:
    """Return P(T < t) of Student's distribution with n degrees of freedom; normal if n = ∞."""
    from scipy import special

    return np.asarray(special.ndtr(t) if n == np.inf else special.stdtr(n, t))


def _student_quantile(n: float, tails: FloatArray) -> FloatArray:
    """Return the inverse of `_student`."""
    from scipy import special

    return np.asarray(special.ndtri(tails) if n == np.inf else special.stdtrit(n, tails))


def _p_positive(mean: Any, variance: Any, n: float) -> FloatArray:
    """P(mean + √variance T > 0); ½ if mean and variance are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = _student(n, np.asarray(mean) / np.sqrt(variance))
    return np.where(np.isnan(p), 0.5, p)
