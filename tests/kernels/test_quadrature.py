"""Kernels of P(arm i is best): nodes, densities, series, and validation."""

import mpmath
import numpy as np
import pytest

from bayescontrol.kernels import elementary, posteriors, quadrature
from bayescontrol.kernels.posteriors import (
    BETA,
    GAMMA,
    INVERSE_GAMMA,
    NODE,
    NORMAL,
    STUDENT,
    TO_RIGHT,
    WEIGHT,
    K,
)

DISTRIBUTIONS = {
    "beta": BETA,
    "gamma": GAMMA,
    "inverse": INVERSE_GAMMA,
    "normal": NORMAL,
    "t": STUDENT,
}


def log_density(kind: int, a: float, b: float, nu: float, y: float) -> "mpmath.mpf":
    """ln f(y) by the textbook formula, in the current precision of mpmath."""
    a, b, nu, y = (mpmath.mpf(v) for v in (a, b, nu, y))
    if kind == BETA:
        kernel = -a * mpmath.log1p(mpmath.exp(-y)) - b * mpmath.log1p(mpmath.exp(y))
        return kernel - mpmath.log(mpmath.beta(a, b))
    if kind in (GAMMA, INVERSE_GAMMA):
        y = y if kind == GAMMA else -y
        return a * mpmath.log(b) + a * y - b * mpmath.exp(y) - mpmath.loggamma(a)
    z = (y - a) / b
    if kind == NORMAL:
        return -z * z / 2 - mpmath.log(b * mpmath.sqrt(2 * mpmath.pi))
    top = mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2)
    return (
        top
        - mpmath.log(nu * mpmath.pi) / 2
        - mpmath.log(b)
        - (nu + 1) / 2 * mpmath.log1p(z * z / nu)
    )


def random_parameters(kind: int, count: int) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(kind)
    a, b = 10.0 ** rng.uniform(-3, 7, (2, count))
    if kind in (NORMAL, STUDENT):
        a, b = rng.normal(size=count), 10.0 ** rng.uniform(-6, 6, count)
    return list(
        zip(a.tolist(), b.tolist(), (10.0 ** rng.uniform(-0.5, 6, count)).tolist(), strict=True)
    )


def test_nodes_and_weights_are_those_of_gauss_legendre_quadrature() -> None:
    x, w = np.polynomial.legendre.leggauss(K)
    np.testing.assert_allclose(NODE, x, rtol=0, atol=3e-16)
    np.testing.assert_allclose(WEIGHT, w, rtol=0, atol=1e-15)
    for n in range(K):
        np.testing.assert_allclose(
            TO_RIGHT.T @ NODE**n, (1 - NODE ** (n + 1)) / (n + 1), atol=1e-15
        )


def test_coefficients_are_those_of_the_legendre_series() -> None:
    c = np.random.default_rng(1).normal(size=K)
    values = np.polynomial.legendre.legval(NODE, c)
    np.testing.assert_allclose(
        posteriors.COEFFICIENT @ values, c[list(posteriors.DEGREE)], atol=1e-13
    )


@pytest.mark.parametrize("kind", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_densities_are_accurate_for_parameters_from_1e_minus_3_to_1e7(kind: int) -> None:
    """ln f is within 3e-13 of 40-digit arithmetic, out to where the density has fallen by e^-34."""
    with mpmath.workdps(40):
        for a, b, nu in random_parameters(kind, 60):
            mode, height, scale = posteriors.peak(kind, a, b, nu)
            for side in (-1.0, 0.0, 1.0):
                d = side and side * posteriors.reach(kind, a, b, nu, mode, scale, side, 34.0)
                ours = np.log(height) - posteriors.fall(kind, a, b, nu, mode, d)[0]
                exact = log_density(kind, a, b, nu, mpmath.mpf(mode) + mpmath.mpf(d))
                # Allow for the rounding error of the mode.
                slope = abs(posteriors.fall(kind, a, b, nu, mode, d)[1])
                assert abs(ours - exact) < 3e-13 + 4e-16 * slope * (abs(mode) + abs(d)), (
                    a,
                    b,
                    nu,
                    d,
                )


@pytest.mark.parametrize("kind", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_the_mass_beyond_the_reach_is_negligible(kind: int) -> None:
    """n D ≥ T at the reach: by log-concavity less than e^-T of the mass lies beyond."""
    for a, b, nu in random_parameters(kind, 300):
        mode, _, scale = posteriors.peak(kind, a, b, nu)
        for side in (-1.0, 1.0):
            d = posteriors.reach(kind, a, b, nu, mode, scale, side, 34.0)
            assert posteriors.fall(kind, a, b, nu, mode, side * d)[0] >= 34.0 - 1e-9
            if kind != STUDENT:  # the reach is not much too large
                assert posteriors.fall(kind, a, b, nu, mode, side * d)[0] < 150.0


def test_the_shared_part_of_a_panel_is_accurate() -> None:
    rng = np.random.default_rng(3)
    D, u = np.empty(K), np.empty(K)
    with mpmath.workdps(40):
        for _ in range(100):
            c, share = rng.normal(scale=8.0), 10.0 ** rng.uniform(-6, 0)
            for kind in (BETA, GAMMA, INVERSE_GAMMA, NORMAL):
                wider = posteriors.WIDER * posteriors.WIDE
                is_one_sided = posteriors.shape(kind, c, wider, D, u)
                h = share * (wider if is_one_sided else posteriors.WIDE)
                assert posteriors.shape(kind, c, h, D, u)
                for k in (0, 5, 9, K - 1):
                    d = mpmath.mpf(h * NODE[k])
                    p = 1 / (1 + mpmath.exp(-mpmath.mpf(c)))
                    exact = {
                        BETA: mpmath.log1p(p * mpmath.expm1(d)) - p * d,
                        GAMMA: mpmath.expm1(d) - d,
                        INVERSE_GAMMA: mpmath.expm1(-d) + d,
                        NORMAL: d * d / 2,
                    }[kind]
                    assert abs(D[k] / exact - 1) < 4e-15


def test_the_stirling_remainder_and_the_excess_of_exp_are_accurate() -> None:
    rng = np.random.default_rng(4)
    with mpmath.workdps(40):
        for x in 10.0 ** rng.uniform(-3, 8, 300):
            z = mpmath.mpf(x)
            left = (
                mpmath.loggamma(z) - (z - 0.5) * mpmath.log(z) + z - mpmath.log(2 * mpmath.pi) / 2
            )
            assert abs(elementary.stirling_remainder(x) - left) < 1e-14
        for x in rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-9, 1, 300):
            exact = mpmath.expm1(mpmath.mpf(x)) - mpmath.mpf(x)
            assert abs(elementary.exp_excess(x) / exact - 1) < 3e-15
        for x in rng.uniform(-0.29, 0.41, 300):
            exact = mpmath.mpf(x) - mpmath.log1p(mpmath.mpf(x))
            assert abs(elementary.log_excess_series(x) / exact - 1) < 2e-15


def test_the_error_estimate_detects_a_kink_and_accepts_a_cubic() -> None:
    assert quadrature.gauss_error(NODE**3) < 1e-15
    assert quadrature.gauss_error(np.abs(NODE - 0.3)) > 1e-4


def call(kind: int, a: list[float], b: list[float]) -> tuple[int, list[float]]:
    P = np.full(len(a), 7.0)
    scratch = np.full((quadrature.ROWS * len(a) + quadrature.MORE_ROWS, quadrature.NODES), np.nan)
    A, B = np.array(a), np.array(b)
    first, p = np.arange(len(a) + 1), np.ones(len(a))
    numbers = np.full(quadrature.INTEGERS * len(a), -7)
    return quadrature.best(kind, A, B, B, first, p, P, scratch, numbers), P.tolist()


def test_invalid_parameters_are_refused_and_nothing_is_written() -> None:
    for bad in (np.nan, np.inf, 0.0, -1.0):
        assert call(BETA, [1.0, bad], [1.0, 1.0]) == (quadrature.INVALID, [7.0, 7.0])
        assert call(NORMAL, [1.0, 1.0], [bad, 1.0]) == (quadrature.INVALID, [7.0, 7.0])


def test_scales_beyond_the_range_of_doubles_are_reported_as_failed() -> None:
    assert call(NORMAL, [0.0, 1e-300], [1e-300, 1e300]) == (quadrature.FAILED, [7.0, 7.0])


def test_the_scratch_array_need_not_be_initialised() -> None:
    assert call(BETA, [3.0, 2.0], [2.0, 3.0])[1] == pytest.approx([53 / 70, 17 / 70], abs=1e-14)
