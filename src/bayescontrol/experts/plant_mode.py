"""Operation modes of control engineers: a plant model with a Kalman filter, and a controller.

    hypothesis   x' = A x + B u + E d + w,   y = C x' + D u + e        `PlantMode`
                 x' = f(x, u, d) + w,        y = h(x') + e             `ExtendedMode`
    policy       u = controller(loop), within the limits of the actuator

w is process noise and e sensor noise. The filter is the private state of the mode, see
`kernels.kalman`. The input of step k is held until the output y is measured, so a direct
feedthrough D acts on the input that led to y. Signals are the situation (`Signals`): the clock, the
last input, the setpoint, measured disturbances and the last output. They reach every mode.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, as_integer, require_between
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    InvalidSystem,
    MissingCapability,
    NotStabilisable,
    UnknownAction,
    counted,
)
from bayescontrol.experts.controllers import PI, Loop, Signals
from bayescontrol.experts.mode import require_function
from bayescontrol.experts.plant import linearise
from bayescontrol.experts.state_space import (
    SAME_PERIOD,
    as_covariance,
    as_signal,
    discretised,
    sampled,
)
from bayescontrol.linear.matrices import as_limits, as_matrix, as_start, as_vector, riccati
from bayescontrol.protocols import MISSING, SituatedState
from bayescontrol.seeding import StreamLike, require_stream


class LastStep:
    """The last step of a filter: `advance` follows `log_likelihood` with the same event."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: tuple[tuple[Any, ...], Any] | None = None

    def store(self, event: tuple[Any, ...], results: Any) -> Any:
        """Store and return the results."""
        self.last = event, results  # one assignment: agents in other threads may share this
        return results

    def take(self, event: tuple[Any, ...]) -> Any:
        """Return the results once, if the event has the same objects; else None."""
        last, self.last = self.last, None
        if last is None:
            return None
        (x, s, a, o), (x_now, s_now, a_now, o_now) = last[0], event
        is_same = x is x_now and s is s_now and a is a_now and o is o_now
        return last[1] if is_same else None


class FilterMode:
    """Base class of modes with a filter: signals, limits, noise, and the policy.

    Subclasses have `start`, `step_filter` and `environment`.
    """

    uses_situation = True

    def __init__(
        self, controller: Any, sizes: tuple[int, int, int, int], period: float, W: FloatArray,
        sensor_noise: npt.ArrayLike, limits: Any, start: Any, student: float, name: str,
    ) -> None:  # fmt: skip
        self.states, inputs, outputs, disturbances = sizes
        self.signals = Signals(inputs, outputs, disturbances)
        #: The sampling period, and the number of states for which a row of the filter has room.
        self.period, self.room, self.name = period, self.states, name
        self.W, self.V = W, as_covariance(sensor_noise, outputs, "sensor_noise", strictly=True)
        self.nu = require_between("student", student, 2.0, math.inf, ends="(]")
        self.limits = as_limits(limits, inputs)
        self.x0 = as_start(start, self.states)
        if not hasattr(self, "u0"):
            self.u0 = np.zeros(inputs)
        self._last = LastStep()
        self.set_controller(controller)

    def set_controller(self, controller: Any) -> None:
        """Use this controller: a function of the loop, `predict(measured)`, or a gain."""
        self.controller = self._as_function(controller)

    def _as_function(self, controller: Any) -> Callable[[Loop], Any]:
        """Return the controller as a function of the loop."""
        g = self.signals
        if isinstance(controller, PI):
            if g.inputs != g.outputs and not (np.ndim(controller.kp) and np.ndim(controller.ki)):
                raise InvalidSystem(
                    f"{self!r}: kp and ki must be matrices of {g.inputs} × {g.outputs}"
                )
            return controller
        if hasattr(controller, "predict"):
            return lambda loop: _action(controller.predict(loop.measured.copy()))
        if hasattr(controller, "frequency_response"):
            raise MissingCapability(
                f"{self!r}: the controller {controller!r} is a system of python-control. Pass a "
                "gain, PI, or a function of the loop that returns the next input"
            )
        require_function(controller, "controller(loop)", repr(self))
        # The function may change its arguments, which are parts of the state.
        return lambda loop: controller(Loop(loop.k, *(part.copy() for part in loop[1:])))

    # -- the operation mode ---------------------------------------------------------------------

    def act(self, xs: SituatedState, rng: StreamLike) -> Any:
        """Return the input of the controller within its limits; a float if there is one input."""
        (x, s), g, p = xs, self.signals, self.signals.outputs
        at = 1 + 2 * p
        u = self.controller(
            Loop(
                int(x[0]), x[g.setpoint], x[g.setpoint_before], x[g.disturbance], x[g.u],
                x[g.measured], s[at : at + self.states], s[1 : 1 + p], s[1 + p : at],
            )
        )  # fmt: skip
        try:
            v = self.limited(u)
        except BadEvidence:
            raise UnknownAction(
                f"{self!r}: the controller returned {u!r} at step {int(x[0])}: expected "
                f"{counted(g.inputs, 'finite number')}"
            ) from None
        return v.item() if g.inputs == 1 else v

    def limited(self, u: Any, out: FloatArray | None = None) -> FloatArray:
        """Return the input within the limits of the actuator; write it to `out` if given."""
        (low, high), given = self.limits, self.as_input(u)
        v = np.empty(low.size) if out is None else out
        if not kernels.kalman.limit(given, low, high, v):
            raise BadEvidence(f"the input is {given.tolist()}: it must be finite")
        return v

    def as_input(self, u: Any) -> FloatArray:
        """Return the input as an array of the right shape; its values are not checked."""
        low = self.limits[0]
        if type(u) is np.ndarray and u.shape == low.shape and u.dtype == low.dtype:
            return u
        return _vector(u, low.size, "the input")

    def log_likelihood(self, xs: SituatedState, a: Any, o: Any) -> float:
        """Return ln P(y | past, u), the density of the innovation."""
        results = self._last.store((*xs, a, o), self.step_filter(xs, a, o))
        return float(self.require_finite(o, results[0])[0])

    def require_finite(self, o: Any, log_p: FloatArray) -> FloatArray:
        """Return log-likelihoods of the output o; raise `BadEvidence` if o is not finite."""
        if not abs(log_p[0]) < math.inf:
            _vector(o, self.signals.outputs, "the output")  # raises
        return log_p

    def advance(self, xs: SituatedState, a: Any, o: Any) -> FloatArray:
        """Return the state of the filter after input a and output o; o may be `MISSING`."""
        results = self._last.take((*xs, a, o)) or self.step_filter(xs, a, o)
        return np.asarray(results[1][0])

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | past, u) and the next state, each with one row per mode."""
        raise NotImplementedError

    def events(self, x: FloatArray, a: Any, o: Any) -> tuple[FloatArray, FloatArray, bool, bool]:
        """Return v = (u, d, 1), y, whether y is missing, and whether sampling is regular."""
        g = self.signals
        if getattr(x, "shape", None) != (g.size,):
            raise BadSituation(f"situation {x!r} has no signals: use Bank(modes).agent()")
        v, missing = np.empty(g.inputs + g.disturbances + 1), o is MISSING
        self.limited(a, v)
        if g.disturbances:
            v[g.inputs : -1] = x[g.disturbance]
        v[-1] = 1.0
        y = x[g.measured] if missing else o
        if type(y) is not np.ndarray or y.shape != (g.outputs,) or y.dtype != v.dtype:
            y = _vector(o, g.outputs, "the output")
        return v, y, missing, abs(x[1] - self.period) <= SAME_PERIOD * self.period

    def require_interval(self, interval: float) -> None:
        """Raise `BadSituation` if the next sample cannot come after this interval."""
        if abs(interval - self.period) > SAME_PERIOD * self.period:
            raise BadSituation(
                f"{self!r}: the interval {interval:g} is not the sampling period {self.period:g}: "
                "intervals can vary only if the plant is continuous and the method is 'zoh'"
            )

    def first_row(self, y: FloatArray, covariance: FloatArray, steady: bool) -> FloatArray:
        """Return the state of a filter that starts with this output and covariance."""
        x, Sigma = np.zeros(self.room), np.zeros((self.room, self.room))
        x[: self.states], Sigma[: self.states, : self.states] = self.x0, covariance
        return np.concatenate([[float(steady)], y, y, x, Sigma.ravel()])

    def mix_states(self, states: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        """Return the state of a mixture, for `InteractingBelief`; all modes need the same x."""
        s, flow = np.array(states), np.zeros((len(states) + 1,) * 2)
        flow[:-1, -1], out = weights, np.empty((len(states) + 1, s.shape[1]))
        at = 1 + 2 * self.signals.outputs
        kernels.kalman.mix(np.vstack([s, s[:1]]), flow, at, self.room, out)
        return np.asarray(out[-1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or counted(self.states, 'state')})"


class PlantMode(FilterMode):
    """A linear plant with a Kalman filter and a controller.

    `plant` is a system of python-control, or matrices (A, B, C) or (A, B, C, D) in discrete time.
    A continuous-time plant needs the sampling period `dt` and is discretised by `method`, by
    default with inputs that are held between samples ("zoh"); other methods are those of
    `scipy.signal.cont2discrete`. A discrete-time plant must have this `dt`, if it is given. The
    last `disturbances` inputs of the plant are measured disturbances.

    `operating_point` is (u₀, y₀) if the model is for deviations from it; all signals are absolute.
    `drift` is a constant that is added to the state at each step.

    `controller` is a gain K for u = u_r - K (x̂ - x_r), where (x_r, u_r) is the steady state with
    the output at the setpoint; a function of `Loop`, such as `PI`; or an object with
    `predict(measured)`. `limits` are those of the actuator, (low, high).

    Noise is given as standard deviations (a number, or a list) or as a covariance matrix:
    `process_noise` of the states and `input_noise` of the inputs, both per sample, and
    `sensor_noise`. Give at least one of the first two: without process noise a filter ignores the
    sensor. The states of a transfer function have no units, unless it has order one; use
    `input_noise` there. `student` are the degrees of freedom of heavy-tailed sensor noise, for
    sensors with outliers; it is approximate, see `kernels.kalman`. The filter starts in `start`, by
    default 0, with the covariance `start_noise`, by default the stationary one.

    >>> import control
    >>> from bayescontrol.experts import PI
    >>> motor = control.tf([0.05], [1e-4, 3.5e-3])        # from volts to rad/s
    >>> mode = PlantMode(motor, PI(kp=0.2, ki=0.05), dt=0.01, process_noise=0.3,
    ...                  sensor_noise=1.0, limits=(-12, 12), name="light load")
    >>> mode.A.round(3).tolist(), mode.B.round(3).tolist(), mode
    ([[0.705]], [[4.219]], PlantMode(light load))
    """

    #: The gain K, if that is the controller.
    gain: FloatArray | None = None

    def __init__(
        self,
        plant: Any,
        controller: Any,
        *,
        dt: float | None = None,
        process_noise: npt.ArrayLike | None = None,
        input_noise: npt.ArrayLike | None = None,
        sensor_noise: npt.ArrayLike,
        disturbances: int = 0,
        operating_point: tuple[npt.ArrayLike, npt.ArrayLike] = (0.0, 0.0),
        drift: npt.ArrayLike = 0.0,
        limits: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        start: npt.ArrayLike | None = None,
        start_noise: npt.ArrayLike | None = None,
        student: float = math.inf,
        method: str = "zoh",
        name: str = "",
    ) -> None:
        self._continuous, period, (self.A, B, self.C, D) = discretised(plant, dt, method)
        n, q = B.shape
        controls = q - as_integer("disturbances", disturbances, 0, InvalidSystem)
        if controls < 1:
            raise InvalidSystem(f"disturbances={disturbances}: the plant has {q} inputs in all")
        self.B, self.E, self.D = B[:, :controls], B[:, controls:], D
        self.W = _process_noise(plant, self.B, process_noise, input_noise)
        u0, y0 = operating_point
        self.u0 = as_signal(u0, controls, "operating_point")(0)
        #: The constants of x' and y: x' = A x + B (u - u₀) + drift, y = C x' + D (u - u₀) + y₀.
        self.constants = (
            as_signal(drift, n, "drift")(0) - self.B @ self.u0,
            as_signal(y0, len(self.C), "operating_point")(0) - self.D[:, :controls] @ self.u0,
        )
        self.name = name
        sizes = n, controls, len(self.C), q - controls
        super().__init__(
            controller, sizes, period, self.W, sensor_noise, limits, start, student, name
        )
        self.start_noise = (
            None if start_noise is None else as_covariance(start_noise, n, "start_noise")
        )
        if self.start_noise is None and self.stationary is None:
            raise InvalidSystem(
                f"{self!r} has no stationary filter: the sensors must show every unstable state, "
                "and process noise must reach it; otherwise pass start_noise"
            )

    def _as_function(self, controller: Any) -> Callable[[Loop], Any]:
        """Return the controller as a function of the loop; a matrix is a gain."""
        self.gain = None
        if callable(controller) or hasattr(controller, "predict"):
            return super()._as_function(controller)
        n, q, p = self.states, self.signals.inputs, self.signals.outputs
        self.gain = K = as_matrix(controller, (q, n), "the gain of the controller")
        k, c = self.constants[0] + self.B @ self.u0, self.constants[1] + self.D[:, :q] @ self.u0
        steady = np.block([[self.A - np.eye(n), self.B], [self.C, self.D[:, :q]]])
        from_signals = np.block(
            [[np.zeros((n, p)), -self.E, -k[:, None]], [np.eye(p), -self.D[:, q:], -c[:, None]]]
        )
        # A steady state is required, outputs at the setpoint as far as possible.
        weight = np.concatenate([np.full(n, 1e6), np.ones(p)])[:, None]
        target = np.linalg.pinv(weight * steady) @ (weight * from_signals)
        forward = target[n:] + K @ target[:n]  # from (setpoint, d, 1)
        forward[:, -1] += self.u0
        from_setpoint, from_disturbance, constant = (
            np.ascontiguousarray(part)
            for part in (forward[:, :p], forward[:, p:-1], forward[:, -1])
        )

        def feedback(loop: Loop) -> FloatArray:
            u = np.empty(q)
            kernels.kalman.feedback(from_setpoint, K, constant, loop.setpoint, loop.x, u)
            if loop.disturbance.size:
                u += from_disturbance.dot(loop.disturbance)
            return u

        return feedback

    @cached_property
    def stationary(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """The stationary L, S and Σ after an observation; None if there is no such filter."""
        try:
            P, _ = riccati(self.A.T, self.C.T, self.W, self.V)
        except NotStabilisable:
            return None
        S = self.C @ P @ self.C.T + self.V
        L = np.asarray(np.linalg.solve(S, self.C @ P).T, np.float64)
        reduced = np.eye(self.states) - L @ self.C
        return L, S, reduced @ P @ reduced.T + L @ self.V @ L.T

    def start(self) -> FloatArray:
        """Return the first state of the filter."""
        y, given = self.C @ self.x0 + self.constants[1], self.start_noise
        if self.stationary is None or given is not None:
            return self.first_row(y, np.zeros(()) if given is None else given, steady=False)
        return self.first_row(y, self.stationary[2], steady=self.nu == math.inf)

    def require_interval(self, interval: float) -> None:
        """Raise `BadSituation` if the plant cannot be sampled with this interval."""
        if self._continuous is None:
            super().require_interval(interval)

    @cached_property
    def _regular(self) -> Any:
        return self._models(self.A, self.B, self.E, self.constants[0], self.W)

    def models(self, interval: float) -> Any:
        """Return the `kernels.kalman.FilterModels` of one mode for a sampling interval.

        If the interval is not the period, process noise and drift are scaled in proportion to it.
        """
        if abs(interval - self.period) <= SAME_PERIOD * self.period:
            return self._regular
        self.require_interval(interval)
        A, B, *_ = sampled(self._continuous, interval)
        q, scale = self.signals.inputs, interval / self.period
        drift = scale * (self.constants[0] + self.B @ self.u0)
        k = drift - B[:, :q] @ self.u0
        return self._models(A, B[:, :q], B[:, q:], k, scale * self.W)

    def _models(
        self, A: FloatArray, B: FloatArray, E: FloatArray, k: FloatArray, W: FloatArray
    ) -> Any:
        """Return arrays for the kernel, with zeros for states beyond those of the plant.

        The last input is constant.
        """
        n, r, p = self.states, self.room, self.signals.outputs
        B = np.hstack([B, E, k[:, None]])
        D = np.hstack([self.D, self.constants[1][:, None]])
        q, T, log_det, Sigma = B.shape[1], np.zeros((0, 0)), math.nan, np.zeros((n, n))
        if self.stationary is not None:
            L, S, Sigma = self.stationary
            log_det = float(np.linalg.slogdet(S)[1])
            room = np.zeros((r - n, n + q + p))
            ahead = np.hstack([A, B, np.zeros((n, p))])  # x⁻ from (x̂, v, y)
            feedthrough = np.hstack([np.zeros((p, n)), D, np.zeros((p, p))])
            y = np.hstack([np.zeros((p, n + q)), np.eye(p)])
            error = y - self.C @ ahead - feedthrough
            x = ahead + L @ error
            innovations = np.linalg.solve(np.linalg.cholesky(S), error)
            T = np.vstack([x, room, self.C @ x + feedthrough, innovations])
            T = np.hstack([T[:, :n], np.zeros((len(T), r - n)), T[:, n:]])

        def padded(matrix: FloatArray, rows: int, columns: int) -> FloatArray:
            out = np.zeros((1, rows, columns))
            out[0, : matrix.shape[0], : matrix.shape[1]] = matrix
            return out

        return kernels.kalman.FilterModels(
            padded(A, r, r), padded(B, r, q), padded(self.C, p, r), padded(D, p, q),
            padded(W, r, r), padded(self.V, p, p), np.array([self.nu]),
            padded(T, r + 2 * p, r + q + p), np.array([log_det]), padded(Sigma, r, r),
        )  # fmt: skip

    def with_room(self, states: int) -> "PlantMode":
        """Return the same mode whose filter has a row for more states, for a bank of plants."""
        clone = copy(self)
        clone.room, clone._last = states, LastStep()
        clone.__dict__.pop("_regular", None)
        return clone

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | past, u) and the next state, with one row."""
        v, y, missing, regular = self.events(xs.x, a, o)
        models = self.models(float(xs.x[1]))
        return run_filters(models, xs.s[None], v, y, missing, regular)

    def environment(self, start: npt.ArrayLike | None = None, **signals: Any) -> "PlantWorld":
        """Return the world in which this plant is the true one; see `PlantWorld`."""
        return PlantWorld(self, start, **signals)


class ExtendedMode(FilterMode):
    """A nonlinear simulator with an extended Kalman filter, and a controller.

    `step(x, u)` returns the next state, `output(x)` the output of a state; with measured
    `disturbances`, u holds the inputs and then the disturbances. Both are linearised at each step
    by central differences, so the filter is approximate. `start` and `start_noise` are required.
    The other arguments are those of `PlantMode`.

    >>> swing = ExtendedMode(
    ...     lambda x, u: [x[0] + 0.05 * x[1], x[1] - 0.05 * (9.81 * np.sin(x[0]) - u[0])],
    ...     lambda x: [x[0]], lambda loop: -2.0 * loop.x[1], dt=0.05, inputs=1,
    ...     start=[0.1, 0.0], start_noise=0.1, process_noise=0.01, sensor_noise=0.02)
    >>> swing
    ExtendedMode(2 states)
    """

    def __init__(
        self,
        step: Callable[[Any, Any], Any],
        output: Callable[[Any], Any],
        controller: Any,
        *,
        dt: float,
        inputs: int,
        start: npt.ArrayLike,
        start_noise: npt.ArrayLike,
        process_noise: npt.ArrayLike = 0.0,
        sensor_noise: npt.ArrayLike,
        disturbances: int = 0,
        limits: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        student: float = math.inf,
        name: str = "",
    ) -> None:
        require_function(step, "step(x, u)", f"ExtendedMode {name!r}")
        require_function(output, "output(x)", f"ExtendedMode {name!r}")
        n = np.size(start)
        x0 = as_start(start, n)
        self.step, self.output, self.name = step, output, name
        sizes = n, inputs, len(np.atleast_1d(output(x0))), disturbances
        super().__init__(
            controller, sizes, require_between("dt", dt, 0.0, math.inf, ends="()"),
            as_covariance(process_noise, n, "process_noise"), sensor_noise, limits, start, student,
            name,
        )  # fmt: skip
        self.start_noise = as_covariance(start_noise, n, "start_noise")

    def start(self) -> FloatArray:
        """Return the first state of the filter."""
        return self.first_row(np.atleast_1d(self.output(self.x0)), self.start_noise, steady=False)

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | past, u) and the next state, linearised at the estimate."""
        v, y, missing, _ = self.events(xs.x, a, o)
        self.require_interval(float(xs.x[1]))
        n, p = self.states, self.signals.outputs
        x, v = xs.s[1 + 2 * p : 1 + 2 * p + n].copy(), v[:-1]
        ahead = np.array(self.step(x.copy(), v.copy()), np.float64)
        A, _ = linearise(self.step, x, v)
        C, _ = linearise(lambda s, _: np.atleast_1d(self.output(s)), ahead, np.zeros(1))
        y_hat = np.array(np.atleast_1d(self.output(ahead)), np.float64)
        if not all(np.isfinite(part).all() for part in (ahead, A, C, y_hat)):
            raise BadEvidence(f"{self!r}: the simulated step from {x.tolist()} is not finite")
        blank = np.zeros((1, n, max(n, p)))
        models = kernels.kalman.FilterModels(
            A[None], blank, C[None], blank, self.W[None], self.V[None], np.array([self.nu]), blank,
            np.array([math.nan]), blank,
        )  # fmt: skip
        new, log_p = np.empty((1, xs.s.size)), np.empty(1)
        work = np.empty((kernels.kalman.LAYERS, max(n, p), max(n, p)))
        log_p[0] = kernels.kalman.update(
            models, 0, xs.s, ahead, y_hat, y, missing, False, new[0], work
        )
        return log_p, new

    def environment(self, start: npt.ArrayLike | None = None, **signals: Any) -> "PlantWorld":
        """Return the world in which this simulator is the true plant; see `PlantWorld`."""
        return PlantWorld(self, start, **signals)


class PlantWorld:
    """The environment of a `PlantMode` or `ExtendedMode`: it draws the noise that the mode assumes.

    `start` is the first state. `disturbance` is a number, a list, or a function of the step. Inputs
    beyond the limits are clipped. The output is a float if there is one.

    >>> from bayescontrol import Stream
    >>> plant = ([[0.5]], [[1.0]], [[2.0]])
    >>> mode = PlantMode(plant, lambda loop: 0.0, process_noise=0.0, sensor_noise=1e-9)
    >>> world = mode.environment(start=[4.0])
    >>> round(world.respond(1.0, Stream(0)), 6), world.x
    (6.0, array([3.]))
    """

    def __init__(self, mode: Any, start: Any = None, *, disturbance: Any = 0.0) -> None:
        self.mode, self.k = mode, 0
        self.x = mode.x0.copy() if start is None else as_start(start, mode.states)
        self._disturbance = as_signal(disturbance, mode.signals.disturbances, "disturbance")
        self._factors = [kernels.regression.factor(noise) for noise in (mode.W, mode.V)]

    def respond(self, u: Any, rng: StreamLike) -> Any:
        """Apply the input and return the measured output."""
        mode, stream = self.mode, require_stream(rng)
        g, d = mode.signals, self._disturbance(self.k)
        try:
            v = mode.limited(u)
        except BadEvidence as error:
            raise UnknownAction(str(error)) from None
        w, e = (stream.normal(size=len(f)) @ f for f in self._factors)
        if mode.nu < math.inf:
            e = e * math.sqrt(0.5 * mode.nu / stream.gamma(0.5 * mode.nu))
        if isinstance(mode, PlantMode):
            k, c = mode.constants
            self.x = mode.A @ self.x + mode.B @ v + mode.E @ d + k + w
            y = mode.C @ self.x + mode.D @ np.concatenate([v, d]) + c + e
        else:
            self.x = np.array(mode.step(self.x.copy(), np.concatenate([v, d])), np.float64) + w
            y = np.atleast_1d(mode.output(self.x)) + e
        self.k += 1
        return y.item() if g.outputs == 1 else y

    def __repr__(self) -> str:
        return f"PlantWorld({self.mode!r}, step {self.k})"


def _process_noise(plant: Any, B: FloatArray, states: Any, inputs: Any) -> FloatArray:
    """Return the covariance of the process noise, from that of the states and of the inputs."""
    n, q = B.shape
    if states is None and inputs is None:
        raise InvalidSystem(
            "give process_noise or input_noise: without them the filter ignores the sensor"
        )
    if hasattr(plant, "num") and n > 1 and states is not None and np.ndim(states) < 2:
        raise InvalidSystem(
            f"process_noise={states!r}: the states of a transfer function of order {n} have no "
            "units; give input_noise, a covariance matrix, or a state space"
        )
    by_input = as_covariance(0.0 if inputs is None else inputs, q, "input_noise")
    by_state = as_covariance(0.0 if states is None else states, n, "process_noise")
    return np.asarray(by_state + B @ by_input @ B.T)


def run_filters(
    models: Any, states: FloatArray, v: FloatArray, y: FloatArray, missing: bool, regular: bool
) -> tuple[FloatArray, FloatArray]:
    """Return ln P(y | past, v) and the next states of all filters, one row each."""
    new, log_p = np.empty_like(states), np.empty(len(states))
    if regular and not missing:
        T, log_det = models.T, models.log_det
        if kernels.kalman.steady_step(T, log_det, states, v, y, new, log_p):
            return log_p, new
    size = max(models.C.shape[1:])
    work = np.empty((kernels.kalman.LAYERS, size, size))
    kernels.kalman.step(models, states, v, y, missing, regular, new, log_p, work)
    return log_p, new


def _vector(value: Any, size: int, what: str) -> FloatArray:
    """Return a vector; a number is a vector of one."""
    if size == 1 and isinstance(value, float | int | np.number | np.ndarray) and not np.ndim(value):
        value = np.array([value], np.float64)
    return as_vector(value, size, what)


def _action(answer: Any) -> Any:
    """Return the action of `predict`, which may return (action, state)."""
    return answer[0] if isinstance(answer, tuple) else answer
