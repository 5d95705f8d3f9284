"""Tables of probabilities: the numbers, their checks, and what can be wrong with them.

    a row      p(x | parents) ≥ 0,  Σ_x p(x | parents) = 1
    exact      a table of integers and Fractions is kept as Fractions, and sums exactly
    float64    any other table, whose rows sum to one up to rounding

Everything else here builds on these checks.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import InvalidTable, UnknownVariable

Probability: TypeAlias = float | Fraction
Table: TypeAlias = Sequence[Any] | npt.NDArray[Any]
Values: TypeAlias = Mapping[str, Hashable]
Domains: TypeAlias = Mapping[str, tuple[Hashable, ...]]

#: Rows are checked more tightly than joints, which multiply the rounding of many rows.
ROW_TOLERANCE = 1e-12
JOINT_TOLERANCE = 1e-9


def as_domain(name: str, values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The values of a variable, x ∈ {x1, ..., xk}: at least one, all different.

    >>> as_domain("X", range(3))
    (0, 1, 2)
    """
    domain = tuple(values)
    try:
        distinct = len(set(domain)) == len(domain) > 0
    except TypeError as error:
        raise InvalidTable(f"{name}: {error}: values must be hashable, use tuples") from error
    if not distinct:
        raise InvalidTable(f"{name} has values {domain!r}: give at least one, each of them once")
    return domain


def as_numbers(table: Table, place: str) -> npt.NDArray[Any]:
    """A read-only copy of the table: Fractions where every cell is rational, float64 otherwise.

    >>> as_numbers([Fraction(1, 3), 0], "P(X)")
    array([Fraction(1, 3), Fraction(0, 1)], dtype=object)
    >>> as_numbers([Fraction(1, 4), 0.75], "P(X)")
    array([0.25, 0.75])
    """
    try:
        p = np.array(table)
    except ValueError as error:
        raise InvalidTable(f"{place} is ragged: give every row the same length") from error
    if p.dtype.kind == "f":
        p = p.astype(np.float64)
    else:
        cells = p.astype(object).ravel().tolist()
        if wrong := [x for x in cells if not isinstance(x, Real)]:
            raise InvalidTable(f"{place} holds {wrong[0]!r}: use integers, Fractions or floats")
        if exact := all(isinstance(x, Rational) for x in cells):
            cells = [Fraction(int(x.numerator), int(x.denominator)) for x in cells]
        shape, p = p.shape, np.empty(len(cells), dtype=object if exact else np.float64)
        p[:] = cells
        p = p.reshape(shape)
    p.setflags(write=False)
    return p


def check_rows(
    p: npt.NDArray[Any], place: str, tolerance: float = ROW_TOLERANCE, *, partial: bool = False
) -> None:
    """p(x) ≥ 0 and Σ_x p(x) = 1 along the last axis, or `InvalidTable`.

    Fractions must sum to one exactly. `partial` lets rows of zeros pass.

    >>> check_rows(as_numbers([[0.5, 0.5], [0.5, 0.75]], "P(X | Y)"), "P(X | Y)")
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: P(X | Y), row (1,), sums to 1.25, not to 1:...
    """
    if np.any(bad := ~(p >= 0)):
        raise InvalidTable(f"{place} holds {p[bad][0]}: probabilities are 0 or more")
    sums = np.asarray(p.sum(axis=-1))
    off = abs(sums - 1) > (0 if p.dtype == object else tolerance)
    if partial:
        off &= sums != 0
    if np.any(off):
        row = tuple(np.argwhere(off)[0].tolist())
        where = f"{place}, row {row}," if row else place
        raise InvalidTable(f"{where} sums to {sums[row]}, not to 1: divide by the sum")


def axis_of(domains: Domains, name: str) -> int:
    """The axis of a variable: its place in the order.

    >>> axis_of({"X": (0, 1), "Y": (0, 1)}, "Y")
    1
    """
    if name not in domains:
        known = ", ".join(domains) or "none"
        raise UnknownVariable(f"no variable {name!r}: the variables are {known}")
    return list(domains).index(name)


def index_of(domains: Domains, name: str, value: Hashable) -> int:
    """The position of a value on its variable's axis.

    >>> index_of({"X": ("a", "b")}, "X", "b")
    1
    """
    axis_of(domains, name)
    try:
        return domains[name].index(value)
    except ValueError:
        known = ", ".join(map(repr, domains[name]))
        raise UnknownVariable(f"{name} has no value {value!r}: its values are {known}") from None
