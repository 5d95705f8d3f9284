"""Poisson and binomial numbers, compared with their exact probabilities.

Chi-square tests compare the statistic with its quantile, Kolmogorov-Smirnov tests compare
√n sup|F_n - F| with 2.69: false-alarm rate 1e-6 each. The seeds are fixed.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from tests.chance import chi_square, distance

from bayescontrol._arrays import IntArray
from bayescontrol.kernels import counts
from bayescontrol.seeding import Stream

LIMIT, RATE, N = 2.69, 1e-6, 50_000


def p_value(x: IntArray, distribution: Any) -> float:
    """The p-value of Pearson's statistic; values with expected counts below 10 are merged."""
    low, high = (int(distribution.ppf(q)) for q in (20 / N, 1 - 20 / N))
    inner = np.arange(low, high + 1)
    clipped = np.clip(x, low - 1, high + 1) - (low - 1)
    observed = np.bincount(clipped, minlength=inner.size + 2).astype(float)
    tails = [distribution.cdf(low - 1)], [distribution.sf(high)]
    expected = N * np.concatenate([tails[0], distribution.pmf(inner), tails[1]])
    return chi_square(observed, expected)


def binomials(n: float, p: float, size: int = N) -> IntArray:
    out = np.empty(size, np.int64)
    counts.fill_binomial(Stream(3).state, n, p, out)
    return out


def poissons(mean: float, size: int = N) -> IntArray:
    out = np.empty(size, np.int64)
    counts.fill_poisson(Stream(3).state, mean, out)
    return out


@pytest.mark.parametrize("n", [1, 2, 7, 100, 5000])
@pytest.mark.parametrize("p", [1e-4, 0.05, 0.5, 0.7, 0.999])
def test_binomial_numbers_follow_their_distribution(n: int, p: float) -> None:
    x = binomials(n, p)
    assert x.min() >= 0
    assert x.max() <= n
    assert p_value(x, stats.binom(n, p)) > RATE
    if n * p * (1 - p) > 0.2:
        off = stats.binom(n, p + 0.1 * p * (1 - p))
        assert p_value(x, off) < RATE, "a probability that is off should be detected"


@pytest.mark.parametrize("n", [1e12, 2.0**53])
def test_rare_successes_in_many_trials_follow_the_poisson_limit(n: float) -> None:
    assert p_value(binomials(n, 3.0 / n), stats.poisson(3.0)) > RATE


@pytest.mark.parametrize("n", [1e12, 2.0**53])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.9])
def test_binomial_numbers_of_many_trials_have_the_right_spread(n: float, p: float) -> None:
    """For such n the distribution is normal to 1e-4 of a standard deviation."""
    x = binomials(n, p, 20_000)
    standard = np.sort((x - n * p) / math.sqrt(n * p * (1 - p)))
    assert distance(standard, stats.norm.cdf) < LIMIT
    assert distance(1.1 * standard, stats.norm.cdf) > LIMIT, (
        "a spread that is 10 % off should be detected"
    )


@pytest.mark.parametrize("mean", [1e-3, 0.5, 4.0, 15.99, 16.01, 40.0, 300.0, 1e5])
def test_poisson_numbers_follow_their_distribution(mean: float) -> None:
    x = poissons(mean)
    assert p_value(x, stats.poisson(mean)) > RATE
    if mean > 1.0:
        off = stats.poisson(1.05 * mean)
        assert p_value(x, off) < RATE, "a mean that is 5 % off should be detected"


@pytest.mark.parametrize("mean", [1e7, 1e9, 1e12, 2.0**53])
def test_poisson_numbers_with_a_large_mean_have_the_right_spread(mean: float) -> None:
    """For such means the distribution is normal to 1e-4 of a standard deviation."""
    assert distance((poissons(mean, 5_000) - mean) / math.sqrt(mean), stats.norm.cdf) < LIMIT


def test_certain_trials_always_succeed_and_impossible_ones_never() -> None:
    assert (binomials(5, 1.0) == 5).all()
    assert not binomials(5, 0.0).any()
    assert not poissons(0.0).any()
