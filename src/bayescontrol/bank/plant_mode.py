"""Operation modes of control engineers: a plant model with a Kalman filter, and a controller.

    hypothesis   x' = A x + B u + E d + w,   y = C x' + D u + e        `PlantMode`
    policy       u = controller(loop), within the limits of the actuator

w is process noise, e sensor noise. The filter is the private state of the mode, see
`kernels.kalman`. The input is held until the output y is measured, so a direct feedthrough D acts
on the input that led to y. Signals are the situation (`Signals`): clock, last input, setpoint,
measured disturbances and last output. They reach every mode.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer, require_between
from bayescontrol.bank import state_space
from bayescontrol.bank.state_space import PI, Loop, Signals, as_constant, as_signal, discretised
from bayescontrol.errors import BadEvidence, InvalidSystem, UnknownAction, counted
from bayescontrol.lqr.matrices import as_limits, as_matrix, as_start, as_vector, riccati
from bayescontrol.protocols import MISSING, SituatedState
from bayescontrol.seeding import StreamLike, require_stream
from bayescontrol.simulators.mode import require_function

#: Relative size of errors that are 0 up to rounding.
NEAR = 1e-6
#: Weight of "the state does not change" beside "the output is r", if both cannot hold.
_STEADY_FIRST = 1e6


class Filters:
    """Base class of one filter and of a bank of filters: each step is computed once."""

    uses_situation = True
    #: step_filter(xs, a, o): ln P(y | past, u) and the next states, one row per filter.
    step_filter: Callable[[SituatedState, Any, Any], tuple[FloatArray, FloatArray]]
    #: The arguments of the last `log_likelihoods`, and the next states.
    _last: tuple[tuple[Any, ...], FloatArray] | None = None

    def log_likelihoods(self, xs: SituatedState, a: Any, o: Any) -> FloatArray:
        """Return ln P(y | m, past, u) for all filters; keep the next states for `advance`."""
        log_p, states = self.step_filter(xs, a, o)
        # One assignment: agents in other threads may share this object.
        self._last = (*xs, a, o), states
        if not abs(log_p[0]) < math.inf:
            as_vector(np.atleast_1d(o), np.size(o), "the output")  # raises if o is not finite
        return log_p

    def advance(self, xs: SituatedState, a: Any, o: Any) -> FloatArray:
        """Return the states of all filters after input a and output o; o may be `MISSING`."""
        last, self._last = self._last, None
        if last is not None:  # use the result of `log_likelihoods` if it had the same objects
            (x, s, last_a, last_o), states = last
            if x is xs.x and s is xs.s and last_a is a and last_o is o:
                return states
        return self.step_filter(xs, a, o)[1]


class FilterMode(Filters):
    """Base class of modes with a filter: signals, limits, noise, and the policy.

    Subclasses have `step_filter`, `next_state` and `output_of`; v are inputs and disturbances.
    """

    #: The stationary L, S and Σ after an observation; None if there is no such filter.
    stationary: Any = None
    #: The next state and its output without noise, functions of (x, v).
    next_state: Any
    output_of: Any
    #: steady_point(r, d): (x, u) in the steady state with the output r, or in the nearest one.
    steady_point: Callable[[FloatArray, FloatArray], FloatArray]
    #: The gain K, if that is the controller, and the matrix from (setpoint, d, 1) to its input.
    gain: FloatArray | None = None
    _forward: FloatArray
    W: FloatArray
    u0: FloatArray
    _continuous: Any = None

    def __init__(
        self, controller: Any, states: int, signals: Signals, period: float, *, sensor_noise: Any,
        limits: Any, start: Any, start_noise: Any, student: float, name: str,
    ) -> None:  # fmt: skip
        self.name, self.states, self.signals, self.period = name, states, signals, period
        self.V = state_space.as_covariance(
            sensor_noise, signals.outputs, "sensor_noise", strictly=True
        )
        self.nu = require_between("student", student, 2.0, math.inf, ends="(]")
        self.limits = as_limits(limits, signals.inputs)
        self.x0, self.start_noise = as_start(start, states), None
        if start_noise is not None:
            self.start_noise = state_space.as_covariance(start_noise, states, "start_noise")
        self.set_controller(controller)

    def set_controller(self, controller: Any) -> None:
        """Use this controller: a function of the loop, or an object with `predict(measured)`.

        Agents and copies that use this mode follow at once.
        """
        g = self.signals
        if isinstance(controller, PI):
            if g.inputs != g.outputs and not (np.ndim(controller.kp) and np.ndim(controller.ki)):
                raise InvalidSystem(
                    f"{self!r}: kp and ki must be matrices of {g.inputs} × {g.outputs}"
                )
            self.controller: Callable[[Loop], Any] = controller
        elif hasattr(controller, "predict"):
            self.controller = lambda loop: _action(controller.predict(loop.measured.copy()))
        else:
            require_function(controller, "controller(loop)", repr(self))
            # The function may change its arguments, which are parts of the state.
            self.controller = lambda loop: controller(Loop(loop.k, *map(np.copy, loop[1:])))

    # -- steady states --------------------------------------------------------------------------

    def steady_errors(self, z: FloatArray, r: FloatArray, d: FloatArray) -> FloatArray:
        """Return the change of the state, and the output minus r, at z = (x, u)."""
        x, v = z[: self.states], np.concatenate([z[self.states :], d])
        return np.concatenate([self.next_state(x, v) - x, self.output_of(x, v) - r])

    def steady_state(self, r: FloatArray, d: FloatArray) -> tuple[FloatArray, bool]:
        """Return the input in the steady state nearest to the output r, and whether it has r."""
        z, n = self.steady_point(r, d), self.states
        sizes = np.repeat([abs(z[:n]).max(), abs(r).max()], [n, len(r)])
        is_reached = (abs(self.steady_errors(z, r, d)) <= NEAR * (1.0 + sizes)).all()
        return z[n:], bool(is_reached)

    # -- the operation mode ---------------------------------------------------------------------

    def start(self, room: int = 0) -> FloatArray:
        """Return the first state of the filter, with room for at least this number of states.

        It is [1 if the filter is stationary, else 0; y; y before; x̂; Σ], see `kernels.kalman`.
        """
        n, r = self.states, max(room, self.states)
        x, Sigma = np.zeros(r), np.zeros((r, r))
        is_given = self.start_noise is not None
        x[:n], Sigma[:n, :n] = self.x0, self.start_noise if is_given else self.stationary[2]
        y = self.output_of(self.x0, np.append(self.u0, np.zeros(self.signals.disturbances)))
        is_steady = not is_given and self.nu == math.inf
        return np.concatenate([[float(is_steady)], y, y, x, Sigma.ravel()])

    def act(self, xs: SituatedState, rng: StreamLike) -> Any:
        """Return the input of the controller within its limits; a float if there is one input."""
        (x, s), g = xs, self.signals
        if self.gain is not None:
            u, (low, high) = np.empty(g.inputs), self.limits
            if kernels.kalman.act(self._forward, self.gain, low, high, x, s, u):
                return u.item() if g.inputs == 1 else u
        p, at = g.outputs, 1 + 2 * g.outputs  # `at` is the place of the estimated state in s
        loop = Loop(
            k=int(x[0]), setpoint=x[g.setpoint], setpoint_before=x[g.setpoint_before],
            disturbance=x[g.disturbance], u=x[g.u], measured=x[g.measured],
            x=s[at : at + self.states], y=s[1 : 1 + p], y_before=s[1 + p : at],
        )  # fmt: skip
        u = self.controller(loop)
        try:
            v = self.limited(u)
        except BadEvidence:
            raise UnknownAction(
                f"{self!r}: the controller returned {u!r} at step {int(x[0])}: expected "
                f"{counted(g.inputs, 'finite number')}"
            ) from None
        return v.item() if g.inputs == 1 else v

    def limited(self, u: Any) -> FloatArray:
        """Validate an input and limit it to the range of the actuator."""
        given, within = self.as_input(u), np.empty(self.signals.inputs)
        state_space.require_finite(kernels.kalman.limit(given, *self.limits, within), given)
        return within

    def as_input(self, a: object) -> FloatArray:
        """Return an input as an array of the right shape; its values are not checked."""
        return state_space.signal_vector(a, self.signals.inputs, "the input")

    def as_output(self, x: FloatArray, o: object) -> FloatArray:
        """Return an output as an array of the right shape; the last one in x if o is missing.

        Its values are not checked.
        """
        if o is MISSING:
            return x[self.signals.measured]
        if o is None:
            raise BadEvidence(
                "the output is None: if the sample was lost, pass bayescontrol.MISSING"
            )
        return state_space.signal_vector(o, self.signals.outputs, "the output")

    def log_likelihood(self, xs: SituatedState, a: Any, o: Any) -> float:
        """Return ln P(y | past, u), the density of the innovation."""
        return float(self.log_likelihoods(xs, a, o)[0])

    def advance(self, xs: SituatedState, a: Any, o: Any) -> FloatArray:
        """Return the state of the filter after input a and output o; o may be `MISSING`."""
        return np.asarray(super().advance(xs, a, o)[0])

    def inputs(self, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return v = (u, d, 1), where u is limited and d are the disturbances in the signals x."""
        v = np.empty(u.size + self.signals.disturbances + 1)
        state_space.require_finite(kernels.kalman.inputs(x, u, *self.limits, v), u)
        return v

    def require_signals(self, x: Any) -> None:
        """Raise `BadSituation` if the situation does not hold the signals of the loop."""
        if getattr(x, "shape", None) != self.signals.shape:
            raise errors.BadSituation(f"situation {x!r} has no signals: use Bank(modes).agent()")

    def is_regular(self, interval: float) -> bool:
        """Whether this interval is the sampling period."""
        return abs(interval - self.period) <= state_space.SAME_PERIOD * self.period

    def require_interval(self, interval: float) -> None:
        """Raise `BadSituation` if the next sample cannot come after this interval."""
        if self._continuous is None and not self.is_regular(interval):
            raise errors.BadSituation(
                f"{self!r}: the interval {interval:g} is not the sampling period {self.period:g}: "
                "intervals can vary only if the plant is continuous and the method is 'zoh'"
            )

    def mix_states(self, states: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        """Return the state of a mixture, for `InteractingBelief`; all modes need the same x."""
        row, at = np.empty(states[0].size), 1 + 2 * self.signals.outputs
        kernels.kalman.pool(np.array(states), weights, at, self.states, row)
        return row

    def environment(self, start: ArrayLike | None = None, **signals: Any) -> "PlantWorld":
        """Return the world in which this model is the true plant; see `PlantWorld`."""
        return PlantWorld(self, start, **signals)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or counted(self.states, 'state')})"


class PlantMode(FilterMode):
    """A linear plant with a Kalman filter and a controller.

    `plant` is a system of python-control or `scipy.signal`, or matrices (A, B, C) or (A, B, C, D)
    in discrete time.
    A continuous-time plant needs the sampling period `dt` and is discretised by `method`, by
    default with inputs that are held between samples ("zoh"); other methods are those of
    `scipy.signal.cont2discrete`. A discrete-time plant must have this `dt`, if it is given. The
    last `disturbances` inputs of the plant are measured disturbances.

    `operating_point` is (u₀, y₀) if the model is for deviations from it; all signals are absolute.
    `drift` is a constant that is added to the state at each step.

    `controller` is a gain K for u = u_r - K (x̂ - x_r), where (x_r, u_r) is the steady state with
    the output at the setpoint; a function of `Loop`, such as `PI`; or an object with
    `predict(measured)`. `limits` are those of the actuator, (low, high), `name` is for display.

    Noise is given as standard deviations (a number, or a list) or as a covariance matrix:
    `process_noise` of the states and `input_noise` of the inputs, both per sample, and
    `sensor_noise`. Give at least one of the first two: without process noise a filter ignores the
    sensor. The states of a transfer function have no units, unless it has order one; use
    `input_noise` there. `student` are the degrees of freedom of heavy-tailed sensor noise, for
    sensors with outliers; it is approximate, see `kernels.kalman`. The filter starts in `start`, by
    default 0, with the covariance `start_noise`, by default the stationary one.

    >>> import control
    >>> from bayescontrol.bank import PI
    >>> motor = control.tf([0.05], [1e-4, 3.5e-3])        # from volts to rad/s
    >>> mode = PlantMode(motor, PI(kp=0.2, ki=0.05), dt=0.01, process_noise=0.3,
    ...                  sensor_noise=1.0, limits=(-12, 12), name="light load")
    >>> mode.A.round(3).tolist(), mode.B.round(3).tolist(), mode
    ([[0.705]], [[4.219]], PlantMode(light load))
    """

    def __init__(
        self,
        plant: Any,
        controller: Any,
        *,
        dt: float | None = None,
        process_noise: ArrayLike | None = None,
        input_noise: ArrayLike | None = None,
        sensor_noise: ArrayLike,
        disturbances: int = 0,
        operating_point: tuple[ArrayLike, ArrayLike] = (0.0, 0.0),
        drift: ArrayLike = 0.0,
        limits: tuple[ArrayLike, ArrayLike] | None = None,
        start: ArrayLike | None = None,
        start_noise: ArrayLike | None = None,
        student: float = math.inf,
        method: str = "zoh",
        name: str = "",
    ) -> None:
        self._continuous, period, (self.A, B, self.C, self.D) = discretised(plant, dt, method)
        (n, q), p = B.shape, len(self.C)
        inputs = q - as_integer("disturbances", disturbances, 0, InvalidSystem)
        if inputs < 1:
            raise InvalidSystem(f"disturbances={disturbances}: the plant has {q} inputs in all")
        self.B, self.E = B[:, :inputs], B[:, inputs:]
        self.W = state_space.process_covariance(plant, self.B, process_noise, input_noise)
        try:
            u0, y0 = operating_point
        except (TypeError, ValueError):
            raise InvalidSystem(
                f"operating_point={operating_point!r}: expected a pair, (input, output)"
            ) from None
        self.u0 = as_constant(u0, inputs, "operating_point[0] (input)")
        self.y0 = as_constant(y0, p, "operating_point[1] (output)")
        self.drift = as_constant(drift, n, "drift")
        #: The constants of x' and y: x' = A x + B (u - u₀) + drift, y = C x' + D (u - u₀) + y₀.
        self.constants = self.drift - self.B @ self.u0, self.y0 - self.D[:, :inputs] @ self.u0
        super().__init__(
            controller, n, Signals(inputs, p, q - inputs), period, sensor_noise=sensor_noise,
            limits=limits, start=start, start_noise=start_noise, student=student, name=name,
        )  # fmt: skip
        if self.start_noise is None and self.stationary is None:
            raise InvalidSystem(
                f"{self!r} has no stationary filter: the sensors must show every unstable state, "
                "and process noise must reach it; otherwise pass start_noise"
            )

    def set_controller(self, controller: Any) -> None:
        """Use this controller: a function of the loop, `predict(measured)`, or a gain.

        Agents and copies that use this mode follow at once.
        """
        self.gain = None
        if callable(controller) or hasattr(controller, "predict"):
            super().set_controller(controller)
            return
        n, q = self.states, self.signals.inputs
        if isinstance(controller, tuple) and len(controller) == 3:
            raise InvalidSystem(
                f"{self!r}: the controller is a tuple of three, as control.dlqr returns it: pass "
                "K, its first item"
            )
        self.gain = K = as_matrix(controller, (q, n), "the gain of the controller")
        if (modulus := state_space.unstable_modulus(self.A, self.B, K)) is not None:
            warnings.warn(
                f"{self!r}: the gain does not stabilise its own model: an eigenvalue of A - B K "
                f"has modulus {modulus:.4g}. Check its sign, and compute it for the sampled plant",
                stacklevel=4,
            )
        target = self.steady_target
        self._forward = np.ascontiguousarray(target[n:] + K @ target[:n])
        self.controller = self._feedback

    def _feedback(self, loop: Loop) -> FloatArray:
        """Return the input of the gain before limits."""
        K: Any = self.gain
        u = np.empty(len(K))
        kernels.kalman.feedback(self._forward, K, loop.setpoint, loop.disturbance, loop.x, u)
        return u

    @cached_property
    def steady_target(self) -> FloatArray:
        """The matrix from (r, d, 1) to (x, u), the steady state with the output r.

        x = A x + B (u - u₀) + E d + drift,   r = C x + D (u - u₀) + F d + y₀

        If no steady state has the output r, it is the one with the nearest output in the sense of
        least squares; if there are several, the one with the smallest |x|² + |u - u₀|².
        """
        n, p, m = self.states, self.signals.outputs, self.signals.inputs
        D, F, k, c = self.D[:, :m], self.D[:, m:], self.drift[:, None], self.y0[:, None]
        steady = np.block([[self.A - np.eye(n), self.B], [self.C, D]])
        from_signals = np.block([[np.zeros((n, p)), -self.E, -k], [np.eye(p), -F, -c]])
        # The units of the equations (rows) and of x and u (columns): largest entries become 1.
        row_scale = abs(steady).max(axis=1, keepdims=True)
        row_scale[n:] = row_scale[n:].max()  # all outputs are equally important
        row_scale[row_scale == 0.0] = 1.0
        column_scale = abs(steady / row_scale).max(axis=0)
        column_scale[column_scale == 0.0] = 1.0
        if p == m and np.linalg.matrix_rank(steady / row_scale / column_scale) == n + p:
            target = np.linalg.solve(steady, from_signals)
        else:
            weight = np.concatenate([np.full((n, 1), _STEADY_FIRST), np.ones((p, 1))]) / row_scale
            target = np.linalg.pinv(weight * steady) @ (weight * from_signals)
        target[n:, -1] += self.u0
        return np.asarray(target)

    def steady_point(self, r: FloatArray, d: FloatArray) -> FloatArray:
        """Return (x, u) in the steady state with the output r, or in the nearest one."""
        return np.asarray(self.steady_target @ [*r, *d, 1.0])

    @cached_property
    def stationary(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """The stationary L, S and Σ after an observation; None if there is no such filter."""
        try:
            P, _ = riccati(self.A.T, self.C.T, self.W, self.V)
        except errors.NotStabilisable:
            return None
        S = self.C @ P @ self.C.T + self.V
        L = np.asarray(np.linalg.solve(S, self.C @ P).T, np.float64)
        reduced = np.eye(self.states) - L @ self.C
        return L, S, reduced @ P @ reduced.T + L @ self.V @ L.T

    def next_state(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the next state without noise."""
        q = self.signals.inputs
        return np.asarray(self.A @ x + self.B @ v[:q] + self.E @ v[q:] + self.constants[0])

    def output_of(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the output of the state that the inputs v have led to, without noise."""
        return np.asarray(self.C @ x + self.D @ v + self.constants[1])

    @property
    def output_map(self) -> FloatArray:
        """[C D c], the matrix from (x, inputs and disturbances, 1) to the output."""
        return np.hstack([self.C, self.D, self.constants[1][:, None]])

    def models(self, interval: float, room: int) -> tuple[Any, ...]:
        """Return the parts of `kernels.kalman.FilterModels` for a sampling interval.

        The last input is constant. States beyond those of the plant, up to `room`, are zero. If the
        interval is not the period, process noise and drift are scaled in proportion to it.
        """
        A, B, (k, c), W = self.A, np.hstack([self.B, self.E]), self.constants, self.W
        if not self.is_regular(interval):
            self.require_interval(interval)
            scale, q = interval / self.period, self.signals.inputs
            A, B, *_ = state_space.sampled(self._continuous, interval)
            k, W = scale * self.drift - B[:, :q] @ self.u0, scale * W
        square, rows = (0, room - self.states), ((0, room - self.states), (0, 0))  # for `np.pad`
        W, C, D = np.pad(W, square), np.pad(self.C, rows[::-1]), np.hstack([self.D, c[:, None]])
        F = np.hstack([np.pad(A, square), np.pad(np.hstack([B, k[:, None]]), rows)])
        p, size = D.shape[0], F.shape[1]
        # NaN: the kernel must not use T, the map of a stationary filter.
        T, log_det, Sigma = np.zeros((size + p, 2 * p + room)), math.nan, np.zeros_like(W)
        if self.stationary is not None and self.nu == math.inf:
            L, S, Sigma = self.stationary
            log_det, L, Sigma = np.linalg.slogdet(S)[1], np.pad(L, rows), np.pad(Sigma, square)
            ahead = np.pad(F, ((0, 0), (0, p)))  # x⁻ from (x̂, v, y)
            feedthrough = np.pad(D, ((0, 0), (room, p)))
            error = np.eye(p, size + p, size) - C @ ahead - feedthrough
            x = ahead + L @ error
            white = np.linalg.solve(np.linalg.cholesky(S), error)
            T = np.vstack([C @ x + feedthrough, white, x]).T
        return F, np.hstack([C, D]), W, self.V, self.nu, T, log_det, Sigma

    @cached_property
    def _filter(self) -> "FilterBank":
        return FilterBank([self])

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | past, u) and the next state, with one row."""
        return self._filter.step_filter(SituatedState(xs.x, xs.s[None]), a, o)


class FilterBank(Filters):
    """The filters of linear modes in a few arrays, for one compiled step of all of them.

    Plants may have different orders. They have the same inputs, outputs, limits and period.

    >>> modes = [PlantMode(([[a]], [[1.0]], [[1.0]]), lambda loop: 0.0, process_noise=1.0,
    ...                    sensor_noise=1.0) for a in (0.5, 0.9)]
    >>> bank = FilterBank(modes)
    >>> len(bank), bank[1].A.item(), bank.start().shape
    (2, 0.9, (2, 5))
    """

    #: `advance` of the step of the last `log_likelihoods` cannot fail.
    advances_with_likelihoods = True

    def __init__(self, modes: Sequence[PlantMode]) -> None:
        self._modes, self._room = list(modes), max(mode.states for mode in modes)
        self.names = [mode.name or f"m{m}" for m, mode in enumerate(modes)]
        self._cache: dict[float, Any] = {}
        #: Where the estimated state begins in the row of a filter, and its size.
        self._places = 1 + 2 * modes[0].signals.outputs, self._room

    def _models(self, interval: float) -> Any:
        """Return the models of all modes for a sampling interval; at most 64 are cached."""
        models = self._cache.get(interval)
        if models is None:
            models = stacked([mode.models(interval, self._room) for mode in self._modes])
            if len(self._cache) >= 64:
                self._cache.clear()
            self._cache[interval] = models
        return models

    def __len__(self) -> int:
        return len(self._modes)

    def __getitem__(self, m: int) -> PlantMode:
        return self._modes[m]

    def start(self) -> FloatArray:
        """Return the first states of all filters, one row each."""
        return np.array([mode.start(self._room) for mode in self._modes])

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | m, past, u) and the next states, one row per mode."""
        (x, states), first, run = xs, self._modes[0], kernels.kalman
        first.require_signals(x)
        u, y, interval = first.as_input(a), first.as_output(x, o), x.item(1)
        regular, missing = first.is_regular(interval), o is MISSING
        models = self._models(first.period if regular else interval)
        new, log_p = np.empty(states.shape), np.empty(len(states))
        may_be_steady = regular and not missing and states.item(0) == 1.0
        if not may_be_steady or not run.observe(
            models.T, models.log_det, states, x, u, *first.limits, y, new, log_p
        ):
            run.step(models, states, first.inputs(x, u), y, missing, regular, new, log_p)
        return log_p, new

    def mix(self, states: FloatArray, flow: FloatArray) -> FloatArray:
        """Return the states of filters that may switch, for `InteractingBelief`."""
        return kernels.kalman.mix(states, flow, *self._places)

    def mix_by_hazard(
        self, states: FloatArray, stays: FloatArray, leaves: FloatArray, prior: FloatArray
    ) -> FloatArray:
        """Return the states of filters that may switch with a hazard."""
        return kernels.kalman.mix_by_hazard(states, stays, leaves, prior, *self._places)

    def __repr__(self) -> str:
        return f"FilterBank({', '.join(self.names[:4])}{', …' * (len(self) > 4)})"


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
        try:
            v = np.concatenate([mode.limited(u), self._disturbance(self.k)])
        except BadEvidence as error:
            raise UnknownAction(str(error)) from None
        w, e = (stream.normal(size=len(f)) @ f for f in self._factors)
        if mode.nu < math.inf:  # Student's t
            e = e * math.sqrt(0.5 * mode.nu / stream.gamma(0.5 * mode.nu))
        self.x = mode.next_state(self.x, v) + w
        y = mode.output_of(self.x, v) + e
        self.k += 1
        return y.item() if y.size == 1 else y

    def silence(self) -> None:
        """Set the noise to 0 from now on."""
        self._factors = [np.zeros_like(factor) for factor in self._factors]

    def __repr__(self) -> str:
        return f"PlantWorld({self.mode!r}, step {self.k})"


def stacked(each: Sequence[tuple[Any, ...]]) -> Any:
    """Return `FilterModels`, from their parts for each mode."""
    parts = kernels.kalman.FilterModels(*map(np.array, zip(*each, strict=True)))
    last = {name: np.moveaxis(getattr(parts, name), 0, 2).copy() for name in ("F", "H", "W", "V")}
    return parts._replace(**last, Sigma=np.moveaxis(parts.Sigma, 0, 2).copy())


def _action(answer: Any) -> Any:
    """Return the action of `predict`, which may return (action, state)."""
    return answer[0] if isinstance(answer, tuple) else answer
