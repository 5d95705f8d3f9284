"""What learners of values share: the names of states and actions, checks, and state as arrays.

    x ∈ X found on the way or declared        A(x) ⊆ A the actions that x offers
    o = (r, y), r finite, y ∈ X               after it x ← y

A learner keeps arrays with one row per state, `value[x, a, …]`; a state that enters gets a fresh
row, and room is doubled when it runs out. The kernels work on the arrays in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays, FloatArray, IntArray, UIntArray
from bayescontrol.baselines.mdp.checks import read_step
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.problems.names import Names
from bayescontrol.seeding import Stream
from bayescontrol.values import pack, unpack

L = TypeVar("L", bound="TabularLearner")

#: How many states there is room for at first, where they are found on the way.
FIRST_ROOM = 16


class TabularLearner(ABC):
    """An agent with a table of values; a learner says what its rows are, how it acts and learns.

    `states` is their number or their names, `None` if they are to be found on the way; `actions`
    their number or names; `start` the state to begin in, by default the first one declared;
    `allowed(x)` the actions that a state offers, by default all.

    >>> from bayescontrol.baselines.mdp import RLearning
    >>> agent = RLearning(None, ["left", "right"], start="home")
    >>> agent.observe("left", (1.0, "away"))
    >>> agent.x, agent.states
    ('away', ('home', 'away'))
    >>> agent.observe("left", (float("nan"), "home"))
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: reward nan after action 'left' in state 'away': it must be ...
    """

    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    #: The arrays, by name: [x, a], or with more axes, and those without a row per state. The
    #: first of all is -∞ where x does not offer a.
    _rows: dict[str, FloatArray]
    _scalars: dict[str, FloatArray]
    #: Rows that are not saved: `_restore` makes them of the others.
    _derived: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        start: Hashable | None,
        allowed: Callable[[Any], Iterable[Any]] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.actions = Names("action", actions)
        self._allowed = allowed
        self._settings = dict(settings)
        declared = () if states is None else tuple(Names("state", states))
        self._declared = states is not None
        self._names: list[Any] = []
        self._places: dict[Any, int] = {}
        self._scalars = {}
        self._rows = self._room_for(len(declared) or FIRST_ROOM)
        for x in declared:
            self._enter(x)
        if start is None and not declared:
            raise ValueError("states=None: say with start=... in which state the agent begins")
        self._x = 0 if start is None else self.number(start, enter=True)

    @classmethod
    def on(cls: type[L], mdp: MDP, **settings: Any) -> L:
        """The learner for a given MDP: its states, its actions and what each state offers.

        >>> from bayescontrol.baselines.mdp import QLearning
        >>> from bayescontrol.mdp import chain_mdp
        >>> QLearning.on(chain_mdp(3), gamma=0.9)
        QLearning(3 states, 2 actions, in state 0)
        """
        if not mdp.allowed.all():
            settings = {"allowed": mdp.actions_in, **settings}
        return cls(tuple(mdp.states), tuple(mdp.actions), **settings)

    # -- what a learner says -------------------------------------------------------------------

    @abstractmethod
    def _fresh(self, offered: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
        """The rows [a, …] of a state that was never seen and offers these actions."""

    @abstractmethod
    def _choose(self, x: int, state: UIntArray) -> int:
        """The action in state x, by number."""

    @abstractmethod
    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        """Learn from a transition; False, and nothing changed, if a value is no double."""

    @abstractmethod
    def _interact(self, *world_and_columns: Any) -> tuple[int, int]:
        """The compiled loop: as `bayescontrol.kernels.td.q_interact`, from `tables` on."""

    def _restore(self) -> None:  # noqa: B027 - most learners derive nothing
        """Make what is not saved, because it follows from the rest."""

    # -- an agent in the stream ----------------------------------------------------------------

    def act(self, rng: Stream) -> Any:
        """The action in the state of now. To act changes nothing but the stream."""
        return self.actions[self._choose(self._x, rng.state)]

    def observe(self, a: Any, o: Any) -> None:
        """Learn from o = (r, y), move on to y. On an error nothing has changed."""
        x = self.x
        column = self.actions.place(a)
        if not self._offers(self._x)[column]:
            offered = ", ".join(map(repr, self.actions_in(x)))
            raise UnknownAction(f"state {x!r} does not offer action {a!r}: it has {offered}")
        r, y = read_step(x, a, o)
        known = len(self._names)
        there = self.number(y, enter=True, after=f" after action {a!r} in state {x!r}")
        if not self._learn(self._x, column, r, there):
            self._forget(known)
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: the values would be no doubles "
                "any more; scale the rewards down"
            )
        self._x = there

    # -- states by name and by number ----------------------------------------------------------

    @property
    def x(self) -> Any:
        """The state of now."""
        return self._names[self._x]

    @x.setter
    def x(self, x: Any) -> None:
        self._x = self.number(x, enter=True)

    @property
    def states(self) -> tuple[Any, ...]:
        """The states declared, or found so far."""
        return tuple(self._names)

    def actions_in(self, x: Any) -> list[Any]:
        """The actions that state x offers."""
        offered = self._offers(self.number(x))
        return [a for a, has in zip(self.actions, offered, strict=True) if has]

    def number(self, x: Any, *, enter: bool = False, after: str = "") -> int:
        """The number of state x; with `enter`, a new one unless the states were declared."""
        try:
            place = self._places.get(x)
        except TypeError:
            raise BadEvidence(
                f"state {x!r}{after} cannot be the key of a dictionary: use a tuple"
            ) from None
        if place is None:
            if self._declared or not enter:
                shown = ", ".join(map(repr, self._names[:8])) + ", …" * (len(self._names) > 8)
                raise UnknownState(f"no state {x!r}{after}: the states are {shown}")
            place = self._enter(x)
        return place

    def numbers(self, states: Iterable[Any]) -> IntArray:
        """The number of each of these states, -1 for one that was never seen."""
        return np.array([self._places.get(x, -1) for x in states], np.int64)

    def offered(self, x: Any) -> npt.NDArray[np.bool_]:
        """[a]: does state x, seen or not, offer action a?"""
        mask = np.ones(len(self.actions), bool)
        if self._allowed is not None:
            mask[:] = False
            mask[[self.actions.place(a) for a in self._allowed(x)]] = True
            if not mask.any():
                raise UnknownAction(f"state {x!r} offers no action: `allowed` must give one")
        return mask

    def keeps_to(self, mdp: MDP) -> bool:
        """Does this learner think of no action that a state of the MDP does not offer?"""
        if self._allowed is None:
            return bool(mdp.allowed.all())
        pairs = zip(mdp.states, mdp.allowed, strict=True)
        return not any((self.offered(x) & ~offers).any() for x, offers in pairs)

    def _offers(self, place: int) -> npt.NDArray[np.bool_]:
        first = next(iter(self._rows.values()))[place]
        return np.asarray(first.reshape(len(self.actions), -1)[:, 0] > -np.inf)

    def _enter(self, x: Any) -> int:
        fresh = self._fresh(self.offered(x))
        place = len(self._names)
        if place == len(next(iter(self._rows.values()))):
            old, self._rows = self._rows, self._room_for(2 * place)
            for name, array in old.items():
                self._rows[name][:place] = array
        for name, row in fresh.items():
            self._rows[name][place] = row
        self._names.append(x)
        self._places[x] = place
        return place

    def _forget(self, count: int) -> None:
        """Be without the states that came after the first `count`."""
        for x in self._names[count:]:
            del self._places[x]
        del self._names[count:]

    def _room_for(self, states: int) -> dict[str, FloatArray]:
        like = self._fresh(np.ones(len(self.actions), bool))
        return {name: np.zeros((states, *row.shape)) for name, row in like.items()}

    def fast_forward(self, x: int) -> None:
        """Be in the state of this number, where a compiled loop that has learnt on the way led."""
        self._x = x

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return {
            "settings": pack(self._settings, "the settings"),
            "actions": pack(list(self.actions), "the actions"),
            "states": pack(self._names, "the states"),
            "x": np.array(self._x),
            **{name: array.copy() for name, array in self._kept().items()},
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a learner built alike."""
        names = {"settings", "actions", "states", "x", *self._kept()}
        if missing := names - arrays.keys():
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        for name, mine in (("settings", self._settings), ("actions", list(self.actions))):
            if (saved := unpack(arrays[name])) != mine:
                raise IncompatibleState(f"saved with {name} {saved}, this agent has {mine}")
        states, x = unpack(arrays["states"]), np.asarray(arrays["x"])
        if self._declared and states != self._names:
            raise IncompatibleState("saved with other states than those declared here")
        twin = self.copy()
        twin._names, twin._places = [], {}
        twin._rows = twin._room_for(max(len(states), FIRST_ROOM))
        for name in states:
            twin._enter(name)
        if x.shape != () or x.dtype.kind not in "iu" or not 0 <= x < len(twin._places):
            raise IncompatibleState(f"x = {x} is none of the {len(states)} saved states")
        twin._x = int(x)
        twin._take(arrays)
        self.__dict__.update(twin.__dict__)

    def _kept(self) -> dict[str, FloatArray]:
        """What is saved, in place: of rows those of states that are there."""
        count = len(self._names)
        rows = {n: a[:count] for n, a in self._rows.items() if n not in self._derived}
        return {**rows, **self._scalars}

    def _take(self, arrays: Arrays) -> None:
        """Numbers of the right shape, -∞ exactly where a fresh row has it."""
        for name, here in self._kept().items():
            saved = np.asarray(arrays[name])
            if saved.shape != here.shape or saved.dtype != np.float64:
                raise IncompatibleState(
                    f"{name!r} is {saved.dtype} of shape {saved.shape}, not float64 of {here.shape}"
                )
            if not np.where(np.isneginf(here), np.isneginf(saved), np.isfinite(saved)).all():
                raise IncompatibleState(f"{name!r} does not fit the actions that the states offer")
            here[...] = saved
        self._restore()

    def copy(self: L) -> L:
        """The same learner, free to go its own way."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._names, twin._places = list(self._names), dict(self._places)
        twin._rows = {name: array.copy() for name, array in self._rows.items()}
        twin._scalars = {name: array.copy() for name, array in self._scalars.items()}
        return twin

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self._names)} states, {len(self.actions)} actions, "
            f"in state {self.x!r})"
        )
