"""The names of arms, states and actions: name ↔ number.

    place(name) = i        names[i] = name

Names are the numbers 0 … n-1 by default, or any hashable values.
"""

from collections.abc import Hashable, Iterable, Iterator, Set
from typing import Any, Literal, TypeAlias

import numpy as np

from bayescontrol.arrays import IntArray
from bayescontrol.errors import (
    BayesControlError,
    InvalidTable,
    UnknownAction,
    UnknownArm,
    UnknownState,
)

#: The things that are named.
What: TypeAlias = Literal["arm", "state", "action"]
#: The errors for an invalid list of names, and for an unknown name.
_ERRORS: dict[What, tuple[type[BayesControlError], type[BayesControlError]]] = {
    "arm": (UnknownArm, UnknownArm),
    "state": (InvalidTable, UnknownState),
    "action": (InvalidTable, UnknownAction),
}


class Names:
    """n different names, in order; errors mention `what` they name.

    >>> names = Names("action", ["left", "right"])
    >>> names.place("right"), names[0]
    (1, 'left')
    >>> names.place("up")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 'up': the actions are 'left', 'right'
    """

    def __init__(self, what: What, names: int | Iterable[Hashable]) -> None:
        self.what = what
        wrong, self._unknown = _ERRORS[what]
        given = f"{what}s={names!r}"
        number = isinstance(names, int | np.integer)
        if isinstance(names, bool | str | bytes) or not (number or isinstance(names, Iterable)):
            raise wrong(f"{given}: expected their number, or a list of names")
        if isinstance(names, Set):
            raise wrong(f"{given}: a set has no fixed order, use a list")
        listed: Iterable[Any] = range(names) if isinstance(names, int | np.integer) else names
        self._names = [n.item() if isinstance(n, np.generic) else n for n in listed]
        if not self._names:
            raise wrong(f"{given}: there must be at least one {what}")
        try:
            self._places = {name: i for i, name in enumerate(self._names)}
        except TypeError as error:
            raise wrong(f"{given}: names of {what}s must be hashable ({error})") from None
        if len(self._places) < len(self._names):
            twice = next(n for i, n in enumerate(self._names) if self._places[n] != i)
            raise wrong(f"two {what}s are called {twice!r}: names must differ")
        if any(name != name for name in self._names):
            raise wrong(f"{given}: NaN cannot be a name, since it is not equal to itself")
        #: Whether every name is its number.
        self.are_numbers = all(type(n) is int and n == i for i, n in enumerate(self._names))

    def place(self, name: Any) -> int:
        """The number of this name; else `UnknownArm`, `UnknownState` or `UnknownAction`."""
        try:
            return self._places[name]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self._names[:8])) + (", …" if len(self) > 8 else "")
            raise self._unknown(f"no {self.what} {name!r}: the {self.what}s are {shown}") from None

    def and_one_more(self, name: Hashable) -> "Names":
        """A new list with one more name."""
        return Names(self.what, [*self._names, name])

    def column(self, places: IntArray) -> Any:
        """The names with these numbers, as a column of a record."""
        return places if self.are_numbers else [self._names[i] for i in places.tolist()]

    def __getitem__(self, i: int) -> Any:
        return self._names[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Names({self.what!r}, {self._names!r})"
