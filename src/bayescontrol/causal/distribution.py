"""Tables of probabilities over finitely many named variables.

a row      p(x | parents) ≥ 0,  Σ_x p(x | parents) = 1
exact      tables of integers and Fractions stay Fractions and must sum exactly
float64    all other tables, whose rows sum to one up to rounding
marginal   p(x) = Σ_y p(x, y)
condition  p(x | y) = p(x, y) / p(y)
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from html import escape
from itertools import islice, product
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol.errors import ImpossibleCondition, InvalidTable, UnknownVariable

Probability: TypeAlias = float | Fraction
Table: TypeAlias = Sequence[Any] | AnyArray
Values: TypeAlias = Mapping[str, Hashable]
Domains: TypeAlias = Mapping[str, tuple[Hashable, ...]]

#: Rows are checked more tightly than joints, which multiply the rounding of many rows.
ROW_TOLERANCE = 1e-12
JOINT_TOLERANCE = 1e-9


def as_domain(name: str, values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the values of a variable as a tuple: at least one, all different."""
    domain = tuple(values)
    try:
        distinct = len(set(domain)) == len(domain) > 0
    except TypeError as error:
        raise InvalidTable(f"values of {name} must be hashable ({error}): use tuples") from error
    if not distinct:
        raise InvalidTable(
            f"{name} has values {domain!r}: expected at least one, without duplicates"
        )
    return domain


def as_numbers(table: Table, place: str) -> AnyArray:
    """Return a read-only copy: Fractions if every cell is rational, float64 otherwise."""
    try:
        p = np.array(table)
    except ValueError as error:
        raise InvalidTable(f"{place} is ragged: all rows must have the same length") from error
    if p.dtype.kind == "f":
        p = p.astype(np.float64)
    else:
        cells = p.astype(object).ravel().tolist()
        if wrong := [x for x in cells if not isinstance(x, Real)]:
            raise InvalidTable(f"{place} contains {wrong[0]!r}: use integers, Fractions or floats")
        if exact := all(isinstance(x, Rational) for x in cells):
            cells = [Fraction(int(x.numerator), int(x.denominator)) for x in cells]
        shape, p = p.shape, np.empty(len(cells), dtype=object if exact else np.float64)
        p[:] = cells
        p = p.reshape(shape)
    p.setflags(write=False)
    return p


def check_rows(
    p: AnyArray, place: str, tolerance: float = ROW_TOLERANCE, *, partial: bool = False
) -> None:
    """Raise `InvalidTable` unless p(x) ≥ 0 and Σ_x p(x) = 1 along the last axis.

    Fractions must sum to one exactly. With `partial`, rows of zeros are allowed.
    """
    if np.any(invalid := ~(p >= 0)):
        raise InvalidTable(f"{place} contains {p[invalid][0]}: probabilities must be >= 0")
    sums = np.asarray(p.sum(axis=-1))
    wrong_sum = abs(sums - 1) > (0 if p.dtype == object else tolerance)
    if partial:
        wrong_sum &= sums != 0
    if np.any(wrong_sum):
        row = tuple(np.argwhere(wrong_sum)[0].tolist())
        where = f"{place}, row {row}," if row else place
        raise InvalidTable(f"{where} sums to {sums[row]} instead of 1: divide it by its sum")


def axis_of(domains: Domains, name: str) -> int:
    """Return the axis of a variable."""
    if name not in domains:
        known = ", ".join(domains) or "none"
        raise UnknownVariable(f"unknown variable {name!r}: the variables are {known}")
    return list(domains).index(name)


def index_of(domains: Domains, name: str, value: Hashable) -> int:
    """Return the position of a value on the axis of its variable."""
    axis_of(domains, name)  # raises if the variable is unknown
    try:
        return domains[name].index(value)
    except ValueError:
        known = ", ".join(map(repr, domains[name]))
        raise UnknownVariable(f"{name} has no value {value!r}: its values are {known}") from None


#: Maximum number of rows in a repr.
SHOWN = 16


class Distribution:
    """p(X1, ..., Xn) over named variables with finitely many values.

    `domains` maps each name to its values, in the order of the axes of `p`. Methods take variables
    by keyword, or as a mapping for names that are not Python identifiers.

    >>> p = Distribution({"rain": (False, True), "wet": ("no", "yes")},
    ...                  [[0.5, 0.125], [0, 0.375]])
    >>> p
    rain   wet  P
    False  no   0.5
    False  yes  0.125
    True   yes  0.375
    >>> p[True, "yes"], p.probability(wet="yes"), p.probability({"wet": "yes"})
    (0.375, 0.5, 0.5)
    """

    def __init__(self, domains: Mapping[str, Iterable[Hashable]], p: Table) -> None:
        self.domains = {name: as_domain(name, values) for name, values in domains.items()}
        shape = tuple(len(values) for values in self.domains.values())
        place = f"P({', '.join(self.domains)})"
        self.p = as_numbers(p, place)
        if self.p.shape != shape:
            raise InvalidTable(
                f"{place} has shape {self.p.shape}, expected {shape} for its variables"
            )
        check_rows(self.p.reshape(-1), place, JOINT_TOLERANCE)

    @property
    def names(self) -> tuple[str, ...]:
        """Return X1, ..., Xn in the order of the axes.

        >>> Distribution({"X": (0,), "Y": (0, 1)}, [[0.5, 0.5]]).names
        ('X', 'Y')
        """
        return tuple(self.domains)

    def probability(self, values: Values | None = None, /, **named: Hashable) -> Probability:
        """Return p(x) = Σ_y p(x, y), the probability that the named variables have these values.

        >>> Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]]).probability(X=0)
        0.75
        """
        return _total(self._slice(dict(values or {}, **named)))

    def marginal(self, *names: str) -> "Distribution":
        """Return p(x) = Σ_y p(x, y), with the axes in the given order.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]])
        >>> p.marginal("Y")
        Y  P
        0  0.75
        1  0.25
        >>> p.marginal("Y", "X").names
        ('Y', 'X')
        """
        if len(set(names)) < len(names):
            raise InvalidTable(f"marginal{names} has a duplicate variable")
        axes = [axis_of(self.domains, name) for name in names]
        summed_axes = tuple(set(range(self.p.ndim)) - set(axes))
        p = np.asarray(self.p.sum(axis=summed_axes), dtype=self.p.dtype)
        order = np.argsort(np.argsort(axes))
        return Distribution({name: self.domains[name] for name in names}, p.transpose(order))

    def condition(self, values: Values | None = None, /, **named: Hashable) -> "Distribution":
        """Return p(x | y) = p(x, y) / p(y), over the remaining variables.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]])
        >>> p.condition(Y=1)
        X  P
        0  1
        """
        given = dict(values or {}, **named)
        p = self._slice(given)
        if not (total := _total(p)):
            event = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise ImpossibleCondition(
                f"P({event}) = 0: condition on another event, or intervene to set this one"
            )
        remaining = {name: values for name, values in self.domains.items() if name not in given}
        return Distribution(remaining, p / total)

    def as_dict(self) -> dict[Any, Probability]:
        """Return {x: p(x)} for one variable, {(x, y): p(x, y)} for two or more.

        >>> Distribution({"X": ("a", "b")}, [Fraction(1, 3), Fraction(2, 3)]).as_dict()
        {'a': Fraction(1, 3), 'b': Fraction(2, 3)}
        """
        domains = [*self.domains.values()]
        keys = domains[0] if len(domains) == 1 else product(*domains)
        return dict(zip(keys, self.p.ravel().tolist(), strict=True))

    def __getitem__(self, key: object) -> Probability:
        x = (key,) if len(self.domains) == 1 else key
        if not isinstance(x, tuple) or len(x) != len(self.domains):
            raise UnknownVariable(f"{key!r} must give one value for each of {self.names}")
        return self.probability(dict(zip(self.names, x, strict=True)))

    def __repr__(self) -> str:
        rows, note = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines + note)

    def _repr_html_(self) -> str:
        rows, note = self._rows()
        tags = ["th"] + ["td"] * len(rows)
        body = "".join(
            "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
            for tag, row in zip(tags, rows, strict=False)
        )
        return f"<table>{body}</table>" + "".join(f"<p>{escape(line)}</p>" for line in note)

    def _rows(self) -> tuple[list[list[str]], list[str]]:
        """Return the rows with positive probability, as text, and a note if some are hidden."""
        possible = np.argwhere(self.p > 0).tolist()
        rows = [[*self.names, "P"]]
        for index in islice(possible, SHOWN):
            world = [v[i] for v, i in zip(self.domains.values(), index, strict=True)]
            p = self.p[tuple(index)]
            rows.append([*map(str, world), str(p) if isinstance(p, Fraction) else f"{p:.6g}"])
        hidden = len(possible) - SHOWN
        return rows, [f"... and {hidden} more"] if hidden > 0 else []

    def _slice(self, values: Values) -> AnyArray:
        """Return the part of the table where the variables have these values."""
        positions = {name: index_of(self.domains, name, value) for name, value in values.items()}
        index = tuple(positions.get(name, slice(None)) for name in self.domains)
        return np.asarray(self.p[index], dtype=self.p.dtype)


def _total(p: AnyArray) -> Probability:
    total = p.sum()
    return total if isinstance(total, Fraction) else float(total)
