"""The sufficient statistics of the MDP agent: counts and rewards of the observed transitions.

    (x, a, y) -> n(x,a,y), Σ r, Σ (r - r̄)²          states are numbered in order of observation

The arrays double their capacity when they are full, for states and for the transitions of a block
of actions (see `kernels.gibbs`).
The kernels modify them in place and never allocate.

As named arrays, a ledger consists of

    evidence    states, actions, the available actions of each state; for each pair Σ r,
                Σ (r - r̄)²; for each block of actions its successors y, in the order of their
                first observation, which of its actions have led to y, and their n and Σ r
    sampler     sampler/Q, sampler/M, sampler/scalars

Everything else is computed from these, bit for bit. Inconsistent arrays are rejected.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, BoolArray, IntArray, UIntArray
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Copied, Saved, SavedArrays, checked_array, damaged, declare
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, UnknownAction

#: Initial capacity: states, and successors of a block.
FIRST_STATES, FIRST_ROOM = 8, 4
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
        #: How many entries for transitions are reserved for blocks.
        self._used = 0
        lanes = kernels.gibbs.LANES
        blocks = (len(self.actions) + lanes - 1) // lanes
        self.evidence = kernels.gibbs.Evidence(
            prior=np.array([*prior, float(len(names))]),
            pairs=np.zeros((0, blocks * lanes, 8)),
            blocks=np.zeros((0, blocks, 3), np.uint64),
            successor=np.zeros(0, np.uint64),
            share=np.zeros((0, lanes)),
            rewards=np.zeros((0, 3, lanes)),
            inflow=np.zeros((0, 2)),
        )
        scalars = np.zeros(SCALARS)
        scalars[kernels.gibbs.SIGMA] = 1.0
        self.chain = kernels.gibbs.Chain(np.zeros((0, blocks * lanes)), np.zeros(0), scalars)
        self._enlarge(FIRST_STATES, FIRST_STATES * blocks * FIRST_ROOM)
        for x in names:
            self.add_state(x, 0.0, self.available(x))

    # -- allocation --------------------------------------------------------------------------------

    def _enlarge(self, states: int, pool: int) -> None:
        """Enlarge the arrays to `states` states and `pool` transitions; new entries are 0."""
        e, c = self.evidence, self.chain
        per_state, per_transition = ("pairs", "blocks", "inflow"), ("successor", "share", "rewards")
        sizes = dict.fromkeys(per_state, states) | dict.fromkeys(per_transition, pool)
        longer = {name: _extended(getattr(e, name), n) for name, n in sizes.items()}
        self.evidence = e._replace(**longer)
        self.chain = c._replace(Q=_extended(c.Q, states), M=_extended(c.M, states))

    def _reserve(self, room: int) -> int:
        """Reserve entries for `room` transitions and return the first index."""
        needed, pool = self._used + room, self.evidence.successor.size
        if needed > pool:
            self._enlarge(self.chain.M.size, max(needed, 2 * pool))
        self._used = needed
        return needed - room

    def make_room(self, x: int, block: int, room: int) -> None:
        """Move the transitions of a block to a new place with space for `room` transitions."""
        first = self._reserve(room)
        e = self.evidence
        old, size, _ = e.blocks[x, block].tolist()
        for column in (e.successor, e.share, e.rewards):
            column[first : first + size] = column[old : old + size]
        e.blocks[x, block] = first, size, room

    # -- states and their actions ------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of known states."""
        return len(self.places)

    def place(self, x: Any, where: str = "") -> int | None:
        """Return the index of state x, or None if it is unknown; errors mention `where`."""
        try:
            return self.places.get(x)
        except TypeError:
            raise BadEvidence(f"state {x!r} is not hashable{where}: use a tuple") from None

    def available(self, x: Any) -> BoolArray:
        """Return an array [a]: whether action a is available in state x, which may be unknown."""
        place, actions = self.place(x), len(self.actions)
        if place is not None:  # n is -1 for unavailable actions, see `add_state`
            return np.asarray(self.evidence.pairs[place, :actions, kernels.gibbs.N] >= 0.0)
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
        n = self.evidence.pairs[: len(self), : len(self.actions), kernels.gibbs.N]
        return np.asarray(n >= 0.0)

    def add_state(self, x: Any, level: float, available: BoolArray) -> int:
        """Add the unknown state x with these actions and the initial Q-value `level`."""
        if len(self) == self.chain.M.size:
            self._enlarge(2 * len(self), self.evidence.successor.size)
        place, blocks = len(self), self.evidence.blocks.shape[1]
        for b in range(blocks):
            self.evidence.blocks[place, b] = self._reserve(FIRST_ROOM), 0, FIRST_ROOM
        n = self.evidence.pairs[place, :, kernels.gibbs.N]
        n[:], n[np.flatnonzero(available)] = -1.0, 0.0
        self.places[x.item() if isinstance(x, np.generic) else x] = place
        kernels.gibbs.add_state(self.evidence, self.chain, place, level)
        return place

    # -- writing -----------------------------------------------------------------------------------

    def record(
        self, x: Any, a: Any, y: Any, total: float, n: float = 1.0, scatter: float = 0.0
    ) -> None:
        """Add n(x,a,y) += n, Σ r += total, Σ (r - r̄)² += scatter. An error changes nothing."""
        column = self.action(a, x)
        try:
            row_x, row_y = self.places.get(x), self.places.get(y)
        except TypeError:  # a state is not hashable: `find` raises the error
            row_x = row_y = None
        if row_x is None or row_y is None:
            row_x, row_y = self._add_states(x, a, y)
        elif self.evidence.pairs.item(row_x, column, kernels.gibbs.N) < 0.0:
            raise self._unavailable(a, x)
        learn = kernels.gibbs.learn
        while not learn(self.evidence, self.chain, row_x, column, row_y, n, total, scatter):
            block = column // kernels.gibbs.LANES
            room = self.evidence.blocks.item(row_x, block, kernels.gibbs.ROOM)
            self.make_room(row_x, block, 2 * room)

    def _add_states(self, x: Any, a: Any, y: Any) -> tuple[int, int]:
        """Add x and y unless they are known, and return their indices. An error changes nothing."""
        row_x = self.find(x, f"before action {a!r}")
        row_y = self.find(y, f"after action {a!r} in state {x!r}")
        available_in_x, available_in_y = self.available(x), self.available(y)
        if not available_in_x[self.action(a, x)]:
            raise self._unavailable(a, x)
        if row_x is None:
            row_x = self.add_state(x, float(self.chain.M[0]), available_in_x)  # as the first state
            row_y = self.place(y)  # y may be the new state x
        if row_y is None:
            # A new state starts with the value of its predecessor, until the next sweep.
            row_y = self.add_state(y, float(self.chain.M[row_x]), available_in_y)
        return row_x, row_y

    def _unavailable(self, a: Any, x: Any) -> UnknownAction:
        """Return the error for an action that state x does not offer."""
        return UnknownAction(
            f"action {a!r} is not available in state {x!r}: choose from {self.actions_of(x)}"
        )

    def find(self, y: Any, where: str) -> int | None:
        """Return the index of state y, None if it is new; raise `BadEvidence` if it is invalid."""
        place = self.place(y, f" ({where})")
        if place is None and self.declared:
            raise BadEvidence(f"state {y!r} {where} is not one of the {len(self)} declared states")
        if place is None and y != y:  # NaN, or an object with such an __eq__
            raise BadEvidence(f"state {y!r} {where} differs from itself (NaN?): it cannot be a key")
        return place

    def absorb(self, other: "Ledger") -> None:
        """Record every transition of the other ledger here."""
        scatter = other.evidence.pairs[..., kernels.gibbs.SCATTER].copy()
        for entry, pair in other._rows():
            self.record(*entry[:3], entry.total, entry.n, scatter.item(pair))
            scatter[pair] = 0.0  # of all transitions of the pair: it has been added

    # -- reading -----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of observed transitions."""
        return int(self.chain.scalars[kernels.gibbs.COUNT])

    def _rows(self) -> Iterator[tuple[Entry, tuple[int, int]]]:
        """Yield every observed transition, and the indices of its state and action."""
        names, e, lanes = list(self.places), self.evidence, kernels.gibbs.LANES
        for x, name in enumerate(names):
            for a, action in enumerate(self.actions):
                first, size, _ = e.blocks[x, a // lanes].tolist()
                for t in range(first, first + size):
                    n, total, _ = e.rewards[t, :, a % lanes].tolist()
                    if n:
                        yield Entry(name, action, names[int(e.successor[t])], int(n), total), (x, a)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the observed transitions by state and action."""
        return (entry for entry, _ in self._rows())

    # -- saving and loading ------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return the ledger as named arrays, without unused capacity."""
        e, c, size, A = self.evidence, self.chain, len(self), len(self.actions)
        rows = _positions(e.blocks[:size])
        times, totals, _ = e.rewards[rows].swapaxes(0, 1)
        return {
            "states": pack(list(self.places), "the states"),
            "actions": pack(list(self.actions), "the actions"),
            "offered": self.has_action(),
            "known": e.blocks[:size, :, kernels.gibbs.SIZE].astype(np.int64),
            "r": e.pairs[:size, :A, kernels.gibbs.R].copy(),
            "scatter": e.pairs[:size, :A, kernels.gibbs.SCATTER].copy(),
            "successor": e.successor[rows].astype(np.int64),
            "observed": times > 0.0,
            "times": times[times > 0.0],
            "rewards": totals[times > 0.0],
            "sampler/Q": c.Q[:size, :A].copy(),
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
            raise IncompatibleState(f"saved with actions {actions}, not {list(self.actions)}")
        if self.declared and states != list(self.places):
            raise IncompatibleState(f"saved with states {states}, not {list(self.places)}")
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
        new._restore(arrays)
        self.places, self._used = new.places, new._used
        self.evidence, self.chain = new.evidence, new.chain

    def _restore(self, arrays: Arrays) -> None:
        """Write the saved transitions and the state of the sampler; the states are known."""
        for x, block in np.argwhere(arrays["known"] > FIRST_ROOM).tolist():
            self.make_room(x, block, arrays["known"].item(x, block))
        e, c, size, A = self.evidence, self.chain, len(self), len(self.actions)
        e.blocks[:size, :, kernels.gibbs.SIZE] = arrays["known"]
        rows = _positions(e.blocks[:size])
        e.successor[rows] = arrays["successor"]
        t, lane = np.nonzero(arrays["observed"])
        e.rewards[rows[t], kernels.gibbs.TIMES, lane] = arrays["times"]
        e.rewards[rows[t], kernels.gibbs.TOTAL, lane] = arrays["rewards"]
        e.pairs[:size, :A, kernels.gibbs.R] = arrays["r"]
        e.pairs[:size, :A, kernels.gibbs.SCATTER] = arrays["scatter"]
        c.Q[:size, :A], c.M[:size] = arrays["sampler/Q"], arrays["sampler/M"]
        c.scalars[:] = arrays["sampler/scalars"]
        kernels.gibbs.prepare(e, c, size)


def _positions(blocks: UIntArray) -> IntArray:
    """Return the positions of the transitions of these blocks, in order."""
    first, size, _ = blocks.reshape(-1, 3).T.astype(np.int64)
    return np.arange(size.sum()) + np.repeat(first - (size.cumsum() - size), size)


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
    size, lanes = len(states), kernels.gibbs.LANES
    blocks = (actions + lanes - 1) // lanes  # of a state
    table, transitions = (size, actions), arrays["successor"].shape
    observed = checked_array(arrays, "observed", np.bool_, (*transitions, lanes))
    shapes: dict[str, tuple[int, ...]] = {
        "r": table, "scatter": table, "times": (observed.sum(),), "rewards": (observed.sum(),),
        "sampler/Q": table, "sampler/M": (size,), "sampler/scalars": (SCALARS,),
        "known": (size, blocks), "successor": transitions, "offered": table,
    }  # fmt: skip
    dtypes = {"known": np.int64, "successor": np.int64, "offered": np.bool_}
    for name, shape in shapes.items():
        checked_array(arrays, name, dtypes.get(name, np.float64), shape)
    counts, y, n = arrays["known"], arrays["successor"], arrays["times"]
    scalars, is_complete = arrays["sampler/scalars"], (counts >= 0).all() and counts.sum() == y.size
    # The block of each transition.
    block = np.repeat(np.arange(counts.size), counts.ravel() if is_complete else 0)
    offered = np.zeros((size, blocks * lanes), bool)
    offered[:, :actions] = arrays["offered"]
    checks = {
        "known": is_complete,
        "successor": ((y >= 0) & (y < size)).all(),
        "observed": observed.any(1).all(),
        "times": ((n >= 1.0) & (n == np.floor(n))).all(),
        "scatter": (arrays["scatter"] >= 0.0).all(),
        "offered": offered.any(1).all()
        and not (is_complete and observed[~offered.reshape(-1, lanes)[block]].any()),
        "sampler/scalars": scalars[kernels.gibbs.SIGMA] > 0.0
        and 0.0 <= scalars[kernels.gibbs.CURSOR] <= size,
    }
    for name, is_valid in checks.items():
        if not is_valid:
            raise damaged(f"{name} is {arrays[name]}")
    if np.unique(block * max(size, 1) + y).size < y.size:  # one number for each block and y
        raise damaged("a transition occurs twice")
