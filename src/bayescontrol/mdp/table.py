"""Markov decision problems as tables of transitions, and as environments.

    P(r, y | x, a)     state x, action a, next state y, reward r
    P(y | x, a)        = Σ_r P(r, y | x, a)         `transition[x, a, y]`
    r(x, a)            = Σ_{r,y} r P(r, y | x, a)    `reward[x, a]`

    o = (r, y) ~ P(r, y | x, a),   x ← y            one step of the environment

The table is sparse: the entries of each pair (x, a) in order of falling probability. One (x, a, y)
may have several rewards. The agent observes the state, so its situation is the last state.
"""

import math
import sys
from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import compress
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray, as_numbers
from bayescontrol._support.columns import as_rows
from bayescontrol._support.names import Names
from bayescontrol.errors import BadEvidence, InvalidTable, UnknownAction, counted
from bayescontrol.record import Record
from bayescontrol.seeding import SeedLike, StreamLike, as_stream, state_of
from bayescontrol.situations import follows_state


class Step(NamedTuple):
    """An observation of an MDP: the reward r and the next state y.

    >>> Step(1.0, "goal").state
    'goal'
    """

    reward: float
    state: Any


def read_step(x: Any, a: Any, o: Any, largest: float = sys.float_info.max) -> tuple[float, Any]:
    """Return o as (r, y); raise `BadEvidence` unless it is a pair with a reward in ±`largest`."""
    try:
        r, y = o
        reward = float(r) if isinstance(r, Real) else math.nan
    except (TypeError, ValueError, OverflowError):
        where = f"after action {a!r} in state {x!r}"
        raise BadEvidence(f"observation {o!r} {where}: expected (reward, state)") from None
    if not abs(reward) <= largest:  # also if it is NaN
        bounds = "" if largest == sys.float_info.max else f" within ±{largest:g}"
        raise BadEvidence(
            f"reward {r!r} after action {a!r} in state {x!r} is invalid: "
            f"expected a finite number{bounds}"
        )
    return reward, y


def step_record(actions: IntArray, rows: AnyArray, labels: Names, states: Names) -> Record:
    """Return the record of a compiled loop, whose actions and states are given by number."""
    if not states.are_numbers:
        rows = as_rows({"reward": rows["reward"], "state": states.column(rows["state"])})
    return Record(labels.column(actions), rows)


@follows_state
def advance(x: Any, a: Any, o: Any) -> Any:
    """T(x, a, o) = y for o = (r, y); malformed observations leave the state unchanged."""
    try:
        _, y = o
    except (TypeError, ValueError):
        return x  # the belief raises the error
    return y


class MDPEnvironment:
    """The environment Q of an MDP; `x` is its current state and `at` the index of that state.

    >>> from bayescontrol import Stream
    >>> from bayescontrol.mdp import chain_mdp
    >>> world = chain_mdp(2).environment()
    >>> [world.respond(0, Stream(0)) for _ in range(3)]
    [Step(reward=0.0, state=1), Step(reward=1.0, state=0), Step(reward=0.0, state=1)]
    >>> world.respond(2, Stream(0))
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 2: the actions are 0, 1
    """

    #: `interact` rejects an agent that tracks the state and starts in a different one.
    shows_state: ClassVar[bool] = True

    def __init__(self, mdp: "MDP", start: Hashable | None = None) -> None:
        self.mdp = mdp
        self.at = 0 if start is None else mdp.states.place(start)

    @property
    def x(self) -> Any:
        """The current state."""
        return self.mdp.states[self.at]

    def respond(self, a: Hashable, rng: StreamLike) -> Step:
        """Draw (r, y) ~ P(r, y | x, a); raise `UnknownAction` if a is not available in x."""
        mdp, tables = self.mdp, self.mdp.tables
        action = mdp.actions.place(a)
        if not mdp.allowed[self.at, action]:
            offered = ", ".join(map(repr, mdp.actions_in(self.x)))
            raise UnknownAction(
                f"action {a!r} is not available in state {self.x!r}: choose from {offered}"
            )
        entry = kernels.mdp.respond(tables, self.at, action, len(mdp.actions), state_of(rng))
        self.at = int(tables.successor[entry])
        return Step(float(tables.reward[entry]), self.x)

    def __repr__(self) -> str:
        return f"MDPEnvironment({self.mdp!r} in state {self.x!r})"


#: Allowed rounding error in a sum of probabilities; they are then normalised.
TOLERANCE = 1e-9


class MDP:
    """A Markov decision problem: P(y | x, a) and a reward r(x, a) or r(x, a, y).

    `states` and `actions` are optional names. `allowed[x, a]` says which actions are available in
    a state; by default all of them are.

    `transition[x, a, y]` is P(y | x, a), and `reward[x, a]` or `reward[x, a, y]` is the reward.

    >>> mdp = MDP(transition=[[[1, 0], [0.1, 0.9]], [[0.5, 0.5], [0, 1]]], reward=[[0, 0], [0, 1]],
    ...           states=["cold", "warm"], actions=["rest", "work"])
    >>> mdp
    MDP(2 states, 2 actions, 6 transitions)
    >>> mdp.outcomes("cold", "work")
    {Step(reward=0.0, state='warm'): 0.9, Step(reward=0.0, state='cold'): 0.1}
    >>> MDP([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: transition has shape (2, 1, 1): it must have shape (X, A, X)
    >>> MDP([[[0.7]]], [[0.0]], states=["cold"])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: state 'cold', action 0: the probabilities sum to 0.7, not to 1
    """

    def __init__(
        self,
        transition: ArrayLike,
        reward: ArrayLike,
        *,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
        allowed: ArrayLike | None = None,
    ) -> None:
        p = as_numbers(transition, "transition", InvalidTable)
        r = as_numbers(reward, "reward", InvalidTable)
        if p.ndim != 3 or p.shape[0] != p.shape[2]:
            raise InvalidTable(f"transition has shape {p.shape}: it must have shape (X, A, X)")
        shape = p.shape[:2]
        if r.shape not in (p.shape, shape):
            raise InvalidTable(f"reward has shape {r.shape}: expected {shape} or {p.shape}")
        available = np.ones(shape, bool) if allowed is None else np.array(allowed)
        if available.shape != shape or available.dtype != bool:
            raise InvalidTable(
                f"allowed has shape {available.shape} and type {available.dtype}: "
                f"it must be a Boolean array of shape {shape}"
            )
        self.states = Names("state", shape[0] if states is None else states)
        self.actions = Names("action", shape[1] if actions is None else actions)
        if (named := (len(self.states), len(self.actions))) != shape:
            raise InvalidTable(
                f"transition has (states, actions) = {shape}, but {named} names are given"
            )
        if r.ndim == 2:
            r = np.broadcast_to(r[:, :, None], p.shape)
        x, a, y = np.nonzero(np.broadcast_to(available[:, :, None], p.shape))
        self._fill(x, a, y, p[x, a, y], r[x, a, y])

    @classmethod
    def from_transitions(
        cls,
        x: ArrayLike,
        a: ArrayLike,
        y: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
        *,
        states: int | Sequence[Hashable],
        actions: int | Sequence[Hashable],
    ) -> "MDP":
        """Create an MDP from a list of P(r, y | x, a): five columns of equal length.

        `x`, `a` and `y` are indices. Transitions that are not listed have probability 0, and an
        action is unavailable in a state if the pair has no entries. The probabilities of repeated
        (x, a, y, r) are added.

        >>> MDP.from_transitions([0, 0, 1], [0, 0, 0], [0, 1, 0], [0.5, 0.5, 1.0], [0, 1, 0],
        ...                      states=2, actions=1)
        MDP(2 states, 1 action, 3 transitions)
        """
        xs, as_, ys = np.asarray(x), np.asarray(a), np.asarray(y)
        p = as_numbers(probability, "probability", InvalidTable)
        r = as_numbers(reward, "reward", InvalidTable)
        shapes = {column.shape for column in (xs, as_, ys, p, r)}
        if len(shapes) > 1 or p.ndim != 1:
            raise InvalidTable(f"the columns have shapes {shapes}: they must have equal lengths")
        for name, column in (("x", xs), ("a", as_), ("y", ys)):
            if column.dtype.kind not in "iu":
                raise InvalidTable(f"column {name} has type {column.dtype}: it must hold integers")
        # Products of small integer types could overflow.
        xs, as_, ys = (column.astype(np.int64) for column in (xs, as_, ys))
        mdp = cls.__new__(cls)
        mdp.states, mdp.actions = Names("state", states), Names("action", actions)
        mdp._fill(xs, as_, ys, p, r)
        return mdp

    def _fill(self, x: AnyArray, a: AnyArray, y: AnyArray, p: FloatArray, r: FloatArray) -> None:
        """Check the entries, merge equal ones, sort by falling probability, and index the pairs."""
        for column, names in ((x, self.states), (a, self.actions), (y, self.states)):
            outside = np.flatnonzero((column < 0) | (column >= len(names)))
            if outside.size:
                raise InvalidTable(
                    f"{names.what} {column[outside[0]]} is out of range: "
                    f"expected 0 … {len(names) - 1}"
                )
        for column, is_valid, what, expected in (
            (p, (p >= 0.0) & (p < np.inf), "probability of", "at least 0 and finite"),
            (r, np.isfinite(r), "reward for", "finite"),
        ):
            bad = np.flatnonzero(~is_valid)
            if bad.size:
                i = bad[0]
                raise InvalidTable(
                    f"{self._pair_name(x[i] * len(self.actions) + a[i])}: the {what} next state "
                    f"{self.states[y[i]]!r} is {column[i]}, it must be {expected}"
                )
        shape = len(self.states), len(self.actions)
        pairs = shape[0] * shape[1]
        pair = x * shape[1] + a  # the number of each entry's pair (x, a)
        offered = np.unique(pair)
        # Drop impossible entries, sort the others by (pair, y, r), and add up equal ones.
        pair, y, p, r = (column[p > 0.0] for column in (pair, y, p, r))
        order = np.lexsort((r, y, pair))
        pair, y, p, r = pair[order], y[order], p[order], r[order] + 0.0  # -0. becomes 0.
        is_new = np.ones(pair.size, bool)
        is_new[1:] = (np.diff(pair) != 0) | (np.diff(y) != 0) | (np.diff(r) != 0)
        p = np.asarray(np.bincount(np.cumsum(is_new) - 1, p), np.float64)
        pair, y, r = pair[is_new], y[is_new], r[is_new]
        # Sort the entries of each pair by falling probability.
        order = np.lexsort((r, y, -p, pair))
        pair, y, p, r = pair[order], y[order], p[order], r[order]
        total = np.bincount(pair, p, pairs)
        wrong = offered[np.abs(total[offered] - 1.0) > TOLERANCE]
        if wrong.size:
            pair_name, value = self._pair_name(wrong[0]), total[wrong[0]]
            raise InvalidTable(f"{pair_name}: the probabilities sum to {value:.9g}, not to 1")
        #: Per pair x A + a: its first entry and its number of entries (0 if a is unavailable).
        self.size: IntArray = np.bincount(pair, minlength=pairs).astype(np.int64)
        self.first: IntArray = np.cumsum(self.size) - self.size
        #: Per entry: the next state y, P(r, y | x, a) and r.
        self.successor: IntArray = y.astype(np.int64)
        self.probability: FloatArray = p / total[pair]
        self.rewards: FloatArray = r
        #: allowed[x, a]: whether action a is available in state x.
        self.allowed: BoolArray = (self.size > 0).reshape(shape)
        stuck = np.flatnonzero(~self.allowed.any(1))
        if stuck.size:
            raise InvalidTable(
                f"state {self.states[stuck[0]]!r} has no available action: give it at least one, "
                "for example one that stays"
            )
        self._pairs = np.flatnonzero(self.size)
        #: r(x, a); 0 where a is unavailable.
        self.reward: FloatArray = self._sum(self.rewards, 0.0)
        for array in (self.size, self.first, self.successor, self.probability, self.rewards,
                      self.allowed, self.reward):  # fmt: skip
            array.flags.writeable = False

    def _pair_name(self, pair: int) -> str:
        """Return the state and the action of a pair, for a message."""
        x, a = divmod(int(pair), len(self.actions))
        return f"state {self.states[x]!r}, action {self.actions[a]!r}"

    def _sum(self, values: FloatArray, missing: float) -> FloatArray:
        """Return Σ_{r,y} P(r, y | x, a) value for every pair; `missing` where a is unavailable."""
        sums = np.full(self.size.size, missing)
        sums[self._pairs] = np.add.reduceat(self.probability * values, self.first[self._pairs])
        return sums.reshape(self.allowed.shape)

    def expected(self, v: FloatArray) -> FloatArray:
        """Return Σ_y P(y | x, a) v(y) for every pair; -∞ where a is unavailable."""
        return self._sum(v[self.successor], -np.inf)

    def backup(self, h: FloatArray) -> FloatArray:
        """Return r(x, a) + Σ_y P(y | x, a) h(y) for every pair; -∞ where a is unavailable."""
        return self._sum(self.rewards + h[self.successor], -np.inf)

    @property
    def transition(self) -> FloatArray:
        """P(y | x, a) as a dense array [x, a, y], computed at each access."""
        X, A = self.allowed.shape
        cell = np.repeat(np.arange(X * A), self.size) * X + self.successor
        dense = np.bincount(cell, self.probability, X * A * X).reshape(X, A, X)
        return np.asarray(dense, np.float64)

    @cached_property
    def tables(self) -> "kernels.mdp.Tables":
        """The transitions in the format of `bayescontrol.kernels.mdp`."""
        available = self.size > 0
        cumulative = np.empty(self.successor.size)
        for i, j in zip(self.first[available], (self.first + self.size)[available], strict=True):
            np.cumsum(self.probability[i:j], out=cumulative[i:j])
            cumulative[j - 1] = 1.0  # exactly, despite rounding
        # An unavailable pair has one entry, the last, with state -1 and reward NaN.
        return kernels.mdp.Tables(
            first=np.where(available, self.first, self.successor.size),
            size=np.where(available, self.size, 1),
            successor=np.append(self.successor, -1),
            cumulative=np.append(cumulative, 1.0),
            reward=np.append(self.rewards, np.nan),
        )

    def actions_in(self, x: Hashable) -> list[Any]:
        """Return the actions that are available in state x."""
        return list(compress(self.actions, self.allowed[self.states.place(x)]))

    def outcomes(self, x: Hashable, a: Hashable) -> dict[Step, float]:
        """Return P(r, y | x, a) of every possible step, in order of falling probability."""
        pair = self.states.place(x) * len(self.actions) + self.actions.place(a)
        i, j = self.first[pair], self.first[pair] + self.size[pair]
        rows = zip(self.rewards[i:j], self.successor[i:j], self.probability[i:j], strict=True)
        return {Step(float(r), self.states[y]): float(p) for r, y, p in rows}

    def environment(self, start: Hashable | None = None) -> MDPEnvironment:
        """Return the environment Q of this problem in state `start`, by default the first."""
        return MDPEnvironment(self, start)

    def __repr__(self) -> str:
        states, actions = counted(len(self.states), "state"), counted(len(self.actions), "action")
        return f"MDP({states}, {actions}, {counted(self.successor.size, 'transition')})"


def chain_mdp(k: int, pays: int = 0) -> MDP:
    """Return the paper's k-state chain: k correct actions in a row earn the reward 1.

    State x is the number of correct actions so far. `pays` is the correct action (0 for A, 1 for
    B). The other action, and the rewarded step, lead back to the start.

    >>> chain_mdp(3).outcomes(2, 0), chain_mdp(3, pays=1).outcomes(2, 0)
    ({Step(reward=1.0, state=0): 1.0}, {Step(reward=0.0, state=0): 1.0})
    """
    if k < 1 or pays not in (0, 1):
        raise InvalidTable(f"chain_mdp(k={k}, pays={pays}): k must be at least 1, pays 0 or 1")
    x = np.arange(k)
    return MDP.from_transitions(  # first the k transitions of the correct action
        x=np.tile(x, 2),
        a=np.repeat([pays, 1 - pays], k),
        y=np.append((x + 1) % k, np.zeros_like(x)),
        probability=np.ones(2 * k),
        reward=np.append(x == k - 1, np.zeros(k)),
        states=k,
        actions=2,
    )


def random_mdp(states: int, actions: int, *, concentration: float = 1.0, seed: SeedLike = 0) -> MDP:
    """Return a random MDP: P(· | x, a) ~ Dirichlet(c, …, c), r(x, a) ~ U[0, 1).

    Every transition is possible, so the MDP is communicating.

    >>> random_mdp(5, 2, seed=1)
    MDP(5 states, 2 actions, 50 transitions)
    """
    rng = as_stream(seed)
    # A Dirichlet draw is a normalised row of gamma variates. The lower bound keeps probabilities
    # positive where small variates underflow.
    g = np.maximum(np.asarray(rng.gamma(concentration, size=(states, actions, states))), 1e-12)
    return MDP(g / g.sum(-1, keepdims=True), np.asarray(rng.random(size=(states, actions))))
