"""P(arm i is best), compared with rational arithmetic, closed forms and 30-digit quadrature."""

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from math import comb, erfc, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol.bandits.best_arm import (
    beta_best,
    gamma_best,
    normal_best,
    student_best,
)
from bayescontrol.errors import InvalidPrior, QuadratureFailed

Polynomial = list[Fraction]


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            out[i + j] += x * y
    return out


def density(a: int, b: int) -> Polynomial:
    """x^(a-1) (1-x)^(b-1) / B(a, b) as coefficients of powers of x."""
    one_over_B = Fraction(a * comb(a + b - 1, a))
    low = [Fraction(0)] * (a - 1)
    return low + [one_over_B * (-1) ** i * comb(b - 1, i) for i in range(b)]


def integral(p: Polynomial) -> Polynomial:
    return [Fraction(0)] + [c / (i + 1) for i, c in enumerate(p)]


def exact_best(a: list[int], b: list[int]) -> list[float]:
    """∫ f_i Π F_j for Betas with integer parameters, in rational arithmetic."""
    f = [density(*ab) for ab in zip(a, b, strict=True)]
    F = [integral(p) for p in f]
    N = len(a)
    return [
        float(sum(integral(reduce(times, [F[j] for j in range(N) if j != i], f[i]))))
        for i in range(N)
    ]


def test_known_values_are_met_to_fifteen_digits() -> None:
    assert exact_best([3, 2], [2, 3]) == [53 / 70, 17 / 70]
    np.testing.assert_allclose(beta_best([2, 1], [1, 1]), [2 / 3, 1 / 3], atol=1e-15)
    np.testing.assert_allclose(beta_best([3, 2], [2, 3]), [53 / 70, 17 / 70], atol=1e-15)


def test_betas_with_integer_parameters_agree_with_rational_arithmetic() -> None:
    """500 cases of 2 to 5 arms, all within 1e-13."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(500):
        N = int(rng.integers(2, 6))
        a, b = rng.integers(1, 9, (2, N)).tolist()
        worst = max(worst, float(abs(beta_best(a, b) - exact_best(a, b)).max()))
    assert worst < 1e-13


def test_betas_compared_with_power_distributions_agree_with_moments() -> None:
    """P(Beta(a, b) > all Beta(k_j, 1)) = E[x^Σk], 1,000 cases from 1e-3 to 1e7 within 1e-13."""
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(1000):
        a, b = 10.0 ** rng.uniform(-3, 7, 2)
        k = rng.integers(1, 20, rng.integers(1, 6)).astype(float)
        exact = np.prod([(a + i) / (a + b + i) for i in range(int(k.sum()))])
        ours = beta_best(np.append(k, a), np.append(np.ones_like(k), b))[-1]
        worst = max(worst, abs(ours - exact))
    assert worst < 1e-13


def test_two_normals_agree_with_the_closed_form_over_twelve_orders_of_scale() -> None:
    """Φ(Δ/√(σ²+τ²)), 1,000 cases within 1e-13."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(1000):
        mu, sd = rng.normal(size=2) * 10.0 ** rng.uniform(-6, 2), 10.0 ** rng.uniform(-6, 6, 2)
        exact = 0.5 * erfc(-(mu[0] - mu[1]) / np.hypot(*sd) / sqrt(2.0))
        worst = max(worst, abs(normal_best(mu, sd)[0] - exact))
    assert worst < 1e-13


def test_two_cauchys_agree_with_the_closed_form() -> None:
    """½ + arctan(Δ/(s+t))/π, 300 cases within 1e-13."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        loc, s = rng.normal(size=2) * 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-6, 6, 2)
        exact = 0.5 + np.arctan((loc[0] - loc[1]) / s.sum()) / np.pi
        assert student_best(loc, s, 1.0)[0] == pytest.approx(exact, abs=1e-13)


def test_students_distribution_becomes_the_normal_one() -> None:
    mu, sd = np.array([0.3, 0.0, -1.0]), np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(student_best(mu, sd, 1e14), normal_best(mu, sd), atol=1e-12)


def test_exponential_rates_agree_with_the_closed_form() -> None:
    """Gamma(1, b_j): P(λ_i smallest) = b_i / Σ b."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        b = 10.0 ** rng.uniform(-3, 3, rng.integers(2, 30))
        np.testing.assert_allclose(
            gamma_best(np.ones_like(b), b, largest=False), b / b.sum(), atol=1e-13
        )


def test_two_gammas_agree_with_the_beta_distribution() -> None:
    """P(λ > λ') is the probability of a Beta(a', a) variable below b'/(b + b')."""
    with mpmath.workdps(30):
        for a, b in [((0.3, 2.5), (1.0, 4.0)), ((40.0, 35.5), (10.0, 9.0)), ((0.05, 1.0), (2, 1))]:
            x = mpmath.mpf(b[1]) / (mpmath.mpf(b[0]) + b[1])
            exact = float(mpmath.betainc(a[1], a[0], 0, x, regularized=True))
            assert gamma_best(a, b) == pytest.approx([exact, 1 - exact], abs=1e-13)
            assert gamma_best(a, b, largest=False) == pytest.approx([1 - exact, exact], abs=1e-13)


def by_mpmath(
    density: Callable[[Any, int], Any], below: Callable[[Any, int], Any], arms: int, points: Any
) -> float:
    """∫ f_0 Π_{j>0} F_j by the quadrature of mpmath with thirty digits."""
    return float(
        mpmath.quad(
            lambda y: density(y, 0) * mpmath.fprod(below(y, j) for j in range(1, arms)), points
        )
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [((2.5, 1.2, 0.7), (1.5, 0.4, 3.1)), ((0.1, 0.3), (0.2, 5.5)), ((30.25, 12.5), (9.75, 3.3))],
)
def test_betas_with_fractional_parameters_agree_with_thirty_digits(a: Any, b: Any) -> None:
    with mpmath.workdps(30):
        ab = [(mpmath.mpf(x), mpmath.mpf(y)) for x, y in zip(a, b, strict=True)]

        def density(y: Any, j: int) -> Any:
            p, q = ab[j]
            kernel = -p * mpmath.log1p(mpmath.exp(-y)) - q * mpmath.log1p(mpmath.exp(y))
            return mpmath.exp(kernel) / mpmath.beta(p, q)

        def below(y: Any, j: int) -> Any:
            p, q = ab[j]
            if y > 0:
                return 1 - mpmath.betainc(q, p, 0, 1 / (1 + mpmath.exp(y)), regularized=True)
            return mpmath.betainc(p, q, 0, 1 / (1 + mpmath.exp(-y)), regularized=True)

        points = [-400, -100, -30, -10, -4, -2, -1, 0, 1, 2, 4, 10, 30, 100, 400]
        exact = by_mpmath(density, below, len(a), points)
    assert beta_best(a, b)[0] == pytest.approx(exact, abs=1e-12)


def test_three_students_agree_with_thirty_digits() -> None:
    loc, scale, df = (0.2, 0.0, -0.5), (1.0, 0.3, 2.0), (3.5, 7.0, 2.0)
    with mpmath.workdps(30):

        def density(y: Any, j: int) -> Any:
            nu, z = mpmath.mpf(df[j]), (y - mpmath.mpf(loc[j])) / mpmath.mpf(scale[j])
            top = mpmath.gamma((nu + 1) / 2) / mpmath.gamma(nu / 2) / mpmath.sqrt(nu * mpmath.pi)
            return top / mpmath.mpf(scale[j]) * (1 + z * z / nu) ** (-(nu + 1) / 2)

        def below(y: Any, j: int) -> Any:
            nu, z = mpmath.mpf(df[j]), (y - mpmath.mpf(loc[j])) / mpmath.mpf(scale[j])
            tail = mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + z * z), regularized=True) / 2
            return 1 - tail if z > 0 else tail

        points = [-mpmath.inf, -1000, -30, -8, -3, -1, 0, 1, 3, 8, 30, 1000, mpmath.inf]
        exact = by_mpmath(density, below, 3, points)
    assert student_best(loc, scale, df)[0] == pytest.approx(exact, abs=1e-12)


def test_an_arm_with_ten_million_pulls_is_compared_with_untried_arms() -> None:
    P = beta_best([6e6, 1, 1], [4e6, 1, 1])
    # E[x²] of the first arm; each of the other two is the better one half of the time.
    square = 6e6 / 1e7 * (6e6 + 1) / (1e7 + 1)
    np.testing.assert_allclose(P, [square, (1 - square) / 2, (1 - square) / 2], atol=1e-13)


@pytest.mark.parametrize("arms", [1, 2, 3, 10, 100])
def test_identical_arms_are_equally_likely_best(arms: int) -> None:
    even = np.full(arms, 1.0 / arms)
    for alpha, beta in ((1, 1), (0.001, 0.001), (1e7, 1e7), (0.01, 1e7), (1e7, 0.01)):
        np.testing.assert_allclose(
            beta_best(np.full(arms, alpha), np.full(arms, beta)), even, atol=1e-13
        )
    np.testing.assert_allclose(normal_best(np.full(arms, 1e9), 1e-3), even, atol=1e-13)
    np.testing.assert_allclose(student_best(np.zeros(arms), 1.0, 0.3), even, atol=1e-13)
    np.testing.assert_allclose(gamma_best(np.full(arms, 0.01), 3.0), even, atol=1e-13)


def test_arms_with_equal_posteriors_have_equal_probabilities_that_agree_with_different_arms() -> (
    None
):
    """Arms that differ by 1e-13 are computed one by one, so they check the powers of F."""
    a, b = np.array([3.0, 1.0, 3.0, 7.0, 1.0, 3.0]), np.array([2.0, 1.0, 2.0, 4.0, 1.0, 2.0])
    P = beta_best(a, b)
    assert P[0] == P[2] == P[5]
    assert P[1] == P[4]
    np.testing.assert_allclose(P, beta_best(a * (1.0 + 1e-13 * np.arange(6)), b), atol=1e-11)
    assert P.sum() == pytest.approx(1.0, abs=1e-14)


def test_densities_with_poles_at_both_ends_are_integrated() -> None:
    # Beta(ε, ε) is almost always 0 or 1: it exceeds a Beta(1, 1) half of the time.
    assert beta_best([1e-3, 1.0], [1e-3, 1.0]) == pytest.approx([0.5, 0.5], abs=1e-13)


def test_a_hopeless_arm_gets_zero_and_changes_no_other_probability() -> None:
    with_hopeless_arm = beta_best([50, 45, 2], [10, 12, 5000])
    np.testing.assert_allclose(with_hopeless_arm, [*beta_best([50, 45], [10, 12]), 0.0], atol=1e-14)


def test_a_batch_equals_its_rows_to_the_last_bit() -> None:
    rng = np.random.default_rng(6)
    a, b = 10.0 ** rng.uniform(-1, 3, (2, 4, 5, 6))
    batch = beta_best(a, b)
    assert batch.shape == (4, 5, 6)
    for i in np.ndindex(4, 5):
        assert batch[i].tobytes() == beta_best(a[i], b[i]).tobytes()
    assert normal_best(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_non_contiguous_arrays_and_scalars_are_accepted() -> None:
    rows = np.array([[3.0, 2.0], [2.0, 3.0]])
    np.testing.assert_array_equal(beta_best(rows[:, 0], rows[:, 1]), beta_best([3, 2], [2, 3]))
    np.testing.assert_array_equal(normal_best([0, 1], 1), normal_best([0, 1], [1, 1]))


sizes = st.floats(1e-2, 1e5)
many = st.lists(st.tuples(sizes, sizes), min_size=2, max_size=6)


@given(many, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_the_arms_does_not_matter(arms: list[tuple[float, float]], rng: Any) -> None:
    order = list(range(len(arms)))
    rng.shuffle(order)
    a, b = np.array(arms).T
    np.testing.assert_allclose(beta_best(a[order], b[order]), beta_best(a, b)[order], atol=1e-12)


@given(many, st.floats(1.0, 3.0))
@settings(max_examples=150, deadline=None)
def test_a_better_posterior_never_lowers_the_probability_of_being_best(
    arms: list[tuple[float, float]], better: float
) -> None:
    a, b = np.array(arms).T
    before = beta_best(a, b)
    assert before.sum() == pytest.approx(1.0, abs=1e-14)
    assert (before >= 0.0).all()
    a[0] *= better
    after = beta_best(a, b)
    assert after[0] >= before[0] - 1e-12
    assert (after[1:] <= before[1:] + 1e-12).all()


@given(many)
@settings(max_examples=150, deadline=None)
def test_mirroring_two_arms_reverses_the_probabilities(arms: list[tuple[float, float]]) -> None:
    """1 - Beta(α, β) is Beta(β, α), so the order of two arms is reversed."""
    a, b = np.array(arms[:2]).T
    np.testing.assert_allclose(beta_best(b, a), beta_best(a, b)[::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: beta_best([1, np.nan], [1, 1]), "arm 1: alpha = nan must be positive and finite"),
        (lambda: beta_best([1, 1], [0, 1]), "arm 0: beta = 0 must be positive"),
        (lambda: beta_best([], []), "one number per arm"),
        (lambda: beta_best(1.0, 1.0), "one number per arm"),
        (lambda: beta_best([1, 2], [1, 2, 3]), "give one per arm"),
        (lambda: beta_best(["x", "y"], [1, 2]), "give one per arm"),
        (lambda: normal_best([0, np.inf], [1, 1]), "arm 1: mu = inf must be finite"),
        (lambda: normal_best([0, 1], [1, 0]), "arm 1: sd = 0 must be positive"),
        (lambda: student_best([0, 1], [1, 1], [1, 0.1]), "df = 0.1 must be finite and at least"),
        (lambda: gamma_best([1, -1], [1, 1]), "arm 1: shape = -1 must be positive"),
        (lambda: beta_best([[1, 1, 1], [1, 1, -3]], 1), "arm 2: alpha = -3"),
    ],
)
def test_errors_name_the_arm_and_the_invalid_value(call: Any, words: str) -> None:
    with pytest.raises(InvalidPrior, match=words):
        call()


def test_failed_convergence_raises_an_error() -> None:
    with pytest.raises(QuadratureFailed, match="do not converge"):
        normal_best([0.0, 1e-300], [1e-300, 1e300])
