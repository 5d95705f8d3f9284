"""Samples and intervals: what every statistic here takes and gives.

sample     x_1 … x_n, the runs along the first axis; further axes are components
interval   [low, high] with P(low ≤ μ ≤ high) ≥ 1 - α, for each component by itself
           unless it says that it holds for all of them at once
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BayesControlError


class InvalidSample(BayesControlError, ValueError):
    """Values that a statistic cannot use: NaN, infinite, of unequal number, outside their bounds.

    >>> issubclass(InvalidSample, ValueError)
    True
    """


class NoData(InvalidSample):
    """A statistic of nothing, or of counts that cannot be.

    >>> issubclass(NoData, ValueError)
    True
    """


@dataclass(frozen=True, eq=False)
class Interval:
    """A mean between its bounds: P(low ≤ μ ≤ high) ≥ 1 - α; and the method that says so.

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
        mean, low, high = shown(self.mean, self.low, self.high)
        return f"{mean} ({100 * (1 - self.alpha):g} % interval {low} to {high}, {self.method})"


def as_sample(values: npt.ArrayLike, axis: int = 0, least: int = 1) -> FloatArray:
    """The values as floats with the runs first; refused unless `least` of them, all finite.

    >>> as_sample([[1, 2, 3]], axis=1).shape
    (3, 1)
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[axis] if x.ndim else 0
    if n < least:
        raise NoData(
            f"at least {least} values are needed along axis {axis}, the shape is {x.shape}"
        )
    if not np.isfinite(x).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise InvalidSample(
            f"value {x[place]} at {place}: a mean needs finite values; leave that run out, "
            "or count such runs as a proportion"
        )
    return np.moveaxis(x, axis, 0)


def check_level(alpha: float) -> float:
    """α, refused unless 0 < α < 1.

    >>> check_level(95)
    Traceback (most recent call last):
    bayescontrol.lab.statistics.sample.InvalidSample: alpha = 95: it is the rate of errors...
    """
    if not 0 < alpha < 1:
        raise InvalidSample(
            f"alpha = {alpha!r}: it is the rate of errors, between 0 and 1; "
            "0.05 gives intervals of 95 %"
        )
    return alpha


def shown(mean: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[str, str, str]:
    """Three numbers as text, to two digits of the interval's half-width.

    >>> shown(0.123456, 0.1, 0.147)
    ('0.123', '0.100', '0.147')
    """
    numbers = [float(np.asarray(value)) for value in (mean, low, high)]
    half = (numbers[2] - numbers[1]) / 2
    if not (math.isfinite(half) and half > 0):
        first, second, third = (f"{number:z.6g}" for number in numbers)
    else:
        places = max(0, 1 - math.floor(math.log10(half)))
        first, second, third = (f"{number:z.{places}f}" for number in numbers)
    return first, second, third
