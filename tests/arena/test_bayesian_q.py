"""Bayesian Q-learning: the Student distribution, the value of information, the moments."""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from benchmarks.arena.agents import bayesian_q

from bayescontrol import Stream
from bayescontrol.kernels import arms
from bayescontrol.kernels.families import number


def density(nu: float) -> mpmath.mpf:
    nu = mpmath.mpf(nu)
    return mpmath.gamma((nu + 1) / 2) / (mpmath.sqrt(nu * mpmath.pi) * mpmath.gamma(nu / 2))


def excess(nu: float, z: float) -> float:
    """∫_z^∞ (t - z) f_ν(t) dt, by quadrature."""
    c, n = density(nu), mpmath.mpf(nu)

    def term(t: mpmath.mpf) -> mpmath.mpf:
        return (t - z) * c * (1 + t * t / n) ** (-(n + 1) / 2)

    return float(mpmath.quad(term, [z, z + 1, z + 3, z + 10, z + 100, mpmath.inf]))


@pytest.mark.parametrize("nu", [2.01, 3.0, 7.5, 60.0, 1e3])
@pytest.mark.parametrize("z", [0.0, 0.1, 1.0, 1.7, 1.8, 3.0, 8.0])
def test_the_expected_excess_equals_its_integral(nu: float, z: float) -> None:
    assert bayesian_q.expected_excess(nu, z) == pytest.approx(excess(nu, z), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.7, 2.5, 5.0])
def test_with_many_observations_the_student_distribution_becomes_the_normal(z: float) -> None:
    normal = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2
    for nu in (1e5, 1e6):
        assert bayesian_q.expected_excess(nu, z) == pytest.approx(normal, abs=3.0 / nu)


def test_the_expected_excess_falls_to_zero_and_stays_there() -> None:
    values = [bayesian_q.expected_excess(5.0, z) for z in (0.0, 1.0, 10.0, 1e3, 1e60, 1e200)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0


def article(row: Sequence[float], rival: float) -> float:
    """VPI as the article prints it: c + (difference of means) · P(the other side)."""
    mu, kappa, alpha, beta = row
    a = mpmath.mpf(alpha)
    c = mpmath.gamma(a + 0.5) * mpmath.sqrt(beta) / ((a - 0.5) * mpmath.gamma(a))
    c /= mpmath.gamma(0.5) * mpmath.sqrt(2 * kappa)
    c *= (1 + kappa * (mu - rival) ** 2 / (2 * mpmath.mpf(beta))) ** (-a + 0.5)
    z = abs(mu - rival) / mpmath.sqrt(beta / (kappa * a))
    w = 2 * a / (2 * a + z * z)
    other_side = mpmath.betainc(a, 0.5, 0, w, regularized=True) / 2
    return float(c - abs(mu - rival) * other_side)


@pytest.mark.parametrize("rival", [-3.0, 0.4, 0.5, 2.0])
@pytest.mark.parametrize("row", [(0.5, 1.0, 1.5, 1.0), (0.5, 7.0, 4.5, 30.0)])
def test_the_value_of_information_equals_the_formula_of_the_article(
    row: tuple[float, float, float, float], rival: float
) -> None:
    ours = bayesian_q.value_of_information(np.array(row), rival)
    assert ours == pytest.approx(article(row, rival), rel=1e-9)


def test_the_choice_maximises_the_mean_plus_the_value_of_information() -> None:
    """Compare with a plain implementation on random rows; masked actions are never chosen."""
    rng = Stream(5)
    for _ in range(200):
        rows = np.column_stack(
            [
                rng.normal(size=4),
                1.0 + 9.0 * rng.random(4),
                1.1 + 9.0 * rng.random(4),
                rng.random(4),
            ]
        )
        rows[rng.integers(4), 0] = -math.inf
        order = np.argsort(-rows[:, 0])
        rivals = [float(rows[order[int(a == order[0])], 0]) for a in range(4)]
        scores = [
            rows[a, 0] + article(rows[a].tolist(), rivals[a])
            if rows[a, 0] > -math.inf else -math.inf
            for a in range(4)
        ]  # fmt: skip
        assert bayesian_q.choose_action(rows[None], True, 0, rng.state) == int(np.argmax(scores))


def test_a_single_action_needs_no_rival() -> None:
    rows = np.array([[[1.0, 1.0, 2.0, 1.0]]])
    assert bayesian_q.choose_action(rows, True, 0, Stream(0).state) == 0
    assert bayesian_q.choose_action(rows, False, 0, Stream(0).state) == 0


def test_sampling_chooses_an_action_with_its_probability_of_being_best() -> None:
    """Rows differ only in the means ±m; P is estimated by 20,000 pairs of Student variables.

    False-alarm rate: the two counts differ by 5 standard deviations, below 1e-6.
    """
    nu, n, rng = 4.0, 20_000, Stream(6)
    row = [0.0, 2.0, nu / 2, 3.0]
    rows = np.array([[row, row]])
    rows[0, 1, 0] = 1.0
    chosen = sum(bayesian_q.choose_action(rows, False, 0, rng.state) for _ in range(n))
    s = math.sqrt(row[3] / (row[1] * row[2]))
    t = np.random.default_rng(1).standard_t(nu, (2, n))
    best = int((1.0 + s * t[1] > s * t[0]).sum())
    assert abs(chosen - best) <= 5.0 * math.sqrt(2 * n / 4)


def test_with_gamma_zero_moment_updating_is_the_conjugate_update() -> None:
    rng = Stream(7)
    rows, row = np.array([[[0.3, 2.0, 1.5, 0.7]]]), np.array([0.3, 2.0, 1.5, 0.7])
    for r in rng.normal(2.0, 3.0, size=50):
        assert bayesian_q.update_moments(rows, 0.0, 0, 0, r, 0)
        arms.learn(number("normal_gamma"), np.empty(0), row, r)
    np.testing.assert_allclose(rows[0, 0], row, rtol=1e-13)


def test_the_next_state_enters_through_two_moments_of_its_best_action() -> None:
    """M1 = r + γ E, M2 = r² + 2 γ r E + γ² E2, and the article's update with n = 1."""
    rows = np.array([[[0.5, 2.0, 3.0, 4.0]] * 2, [[1.0, 3.0, 2.5, 6.0], [0.9, 1.0, 1.1, 9.0]]])
    r, g = 0.7, 0.9
    mu, kappa, alpha, beta = rows[0, 1]
    y_mu, y_kappa, y_alpha, y_beta = rows[1, 0]
    E, E2 = y_mu, (y_kappa + 1) / y_kappa * y_beta / (y_alpha - 1) + y_mu**2
    M1, M2 = r + g * E, r * r + 2 * g * r * E + g * g * E2
    expected = [
        (kappa * mu + M1) / (kappa + 1),
        kappa + 1,
        alpha + 0.5,
        beta + 0.5 * (M2 - M1**2) + kappa * (M1 - mu) ** 2 / (2 * (kappa + 1)),
    ]
    others = rows.copy()
    assert bayesian_q.update_moments(rows, g, 0, 1, r, 1)
    np.testing.assert_allclose(rows[0, 1], expected, rtol=1e-13)
    others[0, 1] = rows[0, 1]
    assert (rows == others).all()


def test_overflowing_values_are_refused_and_change_nothing() -> None:
    rows = np.array([[[0.0, 1.0, 1.5, 1.0]]])
    before = rows.copy()
    assert not bayesian_q.update_moments(rows, 0.9, 0, 0, 1e200, 0)
    assert (rows == before).all()
