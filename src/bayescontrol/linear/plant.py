"""The plant as an environment: the observation is the next state, or that and the cost.

    o = y = A x + B u + w            or  o = (y, c(x, u) + noise)

The agent's situation is the state. It must begin where the plant is.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem, UnknownAction
from bayescontrol.linear.checks import as_vector, factor
from bayescontrol.linear.system import LinearSystem
from bayescontrol.record import Record
from bayescontrol.seeding import Stream
from bayescontrol.situations import follows_state


class Measured(NamedTuple):
    """An observation with its cost: y, and c(x, u) as it was measured.

    >>> Measured((0.0, 0.0), 1.5).cost
    1.5
    """

    state: Sequence[float]  #: a tuple, where it comes from a plant: tuples can be compared
    cost: float


def split(o: Any) -> tuple[Any, float | None]:
    """The state and the cost of an observation; None where it has no cost.

    >>> split(Measured((1.0,), 2.0)), split([1.0])
    (((1.0,), 2.0), ([1.0], None))
    """
    if isinstance(o, tuple) and hasattr(o, "cost"):  # a record's named tuples are its own
        measured: Any = o
        return measured.state, measured.cost
    return o, None


@follows_state
def next_state(x: FloatArray, u: FloatArray, o: Any) -> FloatArray:
    """T(x, u, o) = y: what is observed is where the plant is.

    >>> next_state(np.zeros(1), np.zeros(1), Measured((1.0,), 2.0))
    array([1.])
    """
    try:
        return np.array(split(o)[0], np.float64)
    except (TypeError, ValueError):
        raise BadEvidence(f"observation {o!r} is no state: give a list of numbers") from None


class LinearPlant:
    """Q: y = A x + B u + w. With `cost_noise` the cost is observed too, with that deviation.

    >>> system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]], W=[[0.0]])
    >>> plant = LinearPlant(system, start=[4.0])
    >>> plant.respond(np.array([1.0]), Stream(0)), plant.x
    (array([3.]), array([3.]))
    >>> LinearPlant(system, start=[4.0], cost_noise=0.0).respond([1.0], Stream(0)).cost
    17.0
    """

    #: `interact` refuses an agent that follows the states and is in another one.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        system: LinearSystem,
        start: npt.ArrayLike | None = None,
        *,
        cost_noise: float | None = None,
    ) -> None:
        self.system = system
        if cost_noise is not None and not 0.0 <= cost_noise < np.inf:
            raise InvalidSystem(f"cost_noise={cost_noise}: a deviation is at least 0, and finite")
        self.cost_noise = cost_noise
        try:
            start = np.zeros(system.states) if start is None else start
            self._x = as_vector(start, system.states, "the start").copy()
        except BadEvidence as error:
            raise InvalidSystem(str(error)) from None
        self._V = factor(system.W)

    @property
    def x(self) -> FloatArray:
        """The state, a copy."""
        return self._x.copy()

    def respond(self, u: npt.ArrayLike, rng: Stream) -> Any:
        """y ~ N(A x + B u, W): the next state, with the cost if that is observed."""
        try:
            v = as_vector(u, self.system.inputs, "the input")
        except BadEvidence as error:
            raise UnknownAction(str(error)) from None
        y = np.empty(self.system.states)
        kernels.lqr.advance(self.system.A, self.system.B, self._V, self._x, v, y, rng.state)
        cost = self.system.costs.of(self._x, v)
        self._x = y
        if self.cost_noise is None:
            return y.copy()
        if self.cost_noise:
            cost += rng.normal(0.0, self.cost_noise)
        return Measured(tuple(y.tolist()), cost)

    def costs(self, record: Record, start: npt.ArrayLike | None = None) -> FloatArray:
        """c(x_t, u_t) at each step of a run that began in `start`, 0 unless given.

        >>> from bayescontrol import interact
        >>> system = LinearSystem([[0.5]], [[1.0]], [[1.0]], [[1.0]])
        >>> class Rest:
        ...     def act(self, rng): return np.zeros(1)
        ...     def observe(self, a, o): pass
        >>> plant = LinearPlant(system, start=[2.0])
        >>> float(plant.costs(interact(Rest(), plant, 5), start=[2.0])[0])
        4.0
        """
        n = self.system.states
        seen = [split(o)[0] for _, o in record]
        x0 = np.zeros(n) if start is None else as_vector(start, n, "the start")
        X = np.vstack([x0[None], np.array(seen).reshape(-1, n)])[:-1]
        U = np.asarray(record.actions, np.float64).reshape(len(X), self.system.inputs)
        costs = np.einsum("ti,ij,tj->t", X, self.system.Q, X, optimize=False)
        costs += np.einsum("ti,ij,tj->t", U, self.system.R, U, optimize=False)
        return np.asarray(costs)

    # -- for compiled loops --------------------------------------------------------------------

    def loop_arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A, B and V with VᵀV = W."""
        return self.system.A, self.system.B, self._V

    def fast_forward(self, x: FloatArray) -> None:
        """Be in the state to which a compiled loop has led."""
        self._x = x.copy()

    def __repr__(self) -> str:
        return f"LinearPlant({self.system!r}, in {np.array2string(self._x, precision=3)})"
