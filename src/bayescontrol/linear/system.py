"""A linear plant with a quadratic cost: what it is, and what the best control of it costs.

y = A x + B u + w,  w ~ N(0, W)          c(x, u) = xᵀQx + uᵀRu

u* = -K x,   J* = tr(P W)                (P, K) solve the Riccati equation
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.linear.checks import as_definite, as_matrix
from bayescontrol.linear.riccati import average_cost, riccati
from bayescontrol.words import counted


class Costs(NamedTuple):
    """c(x, u) = xᵀQx + uᵀRu.

    >>> Costs(np.eye(2), np.eye(1)).of(np.array([1.0, 2.0]), np.array([3.0]))
    14.0
    """

    Q: FloatArray
    R: FloatArray

    def of(self, x: FloatArray, u: FloatArray) -> float:
        """The cost of one step."""
        return float(x @ self.Q @ x + u @ self.R @ u)


def as_costs(Q: npt.ArrayLike, R: npt.ArrayLike) -> Costs:
    """Q ⪰ 0 and R ≻ 0, checked.

    >>> as_costs([[1, 0], [0, 0]], [[1]]).R
    array([[1.]])
    """
    return Costs(as_definite(Q, None, "Q", strictly=False), as_definite(R, None, "R"))


class LinearSystem:
    """A, B, Q, R and W with all that follows from them; W is the identity unless given.

    >>> cart = LinearSystem([[1, 1], [0, 1]], [[0], [1]], np.eye(2), [[1]], name="cart")
    >>> cart
    LinearSystem(cart: 2 states, 1 input, J* = 7.56)
    >>> cart.K.round(3).tolist(), round(cart.cost(cart.K) / cart.best_cost, 9)
    ([[0.422, 1.244]], 1.0)
    >>> cart.cost([[0.0, 0.0]])
    inf
    """

    def __init__(
        self,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        Q: npt.ArrayLike,
        R: npt.ArrayLike,
        W: npt.ArrayLike | None = None,
        *,
        name: str = "",
    ) -> None:
        self.A = as_matrix(A, (None, None), "A")
        n = len(self.A)
        as_matrix(self.A, (n, n), "A")
        self.B = as_matrix(B, (n, None), "B")
        self.Q = as_definite(Q, n, "Q", strictly=False)
        self.R = as_definite(R, self.inputs, "R")
        self.W = as_definite(np.eye(n) if W is None else W, n, "W", strictly=False)
        self.name = name

    @property
    def states(self) -> int:
        """n, the length of a state."""
        return len(self.A)

    @property
    def inputs(self) -> int:
        """m, the length of an input."""
        return int(self.B.shape[1])

    @property
    def costs(self) -> Costs:
        """Q and R."""
        return Costs(self.Q, self.R)

    @property
    def radius(self) -> float:
        """max |λ(A)|: the plant is stable by itself where it is below 1."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        return riccati(self.A, self.B, self.Q, self.R)

    @property
    def P(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """xᵀPx is what a start in x costs beyond J* a step."""
        return self._solution[0].copy()

    @property
    def K(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The best gain: u = -K x."""
        return self._solution[1].copy()

    @property
    def best_cost(self) -> float:
        """J* = tr(P W), a step on average."""
        return float(np.sum(self._solution[0] * self.W))

    def cost(self, K: npt.ArrayLike) -> float:
        """J(K) = tr(P_K W) of u = -K x, exactly; ∞ where it does not stabilise."""
        return average_cost(self.A, self.B, self.Q, self.R, self.W, K)

    def __repr__(self) -> str:
        name = f"{self.name}: " * bool(self.name)
        what = f"{counted(self.states, 'state')}, {counted(self.inputs, 'input')}"
        return f"LinearSystem({name}{what}, J* = {self.best_cost:.3g})"
