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

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.statistics.intervals import Interval, InvalidSample, as_sample, check_level

_CAP: Final = 0.75  # c < 1: never stake the whole capital
_GRID: Final = 2000  # bounds are rounded outward to this fraction of the range
_CELLS: Final = 2**22  # limit on the size of temporary arrays


def confidence_sequence(
    values: ArrayLike, bounds: tuple[float, float], alpha: float = 0.05
) -> Interval:
    """Return a confidence sequence for the mean: an interval after each of the n values.

    With probability at least 1 - α, all n intervals contain the mean. Entry t - 1 of mean, low and
    high describes the first t values. Pass the values in the order of the runs, not sorted. Choose
    `bounds`, the least and greatest possible value, before looking at the data.

    >>> from bayescontrol.seeding import Stream
    >>> intervals = confidence_sequence(Stream(3).beta(8, 2, size=200), (0, 1))
    >>> [f"{low:.2f} {high:.2f}" for low, high in zip(intervals.low, intervals.high)][9::95]
    ['0.51 0.94', '0.74 0.82', '0.76 0.82']
    """
    x, offset, width = _scale_to_unit(values, bounds)
    stakes = _stakes(x, check_level(alpha))
    low = _lower_bounds(x, stakes, alpha)
    high = 1 - _lower_bounds(1 - x, stakes, alpha)
    mean = np.cumsum(x) / np.arange(1, len(x) + 1)
    mean, low, high = (offset + width * y for y in (mean, low, high))
    return Interval(mean, low, high, alpha, "betting")


def anytime_p_value(
    values: ArrayLike, bounds: tuple[float, float], mean: float = 0.0, alpha: float = 0.05
) -> float:
    """Return the p-value of "μ = mean", valid at any time.

    p = min(1, 2 / max_{s≤t} max(K_s, K'_s)), where K bets that μ is above `mean`, and K' that μ is
    below. If μ = mean, P(p ≤ α at some time) ≤ α for every α; the argument `alpha` only determines
    the stakes.

    >>> [round(anytime_p_value([0.2, 0.4, 0.3] * k, bounds=(-1, 1)), 4) for k in (1, 5, 10)]
    [1.0, 0.0971, 0.0047]
    """
    x, offset, width = _scale_to_unit(values, bounds)
    m = (mean - offset) / width
    if not 0 < m < 1:
        raise InvalidSample(f"mean = {mean} lies outside the bounds {bounds}; pass one inside")
    stakes = _stakes(x, check_level(alpha))
    bets = (x, m), (1 - x, 1 - m)
    log_capital = [_log_capital(y, stakes, np.array([m_y])) for y, m_y in bets]
    return min(1.0, 2 * math.exp(-np.max(log_capital)))


def _scale_to_unit(
    values: ArrayLike, bounds: tuple[float, float]
) -> tuple[FloatArray, float, float]:
    """Map values from `bounds` to [0, 1]; return them, the lower bound, and the width of `bounds`.

    Raise if a value is outside.
    """
    offset, upper = bounds
    if not (math.isfinite(offset) and math.isfinite(upper) and offset < upper):
        raise InvalidSample(
            f"bounds = {bounds}: expected two finite numbers (lower, upper) with lower < upper, "
            "the smallest and largest possible values"
        )
    x, width = as_sample(values), upper - offset
    if x.ndim != 1:
        raise InvalidSample(f"values have shape {x.shape}: pass one value per run")
    check_within("values", x, bounds)
    return np.clip((x - offset) / width, 0.0, 1.0), offset, width


def check_within(what: str, values: FloatArray, bounds: tuple[float, float]) -> None:
    """Raise if a value is outside the bounds."""
    if values.min() < bounds[0] or values.max() > bounds[1]:
        raise InvalidSample(
            f"{what} from {values.min():g} to {values.max():g} leave the bounds {bounds}: pass "
            "bounds that hold for every run"
        )


def _stakes(x: FloatArray, alpha: float) -> FloatArray:
    """Return the stakes λ_i, each computed from the values before x_i."""
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    earlier_variance = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (earlier_variance * t * np.log(t + 1))))


def _log_capital(
    x: FloatArray, stakes: FloatArray, m: FloatArray, start: FloatArray | float = 0.0
) -> FloatArray:
    """Return ln K_t(m) as an array [t, m]; `start` is ln K(m) before the first value."""
    with np.errstate(divide="ignore"):
        capped_stakes = np.minimum(stakes[:, None], _CAP / m)
    return np.asarray(start + np.cumsum(np.log1p(capped_stakes * (x[:, None] - m)), axis=0))


def _lower_bounds(x: FloatArray, stakes: FloatArray, alpha: float) -> FloatArray:
    """Return low_t for every t: the largest m on the grid with K_s(m) ≥ 2/α for some s ≤ t."""
    grid = np.arange(_GRID + 1) / _GRID
    low, log_capital = np.empty(len(x)), np.zeros(len(grid))
    step = _CELLS // len(grid)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        log_k = _log_capital(x[rows], stakes[rows], grid, log_capital)
        # K decreases in m, so the excluded points are the first ones of the grid.
        excluded = (log_k >= math.log(2 / alpha)).sum(axis=1)
        low[rows] = grid[np.maximum(excluded - 1, 0)]
        log_capital = log_k[-1]
    return np.maximum.accumulate(low)
