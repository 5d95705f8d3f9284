"""Check a prior: one number P(m) in [0, 1] for each mode, Σ_m P(m) = 1."""

import numpy as np

from bayescontrol.arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol.errors import InvalidPrior

#: Allowed deviation of a sum of probabilities from one.
TOLERANCE = 1e-9


def as_prior(prior: ArrayLike | None, size: int) -> FloatArray:
    """Return the prior as an array, uniform by default. Raise `InvalidPrior` if it is not valid.

    >>> as_prior(None, 4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> as_prior([0.5, 0.6], 2)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: the prior sums to 1.1, not to 1: divide it by its sum
    """
    if size < 1:
        raise InvalidPrior("a belief needs at least one mode")
    if prior is None:
        return np.full(size, 1.0 / size)
    p = as_numbers(prior, "the prior", InvalidPrior)
    if p.shape != (size,):
        raise InvalidPrior(
            f"the prior has shape {p.shape}, expected ({size},): one number for each mode"
        )
    bad = np.flatnonzero(~(p >= 0.0) | (p > 1.0 + TOLERANCE))
    if bad.size:
        raise InvalidPrior(
            f"the prior of mode {bad[0]} is {p[bad[0]]}: expected a number in [0, 1]"
        )
    if abs(p.sum() - 1.0) > TOLERANCE:
        raise InvalidPrior(f"the prior sums to {p.sum():.12g}, not to 1: divide it by its sum")
    return p + 0.0  # -0. becomes 0.
