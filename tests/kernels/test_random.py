"""Distributions of the random numbers: exact cdfs, edge cases, and planted bugs.

Kolmogorov-Smirnov tests compare √n sup|F_n - F| with 2.69: false-alarm rate 1e-6 each.
The seeds are fixed, so results are reproducible.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from tests.chance import distance

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels import random
from bayescontrol.kernels.random import below, next_uint64, uniform

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


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential"])
def test_numbers_have_the_distribution_of_their_name(name: str) -> None:
    """With a scale that is wrong by 5 % they do not."""
    x = drawn(getattr(random, f"fill_{name}"))
    cdf = {"uniform": stats.uniform, "normal": stats.norm, "exponential": stats.expon}[name].cdf
    assert distance(x, cdf) < LIMIT
    assert distance(1.05 * x, cdf) > LIMIT


@pytest.mark.parametrize("shape", [0.01, 0.3, 0.999, 1.0, 1.5, 2.0, 7.0, 60.0])
def test_gamma_numbers_have_the_gamma_distribution(shape: float) -> None:
    x = drawn(random.fill_gamma, shape)
    assert distance(x, stats.gamma(shape).cdf) < LIMIT
    assert distance(x, stats.gamma(1.05 * shape).cdf) > LIMIT


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
    x, d = drawn(random.fill_normal), 2 / 3
    v = (1 + x / math.sqrt(9 * d)) ** 3
    assert distance(d * v[v > 0], stats.gamma(1.0).cdf) > LIMIT


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 1.0), (2.0, 3.0), (40.0, 60.0), (0.5, 0.5), (0.2, 0.3), (0.5, 3.0), (7.0, 0.6)],
)
def test_beta_numbers_have_the_beta_distribution(a: float, b: float) -> None:
    x = drawn(random.fill_beta, a, b)
    assert distance(x, stats.beta(a, b).cdf) < LIMIT
    assert distance(x, stats.beta(1.1 * a, b).cdf) > LIMIT


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


# -- words of xoshiro256++ ------------------------------------------------------------------------

REFERENCE = [
    41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
    9973669472204895162, 14011001112246962877, 12406186145184390807, 15849039046786891736,
    10450023813501588000,
]  # fmt: skip
states = st.tuples(*[st.integers(0, WORD - 1)] * 4).filter(any)


def rotl(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) % WORD


def published(s: list[int]) -> int:
    """Blackman & Vigna's next(), line by line."""
    result = (rotl((s[0] + s[3]) % WORD, 23) + s[0]) % WORD
    t = (s[1] << 17) % WORD
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotl(s[3], 45)
    return result


def test_state_1_2_3_4_gives_the_published_words() -> None:
    words = state()
    assert [next_uint64(words) for _ in REFERENCE] == REFERENCE


@settings(max_examples=50, deadline=None)
@given(states)
def test_words_and_states_agree_with_the_published_algorithm(s: tuple[int, ...]) -> None:
    ours, reference = state(s), list(s)
    for _ in range(3):
        assert next_uint64(ours) == published(reference)
    assert ours.tolist() == reference


def test_uniform_is_never_one_and_reaches_both_ends() -> None:
    assert uniform(state(LOWEST)) == 0.0
    assert uniform(state(HIGHEST)) == 1.0 - 2.0**-53


@settings(max_examples=200, deadline=None)
@given(states, st.integers(1, 2**63 - 1))
def test_below_uses_the_first_word_that_is_not_rejected(s: tuple[int, ...], n: int) -> None:
    ours, reference = state(s), list(s)
    word = published(reference)
    while word * n % WORD < WORD % n:
        word = published(reference)
    assert below(ours, n) == word * n >> 64
    assert ours.tolist() == reference


def test_integers_are_unbiased_unlike_multiplication_without_rejection() -> None:
    """χ² with 2 degrees of freedom, limit 27.6: false-alarm rate 1e-6.

    With n = 3·2^61, ⌊word·n/2^64⌋ mod 3 is 0, 1, 2 with probabilities 3/8, 3/8, 2/8.
    """
    n, size = 3 * 2**61, 100_000
    words, fair = state(), np.empty(size, dtype=np.int64)
    random.fill_below(words, n, fair)
    planted = np.array([next_uint64(words) * n // WORD for _ in range(size)])

    def chi2(x: np.ndarray) -> float:
        counts = np.bincount((x % 3).astype(np.int64), minlength=3)
        return float(np.sum((counts - size / 3) ** 2) / (size / 3))

    assert chi2(fair) < 27.6
    assert chi2(planted) > 27.6


@pytest.mark.parametrize("n", [1, 2, 6, 1000])
def test_small_integers_are_uniform(n: int) -> None:
    """χ² against its normal limit (Wilson & Hilferty), 4.75 σ: false-alarm rate 1e-6 each."""
    size = 200_000
    out = np.empty(size, dtype=np.int64)
    random.fill_below(state(), n, out)
    counts = np.bincount(out, minlength=n)
    assert counts.size == n
    chi2, k = np.sum((counts - size / n) ** 2) / (size / n), max(n - 1, 1)
    assert ((chi2 / k) ** (1 / 3) - 1 + 2 / (9 * k)) / np.sqrt(2 / (9 * k)) < 4.75
