"""Means and proportions with their errors.

    mean x̄ = Σ x_i / n          standard error s / √n,  s² = Σ (x_i - x̄)² / (n - 1)
    proportion p̂ = k / n        Wilson: (p̂ + z²/2n ± z √(p̂(1 - p̂)/n + z²/4n²)) / (1 + z²/n)

Wilson's interval stays inside [0, 1] and keeps its coverage where p̂ is 0 or 1.
"""

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BayesControlError

__all__ = ["NoData", "mean_and_error", "wilson"]


class NoData(BayesControlError, ValueError):
    """A statistic of nothing, or of counts that cannot be.

    >>> issubclass(NoData, ValueError)
    True
    """


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
