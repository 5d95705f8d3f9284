"""Quantiles of the Beta distribution, compared with rational sums, 30 digits and SciPy."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from benchmarks.arena.agents.beta_quantiles import beta_cdf, beta_quantile
from scipy import special  # type: ignore[import-untyped]


def integer_cdf(a: int, b: int, x: float) -> Fraction:
    """P(Beta(a, b) ≤ x) = P(Bin(a + b - 1, x) ≥ a), exactly for the double x."""
    p, n = Fraction(x), a + b - 1
    return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(a, n + 1)), Fraction(0))


def test_the_cdf_with_integer_parameters_is_accurate_to_1e_14() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = (int(n) for n in rng.integers(1, 60, 2))
        x = float(np.clip(rng.beta(a, b) + 0.05 * rng.normal(), 1e-6, 1.0 - 1e-6))
        assert abs(beta_cdf(float(a), float(b), x, 1.0 - x) - float(integer_cdf(a, b, x))) < 1e-14


def test_the_lower_tail_keeps_its_relative_accuracy() -> None:
    for a, b, x in [(30, 5, 0.01), (50, 50, 0.05), (3, 80, 1e-9), (1, 1, 1e-300)]:
        exact = integer_cdf(a, b, x)
        assert abs(Fraction(beta_cdf(float(a), float(b), x, 1.0 - x)) / exact - 1) < 1e-12


def test_the_cdf_with_fractional_parameters_is_accurate_to_1e_13() -> None:
    rng = np.random.default_rng(2)
    with mpmath.workdps(30):
        for _ in range(100):
            a, b = 10.0 ** rng.uniform(-2.0, 1.5, 2)
            x = float(rng.uniform(0.001, 0.999))
            exact = mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True)
            assert abs(beta_cdf(a, b, x, 1.0 - x) - exact) < 1e-13


def test_the_cdf_is_accurate_for_large_parameters() -> None:
    """SciPy's function is accurate to about 1e-13 there."""
    rng = np.random.default_rng(3)
    for _ in range(3000):
        a, b = 10.0 ** rng.uniform(-1.0, 7.0, 2)
        p = a / (a + b)
        sd = math.sqrt(p * (1.0 - p) / (a + b))
        x = float(np.clip(p + 3.0 * sd * rng.normal(), 1e-9, 1.0 - 1e-9))
        assert abs(beta_cdf(a, b, x, 1.0 - x) - special.betainc(a, b, x)) < 5e-13


def test_the_cdf_is_0_and_1_at_its_ends() -> None:
    assert (beta_cdf(2.0, 3.0, 0.0, 1.0), beta_cdf(2.0, 3.0, 1.0, 0.0)) == (0.0, 1.0)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
def test_quantiles_are_accurate_to_1e_12(scale: float) -> None:
    rng = np.random.default_rng(int(scale))
    for _ in range(200):
        a, b = scale * rng.uniform(0.01, 1.0, 2) + rng.choice([0.3, 1.0])
        tail = float(rng.choice([10.0 ** rng.uniform(-9, -0.3), rng.uniform(0.5, 0.999)]))
        x = beta_quantile(a, b, tail)
        assert x == pytest.approx(special.betainccinv(a, b, tail), abs=1e-12)


def test_quantiles_with_integer_parameters_have_the_exact_tail() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        a, b = (int(n) for n in rng.integers(1, 40, 2))
        tail = 10.0 ** rng.uniform(-6, -0.001)
        x = beta_quantile(float(a), float(b), tail)
        # One unit in the last place of x moves the tail by the density times 2^-53.
        slack = Fraction(
            4 * 2.0**-53 * special.beta(a, b) ** -1 * x ** (a - 1) * (1 - x) ** (b - 1)
        )
        assert abs(1 - integer_cdf(a, b, x) - Fraction(tail)) <= slack + Fraction(tail) / 10**13


def test_quantiles_are_0_and_1_at_the_ends() -> None:
    assert beta_quantile(3.0, 2.0, 1.0) == 0.0 == beta_quantile(3.0, 2.0, 2.0)
    assert beta_quantile(3.0, 2.0, 0.0) == 1.0
    assert 0.0 <= beta_quantile(1e-3, 1e-3, 0.9) < 1e-300  # near the smallest double
