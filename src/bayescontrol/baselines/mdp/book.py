"""What agents with a model of a declared MDP share: names, masks, and state as named arrays.

    x ∈ X and a ∈ A(x) ⊆ A declared        o = (r, y), r finite, y ∈ X

A book holds arrays of fixed shape, [x, a], [x, a, y] or other; who owns it computes with them in
place, and has them saved, loaded and copied in one go.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays
from bayescontrol.baselines.mdp.checks import read_step
from bayescontrol.errors import IncompatibleState, UnknownAction
from bayescontrol.problems.names import Names
from bayescontrol.values import pack, unpack

#: Arrays that count: n(x,a,y), n(x,a), and the steps and visits of an episode.
COUNTS = ("n", "tried", "t", "visits")


def whole(name: str, value: Any, least: int) -> int:
    """A setting, if it is a whole number of at least `least`; a ValueError that names it, if not.

    >>> whole("simulations", 0, 1)
    Traceback (most recent call last):
    ValueError: simulations=0: it must be a whole number of at least 1
    """
    plain = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not plain or value < least:
        raise ValueError(f"{name}={value!r}: it must be a whole number of at least {least}")
    return int(value)


class Book:
    """States and actions by number or by name, `allowed(x)` the actions of x, and the arrays.

    >>> book = Book(["home", "away"], 2, lambda x: [0] if x == "home" else [0, 1], {})
    >>> book.allowed
    array([[ True, False],
           [ True,  True]])
    >>> book.read("away", 1, (2.5, "home"))
    (1, 1, 2.5, 0)
    >>> book.read("home", 1, (2.5, "home"))
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: state 'home' does not offer action 1: it has 0
    """

    def __init__(
        self,
        states: int | Iterable[Hashable],
        actions: int | Iterable[Hashable],
        allowed: Callable[[Any], Iterable[Any]] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.states = Names("state", states)
        self.actions = Names("action", actions)
        self.settings = dict(settings)
        #: [x, a]: does state x offer action a?
        self.allowed: npt.NDArray[np.bool_] = np.ones((len(self.states), len(self.actions)), bool)
        if allowed is not None:
            self.allowed[:] = False
            for i, x in enumerate(self.states):
                self.allowed[i, [self.actions.place(a) for a in allowed(x)]] = True
                if not self.allowed[i].any():
                    raise UnknownAction(f"state {x!r} offers no action: `allowed` must give one")
        self.arrays: Arrays = {}

    def action(self, x: Any, a: Any) -> tuple[int, int]:
        """The numbers of x and a, if x offers a."""
        here, column = self.states.place(x), self.actions.place(a)
        if not self.allowed[here, column]:
            offered = ", ".join(repr(b) for b in self.actions_in(x))
            raise UnknownAction(f"state {x!r} does not offer action {a!r}: it has {offered}")
        return here, column

    def read(self, x: Any, a: Any, o: Any) -> tuple[int, int, float, int]:
        """(x, a, r, y), states and action by number; a typed error if that is no transition."""
        here, column = self.action(x, a)
        r, y = read_step(x, a, o)
        try:
            there = self.states.place(y)
        except LookupError as error:
            raise type(error)(f"{error}; after action {a!r} in state {x!r}") from None
        return here, column, r, there

    def actions_in(self, x: Any) -> list[Any]:
        """The actions that state x offers."""
        row = self.allowed[self.states.place(x)]
        return [a for a, has in zip(self.actions, row, strict=True) if has]

    def save(self) -> Arrays:
        """Settings, names and arrays."""
        return {
            "settings": pack(self.settings, "the settings"),
            "states": pack(list(self.states), "the states"),
            "actions": pack(list(self.actions), "the actions"),
            **{name: array.copy() for name, array in self.arrays.items()},
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a book made alike. On an error nothing has changed."""
        names = {"settings", "states", "actions", *self.arrays}
        if missing := names - arrays.keys():
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        mine = {"settings": self.settings, "states": [*self.states], "actions": [*self.actions]}
        for name, here in mine.items():
            if (saved := unpack(arrays[name])) != here:
                raise IncompatibleState(f"saved with {name} {saved}, this one has {here}")
        for name, array in self.arrays.items():
            given = arrays[name]
            if given.shape != array.shape or given.dtype != array.dtype:
                raise IncompatibleState(
                    f"{name!r} is {given.dtype} of shape {given.shape}, "
                    f"not {array.dtype} of shape {array.shape}"
                )
            if not np.isfinite(given).all() or (name in COUNTS and (given < 0).any()):
                raise IncompatibleState(f"{name!r} is damaged: it holds what no history gives")
        for name, array in self.arrays.items():
            array[...] = arrays[name]

    def alike(self, other: "Book") -> bool:
        """The same settings, states and actions?"""
        mine, theirs = ((b.settings, b.states, b.actions) for b in (self, other))
        return mine == theirs

    def copy(self) -> "Book":
        """The same book with arrays of its own."""
        twin = Book.__new__(Book)
        twin.__dict__.update(self.__dict__)
        twin.arrays = {name: array.copy() for name, array in self.arrays.items()}
        return twin

    def __repr__(self) -> str:
        return f"{len(self.states)} states, {len(self.actions)} actions"
