"""The Beta distribution, compared with rational sums, 30-digit arithmetic and SciPy."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from benchmarks.arena.agents.beta_quantiles import beta_cdf, beta_quantile
from scipy import special  # type: ignore[import-untyped]

from bayescontrol.kernels.beta_distribution import divergence, divergence_bound, excess, log1p_exp


def integer_cdf(a: int, b: int, x: float) -> Fraction:
    """P(Beta(a, b) ≤ x) = P(Bin(a + b - 1, x) ≥ a), exactly for the double x."""
    p, n = Fraction(x), a + b - 1
    return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(a, n + 1)), Fraction(0))


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
