"""Partially observed Markov decision problems, and their environments.

    P(y | x, a)        `transition[x, a, y]`       hidden state x, action a, next state y
    P(z | a, y)        `observation[a, y, z]`      observation z
    r                  `reward[x, a]`, `[x, a, y]` or `[x, a, y, z]`

    x' ~ P(· | x, a),  z ~ P(· | a, x'),  o = (r, z),  x ← x'        one step of the environment

The reward may tell something about the hidden state. A signal s is what the agent conditions on:
the pair (r, z) or, with `rewards_observed=False`, z alone. All quantities derive from one table

    M[a, s, x, y] = P(y, s | x, a)

The distribution b(x) = P(x | âo_<t) of the hidden state changes with each step to

    b'(y) = Σ_x b(x) M[a, s, x, y] / p,      p = P(s | b, a) = Σ_x Σ_y b(x) M[a, s, x, y]
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol._support.names import Names
from bayescontrol._support.priors import probability_table
from bayescontrol.errors import BadEvidence, BadSituation, InvalidTable, counted
from bayescontrol.protocols import MISSING
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import StreamLike, require_stream

#: The largest deviation of a sum of probabilities from 1 that is left as it is.
ROUNDING = 1e-14
#: The most numbers in a table.
LARGEST_TABLE = 2**24


class Percept(NamedTuple):
    """What an agent observes of a step: the reward r and the observation z.

    >>> Percept(-1.0, "growl left").observation
    'growl left'
    """

    reward: float
    observation: Any


def require_table_size(what: str, *shape: int) -> None:
    """Raise InvalidTable if a table of this shape would be too large."""
    if math.prod(shape) > LARGEST_TABLE:
        sizes = " × ".join(map(str, shape))
        raise InvalidTable(
            f"{what} would have {sizes} numbers, at most {LARGEST_TABLE:,} are possible: use fewer "
            "states, actions or observations, round the rewards, or pass rewards_observed=False"
        )


class POMDP:
    """A partially observed Markov decision problem, given by tables.

    `states`, `actions` and `observations` are lists of names, or their number. `transition[x, a,
    y]` is P(y | x, a), `observation[a, y, z]` is P(z | a, y), and the reward is `reward[x, a]`,
    `reward[x, a, y]` or `reward[x, a, y, z]`. Planners maximise the sum of rewards discounted by
    `discount`, or the average reward if it is None. `start` is the distribution of the first
    state, or its name; by default it is uniform. An observation of an agent is a pair (reward,
    observation). With `rewards_observed=False`, which is common in the literature, agents ignore
    the reward in it, and an observation may also come alone. Rewards are rounded to twelve digits:
    rounding errors tell nothing about the state or the problem.

    >>> pomdp = POMDP(["broken", "works"], ["run", "repair"], ["loud", "quiet"],
    ...               transition=[[[1, 0], [0, 1]], [[0.1, 0.9], [0, 1]]],
    ...               observation=[[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]],
    ...               reward=[[0, -1], [1, -1]], start="works", rewards_observed=False)
    >>> pomdp
    POMDP(2 states, 2 actions, 2 observations, average reward)
    >>> b, p = pomdp.condition(pomdp.start, "run", (1.0, "loud"))
    >>> b.round(3), round(p, 3)
    (array([0.229, 0.771]), 0.35)
    """

    def __init__(
        self,
        states: int | Sequence[Hashable],
        actions: int | Sequence[Hashable],
        observations: int | Sequence[Hashable],
        transition: ArrayLike,
        observation: ArrayLike,
        reward: ArrayLike,
        *,
        discount: float | None = None,
        start: Any = None,
        rewards_observed: bool = True,
    ) -> None:
        self.states = Names("state", states)
        self.actions = Names("action", actions)
        self.observations = Names("observation", observations)
        X, A, Z = len(self.states), len(self.actions), len(self.observations)
        state, action = ("states", X), ("actions", A)
        #: P(y | x, a) and P(z | a, y).
        self.transition = _probabilities(transition, "transition", state, action, state)
        self.observation = _probabilities(
            observation, "observation", action, state, ("observations", Z)
        )
        r = as_numbers(reward, "reward", InvalidTable)
        if r.shape not in ((X, A), (X, A, X), (X, A, X, Z)):
            raise InvalidTable(
                f"reward has shape {r.shape}: expected {(X, A)}, {(X, A, X)} or {(X, A, X, Z)}"
            )
        if not np.isfinite(r).all():
            where = tuple(np.argwhere(~np.isfinite(r))[0].tolist())
            raise InvalidTable(f"reward{list(where)} is {r[where]}: it must be finite")
        #: The rewards, to twelve digits.
        self.rewards: FloatArray = _rounded(r)
        self.discount = (
            None
            if discount is None
            else require_between("discount", discount, 0.0, 1.0, ends="[)", error=InvalidTable)
        )
        #: b before the first step.
        self.start: FloatArray = self._first(start)
        self.rewards_observed = bool(rewards_observed)
        #: What is observed of a step, by number: percepts, or observations alone.
        self.signals: tuple[Any, ...]
        #: M[a, s, x, y] = P(y, s | x, a).
        self.joint: FloatArray
        #: r(x, a), the expected reward.
        self.reward: FloatArray
        self._fill()
        #: P(s | x, a) as [a, s, x], and P(y | x, a) as [a, x, y].
        self._evidence = self.joint.sum(-1)
        self._prediction = np.ascontiguousarray(self.transition.swapaxes(0, 1))
        for array in (self.transition, self.observation, self.rewards, self.start, self.joint,
                      self.reward):  # fmt: skip
            array.flags.writeable = False

    def _first(self, start: Any) -> FloatArray:
        """Return the distribution of the first state."""
        X = len(self.states)
        if start is None:
            return np.full(X, 1.0 / X)
        if isinstance(start, str | int) or (isinstance(start, Hashable) and start in self.states):
            first: FloatArray = np.eye(X)[self.states.place(start)]
            return first
        p = as_numbers(start, "start", InvalidTable)
        if p.shape != (X,):
            raise InvalidTable(f"start={start!r}: expected a state, or {X} probabilities of states")
        return _probabilities([p], "start", ("one", 1), ("states", X)).ravel()

    def _fill(self) -> None:
        """Compute the signals, M and the expected rewards."""
        X, A, Z = len(self.states), len(self.actions), len(self.observations)
        require_table_size("P(y, z | x, a)", X, A, X, Z)
        p = self.transition[..., None] * self.observation  # [x, a, y, z]
        r = self.rewards.reshape(self.rewards.shape + (1,) * (4 - self.rewards.ndim))
        self.reward = (p * r).sum((2, 3))
        if not self.rewards_observed:
            self.signals = tuple(self.observations)
            self.joint = np.ascontiguousarray(p.transpose(1, 3, 0, 2))
            self._numbers: dict[Any, int] = {z: z for z in range(Z)}
            return
        x, a, y, z = np.nonzero(p)
        pairs = np.column_stack([z, np.broadcast_to(r, p.shape)[x, a, y, z]])
        distinct, s = np.unique(pairs, axis=0, return_inverse=True)
        require_table_size("P(y, reward, z | x, a)", A, len(distinct), X, X)
        self.joint = np.zeros((A, len(distinct), X, X))
        self.joint[a, s.ravel(), x, y] = p[x, a, y, z]
        rows = [(int(z), float(r)) for z, r in distinct]
        self.signals = tuple(Percept(r, self.observations[z]) for z, r in rows)
        self._numbers = {row: s for s, row in enumerate(rows)}

    # -- the filter ---------------------------------------------------------------------------

    def condition(self, b: ArrayLike, a: Hashable, o: Any) -> tuple[FloatArray, float]:
        """Return b' and p = P(s | b, a) after action a and the observation o = (reward, z).

        If o is `MISSING` or impossible, b' is the prediction Σ_x b(x) P(y | x, a), and p is 1 or 0.

        >>> from bayescontrol.pomdp import tiger
        >>> pomdp = tiger()
        >>> pomdp.condition(pomdp.start, "listen", (-1.0, "growl left"))
        (array([0.85, 0.15]), 0.5)
        """
        action, p = self.actions.place(a), 0.0
        s = -1 if o is MISSING else self._signal(o)
        if s >= 0:
            after, p = _filtered(b, self.joint[action, s])
        if p == 0.0:
            after, _ = _filtered(b, self._prediction[action])
        return after, 1.0 if o is MISSING else p

    def signal_probabilities(self, b: ArrayLike, a: Hashable) -> dict[Any, float]:
        """Return P(s | b, a) of every signal that is possible."""
        action = self.actions.place(a)
        _filtered(b, self._prediction[action])  # checks b
        p = self._evidence[action] @ b
        return {self.signals[s]: float(p[s]) for s in np.flatnonzero(p > 0.0)}

    def observed_part(self, o: Any) -> Any:
        """Return what agents condition on: all of o = (reward, z), or z alone."""
        reward, place = self._read(o)
        z = self.observations[place]
        return Percept(reward, z) if self.rewards_observed else z

    def _signal(self, o: Any) -> int:
        """Return the number of the signal in o; -1 if no step has this reward."""
        reward, place = self._read(o)
        return self._numbers.get((place, reward) if self.rewards_observed else place, -1)

    def _read(self, o: Any) -> tuple[float, int]:
        """Return the reward and the number of the observation; raise BadEvidence if o is invalid.

        If rewards are not observed, o may be the observation alone; the reward is then 0.
        """
        if not self.rewards_observed:
            with suppress(BadEvidence):
                return 0.0, self.observations.place(o)
        pair: Any = None if isinstance(o, str | Mapping) else o
        try:
            r, z = pair
            reward = float(f"{float(r):.12g}") if isinstance(r, Real) else math.nan
        except (TypeError, ValueError, OverflowError):
            hint = "" if self.rewards_observed else f", or one of {self.observations}"
            raise BadEvidence(f"observation {o!r}: expected (reward, observation){hint}") from None
        if not math.isfinite(reward):
            raise BadEvidence(f"reward {r!r} in {o!r}: expected a finite number")
        return reward, self.observations.place(z)

    # -- agents and environments ----------------------------------------------------------------

    def environment(self, start: Hashable | None = None) -> "POMDPEnvironment":
        """Return the environment Q; its first state is `start`, or drawn at the first step."""
        return POMDPEnvironment(self, start)

    def agent(self, policy: Any = "qmdp") -> ControlRule[Any, Any, Any, Any]:
        """Return an agent that knows the problem; `policy` is as for `POMDPModes`.

        >>> from bayescontrol.pomdp import tiger
        >>> tiger().agent().action_probabilities()
        {'listen': 1.0}
        """
        from bayescontrol.pomdp.modes import POMDPModes  # which imports this module

        return POMDPModes([self], policy).agent()

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain values, as logs store them."""
        return {
            "states": list(self.states), "actions": list(self.actions),
            "observations": list(self.observations), "transition": self.transition.tolist(),
            "observation": self.observation.tolist(), "reward": self.rewards.tolist(),
            "discount": self.discount, "start": self.start.tolist(),
            "rewards_observed": self.rewards_observed,
        }  # fmt: skip

    @classmethod
    def of(cls, value: "POMDP | Mapping[str, Any]") -> "POMDP":
        """Return the problem itself, or the one with these `settings`."""
        if isinstance(value, POMDP):
            return value
        try:
            return cls(**value)
        except TypeError as error:
            raise InvalidTable(
                f"{str(value)[:80]} is not a POMDP, nor the settings of one ({error})"
            ) from None

    def __repr__(self) -> str:
        names = (self.states, self.actions, self.observations)
        sizes = ", ".join(counted(len(n), n.what) for n in names)
        aim = "average reward" if self.discount is None else f"discount {self.discount:g}"
        return f"POMDP({sizes}, {aim})"


def _probabilities(table: ArrayLike, name: str, *axes: tuple[str, int]) -> FloatArray:
    """Return a checked table of probabilities; `axes` are names and sizes.

    Rows are normalised, unless they sum to 1 up to rounding: stored tables stay the same.
    """
    numbers = as_numbers(table, name, InvalidTable)
    p = probability_table(numbers, name, tuple(axis for axis, _ in axes))
    expected = tuple(size for _, size in axes)
    if p.shape != expected:
        sizes = ", ".join(axis for axis, _ in axes)
        raise InvalidTable(f"{name} has shape {p.shape}: expected ({sizes}) = {expected}")
    total = p.sum(-1, keepdims=True)
    return np.asarray(p / np.where(np.abs(total - 1.0) <= ROUNDING, 1.0, total), np.float64)


def _rounded(numbers: FloatArray) -> FloatArray:
    """Return the numbers to twelve digits.

    >>> _rounded(np.array([0.1 + 0.2, -0.0])).tolist()
    [0.3, 0.0]
    """
    distinct, place = np.unique(numbers, return_inverse=True)
    rounded = np.array([float(f"{x:.12g}") + 0.0 for x in distinct])
    return rounded[place].reshape(numbers.shape)


def _filtered(b: ArrayLike, M: FloatArray) -> tuple[FloatArray, float]:
    """Return b' and p of `kernels.pomdp.condition`; raise BadSituation if b is no distribution."""
    before, after = as_numbers(b, "b", BadSituation), np.empty(len(M))
    p = kernels.pomdp.condition(before, M, after) if before.shape == after.shape else math.nan
    if math.isnan(p):
        raise BadSituation(f"b={b!r}: expected {len(M)} probabilities of states, which sum to 1")
    return after, p


class POMDPEnvironment:
    """The environment Q of a POMDP; `at` is the index of its hidden state, None before a draw.

    >>> from bayescontrol import Stream
    >>> from bayescontrol.pomdp import tiger
    >>> tiger().environment(start="tiger left").respond("open right", Stream(0)).reward
    10.0
    """

    def __init__(self, pomdp: POMDP, start: Hashable | None = None) -> None:
        self.pomdp = pomdp
        self.at = None if start is None else pomdp.states.place(start)

    @property
    def state(self) -> Any:
        """The hidden state; None before it is drawn."""
        return None if self.at is None else self.pomdp.states[self.at]

    def respond(self, a: Hashable, rng: StreamLike) -> Percept:
        """Draw the next state and the observation; return (reward, observation)."""
        pomdp, stream = self.pomdp, require_stream(rng)
        action = pomdp.actions.place(a)
        x = stream.categorical(pomdp.start) if self.at is None else self.at
        y = stream.categorical(pomdp.transition[x, action])
        z = stream.categorical(pomdp.observation[action, y])
        self.at = y
        reward = pomdp.rewards[(x, action, y, z)[: pomdp.rewards.ndim]]
        return Percept(float(reward), pomdp.observations[z])

    def __repr__(self) -> str:
        return f"POMDPEnvironment({self.pomdp!r}, state {self.state!r})"
