"""Shared by agents for MDPs with declared states: names, masks, validation, named arrays.

x ∈ X and a ∈ A(x) ⊆ A declared        o = (r, y), r finite, y ∈ X
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import Arrays
from bayescontrol._support.names import Names
from bayescontrol._support.saved import require_arrays
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import IncompatibleState, UnknownAction
from bayescontrol.mdp.table import read_step

#: Arrays of counts, which are never negative: n(x,a,y), n(x,a), steps and visits of an episode.
COUNTS = ("n", "tried", "t", "visits")


def require_integer(name: str, value: Any, least: int) -> int:
    """Return a setting as an int if it is a whole number of at least `least`."""
    plain = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not plain or value < least:
        raise ValueError(f"{name}={value!r}: it must be a whole number of at least {least}")
    return int(value)


class DeclaredModel:
    """Declared states and actions, the actions `allowed(x)` of each state, and named arrays.

    The owner updates the arrays in place; they have shapes such as [x, a] or [x, a, y].

    >>> model = DeclaredModel(["home", "away"], 2, lambda x: [0] if x == "home" else [0, 1], {})
    >>> model.allowed
    array([[ True, False],
           [ True,  True]])
    >>> model.read("away", 1, (2.5, "home"))
    (1, 1, 2.5, 0)
    >>> model.read("home", 1, (2.5, "home"))
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: state 'home' does not offer action 1: it offers 0
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
        #: The mask [x, a] of the actions that the states offer.
        self.allowed: npt.NDArray[np.bool_] = np.ones((len(self.states), len(self.actions)), bool)
        if allowed is not None:
            self.allowed[:] = False
            for i, x in enumerate(self.states):
                self.allowed[i, [self.actions.place(a) for a in allowed(x)]] = True
                if not self.allowed[i].any():
                    raise UnknownAction(
                        f"state {x!r} offers no action: `allowed` must return at least one"
                    )
        self.arrays: Arrays = {}

    def action(self, x: Any, a: Any) -> tuple[int, int]:
        """The numbers of x and a, if x offers a."""
        here, column = self.states.place(x), self.actions.place(a)
        if not self.allowed[here, column]:
            offered = ", ".join(repr(b) for b in self.actions_in(x))
            raise UnknownAction(f"state {x!r} does not offer action {a!r}: it offers {offered}")
        return here, column

    def read(self, x: Any, a: Any, o: Any) -> tuple[int, int, float, int]:
        """Validate a transition; return (x, a, r, y) with states and action by number."""
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
        """Return settings, names and arrays."""
        return {
            "settings": pack(self.settings, "the settings"),
            "states": pack(list(self.states), "the states"),
            "actions": pack(list(self.actions), "the actions"),
            **{name: array.copy() for name, array in self.arrays.items()},
        }

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned for the same settings. On an error nothing changes."""
        require_arrays(arrays, {"settings", "states", "actions", *self.arrays})
        mine = {"settings": self.settings, "states": [*self.states], "actions": [*self.actions]}
        for name, here in mine.items():
            if (saved := unpack(arrays[name])) != here:
                raise IncompatibleState(f"the saved {name} are {saved}, this agent has {here}")
        for name, array in self.arrays.items():
            given = arrays[name]
            if given.shape != array.shape or given.dtype != array.dtype:
                raise IncompatibleState(
                    f"{name!r} is {given.dtype} of shape {given.shape}, "
                    f"not {array.dtype} of shape {array.shape}"
                )
            if not np.isfinite(given).all() or (name in COUNTS and (given < 0).any()):
                raise IncompatibleState(f"{name!r} is damaged: it has invalid values")
        for name, array in self.arrays.items():
            array[...] = arrays[name]

    def same_settings(self, other: "DeclaredModel") -> bool:
        """Whether both have the same settings, states and actions."""
        mine, theirs = ((b.settings, b.states, b.actions) for b in (self, other))
        return mine == theirs

    def copy(self) -> "DeclaredModel":
        """A copy with its own arrays."""
        twin = DeclaredModel.__new__(DeclaredModel)
        twin.__dict__.update(self.__dict__)
        twin.arrays = {name: array.copy() for name, array in self.arrays.items()}
        return twin

    def __repr__(self) -> str:
        return f"{len(self.states)} states, {len(self.actions)} actions"
