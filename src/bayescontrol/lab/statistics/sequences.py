"""Confidence sequences: intervals that are valid at every sample size at once.

    P(low_t ≤ μ ≤ high_t for all t) ≥ 1 - α,   x_i in [0, 1] with conditional mean μ

One may therefore look after every replica and stop at any time. The construction is by betting
(Waudby-Smith & Ramdas 2024): a player who stakes λ_i on "the mean is above m" at fair odds has the
capital

    K_t(m) = Π_{i≤t} (1 + λ_i(m) (x_i - m)),   λ_i(m) = min(λ_i, c / m),

a non-negative martingale if m = μ, which by Ville reaches 2/α with probability at most α/2.
K_t(m) decreases in m, so the values of m that it excludes lie below low_t; 1 - x gives high_t. The
stake λ_i = √(2 ln(2/α) / (σ̂²_{i-1} i ln(i + 1))) depends on earlier values only.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.intervals import Interval, InvalidSample, as_sample, check_level

_CAP: Final = 0.75  # c < 1: never stake the whole capital
_GRID: Final = 2000  # bounds are rounded outward to this fraction of the range
_CELLS: Final = 2**22  # the most numbers held at once


def confidence_sequence(
    values: npt.ArrayLike, bounds: tuple[float, float], alpha: float = 0.05
) -> Interval:
    """Return intervals after t = 1, 2, … values that all hold together, at level 1 - α.

    Entry t - 1 of mean, low and high is the interval after t values. Pass the values in the order
    of the runs, not sorted; `bounds` must be known in advance and not taken from the data.

    >>> from bayescontrol.seeding import Stream
    >>> intervals = confidence_sequence(Stream(3).beta(8, 2, size=200), (0, 1))
    >>> [f"{low:.2f} {high:.2f}" for low, high in zip(intervals.low, intervals.high)][9::95]
    ['0.51 0.94', '0.74 0.82', '0.76 0.82']
    """
    x, (least, width) = _unit(values, bounds), _span(bounds)
    check_level(alpha)
    stakes = _stakes(x, alpha)
    low = _ruled_out(x, stakes, alpha)
    high = 1 - _ruled_out(1 - x, stakes, alpha)
    mean = np.cumsum(x) / np.arange(1, len(x) + 1)
    return Interval(
        least + width * mean, least + width * low, least + width * high, alpha, "betting"
    )


def anytime_p_value(
    values: npt.ArrayLike, bounds: tuple[float, float], mean: float = 0.0, alpha: float = 0.05
) -> float:
    """Return p = 1 / max_{s≤t} max(K_s, K'_s)/2 of "μ = mean"; K' bets that μ is below it.

    If μ is the mean, P(p ≤ α at some time) ≤ α for every α; the argument alpha only determines
    the stakes.

    >>> [round(anytime_p_value([0.2, 0.4, 0.3] * k, bounds=(-1, 1)), 4) for k in (1, 5, 10)]
    [1.0, 0.0971, 0.0047]
    """
    x, (least, width) = _unit(values, bounds), _span(bounds)
    m = (mean - least) / width
    if not 0 < m < 1:
        raise InvalidSample(f"mean = {mean} lies outside the bounds {bounds}")
    stakes = _stakes(x, check_level(alpha))
    best = max(
        float(_log_capital(x, stakes, np.array([m])).max()),
        float(_log_capital(1 - x, stakes, np.array([1 - m])).max()),
    )
    return min(1.0, 2 * math.exp(-best))


def _span(bounds: tuple[float, float]) -> tuple[float, float]:
    least, most = bounds
    if not (math.isfinite(least) and math.isfinite(most) and least < most):
        raise InvalidSample(f"bounds = {bounds}: pass the least and the greatest possible value")
    return least, most - least


def _unit(values: npt.ArrayLike, bounds: tuple[float, float]) -> FloatArray:
    least, width = _span(bounds)
    x = as_sample(values)
    if x.ndim != 1:
        raise InvalidSample(f"one value per run is needed, the shape is {x.shape}")
    if x.min() < bounds[0] or x.max() > bounds[1]:
        raise InvalidSample(
            f"values from {x.min():g} to {x.max():g} leave the bounds {bounds}: pass bounds that "
            "hold for every replica"
        )
    return np.clip((x - least) / width, 0.0, 1.0)


def _stakes(x: FloatArray, alpha: float) -> FloatArray:
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log(t + 1))))


def _log_capital(
    x: FloatArray, stakes: FloatArray, m: FloatArray, start: FloatArray | float = 0.0
) -> FloatArray:
    """Return ln K_t(m), one row for each t."""
    with np.errstate(divide="ignore"):
        staked = np.minimum(stakes[:, None], _CAP / m)
    return np.asarray(start + np.cumsum(np.log1p(staked * (x[:, None] - m)), axis=0))


def _ruled_out(x: FloatArray, stakes: FloatArray, alpha: float) -> FloatArray:
    """Return the largest m on the grid with K_s(m) ≥ 2/α for some s ≤ t."""
    grid = np.arange(_GRID + 1) / _GRID
    low, capital = np.empty(len(x)), np.zeros(len(grid))
    step = _CELLS // len(grid)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        log_k = _log_capital(x[rows], stakes[rows], grid, capital)
        out = (log_k >= math.log(2 / alpha)).sum(axis=1)  # K decreases in m
        low[rows] = grid[np.maximum(out - 1, 0)]
        capital = log_k[-1]
    return np.maximum.accumulate(low)
