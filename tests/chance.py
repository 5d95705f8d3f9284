"""Distances between samples and distributions, for statistical tests."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray


def distance(x: Any, cdf: Callable[[FloatArray], Any]) -> float:
    """√n sup |F_n - F|; it exceeds 2.69 by chance once in a million."""
    f = cdf(np.sort(x))
    steps = np.arange(x.size + 1) / x.size
    return float(math.sqrt(x.size) * max(np.max(steps[1:] - f), np.max(f - steps[:-1])))


def chi_square(counts: Any, expected: FloatArray) -> float:
    """The p-value of Pearson's statistic; cells with expected counts below 10 are merged."""
    small = expected < 10.0
    counts = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], max(expected[small].sum(), 1e-9))
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(special.chdtrc(max(counts.size - 1, 1), statistic))
