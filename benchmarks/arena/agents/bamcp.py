"""BAMCP (Guez, Silver & Dayan 2012): Bayes-adaptive Monte-Carlo planning for tiny MDPs.

    V(x, n) = max_a Σ_o P(o | n, x, a) (r_o + γ V(y_o, n + 1_{x,a,o}))
    P(o | x,a) ~ Dirichlet(α, …, α) over the declared outcomes o = (r, y),   n(x,a,o) counts them

    simulation   P(· | x,a) ~ Dirichlet(w(x,a,·)), drawn once for each pair that it visits
    in the tree  a = arg max_a Q(h,a) + c √(ln N(h) / N(h,a)),  untried actions first
    at a leaf    random actions up to the depth; the leaf joins the tree
    backup       R ← r + γ R,   N(h,a) += 1,   Q(h,a) += (R - Q(h,a)) / N(h,a)

Every action starts a new search from the current posterior. By lemma 1 of the paper it suffices to
draw the model at the root: no belief is updated in the tree.
"""

import math
import zlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.arena.agents.declared_model import DeclaredModel, require_integer

from bayescontrol._arrays import Arrays, FloatArray, IntArray, UIntArray, require_between
from bayescontrol.errors import (
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownState,
)
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.average_reward import draw_row
from bayescontrol.kernels.elementary import log
from bayescontrol.kernels.random import below, categorical
from bayescontrol.mdp.table import MDP, Step, advance
from bayescontrol.seeding import Stream

#: The default depth is where γ^depth falls below this.
NEGLIGIBLE = 0.01


class Outcomes(NamedTuple):
    """The outcomes o: weights w(x,a,o), reward and next state, and the actions that x offers."""

    weight: FloatArray
    reward: FloatArray
    successor: IntArray
    offered: npt.NDArray[np.bool_]


class Search(NamedTuple):
    """Settings of the search: simulations, their depth, the discount γ and the exploration c."""

    simulations: int
    depth: int
    gamma: float
    c: float


@leaf
def _any_action(offered: npt.NDArray[np.bool_], rng: UIntArray) -> int:
    count = 0
    for a in range(offered.size):
        count += offered[a]
    left = below(rng, count)
    for a in range(offered.size):
        if offered[a]:
            if left == 0:
                return a
            left -= 1
    return -1


@leaf
def _promising(
    offered: npt.NDArray[np.bool_],
    tries: FloatArray,
    value: FloatArray,
    visits: float,
    c: float,
) -> int:
    """arg max_a Q(h,a) + c √(ln N(h) / N(h,a)), the first of several, untried actions first."""
    best, top = -1, -math.inf
    spread = log(visits)
    for a in range(offered.size):
        if offered[a]:
            if tries[a] == 0.0:
                return a
            q = value[a] + c * math.sqrt(spread / tries[a])
            if q > top or best < 0:
                best, top = a, q
    return best


@leaf
def _draw_outcome(
    o: Outcomes,
    x: int,
    a: int,
    P: FloatArray,
    drawn: IntArray,
    simulation: int,
    nothing: FloatArray,
    scratch: FloatArray,
    rng: UIntArray,
) -> int:
    """Draw an outcome of (x,a) in the model of this simulation; its rows are drawn on demand."""
    if drawn[x, a] != simulation:
        draw_row(o.weight[x, a], nothing, P[x, a], scratch, rng)
        drawn[x, a] = simulation
    return categorical(rng, P[x, a])


@jit
def search(
    o: Outcomes,
    x: int,
    how: Search,
    value: FloatArray,
    tries: FloatArray,
    rng: UIntArray,
) -> int:
    """Write Q(h,a) and N(h,a) of the current history h in state x; return the number of nodes."""
    X, A, outcomes = o.weight.shape
    child = np.full((how.simulations + 1, A, outcomes), -1, np.int64)
    visits = np.zeros(how.simulations + 1)
    N = np.zeros((how.simulations + 1, A))
    Q = np.zeros((how.simulations + 1, A))
    P = np.empty((X, A, outcomes))
    drawn = np.full((X, A), -1, np.int64)
    nothing, scratch = np.zeros(outcomes), np.empty(outcomes)
    path, taken, paid = (
        np.empty(how.depth, np.int64), np.empty(how.depth, np.int64), np.empty(how.depth)
    )  # fmt: skip
    nodes = 1
    for simulation in range(how.simulations):
        here, node, length, in_tree = x, 0, 0, True
        ahead, discount = 0.0, 1.0
        for d in range(how.depth):
            leaf_now = in_tree and visits[node] == 0.0
            if in_tree and not leaf_now:
                a = _promising(o.offered[here], N[node], Q[node], visits[node], how.c)
            else:
                a = _any_action(o.offered[here], rng)
            i = _draw_outcome(o, here, a, P, drawn, simulation, nothing, scratch, rng)
            here = o.successor[i]
            if in_tree:
                path[length], taken[length], paid[length] = node, a, o.reward[i]
                length += 1
                if leaf_now:
                    in_tree = False
                elif d + 1 < how.depth:
                    if child[node, a, i] < 0:
                        child[node, a, i] = nodes
                        nodes += 1
                    node = child[node, a, i]
            else:
                ahead += discount * o.reward[i]
                discount *= how.gamma
        for k in range(length - 1, -1, -1):
            node, a = path[k], taken[k]
            ahead = paid[k] + how.gamma * ahead
            visits[node] += 1.0
            N[node, a] += 1.0
            Q[node, a] += (ahead - Q[node, a]) / N[node, a]
    value[:] = Q[0]
    tries[:] = N[0]
    return nodes


class BAMCP:
    """Tree search over histories, under a Dirichlet prior over the outcomes (r, y) of each pair.

    `alpha` is one number, or one for each [x, a, o], 0 where o is impossible. `c` is the weight of
    exploration, on the scale of the rewards within the depth. γ = 1 needs a depth.

    Two levers that pay 0 or 1, with uniform priors: two pulls are worth 13/12.

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
        gamma = require_between("gamma", gamma, 0, 1, ends="(]")
        if depth is None:
            if gamma == 1.0:
                raise ValueError("gamma=1 needs depth=, the number of steps to look ahead")
            depth = max(1, math.ceil(math.log(NEGLIGIBLE) / math.log(gamma)))
        self._search_settings = Search(
            require_integer("simulations", simulations, 1),
            require_integer("depth", depth, 1),
            gamma,
            require_between("c", c, 0, math.inf, ends="[)"),
        )
        self._declared = declared = DeclaredModel(
            states, actions, allowed, {"search": tuple(self._search_settings)}
        )
        self.outcomes = _outcomes(declared, outcomes)
        shape = (*declared.allowed.shape, len(self.outcomes))
        #: α(x,a,o).
        self.alpha = _alpha(alpha, shape, declared)
        self._numbers = {o: i for i, o in enumerate(self.outcomes)}
        declared.settings["outcomes"] = [tuple(o) for o in self.outcomes]
        declared.settings["alpha"] = zlib.crc32(self.alpha.tobytes())
        declared.arrays = {
            "x": np.array(0 if start is None else declared.states.place(start)),
            "n": np.zeros(shape),
        }

    @classmethod
    def on(cls, mdp: MDP, **settings: Any) -> "BAMCP":
        """The agent for a given MDP: every (r, y) of the MDP is a possible outcome of every pair.

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

    # -- agent ---------------------------------------------------------------------------------

    def act(self, rng: Stream) -> Any:
        """The action with the highest value in the search, the first of equals."""
        values = self.action_values(rng)
        return max(values, key=values.__getitem__)

    def observe(self, a: Any, o: Any) -> None:
        """n(x,a,o) += 1 and move to y. On an error the agent is unchanged."""
        here, column, r, there = self._declared.read(self.x, a, o)
        step = Step(r, self._declared.states[there])
        i = self._numbers.get(step)
        if i is None or self.alpha[here, column, i] == 0.0:
            raise ImpossibleObservation(
                f"{step} after action {a!r} in state {self.x!r} is not a declared outcome"
            )
        self._declared.arrays["n"][here, column, i] += 1.0
        self._declared.arrays["x"][...] = there

    def action_values(self, rng: Stream, left: int | None = None) -> dict[Any, float]:
        """Q(h,a) of the actions that x offers with `left` remaining steps, by default the depth."""
        declared = self._declared
        reward = np.array([o.reward for o in self.outcomes])
        successor = np.array([declared.states.place(o.state) for o in self.outcomes], np.int64)
        model = Outcomes(self.alpha + declared.arrays["n"], reward, successor, declared.allowed)
        how = (
            self._search_settings
            if left is None
            else self._search_settings._replace(depth=require_integer("left", left, 1))
        )
        value, tries = np.empty(len(declared.actions)), np.empty(len(declared.actions))
        x = int(declared.arrays["x"])
        search(model, x, how, value, tries, rng.state)
        return {declared.actions[a]: float(value[a]) for a in np.flatnonzero(tries).tolist()}

    @property
    def x(self) -> Any:
        """The current state."""
        return self._declared.states[int(self._declared.arrays["x"])]

    def predictive(self, a: Any) -> dict[Step, float]:
        """P(o | n, x, a) = (α + n(x,a,o)) / Σ_o (α + n(x,a,o)).

        >>> BAMCP(1, 1, [(0.0, 0), (1.0, 0)]).predictive(0)
        {Step(reward=0.0, state=0): 0.5, Step(reward=1.0, state=0): 0.5}
        """
        here, column = self._declared.action(self.x, a)
        weight = self.alpha[here, column] + self._declared.arrays["n"][here, column]
        p = (weight / weight.sum()).tolist()
        return {o: q for o, q in zip(self.outcomes, p, strict=True) if q > 0.0}

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return named arrays from which `load` continues bit for bit."""
        return self._declared.save()

    def load(self, arrays: Arrays) -> None:
        """Restore the state that `save` returned for an agent with the same settings."""
        declared = self._declared.copy()
        declared.load(arrays)
        if not 0 <= (x := int(declared.arrays["x"])) < len(declared.states):
            raise IncompatibleState(
                f"the saved state is damaged: state {x} of {len(declared.states)}"
            )
        self._declared = declared

    def copy(self) -> "BAMCP":
        """An independent copy."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._declared = self._declared.copy()
        return twin

    def __repr__(self) -> str:
        return f"BAMCP({self._declared!r}, {len(self.outcomes)} outcomes, in state {self.x!r})"


def _outcomes(
    declared: DeclaredModel, outcomes: Iterable[tuple[float, Hashable]]
) -> tuple[Step, ...]:
    steps = tuple(Step(float(r) + 0.0, y) for r, y in outcomes)
    if not steps:
        raise InvalidTable("no outcomes: declare the possible (reward, next state) pairs")
    for o in steps:
        if not math.isfinite(o.reward):
            raise InvalidTable(f"{o}: the reward of an outcome must be a finite number")
        try:
            declared.states.place(o.state)
        except UnknownState as error:
            raise InvalidTable(f"{o}: {error}") from None
    if len(set(steps)) < len(steps):
        raise InvalidTable("an outcome is declared twice: declare each (reward, state) once")
    return steps


def _alpha(
    alpha: npt.ArrayLike, shape: tuple[int, int, int], declared: DeclaredModel
) -> FloatArray:
    try:
        given = np.array(np.broadcast_to(np.asarray(alpha, np.float64), shape))
    except (TypeError, ValueError):
        raise InvalidPrior(f"alpha must be a number, or an array of shape {shape}") from None
    bad = ~((given >= 0.0) & (given < np.inf)).all(2) | (declared.allowed & ~(given > 0.0).any(2))
    if bad.any():
        x, a = np.argwhere(bad)[0].tolist()
        raise InvalidPrior(
            f"state {declared.states[x]!r}, action {declared.actions[a]!r}: alpha is "
            f"{given[x, a]}, "
            "it must be finite and nonnegative, and positive for at least one outcome"
        )
    return given
