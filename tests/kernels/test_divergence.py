"""Log-likelihood ratios and their sums, compared with 60-digit arithmetic; zero and infinity."""

import math

import mpmath
import numpy as np
import pytest

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.kernels import divergence


def exact_log_ratio(p: float, q: float) -> float:
    with mpmath.workdps(60):
        return float(mpmath.log(mpmath.mpf(p) / mpmath.mpf(q)))


def pairs() -> list[tuple[float, float]]:
    """Likelihoods far apart, close together, one unit apart, and at the limits of doubles."""
    rng = np.random.default_rng(0)
    far = [(float(p), float(q)) for p, q in rng.random((300, 2))]
    near = [
        (float(p), float(p * (1.0 + f)))
        for p, f in zip(rng.random(300), 10.0 ** rng.uniform(-16, 0, 300), strict=True)
    ]
    ends = [(5e-324, 1.0), (1.0, 5e-324), (1e-310, 1.1e-310), (1e308, 1e-308), (1e-300, 2.5e-300)]
    last = [(0.3, math.nextafter(0.3, 1.0)), (math.nextafter(1.0, 0.0), 1.0), (0.25, 0.25)]
    return far + near + ends + last


def test_a_log_ratio_is_accurate_for_close_and_distant_likelihoods() -> None:
    for p, q in pairs():
        assert divergence.weight_of_evidence(p, q) == pytest.approx(
            exact_log_ratio(p, q), rel=2e-15, abs=0.0
        )


def test_the_logarithm_of_a_rounded_ratio_is_inaccurate() -> None:
    """The test above detects this error."""
    p, q = 0.3 * (1.0 + 3e-12), 0.3
    assert abs(math.log(p / q) / exact_log_ratio(p, q) - 1.0) > 1e-6


def test_impossible_observations_have_the_documented_signs() -> None:
    assert divergence.weight_of_evidence(0.5, 0.0) == math.inf
    assert divergence.weight_of_evidence(0.0, 0.5) == -math.inf
    assert math.isnan(divergence.weight_of_evidence(0.0, 0.0))


def accumulated(terms: FloatArray) -> FloatArray:
    out = np.empty(len(terms) + 1)
    divergence.accumulate(terms, out)
    return out


def test_a_sum_of_many_terms_is_accurate_to_the_last_digit() -> None:
    rng = np.random.default_rng(1)
    terms = rng.normal(size=20_000) * 10.0 ** rng.uniform(-8, 8, 20_000)
    sums = accumulated(terms)
    for t in (1, 10, 137, 5_000, 20_000):
        assert sums[t] == pytest.approx(math.fsum(terms[:t]), rel=4e-16)
    assert abs(np.cumsum(terms)[-1] - sums[-1]) > 0.0  # a plain sum is not exact


def test_a_sum_stays_infinite_and_opposite_infinities_give_nan() -> None:
    assert accumulated(np.array([1.0, np.inf, -3.0])).tolist() == [0.0, 1.0, np.inf, np.inf]
    assert np.isnan(accumulated(np.array([np.inf, -np.inf, 1.0]))[2:]).all()
    assert np.isnan(accumulated(np.array([np.nan, 1.0]))[1:]).all()


def test_parts_by_drawn_mode_add_up_to_the_total() -> None:
    rng = np.random.default_rng(2)
    terms, drawn = rng.normal(size=500), rng.integers(4, size=500)
    parts = np.empty((501, 4))
    divergence.demultiplex(terms, drawn, parts)
    np.testing.assert_allclose(parts.sum(1), accumulated(terms), rtol=0, atol=1e-13)
    for m in range(4):
        np.testing.assert_array_equal(parts[1:, m], accumulated(np.where(drawn == m, terms, 0))[1:])


def test_relative_entropy_agrees_with_sixty_digits() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 50):
        p, q = (np.asarray(rng.dirichlet(np.ones(n))) for _ in range(2))
        p[0] *= n == 1 or 0.0  # a zero in the first distribution contributes nothing
        with mpmath.workdps(60):
            terms = [
                mpmath.mpf(a) * mpmath.log(mpmath.mpf(a) / mpmath.mpf(b))
                for a, b in zip(p, q, strict=True)
                if a
            ]
            exact = float(max(mpmath.fsum(terms), mpmath.mpf(0)))
        assert divergence.relative_entropy(p, q) == pytest.approx(exact, rel=1e-13, abs=1e-15)
    assert divergence.relative_entropy(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf


def test_an_action_that_is_never_taken_adds_nothing_even_if_informative() -> None:
    policy = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    hypothesis = np.array([[[[0.5, 0.5], [0.0, 1.0]]], [[[0.5, 0.5], [1.0, 0.0]]]])
    mean = np.empty((2, 1, 2))
    divergence.mean_tables(policy, hypothesis, 0, np.array([0, 1]), mean)
    assert mean[:, 0].tolist() == [[0.0, 0.0], [0.0, math.inf]]


def test_posteriors_stop_before_evidence_that_all_modes_exclude() -> None:
    w, e = np.array([0.5, 0.5]), np.zeros(2, np.int64)
    evidence = np.array([[0.5, 0.0], [0.0, 1.0], [1.0, 1.0]])
    out = np.empty((4, 2))
    assert divergence.posteriors(w, e, kernels.finite.build(w, e), evidence, out) == 1
    assert out[1].tolist() == [1.0, 0.0]
