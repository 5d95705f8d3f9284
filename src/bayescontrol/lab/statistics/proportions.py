"""Proportions, and means of bounded values.

    proportion p̂ = k / n        Wilson: (p̂ + z²/2n ± z √(p̂(1 - p̂)/n + z²/4n²)) / (1 + z²/n)
    values in [0, 1]            Bernstein: P(|x̄ - μ| ≥ ε) ≤ 2 exp(-n ε² / (2 σ² + 2 ε / 3))

Wilson's interval stays inside [0, 1] and keeps its coverage where p̂ is 0 or 1. Bernstein's
margin holds for every n, without approximation, where the variance or a bound on it is known.
"""

import math

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.sample import NoData, check_level


def wilson(
    successes: npt.ArrayLike, trials: npt.ArrayLike, z: float = 1.96
) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for a proportion k/n at z standard errors, element by element.

    >>> low, high = wilson(9, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.596 0.982
    """
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    if not (np.all(n > 0) and np.all(k >= 0) and np.all(k <= n)):
        raise NoData(f"wilson needs 0 <= successes <= trials and trials > 0, got {k} of {n}")
    p = k / n
    centre = p + z * z / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = np.where(k == 0, 0.0, (centre - half) / scale)  # exact where rounding would not be
    high = np.where(k == n, 1.0, (centre + half) / scale)
    return low, high


def bernstein(variance: npt.ArrayLike, n: int, alpha: float = 0.05) -> FloatArray:
    """ε with 2 exp(-n ε² / (2 σ² + 2 ε / 3)) = α, for a mean of n values in [0, 1].

    A known mean μ bounds the variance: σ² ≤ μ (1 - μ). For values in an interval of width w
    divide the variance by w² and multiply the margin by w.

    >>> print(f"{bernstein(0.25, 1000, alpha=1e-3 / 12):.4f}")
    0.0745
    """
    if n < 1:
        raise NoData(f"bernstein needs at least one value, n = {n}")
    share = math.log(2 / check_level(alpha))
    spread = 2 * n * share * np.maximum(variance, 0.0)
    return np.asarray((share / 3 + np.sqrt(share**2 / 9 + spread)) / n)
