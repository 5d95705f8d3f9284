"""Distributions of the random numbers: exact cdfs, edge cases, and planted bugs.

Kolmogorov-Smirnov tests compare √n sup|F_n - F| with 2.69: false-alarm rate 1e-6 each.
The seeds are fixed, so results are reproducible.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels import random

LIMIT = 2.69
N = 100_000
WORD = 2**64

# States whose next uniform number is the smallest, 0, and the largest, 1 - 2^-53.
LOWEST, HIGHEST = (0, 1, 1, 0), (0, 1, 2, WORD - 1)


def state(words: tuple[int, ...] = (1, 2, 3, 4)) -> UIntArray:
    return np.array(words, dtype=np.uint64)


def drawn(fill: Callable[..., None], *parameters: float) -> FloatArray:
    out = np.empty(N)
    fill(state(), *parameters, out)
    return out


def distance(x: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> float:
    """√n sup |F_n - F|."""
    f = cdf(np.sort(x))
    steps = np.arange(x.size + 1) / x.size
    return float(math.sqrt(x.size) * max(np.max(steps[1:] - f), np.max(f - steps[:-1])))


def normal_cdf(x: FloatArray) -> FloatArray:
    return np.array([0.5 * math.erfc(-t / math.sqrt(2)) for t in x])


def gamma_cdf(shape: float) -> Callable[[FloatArray], FloatArray]:
    """x^α e^-x Σ_n x^n / Γ(α + n + 1)."""

    def cdf(x: FloatArray) -> FloatArray:
        x = np.maximum(x, 1e-300)
        term = np.exp(shape * np.log(x) - x - math.lgamma(shape + 1))
        total = term.copy()
        for n in range(1, 400):
            term = term * x / (shape + n)
            total += term
        return total

    return cdf


def beta_cdf(a: float, b: float) -> Callable[[FloatArray], FloatArray]:
    """I_x(a, b) = x^a (1-x)^b / (a B(a,b)) Σ_n (a+b)_n / (a+1)_n x^n, from the nearer end."""

    def lower(x: FloatArray, a: float, b: float) -> FloatArray:
        x = np.maximum(x, 1e-300)
        log_b = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        term = np.exp(a * np.log(x) + b * np.log1p(-x) - log_b) / a
        total = term.copy()
        for n in range(300):
            term = term * x * (a + b + n) / (a + 1 + n)
            total += term
        return total

    def cdf(x: FloatArray) -> FloatArray:
        mean = a / (a + b)
        return np.where(
            x < mean,
            lower(np.minimum(x, mean), a, b),
            1 - lower(1 - np.maximum(x, mean), b, a),
        )

    return cdf


def test_the_distribution_functions_of_this_file_are_correct() -> None:
    x = np.array([0.01, 0.3, 0.7, 0.99])
    for shape in (0.05, 1.0, 2.5, 40.0):
        for scale in (0.5, 1.0, 2.0):
            y = x * shape * scale + 0.01
            exact = [float(mpmath.gammainc(shape, 0, t, regularized=True)) for t in y]
            np.testing.assert_allclose(gamma_cdf(shape)(y), exact, rtol=1e-10)
    for a, b in ((0.2, 0.3), (0.5, 3.0), (2.0, 3.0), (40.0, 60.0)):
        exact = [float(mpmath.betainc(a, b, 0, t, regularized=True)) for t in x]
        np.testing.assert_allclose(beta_cdf(a, b)(x), exact, rtol=1e-9, atol=1e-12)


def test_uniform_numbers_are_uniform() -> None:
    assert distance(drawn(random.fill_uniform), lambda x: x) < LIMIT


def test_normal_numbers_are_normal() -> None:
    x = drawn(random.fill_normal)
    assert distance(x, normal_cdf) < LIMIT
    assert distance(1.05 * x, normal_cdf) > LIMIT


def test_exponential_numbers_are_exponential() -> None:
    x = drawn(random.fill_exponential)
    assert distance(x, lambda t: -np.expm1(-t)) < LIMIT
    assert distance(1.03 * x, lambda t: -np.expm1(-t)) > LIMIT


@pytest.mark.parametrize("shape", [0.01, 0.3, 0.999, 1.0, 1.5, 2.0, 7.0, 60.0])
def test_gamma_numbers_have_the_gamma_distribution(shape: float) -> None:
    x = drawn(random.fill_gamma, shape)
    assert distance(x, gamma_cdf(shape)) < LIMIT
    assert distance(x, gamma_cdf(1.05 * shape)) > LIMIT


def test_gamma_numbers_of_huge_shape_have_the_right_mean_and_variance() -> None:
    """z-scores, limit 4.9: false-alarm rate 1e-6 each."""
    shape = 1e12
    z = (drawn(random.fill_gamma, shape) - shape) / math.sqrt(shape)
    assert abs(z.mean()) * math.sqrt(N) < 4.9
    assert abs(np.mean(z * z) - 1) * math.sqrt(N / 2) < 4.9


def proposals(shape: float, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Marsaglia & Tsang's u, c² x⁴ and the right-hand side of their test, for v > 0."""
    x, u = np.empty(size), np.empty(size)
    words = state()
    random.fill_normal(words, x)
    random.fill_uniform(words, u)
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    v = (1 + c * x) ** 3
    x, u, v = x[v > 0], u[v > 0], v[v > 0]
    return u, c * c * x**4, 0.5 * x * x + d - d * v + d * np.log(v)


@pytest.mark.parametrize("shape", [1.0, 1.2, 2.0, 10.0, 300.0])
def test_the_squeeze_changes_no_decision_and_avoids_most_logarithms(shape: float) -> None:
    u, c2x4, bound = proposals(shape, 1_000_000)
    squeezed = u < 1 - 0.1986 * c2x4
    assert np.all(np.log(u[squeezed]) < bound[squeezed])
    assert np.mean(~squeezed) < 0.07 / (shape - 1 / 3)


def test_a_looser_squeeze_would_change_decisions() -> None:
    u, c2x4, bound = proposals(1.0, 1_000_000)
    squeezed = u < 1 - 0.15 * c2x4
    assert np.any(np.log(u[squeezed]) >= bound[squeezed])


def test_the_squeeze_is_valid_at_shape_one_and_so_at_every_larger_shape() -> None:
    """The margin d g(y) - ln(1 - 1.7874 d y⁴) is convex in d and 0 at d = 0: d = 2/3 decides."""
    d, k = 2 / 3, 9 * 0.1986
    end = (k * d) ** -0.25
    y = np.linspace(-end, end, 400_001)[1:-1]
    y = y[np.abs(y) > 0.01]
    g = 1.5 * y**2 - 3 * y - y**3 + 3 * np.log1p(y)
    margin = d * g - np.log1p(-k * d * y**4)
    assert np.min(margin / y**4) > 0.003  # near 0 it is (1.7874 - .75) d y⁴


def test_gamma_numbers_that_skip_the_rejection_fail_the_test() -> None:
    x = np.empty(N)
    random.fill_normal(state(), x)
    d = 2 / 3
    v = (1 + x / math.sqrt(9 * d)) ** 3
    assert distance(d * v[v > 0], gamma_cdf(1.0)) > LIMIT


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 1.0), (2.0, 3.0), (40.0, 60.0), (0.5, 0.5), (0.2, 0.3), (0.5, 3.0), (7.0, 0.6)],
)
def test_beta_numbers_have_the_beta_distribution(a: float, b: float) -> None:
    x = drawn(random.fill_beta, a, b)
    assert distance(x, beta_cdf(a, b)) < LIMIT
    assert distance(x, beta_cdf(1.1 * a, b)) > LIMIT


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (1e-3, 3e-3), (1e-12, 2e-12), (1e-310, 3e-310)])
def test_beta_with_tiny_parameters_is_nearly_a_coin_with_odds_a_to_b(a: float, b: float) -> None:
    """z-score of the count above 1/2, limit 4.9: false-alarm rate 1e-6 each."""
    x = drawn(random.fill_beta, a, b)
    assert np.all((x >= 0) & (x <= 1))
    # The limit is exact where mpmath runs out of digits.
    p = a / (a + b) if a < 1e-9 else 1 - float(mpmath.betainc(a, b, 0, 0.5, regularized=True))
    assert abs(np.count_nonzero(x > 0.5) - N * p) / math.sqrt(N * p * (1 - p)) < 4.9


@pytest.mark.parametrize("a", [5e-324, 1e-308, 1e-3, 1.0, 1e16, 1e300, 1.7e308])
@pytest.mark.parametrize("b", [5e-324, 1e-308, 1e-3, 1.0, 1e16, 1e300, 1.7e308])
def test_beta_is_a_number_between_0_and_1_for_every_positive_double(a: float, b: float) -> None:
    words = state()
    for _ in range(20):
        x = random.beta(words, a, b)
        assert 0.0 <= x <= 1.0
        if a == b >= 1e16:
            assert x == pytest.approx(0.5, abs=1e-6)


SHAPES = [5e-324, 1e-308, 1e-3, 0.3, 1.0, 7.0, 1e16]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_logarithm_of_a_gamma_agrees_with_the_drawn_number(shape: float) -> None:
    one, two = state(), state()
    for _ in range(100):
        x, log_x = random.gamma(one, shape), random.log_gamma(two, shape) / random.LOG_UNIT
        assert np.array_equal(one, two)
        if x > 1e-300:
            assert log_x == pytest.approx(math.log(x), rel=1e-13, abs=1e-13)
        else:
            assert log_x < -690


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_the_log_odds_of_a_beta_agree_with_the_drawn_number(a: float, b: float) -> None:
    one, two = state(), state()
    for _ in range(50):
        x, y = random.beta(one, a, b), random.log_odds(two, a, b)
        assert np.array_equal(one, two)
        assert math.isfinite(y)
        if 1e-300 < x < 0.999:
            assert y / random.LOG_UNIT == pytest.approx(math.log(x / (1 - x)), rel=1e-12, abs=1e-12)
        else:
            assert (y > 0) == (x > 0.5)


@pytest.mark.parametrize("shape", [1e-310, 1e-12])
def test_the_logarithm_of_a_gamma_of_tiny_shape_is_exponential(shape: float) -> None:
    """-α ln G is exponential up to a relative error of α."""
    words = state()
    logs = np.array([random.log_gamma(words, shape) for _ in range(N // 5)])
    x = -logs * (shape / random.LOG_UNIT)
    assert distance(x, lambda t: 1 - np.exp(-t)) < LIMIT
    assert distance(x, lambda t: 1 - np.exp(-1.1 * t)) > LIMIT


@pytest.mark.parametrize("bad", [0.0, -0.0, -1.0, math.nan, -math.inf])
def test_outside_their_domain_gamma_and_beta_are_nan_and_use_no_random_numbers(bad: float) -> None:
    words = state()
    assert math.isnan(random.gamma(words, bad))
    assert math.isnan(random.log_gamma(words, bad))
    for distribution in (random.beta, random.log_odds):
        assert math.isnan(distribution(words, bad, 2.0))
        assert math.isnan(distribution(words, 2.0, bad))
    assert np.array_equal(words, state())


def test_categories_have_probabilities_proportional_to_their_weights() -> None:
    """χ² with 3 degrees of freedom, limit 30.7: false-alarm rate 1e-6. Weights sum to 20."""
    p = np.array([0.0, 2.0, 12.0, 0.0, 5.0, 1.0])
    out = np.empty(N, dtype=np.int64)
    random.fill_categorical(state(), p, out)
    counts = np.bincount(out, minlength=6)
    assert not counts[p == 0].any()
    expected = N * p[p > 0] / p.sum()
    assert np.sum((counts[p > 0] - expected) ** 2 / expected) < 30.7
    assert np.sum((counts[p > 0][::-1] - expected) ** 2 / expected) > 30.7


@pytest.mark.parametrize(
    ("p", "first", "last"),
    [
        ([0.0, 1.0, 0.0], 1, 1),
        ([0.0, 1.0, 1.0, 0.0], 1, 2),
        ([0.0, 0.0, 5e-324, 0.0], 2, 2),
        ([5e-324, 0.0, 5e-324, 0.0], 0, 2),
        ([0.0] + [0.1] * 10 + [0.0], 1, 10),
        ([1e-320, 1.0, 1e-320, 0.0], 0, 1),
        ([0.0, 1e300, 1e300, 0.0], 1, 2),
        ([1.0], 0, 0),
    ],
)
def test_the_extreme_uniform_numbers_never_choose_a_weight_of_zero(
    p: list[float], first: int, last: int
) -> None:
    weights = np.array(p)
    assert random.categorical(state(LOWEST), weights) == first
    assert random.categorical(state(HIGHEST), weights) == last


@pytest.mark.parametrize(
    "p", [[], [0.0], [0.0, 0.0], [1.0, -1e-9], [1.0, math.nan], [math.inf, 1.0], [1.7e308, 1.7e308]]
)
def test_invalid_weights_give_minus_one_and_use_no_random_numbers(p: list[float]) -> None:
    words = state()
    assert random.categorical(words, np.array(p, dtype=np.float64)) == -1
    assert np.array_equal(words, state())


def test_every_order_of_four_is_equally_likely() -> None:
    """χ² with 23 degrees of freedom, limit 77: false-alarm rate 1e-7."""
    words, out, draws = state(), np.empty(4, dtype=np.int64), 24_000
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        random.permutation(words, out)
        order = tuple(out.tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert sum((c - draws / 24) ** 2 / (draws / 24) for c in counts.values()) < 77
