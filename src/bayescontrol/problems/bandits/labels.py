"""The names of the arms: a_j ↔ j.

    place(a) = j        labels[j] = a

Numbers 0 … N-1 by default, or whatever can be the key of a dictionary.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from typing import Any

import numpy as np

from bayescontrol.arrays import IntArray
from bayescontrol.errors import UnknownArm

__all__ = ["Labels"]


class Labels:
    """N different names, in order.

    >>> labels = Labels(["red", "blue"])
    >>> labels.place("blue"), labels[0]
    (1, 'red')
    >>> labels.place("green")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownArm: no arm 'green': the arms are 'red', 'blue'
    """

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        number = isinstance(arms, int | np.integer)
        if isinstance(arms, bool | str) or not (number or isinstance(arms, Iterable)):
            raise UnknownArm(f"arms={arms!r}: give their number, or a list of their names")
        if isinstance(arms, Set):
            raise UnknownArm(f"arms={arms!r}: a set has no order, and a seed would mean nothing")
        names = list(range(arms)) if isinstance(arms, int | np.integer) else list(arms)
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        if not names:
            raise UnknownArm(f"arms={arms!r}: a bandit has at least one arm")
        self._names: list[Any] = names
        try:
            self._places = {name: j for j, name in enumerate(names)}
        except TypeError as error:
            raise UnknownArm(f"arms={arms!r}: a name must be hashable ({error})") from None
        if len(self._places) < len(names):
            twice = next(name for j, name in enumerate(names) if name in names[:j])
            raise UnknownArm(f"two arms are called {twice!r}: names must differ")
        if any(name != name for name in names):
            raise UnknownArm(f"arms={arms!r}: NaN is not equal to itself and cannot be a name")
        #: Whether the name of every arm is its number.
        self.are_numbers = all(type(name) is int and name == j for j, name in enumerate(names))

    def place(self, arm: Any) -> int:
        """j, the place of this arm; `UnknownArm` if there is none."""
        try:
            return self._places[arm]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self._names[:8])) + (", …" if len(self) > 8 else "")
            raise UnknownArm(f"no arm {arm!r}: the arms are {shown}") from None

    def and_one_more(self, arm: Hashable) -> "Labels":
        """These and another one."""
        return Labels([*self._names, arm])

    def column(self, places: IntArray) -> Any:
        """The arms at these places, as a record keeps them."""
        return places if self.are_numbers else [self._names[j] for j in places.tolist()]

    def __getitem__(self, j: int) -> Any:
        return self._names[j]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Labels({self._names!r})"
