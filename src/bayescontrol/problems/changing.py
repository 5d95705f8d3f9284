"""Problems and worlds that change.

    Q(o_t | a_t) = Q_k(o_t | a_t)        t_k ≤ t < t_{k+1}: world k lasts from step t_k

`problem.changing()` returns a `Changing`: the same problem with a belief that follows changes.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from copy import deepcopy
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.change_points import ChangePointBelief
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.fused import find_loop
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule, Rule
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_stream


class ChangingEnvironment:
    """A world that becomes another one at given steps; `worlds` maps steps to worlds.

    The state of the world, or its context, stays as it is. Other attributes are those of the
    current world.

    >>> from bayescontrol import BernoulliBandit
    >>> bandit = BernoulliBandit(2)
    >>> world = ChangingEnvironment({0: bandit.environment([0, 1]), 2: bandit.environment([1, 0])})
    >>> [world.respond(1, Stream(0)) for _ in range(4)]
    [1.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, worlds: Mapping[int, Any]) -> None:
        self.worlds = {index(t): worlds[t] for t in sorted(worlds)}
        if not self.worlds or min(self.worlds) != 0:
            raise InvalidTable(f"worlds begin at steps {list(worlds)}: the first must begin at 0")
        for world in self.worlds.values():
            if not hasattr(world, "change_to"):
                raise MissingCapability(
                    f"{world!r} cannot change: it has no method change_to(world)"
                )
        self.world: Any = deepcopy(self.worlds[0])
        #: The number of steps so far.
        self.t = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "world" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.world, name)

    def respond(self, a: Any, rng: StreamLike) -> Any:
        """Draw the answer of the current world."""
        self._enter_step()
        o = self.world.respond(a, rng)
        self.t += 1
        return o

    def _enter_step(self) -> None:
        """Change the world if a new one begins at this step."""
        if self.t and self.t in self.worlds:
            self.world.change_to(self.worlds[self.t])

    def mean_rewards(self, record: Record, start: npt.ArrayLike | None = None) -> FloatArray:
        """Return E[r] of every arm at every step of a run from the first step on.

        `start` is the first context, by default that of the first world.
        """
        steps, times, means = len(record), [*self.worlds, len(record)], []
        for k, world in enumerate(self.worlds.values()):
            if hasattr(world, "mean_rewards"):
                first = self.worlds[0].start if start is None else start
                table = world.mean_rewards(record, first)
            else:
                table = np.broadcast_to(world.means, (steps, len(world.means)))
            means.append(table[times[k] : max(times[k + 1], times[k])])
        return np.concatenate(means)

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return a loop that runs the compiled loops of the worlds one after the other."""
        return None if find_loop(agent, environment.world) is None else _run

    def __repr__(self) -> str:
        return f"ChangingEnvironment({self.world!r}, {len(self.worlds)} worlds, step {self.t})"


def _run(agent: Any, environment: ChangingEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop of each world."""
    records, last, times = list[Record](), environment.t + steps, list(environment.worlds)
    while environment.t < last or not records:
        environment._enter_step()
        k = bisect_right(times, environment.t)
        n = min(times[k] if k < len(times) else last, last) - environment.t
        loop = find_loop(agent, environment.world)
        assert loop is not None  # the worlds differ in their parameters only
        records.append(loop(agent, environment.world, n, p, q))
        environment.t += n
    actions = np.concatenate([record.actions for record in records])
    return Record(actions, np.concatenate([record.observations for record in records]))


class Changing:
    """A problem whose world may change at any time, from `problem.changing()`.

    >>> from bayescontrol import BernoulliBandit
    >>> bandit = BernoulliBandit(["red", "blue"]).changing()
    >>> bandit.agent().action_probabilities()
    {'red': 0.5, 'blue': 0.5}
    """

    def __init__(
        self, problem: Any, belief: Callable[..., ChangePointBelief], options: Mapping[str, Any]
    ) -> None:
        self.problem, self.options = problem, dict(options)
        self._belief = belief
        self.belief()  # validates the options

    def belief(self) -> ChangePointBelief:
        """Return the prior belief."""
        return self._belief(**self.options)

    def agent(self, *arguments: Any, **options: Any) -> Rule:
        """Return an agent; the arguments are those of the static problem."""
        static = self.problem.agent(*arguments, **options)
        return ControlRule(self.belief(), static.x, static.advance, static.schedule)

    def environment(
        self, truth: Any, *arguments: Any, changes: Mapping[int, Any] | None = None, **options: Any
    ) -> ChangingEnvironment:
        """Return a world with this truth; `changes` maps steps to later truths.

        The other arguments are those of the static problem.
        """
        truths = {0: truth, **(changes or {})}
        make = self.problem.environment
        return ChangingEnvironment({t: make(v, *arguments, **options) for t, v in truths.items()})

    def draw(
        self, seed: SeedLike, *arguments: Any, rate: float, steps: int, **options: Any
    ) -> ChangingEnvironment:
        """Return a world drawn from the prior; it is drawn anew with probability `rate` per step.

        The world stays as it is after `steps` steps.
        """
        if not 0.0 <= rate <= 1.0:
            raise InvalidTable(f"rate={rate}: expected a probability")
        stream = as_stream(seed)
        times = [0, *(t for t in range(1, steps) if stream.uniform() < rate)]
        worlds = {t: self.problem.draw(stream, *arguments, **options) for t in times}
        return ChangingEnvironment(worlds)

    def __repr__(self) -> str:
        return f"{self.problem!r}.changing()"
