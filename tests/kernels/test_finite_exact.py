"""Weights compared with exact arithmetic: rationals for short histories, 60 digits for long."""

import math
from collections.abc import Callable, Iterator
from itertools import islice

import mpmath
import numpy as np
import pytest
from tests.exact import exact_posterior, relative_error
from tests.kernels.test_finite import priors

from bayescontrol._arrays import FloatArray
from bayescontrol.beliefs.weights import Weights
from bayescontrol.kernels import finite

Rows = Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def probabilities(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.uniform(0.0, 1.0, shape)


def ratios_of_many_orders(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.asarray(10.0 ** rng.uniform(-30.0, 0.0, shape))


def the_whole_range_of_doubles(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Likelihoods within a row are close, since otherwise all modes but one would vanish."""
    return np.asarray(2.0 ** (rng.uniform(-1040, 1010, (shape[0], 1)) + rng.normal(0, 3, shape)))


def almost_certain(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.asarray(rng.choice([1.0, 1.0 - 2.0**-53, 0.5, 1e-16, 3e-7], shape))


def some_impossible(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    rows = rng.uniform(0.1, 1.0, shape) * (rng.random(shape) > 0.02)
    rows[:, 0] = rng.uniform(0.1, 1.0, shape[0])
    return np.asarray(rows)


STYLES: tuple[Rows, ...] = (
    probabilities,
    ratios_of_many_orders,
    the_whole_range_of_doubles,
    almost_certain,
    some_impossible,
)


def histories(style: Rows, seed: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Priors and the evidence of up to 50 steps."""
    rng = np.random.default_rng(seed)
    while True:
        modes, steps = int(rng.integers(2, 5)), int(rng.integers(1, 51))
        yield priors(rng, modes), style(rng, (steps, modes))


def weighed(prior: FloatArray, rows: FloatArray, *, log: bool = False) -> FloatArray:
    """The posterior after these rows of evidence."""
    weights = Weights(prior)
    for row in rows:
        weights.condition(row, log=log)
    return weights.posterior()


@pytest.mark.parametrize("style", STYLES)
def test_two_thousand_short_histories_match_rational_arithmetic(style: Rows) -> None:
    """5 styles x 2,000 = 10,000 histories of up to 50 steps; weights down to 1e-250."""
    worst, smallest = 0.0, 1.0
    for prior, rows in islice(histories(style, 11), 2000):
        ours = weighed(prior, rows)
        worst = max(worst, relative_error(ours, exact_posterior(prior, rows)))
        smallest = min(smallest, *(p for p in ours if p > 0.0))
    assert worst <= 1e-12
    assert smallest < 1e-190  # the test covers small weights


def log_probabilities(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.log(rng.uniform(0.0, 1.0, shape))


def log_densities(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.normal(0.0, 20.0, shape)


def log_of_large_data(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Observations of a million data points: a huge common term and small differences."""
    return rng.uniform(-2e6, 2e6, (shape[0], 1)) + rng.normal(0.0, 5.0, shape)


def log_some_impossible(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    rows = np.where(rng.random(shape) > 0.02, rng.normal(-1.0, 3.0, shape), -math.inf)
    rows[:, 0] = rng.normal(-1.0, 3.0, shape[0])
    return rows


@pytest.mark.parametrize(
    "style", [log_probabilities, log_densities, log_of_large_data, log_some_impossible]
)
def test_twenty_five_hundred_short_histories_of_logarithms_match_sixty_digits(style: Rows) -> None:
    """4 styles x 2,500 = 10,000 histories; the exact value is computed from the same floats."""
    for prior, rows in islice(histories(style, 12), 2500):
        exact = exact_posterior(prior, rows, log=True)
        assert relative_error(weighed(prior, rows, log=True), exact) <= 1e-12


def high_precision(prior: FloatArray, factors: "list[mpmath.mpf]") -> "list[mpmath.mpf]":
    v = [mpmath.mpf(p) * f for p, f in zip(prior, factors, strict=True)]
    total = mpmath.fsum(v)
    return [x / total for x in v]


def error_of(ours: FloatArray, exact: "list[mpmath.mpf]", least: float = 1e-250) -> float:
    for p, q in zip(ours, exact, strict=True):
        assert q >= least or p <= 2 * least
    pairs = zip(ours, exact, strict=True)
    return max(float(abs(mpmath.mpf(p) / q - 1)) for p, q in pairs if q >= least)


def test_a_hundred_histories_of_three_thousand_steps_match_sixty_digits() -> None:
    """Ratios of up to 1e10 per step: weights vary over hundreds of orders of magnitude."""
    rng = np.random.default_rng(13)
    worst, small = 0.0, 0
    with mpmath.workdps(60):
        for _ in range(100):
            prior, rows = priors(rng, 3), 10.0 ** rng.uniform(-5.0, 0.0, (3000, 3))
            factors = [mpmath.fprod(map(mpmath.mpf, rows[:, m])) for m in range(3)]
            exact = high_precision(prior, factors)
            worst = max(worst, error_of(weighed(prior, rows), exact))
            small += sum(1e-250 <= q < 1e-50 for q in exact)
    assert worst <= 1e-12
    assert small > 20  # of 200 modes other than the leading ones


def test_a_hundred_histories_of_three_thousand_logarithms_match_sixty_digits() -> None:
    rng = np.random.default_rng(14)
    with mpmath.workdps(60):
        for _ in range(100):
            prior, rows = priors(rng, 3), rng.normal(-3.0, 3.0, (3000, 3))
            factors = [mpmath.exp(mpmath.fsum(map(mpmath.mpf, rows[:, m]))) for m in range(3)]
            exact = high_precision(prior, factors)
            assert error_of(weighed(prior, rows, log=True), exact) <= 1e-12


def test_plain_sums_of_logarithms_fail_this_test() -> None:
    """Planted bug: `lw += np.log(l)`, the usual implementation."""
    rng = np.random.default_rng(13)
    prior, rows = np.full(3, 1 / 3), 10.0 ** rng.uniform(-5.0, 0.0, (3000, 3))
    lw = np.log(prior) + np.log(rows).cumsum(axis=0)[-1]
    w = np.exp(lw - lw.max())
    with mpmath.workdps(60):
        factors = [mpmath.fprod(map(mpmath.mpf, rows[:, m])) for m in range(3)]
        assert error_of(w / w.sum(), high_precision(prior, factors)) > 1e-12


@pytest.mark.parametrize("log", [False, True])
def test_a_mode_with_weight_1e_minus_2000_recovers_to_one_half(log: bool) -> None:
    prior, against = np.array([0.5, 0.5]), np.tile([1.0, 1e-5], (400, 1))
    rows = np.concatenate([against, against[:, ::-1]])
    if log:
        rows = np.log(rows)
    assert weighed(prior, rows[:400], log=log).tolist() == [1.0, 0.0]
    assert weighed(prior, rows, log=log) == pytest.approx([0.5, 0.5], rel=1e-12)


@pytest.mark.parametrize("log", [False, True])
def test_after_a_million_steps_nine_digits_are_correct(log: bool) -> None:
    """Thirty different rows in long runs, so that weights fall to 10^-100000 and recover."""
    rng = np.random.default_rng(15)
    rows = rng.uniform(0.1, 1.0, (30, 4))
    rows[1::2] = 0.05 / rows[::2] * (1.0 + rng.normal(0.0, 3e-6, (15, 4)))
    if log:
        rows = np.log(rows)
    counts = np.repeat(rng.integers(30_000, 36_000, 15), 2)
    order = np.repeat(np.arange(30), counts)
    order = np.concatenate([order, rng.integers(0, 30, 1_000_000 - order.size)])
    weights = Weights(np.full(4, 0.25))
    w, e, blocks = weights.arrays()
    condition = finite.condition_log if log else finite.condition
    farthest = 0
    for t, row in enumerate(map(list(rows).__getitem__, order)):
        condition(w, e, blocks, row)
        if t % 10_000 == 0:
            farthest = max(farthest, int(np.ptp(finite.exponents(e, blocks))))
    assert farthest > 10_000  # binary orders
    times = np.bincount(order, minlength=30)
    with mpmath.workdps(60):
        factors = [
            mpmath.exp(mpmath.fsum(mpmath.mpf(rows[i, m]) * int(n) for i, n in enumerate(times)))
            if log
            else mpmath.fprod(mpmath.mpf(rows[i, m]) ** int(n) for i, n in enumerate(times))
            for m in range(4)
        ]
        exact = high_precision(np.full(4, 0.25), factors)
        assert sum(q > 1e-250 for q in exact) >= 2
        assert error_of(weights.posterior(), exact) <= 1e-9
