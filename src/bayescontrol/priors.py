"""Check a prior: one number P(m) in [0, 1] for each mode, Σ_m P(m) = 1."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import InvalidPrior

M = TypeVar("M")

#: Allowed deviation of a sum of probabilities from one.
TOLERANCE = 1e-9


def as_prior(prior: npt.ArrayLike | None, size: int) -> FloatArray:
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
    try:
        p = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPrior(f"the prior must be an array of numbers, not {prior!r}") from error
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


def cut(
    modes: Iterable[M], prior: Iterable[float], keep: float, limit: int
) -> tuple[list[M], FloatArray, float]:
    """Keep the first modes of a countable class, until Σ P(m) reaches `keep`.

    Return these modes, their P(m) scaled to sum to 1, and the prior mass of the other modes.

    >>> from itertools import count
    >>> cut(count(), (2.0**-n for n in count(1)), keep=0.8, limit=100)
    ([0, 1, 2], array([0.57142857, 0.28571429, 0.14285714]), 0.125)
    """
    if not 0.0 < keep < 1.0:
        raise InvalidPrior(f"keep={keep}: expected a probability mass between 0 and 1")
    first_modes: list[M] = []
    masses: list[float] = []
    mass = 0.0
    for mode, p in islice(zip(modes, prior, strict=False), limit):
        first_modes.append(mode)
        masses.append(p)
        mass += p
        if mass >= keep:
            break
    if not keep <= mass <= 1.0 + TOLERANCE:
        raise InvalidPrior(
            f"the first {len(first_modes)} modes have prior mass {mass:.6g}: "
            f"it must reach keep={keep} and not pass 1"
        )
    return first_modes, np.array(masses) / mass, max(0.0, 1.0 - mass)
