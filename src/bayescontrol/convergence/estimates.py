"""What a sample says, and how well: rates and shares with their errors.

rate       x̄ ± s/√n over n runs; clear of zero beyond three errors, after (3 s/x̄)² runs
share      k/n, with low and high such that P(≥ k | low) = P(≤ k | high) = α/2
"""

import math
from typing import NamedTuple

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import counted

#: An error so much smaller than the number itself is rounding.
ROUNDING = 1e-12


def with_error(value: float, error: float, digits: str = ".3g") -> str:
    """x ± its standard error; 0 if that is rounding, and none if it is not known.

    >>> with_error(0.17432, 4.6e-18), with_error(0.17432, 0.0021), with_error(0.17432, math.inf)
    ('0.174 ± 0', '0.174 ± 0.0021', '0.174')
    """
    shown = f"{value:{digits}}"
    if not error < math.inf:
        return shown
    return f"{shown} ± {error if error > ROUNDING * abs(value) else 0.0:.2g}"


class Rate(NamedTuple):
    """A divergence rate in nats a step, ± its standard error over the runs.

    >>> Rate(0.0213, 0.0010, runs=20, steps=1000)
    0.0213 ± 0.001 nats a step (20 runs of 1000 steps)
    >>> Rate(0.01, 0.01, runs=20, steps=1000).runs_needed
    180
    """

    mean: float
    error: float
    runs: int
    steps: int

    @property
    def positive(self) -> bool:
        """Whether it is above zero by more than three standard errors."""
        return self.mean > 3.0 * self.error

    @property
    def runs_needed(self) -> int:
        """(3 sd/mean)²: the runs after which a rate of this size and spread is clear of zero."""
        if self.positive or not self.error < math.inf:
            return max(self.runs, 2)
        size = max(self.mean, self.error)  # a mean of zero or less has at most the error's size
        return math.ceil(self.runs * (3.0 * self.error / size) ** 2) if size > 0.0 else self.runs

    def __repr__(self) -> str:
        return (
            f"{with_error(self.mean, self.error)} nats a step "
            f"({counted(self.runs, 'run')} of {counted(self.steps, 'step')})"
        )


def mean_rate(nats: FloatArray, steps: int) -> Rate:
    """The mean over runs of nats/steps; what is infinite in one run is so on average, for sure.

    >>> import numpy as np
    >>> mean_rate(np.array([1.0, 2.0, 3.0]), steps=10)
    0.2 ± 0.058 nats a step (3 runs of 10 steps)
    """
    n = len(nats)
    if any(total == math.inf for total in nats):
        return Rate(math.inf, 0.0, n, steps)
    error = nats.std(ddof=1) / math.sqrt(n) if n > 1 else math.inf
    return Rate(float(nats.mean()) / steps, float(error) / steps, n, steps)


class Share(NamedTuple):
    """A share k/n with its exact interval (Clopper and Pearson), 95 % unless said otherwise.

    >>> clopper_pearson(0, 60)
    0 of 60 (0 to 5.96 %)
    """

    hits: int
    of: int
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.hits} of {self.of} ({100 * self.low:.3g} to {100 * self.high:.3g} %)"


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> Share:
    """The p that n tosses with k successes do not exclude: P(≥ k | low) = P(≤ k | high) = α/2.

    >>> print(f"{clopper_pearson(9, 10).low:.4f}")
    0.5550
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    if not (0 <= hits <= of and of > 0 and 0.0 < level < 1.0):
        raise ValueError(f"{hits} of {of} at level {level}: need 0 <= hits <= of, of > 0")
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, of - hits, 1.0 - tail)) if hits < of else 1.0
    return Share(hits, of, low, high)
