"""The names of arms, states, actions, observations and symbols: name ↔ number.

    place(name) = i        names[i] = name

Names are the numbers 0 … n-1 by default, or any hashable values.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from numbers import Real
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray, FloatArray, IntArray
from bayescontrol._support.columns import select
from bayescontrol.errors import BadEvidence, InvalidTable, UnknownAction, UnknownArm, UnknownState

#: What the names belong to.
What: TypeAlias = Literal["arm", "state", "action", "observation", "symbol"]
#: Larger prices would outweigh the draws that stand for means of which nothing is known.
LARGEST_PRICE: Final = 1e150
#: The names of the eligible arms; None: all active ones. Prices by arm, 0 for an arm without one.
Among: TypeAlias = Sequence[Hashable] | None
Prices: TypeAlias = Mapping[Hashable, Any] | None
#: The errors for an invalid list of names, and for an unknown name.
_ERRORS: dict[What, tuple[type[Exception], type[Exception]]] = {
    "arm": (UnknownArm, UnknownArm),
    "state": (InvalidTable, UnknownState),
    "action": (InvalidTable, UnknownAction),
    "observation": (InvalidTable, BadEvidence),
    "symbol": (InvalidTable, BadEvidence),
}


class Names(tuple[Any, ...]):
    """n different names, in order; `what` says what they belong to.

    >>> names = Names("action", ["left", "right"])
    >>> names.place("right"), names[0]
    (1, 'left')
    >>> names.place("up")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 'up': the actions are 'left', 'right'
    """

    what: What
    #: Whether the names are the numbers 0 … n-1.
    are_numbers: bool
    _places: dict[Any, int]

    def __new__(cls, what: What, names: int | Iterable[Hashable]) -> "Names":
        """Check the names; an invalid list raises an error."""
        invalid, _ = _ERRORS[what]
        shown_names = f"{what}s={names!r}"
        if isinstance(names, int | np.integer) and not isinstance(names, bool):
            names = range(names)
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise invalid(f"{shown_names}: expected the number of {what}s, or a list of names")
        if isinstance(names, Set):
            raise invalid(f"{shown_names}: a set has no fixed order, use a list")
        self = super().__new__(cls, (n.item() if isinstance(n, np.generic) else n for n in names))
        if not self:
            raise invalid(f"{shown_names}: there must be at least one {what}")
        try:
            self._places = {name: i for i, name in enumerate(self)}
        except TypeError as error:
            raise invalid(f"{shown_names}: names of {what}s must be hashable ({error})") from None
        if len(self._places) < len(self):
            repeated = next(n for i, n in enumerate(self) if self._places[n] != i)
            raise invalid(f"two {what}s are called {repeated!r}: names must differ")
        if any(name != name for name in self):  # only NaN differs from itself
            raise invalid(f"{shown_names}: NaN cannot be a name, since it is not equal to itself")
        self.what = what
        self.are_numbers = all(type(n) is int and n == i for i, n in enumerate(self))
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.what, tuple(self)

    def place(self, name: object) -> int:
        """Return the number of this name.

        An unknown name raises `UnknownArm`, `UnknownState`, `UnknownAction` or `BadEvidence`.
        """
        try:
            return self._places[name]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self[:8])) + (", …" if len(self) > 8 else "")
            _, unknown = _ERRORS[self.what]
            raise unknown(f"no {self.what} {name!r}: the {self.what}s are {shown}") from None

    def with_name(self, name: Hashable) -> "Names":
        """Return new names: these, and one more at the end."""
        return Names(self.what, [*self, name])

    def column(self, places: IntArray) -> AnyArray:
        """Return the names with these numbers, as a column of a record."""
        return places if self.are_numbers else select(self, places)


def eligible_places(names: Names, active: IntArray, among: Any) -> IntArray:
    """Return the places of the names `among`, in order; None: of all active ones.

    >>> eligible_places(Names("arm", ["red", "blue"]), np.arange(2), ["blue"])
    array([1])
    """
    if among is None:
        return active
    invalid, shown = _ERRORS[names.what][1], [names[j] for j in active.tolist()]
    is_list = isinstance(among, Sequence) and not isinstance(among, str | bytes)
    if not is_list or not len(among):
        raise invalid(f"among={among!r}: give a list of one or more {names.what}s of {shown}")
    places = sorted(names.place(name) for name in among)
    for j, following in zip(places, [*places[1:], None], strict=True):
        if j not in active:
            raise invalid(
                f"{names.what} {names[j]!r} is paused or retired: choose among the active {shown}"
            )
        if j == following:
            raise invalid(f"among={among!r}: {names.what} {names[j]!r} occurs twice")
    return np.array(places)


def prices_of(names: Names, eligible: IntArray, prices: Prices) -> FloatArray | None:
    """Return the price at each eligible place, by default 0; None if all are equal.

    Only differences matter: they are relative to the lowest price, so that common prices, however
    large, leave the mean rewards all their digits.

    >>> prices_of(Names("arm", ["red", "blue"]), np.arange(2), {"red": 1e20, "blue": 2e20})
    array([0.e+00, 1.e+20])
    """
    by_place = np.zeros(len(names))
    for name, price in (prices or {}).items():
        is_number = isinstance(price, Real) and not isinstance(price, bool)
        if not is_number or not abs(float(price)) <= LARGEST_PRICE:  # also if it is NaN
            raise InvalidTable(
                f"price {price!r} of {names.what} {name!r}: expected a number within "
                f"±{LARGEST_PRICE:g}"
            )
        by_place[names.place(name)] = price
    costs = by_place[eligible]
    return None if (costs == costs[0]).all() else costs - costs.min()


class Choice(NamedTuple):
    """The eligible places in a block of `choosing`, and their prices; None if all are equal."""

    places: IntArray
    prices: FloatArray | None


class ChoosesAmong:
    """Base of beliefs whose modes can choose among some of their arms, see `protocols.Choosing`."""

    labels: Any
    #: What the modes choose among; None outside of blocks.
    _choice: Choice | None = None

    def _active_places(self) -> IntArray:
        """Return the places of the arms that can be eligible: by default of all."""
        return np.arange(len(self.labels))

    def _choose(self, choice: Choice | None) -> None:
        """Choose among these arms only, or again among all active ones."""
        self._choice = choice

    @contextmanager
    def choosing(self, among: Among = None, prices: Prices = None) -> Iterator[None]:
        """In the block, choose among these arms only, and maximise the mean minus the price.

        Each mode pulls the best of the eligible arms; P(a | past) is that of such modes. Prices are
        in units of reward, 0 for an arm without one. Learning is the same as outside.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(["red", "blue", "green"]).belief()
        >>> with belief.choosing(among=["red", "blue"], prices={"blue": 0.5}):
        ...     {a: round(p, 12) for a, p in belief.action_probabilities().items()}
        {'red': 0.875, 'blue': 0.125}
        """
        before, places = self._choice, eligible_places(self.labels, self._active_places(), among)
        self._choose(Choice(places, prices_of(self.labels, places, prices)))
        try:
            yield
        finally:
            self._choose(before)
