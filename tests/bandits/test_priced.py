"""P(mean minus price of arm j is the largest), compared with exact values and mpmath."""

import time
from functools import partial
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import priced
from bayescontrol.bandits.best_arm import (
    Mixture,
    beta_best,
    gamma_best,
    normal_best,
    single_components,
)
from bayescontrol.bandits.priced import priced_best
from bayescontrol.errors import QuadratureFailed
from bayescontrol.kernels.posteriors import BETA, GAMMA, INVERSE_GAMMA, NORMAL

beta = partial(priced_best, BETA, bounded=True)
odds = partial(priced_best, BETA)
gamma = partial(priced_best, GAMMA)
inverse_gamma = partial(priced_best, INVERSE_GAMMA)
logit_normal = partial(priced_best, NORMAL, bounded=True)
FAMILIES: dict[str, tuple[Any, Any]] = {
    "beta": (beta, beta_best),
    "odds": (odds, beta_best),
    "gamma": (gamma, gamma_best),
    "inverse gamma": (inverse_gamma, partial(gamma_best, largest=False)),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [0.3, 1.0, 10.0, 1e3, 1e6, 1e9])
def test_common_prices_change_nothing(name: str, n: float) -> None:
    """Ten arms with n rewards, within 1e-11 of the quadrature without prices."""
    with_prices, without = FAMILIES[name]
    rng = np.random.default_rng(int(n))
    share = rng.uniform(0.3, 0.7, 10) if n < 100 else 0.5 + rng.normal(size=10) / np.sqrt(n)
    a, b = n * share, n * (1.0 - share)
    P = with_prices(a, b, np.full(10, 0.3))
    np.testing.assert_allclose(P, without(a, b), rtol=0.0, atol=1e-11)


def by_pieces(a: list[int], b: list[int], c: FloatArray) -> FloatArray:
    """The integrals for beta posteriors with integer parameters: polynomials between the ends."""
    ends, (t, w) = np.unique(np.concatenate([-c, 1.0 - c])), np.polynomial.legendre.leggauss(100)
    P = np.zeros(len(a))
    for low, high in pairwise(ends):
        x = (0.5 * (low + high) + 0.5 * (high - low) * t + c[:, None]).clip(0.0, 1.0)
        F = np.array([special.bdtrc(i - 1, i + k - 1, y) for i, k, y in zip(a, b, x, strict=True)])
        for j, (i, k) in enumerate(zip(a, b, strict=True)):
            inside = x[j].min() > 0.0 and x[j].max() < 1.0
            f = inside * x[j] ** (i - 1) * (1.0 - x[j]) ** (k - 1) / special.beta(i, k)
            P[j] += 0.5 * (high - low) * (w @ (f * np.delete(F, j, 0).prod(0)))
    return P


def test_betas_with_integer_parameters_agree_with_integrals_of_polynomials() -> None:
    """200 cases of 2 to 5 arms, all within 1e-11."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(200):
        N = int(rng.integers(2, 6))
        a, b = rng.integers(1, 7, (2, N)).tolist()
        c = rng.choice([0.0, 0.1, 0.25, 0.5, rng.uniform(-0.7, 0.7)], N)
        P = beta(np.array(a, float), np.array(b, float), c)
        worst = max(worst, float(abs(P - by_pieces(a, b, c)).max()))
    assert worst < 1e-11


#: In the panel next to the upper end of one arm, which has no mass there, others have much.
NEAR_ENDS = [
    ([10, 8], [33, 35], [0.3, -0.25]),
    ([56, 49], [37, 43], [-0.08, 0.23]),
    ([41, 18, 9], [42, 31, 30], [-0.11, 0.22, -0.1]),
    ([40, 57, 44], [44, 44, 33], [0.14, 0.4, -0.15]),
    ([62, 6, 3, 67], [43, 8, 7, 60], [0.36129265, 0.15, 0.0, 0.05]),
    ([13, 7], [32, 43], [0.03, 0.36]),
    ([6, 24, 35], [43, 20, 30], [0.37, 0.12, 0.06]),
]


@pytest.mark.parametrize(("a", "b", "c"), NEAR_ENDS)
def test_common_posteriors_agree_with_integrals_of_polynomials(a: Any, b: Any, c: Any) -> None:
    P = beta(np.array(a, float), np.array(b, float), np.array(c))
    np.testing.assert_allclose(P, by_pieces(a, b, np.array(c)), rtol=0.0, atol=1e-12)


def test_the_sum_of_probabilities_reaches_one_by_far() -> None:
    """400 cases of each kind; sums must be within 1e-9, and are within 2e-11."""
    rng = np.random.default_rng(7)
    for _ in range(400):
        N = int(rng.integers(2, 6))
        n, share = 10.0 ** rng.uniform(0.3, 3.0, N), rng.uniform(0.05, 0.95, N)
        c = rng.uniform(-0.5, 0.5, N) * rng.choice([0.0, 1.0], N)
        for kind, bounded, a, b in (
            (BETA, True, n * share, n * (1.0 - share)),
            (BETA, False, n * share, n * (1.0 - share)),
            (GAMMA, False, n * share + 1.0, n),
            (NORMAL, True, rng.normal(0.0, 1.5, N), rng.uniform(0.05, 2.0, N)),
        ):
            mixture = single_components(N)
            with np.errstate(all="ignore"):
                densities = priced._Densities(kind, bounded, a, b, c)
                P = priced._integrate(densities, densities.panels(mixture), mixture, np.arange(N))
            assert P.sum() == pytest.approx(1.0, abs=2e-11)


def test_an_arm_that_limits_a_panel_below_the_end_of_another_does_not_make_it_wide() -> None:
    """The panel covered a ratio of 786 instead of at most 20, and missed 2e-8 of the mass."""
    a, b, c = [49, 26, 6, 1], [44, 43, 10, 2], np.array([0.0, 23 / 62, 0.125, 0.0])
    P = beta(np.array(a, float), np.array(b, float), c)
    np.testing.assert_allclose(P, by_pieces(a, b, c), rtol=0.0, atol=1e-11)


def test_exponential_means_agree_with_the_closed_form() -> None:
    """P(X - c > Y) = e^(-ac) b/(a + b), X and Y exponential with rates a and b; 1e-11."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        a, b, c = 10.0 ** rng.uniform(-3, 3, 3)
        exact = np.exp(-a * c) * b / (a + b)
        P = gamma(np.ones(2), np.array([a, b]), np.array([c, 0.0]))
        np.testing.assert_allclose(P, [exact, 1.0 - exact], rtol=0.0, atol=1e-11)


def by_mpmath(pdf: Any, cdf: Any, c: list[float], points: list[float]) -> float:
    """∫ f_0(v + c_0) Π F_j(v + c_j) with 20 digits; `points` split the interval."""
    arms = range(1, len(c))
    with mpmath.workdps(20):
        return float(
            mpmath.quad(
                lambda v: pdf(0, v + c[0]) * mpmath.fprod(cdf(j, v + c[j]) for j in arms), points
            )
        )


@pytest.mark.parametrize("shapes", [((0.5, 0.5), (0.5, 0.5)), ((0.3, 1.5), (0.7, 0.4))])
@pytest.mark.parametrize("c", [0.25, 1e-3])
def test_singular_ends_agree_with_mpmath(shapes: Any, c: float) -> None:
    a, b = shapes

    def pdf(j: int, x: Any) -> Any:
        return x ** (a[j] - 1) * (1 - x) ** (b[j] - 1) / mpmath.beta(a[j], b[j])

    def cdf(j: int, x: Any) -> Any:
        return mpmath.betainc(a[j], b[j], 0, min(x, 1), regularized=True)

    exact = by_mpmath(pdf, cdf, [c, 0.0], [0.0, 0.5 - c, 1.0 - 2.0 * c, 1.0 - c])
    P = beta(np.array(a), np.array(b), np.array([c, 0.0]))
    assert P[0] == pytest.approx(exact, abs=1e-9)


def test_heavy_tails_agree_with_mpmath() -> None:
    a, b, c = (1.2, 0.6), (0.7, 1.1), [0.4, 0.0]

    def pdf(j: int, m: Any) -> Any:
        return b[j] ** a[j] / mpmath.gamma(a[j]) * m ** (-a[j] - 1) * mpmath.exp(-b[j] / m)

    def cdf(j: int, m: Any) -> Any:
        return mpmath.gammainc(a[j], b[j] / m, regularized=True)

    points = [0.0, 0.5, 2.0, 10.0, 1e3, 1e6, mpmath.inf]
    P = inverse_gamma(np.array(a), np.array(b), np.array(c))
    assert P[0] == pytest.approx(by_mpmath(pdf, cdf, c, points), abs=1e-9)


def test_logit_normal_means_agree_with_a_fine_grid() -> None:
    """A sum over the normal log-odds of the first arm, which converges fast."""
    s, sd, c = np.array([0.3, -0.5, 1.0]), np.array([1.0, 2.0, 0.1]), np.array([0.1, 0.0, 0.3])
    z = np.linspace(-9.0, 9.0, 20_001)
    density = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    for j in range(3):
        v = special.expit(s[j] + sd[j] * z) - c[j]
        others = np.ones_like(z)
        for i in set(range(3)) - {j}:
            x = (v + c[i]).clip(0.0, 1.0)
            with np.errstate(divide="ignore"):
                others *= special.ndtr((special.logit(x) - s[i]) / sd[i])
        assert logit_normal(s, sd, c)[j] == pytest.approx(float(density @ others), abs=1e-9)


@pytest.mark.parametrize("n", [1e3, 1e6])
def test_many_rewards_are_as_if_the_posteriors_were_normal(n: float) -> None:
    a, b = n * np.array([0.5, 0.55, 0.45]), n * np.array([0.5, 0.45, 0.55])
    mean, c = a / n, np.array([0.0, 0.05, -0.05]) + np.array([0.0, 0.2, -0.3]) / np.sqrt(n)
    normal = normal_best(mean - c, np.sqrt(mean * (1.0 - mean) / (n + 1.0)))
    np.testing.assert_allclose(beta(a, b, c), normal, atol=0.5 / np.sqrt(n))


def test_a_mixture_is_the_average_of_its_components() -> None:
    a, b = np.array([2.0, 5.0, 1.0, 3.0]), np.array([3.0, 1.5, 1.0, 2.0])
    c, p = np.array([0.2, 0.0, 0.1]), np.array([0.3, 0.7, 1.0, 1.0])
    mixed = beta(a, b, c, Mixture(np.array([0, 2, 3, 4]), p))
    each = [beta(a[[i, 2, 3]], b[[i, 2, 3]], c) for i in (0, 1)]
    np.testing.assert_allclose(mixed, 0.3 * each[0] + 0.7 * each[1], atol=1e-11)


def test_an_arm_whose_price_exceeds_its_range_is_never_the_best() -> None:
    P = beta(np.array([50.0, 1.0, 1.0]), np.ones(3), np.array([1.0, 0.2, -0.1]))
    assert P[0] == 0.0
    assert P[1:].sum() == pytest.approx(1.0, abs=1e-15)


def test_arms_with_tiny_shapes_are_compared_as_doubles() -> None:
    """Nearly all of their mass is at 0 or 1: two arms of the same price tie, each has a half."""
    a = np.full(3, 1e-6)
    P = beta(a, a, np.array([0.0, 0.0, 0.25]))
    # The third arm is the best only if it is at 1 and the others at 0: 1/8.
    np.testing.assert_allclose(P, [7 / 16, 7 / 16, 1 / 8], atol=1e-3)


def test_ten_arms_take_milliseconds() -> None:
    """Not a benchmark: a hundred times the time on an idle machine."""
    a, b, c = np.arange(1.0, 11.0), np.arange(11.0, 1.0, -1.0), np.linspace(0.0, 0.3, 10)
    beta(a, b, c)
    start = time.perf_counter()
    beta(a, b, c)
    assert time.perf_counter() - start < 2.0


def test_a_failed_check_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    a, c = np.ones(3), np.array([0.0, 0.1, 0.2])
    monkeypatch.setattr(priced, "_MOST", 100)
    with pytest.raises(QuadratureFailed, match="too many arms"):
        beta(a, a, c)
    monkeypatch.undo()
    monkeypatch.setattr(priced, "_COVERED", 5.0)  # panels that are too wide
    monkeypatch.setattr(priced, "_RATIO", 1e20)
    with pytest.raises(QuadratureFailed, match="sum to"):
        beta(0.3 * a, 0.3 * a, c)
