"""The layers, compared with 40 digits, and the tails, where ziggurat errors are hard to see."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels import random


def state() -> UIntArray:
    return np.array([1, 2, 3, 4], dtype=np.uint64)


def beyond(r: float, draws: int) -> FloatArray:
    """Return the |x| > r among `draws` normal numbers, drawn in blocks that fit the cache."""
    words, piece, tail = state(), np.empty(100_000), []
    for _ in range(draws // piece.size):
        random.fill_normal(words, piece)
        tail.append(np.abs(piece[np.abs(piece) > r]))
    return np.concatenate(tail)


def tail_z(x: FloatArray, r: float) -> float:
    """The mean of x given x > r in standard errors: E = φ(r)/Q(r) = h, Var = 1 + r h - h²."""
    h = math.exp(-r * r / 2) / math.sqrt(2 * math.pi) / (math.erfc(r / math.sqrt(2)) / 2)
    return float((x.mean() - h) / math.sqrt((1 + r * h - h * h) / x.size))


def body_z(x: FloatArray, r: float, cdf: Callable[[float], float]) -> float:
    """χ² of 200 equal bins on [-r, r], as a z-score (Wilson & Hilferty)."""
    edges = np.linspace(-r, r, 201)
    counts, _ = np.histogram(x, bins=200, range=(-r, r))
    p = np.diff([cdf(t) for t in edges])
    p = p[counts > 0] / p.sum()
    expected, counts = counts.sum() * p, counts[counts > 0]
    k = int(p.size) - 1
    chi2 = float(np.sum((counts - expected) ** 2 / expected))
    return float((math.cbrt(chi2 / k) - 1 + 2 / (9 * k)) / math.sqrt(2 / (9 * k)))


def without_wedges(layers: random.Layers, draws: int) -> FloatArray:
    """Planted bug: every point of a layer is accepted, even if it is not under f."""
    words, u, place = state(), np.empty(draws), np.empty(draws)
    random.fill_uniform(words, u)
    random.fill_uniform(words, place)
    return place * layers.outer[(256 * u).astype(np.int64)]


@pytest.mark.parametrize("distribution", ["normal", "exponential"])
def test_the_wedges_between_the_layers_follow_the_density(distribution: str) -> None:
    """Limit 4.75: false-alarm rate 1e-6. It fails if the wedges are not tested against f."""
    x, is_normal = np.empty(4_000_000), distribution == "normal"
    layers = random.NORMAL if is_normal else random.EXPONENTIAL
    getattr(random, f"fill_{distribution}")(state(), x)
    planted, r = without_wedges(layers, x.size), float(layers.inner[0])
    if is_normal:
        planted[::2] *= -1

    def cdf(t: float) -> float:
        return math.erf(t / math.sqrt(2)) if is_normal else -math.expm1(-max(t, 0.0))

    assert body_z(x, r, cdf) < 4.75
    assert body_z(planted, r, cdf) > 4.75


@pytest.mark.parametrize("distribution", ["normal", "exponential"])
def test_layers_have_equal_area_and_end_at_the_top(distribution: str) -> None:
    is_normal, name = distribution == "normal", distribution.upper()
    layers = getattr(random, name)
    with mpmath.workdps(40):
        r, v = (mpmath.mpf(str(getattr(random, f"{name}_{symbol}"))) for symbol in "RV")

        def f(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-x * x / 2 if is_normal else -x)

        tail = f(r)
        if is_normal:
            tail = mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(r / mpmath.sqrt(2))
        assert abs(r * f(r) + tail - v) < mpmath.mpf("1e-35")
        x = r
        for i in range(1, 256):
            assert layers.outer[i] == float(x)
            top = f(x) + v / x
            if i < 255:
                x = mpmath.sqrt(-2 * mpmath.log(top)) if is_normal else -mpmath.log(top)
            assert layers.floor[i] == pytest.approx(float(top - v / mpmath.mpf(layers.outer[i])))
        assert abs(top - 1) < mpmath.mpf("1e-31")


def test_tables_fit_together() -> None:
    for layers in (random.NORMAL, random.EXPONENTIAL):
        assert np.array_equal(layers.outer[1:], layers.inner[:-1])
        assert layers.inner[-1] == 0.0
        np.testing.assert_allclose(layers.floor[1:], (layers.floor + layers.height)[:-1], 1e-15)


def test_normal_tail_beyond_the_last_layer_has_the_right_weight_and_the_right_mean() -> None:
    """Two z-scores, limit 4.9: false-alarm rate 1e-6 each. Fails without Marsaglia's rejection."""
    draws, r = 20_000_000, float(random.NORMAL_R)
    x = beyond(r, draws)
    q = math.erfc(r / math.sqrt(2))
    assert abs(x.size - draws * q) / math.sqrt(draws * q) < 4.9
    assert abs(tail_z(x, r)) < 4.9
    e = np.empty(x.size)
    random.fill_exponential(state(), e)
    assert abs(tail_z(r + e / r, r)) > 4.9


def test_exponential_tail_beyond_the_last_layer_has_no_memory() -> None:
    """z-scores of the count and of the mean beyond r, limit 4.9: false-alarm rate 1e-6 each."""
    draws, r = 5_000_000, float(random.EXPONENTIAL_R)
    x = np.empty(draws)
    random.fill_exponential(state(), x)
    tail = x[x > r] - r
    assert abs(tail.size - draws * math.exp(-r)) / math.sqrt(draws * math.exp(-r)) < 4.9
    assert abs(tail.mean() - 1) * math.sqrt(tail.size) < 4.9
    assert tail.max() > 5  # drawing the tail from a layer again would cut it off at r


def test_normal_numbers_have_both_signs_in_body_and_tail() -> None:
    """z-scores of the counts of positive numbers, limit 4.9: false-alarm rate 1e-6 each."""
    x = np.empty(2_000_000)
    random.fill_normal(state(), x)
    for part in (x, x[np.abs(x) > float(random.NORMAL_R)]):
        assert abs(2 * np.count_nonzero(part > 0) - part.size) / math.sqrt(part.size) < 4.9
