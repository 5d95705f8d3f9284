"""Noise around a simulated step, and the floor without which a simulator refutes itself.

    o = f(x, u) + w + e,   w ~ N(0, diag σ²),   e ~ N(0, φ² I)

    ln P(o | x, u) = -½ Σ_i z_i² - Σ_i ln s_i - ½ d ln 2π,   z = (o - f(x, u)) / s,  s² = σ² + φ²

σ is the noise of the world, zero if need be. φ, the floor, is what a simulator cannot know:
rounding, wear, all that was left out. A simulator that is right to six digits and claims to be
right to sixteen is refuted by the first observation. The smaller the floor, the faster wrong
hypotheses fall: a prediction that is off by r costs r² / 2s² nats a step.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence
from bayescontrol.seeding import Stream

_LN_2PI = math.log(2.0 * math.pi)


class Gaussian:
    """N(0, diag(σ² + φ²)) as a density, N(0, diag σ²) as a draw: the floor is the model's own.

    `std` is σ, one number or one for each component; `floor` is φ, one number above 0.

    >>> noise = Gaussian(std=[0.0, 0.3], floor=0.4)
    >>> noise.scale.tolist()
    [0.4, 0.5]
    >>> round(noise.log_density([1.0, 2.0], [1.0, 2.5]), 6)    # one component off by one s
    -0.728439
    """

    def __init__(self, std: float | Sequence[float] | FloatArray = 0.0, floor: float = 1e-3):
        sigma = np.atleast_1d(np.array(std, np.float64))
        if sigma.ndim != 1 or not sigma.size or not (np.isfinite(sigma) & (sigma >= 0.0)).all():
            raise ValueError(
                f"Gaussian(std={std!r}): a standard deviation, or one for each component, finite "
                "and at least 0"
            )
        if not 0.0 < floor < math.inf:
            raise ValueError(
                f"Gaussian(floor={floor!r}): a floor above 0, finite; a simulator without one is "
                "refuted by its own rounding"
            )
        self.std, self.floor = sigma, float(floor)
        #: s = √(σ² + φ²), for each component.
        self.scale: FloatArray = np.hypot(sigma, self.floor)
        # Plain numbers: for the few components of a plant they are faster than arrays.
        self._inverse = (1.0 / self.scale).tolist()
        self._log_scale = float(np.log(self.scale).sum())

    def log_density(self, o: Any, mean: Any) -> float:
        """ln N(o; mean, diag s²); a number stands for one component.

        >>> Gaussian(floor=1.0).log_density([0.0], [0.0, 0.0])
        Traceback (most recent call last):
        bayescontrol.errors.BadEvidence: an observation of 1 components, a simulated step of 2: ...
        """
        o, mean = _components(o, "the observation"), _components(mean, "the simulated step")
        d = len(mean)
        inverse, log_scale = self._inverse, self._log_scale
        if len(inverse) == 1:
            inverse, log_scale = inverse * d, log_scale * d
        if len(o) != d:
            raise BadEvidence(
                f"an observation of {len(o)} components, a simulated step of {d}: they must be as "
                "many"
            )
        if len(inverse) != d:
            raise BadEvidence(
                f"{self!r} has {len(inverse)} deviations, the observation {d} components: give one "
                f"std, or {d}"
            )
        squares = 0.0
        seen = o.tolist() if isinstance(o, np.ndarray) else o
        for o_i, mean_i, w in zip(seen, mean, inverse, strict=True):
            z = (o_i - mean_i) * w
            squares += z * z
        return float(-0.5 * squares - log_scale - 0.5 * d * _LN_2PI)

    def draw(self, d: int, rng: Stream) -> FloatArray:
        """w ~ N(0, diag σ²), of d components.

        >>> Gaussian(std=[0.0, 1.0]).draw(2, Stream(0)).shape
        (2,)
        """
        if self.std.size not in (1, d):
            raise ValueError(f"{self!r} for a state of {d} components: give one std, or {d}")
        w: FloatArray = self.std * rng.normal(size=d)
        return w

    def __repr__(self) -> str:
        std = float(self.std[0]) if self.std.size == 1 else self.std.tolist()
        return f"Gaussian(std={std}, floor={self.floor})"


def _components(value: Any, what: str) -> Any:
    """The value, as a sequence of numbers."""
    if isinstance(value, list | tuple) and all(type(part) is float for part in value):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal length
        array = np.empty((0, 0))
    if array.ndim > 1 or array.dtype.kind not in "fiu":
        raise BadEvidence(
            f"{what} is {value!r}: it must be one number for each component, a sequence or an "
            "array of one dimension"
        )
    return value if array.ndim else [array.item()]
