"""Check probabilities: a prior P(m), tables, and what policies and hypotheses answer."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol.errors import InvalidPrior, InvalidTable

#: Allowed deviation of a sum of probabilities from one.
TOLERANCE = 1e-9
_LEAST, _LARGEST = 1.0 - TOLERANCE, 1.0 + TOLERANCE


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
        raise InvalidPrior(f"the prior has shape {p.shape}, expected ({size},): a number per mode")
    bad = np.flatnonzero(~(p >= 0.0) | (p > 1.0 + TOLERANCE))
    if bad.size:
        raise InvalidPrior(f"the prior of mode {bad[0]} is {p[bad[0]]}: expected a value in [0, 1]")
    if abs(p.sum() - 1.0) > TOLERANCE:
        raise InvalidPrior(f"the prior sums to {p.sum():.12g}, not to 1: divide it by its sum")
    return p + 0.0  # -0. becomes 0.


def probability_table(table: ArrayLike, name: str, axes: tuple[str, ...]) -> FloatArray:
    """Return a table with these axes as an array; raise InvalidTable unless its rows sum to 1."""
    p = np.array(table, np.float64, order="C")
    if p.ndim != len(axes):
        raise InvalidTable(f"{name} has shape {p.shape}: expected the axes ({', '.join(axes)})")
    invalid = np.argwhere(~(p >= 0.0))
    if invalid.size:
        where = tuple(int(i) for i in invalid[0])
        raise InvalidTable(f"{name}{list(where)} is {p[where]}: it must be a probability")
    bad_sums = np.argwhere(np.abs(p.sum(-1) - 1.0) > TOLERANCE)
    if bad_sums.size:
        row = tuple(int(i) for i in bad_sums[0])
        raise InvalidTable(f"{name}{list(row)} sums to {p[row].sum():.9g}, not to 1")
    return p


def sums_to_one(probabilities: Any) -> bool:
    """Return whether this is a mapping to numbers that are not negative and sum to 1."""
    total = 0.0
    try:
        for p in probabilities.values():  # for a few numbers, faster than sum and min
            if p < 0.0:
                return False
            total += p
    except (AttributeError, TypeError, ValueError):
        return False
    return _LEAST <= total <= _LARGEST  # false for NaN


def checked_probabilities(
    answer: Any, part: str, mode: Any, x: Any, *a: Any, allow_empty: bool = False
) -> Mapping[Any, float]:
    """Return `answer` if it maps outcomes to probabilities that sum to 1, else raise InvalidTable.

    The error names the `part` of the mode ("policy" or "hypothesis"), the situation and the action.
    With `allow_empty` an empty mapping is valid: the mode makes no prediction.

    >>> checked_probabilities({"go": 0.5}, "policy", "mode 0", "home")
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: the policy of mode 0 in situation 'home' is {'go': 0.5}: ...
    """
    if sums_to_one(answer) or (allow_empty and isinstance(answer, Mapping) and not answer):
        return cast("Mapping[Any, float]", answer)
    try:
        total = sum(answer.values())
        problem = f"probabilities must not be negative and must sum to 1, the sum is {total:.9g}"
    except (AttributeError, TypeError, ValueError):
        is_action = part == "policy" and isinstance(answer, str | int | float | tuple)
        example = f"{{{answer if is_action else 'outcome'!r}: 1.0}}"
        problem = f"expected a mapping from outcomes to probabilities, such as {example}"
    after = f" after action {a[0]!r}" if a else ""
    raise InvalidTable(f"the {part} of {mode} in situation {x!r}{after} is {answer!r}: {problem}")
