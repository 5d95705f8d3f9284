"""Who is in play: the arms by name, which of them are active, how often each was heard of.

    labels[j] ↔ j        active ⊆ {0 … N-1}        pulls[j]

An arm that is retired keeps its place, so that what is known of it can come back with it.
"""

from collections.abc import Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

from bayescontrol.arrays import Arrays, IntArray
from bayescontrol.errors import IncompatibleState, UnknownArm
from bayescontrol.problems.names import Names
from bayescontrol.values import pack, unpack


class Roster:
    """The arms of a belief, as they come and go.

    >>> roster = Roster(["red", "blue"])
    >>> roster.retire("red")
    >>> roster.add("green")
    >>> roster.arms, roster.labels.place("green")
    (('blue', 'green'), 2)
    """

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        self.labels = Names("arm", arms)
        self.counts: IntArray = np.zeros(len(self.labels), np.int64)
        self._play(np.arange(len(self.labels)))

    def _play(self, active: IntArray) -> None:
        """These are in play; their names are wanted at every draw."""
        self.active = active
        #: The arms in play.
        self.arms: tuple[Any, ...] = tuple(self.labels[j] for j in active.tolist())

    @property
    def pulls(self) -> dict[Any, int]:
        """How many rewards of every arm were seen, retired ones included."""
        return dict(zip(self.labels, self.counts.tolist(), strict=True))

    def __len__(self) -> int:
        """The number of arms in play."""
        return int(self.active.size)

    def add(self, arm: Hashable) -> None:
        """A new arm is in play."""
        self.labels = self.labels.and_one_more(arm)
        self.counts = np.append(self.counts, 0)
        self._play(np.append(self.active, len(self.labels) - 1))

    def retire(self, arm: Hashable) -> None:
        """Out of play, its place is kept."""
        j = self.labels.place(arm)
        if j not in self.active:
            raise UnknownArm(f"arm {arm!r} is retired already")
        if len(self) == 1:
            raise UnknownArm(f"arm {arm!r} is the last one in play: add another before it goes")
        self._play(self.active[self.active != j])

    def restore(self, arm: Hashable) -> None:
        """A retired arm is in play again."""
        j = self.labels.place(arm)
        if j in self.active:
            raise UnknownArm(f"arm {arm!r} is in play: only a retired arm can be restored")
        self._play(np.sort(np.append(self.active, j)))

    def save(self) -> Arrays:
        """Named arrays: `arms`, `active`, `pulls`.

        >>> sorted(Roster(2).save())
        ['active', 'arms', 'pulls']
        """
        return {
            "arms": pack(list(self.labels), "the names of the arms"),
            "active": self.active.copy(),
            "pulls": self.counts.copy(),
        }

    @classmethod
    def loaded(cls, arrays: Arrays) -> "Roster":
        """What `save` gave.

        >>> Roster.loaded(Roster(["red"]).save()).arms
        ('red',)
        """
        missing = {"arms", "active", "pulls"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        try:
            roster = cls(unpack(arrays["arms"]))
            active = np.array([index(j) for j in arrays["active"]], np.int64)
            counts = np.array([index(n) for n in arrays["pulls"]], np.int64)
        except (UnknownArm, TypeError, ValueError) as error:
            raise IncompatibleState(f"the saved state is damaged: {error}") from None
        known = active.size > 0 and bool(np.isin(active, roster.active).all())
        if not known or not np.array_equal(active, np.unique(active)):
            raise IncompatibleState(f"the saved state is damaged: active arms {active}")
        if counts.shape != roster.counts.shape or counts.min() < 0:
            raise IncompatibleState(f"the saved state is damaged: pulls {counts}")
        roster.counts = counts
        roster._play(active)
        return roster

    def copy(self) -> "Roster":
        """The same arms, free to go their own way.

        >>> one = Roster(2)
        >>> one.copy().retire(0)
        >>> one.arms
        (0, 1)
        """
        twin = Roster.__new__(Roster)
        twin.labels, twin.active, twin.arms = self.labels, self.active.copy(), self.arms
        twin.counts = self.counts.copy()
        return twin


class InPlay:
    """The face of a belief over arms that come and go: what its `_roster` knows.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).belief()
    >>> isinstance(belief, InPlay), belief.arms, belief.count
    (True, ('red', 'blue'), 0)
    """

    _roster: Roster

    @property
    def arms(self) -> tuple[Any, ...]:
        """The arms in play."""
        return self._roster.arms

    @property
    def labels(self) -> tuple[Any, ...]:
        """All arms, retired ones included, in the order of the rows."""
        return tuple(self._roster.labels)

    @property
    def pulls(self) -> dict[Any, int]:
        """How many rewards of every arm were seen, retired ones included."""
        return self._roster.pulls

    @property
    def count(self) -> int:
        """Rewards seen."""
        return int(self._roster.counts.sum())

    def __len__(self) -> int:
        """The number of arms in play."""
        return len(self._roster)

    def restore(self, arm: Hashable) -> None:
        """A retired arm is back, with all that is known of it.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(2).belief()
        >>> belief.retire(0)
        >>> belief.restore(0)
        >>> belief.arms
        (0, 1)
        """
        self._roster.restore(arm)
