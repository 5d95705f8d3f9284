"""The arms of a belief: names, which of them are active, and how many rewards each has paid.

    labels[j] ↔ j        active ⊆ {0 … N-1}        pulls[j]

A retired arm keeps its index and its posterior, so that it can be restored. In a block of
`choosing`, only the eligible arms are active, and they may have prices:

    P(a | m) = 1 for a = arg max_j m_j - price_j, j eligible

Nothing of the block is saved.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.names import Choice, ChoosesAmong, Names
from bayescontrol._support.saved import Array, Part, Plain, Saved, damaged, declare
from bayescontrol._support.values import distinct_texts
from bayescontrol.errors import IncompatibleState, UnknownArm
from bayescontrol.protocols import Probabilities, Summary
from bayescontrol.seeding import StreamLike

#: The number of arms, or their names.
Arms: TypeAlias = int | Sequence[Hashable]


class BestArmMode:
    """Base of modes that score their arms. The policy pulls the best arm, ties at random.

    If `prices` is not None, it has a price of each arm, and the best arm has the largest mean
    reward minus price.
    """

    __slots__ = ("arms", "prices")

    arms: tuple[Any, ...]
    prices: FloatArray | None
    #: The arrays with an entry for each arm, and the axis of the arms.
    by_arm: ClassVar[tuple[tuple[str, int], ...]] = ()

    @abstractmethod
    def _scores(self, x: Any) -> FloatArray:
        """Return the score of each arm in context x."""

    @abstractmethod
    def _mean_rewards(self, x: Any) -> FloatArray:
        """Return the mean reward of each arm in context x."""

    def _best_arms(self, x: Any) -> list[Any]:
        """Return all arms with the highest score in context x."""
        scores = self._scores(x) if self.prices is None else self._mean_rewards(x) - self.prices
        best = (scores == scores.max()).nonzero()[0]
        return [self.arms[j] for j in best.tolist()]

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return the best arm in context x; ties are broken at random."""
        best = self._best_arms(x)
        return best[rng.integers(len(best)) if len(best) > 1 else 0]

    def action_probabilities(self, x: Any) -> Probabilities:
        """Return probability 1 for the best arm in context x, split evenly between ties."""
        best = self._best_arms(x)
        return dict.fromkeys(best, 1.0 / len(best))

    def retire(self, arm: Hashable) -> None:
        """Remove the arm, so that this mode no longer pulls it."""
        others = [k for k, a in enumerate(self.arms) if a != arm]
        self.arms = tuple(self.arms[k] for k in others)
        for name, axis in (*self.by_arm, ("prices", 0)):
            if (values := getattr(self, name)) is not None:
                setattr(self, name, values.take(others, axis))


M = TypeVar("M", bound=BestArmMode)


class Roster(Saved):
    """The arms of a belief; arms can be added, retired and restored.

    >>> roster = Roster(["red", "blue"])
    >>> roster.retire("red")
    >>> roster.add("green")
    >>> roster.arms, roster.labels.place("green")
    (('blue', 'green'), 2)
    """

    saved_fields = declare(
        Plain("arms", lambda roster: list(roster.labels), "the list of arms"),
        Array("active", "all_active", shape=(None,), shared=True),
        Array("pulls", "counts", shape=(None,)),
    )

    def __init__(self, arms: Arms) -> None:
        self.labels = Names("arm", arms)
        #: The number of rewards of each arm: a list, because it is faster to update than an array.
        self.counts = [0] * len(self.labels)
        self._activate(np.arange(len(self.labels)))

    def _activate(self, active: IntArray) -> None:
        """Set the active arms."""
        self.all_active = active
        self.choose(None)

    def choose(self, choice: Choice | None) -> None:
        """Choose among these active arms, or among all of them, without prices."""
        eligible, prices = choice or (self.all_active, None)
        #: The active arms; in a block of `choosing` the eligible ones.
        self.active = eligible
        #: The prices of these arms; None if they are all the same.
        self.prices = prices
        #: The names of these arms, cached because every draw needs them.
        self.arms: tuple[Any, ...] = tuple(self.labels[j] for j in eligible.tolist())

    def add(self, arm: Hashable) -> None:
        """Add an active arm."""
        self.labels = self.labels.with_name(arm)
        self.counts.append(0)
        self._activate(np.append(self.all_active, len(self.labels) - 1))

    def retire(self, arm: Hashable) -> None:
        """Deactivate an arm, which keeps its index; raise UnknownArm if this is impossible."""
        j = self.labels.place(arm)
        if j not in self.all_active:
            raise UnknownArm(f"arm {arm!r} is already retired: active arms are {self._names()}")
        if self.all_active.size == 1:
            raise UnknownArm(f"arm {arm!r} is the last active arm: add another one first")
        self._activate(self.all_active[self.all_active != j])

    def restore(self, arm: Hashable) -> None:
        """Activate a retired arm again; raise UnknownArm if it is active."""
        j = self.labels.place(arm)
        if j in self.all_active:
            raise UnknownArm(f"arm {arm!r} is active: only a retired arm can be restored")
        self._activate(np.sort(np.append(self.all_active, j)))

    def _names(self) -> list[Any]:
        return [self.labels[j] for j in self.all_active.tolist()]

    def add_pulls(self, pulls: Iterable[int]) -> None:
        """Count more rewards, a number for each arm."""
        self.counts = [n + more for n, more in zip(self.counts, pulls, strict=True)]

    def _check_state(self, new: SimpleNamespace) -> None:
        new.labels, active = Names("arm", new.arms), new.all_active
        is_sorted = active.size > 0 and np.array_equal(active, np.unique(active))
        if not is_sorted or active[0] < 0 or active[-1] >= len(new.labels):
            raise damaged(f"the active arms are {active}")
        if len(new.counts) != len(new.labels) or min(new.counts) < 0:
            raise damaged(f"the pulls are {new.counts}")

    def _after_load(self) -> None:
        self._activate(self.all_active)


class HasArms(ChoosesAmong, Saved, Generic[M]):
    """Base of beliefs over arms. Subclasses set `_roster`, and `_last` to the mode drawn last."""

    saved_fields = declare(Part("", "_roster"))

    _roster: Roster
    _last: M | None = None

    def _after_copy(self) -> None:
        if self._last is not None:
            self._last = copy(self._last)

    def last(self) -> M | None:
        """Return the mode drawn last; None if an action was drawn without a mode since."""
        return self._last

    @property
    def arms(self) -> tuple[Any, ...]:
        """The active arms."""
        return self._roster.arms

    @property
    def labels(self) -> Names:
        """All arms, retired ones included, in the order of the rows."""
        return self._roster.labels

    def place(self, arm: Hashable) -> int:
        """Return the row of an arm; raise UnknownArm if there is no such arm."""
        return self._roster.labels.place(arm)

    def use_roster(self, roster: Roster) -> None:
        """Share the active arms of another belief with the same arms."""
        self._roster = roster
        self._roster_changed()

    def _roster_changed(self) -> None:
        """Update what depends on the active arms."""

    def _active_places(self) -> IntArray:
        return self._roster.all_active

    def _choose(self, choice: Choice | None) -> None:
        super()._choose(choice)
        self._roster.choose(choice)
        self._roster_changed()

    def _draw_priced(self, x: Any, rng: StreamLike) -> Any:
        """Draw an action by drawing a mode, which knows the prices."""
        belief: Any = self
        a = belief.sample(rng).act(x, rng)
        self._last = None
        return a

    def require_same_arms(self, roster: Roster) -> None:
        """Raise IncompatibleState if a saved roster has other arms."""
        if roster.labels != self._roster.labels:
            raise IncompatibleState(
                f"the state was saved with the arms {list(roster.labels)}, this belief has "
                f"{list(self.labels)}: create it with the same arms, or call add(arm, prior) for "
                "each missing one before you load"
            )

    @property
    def pulls(self) -> dict[Any, int]:
        """The number of rewards observed per arm, retired arms included."""
        return dict(zip(self.labels, self._roster.counts, strict=True))

    def _summary(self, means: Iterable[object]) -> Summary:
        """Return the mean, of which one for each arm is given, and the pulls of every arm."""
        rows = zip(distinct_texts(self.labels).values(), means, self._roster.counts, strict=True)
        return {name: {"mean": mean, "count": pulls} for name, mean, pulls in rows}

    @property
    def count(self) -> int:
        """The number of rewards observed."""
        return sum(self._roster.counts)

    def __len__(self) -> int:
        """The number of active arms."""
        return len(self._roster.arms)

    def retire(self, arm: Hashable) -> None:
        """Never pull this arm again. Late feedback for it is still learned.

        If the mode drawn last has no other arm, it is dropped: the next action draws a new mode.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(["red", "blue"]).belief()
        >>> belief.retire("red")
        >>> belief.observe(None, "red", 1)
        >>> belief.arms, belief.pulls
        (('blue',), {'red': 1, 'blue': 0})
        """
        self._roster.retire(arm)
        self._roster_changed()
        if self._last is not None:
            self._last.retire(arm)
            if not self._last.arms:  # it was drawn before the active arms were added
                self._last = None

    def is_retired(self, mode: M) -> bool:
        """Whether the mode has no arm left, or could pull a retired one."""
        return not mode.arms or not set(mode.arms) <= set(self.arms)

    def restore(self, arm: Hashable) -> None:
        """Activate a retired arm again, with its posterior.

        >>> from bayescontrol import BernoulliBandit
        >>> belief = BernoulliBandit(2).belief()
        >>> belief.retire(0)
        >>> belief.restore(0)
        >>> belief.arms
        (0, 1)
        """
        self._roster.restore(arm)
        self._roster_changed()

    def fast_forward(self, actions: IntArray) -> None:
        """Synchronise with a finished compiled loop, which has updated the posteriors."""
        pulls = np.bincount(actions, minlength=len(self._roster.labels))
        self._roster.add_pulls(pulls.tolist())
        self._last = None
