"""UCRL2 (Jaksch, Ortner & Auer 2010): act as if in the best MDP that the data leave plausible.

    |r(x,a) - r̂(x,a)|        ≤ c √(7 ln(2 X A t_k / δ) / (2 max(1, n)))        rewards in [0, 1]
    ‖P(· | x,a) - P̂(· | x,a)‖₁ ≤ c √(14 X ln(2 A t_k / δ) / max(1, n))          n = n_{t_k}(x,a)
    π_k by extended value iteration, to 1/√t_k; episode k ends when the visits in it to the
    pair (x_t, π_k(x_t)) reach max(1, n)

Rewards between other bounds are brought to [0, 1] first. c = 1 is the algorithm as printed, with
its bound on regret; a smaller c has none, and explores for far less long.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray, IntArray
from bayescontrol.baselines.mdp.book import Book
from bayescontrol.baselines.mdp.checks import between
from bayescontrol.errors import BadEvidence, IncompatibleState
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.seeding import Stream

#: Sweeps that extended value iteration may take.
LIMIT = 100_000


class UCRL2:
    """Optimism in the face of uncertainty, with declared states. It draws no random numbers.

    `bounds` are the least and the largest reward, `delta` is δ, `confidence` is c; `start` is the
    state to begin in, by default the first, `allowed(x)` the actions of a state, by default all.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = UCRL2.on(mdp, confidence=0.1)
    >>> record = interact(agent, mdp.environment(), 2_000)
    >>> float(record.observations["reward"][-300:].mean())  # ρ* = 1/3
    0.333...
    >>> agent.observe(0, (3.0, 0))
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: reward 3.0 after action 0 in state ...: bounds=(0.0, 1.0)
    """

    format_name: ClassVar[str] = "UCRL2"
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    def __init__(
        self,
        states: int | Iterable[Hashable],
        actions: int | Iterable[Hashable],
        bounds: tuple[float, float] = (0.0, 1.0),
        delta: float = 0.05,
        confidence: float = 1.0,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        low, high = (between("bounds", b, -math.inf, math.inf, ends="()") for b in bounds)
        if not low < high:
            raise ValueError(f"bounds={bounds!r}: the least reward, then the largest")
        settings = {
            "bounds": (low, high),
            "delta": between("delta", delta, 0, 1, ends="()"),
            "confidence": between("confidence", confidence, 0, math.inf, ends="[)"),
        }
        self._book = book = Book(states, actions, allowed, settings)
        X, A = book.allowed.shape
        book.arrays = {
            "x": np.array(0 if start is None else book.states.place(start)),
            # Steps seen, and those seen when the episode began; -1 before the first one.
            "t": np.array(0),
            "begun": np.array(-1),
            # n(x,a,y), n(x,a), visits of this episode, Σ of rewards brought to [0, 1], and π_k.
            "n": np.zeros((X, A, X)),
            "tried": np.zeros((X, A)),
            "visits": np.zeros((X, A)),
            "total": np.zeros((X, A)),
            "policy": np.zeros(X, np.int64),
        }

    @classmethod
    def on(cls, mdp: MDP, **settings: Any) -> "UCRL2":
        """The agent for a given MDP, its bounds those of the rewards and 0.

        >>> from bayescontrol.mdp import Maze
        >>> UCRL2.on(Maze().mdp()).bounds
        (0.0, 2.5)
        """
        r = mdp.rewards
        low, high = min(0.0, float(r.min())), max(0.0, float(r.max()))
        settings = {"bounds": (low, high if low < high else low + 1.0), **settings}
        if not mdp.allowed.all():
            settings = {"allowed": mdp.actions_in, **settings}
        return cls(tuple(mdp.states), tuple(mdp.actions), **settings)

    # -- an agent in the stream ----------------------------------------------------------------

    def act(self, rng: Stream) -> Any:
        """π_k(x), where an episode is over after planning for the next one."""
        arrays = self._book.arrays
        x = int(arrays["x"])
        if arrays["begun"] < 0 or self._over(x, int(arrays["policy"][x])):
            arrays["policy"][:] = self._plan()
            arrays["begun"][...] = arrays["t"]
            arrays["visits"][:] = 0.0
        return self._book.actions[int(arrays["policy"][x])]

    def observe(self, a: Any, o: Any) -> None:
        """Count the transition o = (r, y), move on to y. On an error nothing has changed."""
        here, column, r, there = self._book.read(self.x, a, o)
        low, high = self.bounds
        if not low <= r <= high:
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {self.x!r}: bounds={self.bounds!r}"
            )
        arrays = self._book.arrays
        arrays["n"][here, column, there] += 1.0
        arrays["tried"][here, column] += 1.0
        arrays["visits"][here, column] += 1.0
        arrays["total"][here, column] += (r - low) / (high - low)
        arrays["t"] += 1
        arrays["x"][...] = there

    def _over(self, x: int, a: int) -> bool:
        """Have the visits of this episode to (x,a) reach max(1, n), n as it was when it began?"""
        arrays = self._book.arrays
        visits = float(arrays["visits"][x, a])
        return visits >= max(1.0, float(arrays["tried"][x, a]) - visits)

    def _plan(self) -> IntArray:
        P, r, d = self.plausible()
        policy, u = np.empty(len(P), np.int64), np.zeros(len(P))
        tolerance = 1.0 / math.sqrt(self._t_k())
        kernels.optimism.extended_value_iteration(P, r, d, tolerance, LIMIT, policy, u)
        return policy

    def _t_k(self) -> int:
        """t_k counts from one."""
        return int(self._book.arrays["t"]) + 1

    # -- what a reader may ask -----------------------------------------------------------------

    def plausible(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P̂(y | x,a), the largest plausible r(x,a), -∞ where x does not offer a, and d(x,a).

        A pair that was never tried may lead anywhere: d = 2.

        >>> agent = UCRL2(2, 1)
        >>> agent.observe(0, (1.0, 1))
        >>> P, r, d = agent.plausible()
        >>> P[0], round(float(r[0, 0] - 1.0), 6)  # √(3.5 ln(2 · 2 · 1 · 2 / .05))
        (array([[0., 1.]]), 4.21463)
        """
        X, A = self._book.allowed.shape
        arrays, delta = self._book.arrays, self._book.settings["delta"]
        counts, c, t = arrays["n"], self._book.settings["confidence"], self._t_k()
        tried = arrays["tried"]
        n = np.maximum(tried, 1.0)
        P = np.where(tried[:, :, None] > 0.0, counts / n[:, :, None], 1.0 / X)
        r = arrays["total"] / n + c * np.sqrt(3.5 * math.log(2.0 * X * A * t / delta) / n)
        d = c * np.sqrt(14.0 * X * math.log(2.0 * A * t / delta) / n)
        d = np.where(tried > 0.0, d, 2.0)
        return P, np.where(self._book.allowed, r, -np.inf), d

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest reward."""
        low, high = self._book.settings["bounds"]
        return low, high

    @property
    def x(self) -> Any:
        """The state of now."""
        return self._book.states[int(self._book.arrays["x"])]

    @property
    def policy(self) -> IntArray:
        """π_k(x), by number."""
        return self._book.arrays["policy"].copy()

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return self._book.save()

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent built alike."""
        book = self._book.copy()
        book.load(arrays)
        X, A = book.allowed.shape
        x, policy = book.arrays["x"], book.arrays["policy"]
        if not (0 <= x < X and (policy >= 0).all() and (policy < A).all()):
            raise IncompatibleState(f"the saved state is damaged: state {x}, policy {policy}")
        self._book = book

    def copy(self) -> "UCRL2":
        """The same agent, free to go its own way."""
        twin = type(self).__new__(type(self))
        twin._book = self._book.copy()
        return twin

    def __repr__(self) -> str:
        return f"UCRL2({self._book!r}, in state {self.x!r}, t={int(self._book.arrays['t'])})"
