"""What controllers of a plant read, the signals of a control loop, and the PI controller."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol.errors import InvalidSystem


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
        #: The number of entries.
        self.size: int = ends[-1]
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
