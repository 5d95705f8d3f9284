"""Geometric arms: posterior, predictions, draws and rewards against exact values.

Kolmogorov-Smirnov tests compare √n sup|F_n - F| with 2.69, chi-square tests the p-value with 1e-6:
false-alarm rate 1e-6 each. Calibration, laws and action probabilities are tested with those of the
other families.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate  # type: ignore[import-untyped]
from scipy import special as sc
from tests.chance import chi_square
from tests.kernels.test_arms import NONE, RATE, responses

from bayescontrol import GeometricBandit
from bayescontrol.bandits.geometric import Geometric
from bayescontrol.kernels import arms
from bayescontrol.kernels.families import number
from bayescontrol.kernels.random import LOG_UNIT
from bayescontrol.seeding import Stream

GEOMETRIC = number("geometric")


def test_the_posterior_is_the_prior_times_the_likelihood() -> None:
    """E[m | past] by quadrature over p, from the density Beta(3, 2) and the likelihoods."""
    rewards, belief = [0, 4, 1, 7], GeometricBandit(1, prior=(3, 2)).belief()
    for r in rewards:
        belief.observe(None, 0, r)

    def density(p: float) -> float:
        return float(p**2 * (1 - p) * np.prod([p * (1 - p) ** r for r in rewards]))

    total = integrate.quad(density, 0, 1, epsabs=0)[0]
    mean = integrate.quad(lambda p: density(p) * (1 - p) / p, 0, 1, epsabs=0)[0] / total
    assert belief.expected()[0] == pytest.approx(mean, rel=1e-10)
    assert belief.posterior().tolist() == [[7.0, 14.0]]


def test_predictions_are_exact_and_sum_to_one() -> None:
    """P(r) = α/(α + β) Π_{i<r} (β + i)/(α + β + 1 + i), in fractions; P(R ≥ n) closes the sum."""
    belief = GeometricBandit(1, prior=(5, 3)).belief()
    belief.observe(None, 0, 2)  # now (6, 5)
    exact, total = Fraction(6, 11), 0.0
    for r in range(200):
        p = math.exp(belief.log_predictive(None, 0, r))
        assert p == pytest.approx(float(exact), rel=1e-11)
        exact *= Fraction(5 + r, 12 + r)
        total += p
    tail = math.exp(sc.betaln(6, 5 + 200) - sc.betaln(6, 5))
    assert total + tail == pytest.approx(1.0, abs=1e-12)
    assert total < 1.0 - 0.5 * tail


@pytest.mark.parametrize("p", [0.9, 0.3, 0.02])
def test_rewards_are_geometric(p: float) -> None:
    x = responses(GEOMETRIC, NONE, [p])
    counts = np.bincount(x.astype(np.int64))
    expected = np.asarray(x.size * p * (1 - p) ** np.arange(counts.size), np.float64)
    assert chi_square(counts.astype(np.float64), expected) > RATE
    assert (responses(GEOMETRIC, NONE, [1.0], 100) == 0.0).all()


def test_logarithms_are_those_of_the_drawn_means() -> None:
    row = np.array([0.3, 0.4])
    assert arms.needs_log(GEOMETRIC, row)
    assert not arms.needs_log(GEOMETRIC, np.array([0.5, 0.5]))
    for seed in range(200):
        m = arms.draw(GEOMETRIC, NONE, row, Stream(seed).state)
        ln_m = arms.log_mean(GEOMETRIC, row, Stream(seed).state) / LOG_UNIT
        if 1e-8 < m < 1e8:
            assert ln_m == pytest.approx(math.log(m), abs=1e-7)


def test_quantiles_of_the_mean_invert_its_distribution() -> None:
    tails, rows = np.array([0.025, 0.5, 0.975]), np.array([[2.0, 1.0], [30.0, 60.0]])
    m = Geometric().interval(rows, tails)
    assert np.all(np.diff(m) > 0.0)
    np.testing.assert_allclose(sc.betaincc(rows[:, :1], rows[:, 1:], 1 / (1 + m)), [tails, tails])
