"""A plain Kalman filter as a mode with private state, for tests of beliefs over such modes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.beliefs import mix_gaussians
from bayescontrol.lqr import LinearSystem
from bayescontrol.lqr.matrices import as_vector
from bayescontrol.protocols import MISSING


class OutputMode:
    """The optimal gain on the estimate x̂ of a system with outputs y = C x' + N(0, V).

    The private state is [x̂ | Σ], an array n × (1 + n). It starts at [0 | identity].
    """

    def __init__(self, system: LinearSystem, C: ArrayLike, V: ArrayLike, *, name: str = "") -> None:
        self.system, self.name = system, name
        self.C, self.V = np.array(C, np.float64), np.array(V, np.float64)

    def start(self) -> FloatArray:
        n = self.system.states
        return np.eye(n, 1 + n, 1)

    def act(self, s: FloatArray, rng: object) -> FloatArray:
        return np.asarray(-self.system.K @ s[:, 0])

    def predicted(self, s: FloatArray, a: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """x̂⁻, Σ⁻ and the covariance S of the output."""
        A, B, W = self.system.A, self.system.B, self.system.W
        before = A @ s[:, 1:] @ A.T + W
        return A @ s[:, 0] + B @ np.asarray(a), before, self.C @ before @ self.C.T + self.V

    def log_likelihood(self, s: FloatArray, a: Any, o: Any) -> float:
        y, (x, _, S) = as_vector(o, len(self.C), "the output"), self.predicted(s, a)
        return float(stats.multivariate_normal(self.C @ x, S).logpdf(y))

    def advance(self, s: FloatArray, a: Any, o: Any) -> FloatArray:
        x, before, S = self.predicted(s, a)
        if o is MISSING:
            return np.column_stack([x, before])
        L = np.linalg.solve(S, self.C @ before).T
        return np.column_stack([x + L @ (np.asarray(o) - self.C @ x), before - L @ self.C @ before])

    def mix_states(self, states: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        s = np.array(states)
        return np.column_stack(mix_gaussians(s[:, :, 0], s[:, :, 1:], weights))
