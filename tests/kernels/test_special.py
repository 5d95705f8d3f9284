"""Special functions, compared with fifty digits."""

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest

from bayescontrol.kernels.elementary import (
    exp_excess,
    exp_excess_series,
    log_excess_series,
    log_gamma_function,
    stirling_remainder,
)


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with mpmath.workdps(50):
        yield


def exact_log_gamma(x: float) -> mpmath.mpf:
    return mpmath.loggamma(mpmath.mpf(x))


def exact_stirling(x: float) -> mpmath.mpf:
    z = mpmath.mpf(x)
    if x > 1e10:
        return 1 / (12 * z) - 1 / (360 * z**3)
    return mpmath.loggamma(z) - (z - 0.5) * mpmath.log(z) + z - mpmath.log(2 * mpmath.pi) / 2


def exact_exp_excess(x: float) -> mpmath.mpf:
    z = mpmath.mpf(x)
    if abs(z) > 0.6:
        return mpmath.exp(z) - 1 - z
    return mpmath.fsum(z**n / mpmath.factorial(n) for n in range(2, 40))


def positives() -> list[float]:
    """Whole numbers, halves, the seams of the algorithm, and all scales."""
    rng = np.random.default_rng(1)
    seams = [x + d for x in (1.0, 2.0, 9.0, 10.0) for d in (-1e-9, -1e-16, 0.0, 1e-15, 1e-9)]
    return [
        *(n / 2.0 for n in range(1, 100)),
        *seams,
        *np.exp(rng.uniform(-700.0, 700.0, 300)).tolist(),
        *np.exp(rng.uniform(-3.0, 12.0, 300)).tolist(),
    ]


def test_log_gamma_is_accurate_to_1e_14() -> None:
    for x in positives():
        exact = exact_log_gamma(x)
        assert abs(log_gamma_function(x) - exact) <= 1e-14 * max(1, abs(exact)), x


def test_stirlings_remainder_is_accurate_to_1e_14_and_from_ten_on_to_3e_17() -> None:
    for x in positives():
        exact = exact_stirling(x)
        assert abs(stirling_remainder(x) - exact) <= 1e-14 * max(1, abs(exact)), x
        if x >= 10.0:
            assert abs(stirling_remainder(x) - exact) <= 3e-17 + 4e-16 * exact, x


def test_the_excess_of_the_exponential_has_full_relative_accuracy_at_any_size() -> None:
    rng = np.random.default_rng(2)
    sizes = np.exp(rng.uniform(-300.0, math.log(700.0), 500))
    for x in [*sizes, *-sizes, 0.5, -0.5, np.nextafter(0.5, 0), np.nextafter(-0.5, 0)]:
        exact = exact_exp_excess(float(x))
        # e^x is accurate to one unit in the last place.
        assert abs(exp_excess(x) - exact) <= 4e-15 * exact + 5e-324, x


def test_log_gamma_is_nan_outside_its_domain_and_zero_at_its_zeros() -> None:
    assert all(math.isnan(log_gamma_function(x)) for x in (0.0, -0.0, -1.5, math.nan, -math.inf))
    assert log_gamma_function(1.0) == log_gamma_function(2.0) == exp_excess(0.0) == 0.0


@pytest.mark.parametrize("kernel", [log_gamma_function, stirling_remainder, exp_excess])
def test_compiled_and_interpreted_kernels_agree_bit_for_bit(
    kernel: Callable[[float], float],
) -> None:
    python = getattr(kernel, "py_func")  # noqa: B009 - the compiled type does not show it
    for x in (0.01, 0.3, 1.5, 7.25, 10.0, 123.456, 600.0):
        assert kernel(x) == python(x)


def test_the_series_have_full_relative_accuracy_on_all_of_their_range() -> None:
    rng = np.random.default_rng(3)
    tiny = np.exp(rng.uniform(-300.0, -1.3, 200))
    for x in [*tiny, *-tiny, *rng.uniform(-0.5, 0.5, 200), 0.5, -0.5]:
        exact = exact_exp_excess(float(x))
        assert abs(exp_excess_series(x) - exact) <= 1e-15 * exact, x
    for u in [*tiny, *-tiny, *rng.uniform(-0.29, 0.41, 200), -0.29, 0.41]:
        z = mpmath.mpf(float(u))
        exact = mpmath.fsum((-z) ** n / n for n in range(2, 200))
        assert abs(log_excess_series(u) - exact) <= 1e-15 * exact, u
