"""Output feedback: plants that are partially observed, with one Kalman filter per mode.

    x' = A x + B u + w,   y = C x' + v          w ~ N(0, W),  v ~ N(0, V)

    x̂⁻ = A x̂ + B u,   Σ⁻ = A Σ Aᵀ + W            S = C Σ⁻Cᵀ + V
    P(y | m, s, u) = N(y; C x̂⁻, S)              the density of the innovation
    x̂ ← x̂⁻ + L (y - C x̂⁻),   Σ ← Σ⁻ - L C Σ⁻     L = Σ⁻Cᵀ S⁻¹
    u = -K x̂                                     certainty equivalence, optimal in the mode's world

The filter is the mode's private state s = (x̂, Σ). By default it starts with the stationary Σ, so
that L is constant.
"""

from collections.abc import Sequence
from functools import cached_property
from math import log, pi
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.beliefs.interacting import mix_gaussians
from bayescontrol.errors import NotStabilisable, UnknownAction, counted
from bayescontrol.lqr.matrices import as_definite, as_matrix, as_start, as_vector, riccati
from bayescontrol.lqr.system import LinearSystem
from bayescontrol.protocols import MISSING
from bayescontrol.seeding import StreamLike, state_of


class OutputMode:
    """LQG control of a system that is observed through C with noise covariance V.

    `K` is the gain, by default the optimal one. `start` is the initial x̂, by default 0, and
    `covariance` the initial Σ, by default the stationary one.

    `system` is a `LinearSystem`. `C` is the matrix of the outputs, and `V` the covariance of their
    noise. `name` is for display.

    >>> from bayescontrol import ControlRule, FiniteBelief, Stream, interact
    >>> def cart(push):
    ...     system = LinearSystem([[1, 1], [0, 1]], [[0], [push]], np.eye(2), [[1]])
    ...     return OutputMode(system, C=[[1, 0]], V=[[1]], name=f"push {push}")
    >>> left, right = cart(-1.0), cart(1.0)
    >>> agent = ControlRule(FiniteBelief([left, right]))
    >>> record = interact(agent, right.environment(), 100, seed=0)
    >>> agent.belief
    FiniteBelief(2 modes after 100 observations: push 1.0 1, push -1.0 ...e-...)
    """

    def __init__(
        self,
        system: LinearSystem,
        C: ArrayLike,
        V: ArrayLike,
        *,
        K: ArrayLike | None = None,
        start: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        name: str = "",
    ) -> None:
        n = system.states
        self.system, self.name = system, name or system.name
        self.C = as_matrix(C, (None, n), "C")
        self.V = as_definite(V, len(self.C), "V")
        self.K = system.K if K is None else as_matrix(K, (system.inputs, n), "K")
        self._x0 = as_start(start, n)
        if covariance is None:
            self._initial_covariance = self.covariance
        else:
            self._initial_covariance = as_definite(covariance, n, "covariance", strictly=False)

    @cached_property
    def _filter(self) -> tuple[FloatArray, FloatArray]:
        """The stationary Σ⁻ and L, from the Riccati equation of the transposed system."""
        try:
            P, _ = riccati(self.system.A.T, self.C.T, self.system.W, self.V)
        except NotStabilisable:
            raise NotStabilisable(
                f"no stable filter exists for {self.system!r} with C = {self.C.tolist()}: C must "
                "observe every unstable state; otherwise pass `covariance`"
            ) from None
        return P, np.asarray(np.linalg.solve(self.C @ P @ self.C.T + self.V, self.C @ P).T)

    @property
    def L(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The stationary filter gain."""
        return self._filter[1].copy()

    @property
    def covariance(self) -> FloatArray:
        """The stationary Σ after an observation."""
        P, L = self._filter
        return np.asarray(P - L @ self.C @ P)

    # -- a mode with a private state ------------------------------------------------------------

    def start(self) -> FloatArray:
        """Return the initial private state s = [x̂ | Σ], n × (1 + n)."""
        return np.column_stack([self._x0, self._initial_covariance])

    def act(self, s: FloatArray, rng: StreamLike) -> FloatArray:
        """Return u = -K x̂."""
        u = np.empty(len(self.K))
        kernels.lqr.control(self.K, np.ascontiguousarray(s[:, 0]), u)
        return u

    def log_likelihood(self, s: FloatArray, a: FloatArray, o: FloatArray) -> float:
        """Return ln N(y; C x̂⁻, S)."""
        _, e, S, _ = self._innovation(s, a, o)
        return -0.5 * float(
            e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1] + len(e) * log(2 * pi)
        )

    def advance(self, s: FloatArray, a: FloatArray, o: Any) -> FloatArray:
        """Return [x̂ | Σ] after the output y, or the prediction if y is missing."""
        if o is MISSING:
            o = self.C @ s[:, 0]  # any output; only the prediction is used
            return np.column_stack(self._innovation(s, a, o)[::3])
        predicted, e, S, before = self._innovation(s, a, o)
        L = np.linalg.solve(S, self.C @ before).T
        reduction = np.eye(len(before)) - L @ self.C
        # The Joseph form stays definite.
        after = reduction @ before @ reduction.T + L @ self.V @ L.T
        return np.column_stack([predicted + L @ e, 0.5 * (after + after.T)])

    def mix_states(self, states: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        """Return [x̂ | Σ] of the mixture of the states of all modes, for `InteractingBelief`."""
        s = np.array(states)
        return np.column_stack(mix_gaussians(s[:, :, 0], s[:, :, 1:], weights))

    def _innovation(
        self, s: FloatArray, a: FloatArray, o: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return x̂⁻, y - C x̂⁻, S and Σ⁻."""
        u = as_vector(a, self.system.inputs, "the input")
        y = as_vector(o, len(self.C), "the output")
        predicted = self.system.A @ s[:, 0] + self.system.B @ u
        before = self.system.A @ s[:, 1:] @ self.system.A.T + self.system.W
        return predicted, y - self.C @ predicted, self.C @ before @ self.C.T + self.V, before

    def environment(self, start: ArrayLike | None = None) -> "OutputPlant":
        """Return the environment that this mode assumes."""
        return OutputPlant(self.system, self.C, self.V, self._x0 if start is None else start)

    def __repr__(self) -> str:
        return f"OutputMode({self.name or self.system!r}, {counted(len(self.C), 'output')})"


class OutputPlant:
    """The environment x' = A x + B u + w, of which y = C x' + v is observed.

    >>> from bayescontrol import Stream
    >>> system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]], W=[[0.0]])
    >>> plant = OutputPlant(system, C=[[2.0]], V=[[1e-24]], start=[4.0])
    >>> plant.respond(np.array([1.0]), Stream(0)).round(6), plant.x
    (array([6.]), array([3.]))
    """

    def __init__(
        self,
        system: LinearSystem,
        C: ArrayLike,
        V: ArrayLike,
        start: ArrayLike | None = None,
    ) -> None:
        n = system.states
        self.system, self.C = system, as_matrix(C, (None, n), "C")
        noises = system.W, as_definite(V, len(self.C), "V", strictly=False)
        self._noises = [kernels.regression.factor(covariance) for covariance in noises]
        self.x = as_start(start, n)

    def respond(self, u: ArrayLike, rng: StreamLike) -> Any:
        """Draw the next state and return its output y."""
        v = as_vector(u, self.system.inputs, "the input", UnknownAction)
        x, y = np.empty(self.system.states), np.empty(len(self.C))
        W, V = self._noises
        kernels.lqr.advance(self.system.A, self.system.B, W, self.x, v, x, state_of(rng))
        kernels.lqr.advance(self.C, np.empty((len(y), 0)), V, x, np.empty(0), y, state_of(rng))
        self.x = x
        return y

    def __repr__(self) -> str:
        return f"OutputPlant({self.system!r}, {counted(len(self.C), 'output')})"
