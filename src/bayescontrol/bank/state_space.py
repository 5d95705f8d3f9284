"""Plants, noise, limits and signals as control engineers give them, and the PI controller.

continuous   ẋ = A x + B u,  y = C x + D u      a system of python-control or scipy.signal
discrete     x' = A x + B u                      sampled with period dt, inputs held ("zoh")

`Loop` is what controllers read, `Signals` the layout of the signals of a control loop.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol.errors import BadEvidence, InvalidSystem, counted
from bayescontrol.lqr.matrices import LARGEST, as_definite, as_matrix, as_square, as_vector


class Loop(NamedTuple):
    """What a controller reads: signals of the loop, and the estimates of its mode.

    `setpoint` is the wanted value of the output that the next input leads to, `y` the estimated
    output and `x` the estimated state now, `measured` the last output as it was measured, and `u`
    the last input that was applied. A name with `_before` is the value one step earlier.

    >>> Loop._fields[:5]
    ('k', 'setpoint', 'setpoint_before', 'disturbance', 'u')
    """

    k: int
    setpoint: FloatArray
    setpoint_before: FloatArray
    disturbance: FloatArray
    u: FloatArray
    measured: FloatArray
    x: FloatArray
    y: FloatArray
    y_before: FloatArray


@dataclass
class Signals:
    """The layout of the situation: an array [k, interval, u, setpoint, setpoint before, d, y]."""

    inputs: int
    outputs: int
    disturbances: int

    def __post_init__(self) -> None:
        sizes = [2, self.inputs, self.outputs, self.outputs, self.disturbances, self.outputs]
        ends = np.cumsum(sizes).tolist()
        #: The number of entries, and the shape of the array.
        self.size: int = ends[-1]
        self.shape = (self.size,)
        _, self.u, self.setpoint, self.setpoint_before, self.disturbance, self.measured = (
            slice(end - size, end) for size, end in zip(sizes, ends, strict=True)
        )


@dataclass(frozen=True)
class PI:
    """A PI controller in velocity form: u = u⁻ + kp (ε - ε⁻) + ki ε, ε = setpoint - output.

    It has no integrator of its own: it starts from the input that was applied, so saturation
    causes no wind-up, and a change of modes causes no jump of the integral. `kp` and `ki` are
    numbers, or matrices inputs × outputs. `ki` is the integral gain per sample. ε is the error of
    the estimated output; with `integrate_measured` the integral uses the measured output, which
    removes the offset from a load that the plant model lacks, and passes on more sensor noise.

    >>> loop = Loop(0, *(np.array([v]) for v in (1.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.2, 0.1)))
    >>> PI(kp=2.0, ki=0.5)(loop).round(12).tolist()      # 0.5 + 2 (0.8 - 0.9) + 0.5 · 0.8
    [0.7]
    """

    kp: ArrayLike
    ki: ArrayLike
    integrate_measured: bool = False

    def __post_init__(self) -> None:
        for name in ("kp", "ki"):
            gain = as_numbers(getattr(self, name), f"PI: {name}", InvalidSystem)
            if gain.ndim not in (0, 2) or not np.isfinite(gain).all():
                raise InvalidSystem(f"PI({name}={gain.tolist()!r}): expected a number or a matrix")
            object.__setattr__(self, name, gain)

    def __call__(self, loop: Loop) -> FloatArray:
        """Return the next input, before limits."""
        error = loop.setpoint - loop.y
        change = error - (loop.setpoint_before - loop.y_before)
        if self.integrate_measured:
            error = loop.setpoint - loop.measured
        return np.asarray(loop.u + np.dot(self.kp, change) + np.dot(self.ki, error))


_FLOAT = np.dtype(np.float64)
#: Relative difference of two sampling periods that are still the same.
SAME_PERIOD = 1e-9
#: Eigenvalues with a modulus this near to 1 are on the stability limit.
_MARGINAL = 1e-9
_FEEDTHROUGH = (
    "an output is measured before the next input is chosen, so it cannot depend on that input"
)


def discretised(plant: Any, dt: float | None, method: str) -> tuple[Any, float, list[FloatArray]]:
    """Return the continuous matrices or None, the period, and A, B, C, D in discrete time.

    A transfer function becomes a state space. If it has order one, its state is the output.
    """
    is_transfer = hasattr(plant, "num") and hasattr(plant, "den")
    is_scipy = type(plant).__module__.startswith("scipy.signal")
    if is_scipy and hasattr(plant, "to_ss"):
        plant = plant.to_ss()
    elif is_transfer:
        import control  # type: ignore[import-untyped]

        try:
            plant = control.ss(plant)
        except (control.ControlMIMONotImplemented, ValueError, NotImplementedError) as error:
            raise InvalidSystem(f"the transfer function has no state space: {error}") from None
    is_system = hasattr(plant, "C") and hasattr(plant, "dt")
    if not is_system and not (isinstance(plant, tuple | list) and len(plant) in (3, 4)):
        raise InvalidSystem(
            f"plant={plant!r}: expected a system of python-control (ss or tf) or scipy.signal, or "
            "matrices (A, B, C) or (A, B, C, D) in discrete time"
        )
    parts: Any = (plant.A, plant.B, plant.C, plant.D) if is_system else plant
    if np.shape(parts[0])[:1] == (0,):
        raise InvalidSystem("the plant has no state: add a delay or a time constant")
    A = as_square(parts[0], "A")
    B, C = as_matrix(parts[1], (len(A), None), "B"), as_matrix(parts[2], (None, len(A)), "C")
    shape = len(C), B.shape[1]
    D = as_matrix(parts[3] if len(parts) > 3 else np.zeros(shape), shape, "D")
    if is_transfer and len(A) == D.size == 1:
        B, C = B * C, np.ones((1, 1))
    timebase = plant.dt if is_system else True
    if is_scipy and timebase is None:  # in SciPy, None is continuous time
        timebase = 0
    period = 1.0 if dt is None else require_between("dt", dt, 0.0, math.inf, ends="()")
    if timebase is None:
        raise InvalidSystem(
            "the plant has dt=None: create it with dt=0 (continuous) or with its period"
        )
    if timebase == 0:
        if dt is None:
            raise InvalidSystem("the plant is continuous: pass dt, the sampling period")
        continuous, discrete = (A, B, C, D), sampled((A, B, C, D), period, method)
        if method != "zoh" and discrete[3].any():
            raise InvalidSystem(f"method={method!r}: {_FEEDTHROUGH}; use 'zoh'")
        return continuous if method == "zoh" else None, period, discrete
    if timebase is not True:
        if dt is not None and abs(timebase - period) > SAME_PERIOD * period:
            raise InvalidSystem(
                f"dt={dt!r}, but the plant has the period {timebase!r}: omit dt, or resample the "
                "plant"
            )
        period = float(timebase)
    if is_system and D.any():
        raise InvalidSystem(f"the plant has D = {D.tolist()}: {_FEEDTHROUGH}")
    return None, period, [A, B, C, D]


def sampled(continuous: Any, period: float, method: str = "zoh") -> list[FloatArray]:
    """Return A, B, C, D of a continuous-time system that is sampled with this period."""
    from scipy.signal import cont2discrete  # type: ignore[import-untyped] # takes 0.5 s to load

    try:
        parts = cont2discrete(continuous, period, method)
    except ValueError as error:
        raise InvalidSystem(f"method={method!r}: {error}") from None
    return [np.ascontiguousarray(part, np.float64) for part in parts[:4]]


def unstable_modulus(A: FloatArray, B: FloatArray, K: FloatArray) -> float | None:
    """Return the largest modulus of an eigenvalue of A - B K, or None if the gain stabilises A.

    Eigenvalues of modulus 1 that no input can move, such as that of a constant load, do not count.
    """
    values, n = np.linalg.eigvals(A - B @ K), len(A)
    for value in values[np.argsort(-abs(values))]:
        controllable = np.linalg.matrix_rank(np.hstack([value * np.eye(n) - A, B])) == n
        if abs(value) > 1.0 + _MARGINAL or (abs(value) >= 1.0 - _MARGINAL and controllable):
            return float(abs(value))
    return None


def as_covariance(
    value: Any, size: int, what: str, *, strictly: bool = False, power: int = 2
) -> FloatArray:
    """Return a covariance: of standard deviations (a number or a list), or the given matrix.

    With `power=1` the numbers are weights, the diagonal of the matrix.
    """
    kind = "standard deviations" if power == 2 else "weights"
    array = as_numbers(value, what, InvalidSystem)
    if array.ndim < 2:
        if array.size not in (1, size):
            raise InvalidSystem(f"{what} has {array.size} {kind}: expected {size}, or one for all")
        if not (array >= 0.0).all() or (strictly and not (array > 0.0).all()):
            least = "above 0" if strictly else "at least 0"
            raise InvalidSystem(f"{what}={value!r}: {kind} must be {least}")
        array = np.diag(np.broadcast_to(array**power, (size,)))
    return as_definite(array, size, what, strictly=strictly)


def process_covariance(plant: Any, B: FloatArray, states: Any, inputs: Any) -> FloatArray:
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


def as_constant(value: ArrayLike, size: int, what: str) -> FloatArray:
    """Return a flat, finite vector. 0 fits any size; another number is a vector of size one."""
    array = as_numbers(value, what, InvalidSystem)
    fits = array.size == size if array.ndim else size == 1 or not array.any()
    if array.ndim > 1 or not fits or not np.isfinite(array).all():
        expected = "a flat list of " * (size > 1) + counted(size, "finite number")
        raise InvalidSystem(f"{what} is {value!r}: expected {expected}")
    return np.broadcast_to(array, (size,))


def as_signal(signal: Any, size: int, what: str) -> Callable[[int], FloatArray]:
    """Return a signal as a function of the step: a number, a list, or a function of the step."""
    if callable(signal):
        return lambda k: as_constant(signal(k), size, what)
    constant = as_constant(signal, size, what)
    return lambda _: constant


def signal_vector(value: Any, size: int, what: str) -> FloatArray:
    """Return a vector; a number is a vector of one. The values of an array are not checked."""
    if type(value) is np.ndarray and value.shape == (size,) and value.dtype == _FLOAT:
        return value
    if size == 1 and type(value) is float and abs(value) <= LARGEST:  # the usual case, fast
        return np.array([value])
    if size == 1 and isinstance(value, float | int | np.number | np.ndarray) and not np.ndim(value):
        value = np.array([value], np.float64)
    return as_vector(value, size, what)


def require_finite(is_finite: bool, u: FloatArray) -> None:
    """Raise BadEvidence if the input is not finite."""
    if not is_finite:
        raise BadEvidence(f"the input is {u.tolist()}: it must be finite")
