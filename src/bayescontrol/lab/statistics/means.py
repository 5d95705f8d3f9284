"""Means, with an interval that fits the data.

    mean x̄ = Σ x_i / n      standard error s / √n,  s² = Σ (x_i - x̄)² / (n - 1)
    t           x̄ ± t_{n-1, 1-α/2} s / √n
    bootstrap   x̄ - q_{1-α/2} s / √n … x̄ - q_{α/2} s / √n,  q of t* = (x̄* - x̄) / (s* / √n)
    Wilson      for values that are 0 or 1

Student's interval errs by skewness: its two tails are off by about 1.4 γ φ(z) / √n each, in
opposite directions. Cochran's rule bounds that: t is good where n ≥ 25 γ². Beyond it the
studentised bootstrap, which takes the skewness from the data, is nearer; below ten values it
has too little to draw from, and t stays.
"""

from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.bootstrap import FEWEST, studentised_bounds
from bayescontrol.lab.statistics.proportions import wilson
from bayescontrol.lab.statistics.quantiles import normal_quantile, t_quantile
from bayescontrol.lab.statistics.sample import (
    Interval,
    InvalidSample,
    NoData,
    as_sample,
    check_level,
)
from bayescontrol.seeding import Stream

Method: TypeAlias = Literal["t", "bootstrap", "Wilson"]

#: n ≥ 25 γ², that is |γ| ≤ 0.2 √n.
_COCHRAN: Final = 0.2


def mean_and_error(values: npt.ArrayLike, axis: int = 0) -> tuple[FloatArray, FloatArray]:
    """x̄ and its standard error s/√n along `axis`, the run by default.

    One value bounds nothing: its error is infinite.

    >>> mean, error = mean_and_error([1.0, 2.0, 3.0])
    >>> print(f"{mean:.3f} ± {error:.3f}")
    2.000 ± 0.577
    >>> mean_and_error([[1.0, 5.0]])[1].tolist()
    [inf, inf]
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[axis] if x.ndim else 0
    if n == 0:
        raise NoData(f"a mean needs at least one value along axis {axis}, the shape is {x.shape}")
    mean = np.asarray(x.mean(axis=axis))
    if n == 1:
        return mean, np.full_like(mean, np.inf)
    return mean, np.asarray(x.std(axis=axis, ddof=1) / np.sqrt(n))


def fitting_method(values: npt.ArrayLike, axis: int = 0) -> Method:
    """Which interval fits: Wilson for zeros and ones, bootstrap where n < 25 γ², else t.

    γ = m_3 / m_2^(3/2). A curve gets one method for all its points, by the median of |γ|.

    >>> fitting_method([0, 1, 1, 0, 1])
    'Wilson'
    >>> fitting_method(np.arange(20.0)), fitting_method(np.exp(np.arange(20.0)))
    ('t', 'bootstrap')
    """
    x = as_sample(values, axis)
    n = len(x)
    if _zeros_and_ones(x):
        return "Wilson"
    if n < FEWEST:
        return "t"
    centred = x - x.mean(axis=0)
    m2, m3 = (centred**2).mean(axis=0), (centred**3).mean(axis=0)
    spread = m2 > 0  # a component that never varies has no skewness
    gamma = np.abs(np.divide(m3, m2**1.5, out=np.zeros_like(m2), where=spread))
    return "bootstrap" if np.median(gamma) > _COCHRAN * np.sqrt(n) else "t"


def mean_interval(
    values: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    method: Method | Literal["auto"] = "auto",
    axis: int = 0,
    rng: int | Stream = 0,
) -> Interval:
    """x̄ with P(low ≤ μ ≤ high) = 1 - α for each component; "auto" asks `fitting_method`.

    The bootstrap draws from `rng`, so the same call gives the same interval. For a band that
    holds along a whole curve at once, see `mean_band`.

    >>> print(mean_interval([1.0, 2.0, 3.0, 4.0]))
    2.5 (95 % interval 0.4 to 4.6, t)
    >>> print(mean_interval([True] * 9 + [False]))
    0.90 (95 % interval 0.60 to 0.98, Wilson)
    """
    x = as_sample(values, axis)
    check_level(alpha)
    chosen = fitting_method(x) if method == "auto" else method
    mean, error = mean_and_error(x)
    if chosen == "Wilson":
        if not _zeros_and_ones(x):
            raise InvalidSample("Wilson's interval is for proportions: pass zeros and ones")
        low, high = wilson(x.sum(axis=0), len(x), normal_quantile(1 - alpha / 2))
    elif chosen == "bootstrap":
        low, high = studentised_bounds(x, alpha, rng)
    else:
        half = t_quantile(1 - alpha / 2, len(x) - 1) * error
        low, high = mean - half, mean + half
    return Interval(mean, low, high, alpha, chosen)


def _zeros_and_ones(x: FloatArray) -> bool:
    return bool(((x == 0) | (x == 1)).all())
