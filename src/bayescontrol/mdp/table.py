"""An MDP as an environment Q: the observation is the reward and the state it led to.

    o = (r, y) ~ P(r, y | x, a)        x ← y

The agent sees every state, so its situation is the last one: advance(x, a, o) = o.state.

A Markov decision problem as a table of its transitions.

    P(r, y | x, a)     state x, action a, next state y, reward r
    P(y | x, a)        = Σ_r P(r, y | x, a)         `transition[x, a, y]`
    r(x, a)            = Σ_{r,y} r P(r, y | x, a)    `reward[x, a]`

Kept sparse, pair (x, a) after pair, each by falling probability: what a grid needs is four or
five entries a pair, whatever the number of states. Several rewards may go with one (x, a, y).

Small Markov decision problems by name.

chain     k states; A goes on, B goes back to the start; the k-th A pays 1: ρ* = 1/k
random    P(· | x, a) ~ Dirichlet(c, …, c), r(x, a) uniform in [0, 1)
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.errors import InvalidTable, UnknownAction
from bayescontrol.problems.names import Names
from bayescontrol.seeding import Stream, as_stream
from bayescontrol.situations import follows_state

if TYPE_CHECKING:
    from bayescontrol.kernels.mdp import Tables


class Step(NamedTuple):
    """What an MDP answers: the reward r and the next state y.

    >>> Step(1.0, "goal").state
    'goal'
    """

    reward: float
    state: Any


@follows_state
def advance(x: Any, a: Any, o: Step) -> Any:
    """T(x, a, o) = y: the state that was seen is the situation.

    >>> advance("start", "left", Step(0.0, "goal"))
    'goal'
    """
    return o.state


class MDPEnvironment:
    """Q of an MDP; `x` is the state it is in, `at` the number of that state.

    >>> from bayescontrol.mdp import chain_mdp
    >>> world = chain_mdp(2).environment()
    >>> [world.respond(0, Stream(0)) for _ in range(3)]
    [Step(reward=0.0, state=1), Step(reward=1.0, state=0), Step(reward=0.0, state=1)]
    >>> world.respond(2, Stream(0))
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 2: the actions are 0, 1
    """

    #: `interact` refuses an agent that follows the states and is in another one.
    shows_state: ClassVar[bool] = True

    def __init__(self, mdp: "MDP", start: Hashable | None = None) -> None:
        self.mdp = mdp
        self.at = 0 if start is None else mdp.states.place(start)

    @property
    def x(self) -> Any:
        """The state it is in."""
        return self.mdp.states[self.at]

    def respond(self, a: Hashable, rng: Stream) -> Step:
        """(r, y) ~ P(r, y | x, a); an action that x does not offer changes nothing."""
        mdp, tables = self.mdp, self.mdp.tables
        action = mdp.actions.place(a)
        if not mdp.allowed[self.at, action]:
            offered = ", ".join(map(repr, mdp.actions_in(self.x)))
            raise UnknownAction(f"state {self.x!r} does not offer action {a!r}: it has {offered}")
        entry = kernels.mdp.respond(tables, self.at, action, len(mdp.actions), rng.state)
        self.at = int(tables.successor[entry])
        return Step(float(tables.reward[entry]), self.x)

    def __repr__(self) -> str:
        return f"MDPEnvironment({self.mdp!r} in state {self.x!r})"


#: How far the probabilities of a pair may be from one in sum, by which they are then divided.
TOLERANCE = 1e-9


class MDP:
    """P(y | x, a) and r(x, a) or r(x, a, y), checked; names for states and actions if wanted.

    `allowed[x, a]` says which actions a state offers: all of them by default.

    >>> mdp = MDP(transition=[[[1, 0], [0.1, 0.9]], [[0.5, 0.5], [0, 1]]], reward=[[0, 0], [0, 1]],
    ...           states=["cold", "warm"], actions=["rest", "work"])
    >>> mdp
    MDP(2 states, 2 actions, 6 transitions)
    >>> mdp.outcomes("cold", "work")
    {Step(reward=0.0, state='warm'): 0.9, Step(reward=0.0, state='cold'): 0.1}
    >>> MDP([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: transition has shape (2, 1, 1): it needs (X, A, X)
    >>> MDP([[[0.7]]], [[0.0]], states=["cold"])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: state 'cold', action 0: the probabilities sum to 0.7, not to 1
    """

    def __init__(
        self,
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        *,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
        allowed: npt.ArrayLike | None = None,
    ) -> None:
        p, r = _numbers(transition, "transition"), _numbers(reward, "reward")
        if p.ndim != 3 or p.shape[0] != p.shape[2]:
            raise InvalidTable(f"transition has shape {p.shape}: it needs (X, A, X)")
        shape = p.shape[:2]
        if r.shape not in (p.shape, shape):
            raise InvalidTable(f"reward has shape {r.shape}: {shape} or {p.shape} is needed")
        may = np.ones(shape, bool) if allowed is None else np.array(allowed)
        if may.shape != shape or may.dtype != bool:
            raise InvalidTable(
                f"allowed has shape {may.shape} and type {may.dtype}: "
                f"it needs {shape} and True or False"
            )
        self.states = Names("state", shape[0] if states is None else states)
        self.actions = Names("action", shape[1] if actions is None else actions)
        if (named := (len(self.states), len(self.actions))) != shape:
            raise InvalidTable(f"names for (states, actions) = {named}, transition is for {shape}")
        if r.ndim == 2:
            r = np.broadcast_to(r[:, :, None], p.shape)
        x, a, y = np.nonzero(np.broadcast_to(may[:, :, None], p.shape))
        self._check(x, a, y, p[x, a, y], r[x, a, y])
        self._fill(x * shape[1] + a, y, p[x, a, y], r[x, a, y])

    @classmethod
    def from_transitions(
        cls,
        x: npt.ArrayLike,
        a: npt.ArrayLike,
        y: npt.ArrayLike,
        probability: npt.ArrayLike,
        reward: npt.ArrayLike,
        *,
        states: int | Sequence[Hashable],
        actions: int | Sequence[Hashable],
    ) -> "MDP":
        """P(r, y | x, a) entry by entry: five columns of equal length, states by number.

        What is not listed is impossible, and a pair without entries is an action that the state
        does not offer. Equal (x, a, y, r) are added up.

        >>> MDP.from_transitions([0, 0, 1], [0, 0, 0], [0, 1, 0], [0.5, 0.5, 1.0], [0, 1, 0],
        ...                      states=2, actions=1)
        MDP(2 states, 1 action, 3 transitions)
        """
        xs, as_, ys = np.asarray(x), np.asarray(a), np.asarray(y)
        p, r = _numbers(probability, "probability"), _numbers(reward, "reward")
        shapes = {column.shape for column in (xs, as_, ys, p, r)}
        if len(shapes) > 1 or p.ndim != 1:
            raise InvalidTable(f"the columns have shapes {shapes}: they must be of one length")
        for name, column in (("x", xs), ("a", as_), ("y", ys)):
            if column.dtype.kind not in "iu":
                raise InvalidTable(f"column {name} is {column.dtype}: states and actions by number")
        # Products of small integers would wrap round.
        xs, as_, ys = (column.astype(np.int64) for column in (xs, as_, ys))
        made = cls.__new__(cls)
        made.states, made.actions = Names("state", states), Names("action", actions)
        made._check(xs, as_, ys, p, r)
        made._fill(xs * len(made.actions) + as_, ys, p, r)
        return made

    def _check(
        self,
        x: npt.NDArray[Any],
        a: npt.NDArray[Any],
        y: npt.NDArray[Any],
        p: FloatArray,
        r: FloatArray,
    ) -> None:
        """Every entry is within the table, its probability and its reward are numbers."""
        for column, names in ((x, self.states), (a, self.actions), (y, self.states)):
            outside = np.flatnonzero((column < 0) | (column >= len(names)))
            if outside.size:
                raise InvalidTable(
                    f"{names.what} {column[outside[0]]}: they are numbered 0 … {len(names) - 1}"
                )
        for column, good, what in (
            (p, (p >= 0.0) & (p < np.inf), "the probability of"),
            (r, np.isfinite(r), "the reward of going to"),
        ):
            bad = np.flatnonzero(~good)
            if bad.size:
                i = bad[0]
                raise InvalidTable(
                    f"{self._pair(x[i] * len(self.actions) + a[i])}: "
                    f"{what} state {self.states[y[i]]!r} is {column[i]}"
                )

    def _fill(
        self, pair: npt.NDArray[Any], y: npt.NDArray[Any], p: FloatArray, r: FloatArray
    ) -> None:
        """Add up what is equal, put the likeliest of a pair first, find where pairs begin."""
        shape = len(self.states), len(self.actions)
        pairs = shape[0] * shape[1]
        offered = np.unique(pair)
        pair, y, p, r = (column[p > 0.0] for column in (pair, y, p, r))
        order = np.lexsort((r, y, pair))
        pair, y, p, r = pair[order], y[order], p[order], r[order] + 0.0  # -0. becomes 0.
        new = np.ones(pair.size, bool)
        new[1:] = (np.diff(pair) != 0) | (np.diff(y) != 0) | (np.diff(r) != 0)
        p = np.asarray(np.bincount(np.cumsum(new) - 1, p), np.float64)
        pair, y, r = pair[new], y[new], r[new]
        order = np.lexsort((r, y, -p, pair))
        pair, y, p, r = pair[order], y[order], p[order], r[order]
        total = np.bincount(pair, p, pairs)
        off = offered[np.abs(total[offered] - 1.0) > TOLERANCE]
        if off.size:
            raise InvalidTable(
                f"{self._pair(off[0])}: the probabilities sum to {total[off[0]]:.9g}, not to 1"
            )
        #: Per pair x A + a: its first entry, and how many it has; 0 if x does not offer a.
        self.size: IntArray = np.bincount(pair, minlength=pairs).astype(np.int64)
        self.first: IntArray = np.cumsum(self.size) - self.size
        #: Per entry: the next state y, P(r, y | x, a) and r.
        self.successor: IntArray = y.astype(np.int64)
        self.probability: FloatArray = p / total[pair]
        self.rewards: FloatArray = r
        #: allowed[x, a]: does state x offer action a?
        self.allowed: npt.NDArray[np.bool_] = (self.size > 0).reshape(shape)
        idle = np.flatnonzero(~self.allowed.any(1))
        if idle.size:
            raise InvalidTable(
                f"state {self.states[idle[0]]!r} offers no action: give it one, if only to stay"
            )
        self._pairs = np.flatnonzero(self.size)
        #: r(x, a); 0 where x does not offer a.
        self.reward: FloatArray = self._sum(self.rewards, 0.0)
        for array in (self.size, self.first, self.successor, self.probability, self.rewards,
                      self.allowed, self.reward):  # fmt: skip
            array.flags.writeable = False

    def _pair(self, pair: int) -> str:
        x, a = divmod(int(pair), len(self.actions))
        return f"state {self.states[x]!r}, action {self.actions[a]!r}"

    def _sum(self, values: FloatArray, missing: float) -> FloatArray:
        """Σ_{r,y} P(r, y | x, a) value, for every pair."""
        sums = np.full(self.size.size, missing)
        sums[self._pairs] = np.add.reduceat(self.probability * values, self.first[self._pairs])
        return sums.reshape(self.allowed.shape)

    def expected(self, v: FloatArray) -> FloatArray:
        """Σ_y P(y | x, a) v(y) for every pair; -∞ where x does not offer a."""
        return self._sum(v[self.successor], -np.inf)

    def backup(self, h: FloatArray) -> FloatArray:
        """r(x, a) + Σ_y P(y | x, a) h(y) for every pair; -∞ where x does not offer a."""
        return self._sum(self.rewards + h[self.successor], -np.inf)

    @property
    def transition(self) -> FloatArray:
        """P(y | x, a) as [x, a, y], made anew at each call; 0 where x does not offer a."""
        X, A = self.allowed.shape
        where = np.repeat(np.arange(X * A), self.size) * X + self.successor
        dense = np.bincount(where, self.probability, X * A * X).reshape(X, A, X)
        return np.asarray(dense, np.float64)

    @cached_property
    def tables(self) -> "Tables":
        """The transitions as `bayescontrol.kernels.mdp` reads them."""
        missing = self.size == 0
        cumulative = np.empty(self.successor.size)
        for i, j in zip(self.first[~missing], (self.first + self.size)[~missing], strict=True):
            np.cumsum(self.probability[i:j], out=cumulative[i:j])
            cumulative[j - 1] = 1.0  # whatever rounding makes of it
        return kernels.mdp.Tables(
            first=np.where(missing, self.successor.size, self.first),
            size=np.where(missing, 1, self.size),
            successor=np.append(self.successor, -1),
            cumulative=np.append(cumulative, 1.0),
            reward=np.append(self.rewards, np.nan),
        )

    def actions_in(self, x: Hashable) -> list[Any]:
        """The actions that state x offers."""
        return [
            self.actions[a] for a in np.flatnonzero(self.allowed[self.states.place(x)]).tolist()
        ]

    def outcomes(self, x: Hashable, a: Hashable) -> dict[Step, float]:
        """P(r, y | x, a) for all that can happen, the likeliest first."""
        pair = self.states.place(x) * len(self.actions) + self.actions.place(a)
        i, j = self.first[pair], self.first[pair] + self.size[pair]
        rows = zip(self.rewards[i:j], self.successor[i:j], self.probability[i:j], strict=True)
        return {Step(float(r), self.states[y]): float(p) for r, y, p in rows}

    def environment(self, start: Hashable | None = None) -> MDPEnvironment:
        """Q: this problem as a world, in state `start`, by default the first."""
        return MDPEnvironment(self, start)

    def __repr__(self) -> str:
        n = len(self.states), len(self.actions), self.successor.size
        counts = zip(n, ("state", "action", "transition"), strict=True)
        return f"MDP({', '.join(f'{n} {what}' + 's' * (n != 1) for n, what in counts)})"


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"{name} must be an array of numbers: {error}") from None


def chain_mdp(k: int, pays: int = 0) -> MDP:
    """The paper's k-state problem: only k equal actions in a row reach the reward.

    State x is the number of right actions in a row; action `pays` (0 for A, 1 for B) is the
    right one, the other leads back to the start, and so does the reward.

    >>> chain_mdp(3).outcomes(2, 0), chain_mdp(3, pays=1).outcomes(2, 0)
    ({Step(reward=1.0, state=0): 1.0}, {Step(reward=0.0, state=0): 1.0})
    """
    if k < 1 or pays not in (0, 1):
        raise InvalidTable(f"chain_mdp(k={k}, pays={pays}): k is at least 1, pays is 0 or 1")
    x = np.arange(k)
    right, wrong = np.full(k, pays), np.full(k, 1 - pays)
    zero = np.zeros(k)
    return MDP.from_transitions(
        np.concatenate([x, x]),
        np.concatenate([right, wrong]),
        np.concatenate([(x + 1) % k, np.zeros(k, np.int64)]),
        np.ones(2 * k),
        np.concatenate([zero + (x == k - 1), zero]),
        states=k,
        actions=2,
    )


def random_mdp(
    states: int, actions: int, *, concentration: float = 1.0, seed: int | Stream = 0
) -> MDP:
    """A problem drawn at random; every transition is possible, so it is communicating.

    >>> random_mdp(5, 2, seed=1)
    MDP(5 states, 2 actions, 50 transitions)
    """
    rng = as_stream(seed)
    # The floor keeps every probability positive where tiny gammas underflow.
    g = np.maximum(np.asarray(rng.gamma(concentration, size=(states, actions, states))), 1e-12)
    return MDP(g / g.sum(-1, keepdims=True), np.asarray(rng.random(size=(states, actions))))
