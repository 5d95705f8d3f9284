"""Means and proportions cover the truth as often as they say."""

import numpy as np
import pytest

from bayescontrol.lab.statistics import NoData, mean_and_error, wilson


def test_the_error_of_a_mean_is_its_standard_error_along_the_runs() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    mean, error = mean_and_error(values)
    assert mean.tolist() == [2.0, 20.0]
    assert error == pytest.approx([1 / np.sqrt(3), 10 / np.sqrt(3)])
    assert mean_and_error(values, axis=1)[0].tolist() == [5.5, 11.0, 16.5]


def test_one_value_bounds_nothing() -> None:
    mean, error = mean_and_error([4.0])
    assert (float(mean), float(error)) == (4.0, np.inf)


def test_booleans_count_as_zero_and_one() -> None:
    assert float(mean_and_error([True, False])[0]) == 0.5


@pytest.mark.parametrize("values", [[], 3.0, np.zeros((0, 4))])
def test_the_mean_of_nothing_is_refused(values: object) -> None:
    with pytest.raises(NoData, match="at least one value"):
        mean_and_error(values)  # type: ignore[arg-type]


def test_the_ends_of_wilson_are_the_proportions_z_standard_errors_away() -> None:
    """The definition itself: (k/n - p)² = z² p (1 - p) / n at both ends."""
    n, z = 50, 1.96
    k = np.arange(1, n)
    for p in wilson(k, n, z):
        assert (k / n - p) ** 2 == pytest.approx(z * z * p * (1 - p) / n, rel=1e-9)


def test_wilson_ends_exactly_at_zero_and_one() -> None:
    low, high = wilson([0, 10], 10, z=2.0)
    assert low.tolist() == pytest.approx([0.0, 10 / 14], rel=1e-12)
    assert high.tolist() == pytest.approx([4 / 14, 1.0], rel=1e-12)
    assert (low[0], high[1]) == (0.0, 1.0)


def test_wilson_covers_a_rare_event_where_the_plain_interval_does_not() -> None:
    """Coverage at p = 0.01, n = 50, summed exactly over k: nominal 95 %, Wald's is 39 %."""
    n, p = 50, 0.01
    k = np.arange(n + 1)
    log_binomial = np.cumsum(np.log(np.r_[1, (n - k[:-1]) / (k[:-1] + 1)]))
    weight = np.exp(log_binomial + k * np.log(p) + (n - k) * np.log1p(-p))
    low, high = wilson(k, n)
    assert weight[(low <= p) & (p <= high)].sum() > 0.90
    half = 1.96 * np.sqrt(k / n * (1 - k / n) / n)
    assert weight[np.abs(k / n - p) <= half].sum() < 0.45


@pytest.mark.parametrize(("k", "n"), [(1, 0), (3, 2), (-1, 2)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    with pytest.raises(NoData, match="0 <= successes <= trials"):
        wilson(k, n)
