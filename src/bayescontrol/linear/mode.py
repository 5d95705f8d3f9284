"""An operation mode of a linear plant: a system, and the gain that is best for it.

P(y | m, x, u) = N(A x + B u, W)          P(u | m, x): u = -K x
"""

from collections.abc import Sequence
from math import log, pi
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import IncompatibleState
from bayescontrol.linear.checks import as_vector, factor
from bayescontrol.linear.plant import split
from bayescontrol.linear.system import Costs, LinearSystem
from bayescontrol.seeding import Stream

_PARTS = ("A", "B", "V", "P", "K", "Q", "R")


class LinearMode:
    """What a draw gives: A, B, W = VᵀV and the costs it believes in, with their P and K.

    >>> system = LinearSystem([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> mode = LinearMode.of(system)
    >>> mode.act(np.array([2.0]), Stream(0)).round(6), mode.K.round(6)
    (array([-1.236068]), array([[0.618034]]))
    >>> round(mode.log_likelihood(np.zeros(1), np.zeros(1), np.ones(1)), 6)
    -1.418939
    """

    __slots__ = ("A", "B", "K", "P", "V", "costs")

    def __init__(self, solved: Sequence[FloatArray], costs: Costs) -> None:
        self.A, self.B, self.V, self.P, self.K = solved
        self.costs = costs

    @classmethod
    def of(cls, system: LinearSystem) -> "LinearMode":
        """The mode that knows the system."""
        solved = system.A, system.B, factor(system.W), system.P, system.K
        return cls(solved, system.costs)

    def act(self, x: FloatArray, rng: Stream) -> FloatArray:
        """u = -K x."""
        u = np.empty(len(self.K))
        kernels.lqr.control(self.K, as_vector(x, len(self.A), "the state"), u)
        return u

    def log_likelihood(self, x: FloatArray, u: FloatArray, o: Any) -> float:
        """ln N(y; A x + B u, W)."""
        e = np.linalg.solve(self.V.T, np.asarray(split(o)[0]) - self.A @ x - self.B @ u)
        log_det = float(np.linalg.slogdet(self.V)[1])
        return -0.5 * (float(e @ e) + len(e) * log(2 * pi)) - log_det

    @property
    def W(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """VᵀV."""
        return np.asarray(self.V.T @ self.V)

    def arrays(self) -> Any:
        """What the kernels work on."""
        return kernels.lqr.Mode(self.A, self.B, self.V, self.P, self.K)

    def save(self) -> Arrays:
        """Named arrays, `drawn/` before each name."""
        parts = (self.A, self.B, self.V, self.P, self.K, *self.costs)
        return {f"drawn/{name}": part.copy() for name, part in zip(_PARTS, parts, strict=True)}

    @classmethod
    def saved(cls, arrays: Arrays, n: int, m: int) -> "LinearMode | None":
        """What `save` gave, for n states and m inputs; None if no mode was saved."""
        names = {name for name in arrays if name.startswith("drawn/")}
        if not names:
            return None
        shapes = dict(
            zip(_PARTS, ((n, n), (n, m), (n, n), (n, n), (m, n), (n, n), (m, m)), strict=True)
        )
        parts = []
        for name, shape in shapes.items():
            part = arrays.get(f"drawn/{name}")
            if part is None or part.shape != shape or part.dtype != np.float64:
                raise IncompatibleState(f"the saved mode has no {name} of shape {shape}")
            if not np.isfinite(part).all():
                raise IncompatibleState(f"the saved array 'drawn/{name}' is not finite: damaged")
            parts.append(part.copy())
        return cls(parts[:5], Costs(*parts[5:]))

    def __repr__(self) -> str:
        return f"LinearMode(K = {np.array2string(self.K, precision=3, separator=', ')})"
