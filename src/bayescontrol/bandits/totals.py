"""Aggregated rewards: their number, sum and sum of squares."""

from typing import NamedTuple


class Totals(NamedTuple):
    """The totals of n rewards of one arm: their sum and, if known, the sum of their squares.

    >>> Totals(120, 7)
    Totals(n=120, total=7, squares=None)
    """

    n: int
    total: float
    squares: float | None = None
