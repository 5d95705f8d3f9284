"""Many rewards of one arm at once: their number, their sum and the sum of their squares.

    Totals(n, total, squares)      Σ 1,  Σ r,  Σ r²

For conjugate families they say all that the rewards say. Other beliefs learn rewards of 0 and 1
one by one.
"""

import math
from collections.abc import Hashable
from typing import Any, Final

from bayescontrol._arrays import as_integer
from bayescontrol.errors import BadEvidence
from bayescontrol.protocols import Totals

#: The most rewards in one call, and the most where they are learned one by one.
MOST_REWARDS, MOST_ONE_BY_ONE = 10**9, 10_000
#: Sums of squares may be too small by this factor, because of rounding.
_ROUNDING: Final = 1e-9


def _as_number(value: Any) -> float:
    """Return a number as a float, and NaN for anything else."""
    try:
        return math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def checked_totals(
    totals: Any,
    arm: str,
    least: float,
    largest: float,
    *,
    whole: bool = False,
    needs_squares: bool = False,
    most: int = MOST_REWARDS,
) -> Totals:
    """Return the totals as numbers; raise BadEvidence if no rewards of the `arm` have them.

    Its rewards are from `least` to `largest`, and `whole` says whether they are whole numbers.

    >>> checked_totals(Totals(3, 2), "Bernoulli", 0, 1, whole=True)
    Totals(n=3, total=2.0, squares=None)
    >>> checked_totals(Totals(3, 4), "Bernoulli", 0, 1, whole=True)
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: total 4 of 3 rewards is impossible for a Bernoulli arm: ...
    """
    if not isinstance(totals, Totals):
        raise BadEvidence(f"totals={totals!r}: expected Totals(n, total, squares)")
    n = as_integer("n", totals.n, 1, BadEvidence, end=most + 1)
    total = _as_number(totals.total)
    if not (least * n <= total <= largest * n and (total.is_integer() or not whole)):
        kind = "a whole number" if whole else "a number"
        raise BadEvidence(
            f"total {totals.total!r} of {n} rewards is impossible for a {arm} arm: expected {kind} "
            f"from {least * n:g} to {largest * n:g}"
        )
    if totals.squares is None:
        if needs_squares:
            raise BadEvidence(
                f"these {arm} arms learn the noise of their rewards: give the sum of the squared "
                "rewards too, as Totals(n, total, squares)"
            )
        return Totals(n, total)
    squares, smallest = _as_number(totals.squares), total * (total / n)
    is_exact = n == 1 or (whole and (least, largest) == (0, 1))  # then Σ r² follows from Σ r
    exact = total * total if n == 1 else total
    allowed = _ROUNDING * smallest
    if is_exact and not abs(squares - exact) <= allowed:
        raise BadEvidence(
            f"sum of squares {totals.squares!r}: {n} rewards with the sum {total:g} have the sum "
            f"of squares {exact:g}"
        )
    if not smallest - allowed <= squares < math.inf:
        raise BadEvidence(
            f"sum of squares {totals.squares!r}: {n} rewards with the sum {total:g} have at least "
            f"{smallest:g}"
        )
    return Totals(n, total, max(squares, smallest))


def ones_and_zeros(totals: Any, arm: str) -> list[int]:
    """Return rewards of 0 and 1 with these totals, ones first, to be learned one by one.

    >>> ones_and_zeros(Totals(3, 2), "logistic")
    [1, 1, 0]
    """
    n, total, _ = checked_totals(totals, arm, 0, 1, whole=True, most=MOST_ONE_BY_ONE)
    return [1] * int(total) + [0] * (n - int(total))


def observe_each(belief: Any, x: Any, a: Hashable, totals: Totals) -> None:
    """Let a belief observe n rewards of 0 and 1, at most 10,000. An error changes nothing."""
    rewards, trial = ones_and_zeros(totals, "Bernoulli"), belief.copy()
    for r in dict.fromkeys(rewards):  # what is possible once is possible again
        trial.observe(x, a, r)
    for r in rewards:
        belief.observe(x, a, r)
