"""Means and proportions with intervals that fit the data.

    sample       x_1 … x_n, the runs along the first axis; further axes are components
    mean         x̄ = Σ x_i / n, standard error s / √n,  s² = Σ (x_i - x̄)² / (n - 1)
    t            x̄ ± t_{n-1, 1-α/2} s / √n
    bootstrap    resample n of the n runs with replacement: t* = (x̄* - x̄) / (s* / √n)
                 x̄ - t*_{(B+1-k)} s/√n … x̄ - t*_{(k)} s/√n,  k = ⌊(B + 1) α / 2⌋
    Wilson       for zeros and ones, p̂ = k / n:
                 (p̂ + z²/2n ± z √(p̂(1 - p̂)/n + z²/4n²)) / (1 + z²/n)
    band         x̄_j ± c s_j/√n for all j at once, c the 1 - α quantile of max_j |t*_j|
    Bernstein    for values in [0, 1]: P(|x̄ - μ| ≥ ε) ≤ 2 exp(-n ε² / (2 σ² + 2 ε / 3))

Student's interval is wrong where the data are skewed: its tails are off by about 1.4 γ φ(z) / √n
each, in opposite directions. Cochran's rule bounds that error: t is good where n ≥ 25 γ². Beyond,
the studentised bootstrap is better, because t* has the skewness of the data: its tails are right
to O(1/n), those of t to O(1/√n). Below ten values resampling has too little data, and t is used.

A band resamples whole curves and so keeps the dependence of their points: it is narrower than
Bonferroni's. Wilson's interval stays inside [0, 1] and keeps its coverage where p̂ is 0 or 1.
Bernstein's margin holds for every n without approximation, given the variance or a bound on it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.errors import BayesControlError, counted
from bayescontrol.seeding import SeedLike, Stream, as_stream

Method: TypeAlias = Literal["t", "bootstrap", "Wilson"]
MethodOrAuto: TypeAlias = Method | Literal["auto"]
Bounds: TypeAlias = tuple[FloatArray, FloatArray]

#: Cochran's rule n ≥ 25 γ² as |γ| ≤ 0.2 √n.
_COCHRAN: Final = 0.2
#: The bootstrap needs at least this many runs.
_FEWEST_RUNS: Final = 10
_LEAST_ALPHA: Final = 1e-4
_CELLS: Final = 2**22  # limit on the size of temporary arrays, for samples of any size


class InvalidSample(BayesControlError, ValueError):
    """A statistic cannot use these values: not finite, of unequal number, out of bounds.

    >>> mean_interval([1.0, float("nan")])
    Traceback (most recent call last):
    bayescontrol.statistics.intervals.InvalidSample: the sample holds nan at index (1,), ...
    """


class NoData(InvalidSample):
    """There are too few values, or the counts are impossible.

    >>> mean_and_error([])
    Traceback (most recent call last):
    bayescontrol.statistics.intervals.NoData: values have shape (0,): expected at least 1 run ...
    """


@dataclass(frozen=True, eq=False)
class Interval:
    """A mean with bounds at the nominal level 1 - α, and the method that gave them.

    The method "betting" has P(low ≤ μ ≤ high) ≥ 1 - α, and t has 1 - α if the values are normal.
    Otherwise the level is approximate, and few skewed values are worst: of 8 lognormal values
    (σ = 1) the 95 % interval (t) contains μ in 83 % of all samples, of 20 (bootstrap) in 92 %.

    The bounds hold for each component by itself, unless the method says otherwise.

    >>> print(Interval(np.array(2.0), np.array(1.234), np.array(2.766), 0.05, "t"))
    2.00 (95 % interval 1.23 to 2.77, t)
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    alpha: float
    method: str

    def __str__(self) -> str:
        if np.ndim(self.mean):
            return f"{np.shape(self.mean)} means, {self.method}, {1 - self.alpha:.3g} coverage"
        mean, low, high = format_interval(self.mean, self.low, self.high)
        return f"{mean} ({100 * (1 - self.alpha):g} % interval {low} to {high}, {self.method})"


def mean_and_error(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return x̄ and its standard error s/√n along the first axis, the run.

    The error of a single value is infinite.

    >>> mean, error = mean_and_error([1.0, 2.0, 3.0])
    >>> print(f"{mean:.3f} ± {error:.3f}")
    2.000 ± 0.577
    >>> mean_and_error([[1.0, 5.0]])[1].tolist()
    [inf, inf]
    """
    x = _as_runs(values, least=1)
    mean = np.asarray(x.mean(axis=0))
    if len(x) == 1:
        return mean, np.full_like(mean, np.inf)
    return mean, np.asarray(x.std(axis=0, ddof=1) / np.sqrt(len(x)))


def fitting_method(values: ArrayLike) -> Method:
    """Choose an interval: Wilson for zeros and ones, bootstrap where n < 25 γ², else t.

    γ = m_3 / m_2^(3/2). A curve gets one method for all its points, by the median of |γ|.

    >>> fitting_method([0, 1, 1, 0, 1])
    'Wilson'
    >>> fitting_method(np.arange(20.0)), fitting_method(np.exp(np.arange(20.0)))
    ('t', 'bootstrap')
    """
    x = as_sample(values)
    if _is_binary(x):
        return "Wilson"
    if len(x) < _FEWEST_RUNS:
        return "t"
    centred = x - x.mean(axis=0)
    m2, m3 = (centred**2).mean(axis=0), (centred**3).mean(axis=0)
    # A component that never varies has no skewness.
    gamma = np.abs(np.divide(m3, m2**1.5, out=np.zeros_like(m2), where=m2 > 0))
    return "bootstrap" if np.median(gamma) > _COCHRAN * np.sqrt(len(x)) else "t"


def mean_interval(
    values: ArrayLike, *, alpha: float = 0.05, method: MethodOrAuto = "auto", seed: SeedLike = 0
) -> Interval:
    """Return x̄ with P(low ≤ μ ≤ high) ≈ 1 - α for each component; see `Interval`.

    "auto" uses `fitting_method`. The bootstrap draws from `seed`, so the same call gives the same
    interval. For a band that covers a whole curve at once, see `mean_band`.

    >>> print(mean_interval([1.0, 2.0, 3.0, 4.0]))
    2.5 (95 % interval 0.4 to 4.6, t)
    >>> print(mean_interval([True] * 9 + [False]))
    0.90 (95 % interval 0.60 to 0.98, Wilson)
    """
    x = as_sample(values)
    check_level(alpha)
    chosen = fitting_method(x) if method == "auto" else method
    mean, error = mean_and_error(x)
    if chosen == "Wilson":
        if not _is_binary(x):
            raise InvalidSample("Wilson's interval is for proportions: pass zeros and ones")
        low, high = wilson(x.sum(axis=0), len(x), normal_quantile(1 - alpha / 2))
    elif chosen == "bootstrap":
        low, high = studentised_bounds(x, alpha, seed)
    else:
        half = t_quantile(1 - alpha / 2, len(x) - 1) * error
        low, high = mean - half, mean + half
    return Interval(mean, low, high, alpha, chosen)


def mean_band(curves: ArrayLike, *, alpha: float = 0.05, seed: SeedLike = 0) -> Interval:
    """Return a band for a mean curve: P(low_j ≤ μ_j ≤ high_j for all j) ≈ 1 - α.

    The first axis is the run; all other axes belong to the curve. Fewer than ten runs are too few
    to resample: then c is Bonferroni's t_{n-1, 1 - α/2J}.

    >>> curves = Stream(1).normal(size=(40, 100)).cumsum(axis=1)
    >>> band, pointwise = mean_band(curves), mean_interval(curves)
    >>> bool(np.all(band.high > pointwise.high)), band.method
    (True, 'max-t bootstrap')
    """
    x = as_sample(curves, least=2)
    check_level(alpha)
    flat, mean, error = _flatten(x)
    n, width = flat.shape
    if n < _FEWEST_RUNS:
        c, method = t_quantile(1 - alpha / (2 * width), n - 1), "Bonferroni t"
    else:
        resamples = _resample_count(alpha)
        largest_t = np.zeros(resamples)
        for _, t in _t_star(flat, resamples, seed):
            np.maximum(largest_t, np.abs(t).max(axis=1), out=largest_t)
        # The k-th largest of the B maxima, k = ⌊(B + 1) α⌋.
        c = float(np.sort(largest_t)[resamples - int((resamples + 1) * alpha)])
        method = "max-t bootstrap"
    bounds = mean, _bound(mean, c, error), _bound(mean, -c, error)
    mean, low, high = (values.reshape(x.shape[1:]) for values in bounds)
    return Interval(mean, low, high, alpha, method)


def wilson(successes: ArrayLike, trials: ArrayLike, z: float = 1.96) -> Bounds:
    """Return Wilson's interval for a proportion k/n at z standard errors, element by element.

    >>> low, high = wilson(9, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.596 0.982
    """
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    if not (np.all(n > 0) and np.all(k >= 0) and np.all(k <= n)):
        raise NoData(f"wilson needs 0 <= successes <= trials and trials > 0, got {k} of {n}")
    p, scale = k / n, 1 + z * z / n
    centre = p + z * z / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = np.where(k == 0, 0.0, (centre - half) / scale)  # 0 and 1 exactly, without rounding
    high = np.where(k == n, 1.0, (centre + half) / scale)
    return low, high


def bernstein(variance: ArrayLike, n: int, alpha: float = 0.05) -> FloatArray:
    """Return ε with 2 exp(-n ε² / (2 σ² + 2 ε / 3)) = α, for a mean of n values in [0, 1].

    A known mean μ bounds the variance: σ² ≤ μ (1 - μ). For values in an interval of width w
    divide the variance by w² and multiply the margin by w.

    >>> print(f"{bernstein(0.25, 1000, alpha=1e-3 / 12):.4f}")
    0.0745
    """
    if n < 1:
        raise NoData(f"bernstein needs at least one value, n = {n}")
    log_term = math.log(2 / check_level(alpha))
    variance_term = 2 * n * log_term * np.maximum(variance, 0.0)
    return np.asarray((log_term / 3 + np.sqrt(log_term**2 / 9 + variance_term)) / n)


def normal_quantile(p: float) -> float:
    """Return z with Φ(z) = p."""
    return NormalDist().inv_cdf(p)


def t_quantile(p: float, nu: int) -> float:
    """Return t with P(T_ν ≤ t) = p; infinite for ν = 0."""
    if nu < 1:
        return math.inf
    from scipy.special import stdtrit  # type: ignore[import-untyped] # takes 0.5 s to load

    return float(stdtrit(nu, p))


def _as_runs(values: ArrayLike, least: int) -> FloatArray:
    """Return the values as floats; raise NoData if there are fewer than `least` runs."""
    x = np.asarray(values, dtype=np.float64)
    if not x.ndim or len(x) < least:
        raise NoData(
            f"values have shape {x.shape}: expected at least {counted(least, 'run')} along the "
            "first axis"
        )
    return x


def as_sample(values: ArrayLike, least: int = 1) -> FloatArray:
    """Return the values as a float array whose first axis is the run.

    Raise if there are fewer than `least` runs, or if a value is not finite.
    """
    x = _as_runs(values, least)
    if not np.isfinite(x).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise InvalidSample(
            f"the sample holds {x[index]} at index {index}, and a mean needs finite values: leave "
            "that run out, or report the proportion of such runs"
        )
    return x


def check_level(alpha: float) -> float:
    """Return α; raise unless 0 < α < 1."""
    if not 0 < alpha < 1:
        raise InvalidSample(
            f"alpha = {alpha!r}: expected an error rate in (0, 1); 0.05 gives intervals of 95 %"
        )
    return alpha


def format_interval(mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[str, str, str]:
    """Format three numbers to two digits of the half-width; to six digits if that is 0 or ∞.

    >>> format_interval(0.123456, 0.1, 0.147)
    ('0.123', '0.100', '0.147')
    """
    m, lo, hi = (float(np.asarray(value)) for value in (mean, low, high))
    half, style = (hi - lo) / 2, "z.6g"  # "z": write -0 as 0
    if 1e-12 * max(abs(m), abs(lo), abs(hi)) < half < math.inf:  # otherwise it is rounding, or ∞
        style = f"z.{max(0, 1 - math.floor(math.log10(half)))}f"
    return format(m, style), format(lo, style), format(hi, style)


def studentised_bounds(x: FloatArray, alpha: float, seed: SeedLike = 0) -> Bounds:
    """Return the studentised bootstrap interval of the mean along the first axis.

    A component that never varies has an interval of width 0. There are B = 1,999 resamples, and
    more if α < 0.02.
    """
    flat, mean, error = _flatten(x)
    resamples = _resample_count(alpha)
    k = int((resamples + 1) * alpha / 2)
    low, high = np.empty_like(mean), np.empty_like(mean)
    for columns, t in _t_star(flat, resamples, seed):
        t.partition((k - 1, resamples - k), axis=0)
        low[columns] = _bound(mean[columns], t[resamples - k], error[columns])
        high[columns] = _bound(mean[columns], t[k - 1], error[columns])
    return low.reshape(x.shape[1:]), high.reshape(x.shape[1:])


def _is_binary(x: FloatArray) -> bool:
    return bool(((x == 0) | (x == 1)).all())


def _flatten(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return x as an array [run, component], with the means and their standard errors."""
    flat = _as_runs(x, least=2).reshape(len(x), -1)
    return flat, flat.mean(axis=0), flat.std(axis=0, ddof=1) / np.sqrt(len(flat))


def _resample_count(alpha: float) -> int:
    """Return B, the number of resamples."""
    if alpha < _LEAST_ALPHA:
        raise InvalidSample(f"alpha = {alpha}: below {_LEAST_ALPHA} use method='t', no bootstrap")
    return max(1999, int(np.ceil(40 / alpha)) - 1)  # then the rank k is at least 20


def _bound(mean: FloatArray, t: FloatArray | float, error: FloatArray) -> FloatArray:
    """Return the bound x̄ - t s/√n; it is x̄ if a component never varies, even for infinite t."""
    return mean - np.multiply(t, error, out=np.zeros_like(mean), where=error > 0)


def _t_star(x: FloatArray, resamples: int, seed: SeedLike) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of components: the columns of x, and t* as an array [resample, component].

    All blocks use the same resamples.
    """
    common = as_stream(seed).integers(2**62)
    step = max(1, _CELLS // resamples)
    for start in range(0, x.shape[1], step):
        columns = slice(start, start + step)
        yield columns, _t_star_of(x[:, columns], resamples, Stream(common))


def _t_star_of(x: FloatArray, resamples: int, stream: Stream) -> FloatArray:
    """Return t* = (x̄* - x̄) / (s* / √n) as an array [resample, component].

    If s* = 0, which means that all draws of a resample are equal, t* is ±∞, or 0 if x̄* = x̄.
    """
    n = len(x)
    centred = x - x.mean(axis=0)
    squares = centred**2
    out = np.empty((resamples, x.shape[1]))
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        # Row i draws from n i … n i + n - 1 instead of 0 … n - 1: one bincount counts all rows.
        drawn = stream.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n) / n
        mean, mean_square = weights @ centred, weights @ squares  # mean = x̄* - x̄
        variance = mean_square - mean**2
        # A resample of one run, drawn n times, has variance 0; rounding may make it positive.
        variance = np.where(variance > 1e-12 * mean_square, variance, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = mean / np.sqrt(variance / (n - 1))  # s*² = variance · n / (n - 1)
        out[start : start + rows] = np.where(np.isnan(t), 0.0, t)  # NaN is 0/0
    return out
