"""The book of transitions: arrays that grow with what has been seen.

    (x, a, y) -> n(x,a,y), Σ r          states are numbered as they are found

Room is doubled when it runs out, for states and for the transitions of a pair; the kernels work
on the arrays in place and never allocate.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownArm
from bayescontrol.problems.bandits.labels import Labels
from bayescontrol.values import pack, unpack

__all__ = ["Ledger"]

#: Successors that a pair has room for at first.
FIRST_ROOM = 4
_PER_PAIR = ("n", "r", "r2", "s", "inverse", "spread", "pull", "first", "known", "room")
_PER_TRANSITION = ("successor", "weight", "count", "rewards")
_PER_STATE = ("from_prior", "from_data")


class Ledger:
    """Transitions by number, states and actions by name.

    >>> ledger = Ledger(2, np.array([1.0, 1.0, 1.0, 0.0]))
    >>> ledger.record("a", 1, "b", 2.5)
    >>> ledger.transitions()
    {('a', 1, 'b'): (1, 2.5)}
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        prior: FloatArray,
        states: Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        self.actions, self.prior, self.allowed = Labels(actions), prior, allowed
        self.places: dict[Any, int] = {}
        self.declared = states is not None
        self._pool = 0
        room = max(8, len(states or ()))
        self._make(room, room * len(self.actions) * FIRST_ROOM)
        for x in states or ():
            self._enter(x, 0.0)
        if states is not None and len(self) != len(states):
            raise BadEvidence("two of the declared states have one name: names must differ")

    def _make(self, states: int, pool: int) -> None:
        """Arrays with this much room, holding what there was."""
        actions = len(self.actions)
        old_evidence = getattr(self, "evidence", None)
        old_chain = getattr(self, "chain", None)
        pairs = states * actions
        sizes = dict.fromkeys(_PER_PAIR, pairs) | dict.fromkeys(_PER_TRANSITION, pool)
        sizes |= dict.fromkeys(_PER_STATE, states)
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, size in sizes.items():
            whole = name in ("first", "known", "room", "successor")
            arrays[name] = np.zeros(size, np.uint64 if whole else np.float64)
            if old_evidence is not None:
                old = getattr(old_evidence, name)
                arrays[name][: old.size] = old
        self.evidence = kernels.gibbs.Evidence(prior=self.prior, **arrays)
        Q, M, scalars = np.zeros((states, actions)), np.zeros(states), np.array([0.0, 1.0])
        if old_chain is not None:
            Q[: old_chain.M.size], M[: old_chain.M.size] = old_chain.Q, old_chain.M
            scalars = old_chain.scalars
        self.chain = kernels.gibbs.Chain(Q, M, scalars)

    # -- finding and entering -----------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of states found."""
        return len(self.places)

    def place(self, x: Any) -> int | None:
        """The number of state x, None if it was never seen."""
        try:
            return self.places.get(x)
        except TypeError:
            raise BadEvidence(f"state {x!r} cannot be the key of a dictionary: use a tuple") from None

    def actions_of(self, x: Any) -> tuple[Any, ...]:
        """What can be done in state x."""
        if self.allowed is None:
            return tuple(self.actions)
        own = tuple(self.allowed(x))
        if not own:
            raise BadEvidence(f"state {x!r} has no action: `allowed` must give at least one")
        for a in own:
            self.actions.place(a)
        return own

    def has_action(self) -> npt.NDArray[np.bool_]:
        """[x, a]: whether state x has action a."""
        s = self.evidence.s[: len(self) * len(self.actions)]
        return np.asarray(s.reshape(len(self), -1) > 0.0)

    def _enter(self, x: Any, level: float) -> int:
        own = self.actions_of(x)
        if len(self) == self.chain.M.size:
            self._make(2 * len(self), self.evidence.successor.size)
        place, actions = len(self), len(self.actions)
        if self._pool + actions * FIRST_ROOM > self.evidence.successor.size:
            self._make(self.chain.M.size, 2 * self.evidence.successor.size)
        for a, label in enumerate(self.actions):
            i = place * actions + a
            self.evidence.first[i], self.evidence.room[i] = self._pool, FIRST_ROOM
            self.evidence.n[i] = 0.0 if label in own else -1.0
            self._pool += FIRST_ROOM
        self.places[x] = place
        kernels.gibbs.add_state(self.evidence, self.chain, place, level)
        return place

    def _double(self, i: int) -> None:
        """Twice the room for pair i, at the end of the pool."""
        e = self.evidence
        first, known, room = int(e.first[i]), int(e.known[i]), 2 * int(e.room[i])
        while self._pool + room > self.evidence.successor.size:
            self._make(self.chain.M.size, 2 * self.evidence.successor.size)
        e = self.evidence
        for name in _PER_TRANSITION:
            column = getattr(e, name)
            column[self._pool : self._pool + known] = column[first : first + known]
        e.first[i], e.room[i] = self._pool, room
        self._pool += room

    def found(self, y: Any, after: int) -> int:
        """The number of state y; a new one enters at the level of the state it came after."""
        place = self.place(y)
        if place is None:
            if self.declared:
                raise BadEvidence(f"state {y!r} is none of the {len(self)} declared ones")
            place = self._enter(y, float(self.chain.M[after]) if len(self) else 0.0)
        return place

    def record(self, x: Any, a: Any, y: Any, r: float) -> None:
        """n(x,a,y) += 1, Σ r += r."""
        column = self.actions.place(a)
        if a not in self.actions_of(x):
            raise UnknownArm(f"state {x!r} has no action {a!r}: it has {self.actions_of(x)}")
        if self.place(y) is None:
            self.actions_of(y)  # whatever is wrong with y is said before x enters
        here = self.found(x, 0)
        there = self.found(y, here)
        self.learn(here, here * len(self.actions) + column, there, r)

    def learn(self, x: int, i: int, y: int, r: float) -> None:
        """As `record`, by numbers."""
        while kernels.gibbs.learn(self.evidence, x, i, y, r) == kernels.gibbs.FULL:
            self._double(i)

    def make_room(self, i: int, states: int) -> None:
        """Room for another transition of pair i, and for so many states more."""
        if self.evidence.known[i] == self.evidence.room[i]:
            self._double(i)
        while len(self) + states > self.chain.M.size:
            self._make(2 * self.chain.M.size, self.evidence.successor.size)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Transitions seen."""
        return int(self.evidence.from_data[: len(self)].sum())

    def transitions(self) -> dict[tuple[Any, Any, Any], tuple[int, float]]:
        """(x, a, y) -> n and the mean reward."""
        names, e = list(self.places), self.evidence
        seen = {}
        for x, name in enumerate(names):
            for a, action in enumerate(self.actions):
                i = x * len(self.actions) + a
                for t in range(int(e.first[i]), int(e.first[i]) + int(e.known[i])):
                    key = (name, action, names[int(e.successor[t])])
                    seen[key] = (int(e.count[t]), float(e.rewards[t] / e.count[t]))
        return seen

    # -- saving, merging -----------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Evidence by name; the chain under `sampler/`."""
        size, actions, e = len(self), len(self.actions), self.evidence
        cut = dict.fromkeys(_PER_PAIR, size * actions) | dict.fromkeys(_PER_TRANSITION, self._pool)
        cut |= dict.fromkeys(_PER_STATE, size)
        arrays = {name: getattr(e, name)[:length].copy() for name, length in cut.items()}
        arrays["states"] = pack(list(self.places), "the states")
        arrays["actions"] = pack(list(self.actions), "the actions")
        arrays["sampler/Q"] = self.chain.Q[:size].copy()
        arrays["sampler/M"] = self.chain.M[:size].copy()
        arrays["sampler/scalars"] = self.chain.scalars.copy()
        return arrays

    def loaded(self, arrays: Arrays) -> "Ledger":
        """A ledger like this one, holding what `save` gave."""
        names = {*_PER_PAIR, *_PER_TRANSITION, *_PER_STATE, "states", "actions"}
        names |= {"sampler/Q", "sampler/M", "sampler/scalars"}
        missing = names - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        if unpack(arrays["actions"]) != list(self.actions):
            raise IncompatibleState(f"saved with actions {arrays['actions']}")
        states = unpack(arrays["states"])
        size, actions = len(states), len(self.actions)
        twin = self.copy()
        twin.places = {x: place for place, x in enumerate(states)}
        pool = arrays["successor"].size
        fits = (
            len(twin.places) == size
            and all(arrays[name].shape == (size * actions,) for name in _PER_PAIR)
            and all(arrays[name].shape == (pool,) for name in _PER_TRANSITION)
            and all(arrays[name].shape == (size,) for name in (*_PER_STATE, "sampler/M"))
            and arrays["sampler/Q"].shape == (size, actions)
            and arrays["sampler/scalars"].shape == (2,)
            and self._inside(arrays, pool, size)
        )
        if not fits:
            raise IncompatibleState("the saved state is damaged: its arrays do not fit together")
        del twin.evidence, twin.chain
        twin._pool = pool
        twin._make(max(8, size), max(pool, 8 * actions * FIRST_ROOM))
        for name in (*_PER_PAIR, *_PER_TRANSITION, *_PER_STATE):
            column = getattr(twin.evidence, name)
            column[: arrays[name].size] = arrays[name]
        twin.chain.Q[:size], twin.chain.M[:size] = arrays["sampler/Q"], arrays["sampler/M"]
        twin.chain.scalars[:] = arrays["sampler/scalars"]
        return twin

    @staticmethod
    def _inside(arrays: Arrays, pool: int, states: int) -> bool:
        """No kernel may be led outside its arrays."""
        ends = arrays["first"] + arrays["room"]
        return bool(
            np.all(ends <= pool)
            and np.all(arrays["known"] <= arrays["room"])
            and np.all(arrays["successor"] < max(states, 1))
            and all(np.isfinite(arrays[name]).all() for name in (*_PER_TRANSITION, "n", "r", "r2"))
        )

    def absorb(self, other: "Ledger") -> None:
        """Every transition of the other ledger, as if it had been recorded here."""
        e = other.evidence
        names = list(other.places)
        for x, name in enumerate(names):
            for a, action in enumerate(other.actions):
                i = x * len(other.actions) + a
                for t in range(int(e.first[i]), int(e.first[i]) + int(e.known[i])):
                    y = names[int(e.successor[t])]
                    self.record(name, action, y, 0.0)
                    self._weigh(name, action, y, float(e.count[t]), float(e.rewards[t]))
                if e.known[i]:
                    j = self.places[name] * len(self.actions) + a
                    self.evidence.r2[j] += e.r2[i]

    def _weigh(self, x: Any, a: Any, y: Any, n: float, total: float) -> None:
        """One transition more was recorded, without pay: let it count n times, with its pay."""
        e, here, there = self.evidence, self.places[x], self.places[y]
        i = here * len(self.actions) + self.actions.place(a)
        first = int(e.first[i])
        t = first + e.successor[first : first + int(e.known[i])].tolist().index(there)
        e.count[t] += n - 1.0
        e.rewards[t] += total
        e.weight[t] += self.prior[2] * (n - 1.0)
        e.from_data[there] += n - 1.0
        e.n[i] += n - 1.0
        e.r[i] += total
        kernels.gibbs.prepare_pair(e, i)

    def copy(self) -> "Ledger":
        """The same ledger, free to go its own way."""
        twin = Ledger.__new__(Ledger)
        twin.__dict__.update(self.__dict__)
        twin.places = dict(self.places)
        twin.evidence = kernels.gibbs.Evidence(*(a.copy() for a in self.evidence))
        twin.chain = kernels.gibbs.Chain(*(a.copy() for a in self.chain))
        twin.prior = twin.evidence.prior
        return twin
