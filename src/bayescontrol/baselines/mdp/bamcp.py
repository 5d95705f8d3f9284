"""BAMCP (Guez, Silver & Dayan 2012): the Bayes-optimal plan, approached by simulation.

    V(x, n) = max_a Σ_o P(o | n, x, a) (r_o + γ V(y_o, n + 1_{x,a,o}))
    P(o | x,a) ~ Dirichlet(α, …, α) over the declared outcomes o = (r, y),   n(x,a,o) counts them

The search of `kernels.bamcp` is made anew for every action, from what is believed by then. It
looks `depth` steps ahead, by default until γ^depth < .01. For tiny problems: what it needs grows
with the number of histories. `baselines.bayes_optimal` has the plan itself, for finite classes.
"""

import math
import zlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.baselines.mdp.book import Book, whole
from bayescontrol.baselines.mdp.checks import between
from bayescontrol.errors import (
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownState,
)
from bayescontrol.mdp.table import MDP, Step, advance
from bayescontrol.seeding import Stream

#: What is left of a reward beyond the depth, by default.
NEGLIGIBLE = 0.01


class BAMCP:
    """Tree search over histories, under a Dirichlet prior over the outcomes (r, y) of each pair.

    `alpha` is one number, or one for each [x, a, o], 0 where o is impossible. `c` is the weight of
    exploration, on the scale of what is earned within the depth. With γ = 1 give the depth.

    Two levers that pay 0 or 1, nothing known: two pulls are worth 13/12.

    >>> agent = BAMCP(1, 2, [(0.0, 0), (1.0, 0)], gamma=1.0, depth=2, simulations=20_000)
    >>> round(max(agent.action_values(Stream(0)).values()), 1)
    1.1
    >>> agent.observe(1, (1.0, 0))
    >>> agent.act(Stream(0))
    1
    """

    format_name: ClassVar[str] = "BAMCP"
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    def __init__(
        self,
        states: int | Iterable[Hashable],
        actions: int | Iterable[Hashable],
        outcomes: Iterable[tuple[float, Hashable]],
        *,
        alpha: npt.ArrayLike = 1.0,
        gamma: float = 0.95,
        depth: int | None = None,
        simulations: int = 1_000,
        c: float = 1.0,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        gamma = between("gamma", gamma, 0, 1, ends="(]")
        if depth is None:
            if gamma == 1.0:
                raise ValueError("gamma=1: say with depth=... how many steps count")
            depth = max(1, math.ceil(math.log(NEGLIGIBLE) / math.log(gamma)))
        self._how = kernels.bamcp.Search(
            whole("simulations", simulations, 1),
            whole("depth", depth, 1),
            gamma,
            between("c", c, 0, math.inf, ends="[)"),
        )
        self._book = book = Book(states, actions, allowed, {"search": tuple(self._how)})
        self.outcomes = _outcomes(book, outcomes)
        shape = (*book.allowed.shape, len(self.outcomes))
        #: α(x,a,o).
        self.alpha = _alpha(alpha, shape, book)
        self._numbers = {o: i for i, o in enumerate(self.outcomes)}
        book.settings["outcomes"] = [tuple(o) for o in self.outcomes]
        book.settings["alpha"] = zlib.crc32(self.alpha.tobytes())
        book.arrays = {
            "x": np.array(0 if start is None else book.states.place(start)),
            "n": np.zeros(shape),
        }

    @classmethod
    def on(cls, mdp: MDP, **settings: Any) -> "BAMCP":
        """The agent for a given MDP: its (r, y) are the outcomes, of any pair for all it knows.

        >>> from bayescontrol.mdp import chain_mdp
        >>> BAMCP.on(chain_mdp(3)).outcomes[-1], len(BAMCP.on(chain_mdp(3)).outcomes)
        (Step(reward=1.0, state=0), 4)
        """
        rows = np.unique(np.column_stack([mdp.rewards, mdp.successor]), axis=0)
        steps = [Step(float(r), mdp.states[int(y)]) for r, y in rows]
        settings = {"alpha": 1.0 / len(steps), **settings}
        if not mdp.allowed.all():
            settings = {"allowed": mdp.actions_in, **settings}
        return cls(tuple(mdp.states), tuple(mdp.actions), steps, **settings)

    # -- an agent in the stream ----------------------------------------------------------------

    def act(self, rng: Stream) -> Any:
        """The action that the search values most, the first of several."""
        values = self.action_values(rng)
        return max(values, key=values.__getitem__)

    def observe(self, a: Any, o: Any) -> None:
        """n(x,a,o) += 1, move on to y. On an error nothing has changed."""
        here, column, r, there = self._book.read(self.x, a, o)
        step = Step(r, self._book.states[there])
        i = self._numbers.get(step)
        if i is None or self.alpha[here, column, i] == 0.0:
            raise ImpossibleObservation(
                f"{step} after action {a!r} in state {self.x!r} is none of its outcomes: declare it"
            )
        self._book.arrays["n"][here, column, i] += 1.0
        self._book.arrays["x"][...] = there

    def action_values(self, rng: Stream, left: int | None = None) -> dict[Any, float]:
        """Q(h,a) of the actions that x offers, with `left` steps to go, by default the depth."""
        book = self._book
        reward = np.array([o.reward for o in self.outcomes])
        successor = np.array([book.states.place(o.state) for o in self.outcomes], np.int64)
        model = kernels.bamcp.Outcomes(
            self.alpha + book.arrays["n"], reward, successor, book.allowed
        )
        how = self._how if left is None else self._how._replace(depth=whole("left", left, 1))
        value, tries = np.empty(len(book.actions)), np.empty(len(book.actions))
        x = int(book.arrays["x"])
        kernels.bamcp.search(model, x, how, value, tries, rng.state)
        return {book.actions[a]: float(value[a]) for a in np.flatnonzero(tries).tolist()}

    @property
    def x(self) -> Any:
        """The state of now."""
        return self._book.states[int(self._book.arrays["x"])]

    def predictive(self, a: Any) -> dict[Step, float]:
        """P(o | n, x, a) = (α + n(x,a,o)) / Σ_o (α + n(x,a,o)).

        >>> BAMCP(1, 1, [(0.0, 0), (1.0, 0)]).predictive(0)
        {Step(reward=0.0, state=0): 0.5, Step(reward=1.0, state=0): 0.5}
        """
        here, column = self._book.action(self.x, a)
        weight = self.alpha[here, column] + self._book.arrays["n"][here, column]
        p = (weight / weight.sum()).tolist()
        return {o: q for o, q in zip(self.outcomes, p, strict=True) if q > 0.0}

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return self._book.save()

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent built alike."""
        book = self._book.copy()
        book.load(arrays)
        if not 0 <= (x := int(book.arrays["x"])) < len(book.states):
            raise IncompatibleState(f"the saved state is damaged: state {x} of {len(book.states)}")
        self._book = book

    def copy(self) -> "BAMCP":
        """The same agent, free to go its own way."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._book = self._book.copy()
        return twin

    def __repr__(self) -> str:
        return f"BAMCP({self._book!r}, {len(self.outcomes)} outcomes, in state {self.x!r})"


def _outcomes(book: Book, outcomes: Iterable[tuple[float, Hashable]]) -> tuple[Step, ...]:
    steps = tuple(Step(float(r) + 0.0, y) for r, y in outcomes)
    if not steps:
        raise InvalidTable("no outcomes: declare what rewards and next states there may be")
    for o in steps:
        if not math.isfinite(o.reward):
            raise InvalidTable(f"{o}: the reward of an outcome must be a finite number")
        try:
            book.states.place(o.state)
        except UnknownState as error:
            raise InvalidTable(f"{o}: {error}") from None
    if len(set(steps)) < len(steps):
        raise InvalidTable("an outcome is declared twice: each (reward, state) once")
    return steps


def _alpha(alpha: npt.ArrayLike, shape: tuple[int, int, int], book: Book) -> FloatArray:
    try:
        given = np.array(np.broadcast_to(np.asarray(alpha, np.float64), shape))
    except (TypeError, ValueError):
        raise InvalidPrior(f"alpha must be a number, or numbers of shape {shape}") from None
    bad = ~((given >= 0.0) & (given < np.inf)).all(2) | (book.allowed & ~(given > 0.0).any(2))
    if bad.any():
        x, a = np.argwhere(bad)[0].tolist()
        raise InvalidPrior(
            f"state {book.states[x]!r}, action {book.actions[a]!r}: alpha is {given[x, a]}, "
            "it must be finite, nowhere below 0, and somewhere above"
        )
    return given
