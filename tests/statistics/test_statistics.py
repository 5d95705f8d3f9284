"""Intervals of means and proportions have their nominal coverage.

Coverage is counted over R simulated samples of a known distribution; the bounds are 4.5 binomial
standard deviations wide, a false-alarm rate of 7e-6 each. Seeds are fixed.
"""

import itertools
import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from bayescontrol._arrays import FloatArray
from bayescontrol.seeding import Stream
from bayescontrol.statistics import (
    Interval,
    InvalidSample,
    NoData,
    bernstein,
    intervals,
    mean_and_error,
    mean_band,
    mean_interval,
    wilson,
)
from bayescontrol.statistics.intervals import fitting_method, normal_quantile, t_quantile

LOGNORMAL_MEAN = math.exp(0.5)


def coverage(interval: Interval, truth: float) -> float:
    return float(((interval.low <= truth) & (truth <= interval.high)).mean())


def slack(samples: int, rate: float = 0.95) -> float:
    return 4.5 * math.sqrt(rate * (1 - rate) / samples)


# -- means --------------------------------------------------------------------------------


def test_the_error_of_a_mean_is_its_standard_error_along_the_runs() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    mean, error = mean_and_error(values)
    assert mean.tolist() == [2.0, 20.0]
    assert error == pytest.approx([1 / np.sqrt(3), 10 / np.sqrt(3)])


def test_the_interval_of_one_value_is_unbounded() -> None:
    mean, error = mean_and_error([4.0])
    assert (float(mean), float(error)) == (4.0, np.inf)
    assert float(mean_and_error([True, False])[0]) == 0.5
    interval = mean_interval([4.0])
    assert (float(interval.low), float(interval.high)) == (-np.inf, np.inf)


@pytest.mark.parametrize("values", [[], 3.0, np.zeros((0, 4))])
def test_the_mean_of_nothing_is_refused(values: object) -> None:
    with pytest.raises(NoData, match="at least 1 run"):
        mean_and_error(values)  # type: ignore[arg-type]
    with pytest.raises(NoData, match="at least 1 run"):
        mean_interval(values)  # type: ignore[arg-type]


def test_a_value_that_is_not_finite_is_reported_with_its_position() -> None:
    with pytest.raises(InvalidSample, match=r"inf at index \(1, 0\)"):
        mean_interval([[1.0, 2.0], [np.inf, 3.0]])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 95])
def test_a_level_outside_zero_and_one_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidSample, match="error rate"):
        mean_interval([1.0, 2.0], alpha=alpha)


@pytest.mark.parametrize(
    ("p", "nu", "quantile"),
    [
        (0.975, 1, math.tan(0.475 * math.pi)),
        (0.975, 2, 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))),
        (0.975, 10, 2.2281388520),  # printed tables
        (0.995, 30, 2.7499956536),
    ],
)
def test_quantiles_of_t_match_closed_forms_and_printed_tables(
    p: float, nu: int, quantile: float
) -> None:
    assert t_quantile(p, nu) == pytest.approx(quantile, rel=1e-9)
    assert t_quantile(1 - p, nu) == pytest.approx(-quantile, rel=1e-9)


def test_the_t_interval_covers_at_its_level_and_a_wrong_quantile_is_detected() -> None:
    """Planted bugs: n degrees of freedom instead of n - 1, and the normal quantile."""
    n, samples = 5, 20_000
    x = Stream(1).normal(size=(n, samples))
    assert abs(coverage(mean_interval(x, method="t"), 0.0) - 0.95) < slack(samples)
    mean, error = mean_and_error(x)
    for wrong in (t_quantile(0.975, n), normal_quantile(0.975)):
        planted = Interval(mean, mean - wrong * error, mean + wrong * error, 0.05, "planted")
        assert abs(coverage(planted, 0.0) - 0.95) > slack(samples)


# -- the bootstrap ----------------------------------------------------------------------


def test_bootstrap_bounds_are_the_quantiles_over_all_resamples() -> None:
    """Against all 6⁶ resamples, within 4.5 standard deviations of 1,999 draws."""
    x = np.array([0.1, 0.5, 0.9, 2.0, 5.0, 13.0])
    n, alpha = len(x), 0.2
    every = x[np.array(list(itertools.product(range(n), repeat=n)))]
    with np.errstate(divide="ignore"):
        t = (every.mean(axis=1) - x.mean()) / (every.std(axis=1, ddof=1) / np.sqrt(n))
    interval = mean_interval(x, method="bootstrap", alpha=alpha)
    mean, error = mean_and_error(x)
    allowed = slack(1999, alpha / 2)
    for end, share in ((interval.low, 1 - alpha / 2), (interval.high, alpha / 2)):
        q = (mean - end) / error
        assert (t < q - 1e-9).mean() - allowed <= share <= (t <= q + 1e-9).mean() + allowed


def test_bootstrap_bounds_are_order_statistics_of_t_from_the_stream() -> None:
    """The definition, computed from the same random numbers: k = 50 of 1,999."""
    x = np.exp(Stream(10).normal(size=12))
    drawn = x[Stream(Stream(3).integers(2**62)).integers(12, size=(1999, 12))]
    t = np.sort((drawn.mean(axis=1) - x.mean()) / (drawn.std(axis=1, ddof=1) / np.sqrt(12)))
    mean, error = mean_and_error(x)
    interval = mean_interval(x, method="bootstrap", seed=3)
    assert interval.low == pytest.approx(mean - t[1949] * error, rel=1e-12)
    assert interval.high == pytest.approx(mean - t[49] * error, rel=1e-12)


def test_the_bootstrap_covers_skewed_means_where_t_does_not() -> None:
    """Lognormal, n = 20: t misses 13 %, nearly all on one side; the bootstrap 7 to 8 %."""
    samples = 4000
    x = np.exp(Stream(2).normal(size=(20, samples)))
    t, resampled = (mean_interval(x, method=method) for method in ("t", "bootstrap"))
    assert coverage(t, LOGNORMAL_MEAN) < 0.90 - slack(samples, 0.9)
    assert coverage(resampled, LOGNORMAL_MEAN) > 0.90 + slack(samples, 0.9)
    above = [float((i.high < LOGNORMAL_MEAN).mean()) for i in (t, resampled)]
    assert above[1] < 0.6 * above[0]


def test_the_stated_coverage_of_few_skewed_values_is_measured() -> None:
    """The sentence in `Interval` names n and the share of samples, in whole per cent."""
    text = " ".join((Interval.__doc__ or "").split())
    stated = re.findall(r"of (\d+)[^,]*? \((t|bootstrap)\)[^,.]*? in (\d+) %", text)
    assert [(n, method) for n, method, _ in stated] == [("8", "t"), ("20", "bootstrap")]
    for n, method, share in stated:
        samples, rate = 20_000, int(share) / 100
        interval = mean_interval(np.exp(Stream(5).normal(size=(int(n), samples))), method=method)
        assert abs(coverage(interval, LOGNORMAL_MEAN) - rate) < 0.005 + slack(samples, rate)
        assert rate < 0.95 - slack(samples)


@pytest.mark.parametrize(
    ("distribution", "truth", "least"),
    [
        (lambda s, size: s.normal(size=size), 0.0, 0.94),
        (lambda s, size: s.exponential(size=size), 1.0, 0.93),
        (lambda s, size: np.exp(s.normal(size=size)), LOGNORMAL_MEAN, 0.90),
    ],
)
def test_the_automatic_method_has_coverage(
    distribution: Callable[..., FloatArray], truth: float, least: float
) -> None:
    """n = 30; the choice depends on the sample, so its coverage is tested as well."""
    samples = 2000
    x = distribution(Stream(3), (30, samples))
    t, resampled = (mean_interval(x, method=method) for method in ("t", "bootstrap"))
    skewed = np.array([fitting_method(x[:, k]) == "bootstrap" for k in range(samples)])
    low, high = (np.where(skewed, getattr(resampled, e), getattr(t, e)) for e in ("low", "high"))
    found = coverage(Interval(t.mean, low, high, 0.05, "auto"), truth)
    assert least < found < 0.95 + slack(samples)


def test_the_method_follows_cochrans_rule() -> None:
    values = np.r_[np.zeros(90), np.ones(10) * 3.0]  # γ = 2.67: n = 100 < 25 γ² = 178
    assert fitting_method(values) == "bootstrap"
    assert fitting_method(np.tile(values, 2)) == "t"
    assert fitting_method(values / 3) == "Wilson"
    assert fitting_method(np.exp(np.arange(9.0))) == "t"
    assert fitting_method(np.full(50, 2.0)) == "t"
    curves = np.stack([values, *[np.arange(100.0)] * 2], axis=1)
    assert fitting_method(curves) == "t"


def test_the_same_call_gives_the_same_interval_and_a_stream_advances() -> None:
    x = np.exp(Stream(4).normal(size=30))
    first, again = (mean_interval(x, method="bootstrap") for _ in range(2))
    assert (first.low, first.high) == (again.low, again.high)
    rng = Stream(5)
    one, two = (mean_interval(x, method="bootstrap", seed=rng) for _ in range(2))
    assert one.low != two.low


def test_the_chunk_size_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.exp(Stream(6).normal(size=(15, 7)))
    whole, band = mean_interval(x, method="bootstrap"), mean_band(x)
    monkeypatch.setattr(intervals, "_CELLS", 4001)
    chunks = mean_interval(x, method="bootstrap")
    assert chunks.low == pytest.approx(whole.low, rel=1e-12)
    assert mean_band(x).high == pytest.approx(band.high, rel=1e-12)


def test_a_constant_has_an_interval_of_zero_width() -> None:
    x = np.stack([np.full(12, 2.0), np.exp(np.arange(12.0))], axis=1)
    for interval in (mean_interval(x, method="bootstrap"), mean_interval(x), mean_band(x)):
        assert interval.low[0] == interval.high[0] == 2.0
        assert interval.low[1] < interval.high[1]


def test_the_bootstrap_refuses_a_level_it_cannot_reach() -> None:
    with pytest.raises(InvalidSample, match="method='t'"):
        mean_interval(np.exp(np.arange(20.0)), alpha=1e-5)


# -- bands --------------------------------------------------------------------------------


def test_a_band_covers_the_whole_curve_and_pointwise_intervals_do_not() -> None:
    """Random walks, 15 runs of 40 steps, R = 300; planted bug: pointwise intervals as a band."""
    samples = 300
    walks = Stream(7).normal(size=(samples, 15, 40)).cumsum(axis=2)
    whole = [
        [bool(np.all((i.low <= 0) & (i.high >= 0))) for i in (mean_band(w), mean_interval(w))]
        for w in walks
    ]
    band, pointwise = np.mean(whole, axis=0)
    assert abs(band - 0.95) < slack(samples)
    assert pointwise < 0.95 - slack(samples)


def test_a_band_is_narrower_than_bonferroni_for_dependent_points() -> None:
    walks = Stream(8).normal(size=(30, 200)).cumsum(axis=1)
    mean, error = mean_and_error(walks)
    assert np.all(mean_band(walks).high < mean + t_quantile(1 - 0.05 / 400, 29) * error)


def test_few_runs_get_bonferronis_band() -> None:
    x = Stream(9).normal(size=(4, 3, 2))
    mean, error = mean_and_error(x)
    band = mean_band(x)
    assert band.method == "Bonferroni t"
    assert band.high == pytest.approx(mean + t_quantile(1 - 0.05 / 12, 3) * error)


# -- proportions ----------------------------------------------------------------------------


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


def test_wilson_accepts_only_zeros_and_ones() -> None:
    assert mean_interval([0, 1, 1, 1]).method == "Wilson"
    with pytest.raises(InvalidSample, match="zeros and ones"):
        mean_interval([0.0, 0.5], method="Wilson")


def test_bernsteins_margin_solves_its_inequality_and_serves_the_delusion_experiment() -> None:
    variance = np.array([0.0, 0.01, 0.25])
    epsilon = bernstein(variance, 200, alpha=0.01)
    bound = 2 * np.exp(-200 * epsilon**2 / (2 * variance + 2 * epsilon / 3))
    assert bound == pytest.approx(np.full(3, 0.01), rel=1e-9)


def test_the_width_of_a_band_is_the_quantile_of_the_largest_t() -> None:
    """Against another bootstrap, for fixed data.

    With the data of seeds 0 to 19, c differs by 1.8 % on average and by 6.1 % at most.
    """
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 5)).cumsum(axis=1)
    mean, error = x.mean(0), x.std(0, ddof=1) / math.sqrt(30)
    again = x[rng.integers(30, size=(20_000, 30))]
    t = (again.mean(1) - mean) / (again.std(1, ddof=1) / math.sqrt(30))
    for alpha in (0.05, 0.2):
        c = (mean_band(x, alpha=alpha).high - mean) / error
        assert c == pytest.approx(np.quantile(abs(t).max(1), 1 - alpha), rel=0.05)
