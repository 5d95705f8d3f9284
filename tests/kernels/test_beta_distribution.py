"""Divergences of Beta distributions, compared with 30-digit arithmetic."""

import math

import mpmath
import numpy as np
import pytest

from bayescontrol.kernels.beta_distribution import divergence, divergence_bound, excess, log1p_exp


def test_excess_is_accurate_for_small_and_large_arguments() -> None:
    rng = np.random.default_rng(0)
    small = rng.choice([-1.0, 1.0], 500) * 10.0 ** rng.uniform(-150, -0.01, 500)
    with mpmath.workdps(320):
        for e in [*small, *rng.uniform(-0.99, 5.0, 500), -0.29, 0.41]:
            exact = mpmath.mpf(e) - mpmath.log1p(mpmath.mpf(e))
            assert abs(excess(e) - exact) <= 4e-15 * exact


def test_log1p_exp_is_accurate_over_its_whole_range() -> None:
    with mpmath.workdps(40):
        for u in [*np.linspace(-60.0, 60.0, 241), -700.0, 700.0]:
            exact = mpmath.log1p(mpmath.exp(mpmath.mpf(u)))
            assert abs(log1p_exp(u) - exact) <= 4e-16 * max(1.0, abs(u)) * min(1, exact)


def kl(p: "mpmath.mpf", x: "mpmath.mpf") -> "mpmath.mpf":
    return p * mpmath.log(p / x) + (1 - p) * mpmath.log((1 - p) / (1 - x))


def test_the_divergence_is_accurate_for_nearly_equal_arguments() -> None:
    rng = np.random.default_rng(6)
    with mpmath.workdps(50):
        for _ in range(300):
            a, b = 10.0 ** rng.uniform(-1, 6, 2)
            p = a / (a + b)
            x = float(np.clip(p + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-6, 0), 1e-9, 1 - 1e-9))
            exact = (mpmath.mpf(a) + b) * kl(mpmath.mpf(a) / (mpmath.mpf(a) + b), mpmath.mpf(x))
            # x is rounded to 2^-53, and the slope of the divergence amplifies this error.
            steep = (a + b) * abs(x - p) / (x * (1.0 - x))
            assert abs(divergence(a, b, x, 1.0 - x) - exact) <= 1e-14 * exact + 4e-16 * steep


def test_the_divergence_of_an_arm_with_certain_rewards_is_finite() -> None:
    assert divergence(0.0, 2.0, 0.1, 0.9) == pytest.approx(-2.0 * math.log(0.9), rel=1e-15)
    assert divergence(3.0, 0.0, 0.1, 0.9) == pytest.approx(-3.0 * math.log(0.1), rel=1e-15)


def test_the_bound_solves_its_equation_accurately() -> None:
    rng = np.random.default_rng(7)
    with mpmath.workdps(40):
        for _ in range(300):
            a, b = 10.0 ** rng.uniform(-1, 6, 2)
            level = 10.0 ** rng.uniform(-8, 1.5)
            u = divergence_bound(a, b, level)
            x = mpmath.mpf(1.0 / (1.0 + math.exp(-u))) if u > -700 else mpmath.mpf(0)
            if x > 1 - 1e-10:
                continue
            p = mpmath.mpf(a) / (mpmath.mpf(a) + b)
            steep = (mpmath.mpf(a) + b) * (x - p) / (x * (1 - x))
            assert x > p
            assert abs((mpmath.mpf(a) + b) * kl(p, x) - level) / steep < 5e-16
