"""Gaussian arms: posteriors compared with a grid and exact fractions, predictions, merging."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from bayescontrol import GaussianBandit
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits.gaussian import NormalGamma
from bayescontrol.errors import InvalidPrior

REWARDS = [1.3, -0.4, 2.2, 0.9, 1.7]


def learned(belief: Any, rewards: list[float]) -> Any:
    for r in rewards:
        belief.observe(None, 0, r)
    return belief


def test_a_prior_is_given_as_mean_and_standard_deviation() -> None:
    bandit = GaussianBandit(2, sd=3.0, prior=[(5, 2), (-1, 0.5)])
    assert bandit.prior.tolist() == [[5.0, 0.25], [-1.0, 4.0]]
    assert bandit.belief().posterior().tolist() == bandit.prior.tolist()
    belief = bandit.belief()
    belief.add("new", prior=(0, 10))
    assert belief.posterior()[2].tolist() == [0.0, 0.01]
    assert GaussianBandit(1, sd=1, prior=(0, 1)).prior.tolist() == [[0.0, 1.0]]


def test_conjugate_and_grid_agree_with_known_variance() -> None:
    """P(m | past) on 40,001 points; a smooth density makes the sum exact to 1e-12."""
    belief = learned(GaussianBandit(1, sd=0.8, prior=(0.5, 2.0)).belief(), REWARDS)
    m = np.linspace(-20.0, 20.0, 40_001)
    log_v = -0.5 * ((m - 0.5) / 2.0) ** 2
    log_v -= sum(0.5 * ((r - m) / 0.8) ** 2 for r in REWARDS)
    v = np.exp(log_v - log_v.max())
    v /= v.sum()
    mu, lam = belief.posterior()[0]
    assert v @ m == pytest.approx(mu, abs=1e-11)
    assert v @ (m - mu) ** 2 == pytest.approx(1.0 / lam, abs=1e-11)
    for r in (-1.0, 0.7, 3.0):
        density = v @ np.exp(-0.5 * ((r - m) / 0.8) ** 2) / (0.8 * math.sqrt(2 * math.pi))
        assert math.exp(belief.log_predictive(None, 0, r)) == pytest.approx(density, rel=1e-10)


def grid_of_means_and_precisions(rewards: list[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P(m, τ | past) for the prior (0.5, 2, 3, 1.5), on a grid in m and ln τ."""
    m, log_tau = np.meshgrid(np.linspace(-12, 14, 2601), np.linspace(-6.0, 4.0, 801))
    tau = np.exp(log_tau)
    log_v = 3.0 * log_tau - 1.5 * tau  # Gamma(3, rate 1.5) in ln τ
    log_v += 0.5 * log_tau - 0.5 * 2.0 * tau * (m - 0.5) ** 2
    for r in rewards:
        log_v += 0.5 * log_tau - 0.5 * tau * (r - m) ** 2
    v = np.exp(log_v - log_v.max())
    return m, tau, v / v.sum()


def test_conjugate_and_grid_agree_with_unknown_variance() -> None:
    prior = (0.5, 2, 3, 1.5)
    belief = learned(GaussianBandit(1, sd=None, prior=prior).belief(), REWARDS)
    m, tau, v = grid_of_means_and_precisions(REWARDS)
    mu, kappa, alpha, beta = belief.posterior()[0]
    assert (v * m).sum() == pytest.approx(mu, abs=1e-8)
    assert (v * tau).sum() == pytest.approx(alpha / beta, abs=1e-8)
    assert (v * (m - mu) ** 2).sum() == pytest.approx(beta / (kappa * (alpha - 1.0)), abs=1e-7)
    for r in (-1.0, 0.7, 3.0):
        density = (v * np.sqrt(tau / (2 * math.pi)) * np.exp(-0.5 * tau * (r - m) ** 2)).sum()
        assert math.exp(belief.log_predictive(None, 0, r)) == pytest.approx(density, rel=1e-7)


def test_the_student_predictive_agrees_with_the_textbook_formula() -> None:
    """2α degrees of freedom, scale² β(κ + 1)/ακ; in 30 digits."""
    family = NormalGamma()
    for row in ([0.0, 1.0, 1.0, 1.0], [5.0, 0.1, 40.0, 7.0], [-3.0, 1e4, 5e3, 1e-3]):
        mu, kappa, alpha, beta = map(mpmath.mpf, row)
        nu, scale2 = 2 * alpha, beta * (kappa + 1) / (alpha * kappa)
        for r in (-4.0, 0.0, 5.5):
            with mpmath.workdps(30):
                t2 = (r - mu) ** 2 / (nu * scale2)
                exact = (
                    mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2)
                    - mpmath.log(nu * mpmath.pi * scale2) / 2 - (nu + 1) / 2 * mpmath.log(1 + t2)
                )  # fmt: skip
            assert family.log_predictive(np.array(row), r) == pytest.approx(float(exact), rel=1e-11)


def exact_row(prior: tuple[float, ...], rewards: list[float]) -> list[Fraction]:
    """The normal-gamma posterior in rational arithmetic."""
    mu0, kappa0, alpha0, beta0 = map(Fraction, prior)
    x = [Fraction(r) for r in rewards]
    n = len(x)
    kappa = kappa0 + n
    mu = (kappa0 * mu0 + sum(x)) / kappa
    squares = kappa0 * mu0**2 + sum((r * r for r in x), Fraction(0)) - kappa * mu**2
    return [mu, kappa, alpha0 + Fraction(n, 2), beta0 + squares / 2]


PRIORS = [(0, 1, 1, 1), (1e6, 1, 1, 1), (1e6, 1e-3, 2, 5), (-7, 100, 2, 3)]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("mean", "sd"), [(1e6, 1.0), (0.0, 1e-3), (-1e9, 1.0), (3.0, 1e4)])
def test_merging_is_exact_where_means_are_much_larger_than_the_spread(
    prior: tuple[float, ...], mean: float, sd: float
) -> None:
    """Rewards of a million ± 1: μ is a double, so r - μ has ten digits, and β must keep them.

    Where the prior is far from the rewards, κ₀(r̄ - μ₀)²/2 is part of β.
    """
    rng = np.random.default_rng(1)
    rewards = (mean + sd * rng.normal(size=601)).tolist()
    bandit = GaussianBandit(1, sd=None, prior=prior)
    one, two = learned(bandit.belief(), rewards[::3]), bandit.belief()
    learned(two, rewards[1::3])
    learned(two, rewards[2::3])
    one.merge(two)
    for ours, exact in zip(one.posterior()[0], exact_row(prior, rewards), strict=True):
        assert abs(float(Fraction(float(ours)) / exact - 1)) < 1e-10
    assert one.count == 601


def test_a_wrong_merge_is_detected() -> None:
    """Planted bug: β is merged through plain sums of squares."""
    prior, rewards = (1e6, 1, 1, 1), (1e6 + np.random.default_rng(1).normal(size=600)).tolist()
    bandit = GaussianBandit(1, sd=None, prior=prior)
    one, two = (learned(bandit.belief(), rewards[k::2]).posterior()[0] for k in range(2))

    def sums(row: FloatArray) -> FloatArray:
        mu, kappa, _, beta = row
        return np.array([kappa, kappa * mu, 2.0 * beta + kappa * mu * mu])

    kappa, total, squares = sums(one) + sums(two) - sums(bandit.prior[0])
    careless = 0.5 * (squares - total * total / kappa)
    exact = float(exact_row(prior, rewards)[3])
    assert abs(careless / exact - 1.0) > 1e-7
    sound = NormalGamma().merged(bandit.prior, one[None], two[None])[0, 3]
    assert abs(sound / exact - 1.0) < 1e-10


def test_merging_with_an_untrained_belief_changes_only_rounding() -> None:
    for bandit in (
        GaussianBandit(1, sd=2.0, prior=(7, 3)),
        GaussianBandit(1, sd=None, prior=(0, 1, 1, 1)),
    ):
        one = learned(bandit.belief(), REWARDS)
        before = one.posterior()
        one.merge(bandit.belief())
        np.testing.assert_allclose(one.posterior(), before, rtol=1e-15)


@pytest.mark.parametrize("sd", [0, -1, math.nan, math.inf, "wide", [1.0], 1e-200, 1e200])
def test_an_invalid_standard_deviation_is_refused(sd: Any) -> None:
    with pytest.raises(InvalidPrior, match="sd="):
        GaussianBandit(2, sd=sd, prior=(0, 1))
