"""When to draw a mode again.

The rule draws m_t ~ P(m | âo_<t) at every step. The paper's remedy for its counterexample is
to "sample actions from the same operation mode for several time steps in a row". A schedule
decides at every step whether to draw a new mode. It is any function `(held, rng) -> bool`;
this module has the usual ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bayescontrol._arrays import as_integer, require_between
from bayescontrol._mode_queries import require_instance
from bayescontrol.seeding import Stream

X = TypeVar("X")


class Held(NamedTuple, Generic[X]):
    """The held mode, as a schedule sees it before the next action.

    >>> Held(t=7, age=3, x="left", drawn_in="middle").drawn_at
    4
    """

    t: int  #: actions issued so far
    age: int  #: number of these issued by the held mode
    x: X  #: the current situation
    drawn_in: X  #: the situation in which the mode was drawn

    @property
    def drawn_at(self) -> int:
        """The time t at which the held mode was drawn."""
        return self.t - self.age


Schedule: TypeAlias = Callable[[Held[Any], Stream], bool]


def require_schedule(schedule: Any) -> Any:
    """Return the schedule; raise an error if it is a class or not a function."""
    require_instance(schedule, "the schedule")
    if not callable(schedule):
        raise TypeError(f"schedule={schedule!r} must be a function, such as Every(3)")
    return schedule


def every_step(held: Held[Any], rng: Stream) -> bool:
    """Draw at every step, as printed in the paper: m_t ~ P(m | âo_<t) for every t.

    >>> every_step(Held(t=1, age=1, x=None, drawn_in=None), rng=None)
    True
    """
    return True


def doubling(held: Held[Any], rng: Stream) -> bool:
    """Draw at t = 0, 1, 2, 4, 8, …: hold each mode for as long as all earlier ones together.

    >>> doubling(Held(t=7, age=3, x=None, drawn_in=None), rng=None)
    False
    >>> doubling(Held(t=8, age=4, x=None, drawn_in=None), rng=None)
    True
    """
    return held.age >= max(1, held.drawn_at)


def growing(held: Held[Any], rng: Stream) -> bool:
    """Draw at t = 0, 1, 3, 6, 10, …: hold each mode one step longer than the last.

    There are about √(2t) draws until t, so that errors of long and of short episodes balance.

    >>> growing(Held(t=5, age=2, x=None, drawn_in=None), rng=None)
    False
    >>> growing(Held(t=6, age=3, x=None, drawn_in=None), rng=None)
    True
    """
    # Draw k is at k (k - 1) / 2, and its mode is held for k steps.
    return (2 * held.age - 1) ** 2 >= 1 + 8 * held.drawn_at


@dataclass(frozen=True)
class Every:
    """Draw at t = 0, k, 2k, …

    >>> Every(3)(Held(t=3, age=3, x=None, drawn_in=None), rng=None)
    True
    """

    k: int

    def __post_init__(self) -> None:
        as_integer("k", self.k, 1)

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        """Return True after k steps."""
        return held.age >= self.k


@dataclass(frozen=True)
class Geometric:
    """Draw again with probability p at each step: a mode is held 1/p steps on average.

    >>> from bayescontrol.seeding import Stream
    >>> Geometric(1.0)(Held(t=1, age=1, x=None, drawn_in=None), Stream(0))
    True
    """

    p: float

    def __post_init__(self) -> None:
        require_between("p", self.p, 0.0, 1.0, ends="(]")

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        """Return True with probability p."""
        return rng.random() < self.p


@dataclass(frozen=True)
class WhenSituationReturns(Generic[X]):
    """Draw when x = `home`; by default, `home` is the situation in which the mode was drawn.

    >>> WhenSituationReturns()(Held(t=5, age=5, x=2, drawn_in=2), rng=None)
    True
    >>> WhenSituationReturns(home=0)(Held(t=5, age=5, x=2, drawn_in=2), rng=None)
    False
    """

    home: X | None = None

    def __call__(self, held: Held[X], rng: Stream) -> bool:
        """Return True if the situation is `home`."""
        home = held.drawn_in if self.home is None else self.home
        return bool(np.all(held.x == home))  # arrays must agree in all entries


@dataclass(frozen=True)
class MinimumDwell:
    """Hold a mode for at least `steps` steps, then follow the schedule `then`.

    >>> MinimumDwell(4)(Held(t=3, age=3, x=None, drawn_in=None), rng=None)
    False
    """

    steps: int
    then: Schedule = every_step

    def __post_init__(self) -> None:
        as_integer("steps", self.steps, 1)
        require_schedule(self.then)

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        """Return True after `steps` steps, if `then` agrees."""
        return held.age >= self.steps and self.then(held, rng)
