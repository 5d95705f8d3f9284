"""The names of states and of actions: name ↔ number.

    place(name) = i        names[i] = name

Numbers 0 … n-1 by default, or whatever can be the key of a dictionary.
"""

from collections.abc import Hashable, Iterable, Iterator, Set
from typing import Any

import numpy as np

from bayescontrol.errors import BayesControlError, InvalidTable, UnknownAction, UnknownState

__all__ = ["Names"]

_ERRORS: dict[str, type[BayesControlError]] = {"state": UnknownState, "action": UnknownAction}


class Names:
    """n different names, in order; `what` they name, "state" or "action", is said in errors.

    >>> names = Names("action", ["left", "right"])
    >>> names.place("right"), names[0]
    (1, 'left')
    >>> names.place("up")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 'up': the actions are 'left', 'right'
    """

    def __init__(self, what: str, names: int | Iterable[Hashable]) -> None:
        self.what = what
        if isinstance(names, Set):
            raise InvalidTable(f"{names!r}: a set of {what}s has no order; give a list")
        counted = isinstance(names, int | np.integer)
        if not counted and not isinstance(names, Iterable):
            raise InvalidTable(f"{names!r}: give the number of {what}s, or a list of their names")
        self._names: list[Any] = list(range(names)) if counted else list(names)  # type: ignore[arg-type]
        if not self._names:
            raise InvalidTable(f"no {what}s: there must be at least one")
        try:
            self._places = {name: i for i, name in enumerate(self._names)}
        except TypeError as error:
            raise InvalidTable(f"names of {what}s must be hashable: {error}") from None
        if len(self._places) < len(self._names):
            twice = next(n for i, n in enumerate(self._names) if self._places[n] != i)
            raise InvalidTable(f"two {what}s are called {twice!r}: names must differ")
        #: Whether every name is its number.
        self.are_numbers = all(type(n) is int and n == i for i, n in enumerate(self._names))

    def place(self, name: Any) -> int:
        """i, the number of this name; `UnknownState` or `UnknownAction` if there is none."""
        try:
            return self._places[name]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self._names[:8])) + (", …" if len(self) > 8 else "")
            raise _ERRORS[self.what](
                f"no {self.what} {name!r}: the {self.what}s are {shown}"
            ) from None

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
