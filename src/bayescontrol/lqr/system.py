"""Linear systems with quadratic costs, their environments, and examples by name.

    y = A x + B u + w,  w ~ N(0, W)          c(x, u) = xᵀQx + uᵀRu

    u* = -K x,   J* = tr(P W)                (P, K) solve the Riccati equation

The environment's observation is the next state y, or y with the measured cost. The agent's
situation is the state, and it must start in the state of the plant.

    double-integrator   a cart on rails, step 1: |λ(A)| = 1, not stable without control
    laplacian           three coupled nodes that drift apart, |λ(A)| up to 1.024
    aircraft            longitudinal motion of a Boeing 747
    random-stable       entries N(0, 1), A scaled to |λ(A)| = 0.9
    random-unstable     entries N(0, 1), A scaled to |λ(A)| = 1.2
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem, UnknownAction, counted
from bayescontrol.lqr import matrices
from bayescontrol.record import Record
from bayescontrol.seeding import SeedLike, StreamLike, as_stream, state_of
from bayescontrol.situations import follows_state


class Costs(NamedTuple):
    """The cost matrices of c(x, u) = xᵀQx + uᵀRu.

    >>> Costs(np.eye(2), np.eye(1)).of(np.array([1.0, 2.0]), np.array([3.0]))
    14.0
    """

    Q: FloatArray
    R: FloatArray

    def of(self, x: FloatArray, u: FloatArray) -> float:
        """Return the cost c(x, u) of one step."""
        return float(x @ self.Q @ x + u @ self.R @ u)


def as_costs(Q: ArrayLike, R: ArrayLike) -> Costs:
    """Return the costs after checking that Q ⪰ 0 and R ≻ 0."""
    q = matrices.as_definite(Q, None, "Q", strictly=False)
    return Costs(q, matrices.as_definite(R, None, "R"))


class LinearSystem:
    """A linear system A, B with costs Q, R and noise covariance W (the identity by default).

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
        A: ArrayLike,
        B: ArrayLike,
        Q: ArrayLike,
        R: ArrayLike,
        W: ArrayLike | None = None,
        *,
        name: str = "",
    ) -> None:
        self.A = matrices.as_square(A, "A")
        n = len(self.A)
        self.B = matrices.as_matrix(B, (n, None), "B")
        self.Q = matrices.as_definite(Q, n, "Q", strictly=False)
        self.R = matrices.as_definite(R, self.inputs, "R")
        self.W = matrices.as_definite(np.eye(n) if W is None else W, n, "W", strictly=False)
        self.name = name

    @property
    def states(self) -> int:
        """n, the dimension of the state."""
        return len(self.A)

    @property
    def inputs(self) -> int:
        """m, the dimension of the input."""
        return int(self.B.shape[1])

    @property
    def costs(self) -> Costs:
        """Q and R."""
        return Costs(self.Q, self.R)

    @property
    def radius(self) -> float:
        """max |λ(A)|, the spectral radius; below 1 the plant is stable without control."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        return matrices.riccati(self.A, self.B, self.Q, self.R)

    @property
    def P(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The matrix P of the optimal cost-to-go xᵀPx, relative to J* per step."""
        return self._solution[0].copy()

    @property
    def K(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The optimal gain: u = -K x."""
        return self._solution[1].copy()

    @property
    def best_cost(self) -> float:
        """J* = tr(P W), the optimal average cost per step."""
        return float(np.sum(self._solution[0] * self.W))

    def cost(self, K: ArrayLike) -> float:
        """Return J(K) = tr(P_K W), the average cost of u = -K x; ∞ if K does not stabilise."""
        return matrices.average_cost(self.A, self.B, self.Q, self.R, self.W, K)

    def __repr__(self) -> str:
        name = f"{self.name}: " * bool(self.name)
        what = f"{counted(self.states, 'state')}, {counted(self.inputs, 'input')}"
        return f"LinearSystem({name}{what}, J* = {self.best_cost:.4g})"


class Measured(NamedTuple):
    """An observation with a cost: the next state y and the measured c(x, u).

    >>> Measured((0.0, 0.0), 1.5).cost
    1.5
    """

    state: Sequence[float]  #: a plant returns a tuple, because tuples can be compared
    cost: float


def state_and_cost(o: Any) -> tuple[Any, float | None]:
    """Return the state and the cost of an observation; the cost is None if it has none."""
    if isinstance(o, tuple) and hasattr(o, "cost"):  # also the named tuples of a record
        measured: Any = o
        return measured.state, measured.cost
    return o, None


@follows_state
def next_state(x: FloatArray, u: FloatArray, o: Any) -> FloatArray:
    """T(x, u, o) = y: the observed state is the next situation."""
    try:
        return np.array(state_and_cost(o)[0], np.float64)
    except (TypeError, ValueError):
        raise BadEvidence(f"observation {o!r} is not a state: expected a list of numbers") from None


class LinearPlant:
    """The environment Q of a linear system: y = A x + B u + w.

    With `cost_noise` the cost is observed too, with noise of that standard deviation.

    >>> from bayescontrol import Stream
    >>> system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]], W=[[0.0]])
    >>> plant = LinearPlant(system, start=[4.0])
    >>> plant.respond(np.array([1.0]), Stream(0)), plant.x
    (array([3.]), array([3.]))
    >>> LinearPlant(system, start=[4.0], cost_noise=0.0).respond([1.0], Stream(0)).cost
    17.0
    """

    #: `interact` rejects an agent that tracks the state and starts in a different one.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        system: LinearSystem,
        start: ArrayLike | None = None,
        *,
        cost_noise: float | None = None,
    ) -> None:
        self.system = system
        if cost_noise is not None and not 0.0 <= cost_noise < np.inf:
            raise InvalidSystem(f"cost_noise={cost_noise}: it must be finite and at least 0")
        self.cost_noise = cost_noise
        self._x = matrices.as_start(start, system.states)
        self._V = kernels.regression.factor(system.W)

    @property
    def x(self) -> FloatArray:
        """A copy of the state."""
        return self._x.copy()

    def respond(self, u: ArrayLike, rng: StreamLike) -> Any:
        """Draw the next state y ~ N(A x + B u, W); with `cost_noise`, return it with the cost."""
        v = matrices.as_vector(u, self.system.inputs, "the input", UnknownAction)
        y = np.empty(self.system.states)
        kernels.lqr.advance(self.system.A, self.system.B, self._V, self._x, v, y, state_of(rng))
        cost = self.system.costs.of(self._x, v)
        self._x = y
        if self.cost_noise is None:
            return y.copy()
        if self.cost_noise:
            cost += rng.normal(0.0, self.cost_noise)
        return Measured(tuple(y.tolist()), cost)

    def change_to(self, other: "LinearPlant") -> None:
        """Become another system; the state stays as it is."""
        if other.system.B.shape != self.system.B.shape:
            raise InvalidSystem(f"{self!r} cannot become {other!r}: the dimensions differ")
        self.system, self._V = other.system, other._V

    def costs(self, record: Record, start: ArrayLike | None = None) -> FloatArray:
        """Return c(x_t, u_t) at each step of a run from the state `start`, 0 by default.

        >>> from bayescontrol import interact
        >>> system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]])
        >>> class Rest:
        ...     def act(self, rng): return np.zeros(1)
        ...     def observe(self, a, o): pass
        >>> plant = LinearPlant(system, start=[2.0])
        >>> float(plant.costs(interact(Rest(), plant, 5, seed=0), start=[2.0])[0])
        4.0
        """
        n = self.system.states
        states = np.array([state_and_cost(o)[0] for _, o in record]).reshape(-1, n)
        X = np.vstack([matrices.as_start(start, n), states])[:-1]  # the state before each step
        U = np.asarray(record.actions, np.float64).reshape(len(X), self.system.inputs)
        of_states = np.einsum("ti,ij,tj->t", X, self.system.Q, X, optimize=False)
        of_inputs = np.einsum("ti,ij,tj->t", U, self.system.R, U, optimize=False)
        return np.asarray(of_states + of_inputs)

    # -- for compiled loops --------------------------------------------------------------------

    def loop_arrays(self) -> "kernels.lqr.PlantArrays":
        """Return A, B and V with VᵀV = W, for compiled loops."""
        return kernels.lqr.PlantArrays(self.system.A, self.system.B, self._V)

    def fast_forward(self, x: FloatArray) -> None:
        """Synchronise with a finished compiled loop."""
        self._x = x.copy()

    def __repr__(self) -> str:
        return f"LinearPlant({self.system!r}, in {np.array2string(self._x, precision=3)})"


def double_integrator() -> LinearSystem:
    """Return a pushed cart: position and speed; Q = I, R = 1, W = I. It has |λ(A)| = 1.

    >>> double_integrator().A.tolist(), round(double_integrator().radius, 6)
    ([[1.0, 1.0], [0.0, 1.0]], 1.0)
    """
    return LinearSystem([[1, 1], [0, 1]], [[0], [1]], np.eye(2), [[1]], name="double-integrator")


def laplacian() -> LinearSystem:
    """Return three coupled nodes with one input each, of Dean, Mania, Matni, Recht & Tu.

    It is the example of "On the sample complexity of the linear quadratic regulator"; inputs cost
    a thousand times as much as states.

    >>> round(laplacian().radius, 4), laplacian().Q[0, 0].item()
    (1.0241, 0.001)
    """
    A = 1.01 * np.eye(3) + 0.01 * (np.eye(3, k=1) + np.eye(3, k=-1))
    return LinearSystem(A, np.eye(3), 1e-3 * np.eye(3), np.eye(3), name="laplacian")


def aircraft() -> LinearSystem:
    """Return the longitudinal motion of a Boeing 747 at 40,000 ft and 774 ft/s, with step 1 s.

    The states are two speeds, pitch rate and pitch; the inputs are elevator and thrust. Q = I and
    R = 100 I, as in Boyd & Vandenberghe, "Introduction to applied linear algebra", chapter 17.

    >>> round(aircraft().radius, 4), aircraft().inputs
    (0.9926, 2)
    """
    A = [
        [0.99, 0.03, -0.02, -0.32],
        [0.01, 0.47, 4.70, 0.00],
        [0.02, -0.06, 0.40, 0.00],
        [0.01, -0.04, 0.72, 0.99],
    ]
    B = [[0.01, 0.99], [-3.44, 1.66], [-0.83, 0.44], [-0.47, 0.25]]
    return LinearSystem(A, B, np.eye(4), 100.0 * np.eye(2), name="aircraft")


def random_system(
    states: int, inputs: int, radius: float, seed: SeedLike = 0, name: str = "random"
) -> LinearSystem:
    """Return a system with N(0, 1) entries, A scaled to max |λ(A)| = radius, Q = I, R = I, W = I.

    >>> round(random_system(3, 2, 0.5).radius, 9)
    0.5
    """
    rng = as_stream(seed)
    A = np.array(rng.normal(size=states * states)).reshape(states, states)
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    B = np.array(rng.normal(size=states * inputs)).reshape(states, inputs)
    return LinearSystem(A, B, np.eye(states), np.eye(inputs), name=name)


def random_stable() -> LinearSystem:
    """Return a random system of 4 states and 2 inputs with |λ(A)| = 0.9.

    >>> round(random_stable().radius, 9)
    0.9
    """
    return random_system(4, 2, 0.9, seed=1, name="random-stable")


def random_unstable() -> LinearSystem:
    """Return a random system of 3 states and 2 inputs with |λ(A)| = 1.2.

    >>> round(random_unstable().radius, 9)
    1.2
    """
    return random_system(3, 2, 1.2, seed=2, name="random-unstable")


#: The named plants.
PLANTS: Final[Mapping[str, Callable[[], LinearSystem]]] = {
    plant.__name__.replace("_", "-"): plant
    for plant in (double_integrator, laplacian, aircraft, random_stable, random_unstable)
}
