"""Names for the elements of Gymnasium's spaces, used as situations and actions.

    finite     Discrete, MultiDiscrete, MultiBinary, and Tuple or Dict of these: an element is
               named by its integers (i_1, …, i_n), or by i if the space is Discrete
    Box        an element is named by a copy of its array, because a simulator may reuse the array

A name is plain Python data, so it is hashable and can be saved. All of `bayescontrol.gym` imports
Gymnasium, an optional dependency, from here.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NoReturn, TypeAlias

import numpy as np

from bayescontrol.errors import InvalidTable, MissingCapability, MissingExtra, UnknownAction

try:
    import gymnasium as gymnasium
    import gymnasium.vector
    import gymnasium.vector.utils
except ImportError as error:
    raise MissingExtra.of("bayescontrol.gym", "gymnasium", "gym") from error


#: The name of an element of a finite space.
Name: TypeAlias = int | tuple[int, ...]
#: The largest number of names that can be listed.
MAX_NAMES = 1_000_000

_spaces = gymnasium.spaces


class FiniteSpace:
    """Conversion between names and elements of a finite space.

    >>> from gymnasium.spaces import Dict, Discrete, MultiDiscrete
    >>> space = FiniteSpace(Dict(at=MultiDiscrete([3, 4]), light=Discrete(2, start=1)))
    >>> space.size, space.name({"at": np.array([2, 0]), "light": 1})
    (24, (2, 0, 1))
    >>> space.element((2, 0, 1))["light"]
    np.int64(1)
    >>> FiniteSpace(Discrete(3, start=-1)).names()
    [-1, 0, 1]
    """

    def __init__(self, space: Any) -> None:
        self.space = space
        self._ranges = _ranges(space)
        self._is_discrete = isinstance(space, _spaces.Discrete)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(map(len, self._ranges))

    def name(self, element: Any) -> Name:
        """Return the integers (i_1, …, i_n) of the element, or i if the space is Discrete."""
        return int(element) if self._is_discrete else tuple(_integers(self.space, element))

    def element(self, name: Any) -> Any:
        """Return the element with that name; raise `UnknownAction` if there is none."""
        try:
            integers = [name] if self._is_discrete else list(name)
            exists = len(integers) == len(self._ranges) and all(
                i == int(i) and int(i) in values
                for i, values in zip(integers, self._ranges, strict=True)
            )
        except (TypeError, ValueError):
            exists = False
        if not exists:
            raise UnknownAction(f"{name!r} is not the name of an element of {self.space}")
        return _element(self.space, iter(integers))

    def names(self) -> list[Name]:
        """Return all names in order; raise `InvalidTable` if there are too many."""
        if self.size > MAX_NAMES:
            raise InvalidTable(
                f"{self.space} has {self.size} elements, too many to list: use an agent that adds "
                "states when it observes them, such as GibbsMDP"
            )
        return list(self._ranges[0]) if self._is_discrete else list(product(*self._ranges))

    def __repr__(self) -> str:
        return f"FiniteSpace({self.space})"


class BoxSpace:
    """A space of real arrays; the name of an element is a copy of the array.

    >>> from gymnasium.spaces import Box
    >>> space = BoxSpace(Box(-2.0, 2.0, (1,)))
    >>> space.element(1.5)
    array([1.5], dtype=float32)
    >>> space.element(3.0)
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: 3.0 is outside of Box(-2.0, 2.0, (1,), float32): ...
    """

    def __init__(self, space: Any) -> None:
        self.space = space

    def name(self, element: Any) -> Any:
        """Return a copy, because the simulator may reuse the array."""
        return np.array(element)

    def element(self, name: Any) -> Any:
        """Return an array of the space's shape and type; raise `UnknownAction` if it is outside."""
        space = self.space
        try:
            element = np.asarray(name, space.dtype).reshape(space.shape)
        except (TypeError, ValueError):
            raise UnknownAction(f"{name!r}: give an array of shape {space.shape}") from None
        if not space.contains(element):
            raise UnknownAction(f"{name!r} is outside of {space}: limit the policy's output")
        return element

    def names(self) -> NoReturn:
        """Raise `TypeError`: there are infinitely many."""
        raise TypeError(
            f"{self.space} has infinitely many elements, which cannot be listed: use drive with "
            "bayescontrol.simulators"
        )

    def __repr__(self) -> str:
        return f"BoxSpace({self.space})"


def as_space(space: Any) -> FiniteSpace | BoxSpace:
    """Return the conversion between names and elements for a space of Gymnasium.

    >>> from gymnasium.spaces import Box, Discrete, Text
    >>> as_space(Discrete(4)), as_space(Box(0.0, 1.0, (2,)))
    (FiniteSpace(Discrete(4)), BoxSpace(Box(0.0, 1.0, (2,), float32)))
    >>> as_space(Text(3))
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: Text(1, 3, ...) is neither a finite space nor a Box: ...
    """
    return BoxSpace(space) if isinstance(space, _spaces.Box) else FiniteSpace(space)


def _ranges(space: Any) -> list[range]:
    """Return the values of each integer in an element."""
    match space:
        case _spaces.Discrete():
            return [range(int(space.start), int(space.start) + int(space.n))]
        case _spaces.MultiDiscrete():
            starts, counts = space.start.ravel().tolist(), space.nvec.ravel().tolist()
            return [range(first, first + n) for first, n in zip(starts, counts, strict=True)]
        case _spaces.MultiBinary():
            return [range(2)] * math.prod(space.shape)
        case _spaces.Tuple() | _spaces.Dict():
            parts = space.spaces.values() if isinstance(space, _spaces.Dict) else space.spaces
            return [values for part in parts for values in _ranges(part)]
    raise MissingCapability(
        f"{space} is neither a finite space nor a Box: wrap the environment, for example with "
        "gymnasium.wrappers.FlattenObservation"
    )


def _integers(space: Any, element: Any) -> Iterator[int]:
    """Yield the integers of an element; the inverse of `_element`."""
    match space:
        case _spaces.Dict():
            for key, part in space.spaces.items():
                yield from _integers(part, element[key])
        case _spaces.Tuple():
            for part, value in zip(space.spaces, element, strict=True):
                yield from _integers(part, value)
        case _:
            yield from map(int, np.ravel(element))


def _element(space: Any, integers: Iterator[int]) -> Any:
    """Return the element that consists of the next integers."""
    match space:
        case _spaces.Dict():
            return {key: _element(part, integers) for key, part in space.spaces.items()}
        case _spaces.Tuple():
            return tuple(_element(part, integers) for part in space.spaces)
        case _spaces.Discrete():
            return space.dtype.type(next(integers))
        case _:
            values = [next(integers) for _ in range(math.prod(space.shape))]
            return np.array(values, space.dtype).reshape(space.shape)
