"""A nonlinear simulator with an extended Kalman filter as an operation mode.

hypothesis   x' = f(x, u, d) + w,   y = h(x') + e
filter       f ≈ f(x̂, u, d) + A (x - x̂),   h ≈ h(x⁻) + C (x' - x⁻)        linear at each step
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, require_between
from bayescontrol.bank.plant_mode import FilterMode, stacked
from bayescontrol.bank.state_space import Signals, as_covariance
from bayescontrol.errors import BadEvidence, InvalidSystem, counted
from bayescontrol.lqr.matrices import as_start
from bayescontrol.protocols import MISSING, SituatedState
from bayescontrol.simulators.mode import require_function
from bayescontrol.simulators.plant import linearise


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
        start: ArrayLike,
        start_noise: ArrayLike,
        process_noise: ArrayLike = 0.0,
        sensor_noise: ArrayLike,
        disturbances: int = 0,
        limits: tuple[ArrayLike, ArrayLike] | None = None,
        student: float = math.inf,
        name: str = "",
    ) -> None:
        require_function(step, "step(x, u)", f"ExtendedMode {name!r}")
        require_function(output, "output(x)", f"ExtendedMode {name!r}")
        if any(given is None for given in (start, start_noise)):
            raise InvalidSystem(f"ExtendedMode {name!r}: give start and start_noise")
        self.step, self.output, n = step, output, np.size(start)
        self.W, self.u0 = as_covariance(process_noise, n, "process_noise"), np.zeros(inputs)
        outputs = np.size(output(as_start(start, n)))
        super().__init__(
            controller, n, Signals(inputs, outputs, disturbances),
            require_between("dt", dt, 0.0, math.inf, ends="()"), sensor_noise=sensor_noise,
            limits=limits, start=start, start_noise=start_noise, student=student, name=name,
        )  # fmt: skip

    def next_state(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the next state without noise."""
        return self._answer("step", self.step(x.copy(), v.copy()), self.states)

    def output_of(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the output of a state without noise."""
        return self._answer("output", self.output(x), self.signals.outputs)

    def steady_point(self, r: FloatArray, d: FloatArray) -> FloatArray:
        """Return (x, u) in the steady state with the output r, by least squares from `start`."""
        from scipy.optimize import least_squares  # type: ignore[import-untyped]

        z = np.concatenate([self.x0, np.clip(self.u0, *self.limits)])
        options: Any = {"jac": "3-point", "x_scale": "jac", "xtol": 1e-12, "ftol": 1e-12}
        try:
            return np.asarray(least_squares(self.steady_errors, z, args=(r, d), **options).x)
        except (ArithmeticError, ValueError):  # the simulator has no answer there
            return z

    def _answer(self, what: str, answer: Any, size: int) -> FloatArray:
        """Return the answer of `what`, step or output, as a new vector of this size."""
        vector = np.array(answer, np.float64, ndmin=1)
        if vector.shape != (size,):
            expected = counted(size, "number")
            raise InvalidSystem(f"{self!r}: {what} returned {answer!r}: expected {expected}")
        return vector

    def step_filter(self, xs: SituatedState, a: Any, o: Any) -> tuple[FloatArray, FloatArray]:
        """Return ln P(y | past, u) and the next state, linearised at the estimate."""
        self.require_signals(xs.x)
        v, y = self.inputs(xs.x, self.as_input(a)), self.as_output(xs.x, o)
        self.require_interval(xs.x.item(1))
        at = 1 + 2 * self.signals.outputs
        x, v = xs.s[at : at + self.states], v[:-1]
        ahead = self.next_state(x, v)
        A, _ = linearise(self.next_state, x, v)
        C, _ = linearise(self.output_of, ahead, v[:0])
        k, c = ahead - A @ x, self.output_of(ahead, v) - C @ ahead
        F, H = np.column_stack([A, k]), np.column_stack([C, c])
        for what, matrix, state in (("step", F, x), ("output", H, ahead)):
            if not np.isfinite(matrix).all():
                raise BadEvidence(
                    f"{self!r}: {what} or its derivative is not finite at x = {state.tolist()}, "
                    f"u = {v.tolist()}: narrow the limits of the input, or let {what} return "
                    "finite numbers there"
                )
        blank = np.zeros((0, 0))
        models = stacked([(F, H, self.W, self.V, self.nu, blank, math.nan, blank)])
        # The linearised input is the constant 1. There is no stationary filter to use.
        new, log_p, missing = np.empty((1, xs.s.size)), np.empty(1), o is MISSING
        kernels.kalman.step(models, xs.s[None], np.ones(1), y, missing, False, new, log_p)
        return log_p, new
