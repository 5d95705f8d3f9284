"""A factor p(x | parents): the mechanism that sets one variable.

    table        one axis per parent, in the order of `parents`, and the own axis last
    delta        δ(x, x0): the mechanism of a variable that was set to x0

A factor is checked when the model that holds it is built.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.causal.tables import (
    Domains,
    Probability,
    Table,
    as_domain,
    as_numbers,
    check_rows,
    index_of,
)
from bayescontrol.errors import InvalidTable

Row: TypeAlias = Table | Mapping[Any, Probability]


class Factor:
    """p(x | parents): how one variable listens to those before it.

    `table` has one axis per parent and the own axis last; or it is a pure function of the
    parents' values that returns one row, as a sequence or as {x: p(x | parents)} with what
    is missing at 0. With `partial=True` a row of zeros says that the mechanism is not
    known there, and a joint that needs it raises.

    >>> Factor("X", (0, 1), [[0.5, 0.5], [0.25, 0.75]], parents=["theta"])
    P(X | theta)
    >>> Factor("echo", (0, 1), lambda x: {x: 1}, parents=["X"])
    P(echo | X)
    >>> Factor("X", (0, 1), {1: 1})
    δ(X = 1)
    """

    def __init__(
        self,
        name: str,
        values: Iterable[Hashable],
        table: Row | Callable[..., Row],
        parents: str | Sequence[str] = (),
        *,
        partial: bool = False,
    ) -> None:
        self.name = name
        self.values = as_domain(name, values)
        self.parents = (parents,) if isinstance(parents, str) else tuple(parents)
        self.partial = partial
        if len({name, *self.parents}) <= len(self.parents):
            raise InvalidTable(f"{self._label()} names a variable twice: name each once")
        self.table = table if callable(table) else self._rows(table, self._label(), self.parents)

    def tabulate(self, domains: Domains) -> npt.NDArray[Any]:
        """p(x | parents) as an array, checked against the parents' values.

        >>> Factor("echo", "ab", lambda x: {x: 1}, ["X"]).tabulate({"X": ("a", "b")})
        array([[Fraction(1, 1), Fraction(0, 1)],
               [Fraction(0, 1), Fraction(1, 1)]], dtype=object)
        """
        for parent in self.parents:
            if parent not in domains:
                raise InvalidTable(
                    f"{self._label()}: {parent!r} does not come before {self.name!r} in the "
                    f"order ({', '.join(domains) or 'nothing does'}): move it there"
                )
        causes = [domains[parent] for parent in self.parents]
        shape = (*map(len, causes), len(self.values))
        if not callable(self.table):
            if self.table.shape != shape:
                raise InvalidTable(
                    f"{self._label()} has shape {self.table.shape}, its variables need {shape}: "
                    "one axis per parent, the own axis last"
                )
            return self.table
        rows = [
            self._rows(self.table(*given), self._label(map(repr, given)), ())
            for given in product(*causes)
        ]
        return as_numbers(rows, self._label()).reshape(shape)

    def _rows(self, table: Row, place: str, parents: Sequence[str]) -> npt.NDArray[Any]:
        if isinstance(table, Mapping):
            for value in table:
                index_of({self.name: self.values}, self.name, value)
            table = [table.get(value, 0) for value in self.values]
        p = as_numbers(table, place)
        if p.ndim != len(parents) + 1 or p.shape[-1] != len(self.values):
            raise InvalidTable(
                f"{place} has shape {p.shape}: it needs one axis for each of {len(parents)} "
                f"parents and a last axis of {len(self.values)} for {self.name}"
            )
        check_rows(p, place, partial=self.partial)
        return p

    def _label(self, given: Iterable[str] = ()) -> str:
        at = [f"{k}={v}" for k, v in zip(self.parents, given, strict=False)] or self.parents
        return f"P({self.name} | {', '.join(at)})" if at else f"P({self.name})"

    def __repr__(self) -> str:
        if not self.parents and not callable(self.table) and self.table.max() == 1:
            return f"δ({self.name} = {self.values[int(np.argmax(self.table))]!r})"
        return self._label()
