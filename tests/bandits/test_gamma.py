"""Poisson and exponential arms: posteriors compared with a grid, predictions, edge cases."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from bayescontrol import ExponentialBandit, PoissonBandit, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits.gamma import Exponential, Poisson
from bayescontrol.errors import BadEvidence


def learned(bandit: Any, rewards: list[float]) -> Any:
    belief = bandit.belief()
    for r in rewards:
        belief.observe(None, 0, r)
    return belief


def on_a_grid(log_prior: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    v = np.exp(log_prior + log_likelihood - (log_prior + log_likelihood).max())
    return np.asarray(v / v.sum())


# A grid in the logarithm of the rate, where the posterior is smooth and sums are exact.
RATE = np.exp(np.linspace(-9.0, 5.0, 8001))


def test_conjugate_and_grid_agree_for_counts_and_waiting_times() -> None:
    counts, times = [3.0, 0.0, 2.0, 5.0], [0.7, 2.5, 0.1, 1.9]
    log_prior = 2.5 * np.log(RATE) - 1.5 * RATE
    v = on_a_grid(log_prior, sum(counts) * np.log(RATE) - len(counts) * RATE)
    w = on_a_grid(log_prior, len(times) * np.log(RATE) - sum(times) * RATE)
    poisson = learned(PoissonBandit(1, prior=(2.5, 1.5)), counts)
    exponential = learned(ExponentialBandit(1, prior=(2.5, 1.5)), times)
    for weights, belief in ((v, poisson), (w, exponential)):
        a, b = belief.posterior()[0]
        assert weights @ RATE == pytest.approx(a / b, rel=1e-10)
        assert weights @ RATE**2 == pytest.approx(a * (a + 1.0) / b**2, rel=1e-10)
    assert poisson.expected()[0] == pytest.approx(v @ RATE, rel=1e-10)
    assert exponential.expected()[0] == pytest.approx(w @ (1.0 / RATE), rel=1e-10)
    for r in (0.0, 1.0, 7.0):
        p = v @ np.exp(r * np.log(RATE) - RATE - math.lgamma(r + 1.0))
        assert math.exp(poisson.log_predictive(None, 0, r)) == pytest.approx(p, rel=1e-10)
        density = w @ (RATE * np.exp(-RATE * r))
        assert math.exp(exponential.log_predictive(None, 0, r)) == pytest.approx(density, rel=1e-10)


def test_predictions_agree_with_textbook_formulas() -> None:
    """Negative binomial and Lomax, in 30 digits."""
    with mpmath.workdps(30):
        for row in ([1.0, 1.0], [0.3, 7.0], [250.0, 0.01]):
            a, b = map(mpmath.mpf, row)
            for r in (0, 1, 12):
                exact = mpmath.log(
                    mpmath.binomial(a + r - 1, r) * (b / (b + 1)) ** a / (b + 1) ** r
                )
                ours = Poisson().log_predictive(np.array(row), float(r))
                assert ours == pytest.approx(float(exact), rel=1e-11, abs=1e-12)
            for t in (0.0, 0.5, 80.0):
                exact = mpmath.log(a * b**a / (b + t) ** (a + 1))
                ours = Exponential().log_predictive(np.array(row), t)
                assert ours == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_two_rates_are_compared_in_closed_form() -> None:
    """Rates Gamma(1, b): P(the first is smaller) = b_1 / (b_1 + b_2); its mean 1/θ is larger."""
    for kind, first in ((ExponentialBandit, 0.25), (PoissonBandit, 0.75)):
        p = kind(2, prior=[(1, 1), (1, 3)]).agent().action_probabilities()
        assert p == pytest.approx({0: first, 1: 1.0 - first}, abs=1e-12)


def test_counts_of_any_numeric_type_are_accepted() -> None:
    belief = PoissonBandit(1).belief()
    for o in (0, 3.0, np.int32(2), True, np.float32(4.0)):
        belief.observe(None, 0, o)
    assert belief.posterior().tolist() == [[11.0, 6.0]]
    for o in (0.5, -1, 2.0**54, -0.5):
        with pytest.raises(BadEvidence, match="Poisson arm"):
            belief.observe(None, 0, o)


def test_zero_is_a_valid_waiting_time() -> None:
    belief = ExponentialBandit(1).belief()
    belief.observe(None, 0, 0)
    assert belief.posterior().tolist() == [[3.0, 1.0]]
    with pytest.raises(BadEvidence, match="exponential arm"):
        belief.observe(None, 0, -1e-300)


def test_large_counts_are_learned_quickly() -> None:
    bandit = PoissonBandit(2, prior=(1, 1e-12))
    agent = bandit.agent()
    record = interact(agent, bandit.environment([1e12, 2e12]), 300, seed=0)
    assert (record.observations == np.floor(record.observations)).all()
    assert (record.actions[100:] == 1).all()
    assert agent.belief.expected()[1] == pytest.approx(2e12, rel=1e-3)
