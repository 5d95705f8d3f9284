"""The names of arms, states and actions: name ↔ number.

    place(name) = i        names[i] = name

Names are the numbers 0 … n-1 by default, or any hashable values.
"""

from collections.abc import Hashable, Iterable, Iterator, Set
from typing import Any, Literal, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray, IntArray
from bayescontrol._support.columns import select
from bayescontrol.errors import (
    BayesControlError,
    InvalidTable,
    UnknownAction,
    UnknownArm,
    UnknownState,
)

#: What the names belong to.
What: TypeAlias = Literal["arm", "state", "action"]
#: The errors for an invalid list of names, and for an unknown name.
_ERRORS: dict[What, tuple[type[BayesControlError], type[BayesControlError]]] = {
    "arm": (UnknownArm, UnknownArm),
    "state": (InvalidTable, UnknownState),
    "action": (InvalidTable, UnknownAction),
}


class Names:
    """n different names, in order, of arms, states or actions; `what` says which.

    >>> names = Names("action", ["left", "right"])
    >>> names.place("right"), names[0]
    (1, 'left')
    >>> names.place("up")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 'up': the actions are 'left', 'right'
    """

    def __init__(self, what: What, names: int | Iterable[Hashable]) -> None:
        self.what = what
        invalid, self._unknown = _ERRORS[what]
        shown_names = f"{what}s={names!r}"
        if isinstance(names, int | np.integer) and not isinstance(names, bool):
            names = range(names)
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise invalid(f"{shown_names}: expected the number of {what}s, or a list of names")
        if isinstance(names, Set):
            raise invalid(f"{shown_names}: a set has no fixed order, use a list")
        self._names: list[Any] = [n.item() if isinstance(n, np.generic) else n for n in names]
        if not self._names:
            raise invalid(f"{shown_names}: there must be at least one {what}")
        try:
            self._places = {name: i for i, name in enumerate(self._names)}
        except TypeError as error:
            raise invalid(f"{shown_names}: names of {what}s must be hashable ({error})") from None
        if len(self._places) < len(self._names):
            repeated = next(n for i, n in enumerate(self._names) if self._places[n] != i)
            raise invalid(f"two {what}s are called {repeated!r}: names must differ")
        if any(name != name for name in self._names):  # only NaN differs from itself
            raise invalid(f"{shown_names}: NaN cannot be a name, since it is not equal to itself")
        #: Whether the names are the numbers 0 … n-1.
        self.are_numbers = all(type(n) is int and n == i for i, n in enumerate(self._names))

    def place(self, name: object) -> int:
        """Return the number of this name.

        An unknown name raises `UnknownArm`, `UnknownState` or `UnknownAction`.
        """
        try:
            return self._places[name]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self._names[:8])) + (", …" if len(self) > 8 else "")
            raise self._unknown(f"no {self.what} {name!r}: the {self.what}s are {shown}") from None

    def with_name(self, name: Hashable) -> "Names":
        """Return new names: these, and one more at the end."""
        return Names(self.what, [*self._names, name])

    def column(self, places: IntArray) -> AnyArray:
        """Return the names with these numbers, as a column of a record."""
        return places if self.are_numbers else select(self._names, places)

    def __getitem__(self, i: int) -> Any:
        return self._names[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Names) and self._names == other._names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Names({self.what!r}, {self._names!r})"
