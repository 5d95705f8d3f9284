"""The studentised bootstrap: the law of the error, drawn from the data.

    resample   n of the n runs, with replacement: x̄*, s*;  t* = (x̄* - x̄) / (s* / √n)
    interval   x̄ - t*_{(B+1-k)} s/√n … x̄ - t*_{(k)} s/√n,  k = ⌊(B + 1) α / 2⌋
    band       x̄_j ± c s_j/√n for all j at once, c the 1 - α quantile of max_j |t*_j|

t* carries the skewness of the mean with it, so the tails are right to O(1/n), where those of
Student's t are right to O(1/√n). A whole curve is resampled at once, and so keeps the
dependence of its points: the band is as wide as they together need, not as Bonferroni fears.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.quantiles import t_quantile
from bayescontrol.lab.statistics.sample import (
    Interval,
    InvalidSample,
    NoData,
    as_sample,
    check_level,
)
from bayescontrol.seeding import Stream, as_stream

#: Below so many runs resampling has too little to draw from.
FEWEST: Final = 10
_LEAST_ALPHA: Final = 1e-4
_CELLS: Final = 2**22  # numbers held at once, whatever the size of the sample


def studentised_bounds(
    x: FloatArray, alpha: float, rng: int | Stream = 0
) -> tuple[FloatArray, FloatArray]:
    """The interval of the studentised bootstrap for the mean along the first axis.

    A component that never varies has an interval of no width. B = 1,999 resamples, more
    where α < 0.02.

    >>> skewed = np.exp(np.arange(12.0) / 2)
    >>> low, high = studentised_bounds(skewed, 0.05)
    >>> bool(high - skewed.mean() > 1.5 * (skewed.mean() - low))
    True
    """
    flat, mean, error = _flat(x)
    resamples = _resamples(alpha)
    k = int((resamples + 1) * alpha / 2)
    low, high = np.empty_like(mean), np.empty_like(mean)
    for columns, t in _t_star(flat, resamples, rng):
        t.partition((k - 1, resamples - k), axis=0)
        low[columns] = _minus(mean[columns], t[resamples - k], error[columns])
        high[columns] = _minus(mean[columns], t[k - 1], error[columns])
    return low.reshape(x.shape[1:]), high.reshape(x.shape[1:])


def mean_band(
    curves: npt.ArrayLike, *, alpha: float = 0.05, axis: int = 0, rng: int | Stream = 0
) -> Interval:
    """A band for a mean curve: P(low_j ≤ μ_j ≤ high_j for all j) = 1 - α, by max_j |t*_j|.

    `axis` is the run; every other axis belongs to the curve. Below ten runs there is too
    little to resample, and c is Bonferroni's t_{n-1, 1 - α/2J}.

    >>> curves = Stream(1).normal(size=(40, 100)).cumsum(axis=1)
    >>> band = mean_band(curves)
    >>> from bayescontrol.lab.statistics.means import mean_interval
    >>> pointwise = mean_interval(curves)
    >>> bool(np.all(band.high > pointwise.high)), band.method
    (True, 'max-t bootstrap')
    """
    x = as_sample(curves, axis, least=2)
    check_level(alpha)
    flat, mean, error = _flat(x)
    n, width = flat.shape
    if n < FEWEST:
        c, method = t_quantile(1 - alpha / (2 * width), n - 1), "Bonferroni t"
    else:
        resamples = _resamples(alpha)
        largest = np.zeros(resamples)
        for _, t in _t_star(flat, resamples, rng):
            np.maximum(largest, np.abs(t).max(axis=1), out=largest)
        c = float(np.sort(largest)[resamples - int((resamples + 1) * alpha)])
        method = "max-t bootstrap"
    shape = x.shape[1:]
    low, high = _minus(mean, c, error), _minus(mean, -c, error)
    return Interval(mean.reshape(shape), low.reshape(shape), high.reshape(shape), alpha, method)


def _flat(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    flat = x.reshape(len(x), -1)
    if len(flat) < 2:
        raise NoData(f"resampling needs at least 2 runs, the shape is {x.shape}")
    return flat, flat.mean(axis=0), flat.std(axis=0, ddof=1) / np.sqrt(len(flat))


def _resamples(alpha: float) -> int:
    if alpha < _LEAST_ALPHA:
        raise InvalidSample(
            f"alpha = {alpha}: the bootstrap does not reach below {_LEAST_ALPHA}; use method='t'"
        )
    return max(1999, int(np.ceil(40 / alpha)) - 1)  # so that k is 20 or more


def _minus(mean: FloatArray, t: FloatArray | float, error: FloatArray) -> FloatArray:
    """x̄ - t s/√n; where nothing varies x̄ itself, even for infinite t."""
    return mean - np.multiply(t, error, out=np.zeros_like(mean), where=error > 0)


def _t_star(x: FloatArray, resamples: int, rng: int | Stream) -> Iterator[tuple[slice, FloatArray]]:
    """t* of all resamples, some components at a time; every component sees the same runs."""
    seed = as_stream(rng).integers(2**62)
    step = max(1, _CELLS // resamples)
    for start in range(0, x.shape[1], step):
        columns = slice(start, start + step)
        yield columns, _t_star_of(x[:, columns], resamples, Stream(seed))


def _t_star_of(x: FloatArray, resamples: int, stream: Stream) -> FloatArray:
    n = len(x)
    centred = x - x.mean(axis=0)
    squares = centred**2
    out = np.empty((resamples, x.shape[1]))
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = stream.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n) / n
        mean, second = weights @ centred, weights @ squares
        # One run drawn n times has no spread: rounding must not lend it one.
        variance = np.where(second - mean**2 > 1e-12 * second, second - mean**2, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = mean / np.sqrt(variance / (n - 1))
        out[start : start + rows] = np.where(np.isnan(t), 0.0, t)
    return out
