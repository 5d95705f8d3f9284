"""UCRL2 (Jaksch, Ortner & Auer 2010): act optimally in the best MDP that is plausible.

    |r(x,a) - r̂(x,a)|        ≤ c √(7 ln(2 X A t_k / δ) / (2 max(1, n)))        rewards in [0, 1]
    ‖P(· | x,a) - P̂(· | x,a)‖₁ ≤ c √(14 X ln(2 A t_k / δ) / max(1, n))          n = n_{t_k}(x,a)
    π_k by extended value iteration, to 1/√t_k; episode k ends when the visits in it to the
    pair (x_t, π_k(x_t)) reach max(1, n)

    u'(x) = max_a r(x,a) + max { Σ_y p(y) u(y) :  ‖p - P(· | x,a)‖₁ ≤ d(x,a),  p a distribution }
    until  max_x (u' - u)(x) - min_x (u' - u)(x) < tolerance

The inner maximum moves d/2 of probability from where u is smallest to where it is largest (figures
1 and 2 of the paper). r(x,a) = -∞ marks an action that x does not offer. Rewards are scaled to
[0, 1] first. c = 1 is the printed algorithm with its regret bound; a smaller c has no bound, and
explores for a far shorter time.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
from benchmarks.arena.agents.declared_model import DeclaredModel

from bayescontrol._arrays import Arrays, FloatArray, IntArray, require_between
from bayescontrol.errors import BadEvidence, IncompatibleState
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.seeding import Stream

#: The most sweeps of extended value iteration.
LIMIT = 100_000


@leaf
def optimistic(p: FloatArray, d: float, u: FloatArray, order: IntArray) -> float:
    """max Σ_y q(y) u(y) over distributions q with ‖q - p‖₁ ≤ d; `order` sorts u, least first."""
    best = order[order.size - 1]
    excess = min(d / 2.0, 1.0 - p[best])
    value = excess * u[best]
    for y in range(p.size):
        value += p[y] * u[y]
    for i in range(order.size - 1):
        if not excess > 0.0:
            break
        y = order[i]
        taken = min(excess, p[y])
        value -= taken * u[y]
        excess -= taken
    return float(value)


@jit
def extended_value_iteration(
    P: FloatArray,
    r: FloatArray,
    d: FloatArray,
    tolerance: float,
    limit: int,
    policy: IntArray,
    u: FloatArray,
) -> int:
    """Write the optimistic policy to `policy`, u with min u = 0 to `u`; return the sweeps.

    Iteration starts from the given u. It stops after `limit` sweeps with the policy found so far.
    """
    X, A = r.shape
    new = np.empty(X)
    for sweep in range(1, limit + 1):
        order = np.argsort(u)
        low, high, least = math.inf, -math.inf, math.inf
        for x in range(X):
            top = -math.inf
            for a in range(A):
                if r[x, a] > -math.inf:
                    q = r[x, a] + optimistic(P[x, a], d[x, a], u, order)
                    if q > top:
                        policy[x], top = a, q
            new[x] = top
            low, high, least = (
                min(low, top - u[x]),
                max(high, top - u[x]),
                min(least, top),
            )
        for x in range(X):
            u[x] = new[x] - least
        if high - low < tolerance:
            return sweep
    return limit


class UCRL2:
    """Optimism in the face of uncertainty, with declared states. Draws no random numbers.

    `bounds` are the smallest and the largest reward, `delta` is δ, `confidence` is c; `start` is
    the initial state, by default the first; `allowed(x)` the actions of a state, by default all.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = UCRL2.on(mdp, confidence=0.1)
    >>> record = interact(agent, mdp.environment(), 2_000, seed=0)
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
        low, high = (require_between("bounds", b, -math.inf, math.inf, ends="()") for b in bounds)
        if not low < high:
            raise ValueError(f"bounds={bounds!r}: give the smallest reward, then the largest")
        settings = {
            "bounds": (low, high),
            "delta": require_between("delta", delta, 0, 1, ends="()"),
            "confidence": require_between("confidence", confidence, 0, math.inf, ends="[)"),
        }
        self._declared = declared = DeclaredModel(states, actions, allowed, settings)
        X, A = declared.allowed.shape
        declared.arrays = {
            "x": np.array(0 if start is None else declared.states.place(start)),
            # The number of steps, and the one at which the episode began; -1 before the first.
            "t": np.array(0),
            "begun": np.array(-1),
            # n(x,a,y), n(x,a), visits in this episode, sum of rewards scaled to [0, 1], and π_k.
            "n": np.zeros((X, A, X)),
            "tried": np.zeros((X, A)),
            "visits": np.zeros((X, A)),
            "total": np.zeros((X, A)),
            "policy": np.zeros(X, np.int64),
        }

    @classmethod
    def on(cls, mdp: MDP, **settings: Any) -> "UCRL2":
        """The agent for a given MDP; the bounds include all rewards and 0.

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

    # -- agent ---------------------------------------------------------------------------------

    def act(self, rng: Stream) -> Any:
        """π_k(x); plans for the next episode first if the last has ended."""
        arrays = self._declared.arrays
        x = int(arrays["x"])
        if arrays["begun"] < 0 or self._episode_ended(x, int(arrays["policy"][x])):
            arrays["policy"][:] = self._plan()
            arrays["begun"][...] = arrays["t"]
            arrays["visits"][:] = 0.0
        return self._declared.actions[int(arrays["policy"][x])]

    def observe(self, a: Any, o: Any) -> None:
        """Count the transition o = (r, y) and move to y. On an error the agent is unchanged."""
        here, column, r, there = self._declared.read(self.x, a, o)
        low, high = self.bounds
        if not low <= r <= high:
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {self.x!r}: bounds={self.bounds!r}"
            )
        arrays = self._declared.arrays
        arrays["n"][here, column, there] += 1.0
        arrays["tried"][here, column] += 1.0
        arrays["visits"][here, column] += 1.0
        arrays["total"][here, column] += (r - low) / (high - low)
        arrays["t"] += 1
        arrays["x"][...] = there

    def _episode_ended(self, x: int, a: int) -> bool:
        """Whether the visits to (x,a) in this episode reached max(1, n), n from its start."""
        arrays = self._declared.arrays
        visits = float(arrays["visits"][x, a])
        return visits >= max(1.0, float(arrays["tried"][x, a]) - visits)

    def _plan(self) -> IntArray:
        P, r, d = self.plausible()
        policy, u = np.empty(len(P), np.int64), np.zeros(len(P))
        tolerance = 1.0 / math.sqrt(self._t_k())
        extended_value_iteration(P, r, d, tolerance, LIMIT, policy, u)
        return policy

    def _t_k(self) -> int:
        """t_k, counted from one."""
        return int(self._declared.arrays["t"]) + 1

    # -- summaries -----------------------------------------------------------------------------

    def plausible(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P̂(y | x,a), the largest plausible r(x,a), -∞ where x does not offer a, and d(x,a).

        An untried pair can lead anywhere: d = 2.

        >>> agent = UCRL2(2, 1)
        >>> agent.observe(0, (1.0, 1))
        >>> P, r, d = agent.plausible()
        >>> P[0], round(float(r[0, 0] - 1.0), 6)  # √(3.5 ln(2 · 2 · 1 · 2 / .05))
        (array([[0., 1.]]), 4.21463)
        """
        X, A = self._declared.allowed.shape
        arrays, delta = self._declared.arrays, self._declared.settings["delta"]
        counts, c, t = arrays["n"], self._declared.settings["confidence"], self._t_k()
        tried = arrays["tried"]
        n = np.maximum(tried, 1.0)
        P = np.where(tried[:, :, None] > 0.0, counts / n[:, :, None], 1.0 / X)
        r = arrays["total"] / n + c * np.sqrt(3.5 * math.log(2.0 * X * A * t / delta) / n)
        d = c * np.sqrt(14.0 * X * math.log(2.0 * A * t / delta) / n)
        d = np.where(tried > 0.0, d, 2.0)
        return P, np.where(self._declared.allowed, r, -np.inf), d

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest reward."""
        low, high = self._declared.settings["bounds"]
        return low, high

    @property
    def x(self) -> Any:
        """The current state."""
        return self._declared.states[int(self._declared.arrays["x"])]

    @property
    def policy(self) -> IntArray:
        """The number of the action π_k(x), for each state."""
        return self._declared.arrays["policy"].copy()

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return named arrays from which `load` continues bit for bit."""
        return self._declared.save()

    def load(self, arrays: Arrays) -> None:
        """Restore the state that `save` returned for an agent with the same settings."""
        declared = self._declared.copy()
        declared.load(arrays)
        X, A = declared.allowed.shape
        x, policy = declared.arrays["x"], declared.arrays["policy"]
        if not (0 <= x < X and (policy >= 0).all() and (policy < A).all()):
            raise IncompatibleState(f"the saved state is damaged: state {x}, policy {policy}")
        self._declared = declared

    def copy(self) -> "UCRL2":
        """An independent copy."""
        twin = type(self).__new__(type(self))
        twin._declared = self._declared.copy()
        return twin

    def __repr__(self) -> str:
        return (
            f"UCRL2({self._declared!r}, in state {self.x!r}, t={int(self._declared.arrays['t'])})"
        )
