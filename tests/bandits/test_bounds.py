"""The Lai-Robbins constant against its known value and its definition."""

from math import inf, log

import pytest

from bayescontrol.bandits.bandit import (
    bernoulli_divergence,
    lai_robbins,
    normal_divergence,
)
from bayescontrol.errors import InvalidTable


def test_nine_levers_of_four_tenths_against_one_of_five() -> None:
    kl = 0.4 * log(0.4 / 0.5) + 0.6 * log(0.6 / 0.5)
    assert lai_robbins([0.5] + 9 * [0.4]) == pytest.approx(9 * 0.1 / kl, rel=1e-14)
    assert lai_robbins([0.5] + 9 * [0.4]) == pytest.approx(44.697, abs=5e-4)


def test_arms_as_good_as_the_best_add_nothing() -> None:
    assert lai_robbins([0.3, 0.3]) == 0.0
    assert lai_robbins([0.4, 0.5, 0.5]) == lai_robbins([0.5, 0.4])


def test_a_lever_that_always_pays_cannot_be_mistaken() -> None:
    assert bernoulli_divergence(0.9, 1.0) == inf
    assert lai_robbins([1.0, 0.9, 0.0]) == 0.0


def test_impossible_levers_cost_what_the_best_rarely_hides() -> None:
    assert lai_robbins([0.5, 0.0]) == pytest.approx(0.5 / log(2.0))


def test_gaussian_arms_cost_two_variances_over_the_gap() -> None:
    assert lai_robbins([1.0, 0.5, 0.0], normal_divergence(3.0)) == pytest.approx(36.0 + 18.0)


def test_what_is_no_bias_is_refused() -> None:
    for bad in ([1.2, 0.3], [0.5, float("nan")], [], [[0.5, 0.4]], [0.5, -0.1]):
        with pytest.raises(InvalidTable):
            lai_robbins(bad)
    with pytest.raises(InvalidTable, match="sd=0"):
        normal_divergence(0.0)
