"""Limits that come from a pilot have the stated false-alarm rates."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from bayescontrol_paper._claims import Pilot, least_successes


def test_the_mean_of_new_runs_is_beyond_the_margin_at_the_stated_rate() -> None:
    """20,000 pilots of 20 runs: the share is 0.05 ± 0.0015, tested at 4 standard errors."""
    rng = np.random.default_rng(0)
    pilots, new = rng.normal(size=(20_000, 20)), rng.normal(size=(20_000, 2)).mean(axis=1)
    margins = np.array(
        [Pilot(0.0, float(sd), 20).margin(2, 0.05) for sd in pilots.std(axis=1, ddof=1)]
    )
    beyond = np.abs(new - pilots.mean(axis=1)) > margins
    assert abs(beyond.mean() - 0.05) < 4 * 0.0015


def test_rare_large_values_are_beyond_bernsteins_margin_less_often_than_stated() -> None:
    """Weights are 1 in 0.5 % of the runs and 0 otherwise: means are not normal. Fixed seed."""
    rng = np.random.default_rng(0)
    p, n = 0.005, 100
    margin = Pilot(p, float(np.sqrt(p * (1 - p))), 1000).bernstein_margin(n, 0.01)
    assert (rng.binomial(n, p, 20_000) / n > p + margin).mean() < 0.01
    assert margin < 0.1


def beta_binomial(k: int, n: int, successes: int, runs: int) -> Fraction:
    """Σ over all orders: P(k of n succeed) after a pilot, by the rule of succession."""
    p, good, bad = Fraction(comb(n, k)), successes + 1, runs - successes + 1
    for i in range(n):
        p *= Fraction(good if i < k else bad, good + bad)
        good, bad = good + (i < k), bad + (i >= k)
    return p


@pytest.mark.parametrize("n", [1, 4, 8, 50])
@pytest.mark.parametrize("pilot", [(30, 40), (40, 40), (0, 5)])
def test_fewer_successes_than_the_limit_are_as_rare_as_stated(
    n: int, pilot: tuple[int, int]
) -> None:
    least = least_successes(n, pilot, 0.01)
    p = [beta_binomial(k, n, *pilot) for k in range(n + 1)]
    assert sum(p) == 1
    assert sum(p[:least]) <= 0.01 < sum(p[: least + 1])
