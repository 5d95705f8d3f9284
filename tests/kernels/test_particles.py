"""Resampling preserves the weights on average; the move preserves mean and covariance."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol import Stream, kernels

K = kernels.particles


@settings(max_examples=200, deadline=None)
@given(
    p=st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda p: sum(p) > 1e-6),
    u=st.floats(0, 1, exclude_max=True),
    n=st.integers(1, 40),
)
def test_each_particle_is_copied_in_proportion_to_its_weight(
    p: list[float], u: float, n: int
) -> None:
    chosen, weights = np.empty(n, np.int64), np.array(p)
    K.systematic(weights, u, chosen)
    times = np.bincount(chosen, minlength=len(p))
    assert (np.abs(times - n * weights / weights.sum()) < 1 + 1e-9 * n).all()
    assert not times[weights == 0.0].any()
    assert (np.diff(chosen) >= 0).all()


def test_resampling_is_unbiased() -> None:
    """n W_i on average over u: the midpoint rule over 1,000 values is exact to 1e-3 · n."""
    p, n = np.array([0.05, 0.33, 0.62]), 7
    total, chosen = np.zeros(3), np.empty(n, np.int64)
    for u in (np.arange(1000) + 0.5) / 1000:
        K.systematic(p, u, chosen)
        total += np.bincount(chosen, minlength=3)
    np.testing.assert_allclose(total / 1000, n * p, atol=2e-3)


def test_the_move_keeps_mean_and_covariance() -> None:
    """100,000 particles, |z| ≤ 5 on every moment: false alarms below 1e-5."""
    n, d, rng = 100_000, 2, Stream(1)
    theta = np.asarray(rng.normal(size=(n, d))) @ np.array([[2.0, 0.0], [1.5, 0.3]]).T + [1.0, -3.0]
    p = np.asarray(rng.random(size=n))
    p /= p.sum()
    m, V, C, chosen = np.empty(d), np.empty((d, d)), np.empty((d, d)), np.empty(n, np.int64)
    K.moments(theta, p, m, V)
    np.testing.assert_allclose(m, p @ theta, rtol=1e-10)
    np.testing.assert_allclose(V, np.cov(theta.T, aweights=p, ddof=0), rtol=1e-9)
    K.spread(V, C)
    np.testing.assert_allclose(C @ C.T, V, rtol=1e-12)
    K.systematic(p, rng.random(), chosen)
    for a in (0.0, 0.5, 0.98):
        out = np.empty_like(theta)
        K.shrink(theta, chosen, m, C, a, np.empty(d), out, rng.state)
        white = np.linalg.solve(C, (out - m).T)
        assert np.abs(white.mean(1)).max() * np.sqrt(n) <= 5
        assert np.abs(white @ white.T / n - np.eye(d)).max() * np.sqrt(n / 2) <= 5
    # Planted bug: noise without shrinkage increases the variance.
    wide = theta[chosen] + np.asarray(rng.normal(size=(n, d))) @ (0.2 * C).T
    white = np.linalg.solve(C, (wide - m).T)
    assert np.abs(white @ white.T / n - np.eye(d)).max() * np.sqrt(n / 2) > 5


def test_a_direction_without_spread_keeps_zero_spread() -> None:
    V, C = np.diag([4.0, 0.0, 9.0]), np.empty((3, 3))
    K.spread(V, C)
    np.testing.assert_array_equal(C, np.diag([2.0, 0.0, 3.0]))
