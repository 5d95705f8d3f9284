"""The book of transitions: arrays that grow with what has been seen.

    (x, a, y) -> n(x,a,y), Σ r, Σ (r - r̄)²          states are numbered as they are found

Room is doubled when it runs out, for states and for the transitions of a pair; the kernels work
on the arrays in place and never allocate.

A ledger as named arrays, and back.

    evidence    states, actions, which actions a state offers; for each pair Σ r, Σ (r - r̄)² and
                how many successors were seen; for each transition y, n and Σ r
    chain       sampler/Q, sampler/M, sampler/scalars

All else follows from these, to the last bit. What does not fit together is refused.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, UnknownAction
from bayescontrol.problems.names import Names
from bayescontrol.values import pack, unpack

if TYPE_CHECKING:
    from bayescontrol.arrays import FloatArray


#: Successors that a pair has room for at first.
FIRST_ROOM = 4
PER_PAIR = ("n", "r", "scatter", "s", "inverse", "spread", "pull", "first", "known", "room")
PER_TRANSITION = ("successor", "weight", "times", "rewards")
PER_STATE = ("from_prior", "from_data")
#: How many numbers a chain has beside Q and M.
SCALARS = 7


class Entry(NamedTuple):
    """What is known of one transition.

    >>> Entry("home", "go", "away", 2, 5.0).n
    2
    """

    x: Any
    a: Any
    y: Any
    n: int
    total: float


class Ledger:
    """Transitions by number, states and actions by name.

    `prior` is μ0, λ0 and the weight of an observation; `states` declares them all, prior A.

    >>> ledger = Ledger(2, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 1, "b", 2.5)
    >>> list(ledger)
    [Entry(x='a', a=1, y='b', n=1, total=2.5)]
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        prior: tuple[float, float, float],
        states: int | Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if isinstance(actions, bool | float | str) or actions is None:
            raise InvalidTable(f"actions={actions!r}: give their number, or a list of their names")
        self.actions, self.allowed = Names("action", actions), allowed
        names = [] if states is None else list(Names("state", states))
        self.declared = states is not None
        self.prior: FloatArray = np.array([*prior, float(len(names))])
        self.places: dict[Any, int] = {}
        self._pool = 0
        self._make(8, 8 * len(self.actions) * FIRST_ROOM)
        for x in names:
            self.enter(x, 0.0, self.offered(x))

    # -- room --------------------------------------------------------------------------------------

    def _make(self, states: int, pool: int) -> None:
        """Arrays with this much room, holding what there was."""
        actions = len(self.actions)
        old_evidence = getattr(self, "evidence", None)
        old_chain = getattr(self, "chain", None)
        sizes = dict.fromkeys(PER_PAIR, states * actions) | dict.fromkeys(PER_TRANSITION, pool)
        sizes |= dict.fromkeys(PER_STATE, states)
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, size in sizes.items():
            whole = name in ("first", "known", "room", "successor")
            arrays[name] = np.zeros(size, np.uint64 if whole else np.float64)
            if old_evidence is not None:
                old = getattr(old_evidence, name)
                arrays[name][: old.size] = old
        self.evidence = kernels.gibbs.Evidence(prior=self.prior, **arrays)
        Q, M, scalars = np.zeros((states, actions)), np.zeros(states), np.zeros(SCALARS)
        scalars[1] = 1.0
        if old_chain is not None:
            Q[: old_chain.M.size], M[: old_chain.M.size] = old_chain.Q, old_chain.M
            scalars = old_chain.scalars
        self.chain = kernels.gibbs.Chain(Q, M, scalars)

    def _take(self, room: int) -> int:
        """So many places for transitions: where they begin."""
        while self._pool + room > self.evidence.successor.size:
            self._make(self.chain.M.size, 2 * self.evidence.successor.size)
        self._pool += room
        return self._pool - room

    def make_room(self, i: int, room: int) -> None:
        """Room for so many transitions of pair i."""
        first = self._take(room)
        e = self.evidence
        old, known = int(e.first[i]), int(e.known[i])
        for name in PER_TRANSITION:
            column = getattr(e, name)
            column[first : first + known] = column[old : old + known]
        e.first[i], e.room[i] = first, room

    # -- states and their actions ------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of states found."""
        return len(self.places)

    def place(self, x: Any) -> int | None:
        """The number of state x, None if it was never seen."""
        try:
            return self.places.get(x)
        except TypeError:
            raise BadEvidence(
                f"state {x!r} cannot be the key of a dictionary: use a tuple"
            ) from None

    def offered(self, x: Any) -> npt.NDArray[np.bool_]:
        """[a]: whether state x, which may be new, has action a."""
        place, actions = self.place(x), len(self.actions)
        if place is not None:
            return np.asarray(self.evidence.n[place * actions : (place + 1) * actions] >= 0.0)
        if self.allowed is None:
            return np.ones(actions, bool)
        row = np.zeros(actions, bool)
        for a in self.allowed(x):
            row[self.action(a, x)] = True
        if not row.any():
            raise InvalidTable(f"state {x!r} has no action: `allowed` must give at least one")
        return row

    def actions_of(self, x: Any) -> list[Any]:
        """What can be done in state x, which may be new."""
        return [a for a, has in zip(self.actions, self.offered(x), strict=True) if has]

    def action(self, a: Any, x: Any) -> int:
        """The number of action a."""
        try:
            return self.actions.place(a)
        except UnknownAction as error:
            raise UnknownAction(f"state {x!r}: {error}") from None

    def has_action(self) -> npt.NDArray[np.bool_]:
        """[x, a]: whether state x has action a."""
        n = self.evidence.n[: len(self) * len(self.actions)]
        return np.asarray(n.reshape(len(self), len(self.actions)) >= 0.0)

    def enter(self, x: Any, level: float, offered: npt.NDArray[np.bool_]) -> int:
        """State x, new, with these actions; its Q-values stand at `level` for now."""
        if len(self) == self.chain.M.size:
            self._make(2 * len(self), self.evidence.successor.size)
        place, actions = len(self), len(self.actions)
        first = self._take(actions * FIRST_ROOM)
        for a in range(actions):
            i = place * actions + a
            self.evidence.first[i], self.evidence.room[i] = first + a * FIRST_ROOM, FIRST_ROOM
            self.evidence.n[i] = 0.0 if offered[a] else -1.0
        self.places[x.item() if isinstance(x, np.generic) else x] = place
        kernels.gibbs.add_state(self.evidence, self.chain, place, level)
        return place

    # -- writing -----------------------------------------------------------------------------------

    def record(
        self, x: Any, a: Any, y: Any, total: float, n: float = 1.0, scatter: float = 0.0
    ) -> None:
        """n(x,a,y) += n, Σ r += total, Σ (r - r̄)² += scatter. On an error nothing has changed."""
        column = self.action(a, x)
        here = self.checked(x, f"before action {a!r}")
        there = self.checked(y, f"after action {a!r} in state {x!r}")
        offered, beyond = self.offered(x), self.offered(y)
        if not offered[column]:
            raise UnknownAction(
                f"state {x!r} does not offer action {a!r}: it has {self.actions_of(x)}"
            )
        if here is None:
            here = self.enter(x, float(self.chain.M[0]), offered)
            there = self.place(y)
        if there is None:
            # A new state is worth what the one before it is, until the next sweep.
            there = self.enter(y, float(self.chain.M[here]), beyond)
        i = here * len(self.actions) + column
        learn, full = kernels.gibbs.learn, kernels.gibbs.FULL
        while learn(self.evidence, self.chain, here, i, there, n, total, scatter) == full:
            self.make_room(i, 2 * int(self.evidence.room[i]))

    def checked(self, y: Any, where: str) -> int | None:
        """The number of state y, None if it is new and may enter; `BadEvidence` if it may not."""
        try:
            place = self.place(y)
        except BadEvidence as error:
            raise BadEvidence(f"{error} ({where})") from None
        if place is None and self.declared:
            raise BadEvidence(f"state {y!r} {where} is none of the {len(self)} declared states")
        if place is None and y != y:
            raise BadEvidence(
                f"state {y!r} {where} is not equal to itself: it would never be found"
            )
        return place

    def absorb(self, other: "Ledger") -> None:
        """Every transition of the other ledger, as if it had been recorded here."""
        e = other.evidence
        for entry, i, t in other._rows():
            # Scatter is kept by pair: it comes with the first transition of each.
            scatter = float(e.scatter[i]) if t == int(e.first[i]) else 0.0
            self.record(*entry[:3], entry.total, entry.n, scatter)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Transitions seen."""
        return int(self.evidence.from_data[: len(self)].sum())

    def _rows(self) -> Iterator[tuple[Entry, int, int]]:
        """Every transition seen, the number of its pair and its own."""
        names, e = list(self.places), self.evidence
        for x, name in enumerate(names):
            for a, action in enumerate(self.actions):
                i = x * len(self.actions) + a
                for t in range(int(e.first[i]), int(e.first[i]) + int(e.known[i])):
                    y = names[int(e.successor[t])]
                    yield Entry(name, action, y, int(e.times[t]), float(e.rewards[t])), i, t

    def __iter__(self) -> Iterator[Entry]:
        """Every transition seen: by state, by action, and in the order of its first time."""
        return (entry for entry, _, _ in self._rows())

    def copy(self) -> "Ledger":
        """The same ledger, free to go its own way."""
        twin = Ledger.__new__(Ledger)
        twin.__dict__.update(self.__dict__)
        twin.places = dict(self.places)
        twin.evidence = type(self.evidence)._make(a.copy() for a in self.evidence)
        twin.chain = type(self.chain)._make(a.copy() for a in self.chain)
        twin.prior = twin.evidence.prior
        return twin

    def blank(self) -> "Ledger":
        """A ledger with the same actions and prior in which no state has been entered."""
        twin = Ledger(list(self.actions), (1.0, 1.0, 1.0), None, self.allowed)
        twin.declared, twin.prior[:] = self.declared, self.prior
        return twin


_NUMBERS = ("r", "scatter", "times", "rewards", "sampler/Q", "sampler/M", "sampler/scalars")
_WHOLE = ("known", "successor")
_NAMES = {"states", "actions", "offered", *_NUMBERS, *_WHOLE}


def to_arrays(ledger: Ledger) -> Arrays:
    """Named arrays, as short as can be.

    >>> ledger = Ledger(1, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 0, "b", 2.5)
    >>> to_arrays(ledger)["successor"]
    array([1])
    """
    size, e, c = len(ledger), ledger.evidence, ledger.chain
    pairs = size * len(ledger.actions)
    known = e.known[:pairs].astype(np.int64)
    # Transition after transition of pair after pair, without the room between them.
    within = np.arange(known.sum()) - np.repeat(np.cumsum(known) - known, known)
    t = np.repeat(e.first[:pairs].astype(np.int64), known) + within
    return {
        "states": pack(list(ledger.places), "the states"),
        "actions": pack(list(ledger.actions), "the actions"),
        "offered": ledger.has_action(),
        "known": known,
        "r": e.r[:pairs].copy(),
        "scatter": e.scatter[:pairs].copy(),
        "successor": e.successor[t].astype(np.int64),
        "times": e.times[t],
        "rewards": e.rewards[t],
        "sampler/Q": c.Q[:size].copy(),
        "sampler/M": c.M[:size].copy(),
        "sampler/scalars": c.scalars.copy(),
    }


def from_arrays(arrays: Arrays, like: Ledger) -> Ledger:
    """A ledger with the actions and the prior of `like`, holding what `to_arrays` gave.

    >>> ledger = Ledger(1, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 0, "b", 2.5)
    >>> list(from_arrays(to_arrays(ledger), like=ledger))
    [Entry(x='a', a=0, y='b', n=1, total=2.5)]
    """
    missing = _NAMES - arrays.keys()
    if missing:
        raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
    states, actions = unpack(arrays["states"]), unpack(arrays["actions"])
    if actions != list(like.actions):
        raise IncompatibleState(f"saved with actions {actions}, this has {list(like.actions)}")
    if like.declared and states != list(like.places):
        raise IncompatibleState(f"saved with states {arrays['states']}, others are declared here")
    _check(arrays, states, len(actions))
    made = like.blank()
    for x, row in zip(states, arrays["offered"], strict=True):
        if not np.array_equal(like.offered(x), row):
            raise IncompatibleState(
                f"state {x!r} was saved with other actions than it has here: {like.actions_of(x)}"
            )
        made.enter(x, 0.0, row)
    end = np.cumsum(arrays["known"])
    for i, (first, last) in enumerate(zip(end - arrays["known"], end, strict=True)):
        known = int(last - first)
        if known > made.evidence.room[i]:
            made.make_room(i, known)
        e = made.evidence
        here = slice(int(e.first[i]), int(e.first[i]) + known)
        for name in ("successor", "times", "rewards"):
            getattr(e, name)[here] = arrays[name][first:last]
        e.known[i] = known
        e.n[i] += arrays["times"][first:last].sum()
    e, c = made.evidence, made.chain
    e.r[: end.size], e.scatter[: end.size] = arrays["r"], arrays["scatter"]
    kernels.gibbs.prepare(e, len(made), len(actions))
    c.Q[: len(made)], c.M[: len(made)] = arrays["sampler/Q"], arrays["sampler/M"]
    c.scalars[:] = arrays["sampler/scalars"]
    return made


def _check(arrays: Arrays, states: object, actions: int) -> None:
    """No kernel may be led outside its arrays, nor into numbers that are none."""
    if not isinstance(states, list) or len(set(states)) != len(states):
        raise IncompatibleState(
            f"the saved states are {arrays['states']}: a list of different ones"
        )
    size = len(states)
    pairs, transitions = (size * actions,), arrays["successor"].shape
    shapes = {
        "offered": (size, actions), "known": pairs, "r": pairs, "scatter": pairs,
        "successor": transitions, "times": transitions, "rewards": transitions,
        "sampler/Q": (size, actions), "sampler/M": (size,), "sampler/scalars": (SCALARS,),
    }  # fmt: skip
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    wrong += [name for name in _WHOLE if arrays[name].dtype.kind != "i"]
    wrong += [name for name in _NUMBERS if arrays[name].dtype != np.float64]
    wrong += ["offered"] if arrays["offered"].dtype != bool else []
    if wrong:
        raise IncompatibleState(f"the saved state is damaged: {wrong[0]} is of another kind")
    known, y, n = arrays["known"], arrays["successor"], arrays["times"]
    scalars = arrays["sampler/scalars"]
    good = {
        "known": (known >= 0).all() and known.sum() == y.size,
        "successor": ((y >= 0) & (y < size)).all(),
        "times": ((n >= 1.0) & (n == np.floor(n))).all(),
        "scatter": (arrays["scatter"] >= 0.0).all(),
        "offered": arrays["offered"].any(1).all()
        and not known.reshape(size, actions)[~arrays["offered"]].any(),
        "sampler/scalars": scalars[1] > 0.0 and 0.0 <= scalars[2] <= size,
    }
    good |= {name: good.get(name, True) and np.isfinite(arrays[name]).all() for name in _NUMBERS}
    for name, fine in good.items():
        if not fine:
            raise IncompatibleState(f"the saved state is damaged: {name} is {arrays[name]}")
    pair = np.repeat(np.arange(known.size), known)
    if np.unique(pair * max(size, 1) + y).size < y.size:
        raise IncompatibleState("the saved state is damaged: a transition comes twice")
