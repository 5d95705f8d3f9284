"""The sufficient statistics of the MDP agent: counts and rewards of the observed transitions.

    (x, a, y) -> n(x,a,y), Σ r, Σ (r - r̄)²          states are numbered in order of observation

The arrays double their capacity when they are full, for states and for the transitions of a pair.
The kernels modify them in place and never allocate.

As named arrays, a ledger consists of

    evidence    states, actions, the available actions of each state; for each pair Σ r,
                Σ (r - r̄)² and the number of observed successors; for each transition y, n and Σ r
    sampler     sampler/Q, sampler/M, sampler/scalars

Everything else is computed from these, bit for bit. Inconsistent arrays are rejected.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, BoolArray
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Copied, Saved, SavedArrays, checked_array, damaged, declare
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, UnknownAction

#: Initial capacity: states, and successors of a pair.
FIRST_STATES, FIRST_ROOM = 8, 4
PER_PAIR = ("n", "r", "scatter", "s", "inverse", "spread", "pull", "first", "known", "room")
PER_SAVED_TRANSITION = ("successor", "times", "rewards")
PER_TRANSITION = (*PER_SAVED_TRANSITION, "weight")
PER_STATE = ("from_prior", "from_data")
INDICES = ("first", "known", "room", "successor")
#: Number of scalars in the state of the sampler, besides Q and M.
SCALARS = 7


class Entry(NamedTuple):
    """The statistics of one transition: its count n(x,a,y) and its total reward."""

    x: Any
    a: Any
    y: Any
    n: int
    total: float


class Ledger(Saved):
    """Counts and rewards of transitions; states are added when they are first observed.

    `prior` is (μ0, λ0, weight of an observation). `states` declares all states (prior A).

    >>> ledger = Ledger(2, (1.0, 1.0, 1.0))
    >>> ledger.record("a", 1, "b", 2.5)
    >>> list(ledger)
    [Entry(x='a', a=1, y='b', n=1, total=2.5)]
    """

    saved_fields = declare(
        Copied("places"), Copied("evidence", nested=True), Copied("chain", nested=True)
    )

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        prior: tuple[float, float, float],
        states: int | Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        self.actions, self.allowed = Names("action", actions), allowed
        names = [] if states is None else list(Names("state", states))
        self.declared = states is not None
        self.places: dict[Any, int] = {}
        #: How many entries for transitions are reserved for pairs.
        self._used = 0
        columns: dict[str, Any] = dict.fromkeys(PER_PAIR + PER_TRANSITION + PER_STATE, np.zeros(0))
        columns |= dict.fromkeys(INDICES, np.zeros(0, np.uint64))
        prior_numbers = np.array([*prior, float(len(names))])
        self.evidence = kernels.gibbs.Evidence(prior=prior_numbers, **columns)
        scalars = np.zeros(SCALARS)
        scalars[kernels.gibbs.SIGMA] = 1.0
        self.chain = kernels.gibbs.Chain(np.zeros((0, len(self.actions))), np.zeros(0), scalars)
        self._enlarge(FIRST_STATES, FIRST_STATES * len(self.actions) * FIRST_ROOM)
        for x in names:
            self.add_state(x, 0.0, self.available(x))

    # -- allocation --------------------------------------------------------------------------------

    def _enlarge(self, states: int, pool: int) -> None:
        """Enlarge the arrays to `states` states and `pool` transitions; new entries are 0."""
        pairs = states * len(self.actions)
        sizes = dict.fromkeys(PER_PAIR, pairs) | dict.fromkeys(PER_TRANSITION, pool)
        sizes |= dict.fromkeys(PER_STATE, states)
        self.evidence = self.evidence._replace(
            **{name: _extended(getattr(self.evidence, name), n) for name, n in sizes.items()}
        )
        Q, M = _extended(self.chain.Q, states), _extended(self.chain.M, states)
        self.chain = self.chain._replace(Q=Q, M=M)

    def _reserve(self, room: int) -> int:
        """Reserve entries for `room` transitions and return the first index."""
        while self._used + room > self.evidence.successor.size:
            self._enlarge(self.chain.M.size, 2 * self.evidence.successor.size)
        self._used += room
        return self._used - room

    def make_room(self, i: int, room: int) -> None:
        """Move the transitions of pair i to a new block with space for `room` transitions."""
        first = self._reserve(room)
        e = self.evidence
        old, count = int(e.first[i]), int(e.known[i])
        for name in PER_TRANSITION:
            column = getattr(e, name)
            column[first : first + count] = column[old : old + count]
        e.first[i], e.room[i] = first, room

    # -- states and their actions ------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of known states."""
        return len(self.places)

    def place(self, x: Any, where: str = "") -> int | None:
        """Return the index of state x, or None if it is unknown; errors mention `where`."""
        try:
            return self.places.get(x)
        except TypeError:
            raise BadEvidence(
                f"state {x!r} is not hashable{where}: use a number, a string or a tuple"
            ) from None

    def available(self, x: Any) -> BoolArray:
        """Return an array [a]: whether action a is available in state x, which may be unknown."""
        place, actions = self.place(x), len(self.actions)
        if place is not None:  # n is -1 for unavailable actions, see `add_state`
            return np.asarray(self.evidence.n[place * actions : (place + 1) * actions] >= 0.0)
        if self.allowed is None:
            return np.ones(actions, bool)
        row = np.zeros(actions, bool)
        for a in self.allowed(x):
            row[self.action(a, x)] = True
        if not row.any():
            raise InvalidTable(f"allowed({x!r}) returned no action: every state needs at least one")
        return row

    def actions_of(self, x: Any) -> list[Any]:
        """Return the actions available in state x, which may be unknown."""
        return list(compress(self.actions, self.available(x)))

    def action(self, a: Any, x: Any) -> int:
        """Return the index of action a; if there is none, raise an error that names state x."""
        try:
            return self.actions.place(a)
        except UnknownAction as error:
            raise UnknownAction(f"state {x!r}: {error}") from None

    def has_action(self) -> BoolArray:
        """Return an array [x, a]: whether action a is available in state x; n = -1 if not."""
        n = self.evidence.n[: len(self) * len(self.actions)]
        return np.asarray(n.reshape(len(self), len(self.actions)) >= 0.0)

    def add_state(self, x: Any, level: float, available: BoolArray) -> int:
        """Add the unknown state x with these actions and the initial Q-value `level`."""
        if len(self) == self.chain.M.size:
            self._enlarge(2 * len(self), self.evidence.successor.size)
        place, actions = len(self), len(self.actions)
        first = self._reserve(actions * FIRST_ROOM)
        for a in range(actions):
            i = place * actions + a
            self.evidence.first[i], self.evidence.room[i] = first + a * FIRST_ROOM, FIRST_ROOM
            self.evidence.n[i] = 0.0 if available[a] else -1.0
        self.places[x.item() if isinstance(x, np.generic) else x] = place
        kernels.gibbs.add_state(self.evidence, self.chain, place, level)
        return place

    # -- writing -----------------------------------------------------------------------------------

    def record(
        self, x: Any, a: Any, y: Any, total: float, n: float = 1.0, scatter: float = 0.0
    ) -> None:
        """Add n(x,a,y) += n, Σ r += total, Σ (r - r̄)² += scatter. An error changes nothing."""
        column = self.action(a, x)
        row_x = self.find(x, f"before action {a!r}")
        row_y = self.find(y, f"after action {a!r} in state {x!r}")
        available_in_x, available_in_y = self.available(x), self.available(y)
        if not available_in_x[column]:
            raise UnknownAction(
                f"action {a!r} is not available in state {x!r}: choose from {self.actions_of(x)}"
            )
        if row_x is None:
            row_x = self.add_state(x, float(self.chain.M[0]), available_in_x)  # as the first state
            row_y = self.place(y)  # y may be the new state x
        if row_y is None:
            # A new state starts with the value of its predecessor, until the next sweep.
            row_y = self.add_state(y, float(self.chain.M[row_x]), available_in_y)
        i = row_x * len(self.actions) + column
        learn, full = kernels.gibbs.learn, kernels.gibbs.FULL
        while learn(self.evidence, self.chain, row_x, i, row_y, n, total, scatter) == full:
            self.make_room(i, 2 * int(self.evidence.room[i]))

    def find(self, y: Any, where: str) -> int | None:
        """Return the index of state y, None if it is new; raise `BadEvidence` if it is invalid."""
        place = self.place(y, f" ({where})")
        if place is None and self.declared:
            raise BadEvidence(f"state {y!r} {where} is not one of the {len(self)} declared states")
        if place is None and y != y:  # NaN, or an object with such an __eq__
            raise BadEvidence(
                f"state {y!r} {where} is not equal to itself (NaN?): it cannot be looked up"
            )
        return place

    def absorb(self, other: "Ledger") -> None:
        """Record every transition of the other ledger here."""
        e = other.evidence
        for entry, i, t in other._rows():
            # The scatter is stored per pair: add it with the first transition of the pair.
            scatter = float(e.scatter[i]) if t == int(e.first[i]) else 0.0
            self.record(*entry[:3], entry.total, entry.n, scatter)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of observed transitions."""
        return int(self.evidence.from_data[: len(self)].sum())

    def _rows(self) -> Iterator[tuple[Entry, int, int]]:
        """Yield every observed transition, the index of its pair, and its position."""
        names, e = list(self.places), self.evidence
        for x, name in enumerate(names):
            for a, action in enumerate(self.actions):
                i = x * len(self.actions) + a
                for t in range(int(e.first[i]), int(e.first[i]) + int(e.known[i])):
                    y = names[int(e.successor[t])]
                    yield Entry(name, action, y, int(e.times[t]), float(e.rewards[t])), i, t

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the observed transitions by state, action and time of first occurrence."""
        return (entry for entry, _, _ in self._rows())

    # -- saving and loading ------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return the ledger as named arrays, without unused capacity."""
        size, e, c = len(self), self.evidence, self.chain
        pairs = size * len(self.actions)
        counts = e.known[:pairs].astype(np.int64)
        # The transitions of all pairs in order, without the unused entries between them.
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = np.repeat(e.first[:pairs].astype(np.int64), counts) + offsets
        return {
            "states": pack(list(self.places), "the states"),
            "actions": pack(list(self.actions), "the actions"),
            "offered": self.has_action(),
            "known": counts,
            "r": e.r[:pairs].copy(),
            "scatter": e.scatter[:pairs].copy(),
            "successor": e.successor[positions].astype(np.int64),
            "times": e.times[positions],
            "rewards": e.rewards[positions],
            "sampler/Q": c.Q[:size].copy(),
            "sampler/M": c.M[:size].copy(),
            "sampler/scalars": c.scalars.copy(),
        }

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for a ledger with the same actions and prior.

        Another state raises IncompatibleState and changes nothing.
        """
        arrays = SavedArrays(arrays)
        states, actions = unpack(arrays["states"]), unpack(arrays["actions"])
        if actions != list(self.actions):
            raise IncompatibleState(
                f"the saved state has the actions {actions}, this belief has {list(self.actions)}"
            )
        if self.declared and states != list(self.places):
            raise IncompatibleState(
                f"the saved state has the states {states}, this belief declares {list(self.places)}"
            )
        _require_valid(arrays, states, len(actions))
        new = Ledger(actions, (1.0, 1.0, 1.0))  # without states
        new.evidence.prior[:] = self.evidence.prior
        for x, row in zip(states, arrays["offered"], strict=True):
            if not np.array_equal(self.available(x), row):
                raise IncompatibleState(
                    f"state {x!r} was saved with the actions {list(compress(actions, row))}, and "
                    f"offers {self.actions_of(x)} here: create the belief with the `allowed` of "
                    "the saved one"
                )
            new.add_state(x, 0.0, row)
        end = np.cumsum(arrays["known"])
        for i, (first, last) in enumerate(zip(end - arrays["known"], end, strict=True)):
            new._restore_pair(i, {name: arrays[name][first:last] for name in PER_SAVED_TRANSITION})
        e, c = new.evidence, new.chain
        e.r[: end.size], e.scatter[: end.size] = arrays["r"], arrays["scatter"]
        kernels.gibbs.prepare(e, len(new), len(actions))
        c.Q[: len(new)], c.M[: len(new)] = arrays["sampler/Q"], arrays["sampler/M"]
        c.scalars[:] = arrays["sampler/scalars"]
        self.places, self._used, self.evidence, self.chain = new.places, new._used, e, c

    def _restore_pair(self, i: int, transitions: Arrays) -> None:
        """Write the saved transitions of pair i, which has none yet."""
        count = len(transitions["times"])
        if count > self.evidence.room[i]:
            self.make_room(i, count)
        e = self.evidence
        block = slice(int(e.first[i]), int(e.first[i]) + count)
        for name, column in transitions.items():
            getattr(e, name)[block] = column
        e.known[i] = count
        # n[i] is -1 if the state does not offer the action, otherwise 0: adding keeps the mark.
        e.n[i] += transitions["times"].sum()


def _extended(array: Any, size: int) -> Any:
    """Return a copy with this number of rows; new rows are 0. Faster than `np.pad`."""
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _require_valid(arrays: Arrays, states: object, actions: int) -> None:
    """Reject arrays with which a kernel would index out of bounds or compute with NaN."""
    if not isinstance(states, list) or len(set(states)) != len(states):
        raise IncompatibleState(
            f"the saved states {arrays['states']} are not a list of distinct states"
        )
    size = len(states)
    table, pairs, transitions = (size, actions), (size * actions,), arrays["successor"].shape
    shapes: dict[str, tuple[int, ...]] = {
        "r": pairs, "scatter": pairs, "times": transitions, "rewards": transitions,
        "sampler/Q": table, "sampler/M": (size,), "sampler/scalars": (SCALARS,),
        "known": pairs, "successor": transitions, "offered": table,
    }  # fmt: skip
    dtypes = {"known": np.int64, "successor": np.int64, "offered": np.bool_}
    for name, shape in shapes.items():
        checked_array(arrays, name, dtypes.get(name, np.float64), shape)
    counts, y, n = arrays["known"], arrays["successor"], arrays["times"]
    scalars = arrays["sampler/scalars"]
    checks = {
        "known": (counts >= 0).all() and counts.sum() == y.size,
        "successor": ((y >= 0) & (y < size)).all(),
        "times": ((n >= 1.0) & (n == np.floor(n))).all(),
        "scatter": (arrays["scatter"] >= 0.0).all(),
        "offered": arrays["offered"].any(1).all()
        and not counts.reshape(size, actions)[~arrays["offered"]].any(),
        "sampler/scalars": scalars[kernels.gibbs.SIGMA] > 0.0
        and 0.0 <= scalars[kernels.gibbs.CURSOR] <= size,
    }
    for name, is_valid in checks.items():
        if not is_valid:
            raise damaged(f"{name} is {arrays[name]}")
    pair = np.repeat(np.arange(counts.size), counts)  # of each transition
    if np.unique(pair * max(size, 1) + y).size < y.size:  # one number for each (x, a, y)
        raise damaged("a transition occurs twice")
