"""Linear-quadratic control in the units of the plant: backup gain, limits, setpoint, integrals.

    u = u_r - K (x - r) - K_q q,  low ≤ u ≤ high          q ← q + (x - r) for integrated states

    cost of a step for the gain: (x - r)ᵀQ(x - r) + (u - u_r)ᵀR(u - u_r) + Σ_i w_i q_i²

`kernels.regulator` says how the scale of the plant is found and when the backup gain is used. With
the prior `LEARNED` the posterior is that of the data alone, the same in any units. Draws begin when
the data determine a system.
"""

from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import InvalidSystem
from bayescontrol.linear.agent import LinearAgent, fits_plant, schedule_code
from bayescontrol.linear.belief import LinearMode, SystemBelief
from bayescontrol.linear.matrices import as_matrix, as_start, as_vector
from bayescontrol.linear.regression import SystemPrior
from bayescontrol.linear.system import Costs, LinearPlant
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, state_of
from bayescontrol.values import require_shapes

#: A prior that has no effect beside data in any units.
LEARNED: Final = SystemPrior(precision=1e-120, scatter=1e-120)


class RegulatorMode(LinearMode):
    """A drawn system with the input that regulates it, or with the backup gain.

    K and P include the integrals, as the last rows and columns.

    >>> from bayescontrol import Stream
    >>> belief = RegulatorBelief(Costs(np.eye(1), np.eye(1)), backup=[[0.5]], setpoint=[3.0])
    >>> belief.sample(Stream(0)).act([4.0], Stream(0))
    array([-0.5])
    """

    __slots__ = ("arrays_", "belief")

    def __init__(self, arrays: Any, belief: "RegulatorBelief") -> None:
        super().__init__(arrays[:5], belief.costs.mean())
        self.arrays_, self.belief = arrays, belief

    def act(self, x: FloatArray, rng: StreamLike) -> FloatArray:
        """Return the limited input."""
        u, v = np.empty(len(self.K)), as_vector(x, len(self.A), "the state")
        regulation, q = self.belief.regulation, self.belief.q
        kernels.regulator.choose_input(regulation, self.arrays_, v, q, u, state_of(rng))
        return u

    def arrays(self) -> Any:
        """Return the arrays in the form of the kernels."""
        return self.arrays_

    def save(self) -> Arrays:
        """Return named arrays with the prefix `drawn/`."""
        named = zip(self.arrays_._fields, self.arrays_, strict=True)
        return {f"drawn/{name}": part.copy() for name, part in named}


class RegulatorBelief(SystemBelief):
    """P(A, B, W | âo_<t), whose modes regulate in plant units; `LinearQuadratic` has the settings.

    >>> belief = RegulatorBelief(Costs(np.eye(1), np.eye(1)), limits=(-1, 1))
    >>> belief
    RegulatorBelief(1 state, 1 input, unknown noise, after 0 observations)
    >>> belief.scale_known, belief.refused
    (False, 0)
    """

    format_name: ClassVar[str] = "RegulatorBelief"

    def __init__(
        self,
        costs: Costs,
        *,
        noise: npt.ArrayLike | None = None,
        prior: SystemPrior = LEARNED,
        tries: int = 100,
        backup: npt.ArrayLike | None = None,
        limits: Any = None,
        setpoint: npt.ArrayLike | None = None,
        integral: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(costs, noise=noise, prior=prior, tries=tries)
        n, m, (Q, R) = self.states, self.inputs, self.costs.mean()
        weights = as_start(integral, n, "integral")
        if not (weights >= 0.0).all():
            raise InvalidSystem(f"integral={weights.tolist()}: expected n weights of at least 0")
        integrated = np.flatnonzero(weights)
        Q_all = np.diag(np.concatenate([np.zeros(n), weights[integrated]]))
        Q_all[:n, :n] = Q
        gain = np.zeros((m, n)) if backup is None else as_matrix(backup, (m, n), "backup")
        self.regulation = kernels.regulator.Regulation(
            Q_all, R, gain, backup is not None, *_as_limits(limits, m),
            as_start(setpoint, n, "setpoint"), integrated, self.tries,
        )  # fmt: skip
        self._rooms = self._new_rooms()
        #: See `kernels.regulator.COST`.
        self.memory = np.array([0.0, 0.0, 0.0 if prior is LEARNED else -1.0])
        #: How often a drawn gain was replaced, because it does not stabilise the mean system.
        self.refused = 0
        #: The integrals of the errors.
        self.q = np.zeros(len(integrated))

    @property
    def scale_known(self) -> bool:
        """Whether the scale has been found, so that systems are drawn."""
        return bool(self.memory[kernels.regulator.KNOWN])

    @property
    def search_steps(self) -> int:
        """The number of observations until the scale was known; 0 before, or if it was given."""
        return max(0, int(self.memory[kernels.regulator.KNOWN]))

    def observe(self, x: npt.ArrayLike, a: npt.ArrayLike, o: Any) -> None:
        """Learn that the applied input a led from state x to o. An error changes nothing."""
        v, u, y, _ = self._event(x, a, o)
        kernels.regulator.observe(
            self.F, self.count, self.regulation, self.memory, self.q, v, u, y, self._rooms
        )
        self.count += 1

    def sample(self, rng: StreamLike) -> RegulatorMode:
        """Draw a system and its gain, or return the backup gain. It never raises."""
        mode = self._mode_copy()
        self.redrawn += kernels.regulator.renew(
            self.F, self._freedom(), self.count, self.regulation, self.memory, mode, self._rooms,
            state_of(rng),
        )  # fmt: skip
        self.refused += int(mode.source[0] == kernels.regulator.REPLACED)
        self._diagonal = self.R.diagonal().copy()
        self._last = drawn = RegulatorMode(mode, self)
        return drawn

    def is_retired(self, mode: Any) -> bool:
        """Return True if no drawn gain is in use, so that a draw is tried at every step."""
        return bool(mode.arrays_.source[0] != kernels.regulator.DRAWN)

    def certain(self) -> LinearMode | None:
        """Return the mode of the posterior mean without integrals; it is not used to act."""
        solved, costs = self._blank(), self.costs.mean()
        found = kernels.lqr.mean_mode(self.F, self._freedom(), *costs, solved, self._room)
        return LinearMode(solved, costs) if found else None

    def _new_rooms(self) -> Any:
        """Return scratch arrays of the kernels."""
        k, m = len(self.regulation.Q), self.inputs
        return kernels.regulator.Rooms(
            kernels.riccati.room(k, m), self._blank_mode(), self._blank_mode(),
            np.empty((k, k)), np.empty((k, m)), self.row, self.v, self.zero,
        )  # fmt: skip

    def _blank_mode(self) -> Any:
        """Return a mode of zeros for the kernels, with the noise if it is known."""
        n, m, k = self.states, self.inputs, len(self.regulation.Q)
        V = np.eye(n) if self._V is None else self._V.copy()
        shapes = (n, n), (n, m), (k, k), (m, k), (m,), (m,)
        A, B, P, K, offset, sd = map(np.zeros, shapes)
        return kernels.regulator.RegulatorArrays(A, B, V, P, K, offset, sd, np.zeros(1, np.int64))

    def _mode_copy(self) -> Any:
        """Return a copy of the last mode for the kernels."""
        if self._last is None:
            return self._blank_mode()
        return kernels.regulator.RegulatorArrays(*(part.copy() for part in self._last.arrays()))

    def loop_arrays(self) -> tuple[Any, ...]:
        """Return copies of the last mode and of diag R at the last draw, ν, and scratch arrays."""
        return self._mode_copy(), self._diagonal.copy(), self._freedom(), self._rooms

    def finish_loop(self, observed: int, mode: Any, diagonal: FloatArray, *counts: int) -> None:
        """Synchronise with a compiled loop that has updated F, the memory and the integrals.

        `counts` are the failed draws and the refused gains.
        """
        self.count, self.redrawn = self.count + observed, self.redrawn + counts[0]
        self.refused += counts[1]
        self._diagonal, self._last = diagonal, None if mode is None else RegulatorMode(mode, self)

    def save(self) -> Arrays:
        """Return the state as named arrays; `load` continues bit for bit."""
        return {
            **super().save(),
            "memory": self.memory.copy(),
            "integrals": self.q.copy(),
            "sampler/refused": np.array(self.refused),
        }

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for the same settings."""
        require_shapes(arrays, {"memory": (3,), "integrals": self.q.shape})
        require_shapes(arrays, {"sampler/refused": ()}, np.int64)
        super().load(arrays)
        self.memory, self.q = arrays["memory"].copy(), arrays["integrals"].copy()
        self.refused = int(arrays["sampler/refused"])

    def _restored(self, arrays: Arrays) -> LinearMode | None:
        if not any(name.startswith("drawn/") for name in arrays):
            return None
        blank = self._blank_mode()
        for name, part in zip(blank._fields, blank, strict=True):
            require_shapes(arrays, {f"drawn/{name}": part.shape}, part.dtype.type)
            part[...] = arrays[f"drawn/{name}"]
        return RegulatorMode(blank, self)

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = super().copy()
        clone.memory, clone.q = self.memory.copy(), self.q.copy()
        clone._rooms = clone._new_rooms()
        clone._last = None if self._last is None else RegulatorMode(self._mode_copy(), clone)
        return clone

    def __repr__(self) -> str:
        return super().__repr__().replace("SystemBelief", "RegulatorBelief", 1)


def regulator_loop(agent: Any, environment: Any) -> Any:
    """Return the compiled loop of an agent that fits the plant."""
    regulates = type(agent.belief) is RegulatorBelief
    return _run if regulates and fits_plant(agent, environment) else None


class RegulatorAgent(LinearAgent):
    """The control rule in plant units; see `LinearQuadratic` for its settings.

    >>> from bayescontrol import interact
    >>> from bayescontrol.linear import LinearQuadratic, LinearSystem
    >>> system = LinearSystem([[0.9]], [[1e-3]], [[1e6]], [[1.0]], W=[[1e-8]])
    >>> problem = LinearQuadratic(system.Q, system.R, prior="learned")
    >>> agent = problem.agent()
    >>> record = interact(agent, problem.environment(system), 2000, seed=0)
    >>> round(system.cost(agent.gain) / system.best_cost, 1)
    1.0
    """

    format_name: ClassVar[str] = "RegulatorAgent"
    fused_loop = staticmethod(regulator_loop)


def _run(agent: Any, plant: LinearPlant, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; if it stops at a failed step, let the Python code raise the error."""
    loop, codes, belief = kernels.regulator, kernels.lqr, agent.belief
    mode, diagonal, nu, rooms = belief.loop_arrays()
    clock = np.array([agent._t, agent._drawn_at, agent.mode is not None, 0, 0], np.int64)
    x, drawn_in = plant.x, np.array(agent._drawn_in, np.float64)
    inputs, states = np.empty((steps, belief.inputs)), np.empty((steps, belief.states))
    done, stop = loop.interact(
        belief.F, nu, belief.count, belief.regulation, *(schedule_code(agent.schedule) or (0, 0.0)),
        belief.memory, belief.q, mode, clock, diagonal, rooms, *plant.loop_arrays(), x, drawn_in,
        p.state, q.state, inputs, states,
    )  # fmt: skip
    plant.fast_forward(x)
    held = mode if clock[codes.HELD] else None
    belief.finish_loop(done, held, diagonal, *clock[[codes.FAILED, loop.REFUSED]].tolist())
    agent._t, agent._drawn_at = int(clock[codes.T]), int(clock[codes.DRAWN_AT])
    agent._drawn_in, agent.x, agent.mode = drawn_in, x, belief.last()
    if stop == codes.INPUT_TOO_LARGE:
        plant.respond(inputs[done], q)
    if stop == codes.STATE_TOO_LARGE:
        plant.fast_forward(states[done])
        agent.observe(inputs[done], states[done])
    return Record(inputs, states)


def _as_limits(limits: Any, m: int) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of m inputs, ∞ by default."""
    if limits is None:
        return np.full(m, -np.inf), np.full(m, np.inf)
    try:
        low, high = (np.array(np.broadcast_to(np.float64(side), (m,))) for side in limits)
    except (TypeError, ValueError):
        low = high = np.zeros(m)
    if not (low < high).all():
        raise InvalidSystem(
            f"limits={limits!r}: expected (low, high) with low < high, each a number or a list of "
            f"length {m}"
        )
    return low, high
